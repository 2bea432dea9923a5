"""One statement of a node: domain, accesses and expression, each rule checked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from polyloom.diagnostics import Span
from polyloom.frontends.lair.lowering.checks import check_bounds, check_every_element_once, extremes
from polyloom.frontends.lair.lowering.constants import Space, affine, extent
from polyloom.frontends.lair.lowering.faults import Faults, fail
from polyloom.frontends.lair.lowering.names import check_new, counted, suggestion
from polyloom.frontends.lair.lowering.scalar import Values, lower_expression
from polyloom.frontends.lair.lowering.scope import Scope, check_size
from polyloom.frontends.lair.syntax.tree import Call, Choice, Element, Expression, Name, Operation, Statement
from polyloom.ir import statements as ir
from polyloom.ir.host import Buffer, View
from polyloom.ir.reductions import Combine
from polyloom.ir.types import ElementType

_REDUCTIONS = {
    "=": Combine.CONCATENATE,
    "+=": Combine.ADD,
    "*=": Combine.MULTIPLY,
    "max=": Combine.MAXIMUM,
    "min=": Combine.MINIMUM,
}

Reference = Name | Element


@dataclass(frozen=True)
class Lowered:
    """A statement, named after the node for now, and the tensor that it defines."""

    statement: ir.Statement
    tensor: Buffer


def target(statement: Statement) -> Name:
    """Return the name of the tensor that a statement writes."""
    return statement.write if isinstance(statement.write, Name) else statement.write.tensor


def reads_of(statement: Statement) -> set[str]:
    """Return the names that a statement's expression reads."""
    return {_tensor_name(reference).text for reference in _references(statement.expression)}


def lower_statement(part: Statement, scope: Scope, readable: Mapping[str, Buffer]) -> Lowered:
    """Return a statement of the IR. ``readable``: the tensors that are defined before it."""
    faults = Faults()
    with faults.collect():
        domain = _domain(part, scope, readable)
    faults.raise_any()
    frame = _Frame(part, scope, readable, tuple(n.text for n in part.iterators), domain)
    references = list(_references(part.expression))
    for reference in references:
        with faults.collect():
            frame.check_readable(reference)
    faults.raise_any()
    reads: dict[str, View] = {}
    for reference in references:
        with faults.collect():
            frame.add_read(reference, reads)
    with faults.collect():
        write = frame.access(part.write)
    with faults.collect():
        expression = lower_expression(part.expression, frame.declared_type(), frame.values(references))
    faults.raise_any()
    tensor = frame.written(write, expression.type)
    lowered = ir.Statement.of(
        name=scope.item.name.text,
        iterators=frame.iterators,
        domain=domain,
        reads=tuple(reads.values()),
        write=write,
        expression=expression,
        reduction=_REDUCTIONS[part.operator],
        span=part.span,
    )
    check_every_element_once(lowered, tensor)
    return Lowered(lowered, tensor)


def _domain(part: Statement, scope: Scope, tensors: Iterable[str]) -> tuple[int, ...]:
    taken = {*scope.declared, *tensors, *scope.bindings.sizes, *scope.bindings.types}
    check_new(part.iterators, taken)
    if len(part.iterators) != len(part.extents):
        fail(
            "lair-domain",
            f"{counted(len(part.iterators), 'iterator')} for {counted(len(part.extents), 'extent')}",
            part.iterators[0].span if part.iterators else part.span,
            help="give each iterator one extent: `all (i, j) in (M, N)`",
        )
    names = tuple(n.text for n in part.iterators)
    space = Space(scope.bindings.sizes, names, frozenset(scope.declared), "bound")
    faults = Faults()
    found = []
    for expression in part.extents:
        with faults.collect():
            found.append(extent(expression, space))
    faults.raise_any()
    return tuple(found)


def _references(expression: Expression) -> Iterator[Reference]:
    """Yield the names and elements that an expression reads; indices are not looked into."""
    match expression:
        case Name() | Element():
            yield expression
        case Operation(operands=parts) | Call(arguments=parts):
            for part in parts:
                yield from _references(part)
        case Choice(condition=c, then=a, otherwise=b):
            for part in (c, a, b):
                yield from _references(part)


