"""A PE program, elaborated, as C against ``csl.h`` with its memory: one unit for the simulated wafer.

elaborated module --directives--> tasks, queues, functions, handlers
                  --bodies-->     typed trees --> C
                  --variables-->  addresses, bytes, what is initialised
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from polyloom.csl import comptime, types, values
from polyloom.csl.comptime import Directive, Program
from polyloom.csl.comptime.faults import not_comptime
from polyloom.csl.lowering.body import fail
from polyloom.csl.lowering.conversions import path_offset
from polyloom.csl.lowering.emitted.c_types import c_type, size_of
from polyloom.csl.lowering.emitted.image import Object, build, place
from polyloom.csl.lowering.emitted.print_c import (
    DEPTH,
    c_expression,
    counted_text,
    function_text,
    prototype,
    quoted,
)
from polyloom.csl.lowering.unit import Unit
from polyloom.csl.types import Type

HEADER = "csl_scalar.h"
LIBRARY_HEADER = "csl_library.h"
_BINDINGS = {
    "bind_local_task": "CSL_LOCAL_TASK",
    "bind_data_task": "CSL_DATA_TASK",
    "bind_control_task": "CSL_CONTROL_TASK",
}
_IDS = {"activate": "activated", "block": "blocked", "unblock": "unblocked"}


@dataclass(frozen=True)
class Symbol:
    """What the host can name. ``address``: of the variable itself; ``element``: the type of its elements."""

    name: str
    address: int
    element: str
    size: int
    is_pointer: bool
    """Whether the variable holds the address of what the host reads and writes."""


@dataclass(frozen=True)
class HostFunction:
    """A function that the host can launch; ``parameters`` as CSL spells their types."""

    name: str
    parameters: tuple[str, ...]


@dataclass(frozen=True)
class PeProgram:
    """A unit for the simulated wafer.

    ``c`` defines ``CSL_PROGRAM(name)``. ``image`` and ``initialised``: memory from byte 0 on, and a byte for
    each 16-bit word of it. ``variables``: every variable in
    memory: number of its module, name, address, bytes, type of its elements.
    """

    name: str
    c: str
    image: bytes
    initialised: bytes
    symbols: tuple[Symbol, ...]
    functions: tuple[HostFunction, ...]
    variables: tuple[tuple[int, str, int, int, str], ...]


_AT_START = ("load_to_dsr", "load_to_dsr_xdsr_sr", "set_config")
"""Directives that are carried out when the program is loaded."""


def lower_program(program: Program, name: str, *, poison: bool = False) -> PeProgram:
    """Return the C and the memory of an elaborated PE program. Errors: those of lowering.

    ``poison``: reading a variable of a module before it was written is an error, instead of zero.
    """
    with comptime.deep_recursion():
        try:
            return _lowered(program, name, poison)
        except comptime.NotComptime as found:
            raise not_comptime(found, "the compiler must know it to make the program") from None


def _lowered(program: Program, name: str, poison: bool) -> PeProgram:
    tasks = [_binding(d) for d in program.directives if d.name in _BINDINGS]
    unit = Unit(program.arch, {task.key: task.id for task in tasks})
    entries = [_task_text(unit, task) for task in tasks]
    functions, symbols = _exports(unit, program.directives)
    handlers = _handlers(unit, program.directives)
    startup = [unit.startup(d) for d in program.directives if d.name in _AT_START]
    unit.check_recursion()
    _place_what_is_pointed_at(unit)
    addresses = place(unit.objects)
    image = build(unit.objects, addresses, lambda value: _number(addresses, unit, value), poison=poison)
    tables = {
        "tasks": _table("csl_task", [entry.row for entry in entries]),
        "queues": _table("csl_queue", list(_queues(program.directives))),
        "functions": _table("csl_function", [row for row, _, _ in functions]),
        "fifos": _table("csl_fifo", [_fifo(unit, addresses, fifo) for fifo in unit.fifos]),
        "arrays": _table("csl_array", [_array(addresses, item) for item in unit.objects]),
        "handlers": _table("csl_handler", [row for row, _ in handlers]),
        **{field: _id_list(unit, program.directives, field) for field in _IDS.values()},
    }
    wrappers = [e.text for e in entries] + [text for _, text, _ in functions] + [text for _, text in handlers]
    text = _unit_text(unit, name, addresses, wrappers, startup, tables, len(image.data))
    return PeProgram(
        name,
        text,
        image.data,
        image.initialised,
        tuple(_symbol(unit, addresses, *symbol) for symbol in symbols),
        tuple(function for _, _, function in functions),
        tuple(_variables(unit, addresses)),
    )


# ---- Tasks


@dataclass(frozen=True)
class _Binding:
    task: values.FunctionValue
    id: int
    kind: str
    directive: Directive

    @property
    def key(self) -> object:
        return id(self.task.function), id(self.task.module)


@dataclass(frozen=True)
class _Entry:
    row: str
    text: str


def _binding(directive: Directive) -> _Binding:
    task, number = directive.arguments[:2]
    if not (isinstance(task, values.FunctionValue) and isinstance(number, values.Handle)):
        fail("csl-task", f"`@{directive.name}` takes a task and an id", directive.span)
    return _Binding(task, number.id, _BINDINGS[directive.name], directive)


def _task_text(unit: Unit, binding: _Binding) -> _Entry:
    task = binding.task
    kinds = [kind for kind in task.type.parameters if kind is not None]
    arguments = list(_payload(kinds, binding))
    call = unit.entry(task, kinds, arguments)
    name = unit.name(f"task_{task.function.name}")
    unused = "" if arguments else "  (void)wavelet;\n"
    text = f"static void {name}(uint32_t wavelet) {{\n{unused}  {call};\n}}\n"
    return _Entry(f"{{{binding.kind}, {binding.id}, {quoted(task.function.name)}, {name}}}", text)


def _payload(kinds: list[Type], binding: _Binding) -> Iterator[str]:
    """Take the parameters of a task out of a wavelet, the low half first."""
    shift = 0
    for kind in kinds:
        size = size_of(kind) * 8
        if shift + size > 32:
            fail(
                "csl-task", f"`{binding.task.function.name}` takes more than 32 bits", binding.directive.span
            )
        bits = "wavelet" if size == 32 else f"(uint{size}_t)(wavelet >> {shift})"
        yield f"csl_bits({c_type(kind)}, {bits})"
        shift += size


# ---- Directives


def _queues(directives: Iterable[Directive]) -> Iterator[str]:
    for directive in directives:
        if directive.name != "initialize_queue":
            continue
        queue, *rest = directive.arguments
        assert isinstance(queue, values.Handle)
        options = rest[0] if rest else None
        color = options.get("color") if isinstance(options, values.StructValue) else None
        number = str(color.id) if isinstance(color, values.Handle) else "CSL_QUEUE_COLOR"
        output = int(queue.type == types.OUTPUT_QUEUE)
        yield f"{{1, {output}, {queue.id}, {number}}}"


def _id_list(unit: Unit, directives: Iterable[Directive], field: str) -> str:
    numbers = []
    for directive in directives:
        if _IDS.get(directive.name) == field:
            value = directive.arguments[0]
            task = isinstance(value, values.FunctionValue)
            number = unit.task_id(value, directive.span) if task else value.id  # type: ignore[arg-type, attr-defined]
            numbers.append(f"CSL_ID({number})")
    return f"(const uint8_t[]){{{', '.join([*numbers, '0'])}}}"


def _handlers(unit: Unit, directives: Iterable[Directive]) -> list[tuple[str, str]]:
    handlers = []
    for directive in directives:
        if directive.name not in ("set_teardown_handler", "set_empty_queue_handler"):
            continue
        function, of = directive.arguments
        if not (isinstance(function, values.FunctionValue) and isinstance(of, values.Handle)):
            fail(
                "csl-arguments",
                f"`@{directive.name}` takes a function and a color or a queue",
                directive.span,
            )
        kind: dict[Type, str] = {
            types.INPUT_QUEUE: "CSL_OF_INPUT_QUEUE",
            types.OUTPUT_QUEUE: "CSL_OF_OUTPUT_QUEUE",
        }
        name = unit.name(f"handler_{function.function.name}")
        text = f"static void {name}(void) {{\n  {unit.entry(function, [], [])};\n}}\n"
        handlers.append((f"{{{kind.get(of.type, 'CSL_OF_TEARDOWN')}, {of.id}, {name}}}", text))
    return handlers


_Exported = tuple[str, values.Variable, Directive]


def _exports(
    unit: Unit, directives: Iterable[Directive]
) -> tuple[list[tuple[str, str, HostFunction]], list[_Exported]]:
    functions, symbols = [], []
    for directive in directives:
        if directive.name != "export_symbol":
            continue
        value, *rest = directive.arguments
        if isinstance(value, values.FunctionValue):
            name = _text(rest[0]) if rest else value.function.name
            functions.append(_host_function(unit, value, name))
        elif isinstance(value, values.Address):
            unit.symbol_of(value.variable)
            symbols.append((_text(rest[0]) if rest else value.variable.name, value.variable, directive))
        else:
            fail("csl-export", "what is exported is neither a variable nor a function", directive.span)
    return functions, symbols


def _text(value: values.Value) -> str:
    assert isinstance(value, values.Scalar)
    return str(value.value)


def _host_function(unit: Unit, value: values.FunctionValue, name: str) -> tuple[str, str, HostFunction]:
    kinds = [kind for kind in value.type.parameters if kind is not None]
    words, arguments = 0, []
    for kind in kinds:
        size = size_of(kind) * 8
        bits = f"words[{words}]" if size == 32 else f"(uint{size}_t)words[{words}]"
        if size == 64:
            bits = f"((uint64_t)words[{words + 1}] << 32 | words[{words}])"
        arguments.append(f"csl_bits({c_type(kind)}, {bits})")
        words += 2 if size == 64 else 1
    call, c_name = unit.entry(value, kinds, arguments), unit.name(f"launch_{value.function.name}")
    text = f"static void {c_name}(const uint32_t *words) {{\n  (void)words;\n  {call};\n}}\n"
    return f"{{{quoted(name)}, {c_name}}}", text, HostFunction(name, tuple(map(str, kinds)))


def _symbol(
    unit: Unit, addresses: dict[str, int], name: str, variable: values.Variable, _: Directive
) -> Symbol:
    kind = variable.type
    address = addresses[unit.symbol_of(variable)]
    return Symbol(name, address, _element(kind), size_of(kind), isinstance(kind, types.Pointer))


def _variables(unit: Unit, addresses: dict[str, int]) -> Iterator[tuple[int, str, int, int, str]]:
    for variable, symbol in unit.placed():
        module = variable.module
        number = getattr(module, "number", -1)
        yield number, variable.name, addresses[symbol], size_of(variable.type), _element(variable.type)


def _element(kind: Type) -> str:
    """Return the type of what a variable holds or points at, as CSL spells it."""
    while isinstance(kind, types.Pointer | types.Array):
        kind = kind.target if isinstance(kind, types.Pointer) else kind.element
    return str(kind)


# ---- Text


def _place_what_is_pointed_at(unit: Unit) -> None:
    """Give addresses to the variables that first values point at, and so on."""
    done = 0
    while done < len(unit.objects):
        value = unit.objects[done].value
        done += 1
        for pointer in _pointers(value):
            unit.symbol_of(pointer.variable)


def _pointers(value: values.Value | None) -> Iterator[values.Address]:
    if isinstance(value, values.Address):
        yield value
    elif isinstance(value, values.ArrayValue | values.StructValue):
        parts = value.elements if isinstance(value, values.ArrayValue) else value.fields
        for part in parts:
            yield from _pointers(part)


def _number(addresses: dict[str, int], unit: Unit, value: values.Address | values.NumberAddress) -> int:
    if isinstance(value, values.NumberAddress):
        return value.address
    return addresses[unit.symbol_of(value.variable)] + path_offset(value)


def _fifo(unit: Unit, addresses: dict[str, int], fifo: values.Fifo) -> str:
    variable = fifo.buffer.variable
    kind = variable.type
    element = kind.element if isinstance(kind, types.Array) else kind
    ids = []
    for name in ("activate_push", "activate_pop"):
        value = dict(fifo.options).get(name)
        if isinstance(value, values.FunctionValue):
            ids.append(f"CSL_ID({unit.task_id(value, value.function.span)})")
        else:
            ids.append(f"CSL_ID({value.id})" if isinstance(value, values.Handle) else "0")
    address = addresses[unit.symbol_of(variable)] + path_offset(fifo.buffer)
    return f"{{{address}, {size_of(kind)}, {size_of(element)}, {', '.join(ids)}}}"


def _array(addresses: dict[str, int], item: Object) -> str:
    return f"{{{addresses[item.name]}, {max(size_of(item.type), 1)}, {quoted(item.source_name)}}}"


def _table(kind: str, rows: list[str]) -> str:
    return f"(const struct {kind}[]){{{', '.join([*rows, '{0}'])}}}"


def _unit_text(
    unit: Unit,
    name: str,
    addresses: dict[str, int],
    wrappers: list[str],
    startup: list[str],
    tables: dict[str, str],
    memory_bytes: int,
) -> str:
    parts = ['#include "csl.h"', f'#include "{HEADER}"', f'#include "{LIBRARY_HEADER}"', ""]
    parts += [f"enum {{ {symbol} = {address} }};" for symbol, address in addresses.items()]
    parts += list(unit.structs.values())
    fields = "".join(f"  csl_dsd {dsd.name};\n" for dsd in unit.dsds) + f"  uint16_t {DEPTH};\n"
    parts += ["", f"struct state {{\n{fields}}};", ""]
    parts += [f"{prototype(function)};" for function in unit.functions]
    parts += ["", *unit.texts, *_definitions(unit), *wrappers, _initialise(unit, startup)]
    rows = [f"  .{field} = {rows}" for field, rows in tables.items()]
    sizes = [
        f"  .memory_bytes = {memory_bytes}",
        "  .state_bytes = sizeof(struct state)",
        "  .initialise = initialise",
    ]
    parts.append(f"CSL_PROGRAM({name},\n" + ",\n".join([*sizes, *rows]) + ")")
    return "\n".join(parts) + "\n"


def _definitions(unit: Unit) -> Iterator[str]:
    for function in unit.functions:
        yield counted_text(function) if function.name in unit.recursive else function_text(function)


def _initialise(unit: Unit, startup: list[str]) -> str:
    lines = [
        f"  CSL_STATE(struct state)->{dsd.name} = {c_expression(dsd.value)};"
        for dsd in unit.dsds
        if dsd.value is not None
    ]
    lines += [f"  {name}();" for name in startup]
    return "\n".join(["static void initialise(void) {", *lines, "}"]) + "\n"
