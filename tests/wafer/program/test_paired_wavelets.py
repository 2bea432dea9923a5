"""Two elements in a wavelet: where that is done, what the host sends then, and that it is not slower."""

from __future__ import annotations

import numpy as np
import pytest
from corpus import inputs_of, mistakes, together

from polyloom.diagnostics import Source
from polyloom.frontends.lair.lower import lower
from polyloom.frontends.lair.syntax.parse import parse
from polyloom.pipeline import analyse_layer
from polyloom.wafer.host.transfers import paired, unpaired
from polyloom.wafer.machine.model import load_machine
from polyloom.wafer.machine.options import ALL_EXTENSIONS, Extension
from polyloom.wafer.mapping.reader import read_mapping
from polyloom.wafer.program.wafer_program import WaferProgram, compile_program
from polyloom.wafer.simd.decision import SimdOptions
from polyloom.wafer.simulation.run import simulate_program

SUMS = """lair rows(M, N): T x[M][N] -> T y[M]
{ all (i, j) in (M, N) y[i] += x[i][j] }"""
STORED = """size: {{ PE[4, 2] }}
compute_map: {{ rows[i, j] -> PE[j//{n}, i//{m}] }}
iport_map: {{ x[i, j] -> [PE[j//{n}, -1] -> index[i, j mod {n}]] }}
oport_map: {{ y[i] -> [PE[4, i//{m}] -> index[i mod {m}]] }}
"""


def sums(m: int, n: int, *more: str, element: str = "float16", without: tuple[Extension, ...] = ()):  # type: ignore[no-untyped-def]
    """Sums of rows, m rows and n columns on each of 4 x 2 PEs; the columns above see the rows of both."""
    text = SUMS.replace("T ", f"{element} ")
    program = lower(parse(Source("rows.lair", text)), None, {"M": str(2 * m), "N": str(4 * n)})
    mapping = read_mapping(Source("rows.map", STORED.format(m=m, n=n) + "\n".join(more)), program)
    options = SimdOptions(extensions=ALL_EXTENSIONS - set(without))
    compiled = compile_program(analyse_layer(program, mapping, options), load_machine("cs2"))
    runs = inputs_of(program, mapping, 1.0, invocations=1)
    found = simulate_program(compiled, together(mapping, runs))
    assert mistakes(compiled, mapping, runs, found.outputs) == []
    return compiled, found


def blocks(program: WaferProgram) -> dict[str, int | None]:
    return {group.tensor: group.block for group in (*program.inputs, *program.outputs)}


@pytest.mark.slow
@pytest.mark.ci
def test_even_numbers_of_elements_travel_in_pairs() -> None:
    pairs, found = sums(4, 6, "trigger: rows = none\n")
    assert blocks(pairs) == {"x": 2, "y": 2}
    _, single = sums(4, 6, "trigger: rows = none\n", without=(Extension.PAIRED_WAVELETS,))
    assert found.wavelets < 0.6 * single.wavelets and found.cycles < single.cycles


@pytest.mark.slow
@pytest.mark.ci
def test_an_odd_number_has_pairs_where_all_take_the_same() -> None:
    """Sums of 3 rows pass each PE in one instruction; of x, a PE keeps 3 rows of 6 and drops as many."""
    pairs, _ = sums(3, 6, "trigger: rows = none\n")
    assert blocks(pairs) == {"x": 2, "y": 3}
    odd, _ = sums(3, 5, "trigger: rows = none\n")
    assert blocks(odd)["y"] == 3


@pytest.mark.parametrize("element", ["float32", "int32"])
def test_elements_of_32_bits_have_wavelets_of_their_own(element: str) -> None:
    program, _ = sums(4, 6, "trigger: rows = none\n", element=element)
    assert set(blocks(program).values()) == {None}


@pytest.mark.slow
@pytest.mark.ci
def test_a_stream_that_drives_has_pairs_where_an_instruction_takes_its_rows() -> None:
    driven, _ = sums(4, 6, "trigger: rows = x\n")
    short, _ = sums(4, 2, "trigger: rows = x\n")
    sparse, _ = sums(4, 6, "sparse: x\n")
    assert (blocks(driven)["x"], blocks(short)["x"], blocks(sparse)["x"]) == (2, None, None)


def test_the_switch_and_the_machine_say_no() -> None:
    program, _ = sums(4, 6, without=(Extension.PAIRED_WAVELETS,))
    assert set(blocks(program).values()) == {None}


@pytest.mark.parametrize(("count", "block"), [(8, 2), (7, 7), (15, 5), (2, 2), (9, 3)])
def test_pairs_and_back(count: int, block: int) -> None:
    elements = np.arange(100, 100 + count, dtype=np.uint32)
    wavelets: list[int] = []
    for start in range(0, count, block):  # by hand: a block ends with a wavelet
        part = [*elements[start : start + block].tolist(), 0][: block + block % 2]
        wavelets += [part[k] + (part[k + 1] << 16) for k in range(0, len(part), 2)]
    assert paired(elements, block).tolist() == wavelets
    assert unpaired(np.array(wavelets, np.uint32), count, block).tolist() == elements.tolist()
