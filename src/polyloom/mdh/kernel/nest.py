"""OpenCL C for a ``Nest``: one work-item per point of its dimensions, its sequential body inside.

extents, body, assignments -> one kernel. With no dimension the kernel is the sequential program itself, run
by one work-item: the form of a host program that always exists.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from polyloom.ir.expressions import Expression, ParameterValue, Read, walk
from polyloom.ir.host import Assignment, Buffer, HostProgram, Index, Nest, View
from polyloom.ir.integers import names_in_tree
from polyloom.ir.types import ElementType
from polyloom.mdh.device.devices import DeviceKind, DeviceModel
from polyloom.mdh.kernel.launch import (
    Argument,
    BufferArgument,
    IntegerArgument,
    Kernel,
    Launch,
    Temporary,
    TemporaryArgument,
)
from polyloom.mdh.print.helpers import helper_functions
from polyloom.mdh.print.names import c_names
from polyloom.mdh.print.values import (
    Leaves,
    expression_c,
    integer_c,
    load,
    memory_type,
    store,
    value_type,
)
from polyloom.polyhedra.loops.tree import (
    Branch,
    Instance,
    IntExpression,
    Loop,
    Name,
    Number,
    Operation,
    Tree,
    iterators_in,
    names_in,
    product_of,
    sum_of,
)

_PRIVATE_BYTES = 4096
"""A private array of a work-item that is larger than this lies in global memory."""


def emit_nest(node: Nest, program: HostProgram, device: DeviceModel) -> Launch:
    """Return the kernel of a nest of ``program``."""
    writer = _Writer(node, program)
    local = _local_size(node, device)
    kernel = Kernel(
        source=writer.source,
        name=writer.kernel_name,
        arguments=writer.arguments,
        global_size=_rounded_up(_grid(node), local),
        local_size=tuple(Number(n) for n in local),
    )
    return Launch((kernel,), writer.temporaries)


def _grid(node: Nest) -> tuple[IntExpression, ...]:
    """Return how many points each dimension of the launch has: the last iterator first, at most three."""
    inner = tuple(reversed(node.extents[-2:]))
    outer = node.extents[:-2]
    return (*inner, product_of(outer)) if outer else inner or (Number(1),)


def _local_size(node: Nest, device: DeviceModel) -> tuple[int, ...]:
    """Return how many work-items share a work-group: along the innermost dimension alone."""
    if not node.extents:
        return (1,)
    most = min(8 if device.kind is DeviceKind.CPU else 64, device.max_group_size)
    innermost = node.extents[-1]
    if isinstance(innermost, Number):
        most = min(most, max(1, innermost.value))
    return (most, *(1 for _ in _grid(node)[1:]))


def _rounded_up(sizes: Sequence[IntExpression], local: Sequence[int]) -> tuple[IntExpression, ...]:
    return tuple(_multiple(size, step) for size, step in zip(sizes, local, strict=True))


def _multiple(size: IntExpression, step: int) -> IntExpression:
    if isinstance(size, Number):
        return Number(-(-size.value // step) * step)
    if step == 1:
        return size
    groups = Operation("floor", (sum_of([(1, size), (1, Number(step - 1))]), Number(step)))
    return Operation("*", (groups, Number(step)))


@dataclass(frozen=True, eq=False)
class _Writer:
    """Everything about one kernel's text; a name of the program is asked for once."""

    node: Nest
    program: HostProgram

    @cached_property
    def by_name(self) -> Mapping[str, Assignment]:
        return {assignment.name: assignment for assignment in self.node.assignments}

    @cached_property
    def private(self) -> Mapping[str, Buffer]:
        return {buffer.name: buffer for buffer in self.node.private}

    @cached_property
    def integers(self) -> tuple[str, ...]:
        """The parameters and host iterators that the kernel needs."""
        found: dict[str, None] = {}
        for expression in self._integer_expressions():
            found |= dict.fromkeys(sorted(names_in(expression)))
        found |= dict.fromkeys(sorted(names_in_tree(self.node.body)))
        for scalar in self._scalar_expressions():
            found |= dict.fromkeys(e.name for e in walk(scalar) if isinstance(e, ParameterValue))
        bound = {*self.node.iterators, *iterators_in(self.node.body)}
        return tuple(name for name in found if name not in bound)

    def _integer_expressions(self) -> Iterator[IntExpression]:
        yield from self.node.extents
        for name in self.buffers:
            yield from self.buffer(name).shape[0 if name in self.private else 1 :]
        for view in self._views():
            yield from (index.offset for index in view.indices if isinstance(index, Index))

    def _scalar_expressions(self) -> Iterator[Expression]:
        for assignment in self.node.assignments:
            yield assignment.value
            if assignment.condition is not None:
                yield assignment.condition
        for view in self._views():
            yield from (index for index in view.indices if not isinstance(index, Index))

    def _views(self) -> Iterator[View]:
        for assignment in self.node.assignments:
            yield assignment.target
            yield from assignment.reads

    @cached_property
    def buffers(self) -> tuple[str, ...]:
        """All buffers that the kernel touches, private ones too."""
        return tuple(dict.fromkeys(view.buffer for view in self._views()))

    def buffer(self, name: str) -> Buffer:
        return self.private[name] if name in self.private else self.program.buffer(name)

    @cached_property
    def written(self) -> frozenset[str]:
        return frozenset(assignment.target.buffer for assignment in self.node.assignments)

    @cached_property
    def kernel_name(self) -> str:
        return c_names([self.node.name])[self.node.name]

    @cached_property
    def integer_names(self) -> Mapping[str, str]:
        """C names of parameters, host iterators, and iterators of the nest and its loops."""
        loops = tuple(dict.fromkeys(iterators_in(self.node.body)))
        return c_names((*self.integers, *self.node.iterators, *loops), (self.kernel_name, "rest"))

    @cached_property
    def buffer_names(self) -> Mapping[str, str]:
        return c_names(self.buffers, (self.kernel_name, "rest", *self.integer_names.values()))

    @cached_property
    def spilled(self) -> tuple[Buffer, ...]:
        """Private arrays that are too large for a work-item, or of unknown size."""
        return tuple(b for b in self.node.private if b.name in self.buffers and not _fits(b))

    @cached_property
    def temporaries(self) -> tuple[Temporary, ...]:
        return tuple(
            Temporary(b.name, b.type, product_of((*self.node.extents, *b.shape))) for b in self.spilled
        )

    @cached_property
    def arguments(self) -> tuple[Argument, ...]:
        shared = [BufferArgument(name) for name in self.buffers if name not in self.private]
        spilled = [TemporaryArgument(b.name) for b in self.spilled]
        return (*shared, *spilled, *(IntegerArgument(Name(name)) for name in self.integers))

    @cached_property
    def source(self) -> str:
        body = "\n".join([*self._start(), *self._tree(self.node.body, 1)])
        text = f"__kernel void {self.kernel_name}({self._parameters()})\n{{\n{body}\n}}\n"
        pragma = "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n\n" if "double" in text else ""
        return pragma + helper_functions(text) + text

    @cached_property
    def read(self) -> frozenset[str]:
        """The buffers that are read; ``restrict`` is wrong there if they are written, too (LLVM 14)."""
        return frozenset(view.buffer for a in self.node.assignments for view in a.reads)

    def _parameters(self) -> str:
        texts = []
        for argument in self.arguments:
            match argument:
                case BufferArgument(buffer=name):
                    constant = "" if name in self.written else "const "
                    alone = "" if name in self.written & self.read else "restrict "
                    kind = memory_type(self.buffer(name).type)
                    texts.append(f"__global {constant}{kind} *{alone}{self.buffer_names[name]}")
                case TemporaryArgument(temporary=name):
                    kind = memory_type(self.buffer(name).type)
                    texts.append(f"__global {kind} *all_{self.buffer_names[name]}")
                case IntegerArgument(value=Name(name=name)):
                    texts.append(f"long {self.integer_names[name]}")
        return (",\n" + " " * len(f"__kernel void {self.kernel_name}(")).join(texts)

    def _start(self) -> Iterator[str]:
        """Yield declarations: where in the nest the work-item is, and what it has for itself."""
        yield from self._point()
        for buffer in self.private.values():
            if buffer.name in self.buffers and _fits(buffer):
                yield f"    {_declaration(buffer, self.buffer_names[buffer.name])};"
        for buffer in self.spilled:
            yield f"    {self._own_part(buffer)};"

    def _point(self) -> Iterator[str]:
        names = [self.integer_names[i] for i in self.node.iterators]
        extents = [integer_c(e, self.integer_names) for e in self.node.extents]
        for axis, (name, extent) in enumerate(list(zip(names, extents, strict=True))[:-3:-1]):
            yield f"    long {name} = get_global_id({axis});"
            yield f"    if ({name} >= {extent}) return;"
        if len(names) > 2:
            yield from _divided("get_global_id(2)", names[:-2], extents[:-2])

    def _own_part(self, buffer: Buffer) -> str:
        """Declare a pointer to the part of a temporary that belongs to this work-item."""
        point: IntExpression = Number(0)
        for iterator, extent in zip(self.node.iterators, self.node.extents, strict=True):
            point = sum_of([(1, product_of((point, extent))), (1, Name(iterator))])
        offset = integer_c(product_of((point, *buffer.shape)), self.integer_names)
        name = self.buffer_names[buffer.name]
        return f"__global {memory_type(buffer.type)} *{name} = all_{name} + {offset}"

    def _tree(self, tree: Tree, depth: int) -> Iterator[str]:
        margin = "    " * depth
        for node in tree:
            match node:
                case Loop(iterator=iterator, start=start, condition=condition, step=step, body=body):
                    i = self.integer_names[iterator]
                    first, last = self._integer(start), self._integer(condition)
                    yield f"{margin}for (long {i} = {first}; {last}; {_stepped(i, self._integer(step))}) {{"
                    yield from self._tree(body, depth + 1)
                    yield margin + "}"
                case Branch(condition=condition, body=body, otherwise=otherwise):
                    yield f"{margin}if ({self._integer(condition)}) {{"
                    yield from self._tree(body, depth + 1)
                    if otherwise:
                        yield margin + "} else {"
                        yield from self._tree(otherwise, depth + 1)
                    yield margin + "}"
                case Instance(statement=statement, arguments=arguments):
                    yield from (margin + line for line in self._instance(statement, arguments))

    def _integer(self, expression: IntExpression) -> str:
        return integer_c(expression, self.integer_names)

    def _instance(self, statement: str, arguments: Sequence[IntExpression]) -> Iterator[str]:
        at = _At(self, self.by_name[statement], tuple(arguments))
        if at.assignment.condition is None:
            yield at.store()
            return
        yield f"if ({at.text(at.assignment.condition)})"
        yield "    " + at.store()


