"""Names that isl reads as names: it has words of its own, in small letters and in capitals."""

from __future__ import annotations

_LOGIC = frozenset({"and", "or", "not", "implies", "exists", "true", "false"})
_FUNCTIONS = frozenset({"min", "max", "mod", "floor", "floord", "ceil", "ceild", "lexmin", "lexmax"})
_NUMBERS = frozenset({"infty", "infinity", "nan", "rat"})
WORDS = _LOGIC | _FUNCTIONS | _NUMBERS


def isl_name(name: str) -> str:
    """Return a name, with ``_`` behind it if it is a word of isl's: ``MAX`` becomes ``MAX_``."""
    return f"{name}_" if name.lower() in WORDS else name
