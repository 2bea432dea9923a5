"""What drives statements, where the map leaves it open, is chosen by cost; the simulator counts cycles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from corpus import Layer, inputs_of, layers, mistakes, together
from wafer_cycles import read_golden

from polyloom.diagnostics import Source, Unsupported, error
from polyloom.frontends.lair.lower import lower
from polyloom.frontends.lair.syntax.parse import parse
from polyloom.ir.program import Program
from polyloom.pipeline import analyse_layer
from polyloom.wafer.analysis import LayerAnalysis
from polyloom.wafer.dataflow.tasks import TaskKind, possible_drivers
from polyloom.wafer.drivers import choose_drivers
from polyloom.wafer.machine.model import load_machine
from polyloom.wafer.mapping.mapping import Mapping
from polyloom.wafer.mapping.reader import read_mapping
from polyloom.wafer.program.wafer_program import compile_program
from polyloom.wafer.simd.decision import SimdMode, SimdOptions
from polyloom.wafer.simulation.run import simulate_program

CS2 = load_machine("cs2")
FORCED = (SimdMode.HULL, SimdMode.EXACT, SimdMode.ENUMERATE)
OFF_BY = 1.03
"""How far the cycles may be above those of a forced mode: one layer's are 199, those of enumeration 194."""

PRODUCT = """
lair product(N): float16 a[N], float16 b[N], float16 c[N][N] -> float16 y[N], float16 z[N]
{
  all (i) in (N) y[i] = a[i] * b[i]
  all (i, j) in (N, N) z[i] += a[j] * c[i][j]
}
"""
PLACED = """
size: { PE[1, 1] }
compute_map: { product_y[i] -> PE[0, 0]; product_z[i, j] -> PE[0, 0] }
iport_map: { a[i] -> [PE[0, -1] -> index[i]]; b[i] -> [PE[-1, 0] -> index[i]] }
"""


def program_of(text: str, **sizes: int) -> Program:
    return lower(parse(Source("layer.lair", text)), None, {k: str(v) for k, v in sizes.items()})


def mapping_of(program: Program, text: str) -> Mapping:
    return read_mapping(Source("layer.map", text), program)


def chosen(text: str, prices: dict[Any, float]) -> tuple[Mapping, list[Any]]:
    """Return what is chosen for the product under a map, at made-up prices by the drivers of y and z."""
    program = program_of(PRODUCT, N=8)

    def price(mapping: Mapping) -> float:
        drivers = tuple(mapping.trigger.get(f"product_{name}", "default") for name in "yz")
        if drivers not in prices:
            raise Unsupported(error("wafer-memory", "too large"))
        return prices[drivers]

    found, compared = choose_drivers(program, mapping_of(program, text), lambda mapping: mapping, price)
    assert [other is None for _, other in compared] == [e.cycles is None for e, _ in compared]
    return found, [(dict(e.drivers), e.cycles) for e, _ in compared]


def test_the_cheapest_drivers_are_taken_and_all_that_were_compared_are_kept() -> None:
    prices = {("default", "default"): 100.0, (None, None): 90.0, (None, "a"): 50.0, ("a", None): 95.0}
    found, compared = chosen(PLACED, prices)
    assert found.trigger == {"product_y": None, "product_z": "a"}
    assert compared[0] == ({"product_y": None, "product_z": "a"}, 50.0)
    assert ({"product_y": "b", "product_z": "a"}, 100.0) in compared
    assert any(cycles is None for _, cycles in compared)


def test_the_default_stays_where_little_is_gained_and_where_the_others_are_refused() -> None:
    default = ("default", "default")
    for prices in ({default: 100.0, (None, None): 98.0}, {default: 100.0}):
        assert chosen(PLACED, prices)[0].trigger == {}


def test_another_is_taken_where_the_default_is_refused() -> None:
    assert chosen(PLACED, {(None, None): 90.0})[0].trigger == {"product_y": None, "product_z": None}


def test_a_trigger_of_the_map_is_obeyed() -> None:
    text = PLACED + "trigger: product_y = b, product_z = a\n"
    found, compared = chosen(text, {("b", "a"): 100.0})
    assert (found.trigger, compared) == ({"product_y": "b", "product_z": "a"}, [])


def test_a_sparse_stream_that_is_the_last_one_drives() -> None:
    _, compared = chosen(PLACED + "sparse: b\n", {("default", "default"): 100.0, ("default", None): 1.0})
    assert [drivers for drivers, _ in compared] == [{"product_z": None}, {"product_z": "a"}]


@cache
def found_for(layer: Layer, mode: SimdMode, *, waits: bool = False) -> LayerAnalysis:
    """``waits``: nothing drives what a dense stream may; a sparse stream that is the last one still does."""
    program = layer.program()
    mapping = layer.mapping(program)
    if waits:
        open_ended = [s.name for s in program.statements if len(possible_drivers(program, mapping, s)) > 1]
        mapping = replace(mapping, trigger={**mapping.trigger, **dict.fromkeys(open_ended)})
    return analyse_layer(program, mapping, SimdOptions(mode, machine=CS2))


def cycles_of(analysis: LayerAnalysis) -> int:
    """The simulated cycles of an invocation with dense data, whose results are right."""
    compiled = compile_program(analysis, CS2)
    tensors, mapping = analysis.program, analysis.mapping
    runs = inputs_of(tensors, mapping, 1.0, invocations=1)
    result = simulate_program(compiled, together(mapping, runs))
    assert not mistakes(compiled, mapping, runs, result.outputs)
    return result.cycles


def cases() -> Iterator[Any]:
    """Layers; most are slow tests, a third of those for CI too."""
    for number, layer in enumerate(layers()):
        quick = layer.name.startswith(("maxpool_overlapping", "rowsum"))
        marks = [] if quick else [pytest.mark.slow, *([pytest.mark.ci] if number % 3 == 0 else [])]
        yield pytest.param(layer, marks=marks, id=layer.name)


@pytest.mark.parametrize("layer", list(cases()))
def test_auto_is_not_slower_than_waiting_for_all_streams(layer: Layer) -> None:
    mapping = layer.mapping(layer.program())
    if all(name in mapping.sparse for name in mapping.inputs):
        pytest.skip("no stream is dense")
    chosen_cycles = read_golden()[layer.name]["full"]["auto"]
    assert chosen_cycles <= cycles_of(found_for(layer, SimdMode.AUTO, waits=True))


def test_pooling_takes_its_stream_into_memory_and_an_integer_product_does_not() -> None:
    kinds = {}
    for layer in layers():
        if layer.name in ("maxpool", "ff44_dense M=32 N=16 T=int32"):
            kinds[layer.name] = [task.kind for task in found_for(layer, SimdMode.AUTO).graph.compute]
    assert kinds == {"maxpool": [TaskKind.LOCAL], "ff44_dense M=32 N=16 T=int32": [TaskKind.DENSE]}


def forced() -> Iterator[Any]:
    for number, layer in enumerate(layers()):
        marks = [pytest.mark.slow, *([pytest.mark.ci] if number % 6 == 0 else [])]
        for mode in FORCED:
            yield pytest.param(layer, mode, marks=marks, id=f"{layer.name}-{mode.value}")


@pytest.mark.parametrize(("layer", "mode"), list(forced()))
def test_auto_is_not_slower_than_the_forced_modes(layer: Layer, mode: SimdMode) -> None:
    """Loops, the other mode, are in the golden file: ``test_simd_is_never_slower_than_loops``."""
    auto = read_golden()[layer.name]["full"]["auto"]
    assert auto <= OFF_BY * cycles_of(found_for(layer, mode))
