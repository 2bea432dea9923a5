"""Every listing, example and layer of the zoo: parse, lower, print back, evaluate as nested loops do."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from naive import naive
from polyloom.diagnostics import Source
from polyloom.frontends.lair import from_program, lower, print_module
from polyloom.frontends.lair.syntax.parse import parse
from polyloom.ir import evaluate, verify
from samples import LATER
from strategies import data

TESTS = Path(__file__).parents[2]
ZOO = [(e["name"], e["lair"], {}) for e in json.loads((TESTS / "data" / "zoo.json").read_text())]
EXAMPLES = TESTS.parent / "examples"
FILES = sorted([*EXAMPLES.glob("*.lair"), *(TESTS / "frontends" / "lair" / "good").glob("*.lair")])


def sizes() -> dict[str, dict[str, str]]:
    """Sizes and types of the examples that have parameters, as examples/layers.txt gives them."""
    found: dict[str, dict[str, str]] = {}
    for line in (EXAMPLES / "layers.txt").read_text().splitlines():
        words = line.split()
        if words and words[0] != "#":
            found.setdefault(words[1], dict(word.split("=") for word in words[2:]))
    return found


SIZES = sizes()
CORPUS = [*ZOO, *((p.stem, p.read_text(), SIZES.get(p.stem, {})) for p in FILES)]


def test_the_corpus_is_complete() -> None:
    assert len(ZOO) == 117
    assert {"ff", "conv1d", "conv2d", "conv1x1", "conv8", "fc", "everything"} <= {
        name for name, _, _ in CORPUS
    }


@pytest.mark.parametrize(
    ("name", "text", "defines"),
    [pytest.param(*case, marks=LATER if k % 2 else (), id=case[0]) for k, case in enumerate(CORPUS)],
)
def test_parses_lowers_prints_and_evaluates(name: str, text: str, defines: dict[str, str]) -> None:
    module = parse(Source(name, text))
    assert parse(Source("printed", print_module(module))) == module
    program = lower(module, None, defines)
    verify(program)
    assert lower(parse(Source("shown", from_program(program)))) == program
    inputs = {n: np.abs(a) if a.dtype.kind == "f" else a for n, a in data(program, 0).items()}
    found, expected = evaluate(program, inputs), naive(program, inputs)
    for tensor in expected:
        assert np.array_equal(found[tensor], expected[tensor], equal_nan=True), tensor
