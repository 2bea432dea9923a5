"""Attributes that a lowering never asked for: what it does not know may change the result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from polyloom.frontends.graph.refusal import Refused


class Recorded(Mapping[str, Any]):
    """A mapping that remembers which of its values were asked for (``in`` does not count)."""

    def __init__(self, entries: Mapping[str, Any]) -> None:
        self._entries = entries
        self._asked: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        self._asked.add(name)
        return self._entries[name]

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def unasked(self) -> dict[str, Any]:
        """The entries whose values nobody asked for, in their order."""
        return {n: v for n, v in self._entries.items() if n not in self._asked}


def refuse_unknown(kind: str, names: list[str], operation: str) -> None:
    """Raise ``Refused`` where there are names; ``kind``: what they are of the operation (``"attribute"``)."""
    if names:
        listed = ", ".join(f"`{n}`" for n in names)
        verb = "s {} are" if len(names) > 1 else " {} is"
        raise Refused(f"{kind}{verb.format(listed)} not known of {operation}")
