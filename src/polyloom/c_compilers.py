"""C compilers of the system, and the one in the PyPI package ``ziglang``."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from polyloom.programs import find_program, python_module


@dataclass(frozen=True)
class CCompiler:
    """``command``: its words; ``name``: as printed; ``flags``: that it needs beside others."""

    command: tuple[str, ...]
    name: str
    flags: tuple[str, ...] = ()


def c_compilers() -> Iterator[CCompiler]:
    """Yield the C compilers that there are: gcc, clang, cc, ``zig cc``."""
    yield from (CCompiler((path,), name) for name in ("gcc", "clang", "cc") if (path := find_program(name)))
    if importlib.util.find_spec("ziglang"):
        yield CCompiler((*python_module("ziglang"), "cc"), "zig cc", ("-fno-sanitize=all",))


def c_compiler(wanted: str) -> CCompiler | None:
    """Return a compiler by its name (``clang``, ``zig``) or path; None where there is none."""
    for compiler in c_compilers():
        if wanted in (compiler.name, compiler.name.removesuffix(" cc")):
            return compiler
    path = wanted if Path(wanted).is_file() else find_program(wanted)
    return None if path is None else CCompiler((str(Path(path).absolute()),), Path(path).name)
