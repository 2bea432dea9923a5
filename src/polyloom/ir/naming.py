"""Names that nothing else in the program has."""

from __future__ import annotations

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
    numbers: dict[str, int] = field(default_factory=dict)
    """The last number of each name that was wanted: lesser ones are taken."""

    def of(self, key: tuple[object, ...], wanted: str) -> str:
        """Return the name of what ``key`` identifies: ``wanted``, or it with a number."""
        if key not in self.given:
            self.given[key] = self._new(wanted)
            self.taken.add(self.given[key])
        return self.given[key]

    def _new(self, wanted: str) -> str:
        if wanted not in self.taken:
            return wanted
        first = self.numbers.get(wanted, 0) + 1
        number = next(k for k in count(first) if f"{wanted}_{k}" not in self.taken)
        self.numbers[wanted] = number
        return f"{wanted}_{number}"
