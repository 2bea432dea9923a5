"""What a person is told of a PE program: its tasks and what starts them, queues, memory, names of colors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from polyloom.csl import types, values
from polyloom.csl.compiled import Overview, Queue, Task
from polyloom.csl.comptime import Program, Scope, TileProgram
from polyloom.csl.lint.bodies import all_parts, value_of
from polyloom.csl.lint.queues import initialised
from polyloom.csl.lint.subject import is_users
from polyloom.csl.syntax import tree

_KINDS = {"bind_data_task": "data", "bind_local_task": "local", "bind_control_task": "control"}
_STARTS = {
    "activate": "@activate in {}",
    "unblock": "@unblock in {}",
}
_FIELDS = {
    "activate": "end of an operation in {}",
    "unblock": "unblocked at the end of an operation in {}",
    "activate_push": "push to a FIFO",
    "activate_pop": "pop from a FIFO",
}
LONGEST = 40
"""Characters of a parameter's value."""


def overview(
    program: Program, tile: TileProgram, memory: Iterable[tuple[int, str, int, int, str]]
) -> Overview:
    """Return what is told of an elaborated program.

    ``memory``: number of the module, name, address, bytes, type of the elements of each variable.
    """
    return Overview(
        tile.file.name,
        tuple((name, _value_text(value)) for name, value in tile.parameters),
        tuple(_tasks(program)),
        tuple(
            Queue("input" if kind == types.INPUT_QUEUE else "output", number, color)
            for (kind, number), color, _, _ in initialised(program)
        ),
        tuple(
            (_qualified(program, module, name), element, size) for module, name, _, size, element in memory
        ),
    )


def color_names(programs: Iterable[Program]) -> dict[int, tuple[str, ...]]:
    """Return what users' modules call their colors, by number."""
    found: dict[int, dict[str, None]] = {}
    for program in programs:
        for module in program.modules:
            if not is_users(module):
                continue
            for name, member in module.members():
                value = member.value if isinstance(member, values.Variable) else None
                if isinstance(value, values.Handle) and value.type == types.COLOR:
                    found.setdefault(value.id, {})[name] = None
    return {number: tuple(names) for number, names in sorted(found.items())}


def _qualified(program: Program, module: int, name: str) -> str:
    """Return a variable's name, with that of its file where that is not the program's own."""
    if module <= 0:
        return name
    return f"{program.modules[module].file.name}: {name}"


def _value_text(value: values.Value) -> str:
    if isinstance(value, values.Scalar):
        text = str(value.value).lower() if isinstance(value.value, bool) else str(value.value)
    elif isinstance(value, values.Handle):
        text = f"{value.type} {value.id}"
    elif isinstance(value, values.StructValue):
        text = f"a struct of {len(value.fields)} fields"
    else:
        text = f"a {value.type}"
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


# ---- Tasks


def _tasks(program: Program) -> Iterator[Task]:
    """Yield the tasks in the order in which they are bound."""
    bound = [d for d in program.directives if d.name in _KINDS]
    ids = {
        id(d.arguments[0].function): d.arguments[1].id
        for d in bound
        if isinstance(d.arguments[0], values.FunctionValue) and isinstance(d.arguments[1], values.Handle)
    }
    starts = list(_starts(program, ids))
    for directive in bound:
        task, number = directive.arguments[:2]
        if isinstance(task, values.FunctionValue) and isinstance(number, values.Handle):
            kind = _KINDS[directive.name]
            own = [text for at, text in starts if at == number.id and kind != "control"]
            by = [*_arrival(program, kind, number), *own]
            yield Task(task.function.name, kind, number.id, tuple(sorted(set(by))))


def _arrival(program: Program, kind: str, number: values.Handle) -> Iterator[str]:
    """Yield what of the fabric starts a task."""
    if kind == "control":
        yield "control wavelets that name it"
    if kind == "data":
        colors = {queue: color for queue, color, _, _ in initialised(program)}
        color = colors.get((types.INPUT_QUEUE, number.id)) if program.arch == "wse3" else None
        if program.arch == "wse2":
            yield f"wavelets of color {number.id}"
        else:
            yield f"wavelets of input queue {number.id}" + ("" if color is None else f", color {color}")


def _starts(program: Program, ids: dict[int, int]) -> Iterator[tuple[int, str]]:
    """Yield ids of tasks, and what starts them."""
    for directive in program.directives:
        if directive.name in _STARTS:
            text = "at the start" if directive.name == "activate" else "unblocked at the start"
            yield from ((number, text) for number in _ids_of(directive.arguments[0], ids))
    for node, scope in all_parts(program):
        inside = _enclosing(node, scope)
        if isinstance(node, tree.Builtin) and node.name in _STARTS and node.arguments:
            for number in _ids_of(value_of(node.arguments[0], scope), ids):
                yield number, _STARTS[node.name].format(inside)
        elif isinstance(node, tree.StructLiteral):
            for field in node.fields:
                if field.name in _FIELDS:
                    for number in _ids_of(value_of(field.value, scope), ids):
                        yield number, _FIELDS[field.name].format(inside)
    for fifo in _fifos(program):
        for name, value in fifo.options:
            if name in _FIELDS:
                yield from ((number, _FIELDS[name]) for number in _ids_of(value, ids))


def _fifos(program: Program) -> Iterator[values.Fifo]:
    for module in program.modules:
        for _, member in module.members():
            if isinstance(member, values.Variable) and isinstance(member.value, values.Fifo):
                yield member.value


def _ids_of(value: values.Value | None, ids: dict[int, int]) -> Iterator[int]:
    if isinstance(value, values.FunctionValue) and id(value.function) in ids:
        yield ids[id(value.function)]
    elif isinstance(value, values.Handle):
        yield value.id


def _enclosing(node: tree.Node, scope: Scope) -> str:
    """Return the function or task that a node is in."""
    for item in scope.module.file.tree.items:
        inside = item.span.start <= node.span.start < item.span.end
        if isinstance(item, tree.Function) and inside:
            own = is_users(scope.module)
            return f"`{item.name}`" if own else f"`{item.name}` of {scope.module.file.name}"
    return "the program"
