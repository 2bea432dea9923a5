"""What `explain` says of instructions: their width, what makes them narrower, and why there are none."""

from __future__ import annotations

import pytest
from test_vectorise import placed

from polyloom.pipeline import analyse_layer
from polyloom.wafer.explain.document import explanation
from polyloom.wafer.explain.instruction_costs import InstructionCost, instruction_costs
from polyloom.wafer.machine.options import ALL_EXTENSIONS, Extension
from polyloom.wafer.simd.decision import SimdAnalysis, SimdOptions, missed_remark

LAYOUTS = (Extension.TRANSPOSED_ARRAYS, Extension.PADDED_ROWS)


def analysed(text: str, *without: Extension) -> tuple[SimdAnalysis, tuple[InstructionCost, ...]]:
    """Return the one statement of a layer on one PE without ports, and what its instructions take."""
    names = text.partition("all (")[2].partition(")")[0]
    program, mapping = placed(
        f"lair S(): {text}", f"size: {{ PE[1, 1] }}\ncompute_map: {{ S[{names}] -> PE[0, 0] }}"
    )
    options = SimdOptions(extensions=ALL_EXTENSIONS - set(without))
    analysis = analyse_layer(program, mapping, options)
    return analysis.simd[0], instruction_costs(analysis.simd[0], analysis.arrays, options)


PRODUCT = "float16 x[30][5] -> float16 y[30][5] { all (i, j) in (30, 5) y[i][j] = x[i][j] * x[i][j] }"
COLUMN = "float16 x[505], float16 z[64] -> float16 y[64] { all (i) in (64) y[i] = x[8*i] * z[i] }"


def test_a_product_of_an_array_with_itself_reads_one_bank_twice() -> None:
    _, (cost,) = analysed(PRODUCT)
    assert cost.meeting == 1.0
    assert cost.cycles - cost.launch == 2 * -(-150 // cost.width)
    assert "share a bank in 100% of the rows" in cost.text


def test_a_stride_that_makes_an_instruction_narrow_is_named() -> None:
    _, (cost,) = analysed(COLUMN, *LAYOUTS)
    assert cost.name == "fmulh" and cost.width == 4
    assert [(o.tensor, o.stride, o.width) for o in cost.operands if o.width < 4] == [("x", 8, 1)]
    assert cost.cycles >= cost.launch + 64
    assert "1 in a cycle, not 4, as `x` steps by 8" in cost.text


def test_rows_that_do_not_fill_the_width_are_named() -> None:
    text = "float16 x[9][9], float16 w[3][3] -> float16 y[9][9] "
    text += "{ all (i, j, r, s) in (7, 7, 3, 3) y[i][j] += x[i + r][j + s] * w[r][s] }"
    _, costs = analysed(text, *LAYOUTS)
    assert any("take as long as rows of 8" in cost.text for cost in costs), [cost.text for cost in costs]


@pytest.mark.parametrize(
    ("text", "reason", "note"),
    [
        (
            "int32 x[8], int32 z[8] -> int32 y[8] { all (i) in (8) y[i] = x[i] * z[i] }",
            "no SIMD instruction does `*` of int32",
            "polyloom docs instructions",
        ),
        (
            "float16 x[2] -> float16 y[2] { all (i) in (2) y[i] = exp(x[i]) }",
            "no one SIMD instruction does the operation of the statement, and several save too little",
            "fewer PEs",
        ),
        (
            "float16 x[2], float16 z[2] -> float16 y[2] { all (i) in (2) y[i] = x[i] < z[i] ? x[i] : 2.0 }",
            "no SIMD instruction does a choice of float16, `<` of float16",
            "polyloom docs instructions",
        ),
    ],
    ids=["a type without instructions", "too little to do", "a choice"],
)
def test_why_there_is_none(text: str, reason: str, note: str) -> None:
    analysis, costs = analysed(text)
    found = missed_remark(analysis)
    assert found is not None and not costs
    assert found.notes[0] == reason and any(note in line for line in found.notes[1:])


def test_functions_that_are_switched_off_are_named() -> None:
    text = "float16 x[256] -> float16 y[256] { all (i) in (256) y[i] = exp(x[i]) }"
    assert missed_remark(analysed(text)[0]) is None
    found = missed_remark(analysed(text, Extension.VECTOR_FUNCTIONS)[0])
    assert found is not None and found.notes[0] == "no SIMD instruction does `exp` of float16"
    assert "`--simd-without vector-functions` leaves functions to loops" in found.notes


def test_each_driver_that_was_compared_has_its_instructions() -> None:
    """A whole row at once, or three elements for each one that comes: the document has both."""
    program, mapping = placed(
        """lair S(): float16 x[34], float16 W[3] -> float16 y[32]
{ all (w, r) in (32, 3) y[w] += x[w + r] * W[r] }""",
        """size: { PE[1, 1] }
compute_map: { S[w, r] -> PE[0, 0] }
iport_map: { x[i] -> [PE[-1, 0] -> index[i]] }""",
    )
    found = explanation(analyse_layer(program, mapping, SimdOptions()))["drivers"]
    ways = {task["driver"]: task for choice in found for task in choice["tasks"]}
    assert [choice["trigger"]["S"] for choice in found] == [None, "x"] and set(ways) == {None, "x"}
    (alone,), (driven,) = (ways[name]["instructions"] for name in (None, "x"))
    assert alone["elements"] == 32 and driven["elements"] == 3
    assert [operand["tensor"] for operand in driven["operands"]] == ["y", "y", "W"]
