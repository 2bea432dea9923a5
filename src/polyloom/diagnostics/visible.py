"""Text of files as a terminal may show it: nothing in it moves the cursor, hides or reorders what is read."""

from __future__ import annotations

import unicodedata

_REORDERING = frozenset(map(chr, (0x61C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A))))


def visible(text: str, keep: str = "\n\t") -> str:
    r"""Return a text with control characters, half surrogates and marks of direction as escapes (``\x1b``).

    ``keep``: control characters that stay as they are.
    """
    if text.isprintable():
        return text
    return "".join(c if c in keep or not _hidden(c) else _escaped(c) for c in text)


def visible_name(text: str) -> str:
    """Return a name on one line."""
    return visible(text, keep="")


def _hidden(c: str) -> bool:
    return unicodedata.category(c) in ("Cc", "Cs") or c in _REORDERING


def _escaped(c: str) -> str:
    return c.encode("unicode_escape").decode("ascii")
