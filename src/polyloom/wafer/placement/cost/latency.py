"""How long PEs wait for each other along a line."""

from __future__ import annotations

from polyloom.wafer.machine.model import Machine


def stage_cycles(machine: Machine) -> int:
    """Return the cycles from PE to PE: off the one, a hop, onto the next, one operation."""
    return 2 * machine.ramp_latency + machine.hop_latency + 1


def phases_latency(phases: int, machine: Machine) -> float:
    """Return the latency of a move in so many phases.

    Elements go to neighbours, half of the phases away at most and half of that on average; a phase waits for
    the instructions that send and receive the one before.
    """
    return phases * ((phases + 1) / 4 * stage_cycles(machine) + 2 * machine.simd_launch)
