"""Emitted C as shared objects, built once: kept by what, by whom and for which processor they are made."""

from __future__ import annotations

import hashlib
import platform
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path

from polyloom.c_compilers import CCompiler
from polyloom.caches import cache_folder, is_writable, kept, temporary_folder, work_folder
from polyloom.diagnostics import PolyloomError, error
from polyloom.mdh.device.pocl import processor_flags
from polyloom.programs import ProgramFault, run_program

FLAGS = (
    *("-std=gnu11", "-O3", "-fPIC", "-fno-math-errno", "-fno-trapping-math", "-w"),
    *("-fopenmp-simd", "-DOPENMP_SIMD"),
)
PROCESSORS = (("-march=native", "-mno-avx512fp16"), ("-march=native",), ("-mcpu=native",), ())
"""Tried in this order: gcc 12 writes a masked ``vmovsh`` for AVX512-FP16, which assemblers refuse."""

LARGE = 60_000
"""Characters of a file from which its build takes gcc seconds."""
LIMITED = ("--param=max-completely-peeled-insns=32",)
"""For large files, where a compiler takes it: what pays to be written out is so already, and gcc takes a
quarter of its time to write out rests of loops, too. Small files are left to gcc, whose code of
short loops is a few hundredths faster for it."""

SECONDS = 600.0
"""How long a compiler may take for one file."""

KEPT_SECONDS = 30 * 24 * 3600.0
"""How long an object is kept that nobody uses."""

_SAID = 8
"""Lines of a compiler that a message shows."""


@dataclass(frozen=True)
class Unit:
    """C files that become one shared object. ``headers``: what they include, by name."""

    files: tuple[str, ...]
    flags: tuple[str, ...] = ()
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Builder:
    """A compiler with its flags for this processor; ``seconds``: that it may take for each file.

    ``limits``: flags for large files, which bound what the compiler spends on them.
    What it builds is kept. Errors of all its methods: ``native-build``, ``file-unwritable``.
    """

    compiler: CCompiler
    flags: tuple[str, ...]
    headers: tuple[tuple[str, str], ...] = ()
    seconds: float = SECONDS
    limits: tuple[str, ...] = ()

    def shared(self, files: Sequence[str], objects: Objects) -> Path:
        """Return a shared object of C files; ``objects``: that of each, where there are several."""

        def build() -> bytes:
            with self._work(files if len(files) == 1 else ()) as work:
                sources = ["unit.c"] if len(files) == 1 else list(map(str, objects.all(files)))
                flags = self.flags_for(files[0]) if len(files) == 1 else self.flags
                self._run((*flags, "-shared", *sources, "-o", "whole.so", "-lm", "-pthread"), work)
                return (work / "whole.so").read_bytes()

        return kept(object_folder(), f"{self._key(files)}.so", build)

    def object(self, file: str) -> Path:
        """Return the object of a C file."""

        def build() -> bytes:
            with self._work([file]) as work:
                self._run((*self.flags_for(file), "-c", "unit.c", "-o", "unit.o"), work)
                return (work / "unit.o").read_bytes()

        return kept(object_folder(), f"{self._key([file])}.o", build)

    def flags_for(self, file: str) -> tuple[str, ...]:
        """Return the flags with which a file is built."""
        return (*self.flags, *self.limits) if len(file) >= LARGE else self.flags

    def _key(self, files: Sequence[str]) -> str:
        headers = (text for pair in self.headers for text in pair)
        return _digest([*identity(self.compiler), *self.flags, *self.limits, *files, *headers])

    @contextmanager
    def _work(self, files: Sequence[str]) -> Iterator[Path]:
        with work_folder() as work:
            for name, text in (*self.headers, *(("unit.c", text) for text in files)):
                (work / name).write_text(text, encoding="utf-8")
            yield work

    def _run(self, words: Sequence[str], work: Path) -> None:
        _run(self.compiler, words, work, self.seconds)


class Objects:
    """Objects of C files, up to ``workers`` of them built at a time, each once."""

    def __init__(self, builder: Builder, workers: int) -> None:
        self._builder, self._pool = builder, ThreadPoolExecutor(max(1, workers))
        self._begun: dict[str, Future[Path]] = {}

    def begin(self, file: str) -> None:
        """Begin to build an object."""
        if file not in self._begun:
            self._begun[file] = self._pool.submit(self._builder.object, file)

    def all(self, files: Sequence[str]) -> list[Path]:
        """Return the objects of files."""
        for file in files:
            self.begin(file)
        return [self._begun[file].result() for file in files]

    def __enter__(self) -> Objects:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)


def builder_of(
    compiler: CCompiler,
    flags: Sequence[str] = (),
    headers: tuple[tuple[str, str], ...] = (),
    seconds: float = SECONDS,
) -> Builder:
    """Return a compiler with all flags. Errors: ``native-build``."""
    every = (*compiler.flags, *FLAGS, *_processor_options(compiler), *flags)
    return Builder(compiler, every, headers, seconds=seconds, limits=_limits(compiler))


