"""Sizes that are numbers: the relation for this size is the given one, and an LU of 400 rows is that of n."""

from __future__ import annotations

from time import process_time

import islpy as isl
import pytest
from forms import transformed

from polyloom.report.forms_view import form
from polyloom.scop.schedule.constant_sizes import largest_size, with_size

LU = """
void lu(double A[N][N])
{
#pragma scop
  for (int i = 0; i < N; i++) {
    for (int j = 0; j < i; j++) {
      for (int k = 0; k < j; k++) A[i][j] -= A[i][k] * A[k][j];
      A[i][j] /= A[j][j];
    }
    for (int j = i; j < N; j++)
      for (int k = 0; k < i; k++) A[i][j] -= A[i][k] * A[k][j];
  }
#pragma endscop
}
"""


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("{ S[i, j] -> S[i + 1, j] : 0 <= i < 99 and 3 <= j <= 120 }", 120),
        ("{ S[i] -> T[i - 12] : 12 <= i < 500; S[i] -> T[j] : j >= 40 + i and i < 7 }", 499),
        ("[n] -> { S[i] -> S[k] : 0 <= i < n and n < 2000 and k > i - 100 and k < n }", 1999),
        ("{ S[i] -> S[k] : 0 <= i < 300 and k mod 4 = 1 and i < k < 300 }", 299),
        ("{ S[i] -> S[i + 1] : 0 <= i < 7 }", 0),
    ],
)
def test_for_the_size_at_hand_it_is_the_given_relation(text: str, size: int) -> None:
    given = isl.Map(text)
    assert largest_size([given]) == size
    found = with_size(given, size)
    place = found.find_dim_by_name(isl.dim_type.param, "its size")
    if place >= 0:
        found = found.fix_val(isl.dim_type.param, place, isl.Val(size))
        found = found.project_out(isl.dim_type.param, place, 1)
    assert found.is_equal(given)


@pytest.mark.slow
@pytest.mark.ci
def test_an_lu_of_known_size_is_that_of_any_size() -> None:
    """isl's scheduler took a minute for 40 rows, and did not end for 400."""
    start = process_time()
    known = transformed(LU.replace("N", "400"))
    assert process_time() - start < 20
    assert form(known) == form(transformed(LU.replace("lu(", "lu(int n, ").replace("N", "n")))
