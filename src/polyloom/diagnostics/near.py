"""The known name that somebody may have meant by one that is unknown."""

from __future__ import annotations

from collections.abc import Iterable


def near(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most like an unknown one; None where none is like it, or it is known."""
    from difflib import get_close_matches  # verbs start without it

    names = set(known)
    found = [] if name in names else get_close_matches(name, names, n=1)
    return found[0] if found else None
