"""Functions of vectors for which x86 has an instruction that gcc does not find: by its builtin functions.

Each has the plain way beside it, for other processors and compilers.
"""

from __future__ import annotations

from polyloom.ir.expressions import CompareOp
from polyloom.ir.types import ElementType
from polyloom.ir.value_ranges import AS_UNSIGNED
from polyloom.mdh.print.dialect import SIGNED
from polyloom.mdh.print.library.kinds import Kind, one_line


def extreme(name: str, family: str, kind: Kind) -> str:
    """Return the larger or smaller of two integers, which OpenCL has, and x86 where they have no 64 bits."""
    sign = ">" if family == "max" else "<"
    plain = kind.chosen(f"a {sign} b", "a", "b")
    if kind.width == 1 or kind.dialect.own_functions:
        return one_line(name, kind, "a b", plain)
    family += "s" if kind.signed else "u"
    return _of_integers(name, kind, plain, family, "(wide)a, (wide)b", least="__SSE4_1__")


def absolute(name: str, family: str, kind: Kind) -> str:
    """Return the absolute value of integers: the lowest number stays."""
    if kind.width == 1:
        return one_line(name, kind, "a", f"a < 0 ? ({kind})(0 - ({kind.wide})a) : a")
    bits = kind.unsigned
    sign = bits.reinterpreted(f"(a >> {kind.bits - 1})")
    plain = kind.reinterpreted(f"({bits.reinterpreted('a')} ^ {sign}) - {sign}")
    return _of_integers(name, kind, plain, family, "(wide)a", least="__SSSE3__")


def _of_integers(name: str, kind: Kind, plain: str, family: str, given: str, *, least: str) -> str:
    """Return a function of vectors of integers, which has an instruction where these have not 64 bits.

    ``given``: its arguments, as vectors that the instruction takes; ``least``: what a processor has to have
    for 16 bytes.
    """
    parameters = " ".join(part.removeprefix("(wide)") for part in given.split(", "))
    letter = {1: "b", 2: "w", 4: "d"}.get(kind.element.size)
    size = kind.width * kind.element.size
    has, suffix, more = {
        16: (least, "128", ""),
        32: ("__AVX2__", "256", ""),
        64: (f"__AVX512{'F' if letter == 'd' else 'BW'}__", "512_mask", ", (wide)a, -1"),
    }.get(size, ("", "", ""))
    if not has or letter is None:
        return one_line(name, kind, parameters, plain)
    part = "char" if letter == "b" else kind.dialect.type(SIGNED[kind.element.size])
    before = f"    typedef {part} wide __attribute__((vector_size({size})));\n"
    own, typed = f"p{family}{letter}{suffix}({given}{more})", [f"{kind} {p}" for p in parameters.split()]
    has = f"{has} && !defined __clang__"
    return _in_hardware(name, kind, plain, has, own, given=", ".join(typed), before=before)


def shorts_multiplied(name: str, family: str, kind: Kind) -> str:
    """Return products of integers of 16 bits; above these the second has zeros.

    The instruction adds the product of the upper halves to that of the lower ones.
    """
    size = kind.width * kind.element.size
    has, own = {
        16: ("__SSE2__", "pmaddwd128((shorts)a, (shorts)b)"),
        32: ("__AVX2__", "pmaddwd256((shorts)a, (shorts)b)"),
        64: ("__AVX512BW__", "pmaddwd512_mask((shorts)a, (shorts)b, (large){0}, -1)"),
    }.get(size, ("", ""))
    before = f"    typedef short shorts __attribute__((vector_size({size})));\n"
    if size == 64:
        before += "    typedef int large __attribute__((vector_size(64)));\n"
    signed = kind.reinterpreted(f"({kind.unsigned.reinterpreted('b')} << 16)")
    plain = f"a * ({signed} >> 16)"
    return _in_hardware(name, kind, plain, has and f"{has} && !defined __clang__", own, before=before)


