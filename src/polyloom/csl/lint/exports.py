"""Rules on what the host finds by name."""

from __future__ import annotations

from collections.abc import Iterator

from polyloom.csl import types, values
from polyloom.csl.comptime import Program
from polyloom.csl.lint.bodies import nodes_of
from polyloom.csl.lint.subject import Subject, is_users, uses_memcpy
from polyloom.csl.syntax import tree
from polyloom.diagnostics import Diagnostic, Span, error, warning

MOST_PARAMETERS = 15


def _symbols(program: Program) -> dict[str, tuple[types.Type, Span]]:
    found: dict[str, tuple[types.Type, Span]] = {}
    for directive in program.directives:
        if directive.name != "export_symbol":
            continue
        what, name = directive.arguments[:2]
        assert isinstance(name, values.Scalar)
        type_ = what.variable.type if isinstance(what, values.Address) else what.type
        found[name.value] = (type_, directive.span)
    return found


def names_match(subject: Subject) -> Iterator[Diagnostic]:
    """R17: what the layout names is exported by a program, with that type; functions take 15 at most."""
    symbols = [_symbols(program) for program in subject.programs]
    for export in subject.layout.exports:
        having = [s[export.name] for s in symbols if export.name in s]
        if not having:
            yield warning(
                "csl-export-missing",
                f"no program exports `{export.name}`",
                export.span,
                notes=["the host cannot find it"],
                helps=[f'add `@export_symbol(..., "{export.name}")` to a `comptime` block of a program'],
            )
        for type_, span in having:
            if not _agree(type_, export.type):
                yield error(
                    "csl-export-type",
                    f"`{export.name}` is a `{type_}`, the layout says `{export.type}`",
                    span,
                    notes=[f"`@export_name` stands at {export.span}"],
                    helps=["give both one type"],
                )
        if isinstance(export.type, types.Function) and len(export.type.parameters) > MOST_PARAMETERS:
            yield error(
                "csl-export-parameters",
                f"`{export.name}` takes {len(export.type.parameters)} parameters",
                export.span,
                notes=[f"a launch carries {MOST_PARAMETERS} at most"],
                helps=["copy more with memcpy before the launch"],
            )


def _agree(own: types.Type, named: types.Type) -> bool:
    if isinstance(own, types.Pointer) and isinstance(named, types.Pointer):
        return own.target == named.target or (
            isinstance(own.target, types.Array) and own.target.element == named.target
        )
    return own == named or isinstance(own, types.Array)


def pointers(subject: Subject) -> Iterator[Diagnostic]:
    """R18: the host is given pointers."""
    for program in subject.programs:
        for name, (type_, span) in _symbols(program).items():
            if isinstance(type_, types.Array):
                yield warning(
                    "csl-export-array",
                    f"`{name}` is exported as an array",
                    span,
                    notes=["the host looks for a pointer behind the name"],
                    helps=[f"export `var {name}_ptr: [*]{type_.element} = &...;`"],
                )


def stream_is_unblocked(subject: Subject) -> Iterator[Diagnostic]:
    """R48: a program whose functions the host launches says when it is done."""
    for program in subject.programs:
        functions = [
            d
            for d in program.directives
            if d.name == "export_symbol" and isinstance(d.arguments[0], values.FunctionValue)
        ]
        if not functions or not uses_memcpy(program):
            continue
        mentions = (
            isinstance(node, tree.Field) and node.name == "unblock_cmd_stream"
            for module in program.modules
            if is_users(module)
            for node in nodes_of(module.file.tree)
        )
        if not any(mentions):
            yield warning(
                "csl-no-unblock",
                "no way out of a launched function calls `unblock_cmd_stream`",
                functions[0].span,
                notes=["memcpy waits for it before the host's next command, for ever"],
                helps=["call `sys_mod.unblock_cmd_stream()` where the work is done, on every PE"],
            )
