"""The switches of our extensions of SIMD detection: their names, effect, and place in `explain`."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from corpus import EXAMPLES

from polyloom import explain, read_mapping, read_program, simulate
from polyloom.cli.command import polyloom
from polyloom.diagnostics import PolyloomError
from polyloom.wafer.machine.options import Extension

DOCUMENT = Path(__file__).parents[3] / "docs" / "simd.md"


def test_every_extension_stands_in_the_documentation() -> None:
    text = DOCUMENT.read_text()
    assert [e.value for e in Extension if f"`{e.value}`" not in text] == []


def test_what_took_part_is_in_the_document_and_no_missed_optimisation() -> None:
    program = read_program(EXAMPLES / "relu.lair", defines={"N": 16})
    mapping = read_mapping(EXAMPLES / "relu.map", program)
    found = explain(program, mapping)
    assert found.json()["tasks"][0]["simd"]["extensions"] == ["whole-stream"]
    assert [r["code"] for r in found.json()["remarks"]] == ["simd-whole-stream"]
    assert found.remarks == ()
    plain = explain(program, mapping, simd_without=["whole-stream"])
    assert plain.json()["tasks"][0]["simd"]["extensions"] == []
    slower = simulate(program, mapping, simd_without=["whole-stream"], check=True)
    faster = simulate(program, mapping, check=True)
    assert slower.check and slower.check.passed and faster.check and faster.check.passed
    assert faster.json()["cycles"] < slower.json()["cycles"]


def test_an_unknown_name_is_refused() -> None:
    program = read_program(EXAMPLES / "relu.lair", defines={"N": 16})
    mapping = read_mapping(EXAMPLES / "relu.map", program)
    with pytest.raises(PolyloomError) as caught:
        explain(program, mapping, simd_without=["nonsense"])
    assert caught.value.diagnostics[0].code == "simd-extension"
    assert "whole-stream" in caught.value.diagnostics[0].helps[0]


@pytest.mark.parametrize("verb", ["explain", "compile", "simulate"])
def test_every_verb_has_the_switch(verb: str) -> None:
    assert "--simd-without NAME" in CliRunner().invoke(polyloom, [verb, "--help"]).output
    listed = CliRunner().invoke(polyloom, [verb, "--simd-without", "help"])
    assert listed.exit_code == 0 and all(f" {e.value} " in listed.output for e in Extension)