def any_of_lanes(name: str, family: str, kind: Kind) -> str:
    """Return whether any element of a mask is set: one instruction, where C takes all of them apart."""
    plain = " | ".join(f"a[{k}]" for k in range(kind.width))
    has, own = {
        16: ("__SSE4_1__", "!__builtin_ia32_ptestz128((wide)a, (wide)a)"),
        32: ("__AVX__", "!__builtin_ia32_ptestz256((wide)a, (wide)a)"),
        64: ("__AVX512F__", "__builtin_ia32_ptestmq512((wide)a, (wide)a, -1) != 0"),
    }.get(kind.width * kind.element.size, ("", ""))
    head = f"static inline int {name}({kind} a)\n{{\n"
    if not has:
        return f"{head}    return ({plain}) != 0;\n}}\n"
    return (
        f"{head}#if defined {has} && !defined __clang__\n"
        f"    typedef long long wide __attribute__((vector_size({kind.width * kind.element.size})));\n"
        f"    return {own};\n#else\n    return ({plain}) != 0;\n#endif\n}}\n"
    )


_OF_FLOATS = {
    16: ("__SSE2__", "", ""),
    32: ("__AVX__", "256", ""),
    64: ("__AVX512F__", "512_mask", ", a, -1, 4"),
}
"""What a processor has to have for vectors of so many bytes, how functions end, and their last arguments."""


def chosen_extreme(name: str, family: str, kind: Kind) -> str:
    """Return ``a > b ? a : b`` or ``a < b ? a : b`` of floats: b where one is NaN, or both are zeros."""
    word, sign = ("max", ">") if family == "larger" else ("min", "<")
    letter = "d" if kind.element is ElementType.FLOAT64 else "s"
    has, suffix, more = _OF_FLOATS.get(kind.width * kind.element.size, ("", "", ""))
    if suffix == "512_mask":
        has += " && !defined __clang__"
    own = f"{word}p{letter}{suffix}(a, b{more})"
    return _in_hardware(name, kind, kind.chosen(f"a {sign} b", "a", "b"), has, own)


def square_root(name: str, kind: Kind, plain: str) -> str:
    """Return square roots of vectors; ``plain``: the function for other compilers and processors.

    gcc calls the library's function for each element where it may set ``errno``, whatever pragmas say.
    """
    letter = "d" if kind.element is ElementType.FLOAT64 else "s"
    has, suffix, more = _OF_FLOATS.get(kind.width * kind.element.size, ("", "", ""))
    if not has or kind.element not in (ElementType.FLOAT32, ElementType.FLOAT64):
        return plain
    own = f"return __builtin_ia32_sqrtp{letter}{suffix}(a{more});"
    return (
        f"#if defined {has} && !defined __clang__\n"
        f"static inline {kind} {name}({kind} a) {{ {own} }}\n#else\n{plain}#endif\n"
    )


def _in_hardware(
    name: str, kind: Kind, plain: str, has: str, own: str, *, given: str = "", before: str = ""
) -> str:
    """Return a function of two vectors: an instruction of x86 where it ``has`` it.

    Compilers of C make a comparison and a choice of it, or take elements one by one. gcc's functions of 512
    bits are others than clang's, which knows those of integers by no name. ``given``: the arguments where
    there are others; ``before``: lines before the instruction.
    """
    head = f"{kind.dialect.function_head} {kind} {name}({given or f'{kind} a, {kind} b'})\n{{\n"
    if not has:
        return f"{head}    return {plain};\n}}\n"
    return (
        f"{head}#if defined {has}\n{before}    return ({kind})__builtin_ia32_{own};\n"
        f"#else\n    return {plain};\n#endif\n}}\n"
    )


def widened(name: str, source: ElementType, kind: Kind) -> str:
    """Return a vector of integers as one of larger numbers, which hold them all or what they wrap to.

    x86 has an instruction for each, where gcc takes the halves apart, and each element where sizes differ by
    more than a factor of two.
    """
    dialect, width = kind.dialect, kind.width
    given = Kind(dialect, source, width)
    between = [SIGNED[size] for size in SIGNED if source.size < size < kind.element.size]
    plain = "a"
    for element in (*between, kind.element):
        plain = dialect.convert.format(kind=dialect.type(element, width), value=plain)
    has, bits = _WIDENING.get(width * kind.element.size, ("", 0))
    if source.size == 1 and kind.element.size == 2 and bits == 512:
        has = "__AVX512BW__"
    instruction = _widening(source, kind.element, bits)
    size = width * source.size
    if not instruction or size not in (4, 8, 16, 32):
        return _in_hardware(name, kind, plain, "", "", given=f"{given} a")
    part = "char" if source.size == 1 else dialect.type(SIGNED[source.size])
    before, whole = f"    typedef {part} wide __attribute__((vector_size({max(16, size)})));\n", "(wide)a"
    if size < 16:
        low = dialect.type(SIGNED[size])
        before += f"    typedef {low} parts __attribute__((vector_size(16)));\n"
        whole = f"(wide)(parts){{({low})a}}"
    if bits == 512:
        large = "double" if kind.element.is_float else _INTEGERS_OF_X86[kind.element.size]
        before += f"    typedef {large} large __attribute__((vector_size(64)));\n"
        whole += ", (large){0}, -1"
    own, has = f"{instruction}({whole})", f"{has} && !defined __clang__"
    return _in_hardware(name, kind, plain, has, own, given=f"{given} a", before=before)


