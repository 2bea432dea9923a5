"""Compiles emitted programs with the simulator into shared objects, and keeps them.

The cache is addressed by content: sources, headers, flags and compiler version. Files enter it by an atomic
rename, so that processes which build the same thing at the same time do not disturb each other.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path

from polyloom.files import cache_folder
from polyloom.wafer.simulator.compilers import Compiler, find_compiler

INSTRUCTIONS = "instructions.inc"
ROLE_HEADERS = ("pe.h", "arithmetic.h", "layout.h")
TABLE_FILES = ("instructions.c", "fabric.h", *ROLE_HEADERS)
MOST_BYTES = 256 * 2**20
"""How much the cache may hold before it is trimmed."""
SPARED_SECONDS = 3600.0
TRIM_SECONDS = 60.0
"""How long a trimmed cache is left alone: to look at all of its files may take longer than building one."""


class BuildFailure(Exception):  # an internal fault: emitted code must compile
    """The compiler refused emitted code; the text is what it said."""


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
) -> Path:
    """Compile emitted C files and link them with the simulator; return the path of the shared object.

    ``emitted`` maps file names (``C_0.c``, ..., and ``layout.c``) to texts; ``instructions`` is the SIMD
    instruction table as a text of X-macro lines. What was built before is taken from the cache in ``folder``
    (by default ``~/.cache/polyloom``, or a temporary folder where that cannot be written).

    Errors: a ``PolyloomError`` if there is no compiler; ``BuildFailure`` if emitted code does not compile.
    """
    with_compiler = compiler or find_compiler()
    store = folder or cache_folder()
    units = [_simulator_unit(with_compiler), _table_unit(instructions, with_compiler)]
    units += [
        _emitted_unit(name, emitted, instructions, with_compiler)
        for name in sorted(emitted)
        if name.endswith(".c")
    ]
    objects = [_compiled(unit, with_compiler, store) for unit in units]
    return _linked(objects, with_compiler, store)


def _simulator_unit(compiler: Compiler) -> Unit:
    """Return the simulator, which is the same for all programs: it knows their instructions by number."""
    return Unit("simulator.c", {**_native_texts(), INSTRUCTIONS: ""}, compiler.flags)


def _table_unit(instructions: str, compiler: Compiler) -> Unit:
    texts = {name: _native_texts()[name] for name in TABLE_FILES}
    return Unit("instructions.c", {**texts, INSTRUCTIONS: instructions}, compiler.flags)


def _emitted_unit(name: str, emitted: Mapping[str, str], instructions: str, compiler: Compiler) -> Unit:
    headers = {header: _native_texts()[header] for header in ROLE_HEADERS}
    shared = {other: text for other, text in emitted.items() if not other.endswith(".c")}
    texts = {**headers, **shared, INSTRUCTIONS: instructions, name: emitted[name]}
    return Unit(name, texts, compiler.flags + compiler.bounds_flags)


@cache
def _native_texts() -> Mapping[str, str]:
    with as_file(files(__package__) / "native") as folder:
        return {
            path.name: path.read_text(encoding="utf-8")
            for path in sorted(folder.iterdir())
            if path.suffix in (".c", ".h")
        }


def _compiled(unit: Unit, compiler: Compiler, store: Path) -> Path:
    key = _digest([compiler.version, *compiler.command, *unit.flags, unit.name, *_flat(unit.texts)])
    return _kept(store / f"{key}.o", lambda target: _compile(unit, compiler, target))


def _compile(unit: Unit, compiler: Compiler, target: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name, text in unit.texts.items():
            (Path(folder) / name).write_text(text, encoding="utf-8")
        _run((*compiler.command, *unit.flags, "-I.", "-c", unit.name, "-o", str(target)), Path(folder))


def _linked(objects: list[Path], compiler: Compiler, store: Path) -> Path:
    key = _digest([compiler.version, *compiler.command, *(path.name for path in objects)])
    names = [str(path) for path in objects]
    return _kept(
        store / f"{key}.so",
        lambda target: _run(
            (*compiler.command, "-shared", "-pthread", "-o", str(target), *names, "-lm"), store
        ),
    )


def _run(command: tuple[str, ...], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BuildFailure(done.stderr or f"{' '.join(command)}: exit status {done.returncode}")


def _kept(path: Path, make: Callable[[Path], None]) -> Path:
    """Return the path, after making it in a temporary file beside it if it is not there."""
    if path.exists():
        os.utime(path)
        return path
    handle, name = tempfile.mkstemp(dir=path.parent, prefix="new-", suffix=path.suffix)
    os.close(handle)
    try:
        make(Path(name))
        Path(name).replace(path)
    finally:
        Path(name).unlink(missing_ok=True)
    trim_now_and_then(path.parent)
    return path


def trim_now_and_then(store: Path) -> None:
    """Trim the cache unless that was done a short while ago, by whatever process."""
    last = store / "trimmed"
    if last.exists() and abs(time.time() - last.stat().st_mtime) < TRIM_SECONDS:
        return
    last.touch()
    trim(store)


def trim(store: Path, most_bytes: int = MOST_BYTES, spared_seconds: float = SPARED_SECONDS) -> None:
    """Remove what was used longest ago where the cache holds more than ``most_bytes``.

    What was used in the last ``spared_seconds`` stays: another process may be about to load it.
    """
    found = sorted((_age_and_size(path), path) for path in store.glob("*.*o"))
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
