"""Large arrays go in and come out without copies: by what is allocated, and by addresses."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import polyloom
from samples import one_in

N = 1 << 20
BYTES = 4 * N
AXPY = "void axpy(int n, float a, float x[n], float y[n]) { for (int i = 0; i < n; i++) y[i] += a * x[i]; }"
DOUBLE = f"lair double(): float32 x[{N}] -> float32 z[{N}] {{ all (i) in ({N}) z[i] = x[i] + x[i] }}"


class WithInterface:
    """An array of another library, by NumPy's array interface."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array, self.__array_interface__ = array, array.__array_interface__


class WithDlpack:
    """An array of another library, by DLPack."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


GIVEN: list[Callable[[Any], Any]] = [lambda array: array, WithInterface, WithDlpack]


def allocated(call: Callable[[], object]) -> float:
    """The most that a call has allocated at a time, in arrays of ``BYTES``; NumPy's arrays are counted."""
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    result = call()
    most = tracemalloc.get_traced_memory()[1] - before
    tracemalloc.stop()
    del result
    return most / BYTES


@pytest.mark.slow
@pytest.mark.ci
def test_what_is_allocated_is_seen() -> None:
    assert 1 <= allocated(lambda: np.ones(N, np.float32)) < 1.1


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("given", one_in(3, GIVEN))
def test_arrays_that_a_function_of_c_changes(given: Callable[[Any], Any]) -> None:
    axpy, x, y = polyloom.load(AXPY), np.ones(N, np.float32), np.ones(N, np.float32)
    few = np.ones(3, np.float32)
    axpy(3, 1.0, few, few.copy())
    for times in (1, 2):  # a first call is checked, later ones are not
        assert allocated(lambda: axpy(N, 2.0, given(x), given(y))) < 0.1
        assert (y == 1 + 2 * times).all()


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("given", one_in(3, GIVEN, start=1))
def test_a_result_is_what_the_code_wrote(given: Callable[[Any], Any]) -> None:
    double, x = polyloom.load(DOUBLE), np.ones(N, np.float32)
    double(x)
    for _ in range(2):
        assert allocated(lambda: double(given(x))) < 1.1


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("given", GIVEN)
def test_arrays_of_python_functions(given: Callable[[Any], Any]) -> None:
    @polyloom.jit
    def add(x, y):  # type: ignore[no-untyped-def]
        for i in range(len(x)):
            y[i] += x[i]
        return y

    x, y = np.ones(N, np.float32), np.ones(N, np.float32)
    add(x[:3].copy(), y[:3].copy())
    theirs = given(y)
    assert add(given(x), theirs) is theirs
    assert allocated(lambda: add(given(x), theirs)) < 0.1
    assert (y == 3).all()


def test_results_lie_in_the_memory_that_others_get() -> None:
    torch = pytest.importorskip("torch")
    double, x = polyloom.load(DOUBLE), torch.ones(N)
    double(x)
    assert allocated(lambda: double(x)) < 1.1
    result = double(x)
    shared = result.numpy()
    shared[0] = 7
    assert isinstance(result, torch.Tensor) and result[0] == 7
