"""The CSL of one role of PE, from the same tree as its C.

Local arrays are flat; SIMD operands are data structure descriptors (DSDs), whose start is moved with
``@increment_dsd_offset`` where it changes from call to call. What an end of chunk starts is a control task,
whose number follows from the color (``limits.FIRST_CONTROL_TASK``).
Source: wafer-target.md, 2.1, 2.2 and 2.4.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from polyloom.diagnostics import Unsupported, error
from polyloom.ir.expressions import Binary, Read
from polyloom.ir.types import ElementType
from polyloom.polyhedra.loops.generate import IntExpression, Name, Number, Operation, names_in, sum_of
from polyloom.wafer.csl_output import text
from polyloom.wafer.csl_output.flat import flattened, padding
from polyloom.wafer.csl_output.limits import FIRST_CONTROL_TASK, input_queue, local_tasks, output_queue
from polyloom.wafer.csl_output.text import TYPES, bare, condition_text, integer, scalar
from polyloom.wafer.machine.instructions import instruction
from polyloom.wafer.pe_program.c_names import with_c_names
from polyloom.wafer.pe_program.print_c import plain
from polyloom.wafer.pe_program.tree import (
    Activate,
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
    LocalTask,
    Node,
    OperandRef,
    Received,
    RoleCode,
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
    all_nodes,
    nodes_in,
)

MOVES = {
    ElementType.FLOAT16: "@fmovh",
    ElementType.FLOAT32: "@fmovs",
    ElementType.INT16: "@mov16",
    ElementType.INT32: "@mov32",
}
"""The builtin that moves one element."""

LARGEST_STRIDE = 127
"""Of a mem1d DSD: a signed byte."""


@dataclass(frozen=True)
class _Operand:
    """A descriptor of memory or of a queue as the setup of a role says it; ``moves``: tasks change it."""

    name: str
    type: ElementType
    setup: Configure | ConfigureFabric
    array: str | None
    start: IntExpression
    moves: bool


def role_file(code: RoleCode, arch: str, data_colors: frozenset[int], prefix: str = "") -> str:
    """Return the CSL file of a role for ``wse2`` or ``wse3``; ``data_colors``: those that start tasks;
    ``prefix``: what the host's names of its arrays begin with.

    Errors: ``Unsupported`` with ``csl-...`` for what CSL, or this printer, cannot say.
    """
    return _Printer(with_c_names(code), arch, data_colors, prefix).file()


class _Printer:
    """Prints one role; what it has are the role's names by their kinds."""

    def __init__(self, code: RoleCode, arch: str, data_colors: frozenset[int], prefix: str) -> None:
        self.prefix = prefix
        self.shapes = {array.name: array.extents for array in code.arrays}
        self.code = code = flattened(code)
        self.arch = arch
        self.arrays = {array.name: array for array in code.arrays}
        self.local_ids = local_tasks(len(code.local_tasks), arch, data_colors, code.name)
        self.data_tasks = {task.queue: task for task in code.data_tasks}
        self.operands = {operand.name: operand for operand in self._operands()}
        self.shaped_first = _shaped_first(code)

    def file(self) -> str:
        bodies = [*self._tasks(), self._compute()]
        parts = [
            "\n".join(f"// {line}" for line in (f"Role {self.code.name}", *self.code.comment)),
            self._parameters("\n".join(bodies)),
            self._memory(),
            self._queues(),
            self._descriptors(),
            text.TIMING,
            *self._helpers("\n".join([self._descriptors(), *bodies])),
            *bodies,
            self._bindings(),
        ]
        return "\n\n".join(part for part in parts if part) + "\n"

    # Declarations

    def _parameters(self, bodies: str) -> str:
        whole = bodies + self._descriptors()
        lines = ["param memcpy_params;"]
        lines += [f"param {name}: i16;" for name in ("PE_X", "PE_Y") if re.search(rf"\b{name}\b", whole)]
        lines += [f"param {queue}_color: color;" for queue in (*self.code.inputs, *self.code.outputs)]
        lines += ["", 'const sys = @import_module("<memcpy/memcpy>", memcpy_params);']
        if "math." in whole:
            lines.append('const math = @import_module("<math>");')
        if "ctrl." in whole:
            lines.append('const ctrl = @import_module("<control>");')
        return "\n".join(lines)

    def _memory(self) -> str:
        lines = []
        for array in self.code.arrays:
            count = math.prod(array.extents)
            kind = TYPES[array.type]
            said = f"// {_shape(self.shapes[array.name])}{plain(array.comment)}"
            aligned, first = "" if array.bank is None else " align(8)", padding(array)
            start = f"@ptrcast([*]{kind}, &{array.name}[{first}])" if first else f"&{array.name}"
            said += f", from {first} on: another bank" if first else ""
            zeros = f"@zeros([{count}]{kind})"
            lines.append(
                f"var {array.name}{f': [{count}]{kind}{aligned}' if aligned else ''} = {zeros};  {said}"
            )
            lines.append(f"var {array.name}_ptr: [*]{kind} = {start};")
        words = {
            n.element.array
            for n in all_nodes(self.code)
            if isinstance(n, SetBase) and n.element.word is not None
        }
        for name in sorted(words):
            count = math.prod(self.arrays[name].extents) * self.arrays[name].type.size // 2
            lines.append(f"const {name}_words = @ptrcast(*[{count}]i16, &{name});")
        lines += [f"var {name}: i16 = 0;" for name in self.code.counters]
        lines.append("var invocations_left: u16 = 0;")
        return "\n".join(lines)

    def _queues(self) -> str:
        lines = []
        for number, queue in enumerate(self.code.inputs):
            lines.append(f"const {queue} = @get_input_queue({input_queue(number)});")
        for number, queue in enumerate(self.code.outputs):
            lines.append(f"const {queue} = @get_output_queue({output_queue(number)});")
        for task in self.code.data_tasks:
            where = f"{task.queue}_color" if self.arch == "wse2" else task.queue
            lines.append(f"const {task.name}_id = @get_data_task_id({where});")
            lines.append(f"const {task.end_name}_id = {_end_id(task.queue)};")
        for local, number in zip(self.code.local_tasks, self.local_ids, strict=True):
            lines.append(f"const {local.name}_id = @get_local_task_id({number});")
        return "\n".join(lines)

    def _descriptors(self) -> str:
        lines: list[str] = []
        for declared in self.code.operands:
            for name in _names(declared.name, declared.count):
                if name in self.operands:
                    lines += self._descriptor(self.operands[name], declared.comment)
        lines += list(self._single_elements())
        return "\n".join(lines)

    def _descriptor(self, operand: _Operand, comment: str) -> Iterator[str]:
        said = f"  // {plain(comment)}" if comment else ""
        if isinstance(operand.setup, ConfigureFabric):
            word = "var" if operand.moves else "const"
            made = self._fabric(
                operand.setup.queue, operand.setup.output, operand.setup.elements, operand.type
            )
            yield f"{word} {operand.name} = {made};{said}"
            return
        made = self._memory_descriptor(operand.setup, operand.array or "", operand.start)
        if operand.moves:
            yield f"const {operand.name}_start = {made};{said}"
            yield f"var {operand.name} = {operand.name}_start;"
        else:
            yield f"const {operand.name} = {made};{said}"

    def _memory_descriptor(self, setup: Configure, array: str, start: IntExpression) -> str:
        sizes, strides = setup.sizes, setup.strides
        if len(sizes) == 1 and abs(strides[0]) > LARGEST_STRIDE:
            sizes, strides = (Number(1), *sizes), (0, *strides)
        form = "mem1d_dsd" if len(sizes) == 1 else "mem4d_dsd"
        iterators = "ijkl"[: len(sizes)]
        terms = [(stride, Name(name)) for stride, name in zip(strides, iterators, strict=True) if stride]
        place = sum_of([*terms, (1, start)])
        extents = ", ".join(map(_extent, sizes))
        access = f"|{','.join(iterators)}|{{{extents}}} -> {array}[{bare(integer(place))}]"
        return f"@get_dsd({form}, .{{ .tensor_access = {access} }})"

    def _fabric(self, queue: str, output: bool, elements: IntExpression, kind: ElementType | None) -> str:
        fields = [f".extent = {bare(integer(elements))}"]
        if output:
            fields += [f".fabric_color = {queue}_color"] if self.arch == "wse2" else []
            fields += [f".output_queue = {queue}"]
        else:
            fields += [f".input_queue = {queue}"]
        if kind is not None and kind.size == 2:
            fields.append(".simd_mode = .{ .simd_off = true }")
        return f"@get_dsd({'fabout' if output else 'fabin'}_dsd, .{{ {', '.join(fields)} }})"

    def _single_elements(self) -> Iterator[str]:
        """Yield descriptors of one element, of what scalar code receives and sends."""
        one = Number(1)
        for queue, kind in self._received_by_scalars():
            zero = "0.0" if kind.is_float else "0"
            yield f"const {self._one(queue, kind)} = {self._fabric(queue, False, one, kind)};"
            yield f"var {self._value(queue, kind)}: {TYPES[kind]} = {zero};"
        sends = [node for node in all_nodes(self.code) if isinstance(node, Send)]
        for queue, kind in dict.fromkeys((node.queue, node.type) for node in sends if node.index is None):
            yield f"const {self._one(queue, kind)} = {self._fabric(queue, True, one, kind)};"
        for queue in dict.fromkeys(node.queue for node in sends if node.index is not None):
            yield f"const {queue}_pair = {self._fabric(queue, True, one, None)};"
        for queue in dict.fromkeys(n.queue for n in all_nodes(self.code) if isinstance(n, SendEnd)):
            made = self._fabric(queue, True, one, None).replace(".extent = 1", ".extent = 1, .control = true")
            yield f"const {queue}_end = {made};"

    def _received_by_scalars(self) -> Sequence[tuple[str, ElementType]]:
        values = (
            v for node in all_nodes(self.code) for compute in _computes(node) for _, v in compute.values
        )
        return tuple(dict.fromkeys((v.queue, v.type) for v in values if isinstance(v, Received)))

    def _one(self, queue: str, kind: ElementType) -> str:
        """Return the descriptor of one element of a queue, which may carry elements of several types."""
        return f"{queue}_one_{TYPES[kind]}"

    def _value(self, queue: str, kind: ElementType) -> str:
        """Return the variable that takes an element of a queue."""
        return f"{queue}_value_{TYPES[kind]}"

    def _helpers(self, bodies: str) -> Iterator[str]:
        for name, definition in text.FUNCTIONS.items():
            if re.search(rf"\b{name}\(", bodies):
                yield definition
        for name in dict.fromkeys(re.findall(r"(?<![\w.])([a-z]+_[fi]\d\d)\(", bodies)):
            made = None if name in text.FUNCTIONS else text.helper(name)
            if made is not None:
                yield made

    def _operands(self) -> Iterator[_Operand]:
        """Yield the operands with their setup: by ``main``, or by the first task that configures them."""
        counts = {declared.name: declared.count for declared in self.code.operands}
        kinds = _operand_types(self.code)
        setups: dict[str, Configure | ConfigureFabric] = {}
        arrays: dict[str, str] = {}
        starts: dict[str, IntExpression] = {}
        in_main = list(nodes_in(self.code.main))
        for node in all_nodes(self.code):
            for name, each in self._of_each(node, counts):
                if isinstance(each, Configure | ConfigureFabric):
                    setups.setdefault(name, each)
                elif isinstance(each, ConfigureRun):
                    setups.setdefault(name, Configure(OperandRef(name), (Number(1),), (1,)))
                elif isinstance(each, SetBase):
                    arrays.setdefault(name, self._array_of(each.element))
                    if node in in_main:
                        starts[name] = self._flat(each.element)
        moved = {
            name
            for node in self._in_tasks()
            for name, each in self._of_each(node, counts)
            if not (isinstance(each, Configure | ConfigureFabric) and each == setups[name])
        }
        for name, setup in ((name, _declared(setup)) for name, setup in setups.items()):
            lowest = _first(setup.sizes, setup.strides) if isinstance(setup, Configure) else Number(0)
            start = starts.get(name, lowest)
            moves = name in moved or setup != setups[name]
            kind, array = kinds[name], arrays.get(name)
            yield _Operand(name=name, type=kind, setup=setup, array=array, start=start, moves=moves)

    def _in_tasks(self) -> Iterator[Node]:
        for task in self.code.data_tasks:
            yield from nodes_in((*task.body, *task.end))
        for local in self.code.local_tasks:
            yield from nodes_in(local.body)

    def _of_each(self, node: Node, counts: Mapping[str, int]) -> Iterator[tuple[str, Node]]:
        """Yield what a node does to an operand, for each of several that it may be, with its own name."""
        if isinstance(node, Configure | ConfigureFabric | ConfigureRun | SetBase | SetLength):
            operand = node.operand
            match = re.fullmatch(r"(\w+)", operand.selector or "")
            if operand.selector is None:
                yield operand.name, node
            elif operand.selector.isdigit():
                name = f"{operand.name}_{operand.selector}"
                yield name, replace(node, operand=OperandRef(name))
            elif match is not None:
                for k in range(counts[operand.name]):
                    name = f"{operand.name}_{k}"
                    yield name, replace(node, operand=OperandRef(name))

    # Tasks

    def _tasks(self) -> Iterator[str]:
        for task in self.code.data_tasks:
            yield self._data_task(task)
            yield _function(f"task {task.end_name}() void", self._lines(task.end))
        for local in self.code.local_tasks:
            yield self._local_task(local)

    def _data_task(self, task: DataTask) -> str:
        head = f"task {task.name}(data: {TYPES[task.type]}, position: u16) void"
        lines = ["const index: i16 = @as(i16, position);", *self._lines(task.body)]
        used = any(re.search(r"\bindex\b", line) for line in lines[1:])
        return _function(head, lines if used else lines[1:])

    def _local_task(self, task: LocalTask) -> str:
        return _function(f"task {task.name}() void", self._lines(task.body))

    def _compute(self) -> str:
        ready = [n for n in self.code.main if not isinstance(n, Configure | ConfigureFabric | SetBase)]
        lines = [*text.BEGAN, "invocations_left = invocations;", *self._lines(tuple(ready))]
        if not any(isinstance(node, IfNextInvocation) for node in all_nodes(self.code)):
            lines.append("ended();")
        return _function("fn compute(invocations: u16) void", lines)

    def _bindings(self) -> str:
        lines = []
        for task in self.code.data_tasks:
            lines.append(f"@bind_data_task({task.name}, {task.name}_id);")
            lines.append(f"@bind_control_task({task.end_name}, {task.end_name}_id);")
            lines.append(f"@block({task.name}_id);")
            lines.append(f"@block({task.end_name}_id);")
        lines += [f"@bind_local_task({local.name}, {local.name}_id);" for local in self.code.local_tasks]
        for queue in self.code.inputs:
            lines.append(f"@initialize_queue({queue}, .{{ .color = {queue}_color }});")
        if self.arch == "wse3":
            for queue in self.code.outputs:
                lines.append(f"@initialize_queue({queue}, .{{ .color = {queue}_color }});")
        lines += [f'@export_symbol({name}_ptr, "{self.prefix}{name}");' for name in self.arrays]
        lines += [f'@export_symbol({name}_ptr, "{name}");' for name in text.STAMPS]
        lines.append('@export_symbol(compute, "compute");')
        return "comptime {\n" + "\n".join(f"  {line}" for line in lines) + "\n}"

    # Statements

    def _lines(self, code: Code) -> list[str]:
        lines: list[str] = []
        plain_nodes = [node for node in code if not isinstance(node, Cost)]
        for selector, group in groupby(plain_nodes, _selector_of):
            nodes = tuple(group)
            made = (line for node in nodes for line in self._node(node))
            lines += made if selector is None else self._selected(selector, nodes)
        return lines

    def _inside(self, code: Code) -> list[str]:
        return [f"  {line}" for line in self._lines(code)]

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
                yield from self._operation(_resolved(node, ""))

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
            yield f"@mov32({node.queue}_end, ctrl.encode_control_task_payload({_end_id(node.queue)}));"
            return
        yield from self._given(node.value)
        if node.index is None:
            yield f"{MOVES[node.type]}({self._one(node.queue, node.type)}, {self._scalar(node.value)});"
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
        counts = {declared.name: declared.count for declared in self.code.operands}
        count = max(counts[r.name] for node in nodes for r in _references(node) if r.selector)
        for k in reversed(range(count)):
            if k == count - 1:
                yield f"if ({selector} == {k}) {{"
            else:
                yield f"}} else if ({selector} == {k}) {{" if k else "} else {"
            for node in nodes:
                yield from (f"  {line}" for line in self._operation(_resolved(node, str(k))))
        yield "}"

    def _operation(self, node: Node) -> Iterator[str]:
        match node:
            case Configure(operand=OperandRef(name=name)) | ConfigureFabric(operand=OperandRef(name=name)):
                yield from self._configured(node, self.operands[name])
            case SetBase(operand=OperandRef(name=name), element=element):
                kind = TYPES[self.operands[name].type]
                if name in self.shaped_first:
                    based = f"@set_dsd_base_addr({name}, {element.array})"
                    by = self._flat(element)
                    yield f"{name} = @increment_dsd_offset({based}, {bare(integer(by))}, {kind});"
                    return
                by = sum_of([(1, self._flat(element)), (-1, self.operands[name].start)])
                yield f"{name} = @increment_dsd_offset({name}_start, {bare(integer(by))}, {kind});"
            case ConfigureRun(operand=OperandRef(name=name), length=length, stride=stride):
                yield f"{name} = @set_dsd_length({name}, @as(u16, {bare(integer(length))}));"
                yield f"{name} = @set_dsd_stride({name}, @as(i8, {bare(integer(stride))}));"
            case SetLength(operand=OperandRef(name=name), length=length):
                yield f"{name} = @set_dsd_length({name}, @as(u16, {bare(integer(length))}));"
            case Invoke():
                yield from self._invoke(node)
            case _:
                raise _cannot(f"`{type(node).__name__}`")

    def _configured(self, node: Configure | ConfigureFabric, operand: _Operand) -> Iterator[str]:
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
            raise _cannot("a descriptor changes its number of dimensions while the program runs")
        if len(node.sizes) > 1 or node.strides != setup.strides:
            made = self._memory_descriptor(node, operand.array or "", operand.start)
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
                one, taken = self._one(value.queue, value.type), self._value(value.queue, value.type)
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
                    reads[position] = self._value(queue, kind)
        queues = [value.queue for _, value in compute.values if isinstance(value, Received)]
        if len(queues) > len(set(queues)):
            raise _cannot("one expression receives two elements of a queue")
        return bare(scalar(compute.expression, reads))

    def _element(self, element: Element) -> str:
        return f"{element.array}[{bare(integer(self._flat(element)))}]"

    def _array_of(self, element: Element) -> str:
        """Return the flat array that an element of a descriptor lies in: itself, or its 16-bit words."""
        return element.array if element.word is None else f"{element.array}_words.*"

    def _flat(self, element: Element) -> IntExpression:
        """Return the place of an element in its flat array, or of a word of it among all words."""
        place: IntExpression = Number(0)
        for subscript, extent in zip(element.subscripts, self.arrays[element.array].extents, strict=True):
            place = sum_of([(extent, place), (1, subscript)])
        if element.word is None:
            return place
        words = self.arrays[element.array].type.size // 2
        return sum_of([(words, place), (1, Number(element.word))])


