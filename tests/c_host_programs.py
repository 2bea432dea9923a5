"""Host programs of C texts, made once: many tests look at the same kernels and examples."""

from __future__ import annotations

from functools import lru_cache

from polyloom.diagnostics import Source
from polyloom.frontends.c import read_c
from polyloom.ir.host import HostProgram
from polyloom.scop.transform import ReductionMode, host_program


@lru_cache(maxsize=300)
def host_programs_of(text: str, mode: ReductionMode = ReductionMode.DETECT) -> tuple[HostProgram, ...]:
    """Return one for each static control part; not for whoever changes the compiler in between."""
    return tuple(host_program(scop, mode).program for scop in read_c(Source("program.c", text)))
