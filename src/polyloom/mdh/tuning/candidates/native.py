"""Candidates as C on the processor: built several at a time, timed by the processor's clock."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from polyloom.diagnostics import PolyloomError
from polyloom.mdh.lowering.program_tree import program_tree
from polyloom.mdh.native.device import NativeDevice
from polyloom.mdh.native.entry import built
from polyloom.mdh.native.execution import address
from polyloom.mdh.native.team import Call, available_threads
from polyloom.mdh.tree.registers import final
from polyloom.mdh.tuning.candidates.trial import NDArray, Run, Trial, as_given

SECONDS = 25.0
"""How long a C compiler may take for a candidate: less than the child that waits for it may."""

SHORT = 30e-6
"""Seconds of a run at least, for a clock's reading takes some 50 ns: shorter kernels run several times,"""

MOST = 1000
"""so often at most."""


class NativeCandidates:
    """Functions that a C compiler builds; of ``Candidates``."""

    most_kept = 64

    def __init__(self, trial: Trial, device: NativeDevice, arrays: Mapping[str, NDArray]) -> None:
        self._trial, self._device, self._arrays = trial, device, arrays
        self._memory = as_given(arrays, [b.name for b in trial.program.buffers])

    def built(self, text: str) -> Run:
        """Build the function of one schedule, whose code comes out of its JSON text."""
        function = final(program_tree(self._trial.program, lambda hom: self._trial.emitted(text)))
        entry = built(function, self._device.compiler, self._device.threads, seconds=SECONDS)
        timed = _Timed(entry.call([address(self._memory[p.name]) for p in function.parameters]))
        return Run(timed.once, timed.again)

    def built_ahead(self, texts: Sequence[str]) -> Mapping[str, Run]:
        """Build several at a time."""
        with ThreadPoolExecutor(self._trial.jobs or available_threads()) as pool:
            found = list(pool.map(self._tried, texts))
        return {text: run for text, run in zip(texts, found, strict=True) if run is not None}

    def _tried(self, text: str) -> Run | None:
        try:
            return self.built(text)
        except (PolyloomError, ArithmeticError, AssertionError, LookupError, TypeError, ValueError):
            return None  # it is built again, alone, where it is to be measured, and the reason is said there

    def reset(self) -> None:
        """Copy what the checker starts from."""
        for name in self._trial.outputs:
            self._memory[name][...] = self._arrays[name]

    def results(self) -> dict[str, NDArray]:
        """Return copies of the outputs."""
        return as_given(self._memory, self._trial.outputs)


class _Timed:
    """A call that is timed: once, or as often as makes it long enough for the clock."""

    def __init__(self, call: Call) -> None:
        self._call, self._times = call, 1

    def once(self) -> float:
        """Run once."""
        return self._seconds(1)

    def again(self) -> float:
        """Run some times; return the seconds of one."""
        seconds = self._seconds(self._times)
        self._times = min(1 + int(SHORT / seconds), MOST)
        return seconds

    def _seconds(self, times: int) -> float:
        call = self._call
        begin = time.perf_counter()
        for _ in range(times):
            call()
        return max((time.perf_counter() - begin) / times, 1e-9)
