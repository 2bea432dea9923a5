"""`debug_util`: a program's memory and its `<debug>` records, after it ran in the same process."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.csl.host.opening import last_run
from polyloom.csl.host.program import Built
from polyloom.csl.host.runtime import read_global
from polyloom.csl.host.session import Session
from polyloom.csl.host.tensors import Region
from polyloom.diagnostics import PolyloomError, error

STRING, TIMESTAMP = 1, 2
_VALUES = {3: ("<H", 1), 4: ("<H", 1), 5: ("<h", 1), 6: ("<I", 2), 7: ("<i", 2), 8: ("<e", 1), 9: ("<f", 2)}
"""Kinds of records as `<debug>` writes them: the value's format and its 16-bit words."""


class debug_util:  # noqa: N801  (the name that host programs import)
    """Memory and records of a folder's program; places are those of the fabric."""

    def __init__(self, bindir: str | Path, cmaddr: str | None = None) -> None:
        """Read the last run of the folder's program in this process. Errors: `csl-host-order`."""
        found = last_run(Path(bindir))
        if found is None:
            helps = ["call it after `stop` or `dump_core`, in the program that ran it"]
            raise PolyloomError(
                error("csl-host-order", f"no program of `{bindir}` ran in this process", helps=helps)
            )
        self._built: Built = found[0]
        self._session: Session = found[1]

    def get_symbol(self, col: int, row: int, symbol: str, dtype: Any = None) -> npt.NDArray[Any]:
        """Return a global of a PE."""
        return read_global(self._built, self._session, col, row, symbol, dtype)

    def get_symbol_rect(self, rectangle: Any, symbol: str, dtype: Any) -> npt.NDArray[Any]:
        """Return a global of each PE of ((column, row), (width, height)), as [column][row][element]."""
        (col, row), (width, height) = rectangle
        return np.array(
            [[self.get_symbol(col + i, row + j, symbol, dtype) for j in range(height)] for i in range(width)]
        )

    def read_trace(self, col: int, row: int, name: str) -> list[Any]:
        """Return what a PE's instance of `<debug>` with this key recorded: strings, numbers, cycles."""
        x, y = col - self._built.fabric_offset[0], row - self._built.fabric_offset[1]
        program = self._built.program
        Region(x, y, 1, 1, 1).check_inside(program.width, program.height)
        buffer = program.debug_buffer(x, y, name)
        if buffer is None:
            raise PolyloomError(
                error(
                    "csl-host-name",
                    f"the program of PE ({x}, {y}) imports no `<debug>` with the key `{name}`",
                )
            )
        machine = self._session.machine
        used = int.from_bytes(machine.read(x, y, buffer.state, 2), "little")
        return records(np.frombuffer(machine.read(x, y, buffer.buffer, 2 * used), "<u2"))


def records(words: npt.NDArray[np.uint16]) -> list[Any]:
    """Return the records in a buffer of `<debug>`."""
    found: list[Any] = []
    at = 0
    while at < len(words):
        kind = int(words[at])
        if kind == STRING:
            length = int(words[at + 1])
            size = (length + 1) // 2
            found.append(words[at + 2 : at + 2 + size].tobytes()[:length].decode("utf-8", "replace"))
            at += 2 + size
        elif kind == TIMESTAMP:
            found.append(sum(int(w) << 16 * i for i, w in enumerate(words[at + 1 : at + 4])))
            at += 4
        else:
            form, size = _VALUES[kind]
            (value,) = struct.unpack(form, words[at + 1 : at + 1 + size].tobytes())
            found.append(bool(value) if kind == 3 else value)
            at += 1 + size
    return found
