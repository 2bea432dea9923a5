"""Verdicts on loops, their witnesses, and stated reductions that are checked."""

from __future__ import annotations

import numpy as np
import pytest
from forms import KERNELS, read, run, transformed

from polyloom.diagnostics import PolyloomError
from polyloom.report.forms_view import form
from polyloom.report.loops_view import document, text
from polyloom.scop.transform import ReductionMode, Transformation, host_program

MATRICES = """void kernel(int n, double A[n][n], double B[n][n], double C[n][n]) {
#pragma scop
#pragma mdh parallel(OPERATORS)
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      C[i][j] = 0;
      for (int k = 0; k < n; k++)
        C[i][j] += A[i][k] * B[k][j];
    }
#pragma endscop
}
"""


def of_kernel(name: str) -> Transformation:
    return host_program(read((KERNELS / f"{name}.c").read_text()))


def verdicts(found: Transformation) -> list[str]:
    return [f"{loop.iterator} {loop.operator or loop.verdict.value}" for loop in found.loops]


def test_loops_of_a_product() -> None:
    assert verdicts(of_kernel("product_chain")) == [
        *("i parallel", "j parallel", "p +"),
        *("i parallel", "j parallel", "p +"),
    ]


def test_a_serial_loop_has_a_witness() -> None:
    """New values go from row to row: the pair is two instances that touch one element."""
    (steps, *_) = of_kernel("sweeps").loops
    assert steps.witness is not None
    assert str(steps.witness).startswith("S1[1, 1, 1] reads the `u` that S1[0, 1, ")
    assert dict(steps.witness.parameters)["steps"] >= 2
    assert "wavefront" in steps.notes[0]


RECURRENCES = """void kernel(int n, double x[n], double y[n], double A[n][n]) {
#pragma scop
  for (int i = 2; i < n; i++) {
    x[i] = x[i] + y[i - 2];
    y[i] = y[i] * 0.5 + x[i];
  }
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n - 1; j++)
      A[i][j + 1] = A[i][j] * 0.5 + i;
#pragma endscop
}
"""


def test_lines_and_distance_of_what_is_in_the_way() -> None:
    found = host_program(read(RECURRENCES))
    shown = [(loop.witness.lines, loop.witness.distance) for loop in found.loops if loop.witness]
    assert shown == [((5, 4), ("2",)), ((9, 9), ("0", "1"))]
    assert "  from line 5 to line 4, at a distance of (2)\n" in text(read(RECURRENCES), found)


def test_a_scalar_of_its_own_makes_a_loop_parallel() -> None:
    outer = of_kernel("half_stored").loops[1]
    assert outer.verdict.value == "parallel"
    assert outer.notes == ("`dot` gets an element of its own for each iteration",)


def test_explanation_for_a_person_and_for_a_program() -> None:
    scop = read((KERNELS / "row_by_row_lu.c").read_text())
    found = host_program(scop)
    shown = text(scop, found)
    assert "for (int r = 0; r < n; r++) {" in shown
    assert "<- r serial" in shown and "<- q reduction(+)" in shown
    loops = document(scop, found)["loops"]
    assert loops[0]["witness"]["array"] == "A" and loops[0]["line"] == 5


def test_how_far_the_order_of_a_sum_moves_it_is_said() -> None:
    scop = read((KERNELS / "centred_products.c").read_text())
    free, strict = host_program(scop), host_program(scop, strict=True)
    (first, *_) = document(scop, free)["reassociated"]
    assert first["epsilon"] == float(np.finfo(np.float64).eps)
    assert f"its {first['terms']} terms in any order" in text(scop, free)
    assert document(scop, strict)["reassociated"] == [] and "rounding:" not in text(scop, strict)


def errors(operators: str, mode: ReductionMode = ReductionMode.STATED) -> list[str]:
    scop = read(MATRICES.replace("OPERATORS", operators))
    with pytest.raises(PolyloomError) as caught:
        host_program(scop, mode)
    return [d.code for d in caught.value.diagnostics]


def test_what_is_stated_rightly_is_taken() -> None:
    scop = read(MATRICES.replace("OPERATORS", "++, ++, +: C[i][j]"))
    (node,) = host_program(scop, ReductionMode.STATED).program.body
    assert [str(operator) for operator in node.combine] == ["++", "++", "+"]  # type: ignore[union-attr]


@pytest.mark.parametrize("operators", ["++, ++, max: C[i][j]", "++, ++, ++", "++, +, +: C[i][j]"])
def test_what_is_stated_wrongly_is_refused(operators: str) -> None:
    assert set(errors(operators)) == {"mdh-contradiction"}


def test_a_wrong_number_of_operators_is_refused() -> None:
    assert errors("++, +: C[i][j]") == ["mdh-dimensions"]


def test_what_is_not_stated_is_no_reduction() -> None:
    """Without a pragma, md_poly's solution 2 finds none."""
    scop = read(MATRICES.replace("#pragma mdh parallel(OPERATORS)\n", ""))
    assert "+" not in verdicts(host_program(scop, ReductionMode.STATED))[2]


FUNCTION = """static double better(double a, double b) { return VALUE; }
void kernel(int n, int m, double x[n][m], double best[n]) {
#pragma scop
#pragma mdh parallel(++, better: best[i])
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++)
      best[i] = better(best[i], x[i][j]);
#pragma endscop
}
"""


def test_a_function_of_the_source_is_an_operator() -> None:
    """The larger by its square: associative, but equal squares keep the first, so not commutative."""
    program = transformed(FUNCTION.replace("VALUE", "b * b > a * a ? b : a"))
    assert form(program) == "(++, better)"
    values = {"n": 2, "m": 4, "x": np.array([[1.0, -3, 3, 2], [0, 5, -5, 4]]), "best": np.array([0.0, 5])}
    np.testing.assert_array_equal(run(program, values)["best"], [-3.0, 5.0])


def test_a_function_that_is_not_associative_is_refused() -> None:
    scop = read(FUNCTION.replace("VALUE", "a - b"))
    with pytest.raises(PolyloomError) as caught:
        host_program(scop)
    (first, *_) = caught.value.diagnostics
    assert first.code == "mdh-associative" and "is not better(" in first.notes[0]
