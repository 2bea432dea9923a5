"""The child's side of tuning: builds a schedule's kernels, checks their results, times them on the device."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from random import Random
from statistics import median
from typing import TYPE_CHECKING

from polyloom.diagnostics import PolyloomError
from polyloom.ir.evaluation.host_random_inputs import trial_arrays
from polyloom.ir.host import HostProgram, MdHom, Nest
from polyloom.mdh.device.devices import DeviceModel, open_device
from polyloom.mdh.kernel.launch import Launch
from polyloom.mdh.runtime.host_program import Prepared, prepare
from polyloom.mdh.tuning.check_candidate import Checker
from polyloom.mdh.tuning.outcome import Outcome, Status

if TYPE_CHECKING:
    import pyopencl as cl

    from polyloom.ir.evaluation.host_random_inputs import NDArray

Stage = Callable[[str], None]
Emit = Callable[[MdHom, HostProgram, DeviceModel, str], Launch]

LONG = 0.06
"""Seconds after which a candidate has been repeated enough."""

COLD = 1e-3
"""Seconds of runs before a candidate may be called slow."""

TURNS, MOST = 4, 60
"""How often candidate and baseline take turns; how often each is repeated at most in one."""

KEPT = 8
"""Built candidates that a child keeps, so that the finalists are not built again for each round."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What a child needs: one md_hom as a program without parameters, the device, and an emitter.

    ``emitter``: ``module:function``, called with the md_hom, the program, the device and a schedule's text.
    ``folder``: where the reference results lie.
    """

    program: HostProgram
    device: DeviceModel
    emitter: str
    folder: str
    seed: int = 0

    @property
    def hom(self) -> MdHom:
        """The md_hom."""
        (node,) = self.program.body
        assert isinstance(node, MdHom)
        return node


class Bench:
    """The object whose methods the parent calls."""

    def __init__(self, trial: Trial) -> None:
        self._trial = trial
        self._device = open_device(trial.device)
        self._arrays = trial_arrays(trial.hom, trial.program.buffers, trial.seed)
        self._checker = Checker(trial.hom, self._arrays, Path(trial.folder), trial.seed)
        self._buffers = {name: self._buffer(array) for name, array in self._arrays.items()}
        self._outputs = tuple(dict.fromkeys(view.buffer for view in trial.hom.outputs))
        self._emit = _named(trial.emitter)
        self._built: dict[str, Prepared] = {}

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
            self._reset()
            stage("first")
            first = self._run(prepared)
            stage("check")
            verdict = self._checker.check(self._results())
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
        prepared: Prepared,
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

    def _repeated(self, prepared: Prepared, seconds: float, fewest: int) -> list[float]:
        times: list[float] = []
        end = time.perf_counter() + seconds
        while len(times) < fewest or (time.perf_counter() < end and len(times) < MOST):
            times.append(self._run(prepared))
        return times

    def _run(self, prepared: Prepared) -> float:
        """Return the seconds from the start of the first kernel to the end of the last."""
        events = [event.event.profile for event in prepared.run(self._buffers, timed=True)]
        if not events:
            return 1e-9
        span = max(profile.end for profile in events) - min(profile.start for profile in events)
        return max(float(span) * 1e-9, 1e-9)

    def _prepared(self, text: str) -> Prepared:
        if text in self._built:  # last used, last to go
            self._built[text] = self._built.pop(text)
        else:
            for old in list(self._built)[: max(0, len(self._built) - KEPT + 1)]:
                del self._built[old]
            self._built[text] = prepare(self._trial.program, {}, self._device, self._emitter(text))
        return self._built[text]

    def _emitter(self, text: str) -> Callable[[MdHom | Nest, HostProgram, DeviceModel], Launch]:
        def emit(node: MdHom | Nest, program: HostProgram, device: DeviceModel) -> Launch:
            assert isinstance(node, MdHom)
            return self._emit(node, program, device, text)

        return emit

    def _buffer(self, array: NDArray) -> cl.Buffer:
        import pyopencl as cl

        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        if array.nbytes == 0:
            return cl.Buffer(self._device.context, cl.mem_flags.READ_WRITE, 16)
        return cl.Buffer(self._device.context, flags, hostbuf=array)

    def _reset(self) -> None:
        """Give the outputs the values that the checker starts from."""
        import pyopencl as cl

        for name in self._outputs:
            if self._arrays[name].nbytes:
                cl.enqueue_copy(self._device.queue, self._buffers[name], self._arrays[name])

    def _results(self) -> dict[str, NDArray]:
        import pyopencl as cl

        results = {name: self._arrays[name].copy() for name in self._outputs}
        for name, array in results.items():
            if array.nbytes:
                cl.enqueue_copy(self._device.queue, array, self._buffers[name])
        return results


def typical(times: Sequence[float]) -> float:
    """Return the time that one in ten stays below: near the least, without a clock's outliers."""
    return sorted(times)[len(times) // 10]


def _named(path: str) -> Emit:
    module, _, name = path.partition(":")
    found: Emit = getattr(import_module(module), name)
    return found


def _reason(fault: PolyloomError) -> str:
    first = fault.diagnostics[0]
    return f"{first.message}: {first.notes[0]}" if first.notes else first.message