def shared_object(unit: Unit, compiler: CCompiler, *, workers: int = 1) -> Path:
    """Return a shared object of C files, built unless it is kept already; up to ``workers`` at a time.

    Errors: ``native-build``, ``file-unwritable``.
    """
    builder = builder_of(compiler, unit.flags, unit.headers)
    with Objects(builder, workers) as objects:
        return builder.shared(unit.files, objects)


def object_folder() -> Path:
    """Return where objects are kept; those that nobody has used for long are removed now and then."""
    folder = cache_folder() / "native"
    if not is_writable(folder):
        return temporary_folder()
    trimmed = folder / "trimmed"
    if not trimmed.exists() or time.time() - trimmed.stat().st_mtime > KEPT_SECONDS / 30:
        trimmed.touch()
        for path in (*folder.glob("*.so"), *folder.glob("*.o")):
            if path.stat().st_mtime < time.time() - KEPT_SECONDS:
                path.unlink(missing_ok=True)
    return folder


def _digest(texts: Sequence[str]) -> str:
    digest = hashlib.sha256()
    for text in texts:
        digest.update(len(text).to_bytes(8, "little") + text.encode())
    return digest.hexdigest()[:40]


def _run(compiler: CCompiler, words: Sequence[str], work: Path, seconds: float = SECONDS) -> None:
    command = (*compiler.command, *words)
    try:
        done = run_program(command, seconds=seconds, folder=work)
    except ProgramFault as fault:
        raise _failure(compiler, str(fault)) from fault
    if done.status:
        lines = [line for line in done.err.splitlines() if line.strip()]
        raise _failure(compiler, *lines[:_SAID])


def _failure(compiler: CCompiler, *said: str) -> PolyloomError:
    helps = [
        "is there room in the folder for temporary files (TMPDIR), and does the compiler work?",
        "another compiler may do: `--device native:clang`; or an OpenCL device: `polyloom devices`",
        "if the compiler works, this is a fault of Polyloom: please report it",
    ]
    message = f"`{' '.join(compiler.command)}` does not build the program"
    return PolyloomError(error("native-build", message, notes=said, helps=helps))


@cache
def works(compiler: CCompiler) -> bool:
    """Return whether a compiler builds programs; a command may be there that only says how to get one."""
    probe = "#include <math.h>\n#include <stdint.h>\nint64_t probe(double x) { return (int64_t)floor(x); }\n"
    try:
        shared_object(Unit((probe,)), compiler)
    except PolyloomError:
        return False
    return True


@cache
def _processor_options(compiler: CCompiler) -> tuple[str, ...]:
    """Return the flags for this very processor that a compiler takes; kept like objects."""
    return _kept_words(compiler, "options", PROCESSORS)


@cache
def _limits(compiler: CCompiler) -> tuple[str, ...]:
    """Return the flags for large files that a compiler takes; kept like objects."""
    return _kept_words(compiler, "limits", (LIMITED, ()))


def _kept_words(compiler: CCompiler, name: str, choices: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the first of several choices of flags that a compiler takes; kept under a name."""
    key = _digest([*identity(compiler), name, *(word for words in choices for word in words)])

    def found() -> bytes:
        taken = next((words for words in choices if _takes(compiler, words)), ())
        return " ".join(taken).encode() + b"\n"

    kept_line = kept(object_folder(), f"{key}.options", found).read_bytes().partition(b"\n")[0]
    return tuple(kept_line.decode().split())


def _takes(compiler: CCompiler, options: Sequence[str]) -> bool:
    with work_folder() as work:
        (work / "probe.c").write_text("int f(int a) { return a; }\n", encoding="utf-8")
        words = (*compiler.flags, *FLAGS, *options, "-Werror", "-c", "probe.c", "-o", "probe.o")
        try:
            _run(compiler, words, work)
        except PolyloomError:
            return False
    return True


@cache
def identity(compiler: CCompiler) -> tuple[str, ...]:
    """Return what the results of a compiler depend on beside its input: itself, and the processor."""
    program = Path(compiler.command[0]).resolve()
    about = program.stat()
    version = metadata.version("ziglang") if "ziglang" in compiler.command else ""
    processor = [platform.system(), platform.machine(), platform.processor(), *sorted(processor_flags())]
    return (*compiler.command, str(program), f"{about.st_size} {about.st_mtime_ns}", version, *processor)


@cache
def version_of(compiler: CCompiler) -> str:
    """Return what a compiler calls its version, empty where it does not say."""
    asked = ("version",) if "ziglang" in compiler.command else ("-dumpfullversion", "-dumpversion")
    command = compiler.command[:-1] if "ziglang" in compiler.command else compiler.command
    try:
        done = run_program((*command, *asked), seconds=SECONDS)
    except ProgramFault:
        return ""
    return done.out.split("\n")[0].strip() if not done.status else ""
