"""Several kernels as one program: a driver reads its own headers for each, however short it is.

PoCL takes a tenth of a second for a program of one kernel, and little more for one of thirty.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from polyloom.mdh.lowering.launch import Kernel
from polyloom.mdh.print.kernel_source import UNCONTRACTED

_HELPER = re.compile(r"^static (?:__device__ )?inline\b[^(]*?\b(\w+)\(", re.MULTILINE)


@dataclass(frozen=True)
class JointSource:
    """One program; ``names``: by their positions, how the kernels that it holds are called there."""

    source: str
    options: tuple[str, ...]
    names: Mapping[int, str]


def joint_sources(kernels: Sequence[Kernel]) -> list[JointSource]:
    """Return programs that hold all of the kernels: one for each set of options.

    A pragma on contraction holds to the end of a program, so that kernels with and without one stay apart.
    """
    groups: dict[tuple[tuple[str, ...], bool], dict[int, Kernel]] = {}
    for position, kernel in enumerate(kernels):
        key = kernel.options, kernel.source.startswith(UNCONTRACTED)
        groups.setdefault(key, {})[position] = kernel
    return [_joined(group, options) for (options, _), group in groups.items()]


def _joined(kernels: Mapping[int, Kernel], options: tuple[str, ...]) -> JointSource:
    """Functions that have the name of an earlier one are renamed, by macros around their text."""
    sources: dict[str, set[str]] = {}
    for kernel in kernels.values():
        sources.setdefault(kernel.source, set()).add(kernel.name)
    taken: set[str] = set()
    texts: list[str] = []
    renamed: dict[str, dict[str, str]] = {}
    for number, (source, names) in enumerate(sources.items()):
        defined = {*_HELPER.findall(source), *names}
        macros = renamed[source] = {name: f"{name}_in_{number}" for name in sorted(defined & taken)}
        taken |= defined
        texts += [f"#define {old} {new}\n" for old, new in macros.items()]
        texts += [source, "\n", *(f"#undef {old}\n" for old in macros)]
    called = {at: renamed[kernel.source].get(kernel.name, kernel.name) for at, kernel in kernels.items()}
    return JointSource("".join(texts), options, called)
