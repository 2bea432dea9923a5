"""The functions of a drop-in on OpenCL: kernels, and the host side in C.

``polyloom_host.c`` is what is called, ``polyloom_opencl.h`` what that needs of OpenCL, and the ``.cl`` files
are the kernels for people to read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path

from polyloom.ir.host import HostProgram, MdHom, Nest
from polyloom.mdh.device.devices import DeviceKind, DeviceModel
from polyloom.mdh.dropin.folder import Side, Versions
from polyloom.mdh.dropin.host import Variant, host_function
from polyloom.mdh.dropin.kernels import KernelTable, quoted
from polyloom.mdh.dropin.signature import Signature, header
from polyloom.mdh.lowering.launch import Launch, uncontracted
from polyloom.mdh.lowering.loop_fusion import with_fused_loops
from polyloom.mdh.print.kernel_source import OPENCL_KERNELS

HOST, HEADER, OPENCL = "polyloom_host.c", "polyloom_host.h", "polyloom_opencl.h"

Emitter = Callable[[MdHom | Nest, HostProgram, DeviceModel], Launch]
"""Makes the kernels of a node of a host program for a device."""


def opencl_side(device: DeviceModel, emit: Emitter, library: Path | None = None) -> Side:
    """Return what makes functions for a device.

    ``library``: an OpenCL library of this machine, for programs that find none of the system when they run.
    """

    def made(functions: Sequence[tuple[Signature, Versions]]) -> dict[str, str]:
        is_gpu = device.kind is DeviceKind.GPU
        table = KernelTable(device=device.name, for_gpu=is_gpu, options=device.build_options)
        definitions = [
            host_function(call, [_variant(values, program, device, emit) for values, program in found], table)
            for call, found in functions
        ]
        return host_files([call for call, _ in functions], definitions, table, library)

    return Side(
        target="opencl",
        device=device.id,
        file=HOST,
        command=f"cc -O2 {{program}} {HOST} -ldl -lm",
        note=_NOTE,
        files=made,
    )


def _variant(values: Mapping[str, int], program: HostProgram, device: DeviceModel, emit: Emitter) -> Variant:
    fused = with_fused_loops(program, device)

    def launches(node: MdHom | Nest) -> Launch:
        made = emit(node, fused, device)
        return uncontracted(made, OPENCL_KERNELS) if program.strict else made

    return Variant(values, fused, launches)


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
    runtime = (files("polyloom.mdh.dropin") / "native" / OPENCL).read_text(encoding="utf-8")
    return {HOST: host, HEADER: header(HEADER, calls), OPENCL: runtime, **table.files()}


_HOST_COMMENT = """\
/* The host side of a program that Polyloom compiled: it moves arrays to an OpenCL device, runs the loops
 * that stay sequential, launches kernels and brings back what they wrote. Pointers are to the first element.
 */
"""
_LIBRARY = """\
#ifndef POLYLOOM_PIP_LIBRARY
#define POLYLOOM_PIP_LIBRARY {path}
#endif
"""
_NOTE = """\
# The program looks for an OpenCL library when it runs. To link it with one, add -DPOLYLOOM_LINK -lOpenCL.
# The head of polyloom_opencl.h says what else can be set.
"""
