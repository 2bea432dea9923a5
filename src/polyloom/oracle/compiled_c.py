"""A static control part of a C program, run as the C compiler understands it, in a process of its own.

The arrays lie between pages that nothing may touch, subscripts of known dimensions are checked: an access
outside is found, and neither that nor a crash or an endless loop can harm the caller. Not in the papers.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.c_compilers import CCompiler
from polyloom.caches import temporary_folder, work_folder
from polyloom.diagnostics import PolyloomError, Source, error
from polyloom.frontends.c.standalone import Standalone
from polyloom.frontends.c.syntax.faults import line_span
from polyloom.ir.verification.references import access_outside
from polyloom.oracle.c_compiler import build
from polyloom.programs import ProgramFault, run_program

NDArray = npt.NDArray[Any]

SECONDS = 600.0
"""Seconds that the C program may take."""

SHORT = 2.0
"""Seconds up to which it is run again, with forbidden pages right before the arrays."""

NEAREST = "nearest"
ELSEWHERE = ("up", "down", "zero")
"""Where operations on floats round to: what C starts with, and the other directions that IEEE 754 has."""

EXTENTS = 16
ALIGNMENT = 64
FAULT = 3
"""The exit status with which the driver reports."""


@dataclass(frozen=True, eq=False)
class CProgram:
    """A part of a file as a program of its own.

    ``options``: of the compiler, ``-D`` and ``-I``. ``seconds``: that a run may take.
    """

    name: str
    source: Source
    alone: Standalone
    compiler: CCompiler
    options: tuple[str, ...]
    seconds: float = SECONDS

    def run(self, arrays: Mapping[str, NDArray], rounding: str = NEAREST) -> dict[str, NDArray]:
        """Return all arrays and scalars as the part leaves them; ``arrays`` has one for every slot.

        ``rounding``: where to, ``NEAREST`` or one of ``ELSEWHERE``.

        Errors: ``CannotBuild``; ``access-outside``, ``memory``, ``file-unwritable``, ``reference-time``,
        ``reference-died``.
        """
        given = [np.asarray(arrays[slot.name], order="C") for slot in self.alone.slots]
        with work_folder() as folder:
            offsets = _write(folder / "input", given)
            started = time.monotonic()
            self._run(folder, "end", rounding)
            found = [_read(folder / "output", a, at) for a, at in zip(given, offsets, strict=True)]
            if rounding == NEAREST and time.monotonic() - started < SHORT:
                self._run(folder, "start", rounding)
        return {slot.name: array for slot, array in zip(self.alone.slots, found, strict=True)}

    @cached_property
    def _program(self) -> Path:
        """The program, built once."""
        folder = temporary_folder()
        text, target = folder / "program.c", folder / "program"
        text.write_text(self.alone.text, encoding="utf-8")
        options = [*self.options, *(["-Dconst="] if self.alone.unconst else [])]
        build(self.compiler, text, options, target)
        return target

    def _run(self, folder: Path, place: str, rounding: str) -> None:
        names = [str(folder / name) for name in ("input", "output", "report")]
        command = [str(self._program), *names, place, str(1 + int(self.seconds)), rounding]
        try:
            status = run_program(command, seconds=2 * self.seconds, folder=folder).status
        except ProgramFault as fault:
            raise self._died(str(fault)) from fault
        if status == FAULT:
            raise self._reported((folder / "report").read_text(encoding="utf-8", errors="replace"))
        if status != 0:
            raise self._died(f"it ends with status {status}")

    def _reported(self, report: str) -> PolyloomError:
        """Return the error that the driver reports; where there was no room for a report, that."""
        words = report.split(maxsplit=3) or ["disk"]
        match words[0]:
            case "outside" | "written":
                slot = self.alone.slots[int(words[1])]
                return access_outside(self.name, _where(".".join(slot.path), words[2]), slot.variable.span)
            case "index":
                line = int(words[1].partition(":")[0])
                where = f"the subscript {words[2]} of {words[3].strip()} in line {line}"
                return access_outside(self.name, where, line_span(self.source, line))
            case kind:
                message = f"there is not enough {kind} to run the C program"
                return PolyloomError(error("memory", message, helps=["give smaller sizes"]))

    def _died(self, how: str) -> PolyloomError:
        helps = ["give inputs for which it runs to its end, smaller ones, or leave `--check` out"]
        if "SIGXCPU" in how or "longer" in how:
            message = (
                f"the C program does not come to an end: `{self.name}` takes more than {self.seconds:g} s"
            )
            return PolyloomError(error("reference-time", message, helps=helps))
        message = f"the C program dies when `{self.name}` is run on these inputs: {how}"
        return PolyloomError(error("reference-died", message, helps=helps))


def compiler_options(
    source: Source, defines: Mapping[str, str], include: Sequence[Path], preprocessor: str | None
) -> tuple[str, ...]:
    """Return the options with which a user's file is compiled as it was read."""
    folder = str(Path(source.name).absolute().parent)
    macros = {"__POLYLOOM__": "1", **defines, "main": "polyloom_main"}
    options = [f"-D{name}={value}" for name, value in macros.items()]
    options += ["-iquote", folder, f"-I{folder}", *(f"-I{path.absolute()}" for path in include)]
    words = shlex.split(preprocessor)[1:] if preprocessor is not None else []
    return (*options, *(word for word in words if word[:2] in ("-D", "-U", "-I")))


def _write(path: Path, arrays: Sequence[NDArray]) -> list[int]:
    """Write the slots as the driver reads them; return where each one's data begin."""
    position = 8 * (1 + len(arrays) * (3 + EXTENTS))
    offsets, table = [], [len(arrays)]
    for array in arrays:
        position = -(-position // ALIGNMENT) * ALIGNMENT
        offsets.append(position)
        extents = [*array.shape, *([0] * EXTENTS)][:EXTENTS]
        table += [array.nbytes, array.size, position, *extents]
        position += array.nbytes
    with path.open("wb") as file:
        file.write(np.array(table, np.int64).tobytes())
        for array, offset in zip(arrays, offsets, strict=True):
            file.seek(offset)
            array.tofile(file)
        file.truncate(position)
    return offsets


def _read(path: Path, like: NDArray, offset: int) -> NDArray:
    return np.fromfile(path, like.dtype, like.size, offset=offset).reshape(like.shape)


def _where(name: str, how: str) -> str:
    """Return where an access went: ``how`` is a distance in bytes, or a side."""
    if how in ("before", "behind"):
        return f"`{name}`, written {'before its start' if how == 'before' else 'behind its end'}"
    distance = int(how)
    if distance < 0:
        return f"`{name}`, {-distance} bytes before its start"
    return f"`{name}`, {distance} bytes behind its end"
