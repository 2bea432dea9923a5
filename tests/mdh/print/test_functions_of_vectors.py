"""Functions of vectors of C against NumPy's: conversions between all types, products, roots."""

from __future__ import annotations

import ctypes
import platform
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from polyloom.c_compilers import c_compiler, c_compilers
from polyloom.ir.expressions import (
    Binary,
    BinaryOp,
    Compare,
    CompareOp,
    Constant,
    Convert,
    Expression,
    Read,
    Select,
    Unary,
    UnaryOp,
)
from polyloom.ir.scalar_functions.function import BinaryFunction
from polyloom.ir.types import ElementType
from polyloom.mdh.device.pocl import processor_flags
from polyloom.mdh.print.dialect import C, Dialect
from polyloom.mdh.print.helpers import definitions
from polyloom.mdh.print.values import Leaves, expression_c
from samples import one_in

INTEGERS = [e for e in ElementType if e.name.startswith(("INT", "UINT"))]
FLOATS = [ElementType.FLOAT32, ElementType.FLOAT64]
SHORTS = [ElementType.INT16, ElementType.INT8, ElementType.UINT8]
COMPARED = dict(
    zip(
        ["<", "<=", ">", ">=", "==", "!="],
        (np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal),
        strict=True,
    )
)
WIDTHS = [4, 8, 16]
COUNT = 4096
FLAGS = [("-O0",), ("-O0", "-mavx2"), ("-O1", *(f"-mavx512{x}" for x in ("f", "bw", "vl", "dq")))]
"""They are run where the processor has it all, else only compiled; gcc 12 fails at -O0 with the last."""


@pytest.mark.slow
@pytest.mark.ci
def test_every_type_becomes_every_other(tmp_path: Path) -> None:
    kinds = (*INTEGERS, *FLOATS)
    pairs = [(a, b, w) for a in INTEGERS for b in kinds if a is not b for w in WIDTHS]
    pairs += [(a, b, 32) for a in INTEGERS for b in INTEGERS if a.size == 1 and b.size == 2]

    def converted(language: Dialect, case: tuple[ElementType, ElementType, int]) -> str:
        return language.converted("v", *case)

    for run, (source, element, width) in _built(pairs, converted, tmp_path):
        values = _values(source)
        with np.errstate(all="ignore"):
            expected = values.astype(element.dtype)
        np.testing.assert_array_equal(run(values), expected, f"{source.value} {element.value} {width}")


@pytest.mark.parametrize(("family", "elements"), [("abs", INTEGERS), ("fabs", FLOATS)])
def test_absolute_values(family: str, elements: list[ElementType], tmp_path: Path) -> None:
    signed = [e for e in elements if not e.name.startswith("UINT")]

    def absolute(language: Dialect, case: tuple[ElementType, ElementType, int]) -> str:
        return f"{language.helper(family, *case[1:])}(v)"

    cases = [(e, e, w) for e in signed for w in (*WIDTHS, 32, 64) if w * e.size <= 64]
    for run, (element, _, _) in _built(cases, absolute, tmp_path):
        values = _values(element)
        with np.errstate(all="ignore"):
            expected = np.abs(values)
        bits = f"u{element.size}"
        np.testing.assert_array_equal(run(values).view(bits), expected.view(bits), element.value)


@pytest.mark.parametrize("kind", FLOATS, ids=str)
def test_square_roots(kind: ElementType, tmp_path: Path) -> None:
    def root(language: Dialect, case: tuple[ElementType, ElementType, int]) -> str:
        return f"{language.function('sqrt', *case[1:])}(v)"

    for run, (element, _, width) in _built([(kind, kind, w) for w in (2, *WIDTHS)], root, tmp_path):
        values = _values(element)
        with np.errstate(all="ignore"):
            expected = np.sqrt(values)
        np.testing.assert_array_equal(run(values), expected, str(width))
        assert np.signbit(run(values)[2]), "the root of minus zero"


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="instructions of x86")
def test_square_roots_are_no_calls(tmp_path: Path) -> None:
    """They are instructions in a drop-in too, whose users do not say that nobody reads ``errno``."""
    compiler = c_compiler("gcc")
    if compiler is None:
        pytest.skip("there is no gcc")
    language, case = C.noting(), (ElementType.FLOAT32, ElementType.FLOAT32, 8)
    text = _function("f", case, f"{language.function('sqrt', case[1], 8)}(v)", language)
    types, _ = definitions(language.noted, C)
    headers = [f"#include <{name}>" for name in ("stdint.h", "string.h", "math.h")]
    (tmp_path / "f.c").write_text("\n".join([*headers, types, text]))
    subprocess.run([*compiler.command, "-O2", "-mavx2", "-S", "f.c"], cwd=tmp_path, check=True)
    found = (tmp_path / "f.s").read_text()
    assert "sqrtps" in found and "call" not in found


