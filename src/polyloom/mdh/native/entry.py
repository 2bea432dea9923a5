"""Kernel trees as functions of this process: printed as C, built, loaded."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from polyloom.c_compilers import CCompiler
from polyloom.mdh.native.build import SECONDS, Objects, builder_of
from polyloom.mdh.native.team import Call, available_threads, load_library, team, team_library
from polyloom.mdh.print.c_source import Reader, c_text
from polyloom.mdh.tree.nodes import Function
from polyloom.mdh.tree.trips import is_parallel

CHARACTERS = 40_000
"""Of emitted C in one file; of what is longer, several are built at a time, while others are printed."""


@dataclass(frozen=True, eq=False)
class Entry:
    """A function that was built: ``name`` in the shared object ``library``, ``address`` in this process.

    ``parameters``: their names, in order. ``threads``: that run it; ``team``: the shared object of these.
    """

    name: str
    parameters: tuple[str, ...]
    address: int
    library: Path
    team: Path
    threads: int

    def call(self, arrays: Sequence[int], integers: Sequence[int] = ()) -> Call:
        """Return a call with arrays at these addresses, in the order of the parameters."""
        return Call(team(self.threads, self.team), self.address, arrays, integers)


def built(
    function: Function,
    compiler: CCompiler,
    threads: int,
    *,
    flags: Sequence[str] = (),
    seconds: float = SECONDS,
) -> Entry:
    """Print, build and load a function. Errors: ``native-build``, ``native-load``.

    ``flags``: of the compiler, behind those of all functions; ``seconds``: that it may take for each file.
    """
    contraction = "fast" if function.contracted else "off"
    builder = builder_of(compiler, (f"-ffp-contract={contraction}", *flags), seconds=seconds)
    with Objects(builder, available_threads()) as objects, ThreadPoolExecutor(1) as beside:
        of_team = beside.submit(team_library, compiler)
        text = c_text(function, shares=True, reader=Reader(CHARACTERS, objects.begin))
        library = builder.shared(text.files(CHARACTERS), objects)
        team_code = of_team.result()
    parameters = tuple(p.name for p in function.parameters)
    used = threads if any(map(is_parallel, function.body)) else 1
    return loaded(text.name, parameters, library, team_code, used)


def loaded(name: str, parameters: tuple[str, ...], library: Path, team: Path, threads: int) -> Entry:
    """Load a function of a shared object. Errors: ``native-load``."""
    address = ctypes.cast(getattr(load_library(library), name), ctypes.c_void_p).value
    assert address is not None
    return Entry(
        name=name, parameters=parameters, address=address, library=library, team=team, threads=threads
    )
