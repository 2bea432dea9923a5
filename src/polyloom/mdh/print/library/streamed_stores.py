"""Stores of vectors past the caches: by the compiler's builtin function, in C by those of x86 for gcc.

Where there is none, or an element does not lie where such a store may begin, it is a plain store.
"""

from __future__ import annotations

from polyloom.mdh.print.library.kinds import Kind

_WIDTHS = {64: ("__AVX512F__", "512"), 32: ("__AVX__", "256")}
"""Of a vector of so many bytes: what a processor has to have, the end of its store's name."""

STREAMED = """\
static inline void streamed_is_there(void) /* for others, before they are told that it is */
{
#if defined(__SSE__)
    __builtin_ia32_sfence();
#endif
}

"""
"""Stores past the caches are in no order with later ones: this stands behind the last of a part."""


def streamed(name: str, family: str, kind: Kind) -> str:
    """Return a store past the caches: at multiples of 16 bytes, in OpenCL of a vector's size."""
    return _of_opencl(name, kind) if kind.dialect.own_functions else _of_c(name, kind)


def _of_opencl(name: str, kind: Kind) -> str:
    return (
        f"static inline void {name}({kind} a, __global {kind.scalar} *to)\n{{\n"
        "#ifdef __has_builtin\n#if __has_builtin(__builtin_nontemporal_store)\n"
        "    if ((size_t)to % sizeof(a) == 0) {\n"
        f"        __builtin_nontemporal_store(a, (__global {kind} *)to);\n"
        "        return;\n    }\n#endif\n#endif\n"
        f"    vstore{kind.width}(a, 0, to);\n}}\n"
    )


def _of_c(name: str, kind: Kind) -> str:
    """Return the function: whole vectors where they may begin there, else pieces of 16 bytes."""
    copy = kind.dialect.of_header("string.h", "memcpy")
    head = f"static inline __attribute__((always_inline)) void {name}({kind.scalar} *to, {kind} a)\n{{\n"
    plain = f"    {copy}(to, &a, sizeof a);\n}}\n"
    size = kind.width * kind.element.size
    if size % 16:
        return head + plain
    clang = _in_pieces(copy, size // 16, "__builtin_nontemporal_store(pieces[k], (piece *)to + k)")
    gcc = _in_pieces(copy, size // 16, "__builtin_ia32_movntps((float *)to + 4 * k, pieces[k])")
    if size in _WIDTHS:
        has, bits = _WIDTHS[size]
        whole = (
            f"#if defined({has})\n    if ((uintptr_t)to % {size} == 0) {{\n"
            f"        typedef float whole __attribute__((vector_size({size}), may_alias));\n"
            f"        __builtin_ia32_movntps{bits}((float *)to, (whole)a);\n"
            "        return;\n    }\n#endif\n"
        )
        gcc = whole + gcc
    return f"{head}#if defined(__clang__)\n{clang}#elif defined(__SSE__)\n{gcc}#endif\n{plain}"


def _in_pieces(copy: str, count: int, store: str) -> str:
    """Return stores of pieces of 16 bytes, where a vector begins at a multiple of them."""
    return (
        "    if ((uintptr_t)to % 16 == 0) {\n"
        "        typedef float piece __attribute__((vector_size(16), may_alias));\n"
        f"        piece pieces[{count}];\n"
        f"        {copy}(pieces, &a, sizeof a);\n"
        f"        for (int k = 0; k < {count}; k++)\n"
        f"            {store};\n"
        "        return;\n    }\n"
    )
