"""The layout block, carried out: which PE runs what, how its router is set, what the host finds by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from polyloom.csl import types, values
from polyloom.csl.comptime.builtins import LAYOUT, arguments, integer, misplaced, text
from polyloom.csl.comptime.colors import ColorConfig, color_config, color_of
from polyloom.csl.comptime.evaluate import evaluate, resolve_type, truth
from polyloom.csl.comptime.execute import execute
from polyloom.csl.comptime.faults import NotComptime, fault, not_comptime
from polyloom.csl.comptime.modules import (
    OF_LAYOUTS,
    Loader,
    Program,
    SourceFile,
    deep_recursion,
)
from polyloom.csl.comptime.scope import Scope
from polyloom.csl.syntax import tree
from polyloom.csl.types import Type
from polyloom.csl.values import Value
from polyloom.diagnostics import Diagnostic, PolyloomError, Span, error


@dataclass(frozen=True)
class TileProgram:
    """A file with the parameters of ``@set_tile_code``; PEs with equal ones run one program."""

    file: SourceFile
    parameters: tuple[tuple[str, Value], ...]
    span: Span = field(compare=False)


@dataclass(frozen=True)
class Export:
    """A name that the host knows, with its type; functions are not ``mutable``."""

    name: str
    type: Type
    is_mutable: bool
    span: Span = field(compare=False)


@dataclass
class Layout:
    """What a layout block sets: coordinates are (column, row) in the rectangle.

    ``tiles``: an index into ``programs`` for each PE; ``colors``: by column, row and color, with its place.
    """

    arch: str
    width: int = 0
    height: int = 0
    programs: list[TileProgram] = field(default_factory=list)
    tiles: dict[tuple[int, int], int] = field(default_factory=dict)
    tile_spans: dict[tuple[int, int], Span] = field(default_factory=dict)
    colors: dict[tuple[int, int, int], tuple[ColorConfig, Span]] = field(default_factory=dict)
    exports: list[Export] = field(default_factory=list)
    warnings: list[Diagnostic] = field(default_factory=list)


def run_layout(
    loader: Loader,
    path: Path,
    arch: str,
    parameters: Mapping[str, int],
    colors: Mapping[str, int] | None = None,
) -> Layout:
    """Return the layout of a program.

    ``parameters``, ``colors``: those of the command line. Errors: ``csl-layout`` where there is no layout
    block, no rectangle, or a PE without a program, and the diagnostics of the program.
    """
    program = Program(loader, arch)
    program.most_steps *= OF_LAYOUTS
    given: dict[str, Value] = {n: values.integer(v) for n, v in parameters.items()}
    given |= {n: values.Handle(types.COLOR, v) for n, v in (colors or {}).items()}
    file = loader.open(path)
    builder = _Builder(program)
    program.effects = builder
    root = program.add(file, given, None)
    blocks = [i for i in file.tree.items if isinstance(i, tree.LayoutBlock)]
    if len(blocks) != 1:
        raise _without(file) if not blocks else _second(blocks[1])
    with deep_recursion():
        try:
            execute(blocks[0].block, Scope(root, None, builder, is_comptime=True))
        except NotComptime as found:
            raise not_comptime(found, "the layout is made at compile time") from None
        program.finish()
    builder.check(blocks[0])
    builder.layout.warnings = program.warnings
    return builder.layout


def _without(file: SourceFile) -> PolyloomError:
    return PolyloomError(
        error(
            "csl-layout",
            f"`{file.name}` has no `layout` block",
            helps=["give the file that has it; a program has one, with `@set_rectangle` in it"],
        )
    )


def _second(block: tree.LayoutBlock) -> PolyloomError:
    start = block.span.start
    span = Span(block.span.source, start, start + len("layout"))
    return fault("csl-layout", "a second `layout` block", span, helps=["put all of it into one"])


class _Builder:
    """Takes the builtins of a layout block."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.layout = Layout(program.arch)
        self._numbers: dict[TileProgram, int] = {}
        self._configs: dict[Value, ColorConfig] = {}

    def perform(self, node: tree.Builtin, scope: Scope) -> Value | None:
        if node.name not in LAYOUT:
            raise misplaced(node)
        _TAKERS[node.name](self, node, scope)
        return values.NOTHING

    def rectangle(self, node: tree.Builtin, scope: Scope) -> None:
        width, height = (integer(n, scope, "a size") for n in arguments(node, 2))
        if self.program.rectangle is not None:
            raise fault("csl-layout", "the rectangle is set twice", node.span, helps=["set it once"])
        if width < 1 or height < 1:
            raise fault(
                "csl-layout",
                f"a rectangle of {width} x {height} PEs",
                node.span,
                helps=["give it PEs: 1 or more"],
            )
        self.program.rectangle = (width, height)
        self.layout.width, self.layout.height = width, height

    def _at(self, node: tree.Builtin, scope: Scope) -> tuple[int, int]:
        x, y = (integer(n, scope, "a coordinate") for n in node.arguments[:2])
        if self.program.rectangle is None:
            raise fault(
                "csl-layout",
                "the rectangle is not set yet",
                node.span,
                helps=["call `@set_rectangle` before"],
            )
        width, height = self.program.rectangle
        if not (0 <= x < width and 0 <= y < height):
            raise fault(
                "csl-layout",
                f"PE ({x}, {y}) is outside the rectangle of {width} x {height}",
                node.span,
                helps=["coordinates are (column, row), from (0, 0)"],
            )
        return x, y

    def tile(self, node: tree.Builtin, scope: Scope) -> None:
        given = arguments(node, 3, 4)
        at = self._at(node, scope)
        if at in self.layout.tiles:
            raise fault(
                "csl-layout",
                f"PE {at} has a program already",
                node.span,
                notes=[f"set in line {self.layout.tile_spans[at].line}"],
                helps=["set each PE's program once"],
            )
        file = self.program.loader.find(text(given[2], scope), scope.module.file, given[2].span)
        parameters: tuple[tuple[str, Value], ...] = ()
        if len(given) == 4:
            struct = evaluate(given[3], scope)
            if not isinstance(struct, values.StructValue):
                raise fault(
                    "csl-type",
                    f"parameters are a struct, this is a `{struct.type}`",
                    given[3].span,
                    helps=["write `.{ .name = value }`"],
                )
            parameters = tuple((f.name, v) for f, v in zip(struct.type.fields, struct.fields, strict=True))
        key = TileProgram(file, parameters, node.span)
        number = self._numbers.setdefault(key, len(self._numbers))
        if number == len(self.layout.programs):
            self.layout.programs.append(key)
        self.layout.tiles[at] = number
        self.layout.tile_spans[at] = node.span

    def color(self, node: tree.Builtin, scope: Scope) -> None:
        given = arguments(node, 4)
        at = self._at(node, scope)
        color = color_of(evaluate(given[2], scope), given[2].span)
        key = (*at, color)
        if key in self.layout.colors:
            raise fault(
                "csl-layout",
                f"color {color} of PE {at} is configured already",
                node.span,
                notes=[f"in line {self.layout.colors[key][1].line}"],
                helps=["configure each color of a PE once, with all that it needs"],
            )
        value = evaluate(given[3], scope)
        if value not in self._configs:
            self._configs[value] = color_config(value, given[3].span)
        self.layout.colors[key] = (self._configs[value], node.span)

    def export(self, node: tree.Builtin, scope: Scope) -> None:
        name_node, type_node, *mutable = arguments(node, 2, 3)
        name, type_ = text(name_node, scope), resolve_type(type_node, scope)
        if any(e.name == name for e in self.layout.exports):
            raise fault("csl-export", f"`{name}` is exported twice", node.span, helps=["export it once"])
        is_function = isinstance(type_, types.Function)
        if not is_function and not mutable:
            raise fault(
                "csl-export",
                f"`@export_name` of `{name}` says not whether the host may write it",
                node.span,
                helps=["add `true` or `false` as the third argument"],
            )
        if isinstance(type_, types.Array | types.Struct):
            raise fault(
                "csl-export",
                f"`{name}` is exported as `{type_}`",
                type_node.span,
                helps=["export a pointer to its elements: `[*]T`"],
            )
        is_mutable = bool(mutable) and truth(mutable[0], scope)
        self.layout.exports.append(Export(name, type_, is_mutable, node.span))

    def check(self, block: tree.LayoutBlock) -> None:
        """Check that the rectangle is set and each PE has a program. Errors: ``csl-layout``."""
        start = block.span.start
        span = Span(block.span.source, start, start + len("layout"))
        if self.program.rectangle is None:
            raise fault(
                "csl-layout", "no rectangle is set", span, helps=["call `@set_rectangle(w, h)` first"]
            )
        width, height = self.program.rectangle
        if len(self.layout.tiles) < width * height:
            free = next(
                (x, y) for y in range(height) for x in range(width) if (x, y) not in self.layout.tiles
            )
            raise fault(
                "csl-layout",
                f"PE {free} has no program",
                span,
                helps=["call `@set_tile_code` for each PE of the rectangle"],
            )


_TAKERS = {
    "set_rectangle": _Builder.rectangle,
    "set_tile_code": _Builder.tile,
    "set_color_config": _Builder.color,
    "export_name": _Builder.export,
}
