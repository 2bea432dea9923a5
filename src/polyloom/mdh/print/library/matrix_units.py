"""What CUDA's header ``mma.h`` has of matrix units, for NVRTC, which comes without headers.

Source: PTX ISA, Warp-Level Matrix Instructions: ``wmma.load``, ``wmma.mma``, ``wmma.store`` of m16n16k16.
"""

from __future__ import annotations

_NUMBERS = range(8)


def _registers(first: int) -> str:
    return "{" + ", ".join(f"%{first + k}" for k in _NUMBERS) + "}"


def _operands(constraint: str, fragment: str) -> str:
    return ", ".join(f'"{constraint}"({fragment}.x[{k}])' for k in _NUMBERS)


_FACTORS = ("a", "b")
_LAYOUTS = ("row", "col")


def _fragment(factor: str, layout: str) -> str:
    return f"fragment<matrix_{factor}, 16, 16, 16, __half, {layout}_major>"


def _load(factor: str, layout: str) -> str:
    return f"""\
static __device__ inline void load_matrix_sync({_fragment(factor, layout)} &f, const __half *p, unsigned n)
{{
    asm volatile("{{ .reg .u64 q; cvta.to.shared.u64 q, %8; "
                 "wmma.load.{factor}.sync.aligned.{layout}.m16n16k16.shared.f16 {_registers(0)}, [q], %9; }}"
                 : {_operands("=r", "f")}
                 : "l"(p), "r"(n)
                 : "memory");
}}
"""


def _product(left: str, right: str) -> str:
    return f"""\
static __device__ inline void mma_sync(sums &d, const {_fragment("a", left)} &a,
                                       const {_fragment("b", right)} &b, const sums &c)
{{
    asm volatile("wmma.mma.sync.aligned.{left}.{right}.m16n16k16.f32.f32 {_registers(0)}, "
                 "{_registers(8)}, {_registers(16)}, {_registers(24)};"
                 : {_operands("=f", "d")}
                 : {_operands("r", "a")},
                   {_operands("r", "b")},
                   {_operands("f", "c")});
}}
"""


MATRIX_UNITS = f"""\
#ifdef __CUDACC_RTC__
namespace nvcuda {{
namespace wmma {{
struct matrix_a;
struct matrix_b;
struct accumulator;
struct row_major;
struct col_major;
enum layout_t {{ mem_row_major }};
template <typename use, int m, int n, int k, typename T, typename layout = void> struct fragment {{
    unsigned x[8];
}};
template <int m, int n, int k> struct fragment<accumulator, m, n, k, float> {{
    float x[8];
}};
typedef fragment<accumulator, 16, 16, 16, float> sums;
static __device__ inline void fill_fragment(sums &f, float value)
{{
    for (int i = 0; i < 8; i++) f.x[i] = value;
}}
{"".join(_load(factor, layout) for factor in _FACTORS for layout in _LAYOUTS)}\
{"".join(_product(left, right) for left in _LAYOUTS for right in _LAYOUTS)}\
static __device__ inline void store_matrix_sync(float *p, const sums &f, unsigned n, layout_t)
{{
    asm volatile("{{ .reg .u64 q; cvta.to.shared.u64 q, %0; "
                 "wmma.store.d.sync.aligned.row.m16n16k16.shared.f32 [q], {_registers(1)}, %9; }}"
                 :
                 : "l"(p), {_operands("f", "f")}, "r"(n)
                 : "memory");
}}
}}
}}
#else
#include <mma.h>
#endif

"""
"""Blocks of 16 x 16 halves that a warp's lanes have together, and sums of their products."""
