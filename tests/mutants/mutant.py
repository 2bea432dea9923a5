"""What a mutant is: one changed line of a module, and the probe that must notice it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

SOURCES = Path(__file__).parents[2] / "src" / "polyloom"


@dataclass(frozen=True)
class Probe:
    """``function``: ``module.function`` of the tests; with ``arguments``, it raises where something is wrong.

    ``driver``: what runs kernels: the usual OpenCL driver, or ``oclgrind``.
    """

    function: str
    arguments: tuple[object, ...] = ()
    driver: str = "usual"

    def __str__(self) -> str:
        inside = ", ".join(map(str, self.arguments))
        return f"{self.function}({inside})"


@dataclass(frozen=True)
class Mutant:
    """``new`` in place of ``old``, which is part of one line of ``module`` and occurs once there.

    ``fast``: one of the few that ``make test`` tries too.
    """

    module: str
    old: str
    new: str
    probe: Probe
    fast: bool = False

    @property
    def path(self) -> Path:
        return SOURCES / f"{self.module}.py"

    @property
    def name(self) -> str:
        return "polyloom." + self.module.replace("/", ".")

    def text(self) -> str:
        """Return the changed source."""
        return self.path.read_text().replace(self.old, self.new)

    def __str__(self) -> str:
        return f"{self.module}: {self.new.strip() or 'nothing'}"


def probes(mutants: Iterable[Mutant]) -> tuple[Probe, ...]:
    return tuple(dict.fromkeys(mutant.probe for mutant in mutants))
