"""What drives statements where the map does not say: a dense stream, element by element, or none, by cost.

A statement that no stream drives runs once, when its streams have been taken into memory. Each choice is
compiled and priced as a whole layer, since what one statement waits for delays the others. Not in the papers,
which let a dense tensor be read as a whole, or drive (dtg_codegen, Sec. 4.2), and leave the choice open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from polyloom.diagnostics import PolyloomError
from polyloom.ir.program import Program
from polyloom.polyhedra.effort import TooHardError, at_most
from polyloom.wafer.dataflow.tasks import possible_drivers
from polyloom.wafer.mapping.mapping import Mapping as LairMap
from polyloom.wafer.mapping.text import NOTHING

Drivers = Mapping[str, str | None]
"""Statement to the stream that drives it, or None."""

_Analysis = TypeVar("_Analysis")


@dataclass(frozen=True)
class DriverEstimate:
    """What drives the statements whose driver the map leaves open, and the cycles of an invocation then.

    ``cycles``: None where that was refused, for the ``reason``.
    """

    drivers: tuple[tuple[str, str | None], ...]
    cycles: float | None
    reason: str = ""

    @property
    def text(self) -> str:
        """The entry of a map that asks for it: ``trigger: f = x, g = none``."""
        return f"trigger: {', '.join(f'{name} = {stream or NOTHING}' for name, stream in self.drivers)}"


def choose_drivers(
    program: Program,
    mapping: LairMap,
    analyse: Callable[[LairMap], _Analysis],
    price: Callable[[_Analysis], float],
) -> tuple[_Analysis, tuple[tuple[DriverEstimate, _Analysis | None], ...]]:
    """Return the analysis with the drivers that cost least, and all that were compared, the chosen one first.

    Each of these has its own analysis, None where it was refused.

    Nothing is compared, and nothing priced, where the map or sparse streams leave no choice. ``analyse``,
    ``price``: may raise PolyloomError where a map is refused; that of the default drivers is raised.
    """
    options = {s.name: possible_drivers(program, mapping, s) for s in program.statements}
    open_ended = {name: found for name, found in options.items() if len(found) > 1}
    default = analyse(mapping)
    if not open_ended:
        return default, ()
    search = _Search(mapping, analyse, price)
    first = {name: found[0] for name, found in open_ended.items()}
    search.add(first, default)
    for drivers in _tried(open_ended, lambda: search.best or first):
        if len(search.seen) < _MOST_PRICED:
            search.add(drivers)
    ranked = sorted(search.seen.values(), key=lambda e: float("inf") if e.cycles is None else e.cycles)
    chosen = search.seen[_key(search.best or first)]
    in_order = (chosen, *(e for e in ranked if e is not chosen))
    return search.found or default, tuple((e, search.analyses.get(e.drivers)) for e in in_order)


_MOST_PRICED = 12
"""Choices that are compiled; a layer of one statement has two or three."""

_EFFORT = 6_000_000
"""Operations of isl for one choice and statement: about a second and a half. The default one has no limit."""

_GAIN = 0.97
"""The default is left only for what is estimated to take so much of its cycles."""


def _tried(options: Mapping[str, tuple[str | None, ...]], best: Callable[[], Drivers]) -> Iterator[Drivers]:
    """Yield choices: none drives at all; then one statement after the other changed in the best so far."""
    yield {name: None if None in found else found[0] for name, found in options.items()}
    for name, found in options.items():
        for other in found:
            yield {**best(), name: other}


def _key(drivers: Drivers) -> tuple[tuple[str, str | None], ...]:
    return tuple(drivers.items())


class _Search(Generic[_Analysis]):
    """``seen``, ``analyses``: what came of each choice; ``best`` and ``found``: the cheapest and its own."""

    def __init__(
        self,
        mapping: LairMap,
        analyse: Callable[[LairMap], _Analysis],
        price: Callable[[_Analysis], float],
    ) -> None:
        self.mapping = mapping
        self.analyse = analyse
        self.price = price
        self.seen: dict[tuple[tuple[str, str | None], ...], DriverEstimate] = {}
        self.analyses: dict[tuple[tuple[str, str | None], ...], _Analysis] = {}
        self.best: Drivers | None = None
        self.found: _Analysis | None = None
        self.least = float("inf")

    def add(self, drivers: Drivers, known: _Analysis | None = None) -> None:
        """Compile and price a choice that was not yet; ``known``: its analysis."""
        key = _key(drivers)
        if key in self.seen:
            return
        try:
            with at_most(_EFFORT * (1 + len(self.mapping.placement))):
                analysis = self._analysed(drivers) if known is None else known
                cycles = self.price(analysis)
        except (PolyloomError, TooHardError) as refusal:
            self.seen[key] = DriverEstimate(key, None, str(refusal).splitlines()[0])
            return
        self.seen[key] = DriverEstimate(key, cycles)
        self.analyses[key] = analysis
        if cycles < self.least:
            self.best, self.found = drivers, analysis
            self.least = _GAIN * cycles if known is not None else cycles

    def _analysed(self, drivers: Drivers) -> _Analysis:
        return self.analyse(replace(self.mapping, trigger={**self.mapping.trigger, **drivers}))
