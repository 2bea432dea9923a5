"""Compiles emitted programs with the simulator into shared objects, and keeps them.

The cache is addressed by content: sources, headers, flags and compiler version (``polyloom.caches``).
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path

from polyloom.caches import cache_folder, kept, work_folder
from polyloom.diagnostics import PolyloomError, error
from polyloom.programs import ProgramFault, first_error, run_program
from polyloom.wafer.machine.scalar_c import function_table
from polyloom.wafer.simulator.compilers import NATIVE, Compiler, find_compiler

INSTRUCTIONS = "instructions.inc"
FUNCTIONS = "functions.inc"
MOST_BYTES = 256 * 2**20
"""How much the cache may hold before it is trimmed."""
SPARED_SECONDS = 3600.0
TRIM_SECONDS = 60.0
"""How long a trimmed cache is left alone: to look at all of its files may take longer than building one."""


COMPILE_SECONDS = 600.0
"""How long a C compiler may take for one file."""


class BuildFailure(PolyloomError):
    """The compiler does not build emitted code, which should compile: it is broken, or Polyloom is."""


@dataclass(frozen=True)
class Unit:
    """One C file to compile, with everything that it depends on: names to texts."""

    name: str
    texts: Mapping[str, str]
    flags: tuple[str, ...]


def build_program(
    emitted: Mapping[str, str],
    instructions: str,
    *,
    compiler: Compiler | None = None,
    folder: Path | None = None,
    counted: bool = False,
    lines: bool = False,
) -> Path:
    """Compile emitted C files and link them with the simulator; return the path of the shared object.

    ``emitted`` maps file names (``C_0.c``, ..., and ``layout.c``) to texts; ``instructions`` is the SIMD
    instruction table as a text of X-macro lines. What was built before is taken from the cache in ``folder``
    (by default ``~/.cache/polyloom``, or a temporary folder where that cannot be written). ``counted``: a
    task that loads, stores or branches more often than its ``cost(...)`` declares fails (``cost``).
    ``lines``: the simulator knows at each cycle which line of the emitted C is at work (``profile``).

    Errors: ``no-compiler``, ``file-unwritable``; ``BuildFailure`` if the compiler does not build the code.
    """
    with_compiler = compiler or find_compiler()
    store = folder or cache_folder()
    units = [_simulator_unit(with_compiler), _table_unit(instructions, with_compiler)]
    units += [
        _emitted_unit(name, emitted, instructions, with_compiler)
        for name in sorted(emitted)
        if name.endswith(".c")
    ]
    if lines:
        units = [*units[:2], *(replace(unit, flags=(*unit.flags, "-DPE_LINES")) for unit in units[2:])]
    if counted:
        units = [replace(unit, flags=(*unit.flags, "-DPE_COUNTED")) for unit in units]
    objects = [compiled(unit, with_compiler, store) for unit in units]
    return linked(objects, with_compiler, store)


def _simulator_unit(compiler: Compiler) -> Unit:
    """Return the simulator, which is the same for all programs: it knows their instructions by number."""
    texts = {name: text for name, text in native_texts().items() if not name.startswith("csl")}
    return Unit("simulator.c", {**texts, **role_headers(), INSTRUCTIONS: ""}, compiler.flags)


def _table_unit(instructions: str, compiler: Compiler) -> Unit:
    texts = {name: native_texts()[name] for name in ("instructions.c", "fabric.h")}
    return Unit("instructions.c", {**texts, **role_headers(), INSTRUCTIONS: instructions}, compiler.flags)


def _emitted_unit(name: str, emitted: Mapping[str, str], instructions: str, compiler: Compiler) -> Unit:
    shared = {other: text for other, text in emitted.items() if not other.endswith(".c")}
    texts = {**role_headers(), **shared, INSTRUCTIONS: instructions, name: emitted[name]}
    return Unit(name, texts, compiler.flags + compiler.bounds_flags)


def role_headers() -> dict[str, str]:
    """Return the headers of emitted code, by name; the functions in them are those of the table."""
    texts = {name: native_texts()[name] for name in ("pe.h", "pe_state.h", "arithmetic.h", "layout.h")}
    return {**texts, FUNCTIONS: function_table()}


@cache
def native_texts() -> Mapping[str, str]:
    """Return the files of the simulator in C, by name."""
    with as_file(files(__package__) / "native") as folder:
        return {
            path.name: path.read_text(encoding="utf-8")
            for path in sorted(folder.iterdir())
            if path.suffix in (".c", ".h", ".inc")
        }


def compiled(unit: Unit, compiler: Compiler, store: Path) -> Path:
    """Return the object file of a unit, from the cache or new; raises ``BuildFailure``."""
    key = _digest([compiler.version, *compiler.command, *unit.flags, unit.name, *_flat(unit.texts)])
    return _kept(store, f"{key}.o", lambda: _compile(unit, compiler))


def _compile(unit: Unit, compiler: Compiler) -> bytes:
    """Return the object file of a unit; raises ``BuildFailure``.

    Where the compiler fails, it is asked for code for any processor: gcc 12 writes a masked ``vmovsh`` for
    processors with AVX512-FP16, which assemblers refuse. Halves are rounded after each operation by both.
    """
    with work_folder() as folder:
        for name, text in unit.texts.items():
            (folder / name).write_text(text, encoding="utf-8")
        rest = ("-I.", "-c", unit.name)
        portable = tuple(flag for flag in unit.flags if flag != NATIVE)
        try:
            return _run(compiler, (*unit.flags, *rest), folder)
        except BuildFailure:
            if portable == unit.flags:
                raise
            return _run(compiler, (*portable, *rest), folder)


def linked(objects: list[Path], compiler: Compiler, store: Path) -> Path:
    """Return the shared object of these object files; raises ``BuildFailure``."""
    key = _digest([compiler.version, *compiler.command, *(path.name for path in objects)])

    def link() -> bytes:
        with work_folder() as folder:
            return _run(compiler, ("-shared", "-pthread", *map(str, objects), "-lm"), folder)

    return _kept(store, f"{key}.so", link)


def _run(compiler: Compiler, arguments: tuple[str, ...], folder: Path) -> bytes:
    """Return what the compiler makes of the arguments. Raises ``BuildFailure``."""
    made = folder / "made"
    try:
        done = run_program(
            (*compiler.command, *arguments, "-o", str(made)), folder=folder, seconds=COMPILE_SECONDS
        )
    except ProgramFault as fault:
        raise _failure(compiler, str(fault)) from fault
    if done.status != 0:
        raise _failure(compiler, f"exit status {done.status}: {first_error(done.err)}")
    if not made.is_file() or not made.stat().st_size:
        raise _failure(compiler, "it says that all is well, and writes nothing")
    return made.read_bytes()


def _failure(compiler: Compiler, reason: str) -> BuildFailure:
    command = " ".join(compiler.command)
    helps = [
        "is there room in the folder for temporary files (TMPDIR), and does the compiler work?",
        "if it does, then this is a fault of Polyloom: please report it with the command and its files",
    ]
    return BuildFailure(
        error("compiler-failed", f"`{command}` does not build the code for PEs: {reason}", helps=helps)
    )


def _kept(store: Path, name: str, make: Callable[[], bytes]) -> Path:
    path = kept(store, name, make)
    with suppress(OSError):
        trim_now_and_then(store)
    return path


def trim_now_and_then(store: Path) -> None:
    """Trim the cache unless that was done a short while ago, by whatever process."""
    last = store / "trimmed"
    if last.exists() and abs(time.time() - last.stat().st_mtime) < TRIM_SECONDS:
        return
    last.touch()
    trim(store)


def trim(store: Path, most_bytes: int = MOST_BYTES, spared_seconds: float = SPARED_SECONDS) -> None:
    """Remove objects and chosen maps that were used longest ago where there are more than ``most_bytes``.

    What was used in the last ``spared_seconds`` stays: another process may be about to load it.
    """
    files = (path for pattern in ("*.*o", "map-*.json") for path in store.glob(pattern))
    found = sorted((_age_and_size(path), path) for path in files)
    total = sum(size for (_, size), _ in found)
    for (used, size), path in found:
        if total <= most_bytes or used > time.time() - spared_seconds:
            return
        path.unlink(missing_ok=True)
        total -= size


def _age_and_size(path: Path) -> tuple[float, int]:
    try:
        status = path.stat()
    except FileNotFoundError:
        return 0.0, 0
    return status.st_mtime, status.st_size


def _flat(texts: Mapping[str, str]) -> Iterable[str]:
    return (part for name in sorted(texts) for part in (name, texts[name]))


def _digest(parts: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        encoded = part.encode()
        digest.update(len(encoded).to_bytes(8, "little") + encoded)
    return digest.hexdigest()[:32]
