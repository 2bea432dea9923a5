"""What a statement must keep to on its whole domain: bounds, and single assignment of elements."""

from __future__ import annotations

from collections.abc import Sequence

from polyloom.diagnostics import Span
from polyloom.frontends.lair.lowering.faults import fail
from polyloom.ir.host import Buffer, Index, View
from polyloom.ir.reductions import Combine
from polyloom.ir.statements import Statement


def extremes(index: Index, domain: Sequence[int]) -> tuple[int, int]:
    """Return the least and the greatest value of an index on a zero-based rectangle."""
    spans = [c * (n - 1) for c, n in zip(index.coefficients, domain, strict=True)]
    return (
        index.constant + sum(min(s, 0) for s in spans),
        index.constant + sum(max(s, 0) for s in spans),
    )


def check_bounds(
    access: View, tensor: Buffer, iterators: Sequence[str], domain: Sequence[int], spans: Sequence[Span]
) -> None:
    """Refuse an index that leaves the tensor, naming iterators' values that lead out of it.

    ``spans``: where each index stands. Errors: ``lair-out-of-bounds``.
    """
    for index, size, span in zip(access.affine, tensor.extents, spans, strict=True):
        least, greatest = extremes(index, domain)
        if least < 0:
            _refuse_bounds(tensor, span, least, size, _corner(index, iterators, domain, -1))
        if greatest >= size:
            _refuse_bounds(tensor, span, greatest, size, _corner(index, iterators, domain, 1))


def _corner(index: Index, iterators: Sequence[str], domain: Sequence[int], side: int) -> str:
    terms = zip(iterators, index.coefficients, domain, strict=True)
    values = [f"{name} = {n - 1 if c * side > 0 else 0}" for name, c, n in terms if c]
    return ", ".join(values)


def _refuse_bounds(tensor: Buffer, span: Span, value: int, size: int, point: str) -> None:
    fail(
        "lair-out-of-bounds",
        f"index {value} of `{tensor.name}` is out of bounds",
        span,
        label=f"is {value}" + (f" at {point}" if point else ""),
        notes=[f"the extent is {size}: indices go from 0 to {size - 1}"],
        help="make the tensor larger, the domain smaller, or shift the index",
    )


def check_every_element_once(statement: Statement, tensor: Buffer) -> None:
    """Refuse a plain ``=`` that writes an element twice, or not at all, naming it.

    Errors: ``lair-written-twice``, ``lair-not-covered``. Source: dtg_codegen, Sec. 4.1.1.
    """
    if statement.reduction is not Combine.CONCATENATE or _is_permutation(statement, tensor):
        return
    from polyloom.ir.relations import first_unwritten, first_written_twice

    if twice := first_written_twice(statement):
        _refuse_twice(statement, *twice)
    if (element := first_unwritten(statement, tensor)) is not None:
        _refuse_gap(statement, element)


def _is_permutation(statement: Statement, tensor: Buffer) -> bool:
    """Tell whether the indices are the iterators themselves, in some order, over the whole extents."""
    used = []
    for index in statement.write.affine:
        if index.constant or sorted(index.coefficients)[:-1] != [0] * (len(index.coefficients) - 1):
            return False
        used.append(max(range(len(index.coefficients)), key=index.coefficients.__getitem__, default=0))
    units = all(sum(i.coefficients) == 1 for i in statement.write.affine)
    return (
        units
        and sorted(used) == list(range(len(statement.domain)))
        and tuple(statement.domain[k] for k in used) == tensor.extents
    )


def _refuse_twice(statement: Statement, first: tuple[int, ...], second: tuple[int, ...]) -> None:
    element = _element(statement, first)
    fail(
        "lair-written-twice",
        f"`=` writes the element {element} more than once",
        statement.write.span,
        label=f"at {_point(statement, first)} and at {_point(statement, second)}",
        notes=["a plain `=` must write every element exactly once"],
        help="a reduction combines what several instances write: `+=`, `max=`, ...",
    )


def _refuse_gap(statement: Statement, element: tuple[int, ...]) -> None:
    name = statement.write.buffer + "".join(f"[{i}]" for i in element)
    fail(
        "lair-not-covered",
        f"`=` never writes the element {name}",
        statement.write.span,
        label="must write every element exactly once",
        notes=["a plain `=` must write every element exactly once"],
        help="`+=` fills the elements that no instance writes with 0, `max=` with the lowest value",
    )


def _element(statement: Statement, point: tuple[int, ...]) -> str:
    values = [
        i.constant + sum(c * p for c, p in zip(i.coefficients, point, strict=True))
        for i in statement.write.affine
    ]
    return statement.write.buffer + "".join(f"[{v}]" for v in values)


def _point(statement: Statement, point: tuple[int, ...]) -> str:
    pairs = zip(statement.iterators, point, strict=True)
    return f"({', '.join(f'{name} = {value}' for name, value in pairs)})"


def check_single_access(statement: Statement, span: Span) -> None:
    """Refuse a statement that reads one tensor in two ways, or its own output, after names are replaced.

    ``span``: the call. Errors: ``lair-two-accesses``, ``lair-reads-own-output``.
    """
    indices: dict[str, tuple[Index, ...]] = {}
    for read in statement.reads:
        if indices.setdefault(read.buffer, read.affine) != read.affine:
            fail(
                "lair-two-accesses",
                f"`{read.buffer}` is passed twice to a statement that accesses it in two ways",
                span,
                notes=["each tensor in a statement is accessed through a single index expression"],
                help="copy the tensor in a node of its own, and pass the copy",
            )
