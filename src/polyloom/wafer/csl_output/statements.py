"""The CSL of what a role's tasks do: loops, branches, scalar assignments, descriptors and instructions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby

from polyloom.ir.expressions import Binary, Read
from polyloom.ir.types import ElementType
from polyloom.polyhedra.loops.generate import Name, Number, Operation, sum_of
from polyloom.wafer.csl_output.flat import place
from polyloom.wafer.csl_output.operands import (
    Operand,
    control_task,
    memory_descriptor,
    received_value,
    references,
    resolved,
    selector_of,
    single_element,
)
from polyloom.wafer.csl_output.text import TYPES, bare, cannot, condition_text, integer, scalar
from polyloom.wafer.pe_program.tree import (
    Activate,
    ArrayDeclaration,
    Block,
    Code,
    Compute,
    Configure,
    ConfigureFabric,
    ConfigureRun,
    Cost,
    CountDown,
    CountUp,
    DataTask,
    Discard,
    Element,
    For,
    If,
    IfNextInvocation,
    Invoke,
    Node,
    OperandRef,
    Received,
    Scope,
    Send,
    SendEnd,
    SetBase,
    SetInteger,
    SetLength,
    SetValue,
    StoreElement,
    Unblock,
    Variable,
)

MOVES = {
    ElementType.FLOAT16: "@fmovh",
    ElementType.FLOAT32: "@fmovs",
    ElementType.INT16: "@mov16",
    ElementType.INT32: "@mov32",
}
"""The builtin that moves one element."""


@dataclass(frozen=True)
class Statements:
    """Prints code of one role, over flat arrays."""

    arrays: Mapping[str, ArrayDeclaration]
    counts: Mapping[str, int]
    operands: Mapping[str, Operand]
    shaped_first: frozenset[str]
    data_tasks: Mapping[str, DataTask]

    def lines(self, code: Code) -> list[str]:
        """Return the lines of some code, those inside of others indented."""
        lines: list[str] = []
        plain_nodes = [node for node in code if not isinstance(node, Cost)]
        for selector, group in groupby(plain_nodes, selector_of):
            nodes = tuple(group)
            made = (line for node in nodes for line in self._node(node))
            lines += made if selector is None else self._selected(selector, nodes)
        return lines

    def _inside(self, code: Code) -> list[str]:
        return [f"  {line}" for line in self.lines(code)]

    def _node(self, node: Node) -> Iterator[str]:
        match node:
            case If(condition=condition, body=body, otherwise=otherwise):
                yield f"if {condition_text(condition)} {{"
                yield from self._inside(body)
                if otherwise:
                    yield "} else {"
                    yield from self._inside(otherwise)
                yield "}"
            case For():
                yield from self._for(node)
            case Scope(body=body):
                yield from ("{", *self._inside(body), "}")
            case SetInteger(variable=variable, value=value, declare=declare):
                named = f"const {variable}: i16" if declare else variable
                yield f"{named} = {bare(integer(value))};"
            case SetValue(variable=variable, type=kind, value=value):
                yield from self._given(value)
                yield f"const {variable}: {TYPES[kind]} = {self._scalar(value)};"
            case StoreElement():
                yield from self._store(node)
            case Discard(value=value):
                yield from self._given(value)
            case Activate(task=task):
                yield f"@activate({task}_id);"
            case Block(queue=queue) | Unblock(queue=queue):
                yield from self._blocked(queue, "@block" if isinstance(node, Block) else "@unblock")
            case CountDown(counter=counter, body=body):
                yield f"{counter} -= 1;"
                yield from (f"if ({counter} == 0) {{", *self._inside(body), "}")
            case CountUp(counter=counter, limit=limit, body=body):
                yield f"{counter} += 1;"
                yield from (
                    f"if ({counter} == {integer(limit)}) {{",
                    f"  {counter} = 0;",
                    *self._inside(body),
                    "}",
                )
            case IfNextInvocation(body=body):
                yield "invocations_left -= 1;"
                yield from ("if (invocations_left > 0) {", *self._inside(body), "} else {")
                yield from ("  ended();", "}")
            case Send() | SendEnd():
                yield from self._send(node)
            case _:
                yield from self._operation(resolved(node, ""))

    def _store(self, node: StoreElement) -> Iterator[str]:
        """Yield an assignment, ``a += b`` where an element is changed by something else."""
        yield from self._given(node.value)
        values = dict(node.value.values)
        match node.value.expression:
            case Binary(op=op, left=Read(position=k), right=right) if values[
                k
            ] == node.target and op.name in ("+", "-", "*"):
                changed = replace(node.value, expression=right)
                yield f"{self._element(node.target)} {op.name}= {self._scalar(changed)};"
            case _:
                yield f"{self._element(node.target)} = {self._scalar(node.value)};"

    def _for(self, node: For) -> Iterator[str]:
        start, step = bare(integer(node.start)), bare(integer(node.step))
        match node.condition:
            case Operation(operator="<" | "<=" as sign, operands=(Name(name=name), stop)) if (
                name == node.iterator
            ):
                end = stop if sign == "<" else sum_of([(1, stop), (1, Number(1))])
                yield f"for (@range(i16, {start}, {bare(integer(end))}, {step})) |{node.iterator}| {{"
                yield from (*self._inside(node.body), "}")
            case condition:
                yield "{"
                yield f"  var {node.iterator}: i16 = {start};"
                yield f"  while {condition_text(condition)} : ({node.iterator} += {step}) {{"
                yield from (f"  {line}" for line in self._inside(node.body))
                yield from ("  }", "}")

    def _blocked(self, queue: str, word: str) -> Iterator[str]:
        task = self.data_tasks[queue]
        yield f"{word}({task.name}_id);"
        yield f"{word}({task.end_name}_id);"

    def _send(self, node: Send | SendEnd) -> Iterator[str]:
        if isinstance(node, SendEnd):
            yield f"@mov32({node.queue}_end, ctrl.encode_control_task_payload({control_task(node.queue)}));"
            return
        yield from self._given(node.value)
        if node.index is None:
            yield f"{MOVES[node.type]}({single_element(node.queue, node.type)}, {self._scalar(node.value)});"
            return
        kind = TYPES[node.type]
        zero = "0.0" if node.type.is_float else "0"
        position = f"@as(u32, @as(u16, {bare(integer(node.index))}))"
        yield "{"
        yield f"  const value: {kind} = {self._scalar(node.value)};"
        yield f"  if (value != {zero}) {{"
        yield f"    @mov32({node.queue}_pair, {position} << 16 | @as(u32, @bitcast(u16, value)));"
        yield from ("  }", "}")

    def _selected(self, selector: str, nodes: Code) -> Iterator[str]:
        """Yield what is done to operands of which a variable selects one: a branch for each.

        The last one comes first: the largest of several sizes, which is the most frequent one.
        """
        count = max(self.counts[r.name] for node in nodes for r in references(node) if r.selector)
        for k in reversed(range(count)):
            if k == count - 1:
                yield f"if ({selector} == {k}) {{"
            else:
                yield f"}} else if ({selector} == {k}) {{" if k else "} else {"
            for node in nodes:
                yield from (f"  {line}" for line in self._operation(resolved(node, str(k))))
        yield "}"

    def _operation(self, node: Node) -> Iterator[str]:
        match node:
            case Configure(operand=OperandRef(name=name)) | ConfigureFabric(operand=OperandRef(name=name)):
                yield from self._configured(node, self.operands[name])
            case SetBase(operand=OperandRef(name=name), element=element):
                kind = TYPES[self.operands[name].type]
                if name in self.shaped_first:
                    based = f"@set_dsd_base_addr({name}, {element.array})"
                    by = place(element, self.arrays)
                    yield f"{name} = @increment_dsd_offset({based}, {bare(integer(by))}, {kind});"
                    return
                by = sum_of([(1, place(element, self.arrays)), (-1, self.operands[name].start)])
                yield f"{name} = @increment_dsd_offset({name}_start, {bare(integer(by))}, {kind});"
            case ConfigureRun(operand=OperandRef(name=name), length=length, stride=stride):
                yield f"{name} = @set_dsd_length({name}, @as(u16, {bare(integer(length))}));"
                yield f"{name} = @set_dsd_stride({name}, @as(i8, {bare(integer(stride))}));"
            case SetLength(operand=OperandRef(name=name), length=length):
                yield f"{name} = @set_dsd_length({name}, @as(u16, {bare(integer(length))}));"
            case Invoke():
                yield from self._invoke(node)
            case _:
                raise cannot(f"`{type(node).__name__}`")

    def _configured(self, node: Configure | ConfigureFabric, operand: Operand) -> Iterator[str]:
        """Configure an operand anew, where a task gives it another form than its declaration."""
        if node == operand.setup:
            return
        if isinstance(node, ConfigureFabric):
            length = bare(integer(node.elements))
            yield f"{operand.name} = @set_dsd_length({operand.name}, @as(u16, {length}));"
            return
        setup = operand.setup
        assert isinstance(setup, Configure)
        if len(node.sizes) != len(setup.sizes):
            raise cannot("a descriptor changes its number of dimensions while the program runs")
        if len(node.sizes) > 1 or node.strides != setup.strides:
            made = memory_descriptor(node, operand.array or "", operand.start)
            yield f"{operand.name} = {made};"
            return
        yield f"{operand.name} = @set_dsd_length({operand.name}, @as(u16, {bare(integer(node.sizes[0]))}));"

    def _invoke(self, node: Invoke) -> Iterator[str]:
        for source in node.sources:
            if isinstance(source, Compute):
                yield from self._given(source)
        sources = [s.name if isinstance(s, OperandRef) else self._scalar(s) for s in node.sources]
        options = [] if node.then is None else [f".{{ .async = true, .activate = {node.then}_id }}"]
        yield f"@{node.instruction}({', '.join([node.destination.name, *sources, *options])});"

    def _given(self, compute: Compute) -> Iterator[str]:
        """Yield what receives the elements of queues that an expression reads."""
        for _, value in compute.values:
            if isinstance(value, Received):
                one, taken = single_element(value.queue, value.type), received_value(value.queue, value.type)
                yield f"{MOVES[value.type]}(&{taken}, {one});"

    def _scalar(self, compute: Compute) -> str:
        reads = {}
        for position, value in compute.values:
            match value:
                case Element():
                    reads[position] = self._element(value)
                case Variable(name=name):
                    reads[position] = name
                case Received(queue=queue, type=kind):
                    reads[position] = received_value(queue, kind)
        queues = [value.queue for _, value in compute.values if isinstance(value, Received)]
        if len(queues) > len(set(queues)):
            raise cannot("one expression receives two elements of a queue")
        return bare(scalar(compute.expression, reads))

    def _element(self, element: Element) -> str:
        return f"{element.array}[{bare(integer(place(element, self.arrays)))}]"
