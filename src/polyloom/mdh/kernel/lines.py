"""Lines of C with their indentation, and names that are not taken."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

INDENT = "    "


@dataclass
class Lines:
    """C text under construction; ``slot`` leaves a place that is filled later."""

    depth: int = 1
    parts: list[str | Lines] = field(default_factory=list)

    def add(self, *lines: str) -> None:
        """Append lines."""
        self.parts.extend(INDENT * self.depth + line if line else "" for line in lines)

    def slot(self) -> Lines:
        """Return a place in the text where lines may be added later."""
        place = Lines(self.depth)
        self.parts.append(place)
        return place

    @contextmanager
    def block(self, head: str = "") -> Iterator[None]:
        """Put what is added inside into braces behind ``head``."""
        self.add(f"{head} {{" if head else "{")
        self.depth += 1
        yield
        self.depth -= 1
        self.add("}")

    def texts(self) -> Iterator[str]:
        """Yield all lines."""
        for part in self.parts:
            if isinstance(part, Lines):
                yield from part.texts()
            else:
                yield part

    def text(self) -> str:
        """Return the lines as one text."""
        return "".join(f"{line}\n" for line in self.texts())


class Namer:
    """Gives every new variable a name that nothing else has."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = set(taken)
        self._next: dict[str, int] = {}

    def fresh(self, name: str) -> str:
        """Return ``name``, or where it is taken a name like it: ``A_0``, ``A_1``, ..."""
        stem, _, number = name.rpartition("_")
        stem = stem if stem and number.isdigit() else name
        while name in self._taken:
            self._next[stem] = self._next.get(stem, 0) + 1
            name = f"{stem}_{self._next[stem]}"
        self._taken.add(name)
        return name