@dataclass(frozen=True, eq=False)
class _At:
    """One instance of an assignment: its iterators have the values ``arguments``."""

    writer: _Writer
    assignment: Assignment
    arguments: tuple[IntExpression, ...]

    def store(self) -> str:
        target = self.assignment.target
        buffer = self.writer.buffer(target.buffer)
        value = self.text(self.assignment.value)
        name = self.writer.buffer_names[buffer.name]
        if _is_variable(buffer, self.writer):
            return f"{name} = {value};"
        if buffer.name in self.writer.private and _fits(buffer):
            return f"{name}[{self._position(target, buffer)}] = {value};"
        return store(name, self._position(target, buffer), value, buffer.type)

    def text(self, expression: Expression) -> str:
        """Return an expression in C at this instance."""
        used = sorted({e.position for e in walk(expression) if isinstance(e, Read)})
        iterators = [_operand(self.writer._integer(a)) for a in self.arguments]
        parameters = self.writer.integer_names
        return expression_c(expression, Leaves({k: self._read(k) for k in used}, iterators, parameters))

    def _read(self, position: int) -> str:
        view = self.assignment.reads[position]
        buffer = self.writer.buffer(view.buffer)
        name = self.writer.buffer_names[buffer.name]
        if _is_variable(buffer, self.writer):
            return name
        if buffer.name in self.writer.private and _fits(buffer):
            return f"{name}[{self._position(view, buffer)}]"
        return load(name, self._position(view, buffer), buffer.type)

    def _position(self, view: View, buffer: Buffer) -> str:
        """Return the place of an element in memory, row by row."""
        if all(isinstance(index, Index) for index in view.indices):
            return self.writer._integer(_flat([self._affine(i) for i in view.indices], buffer.shape))
        text = ""
        for index, extent in zip(view.indices, buffer.shape, strict=True):
            step = f"({text}) * ({self.writer._integer(extent)}) + " if text else ""
            text = step + f"({self._index(index)})"
        return text

    def _index(self, index: Index | Expression) -> str:
        if isinstance(index, Index):
            return self.writer._integer(self._affine(index))
        return self.text(index)

    def _affine(self, index: Index | Expression) -> IntExpression:
        assert isinstance(index, Index)
        terms = list(zip(index.coefficients, self.arguments, strict=True))
        return sum_of([(c, a) for c, a in terms if c] + [(1, index.offset)])


