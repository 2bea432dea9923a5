"""``@polyloom.jit``: what functions compute, beside Python itself; and what is refused, with its place."""

from __future__ import annotations

import subprocess
import sys
import warnings
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from python_functions import FUNCTIONS, gemm

import polyloom
from samples import one_in


def copied(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(a.copy() if isinstance(a, np.ndarray) else a for a in arguments)


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("name", one_in(2, FUNCTIONS, start=1))
def test_functions_do_what_python_does(name: str) -> None:
    function, arguments = FUNCTIONS[name]
    given = arguments(np.random.default_rng(1))
    own, pythons = copied(given), copied(given)
    jitted = polyloom.jit(function)
    found, wanted = jitted(*own), function(*pythons)
    for have, want in ((found, wanted), *zip(own, pythons, strict=True)):
        if want is None:
            assert have is None
            continue
        for a, b in zip(*(v if isinstance(v, tuple) else (v,) for v in (have, want)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5)
            assert np.asarray(a).dtype == np.asarray(b).dtype
    assert jitted.run(*given, check=True).passed


def test_results_have_numpys_types() -> None:
    """Products in float32 where NumPy's are in float64, or the other way, differ by 3e-8."""
    function, arguments = FUNCTIONS["types_of_results"]
    given = arguments(np.random.default_rng(1))
    own, pythons = copied(given), copied(given)
    polyloom.jit(function)(*own)
    function(*pythons)
    np.testing.assert_allclose(own[-1], pythons[-1], rtol=1e-9)


def test_the_check_compares_with_python() -> None:
    jitted = polyloom.jit(gemm)
    given = FUNCTIONS["gemm"][1](np.random.default_rng(1))
    result = jitted.run(*given, check=True)
    assert result.passed and result.check is not None and result.check.by == "the Python function"
    jitted.python = lambda alpha, a, b, c: c.__iadd__(1)
    assert not jitted.run(*given, check=True).passed


def test_kinds_of_arguments_are_compiled_once_each() -> None:
    def scale(a, x):  # type: ignore[no-untyped-def]
        for i in range(len(x)):
            x[i] = a * x[i]

    jitted = polyloom.jit(scale)
    for dtype in (np.float32, np.float64, np.float32):
        for n in (3, 5):
            x = np.ones(n, dtype)
            jitted(2.5, x)
            np.testing.assert_array_equal(x, np.full(n, 2.5, dtype))
    assert repr(jitted) == "<jit of scale(a, x), 2 kinds of arguments compiled>"
    assert "i parallel" in str(jitted.explain(2.5, np.ones(3))) and jitted.__name__ == "scale"  # type: ignore[attr-defined]


def test_inputs_and_outputs_are_typed_for_each_kind_of_arguments() -> None:
    @polyloom.jit
    def f(a, n, s, flag):  # type: ignore[no-untyped-def]
        t = np.zeros((a.shape[0], n))
        for i in range(a.shape[0]):
            for j in range(n):
                t[i, j] = s * a[i]
        if flag:
            a += 1
        return t, t > 1, a, n

    with pytest.raises(polyloom.PolyloomError, match="jit-kinds"):
        f.inputs  # noqa: B018
    given = np.ones(3, np.float32), 5, 2.5, True
    results = f(*given)
    assert [repr(each) for each in f.inputs.values()] == ["float32[a_0]", "int", "float", "bool"]
    assert list(f.inputs) == ["a", "n", "s", "flag"]
    assert [each.dtype for each in f.outputs.values()] == [np.asarray(r).dtype for r in results]
    assert [len(each.shape) for each in f.outputs.values()] == [np.ndim(r) for r in results]
    assert f.outputs["t"].shape == ("a_0", "n")
    f(np.ones(3), 5, 2.5, False)
    assert [s.inputs["a"].type for s in f.signatures] == ["float32", "float64"]
    with pytest.raises(polyloom.PolyloomError, match="2 kinds"):
        f.outputs  # noqa: B018


def test_a_result_that_is_an_argument_is_that_argument() -> None:
    @polyloom.jit(fp="strict", threads=1)
    def add(x, y):  # type: ignore[no-untyped-def]
        for i in range(len(x)):
            x[i] += y[i]
        return x

    x = np.ones(4)
    assert add(x, np.ones(4)) is x and x.tolist() == [2, 2, 2, 2]


def test_calls_like_one_before_are_done_by_c_alone() -> None:
    @polyloom.jit
    def add(x, y, times=2.0, skipped=0):  # type: ignore[no-untyped-def]
        for i in range(len(x)):
            x[i] += times * y[i]
        return x

    x, y = np.zeros(4), np.ones(4)
    assert add(x, y) is x and add._again is not None
    for call in ((x, y), (x.copy(), y + 1)):
        assert add._again(*call) == (call[0],)
    assert x.tolist() == [4] * 4 and add._again(x, y, 3.0) is NotImplemented
    assert (
        add(x, y, 3.0) is x
        and add._again(x, y, **{str(b"times", "ascii"): 1.0}) == (x,)
        and x.tolist() == [8] * 4
    )
    assert add(x, y, 1.0, 5) is x and add._again(x, y, 1.0, 6) is NotImplemented
    assert add(x[::2], y[:2]) is not x and x.tolist() == [11, 9, 11, 9]


def test_a_number_that_is_assigned_to_is_the_new_one() -> None:
    @polyloom.jit
    def total(s, x):  # type: ignore[no-untyped-def]
        for i in range(len(x)):
            s += x[i]
        return s

    assert total(1.0, np.ones(4)) == 5 and total(np.float32(1), np.ones(4, np.float32)) == 5


def halves(x, y):  # type: ignore[no-untyped-def]
    for i in range(len(x)):
        x[i] = y[i / 2]


def wrapped(x, y):  # type: ignore[no-untyped-def]
    for i in range(len(x)):
        x[i] = y[i - 1]


def while_loop(x, y):  # type: ignore[no-untyped-def]
    i = 0
    while i < len(x):
        i += 1


def over_what_is_computed(x, y):  # type: ignore[no-untyped-def]
    for v in x + y:
        y[0] += v


def unknown_call(x, y):  # type: ignore[no-untyped-def]
    for i in range(len(x)):
        x[i] = np.frexp(y[i])


def function_of_arrays(x, y):  # type: ignore[no-untyped-def]
    return np.cumsum(x)


def too_many_arguments(x, y):  # type: ignore[no-untyped-def]
    for i in range(9):
        x[i] = np.clip(y[i], 2)


def no_step(x, y):  # type: ignore[no-untyped-def]
    for i in range(0, 9, 0):
        x[i] = y[i]


def early(x, y):  # type: ignore[no-untyped-def]  # noqa: RET503
    for i in range(len(x)):
        x[i] = 1.0
        return x


def twice_named(x, y):  # type: ignore[no-untyped-def]
    for i in range(len(x)):
        for i in range(len(y)):
            x[i] = y[i]


def rows(x, y):  # type: ignore[no-untyped-def]
    for i in range(len(x)):
        x[i, 0] = y[i]


def slices(x, y):  # type: ignore[no-untyped-def]
    x[0] = y[1:]


def part_named_again(x, y):  # type: ignore[no-untyped-def]
    z = x[1:]
    for i in range(3):
        y[i] = z[0]
        z = x[2:]


def other_length(x, y):  # type: ignore[no-untyped-def]
    x[1:] = x[:-2]


def lengths_that_differ(x, y):  # type: ignore[no-untyped-def]
    for i in range(len(x)):
        x[:i] = y[i:]


def choice_of_arrays(x, y):  # type: ignore[no-untyped-def]
    x[:] = max(x, y)


def narrower(x, y):  # type: ignore[no-untyped-def]
    z = np.zeros(9, np.int32)
    z[:] += y
    x[:] = z


def row_of_data(x, y):  # type: ignore[no-untyped-def]
    z = np.zeros((9, 9))
    z[:] = x
    row = z[int(y[0])].T
    row[1] = 1


def broken(x, y):  # type: ignore[no-untyped-def]
    for i in range(9):
        if x[i] > 2:
            break
        y[i] = 1


def broken_by_what_changes(x, y):  # type: ignore[no-untyped-def]
    k = 0
    for i in range(9):
        k = i + 1
        if k > 4:
            break
        y[i] = 1


def broken_where_not_continued(x, y):  # type: ignore[no-untyped-def]
    for i in range(9):
        if i == 5:
            continue
        if i > 4:
            break
        y[i] = 1


def found_early(x, y):  # type: ignore[no-untyped-def]
    for i in range(9):
        if x[i] > y[i]:
            return i
    return -1


def part_or_new(x, y):  # type: ignore[no-untyped-def]
    if len(x) > 3:
        return x
    return y * 2


def part_on_one_side(x, y):  # type: ignore[no-untyped-def]
    if len(x) > 3:
        z = x
        z[0] = 1
    else:
        z = x * 2
    return z


def sum_under_a_mask(x, y):  # type: ignore[no-untyped-def]
    return x[y > 0].sum()


def masked_otherwise(x, y):  # type: ignore[no-untyped-def]
    x[y > 0] = y


def numbers_as_subscript(x, y):  # type: ignore[no-untyped-def]
    x[y] = 0


def data_asserted(x, y):  # type: ignore[no-untyped-def]
    assert x[0] > 0
    x[:] = y


def made_in_a_loop(x, y):  # type: ignore[no-untyped-def]
    for i in range(len(x)):
        z = np.zeros(i + 1)
        z[0] = y[i]
        x[i] = z[0]


def part_returned(x, y):  # type: ignore[no-untyped-def]
    return x[1:]


def argument_made_anew(x, y):  # type: ignore[no-untyped-def]
    for _ in range(3):
        x = x * 2
    y[0] = x[0]


def rows_of_a_row(x, y):  # type: ignore[no-untyped-def]
    z = x[:, None]
    y[0] = z[0]


def pair(v):  # type: ignore[no-untyped-def]
    return v, -v


def values_for_names(x, y):  # type: ignore[no-untyped-def]
    a, b, c = pair(x[0])
    y[0] = a + b + c


def two_for_one(x, y):  # type: ignore[no-untyped-def]
    y[0] = pair(x[0])


def odd_type(x, y):  # type: ignore[no-untyped-def]
    z = np.zeros(3, np.complex64)
    z[0] = x[0]


def narrower_whole(x, y):  # type: ignore[no-untyped-def]
    z = np.zeros(9, np.int32)
    z += y


def pairs(x, y):  # type: ignore[no-untyped-def]
    for u, v in tuple(x):
        y[0] = u + v


def counted_from_one(x, y):  # type: ignore[no-untyped-def]
    for i, v in enumerate(x, 1):
        y[0] += i * v


def too_many_beside(x, y):  # type: ignore[no-untyped-def]
    for u, v in zip(x, y, x):  # noqa: B905
        y[0] = u + v


def behind_a_choice(x, y):  # type: ignore[no-untyped-def]
    y[0] = x.max() if len(x) > 0 else 0.0


def sum_of_python(x, y):  # type: ignore[no-untyped-def]
    y[0] = sum(x)


def no_such_axis(x, y):  # type: ignore[no-untyped-def]
    y[0] = np.sum(x, axis=1)


def where_true(x, y):  # type: ignore[no-untyped-def]
    y[0] = x.sum(where=x > 0)


def product_of_truths(x, y):  # type: ignore[no-untyped-def]
    y[0] = (x > 0) @ (y > 0)


def nothing(x, y):  # type: ignore[no-untyped-def]
    pass


@pytest.mark.parametrize(
    ("function", "code", "line", "text"),
    [
        (halves, "python-nonaffine", 3, "i / 2"),
        (wrapped, "python-bounds", 3, "y[i - 1]"),
        (while_loop, "python-statement", 3, "while i < len(x):\n        i += 1"),
        (over_what_is_computed, "python-loop", 2, "x + y"),
        (unknown_call, "python-call", 3, "np.frexp(y[i])"),
        (function_of_arrays, "python-call", 2, "np.cumsum(x)"),
        (too_many_arguments, "python-call", 3, "np.clip(y[i], 2)"),
        (no_step, "python-loop", 2, "0"),
        (early, "python-statement", 4, "return x"),
        (twice_named, "python-name", 3, "i"),
        (rows, "python-shape", 3, "x[i, 0]"),
        (slices, "python-shape", 2, "y[1:]"),
        (part_named_again, "python-name", 5, "z = x[2:]"),
        (part_returned, "python-array", 2, "x[1:]"),
        (argument_made_anew, "python-array", 3, "x = x * 2"),
        (rows_of_a_row, "python-shape", 3, "z[0]"),
        (values_for_names, "python-call", 2, "a, b, c = pair(x[0])"),
        (two_for_one, "python-call", 2, "pair(x[0])"),
        (other_length, "python-shape", 2, "x[:-2]"),
        (lengths_that_differ, "python-shape", 3, "y[i:]"),
        (choice_of_arrays, "python-value", 2, "max(x, y)"),
        (narrower, "python-value", 3, "z[:] += y"),
        (data_asserted, "python-statement", 2, "x[0] > 0"),
        (row_of_data, "python-nonaffine", 4, "row = z[int(y[0])].T"),
        (broken, "python-statement", 4, "break"),
        (broken_by_what_changes, "python-statement", 6, "break"),
        (broken_where_not_continued, "python-statement", 6, "break"),
        (found_early, "python-statement", 4, "return i"),
        (part_or_new, "python-statement", 3, "x"),
        (part_on_one_side, "python-array", 2, None),
        (sum_under_a_mask, "python-shape", 2, "y > 0"),
        (masked_otherwise, "python-shape", 2, "x[y > 0]"),
        (numbers_as_subscript, "python-shape", 2, "y"),
        (made_in_a_loop, "python-array", 3, "z = np.zeros(i + 1)"),
        (odd_type, "python-type", 2, "np.complex64"),
        (narrower_whole, "python-value", 3, "z += y"),
        (pairs, "python-statement", 2, None),
        (counted_from_one, "python-statement", 2, None),
        (too_many_beside, "python-statement", 2, None),
        (behind_a_choice, "python-call", 2, "x.max()"),
        (sum_of_python, "python-call", 2, "sum(x)"),
        (no_such_axis, "python-shape", 2, "1"),
        (where_true, "python-call", 2, "x.sum(where=x > 0)"),
        (product_of_truths, "python-value", 2, "(x > 0) @ (y > 0)"),
        (nothing, "python-statement", 1, None),
    ],
)
def test_what_is_refused_has_a_place(function: Any, code: str, line: int, text: str | None) -> None:
    with pytest.raises(polyloom.Unsupported) as refused:
        polyloom.jit(function)(np.ones(9), np.ones(9))
    (diagnostic,) = refused.value.diagnostics
    assert diagnostic.code == code and diagnostic.span is not None
    assert diagnostic.span.source.name == __file__
    assert diagnostic.span.line == function.__code__.co_firstlineno + line - 1
    assert text is None or diagnostic.span.text == text


def test_calls_that_fit_no_size_are_refused() -> None:
    jitted = polyloom.jit(gemm)
    a = np.ones((3, 4), np.float32)
    with pytest.raises(polyloom.PolyloomError, match="python-index"):
        jitted(1.0, a, a, a)
    with pytest.raises(polyloom.PolyloomError, match="argument-count"):
        jitted(1.0, a)
    with pytest.raises(polyloom.PolyloomError, match="argument-type"):
        jitted("1", a, a, a)
    with pytest.raises(polyloom.PolyloomError, match="python-source"):
        polyloom.jit(eval("lambda x: x"))
    with pytest.raises(polyloom.PolyloomError, match="fp"):
        polyloom.jit(fp="loose")


def value_of_kind(x, y):  # type: ignore[no-untyped-def]
    for i in range(len(x)):
        x[i] = y[i] & 2


def test_operations_that_elements_have_not() -> None:
    with pytest.raises(polyloom.Unsupported, match="python-value"):
        polyloom.jit(value_of_kind)(np.ones(3), np.ones(3))


def test_numbers_that_a_type_does_not_hold_are_refused() -> None:
    """NumPy raises ``OverflowError``; its comparisons take them as they are."""

    def added(x):  # type: ignore[no-untyped-def]
        for i in range(len(x)):
            x[i] = x[i] + 300

    def compared(x):  # type: ignore[no-untyped-def]
        for i in range(len(x)):
            x[i] = x[i] < 300

    x = np.zeros(3, np.uint8)
    with pytest.raises(polyloom.Unsupported, match="`uint8` does not hold 300"):
        polyloom.jit(added)(x)
    polyloom.jit(compared)(x)
    assert x.tolist() == [1, 1, 1]


def fall(x):  # type: ignore[no-untyped-def]
    return fall(x - 1)


def without_return(x):  # type: ignore[no-untyped-def]
    y = x  # noqa: F841


def looping(x):  # type: ignore[no-untyped-def]
    for _i in range(3):
        x = x + 1
    return x


@pytest.mark.parametrize(
    ("function", "reason"),
    [(fall, "calls itself"), (without_return, "ends without"), (looping, "is more than")],
)
def test_functions_that_cannot_be_read_in_place(function: Any, reason: str) -> None:
    def call(x):  # type: ignore[no-untyped-def]
        for i in range(len(x)):
            x[i] = function(x[i])

    with pytest.raises(polyloom.Unsupported, match=f"python-call.*{reason}"):
        polyloom.jit(call)(np.ones(3))


def test_truth_values_are_not_added() -> None:
    """NumPy gives ``True`` for ``True + True``."""

    def both(x, y):  # type: ignore[no-untyped-def]
        for i in range(len(x)):
            y[i] = (x[i] > 0) + (x[i] < 2)

    with pytest.raises(polyloom.PolyloomError, match="python-value"):
        polyloom.jit(both)(np.ones(3), np.zeros(3))


def own_truth_values(x, b, o, n):  # type: ignore[no-untyped-def]
    wide, count = n > 3 and n < 8, False
    for i in range(n):
        o[i] = ((i > 1) * 100) * x[i] + (wide * 100) * x[i] + (i > 1) + (i > 2) + bool(x[i]) * 2
        o[i] += -(i > 2) + ~(i > 3) + (i > 1) ** 2 + (7 >> (i > 2)) + (not x[i]) * 100 * x[0]
        b[i] = (i > 1) ^ b[i]
        count = count + (i > 2)
    return wide, 0 < n < 5, n > 2, count


def one_of_two(x, b, o, n):  # type: ignore[no-untyped-def]
    for i in range(n):
        o[i] = (x[i] and 100) * x[i] + (x[i] or 7) + (b[i] and i) + (b[i] or i > 3)
    return n > 2 and n, n and 5, n > 20 or n


def beside_a_sign(u, k, o, n):  # type: ignore[no-untyped-def]
    for i in range(n):
        o[i] = (u[i] > -1) * 32 + (u[i] > i - 3) * 16 + (u[i] > k[i]) * 8 + (k[i] >= u[i]) * 4
        o[i] += (i - 5 < u[i]) * 128 + (u[i] == -5) * 256 + (k[i] != u[i]) * 2 + (k[i] == u[i])
        o[i] += (max(u[i], 5) > min(k[i], 3)) * 64 + (u[i] <= k[i]) * 512 + (i - 3 > u[i]) * 1024


@pytest.mark.parametrize("function", [own_truth_values, one_of_two, beside_a_sign])
def test_truth_values_and_signs_are_pythons(function: Any) -> None:
    """``(i > 1) * 100`` is an ``int``, which takes the type of what it is multiplied with; ``&`` of truth
    values, values of ``and``, and comparisons of integers of all signs are Python's.
    """
    given = {
        "x": np.array([1, 100, -128, 127, 0, -7], np.int8),
        "b": np.array([1, 0, 1, 0, 1, 1], np.bool_),
        "u": np.array([0, 1, 2, 2**63, 2**53 + 1, 2**64 - 1], np.uint64),
        "k": np.array([0, -1, 3, 2**63 - 1, 2**53, -5], np.int64),
        "o": np.zeros(6, np.int64),
    }
    names = [name for name in function.__code__.co_varnames if name in given]
    own, pythons = (copied(tuple(given[name] for name in names)) for _ in range(2))
    with np.errstate(over="ignore"):
        wanted = function(*pythons, 6)
    assert repr(polyloom.jit(function)(*own, 6)) == repr(wanted)
    for have, want in zip(own, pythons, strict=True):
        np.testing.assert_array_equal(have, want)


def test_lengths_and_asserts_are_looked_at_in_each_call() -> None:
    def sum_of(x, y):  # type: ignore[no-untyped-def]
        assert len(x) % 2 == 0
        x[1:] = x[:-1] + y

    jitted = polyloom.jit(sum_of)
    x = np.arange(4.0)
    jitted(x, np.ones(3))
    np.testing.assert_array_equal(x, [0, 1, 2, 3])
    for sizes in ((4, 4), (5, 4)):
        with pytest.raises(
            polyloom.PolyloomError, match="slices differ in length or end before 0, an `assert` fails"
        ):
            jitted(*map(np.ones, sizes))


@pytest.mark.slow
@pytest.mark.ci
def test_arrays_side_by_side_end_with_the_shortest_and_change_in_place() -> None:
    def products(x, y, z):  # type: ignore[no-untyped-def]
        z += 1
        for i, (u, v) in enumerate(zip(x, y)):  # noqa: B905
            z[0] += (i + 1) * u * v
            x[-1] = v

    jitted = polyloom.jit(products)
    for n, m in product((1, 2, 7), (0, 1, 2, 7)):
        own, pythons = ([np.arange(n) + 2.0, np.arange(m) + 3.0, np.zeros(2)] for _ in range(2))
        jitted(*own)
        products(*pythons)
        for have, want in zip(own, pythons, strict=True):
            np.testing.assert_array_equal(have, want)
    z = np.zeros((0, 3))
    polyloom.jit(in_place)(z)
    assert z.shape == (0, 3)


def in_place(z):  # type: ignore[no-untyped-def]
    z += 1


def inside_a_part(x, k):  # type: ignore[no-untyped-def]
    y = x[2:6]
    y[k] = 1
    y[::-1][0] = 2


def beyond_a_part(x, k):  # type: ignore[no-untyped-def]
    y = x[2:6]
    y[k:3] = 1


def backwards(x, k):  # type: ignore[no-untyped-def]
    x[k - 1 :: -1] = 1


@pytest.mark.parametrize(
    ("function", "right", "wrong"),
    [(inside_a_part, 3, (-1, 4)), (beyond_a_part, 1, (-1,)), (backwards, 2, (0,))],
)
def test_indices_count_from_the_end_of_a_part_in_python_alone(
    function: Any, right: int, wrong: tuple[int, ...]
) -> None:
    """Elements of the array beside the part would be taken: what Python does there is refused."""
    jitted = polyloom.jit(function)
    for k in wrong:
        with pytest.raises(polyloom.PolyloomError, match="python-index"):
            jitted(np.zeros(9), k)
    have, want = np.zeros(9), np.zeros(9)
    jitted(have, right)
    function(want, right)
    assert have.tolist() == want.tolist()


@pytest.mark.slow
@pytest.mark.ci
def test_ends_of_slices_that_count_from_the_end_in_a_call_are_refused_in_it() -> None:
    """``y[:-1]`` is all but the last: where ``n`` is 0, ``y[:n - 1]`` is no empty slice."""

    def up_to(x, y, n):  # type: ignore[no-untyped-def]
        y[: n - 1] = x[: n - 1]

    def rows(x, y, n):  # type: ignore[no-untyped-def]
        for i in range(n):
            y[: i - 2] += x[: i - 2]

    def where_positive(x, y, n):  # type: ignore[no-untyped-def]
        if n > 0:
            y[: n - 1] = x[: n - 1]

    def but_the_last(x, y, n):  # type: ignore[no-untyped-def]
        y[:-n] = x[:-n]

    none = set[int]()
    for function, wrong in ((up_to, {0}), (rows, {1, 2, 6}), (where_positive, none), (but_the_last, {0})):
        jitted = polyloom.jit(function)
        for n in (0, 1, 2, 6):
            found, wanted = np.zeros(8), np.zeros(8)
            if n in wrong:
                with pytest.raises(polyloom.PolyloomError, match="end before 0"):
                    jitted(np.ones(8), found, n)
                continue
            jitted(np.ones(8), found, n)
            function(np.ones(8), wanted, n)
            np.testing.assert_array_equal(found, wanted)


def counted(h, v):  # type: ignore[no-untyped-def]
    for i in range(len(v)):
        if v[i] < 20:
            h[int(v[i])] += 1


@pytest.mark.parametrize(
    ("size", "values", "is_inside"),
    [
        (4, [3, -4, 99.0], True),
        (4, [3, 4], False),
        (4, [-5.0], False),
        (4, [-(2.0**63)], False),
        (1, [1e300, -1e300, 0.0], False),
        (0, [], True),
        (0, [1.0], False),
    ],
)
def test_indices_that_are_read_from_data_are_pythons(size: int, values: Any, is_inside: bool) -> None:
    jitted, given = polyloom.jit(counted), np.array(values, np.float64)
    around, wanted = np.zeros(size + 2, np.int64), np.zeros(size, np.int64)
    if not is_inside:
        with pytest.raises(IndexError):
            counted(wanted, given)
        with pytest.raises(polyloom.PolyloomError, match="python-index") as refused:
            jitted(around[1:-1], given)
        (diagnostic,) = refused.value.diagnostics
        assert not size or (diagnostic.span is not None and diagnostic.span.text == "int(v[i])")
        assert around[0] == around[-1] == 0
        with pytest.raises(polyloom.PolyloomError, match="python-raises" if size else "python-index"):
            jitted.run(around[1:-1], given, check=True)
        return
    for _ in range(2):
        jitted(around[1:-1], given)
        counted(wanted, given)
    np.testing.assert_array_equal(around[1:-1], wanted)


def totals(x):  # type: ignore[no-untyped-def]
    some = np.any(x > 1, axis=-1, keepdims=True)
    return x.sum(), np.sum(x, axis=1), x.mean(axis=0), some, x.prod(0), np.var(x, axis=1), (x > 0).sum()


def largest_along(x):  # type: ignore[no-untyped-def]
    return x.max(axis=1, keepdims=True), np.min(x, 1), x.argmax(axis=1), np.argmin(x, axis=1, keepdims=True)


REALS = np.random.default_rng(5).standard_normal((4, 7))
WITH_NAN = np.where(np.eye(4, 7) == 1, np.nan, REALS)


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize(
    "x",
    [REALS, WITH_NAN, REALS.astype(np.float16), np.uint8(9 + 4 * REALS), REALS > 0, REALS[:0], REALS[:1]],
    ids=["reals", "nan", "float16", "uint8", "truths", "empty", "one"],
)
def test_reductions_are_numpys(x: Any) -> None:
    for function in (totals, largest_along):
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wanted = function(x)
        for have, want in zip(polyloom.jit(function)(x), wanted, strict=True):
            assert type(have) is type(want) and have.dtype == want.dtype and have.shape == want.shape
            accuracy = 2e-3 if want.dtype == np.float16 else 1e-12
            np.testing.assert_allclose(have, want, rtol=accuracy, atol=accuracy)


def test_the_largest_of_nothing_is_refused() -> None:
    """NumPy raises ``ValueError``."""

    def largest(x, n):  # type: ignore[no-untyped-def]
        return x[:n].max()

    jitted = polyloom.jit(largest)
    assert jitted(np.arange(4.0), 3) == 2
    with pytest.raises(polyloom.PolyloomError, match="there is no largest element"):
        jitted(np.arange(4.0), 0)


def test_variances_of_too_few_and_products_that_do_not_fit() -> None:
    def spread(x):  # type: ignore[no-untyped-def]
        return x.var(ddof=3), x.std(axis=0, ddof=3)

    def product(x, y):  # type: ignore[no-untyped-def]
        return x @ y

    x = np.arange(4.0).reshape(2, 2) ** 2
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = spread(x)
    for have, want in zip(polyloom.jit(spread)(x), wanted, strict=True):
        np.testing.assert_allclose(have, want)
    with pytest.raises(polyloom.PolyloomError, match="python-index"):
        polyloom.jit(product)(x, np.ones(3))


def signed(x: Any, negative: Any, both: bool = False) -> Any:
    if negative and not both:
        y = -x
    elif both:
        return np.stack
    else:
        y = x * 2
    return y.sum() if negative else y + negative


@pytest.mark.parametrize("negative", [True, False, np.True_])
def test_truth_values_are_constants_of_what_is_compiled(negative: Any) -> None:
    x = np.arange(3.0)
    compiled = polyloom.jit(signed)
    for given in (negative, not negative, negative):
        np.testing.assert_array_equal(compiled(x, given), signed(x, given))
    assert compiled.run(x, negative, check=True).passed
    with pytest.raises(polyloom.Unsupported):
        compiled(x, False, True)


def test_a_truth_value_that_is_given_stays_as_it_is() -> None:
    def turned(x: Any, flag: Any) -> Any:
        flag = not flag
        return x[0] if flag else x[1]

    with pytest.raises(polyloom.Unsupported, match="`flag` is True or False, and keeps that"):
        polyloom.jit(turned)(np.arange(2.0), True)


def test_a_step_that_is_a_variable_is_refused_with_ways_out() -> None:
    def sieve(x: Any, n: Any) -> None:
        for i in range(2, n):
            for j in range(2 * i, n, i):
                x[j] = 0

    def tested(x: Any, n: Any) -> None:
        for i in range(2, n):
            for j in range(n):
                if j >= 2 * i and j % i == 0:
                    x[j] = 0

    with pytest.raises(polyloom.Unsupported, match="the step `i` of this loop is no number") as refused:
        polyloom.jit(sieve)(np.ones(9), 9)
    assert "go over all" in str(refused.value)
    x, y = np.ones(30), np.ones(30)
    polyloom.jit(tested)(x, 30)
    sieve(y, 30)
    np.testing.assert_array_equal(x, y)


def test_what_is_unpacked_has_as_many_elements_as_there_are_names() -> None:
    def products(s: Any, o: Any) -> None:
        for i in range(s.shape[0]):
            x, y = s[i]
            o[i] = x * y

    compiled, o = polyloom.jit(products), np.zeros(3)
    compiled(np.full((3, 2), 3.0), o)
    np.testing.assert_array_equal(o, 9.0)
    with pytest.raises(polyloom.PolyloomError, match="more or fewer elements than names"):
        compiled(np.zeros((3, 3)), o)


FACTOR = 2.5


def halved(v):  # type: ignore[no-untyped-def]
    return v / 2 if v > FACTOR else np.float32(3) * v


def shifted(x, index: np.ndarray, n=4, flag=False):  # type: ignore[no-untyped-def,type-arg]
    """Write what was read."""
    y = np.zeros(len(x))
    for i in range(len(x) - 1):
        y[i] = x[index[i]] * FACTOR + halved(x[i + 1]) + n
        if flag:
            y[i] = np.sqrt(y[i])
    return y


@pytest.fixture(scope="module")
def saved_function(tmp_path_factory: pytest.TempPathFactory) -> Path:
    function, folder = polyloom.jit(shifted), tmp_path_factory.mktemp("saved")
    with pytest.raises(polyloom.PolyloomError, match="save-sizes"):
        function.save(folder / "shifted.loom")
    function(np.arange(6.0), INDEX)
    function(np.arange(6, dtype=np.float32), INDEX, 3, True)
    function.save(folder / "shifted.loom")
    function.save(folder / "bare.loom", source=False)
    return folder


INDEX = np.array([1, 2, -1, 0, 4, 3])


@pytest.mark.slow
@pytest.mark.ci
def test_a_saved_function_runs_without_a_compiler(saved_function: Path) -> None:
    program = """
import numpy, polyloom, sys
from polyloom.mdh.native import build
build._run = None
index = numpy.array([1, 2, -1, 0, 4, 3])
for name in ("shifted", "bare"):
    f = polyloom.load(f"{sys.argv[1]}/{name}.loom")
    print(f(numpy.arange(6.0), index), f(numpy.arange(6, dtype=numpy.float32), index, 3, flag=True))
    assert "python" not in vars(f) and f.__doc__ == "Write what was read."
"""
    command = [sys.executable, "-c", program, str(saved_function)]
    environment = {"PATH": "", "XDG_CACHE_HOME": str(saved_function), "HOME": str(saved_function)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    wanted = shifted(np.arange(6.0), INDEX), shifted(np.arange(6, dtype=np.float32), INDEX, 3, True)
    line = " ".join(map(str, wanted))
    assert done.stdout.splitlines() == [line, line], done.stderr


def test_a_saved_function_is_read_for_other_sizes(saved_function: Path, tmp_path: Path) -> None:
    f: Any = polyloom.load(saved_function / "shifted.loom")
    shorter = np.arange(5.0), np.array([-1, 0, 1, 2, 3])
    np.testing.assert_array_equal(f(*shorter), shifted(*shorter))
    assert f.run(np.arange(6.0), INDEX, check=True).passed and f.run(*shorter, check=True).passed
    assert "i reduction(max)" in str(f.explain(*shorter))
    assert "<td>float64[:]</td><td>int64[:]</td>" in f._repr_html_()
    times, kernels = f.times(*shorter, runs=2), f.run(*shorter).kernels()
    assert {name for name, *_ in times.kernels} == {kernel["name"] for kernel in kernels} and times.total > 0
    f.save(tmp_path / "again.loom")
    again: Any = polyloom.load(tmp_path / "again.loom")
    np.testing.assert_array_equal(again(*shorter), shifted(*shorter))
    assert "_text" not in vars(again)
    for function in (f, again):
        with pytest.raises(polyloom.PolyloomError, match="python-index") as fault:
            function(np.arange(6.0), INDEX + 5)
        assert "x[index[i]] * FACTOR" in str(fault.value)
        with pytest.raises(polyloom.PolyloomError, match="argument-count"):
            function(np.arange(6.0))


def test_a_saved_function_without_its_text_says_so(saved_function: Path, tmp_path: Path) -> None:
    f: Any = polyloom.load(saved_function / "bare.loom")
    with pytest.raises(polyloom.PolyloomError, match="saved-source"):
        f(np.arange(5.0), INDEX[:5])
    with pytest.raises(polyloom.PolyloomError, match="saved-source"):
        f.run(np.arange(6.0), INDEX, check=True)


@pytest.mark.parametrize("name", ["gemm", "named_arguments"])
def test_a_saved_function_is_checked_as_it_was(name: str, tmp_path: Path) -> None:
    function, arguments = FUNCTIONS[name]
    given = arguments(np.random.default_rng(1))
    jitted = polyloom.jit(function)
    jitted(*copied(given))
    jitted.save(tmp_path / "f.loom")
    assert polyloom.load(tmp_path / "f.loom").run(*given, check=True).passed
