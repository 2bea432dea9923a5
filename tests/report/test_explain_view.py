"""``explain`` for a person: every stage and every equation of the paper, 100 columns, plain when piped."""

from __future__ import annotations

import io
import re
from itertools import product
from pathlib import Path

import pytest
from rich.console import Console

from polyloom.diagnostics import Source
from polyloom.frontends.lair import lower
from polyloom.frontends.lair.syntax.parse import parse
from polyloom.ir.program import Program
from polyloom.pipeline import analyse_layer
from polyloom.report.wafer.explain_view import View
from polyloom.wafer.machine.options import ALL_EXTENSIONS, Extension, without
from polyloom.wafer.mapping.reader import read_mapping
from polyloom.wafer.simd.decision import SimdMode, SimdOptions
from samples import first_of_each

EXAMPLES = Path(__file__).parents[2] / "examples"
LAYERS = ["conv1d", "conv2d", "conv1x1", "ff44"]


WITHOUT_SIZES_SET_ANEW = without("set-length", "configure-each-call", "outer-sizes")


def shown(
    layer: str, mode: SimdMode, encoding: str = "utf-8", extensions: frozenset[Extension] = ALL_EXTENSIONS
) -> str:
    """What a pipe of 100 columns receives."""
    uneven = {"M": "30", "N": "13"} if layer == "ff44" else {}
    source, layer_map = EXAMPLES / f"{'ff' if uneven else layer}.lair", EXAMPLES / f"{layer}.map"
    program = lower(parse(Source(layer, source.read_text())), None, uneven)
    return printed(program, layer_map.read_text(), SimdOptions(mode, extensions=extensions), encoding)


def printed(program: Program, map_text: str, options: SimdOptions, encoding: str = "utf-8") -> str:
    mapping = read_mapping(Source("layer.map", map_text), program)
    raw = io.BytesIO()
    pipe = io.TextIOWrapper(raw, encoding=encoding)
    out = Console(file=pipe, width=100, highlight=False, emoji=False, markup=False)
    View(analyse_layer(program, mapping, options), out).print()
    pipe.flush()
    return raw.getvalue().decode(encoding)


@pytest.mark.parametrize(
    ("layer", "mode", "encoding"),
    first_of_each(product(LAYERS, SimdMode, ("utf-8", "ascii")), lambda case: case[:2]),
)
def test_lines_fit_100_columns_and_have_no_colour_codes(layer: str, mode: SimdMode, encoding: str) -> None:
    text = shown(layer, mode, encoding)
    assert "\x1b" not in text
    assert max(len(line) for line in text.splitlines()) <= 100


def test_the_equations_of_sections_4_and_5_stand_beside_their_sets() -> None:
    text = shown("conv1d", SimdMode.AUTO) + shown("conv1d", SimdMode.ENUMERATE)
    beside = re.findall(r"\(([\d, ]+)\)$", text, re.MULTILINE)
    numbers = {int(number) for group in beside for number in group.split(",")}
    notation_and_maps = {1, 2, 3, 4, 8, 30, 31}
    assert numbers == set(range(1, 44)) - notation_and_maps


def test_the_paper_s_sets_of_example_5_9_can_be_read() -> None:
    text = shown("conv1d", SimdMode.AUTO)
    for part in (
        "{ [i0] → C[PE_Y, index - i0, i0] }",
        "{ [i0] → y_local[0, 2 + index - i0] }",
        "1 × 14, enlarged to 1 × 18",
        "of 40,960",
        "fmach of [3]",
    ):
        assert part in text, part


def test_a_missed_instruction_says_why() -> None:
    text = " ".join(shown("conv1d", SimdMode.EXACT, extensions=WITHOUT_SIZES_SET_ANEW).split())
    assert "none: loops" in text
    assert "the size depends on the index: { [16 - index] : index ≥ 13;" in text


def test_steps_beyond_the_paper_are_named() -> None:
    """Of the tasks, and of arrays that do not lie where they otherwise would."""
    assert "extension used set-length: " in " ".join(shown("conv1d", SimdMode.EXACT).split())
    text = " ".join(shown("conv2d", SimdMode.AUTO).split())
    assert "extension used reversed-arrays: W_local[1, 3, 3] holds the dimensions [2] backwards" in text
    assert "extension used" not in shown("conv2d", SimdMode.AUTO, extensions=frozenset())


def test_sizes_that_depend_on_the_pe_are_a_function() -> None:
    text = " ".join(shown("ff44", SimdMode.EXACT).split())
    assert "fmach of { [6] : PE_Y = 3; [8] : PE_Y ≤ 2 }" in text


def test_what_has_no_port_lies_in_memory() -> None:
    text = shown("training", SimdMode.AUTO)
    assert re.search(r"^W in +in PE memory from the start", text, re.MULTILINE)
    assert re.search(r"^W1 out +stays in PE memory; the next invocation has it as W", text, re.MULTILINE)


def test_integers_have_all_of_their_digits() -> None:
    text = "lair S(): int32 x[4] -> int32 y { all (i) in (4) y min= x[i] }"
    program = lower(parse(Source("S.lair", text)), None, {})
    shown = printed(program, "size: { PE[1, 1] }\ncompute_map: { S[i] -> PE[0, 0] }", SimdOptions())
    assert "y_local is set to 2147483647" in shown


def test_drivers_that_were_not_taken_are_shown_with_their_instructions() -> None:
    source, layer_map = EXAMPLES / "conv1d_dilated.lair", EXAMPLES / "conv1d_dilated_dense.map"
    program = lower(parse(Source("conv1d_dilated", source.read_text())), None, {})
    text = " ".join(printed(program, layer_map.read_text(), SimdOptions()).split())
    other = text.partition("or, in the map trigger: conv = x")[2].partition("conv, on local memory")[0]
    assert (
        "conv, on one arrival of x from the east: fmach, 3 elements in 7 cycles, 6 of them to begin" in other
    )
