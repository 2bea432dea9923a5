"""Times of functions, and how both look in a notebook: small tables of HTML, without scripts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from polyloom.function.arguments import Argument
from polyloom.mdh.running import RunResult

_MOST_SECONDS = 1.0
"""Of a measurement: after these no further run begins."""


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table of HTML."""
    first = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    rest = "".join(
        "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{first}</tr></thead><tbody>{rest}</tbody></table>"


def function_page(
    name: str, inputs: Mapping[str, Argument], outputs: Mapping[str, Argument], about: str
) -> str:
    """Return what a function takes and gives; ``about``: a line on where it comes from."""
    rows = [("takes", a.name, repr(a)) for a in inputs.values()]
    rows += [("gives", a.name, repr(a)) for a in outputs.values()]
    return f"<p><b>{escape(name)}</b> {escape(about)}</p>" + table(("", "name", "type"), rows)


def jit_page(name: str, arguments: Sequence[str], kinds: Sequence[Mapping[str, str]]) -> str:
    """Return a function of ``polyloom.jit``: a row of types for each kind of arguments it is compiled for."""
    about = f"a function of Python, compiled for {len(kinds)} kinds of arguments"
    rows = ([types.get(argument, "") for argument in arguments] for types in kinds)
    return f"<p><b>{escape(name)}</b> {escape(about)}</p>" + table(arguments, rows)


@dataclass(frozen=True)
class Times:
    """Where the time of a call went, kernel by kernel, the slowest first.

    ``total``: seconds of a whole call, the fastest of ``runs``. ``kernels``: of each its name, seconds in a
    call, how often it ran, and where its schedule comes from.
    """

    function: str
    device: str
    runs: int
    total: float
    kernels: tuple[tuple[str, float, int, str], ...]

    def json(self) -> dict[str, Any]:
        """Return it as a document: seconds everywhere."""
        names = ("name", "seconds", "launches", "schedule")
        kernels = [dict(zip(names, kernel, strict=True)) for kernel in self.kernels]
        return {"function": self.function, "device": self.device, "seconds": self.total, "kernels": kernels}

    def _rows(self) -> list[tuple[str, ...]]:
        whole = sum(seconds for _, seconds, _, _ in self.kernels) or 1.0
        return [
            (name, f"{1e6 * seconds:,.1f}", f"{seconds / whole:.0%}", f"{count}", schedule)
            for name, seconds, count, schedule in self.kernels
        ]

    _HEAD = ("kernel", "µs", "share", "runs", "schedule")

    def __str__(self) -> str:
        rows = [self._HEAD, *self._rows()]
        widths = [max(len(row[k]) for row in rows) for k in range(len(self._HEAD))]
        lines = [
            "  ".join(
                cell.ljust(w) if k in (0, 4) else cell.rjust(w)
                for k, (cell, w) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        ]
        return "\n".join([f"{self.function}: {1e6 * self.total:,.1f} µs a call on {self.device}", *lines])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head = f"<p><b>{escape(self.function)}</b>: {1e6 * self.total:,.1f} µs a call on "
        return f"{head}{escape(self.device)}</p>" + table(self._HEAD, self._rows())


def measured(name: str, run: Callable[[], RunResult], runs: int) -> Times:
    """Run up to so many times; of the call and of each kernel the fastest counts."""
    results = [run()]
    deadline = time.monotonic() + _MOST_SECONDS
    while len(results) < runs and time.monotonic() < deadline:
        results.append(run())
    best = min(results, key=lambda result: result.execution.timing.total)
    seconds = {
        kernel["name"]: min(k["seconds"] for r in results for k in r.kernels() if k["name"] == kernel["name"])
        for kernel in best.kernels()
    }
    rows = [(k["name"], seconds[k["name"]], k["launches"], k["schedule"]) for k in best.kernels()]
    ordered = tuple(sorted(rows, key=lambda row: -row[1]))
    return Times(name, best.device, len(results), best.execution.timing.total, ordered)
