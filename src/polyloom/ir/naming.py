"""Names that nothing else in the program has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain, count


def fresh(
    wanted: str, taken: Iterable[str], *, first: int = 1, reserved: Callable[[str], bool] = lambda name: False
) -> str:
    """Return ``wanted``, or it with the least number from ``first`` on that makes it new and not reserved."""
    used = taken if isinstance(taken, set | frozenset) else set(taken)
    candidates = chain([wanted], (f"{wanted}_{k}" for k in count(first)))
    return next(name for name in candidates if name not in used and not reserved(name))


def fresh_all(wanted: Sequence[str], taken: Iterable[str]) -> tuple[str, ...]:
    """Return new names for all of ``wanted``, different from each other."""
    used = list(taken)
    for name in wanted:
        used.append(fresh(name, used))
    return tuple(used[len(used) - len(wanted) :])


@dataclass(eq=False)
class Names:
    """Gives out names, no two the same but for the same key. ``taken``: those that others have."""

    taken: set[str]
    given: dict[tuple[object, ...], str] = field(default_factory=dict)
    numbered: Counter[str] = field(default_factory=Counter)
    """How often each name was given with a number: as many of its numbers are taken, from 1 on."""

    def of(self, key: tuple[object, ...], wanted: str) -> str:
        """Return the name of what ``key`` identifies: ``wanted``, or it with a number."""
        if key not in self.given:
            name = fresh(wanted, self.taken, first=self.numbered[wanted] + 1)
            self.numbered[wanted] += name != wanted
            self.taken.add(name)
            self.given[key] = name
        return self.given[key]
