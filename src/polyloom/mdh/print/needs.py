"""What a printed text needs beside itself, noted while it is printed.

Nothing looks for it in the text afterwards: whoever writes a name that is defined elsewhere asks the dialect
for it, which notes it here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from polyloom.ir.types import ElementType

Helper = tuple[str, ElementType, int]
"""A small function beside the text: its family, and of how many elements of which type it is."""


@dataclass(frozen=True)
class Needs:
    """``helpers``: functions of ``helpers``; ``vectors``: types by name: their elements, and bytes.

    ``headers``: of the library. ``definitions``: other texts that stand before, in order. ``names``: of the
    tree's arrays, values and integers that the text speaks of.
    """

    helpers: dict[Helper, None] = field(default_factory=dict)
    vectors: dict[str, tuple[str, int]] = field(default_factory=dict)
    headers: set[str] = field(default_factory=set)
    definitions: dict[str, None] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)


def all_needs(parts: Iterable[Needs]) -> Needs:
    """Return what several texts need together."""
    found = Needs()
    for needs in parts:
        found.helpers.update(needs.helpers)
        found.vectors.update(needs.vectors)
        found.headers.update(needs.headers)
        found.definitions.update(needs.definitions)
        found.names.update(needs.names)
    return found