def _declared(setup: Configure | ConfigureFabric) -> Configure | ConfigureFabric:
    """Return a setup that can stand in a declaration: of one element, where its size is known later only."""
    sizes = setup.sizes if isinstance(setup, Configure) else (setup.elements,)
    if all(names_in(size) <= _KNOWN for size in sizes):
        return setup
    if isinstance(setup, ConfigureFabric):
        return replace(setup, elements=Number(1))
    return replace(setup, sizes=tuple(s if names_in(s) <= _KNOWN else Number(1) for s in sizes))


def _shaped_first(code: RoleCode) -> frozenset[str]:
    """Return the operands that a task gives a form and then a place, which must leave the form as it is."""
    found: set[str] = set()
    for body in (*((*task.body, *task.end) for task in code.data_tasks), *(t.body for t in code.local_tasks)):
        shaped: set[str] = set()
        for node in nodes_in(body):
            if isinstance(node, Configure | ConfigureRun | SetLength):
                shaped.add(node.operand.name)
            elif isinstance(node, SetBase) and node.element.word is None and node.operand.selector is None:
                found |= {node.operand.name} & shaped
    return frozenset(found)


_KNOWN = frozenset(("PE_X", "PE_Y"))


def _extent(size: IntExpression) -> str:
    """Return a size of a descriptor, which is computed in i16 where it is known at run time only."""
    text = bare(integer(size))
    return text if names_in(size) <= _KNOWN else f"@as(u16, {text})"


