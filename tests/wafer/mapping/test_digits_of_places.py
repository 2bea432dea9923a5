"""Coordinates that are numbers of digits: the same relation, and bounds that isl finds at once."""

from __future__ import annotations

import islpy as isl
import pytest

from polyloom.polyhedra.binding import bind_range
from polyloom.polyhedra.bounds import elementwise_maximum, elementwise_minimum
from polyloom.polyhedra.effort import at_most
from polyloom.wafer.mapping.digits import with_digits

THREE = """{ f[k, h, w, c] -> PE[k//4 + 32*h + 128*(w//2), c//2] :
  0 <= k < 128 and 0 <= h < 4 and 0 <= w < 4 and 0 <= c < 128 }"""


def test_what_one_pe_has_of_three_digits_is_found_at_once() -> None:
    """isl took 1,665,238 operations and 16 s for the least point alone."""
    relation = with_digits(isl.Map(THREE))
    points = bind_range(relation, ("PE_X", "PE_Y"))
    with at_most(20_000):
        ends = elementwise_minimum(points), elementwise_maximum(points)
    assert [end.n_basic_set() for end in ends] == [1, 1]
    assert isl.Map(THREE).is_equal(relation)


PORT = """{ y[i, j, k] -> [PE[i//4 + 32*j + 128*(k//2), 64] -> index[i mod 4, 0, k mod 2]] :
  0 <= i < 128 and 0 <= j < 4 and 0 <= k < 4 }"""


@pytest.mark.parametrize(
    "text",
    [
        THREE,
        PORT,
        "{ f[k, h] -> PE[k//3 + 5*h, 7] : 0 <= k < 13 and 0 <= h < 4 }",
        "{ f[k, h] -> PE[2 + k mod 3 + 3*h, h] : 0 <= k < 13 and 2 <= h < 6 }",
        "{ f[k, h] -> PE[6*(k//2) + h//2, 0] : 0 <= k < 5 and 2 <= h < 8 }",
        "{ f[k, h] -> PE[4*h - k//2, 0] : 0 <= k < 8 and 0 <= h < 4 }",
        "{ f[k, h, w] -> PE[k + 4*h + 20*(w//2), 0] : 0 <= k < 4 and 0 <= h < 5 and 0 <= w < 7 }",
    ],
)
def test_numbers_are_the_same_relation_in_other_words(text: str) -> None:
    relation = isl.Map(text)
    found = with_digits(relation)
    assert found is not relation
    assert found.is_equal(relation)


@pytest.mark.parametrize(
    "text",
    [
        "{ f[i, j] -> PE[i + j, 0] : 0 <= i < 5 and 0 <= j < 5 }",
        "{ f[i, j] -> PE[i + 5*j, 0] : 0 <= i < 6 and 0 <= j < 5 }",
        "{ f[i, j] -> PE[i + 6*(j//2), 0] : 0 <= i < 6 and 0 <= j < 5 }",
        "{ f[i, j] -> PE[(i + j)//2 + 8*j, 0] : 0 <= i < 5 and 0 <= j < 5 }",
        "{ f[i, j] -> PE[2*i + 10*j, 0] : 0 <= i < 5 and 0 <= j < 5 }",
        "{ f[i, j] -> PE[i + 5*j, 0] : false }",
        "{ f[i, j] -> PE[x, 0] : i <= x <= i + j and 0 <= i < 5 and 0 <= j < 5 }",
    ],
)
def test_what_is_no_number_stays_as_it_is(text: str) -> None:
    relation = isl.Map(text)
    assert with_digits(relation) is relation
