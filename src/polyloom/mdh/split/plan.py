"""How many rows each place gets, and from how many on that pays: by times that were measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

MOST_ROWS = 1 << 40
"""Where a break-even is no longer looked for."""


_PAYS = 0.95
"""The part of the time of the best place alone that several must stay below."""


@dataclass(frozen=True)
class Cost:
    """Seconds of a place: ``fixed`` of each call, ``row`` of each row, copies and transfers among them."""

    fixed: float
    row: float

    def seconds(self, rows: int) -> float:
        """Return what so many rows are expected to take; none take nothing."""
        return self.fixed + rows * self.row if rows else 0.0


def line(first: tuple[int, float], second: tuple[int, float]) -> Cost:
    """Return the cost through two measurements (rows, seconds), the second of more rows.

    Neither part is negative.
    """
    (few, fast), (many, slow) = first, second
    row = max(slow - fast, 0.0) / (many - few) if many > few else slow / many
    row = max(row, 0.01 * slow / many)
    return Cost(max(slow - many * row, 0.0), row)


@dataclass(frozen=True)
class Share:
    """The rows of a place, from ``first`` on."""

    place: str
    cost: Cost
    first: int
    rows: int

    @property
    def seconds(self) -> float:
        """What they are expected to take."""
        return self.cost.seconds(self.rows)


@dataclass(frozen=True)
class Plan:
    """``shares``: of all places that there are; ``alone``: the best place for all rows, and its seconds.

    ``pays_from``: rows from which several places are expected to be faster than the best one; None: never.
    ``measured``: seconds of a run on all and of one on the best alone, once that was done.
    """

    shares: tuple[Share, ...]
    alone: tuple[str, float]
    pays_from: int | None
    measured: tuple[float, float] | None = None

    @property
    def seconds(self) -> float:
        """What a run is expected to take."""
        return max(share.seconds for share in self.shares)

    def json(self) -> dict[str, Any]:
        """Return the part ``split`` of the document of ``run --json`` (docs/interface.md)."""
        rows = [
            {
                "place": s.place,
                "first": s.first,
                "rows": s.rows,
                "seconds": s.seconds,
                "seconds_fixed": s.cost.fixed,
                "seconds_per_row": s.cost.row,
            }
            for s in self.shares
        ]
        return {
            "shares": rows,
            "seconds": self.seconds,
            "alone": {"place": self.alone[0], "seconds": self.alone[1]},
            "pays_from": self.pays_from,
            "measured": None
            if self.measured is None
            else {"seconds": self.measured[0], "alone": self.measured[1]},
        }


def divide(rows: int, places: Sequence[tuple[str, Cost]]) -> Plan:
    """Return a plan by which the last place is done as early as can be; a slow place may get nothing."""
    counts = _counts(rows, [cost for _, cost in places])
    firsts = [sum(counts[:k]) for k in range(len(counts))]
    shares = tuple(
        Share(name, cost, first, count)
        for (name, cost), first, count in zip(places, firsts, counts, strict=True)
    )
    name, cost = min(places, key=lambda place: place[1].seconds(rows))
    return Plan(shares, (name, cost.seconds(rows)), pays_from([cost for _, cost in places]))


def measured(plan: Plan, several: float, alone: float) -> Plan:
    """Return a plan with seconds of a run on all places, and of one on the best alone.

    What several took beyond what was expected is taken to be what their working at a time costs in each call.
    """
    costs = [share.cost for share in plan.shares]
    found = pays_from(costs, max(0.0, several - plan.seconds))
    rows = sum(share.rows for share in plan.shares)
    if found is not None and found <= rows and several >= _PAYS * alone:
        found = None
    return replace(plan, measured=(several, alone), pays_from=found)


def _counts(rows: int, costs: Sequence[Cost]) -> list[int]:
    """Return the rows of each place: as many as it does within the least time that suffices for all."""
    low, high = 0.0, max(cost.seconds(rows) for cost in costs)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if sum(_within(middle, costs)) >= rows else (middle, high)
    counts = [min(rows, count) for count in _within(high, costs)]
    for _ in range(sum(counts) - rows):  # at most one for each place: those that end at the same time
        last = max(range(len(counts)), key=lambda k: costs[k].seconds(counts[k]))
        counts[last] -= 1
    return counts


def _within(seconds: float, costs: Sequence[Cost]) -> list[int]:
    return [max(0, int((seconds - cost.fixed) / cost.row + 1e-9)) for cost in costs]


def pays_from(costs: Sequence[Cost], together: float = 0.0) -> int | None:
    """Return the least power of two rows, or three quarters of one, for which several are faster than one.

    ``together``: seconds of each call of several, beside what their rows take.
    """
    rows = 2
    while rows < MOST_ROWS:
        for count in (rows, rows + rows // 2):
            several = max(cost.seconds(n) for cost, n in zip(costs, _counts(count, costs), strict=True))
            if several + together < _PAYS * min(cost.seconds(count) for cost in costs):
                return count
        rows *= 2
    return None
