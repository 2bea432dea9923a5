"""The rules of programs, checked: what a front end or a pass must never break, whatever parameters are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from polyloom.ir.host import (
    Assignment,
    Buffer,
    Combiner,
    Copy,
    HostNode,
    HostProgram,
    Index,
    MdHom,
    Nest,
    Order,
    Role,
    View,
)
from polyloom.ir.integers import OPERATORS, names_in_tree
from polyloom.ir.node_names import shared_names
from polyloom.ir.program import Program
from polyloom.ir.statements import Statement
from polyloom.ir.types import ElementType
from polyloom.ir.verification.expressions import expression_faults
from polyloom.ir.verification.tensor_programs import tensor_faults
from polyloom.polyhedra.loops.tree import (
    Branch,
    Instance,
    IntExpression,
    Loop,
    Operation,
    Tree,
    leaves_in,
    names_in,
)


class InvalidProgram(Exception):
    """A program breaks the IR's rules: a fault of Polyloom, never of its user."""


def verify(program: HostProgram) -> None:
    """Raise ``InvalidProgram`` naming every broken rule; otherwise do nothing.

    A tensor program also has its form (``tensor_faults``).
    """
    faults = list(_faults(program))
    if not faults and isinstance(program, Program):
        faults = list(tensor_faults(program))
    if faults:
        raise InvalidProgram(f"program {program.name}: " + "; ".join(faults))


def _faults(program: HostProgram) -> Iterator[str]:
    names = [b.name for b in program.buffers]
    yield from (f"two buffers `{n}`" for n in sorted({n for n in names if names.count(n) > 1}))
    known = _Known({b.name: b for b in program.buffers}, frozenset(p.name for p in program.parameters))
    yield from (f for b in program.buffers for f in _buffer(b, known))
    if not isinstance(program, Program):
        yield from (f"`{b.name}` has a first value" for b in program.buffers if b.start is not None)
    yield from _integers((program.context,) if program.context else (), known, "the context")
    yield from _nodes(program.body, known)
    yield from (f"different nodes are called `{name}`" for name in shared_names(program))


@dataclass(frozen=True)
class _Known:
    """What may be spoken of at a place: buffers, and integers by name."""

    buffers: dict[str, Buffer]
    names: frozenset[str]

    def with_names(self, names: Iterable[str]) -> _Known:
        return replace(self, names=self.names | {*names})


def _buffer(buffer: Buffer, known: _Known) -> Iterator[str]:
    yield from _integers((*buffer.shape, *(buffer.rows or ())), known, f"the shape of `{buffer.name}`")
    if buffer.type is ElementType.BOOL:
        yield f"`{buffer.name}` has type bool"


def _integers(expressions: Iterable[IntExpression], known: _Known, where: str) -> Iterator[str]:
    for expression in expressions:
        unknown = sorted(names_in(expression) - known.names)
        yield from (f"{where} speaks of `{n}`, which is not known there" for n in unknown)
        strange = sorted({*_operators(expression)} - OPERATORS)
        yield from (f"{where} uses `{o}`, which is no integer operator" for o in strange)


def _operators(expression: IntExpression) -> Iterator[str]:
    if isinstance(expression, Operation):
        yield expression.operator
        for operand in expression.operands:
            yield from _operators(operand)


def _nodes(nodes: Sequence[HostNode], known: _Known) -> Iterator[str]:
    for node in nodes:
        match node:
            case Loop():
                yield from _loop(node, known)
            case Branch(condition=condition, body=body, otherwise=otherwise):
                yield from _integers((condition,), known, "a host branch")
                yield from _nodes((*body, *otherwise), known)
            case Copy():
                yield from _copy(node, known)
            case MdHom():
                yield from (f"{node.name}: {fault}" for fault in _md_hom(node, known))
            case Nest():
                yield from (f"{node.name}: {fault}" for fault in _nest(node, known))


def _loop(loop: Loop[HostNode], known: _Known) -> Iterator[str]:
    if loop.iterator in known.names:
        yield f"two things are called `{loop.iterator}`"
    inner = known.with_names([loop.iterator])
    yield from _integers((loop.start,), known, f"the start of `{loop.iterator}`")
    yield from _integers((loop.condition, loop.step), inner, f"the loop over `{loop.iterator}`")
    yield from _nodes(loop.body, inner)