@pytest.mark.parametrize("family", ["max", "min"])
def test_the_larger_and_the_smaller(family: str, tmp_path: Path) -> None:
    """Each vector is compared with itself, its elements in the other order."""

    def extreme(language: Dialect, case: tuple[ElementType, ElementType, int]) -> str:
        places = ", ".join(map(str, reversed(range(case[2]))))
        return f"{language.helper(family, *case[1:])}(v, __builtin_shufflevector(v, v, {places}))"

    cases = [(e, e, w) for e in INTEGERS for w in (*WIDTHS, 32, 64) if w * e.size <= 64]
    for run, (element, _, width) in _built(cases, extreme, tmp_path):
        values = _values(element)
        turned = values.reshape(-1, width)[:, ::-1].ravel()
        expected = np.maximum(values, turned) if family == "max" else np.minimum(values, turned)
        np.testing.assert_array_equal(run(values), expected, f"{element.value} {width}")


def test_halves(tmp_path: Path) -> None:
    """The second half in front of the first."""

    def swapped(language: Dialect, case: tuple[ElementType, ElementType, int]) -> str:
        _, element, width = case
        low, high = (language.helper(family, element, width // 2) for family in ("low", "high"))
        return f"__builtin_shufflevector({high}(v), {low}(v), {', '.join(map(str, range(width)))})"

    cases = [(e, e, w) for e in (*INTEGERS, *FLOATS) for w in WIDTHS if w * e.size <= 64]
    for run, (element, _, width) in _built(cases, swapped, tmp_path):
        values = _values(element)
        expected = np.roll(values.reshape(-1, width), width // 2, axis=1).ravel()
        np.testing.assert_array_equal(run(values), expected, f"{element.value} {width}")


@pytest.mark.parametrize(("family", "function"), [("fmax", np.fmax), ("fmin", np.fmin)])
def test_the_one_that_is_a_number(family: str, function: np.ufunc, tmp_path: Path) -> None:
    """NaN meets numbers on both sides, and NaN."""

    def extreme(language: Dialect, case: tuple[ElementType, ElementType, int]) -> str:
        places = ", ".join(map(str, reversed(range(case[2]))))
        return f"{language.helper(family, *case[1:])}(v, __builtin_shufflevector(v, v, {places}))"

    cases = [(e, e, w) for e in FLOATS for w in WIDTHS if w * e.size <= 64]
    for run, (element, _, width) in _built(cases, extreme, tmp_path):
        values = _values(element)
        values[7 :: width + 3] = np.nan
        values[1000:1100] = np.nan
        turned = values.reshape(-1, width)[:, ::-1].ravel()
        assert np.any(np.isnan(values) & np.isnan(turned)) and np.any(np.isnan(values) != np.isnan(turned))
        np.testing.assert_array_equal(run(values), function(values, turned), f"{element.value} {width}")


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("kind", one_in(9, [e for e in (*INTEGERS, *FLOATS) if e.size > 1], name=str))
def test_comparisons_choose_smaller_integers(kind: ElementType, tmp_path: Path) -> None:
    """Of the longest vectors masks are small at once. Each vector is compared with itself, turned."""
    width = 64 // kind.size
    pair = Read(0, kind), Read(1, kind)
    smaller = [e for e in INTEGERS if e.size < kind.size and "U" not in e.name]
    both = Binary(
        BinaryOp.AND, Compare(CompareOp.LE, *pair), Unary(UnaryOp.NOT, Compare(CompareOp.EQ, *pair))
    )
    conditions: list[Expression] = [*(Compare(op, *pair) for op in CompareOp), both]
    for k, (condition, sign) in enumerate(zip(conditions, [*COMPARED, "<"], strict=True)):
        folder = tmp_path / str(k)
        folder.mkdir()

        def chosen(language: Dialect, case: Case, condition: Expression = condition) -> str:
            places = ", ".join(map(str, reversed(range(width))))
            leaves = Leaves(["v", f"__builtin_shufflevector(v, v, {places})"])
            choice = Select(condition, Constant(7, case[1]), Constant(-3, case[1]))
            text = expression_c(choice, leaves, width, language)
            assert "mask_" in text and "convertvector" not in text
            return text

        for run, (_, element, _) in _built([(kind, e, width) for e in smaller], chosen, folder):
            values = _values(kind)
            turned = values.reshape(-1, width)[:, ::-1].ravel()
            expected = np.where(COMPARED[sign](values, turned), 7, -3).astype(element.dtype)
            np.testing.assert_array_equal(run(values), expected, sign)


@pytest.mark.parametrize("kinds", [(i, j) for i in SHORTS for j in SHORTS], ids=str)
def test_products_of_shorts(kinds: tuple[ElementType, ElementType], tmp_path: Path) -> None:
    """Each of the upper half of a number by one of the lower half, as types of 16 bits or of eight."""
    wide = ElementType.INT32
    halves = Binary(BinaryOp.SHIFT_RIGHT, Read(0, wide), Constant(16, wide)), Read(0, wide)
    factors = [Convert(wide, Convert(kind, half)) for kind, half in zip(kinds, halves, strict=True)]

    def product(language: Dialect, case: tuple[ElementType, ElementType, int]) -> str:
        text = expression_c(Binary(BinaryOp.MULTIPLY, *factors), Leaves(["v"]), case[2], language)
        assert "mul_shorts" in text
        return text

    for run, (_, _, width) in _built([(wide, wide, w) for w in (4, 8, 16)], product, tmp_path):
        values = _values(wide)
        first, second = (
            part.astype(kind.dtype) for part, kind in zip((values >> 16, values), kinds, strict=True)
        )
        np.testing.assert_array_equal(run(values), first.astype(np.int32) * second, str(width))


@pytest.mark.parametrize("kind", [ElementType.UINT16, ElementType.INT32], ids=str)
def test_products_of_what_shorts_do_not_hold(kind: ElementType) -> None:
    factor = Convert(ElementType.INT32, Read(0, kind))
    language = C.noting()
    text = expression_c(Binary(BinaryOp.MULTIPLY, factor, factor), Leaves(["v"]), 8, language)
    assert "mul_shorts" not in text


@pytest.mark.parametrize("through_int", [False, True])
@pytest.mark.parametrize("kind", [ElementType.UINT8, ElementType.INT16], ids=str)
def test_a_float_between_limits_becomes_an_integer_by_way_of_32_bits(
    kind: ElementType, through_int: bool, tmp_path: Path
) -> None:
    """What is no number is 0, as by way of 64."""
    value, low, high = Read(0, ElementType.FLOAT32), int(kind.lowest), int(kind.highest)
    inside: Expression = Convert(kind, Convert(ElementType.INT32, value) if through_int else value)
    for op, limit in ((CompareOp.GT, high), (CompareOp.LT, low)):
        over = Compare(op, value, Constant(float(limit), ElementType.FLOAT32))
        inside = Select(over, Constant(limit, kind), inside)

    def limited(language: Dialect, case: tuple[ElementType, ElementType, int]) -> str:
        text = expression_c(inside, Leaves(["v"]), case[2], language)
        assert "int64" not in text
        return text

    for run, (element, _, width) in _built(
        [(ElementType.FLOAT32, kind, w) for w in (4, 16)], limited, tmp_path
    ):
        values = _values(element)
        near = np.isfinite(values) & (np.abs(values) < 1e30)
        values[near] = np.fmod(values[near], 2.0 * high)
        whole = np.trunc(np.clip(np.nan_to_num(values, nan=0.0), low, high))
        np.testing.assert_array_equal(run(values), whole.astype(kind.dtype), str(width))


@pytest.mark.parametrize("kind", [e for e in INTEGERS if e.size >= 4], ids=str)
@pytest.mark.parametrize(("op", "sign"), [(BinaryOp.SHIFT_LEFT, "<<"), (BinaryOp.SHIFT_RIGHT, ">>")])
def test_shifts_that_leave_a_bit(kind: ElementType, op: BinaryFunction, sign: str, tmp_path: Path) -> None:
    """No helper is called, and each element is shifted by its own count."""
    count = Binary(BinaryOp.BIT_AND, Read(1, kind), Constant(8 * kind.size - 1, kind))
    shift = Binary(op, Read(0, kind), count)

    def shifted(language: Dialect, case: tuple[ElementType, ElementType, int]) -> str:
        places = ", ".join(map(str, reversed(range(case[2]))))
        other = f"__builtin_shufflevector(v, v, {places})"
        text = expression_c(shift, Leaves(["v", other]), case[2], language)
        assert "safe" not in text and sign in text
        return text

    for run, (element, _, width) in _built([(kind, kind, w) for w in (4, 8)], shifted, tmp_path):
        values = _values(element)
        counts = values.reshape(-1, width)[:, ::-1].ravel() & element.dtype.type(8 * kind.size - 1)
        shifts = np.left_shift if sign == "<<" else np.right_shift
        np.testing.assert_array_equal(run(values), shifts(values, counts), f"{element.value} {width}")


Case = tuple[ElementType, ElementType, int]
Run = Callable[[npt.NDArray[Any]], npt.NDArray[Any]]


def _built(cases: list[Case], value: Callable[[Dialect, Case], str], folder: Path) -> list[tuple[Run, Case]]:
    """Return a function on arrays for each case, and each compiler with each choice of flags."""
    language = C.noting()
    text = [_function(f"f{k}", case, value(language, case), language) for k, case in enumerate(cases)]
    types, _ = definitions(language.noted, C)
    source = folder / "f.c"
    source.write_text(
        "\n".join(["#include <stdint.h>", "#include <string.h>", "#include <math.h>", types, *text])
    )
    found = list[tuple[Run, Case]]()
    compiler = next(c_compilers())
    for flags in FLAGS:
        library = folder / f"f{'_'.join(flags)}.so"
        command = [
            *compiler.command,
            "-w",
            *flags,
            "-shared",
            "-fPIC",
            "-o",
            str(library),
            str(source),
            "-lm",
        ]
        subprocess.run(command, check=True, timeout=120)
        if not {flag.removeprefix("-m") for flag in flags[1:]} <= processor_flags():
            continue
        loaded = ctypes.CDLL(str(library))
        found += [(_run(loaded[f"f{k}"], case[1]), case) for k, case in enumerate(cases)]
    return found


def _function(name: str, case: Case, value: str, language: Dialect) -> str:
    source, element, width = case
    a, b = language.type(source, width), language.type(element, width)
    return (
        f"void {name}(const {language.type(source)} *a, {language.type(element)} *r)\n{{\n"
        f"    for (int k = 0; k < {COUNT}; k += {width}) {{\n        {a} v;\n"
        f"        memcpy(&v, a + k, sizeof v);\n        const {b} w = {value};\n"
        "        memcpy(r + k, &w, sizeof w);\n    }\n}\n"
    )


def _run(function: Any, element: ElementType) -> Run:
    def run(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        result = np.empty(COUNT, element.dtype)
        function(ctypes.c_void_p(values.ctypes.data), ctypes.c_void_p(result.ctypes.data))
        return result

    return run


def _values(element: ElementType) -> npt.NDArray[Any]:
    """Return random bits of a type, its ends and what lies about zero among them."""
    drawn = np.random.default_rng(1).integers(0, 256, COUNT * element.size, np.uint8).view(element.dtype)
    ends: list[Any] = [0, 1]
    if np.issubdtype(element.dtype, np.integer):
        ends += [np.iinfo(element.dtype).min, np.iinfo(element.dtype).max]
    else:
        ends += [-0.0, np.inf, -np.inf]
    drawn[: len(ends)] = ends
    return drawn
