"""A C compiler for unchanged programs: no optimisation that changes rounding, subscripts checked."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path

from polyloom.c_compilers import CCompiler, c_compilers
from polyloom.caches import temporary_folder
from polyloom.programs import ProgramFault, first_error, run_program

FLAGS = (
    "-std=gnu11",
    "-O1",
    "-fwrapv",
    "-ffp-contract=off",
    "-fno-strict-aliasing",
    "-ffunction-sections",
    "-fdata-sections",
    "-w",
)
CHECKED = (
    ("-fsanitize=array-bounds", "-fno-sanitize-trap=array-bounds"),
    ("-fsanitize=bounds",),
    (),
)
"""Flags that check subscripts, of clang, of gcc, of others; the driver has what they call."""

UNUSED_DROPPED = (("-Wl,--gc-sections",), ("-Wl,-dead_strip",), ())
"""Functions of the file that the part does not call may use others that are not there."""

LONGEST = 120.0
"""Seconds that a compiler may take."""


class CannotBuild(Exception):
    """The file is refused by the compiler; the text says why."""


def find_c_compiler() -> CCompiler | None:
    """Return the first C compiler of gcc, clang, cc and ziglang; None where there is none."""
    return next(c_compilers(), None)


def build(compiler: CCompiler, source: Path, options: Sequence[str], target: Path) -> None:
    """Build a program of a file and the driver, with checked subscripts if possible.

    Errors: ``CannotBuild``.
    """
    driver, checks = _prepared(compiler)
    unit = target.with_suffix(".o")
    flags = (*compiler.flags, *FLAGS, *checks, *options)
    _first(compiler, [(*flags, "-c", str(source), "-o", str(unit))])
    whole = (*compiler.flags, str(unit), str(driver), "-o", str(target), "-lm", "-pthread")
    _first(compiler, [(*whole, *flags) for flags in UNUSED_DROPPED])


@cache
def _prepared(compiler: CCompiler) -> tuple[Path, tuple[str, ...]]:
    """Return the driver as an object file, and the flags by which subscripts are checked."""
    folder = temporary_folder()
    driver, empty = folder / "driver.o", folder / "empty.c"
    empty.write_text("")
    with as_file(files(__package__) / "native" / "driver.c") as text:
        _first(compiler, [(*compiler.flags, "-O1", "-w", "-c", str(text), "-o", str(driver))])
    probe = ("-c", str(empty), "-o", str(folder / "empty.o"))
    checks = _first(compiler, [(*compiler.flags, *check, *probe) for check in CHECKED])
    return driver, CHECKED[checks]


def _first(compiler: CCompiler, commands: Sequence[Sequence[str]]) -> int:
    """Run the first of the commands that works; return its number."""
    faults = []
    for number, words in enumerate(commands):
        faults.append(_fault((*compiler.command, *words)))
        if not faults[-1]:
            return number
    raise CannotBuild(f"{compiler.name} does not build it: {faults[0]}")


def _fault(command: Sequence[str]) -> str:
    """Return what a compiler says first, nothing where it succeeds."""
    try:
        done = run_program(command, seconds=LONGEST, temporary=temporary_folder())
    except ProgramFault as fault:
        return str(fault)
    return first_error(done.err) if done.status else ""
