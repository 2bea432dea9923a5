"""Sums that begin with their first term: where that is done, and that results and cycles are right."""

from __future__ import annotations

import re

from corpus import inputs_of, mistakes, together

from polyloom.diagnostics import Source
from polyloom.frontends.lair.lower import lower
from polyloom.frontends.lair.syntax.parse import parse
from polyloom.pipeline import analyse_layer
from polyloom.wafer.machine.model import load_machine
from polyloom.wafer.machine.options import ALL_EXTENSIONS, Extension
from polyloom.wafer.mapping.reader import read_mapping
from polyloom.wafer.program.wafer_program import compile_program
from polyloom.wafer.simd.decision import SimdOptions
from polyloom.wafer.simulation.run import simulate_program

ROW = "size: {{ PE[{pes}, 1] }}\ncompute_map: {{ {name}[{dims}] -> PE[{column}, 0] }}\n"


def run(text: str, dims: str, *without: Extension, pes: int = 1, column: str = "0") -> tuple[str, int]:
    """The emitted C and the cycles of a layer on a row of PEs, whose results are those of the evaluator."""
    program = lower(parse(Source("a.lair", text)), None, {})
    name = program.statements[0].name
    mapping = read_mapping(Source("a.map", ROW.format(pes=pes, name=name, dims=dims, column=column)), program)
    options = SimdOptions(extensions=ALL_EXTENSIONS - set(without))
    compiled = compile_program(analyse_layer(program, mapping, options), load_machine("cs2"))
    runs = inputs_of(program, mapping, 1.0, invocations=1)
    found = simulate_program(compiled, together(mapping, runs))
    assert mistakes(compiled, mapping, runs, found.outputs) == []
    return "".join(compiled.files.values()), found.cycles


CONVOLUTION = """lair conv(): float16 x[130], float16 W[4][3] -> float16 y[4][128]
{ all (k, w, r) in (4, 128, 3) y[k][w] += x[w + r] * W[k][r] }"""


def test_a_convolution_begins_with_products() -> None:
    text, cycles = run(CONVOLUTION, "k, w, r")
    assert "initialize_y" not in text and len(re.findall(r"invoke_simd\(fmulh", text)) >= 1
    filled, more = run(CONVOLUTION, "k, w, r", Extension.FIRST_TERMS)
    assert "initialize_y" in filled and "fmulh" not in filled and cycles < more


BACK = """lair back(): float16 y[2][12][12], float16 W[2][3][3] -> float16 x[{0}][{0}]
{{ all (k, h, w, r, s) in (2, 12, 12, 3, 3) x[2*h + r][2*w + s] += y[k][h][w] * W[k][r][s] }}"""


def test_what_no_first_terms_alone_write_is_set_before() -> None:
    """Four products write all but the last row and column; those that reach there are added."""
    text, cycles = run(BACK.format(25), "k, h, w, r, s")
    assert "initialize_x" not in text and 2 <= len(re.findall(r"invoke_simd\(fmovh, begin_x", text)) <= 3
    assert text.count("invoke_simd(fmulh") == 4 and text.count("invoke_simd(fmach") == 14
    assert cycles < run(BACK.format(25), "k, h, w, r, s", Extension.FIRST_TERMS)[1]


def test_much_that_nothing_writes_is_set_with_the_rest() -> None:
    text, _ = run(BACK.format(60), "k, h, w, r, s")
    assert "initialize_x" in text and "begin_x" not in text


def test_terms_in_a_loop_that_is_not_unrolled_are_added_as_before() -> None:
    long = CONVOLUTION.replace("130", "167").replace("[3]", "[40]").replace("128, 3)", "128, 40)")
    text, _ = run(long, "k, w, r")
    assert "initialize_y" in text


MIXED = """lair product(): float16 P[12][6], float16 V[6][64] -> float32 O[12][64]
{ all (q, d, t) in (12, 64, 6) O[q][d] += float32(P[q][t]) * float32(V[t][d]) }"""


def test_products_of_halves_that_are_added_up_as_floats_begin_with_a_zero() -> None:
    text, cycles = run(MIXED, "q, d, t")
    assert "initialize_O" not in text and len(re.findall(r"invoke_simd\(fmachs, \w+, 0\.0f, ", text)) >= 1
    filled, more = run(MIXED, "q, d, t", Extension.FIRST_TERMS)
    assert "initialize_O" in filled and cycles + 12 * 64 // 2 <= more


SUMS = """lair total(): float16 x[8][96] -> float16 y[96]
{ all (i, p) in (96, 8) y[i] += x[p][i] }"""


def test_a_sum_of_one_term_is_that_term() -> None:
    """A row of eight: the end of the chain has its term copied into its sum, where it was added to zeros."""
    text, cycles = run(SUMS, "i, p", pes=8, column="p")
    filled, more = run(SUMS, "i, p", Extension.FIRST_TERMS, pes=8, column="p")
    assert "initialize_y" not in text and "initialize_y" in filled
    assert re.findall(r"invoke_simd\((\w+), total_y, ", text) == ["fmovh"]
    assert cycles + 2 * (96 // 4) <= more
