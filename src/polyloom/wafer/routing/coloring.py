"""Colors by graph colouring: what never meets on a router may share one.

A router has one route for a color, so two uses conflict where they pass a router both. Nothing else does:
wavelets stay on the routers of their own use, and an external PE tells colors apart at its own port only.
Not in the papers: dtg_codegen gives every communication a color of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import islpy as isl

BUDGET = 20_000
"""Steps of the search for a colouring with fewer colors than the first one needs."""


@dataclass(frozen=True, eq=False)
class Use:
    """What wants one color: what it carries, for a person, and the routers that it passes."""

    what: str
    pes: isl.Set


def conflicts_of(uses: Sequence[Use]) -> tuple[frozenset[int], ...]:
    """Return, for each use, the others that pass one of its routers."""
    found: list[set[int]] = [set() for _ in uses]
    for k, use in enumerate(uses):
        for other in range(k):
            if not use.pes.is_disjoint(uses[other].pes):
                found[k].add(other)
                found[other].add(k)
    return tuple(frozenset(numbers) for numbers in found)


def color_uses(uses: Sequence[Use], colors: int) -> tuple[int, ...] | None:
    """Return a color for each use, conflicting ones apart; None where ``colors`` were not found to do.

    The first colouring tried takes the uses in their order and gives each the least color that is free.
    """
    conflicts = conflicts_of(uses)
    found = _first_fit(conflicts)
    if max(found, default=-1) < colors:
        return found
    return _search(conflicts, colors)


def _first_fit(conflicts: Sequence[frozenset[int]]) -> tuple[int, ...]:
    found: list[int] = []
    for k, others in enumerate(conflicts):
        taken = {found[other] for other in others if other < k}
        found.append(next(color for color in range(len(conflicts)) if color not in taken))
    return tuple(found)


def _search(conflicts: Sequence[frozenset[int]], colors: int) -> tuple[int, ...] | None:
    """Backtrack over the uses, the most constrained first (DSATUR; Brelaz, CACM 22(4), 1979)."""
    left = BUDGET

    def extend(known: Mapping[int, int]) -> Mapping[int, int] | None:
        nonlocal left
        left -= 1
        if len(known) == len(conflicts) or left < 0:
            return known if left >= 0 else None
        use = max(
            (k for k in range(len(conflicts)) if k not in known),
            key=lambda k: (len({known[o] for o in conflicts[k] if o in known}), len(conflicts[k]), -k),
        )
        taken = {known[other] for other in conflicts[use] if other in known}
        in_use = max(known.values(), default=-1) + 1  # of the colors not in use one is like another
        for color in range(min(colors, in_use + 1)):
            found = None if color in taken else extend({**known, use: color})
            if found is not None or left < 0:
                return found
        return None

    found = extend({})
    return None if found is None else tuple(found[k] for k in range(len(conflicts)))


def greedy_clique(uses: Sequence[Use]) -> tuple[isl.Set, tuple[Use, ...]]:
    """Return routers on which many uses meet, and these: from each use on, whatever still meets.

    Raises ValueError where there are no uses.
    """
    found = [_meeting(uses, k) for k in range(len(uses))]
    return max(found, key=lambda one: len(one[1]))


def _meeting(uses: Sequence[Use], first: int) -> tuple[isl.Set, tuple[Use, ...]]:
    pes, here = uses[first].pes, [uses[first]]
    for k, use in enumerate(uses):
        common = pes.intersect(use.pes)
        if k != first and not common.is_empty():
            pes, here = common, [*here, use]
    return pes.coalesce(), tuple(here)
