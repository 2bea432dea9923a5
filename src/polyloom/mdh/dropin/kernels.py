"""The kernels of a drop-in: files for people to read, and the same text in C for the program to build."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from itertools import count

from polyloom.mdh.lowering.launch import Kernel

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
    _sources: dict[_Source, str] = field(default_factory=dict)
    _kernels: dict[tuple[_Source, str], str] = field(default_factory=dict)

    def add(self, kernel: Kernel, part: str) -> str:
        """Return the C variable of a kernel; ``part`` begins the names of what it needs first."""
        source = (kernel.source, kernel.options)
        if source not in self._sources:
            self._sources[source] = _unused(f"{part}_{kernel.name}", self._sources.values())
        if (source, kernel.name) not in self._kernels:
            name = _unused(f"kernel_{part}_{kernel.name}", self._kernels.values())
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


def quoted(text: str) -> str:
    """Return a text as a string literal of C."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return '"' + escaped.replace("??", "?\\?") + '"'


def _unused(name: str, taken: Collection[str]) -> str:
    """Return the name, with a number where it is taken."""
    candidates = (name if k == 1 else f"{name}_{k}" for k in count(1))
    return next(candidate for candidate in candidates if candidate not in taken)
