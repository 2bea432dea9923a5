"""C identifiers for the names of a role.

Names are made from those of tensors and statements (``W_local``, ``handle_x``, ``ff_W``), which LAIR leaves
almost free: statement ``div`` and tensor ``h`` would make ``div_h``, a function of the simulator's
``arithmetic.h``; statement ``y`` and tensor ``local`` the array of ``y``. What collides gets a number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, cast

from polyloom.ir.expressions import Expression
from polyloom.ir.naming import fresh
from polyloom.polyhedra.loops.generate import Name
from polyloom.wafer.machine.scalar_c import function_names
from polyloom.wafer.pe_program.tree import (
    Activate,
    ArrayDeclaration,
    Block,
    ConfigureFabric,
    CountDown,
    CountUp,
    DataTask,
    Element,
    Filter,
    Invoke,
    LocalTask,
    OperandDeclaration,
    OperandRef,
    Received,
    RoleCode,
    Send,
    SendEnd,
    SetInteger,
    TurnSwitches,
    Unblock,
    all_nodes,
)

_PE_H = frozenset(
    {
        "set_base_address",
        "set_length",
        "configure_input",
        "configure_input_pairs",
        "configure_output",
        "configure_output_pairs",
        "invoke_simd",
        "start_simd",
        "send_sparse",
        "send_end",
        "turn_switches",
        "next_invocation",
        "SPARSE_HALF",
        "SPARSE_INT16",
        "DENSE_HALF",
        "DENSE_FLOAT",
        "DENSE_INT16",
        "DENSE_INT32",
    }
)
"""What the simulator's headers define that has an underscore, as every name of ours has."""

_PREFIXES = ("pe_", "PE_", "POLYLOOM_", "_")
"""How the simulator's own names begin, and C's."""

_FIELDS: dict[tuple[type, str], str] = {
    (ArrayDeclaration, "name"): "array",
    (Element, "array"): "array",
    (RoleCode, "inputs"): "queue",
    (RoleCode, "outputs"): "queue",
    (DataTask, "queue"): "queue",
    (Received, "queue"): "queue",
    (Send, "queue"): "queue",
    (SendEnd, "queue"): "queue",
    (Filter, "queue"): "queue",
    (TurnSwitches, "queue"): "queue",
    (ConfigureFabric, "queue"): "queue",
    (Block, "queue"): "queue",
    (Unblock, "queue"): "queue",
    (RoleCode, "counters"): "variable",
    (SetInteger, "variable"): "variable",
    (CountDown, "counter"): "variable",
    (CountUp, "counter"): "variable",
    (Name, "name"): "variable",
    (OperandRef, "selector"): "variable",
    (DataTask, "name"): "task",
    (DataTask, "end_name"): "task",
    (LocalTask, "name"): "task",
    (Activate, "task"): "task",
    (Invoke, "then"): "task",
    (OperandDeclaration, "name"): "operand",
    (OperandRef, "name"): "operand",
}
"""Which fields of the tree hold names, and of what: only names of different kinds can collide."""

_T = TypeVar("_T")
_Renaming = Mapping[tuple[str, str], str]


def with_c_names(code: RoleCode) -> RoleCode:
    """Return the program with names that are no two things in C.

    Arrays come first and keep their names, then queues, variables, tasks and operands.

    Not in the papers.
    """
    renaming: dict[tuple[str, str], str] = {}
    taken = {code.name}
    for kind, name in _declared(code):
        if (kind, name) not in renaming:
            renaming[kind, name] = _free(name, taken)
            taken.add(renaming[kind, name])
    return _renamed(code, {key: name for key, name in renaming.items() if key[1] != name})


def is_reserved(name: str) -> bool:
    """Whether a name with an underscore means something in C or in the simulator's headers already."""
    return (
        name.startswith(_PREFIXES)
        or name.endswith(("_t", "_MIN", "_MAX"))
        or name in _PE_H
        or name in function_names()
    )


def _declared(code: RoleCode) -> Iterator[tuple[str, str]]:
    yield from (("array", array.name) for array in code.arrays)
    yield from (("queue", name) for name in (*code.inputs, *code.outputs))
    yield from (("variable", name) for name in code.counters)
    yield from (("variable", name) for name in _local_variables(code))
    yield from (("task", task.name) for task in code.local_tasks)
    yield from (("task", name) for task in code.data_tasks for name in (task.name, task.end_name))
    yield from (("operand", declared.name) for declared in code.operands)


def _local_variables(code: RoleCode) -> Iterator[str]:
    """Yield the integers that blocks declare: of the index, and which configuration is used."""
    for node in all_nodes(code):
        if isinstance(node, SetInteger) and node.declare and "_" in node.variable:
            yield node.variable


def _free(name: str, taken: set[str]) -> str:
    base = f"of_{name}" if name.startswith(_PREFIXES) else name
    return fresh(base, taken, first=2, reserved=is_reserved)


def _renamed(value: _T, renaming: _Renaming) -> _T:
    """Replace names everywhere in a tree of tuples and dataclasses."""
    if not renaming:
        return value
    if isinstance(value, Expression):
        return value
    if isinstance(value, tuple):
        return cast(_T, tuple(_renamed(item, renaming) for item in value))
    if is_dataclass(value) and not isinstance(value, type):
        return cast(_T, replace(value, **{f.name: _field(value, f.name, renaming) for f in fields(value)}))
    return value


def _field(value: object, name: str, renaming: _Renaming) -> Any:
    held = getattr(value, name)
    kind = _FIELDS.get((type(value), name))
    if kind is None:
        return _renamed(held, renaming)
    if isinstance(held, tuple):
        return tuple(renaming.get((kind, item), item) for item in held)
    return renaming.get((kind, held), held)
