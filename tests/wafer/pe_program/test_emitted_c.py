"""The emitted C, read by a person: two short files as goldens, and the rules of writing it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from layers import random_layer

from polyloom.diagnostics import PolyloomError, Source
from polyloom.frontends.lair import lower
from polyloom.frontends.lair.syntax.parse import parse
from polyloom.pipeline import analyse_layer
from polyloom.polyhedra.loops.generate import Name, Number, Operation, replace_name, sum_of
from polyloom.wafer.machine.model import load_machine
from polyloom.wafer.mapping.reader import read_mapping
from polyloom.wafer.pe_program.print_c import integer_text, without_brackets
from polyloom.wafer.program.wafer_program import compile_program
from polyloom.wafer.simd.decision import SimdOptions

EXAMPLES = Path(__file__).parents[3] / "examples"
GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.mark.parametrize("name", ["conv1d", "conv_transposed"])
def test_the_files_are_the_golden_ones(name: str, golden: Callable[[Path, str], None]) -> None:
    program = lower(parse(_source(f"{name}.lair")), None, {})
    mapping = read_mapping(_source(f"{name}.map"), program)
    files = compile_program(analyse_layer(program, mapping, SimdOptions()), load_machine("cs2")).files
    text = "".join(f"// {file}\n{files[file]}" for file in files if file != "integers.h")
    golden(GOLDEN / f"{name}.c", text)


def _source(name: str) -> Source:
    return Source(name, (EXAMPLES / name).read_text())


CLUMSY = re.compile(
    r"if \(1\)|\(\(-?\w+\)\)|\(-\w+\) [-+]|\+ \(-|\+ -|- -|\[\([^()]*\)\]"
    r"|\b0 [-+*] |[^.] [-+] 0\b|\b1 \* "
)
"""Needless brackets and conditions, two signs in a row, nothing added, times one."""


LATER = (pytest.mark.slow, pytest.mark.ci)


@pytest.mark.parametrize("start", [0, *(pytest.param(start, marks=LATER) for start in (20, 40))])
@pytest.mark.slow
@pytest.mark.ci
def test_no_clumsy_expressions(start: int) -> None:
    for seed in range(start, start + 20):
        for line in _lines(seed):
            assert not CLUMSY.search(line), f"seed {seed}: {line}"


def _lines(seed: int) -> list[str]:
    layer = random_layer(seed)
    try:
        mapping = read_mapping(Source("random.map", layer.map_text), layer.program)
        program = compile_program(analyse_layer(layer.program, mapping, SimdOptions()), load_machine("cs2"))
    except PolyloomError:
        return []
    texts = (text for name, text in program.files.items() if name != "integers.h")
    return [line for text in texts for line in text.splitlines()]


X, J, ONE = Name("i"), Name("j"), Number(1)


@pytest.mark.parametrize(
    ("terms", "text"),
    [
        ([(-1, X), (1, Number(7))], "7 - i"),
        ([(-2, X), (1, J), (1, ONE)], "j - 2 * i + 1"),
        ([(1, X), (-1, X)], "0"),
        ([(-1, X), (-1, J)], "-i - j"),
        ([(-3, X), (-1, ONE)], "-3 * i - 1"),
        ([(2, Operation("-", (X, Operation("+", (J, ONE))))), (1, J)], "2 * i - j - 2"),
        ([(1, Operation("/", (Operation("-", (X,)), Number(2)))), (1, ONE)], "-i / 2 + 1"),
        ([(-1, Operation("/", (Operation("-", (X,)), Number(2)))), (1, ONE)], "1 - (-i) / 2"),
    ],
)
def test_sums(terms: list[tuple[int, Operation]], text: str) -> None:
    assert integer_text(sum_of(terms)) == text


def test_replaced_names_leave_no_nested_sums() -> None:
    found = replace_name(Operation("+", (X, Number(2))), "i", Operation("-", (J, Number(3))))
    assert integer_text(found) == "j - 1"


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (Operation("?", (Operation("<", (X, ONE)), X, Operation("?", (J, X, ONE)))), "i < 1 ? i : j ? i : 1"),
        (Operation("or", (Operation("and", (X, J)), X)), "(i && j) || i"),
        (Operation("==", (X, Number(-1))), "i == -1"),
        (Operation("*", (X, Number(-1))), "i * (-1)"),
        (Operation("%", (Operation("+", (X, ONE)), Number(3))), "(i + 1) % 3"),
        (Operation("*", (Number(2), Operation("?", (X, J, ONE)))), "2 * (i ? j : 1)"),
    ],
)
def test_brackets(expression: Operation, text: str) -> None:
    assert integer_text(expression) == text


@pytest.mark.parametrize(
    ("text", "bare"),
    [("(a + b)", "a + b"), ("(half)(a)", "(half)(a)"), ("(a) + (b)", "(a) + (b)"), ("a", "a")],
)
def test_brackets_around_everything(text: str, bare: str) -> None:
    assert without_brackets(text) == bare
