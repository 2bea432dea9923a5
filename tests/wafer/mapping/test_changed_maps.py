"""Maps of the examples with numbers, names and entries changed: refused before anything runs, or right.

A failure prints the seed and the map. ``changed(seed)`` makes it again.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from random import Random

import pytest
from corpus import EXAMPLES, Layer, inputs_of, layers, mistakes, together

from polyloom.diagnostics import PolyloomError, Source
from polyloom.ir import Program
from polyloom.pipeline import analyse_layer
from polyloom.wafer.machine.model import load_machine
from polyloom.wafer.mapping.reader import read_mapping
from polyloom.wafer.program.wafer_program import compile_program
from polyloom.wafer.simd.decision import SimdOptions
from polyloom.wafer.simulation.run import simulate_program
from samples import LATER

SMALL = (
    *("axpy", "bias_streams", "conv1d", "conv1d_training", "dot_grid", "extremes_columns", "fc_batched"),
    *("ff44_two_sides", "ff55_corner", "gemv_bias", "matmul_one_port", "mlp", "outer", "pad", "padded_conv"),
    *(
        "relu_gradient",
        "relu_interleaved",
        "residual",
        "residual_add",
        "softmax_columns",
        "state",
        "training",
    ),
    *("training_one_port", "transpose"),
)


@cache
def small() -> tuple[tuple[Layer, Program], ...]:
    chosen = {layer.map: layer for layer in reversed(layers()) if layer.map in SMALL}
    return tuple((layer, layer.program()) for layer in chosen.values())


def changed(seed: int) -> tuple[Layer, Program, str]:
    """Return a layer and its map with one to three changes."""
    random = Random(f"changed {seed}")
    layer, program = random.choice(small())
    text = (EXAMPLES / f"{layer.map}.map").read_text()
    for _ in range(random.choice([1, 1, 2, 3])):
        text = random.choice([_number, _number, _number, _name, _entry, _line])(random, text)
    return layer, program, text


def _number(random: Random, text: str) -> str:
    """Make a number one more or less, or another small one."""
    found = list(re.finditer(r"(?<![A-Za-z_0-9])\d+", text))
    if not found:
        return text
    match = random.choice(found)
    value = max(0, random.choice([int(match[0]) + 1, int(match[0]) - 1, random.randint(0, 4)]))
    return text[: match.start()] + str(value) + text[match.end() :]


def _name(random: Random, text: str) -> str:
    """Put one iterator in the place of another."""
    found = list(re.finditer(r"\b[ijkbcwhrst]\b", text))
    if not found:
        return text
    match, other = random.choice(found), random.choice(found)
    return text[: match.start()] + other[0] + text[match.end() :]


def _entry(random: Random, text: str) -> str:
    """Leave out one relation of several."""
    parts = text.split(";")
    if len(parts) < 3:
        return text
    del parts[random.randrange(1, len(parts) - 1)]
    return ";".join(parts)


def _line(random: Random, text: str) -> str:
    """Leave out an entry of the map: a resident instead of a stream, a dense one instead of a sparse one."""
    keys = list(re.finditer(r"^(iport_map|oport_map|sparse|state): (.|\n )*\n", text, re.MULTILINE))
    if not keys:
        return text
    match = random.choice(keys)
    return text[: match.start()] + text[match.end() :]


def outcome(seed: int) -> str:
    layer, program, text = changed(seed)
    try:
        mapping = read_mapping(Source("changed.map", text), program)
        compiled = compile_program(analyse_layer(program, mapping, SimdOptions()), load_machine("cs2"))
    except PolyloomError as refused:
        assert all(d.span is not None or d.notes for d in refused.diagnostics), text
        return "refused"
    where = f"seed {seed}: {layer.name}\n{text}"
    runs = inputs_of(program, mapping, 0.5, 2)
    try:
        found = simulate_program(compiled, together(mapping, runs), invocations=2)
    except PolyloomError as fault:
        raise AssertionError(f"{fault} in {where}") from fault
    assert mistakes(compiled, mapping, runs, found.outputs) == [], where
    return "right"


@pytest.mark.parametrize(
    ("start", "count"), [(0, 8), *(pytest.param(start, 20, marks=LATER) for start in (0, 20))]
)
@pytest.mark.slow
@pytest.mark.ci
def test_a_changed_map_is_refused_or_right(start: int, count: int) -> None:
    outcomes = Counter(outcome(seed) for seed in range(start, start + count))
    assert outcomes["refused"] >= count // 8
    assert outcomes["right"] >= count // 8


@pytest.mark.slow
@pytest.mark.parametrize("start", range(1000, 3000, 100))
def test_many_changed_maps_are_refused_or_right(start: int) -> None:
    for seed in range(start, start + 100):
        outcome(seed)
