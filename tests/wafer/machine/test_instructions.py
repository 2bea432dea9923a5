"""The instruction table and what is made from it."""

from __future__ import annotations

from pathlib import Path

from polyloom.wafer.machine.instructions import instructions, table_markdown, table_text


def test_documentation_is_the_table() -> None:
    page = Path(__file__).parents[3] / "docs" / "instructions.md"
    assert page.read_text() == table_markdown()


def test_every_instruction_has_a_macro_with_its_number_of_sources() -> None:
    lines = table_text().splitlines()
    assert len(lines) == len(instructions())
    for line, entry in zip(lines, instructions(), strict=True):
        assert line.startswith(f"SIMD_INSTRUCTION{len(entry.sources)}({entry.name}, ")


def test_names_are_unique() -> None:
    names = [entry.name for entry in instructions()]
    assert len(set(names)) == len(names)