def _first(sizes: Sequence[IntExpression], strides: Sequence[int]) -> IntExpression:
    """Return how far the first element lies behind the lowest one: what runs backwards begins at its end."""
    back = [(-stride, size) for size, stride in zip(sizes, strides, strict=True) if stride < 0]
    return sum_of([*back, (1, Number(sum(stride for stride in strides if stride < 0)))])


def _end_id(queue: str) -> str:
    return f"@get_control_task_id({FIRST_CONTROL_TASK} + @get_int({queue}_color))"


def _names(name: str, count: int) -> Sequence[str]:
    return (name,) if count == 1 else tuple(f"{name}_{k}" for k in range(count))


def _shape(extents: Sequence[int]) -> str:
    return f"[{']['.join(map(str, extents))}] " if len(extents) > 1 else ""


def _function(head: str, lines: Sequence[str]) -> str:
    return f"{head} {{\n" + "".join(f"  {line}\n" for line in lines) + "}"


def _computes(node: Node) -> Iterator[Compute]:
    match node:
        case SetValue(value=value) | StoreElement(value=value) | Send(value=value) | Discard(value=value):
            yield value
        case Invoke(sources=sources):
            yield from (source for source in sources if isinstance(source, Compute))
        case _:
            return


def _references(node: Node) -> Iterator[OperandRef]:
    if isinstance(node, Configure | ConfigureFabric | ConfigureRun | SetBase | SetLength):
        yield node.operand
    elif isinstance(node, Invoke):
        yield node.destination
        yield from (source for source in node.sources if isinstance(source, OperandRef))


