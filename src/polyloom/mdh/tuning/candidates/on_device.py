"""Candidates on a device of OpenCL or CUDA, timed by its own clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from polyloom.ir.host import HostProgram, MdHom, Nest
from polyloom.mdh.device.devices import DeviceModel, OpenDevice
from polyloom.mdh.lowering.launch import Launch
from polyloom.mdh.runtime.driver import Driver
from polyloom.mdh.runtime.host_program import Prepared, prepare
from polyloom.mdh.runtime.opencl import driver_of
from polyloom.mdh.tuning.candidates.trial import NDArray, Run, Trial, as_given


class DeviceCandidates:
    """Kernels that a device's driver builds; of ``Candidates``."""

    most_kept = 8

    def __init__(self, trial: Trial, device: OpenDevice | Driver, arrays: Mapping[str, NDArray]) -> None:
        self._trial, self._driver, self._arrays = trial, driver_of(device), arrays
        with self._driver.errors():
            self._memory = {name: self._driver.allocate(array.nbytes) for name, array in arrays.items()}
            for name, memory in self._memory.items():
                self._driver.upload(memory, arrays[name])

    def built(self, text: str) -> Run:
        """Build the kernels of one schedule, which come out of its JSON text."""

        def emit(node: MdHom | Nest, program: HostProgram, device: DeviceModel) -> Launch:
            launch: Launch = self._trial.emitted(text)
            return launch

        prepared = prepare(self._trial.program, {}, self._driver, emit)
        return Run(lambda: self._run(prepared), lambda: self._run(prepared))

    def built_ahead(self, texts: Sequence[str]) -> Mapping[str, Run]:
        """Build none: what a driver does at a time is its own affair."""
        return {}

    def _run(self, prepared: Prepared) -> float:
        """Return the seconds from the start of the first kernel to the end of the last."""
        events = prepared.run(self._memory, timed=True)
        return max(events[0].event.until(events[-1].event), 1e-9) if events else 1e-9

    def reset(self) -> None:
        """Copy what the checker starts from to the device."""
        with self._driver.errors():
            for name in self._trial.outputs:
                self._driver.upload(self._memory[name], self._arrays[name])

    def results(self) -> dict[str, NDArray]:
        """Copy the outputs from the device."""
        results = as_given(self._arrays, self._trial.outputs)
        with self._driver.errors():
            for name, array in results.items():
                self._driver.download(self._memory[name], array)
        return results
