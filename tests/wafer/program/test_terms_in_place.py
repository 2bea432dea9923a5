"""Copies that are only sent: where they are left out, that results are right, and where they must stay."""

from __future__ import annotations

import re

import pytest
from corpus import inputs_of, mistakes, together

from polyloom.diagnostics import Source
from polyloom.frontends.lair.lower import lower
from polyloom.frontends.lair.syntax.parse import parse
from polyloom.pipeline import analyse_layer
from polyloom.wafer.machine.model import load_machine
from polyloom.wafer.machine.options import ALL_EXTENSIONS, Extension
from polyloom.wafer.mapping.reader import read_mapping
from polyloom.wafer.program.wafer_program import WaferProgram, compile_program
from polyloom.wafer.simd.decision import SimdOptions
from polyloom.wafer.simulation.run import simulate_program


def run(layer: str, mapping_text: str, *without: Extension, invocations: int = 2) -> tuple[WaferProgram, int]:
    """The program and the cycles of a layer, whose results are those of the evaluator, bit by bit."""
    program = lower(parse(Source("a.lair", layer)), None, {})
    mapping = read_mapping(Source("a.map", mapping_text), program)
    options = SimdOptions(extensions=ALL_EXTENSIONS - set(without))
    compiled = compile_program(analyse_layer(program, mapping, options), load_machine("cs2"))
    runs = inputs_of(program, mapping, 1.0, invocations=invocations)
    found = simulate_program(compiled, together(mapping, runs), invocations=invocations)
    assert mistakes(compiled, mapping, runs, found.outputs) == []
    return compiled, found.cycles


def moves_into(compiled: WaferProgram, operand: str) -> int:
    """How many of the roles' programs copy to an operand."""
    copy = rf"invoke_simd\((?:fmov[hs]|mov32), {operand}, "
    return sum(len(re.findall(copy, text)) for text in compiled.files.values())


SUMS = """lair total(): {0} x[{1}][96] -> {0} y[96]
{{ all (i, p) in (96, {1}) y[i] += x[p][i] }}"""
ROW = "size: {{ PE[{0}, 1] }}\ncompute_map: {{ total[i, p] -> PE[p, 0] }}\n"


@pytest.mark.parametrize("element", ["float16", "float32"])
@pytest.mark.parametrize("leaves", [False, True])
@pytest.mark.parametrize("pes", [2, 7])
def test_a_chain_takes_a_single_term_from_the_input(element: str, leaves: bool, pes: int) -> None:
    """Only the end of a chain whose results stay has a copy of its own: what comes is added to that."""
    port = f"oport_map: {{ y[i] -> [PE[{pes}, 0] -> index[i]] }}\n" if leaves else ""
    text = ROW.format(pes) + port
    compiled, cycles = run(SUMS.format(element, pes), text)
    assert moves_into(compiled, "total_y") == (0 if leaves else 1)
    other, more = run(SUMS.format(element, pes), text, Extension.FIRST_TERMS)
    assert "initialize_y" in "".join(other.files.values()) and cycles < more


def test_two_terms_are_added_before_they_are_sent() -> None:
    text = "size: { PE[4, 1] }\ncompute_map: { total[i, p] -> PE[p//2, 0] }\n"
    compiled, _ = run(SUMS.format("float16", 8), text)
    assert moves_into(compiled, "total_y") == 0
    assert all("invoke_simd(faddh, total_y, " in text for name, text in compiled.files.items() if "_" in name)


MOVE = """lair move(): float16 x[24] -> float16 y[24], float16 z[24]
{{ all (i) in (24) y[i] = {0}
   all (i) in (24) z[i] = {1} }}"""
PLACED = """size: { PE[1, 1] }
compute_map: { move_y[i] -> PE[0, 0]; move_z[i] -> PE[0, 0] }
oport_map: { y[i] -> [PE[1, 0] -> index[i]]; z[i] -> [PE[0, 1] -> index[i]] }
"""


def test_what_is_moved_to_a_port_is_sent_from_where_it_lies() -> None:
    compiled, cycles = run(MOVE.format("x[i]", "2*x[i]"), PLACED)
    assert moves_into(compiled, "move_y_y") == 0
    assert cycles < run(MOVE.format("x[i]", "2*x[i]"), PLACED, Extension.FIRST_TERMS)[1]


@pytest.mark.parametrize("element", ["float32", "int32"], ids=["an instruction", "a loop"])
def test_a_copy_that_another_statement_reads_stays(element: str) -> None:
    compiled, _ = run(MOVE.format("x[i]", "x[i]*y[i]").replace("float16", element), PLACED)
    assert moves_into(compiled, "move_y_y") == 1


@pytest.mark.parametrize("read", ["x[23 - i]", "x[2*i]"])
def test_a_copy_of_elements_that_lie_apart_stays(read: str) -> None:
    compiled, _ = run(MOVE.format(read, "2*x[i]").replace("x[24]", "x[48]"), PLACED)
    assert moves_into(compiled, "move_y_y") == 1


def test_a_copy_that_is_the_state_stays() -> None:
    """What the next invocation begins with is taken from it, behind the chain."""
    layer = """lair move(): float16 x[24], float16 w[24], float16 s[24] -> float16 y[24], float16 z[24]
{ all (i) in (24) y[i] = w[i]
  all (i) in (24) z[i] = x[i] + s[i] }"""
    text = PLACED + "iport_map: { s[i] -> [PE[-1, 0] -> index[i]] }\n"
    assert moves_into(run(layer, text, invocations=3)[0], "move_y_y") == 0
    assert moves_into(run(layer, text + "state: x = y\n", invocations=3)[0], "move_y_y") == 1


def test_parts_of_a_copy_may_leave_at_two_ports() -> None:
    """What leaves is another nest than what was copied, so that it stays."""
    port = "y[i] -> [PE[1, 0] -> index[i]]"
    halves = "y[i] -> [PE[1, 0] -> index[i]] : i < 8; y[i] -> [PE[0, -1] -> index[i - 8]] : i >= 8"
    compiled, _ = run(MOVE.format("x[i]", "2*x[i]"), PLACED.replace(port, halves))
    assert moves_into(compiled, "move_y_y") == 1
