"""The CSL of one role of PE, from the same tree as its C.

Local arrays are flat; SIMD operands are data structure descriptors (DSDs), whose start is moved with
``@increment_dsd_offset`` where it changes from call to call. What an end of chunk starts is a control task,
whose number follows from the color (``limits.FIRST_CONTROL_TASK``).
Source: wafer-target.md, 2.1, 2.2 and 2.4.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

from polyloom.ir.types import ElementType
from polyloom.polyhedra.loops.generate import IntExpression, Number
from polyloom.wafer.csl_output import text
from polyloom.wafer.csl_output.flat import flattened, padding
from polyloom.wafer.csl_output.limits import input_queue, local_tasks, output_queue
from polyloom.wafer.csl_output.operands import (
    Operand,
    control_task,
    memory_descriptor,
    names_of_each,
    operands_of,
    received_value,
    shaped_first,
    single_element,
)
from polyloom.wafer.csl_output.statements import Statements
from polyloom.wafer.csl_output.text import TYPES, bare, integer
from polyloom.wafer.pe_program.c_names import with_c_names
from polyloom.wafer.pe_program.print_c import plain
from polyloom.wafer.pe_program.tree import (
    Compute,
    Configure,
    ConfigureFabric,
    DataTask,
    Discard,
    IfNextInvocation,
    Invoke,
    LocalTask,
    Node,
    Received,
    RoleCode,
    Send,
    SendEnd,
    SetBase,
    SetValue,
    StoreElement,
    all_nodes,
)


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
        self.operands = {operand.name: operand for operand in operands_of(code)}
        self.statements = Statements(
            arrays=self.arrays,
            counts={declared.name: declared.count for declared in code.operands},
            operands=self.operands,
            shaped_first=shaped_first(code),
            data_tasks={task.queue: task for task in code.data_tasks},
        )

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
            lines.append(f"const {task.end_name}_id = {control_task(task.queue)};")
        for local, number in zip(self.code.local_tasks, self.local_ids, strict=True):
            lines.append(f"const {local.name}_id = @get_local_task_id({number});")
        return "\n".join(lines)

    def _descriptors(self) -> str:
        lines: list[str] = []
        for declared in self.code.operands:
            for name in names_of_each(declared.name, declared.count):
                if name in self.operands:
                    lines += self._descriptor(self.operands[name], declared.comment)
        lines += list(self._single_elements())
        return "\n".join(lines)

    def _descriptor(self, operand: Operand, comment: str) -> Iterator[str]:
        said = f"  // {plain(comment)}" if comment else ""
        if isinstance(operand.setup, ConfigureFabric):
            word = "var" if operand.moves else "const"
            made = self._fabric(
                operand.setup.queue, operand.setup.output, operand.setup.elements, operand.type
            )
            yield f"{word} {operand.name} = {made};{said}"
            return
        made = memory_descriptor(operand.setup, operand.array or "", operand.start)
        if operand.moves:
            yield f"const {operand.name}_start = {made};{said}"
            yield f"var {operand.name} = {operand.name}_start;"
        else:
            yield f"const {operand.name} = {made};{said}"

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
            yield f"const {single_element(queue, kind)} = {self._fabric(queue, False, one, kind)};"
            yield f"var {received_value(queue, kind)}: {TYPES[kind]} = {zero};"
        sends = [node for node in all_nodes(self.code) if isinstance(node, Send)]
        for queue, kind in dict.fromkeys((node.queue, node.type) for node in sends if node.index is None):
            yield f"const {single_element(queue, kind)} = {self._fabric(queue, True, one, kind)};"
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

    def _helpers(self, bodies: str) -> Iterator[str]:
        for name, definition in text.FUNCTIONS.items():
            if re.search(rf"\b{name}\(", bodies):
                yield definition
        for name in dict.fromkeys(re.findall(r"(?<![\w.])([a-z]+_[fi]\d\d)\(", bodies)):
            made = None if name in text.FUNCTIONS else text.helper(name)
            if made is not None:
                yield made

    # Tasks

    def _tasks(self) -> Iterator[str]:
        for task in self.code.data_tasks:
            yield self._data_task(task)
            yield _function(f"task {task.end_name}() void", self.statements.lines(task.end))
        for local in self.code.local_tasks:
            yield self._local_task(local)

    def _data_task(self, task: DataTask) -> str:
        head = f"task {task.name}(data: {TYPES[task.type]}, position: u16) void"
        lines = ["const index: i16 = @as(i16, position);", *self.statements.lines(task.body)]
        used = any(re.search(r"\bindex\b", line) for line in lines[1:])
        return _function(head, lines if used else lines[1:])

    def _local_task(self, task: LocalTask) -> str:
        return _function(f"task {task.name}() void", self.statements.lines(task.body))

    def _compute(self) -> str:
        ready = [n for n in self.code.main if not isinstance(n, Configure | ConfigureFabric | SetBase)]
        lines = [*text.BEGAN, "invocations_left = invocations;", *self.statements.lines(tuple(ready))]
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
