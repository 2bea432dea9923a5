"""What becomes of a random layer: refused by name, or right, bit for bit."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from corpus import Arrays, mistakes, together
from layers import Layer

from polyloom.diagnostics import PolyloomError, Source
from polyloom.ir import random_inputs
from polyloom.pipeline import analyse_layer
from polyloom.wafer.analysis import LayerAnalysis
from polyloom.wafer.machine.model import load_machine
from polyloom.wafer.mapping.mapping import Mapping
from polyloom.wafer.mapping.reader import read_mapping
from polyloom.wafer.program.wafer_program import compile_program
from polyloom.wafer.simd.decision import SimdMode, SimdOptions
from polyloom.wafer.simulation.run import simulate_program

MODES = tuple(SimdMode)
REFUSED = ("map-adapter", "map-delivery", "wafer-colors", "wafer-queues")


def outcome(
    layer: Layer,
    modes: Sequence[SimdMode],
    look: Callable[[LayerAnalysis, str], None] = lambda analysis, where: None,
) -> str:
    """Compile and run a layer in some modes: ``right``, or the code of the diagnostic that refuses it.

    ``look``: what else is asserted of its analysis; its second argument says which layer it is.
    """
    mapping = read_mapping(Source("random.map", layer.map_text), layer.program)
    runs = _runs(layer, mapping)
    for mode in modes:
        try:
            analysis = analyse_layer(layer.program, mapping, SimdOptions(mode))
            program = compile_program(analysis, load_machine("cs2"))
        except PolyloomError as refused:
            return refused.diagnostics[0].code
        where = f"mode {mode.value}, {layer}"
        look(analysis, where)
        found = simulate_program(program, together(mapping, runs), invocations=layer.invocations)
        wrong = mistakes(program, mapping, runs, found.outputs)
        assert not wrong, f"{wrong} in {where}"
        assert 0 < found.limit.cycles <= found.cycles, f"{found.limit} > {found.cycles} in {where}"
    return "right"


def _runs(layer: Layer, mapping: Mapping) -> list[Arrays]:
    """Return the inputs of each invocation; residents are the same in all of them."""
    seeds = (layer.seed + 1000 * n for n in range(layer.invocations))
    runs = [random_inputs(layer.program, seed, layer.density) for seed in seeds]
    return [{k: v if k in mapping.inputs else runs[0][k] for k, v in run.items()} for run in runs]
