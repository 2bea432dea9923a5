"""The buffers of a host program: shapes and roles of the arrays of a static control part."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import reduce

import islpy as isl

from polyloom.ir.host import Buffer, Parameter, Role
from polyloom.ir.integers import fold
from polyloom.ir.types import ElementType
from polyloom.polyhedra.effort import TooHardError, at_most
from polyloom.polyhedra.loops.generate import CodeBuilder, WrongLoops
from polyloom.polyhedra.loops.tree import IntExpression, Name, Number, Operation, sum_of
from polyloom.scop.model import Origin, Scop, ScopAccess, ScopArray, ScopStatement


def buffers(scop: Scop, exposed: Collection[str]) -> tuple[Buffer, ...]:
    """Return a buffer for every array; ``exposed``: those of which elements are read before they are written.

    Raises TooHardError where isl does not find how far the statements reach into an array.
    """
    return tuple(_buffer(scop, array, _role(scop, array, exposed)) for array in scop.arrays)


def _buffer(scop: Scop, array: ScopArray, role: Role) -> Buffer:
    extents = shape(scop, array)
    rows = _rows(scop, array, extents[0]) if extents and role is not Role.LOCAL else None
    return Buffer(
        name=array.name,
        type=array.type,
        shape=extents,
        role=role,
        span=array.span,
        rows=rows,
        truths=array.truths,
        memory=array.memory,
        alone=_needs_extent(scop, array) and _is_alone(scop, array),
    )


def _is_alone(scop: Scop, array: ScopArray) -> bool:
    """Whether C says that nothing is in this array and in another one, if either is written."""
    written = {s.target.array for s in scop.statements}
    others = [a for a in scop.arrays if a.name in written and a.origin is not Origin.INNER]
    return array.restrict or all(other.restrict for other in others)


def parameters(scop: Scop) -> tuple[Parameter, ...]:
    """Return the parameters, those among them that stand for extents which the source does not say."""
    unknown = [_extent_name(a) for a in scop.arrays if _needs_extent(scop, a)]
    stated = tuple(Parameter(p.name, p.type) for p in scop.parameters)
    return (*stated, *(Parameter(name, ElementType.INT64) for name in unknown))


def shape(scop: Scop, array: ScopArray) -> tuple[IntExpression, ...]:
    """Return the extents: as declared, else as many elements as the statements can reach.

    Where neither is known (``hist[bin[i]]`` of a pointer) the extent is a parameter ``hist_extent``.
    """
    first = array.shape[0] if array.shape else None
    if not array.shape or first is not None:
        return tuple(extent for extent in array.shape if extent is not None)
    if _needs_extent(scop, array):
        reached: IntExpression = Name(_extent_name(array))
    else:
        reached = _reached(scop, array)
    return (reached, *(extent for extent in array.shape[1:] if extent is not None))


def accesses(statement: ScopStatement) -> tuple[ScopAccess, ...]:
    """Return the target and the reads."""
    return (statement.target, *statement.reads)


def accesses_to(scop: Scop, array: str) -> Iterator[tuple[ScopStatement, ScopAccess]]:
    """Yield every access to an array with its statement."""
    for statement in scop.statements:
        for access in accesses(statement):
            if access.array == array:
                yield statement, access


def whole(array: str, extents: Sequence[IntExpression]) -> isl.Set | None:
    """Return all elements of an array, ``{ A[i, j] : 0 <= i < n }``; None where extents are not affine."""
    names = [f"i{k}'" for k in range(len(extents))]  # with a prime, which no parameter's name has
    try:
        bounds = [f"0 <= {n} < {_isl_text(e)}" for n, e in zip(names, extents, strict=True)]
    except KeyError:
        return None
    used = sorted({name for extent in extents for name in _names(extent)})
    condition = " and ".join(bounds) or "true"
    return isl.Set(f"[{', '.join(used)}] -> {{ {array}[{', '.join(names)}] : {condition} }}")


def _extent_name(array: ScopArray) -> str:
    return f"{array.name}_extent"


def _needs_extent(scop: Scop, array: ScopArray) -> bool:
    unknown = bool(array.shape) and array.shape[0] is None
    return unknown and any(0 in dict(a.computed) for _, a in accesses_to(scop, array.name))


def _touched(scop: Scop, array: ScopArray) -> isl.Set | None:
    """Return the elements that are accessed; None where there are none."""
    touched = [
        access.relation.intersect_domain(statement.domain).range()
        for statement, access in accesses_to(scop, array.name)
    ]
    if not touched:
        return None
    elements = reduce(isl.Set.union, touched).intersect_params(scop.context).coalesce()
    return None if elements.is_empty() else elements


def _rows(scop: Scop, array: ScopArray, extent: IntExpression) -> tuple[IntExpression, IntExpression] | None:
    """Return from which row to before which one elements are accessed; None where data decide."""
    if any(0 in dict(access.computed) for _, access in accesses_to(scop, array.name)):
        return None
    try:
        with at_most(_limit(scop, array), f"which rows of `{array.name}` are accessed"):
            elements = _touched(scop, array)
            if elements is None:
                return Number(0), Number(0)
            builder = CodeBuilder(scop.context, {})
            first, last = builder.value(elements.dim_min(0)), builder.value(elements.dim_max(0))
            nothing = scop.context.params().subtract(elements.params())
            asks = _seem_rows(elements, nothing)
            some = builder.condition(elements.params().coalesce()) if asks else None
    except (isl.Error, TooHardError, WrongLoops):
        return None
    end = sum_of([(1, last), (1, Number(1))])
    last = end if end == extent else Operation("min", (end, extent))
    last = last if some is None else Operation("?", (some, last, Number(0)))
    return fold(Operation("max", (first, Number(0))), {}), fold(last, {})


def _seem_rows(elements: isl.Set, nothing: isl.Set) -> bool:
    """Whether bounds of elements speak of rows for parameters for which there are none.

    ``a[2 * n + 8]`` in a loop up to ``n``: rows from 2 n + 8 to 2 n + 9, also for n = 0.
    """
    lows, highs = ([aff for _, aff in f.get_pieces()] for f in (elements.dim_min(0), elements.dim_max(0)))
    zero = isl.Aff.zero_on_domain(isl.LocalSpace.from_space(lows[0].get_domain_space()))
    rows = (high.ge_set(low).intersect(high.ge_set(zero)) for low in lows for high in highs)
    return any(not nothing.is_disjoint(seen.params()) for seen in rows)


def _limit(scop: Scop, array: ScopArray) -> int:
    """Return what isl may spend on one question about an array."""
    return 200_000 + 2000 * sum(1 for _ in accesses_to(scop, array.name))


def _reached(scop: Scop, array: ScopArray) -> IntExpression:
    """Return the largest first index that is accessed, plus one."""
    with at_most(_limit(scop, array), f"how far the statements reach into `{array.name}`"):
        elements = _touched(scop, array)
        if elements is None:
            return Number(0)
        last = CodeBuilder(scop.context, {}).value(elements.dim_max(0))
    return sum_of([(1, last), (1, Number(1))])


def _role(scop: Scop, array: ScopArray, exposed: Collection[str]) -> Role:
    if array.origin is Origin.INNER:
        return Role.LOCAL
    writers = [s for s in scop.statements if s.target.array == array.name]
    if not writers:
        return Role.INPUT
    if array.name in exposed:
        return Role.UPDATED
    return Role.OUTPUT if _surely_written_whole(scop, array, writers) else Role.UPDATED


def _surely_written_whole(scop: Scop, array: ScopArray, writers: Sequence[ScopStatement]) -> bool:
    try:
        with at_most(_limit(scop, array), f"whether all of `{array.name}` is written"):
            return _written_whole(scop, array, writers)
    except (TooHardError, isl.Error):
        return False


def _written_whole(scop: Scop, array: ScopArray, writers: Sequence[ScopStatement]) -> bool:
    elements = whole(array.name, shape(scop, array))
    if elements is None:
        return False
    for writer in writers:
        if writer.condition is None and not writer.target.computed:
            written = writer.target.relation.intersect_domain(writer.domain).range()
            elements = elements.subtract(written)
    return bool(elements.intersect_params(scop.context).is_empty())


_SIGNS = {"+": "+", "-": "-", "*": "*"}


def _isl_text(value: IntExpression) -> str:
    """Return an extent in isl's notation; KeyError where isl has none."""
    match value:
        case Number(value=number):
            return str(number)
        case Name(name=name):
            return name
    parts = [f"({_isl_text(operand)})" for operand in value.operands]
    if value.operator == "floor":
        return f"floor({parts[0]} / {parts[1]})"
    if value.operator == "-" and len(parts) == 1:
        return f"-{parts[0]}"
    if value.operator == "*" and not any(isinstance(o, Number) for o in value.operands):
        raise KeyError(value.operator)
    return _SIGNS[value.operator].join(parts)


def _names(value: IntExpression) -> Iterator[str]:
    match value:
        case Name(name=name):
            yield name
        case Number():
            return
        case _:
            for operand in value.operands:
                yield from _names(operand)
