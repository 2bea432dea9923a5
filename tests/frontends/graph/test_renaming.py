"""Tensors of a program under construction get other names, in all statements that use them and no others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from polyloom.frontends.graph import builder as built
from polyloom.frontends.graph import scalar
from polyloom.frontends.graph.builder import Builder
from polyloom.frontends.graph.draft import Term
from polyloom.frontends.graph.linear import iterators
from polyloom.frontends.graph.values import Value
from polyloom.ir.types import ElementType


def _sum_of(builder: Builder, a: Value, b: Value) -> Value:
    axes = iterators(1)
    return builder.statement((4,), [Term(a, axes), Term(b, axes)], (4,), axes, scalar.add)


def test_a_name_changes_where_a_tensor_is_written_and_read() -> None:
    builder = Builder()
    x = builder.input("x", ElementType.FLOAT32, (4,))
    weights = builder.constant(np.ones(4, np.float32))
    y = _sum_of(builder, x, weights)
    z = _sum_of(builder, y, x)
    assert builder.is_written(y.tensor) and not builder.is_written(x.tensor)
    assert not builder.is_written(weights.tensor)
    new, held = builder.rename_tensor(y.tensor, "first"), builder.rename_tensor(weights.tensor, "held")
    first, second = builder.statements
    assert first.write.buffer == new and [r.buffer for r in first.reads] == [x.tensor, held]
    assert second.write.buffer == z.tensor and [r.buffer for r in second.reads] == [new, x.tensor]
    assert builder.is_written(new) and not builder.is_written(y.tensor)
    again = builder.rename_tensor(new, "again")
    assert [s.write.buffer for s in builder.statements] == [again, z.tensor]


def test_renaming_all_tensors_of_a_chain_takes_time_in_proportion(monkeypatch: pytest.MonkeyPatch) -> None:
    changed = []
    plain: Any = built._with_tensor

    def counted(*given: Any) -> Any:
        changed.append(given)
        return plain(*given)

    monkeypatch.setattr(built, "_with_tensor", counted)
    builder = Builder()
    made = [builder.input("x", ElementType.FLOAT32, (4,))]
    for _ in range(50):
        made.append(_sum_of(builder, made[-1], made[-1]))
    for number, value in enumerate(made[1:]):
        builder.rename_tensor(value.tensor, f"output {number}")
    assert len(changed) == 99  # each is written by one statement and read by the next
