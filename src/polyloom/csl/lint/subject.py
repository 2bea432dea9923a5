"""What is looked at: a layout and the elaborated programs of its PEs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from polyloom.csl import types, values
from polyloom.csl.comptime import ColorConfig, Directive, Layout, Module, Program, color_config
from polyloom.csl.comptime.colors import color_of
from polyloom.diagnostics import Span

MEMCPY = "<memcpy/memcpy>"


@dataclass(frozen=True)
class Subject:
    """``programs`` in the order of ``layout.programs``."""

    layout: Layout
    programs: tuple[Program, ...]

    @property
    def arch(self) -> str:
        """The architecture: ``wse2`` or ``wse3``."""
        return self.layout.arch

    def directives(self, *names: str) -> Iterator[tuple[Program, Directive]]:
        """Yield the users' directives of these names, program by program."""
        for program in self.programs:
            for directive in program.directives:
                if directive.name in names and is_users(directive.module):
                    yield program, directive

    def variables(self) -> Iterator[tuple[Program, values.Variable]]:
        """Yield the users' globals that are evaluated."""
        for program in self.programs:
            for module in program.modules:
                if is_users(module):
                    for _, member in module.members():
                        if isinstance(member, values.Variable):
                            yield program, member

    @cached_property
    def colors(self) -> dict[tuple[int, int, int], tuple[ColorConfig, Span]]:
        """The configuration of each color in each router: of the layout and of the PEs' programs."""
        found = dict(self.layout.colors)
        local = [self._local(program) for program in self.programs]
        for (x, y), number in self.layout.tiles.items():
            for color, config in local[number].items():
                found.setdefault((x, y, color), config)
        return found

    @staticmethod
    def _local(program: Program) -> dict[int, tuple[ColorConfig, Span]]:
        found: dict[int, tuple[ColorConfig, Span]] = {}
        for directive in program.directives:
            if directive.name == "set_local_color_config" and len(directive.arguments) == 2:
                color, config = directive.arguments
                number = color_of(color, directive.span)
                found.setdefault(number, (color_config(config, directive.span), directive.span))
        return found


def is_users(module: Module) -> bool:
    """Return whether a module is of a file of the user's, and not of a library."""
    return module.file.path is not None


def uses_memcpy(program: Program) -> bool:
    """Return whether a program imports memcpy, which keeps colors, queues and registers for itself."""
    return any(module.file.name == MEMCPY for module in program.modules)


def place_of(variable: values.Variable) -> Span:
    """Return where a global is declared."""
    assert variable.declaration is not None
    return variable.declaration.name_span


def is_handle(value: values.Value, *kinds: types.Type) -> bool:
    """Return whether a value is a color, queue, id or register of one of these types."""
    return isinstance(value, values.Handle) and value.type in kinds
