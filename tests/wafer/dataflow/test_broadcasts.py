"""What one PE of a line has for others of it is copied by routers: right, whoever takes it, and at once."""

from __future__ import annotations

from dataclasses import replace

import pytest

import polyloom
from polyloom.pipeline import analyse_layer
from polyloom.wafer.dataflow.transfers import Move
from polyloom.wafer.machine.model import load_machine
from polyloom.wafer.simd.decision import SimdOptions

LAYER = """
lair first(): float16 x[12][16] -> float16 s[12][16] { all (i, k) in (12, 16) s[i][k] = x[i][k] + 1 }
lair second(): float16 s[12][16], float16 W[12][12][16] -> float16 y[12]
{ all (j, i, k) in (12, 12, 16) y[j] += s[i][k] * W[j][i][k] }
graph g: float16 x[12][16], float16 W[12][12][16] -> float16 y[12] { s = first()(x) y = second()(s, W) }
"""

NORM = """
lair norm(): float32 x[4][24] -> float32 y[4][24]
{
  all (b, i) in (4, 24) m[b] max= x[b][i]
  all (b, i) in (4, 24) z[b] += x[b][i] - m[b]
  all (b, i) in (4, 24) y[b][i] = x[b][i] * z[b]
}
"""


def simulated(layer: str, text: str) -> polyloom.SimulationResult:
    """Simulate a layer, and check it."""
    program = polyloom.read_program(layer)
    result = polyloom.simulate(program, polyloom.read_mapping(text, program), check=True)
    assert result.check is not None and result.check.passed
    return result


def moves(result: polyloom.SimulationResult) -> list[Move]:
    """Return the moves of a layer."""
    return [move for each in result.program.analysis.graph.results for move in each.moves]


@pytest.mark.parametrize(
    ("owner", "reader", "links"),
    [
        ("PE[0, 0]", "PE[j, 0]", ["along_rows"]),
        ("PE[5, 0]", "PE[j, 0]", ["along_rows"]),
        ("PE[11, 0]", "PE[2*(j//4), 0]", ["along_rows"]),
        ("PE[4, 0]", "PE[3*(j//4), 0]", ["along_rows"]),
        ("PE[0, 3]", "PE[0, j]", ["along_columns"]),
        ("PE[3, 2]", "PE[j//3, j mod 3]", ["along_rows", "along_columns"]),
        ("PE[i, 0]", "PE[j, 0]", [""]),
        ("PE[1, 0]", "PE[j//6, 0]", [""]),
    ],
    ids=["one end", "between", "gaps", "gaps both ways", "column", "both", "from all", "to neighbours"],
)
def test_who_takes_what_one_pe_has(owner: str, reader: str, links: list[str]) -> None:
    """PEs before, behind and between; where several have it, or it goes no further, PEs hand it on."""
    text = f"""size: {{ PE[12, 12] }}
compute_map: {{ first[i, k] -> {owner}; second[j, i, k] -> {reader} }}
"""
    assert [move.link for move in moves(simulated(LAYER, text))] == links


def of_norm(pes: int) -> polyloom.SimulationResult:
    """A maximum and a sum over each row, which all PEs of the row need, on so many columns."""
    columns = f"PE[i//{24 // pes}, b//2]"
    placed = "; ".join(f"norm_{name}[b, i] -> {columns}" for name in "mzy")
    return simulated(NORM, f"size: {{ PE[{pes}, 2] }}\ncompute_map: {{ {placed} }}\n")


def test_what_goes_between_the_same_pes_shares_a_link() -> None:
    """One queue and one color for both: the PEs take them in one order."""
    result = of_norm(8)
    assert [(move.tensor, move.link) for move in moves(result)] == [("m", "along_rows"), ("z", "along_rows")]
    assert [carried for _, carried in result.program.routing.colors if "m, z" in carried] == [
        "m, z along rows"
    ]


def test_the_far_end_waits_for_hops_only() -> None:
    """Six cycles a PE for each reduction, one for what comes back; PEs that hand on take 50 or so."""
    assert of_norm(24).cycles - of_norm(8).cycles < 16 * 2 * (6 + 1 + 1)


TWO = """
lair first(): float16 x[6] -> float16 s[6] { all (i) in (6) s[i] = x[i] + 1 }
lair second(): float16 x[6] -> float16 r[6] { all (i) in (6) r[i] = x[i] + 2 }
lair third(): float16 s[6], float16 r[6] -> float16 y[12][6] { all (j, i) in (12, 6) y[j][i] = s[i] * r[i] }
graph g: float16 x[6] -> float16 y[12][6] { s = first()(x) r = second()(x) y = third()(s, r) }
"""


@pytest.mark.parametrize(
    ("other", "queues", "links"),
    [
        (5, 6, ["along_rows", "along_rows_2"]),
        (5, 1, ["", ""]),
        (0, 1, ["along_rows", "along_rows"]),
        (0, 0, ["along_rows", "along_rows"]),
    ],
    ids=["two links", "no room", "one", "less than without"],
)
def test_as_many_links_as_there_is_room_for(other: int, queues: int, links: list[str]) -> None:
    """PEs hand on where two might be too many; one takes less than the queues to and from neighbours."""
    program = polyloom.read_program(TWO)
    placed = f"first[i] -> PE[0, 0]; second[i] -> PE[{other}, 0]; third[j, i] -> PE[j, 0]"
    mapping = polyloom.read_mapping(f"size: {{ PE[12, 1] }}\ncompute_map: {{ {placed} }}\n", program)
    machine = load_machine("cs2")
    few = replace(machine, output_queues=machine.output_queues[:queues])
    graph = analyse_layer(program, mapping, SimdOptions(machine=few)).graph
    assert [move.link for result in graph.results for move in result.moves] == links
    assert simulated(TWO, f"size: {{ PE[12, 1] }}\ncompute_map: {{ {placed} }}\n").cycles > 0
