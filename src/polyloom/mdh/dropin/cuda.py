"""The functions of a drop-in on CUDA: kernels and the host side in one file of CUDA C++, for nvcc.

    namespace gemm_S1 {
    __global__ void __launch_bounds__(128)
    S1(const float *__restrict__ A, ...)
    }

    polyloom_launch("S1", gemm_S1::S1, 128 * groups, 128, A_device, ...);

Not in the papers: md_poly stops at the kernels. PPCG writes CUDA with its host code, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files

from polyloom.ir.host import HostProgram, MdHom, Nest
from polyloom.mdh.device.devices import DeviceModel
from polyloom.mdh.dropin.folder import Side, Versions
from polyloom.mdh.dropin.host import Variant, host_function
from polyloom.mdh.dropin.kernels import Sizes, Start, quoted, unused
from polyloom.mdh.dropin.opencl import Emitter
from polyloom.mdh.dropin.signature import Signature, header
from polyloom.mdh.lowering.launch import Kernel, Launch
from polyloom.mdh.lowering.loop_fusion import with_fused_loops
from polyloom.mdh.print.kernel_source import CUDA_KERNELS, kernel_body, prelude_of

FILE, HEADER, CUDA = "polyloom_cuda.cu", "polyloom_loops.h", "polyloom_cuda.h"


def cuda_side(device: DeviceModel, emit: Emitter, *, strict: bool) -> Side:
    """Return what makes functions for a CUDA device. ``strict``: no product and sum are one operation."""

    def made(functions: Sequence[tuple[Signature, Versions]]) -> dict[str, str]:
        table = CudaKernels()
        definitions = [
            host_function(call, [_variant(values, program, device, emit) for values, program in found], table)
            for call, found in functions
        ]
        return _files([call for call, _ in functions], definitions, table, strict=strict)

    options = [f"-arch={device.version}", *(_STRICT_FLAGS if strict else ())]
    return Side(
        target="cuda",
        device=device.id,
        file=FILE,
        command=f"cc -O2 -c {{program}} -o program.o && nvcc -O2 {' '.join(options)} program.o {FILE} -lm",
        note=_NOTE,
        files=made,
    )


def _variant(values: Mapping[str, int], program: HostProgram, device: DeviceModel, emit: Emitter) -> Variant:
    fused = with_fused_loops(program, device)

    def launches(node: MdHom | Nest) -> Launch:
        return emit(node, fused, device)

    return Variant(values, fused, launches)


@dataclass(eq=False)
class CudaKernels:
    """Collects kernels, each source once, in a namespace of its own."""

    integers: str = "{{{values}}}"
    pointers: str = "{{{values}}}"
    opening: str = "polyloom_open();"
    _sources: dict[str, str] = field(default_factory=dict)

    def start(self, kernel: Kernel, part: str, arguments: Sequence[str], sizes: Sizes) -> Start:
        """Take a kernel in, and return how it is started."""
        items, groups = sizes
        assert groups is not None, "CUDA is told how many items a group has"
        if kernel.source not in self._sources:
            self._sources[kernel.source] = unused(f"{part}_{kernel.name}", self._sources.values())
        name, function = quoted(kernel.name), f"{self._sources[kernel.source]}::{kernel.name}"
        given = ", ".join([*items, *groups, *arguments])
        ready = f"polyloom_ready({name}, (const void *){function}, {groups[0]});"
        return Start(ready, (f"polyloom_launch({name}, {function}, {given});",))

    @property
    def prelude(self) -> str:
        """Return what stands before the kernels."""
        return prelude_of(self._sources)

    def definitions(self) -> str:
        """Return the kernels, each in its namespace."""
        return "\n".join(
            f"namespace {name} {{\n{kernel_body(source)}}}\n" for source, name in self._sources.items()
        )


def _files(
    calls: Sequence[Signature], definitions: Sequence[str], table: CudaKernels, *, strict: bool
) -> dict[str, str]:
    head = f'{_COMMENT}{_STRICT if strict else ""}#include "{HEADER}"\n#include "{CUDA}"\n'
    text = f"{head}\n{table.prelude}{table.definitions()}\n" + "\n".join(definitions)
    runtime = (files("polyloom.mdh.dropin") / "native" / CUDA).read_text(encoding="utf-8")
    return {FILE: text, HEADER: header(HEADER, calls), CUDA: runtime}


_STRICT_FLAGS = (*CUDA_KERNELS.uncontracted_options, "-DPOLYLOOM_UNCONTRACTED")
_STRICT = """\
#ifndef POLYLOOM_UNCONTRACTED /* no pragma forbids it */
#error "build with -fmad=false -DPOLYLOOM_UNCONTRACTED, so that no product and sum become one operation"
#endif
"""
_COMMENT = """\
/* Loops of a C program on CUDA, made by Polyloom: kernels, and functions that move arrays to the device, run
 * the loops that stay sequential, launch kernels and bring back what they wrote. Pointers are to the first
 * element.
 */
"""
_NOTE = """\
# -arch says for which GPUs: newer ones take the code, too; nvcc -arch=native is for the one at hand.
# Without a GPU or its driver the program runs its own loops, and says so.
"""
