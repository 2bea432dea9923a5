"""Host programs as tensor programs, where they are: C for the back ends that place tensors, the wafer's.

Updated buffers become tensors that are written once: ``C_in`` is what the caller gives, ``C`` what the last
write leaves, ``C_1``, ``C_2`` what lies between. A reduction that starts from a value, or that a map
finishes, becomes two statements, the second named ``S_end``:

    C[i][j] = beta * C[i][j] + sum(A[i][k] * B[k][j])

    S_sum[i][j] += A[i][k] * B[k][j]        statement S
    C[i][j] = beta * C_in[i][j] + S_sum[i][j]       statement S_end

A buffer that was filled with the neutral element is what a reduction starts from anyway.

Not in the papers: neither says how an updated array becomes one that is written once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from polyloom.diagnostics import Span
from polyloom.ir.conversion.statements_of_md_hom import Parts, check_form, number, refuse
from polyloom.ir.evaluation.inputs import shape_of
from polyloom.ir.evaluation.uninitialised import garbage
from polyloom.ir.expressions import Constant, Expression, Read
from polyloom.ir.host import Buffer, Copy, HostNode, HostProgram, Index, MdHom, Nest, Role, View
from polyloom.ir.naming import fresh
from polyloom.ir.program import Program
from polyloom.ir.reductions import Combine, neutral
from polyloom.ir.relations import first_unwritten, first_written_twice
from polyloom.ir.statements import Statement, kept_points
from polyloom.ir.transform.unused_statements import without_unused
from polyloom.ir.verification.passes import at_the_end
from polyloom.ir.verification.references import Expected, NDArray, Reference
from polyloom.polyhedra.loops.tree import Branch, Loop, leaves_in


def tensor_program(program: HostProgram) -> Program:
    """Return the tensor program of a host program whose parameters are known (``specialise``).

    Errors: ``Unsupported`` with ``tensor-...`` for the first thing that a tensor program has not: a value
    for each parameter, host loops, nests, scans, computed indices, arrays that are written in part.
    """
    if program.parameters:
        names = ", ".join(p.name for p in program.parameters)
        refuse("parameter", f"the sizes {names} are not known", None, "give them: `--param NAME=NUMBER`")
    writer = _Writer(program)
    for node in program.body:
        writer.write(node)
    if not writer.statements:
        refuse("empty", f"`{program.name}` computes nothing", None, "give sizes for which something is done")
    return at_the_end("making a tensor program", without_unused(writer.program()))


def input_tensors(program: HostProgram) -> dict[str, str]:
    """Return the buffers that a caller gives, by the names of the tensors that hold what is given."""
    names = {b.name for b in program.buffers}
    return {b.name if b.role is Role.INPUT else fresh(f"{b.name}_in", names): b.name for b in program.given}


def tensor_reference(
    program: HostProgram, parameters: Mapping[str, int], reference: Reference, tensors: Program
) -> Reference:
    """Return the reference of a host program as one of ``tensors``, its tensor program for these parameters.

    It takes tensors by name. What the tensor program does not read holds garbage, and what it does not write
    is expected only where it changes.
    """
    names = input_tensors(program)

    def results(_: Mapping[str, int], given: Mapping[str, NDArray]) -> Expected:
        outer = [b for b in program.buffers if b.role is not Role.LOCAL]
        arrays = {b.name: garbage(shape_of(b, parameters), b.type) for b in outer}
        arrays |= {names[tensor]: array for tensor, array in given.items()}
        found = reference(parameters, arrays)
        changed = {n: a for n, a in found.arrays.items() if a.tobytes() != arrays[n].tobytes()}
        wanted = {name: found.arrays.get(name, arrays[name]) for name in tensors.outputs}
        return replace(found, arrays={**changed, **wanted})

    return results


@dataclass
class _Writer:
    """Collects statements; the builder of this module and its one mutable value."""

    source: HostProgram
    statements: list[Statement] = field(default_factory=list)
    tensors: dict[str, Buffer] = field(default_factory=dict)
    current: dict[str, str] = field(default_factory=dict)
    """The tensor that holds what a buffer contains now."""
    constants: dict[str, Constant] = field(default_factory=dict)
    """Tensors all of whose elements are one constant."""

    def __post_init__(self) -> None:
        for name, buffer in input_tensors(self.source).items():
            self._define(self.source.buffer(buffer), name)

    def _define(self, buffer: Buffer, name: str) -> str:
        shape = tuple(number(n, f"the shape of `{buffer.name}`", buffer.span) for n in buffer.shape)
        self.tensors[name] = Buffer.of(name, buffer.type, shape, buffer.span)
        self.current[buffer.name] = name
        return name

    def write(self, node: HostNode) -> None:
        """Add the statements of a host node."""
        match node:
            case MdHom():
                self._md_hom(node)
            case Copy(source=source, target=target):
                self._copy(source, target)
            case Loop(iterator=iterator):
                message = f"the loop over `{iterator}` stays sequential"
                refuse("loop", message, _first_span(node.body), "tensor programs have no loops over time")
            case Branch(body=body):
                refuse("branch", "a condition on a host iterator", _first_span(body), "compute without it")
            case Nest(name=name, span=span):
                message = f"`{name}` is a sequential program at each point"
                refuse("nest", message, span, "tensor programs have statements without order only")

    def _copy(self, source: str, target: str) -> None:
        held = self.tensors[self.current[source]]
        units = tuple(Index.unit(k, len(held.extents)) for k in range(len(held.extents)))
        name = self._define(self.source.buffer(target), self._fresh(target))
        statement = Statement.of(
            f"copy_{name}",
            tuple(f"i{k}" for k in range(len(held.extents))),
            held.extents,
            (View(held.name, units),),
            View(name, units),
            Read(0, held.type),
        )
        self.statements.append(statement)

    def _fresh(self, buffer: str) -> str:
        taken = {*self.tensors, *(b.name for b in self.source.buffers)}
        number = sum(1 for s in self.statements if s.write.buffer.startswith(f"{buffer}_")) + 1
        return fresh(f"{buffer}_{number}", taken)

    def _md_hom(self, node: MdHom) -> None:
        check_form(node)
        parts = Parts(node, self.current)
        (view,) = node.outputs
        buffer = self.source.buffer(view.buffer)
        before = self.current.get(buffer.name)
        start = self._start(parts)
        if start is None and node.finish[0] is None:
            self._add(parts.statement(view.buffer), buffer, before)
            return
        self._add_in_two(parts, start, buffer, before)

    def _start(self, parts: Parts) -> Expression | None:
        """Return what the reduction starts from; None for the neutral element."""
        start, reduction = parts.node.initial[0], parts.reduction
        if start is None or reduction is Combine.CONCATENATE:
            return None
        known = self._constant_of(start, parts)
        usual = neutral(reduction, start.type)
        return None if known is not None and known.value == usual else start

    def _constant_of(self, expression: Expression, parts: Parts) -> Constant | None:
        match expression:
            case Constant():
                return expression
            case Read(position=k):
                return self.constants.get(parts.accesses[k].buffer)
            case _:
                return None

    def _add(self, statement: Statement, buffer: Buffer, before: str | None) -> None:
        """Add a statement that gives a buffer its next contents."""
        name = self._define(buffer, self._fresh(buffer.name))
        written = statement.changed(write=replace(statement.write, buffer=name))
        complete = self._complete(written, self.tensors[name], before)
        self.statements.append(complete)
        if isinstance(complete.expression, Constant) and complete.reduction is Combine.CONCATENATE:
            self.constants[name] = complete.expression

    def _complete(self, statement: Statement, tensor: Buffer, before: str | None) -> Statement:
        """Return a statement that leaves all elements as the host program does, also those it does not write.

        They must all be written, or have been the value that an initializing reduction gives them.
        """
        kept = _writing(statement)
        if first_written_twice(kept) is not None:
            refuse("twice", f"`{statement.name}` writes an element twice", statement.span, "write it once")
        if first_unwritten(kept, tensor) is None:
            return statement
        held = None if before is None else self.constants.get(before)
        reduction = statement.reduction
        if reduction is Combine.CONCATENATE:
            reduction = Combine.ADD
        if held is None or held.value != neutral(reduction, tensor.type):
            message = f"`{statement.name}` writes a part of an array, of which the rest is kept"
            refuse("part", message, statement.span, "write whole arrays, or into one that was set to 0")
        return statement.changed(reduction=reduction)

    def _add_in_two(self, parts: Parts, start: Expression | None, buffer: Buffer, before: str | None) -> None:
        """Add the reduction into a tensor of its own, then the map from it."""
        taken = {*self.tensors, *(b.name for b in self.source.buffers)}
        middle = fresh(f"{parts.node.name}_sum", taken)
        reduction = parts.reduced_to(middle)
        shape = tuple(parts.extents[k] for k in parts.kept)
        self.tensors[middle] = Buffer.of(middle, reduction.expression.type, shape)
        self.statements.append(reduction)
        self._add(parts.finishing(middle, start), buffer, before)

    def program(self) -> Program:
        """Return the program: last contents of outputs and updated buffers under the buffers' names."""
        results = [b.name for b in self.source.buffers if b.role in (Role.OUTPUT, Role.UPDATED)]
        last = {self.current[n]: n for n in results if n in self.current}
        last = {old: new for old, new in last.items() if self._defined(old)}
        rename = {**{name: name for name in self.tensors}, **last}
        tensors = tuple(replace(t, name=rename[t.name]) for t in self.tensors.values())
        body = tuple(_renamed(s, rename) for s in self.statements)
        written = {s.write.buffer for s in body}
        inputs = tuple(t.name for t in tensors if t.name not in written)
        return Program.of(self.source.name, tensors, inputs, tuple(last.values()), body)

    def _defined(self, tensor: str) -> bool:
        return any(s.write.buffer == tensor for s in self.statements)


def _renamed(statement: Statement, rename: Mapping[str, str]) -> Statement:
    reads = tuple(replace(a, buffer=rename[a.buffer]) for a in statement.reads)
    return statement.changed(
        reads=reads, write=replace(statement.write, buffer=rename[statement.write.buffer])
    )


def _writing(statement: Statement) -> Statement:
    """Return the instances that write: the guard counts for a plain ``=`` only."""
    kept = kept_points(statement)
    return kept if statement.reduction is Combine.CONCATENATE else kept.changed(conditions=())


def _first_span(nodes: tuple[HostNode, ...]) -> Span | None:
    return next((n.span for n in leaves_in(nodes) if not isinstance(n, Copy)), None)
