"""Mutants of ``polyhedra/``."""

from __future__ import annotations

from mutant import Mutant, Probe

MUTANTS = [
    Mutant(
        "polyhedra/time_tiles",
        "offsets[source] + rows - rise * steps",
        "offsets[source] + rows - 1 - rise * steps",
        Probe("polyhedra_probes.trapezoids"),
    ),
    Mutant(
        "polyhedra/time_tiles",
        "t < u or (t = u and r != s)",
        "t < u",
        Probe("polyhedra_probes.trapezoids"),
    ),
    Mutant(
        "polyhedra/time_tiles",
        "if not needed.is_disjoint(apart):",
        "if False:",
        Probe("polyhedra_probes.trapezoids"),
    ),
    Mutant(
        "polyhedra/time_tiles",
        "if not wanted.is_subset(both.domain()):",
        "if False:",
        Probe("polyhedra_probes.trapezoids"),
    ),
    Mutant(
        "polyhedra/compression",
        "for vector, pivot in reversed(basis):",
        "for vector, pivot in ():",
        Probe("polyhedra_probes.origin_is_small"),
    ),
    Mutant(
        "polyhedra/compression",
        "rest = rest.sub(solved[k].scale_val(isl_integer(form[row][k])))",
        "rest = rest.add(solved[k].scale_val(isl_integer(form[row][k])))",
        Probe("polyhedra_probes.holds", ("test_compression_is_a_bijection_on_the_points",)),
    ),
    Mutant(
        "polyhedra/compression",
        "return aff if divisor == 1 else aff.scale_down_val(isl_integer(divisor)).floor()",
        "return aff",
        Probe("polyhedra_probes.holds", ("test_compression_is_a_bijection_on_the_points",)),
    ),
    Mutant(
        "polyhedra/compression",
        "rows = [row for row in rows if any(row[: n_div + n_set])]",
        "rows = rows[:1]",
        Probe("polyhedra_probes.holds", ("test_compression_uses_every_equality",)),
    ),
    Mutant(
        "polyhedra/box_hull",
        "yield lower, distance + 1",
        "yield lower, distance",
        Probe(
            "polyhedra_probes.holds",
            ("test_the_box_hull_holds_its_set_and_is_no_larger_than_its_offset_asks", False),
        ),
    ),
    Mutant(
        "polyhedra/box_hull",
        " - _nearest(line, _from_bound(upper).neg())",
        "",
        Probe("polyhedra_probes.hull_is_tight"),
    ),
    Mutant(
        "polyhedra/box_hull",
        "offset = upper.add_constant_val(isl_integer(-distance))",
        "offset = upper",
        Probe(
            "polyhedra_probes.holds",
            ("test_the_box_hull_holds_its_set_and_is_no_larger_than_its_offset_asks", False),
        ),
    ),
    Mutant(
        "polyhedra/box_hull",
        "if acceptable and (best is None or size < best[1]):",
        "if acceptable and (best is None or size > best[1]):",
        Probe("polyhedra_probes.hull_is_tight"),
    ),
    Mutant(
        "polyhedra/bounds",
        "not_below = not_below.order_le(",
        "not_below = not_below.order_lt(",
        Probe("polyhedra_probes.holds", ("test_dense_constant_independent",)),
    ),
    Mutant(
        "polyhedra/bounds",
        "return isl.Set.from_pw_multi_aff(function.add_constant_val(isl.Val(1)))",
        "return isl.Set.from_pw_multi_aff(function)",
        Probe("polyhedra_probes.holds", ("test_minimum_maximum_and_size",)),
    ),
    Mutant(
        "polyhedra/bounds",
        "return _pointwise(points, points.dim_max)",
        "return _pointwise(points, points.dim_min)",
        Probe("polyhedra_probes.holds", ("test_minimum_maximum_and_size",)),
    ),
    Mutant(
        "polyhedra/bounds",
        "return box_between(minimum, maximum).is_subset(points)",
        "return True",
        Probe("polyhedra_probes.holds", ("test_dense_constant_independent",)),
    ),
    Mutant(
        "polyhedra/loops/generate",
        "if not visited(tree, self.context, self.names).is_equal(schedule.domain()):",
        "if False:",
        Probe("polyhedra_probes.wrong_loops_are_seen"),
        fast=True,
    ),
    Mutant(
        "polyhedra/loops/generate",
        "Number(high + 1)",
        "Number(high)",
        Probe("polyhedra_probes.filtering_loops_visit"),
    ),
    Mutant(
        "polyhedra/loops/generate",
        "if self.context.is_subset(aligned):",
        "if True:",
        Probe("polyhedra_probes.filtering_loops_visit"),
    ),
    Mutant(
        "polyhedra/loops/scope",
        ".intersect(distance.tdiv_r(inner.value(step)).zero_set())",
        "",
        Probe("polyhedra_probes.meanings"),
    ),
    Mutant(
        "polyhedra/loops/scope",
        "chosen if holds else chosen.complement()",
        "chosen",
        Probe("polyhedra_probes.meanings"),
    ),
    Mutant(
        "polyhedra/loops/scope",
        '"/": isl.PwAff.tdiv_q,',
        '"/": lambda a, b: a.div(b).floor(),',
        Probe("polyhedra_probes.meanings"),
    ),
    Mutant(
        "polyhedra/loops/meaning",
        "return bool(later.is_disjoint(times.lex_ge_union_map(times)))",
        "return True",
        Probe("polyhedra_probes.orders"),
        fast=True,
    ),
    Mutant(
        "polyhedra/loops/meaning",
        "here = (*time, Number(place))",
        "here = (*time, Number(0))",
        Probe("polyhedra_probes.orders"),
    ),
    Mutant(
        "polyhedra/loops/meaning",
        "if a.is_equal(b):",
        "if b.is_subset(a):",
        Probe("polyhedra_probes.other_elements"),
    ),
    Mutant(
        "polyhedra/enumeration",
        "shifted = translate(sizes, hull.offset.neg())",
        "shifted = translate(sizes, hull.offset)",
        Probe("polyhedra_probes.holds", ("test_every_size_is_enumerated_and_no_other",)),
    ),
    Mutant(
        "polyhedra/enumeration",
        "sizes = project_out_parameters(size, index)",
        "sizes = size",
        Probe("polyhedra_probes.holds", ("test_every_size_is_enumerated_and_no_other",)),
    ),
    Mutant(
        "polyhedra/simplify",
        "return hull if hull.is_subset(points) else points",
        "return hull",
        Probe("polyhedra_probes.simplified"),
        fast=True,
    ),
    Mutant(
        "polyhedra/rectangularise",
        "if _involves_dims(candidate) and _constant_width(prefix, k, candidate):",
        "if False:",
        Probe("polyhedra_probes.straightened"),
    ),
    Mutant(
        "polyhedra/rectangularise",
        "b.add_constant_val(isl.Val(1)).drop_dims",
        "b.drop_dims",
        Probe("polyhedra_probes.straightened"),
    ),
    Mutant(
        "polyhedra/elimination",
        "aff if coefficient.is_neg() else aff.neg()",
        "aff",
        Probe("polyhedra_probes.eliminated"),
    ),
]
