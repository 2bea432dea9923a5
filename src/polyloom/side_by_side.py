"""Contenders that run in turns, so that what else happens on the machine meets all of them alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from statistics import geometric_mean, median
from typing import Any

import numpy as np

from polyloom.diagnostics import PolyloomError, error
from polyloom.mdh.compiled import CompiledProgram
from polyloom.mdh.running import RESULTS, inputs_for, run_program
from polyloom.oracle.c_reference import CReference
from polyloom.oracle.timed_c import TimedPart

WARM = 2
"""Rounds before the first that counts: code is built, and pages are there."""


@dataclass(frozen=True)
class Comparison:
    """Seconds of each round, of ours and of the C program as it stands."""

    ours: tuple[float, ...]
    theirs: tuple[float, ...]

    @property
    def seconds(self) -> tuple[float, float]:
        """The medians of both."""
        return median(self.ours), median(self.theirs)

    @property
    def ratio(self) -> float:
        """How many times as fast ours is, by the medians."""
        ours, theirs = self.seconds
        return theirs / ours

    @property
    def spread(self) -> tuple[float, float]:
        """The quarter of the rounds with the least ratio ends, and that with the greatest begins, here."""
        found = sorted(b / a for a, b in zip(self.ours, self.theirs, strict=True))
        return found[len(found) // 4], found[-1 - len(found) // 4]


def compared(
    program: CompiledProgram, given: Mapping[str, Any], command: Sequence[str], rounds: int, *, check: bool
) -> Comparison:
    """Time calls of a program, and the C program of which it was made as ``command`` builds it.

    Arrays are as they were before each call. With ``check`` results are compared first. Errors:
    ``bench-source`` where it was not made of a C program, ``bench-build``, ``check-mismatch``; those of
    ``run_program``.
    """
    reference = program.reference
    if not isinstance(reference, CReference):
        message = f"`{program.program.name}` is no part of a C program, so nothing can be timed beside it"
        raise PolyloomError(error("bench-source", message, helps=["`polyloom run` says what it takes"]))
    if check:
        result = run_program(program, given, check=True)
        if result.check is not None and not result.passed:
            raise result.check.mismatch(RESULTS)
    part = TimedPart(reference, command)
    parameters, before = inputs_for(program, given)
    ours, theirs = ({n: a.copy() for n, a in before.items()} for _ in range(2))
    arguments = {**given, **ours}

    def run_ours() -> float:
        _restore(ours, before)
        begin = time.perf_counter()
        program(**arguments)
        return time.perf_counter() - begin

    def run_theirs() -> float:
        _restore(theirs, before)
        return part(parameters, theirs)

    found = in_turns({"ours": run_ours, "theirs": run_theirs}, rounds)
    return Comparison(tuple(found["ours"]), tuple(found["theirs"]))


def _restore(arrays: Mapping[str, np.ndarray[Any, Any]], before: Mapping[str, Any]) -> None:
    for name, array in arrays.items():
        array[...] = before[name]


def in_turns(runs: Mapping[str, Callable[[], float]], rounds: int, seed: int = 0) -> dict[str, list[float]]:
    """Return the seconds that each run returned, in each round; their order is drawn anew for each."""
    random, names = Random(seed), list(runs)
    found: dict[str, list[float]] = {name: [] for name in names}
    for number in range(WARM + rounds):
        random.shuffle(names)
        for name in names:
            seconds = runs[name]()
            if number >= WARM:
                found[name].append(seconds)
    return found


def mean_ratio(comparisons: Sequence[Comparison]) -> float:
    """Return the geometric mean of the ratios."""
    return geometric_mean([c.ratio for c in comparisons])
