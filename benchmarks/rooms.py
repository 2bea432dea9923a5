"""The modules of each room with their purpose: ``python benchmarks/rooms.py > docs/rooms.md``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "polyloom"
HEAD = """# The rooms

Every folder of the source, and the first line of each module. How they hang together:
[ARCHITECTURE.md](../ARCHITECTURE.md).
Made by `python benchmarks/rooms.py > docs/rooms.md`.
"""


def page(source: Path = SOURCE) -> str:
    """Return the page."""
    folders = sorted({path.parent for path in source.rglob("*.py")})
    return HEAD + "".join(f"\n{part}\n" for folder in folders for part in _section(source, folder))


def _section(source: Path, folder: Path) -> Iterator[str]:
    yield f"## `{folder.relative_to(source.parent).as_posix()}/`"
    yield _purpose(folder / "__init__.py")
    rows = [f"| `{p.stem}` | {_purpose(p)} |" for p in sorted(folder.glob("*.py")) if p.name != "__init__.py"]
    if rows:
        yield "\n".join(["| module | what it is for |", "|---|---|", *rows])


def first_line(path: Path) -> str:
    """Return the first line of the docstring that a module begins with, or nothing."""
    found = re.match(r'"""(.*)', path.read_text(encoding="utf-8"))
    return found[1].removesuffix('"""') if found else ""


def _purpose(path: Path) -> str:
    """Return the first line of a module's docstring."""
    return first_line(path).replace("``", "`").replace("|", "\\|")


if __name__ == "__main__":
    print(page(), end="")
