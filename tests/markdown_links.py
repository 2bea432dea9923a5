"""Links of Markdown pages, and whether they lead somewhere in this repository."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path


def links(text: str) -> list[str]:
    """Return the targets of a Markdown text's links and pictures, code left out."""
    prose = re.sub(r"^```.*?^```$|^(?: {4}|\t).*?$|`[^`\n]*`", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"\]\(([^)\s]+)\)", prose)


@cache
def anchors(path: Path) -> frozenset[str]:
    """Return the names by which GitHub links to the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(), flags=re.MULTILINE)
    plain = [re.sub(r"[^\w\- ]", "", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", h)).lower() for h in headings]
    return frozenset(heading.replace(" ", "-") for heading in plain)


def is_there(page: Path, link: str) -> bool:
    """Return whether a link from a page, or a folder, leads to a file and a heading in it."""
    place, _, anchor = link.partition("#")
    folder = page if page.is_dir() else page.parent
    path = folder / place if place else page
    return path.exists() and (not anchor or anchor in anchors(path))
