"""Loops without vectors of ours of which the C compiler makes vectors, and the schedule that they amount to.

    for (i = 0; i < n; i++) d[i] = (77 * s[3 * i] + 150 * s[3 * i + 1] + 29 * s[3 * i + 2]) >> 8;

Such a loop costs what vectors along ``i`` cost. Where no size is known it is also the better form: the C
compiler's loops begin and end sooner, and are shorter to read. With gcc 12, 44 loops on images, signals
and records take .95 to 1.05 times as long as what gcc makes of their source, but those that ``_are_alike``
leaves out, which take .1 to .5 times as long in vectors of ours.

    for (i = 0; i < n; i++) t += abs(a[i] - b[i]);

Of sums the C compiler has the better form where an instruction adds up neighbours, after it has multiplied
integers of 16 bits or taken the distance of bytes: so many more of them are in a vector. Not in the papers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import ceil

from polyloom.ir.expressions import (
    Binary,
    BinaryOp,
    Constant,
    Convert,
    Expression,
    Iterator,
    ParameterValue,
    Read,
    Unary,
    UnaryOp,
    children,
    varying_parts,
)
from polyloom.ir.host import MdHom
from polyloom.ir.rebuild import rebuilt
from polyloom.ir.reductions import Combine, combiner, is_plain_sum, with_combiner
from polyloom.ir.types import ElementType
from polyloom.ir.value_ranges import ValueRanges, fits
from polyloom.mdh.device.costs import NEAR, CpuCosts
from polyloom.mdh.device.devices import DeviceModel
from polyloom.mdh.schedule.addresses import Access
from polyloom.mdh.schedule.cost.loop_sizes import UNKNOWN, LoopSizes, Reads, likely
from polyloom.mdh.schedule.legality import WIDTHS
from polyloom.mdh.schedule.schedules import Schedule
from polyloom.mdh.schedule.tiling import TileFacts, parts_vectors
from polyloom.polyhedra.loops.tree import Number

LONGEST_FUNCTION = 8.0
"""Instructions of the longest function that C compilers have in vectors: a quotient, a root."""

PAIR = 2
"""Neighbours in memory that C compilers put together whatever each of them is."""

_SUMMED = (Number(0), Number(1))
_READ, _WRITTEN = tuple(map(Number, (0, 1, -1, *NEAR))), tuple(map(Number, (1, *NEAR)))


def are_open(hom: MdHom) -> bool:
    """Whether no extent of an md_hom is known, or nearly none."""
    is_known = all(isinstance(extent, Number) for extent in hom.extents)
    return not is_known and min(map(likely, hom.extents)) == UNKNOWN


def plain_loops(plain: TileFacts, device: DeviceModel) -> Iterable[Schedule]:
    """Yield schedules without tiles and vectors, each dimension innermost; threads share the outermost.

    None where a size is known. ``plain``: an md_hom under the schedule without decisions.
    """
    if not are_open(plain.hom):
        return
    count = len(plain.hom.extents)
    for d in plain.kept if plain.combiner is None else plain.reduced:
        order = (*(e for e in range(count) if e != d), d)
        for size in (1, 0) if device.compute_units > 1 and order[0] in plain.kept else (0,):
            group = tuple(size if e == order[0] else 0 for e in range(count))
            yield replace(plain.schedule, group=group, private_order=order)


def compiled_vectors(facts: TileFacts, reads: Reads, device: DeviceModel) -> LoopSizes | None:
    """Return the loops that cost what those cost that a C compiler makes of a schedule without vectors.

    None where it makes no vectors.
    """
    costs = device.costs.kernels
    if not isinstance(costs, CpuCosts) or not costs.compiles_loops or not are_open(facts.hom):
        return None
    if not facts.schedule.goes_by_points:
        return None
    d = facts.schedule.private_order[-1]
    if facts.combiner is not None:
        return _sum(d, facts, reads, device) if d in facts.reduced else None
    if (
        not facts.kept
        or parts_vectors(facts, d)
        or not _are_near(d, reads)
        or not _have_instructions(facts.hom)
    ):
        return None
    return _in_vectors(facts, d, reads, device) if _are_alike(d, facts.hom, reads) else None


def _sum(d: int, facts: TileFacts, reads: Reads, device: DeviceModel) -> LoopSizes | None:
    """Return the loops of a sum whose neighbours an instruction adds up, in the type of its terms."""
    kind = _type_of_neighbours(facts.hom)
    if kind is None or not all(a is not None and a.strides[d] in _SUMMED for a in reads.inputs):
        return None
    hom = with_combiner(facts.hom, combiner(Combine.ADD, kind))
    hom = replace(hom, terms=tuple(_of_type(term, kind) for term in hom.terms))
    return _in_vectors(TileFacts(hom, facts.schedule), d, replace(reads, hom=hom), device)


def _type_of_neighbours(hom: MdHom) -> ElementType | None:
    """Return the type of the terms of a sum whose neighbours an instruction adds up; None without one."""
    if not is_plain_sum(hom, ElementType.INT32):
        return None
    ranges, term = ValueRanges(hom.extents), hom.terms[0]
    match term:
        case Binary(op=BinaryOp.MULTIPLY, left=a, right=b):
            kind = ElementType.INT16
        case Unary(op=UnaryOp.ABS, operand=Binary(op=BinaryOp.SUBTRACT, left=a, right=b)):
            kind = ElementType.UINT8
        case _:
            return None
    return kind if all(fits(ranges.of(part), kind) for part in (a, b)) else None


def _of_type(term: Expression, kind: ElementType) -> Expression:
    """Return what costs as much as a function that is computed in another type."""

    def changed(part: Expression) -> Expression | None:
        match part:
            case Convert(operand=operand):
                return rebuilt(operand, changed)
            case Read() | Iterator() | ParameterValue() | Constant():
                return replace(part, type=kind)
            case _:
                return None

    return rebuilt(term, changed)


def _in_vectors(facts: TileFacts, d: int, reads: Reads, device: DeviceModel) -> LoopSizes | None:
    """Return the loops over points one by one as loops in vectors; None where a vector has one element."""
    extents = tuple(map(likely, facts.hom.extents))
    lanes = min(device.vector_bytes // reads.widest, extents[d])
    width = max((w for w in WIDTHS if w <= lanes), default=1)
    shared = (ceil(n / max(1, device.compute_units)) for n in extents)
    pairs = zip(facts.schedule.group, shared, strict=True)
    group = tuple(part if size == 1 else size for size, part in pairs)
    if width == 1:
        return None
    in_vectors = replace(facts.schedule, vector=d, width=width, group=group)
    return LoopSizes(facts.under(in_vectors), reads, has_tiles=False)


def _are_near(d: int, reads: Reads) -> bool:
    """Whether neighbours along a dimension read and write neighbours, or parts of neighbouring records.

    So they may where a distance is not known and the access moves along this dimension alone: the C compiler
    makes a loop in vectors for a distance of 1, which most calls have, beside one for others.
    """
    read = (reads.inputs[k] for k in reads.inner)
    return all(a is not None and (a.strides[d] in _READ or _is_open(a, d)) for a in read) and all(
        a is not None and (a.strides[d] in _WRITTEN or _is_open(a, d)) for a in reads.outputs
    )


def _is_open(access: Access, d: int) -> bool:
    """Whether an access moves along a dimension alone, by a distance that is not known."""
    others = (e for e in range(len(access.strides)) if e != d)
    return not isinstance(access.strides[d], Number) and not any(map(access.uses, others))


def _have_instructions(hom: MdHom) -> bool:
    """Whether all functions of the terms are instructions on vectors."""
    return all(_has_instruction(part) for term in hom.terms for part in varying_parts(term))


def _has_instruction(part: Expression) -> bool:
    """Whether vectors have an instruction for a function: integers are divided by numbers alone."""
    match part:
        case Binary(op=BinaryOp.DIVIDE | BinaryOp.REMAINDER as op, right=right):
            return isinstance(right, Constant) if not part.type.is_float else op is BinaryOp.DIVIDE
        case Unary(op=function) | Binary(op=function):
            return function.instructions <= LONGEST_FUNCTION
        case _:
            return True


def _are_alike(d: int, hom: MdHom, reads: Reads) -> bool:
    """Whether results that lie together as a record are computed alike: else lanes are stored one by one."""
    records: dict[object, list[Expression]] = {}
    for term, access in zip(hom.terms, reads.outputs, strict=True):
        assert access is not None
        records.setdefault((access.buffer.name, access.strides[d]), []).append(term)
    return all(len(terms) <= PAIR or len(set(map(_shape, terms))) == 1 for terms in records.values())


def _shape(term: Expression) -> tuple[object, ...]:
    """Return what a term computes, without which elements and numbers."""
    inner = tuple(_shape(part) for part in children(term))
    return type(term), getattr(term, "op", None), term.type, inner
