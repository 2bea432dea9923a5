"""Two runs side by side: a page made of the pages of both."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from difflib import unified_diff
from html import unescape
from pathlib import Path
from typing import Any

from polyloom.diagnostics import PolyloomError, error
from polyloom.files import read_source, write_text
from polyloom.report.html.document import VERSION
from polyloom.report.html.environment import as_json, rendered, scripts

_DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)
_DRAWN = ("cycles", "grid", "layers", "roles")
"""What the scripts need of each page."""

MOST_FUNCTIONS = 40


@dataclass(frozen=True)
class Row:
    """A figure of both runs; ``ratio``: the second in units of the first, None where one is missing or 0."""

    label: str
    first: float
    second: float

    @property
    def ratio(self) -> float | None:
        """How many times the first the second is."""
        return self.second / self.first if self.first and self.second else None


def write_beside(path: Path, first: Path, second: Path) -> None:
    """Write a page on two runs from their pages.

    Errors: ``report-unreadable``, ``file-unreadable``, ``file-unwritable``.
    """
    write_text(path, beside_page(read_data(first), read_data(second), (first.stem, second.stem)))


def read_data(path: Path) -> dict[str, Any]:
    """Return the data of a page. Errors: ``report-unreadable`` where it is no page of a run."""
    found = _DATA.search(read_source(path).text)
    try:
        data: dict[str, Any] = json.loads(unescape(found[1])) if found is not None else {}
    except json.JSONDecodeError:
        data = {}
    version = data.get("summary", {}).get("version")
    if version != VERSION:
        reason = "it has no data of a run" if version is None else f"it is of version {version}"
        helps = ["pages are written by `polyloom simulate --report` and `polyloom run --report`"]
        raise PolyloomError(error("report-unreadable", f"`{path}` cannot be compared: {reason}", helps=helps))
    return data


def beside_page(first: dict[str, Any], second: dict[str, Any], names: tuple[str, str]) -> str:
    """Return the page. The same data give the same text."""
    runs = [first["summary"], second["summary"]]
    drawn = all("grid" in data for data in (first, second))
    return rendered(
        "beside.html",
        runs=runs,
        names=names,
        largest=max(*(run["cycles"] for run in runs), *(run["limit"] or 0 for run in runs), 1),
        figures=_figures(*runs),
        functions=function_rows(*runs),
        changes={part: _changes(runs[0][part], runs[1][part], names) for part in ("program", "map")},
        drawn=drawn,
        scripts=scripts("unpack.js", "export.js", "grid.js", "beside.js"),
        data=as_json({"runs": [{k: d[k] for k in _DRAWN} for d in (first, second)] if drawn else []}),
    )


def _figures(first: dict[str, Any], second: dict[str, Any]) -> list[tuple[str, str, str, str, str]]:
    """Return label, value and note of the first, value and note of the second."""
    other = {label: (value, note) for label, value, note in second["figures"]}
    return [(label, value, note, *other.get(label, ("", ""))) for label, value, note in first["figures"]]


def function_rows(first: dict[str, Any], second: dict[str, Any]) -> list[Row]:
    """Return the functions of both runs, the largest differences first."""
    names = dict.fromkeys([*first["functions"], *second["functions"]])
    rows = [Row(name, first["functions"].get(name, 0), second["functions"].get(name, 0)) for name in names]
    return sorted(rows, key=lambda row: -abs(row.first - row.second))[:MOST_FUNCTIONS]


def _changes(first: str, second: str, names: tuple[str, str]) -> str:
    """Return what differs between two texts, as ``diff -u`` writes it."""
    lines = unified_diff(first.splitlines(), second.splitlines(), *names, lineterm="")
    return "\n".join(lines)
