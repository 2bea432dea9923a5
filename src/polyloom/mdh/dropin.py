"""A drop-in: a C program whose SCoPs run on OpenCL, as a folder of files that a C compiler builds.

``NAME.c`` is the user's file with a call in place of each SCoP, ``polyloom_host.c`` what is called,
``polyloom_opencl.h`` what that needs of OpenCL, and the ``.cl`` files are the kernels for people to read.
A layer without a C file around it is ``polyloom_host.c`` and its header alone.

Not in the papers: md_poly stops at the kernels. PPCG's OpenCL output is of the same kind.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import PurePath

from polyloom.diagnostics import Source
from polyloom.mdh.dropin_host import Signature, Variant, host_function
from polyloom.mdh.dropin_kernels import KernelTable
from polyloom.mdh.dropin_source import Replacement, with_calls

HOST, HEADER, OPENCL, BUILD = "polyloom_host.c", "polyloom_host.h", "polyloom_opencl.h", "build.txt"


@dataclass(frozen=True, eq=False)
class HostFunction:
    """A function of the host side: how it is called, and the programs that it chooses from."""

    call: Signature
    variants: Sequence[Variant]


def host_files(functions: Sequence[HostFunction], table: KernelTable) -> dict[str, str]:
    """Return the host side, name to text: the functions, their header, the kernels."""
    definitions = [host_function(f.call, f.variants, table) for f in functions]
    prototypes = "".join(f"{f.call.prototype};\n" for f in functions)
    includes = f'#include "{HEADER}"\n#include "{OPENCL}"\n'
    host = f"{_HOST_COMMENT}{includes}\n{table.definitions()}\n" + "\n".join(definitions)
    header = f"{_HEADER_COMMENT}#ifndef POLYLOOM_HOST_H\n#define POLYLOOM_HOST_H\n\n{prototypes}\n#endif\n"
    runtime = (files("polyloom.mdh") / "native" / OPENCL).read_text(encoding="utf-8")
    return {HOST: host, HEADER: header, OPENCL: runtime, **table.files()}


def drop_in_files(
    source: Source,
    functions: Sequence[HostFunction],
    replacements: Sequence[Replacement],
    table: KernelTable,
    macros: Mapping[str, str],
    include: Sequence[str] = (),
) -> dict[str, str]:
    """Return a drop-in for a C file, name to text.

    ``macros`` and ``include``: what the file was read with (``-D`` and ``-I``), for the command that builds.
    """
    name = PurePath(source.name).name
    program = with_calls(source.text, replacements, macros)
    options = [f"-D{key}={value}" for key, value in macros.items()] + [f"-I{folder}" for folder in include]
    command = " ".join(["cc", "-O2", *map(shlex.quote, options), shlex.quote(name), HOST, "-lOpenCL", "-lm"])
    return {name: program, **host_files(functions, table), BUILD: _BUILD.format(command=command)}


def layer_files(functions: Sequence[HostFunction], table: KernelTable) -> dict[str, str]:
    """Return the files of functions that have no C file around them, name to text."""
    command = f"cc -O2 YOUR_FILE.c {HOST} -lOpenCL -lm"
    return {**host_files(functions, table), BUILD: _BUILD.format(command=command)}


_HOST_COMMENT = """\
/* The host side of a program that Polyloom compiled: it moves arrays to an OpenCL device, runs the loops
 * that stay sequential, launches kernels and brings back what they wrote. Pointers are to the first element.
 */
"""
_HEADER_COMMENT = """\
/* What polyloom_host.c offers: integers first, then pointers to the first elements of arrays, row by row. */
"""
_BUILD = """\
{command}

Where no libOpenCL.so is there to link with, the program can look for one when it runs:
add -DPOLYLOOM_DLOPEN and -ldl in place of -lOpenCL. The head of polyloom_opencl.h says what else can be set.
"""
