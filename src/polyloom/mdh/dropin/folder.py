"""A drop-in: a C program whose SCoPs run on OpenCL, as a folder of files that a C compiler builds.

``NAME.c`` is the user's file with a call in place of each SCoP, ``polyloom_host.c`` what is called,
``polyloom_opencl.h`` what that needs of OpenCL, and the ``.cl`` files are the kernels for people to read.
A layer without a C file around it is ``polyloom_host.c`` and its header alone.

Not in the papers: md_poly stops at the kernels. PPCG's OpenCL output is of the same kind.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path, PurePath
from typing import Any

from polyloom.diagnostics import PolyloomError, Source, Unsupported, error
from polyloom.folders import write_folder
from polyloom.ir.host import HostProgram, MdHom, Nest
from polyloom.ir.transform.specialise import specialise
from polyloom.ir.verification.passes import after_pass
from polyloom.mdh.device.devices import DeviceKind, DeviceModel
from polyloom.mdh.dropin.host import Signature, Variant, host_function, signature
from polyloom.mdh.dropin.kernels import KernelTable, quoted
from polyloom.mdh.dropin.source import Place, replacement, with_calls
from polyloom.mdh.kernel.launch import Launch, uncontracted
from polyloom.mdh.lowering.loop_fusion import with_fused_loops
from polyloom.mdh.print.names import c_names

HOST, HEADER, OPENCL, BUILD = "polyloom_host.c", "polyloom_host.h", "polyloom_opencl.h", "build.txt"

Emitter = Callable[[MdHom | Nest, HostProgram, DeviceModel], Launch]
"""Makes the kernels of a node of a host program for a device."""


@dataclass(frozen=True, eq=False)
class DropIn:
    """``files``: name to text; ``document``: what ``manifest.json`` says of them."""

    files: Mapping[str, str]
    document: Mapping[str, Any]

    def __repr__(self) -> str:
        return f"<DropIn: {', '.join(self.files)}>"

    def write(self, folder: str | os.PathLike[str]) -> tuple[str, ...]:
        """Write everything into a folder, whole or not at all; other files there stay. Return the names.

        Errors: ``folder-occupied``, ``file-unwritable``.
        """
        return write_folder(self.files, self.document, Path(folder), others_stay=True)


@dataclass(frozen=True, eq=False)
class Maker:
    """Makes drop-ins for a device.

    ``values``: of parameters for which there are kernels of their own, beside those for all values.
    ``library``: an OpenCL library of this machine, for programs that find none of the system when they run.
    """

    device: DeviceModel
    emit: Emitter
    values: Mapping[str, int] = field(default_factory=dict)
    library: Path | None = None

    def of_source(
        self,
        source: Source,
        parts: Sequence[tuple[Place, HostProgram]],
        options: Sequence[str] = (),
        macros: Mapping[str, str] | None = None,
    ) -> DropIn:
        """Return a C file as a drop-in.

        ``options``: of the C compiler, ``-D`` and ``-I``, with which it was read. ``macros``: values that
        must be the same when it is built.

        Errors: ``Unsupported`` with ``drop-in-...``.
        """
        calls = [
            signature(program, name) for (_, program), name in zip(parts, _functions(parts), strict=True)
        ]
        ranges = [replacement(source, place, call) for (place, _), call in zip(parts, calls, strict=True)]
        name = PurePath(source.name).name
        host = self._host([(call, program) for call, (_, program) in zip(calls, parts, strict=True)])
        if name in host:
            helps = ["give the file another name"]
            raise Unsupported(
                error("drop-in-name", f"a file of the host side is called `{name}`", helps=helps)
            )
        if any(part.before for part in ranges):
            host[HOST] += _MEMORY
        program = with_calls(source.text, ranges, macros or {})
        return self._complete({name: program, **host}, _build_command(name, options), calls)

    def of_program(self, program: HostProgram) -> DropIn:
        """Return a host program, such as a layer's, as a C function without a file around it."""
        call = signature(program, next(iter(c_names([f"polyloom_{program.name}"]).values())))
        command = f"cc -O2 YOUR_FILE.c {HOST} -ldl -lm"
        return self._complete(self._host([(call, program)]), command, [call])

    def _host(self, functions: Sequence[tuple[Signature, HostProgram]]) -> dict[str, str]:
        """Return the host side, name to text: the functions, their header, the kernels."""
        is_gpu = self.device.kind is DeviceKind.GPU
        table = KernelTable(device=self.device.name, for_gpu=is_gpu, options=self.device.build_options)
        definitions = [host_function(call, self._variants(program), table) for call, program in functions]
        return host_files([call for call, _ in functions], definitions, table, self.library)

    def _variants(self, program: HostProgram) -> list[Variant]:
        """Return the program for the given values, if it has such parameters, and for all values."""
        known = {p.name: self.values[p.name] for p in program.parameters if p.name in self.values}
        if not known:
            return [self._variant({}, program)]
        special = after_pass("specialisation", specialise(program, known))
        return [self._variant(known, special), self._variant({}, program)]

    def _variant(self, values: Mapping[str, int], program: HostProgram) -> Variant:
        fused = with_fused_loops(program, self.device)

        def emit(node: MdHom | Nest) -> Launch:
            made = self.emit(node, fused, self.device)
            return uncontracted(made) if program.strict else made

        return Variant(values, fused, emit)

    def _complete(self, texts: dict[str, str], command: str, calls: Sequence[Signature]) -> DropIn:
        document = {
            "target": "opencl",
            "device": self.device.id,
            "functions": [call.prototype for call in calls],
            "build": command,
        }
        return DropIn({**texts, BUILD: _BUILD.format(command=command)}, document)


