"""What docs/tour.md tells the reader to write works, and gives the code that it shows."""

from __future__ import annotations

import re
from pathlib import Path

import polyloom

TEXT = (Path(__file__).parents[1] / "docs" / "tour.md").read_text()


def test_the_first_layer_and_the_code_shown_for_it() -> None:
    blocks = re.findall(r"(?:^    .*\n|^\n)+", TEXT, flags=re.MULTILINE)
    plain = ["\n".join(line[4:] for line in block.splitlines()).strip() for block in blocks]
    lair = next(b for b in plain if b.startswith("lair C()"))
    layer_map = next(b for b in plain if b.startswith("size:"))
    shown = next(b for b in plain if b.startswith("static void handle_x"))
    program = polyloom.read_program(lair)
    mapping = polyloom.read_mapping(layer_map, program)
    assert shown in polyloom.compile_wafer(program, mapping).files["C_0.c"]
    result = polyloom.simulate(program, mapping, check=True)
    assert result.check is not None and result.check.passed
