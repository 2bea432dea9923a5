"""One combine operator per dimension: reduced is what the element written does not tell."""

from __future__ import annotations

import pytest

from polyloom.ir import Combine, ElementType, Index, Statement, View
from polyloom.ir.expressions import Constant
from polyloom.ir.statements import combine_operators

FIRST, SECOND, SUM, NONE = Index.of((1, 0)), Index.of((0, 1)), Index.of((1, 1)), Index.of((0, 0))
ONE = Constant(1, ElementType.INT32)


@pytest.mark.parametrize(
    ("indices", "operators"),
    [
        ((FIRST,), "++ +"),
        ((SECOND,), "+ ++"),
        ((), "+ +"),
        ((NONE,), "+ +"),
        ((SUM,), "++ +"),
        ((SUM, SUM), "++ +"),
        ((SUM, Index.of((2, 2), 1)), "++ +"),
        ((SUM, FIRST), "++ ++"),
        ((SUM, Index.of((1, 2))), "++ ++"),
    ],
)
def test_dimensions_are_kept_where_elements_tell_their_points_apart(
    indices: tuple[Index, ...], operators: str
) -> None:
    statement = Statement.of("S", ("i", "j"), (3, 4), (), View("y", indices), ONE, Combine.ADD)
    assert [c.value for c in combine_operators(statement)] == operators.split()


def test_a_plain_assignment_keeps_all_dimensions() -> None:
    statement = Statement.of("S", ("i", "j"), (3, 4), (), View("y", (SECOND, FIRST)), ONE)
    assert combine_operators(statement) == (Combine.CONCATENATE,) * 2
