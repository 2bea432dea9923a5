"""What the builtins of ``comptime`` blocks take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from polyloom.csl import types, values
from polyloom.csl.comptime.faults import fault
from polyloom.csl.syntax import tree
from polyloom.csl.types import Type
from polyloom.csl.values import Value

TASK_IDS = (types.DATA_TASK_ID, types.LOCAL_TASK_ID, types.CONTROL_TASK_ID)
QUEUES = (types.INPUT_QUEUE, types.OUTPUT_QUEUE)


@dataclass(frozen=True)
class _Wanted:
    """An argument: what it is called in messages, and whether a value is it."""

    name: str
    accepts: Callable[[Value], bool]
    help: str


def _is_task(value: Value) -> bool:
    return isinstance(value, values.FunctionValue) and value.function.kind == "task"


def _handle(*kinds: Type) -> _Wanted:
    names = " or ".join(f"`{k}`" for k in kinds)
    return _Wanted(
        f"a {names}",
        lambda v: isinstance(v, values.Handle) and v.type in kinds,
        f"make it with `@get_{kinds[0]}(...)`",
    )


_TASK = _Wanted("a task", _is_task, "declare it with `task` instead of `fn`")
_FUNCTION = _Wanted("a function", lambda v: isinstance(v, values.FunctionValue), "name a function or a task")
_STRUCT = _Wanted(
    "a struct", lambda v: isinstance(v, values.StructValue | values.Scalar), "write `.{ .name = value }`"
)
_ID = _Wanted(
    "a local task or its id",
    lambda v: _is_task(v) or (isinstance(v, values.Handle) and v.type in (types.LOCAL_TASK_ID, types.COLOR)),
    "name a task, or make an id with `@get_local_task_id(...)`",
)
_BLOCKED = _Wanted(
    "a task, its id, a color or a queue",
    lambda v: _is_task(v) or (isinstance(v, values.Handle) and v.type in (*TASK_IDS, types.COLOR, *QUEUES)),
    "make it with `@get_local_task_id(...)`, `@get_color(...)` or `@get_input_queue(...)`",
)

_TAKES: dict[str, tuple[_Wanted, ...]] = {
    "bind_data_task": (_TASK, _handle(types.DATA_TASK_ID)),
    "bind_local_task": (_TASK, _handle(types.LOCAL_TASK_ID)),
    "bind_control_task": (_TASK, _handle(types.CONTROL_TASK_ID)),
    "initialize_queue": (_handle(*QUEUES), _STRUCT),
    "activate": (_ID,),
    "block": (_BLOCKED,),
    "unblock": (_BLOCKED,),
    "set_local_color_config": (_handle(types.COLOR), _STRUCT),
    "set_teardown_handler": (_FUNCTION, _handle(types.COLOR)),
    "set_empty_queue_handler": (_FUNCTION, _handle(*QUEUES)),
}
_OPTIONAL = {"initialize_queue": 1}


def check_arguments(node: tree.Builtin, given: tuple[Value, ...]) -> None:
    """Check what a directive is given. Errors: ``csl-call``, ``csl-bind``."""
    wanted = _TAKES.get(node.name)
    if wanted is None:
        return
    least = len(wanted) - _OPTIONAL.get(node.name, 0)
    if not least <= len(given) <= len(wanted):
        names = ", ".join(w.name for w in wanted)
        raise fault(
            "csl-call",
            f"`@{node.name}` takes {len(wanted)} argument{'s' if len(wanted) > 1 else ''}, not {len(given)}",
            node.span,
            helps=[f"give it {names}"],
        )
    for value, want, argument in zip(given, wanted, node.arguments, strict=False):
        if not want.accepts(value):
            raise fault(
                "csl-bind",
                f"`@{node.name}` takes {want.name}, this is a `{value.type}`",
                argument.span,
                helps=[want.help],
            )
