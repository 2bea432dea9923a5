"""The C that is emitted: one file for each role of PE, and one that says which PE has which role and routes.

The names are those of the slides of dtg_codegen: ``main``, ``configure``, ``set_base_address``,
``invoke_simd``, ``handle(uint16_t index, half data)``. What the words mean is in the simulator's ``pe.h``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from polyloom.ir.types import ElementType
from polyloom.polyhedra.loops.generate import IntExpression, Name, Number, Operation
from polyloom.wafer.machine.scalar_c import C_TYPES, scalar_code
from polyloom.wafer.pe_program.c_names import with_c_names
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
    TurnSwitches,
    Unblock,
    Value,
    Variable,
    array_offsets,
)

_PRECEDENCE = {
    "?": 1,
    "or": 2,
    "and": 3,
    "==": 5,
    "<": 6,
    "<=": 6,
    ">": 6,
    ">=": 6,
    "+": 7,
    "-": 7,
    "*": 8,
    "/": 8,
    "%": 8,
}
_SPELLING = {"and": "&&", "or": "||"}
INTEGERS_H = """\
/* Integer functions that loop bounds and subscripts use. */
#ifndef INTEGERS_H
#define INTEGERS_H
static inline int floord(int a, int b) { return (a >= 0) ? a / b : -((b - 1 - a) / b); }
static inline int min(int a, int b) { return a < b ? a : b; }
static inline int max(int a, int b) { return a > b ? a : b; }
#endif
"""


def integer_text(expression: IntExpression, outer: int = 0, leading: bool = True) -> str:
    """Return an integer expression in C, with the brackets it needs inside an operator of a precedence.

    ``leading``: whether nothing stands before it inside its brackets; a sign needs brackets elsewhere.
    """
    match expression:
        case Number(value=value):
            return str(value) if value >= 0 or leading else f"({value})"
        case Name(name=name):
            return name
        case Operation(operator="floor", operands=(a, b)):
            return f"floord({integer_text(a)}, {integer_text(b)})"
        case Operation(operator=("min" | "max") as function, operands=operands):
            text = integer_text(operands[-1])
            for operand in reversed(operands[:-1]):
                text = f"{function}({integer_text(operand)}, {text})"
            return text
        case Operation(operator="?", operands=(c, a, b)):
            text = f"{integer_text(c, 2)} ? {integer_text(a, 2)} : {integer_text(b, 1)}"
            return f"({text})" if outer > 1 else text
        case Operation(operator="-", operands=(a,)):
            text = f"-{integer_text(a, 9, leading=False)}"
            return text if leading else f"({text})"
        case Operation(operator=operator, operands=operands):
            return _infix(operator, operands, outer, leading)


def _infix(operator: str, operands: tuple[IntExpression, ...], outer: int, leading: bool) -> str:
    own = _PRECEDENCE[operator]
    bracketed = own < outer or (outer == _PRECEDENCE["or"] and operator == "and")
    sign = _SPELLING.get(operator, operator)
    first, *rest = operands
    text = integer_text(first, own, leading or bracketed)
    for operand in rest:
        text += f" {sign} {integer_text(operand, own + 1, leading=own < _PRECEDENCE['+'])}"
    return f"({text})" if bracketed else text


def role_file(code: RoleCode) -> str:
    """Return the C file of one role."""
    code = with_c_names(code)
    title = "\n".join(f"/* {line} */" for line in (f"Role {code.name}", *code.comment))
    parts = [
        _memory(code),
        _queues(code),
        _operands(code),
        _forward(code),
        *(text for task in code.data_tasks for text in _data_task(task)),
        *(_local_task(task) for task in code.local_tasks),
        _main(code),
        _role(code),
    ]
    body = "\n\n".join(part for part in parts if part) + "\n"
    return f"{title}\n\n{includes('pe.h', body)}\n\n{body}"


def includes(header: str, body: str) -> str:
    """Return the ``#include`` lines of a file: its header, and ``integers.h`` where the body calls it."""
    headers = [header, "integers.h"] if re.search(r"\b(floord|min|max)\(", body) else [header]
    return "\n".join(f'#include "{name}"' for name in headers)


