"""Our extensions of SIMD: each on a layer made for it, its shape, its cycles, and its results.

Every layer is simulated with the extension and without it, and compared with the evaluator exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from corpus import EXAMPLES, inputs_of, mistakes, together

from polyloom.diagnostics import Source
from polyloom.frontends.lair.lower import lower
from polyloom.frontends.lair.syntax.parse import parse
from polyloom.pipeline import analyse_layer
from polyloom.wafer.dataflow.local_arrays import LocalArray
from polyloom.wafer.explain.document import explanation
from polyloom.wafer.machine.model import load_machine
from polyloom.wafer.machine.options import ALL_EXTENSIONS, Extension
from polyloom.wafer.mapping.reader import read_mapping
from polyloom.wafer.program.wafer_program import WaferProgram, compile_program
from polyloom.wafer.simd.decision import SimdAnalysis, SimdOptions, Sizing, Strategy
from polyloom.wafer.simulation.run import simulate_program


@dataclass(frozen=True)
class Made:
    """A layer and its map."""

    lair: str
    places: str

    def compile(
        self, extensions: frozenset[Extension] = ALL_EXTENSIONS, machine: str = "cs2"
    ) -> WaferProgram:
        program = lower(parse(Source("made.lair", self.lair)), None, {})
        mapping = read_mapping(Source("made.map", self.places), program)
        options = SimdOptions(extensions=extensions, machine=load_machine(machine))
        return compile_program(analyse_layer(program, mapping, options), options.machine)


def cycles(program: WaferProgram, invocations: int = 2) -> int:
    """Of two invocations at half density, and they are right."""
    tensors, mapping = program.analysis.program, program.analysis.mapping
    runs = inputs_of(tensors, mapping, 0.5, invocations)
    result = simulate_program(program, together(mapping, runs), invocations=invocations)
    assert mistakes(program, mapping, runs, result.outputs) == []
    assert 0 < result.limit.cycles <= result.cycles
    return result.cycles


def only(program: WaferProgram) -> SimdAnalysis:
    (analysis,) = program.analysis.simd
    return analysis


def used(analysis: SimdAnalysis) -> set[Extension]:
    return {effect.extension for effect in analysis.effects}


BAND = Made(
    """lair f(): float16 x[48], float16 W[2][8][40] -> float16 y[2][8][40]
    { all (w, r, s) in (2, 8, 40) y[w][r][s] += x[w + r + s] * W[w][r][s] }""",
    """size: { PE[1, 1] }
    compute_map: { f[w, r, s] -> PE[0, 0] }
    iport_map: { x[k] -> [PE[0, -1] -> index[k]] }
    sparse: x""",
)
"""At one element, (r, s) fill a band 0 <= index - r - s <= 1: 2 x 8 in another basis."""

STRIDED = Made(
    """lair f(): float16 x[21], float16 W[5] -> float16 y[9]
    { all (w, r) in (9, 5) y[w] += x[2*w + r] * W[r] }""",
    """size: { PE[1, 1] }
    compute_map: { f[w, r] -> PE[0, 0] }
    iport_map: { x[k] -> [PE[0, -1] -> index[k]] }
    sparse: x""",
)
"""Stride 2, five taps: three at even elements, two at odd ones, where a third one would read W[5]."""

TRIANGLE = Made(
    """lair f(): float16 x[12], float16 W[12][12] -> float16 y[12]
    { all (k, i) in (12, 12) y[i] += x[k] * W[i][k] }""",
    """size: { PE[2, 1] }
    compute_map: { f[k, i] -> PE[(i + k)//12, 0] }
    iport_map: { x[k] -> [PE[p, -1] -> index[k]] : 0 <= p < 2 }
    sparse: x""",
)
"""PE (0, 0) has 12 - index instances, PE (1, 0) index."""

OUTER = Made(
    """lair f(): float16 x[8][6], float16 W[12][6] -> float16 y[12]
    { all (k, r, i) in (8, 6, 12) y[i] += x[k][r] * W[i][r] }""",
    """size: { PE[2, 1] }
    compute_map: { f[k, r, i] -> PE[(i + k)//10, 0] }
    iport_map: { x[k, r] -> [PE[p, -1] -> index[k, r]] : 0 <= p < 2 }
    sparse: x""",
)
"""The number of instances depends on the outer index alone."""

PADDING = {Extension.ZERO_PADDING, Extension.OUTSIDE_READS}


def test_another_basis_makes_a_box() -> None:
    program = BAND.compile()
    found = only(program)
    assert Extension.UNIMODULAR in used(found) and found.strategy is Strategy.HULL
    assert found.plain is not None and not found.plain.box.dense
    without = BAND.compile(ALL_EXTENSIONS - {Extension.UNIMODULAR})
    assert Extension.UNIMODULAR not in used(only(without))
    assert cycles(program) < cycles(without)


@pytest.mark.slow
@pytest.mark.ci
def test_constant_dimensions_go_away() -> None:
    """Example 5.7: the size [2, 1] becomes [2]."""
    made = Made((EXAMPLES / "conv1x1.lair").read_text(), (EXAMPLES / "conv1x1.map").read_text())
    with_it, without = made.compile(), made.compile(ALL_EXTENSIONS - {Extension.CONSTANT_DIMENSIONS})
    entry, plain = (explanation(p.analysis)["tasks"][0] for p in (with_it, without))
    assert entry["simd"]["sizes"] == [[2]] and plain["simd"]["sizes"] == [[2, 1]]
    assert entry["compression"] == plain["compression"] and entry["size"] == plain["size"]
    assert cycles(with_it) <= cycles(without)


def array(program: WaferProgram, tensor: str) -> LocalArray:
    return program.analysis.arrays[tensor]


def test_extra_instances_read_zeros_around_a_filter() -> None:
    program = STRIDED.compile()
    found = only(program)
    assert Extension.ZERO_PADDING in used(found) and found.strategy is Strategy.HULL
    assert array(program, "W").zero_padding and array(program, "W").extent == (6,)
    without = STRIDED.compile(ALL_EXTENSIONS - PADDING)
    assert not used(only(without)) & PADDING and not array(without, "W").zero_padding
    assert cycles(program) < cycles(without)


def test_what_is_read_beside_a_zero_must_be_there() -> None:
    """``V`` is read outside of its array too, and is not silent: poison times zero would be poison."""
    made = Made(
        """lair f(): float16 x[21], float16 W[5], float16 V[5] -> float16 y[9]
        { all (w, r) in (9, 5) y[w] += x[2*w + r] * (W[r] * (V[r] + float16(1))) }""",
        STRIDED.places,
    )
    assert cycles(made.compile()) > 0


@pytest.mark.parametrize("machine", ["cs1", "cs2"])
def test_a_length_is_set_before_each_call_where_the_machine_can(machine: str) -> None:
    program = TRIANGLE.compile(ALL_EXTENSIONS - PADDING, machine)
    found = only(program)
    can = load_machine(machine).set_length > 0
    wanted = Extension.SET_LENGTH if can else Extension.CONFIGURE_EACH_CALL
    assert wanted in used(found) and found.sizing is Sizing.CALL
    text = "".join(program.files.values())
    assert ("set_length(" in text) == can
    loops = TRIANGLE.compile(frozenset({Extension.FLOOR_OFFSET, wanted}), machine)
    assert cycles(program) <= cycles(loops)


def test_sizes_of_an_outer_index_are_set_at_the_end_of_a_chunk() -> None:
    on = ALL_EXTENSIONS - PADDING
    program = OUTER.compile(on)
    assert only(program).sizing is Sizing.CHUNK and Extension.OUTER_SIZES in used(only(program))
    without = OUTER.compile(on - {Extension.OUTER_SIZES})
    assert only(without).sizing is Sizing.CALL
    assert cycles(program, 1) < cycles(without, 1)
    assert cycles(program, 3) < cycles(without, 3)


CORNER = Made(
    """lair f(): float16 x[3][8] -> float16 y[3][10]
    { all (i, j, l) in (8, 3, 3) y[j][i + l] max= x[j][i] }""",
    """size: { PE[2, 1] }
    compute_map: { f[i, j, l] -> PE[(j + l)//3, 0] }""",
)
"""(j, l) fill a triangle on each PE, and the rest of the square would change elements of the PE."""


def test_a_few_boxes() -> None:
    program = CORNER.compile()
    found = only(program)
    assert Extension.BOXES in used(found) and len(found.parts) == 3
    assert found.strategy is Strategy.EXACT
    without = CORNER.compile(ALL_EXTENSIONS - {Extension.BOXES, Extension.OUTER_LOOPS})
    assert not only(without).parts
    assert cycles(program, 1) < cycles(without, 1)


def test_a_single_instance_is_scalar_code() -> None:
    made = Made(
        """lair f(): float16 x[8], float16 W[8] -> float16 y[8]
        { all (i) in (8) y[i] += x[i] * W[i] }""",
        """size: { PE[1, 1] }
        compute_map: { f[i] -> PE[0, 0] }
        iport_map: { x[k] -> [PE[0, -1] -> index[k]] }
        sparse: x""",
    )
    program = made.compile()
    assert only(program).strategy is Strategy.NONE
    assert cycles(program) <= cycles(made.compile(ALL_EXTENSIONS - {Extension.SINGLE_INSTANCE}))


FAR = Made(
    """lair S(): float16 x0[4], float16 x1[10][8][2] -> float16 y[6][4][2]
    { all (i, j, k) in (4, 2, 4) y[i + 2*j][k][1 - j] += x0[k] * x1[3*i][2*k + 1][1 - j] }""",
    """size: { PE[1, 1] }
    compute_map: { S[i, j, k] -> PE[0, 0] }
    iport_map: { x1[i0, i1, i2] -> [PE[0, 1] -> index[170 - 17i0 - 2i1 + i2]] }
    trigger: S = x1""",
)
"""The offset of the box hull at one arrival moves with the index; extra instances write 500 rows away."""


@pytest.mark.slow
@pytest.mark.ci
def test_a_hull_whose_arrays_do_not_fit_gives_way() -> None:
    program = FAR.compile()
    assert only(program).strategy is not Strategy.HULL
    assert sum(array.bytes for array in program.analysis.arrays.values()) < 1000
    assert cycles(program) > 0