def check_values(values: Mapping[str, int], programs: Sequence[HostProgram]) -> None:
    """Refuse values of what is no parameter. Errors: ``parameter-unknown``."""
    known = list(dict.fromkeys(p.name for program in programs for p in program.parameters))
    helps = [
        f"parameters are: {', '.join(known)}" if known else "there are no parameters: all sizes are fixed"
    ]
    unknown = [name for name in values if name not in known]
    if unknown:
        found = [
            error("parameter-unknown", f"there is no parameter `{name}`", helps=helps) for name in unknown
        ]
        raise PolyloomError(*found)


def host_files(
    calls: Sequence[Signature],
    definitions: Sequence[str],
    table: KernelTable,
    library: Path | None = None,
) -> dict[str, str]:
    """Return the host side, name to text, of functions whose kernels are in ``table``."""
    includes = f'#include "{HEADER}"\n#include "{OPENCL}"\n'
    fallback = "" if library is None else _LIBRARY.format(path=quoted(str(library)))
    host = f"{_HOST_COMMENT}{fallback}{includes}\n{table.definitions()}\n" + "\n".join(definitions)
    prototypes = "".join(f"{call.prototype};\n" for call in calls)
    header = f"{_HEADER_COMMENT}#ifndef POLYLOOM_HOST_H\n#define POLYLOOM_HOST_H\n\n{prototypes}\n#endif\n"
    runtime = (files("polyloom.mdh.dropin") / "native" / OPENCL).read_text(encoding="utf-8")
    return {HOST: host, HEADER: header, OPENCL: runtime, **table.files()}


def _functions(parts: Sequence[tuple[Place, HostProgram]]) -> list[str]:
    """Return a name for each function, all different: ``polyloom_gemm``."""
    found: list[str] = []
    for place, _ in parts:
        found += c_names([f"polyloom_{place.name}"], found).values()
    return found


def _build_command(name: str, options: Sequence[str]) -> str:
    """Return the command for a shell; a name that begins with a dash is no option."""
    file = f"./{name}" if name.startswith("-") else name
    return " ".join(["cc", "-O2", *map(shlex.quote, options), shlex.quote(file), HOST, "-ldl", "-lm"])


_HOST_COMMENT = """\
/* The host side of a program that Polyloom compiled: it moves arrays to an OpenCL device, runs the loops
 * that stay sequential, launches kernels and brings back what they wrote. Pointers are to the first element.
 */
"""
_HEADER_COMMENT = """\
/* What polyloom_host.c offers: integers first, then pointers to the first elements of arrays, row by row. */
"""
_LIBRARY = """\
#ifndef POLYLOOM_PIP_LIBRARY
#define POLYLOOM_PIP_LIBRARY {path}
#endif
"""
_MEMORY = """
/* Memory for elements that are members of structures, side by side. */
void *polyloom_take(long long bytes) {
  void *memory = bytes < 0 ? NULL : malloc(bytes ? (size_t)bytes : 1);
  if (!memory)
    polyloom_fail("members of structures", "there is no memory for a copy");
  return memory;
}

void polyloom_give(void *memory) { free(memory); }
"""
_BUILD = """\
{command}

The program looks for an OpenCL library when it runs. To link it with one, add -DPOLYLOOM_LINK -lOpenCL.
The head of polyloom_opencl.h says what else can be set.
"""
