"""Integers at the ends of their types, where differences and sums of them wrap around: as PyTorch 2.13."""

from __future__ import annotations

import numpy as np
import pytest
from test_special_numbers import computed


@pytest.mark.parametrize("kind", ["int8", "int16", "int32", "int64"])
@pytest.mark.parametrize("op", ["floor_divide", "div"])
def test_quotients_are_rounded_down(op: str, kind: str) -> None:
    ends = np.iinfo(kind)
    one = np.array([ends.min, ends.max, 1, -1, 5, -5, 0, 7], kind)
    a, b = (v.reshape(-1) for v in np.meshgrid(one, one[one != 0]))
    keep = (a != ends.min) | (b != -1)
    a, b = a[keep], b[keep]
    arguments = {"rounding_mode": "floor"} if op == "div" else {}
    (found,) = computed(op, {"self": a, "other": b}, arguments, kind)
    assert found.tolist() == [int(x) // int(y) for x, y in zip(a, b, strict=True)]
