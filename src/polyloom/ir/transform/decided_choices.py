"""Choices that are decided are gone: ``c ? (c ? a : 0) * b : d`` is ``c ? a * b : d``.

A choice around them has decided them, or the types of what is compared: an unsigned ``n - 2`` is not below 0.
They come from values that take the place of their names. Not in the papers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from polyloom.ir.expressions import Binary, BinaryOp, Expression, Select
from polyloom.ir.host import Assignment, HostLeaf, HostNode, HostProgram, MdHom, Nest
from polyloom.ir.rebuild import rebuilt, with_reads
from polyloom.ir.transform.fuse_maps import without_unread_inputs
from polyloom.ir.value_ranges import ValueRanges
from polyloom.polyhedra.loops.tree import with_leaves


def with_decided_choices(program: HostProgram) -> HostProgram:
    """Return the program in which no term asks twice for what is known. Every element gets its value."""

    def change(node: HostLeaf) -> tuple[HostNode, ...]:
        match node:
            case MdHom():
                terms = tuple(decided(term, {}, ValueRanges(node.extents)) for term in node.terms)
                return (node if terms == node.terms else without_unread_inputs(replace(node, terms=terms)),)
            case Nest():
                return (replace(node, assignments=tuple(map(_decided, node.assignments))),)
            case _:
                return (node,)

    return replace(program, body=with_leaves(program.body, change))


def _decided(assignment: Assignment) -> Assignment:
    """Return an assignment whose value is asked for where its condition holds."""
    value, condition = (
        part and with_reads(part, lambda k: assignment.reads.index(assignment.reads[k]))
        for part in (assignment.value, assignment.condition)
    )
    assert value is not None
    known = () if condition is None else _implied(condition)
    made = decided(value, dict.fromkeys(known, True), ValueRanges(()))
    return assignment if made == value else replace(assignment, value=made)


def decided(value: Expression, known: Mapping[Expression, bool], ranges: ValueRanges) -> Expression:
    """Return a value where some conditions are known to hold, or not to hold."""

    def change(part: Expression) -> Expression | None:
        match part:
            case Select(condition=condition, then=then, otherwise=otherwise):
                holds = known.get(condition, ranges.holds(condition))
                if holds is not None:
                    return decided(then if holds else otherwise, known, ranges)
                return Select(
                    decided(condition, known, ranges),
                    decided(then, {**known, **dict.fromkeys(_implied(condition), True)}, ranges),
                    decided(otherwise, {**known, condition: False}, ranges),
                )
            case _:
                return None

    return rebuilt(value, change)


def _implied(condition: Expression) -> Iterator[Expression]:
    """Yield what holds where a condition does."""
    yield condition
    if isinstance(condition, Binary) and condition.op is BinaryOp.AND:
        yield from _implied(condition.left)
        yield from _implied(condition.right)
