"""CUDA C for one architecture: by NVRTC where it is installed, else by nvcc. What was built is kept.

NVRTC is a library: of pip (``pip install polyloom[cuda]``) or of the system. What is built is machine code
for the very architecture; for one that the compiler does not know yet, PTX of the newest that it knows, of
which the driver makes machine code.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from ctypes import byref, c_char_p, c_int, c_size_t, c_void_p
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from polyloom.caches import cache_folder, is_writable, kept, temporary_folder, work_folder
from polyloom.diagnostics import PolyloomError, error
from polyloom.programs import ProgramFault, first_error, run_program

VARIABLE = "POLYLOOM_NVRTC"
"""The variable of the environment that names NVRTC's library."""

SECONDS = 300.0
"""How long nvcc may take."""


@dataclass(frozen=True)
class Compiler:
    """``identity``: its name and version; ``architectures``: those that it knows, such as 80.

    ``build``: from a source and options to machine code or PTX. Errors: Refused.
    """

    identity: str
    architectures: tuple[int, ...]
    build: Callable[[str, Sequence[str]], bytes]


class Refused(ValueError):
    """The compiler does not take a source; the text says why."""


def built(source: str, architecture: str, options: Sequence[str]) -> bytes:
    """Return what a driver loads. Errors: ``cuda-compiler`` where there is none; Refused."""
    compiler = found_compiler()
    words = (_architecture(compiler, architecture), *options)
    key = hashlib.sha256("\0".join((compiler.identity, *words, source)).encode()).hexdigest()[:40]
    folder = cache_folder() / "cuda"
    folder = folder if is_writable(folder) else temporary_folder()
    return kept(folder, f"{key}.cubin", lambda: compiler.build(source, words)).read_bytes()[:-_DIGEST]


_DIGEST = hashlib.sha256().digest_size


def _architecture(compiler: Compiler, wanted: str) -> str:
    """Return the option for an architecture, or for the newest one before it that the compiler knows."""
    number = int(wanted.removeprefix("sm_"))
    if number in compiler.architectures or not compiler.architectures:
        return f"-arch=sm_{number}"
    older = [known for known in compiler.architectures if known < number]
    if not older:
        raise Refused(f"{compiler.identity} makes no code for {wanted}")
    return f"-arch=compute_{max(older)}"


def found_compiler() -> Compiler:
    """Return NVRTC or nvcc. Errors: ``cuda-compiler``."""
    found = _compiler(os.environ.get(VARIABLE, ""))
    if found is None:
        helps = [
            "`pip install nvidia-cuda-nvrtc-cu12` (`pip install polyloom[cuda]`) brings NVRTC",
            f"or put nvcc in the path; the variable {VARIABLE} names another libnvrtc.so",
        ]
        raise PolyloomError(error("cuda-compiler", "there is no compiler for CUDA", helps=helps))
    return found


@cache
def _compiler(named: str) -> Compiler | None:
    for path in (named,) if named else _libraries():
        try:
            return _nvrtc(ctypes.CDLL(path))
        except (OSError, AttributeError, Refused):
            continue
    nvcc = None if named else shutil.which("nvcc")
    return None if nvcc is None else _nvcc(nvcc)


def _libraries() -> Iterator[str]:
    """Yield where NVRTC may lie, what pip brought first."""
    spec = find_spec("nvidia")
    for folder in [] if spec is None else spec.submodule_search_locations or []:
        yield from sorted(map(str, Path(folder).glob("*/lib/libnvrtc.so.1*")), reverse=True)
    yield from ("libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so")
    yield "/usr/local/cuda/lib64/libnvrtc.so"


def _nvrtc(library: ctypes.CDLL) -> Compiler:
    major, minor, count = c_int(), c_int(), c_int()
    library.nvrtcVersion(byref(major), byref(minor))
    library.nvrtcGetNumSupportedArchs(byref(count))
    known = (c_int * count.value)()
    library.nvrtcGetSupportedArchs(known)

    def build(source: str, options: Sequence[str]) -> bytes:
        program = c_void_p()
        made = library.nvrtcCreateProgram(byref(program), source.encode(), b"kernel.cu", 0, None, None)
        if made:
            raise Refused(f"NVRTC fails with error {made}")
        try:
            words = (c_char_p * len(options))(*(option.encode() for option in options))
            if library.nvrtcCompileProgram(program, len(options), words):
                raise Refused(_read(library, program, "ProgramLog").decode(errors="replace"))
            is_ptx = any(option.startswith("-arch=compute_") for option in options)
            return _read(library, program, "PTX" if is_ptx else "CUBIN")
        finally:
            library.nvrtcDestroyProgram(byref(program))

    return Compiler(f"NVRTC {major.value}.{minor.value}", tuple(known), build)


def _read(library: ctypes.CDLL, program: c_void_p, what: str) -> bytes:
    size = c_size_t()
    getattr(library, f"nvrtcGet{what}Size")(program, byref(size))
    text = ctypes.create_string_buffer(max(1, size.value))
    getattr(library, f"nvrtcGet{what}")(program, text)
    return text.raw[: size.value]


def _nvcc(path: str) -> Compiler:
    def asked(*words: str) -> str:
        try:
            return run_program((path, *words), seconds=SECONDS).out
        except ProgramFault:
            return ""

    release = re.search(r"V(\d[\d.]*)", asked("--version"))
    known = tuple(int(number) for number in re.findall(r"sm_(\d+)\b", asked("--list-gpu-code")))

    def build(source: str, options: Sequence[str]) -> bytes:
        kind = "-ptx" if any(option.startswith("-arch=compute_") for option in options) else "-cubin"
        with work_folder() as work:
            (work / "kernel.cu").write_text(source, encoding="utf-8")
            command = (path, kind, *options, "kernel.cu", "-o", "kernel")
            try:
                done = run_program(command, seconds=SECONDS, folder=work)
            except ProgramFault as fault:
                raise Refused(str(fault)) from fault
            if done.status:
                raise Refused(first_error(done.err))
            return (work / "kernel").read_bytes()

    return Compiler(f"nvcc {release[1] if release else ''}".strip(), known, build)
