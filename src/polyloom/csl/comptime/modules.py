"""Modules (a file with parameters) with lazily evaluated globals, and the program of a PE made of them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from polyloom.csl import types, values
from polyloom.csl.comptime.builtins import DIRECTIVES, arguments, text
from polyloom.csl.comptime.colors import color_config, color_of
from polyloom.csl.comptime.conversion import convert
from polyloom.csl.comptime.directives import check_arguments
from polyloom.csl.comptime.evaluate import evaluate, named, resolve_type, unknown_name
from polyloom.csl.comptime.execute import check_declaration, execute
from polyloom.csl.comptime.faults import NotComptime, fault, not_comptime
from polyloom.csl.comptime.places import place
from polyloom.csl.comptime.scope import Binding, Effects, Scope
from polyloom.csl.syntax import parse, tree
from polyloom.csl.types import Type
from polyloom.csl.values import Value
from polyloom.diagnostics import Diagnostic, PolyloomError, Source, Span, error, warning

Library = Callable[[str], tuple[str, str] | None]


@dataclass(frozen=True, eq=False)
class SourceFile:
    """A file that was read: ``path``, or ``None`` for one of a library; ``name`` as messages give it."""

    name: str
    path: Path | None
    tree: tree.File = field(repr=False)


class Loader:
    """Reads files, each once.

    ``library``: the name inside ``<>`` -> name for messages and text, or ``None``; ``import_paths``:
    folders in which such names are looked for as well.
    """

    def __init__(self, library: Library, import_paths: tuple[Path, ...] = ()) -> None:
        self.library = library
        self.import_paths = import_paths
        self._files: dict[str, SourceFile] = {}
        self._found: dict[tuple[str, str], SourceFile] = {}

    @property
    def texts(self) -> dict[str, str]:
        """The texts of the files that were read so far, by the names that messages give them."""
        return {file.name: file.tree.source.text for file in self._files.values()}

    def open(self, path: Path) -> SourceFile:
        """Return the file of the command line. Errors: ``csl-file`` and those of ``parse``."""
        found = self._of_path(path)
        if found is None:
            raise PolyloomError(error("csl-file", f"there is no file `{path}`", helps=["check the path"]))
        return found

    def find(self, name: str, importer: SourceFile, span: Span) -> SourceFile:
        """Return the file that a name means inside another. Errors: ``csl-import`` and those of ``parse``."""
        key = (importer.name, name)
        if key not in self._found:
            self._found[key] = self._find(name, importer, span)
        return self._found[key]

    def _find(self, name: str, importer: SourceFile, span: Span) -> SourceFile:
        if name.startswith("<") and name.endswith(">"):
            found = self._of_library(name[1:-1])
        elif importer.path is None:
            folder = importer.name.strip("<>").rpartition("/")[0]
            inside = f"{folder}/{name}" if folder else name
            found = self._of_library(inside.removesuffix(".csl"))
        else:
            found = self._of_path(importer.path.parent / name)
        if found is None:
            raise fault(
                "csl-import",
                f"there is no module `{name}`",
                span,
                helps=[
                    "libraries are named `<name>`; files relative to the file that imports them"
                    if name.startswith("<")
                    else f"put the file beside `{importer.name}`, or correct the name"
                ],
            )
        return found

    def _of_library(self, name: str) -> SourceFile | None:
        key = f"<{name}>"
        if key not in self._files:
            given = self.library(name)
            if given is None:
                paths = (folder / f"{name}.csl" for folder in self.import_paths)
                return next((f for f in map(self._of_path, paths) if f is not None), None)
            self._files[key] = SourceFile(key, None, parse(Source(*given)))
        return self._files[key]

    def _of_path(self, path: Path) -> SourceFile | None:
        key = str(path.resolve())
        if key not in self._files:
            try:
                read = path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                raise PolyloomError(
                    error("csl-file", f"`{path}` is no text in UTF-8", helps=["save it as UTF-8"])
                ) from None
            except OSError:
                return None
            self._files[key] = SourceFile(str(path), path, parse(Source(str(path), read)))
        return self._files[key]


@dataclass(frozen=True)
class Directive:
    """A builtin of a ``comptime`` block: its name without ``@``, what it was given, where it stands.

    A variable that is exported is an ``Address``; tasks are ``FunctionValue``.
    """

    name: str
    arguments: tuple[Value, ...]
    span: Span
    module: Module
    node: tree.Builtin = field(repr=False, compare=False)
    names: Mapping[str, Binding] = field(repr=False, compare=False)
    """The local names where it stands."""


Member = values.Variable | values.FunctionValue


class Module:
    """One copy of a file, with its parameters. Globals are evaluated when they are first asked for."""

    def __init__(
        self,
        program: Program,
        number: int,
        file: SourceFile,
        parameters: Mapping[str, Value],
        span: Span | None,
    ) -> None:
        self.program = program
        self.number = number
        self.file = file
        self.parameters = dict(parameters)
        self.span = span
        self.scope = Scope(self)
        self._items = _items_of(file.tree)
        self._known: dict[str, Member] = {}
        self._under_way: list[str] = []

    def __repr__(self) -> str:
        return f"Module({self.number}, {self.file.name})"

    def names(self) -> list[str]:
        """Return the names of all members, in the order of the text."""
        return list(self._items)

    def members(self) -> list[tuple[str, Member]]:
        """Return all members that are evaluated."""
        return list(self._known.items())

    def member(self, name: str) -> Member | None:
        """Return a member, or ``None``. Errors: diagnostics of its evaluation; ``csl-cycle``."""
        known = self._known.get(name)
        if known is not None or name not in self._items:
            return known
        item = self._items[name]
        if name in self._under_way:
            around = [*self._under_way[self._under_way.index(name) :], name]
            raise fault(
                "csl-cycle",
                f"`{name}` needs its own value",
                item.name_span,
                notes=[" -> ".join(f"`{n}`" for n in around)],
                helps=["give one of them a value of its own"],
            )
        self._under_way.append(name)
        try:
            found = self._elsewhere(item)
            if found is None:
                found = self._function(item) if isinstance(item, tree.Function) else self._global(item)
        finally:
            self._under_way.pop()
        self._known[name] = found
        return found

    def required(self, name: str, span: Span) -> Member:
        """Return a member that must be there. Errors: ``csl-unknown``."""
        found = self.member(name)
        if found is None:
            raise unknown_name(name, span, Scope(self))
        return found

    def _elsewhere(self, node: Named) -> Member | None:
        """Return what another module exports where this one says `extern`; None: it says so of nothing here.

        Errors: ``csl-extern``: nobody exports a variable of this name and type, or several modules do.
        """
        if node.linkage != "extern" or (isinstance(node, tree.Declaration) and node.value is not None):
            return None
        name = _linked_name(node, self.scope)
        found = [m for module in self.program.modules for m in module.exported(name) if module is not self]
        if isinstance(node, tree.Function):
            found = [member for member in found if isinstance(member, values.FunctionValue)]
            return found[0] if len(found) == 1 else None
        if len(found) != 1 or isinstance(found[0], values.FunctionValue):
            what = "several modules export" if found else "no other module exports"
            raise fault(
                "csl-extern",
                f"{what} a variable `{name}`",
                node.name_span,
                helps=[f"write `export var {name}` in one module of the program"],
            )
        wanted = None if node.type is None else resolve_type(node.type, self.scope)
        if wanted is not None and wanted != found[0].type:
            raise fault(
                "csl-extern",
                f"`{name}` is a `{found[0].type}` where it is exported",
                node.name_span,
                helps=["give both declarations one type"],
            )
        return found[0]

    def exported(self, name: str) -> Iterator[Member]:
        """Yield what this module exports by a name: nothing, or one member."""
        for own, item in self._items.items():
            if item.linkage == "export" and _linked_name(item, self.scope) == name:
                member = self.member(own)
                if member is not None:
                    yield member

    def _function(self, node: tree.Function) -> values.FunctionValue:
        is_generic = any(p.is_comptime or isinstance(p.type, tree.AnyType) for p in node.parameters)
        if is_generic:
            type_ = types.Function(node.kind, (None,) * len(node.parameters), None)
        else:
            parameters = tuple(resolve_type(p.type, self.scope) for p in node.parameters)
            type_ = types.Function(node.kind, parameters, resolve_type(node.result, self.scope))
        return values.FunctionValue(type_, node, self)

    def _global(self, node: tree.Declaration) -> values.Variable:
        check_declaration(node)
        wanted = None if node.type is None else resolve_type(node.type, self.scope)
        try:
            value = self._value(node, wanted)
        except NotComptime as found:
            raise not_comptime(found, "values of globals are computed at compile time") from None
        if value is None:
            assert wanted is not None
            value = values.Uninitialised(wanted)
        return values.Variable(node.name, wanted or value.type, value, node.kind != "var", self, node)

    def _value(self, node: tree.Declaration, wanted: Type | None) -> Value | None:
        if node.kind == "param" and node.name in self.parameters:
            given = self.parameters[node.name]
            if wanted is None:
                return given
            return _parameter(given, wanted, node, self.span)
        if node.value is not None:
            return named(evaluate(node.value, self.scope, wanted), node.name)
        if node.kind == "param":
            raise fault(
                "csl-param",
                f"parameter `{node.name}` of `{self.file.name}` has no value",
                node.name_span if self.span is None else self.span,
                helps=[f"give it one (`.{node.name} = ...`, `--params={node.name}:...`), or a default"],
            )
        return None

    def finish(self) -> None:
        """Evaluate all globals, then carry out the ``comptime`` blocks.

        What is wrong in a global that nobody asks for is kept in ``program.unused_faults``, as is a parameter
        without a value. Errors: diagnostics.
        """
        for name in self._items:
            try:
                self.member(name)
            except PolyloomError as found:
                self.program.unused_faults.append((self, name, found))
        for item in self.file.tree.items:
            if isinstance(item, tree.ComptimeBlock):
                scope = Scope(self, None, self.program.effects, is_comptime=True)
                try:
                    execute(item.block, scope)
                except NotComptime as found:
                    raise not_comptime(found, "a `comptime` block is carried out at compile time") from None


def _parameter(given: Value, wanted: Type, node: tree.Declaration, span: Span | None) -> Value:
    if wanted == types.COLOR and isinstance(given, values.Scalar) and given.type == types.COMPTIME_INT:
        return values.Handle(types.COLOR, given.value)
    try:
        return convert(given, wanted, node.name_span if span is None else span)
    except PolyloomError as found:
        (first,) = found.diagnostics
        note = f"parameter `{node.name}` of `{node.span.source.name}`"
        raise PolyloomError(_with_note(first, note)) from None


def _with_note(found: Diagnostic, note: str) -> Diagnostic:
    return Diagnostic(
        found.severity, found.code, found.message, found.span, found.label, (*found.notes, note), found.helps
    )


Named = tree.Declaration | tree.Function


def _linked_name(node: Named, scope: Scope) -> str:
    """Return the name by which modules find each other's variables and functions."""
    given = node.link_name if isinstance(node, tree.Declaration) else None
    return node.name if given is None else text(given, scope)