def _operand(text: str) -> str:
    return text if text.isidentifier() or text.isdecimal() else f"({text})"


def _flat(indices: Sequence[IntExpression], shape: Sequence[IntExpression]) -> IntExpression:
    """Return ``(i * m + j) * n + k`` for an element [i][j][k] of an array [l][m][n]."""
    if not indices:
        return Number(0)
    place = indices[0]
    for index, extent in zip(indices[1:], shape[1:], strict=True):
        place = Operation("+", (Operation("*", (place, extent)), index))
    return place


def _stepped(iterator: str, step: str) -> str:
    return f"{iterator}++" if step == "1" else f"{iterator} += {step}"


def _divided(linear: str, names: Sequence[str], extents: Sequence[str]) -> Iterator[str]:
    """Yield declarations that take a linear number apart, the last name fastest."""
    yield f"    long rest = {linear};"
    for name, extent in zip(reversed(names[1:]), reversed(extents[1:]), strict=True):
        yield f"    long {name} = rest % ({extent});"
        yield f"    rest /= {extent};"
    yield f"    long {names[0]} = rest;"


def _fits(buffer: Buffer) -> bool:
    """Return whether a private array can be declared inside the kernel."""
    sizes = [extent.value for extent in buffer.shape if isinstance(extent, Number)]
    return len(sizes) == len(buffer.shape) and prod(sizes) * buffer.type.size <= _PRIVATE_BYTES


def _is_variable(buffer: Buffer, writer: _Writer) -> bool:
    return not buffer.shape and buffer.name in writer.private


def _declaration(buffer: Buffer, name: str) -> str:
    """Return a private array or variable; halves are held as floats."""
    kind = value_type(buffer.type if buffer.type is not ElementType.BOOL else ElementType.INT32)
    if not buffer.shape:
        return f"{kind} {name}"
    count = prod(extent.value for extent in buffer.shape if isinstance(extent, Number))
    return f"{kind} {name}[{max(1, count)}]"
