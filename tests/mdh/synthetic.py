"""A made-up space of schedules with a made-up cost, to test the search without a device.

The schedule of a matrix product: tiles and vector width whose product is limited by registers and local
memory, so that most combinations are not valid. The cost has the shape of a real one: interactions between
parameters, cliffs, and a static model that is off by a factor that depends on a parameter it ignores.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from random import Random

from polyloom.mdh.tuning.outcome import Outcome, Status


@dataclass(frozen=True)
class Tiles:
    rows: int
    columns: int
    depth: int
    width: int
    unroll: int
    packed: bool
    order: str


CHOICES: dict[str, tuple[object, ...]] = {
    "rows": tuple(range(1, 17)),
    "columns": tuple(range(1, 9)),
    "depth": tuple(2**k for k in range(2, 11)),
    "width": (1, 2, 4, 8, 16),
    "unroll": (1, 2, 4, 8),
    "packed": (False, True),
    "order": ("ijk", "ikj", "jik", "jki", "kij", "kji"),
}


def valid(s: Tiles) -> bool:
    return s.rows * s.columns <= 28 and s.depth * (s.rows + s.columns * s.width) * 4 <= 256 * 1024


class SyntheticSpace:
    def default(self) -> Tiles:
        return Tiles(4, 1, 64, 8, 1, False, "ijk")

    def sample(self, rng: Random) -> Tiles:
        while True:
            drawn = Tiles(**{name: rng.choice(values) for name, values in CHOICES.items()})  # type: ignore[arg-type]
            if valid(drawn):
                return drawn

    def neighbours(self, schedule: Tiles, rng: Random) -> Sequence[Tiles]:
        found = []
        for _ in range(12):
            name = rng.choice(list(CHOICES))
            changed = replace(schedule, **{name: rng.choice(CHOICES[name])})  # type: ignore[arg-type]
            if valid(changed):
                found.append(changed)
        return found

    def predicted(self, schedule: Tiles) -> float:
        s = schedule
        reuse = 1 / s.rows + 1 / (s.columns * s.width)
        return 1e-3 * (16 / s.width + 4 * reuse + 8 / s.depth)

    def text(self, schedule: Tiles) -> str:
        return json.dumps(asdict(schedule), sort_keys=True, separators=(",", ":"))


def cost(s: Tiles) -> float:
    """Seconds; the least is about 1.5e-3."""
    registers = s.rows * s.columns + s.columns + 2
    spill = 1 + 0.5 * max(0, registers - 30)
    latency = max(1.0, 8 / (s.rows * s.columns))
    reuse = 1 / s.rows + 1 / (s.columns * s.width)
    loop = 1 + 0.3 / s.unroll + (0.3 if s.unroll * s.rows * s.columns > 128 else 0)
    order = {"ijk": 1.3, "ikj": 1.0, "jik": 1.2, "jki": 1.6, "kij": 1.1, "kji": 1.5}[s.order]
    depth = 1 + 0.15 * abs(math.log2(s.depth / 256))
    packing = 0.9 if s.packed and s.depth >= 64 else 1.2
    return 1e-3 * (16 / s.width) * latency * spill * loop * order * depth * packing * (1 + reuse)


class SyntheticMeasure:
    """Measures by ``cost``; some schedules crash, some are wrong, as on a real device."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, schedule: Tiles, stop_above: float) -> Outcome:
        self.count += 1
        if schedule.rows == 13:
            return Outcome(status=Status.CRASHED, reason="signal 6")
        if schedule.rows == 7 and schedule.unroll == 8:
            return Outcome(status=Status.WRONG, seconds=1e-9, times=(1e-9,), reason="C[0] is 1, not 2")
        seconds = cost(schedule)
        if seconds > stop_above:
            return Outcome(
                status=Status.SLOW, seconds=seconds, times=(seconds,), reason="slower than the best"
            )
        return Outcome(status=Status.VERIFIED, seconds=seconds, times=(seconds,), reason="", max_error=0.0)