def _copy(copy: Copy, known: _Known) -> Iterator[str]:
    ends = [known.buffers.get(name) for name in (copy.source, copy.target)]
    if None in ends:
        yield f"a copy from `{copy.source}` to `{copy.target}`, one of which there is not"
    elif len({(b.type, b.shape) for b in ends if b}) != 1:
        yield f"`{copy.source}` and `{copy.target}` differ in type or shape"
    elif ends[1] and ends[1].role is Role.INPUT:
        yield f"the input `{copy.target}` is written"


def _md_hom(node: MdHom, known: _Known) -> Iterator[str]:
    dimensions, outputs = len(node.iterators), len(node.outputs)
    if not dimensions == len(node.extents) == len(node.combine):
        yield f"{dimensions} iterators, {len(node.extents)} extents, {len(node.combine)} combine operators"
        return
    if not outputs == len(node.terms) == len(node.initial) == len(node.finish):
        yield f"{outputs} outputs with {len(node.terms)} terms, {len(node.initial)} starts"
        return
    yield from _iterators(node.iterators, known)
    yield from _integers(node.extents, known, "an extent")
    inside = known.with_names(node.iterators)
    conditions = [c for c in (node.guard, node.written) if c is not None]
    yield from _integers(conditions, inside, "a condition")
    reads = _read_types(node.inputs, known)
    for view in (*node.inputs, *node.outputs):
        yield from _view(view, node.inputs, dimensions, known)
    yield from _combining(node, known)
    yield from _functions(node, reads, known)
    yield from _outputs(node, known)


def _iterators(iterators: Sequence[str], known: _Known) -> Iterator[str]:
    for name in sorted({n for n in iterators if iterators.count(n) > 1 or n in known.names}):
        yield f"two things are called `{name}`"


def _read_types(views: Sequence[View], known: _Known) -> list[ElementType | None]:
    return [known.buffers[v.buffer].type if v.buffer in known.buffers else None for v in views]


def _view(view: View, inputs: Sequence[View], dimensions: int, known: _Known) -> Iterator[str]:
    buffer = known.buffers.get(view.buffer)
    if buffer is None:
        yield f"there is no buffer `{view.buffer}`"
        return
    if len(view.indices) != len(buffer.shape):
        yield f"{len(view.indices)} indices for `{view.buffer}` of rank {len(buffer.shape)}"
    for index in view.indices:
        if isinstance(index, Index):
            if len(index.coefficients) != dimensions:
                yield f"{len(index.coefficients)} coefficients for {dimensions} iterators"
            yield from _integers((index.offset,), known, f"an index of `{view.buffer}`")
        elif index.type.is_float or index.type is ElementType.BOOL:
            yield f"an index of `{view.buffer}` is {index.type.value}"
        else:
            yield from expression_faults(index, _read_types(inputs, known), dimensions, known.names)


def _functions(node: MdHom, reads: list[ElementType | None], known: _Known) -> Iterator[str]:
    dimensions = len(node.iterators)
    results: list[ElementType | None] = [t.type for t in node.terms]
    targets = _read_types(node.outputs, known)
    for term, start, finish, target in zip(node.terms, node.initial, node.finish, targets, strict=True):
        yield from expression_faults(term, reads, dimensions, known.names)
        if start is not None:
            yield from expression_faults(start, reads, dimensions, known.names)
            if start.type is not term.type:
                yield f"a reduction of {term.type.value} starts from {start.type.value}"
        if finish is not None:
            yield from expression_faults(finish, [*reads, *results], dimensions, known.names)
        stored = (finish or term).type
        if target is not None and stored is not target:
            yield f"{stored.value} is stored as {target.value}"


def _combining(node: MdHom, known: _Known) -> Iterator[str]:
    """Each operator has what its order asks for, and fits the terms."""
    kinds = [t.type for t in node.terms]
    for operator in node.combine:
        combines = operator.order in (Order.POINTWISE, Order.PREFIX)
        if combines != (operator.combiner is not None):
            yield f"`{operator.order.value}` with{'out' if combines else ''} a combiner"
        if operator.combiner is not None:
            yield from _combiner(operator.combiner, kinds, known)
    if all(o.combiner is None for o in node.combine) and any(e is not None for e in node.initial):
        yield "a start without a reduction"


