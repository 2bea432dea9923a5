"""The libraries that CSL programs import by names in angle brackets: our own text of each."""

from __future__ import annotations

from functools import cache
from pathlib import Path

_TEXTS = Path(__file__).parent / "text"


def names() -> list[str]:
    """The names that `@import_module("<NAME>")` finds, in order."""
    return sorted(path.relative_to(_TEXTS).with_suffix("").as_posix() for path in _TEXTS.rglob("*.csl"))


@cache
def source(name: str) -> tuple[str, str] | None:
    """The name of the file of `<name>` for messages, and its text; None if there is no such library."""
    if name not in names():
        return None
    return f"<{name}>", (_TEXTS / f"{name}.csl").read_text(encoding="utf-8")
