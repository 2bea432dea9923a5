"""Where in a user's text something stands."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate


@dataclass(frozen=True)
class Source:
    """A text that a user wrote, with the name that messages give it."""

    name: str
    text: str = field(repr=False)

    @cached_property
    def line_starts(self) -> tuple[int, ...]:
        """The offset of the first character of each line, and of that which would come last."""
        return tuple(accumulate((len(line) + 1 for line in self.text.split("\n")), initial=0))

    def line(self, number: int) -> str:
        """Return the line with the 1-based ``number``, without its line end."""
        starts = self.line_starts
        return (
            self.text[starts[number - 1] : starts[number] - 1].rstrip("\r")
            if 0 < number < len(starts)
            else ""
        )

    def line_at(self, position: int) -> int:
        """Return the 1-based line of a character."""
        return self.text.count("\n", 0, position) + 1

    def lines(self, start: int, end: int) -> str:
        """Return the lines from one character to another as people write them: ``7``, or ``7 to 9``."""
        first, last = self.line_at(start), self.line_at(end)
        return f"{first}" if first == last else f"{first} to {last}"


@dataclass(frozen=True)
class Span:
    """The characters ``start`` (included) to ``end`` (excluded) of a source, as offsets into its text."""

    source: Source
    start: int
    end: int

    @property
    def line(self) -> int:
        """1-based line of the first character."""
        return self.source.line_at(self.start)

    @property
    def column(self) -> int:
        """1-based column of the first character."""
        return self.start - (self.source.text.rfind("\n", 0, self.start) + 1) + 1

    @property
    def text(self) -> str:
        """The characters themselves."""
        return self.source.text[self.start : self.end]

    def __str__(self) -> str:
        return f"{self.source.name}:{self.line}:{self.column}"
