"""Compiles units of C emitted from CSL with their simulator into one shared object, and keeps each part."""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from polyloom.caches import cache_folder
from polyloom.wafer.machine.scalar_c import function_table
from polyloom.wafer.simulator.build import FUNCTIONS, INSTRUCTIONS, Unit, compiled, linked, native_texts
from polyloom.wafer.simulator.compilers import Compiler, find_compiler
from polyloom.wafer.simulator.csl_shared import share_units

TABLE = "csl_programs.c"


def build_units(
    units: Mapping[str, str],
    *,
    compiler: Compiler | None = None,
    folder: Path | None = None,
    lines: bool = False,
) -> Path:
    """Compile ``units``, from the name of a program to its C, and link them with the simulator.

    A unit defines ``CSL_PROGRAM(name, ...)`` of its name, after all else. Those that differ only in numbers
    are compiled together. What was built before comes from the cache; the others are compiled at once, on as
    many processors as there are.
    ``lines``: as of ``build_program``. Returns the path of the shared object.
    Errors: ``no-compiler``, ``file-unwritable``; ``BuildFailure`` if the compiler does not build the code.
    """
    with_compiler = compiler or find_compiler()
    store = folder or cache_folder()
    parts = [_simulator(with_compiler), _table(units, with_compiler)]
    more = ("-DPE_LINES",) if lines else ()
    parts += [_unit(name, text, with_compiler, more) for name, text in share_units(units).items()]
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        objects = list(pool.map(lambda part: compiled(part, with_compiler, store), parts))
    return linked(objects, with_compiler, store)


def _simulator(compiler: Compiler) -> Unit:
    texts = {**native_texts(), FUNCTIONS: function_table(), INSTRUCTIONS: ""}
    return Unit("csl_simulator.c", texts, compiler.flags)


def _unit(name: str, text: str, compiler: Compiler, more: tuple[str, ...]) -> Unit:
    file = f"{name}.c"
    return Unit(file, {**unit_headers(), file: text}, (*compiler.flags, *compiler.bounds_flags, *more))


def unit_headers() -> dict[str, str]:
    """Return the headers of emitted units, by name."""
    native = native_texts()
    names = [name for name in native if name.startswith("csl") and name.endswith((".h", ".inc"))]
    shared = {name: native[name] for name in (*names, "arithmetic.h", "pe_state.h") if name != "csl_fabric.h"}
    return {**shared, FUNCTIONS: function_table()}


def _table(units: Mapping[str, str], compiler: Compiler) -> Unit:
    """The list of the linked programs, in the order of their names."""
    names = sorted(units)
    declared = "".join(f"extern const struct csl_program csl_program_{name};\n" for name in names)
    listed = "".join(f"  &csl_program_{name},\n" for name in names)
    text = (
        '#include "csl.h"\n'
        f"{declared}const struct csl_program *const csl_programs[] = {{\n{listed}  NULL,\n}};\n"
    )
    return Unit(TABLE, {**unit_headers(), TABLE: text}, compiler.flags)
