"""Loops around instructions, several instructions for a statement, layouts: simulated with and without."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from test_zoo_shapes import case

from polyloom.diagnostics import Source
from polyloom.frontends.lair import lower
from polyloom.frontends.lair.syntax.parse import parse
from polyloom.ir import evaluate, random_inputs
from polyloom.ir.program import Program
from polyloom.pipeline import analyse_layer
from polyloom.wafer.analysis import LayerAnalysis
from polyloom.wafer.machine.model import load_machine
from polyloom.wafer.machine.options import ALL_EXTENSIONS, Extension
from polyloom.wafer.mapping.mapping import Mapping
from polyloom.wafer.mapping.reader import read_mapping
from polyloom.wafer.program.wafer_program import compile_program
from polyloom.wafer.simd.decision import SimdOptions, Strategy
from polyloom.wafer.simulation.run import simulate_program

ONE = "size: { PE[1, 1] }\ncompute_map: { S[%s] -> PE[0, 0] }"
GRID = "size: { PE[2, 2] }\ncompute_map: { S[%s] -> PE[%s] }"


@dataclass(frozen=True)
class Layer:
    """A statement, its map, and the instructions and extensions that are expected of it."""

    text: str
    map_text: str
    instructions: tuple[str, ...]
    extensions: frozenset[Extension]
    without: frozenset[Extension]


def layer(
    declared: str,
    body: str,
    map_text: str,
    instructions: str,
    *extensions: Extension,
    elements: str = "float16",
    without: tuple[Extension, ...] = (),
) -> Layer:
    text = f"lair S(): {declared}\n{{ {body} }}".replace("T ", f"{elements} ")
    return Layer(text, map_text, tuple(instructions.split()), frozenset(extensions), frozenset(without))


LOOPS, FIXED = Extension.OUTER_LOOPS, Extension.FIXED_SCALARS
SEVERAL, COALESCING = Extension.SEVERAL_INSTRUCTIONS, Extension.COALESCING

LAYERS = {
    "a matrix product with large rows: loops around a multiply-add": layer(
        "T x[4][6], T W[6][80] -> T y[4][80]",
        "all (b, i, j) in (4, 80, 6) y[b][i] += x[b][j] * W[j][i]",
        ONE % "b, i, j",
        "fmach",
        LOOPS,
        FIXED,
        without=(SEVERAL,),
    ),
    "float32 factors are scalars, too": layer(
        "T x[4][6], T W[6][80] -> T y[4][80]",
        "all (b, i, j) in (4, 80, 6) y[b][i] += x[b][j] * W[j][i]",
        GRID % ("b, i, j", "j // 3, b // 2"),
        "fmacs",
        LOOPS,
        FIXED,
        elements="float32",
        without=(SEVERAL,),
    ),
    "layer norm": layer(
        "T c[3][8], T va[3], T g[8], T bt[8] -> T y[3][8]",
        "all (b, i) in (3, 8) y[b][i] = c[b][i] * rsqrt(va[b] + 0.5) * g[i] + bt[i]",
        ONE % "b, i",
        "fmulh fmulh faddh",
        LOOPS,
        FIXED,
        SEVERAL,
    ),
    "Adam's second moment": layer(
        "T q[8][8], T dW[8][8] -> T q1[8][8]",
        "all (i, j) in (8, 8) q1[i][j] = 0.999 * q[i][j] + 0.001 * dW[i][j] * dW[i][j]",
        GRID % ("i, j", "j // 4, i // 4"),
        "fmulh fmulh fmach",
        SEVERAL,
    ),
    "a minimum is a negated maximum": layer(
        "T x[4][16] -> T y[16]",
        "all (c, i) in (4, 16) y[i] min= x[c][i]",
        ONE % "c, i",
        "fnegh fnegh fmaxh fnegh",
        LOOPS,
        SEVERAL,
    ),
    "dividing by a power of two is a product, by another number a loop": layer(
        "T x[3][8], T m[8] -> T y[8]",
        "all (b, i) in (3, 8) y[i] += (x[b][i] - m[i]) * (x[b][i] - m[i]) / 15",
        ONE % "b, i",
        "fsubh fmulh faddh",
        SEVERAL,
        without=(Extension.VECTOR_FUNCTIONS,),
    ),
    "the gradient of a rectified product": layer(
        "T x[64], T d[64], T e[64] -> T y[64]",
        "all (i) in (64) y[i] = max(x[i], 0) * d[i] * e[i] + abs(x[i]) * d[i] - e[i]",
        ONE % "i",
        "fmaxh fmulh fmulh fabsh fmulh faddh fsubh",
        SEVERAL,
    ),
    "a triangle, as far as it is read": layer(
        "T x[12], T d[6] -> T y[7]",
        "all (i, j) in (7, 6) y[i] += x[i + j] * d[j] * x[i + j]",
        ONE % "i, j",
        "fmulh fmulh faddh",
        LOOPS,
        SEVERAL,
    ),
}
"""Maps without ports: everything is resident, so only the computation costs cycles."""


def placed(text: str, map_text: str) -> tuple[Program, Mapping]:
    program = lower(parse(Source("S.lair", text)), None, {})
    return program, read_mapping(Source("S.map", map_text), program)


@cache
def analysed(name: str, *without: Extension) -> LayerAnalysis:
    program, mapping = placed(LAYERS[name].text, LAYERS[name].map_text)
    left_out = LAYERS[name].without | set(without)
    return analyse_layer(program, mapping, SimdOptions(extensions=ALL_EXTENSIONS - left_out))


def cycles_if_right(analysis: LayerAnalysis) -> int:
    """Simulate; the outputs must be those of the evaluator, bit for bit."""
    inputs = random_inputs(analysis.program, seed=3)
    simulation = simulate_program(compile_program(analysis, load_machine("cs2")), inputs)
    expected = evaluate(analysis.program, inputs)
    for output in analysis.program.outputs:
        np.testing.assert_array_equal(simulation.outputs[output], expected[output])
    return simulation.cycles


@pytest.mark.parametrize("name", LAYERS)
def test_instructions_and_extensions(name: str) -> None:
    (analysis,) = analysed(name).simd
    assert analysis.instructions == LAYERS[name].instructions
    assert {effect.extension for effect in analysis.effects} >= LAYERS[name].extensions


@pytest.mark.parametrize("name", LAYERS)
def test_right_and_faster_than_without(name: str) -> None:
    plain = cycles_if_right(analysed(name, *LAYERS[name].extensions))
    assert cycles_if_right(analysed(name)) < plain


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("extension", [LOOPS, FIXED, SEVERAL])
def test_right_without_each_extension(name: str, extension: Extension) -> None:
    analysis = analysed(name, extension)
    assert all(effect.extension is not extension for a in analysis.simd for effect in a.effects)
    cycles_if_right(analysis)


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("T x[40], T g[40], T b[40] -> T y[40]", "y[i] = x[i] * g[i] + b[i] * x[i]"),
        ("T x[40], T g[40], T b[40] -> T y[40]", "y[i] = (x[i] - g[i]) * (x[i] - g[i]) * b[i]"),
    ],
)
def test_real_data_gives_the_evaluators_bits_on_one_pe(text: str, places: str) -> None:
    """Each operation rounds by itself, in the evaluator's order."""
    declared = text.replace("T ", "float16 ")
    program, mapping = placed(f"lair S(): {declared}\n{{ all (i) in (40) {places} }}", ONE % "i")
    analysis = analyse_layer(program, mapping, SimdOptions())
    generator = np.random.default_rng(7)
    inputs = {name: generator.standard_normal(40).astype(np.float16) for name in program.inputs}
    simulation = simulate_program(compile_program(analysis, load_machine("cs2")), inputs)
    assert len(analysis.simd[0].steps) > 1
    np.testing.assert_array_equal(simulation.outputs["y"], evaluate(program, inputs)["y"])


