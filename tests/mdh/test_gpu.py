"""The same on a GPU, where there is one: `make test-gpu`. Not part of the other runs."""

from __future__ import annotations

from pathlib import Path

import pytest
import test_expression_c
import test_programs
import test_runtime

from polyloom.ir.types import ElementType
from polyloom.mdh.device.devices import DeviceKind, find_devices, open_device

pytestmark = [pytest.mark.slow, pytest.mark.gpu]


@pytest.fixture(autouse=True)
def on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [model for model in find_devices() if model.kind is DeviceKind.GPU]
    if not found:
        pytest.skip("there is no GPU here")
    for module in (test_expression_c, test_programs, test_runtime):
        monkeypatch.setattr(module, "device", lambda: open_device(found[0]))
    monkeypatch.setattr(test_programs.tuned, "tuning_results", lambda path: None)


@pytest.mark.parametrize("kind", test_expression_c.INTEGERS, ids=lambda k: k.value)
def test_integers(kind: ElementType) -> None:
    test_expression_c.test_integers_wrap_and_divide_as_stated(kind, 1)


@pytest.mark.parametrize("kind", test_expression_c.FLOATS, ids=lambda k: k.value)
def test_floats(kind: ElementType) -> None:
    test_expression_c.test_floats_are_rounded_once(kind, 1)
    test_expression_c.test_functions_are_close(kind, 1)


def test_arrays_stay_on_the_device() -> None:
    test_runtime.test_arrays_stay_on_the_device()
    test_runtime.test_arrays_are_changed_in_place_and_returned()
    test_runtime.test_kernels_share_temporaries()


@pytest.mark.parametrize("how", ["model", "plain"])
@pytest.mark.parametrize("sizes", [(7, 5, 6), (65, 33, 130)], ids=str)
@pytest.mark.parametrize("path", [*test_programs.KERNELS, *test_programs.EXAMPLES], ids=lambda p: p.stem)
def test_a_program_of_every_form(path: Path, sizes: tuple[int, ...], how: str) -> None:
    test_programs.check_file(path, sizes, how, fuse=how == "plain")
