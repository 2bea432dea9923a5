"""Rules on tasks: what they take, and the ids that they are bound to."""

from __future__ import annotations

from collections.abc import Iterator

from polyloom.csl import types, values
from polyloom.csl.comptime import Directive, Program
from polyloom.csl.lint.subject import Subject, is_users, uses_memcpy
from polyloom.diagnostics import Diagnostic, Span, error, warning

BINDS = ("bind_data_task", "bind_local_task", "bind_control_task")
TEARDOWN_IDS = frozenset({29, 30})
MEMCPY_IDS = frozenset({21, 22, 23, 27, 28, 31})


def _binds(program: Program) -> Iterator[Directive]:
    for directive in program.directives:
        if directive.name in BINDS:
            yield directive


def bound_once(subject: Subject) -> Iterator[Diagnostic]:
    """R21, R23: an id means one task; on wse2 colors of data tasks and ids of local tasks are one row."""
    for program in subject.programs:
        seen: dict[tuple[str, int], Span] = {}
        apart = any(d.name == "set_control_task_table" for d in program.directives)
        for directive in _binds(program):
            number = directive.arguments[1]
            if not isinstance(number, values.Handle):
                continue
            control = directive.name == "bind_control_task" and apart
            key = ("control" if control else "", number.id)
            if key in seen:
                yield error(
                    "csl-bound-twice",
                    f"task id {number.id} is bound twice",
                    directive.span,
                    notes=[f"first at {seen[key]}", "ids of data, local and control tasks are one row"],
                    helps=["give each task an id of its own"],
                )
            seen[key] = directive.span


def reserved_ids(subject: Subject) -> Iterator[Diagnostic]:
    """R22: ids of the machine and of memcpy."""
    for program, directive in subject.directives(*BINDS):
        number = directive.arguments[-1]
        if not isinstance(number, values.Handle) or directive.name == "bind_control_task":
            continue
        of_memcpy = directive.name == "bind_local_task" and number.id in MEMCPY_IDS and uses_memcpy(program)
        if number.id in TEARDOWN_IDS or of_memcpy:
            owner = "the machine's" if number.id in TEARDOWN_IDS else "memcpy's"
            yield warning(
                "csl-reserved-id",
                f"task id {number.id} is {owner}",
                directive.span,
                helps=["choose another id"],
            )


def parameters(subject: Subject) -> Iterator[Diagnostic]:
    """R24, R25, R46: data tasks take the 32 bits of a wavelet, local tasks nothing; none has a result."""
    for _, directive in subject.directives(*BINDS):
        task = directive.arguments[0]
        if not isinstance(task, values.FunctionValue):
            continue
        span = task.function.name_span
        if task.type.result not in (types.VOID, None):
            yield error(
                "csl-task-result",
                f"task `{task.function.name}` has a result",
                span,
                helps=["tasks return `void`; put results into a global"],
            )
        yield from _parameters(directive.name, task, span)


def _parameters(bind: str, task: values.FunctionValue, span: Span) -> Iterator[Diagnostic]:
    name, given = task.function.name, task.type.parameters
    bits = [_bits(p) for p in given]
    most = {"bind_data_task": 32, "bind_local_task": 0, "bind_control_task": 16}[bind]
    if bind == "bind_local_task" and given:
        yield error(
            "csl-task-parameters",
            f"local task `{name}` has parameters",
            span,
            helps=["nothing is passed to a local task; use a global"],
        )
    elif bind == "bind_data_task" and not given:
        yield error(
            "csl-task-parameters",
            f"data task `{name}` has no parameter",
            span,
            helps=["take the wavelet's payload: `task f(data: u32) void`"],
        )
    elif None in bits:
        wrong = given[bits.index(None)]
        yield error(
            "csl-task-parameters",
            f"task `{name}` takes a `{wrong}`",
            span,
            notes=["parameters of tasks have 16 or 32 bits"],
            helps=["take a `u16`, `i16`, `f16`, `u32`, `i32` or `f32`, and convert it"],
        )
    elif sum(b or 0 for b in bits) > most and bind != "bind_local_task":
        yield error(
            "csl-task-parameters",
            f"task `{name}` takes {sum(b or 0 for b in bits)} bits",
            span,
            notes=[f"a wavelet has {most} for it"],
            helps=["take one parameter of 32 bits or two of 16 (the low half first)"],
        )


def _bits(type_: types.Type | None) -> int | None:
    bits = type_.bits if isinstance(type_, types.Integer | types.Float) else None
    return bits if bits in (16, 32) else None


def control_is_heard(subject: Subject) -> Iterator[Diagnostic]:
    """R51: a color or queue that only control wavelets use is unblocked by hand."""
    for program in subject.programs:
        names = {d.name for d in program.directives}
        users = [d for d in program.directives if d.name == "bind_control_task" and is_users(d.module)]
        if not users or "bind_data_task" in names or "unblock" in names or _has_fabin(program):
            continue
        yield warning(
            "csl-control-blocked",
            "nothing unblocks what the control task is reached by",
            users[0].span,
            notes=["without a data task the color (wse2) or queue (wse3) stays blocked"],
            helps=["add `@unblock(color)` on wse2, `@unblock(queue)` on wse3, to a `comptime` block"],
        )


def _has_fabin(program: Program) -> bool:
    return any(
        isinstance(member, values.Variable) and member.type == types.FABIN_DSD
        for module in program.modules
        for _, member in module.members()
    )
