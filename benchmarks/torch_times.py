"""Times of ``torch.compile`` that ``torch_models.py --times --update`` kept, and their table."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

RESULTS = Path(__file__).with_suffix(".json")


@dataclass(frozen=True)
class Row:
    """Seconds of a model's step as each contender runs it, the least ones.

    ``first...``: of a processor core, in the compilers' first steps and in the C compilers that they run.
    """

    model: str
    training: bool
    eager: float
    inductor: float
    polyloom: float
    first_inductor: float
    first_polyloom: float

    def __str__(self) -> str:
        times = (f"{1e3 * s:.3g}" for s in (self.eager, self.inductor, self.polyloom))
        firsts = (f"{s:.0f}" for s in (self.first_inductor, self.first_polyloom))
        return f"| {' | '.join([self.model, *times, *firsts])} |"


HEAD = """\
| model | PyTorch, ms | inductor | Polyloom | first step: inductor, core s | Polyloom |
|---|---:|---:|---:|---:|---:|"""


def means(rows: Iterable[Row]) -> str:
    """Return the geometric means of how many times as fast Polyloom is."""
    rows = tuple(rows)
    by_eager, by_inductor = (
        math.exp(sum(math.log(getattr(row, other) / row.polyloom) for row in rows) / len(rows))
        for other in ("eager", "inductor")
    )
    return f"{len(rows)} models: {by_eager:.2f} times as fast as PyTorch, {by_inductor:.2f} as inductor"


def table(rows: Iterable[Row]) -> str:
    """Return the table of docs/python.md."""
    rows = tuple(rows)
    return "\n".join([HEAD, *map(str, rows), "", f"{means(rows)}."])


def read_rows() -> list[Row]:
    """Return the rows that were kept."""
    return [Row(**row) for row in json.loads(RESULTS.read_text())] if RESULTS.exists() else []


def keep(row: Row, order: Iterable[str]) -> None:
    """Put a row in the place of the one for the same model and kind of step; ``order``: of the models."""
    rows = {(r.training, r.model): r for r in (*read_rows(), row)}
    place = {name: k for k, name in enumerate(order)}
    kept = sorted(rows.values(), key=lambda r: (r.training, place.get(r.model, len(place))))
    RESULTS.write_text("[\n" + ",\n".join(json.dumps(asdict(r)) for r in kept) + "\n]\n")
