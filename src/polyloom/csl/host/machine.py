"""What the host needs of a simulated wafer: memory, commands, streams, time until goals hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from polyloom.wafer.simulator.csl_fabric import Goal


class Machine(Protocol):
    """PEs of the program's rectangle, (0, 0) in the north-west; addresses and sizes in bytes."""

    @property
    def cycles(self) -> int:
        """Cycles since the start."""

    def read(self, x: int, y: int, address: int, size: int) -> bytes:
        """Return memory of a PE. Errors: a diagnostic where it holds nothing that was written."""

    def write(self, x: int, y: int, address: int, data: bytes) -> None:
        """Change memory of a PE."""

    def call(self, x: int, y: int, function: str, words: Sequence[int]) -> None:
        """Append a launch to a PE's commands; the next one waits until the function unblocks the stream."""

    def inject(self, x: int, y: int, color: int, words: Sequence[int]) -> None:
        """Append words that the host sends to a PE on a color."""

    def collect(self, x: int, y: int, color: int, words: int) -> list[int]:
        """Take the oldest words that a PE sent to the host on a color."""

    def run(self, goals: Sequence[Goal]) -> None:
        """Let time pass until all goals hold. Errors: a diagnostic where nothing can move before."""

    def let_pass(self, cycles: int) -> None:
        """Let so many cycles pass, or fewer where nothing moves."""

    def finish(self) -> None:
        """Run until nothing moves, and check that nothing was left in the fabric."""

    def log(self) -> list[str]:
        """Take the lines that programs printed."""