def _combiner(combiner: Combiner, kinds: list[ElementType], known: _Known) -> Iterator[str]:
    if not len(combiner.results) == len(combiner.neutral) == len(kinds):
        yield f"`{combiner.name}` combines {len(combiner.results)} values, not {len(kinds)}"
        return
    for result, kind in zip(combiner.results, kinds, strict=True):
        yield from expression_faults(result, [*kinds, *kinds], 0, known.names)
        if result.type is not kind:
            yield f"`{combiner.name}` gives {result.type.value} of {kind.value}"


def _outputs(node: MdHom, known: _Known) -> Iterator[str]:
    """An affine output view keeps to the dimensions that are kept; one that is computed selects anything.

    That of a statement may use all: where it reduces, points meet in one element.
    """
    reduces = not isinstance(node, Statement)
    reduced_axes = [k for k, o in enumerate(node.combine) if reduces and o.order is Order.POINTWISE]
    for view in node.outputs:
        if view.buffer in known.buffers and known.buffers[view.buffer].role is Role.INPUT:
            yield f"the input `{view.buffer}` is written"
        affine = [i for i in view.indices if isinstance(i, Index)]
        if len(affine) < len(view.indices):
            continue
        for index in affine:
            if any(any(index.coefficients[k : k + 1]) for k in reduced_axes):
                yield f"the view of `{view.buffer}` uses a dimension that is reduced"


def _nest(node: Nest, known: _Known) -> Iterator[str]:
    if len(node.iterators) != len(node.extents):
        yield f"{len(node.iterators)} iterators for {len(node.extents)} extents"
    yield from _iterators(node.iterators, known)
    yield from _integers(node.extents, known, "an extent")
    private = {b.name: b for b in node.private}
    inside = replace(known.with_names(node.iterators), buffers={**known.buffers, **private})
    yield from (f for b in node.private for f in _buffer(b, known))
    unknown = sorted(names_in_tree(node.body) - inside.names)
    yield from (f"the body speaks of `{n}`, which is not known there" for n in unknown)
    arities = {a.name: len(a.iterators) for a in node.assignments}
    for instance in leaves_in(node.body):
        if arities.get(instance.statement) != len(instance.arguments):
            yield f"no assignment `{instance.statement}` of {len(instance.arguments)} iterators"
    around = _loops_around(node.body)
    for assignment in node.assignments:
        there = inside.with_names(around.get(assignment.name, frozenset()))
        yield from (f"{assignment.name}: {fault}" for fault in _assignment(assignment, there))


def _loops_around(tree: Tree, outer: frozenset[str] = frozenset()) -> dict[str, frozenset[str]]:
    """Return for each assignment the iterators of the loops around all of its instances."""
    found: dict[str, frozenset[str]] = {}
    for part in tree:
        inner: dict[str, frozenset[str]]
        match part:
            case Loop(iterator=iterator, body=body):
                inner = _loops_around(body, outer | {iterator})
            case Branch(body=body, otherwise=otherwise):
                inner = _loops_around((*body, *otherwise), outer)
            case Instance(statement=statement):
                inner = {statement: outer}
        for name, names in inner.items():
            found[name] = found.get(name, names) & names
    return found


def _assignment(assignment: Assignment, known: _Known) -> Iterator[str]:
    dimensions = len(assignment.iterators)
    reads = _read_types(assignment.reads, known)
    for view in (*assignment.reads, assignment.target):
        yield from _view(view, assignment.reads, dimensions, known)
    yield from expression_faults(assignment.value, reads, dimensions, known.names)
    target = known.buffers.get(assignment.target.buffer)
    if target is not None and target.type is not assignment.value.type:
        yield f"{assignment.value.type.value} is stored as {target.type.value}"
    if target is not None and target.role is Role.INPUT:
        yield f"the input `{target.name}` is written"
    if assignment.condition is not None:
        yield from expression_faults(assignment.condition, reads, dimensions, known.names)
        if assignment.condition.type is not ElementType.BOOL:
            yield "a condition that is no truth value"
