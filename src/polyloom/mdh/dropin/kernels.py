"""The kernels of a drop-in, and how they start; those of OpenCL: files for people to read, and text in C."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Protocol

from polyloom.ir.types import ElementType
from polyloom.mdh.lowering.launch import Argument, IntegerArgument, Kernel, LocalArgument


@dataclass(frozen=True)
class Start:
    """The start of a kernel: ``lines``; ``ready``: a statement before the first one, which may decline."""

    ready: str
    lines: tuple[str, ...]


class Kernels(Protocol):
    """Kernels that the functions launch, and how. ``opening``: what opens the device.

    ``integers``, ``pointers``: an array of ``{values}`` as an argument.
    """

    integers: str
    pointers: str

    @property
    def opening(self) -> str:
        """Return the statement that opens the device."""

    def start(self, kernel: Kernel, part: str, arguments: Sequence[str], sizes: Sizes) -> Start:
        """Take a kernel in, and return how it is started.

        ``part`` begins the names of what it needs first; ``arguments``: integers, and arrays without a
        ``&``; ``sizes``: all items, and those of a group.
        """


Sizes = tuple[Sequence[str], Sequence[str] | None]


_Source = tuple[str, tuple[str, ...]]
"""The text and the options of its build."""


@dataclass(eq=False, kw_only=True)
class KernelTable:
    """Collects kernels, each source and each kernel once.

    ``device``: the name of the device that they are made for; ``options``: of every build.
    """

    device: str
    for_gpu: bool
    options: tuple[str, ...] = ()
    integers: str = "(int64_t[]){{{values}}}"
    pointers: str = "(struct polyloom_array *[]){{{values}}}"
    _sources: dict[_Source, str] = field(default_factory=dict)
    _kernels: dict[tuple[_Source, str], str] = field(default_factory=dict)

    @property
    def opening(self) -> str:
        """Return the statement that opens the device."""
        return f"polyloom_open({quoted(self.device)}, {int(self.for_gpu)});"

    def start(self, kernel: Kernel, part: str, arguments: Sequence[str], sizes: Sizes) -> Start:
        """Take a kernel in, and return how it is started."""
        name = self.add(kernel, part)
        given = zip(kernel.arguments, arguments, strict=True)
        lines = [
            f"{_pass(argument)}(&{name}, {k}, {_given(argument, text)});"
            for k, (argument, text) in enumerate(given)
        ]
        items, groups = (
            None if each is None else self.integers.format(values=", ".join(each)) for each in sizes
        )
        launch = f"polyloom_launch(&{name}, {len(sizes[0])}, {items}, {groups or 'NULL'});"
        return Start(f"polyloom_ready(&{name});", (*lines, launch))

    def add(self, kernel: Kernel, part: str) -> str:
        """Return the C variable of a kernel; ``part`` begins the names of what it needs first."""
        source = (kernel.source, kernel.options)
        if source not in self._sources:
            self._sources[source] = unused(f"{part}_{kernel.name}", self._sources.values())
        if (source, kernel.name) not in self._kernels:
            name = unused(f"kernel_{part}_{kernel.name}", self._kernels.values())
            self._kernels[source, kernel.name] = name
        return self._kernels[source, kernel.name]

    def files(self) -> dict[str, str]:
        """Return the kernels as files, name to text."""
        return {f"{name}.cl": text for (text, _), name in self._sources.items()}

    def definitions(self) -> str:
        """Return the kernels as C: texts, sources and the variables that ``add`` returned."""
        return "\n".join([*self._texts(), *self._variables(), ""])

    def _texts(self) -> Iterator[str]:
        for (text, options), name in self._sources.items():
            lines = text.splitlines()
            yield f"static const char *const lines_{name}[] = {{"
            yield from (f"    {quoted(line + chr(10))}," for line in lines)
            yield "};"
            built = quoted(" ".join((*self.options, *options)))
            yield f"static struct polyloom_source source_{name} = {{"
            yield f"    {quoted(name + '.cl')}, lines_{name}, {len(lines)}, {built}, NULL}};"
            yield ""

    def _variables(self) -> Iterator[str]:
        for (source, name), variable in self._kernels.items():
            fields = f"&source_{self._sources[source]}, {quoted(name)}, NULL"
            yield f"static struct polyloom_kernel {variable} = {{{fields}}};"


def _pass(argument: Argument) -> str:
    match argument:
        case LocalArgument():
            return "polyloom_pass_local"
        case IntegerArgument(type=kind):
            return "polyloom_pass_int" if kind is ElementType.INT32 else "polyloom_pass_long"
        case _:
            return "polyloom_pass"


def _given(argument: Argument, text: str) -> str:
    return text if isinstance(argument, LocalArgument | IntegerArgument) else f"&{text}"


def quoted(text: str) -> str:
    """Return a text as a string literal of C."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return '"' + escaped.replace("??", "?\\?") + '"'


def unused(name: str, taken: Collection[str]) -> str:
    """Return the name, with a number where it is taken."""
    candidates = (name if k == 1 else f"{name}_{k}" for k in count(1))
    return next(candidate for candidate in candidates if candidate not in taken)
