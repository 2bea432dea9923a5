"""Probes of ``polyhedra/``: properties of sets, against points that are tried out one by one."""

from __future__ import annotations

from contextlib import suppress

import islpy as isl
import test_degenerate_sets
import test_loop_meaning
import test_loops
import test_polyhedra_properties as properties
import test_straighten
import test_time_tiles
from hypothesis.errors import UnsatisfiedAssumption
from random_sets import random_set

from polyloom.polyhedra.box_hull import box_hull
from polyloom.polyhedra.compression import variable_compression
from polyloom.polyhedra.loops.generate import CodeBuilder
from polyloom.polyhedra.loops.meaning import only_in_one
from polyloom.polyhedra.simplify import as_box, plainly, with_explicit_divs

_DIM = isl.dim_type
SEEDS = range(80)


def holds(name: str, *more: object) -> None:
    """A property of ``test_polyhedra_properties`` for the first random sets."""
    inner = getattr(properties, name).hypothesis.inner_test
    for seed in SEEDS:
        with suppress(UnsatisfiedAssumption):
            inner(seed, *more)


def trapezoids() -> None:
    """Sides are as steep as they may be; what is wrong with trapezoids is found."""
    test_time_tiles.test_rows_of_one_sweep_that_need_each_other_have_no_sides()
    for seed in (0, 1, 2, 3):
        test_time_tiles.test_a_fault_is_found_where_there_is_one(seed)


def hull_is_tight() -> None:
    """Of several bounds the best one counts, and no point need be at an upper one."""
    for text in (
        "0 <= i and p <= i <= p + 3",
        "i <= 12 and p <= i <= p + 3",
        "p - 20 <= i and p <= i <= p + 3",
    ):
        found = box_hull(isl.Set(f"[p] -> {{ S[i] : {text} and 0 <= p < 10 }}"))
        assert found is not None and found.size == (4,)
    hull_of = properties.test_the_box_hull_holds_its_set_and_is_no_larger_than_its_offset_asks
    hull_of.hypothesis.inner_test(1_046_869_101, False)


def origin_is_small() -> None:
    """The free variables of a compression are dimensions of the set, or count from as near as they can."""
    for seed in SEEDS:
        made = random_set(seed)
        function = variable_compression(made.isl()).map
        rows = [function.get_at(k) for k in range(function.dim(_DIM.out))]
        for k in range(function.dim(_DIM.in_)):
            assert any(_counts(row, k) for row in rows), f"{seed}: {function}"


def _counts(row: isl.Aff, k: int) -> bool:
    """Whether a row is ``c * i_k + d p + e + ...`` with ``0 <= d, e < c``."""
    own = int(row.get_coefficient_val(_DIM.in_, k).to_python())
    parameters = (row.get_coefficient_val(_DIM.param, j) for j in range(row.dim(_DIM.param)))
    return all(0 <= value.to_python() < own for value in (row.get_constant_val(), *parameters))


LOOPS = [
    "[n] -> { S[i, j] : 0 <= i < n and i <= j < n }",
    "[n] -> { S[i, j] : 0 <= i < n and 0 <= j <= i and (i + j) mod 3 = 1 }",
    "[n] -> { S[i] : 0 <= i < n or n + 2 <= i < n + 5 }",
    "[n] -> { S[i, j] : 2j <= i <= 3j + n and 0 <= i < 9 and j >= 0 }",
]


def loops_visit() -> None:
    """Loops visit exactly the points of their sets, in order."""
    for text in LOOPS:
        test_loops.test_loops_visit_the_points_of_the_set_in_order(text)


def filtering_loops_visit() -> None:
    """So do those that are taken where isl's are wrong."""
    for text in test_loop_meaning.SCHEDULES:
        test_loop_meaning.test_both_ways_visit_the_same(text, "_filtering")


def wrong_loops_are_seen() -> None:
    """Loops that lose a point are not taken."""
    points = isl.UnionMap("[n] -> { S[i] -> [i] : 0 <= i < n }")
    builder = CodeBuilder(isl.Set("[n] -> { : n >= 0 }"), {})
    fewer = isl.UnionMap("[n] -> { S[i] -> [i] : 0 < i < n }")
    tree = builder._scanning(fewer.align_params(builder.context.get_space()))
    assert not builder._visits(tree, points)
    more = builder._scanning(isl.UnionMap("[n] -> { S[i] -> [i] : 0 <= i <= n }"))
    assert not builder._visits(more, points)
    assert builder._visits(builder.loops(points), points)


def orders() -> None:
    """Loops that visit what they should in another order are seen."""
    for tree, times, holds in test_loop_meaning.ORDERS:
        test_loop_meaning.test_the_order_of_what_loops_visit(tree, times, holds)


def meanings() -> None:
    """What C's operators mean in bounds: division that truncates, remainders, choices."""
    for mark in test_loop_meaning.test_what_loops_visit.pytestmark:
        for values in mark.args[1]:
            test_loop_meaning.test_what_loops_visit(*getattr(values, "values", values))


SETS = [
    "[n] -> { [i, j] : 0 <= i < n and 0 <= j < n and i != j }",
    "[n] -> { [i] : exists (e : i = 3e + n) and 0 <= i < 20 }",
    "{ [i, j] : (i >= 0 and i < 3 and j = i) or (i >= 2 and i < 6 and j = i) }",
]


def simplified() -> None:
    """A set stays what it is, however it is written."""
    for text in SETS:
        points = isl.Set(text)
        assert plainly(points).is_equal(points)
        assert with_explicit_divs(points).is_equal(points)
        assert as_box(points).is_equal(points)


def straightened() -> None:
    """Parallelograms, strides and triangles: a bijection onto a box with a mask."""
    for (
        mark
    ) in test_straighten.test_parallelograms_and_strides_become_full_boxes_or_boxes_with_a_mask.pytestmark:
        for text in mark.args[1]:
            test_straighten.check_bijection(isl.Set(f"[n, w] -> {{ {text} }}"))
    test_straighten.test_a_parallelogram_is_a_full_box()
    for text in (
        "[n] -> { [i, j] : 0 <= i < n and i <= j < 2 * n - i }",
        "{ [i] : 3 <= i < 10 or 12 <= i < 15 }",
    ):
        test_straighten.check_bijection(isl.Set(text))


def degenerate() -> None:
    """Sets without dimensions and empty ones."""
    test_degenerate_sets.test_an_empty_set_has_no_hull_and_no_constant_point()
    test_degenerate_sets.test_the_hull_of_several_disjuncts_spans_all_of_them()


def eliminated() -> None:
    """An equality goes, and the points stay."""
    from polyloom.polyhedra.elimination import eliminate

    for text in (
        "[w] -> { S[t, i, j] : j = w - 2 t - i and 0 <= t < 3 and 0 <= i < 4 }",
        "{ S[i, j] : j = i and 0 <= i < 3 }",
    ):
        points = isl.Set(text)
        found = eliminate(points)
        assert found.points.apply(isl.Map.from_multi_aff(found.map)).is_equal(points)


def other_elements() -> None:
    """What only one of two trees visits is named, whichever of the two it is."""
    few, many = (isl.UnionSet(f"{{ S[i] : 0 <= i < {n} }}") for n in (3, 4))
    assert only_in_one(few, many) and only_in_one(many, few)
    assert only_in_one(few, few) is None