@dataclass(frozen=True)
class _Frame:
    """What the references of one statement are resolved against."""

    part: Statement
    scope: Scope
    readable: Mapping[str, Buffer]
    iterators: tuple[str, ...]
    domain: tuple[int, ...]

    def check_readable(self, reference: Reference) -> None:
        """Refuse a name that is no value here."""
        name = _tensor_name(reference)
        if name.text == target(self.part).text:
            _refuse_own_output(reference)
        if name.text in self.readable:
            return
        if isinstance(reference, Name) and name.text in self.scope.bindings.sizes:
            return
        self._refuse_unreadable(name)

    def _refuse_unreadable(self, name: Name) -> None:
        if name.text in self.iterators:
            fail(
                "lair-iterator-value",
                f"the iterator `{name.text}` is no value",
                name.span,
                help="read the number from a tensor: `iota[i]`",
            )
        if name.text in self._defined_later():
            fail(
                "lair-read-before-definition",
                f"`{name.text}` is read before it is defined",
                name.span,
                help="move the statement that writes it up; if none does, write it or make it an input",
            )
        fail(
            "lair-unknown-name",
            f"there is no tensor `{name.text}`",
            name.span,
            help=suggestion(name.text, [*self.readable, *self.scope.bindings.sizes]),
        )

    def _defined_later(self) -> set[str]:
        body = self.scope.item.body
        return {*self.scope.declared, *(target(s).text for s in body if isinstance(s, Statement))}

    def add_read(self, reference: Reference, reads: dict[str, View]) -> None:
        """Add the access of a reference, unless it is there; refuse a second, different one."""
        name = _tensor_name(reference).text
        if name not in self.readable:
            return
        access = self.access(reference)
        if reads.setdefault(name, access) != access:
            _refuse_second_access(reference, reads[name])

    def access(self, reference: Reference) -> View:
        """Return the access of a reference; where the tensor is known, rank and bounds are checked."""
        indices = reference.indices if isinstance(reference, Element) else ()
        space = Space(self.scope.bindings.sizes, self.iterators, frozenset(self.readable))
        name = _tensor_name(reference).text
        made = View(name, tuple(affine(i, space) for i in indices), reference.span)
        tensor = self.readable.get(name) or self.scope.declared.get(name)
        if tensor is not None:
            _check_rank(reference, tensor, len(indices))
            check_bounds(made, tensor, self.iterators, self.domain, [i.span for i in indices])
        return made

    def declared_type(self) -> ElementType | None:
        """Return the type of the tensor that is written, None where it is not declared."""
        tensor = self.scope.declared.get(target(self.part).text)
        return tensor.type if tensor else None

    def values(self, references: list[Reference]) -> Values:
        """Return what the expression may speak of; reads are numbered as they first appear."""
        names = dict.fromkeys(_tensor_name(r).text for r in references)
        positions = {name: k for k, name in enumerate(n for n in names if n in self.readable)}
        return Values(self.readable, positions, self.scope.bindings.types, self.scope.bindings.sizes)

    def written(self, write: View, kind: ElementType) -> Buffer:
        """Return the tensor that is written; where it is not declared, just large enough."""
        if tensor := self.scope.declared.get(write.buffer):
            return tensor
        ranges = [extremes(index, self.domain) for index in write.affine]
        for (least, _), index in zip(ranges, getattr(self.part.write, "indices", ()), strict=True):
            if least < 0:
                _refuse_negative(write.buffer, least, index.span)
        span = target(self.part).span
        made = Buffer.of(write.buffer, kind, tuple(greatest + 1 for _, greatest in ranges), span)
        check_size(made)
        return made


def _tensor_name(reference: Reference) -> Name:
    return reference if isinstance(reference, Name) else reference.tensor


def _check_rank(reference: Reference, tensor: Buffer, count: int) -> None:
    rank = len(tensor.shape)
    if count != rank:
        fail(
            "lair-rank",
            f"`{tensor.name}` has {counted(rank, 'dimension')}, but {count or 'no'} "
            f"{'index' if count == 1 else 'indices'} here",
            reference.span,
            help=f"write `{tensor.name}{''.join(f'[i{k}]' for k in range(rank))}`",
        )


def _refuse_own_output(reference: Reference) -> None:
    name = _tensor_name(reference)
    fail(
        "lair-reads-own-output",
        f"the statement reads `{name.text}`, which it writes",
        reference.span,
        notes=["a tensor is defined by one statement; a reduction initializes and never updates"],
        help="write to a new tensor",
    )


def _refuse_second_access(reference: Reference, first: View) -> None:
    written = f": first `{first.span.text}`" if first.span else ""
    fail(
        "lair-two-accesses",
        f"`{first.buffer}` is accessed in two ways in one statement",
        reference.span,
        label="a different index expression" + written,
        help="pass the tensor a second time under another name, or copy it first",
    )


def _refuse_negative(name: str, least: int, span: Span) -> None:
    fail(
        "lair-out-of-bounds",
        f"index {least} of `{name}` is negative",
        span,
        help="shift the index so that it starts at 0",
    )


def renamed(statement: ir.Statement, name: str) -> ir.Statement:
    """Return the statement under another name."""
    return replace(statement, name=name)
