"""The child's side of tuning: builds a schedule's kernels, checks their results, times them on the device."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from statistics import median

from polyloom.diagnostics import PolyloomError
from polyloom.ir.evaluation.random_inputs import trial_arrays
from polyloom.mdh.native.device import NativeDevice, opened
from polyloom.mdh.tuning.candidates.checking import Checker
from polyloom.mdh.tuning.candidates.native import NativeCandidates
from polyloom.mdh.tuning.candidates.on_device import DeviceCandidates
from polyloom.mdh.tuning.candidates.trial import Candidates, NDArray, Run, Trial
from polyloom.mdh.tuning.outcome import Outcome, Status

Stage = Callable[[str], None]

LONG = 0.06
"""Seconds after which a candidate has been repeated enough."""

COLD = 1e-3
"""Seconds of runs before a candidate may be called slow."""

TURNS, MOST = 4, 60
"""How often candidate and baseline take turns; how often each is repeated at most in one."""


def candidates_of(trial: Trial, arrays: Mapping[str, NDArray]) -> Candidates:
    """Return what builds and runs the candidates of a trial on its device, which is opened."""
    device = opened(trial.device)
    if isinstance(device, NativeDevice):
        return NativeCandidates(trial, device, arrays)
    return DeviceCandidates(trial, device, arrays)


class Bench:
    """The object whose methods the parent calls."""

    def __init__(self, trial: Trial) -> None:
        self._trial = trial
        arrays = trial_arrays(trial.hom, trial.program.buffers, trial.seed)
        self._candidates = candidates_of(trial, arrays)
        self._checker = Checker(trial.hom, arrays, Path(trial.folder), trial.seed)
        self._built: dict[str, Run] = {}

    def build(self, stage: Stage, texts: Sequence[str]) -> None:
        """Build schedules that are measured next, where it is faster to build them together."""
        stage("build")
        for text, run in self._candidates.built_ahead([t for t in texts if t not in self._built]).items():
            self._keep(text, run)

    def measure(
        self, stage: Stage, text: str, stop_above: float, baseline: tuple[str, float] | None = None
    ) -> Outcome:
        """Build, check and time one schedule; one execution above ``stop_above`` seconds ends it.

        ``baseline``: a right schedule and its seconds. It is timed in turns with the candidate, which tells
        how fast the machine is at this moment; the outcome's seconds are those at the usual pace.
        """
        try:
            stage("build")
            prepared = self._prepared(text)
            self._candidates.reset()
            stage("first")
            first = prepared.once()
            stage("check")
            verdict = self._checker.check(self._candidates.results())
        except PolyloomError as fault:
            return Outcome(status=Status.REFUSED, reason=_reason(fault))
        except (ArithmeticError, AssertionError, LookupError, TypeError, ValueError) as fault:
            return Outcome(
                status=Status.REFUSED, reason=f"a fault of the generator: {type(fault).__name__}: {fault}"
            )
        error = verdict.max_error if math.isfinite(verdict.max_error) else None
        if not verdict.passed:
            return Outcome(
                status=Status.WRONG,
                seconds=first,
                times=(first,),
                reason=verdict.mismatches[0],
                max_error=error,
            )
        stage("repeat")
        return self._timed(prepared, first, stop_above, error, baseline)

    def compare(self, stage: Stage, texts: Sequence[str], seconds: float) -> dict[str, Outcome]:
        """Time right schedules in turns, in random order, and return the medians of their rounds."""
        stage("build")
        prepared = {text: self._prepared(text) for text in texts}
        rounds: dict[str, list[float]] = {text: [] for text in texts}
        rng = Random(self._trial.seed)
        end = time.perf_counter() + seconds
        while len(rounds[texts[0]]) < 3 or (time.perf_counter() < end and len(rounds[texts[0]]) < 50):
            for text in rng.sample(list(texts), len(texts)):
                stage("repeat")
                rounds[text].append(typical(self._repeated(prepared[text], LONG / 4, 1)))
        return {
            text: Outcome(status=Status.VERIFIED, seconds=median(times), times=tuple(times))
            for text, times in rounds.items()
        }

    def _timed(
        self,
        prepared: Run,
        first: float,
        stop_above: float,
        max_error: float | None,
        baseline: tuple[str, float] | None,
    ) -> Outcome:
        """Repeat; what the first runs took may include the driver's last compilation, and cold caches."""
        times = [first, *self._repeated(prepared, COLD, 1)]
        beside = prepared if baseline is None else self._prepared(baseline[0])
        others = [] if baseline is None else self._repeated(beside, COLD, 2)

        def pace(found: Callable[[Sequence[float]], float]) -> float:
            return 1.0 if baseline is None else found(others) / baseline[1]

        if min(times) > stop_above * max(pace(min), 1.0):
            seconds = min(times) / pace(min)
            return Outcome(
                status=Status.SLOW,
                seconds=seconds,
                times=tuple(times),
                reason="slower than the best",
                max_error=max_error,
            )
        for _ in range(TURNS):
            times += self._repeated(prepared, LONG / TURNS, 1)
            others += [] if baseline is None else self._repeated(beside, LONG / TURNS, 1)
        return Outcome(
            status=Status.VERIFIED,
            seconds=typical(times) / pace(typical),
            times=tuple(times),
            reason="",
            max_error=max_error,
        )

    def _repeated(self, prepared: Run, seconds: float, fewest: int) -> list[float]:
        times: list[float] = []
        end = time.perf_counter() + seconds
        while len(times) < fewest or (time.perf_counter() < end and len(times) < MOST):
            times.append(prepared.again())
        return times

    def _prepared(self, text: str) -> Run:
        found = self._built.pop(text) if text in self._built else self._candidates.built(text)
        self._keep(text, found)
        return self._built[text]

    def _keep(self, text: str, run: Run) -> None:
        """Keep a candidate; last used, last to go."""
        for old in list(self._built)[: max(0, len(self._built) - self._candidates.most_kept + 1)]:
            del self._built[old]
        self._built[text] = run


def typical(times: Sequence[float]) -> float:
    """Return the time that one in ten stays below: near the least, without a clock's outliers."""
    return sorted(times)[len(times) // 10]


def _reason(fault: PolyloomError) -> str:
    first = fault.diagnostics[0]
    return f"{first.message}: {first.notes[0]}" if first.notes else first.message