def _memory(code: RoleCode) -> str:
    fields = list(_arrays(code.arrays))
    fields += [f"  uint16_t {name};" for name in code.counters] or ([] if fields else ["  uint16_t unused;"])
    names = [array.name for array in code.arrays] + list(code.counters)
    lines = ["struct memory {", *fields, "};", "#define MEMORY ((struct memory *)self->memory)"]
    lines += [f"#define {name} (MEMORY->{name})" for name in names]
    return "\n".join(lines)


def _arrays(arrays: Sequence[ArrayDeclaration]) -> Iterator[str]:
    """Yield the fields; a gap before an array that starts in a bank of its own is a field, too."""
    end = 0
    for number, (array, offset) in enumerate(zip(arrays, array_offsets(arrays), strict=True)):
        gap = (offset - end) // 2
        if gap and array.bank is not None:
            yield f"  uint16_t gap_{number}[{gap}];   /* the next one starts in another bank */"
        yield _array(array)
        end = offset + array.bytes


def _array(array: ArrayDeclaration) -> str:
    extents = "".join(f"[{n}]" for n in array.extents)
    return f"  {C_TYPES[array.type]} {array.name}{extents};   /* {plain(array.comment)} */"


def plain(text: str) -> str:
    """Drop the brackets that isl puts around whole elements of a tuple: ``y[(i - 8)]``."""
    return re.sub(rf"(?:(?<=\[)|(?<=, ))\(({_BALANCED})\)(?=[,\]])", r"\1", text)


_BALANCED = r"(?:[^()]|\((?:[^()]|\([^()]*\))*\))*"


def _queues(code: RoleCode) -> str:
    lines = []
    if code.inputs:
        lines.append(f"enum {{ {', '.join(code.inputs)} }};   /* input queues */")
    if code.outputs:
        lines.append(f"enum {{ {', '.join(code.outputs)} }};   /* output queues */")
    return "\n".join(lines)


def _operands(code: RoleCode) -> str:
    lines: list[str] = []
    number = 0
    for declared in code.operands:
        comment = f"   /* {plain(declared.comment)} */" if declared.comment else ""
        if declared.count == 1:
            lines.append(f"static const operand {declared.name} = {{{number}}};{comment}")
        else:
            numbers = ", ".join(f"{{{number + k}}}" for k in range(declared.count))
            lines.append(f"static const operand {declared.name}[{declared.count}] = {{{numbers}}};{comment}")
        number += declared.count
    return "\n".join(lines)


def operand_count(code: RoleCode) -> int:
    """Return the number of operand descriptors of a role."""
    return sum(declared.count for declared in code.operands)


def _forward(code: RoleCode) -> str:
    return "\n".join(f"static void {task.name}(void);" for task in code.local_tasks)


def _data_task(task: DataTask) -> Iterator[str]:
    parameters = f"uint16_t index, {C_TYPES[task.type]} data"
    yield _function(task.name, parameters, task.body)
    yield _function(task.end_name, "void", task.end)


def _local_task(task: LocalTask) -> str:
    return _function(task.name, "void", task.body)


def _main(code: RoleCode) -> str:
    arrays = "".join(f"  array({array.name});\n" for array in code.arrays)
    body = "".join(f"  {line}\n" for line in _lines(code.main))
    return f"static void main(void) {{\n{arrays}{body}}}"


def _function(name: str, parameters: str, body: Code) -> str:
    lines = "".join(f"  {line}\n" for line in _lines(body))
    return f"static void {name}({parameters}) {{\n{lines}}}"


_FORMS = {ElementType.FLOAT16: "SPARSE_HALF", ElementType.INT16: "SPARSE_INT16"}


