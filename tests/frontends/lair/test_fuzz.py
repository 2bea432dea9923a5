"""Whatever the text: a tree and a program, or a ``PolyloomError``. A failure prints the seed."""

from __future__ import annotations

import random
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyloom.diagnostics import PolyloomError, Source, render
from polyloom.frontends.lair import lower, print_module
from polyloom.frontends.lair.syntax.parse import parse
from polyloom.ir import verify
from random_tests import tried
from samples import LATER

TESTS = Path(__file__).parents[2]
LISTINGS = [
    p.read_text()
    for p in sorted(
        [*(TESTS / "frontends/lair/good").glob("*.lair"), *(TESTS / "frontends/lair/bad").glob("*.lair")]
    )
]
TOKENS = [
    "lair",
    "graph",
    "all",
    "in",
    "ff",
    "T",
    "M",
    "N",
    "x",
    "y",
    "W",
    "i",
    "j",
    "float16",
    "float32",
    "int16",
    "int32",
    "half",
    "max",
    "min",
    "exp",
    "select",
    "pow\n(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "<",
    ">",
    ",",
    ":",
    "->",
    "=",
    "+=",
    "-=",
    "*=",
    "max=",
    "min=",
    "==",
    "<=",
    "!=",
    "+",
    "-",
    "*",
    "/",
    "%",
    "?",
    ";",
    "#",
    "//",
    "/*",
    "*/",
    "0",
    "1",
    "2",
    "16",
    "0.1",
    "1e9",
    "1e99999\n2147483648",
    "99999999999999999999",
    "é",
    "@",
    "\x00",
    "\x0c",
    "\u2028",
    "\ufeff",
    "\n",
]


def survives(text: str) -> None:
    """Parse, lower and render; only a ``PolyloomError`` may come out. What lowers obeys the IR's rules."""
    try:
        module = parse(Source("fuzz.lair", text))
        assert parse(Source("printed", print_module(module))) == module
        verify(lower(module, None, {"M": "3", "N": "2"} if "(M, N)" in text else {}))
    except PolyloomError as fault:
        assert fault.diagnostics
        assert all(render(d) for d in fault.diagnostics)


@tried(300)
@given(st.integers(0, 2**32))
def test_token_soup(seed: int) -> None:
    chooser = random.Random(seed)
    survives(" ".join(chooser.choices(TOKENS, k=chooser.randint(0, 60))))


@tried(300)
@given(st.integers(0, 2**32))
def test_mutated_listings(seed: int) -> None:
    chooser = random.Random(seed)
    text = chooser.choice(LISTINGS)
    for _ in range(chooser.randint(1, 4)):
        text = mutated(text, chooser)
    survives(text)


def mutated(text: str, chooser: random.Random) -> str:
    """Drop, repeat, replace or insert a few characters or a token."""
    start = chooser.randrange(len(text) + 1)
    end = min(len(text), start + chooser.randint(0, 5))
    between = chooser.choice(
        ["", chooser.choice(TOKENS), text[start:end] * 2, chooser.choice("()[]{}<>,:=+*/i ")]
    )
    return text[:start] + between + text[end:]


@tried(100)
@given(st.text())
def test_any_text(text: str) -> None:
    survives(text)
    survives(f"lair f(): float16 x[2] -> float16 y[2] {{ all (i) in (2) y[i] = {text} }}")


HEAD = "lair f(): float16 x[2] -> float16 y[2] { all (i) in (2) y[i] = "


@pytest.mark.parametrize(
    "expression",
    [
        "(" * 20000 + "x[i]" + ")" * 20000,
        "-" * 20000 + "x[i]",
        pytest.param("x[i]" + " + x[i]" * 20000, marks=LATER),
        "exp(" * 5000 + "x[i]" + ")" * 5000,
        pytest.param("x[i] > 0 ? 1 : " * 5000 + "0", marks=LATER),
        "x[" * 5000 + "i" + "]" * 5000,
        "x[i" + " + 0" * 5000 + "]",
        "x[i" + " * 1000000000" * 150 + "]",
        "(" * 20000,
    ],
)
def test_depth(expression: str) -> None:
    survives(HEAD + expression + " }")


@pytest.mark.parametrize("operator", [" + x[i]", " + 0"])
def test_the_deepest_expression_allowed_goes_through_everything(operator: str) -> None:
    from polyloom.frontends.lair import from_program
    from polyloom.ir import error_bound, evaluate, print_program, random_inputs

    program = lower(parse(Source("deep", HEAD + "x[i]" + operator * 150 + " }")))
    inputs = random_inputs(program)
    evaluate(program, inputs)
    error_bound(program, inputs)
    print_program(program)
    with suppress(PolyloomError):
        from_program(program)


@pytest.mark.slow
@pytest.mark.ci
def test_graphs_that_double_do_not_explode() -> None:
    text = "lair n(): float16 x -> float16 y { y = x }\n"
    names = ["n", *(f"g{k}" for k in range(1, 31))]
    for inner, outer in pairwise(names):
        text += f"graph {outer}: float16 x -> float16 y {{ a = {inner}(x) y = {inner}(a) }}\n"
    with pytest.raises(PolyloomError) as caught:
        lower(parse(Source("doubling", text)))
    assert {d.code for d in caught.value.diagnostics} == {"lair-too-large"}


def test_a_long_chain_of_graphs() -> None:
    text = "lair g0(): float16 x -> float16 y { y = x }\n"
    text += "".join(f"graph g{k + 1}: float16 x -> float16 y {{ y = g{k}(x) }}\n" for k in range(500))
    with pytest.raises(PolyloomError) as caught:
        lower(parse(Source("chain", text)))
    assert {d.code for d in caught.value.diagnostics} == {"lair-too-deep"}
