"""Machine models: data files in which each number names its source, or says why it is an estimate."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from polyloom.diagnostics import PolyloomError, error

FOLDER: Traversable = files(__package__) / "machines"
"""A file ``NAME.json`` in it is a machine."""


@dataclass(frozen=True)
class Machine:
    """What the simulator and the compiler know of a machine. Times are in cycles, sizes in bytes or counts.

    ``provenance`` says for every other field where its number comes from; estimates begin with ``estimate:``,
    what was set from measurements by ``fit:``.
    """

    name: str
    title: str
    grid: tuple[int, int]
    """Most PEs in x and in y."""
    clock_ghz: float
    sram_bytes: int
    reserved_bytes: int
    """Of ``sram_bytes``, for code and stack."""
    simd_widths: Mapping[str, int]
    """Elements a cycle of a SIMD instruction; one that is not named has width 1."""
    simd_launch: int
    configure: int
    set_base_address: int
    set_length: int
    """Of an operand of one dimension, alone; 0: the machine cannot."""
    scalar_operation: int
    scalar_load: int
    scalar_store: int
    scalar_multiplication: int
    loop_iteration: int
    branch: int
    data_task_dispatch: int
    local_task_activate: int
    send: int
    receive: int
    hop_latency: int
    ramp_latency: int
    router_buffer: int
    """Wavelets that a router keeps for each color."""
    colors: int
    input_queues: tuple[int, ...]
    """Length of each input queue, in wavelets."""
    output_queues: tuple[int, ...]
    operand_descriptors: int
    """Operands that each descriptor file holds."""
    tasks: int
    """Data and local tasks of one program."""
    microthreads: int
    microthread_wake: int
    """Cycles in which a microthread that found its input queue empty comes back when an element has come."""
    wavelet_elements: int
    """Elements of 16 bits of a dense stream that a wavelet may hold: 1 or 2."""
    switched_colors: int
    """So many colors, from 0 on, may have switches in their routes."""
    filters: int
    """Colors of which the router of a PE may keep wavelets from it."""
    same_bank_cycles: int
    """Of an element of a SIMD instruction whose accesses to memory meet in one bank."""
    provenance: Mapping[str, str] = field(repr=False)
    fitted_to: Mapping[str, tuple[str, ...]] = field(repr=False)
    """The measurements that a number was set from, as `benchmarks/machine_validation.py` calls them."""

    def __hash__(self) -> int:
        """Machines of one name are compared in full."""
        return hash(self.name)

    def __post_init__(self) -> None:
        """Refuse what the rules do not allow: every way takes a cycle, every buffer holds a wavelet."""
        positive = (
            self.hop_latency,
            self.ramp_latency,
            self.simd_launch,
            self.router_buffer,
            self.microthreads,
            self.same_bank_cycles,
        )
        if min(*positive, *self.input_queues, *self.output_queues, *self.simd_widths.values()) < 1:
            raise ValueError(f"machine {self.name}: latencies, lengths and widths are at least 1")
        if self.wavelet_elements not in (1, 2):
            raise ValueError(f"machine {self.name}: a wavelet holds 1 or 2 elements of 16 bits")
        if (
            max(len(self.input_queues), len(self.output_queues)) > 16
            or self.colors > 32
            or self.microthreads > 8
        ):
            raise ValueError(f"machine {self.name}: at most 16 queues, 32 colors and 8 microthreads")
        if self.router_buffer + self.ramp_latency + max(*self.input_queues, *self.output_queues) > 255:
            raise ValueError(
                f"machine {self.name}: a queue with its way from the router holds at most 255 wavelets"
            )

    @property
    def memory_bytes(self) -> int:
        """Bytes of a PE that a role's data may fill."""
        return self.sram_bytes - self.reserved_bytes

    def simd_width(self, instruction: str) -> int:
        """Elements a cycle of the instruction with this name."""
        return self.simd_widths.get(instruction, 1)


def machines() -> tuple[str, ...]:
    """Return the names of all machines that there are models of."""
    return tuple(sorted(f.name.removesuffix(".json") for f in FOLDER.iterdir() if f.name.endswith(".json")))


def load_machine(name: str) -> Machine:
    """Return the machine model with this name: one of ``machines()``.

    Errors: a ``PolyloomError`` that names the known machines.
    """
    if name not in machines():
        known = f"known are {', '.join(machines())}"
        raise PolyloomError(error("machine-unknown", f"there is no machine `{name}`", helps=[known]))
    text = (FOLDER / f"{name}.json").read_text(encoding="utf-8")
    return _machine(json.loads(text))


def _machine(document: Mapping[str, Any]) -> Machine:
    entries = {key: value for key, value in document.items() if isinstance(value, dict)}
    plain = {key: value for key, value in document.items() if key not in entries}
    values = {key: _immutable(entry["value"]) for key, entry in entries.items()}
    provenance = {key: _provenance(entry) for key, entry in entries.items()}
    fitted_to = {key: tuple(entry["fit_to"]) for key, entry in entries.items() if "fit_to" in entry}
    return Machine(**plain, **values, provenance=provenance, fitted_to=fitted_to)


def _immutable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _provenance(entry: Mapping[str, Any]) -> str:
    if "source" in entry:
        return str(entry["source"])
    return f"fit: {entry['fit']}" if "fit" in entry else f"estimate: {entry['estimate']}"