_WIDENING = {16: ("__SSE4_1__", 128), 32: ("__AVX2__", 256), 64: ("__AVX512F__", 512)}
"""What a processor has to have for vectors of so many bytes, and their bits."""

_LETTERS = {1: "b", 2: "w", 4: "d", 8: "q"}
"""Integers in the names of instructions, by their bytes."""

_INTEGERS_OF_X86 = {1: "char", 2: "short", 4: "int", 8: "long long"}
"""Integers in vectors of instructions, as gcc calls them, by their bytes."""


def _widening(source: ElementType, element: ElementType, bits: int) -> str:
    """Return x86's instruction as gcc calls it; empty where there is none that makes so many bits."""
    if not bits or (element.is_float and (source is not ElementType.INT32 or bits < 256)):
        return ""
    if element.is_float:
        return f"cvtdq2pd{bits}{'_mask' if bits == 512 else ''}"
    sign, last = "s" if source in AS_UNSIGNED else "z", "_mask" if bits == 512 else ""
    return f"pmov{sign}x{_LETTERS[source.size]}{_LETTERS[element.size]}{bits}{last}"


def compared(name: str, op: CompareOp, source: ElementType, kind: Kind) -> str:
    """Return a comparison of numbers of 64 bytes as a mask of smaller elements.

    With AVX-512 a comparison gives a bit for each number, of which masks of any size are made. gcc makes one
    of elements as large as the numbers and takes every other part of it, again and again.
    """
    dialect, width = kind.dialect, kind.width
    given = Kind(dialect, source, width)
    whole = SIGNED[given.mask.element.size]
    plain = dialect.converted(f"a {op.value} b", whole, kind.element, width)
    size = width * kind.element.size
    letter = {1: "b", 2: "w", 4: "d"}.get(kind.element.size)
    if width * whole.size != 64 or letter is None or size not in (8, 16, 32):
        return _in_hardware(name, kind, plain, "", "", given=f"{given} a, {given} b")
    has = ["F", "VL", "DQ", *(["BW"] if letter != "d" or whole.size < 4 else [])]
    condition = " && ".join([*(f"defined __AVX512{part}__" for part in has), "!defined __clang__"])
    if source.is_float:
        compare, code, more = f"cmpp{'d' if whole.size == 8 else 's'}512_mask", _OF_FLOATS_COMPARED[op], ", 4"
        before, pair = "", "a, b"
    else:
        sign = "" if given.signed else "u"
        compare, code, more = f"{sign}cmp{_LETTERS[whole.size]}512_mask", _OF_INTEGERS_COMPARED[op], ""
        before = f"    typedef {_INTEGERS_OF_X86[whole.size]} wide __attribute__((vector_size(64)));\n"
        pair = "(wide)a, (wide)b"
    bits = f"__builtin_ia32_{compare}({pair}, {code}, -1{more})"
    own = f"cvtmask2{letter}{8 * max(16, size)}({bits})"
    if size == 8:
        before += "    typedef int64_t parts __attribute__((vector_size(16)));\n"
        value = f"({kind})((parts)__builtin_ia32_{own})[0]"
    else:
        value = f"({kind})__builtin_ia32_{own}"
    return (
        f"static inline {kind} {name}({given} a, {given} b)\n{{\n#if {condition}\n{before}"
        f"    return {value};\n#else\n    return {plain};\n#endif\n}}\n"
    )


_OF_FLOATS_COMPARED = dict(zip(CompareOp, (1, 2, 30, 29, 0, 4), strict=True))
"""Comparisons of floats as instructions count them: false of NaN, but for ``!=``."""

_OF_INTEGERS_COMPARED = dict(zip(CompareOp, (1, 2, 6, 5, 0, 4), strict=True))
