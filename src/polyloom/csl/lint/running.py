"""Rules on how operations run: the main thread held up, `@map` over registers, vectors in wavelets."""

from __future__ import annotations

from collections.abc import Iterator

from polyloom.csl import types, values
from polyloom.csl.comptime import Program, Scope
from polyloom.csl.lint.bodies import operations, parts_from, type_of, value_of
from polyloom.csl.lint.operations import operations_of
from polyloom.csl.lint.subject import Subject, is_users, uses_memcpy
from polyloom.csl.syntax import tree
from polyloom.diagnostics import Diagnostic, error, remark, warning

_FABRIC = (types.FABIN_DSD, types.FABOUT_DSD)
_REGISTERS = (types.DSR_DEST, types.DSR_SRC0, types.DSR_SRC1)


def held_up(subject: Subject) -> Iterator[Diagnostic]:
    """R50: what starts by itself does not wait for the fabric while the host's commands wait."""
    if not any(isinstance(export.type, types.Function) for export in subject.layout.exports):
        return
    for program in subject.programs:
        for task in _started(program) if uses_memcpy(program) else ():
            for node, operands, given, scope in operations_of(parts_from(task)):
                waits = any(type_of(operand, scope) in _FABRIC for operand in operands)
                if waits and (given.is_whole or not given.fields) and "async" not in given.fields:
                    yield warning(
                        "csl-held-up",
                        f"`{task.function.name}` starts by itself and waits for the fabric in `@{node.name}`",
                        node.span,
                        notes=["the same thread serves the host: what comes only after a launch never comes"],
                        helps=["add `.async = true`, and go on in a task that `.activate` names"],
                    )


def _started(program: Program) -> Iterator[values.FunctionValue]:
    """Yield the users' tasks that `@activate` of a `comptime` block starts."""
    ids = {
        d.arguments[1].id: d.arguments[0]
        for d in program.directives
        if d.name == "bind_local_task" and isinstance(d.arguments[1], values.Handle)
    }
    for directive in program.directives:
        if directive.name == "activate" and is_users(directive.module):
            of = directive.arguments[0]
            task = ids.get(of.id) if isinstance(of, values.Handle) else of
            if isinstance(task, values.FunctionValue):
                yield task


def map_registers(subject: Subject) -> Iterator[Diagnostic]:
    """R44: `@map` reads registers of `dsr_src1`, writes `dsr_dest`, and these take single steps."""
    for program in subject.programs:
        steps = dict(_loaded(program))
        for node, scope in operations(program):
            if node.name != "map" or len(node.arguments) < 2:
                continue
            result = _result(node.arguments[0], scope)
            for k, operand in enumerate(node.arguments[1:], 1):
                register = value_of(operand, scope)
                if not isinstance(register, values.Handle) or register.type not in _REGISTERS:
                    continue
                is_output = k == len(node.arguments) - 1 and result not in (types.VOID, None)
                wanted = types.DSR_DEST if is_output else types.DSR_SRC1
                if register.type != wanted:
                    yield error(
                        "csl-map-register",
                        f"`@map` {'writes' if is_output else 'reads'} a register of `{register.type}`",
                        operand.span,
                        helps=[f"take one of `{wanted}`"],
                    )
                elif steps.get((register.type, register.id)) is False:
                    yield warning(
                        "csl-map-step",
                        "`@map` over a register whose descriptor does not take single steps",
                        operand.span,
                        notes=["the function is called for one element, the machine goes on by several"],
                        helps=["add `.single_step = true` to the descriptor that `@load_to_dsr` loads"],
                    )


def _result(node: tree.Expression, scope: Scope) -> types.Type | None:
    function = value_of(node, scope)
    return function.type.result if isinstance(function, values.FunctionValue) else None


def _loaded(program: Program) -> Iterator[tuple[tuple[types.Type, int], bool]]:
    """Yield registers that memory is loaded into, and whether its descriptor takes single steps."""
    for node, scope in operations(program):
        if node.name == "load_to_dsr" and len(node.arguments) > 1:
            register, dsd = (value_of(argument, scope) for argument in node.arguments[:2])
            if isinstance(register, values.Handle) and isinstance(dsd, values.MemoryDsd):
                yield (register.type, register.id), dict(dsd.options).get("single_step") == values.TRUE


HALF = ("16", "h")
"""How operations on 16 bits end."""


def wavelet_vectors(subject: Subject) -> Iterator[Diagnostic]:
    """R45a: how many values of 16 bits a wavelet carries is said, as SDK 2.10 changed what is assumed."""
    for program in subject.programs:
        for node, operands, _, scope in operations_of(operations(program)):
            if not node.name.endswith(HALF):
                continue
            for operand in operands:
                dsd = value_of(operand, scope)
                if isinstance(dsd, values.FabricDsd) and "simd_mode" not in dict(dsd.options):
                    yield remark(
                        "csl-simd-mode",
                        f"`@{node.name}` on a `{dsd.type}` that does not say its `simd_mode`",
                        operand.span,
                        notes=["where nothing is said, two or more values are one wavelet since SDK 2.10"],
                        helps=[
                            "add `.simd_mode = .{ .simd_off = true }`, for one value in each, or `.simd_32`"
                        ],
                    )
