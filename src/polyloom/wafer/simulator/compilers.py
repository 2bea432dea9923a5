"""Finding a C compiler that knows half precision: gcc, clang, or the one in the PyPI package ``ziglang``."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from polyloom.c_compilers import c_compilers
from polyloom.caches import work_folder
from polyloom.diagnostics import PolyloomError, error
from polyloom.programs import ProgramFault, first_error, run_program

BASE_FLAGS = (
    "-std=gnu11",
    "-O2",
    "-fPIC",
    "-fvisibility=hidden",
    "-fwrapv",
    "-fno-strict-aliasing",
    "-ffp-contract=off",
)
NATIVE = "-march=native"
OPTIONAL_FLAGS = (NATIVE, "-fexcess-precision=16", "-fno-ipa-icf")
"""Used where the compiler takes them."""

EMITTED_FLAGS = (
    "-Og",
    "-ffreestanding",
    "-Werror=implicit-function-declaration",
    "-Werror=int-conversion",
    "-Werror=incompatible-pointer-types",
)
"""What C99 forbids, gcc only warns of. To compile a role takes longer than its scalar code runs, and with -O2
twice as long as with -Og; SIMD instructions are the simulator's own."""

PROBE = """
typedef _Float16 half;
half sum(half a, half b) { return (half)(a + b); }
"""


PROBE_SECONDS = 60.0
"""How long a compiler may take for that."""


class Unusable(Exception):
    """A compiler that does not work, or does not know half precision; the text says what it said."""


@dataclass(frozen=True)
class Compiler:
    """A C compiler that was tried out: its command, its version text, and its flags."""

    command: tuple[str, ...]
    version: str
    flags: tuple[str, ...]
    bounds_flags: tuple[str, ...]
    """Additional flags for emitted code: free-standing, with checked array bounds."""


@cache
def find_compiler() -> Compiler:
    """Return the first usable compiler of gcc, clang, cc and ziglang.

    Errors: a ``PolyloomError`` that says which were tried and how to get one.
    """
    return choose_compiler(_candidates())


def choose_compiler(commands: Iterable[tuple[str, ...]]) -> Compiler:
    """Return the first of the commands that compiles half precision; a ``PolyloomError`` if none does."""
    notes = []
    for command in commands:
        try:
            return try_compiler(command)
        except Unusable as fault:
            notes.append(f"`{' '.join(command)}`: {fault}")
    message = "no C compiler was found that builds a program with half precision (_Float16)"
    helps = ["install gcc 12 or clang 15 or later, or `pip install polyloom[zig]`"]
    if notes:
        helps.append("if it knows half precision: is there room in the folder for temporary files (TMPDIR)?")
    raise PolyloomError(error("no-compiler", message, notes=notes or ["none is installed"], helps=helps))


def _candidates() -> list[tuple[str, ...]]:
    return [compiler.command for compiler in c_compilers()]


def try_compiler(command: tuple[str, ...]) -> Compiler:
    """Try the compiler out: its version, and which of the flags it takes. Raises ``Unusable``."""
    version = _output((*command, "--version"))
    zig = command[-1] == "cc" and "ziglang" in command
    base = BASE_FLAGS if not zig else (*BASE_FLAGS, "-fno-sanitize=all")
    _build_probe(command, base)
    optional = tuple(flag for flag in OPTIONAL_FLAGS if _accepts(command, (*base, "-Werror", flag)))
    flags = base + optional
    return Compiler(command, version + _processor(), flags, _bounds_flags(command, flags))


def _bounds_flags(command: tuple[str, ...], flags: tuple[str, ...]) -> tuple[str, ...]:
    """Prefer a sanitizer that also checks arrays at the end of a structure."""
    choices = (
        ("-fsanitize=bounds-strict",),
        ("-fsanitize=array-bounds", "-fstrict-flex-arrays=3", "-fno-sanitize-trap=all"),
        ("-fsanitize=bounds",),
    )
    usable = (choice for choice in choices if _accepts(command, (*flags, "-Werror", *choice)))
    return EMITTED_FLAGS + next(usable, ())


def _accepts(command: tuple[str, ...], flags: tuple[str, ...]) -> bool:
    try:
        _build_probe(command, flags)
    except Unusable:
        return False
    return True


def _build_probe(command: tuple[str, ...], flags: tuple[str, ...]) -> None:
    """Compile a program with half precision. Raises ``Unusable``."""
    with work_folder() as folder:
        (folder / "probe.c").write_text(PROBE, encoding="utf-8")
        _output((*command, *flags, "-c", "probe.c", "-o", "probe.o"), folder)


def _output(command: tuple[str, ...], folder: Path | None = None) -> str:
    """Return what a program prints. Raises ``Unusable`` where it fails."""
    try:
        done = run_program(command, seconds=PROBE_SECONDS, folder=folder)
    except ProgramFault as fault:
        raise Unusable(str(fault)) from fault
    if done.status != 0:
        raise Unusable(f"exit status {done.status}: {first_error(done.err)}")
    return done.out


def _processor() -> str:
    """What `-march=native` depends on."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8", errors="replace").splitlines() if info.exists() else []
    features = [line for line in lines if line.lower().startswith(("flags", "features"))]
    return f"{platform.system()} {platform.machine()} {platform.processor()} {features[:1]}"
