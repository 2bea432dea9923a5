"""Names of users in OpenCL C: what is a word of the language, or a function in it, gets another name."""

from __future__ import annotations

import re
from collections.abc import Iterable


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_KEYWORDS = _words("""
auto break case char const continue default do double else enum extern float for goto if inline int long
register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while
bool half uchar ushort uint ulong size_t ptrdiff_t intptr_t uintptr_t event_t sampler_t image1d_t image2d_t
image3d_t image2d_array_t image1d_array_t image1d_buffer_t queue_t ndrange_t clk_event_t reserve_id_t
complex imaginary quad _Bool _Complex _Imaginary asm typeof true false NULL pipe uniform kernel global local
constant private generic __kernel __global __local __constant __private __generic read_only write_only
read_write __read_only __write_only __read_write __attribute__ main printf
""")

_FUNCTIONS = _words("""
acos acosh acospi asin asinh asinpi atan atan2 atanh atanpi atan2pi cbrt ceil copysign cos cosh cospi erfc
erf exp exp2 exp10 expm1 fabs fdim floor fma fmax fmin fmod fract frexp hypot ilogb ldexp lgamma lgamma_r
log log2 log10 log1p logb mad maxmag minmag modf nan nextafter pow pown powr remainder remquo rint rootn
round rsqrt sin sincos sinh sinpi sqrt tan tanh tanpi tgamma trunc abs abs_diff add_sat hadd rhadd clamp clz
ctz mad_hi mad_sat max min mul_hi rotate sub_sat upsample popcount mad24 mul24 degrees mix radians step
smoothstep sign cross dot distance length normalize fast_distance fast_length fast_normalize isequal
isnotequal isgreater isgreaterequal isless islessequal islessgreater isfinite isinf isnan isnormal isordered
isunordered signbit any all bitselect select shuffle shuffle2 barrier mem_fence read_mem_fence
write_mem_fence async_work_group_copy async_work_group_strided_copy wait_group_events prefetch vec_step
get_work_dim get_global_size get_global_id get_local_size get_local_id get_num_groups get_group_id
get_global_offset INFINITY NAN MAXFLOAT HUGE_VAL HUGE_VALF CHAR_BIT
""")

CPP_WORDS = _words("""
alignas alignof and and_eq bitand bitor catch char8_t char16_t char32_t class co_await co_return co_yield
compl concept const_cast consteval constexpr constinit decltype delete dynamic_cast explicit export friend
mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public reinterpret_cast
requires static_assert static_cast template this thread_local throw try typeid typename using virtual wchar_t
xor xor_eq
""")
CUDA_WORDS = _words("""
lanes_at threadIdx blockIdx blockDim gridDim warpSize dim3 clock clock64 assert malloc free printf cudaError_t
j0 j1 jn y0 y1 yn j0f j1f jnf y0f y1f ynf saturate gamma normcdf erfcx erfinv erfcinv rcbrt rhypot
""")
"""Names that CUDA C has in every file, beside those of C++ and of OpenCL C."""

_PATTERNS = re.compile(
    r"((u?(char|short|int|long)|float|double|half)(2|3|4|8|16)"  # vector types
    r"|(as|convert)_\w+|v(load|store)(a?_half)?(2|3|4|8|16)?(_\w+)?|atom(ic)?_\w+|(native|half)_\w+"
    r"|work_group_\w+|sub_group_\w+|(read|write)_image\w*|get_image_\w+"
    r"|M_[A-Z0-9_]+|(FLT|DBL|HALF|U?INT|[SU]?CHAR|U?SHRT|U?LONG)_[A-Z0-9_]+|CL[KA]?_\w+|cl_\w+"
    r"|(wrap|safe|nan|integer|stream)_\w+|(round|load|store)_half\w*|sigmoid_\w+"  # of helpers
    r"|(splat|select|lanes|abs|load|store[234]?|gather|scatter|max|min)_(u?int|float|half)\d\w*"  # in C
    r"|(larger|smaller)_(float)\d\w*"
    r"|(float|u?int)\d+(x\d+|_t)|memcpy|errno"  # of C
    r"|floor_div|lesser|greater"  # of helpers, too
    r"|__\w*)"
)
_RESERVED = _KEYWORDS | _FUNCTIONS


def is_reserved(name: str) -> bool:
    """Return whether a name means something in OpenCL C, or in the helpers of emitted code."""
    return name in _RESERVED or _PATTERNS.fullmatch(name) is not None


def c_names(names: Iterable[str], taken: Iterable[str] = ()) -> dict[str, str]:
    """Return an identifier for each name, all different, none reserved and none of ``taken``.

    A name that can stay as it is does; ``max`` becomes ``max_``, ``p.x`` becomes ``p_x``, and ``i'``, as
    names of our own are spelt, ``i`` where that is free.
    """
    wanted = tuple(dict.fromkeys(names))
    result: dict[str, str] = {}
    used = set(taken)
    plain = {name: _plain(name) for name in wanted}
    for name in sorted(wanted, key=lambda n: plain[n] != n):
        text = plain[name]
        while text in used:
            text += "_"
        used.add(text)
        result[name] = text
    return {name: result[name] for name in wanted}


def _plain(name: str) -> str:
    text = re.sub(r"\W", "_", name.replace("'", ""), flags=re.ASCII)
    if not text or text[0].isdigit():
        text = f"_{text}"
    return f"{text}_" if is_reserved(text) else text