def _role(code: RoleCode) -> str:
    by_queue = {task.queue: task for task in code.data_tasks}
    inputs = []
    for queue in code.inputs:
        task = by_queue.get(queue)
        handled = f"{_FORMS[task.type]}({task.name}), .end = {task.end_name}" if task else "0"
        handled += ", .blocking = true" if task and task.blocking else ""
        inputs.append(f"[{queue}] = {{ {handled} }}")
    tasks = [f"{'BLOCKING' if t.blocking else 'LOCAL'}({t.name})" for t in code.local_tasks]
    fields = [
        ".memory_bytes = sizeof(struct memory)",
        f".operands = {operand_count(code)}",
        ".main = main",
    ]
    if inputs:
        fields.append(f".inputs = {{ {', '.join(inputs)} }}")
    fields.append(f".tasks = {{ {', '.join(tasks)} }}")
    joined = ",\n  ".join(fields)
    return f"ROLE({code.name},\n  {joined})"


def _lines(code: Code) -> Iterator[str]:
    for node in code:
        yield from _PRINTERS[type(node)](node)


def _indented(code: Code) -> Iterator[str]:
    for line in _lines(code):
        yield f"  {line}"


def element_text(element: Element) -> str:
    """Return ``y_local[0][2 + index]``."""
    return element.array + "".join(f"[{integer_text(s)}]" for s in element.subscripts)


def _value_text(value: Value) -> str:
    match value:
        case Element():
            return f"load({element_text(value)})"
        case Variable(name=name):
            return name
        case Received(queue=queue, type=element):
            return f"receive({C_TYPES[element]}, {queue})"


def _compute_text(compute: Compute) -> str:
    texts = {position: _value_text(value) for position, value in compute.values}
    return without_brackets(scalar_code(compute.expression, texts))


def without_brackets(text: str) -> str:
    """Drop brackets around a whole text."""
    if not text.startswith("(") or not text.endswith(")"):
        return text
    depth = 0
    for k, character in enumerate(text):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth == 0 and k + 1 < len(text):
            return text
    return text[1:-1]


def _cost(node: Cost) -> Iterator[str]:
    names = ("operations", "loads", "stores", "multiplications", "iterations", "branches")
    fields = [f".{name} = {getattr(node, name)}" for name in names if getattr(node, name)]
    if fields:
        yield f"cost({', '.join(fields)});"


def _if(node: If) -> Iterator[str]:
    yield f"if ({integer_text(node.condition)}) {{"
    yield from _indented(node.body)
    if node.otherwise:
        yield "} else {"
        yield from _indented(node.otherwise)
    yield "}"


def _for(node: For) -> Iterator[str]:
    start, condition = integer_text(node.start), integer_text(node.condition)
    step = f"{node.iterator}++" if node.step == Number(1) else f"{node.iterator} += {integer_text(node.step)}"
    yield f"for (int {node.iterator} = {start}; {condition}; {step}) {{"
    yield from _indented(node.body)
    yield "}"


def _set_integer(node: SetInteger) -> Iterator[str]:
    yield f"{'const int ' if node.declare else ''}{node.variable} = {integer_text(node.value)};"


def _set_value(node: SetValue) -> Iterator[str]:
    yield f"const {C_TYPES[node.type]} {node.variable} = {_compute_text(node.value)};"


def _store(node: StoreElement) -> Iterator[str]:
    yield f"store({element_text(node.target)}, {_compute_text(node.value)});"


def _send(node: Send) -> Iterator[str]:
    text = _compute_text(node.value)
    if node.index is None:
        yield f"send({node.queue}, {text});"
        return
    yield "{"
    yield f"  const {C_TYPES[node.type]} value = {text};"
    yield "  cost(.branches = 1);"
    yield f"  if (value != 0) send_sparse({node.queue}, {integer_text(node.index)}, value);"
    yield "}"


def _send_end(node: SendEnd) -> Iterator[str]:
    yield f"send_end({node.queue});"