def _items_of(file: tree.File) -> dict[str, Named]:
    found: dict[str, Named] = {}
    for item in file.items:
        if isinstance(item, tree.Declaration | tree.Function):
            if item.name in found:
                first = found[item.name].name_span
                raise fault(
                    "csl-twice",
                    f"`{item.name}` is declared twice",
                    item.name_span,
                    notes=[f"first in line {first.line}"],
                    helps=["rename one of them"],
                )
            found[item.name] = item
    return found


MOST_STEPS = 2_000_000
"""Of the program of a PE: some seconds."""

OF_LAYOUTS = 10
"""So many times as many steps: they go through the PEs of a whole wafer."""

DEEPEST_CALLS = 200


class Program:
    """The modules of one PE's program, or of a layout: all copies in ``modules``, the root first.

    ``rectangle``: width and height, once known. ``printed``: what ``@comptime_print`` was given.
    ``unused_faults``: globals that cannot be evaluated and that nothing needed so far.
    """

    def __init__(self, loader: Loader, arch: str, rectangle: tuple[int, int] | None = None) -> None:
        self.loader = loader
        self.arch = arch
        self.rectangle = rectangle
        self.modules: list[Module] = []
        self.directives: list[Directive] = []
        self.warnings: list[Diagnostic] = []
        self.printed: list[tuple[Span, Value]] = []
        self.unused_faults: list[tuple[Module, str, PolyloomError]] = []
        self.effects: Effects = _Directives(self)
        self.most_steps = MOST_STEPS
        self._steps = 0
        self._depth = 0

    @property
    def root(self) -> Module:
        """The module that all others are imported from."""
        return self.modules[0]

    def instantiate(self, name: str, importer: Module, parameters: Mapping[str, Value], span: Span) -> Module:
        """Return a new copy of a module. Errors: ``csl-import``, ``csl-too-deep`` and those of ``parse``."""
        return self.add(self.loader.find(name, importer.file, span), parameters, span)

    def add(self, file: SourceFile, parameters: Mapping[str, Value], span: Span | None) -> Module:
        """Return a new copy of a file; ``csl-no-param`` warns of parameters that it has not."""
        if len(self.modules) >= 1000:
            where = Span(file.tree.source, 0, 1) if span is None else span
            raise fault("csl-too-deep", "more than 1000 modules", where, helps=["import each module once"])
        module = Module(self, len(self.modules), file, parameters, span)
        self.modules.append(module)
        names = {i.name for i in file.tree.items if isinstance(i, tree.Declaration) and i.kind == "param"}
        for name in parameters:
            if name not in names:
                where = Span(file.tree.source, 0, 1) if span is None else span
                self.warn(
                    "csl-no-param",
                    f"`{file.name}` has no parameter `{name}`",
                    where,
                    f"declare it there (`param {name};`), or leave it out here",
                )
        return module

    def finish(self) -> None:
        """Evaluate all globals and ``comptime`` blocks of all modules. Errors: diagnostics."""
        done = 0
        with deep_recursion():
            while done < len(self.modules):
                self.modules[done].finish()
                done += 1

    def warn(self, code: str, message: str, span: Span, help_: str) -> None:
        """Keep a warning, once for each place."""
        found = warning(code, message, span, helps=[help_])
        if found not in self.warnings:
            self.warnings.append(found)

    def spend(self, span: Span) -> None:
        """Count one step of a loop or one call. Errors: ``csl-endless``."""
        self._steps += 1
        if self._steps > self.most_steps:
            raise fault(
                "csl-endless",
                f"more than {self.most_steps:,} steps at compile time",
                span,
                helps=["check that the loop ends; compute large tables on the host"],
            )

    def enter(self, span: Span) -> None:
        """Count a call that begins. Errors: ``csl-too-deep``."""
        self._depth += 1
        if self._depth > DEEPEST_CALLS:
            raise fault(
                "csl-too-deep",
                f"more than {DEEPEST_CALLS} calls inside each other at compile time",
                span,
                helps=["check that the recursion ends, or write a loop"],
            )

    def leave(self) -> None:
        """Count a call that ends."""
        self._depth -= 1


