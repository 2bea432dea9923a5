"""Probes of the C front end and what follows: the programs of ``programs.c``, and what gcc makes of them."""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compiled_c import build
from polyloom.diagnostics import PolyloomError, Source
from polyloom.frontends.c import read_c
from polyloom.frontends.c.syntax.macros import conditions
from polyloom.ir.evaluation.inputs import shape_of
from polyloom.ir.evaluation.programs import evaluate_host
from polyloom.ir.host import HostProgram
from polyloom.ir.transform.specialise import specialise
from polyloom.ir.verification.passes import verified
from polyloom.scop.transform import ReductionMode, host_program, serial_program

TEXT = (Path(__file__).parent / "programs.c").read_text()
SIZES = (7, 1, 2, 12)
TYPES = {
    "int": "int32",
    "unsigned": "uint32",
    "signed char": "int8",
    "unsigned char": "uint8",
    "short": "int16",
    "long": "int64",
    "float": "float32",
    "double": "float64",
}


@cache
def functions() -> dict[str, str]:
    """Return each function with what stands before the first one."""
    head = "\n".join(line for line in TEXT.splitlines() if line.startswith(("#", "enum")))
    found = re.findall(r"^(void (\w+)\(.*?^\})", TEXT, re.DOTALL | re.MULTILINE)
    return {name: f"{head}\n{body}\n" for body, name in found}


@cache
def library() -> ctypes.CDLL:
    """Return all functions as gcc builds them, once for all children."""
    folder = Path(os.environ["MUTANTS_FOLDER"])
    built = folder / "program.so"
    if not built.exists():
        (folder / "making").mkdir(exist_ok=True)
        build(TEXT, folder / "making").rename(built)
    return ctypes.CDLL(str(built))


def data(name: str, n: int) -> dict[str, Any]:
    """Return arrays of the types that a function declares, with small integers of both signs."""
    generator = np.random.default_rng(n)
    (inside,) = re.findall(rf"void {name}\(int n, (.*?)\) \{{", TEXT)
    found = {}
    for part in inside.split(", "):
        type_, array, extents = re.match(r"([\w ]+) (\w+)((?:\[.*?\])+)", part).groups()  # type: ignore[union-attr]
        shape = tuple(eval(e, {"n": n}) for e in re.findall(r"\[(.*?)\]", extents))
        found[array] = generator.integers(-6, 7, shape).astype(TYPES[type_])
    return found


def meant(name: str, n: int) -> dict[str, Any]:
    """Return what gcc's function leaves in its arrays."""
    arrays = data(name, n)
    pointers = (array.ctypes.data_as(ctypes.c_void_p) for array in arrays.values())
    getattr(library(), name)(ctypes.c_int(n), *pointers)
    return arrays


def hosts(name: str, mode: str) -> Iterator[HostProgram]:
    for scop in read_c(Source(f"{name}.c", functions()[name])):
        if mode == "serial":
            yield serial_program(scop)
            continue
        found = host_program(scop, ReductionMode(mode))
        assert not [r for r in found.remarks if r.code == "scop-fallback"], "a pass was wrong, and noticed"
        yield found.program


def evaluated(name: str, mode: str = "detect") -> None:
    """The host program leaves what the function leaves."""
    with verified():
        programs = list(hosts(name, mode))
    assert programs
    for n in SIZES:
        arrays = data(name, n)
        for program in programs:
            special = specialise(program, {p.name: n for p in program.parameters})
            given = {b.name: arrays[b.name].reshape(shape_of(b, {})) for b in special.given}
            arrays |= evaluate_host(special, {}, given)
        for array, wanted in meant(name, n).items():
            assert np.array_equal(arrays[array].reshape(wanted.shape), wanted, equal_nan=True), (
                name,
                n,
                array,
            )


REFUSED = {
    "value_after_a_break": "int i; for (i = 0; i < n; i++) { if (i == 3) break; y[i] = 1; } y[i] = 9;",
    "unsigned_that_wraps": "for (unsigned i = n - 1; i >= 0; i--) y[i] = 1;",
}


def refused(name: str) -> None:
    """What would be read wrongly is refused."""
    with pytest.raises(PolyloomError):
        list(read_c(Source(f"{name}.c", f"void f(int n, int y[n + 1]) {{ {REFUSED[name]} }}")))


def macros_are_known() -> None:
    """Macros that another command line would change are told."""
    text = "#ifndef N\n#define N 100\n#endif\nvoid f(int x[N]) { for (int i = 0; i < N; i++) x[i] = i; }\n"
    assert conditions(Source("f.c", text), {}) == ("(N) == (100)",)
