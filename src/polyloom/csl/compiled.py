"""A compiled CSL program: plain values that can be written to a file, and are enough to put it on a wafer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Exported:
    """An exported name: a pointer with its element type, or a function with its parameters' types."""

    name: str
    element: str | None
    mutable: bool = False
    parameters: tuple[str, ...] = ()

    @property
    def is_function(self) -> bool:
        """Whether the host launches it."""
        return self.element is None


@dataclass(frozen=True)
class Symbol:
    """A global variable in a PE's memory: byte address, bytes, type of its elements such as `f32`."""

    address: int
    size: int
    element: str
    is_pointer: bool = False


@dataclass(frozen=True)
class DebugBuffer:
    """Where an instance of `<debug>` keeps its records: byte addresses of its two arrays."""

    key: str
    buffer: int
    state: int


@dataclass(frozen=True)
class Task:
    """A task and its id. kind: `data`, `local` or `control`; started_by: what starts it, in words."""

    name: str
    kind: str
    id: int
    started_by: tuple[str, ...]


@dataclass(frozen=True)
class Queue:
    """An initialised queue. kind: `input` or `output`; color: None where descriptors have it."""

    kind: str
    id: int
    color: int | None


@dataclass(frozen=True)
class Overview:
    """What a person is told of a PE program.

    parameters: as CSL writes them; memory: name, type of the elements and bytes of each variable.
    """

    file: str = ""
    parameters: tuple[tuple[str, str], ...] = ()
    tasks: tuple[Task, ...] = ()
    queues: tuple[Queue, ...] = ()
    memory: tuple[tuple[str, str, int], ...] = ()


@dataclass(frozen=True)
class Unit:
    """A PE program as C, and what lies in memory at the start.

    image: memory from address 0 on; initialised: a byte for each 16-bit word of it, 1 where it holds a
    value. symbols: what `@export_symbol` names; variables: globals of the root module by their own names.
    host_in, host_out: colors that the host feeds and drains, from the parameters of `<memcpy/memcpy>`.
    """

    name: str
    text: str
    image: bytes
    initialised: bytes
    symbols: Mapping[str, Symbol] = field(default_factory=dict)
    variables: Mapping[str, Symbol] = field(default_factory=dict)
    functions: tuple[str, ...] = ()
    host_in: tuple[int, ...] = ()
    host_out: tuple[int, ...] = ()
    debug: tuple[DebugBuffer, ...] = ()
    overview: Overview = Overview()


@dataclass(frozen=True)
class Compiled:
    """A program of width x height PEs.

    tiles: the unit of each PE (x, y) that has one; routes: its color configurations. color_names: what the
    programs call the colors. sources: the files that it was compiled from, by their names in messages.
    """

    arch: str
    width: int
    height: int
    units: tuple[Unit, ...]
    tiles: Mapping[tuple[int, int], int]
    routes: Mapping[tuple[int, int], tuple[Any, ...]]
    exports: tuple[Exported, ...] = ()
    color_names: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)

    def unit(self, x: int, y: int) -> Unit | None:
        """Return the program of a PE."""
        number = self.tiles.get((x, y))
        return None if number is None else self.units[number]

    def symbol(self, x: int, y: int, name: str) -> Symbol | None:
        """Return what a PE exports under a name."""
        unit = self.unit(x, y)
        return None if unit is None else unit.symbols.get(name)

    def variable(self, x: int, y: int, name: str) -> Symbol | None:
        """Return a global of a PE's root module."""
        unit = self.unit(x, y)
        return None if unit is None else unit.variables.get(name)

    def functions(self, x: int, y: int) -> tuple[str, ...]:
        """Return the names that can be launched on a PE."""
        unit = self.unit(x, y)
        return () if unit is None else unit.functions

    def debug_buffer(self, x: int, y: int, key: str) -> DebugBuffer | None:
        """Return where the `<debug>` of a PE with this key keeps its records."""
        unit = self.unit(x, y)
        return next((b for b in unit.debug if b.key == key), None) if unit is not None else None