@contextmanager
def deep_recursion() -> Iterator[None]:
    """Let Python recurse as deep as ``DEEPEST_CALLS`` calls of nested expressions need."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, 60_000))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


class _Directives:
    """Takes the builtins of a PE's ``comptime`` blocks into the program's list."""

    def __init__(self, program: Program) -> None:
        self.program = program

    def perform(self, node: tree.Builtin, scope: Scope) -> Value | None:
        if node.name not in DIRECTIVES:
            return None
        given = tuple(_argument(a, scope) for a in node.arguments)
        check_arguments(node, given)
        if node.name == "set_local_color_config":
            color_of(given[0], node.arguments[0].span)
            color_config(given[1], node.arguments[1].span)
        if node.name == "export_symbol":
            given = _export(node, given, scope)
        self.program.directives.append(
            Directive(node.name, given, node.span, scope.module, node, scope.locals())
        )
        return values.NOTHING


def _argument(node: tree.Expression, scope: Scope) -> Value:
    try:
        return evaluate(node, scope)
    except NotComptime:
        return place(node, scope)


def _export(node: tree.Builtin, given: tuple[Value, ...], scope: Scope) -> tuple[Value, ...]:
    first, *name = arguments(node, 1, 2)
    what = given[0]
    if not isinstance(what, values.FunctionValue):
        what = place(first, scope)
        if what.variable.module is None or what.path:
            raise fault(
                "csl-export",
                "what is exported is a global or a function",
                first.span,
                helps=["name a global"],
            )
    own = what.variable.name if isinstance(what, values.Address) else what.function.name
    return what, values.string(text(name[0], scope) if name else own)


def elaborate(
    loader: Loader,
    file: SourceFile,
    parameters: Mapping[str, Value],
    arch: str,
    rectangle: tuple[int, int] | None,
) -> Program:
    """Return the program of a PE: its file with parameters and everything that it imports, evaluated.

    Errors: diagnostics, one at a time.
    """
    program = Program(loader, arch, rectangle)
    program.add(file, parameters, None)
    program.finish()
    return program
