"""Candidates on an OpenCL device, timed by its own clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from polyloom.ir.host import HostProgram, MdHom, Nest
from polyloom.mdh.device.devices import DeviceModel, OpenDevice
from polyloom.mdh.lowering.launch import Launch
from polyloom.mdh.runtime.host_program import Prepared, prepare
from polyloom.mdh.tuning.candidates.trial import NDArray, Run, Trial, as_given

if TYPE_CHECKING:
    import pyopencl as cl


class OpenCLCandidates:
    """Kernels that an OpenCL driver builds; of ``Candidates``."""

    most_kept = 8

    def __init__(self, trial: Trial, device: OpenDevice, arrays: Mapping[str, NDArray]) -> None:
        self._trial, self._device, self._arrays = trial, device, arrays
        self._buffers = {name: self._buffer(array) for name, array in arrays.items()}

    def built(self, text: str) -> Run:
        """Build the kernels of one schedule, which come out of its JSON text."""

        def emit(node: MdHom | Nest, program: HostProgram, device: DeviceModel) -> Launch:
            launch: Launch = self._trial.emitted(text)
            return launch

        prepared = prepare(self._trial.program, {}, self._device, emit)
        return Run(lambda: self._run(prepared), lambda: self._run(prepared))

    def built_ahead(self, texts: Sequence[str]) -> Mapping[str, Run]:
        """Build none: what a driver does at a time is its own affair."""
        return {}

    def _run(self, prepared: Prepared) -> float:
        """Return the seconds from the start of the first kernel to the end of the last."""
        events = [event.event.profile for event in prepared.run(self._buffers, timed=True)]
        if not events:
            return 1e-9
        span = max(profile.end for profile in events) - min(profile.start for profile in events)
        return max(float(span) * 1e-9, 1e-9)

    def _buffer(self, array: NDArray) -> cl.Buffer:
        import pyopencl as cl

        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        if array.nbytes == 0:
            return cl.Buffer(self._device.context, cl.mem_flags.READ_WRITE, 16)
        return cl.Buffer(self._device.context, flags, hostbuf=array)

    def reset(self) -> None:
        """Copy what the checker starts from to the device."""
        import pyopencl as cl

        for name in self._trial.outputs:
            if self._arrays[name].nbytes:
                cl.enqueue_copy(self._device.queue, self._buffers[name], self._arrays[name])

    def results(self) -> dict[str, NDArray]:
        """Copy the outputs from the device."""
        import pyopencl as cl

        results = as_given(self._arrays, self._trial.outputs)
        for name, array in results.items():
            if array.nbytes:
                cl.enqueue_copy(self._device.queue, array, self._buffers[name])
        return results
