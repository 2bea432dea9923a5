"""Rules on queues: initialised, with one color, none of memcpy's."""

from __future__ import annotations

from collections.abc import Iterator

from polyloom.csl import types, values
from polyloom.csl.comptime import Program
from polyloom.csl.lint.bodies import nodes_of, operations
from polyloom.csl.lint.subject import Subject, is_users, place_of, uses_memcpy
from polyloom.csl.syntax import tree
from polyloom.diagnostics import Diagnostic, Span, error, warning

Queue = tuple[types.Type, int]

MEMCPY_QUEUES = {
    "wse2": {(types.INPUT_QUEUE, 0), (types.OUTPUT_QUEUE, 0)},
    "wse3": {(q, n) for q in (types.INPUT_QUEUE, types.OUTPUT_QUEUE) for n in (0, 1)},
}


def initialised(program: Program) -> Iterator[tuple[Queue, int | None, Span, bool]]:
    """Yield queue, color, place, and whether the user wrote it."""
    for directive in program.directives:
        if directive.name != "initialize_queue":
            continue
        queue, *options = directive.arguments
        if isinstance(queue, values.Handle):
            given = (
                options[0].get("color") if options and isinstance(options[0], values.StructValue) else None
            )
            color = given.id if isinstance(given, values.Handle) else None
            yield (queue.type, queue.id), color, directive.span, is_users(directive.module)


def initialised_once(subject: Subject) -> Iterator[Diagnostic]:
    """R27, R28: a queue is initialised once; on wse3 with its color, an output queue of wse2 without."""
    for program in subject.programs:
        seen: dict[Queue, Span] = {}
        for queue, color, span, _ in initialised(program):
            if queue in seen:
                yield error(
                    "csl-queue-twice",
                    f"{_name(queue)} is initialised twice",
                    span,
                    notes=[f"first at {seen[queue]}"],
                    helps=["initialise it once; a queue has one color"],
                )
            seen[queue] = span
            if subject.arch == "wse3" and color is None:
                yield error(
                    "csl-queue-color",
                    f"{_name(queue)} is initialised without a color",
                    span,
                    helps=["add `.color = ...`: on wse3 a queue has one color"],
                )
            if subject.arch == "wse2" and color is not None and queue[0] == types.OUTPUT_QUEUE:
                yield error(
                    "csl-queue-color",
                    f"{_name(queue)} is initialised with a color",
                    span,
                    notes=["on wse2 the color of an output stands in its descriptor"],
                    helps=["write `.{}`, and `.fabric_color` in `@get_dsd`"],
                )


def _name(queue: Queue) -> str:
    return f"{'input' if queue[0] == types.INPUT_QUEUE else 'output'} queue {queue[1]}"


def initialised_before_use(subject: Subject) -> Iterator[Diagnostic]:
    """R27: queues that descriptors and data tasks use are initialised."""
    for program in subject.programs:
        known = {queue: color for queue, color, _, _ in initialised(program)}
        for dsd, variable in _fabric(program):
            if dsd.queue is None:
                continue
            queue = (dsd.queue.type, dsd.queue.id)
            needed = subject.arch == "wse3" or (dsd.type == types.FABIN_DSD and dsd.color is None)
            if needed and queue not in known:
                yield _missing(queue, f"`{variable.name}` uses it", place_of(variable))
            color = known.get(queue)
            if subject.arch == "wse3" and dsd.color and color not in (None, dsd.color.id):
                yield warning(
                    "csl-queue-other",
                    f"{_name(queue)} has color {color}, `{variable.name}` says {dsd.color.id}",
                    place_of(variable),
                    helps=["leave `fabric_color` out: on wse3 the queue's color counts"],
                )
        if subject.arch == "wse3":
            yield from _data_tasks(program, known)


def _data_tasks(program: Program, known: dict[Queue, int | None]) -> Iterator[Diagnostic]:
    for directive in program.directives:
        if directive.name == "bind_data_task" and is_users(directive.module):
            number = directive.arguments[-1]
            queue = (types.INPUT_QUEUE, number.id if isinstance(number, values.Handle) else -1)
            if queue not in known:
                yield _missing(queue, "a data task is bound to it", directive.span)


def _missing(queue: Queue, why: str, span: Span) -> Diagnostic:
    return warning(
        "csl-queue-missing",
        f"{_name(queue)} is not initialised",
        span,
        notes=[f"{why}; nothing arrives, and nothing says so"],
        helps=["add `@initialize_queue(queue, .{ .color = ... })` to a `comptime` block"],
    )


def _fabric(program: Program) -> Iterator[tuple[values.FabricDsd, values.Variable]]:
    """Yield the descriptors of the fabric that bodies mention on ways that may be taken."""
    used = {
        (scope.module.number, part.name)
        for node, scope in operations(program)
        for part in nodes_of(node)
        if isinstance(part, tree.Name)
    }
    for module in program.modules:
        if is_users(module):
            for name, member in module.members():
                value = member.value if isinstance(member, values.Variable) else None
                if isinstance(value, values.FabricDsd) and (module.number, name) in used:
                    assert isinstance(member, values.Variable)
                    yield value, member


def memcpy_queues(subject: Subject) -> Iterator[Diagnostic]:
    """R29: memcpy keeps the first queues for itself."""
    kept = MEMCPY_QUEUES[subject.arch]
    for program in subject.programs:
        if not uses_memcpy(program):
            continue
        for queue, _, span, is_own in initialised(program):
            if is_own and queue in kept:
                yield warning(
                    "csl-memcpy-queue", f"{_name(queue)} is memcpy's", span, helps=["use queues from 2 on"]
                )