def test_temporaries_are_in_the_memory_of_the_role() -> None:
    analysis = analysed("layer norm")
    (role,) = compile_program(analysis, load_machine("cs2")).roles
    (field,) = [f for f in role.memory if f.name.startswith("temporary")]
    assert field.bytes == 8 * 2


def test_a_temporary_that_does_not_fit_is_cut_by_loops() -> None:
    text = "lair S(): float16 x[64][64], float16 g[64][64] -> float16 y[64][64]\n"
    text += "{ all (i, j) in (64, 64) y[i][j] = x[i][j] * g[i][j] + x[i][j] }"
    program, mapping = placed(text, ONE % "i, j")
    small = 3 * 2 * 64 * 64 + 1024
    machine = load_machine("cs2")
    tight = type(machine)(**{**vars(machine), "sram_bytes": small + machine.reserved_bytes})
    (analysis,) = analyse_layer(program, mapping, SimdOptions(machine=tight)).simd
    assert analysis.nested is not None and analysis.instructions == ("fmulh", "faddh")


@pytest.mark.slow
@pytest.mark.ci
def test_nine_dimensions_of_a_convolution() -> None:
    """Five dimensions for one arrival (zoo c3g): joined, or a loop around four."""
    found = case("c3g")
    for without in ((), (COALESCING,), (LOOPS,)):
        options = SimdOptions(extensions=ALL_EXTENSIONS - set(without))
        analysis = analyse_layer(found.program, found.mapping, options)
        assert analysis.simd[0].instructions == (("fmach",) if LOOPS not in without else ())
        cycles_if_right(analysis)
    joined = layer(
        "T x[2][2], T W[2][2][2][2][3] -> T y[2][2][2][3]",
        "all (a, b, c, d, e) in (2, 2, 2, 2, 3) y[b][c][d][e] += x[a][b] * W[a][b][c][d][e]",
        ONE % "a, b, c, d, e",
        "",
    )
    program, mapping = placed(joined.text, joined.map_text)
    (analysis_,) = analyse_layer(program, mapping, SimdOptions()).simd
    assert analysis_.strategy is not Strategy.NONE


def test_a_long_expression_is_covered_in_time() -> None:
    """Each node is looked at once: thirty terms, inside of one another, took 2**30 steps."""
    terms = " + ".join(f"select(x[i] < {k}, exp(x[i]), 0)" for k in range(30))
    text = f"lair S(): float16 x[8] -> float16 y[8] {{ all (i) in (8) y[i] = {terms} }}"
    program, mapping = placed(text, "size: { PE[1, 1] }\ncompute_map: { S[i] -> PE[0, 0] }")
    analysis = analyse_layer(program, mapping, SimdOptions())
    assert len(analysis.simd) == 1


@pytest.mark.parametrize(("rows", "instructions"), [(80, ("fmach",)), (12, ("fmulh", "faddh"))])
def test_a_product_of_long_columns_is_one_multiply_add_in_a_loop(
    rows: int, instructions: tuple[str, ...]
) -> None:
    """An iteration of a loop that is unrolled in part costs an address and a scalar at most."""
    text = f"""lair mm(): float16 A[24][{rows}], float16 B0[24][10] -> float16 C[10][{rows}]
{{ all (j, i, k) in (10, {rows}, 24) C[j][i] += A[k][i] * B0[k][j] }}"""
    program, mapping = placed(text, "size: { PE[1, 1] }\ncompute_map: { mm[j, i, k] -> PE[0, 0] }\n")
    found = analyse_layer(program, mapping, SimdOptions())
    assert found.simd[0].innermost.instructions == instructions
    assert cycles_if_right(found) > 0