def _turn_switches(node: TurnSwitches) -> Iterator[str]:
    yield f"turn_switches({node.queue}, {node.count});"


def _operand(operand: OperandRef) -> str:
    return operand.name if operand.selector is None else f"{operand.name}[{operand.selector}]"


def _discard(node: Discard) -> Iterator[str]:
    yield f"(void){_compute_text(node.value)};"


def _scope(node: Scope) -> Iterator[str]:
    yield "{"
    yield from _indented(node.body)
    yield "}"


def _configure(node: Configure) -> Iterator[str]:
    sizes = ", ".join(integer_text(size) for size in node.sizes)
    strides = ", ".join(str(stride) for stride in node.strides)
    yield f"configure({_operand(node.operand)}, SIZES({sizes}), STRIDES({strides}));"


def _configure_run(node: ConfigureRun) -> Iterator[str]:
    size, stride = integer_text(node.length), integer_text(node.stride)
    yield f"configure({_operand(node.operand)}, SIZES({size}), STRIDES({stride}));"


def _configure_fabric(node: ConfigureFabric) -> Iterator[str]:
    verb = f"configure_{'output' if node.output else 'input'}{'_pairs' if node.pairs else ''}"
    yield f"{verb}({_operand(node.operand)}, {node.queue}, {integer_text(node.elements)});"


def _set_base(node: SetBase) -> Iterator[str]:
    address = f"&{element_text(node.element)}"
    if node.element.word is not None:
        address = f"(int16_t *){address}" + (f" + {node.element.word}" if node.element.word else "")
    yield f"set_base_address({_operand(node.operand)}, {address});"


def _set_length(node: SetLength) -> Iterator[str]:
    yield f"set_length({_operand(node.operand)}, {integer_text(node.length)});"


def _invoke(node: Invoke) -> Iterator[str]:
    sources = ", ".join(_operand(s) if isinstance(s, OperandRef) else _compute_text(s) for s in node.sources)
    operands = f"{node.instruction}, {_operand(node.destination)}, {sources}"
    yield f"invoke_simd({operands});" if node.then is None else f"start_simd({node.then}, {operands});"


def _activate(node: Activate) -> Iterator[str]:
    yield f"activate({node.task});"


def _block(node: Block) -> Iterator[str]:
    yield f"block({node.queue});"


def _unblock(node: Unblock) -> Iterator[str]:
    yield f"unblock({node.queue});"


def _count_down(node: CountDown) -> Iterator[str]:
    yield "cost(.operations = 1, .loads = 1, .stores = 1, .branches = 1);"
    yield f"if (--{node.counter} == 0) {{"
    yield from _indented(node.body)
    yield "}"


def _count_up(node: CountUp) -> Iterator[str]:
    yield "cost(.operations = 1, .loads = 1, .stores = 1, .branches = 1);"
    yield f"if (++{node.counter} == {integer_text(node.limit, 6)}) {{"
    yield f"  {node.counter} = 0;"
    yield from _indented(node.body)
    yield "}"


def _if_next(node: IfNextInvocation) -> Iterator[str]:
    yield "if (next_invocation()) {"
    yield from _indented(node.body)
    yield "}"


_PRINTERS: dict[type[Node], Callable[..., Iterator[str]]] = {
    Cost: _cost,
    If: _if,
    For: _for,
    SetInteger: _set_integer,
    SetValue: _set_value,
    StoreElement: _store,
    Send: _send,
    SendEnd: _send_end,
    TurnSwitches: _turn_switches,
    Discard: _discard,
    Scope: _scope,
    Configure: _configure,
    ConfigureFabric: _configure_fabric,
    ConfigureRun: _configure_run,
    SetBase: _set_base,
    SetLength: _set_length,
    Invoke: _invoke,
    Activate: _activate,
    Block: _block,
    Unblock: _unblock,
    CountDown: _count_down,
    CountUp: _count_up,
    IfNextInvocation: _if_next,
}
