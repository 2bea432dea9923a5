"""The figures in the README are those of the golden file, and what it tells the reader to write works."""

from __future__ import annotations

import re
from pathlib import Path

import readme

import polyloom

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text()


def test_cycles_are_those_of_the_golden_file() -> None:
    assert readme.with_cycles(TEXT) == TEXT


def test_the_first_layer_and_the_code_shown_for_it() -> None:
    blocks = re.findall(r"(?:^    .*\n|^\n)+", TEXT, flags=re.MULTILINE)
    plain = ["\n".join(line[4:] for line in block.splitlines()).strip() for block in blocks]
    lair = next(b for b in plain if b.startswith("lair C()"))
    layer_map = next(b for b in plain if b.startswith("size:")).partition(".venv")[0]
    shown = next(b for b in plain if b.startswith("static void handle_x"))
    program = polyloom.read_program(lair)
    mapping = polyloom.read_mapping(layer_map, program)
    assert shown in polyloom.compile_wafer(program, mapping).files["C_0.c"]
    result = polyloom.simulate(program, mapping, check=True)
    assert result.check is not None and result.check.passed
