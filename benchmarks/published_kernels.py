"""Compiled layers beside published kernels of the same size on the same machine, WSE-2: cycles of both.

The published ones are those of docs/machine_model.md, which says where they come from. They count what that
page says: a reduction, say, without what its PEs do before. Ours count an invocation, from its start to the
end of the last task. All results are compared with the evaluator's.

Usage: python benchmarks/published_kernels.py
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from corpus import inputs_of, mistakes, together

from polyloom.diagnostics import Source
from polyloom.frontends.lair.lower import lower
from polyloom.frontends.lair.syntax.parse import parse
from polyloom.pipeline import analyse_layer, compile_layer
from polyloom.wafer.machine.model import load_machine
from polyloom.wafer.mapping.reader import read_mapping
from polyloom.wafer.simd.decision import SimdOptions
from polyloom.wafer.simulation.run import simulate_program


@dataclass(frozen=True)
class Kernel:
    """``cycles``: of the published one, whose case in docs/machine_model.md is ``case``."""

    case: str
    cycles: int
    layer: str
    map: str


def _product(case: str, cycles: int, m: int, k: int, n: int) -> Kernel:
    layer = f"""lair gemm(): float32 A[{m}][{k}], float32 B[{k}][{n}] -> float32 C[{m}][{n}]
{{ all (i, j, k) in ({m}, {n}, {k}) C[i][j] += A[i][k] * B[k][j] }}"""
    return Kernel(case, cycles, layer, "size: { PE[1, 1] }\ncompute_map: { gemm[i, j, k] -> PE[0, 0] }\n")


def _sum(case: str, cycles: int, pes: int, n: int) -> Kernel:
    layer = f"""lair total(): float32 x[{pes}][{n}] -> float32 y[{n}]
{{ all (i, p) in ({n}, {pes}) y[i] += x[p][i] }}"""
    return Kernel(
        case, cycles, layer, f"size: {{ PE[{pes}, 1] }}\ncompute_map: {{ total[i, p] -> PE[p, 0] }}\n"
    )


def kernels() -> Iterator[Kernel]:
    """Yield the kernels."""
    layer = "lair times(): float32 a[1028], float32 b[1028] -> float32 c[1028] "
    layer += "{ all (i) in (1028) c[i] = a[i] * b[i] }"
    yield Kernel("multiply-1028", 1034, layer, "size: { PE[1, 1] }\ncompute_map: { times[i] -> PE[0, 0] }\n")
    yield _product("gemm-8x8x32", 9756, 8, 8, 32)
    yield _product("gemm-32x32x32", 88795, 32, 32, 32)
    yield _product("gemm-8x8x128", 38844, 8, 8, 128)
    yield _product("gemm-32x32x128", 357853, 32, 32, 128)
    yield _product("gemm-128x8x64", 150760, 128, 8, 64)
    yield _sum("chain-15-async", 317, 15, 128)
    yield _sum("two-phase-28-short", 928, 512, 64)
    yield _sum("chain-512", 7218, 512, 4096)


def cycles_of(kernel: Kernel) -> int:
    """Compile and simulate a layer; SystemExit where a result is wrong."""
    machine = load_machine("cs2")
    program = lower(parse(Source(f"{kernel.case}.lair", kernel.layer)), None, {})
    mapping = read_mapping(Source(f"{kernel.case}.map", kernel.map), program)
    compiled = compile_layer(analyse_layer(program, mapping, SimdOptions(machine=machine)), machine)
    runs = inputs_of(program, mapping, 1.0, invocations=1)
    found = simulate_program(compiled, together(mapping, runs))
    wrong = mistakes(compiled, mapping, runs, found.outputs)
    if wrong:
        raise SystemExit(f"{kernel.case}: {wrong}")
    return found.cycles


def main() -> None:
    """Print a table."""
    print("| kernel | published | ours | ours / published |\n|---|---:|---:|---:|")
    for kernel in kernels():
        ours = cycles_of(kernel)
        print(f"| {kernel.case} | {kernel.cycles:,} | {ours:,} | {ours / kernel.cycles:.2f} |", flush=True)


if __name__ == "__main__":
    main()
