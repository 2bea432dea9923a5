"""The counts of cycles with and without SIMD are those of the golden file. `--update-goldens` rewrites it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from corpus import Layer, compiled, inputs_of, layers, together
from wafer_cycles import as_json, measure, read_golden, write_golden

from polyloom.wafer.machine.options import Extension
from polyloom.wafer.placement.cost.model import estimated_cycles
from polyloom.wafer.simd.decision import SimdMode
from polyloom.wafer.simulation.run import simulate_program
from samples import LATER, first_of_each


def measured() -> Iterator[Any]:
    """Every layer; slow tests are graphs of two statements or more, and all but the first of a source."""
    golden = read_golden()
    long = {layer for layer in layers() if len(golden.get(layer.name, {"tasks": ()})["tasks"]) > 1}
    marked = (pytest.param(layer, marks=LATER if layer in long else (), id=layer.name) for layer in layers())
    yield from first_of_each(marked, lambda layer: layer.source)


def gaining() -> Iterator[Any]:
    """Layers with the gains of extensions, short ones first; slow tests where no extension is a new one."""
    seen: set[str] = set()
    golden = read_golden()
    known = [layer for layer in layers() if layer.name in golden]
    for layer in sorted(known, key=lambda layer: len(golden[layer.name]["tasks"])):
        extensions = set(golden[layer.name]["without"])
        if extensions:
            yield pytest.param(layer, marks=LATER if extensions <= seen else [], id=layer.name)
        seen |= extensions


@pytest.mark.parametrize("layer", list(measured()))
def test_the_cycles_are_those_of_the_golden_file(layer: Layer, request: pytest.FixtureRequest) -> None:
    update = request.config.getoption("--update-goldens")
    found = as_json(measure(layer, "cs2", gains=update))
    if update:
        write_golden({**read_golden(), layer.name: found})
    assert {**found, "without": {}} == {**read_golden()[layer.name], "without": {}}
    estimated = estimated_cycles(compiled(layer, SimdMode.AUTO, "cs2"))
    assert 0.65 < estimated / found["full"]["auto"] < 1.4


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("layer", list(gaining()))
def test_the_gains_of_extensions_are_those_of_the_golden_file(layer: Layer) -> None:
    assert as_json(measure(layer, "cs2"))["without"] == read_golden()[layer.name]["without"]


def test_the_golden_file_has_no_other_layers() -> None:
    assert list(read_golden()) == [layer.name for layer in layers()]


@pytest.mark.parametrize("layer", layers(), ids=lambda layer: layer.name)
def test_simd_of_one_size_is_faster_than_loops(layer: Layer) -> None:
    """Several sizes have a price: the size is chosen for each element, and the addresses are piecewise."""
    row = read_golden()[layer.name]
    one_size = any(task.startswith(("hull", "exact")) for task in row["tasks"])
    for cycles in filter(None, (row["full"], row["half"])):
        assert cycles["limit"] <= cycles["auto"]
        assert cycles["auto"] < cycles["off"] or not one_size


@pytest.mark.parametrize("layer", layers(), ids=lambda layer: layer.name)
def test_simd_is_never_slower_than_loops(layer: Layer) -> None:
    """One invocation alone does not use what was set up to copy the state for the next one: two do.

    Code is chosen for dense inputs; with half of them zero a very small layer may take a little longer.
    """
    row = read_golden()[layer.name]
    full, half = row["full"], row["half"]
    if half:
        assert half["auto"] <= 1.05 * half["off"] or layer.mapping(layer.program()).state
    if full["auto"] > full["off"]:
        assert layer.mapping(layer.program()).state
        assert invoked_twice(layer, SimdMode.AUTO) < invoked_twice(layer, SimdMode.OFF)


def invoked_twice(layer: Layer, mode: SimdMode) -> int:
    """The cycles of two invocations with dense data."""
    program = layer.compile(mode)
    tensors, mapping = program.analysis.program, program.analysis.mapping
    runs = inputs_of(tensors, mapping, 1.0, invocations=2)
    return simulate_program(program, together(mapping, runs), invocations=2).cycles


@pytest.mark.parametrize("layer", layers(), ids=lambda layer: layer.name)
def test_several_instructions_are_not_taken_where_that_is_slower(layer: Layer) -> None:
    """What is set up before instructions decides in layers as small as these; 2 % are not seen by that."""
    row = read_golden()[layer.name]
    auto = row["full"]["auto"]
    assert auto <= 1.02 * row["without"].get(Extension.SEVERAL_INSTRUCTIONS.value, auto)
