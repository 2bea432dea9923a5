"""A program whose rows run in several places at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any
from uuid import uuid4

import numpy as np
import numpy.typing as npt

from polyloom.diagnostics import Diagnostic, Unsupported, error
from polyloom.ir.evaluation.inputs import shape_of
from polyloom.ir.host import HostProgram
from polyloom.ir.transform.rows import Rows, independent_rows, part
from polyloom.ir.transform.specialise import specialise
from polyloom.mdh.runtime.arguments import Bound
from polyloom.mdh.runtime.arrays import DeviceArray
from polyloom.mdh.runtime.execution import Execution, Timing
from polyloom.mdh.split.places import PartRun, Place, written
from polyloom.mdh.split.plan import Cost, Plan, divide, line, measured

NDArray = npt.NDArray[Any]

RUNS = 3
"""How often a measurement is repeated; the least time counts."""


class SplitExecutable:
    """A host program on several places; what each gets is measured at the first call for given sizes."""

    def __init__(
        self, program: HostProgram, device: Any, places: Sequence[Place], constants: Collection[str] = ()
    ) -> None:
        """``device``: where single calls would run; ``constants``: inputs that seldom change."""
        self.program, self.device, self.places = program, device, tuple(places)
        self.constants = frozenset(constants)
        self.plan: Plan | None = None
        self._known: dict[tuple[tuple[str, int], ...], _Known] = {}
        self._held: dict[str, NDArray] = {}

    def forget(self) -> None:
        """Forget what was measured."""
        self._known.clear()

    def resident(self, array: NDArray) -> NDArray:
        """Return an array as it is: it goes where its rows run."""
        return array

    def run(self, bound: Bound, *, timed: bool = False) -> Execution:
        """Run once; arrays that the program writes are changed in place, outputs not given are made.

        Errors: Unsupported with ``split-rows``; those of places.
        """
        begin = time.perf_counter()
        known = self._planned(bound)
        self.plan = plan = known.plan
        assert plan is not None
        ready = time.perf_counter()
        arrays = self._whole(known.program, bound)
        self._shared(known, plan, arrays)
        end = time.perf_counter()
        results: dict[str, NDArray | DeviceArray] = {name: arrays[name] for name in written(known.program)}
        return Execution(results, Timing(ready - begin, end - ready, 0.0, len(plan.shares)), ())

    def _planned(self, bound: Bound) -> _Known:
        key = tuple(sorted(bound.parameters.items()))
        if key not in self._known:
            if bound.beside:
                raise Unsupported(_overlap())
            special = specialise(self.program, bound.parameters)
            known = _Known(uuid4().hex, special, independent_rows(special))
            known.plan = self._measured(known, self._whole(special, bound))
            self._known[key] = known
        return self._known[key]

    def _whole(self, special: HostProgram, bound: Bound) -> dict[str, NDArray]:
        """Return all arrays, those that the program writes made where they are not given."""
        arrays = {n: a.get() if isinstance(a, DeviceArray) else a for n, a in bound.arrays.items()}
        for name in written(special):
            if name not in arrays:
                buffer = special.buffer(name)
                arrays[name] = np.zeros(shape_of(buffer, {}), buffer.type.dtype)
        return arrays

    def _measured(self, known: _Known, arrays: dict[str, NDArray]) -> Plan:
        """Time two numbers of rows in each place, then the plan beside the best place alone."""
        results, count = written(known.program), known.rows.count
        own = {name: array.copy() if name in results else array for name, array in arrays.items()}
        many = max(1, count // max(2, sum(len(place.names) for place in self.places)))
        few = max(1, many // 8)
        costs: list[tuple[str, Cost]] = []
        for place in self.places:
            times = [(n, _least(partial(self._on, place, known, [(0, n)], own))) for n in (few, many)]
            costs += [(name, line(*times)) for name in place.names]
        plan = divide(count, costs)
        best = next(place for place in self.places if plan.alone[0] in place.names)
        alone = _least(partial(self._on, best, known, [(0, count)], own))
        return measured(plan, _least(partial(self._shared, known, plan, own)), alone)

    def _shared(self, known: _Known, plan: Plan, arrays: dict[str, NDArray]) -> None:
        """Run all shares at a time, those of each place in a thread."""
        shares = iter(plan.shares)  # in the order of places: two of them may have one name
        found = [(place, list(islice(shares, len(place.names)))) for place in self.places]
        cut = [(place, [(share.first, share.rows) for share in own if share.rows]) for place, own in found]
        work = [(place, rows) for place, rows in cut if rows]
        with ThreadPoolExecutor(len(work)) as pool:
            list(pool.map(lambda each: self._on(each[0], known, each[1], arrays), work))

    def _on(
        self, place: Place, known: _Known, shares: Sequence[tuple[int, int]], arrays: dict[str, NDArray]
    ) -> None:
        """Run some rows in a place, and put what they wrote where it belongs."""
        rows, constants = known.rows, self._constants(known.rows, arrays)
        given = {name: array for name, array in arrays.items() if name not in constants}
        parts = []
        for first, count in shares:
            own = {
                name: np.ascontiguousarray(array[rows.of(name, first, count)])
                if name in rows.reach
                else array
                for name, array in given.items()
            }
            parts.append(PartRun(f"{known.key}-{count}", known.of(count), own, constants))
        for (first, count), found in zip(shares, place.run(parts), strict=True):
            for name, array in found.items():
                arrays[name][rows.of(name, first, count)] = array

    def _constants(self, rows: Rows, arrays: dict[str, NDArray]) -> dict[str, NDArray]:
        """Return the arrays that seldom change: the same dictionary as long as they are the same."""
        names = [name for name in arrays if name in self.constants and name not in rows.reach]
        if self._held.keys() != set(names) or any(self._held[name] is not arrays[name] for name in names):
            self._held = {name: arrays[name] for name in names}
        return self._held


@dataclass(eq=False)
class _Known:
    """A program for known sizes, how it is cut, and the programs for numbers of its rows."""

    key: str
    program: HostProgram
    rows: Rows
    plan: Plan | None = None
    parts: dict[int, HostProgram] = field(default_factory=dict)

    def of(self, count: int) -> HostProgram:
        """Return the program for so many rows."""
        if count not in self.parts:
            self.parts[count] = part(self.program, self.rows, count)
        return self.parts[count]


def _least(run: Callable[[], None]) -> float:
    """Return the least time of some runs, after one that makes the code."""
    run()
    found = []
    for _ in range(RUNS):
        begin = time.perf_counter()
        run()
        found.append(time.perf_counter() - begin)
    return min(found)


def _overlap() -> Diagnostic:
    helps = ["give arrays of their own"]
    return error("split-rows", "arrays that overlap in memory cannot be cut into rows", helps=helps)