def _selector_of(node: Node) -> str | None:
    """Return the variable that selects a node's operands among several; None where nothing does."""
    selectors = {r.selector for r in _references(node) if r.selector and not r.selector.isdigit()}
    if len(selectors) > 1:
        raise _cannot("one instruction selects its operands by several variables")
    return next(iter(selectors), None)


def _resolved(node: Node, selected: str) -> Node:
    """Return a node whose operands are single ones: those of several have a number at the end."""

    def single(reference: OperandRef) -> OperandRef:
        if reference.selector is None:
            return reference
        number = reference.selector if reference.selector.isdigit() else selected
        return OperandRef(f"{reference.name}_{number}")

    if isinstance(node, Configure | ConfigureFabric | ConfigureRun | SetBase | SetLength):
        return replace(node, operand=single(node.operand))
    if isinstance(node, Invoke):
        sources = tuple(single(s) if isinstance(s, OperandRef) else s for s in node.sources)
        return replace(node, destination=single(node.destination), sources=sources)
    return node


def _operand_types(code: RoleCode) -> dict[str, ElementType]:
    """Return the element type of each operand, from the instructions that use it."""
    counts = {declared.name: declared.count for declared in code.operands}
    found: dict[str, ElementType] = {}
    for node in all_nodes(code):
        if isinstance(node, Invoke):
            entry = instruction(node.instruction)
            pairs = [(node.destination, entry.destination), *zip(node.sources, entry.sources, strict=True)]
            for reference, kind in pairs:
                if isinstance(reference, OperandRef):
                    for name in _names(reference.name, counts[reference.name]):
                        found[name] = kind
    return found


def _cannot(what: str) -> Unsupported:
    helps = ["the layer runs on our simulator all the same: `--target wafer`"]
    return Unsupported(error("csl-form", f"no CSL is printed for this yet: {what}", helps=helps))
