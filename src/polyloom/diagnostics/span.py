"""Where in a user's text something stands."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Source:
    """A text that a user wrote, with the name that messages give it."""

    name: str
    text: str = field(repr=False)

    def line(self, number: int) -> str:
        """Return the line with the 1-based ``number``, without its line end."""
        lines = self.text.split("\n")
        return lines[number - 1].rstrip("\r") if 1 <= number <= len(lines) else ""


@dataclass(frozen=True)
class Span:
    """The characters ``start`` (included) to ``end`` (excluded) of a source, as offsets into its text."""

    source: Source
    start: int
    end: int

    @property
    def line(self) -> int:
        """1-based line of the first character."""
        return self.source.text.count("\n", 0, self.start) + 1

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
