"""Small OpenCL C functions for what C itself leaves open: overflow, division by zero, NaN, halves.

Emitted code calls them by name (``wrap_add_int``, ``nan_max_float16``: sixteen floats); ``helper_functions``
writes the definitions of those that a text calls. All but ``integer_pow`` cost an instruction or two.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from polyloom.ir.scalar_functions.function import UNARY
from polyloom.ir.scalar_functions.spelling import Formula

_UNSIGNED = {"char": "uchar", "short": "ushort", "int": "uint", "long": "ulong"}
_BITS = {"char": 8, "short": 16, "int": 32, "long": 64}

_FIXED = {
    "floor_div": """static inline long floor_div(long a, long b)
{
    long q = a / b;
    return q - (a % b != 0 && (a < 0) != (b < 0));
}
""",
    "lesser": "static inline long lesser(long a, long b) { return a < b ? a : b; }\n",
    "greater": "static inline long greater(long a, long b) { return a > b ? a : b; }\n",
}

_TYPED = "wrap_add wrap_sub wrap_mul wrap_neg safe_div safe_rem safe_shl safe_shr nan_max nan_min integer_pow"


@lru_cache(maxsize=8)
def _calls(families: tuple[str, ...]) -> re.Pattern[str]:
    """Return what matches the name of a called helper; ``families``: of those with one for each type."""
    return re.compile(
        rf"\b(?:floor_div|lesser|greater|(?:{'|'.join(families)})"
        r"_(?:u?char|u?short|u?int|u?long|float|double)(?:2|3|4|8|16)?"
        r"|round_half(?:_double)?(?:2|3|4|8|16)?|(?:load|store)_half(?:2|4|8|16))(?=\()"
    )


def _formulas() -> dict[str, Formula]:
    """Return the helpers that are formulas of the table of scalar functions, by their families."""
    forms = (form for row in UNARY.values() for form in (row.floats, row.integers) if form is not None)
    return {f.opencl.family: f.opencl for f in forms if isinstance(f.opencl, Formula)}


def helper_functions(text: str) -> str:
    """Return the definitions of the helpers that an OpenCL C text calls; empty where it calls none."""
    formulas = _formulas()
    called = sorted(set(_calls((*_TYPED.split(), *formulas)).findall(text)))
    return "".join(_definition(name, formulas) + "\n" for name in called)


def _definition(name: str, formulas: Mapping[str, Formula]) -> str:
    if name in _FIXED:
        return _FIXED[name]
    if name.startswith("round_half"):
        return _round_half(name)
    if name.startswith(("load_half", "store_half")):
        return _moved_half(name)
    family, _, kind = name.rpartition("_")
    element, width = _split(kind)
    if family in formulas:
        body = formulas[family].body.format(one=f"({kind})(1)")
        return f"static inline {kind} {name}({kind} a) {{ return {body}; }}\n"
    if family.startswith("wrap"):
        return _wrapping(family, element, width)
    return _WRITERS[family](name, kind, element, width)


def _split(kind: str) -> tuple[str, str]:
    """Return element type and width: ``float16`` is (float, 16), ``int`` is (int, nothing)."""
    element = kind.rstrip("0123456789")
    return element, kind[len(element) :]


def _wrapping(family: str, element: str, width: str) -> str:
    """Return integer arithmetic by way of unsigned numbers, whose overflow is defined in C."""
    kind = element + width
    sign = {"add": "+", "sub": "-", "mul": "*", "neg": "-"}[family.removeprefix("wrap_")]
    parameters = f"{kind} a" if family == "wrap_neg" else f"{kind} a, {kind} b"
    unsigned = _UNSIGNED.get(element, element)
    if width:
        a, b = f"as_{unsigned}{width}(a)", f"as_{unsigned}{width}(b)"
    else:
        wide = "ulong" if unsigned == "ulong" else "uint"
        a, b = f"({wide})a", f"({wide})b"
    value = f"-{a}" if family == "wrap_neg" else f"{a} {sign} {b}"
    result = f"as_{kind}({value})" if width else f"({kind})({value})"
    return f"static inline {kind} {family}_{kind}({parameters}) {{ return {result}; }}\n"


def _safe_division(name: str, kind: str, element: str, width: str) -> str:
    """Return division where 0 divides to 0, and the lowest number by -1 wraps."""
    sign, last = ("/", "a") if name.startswith("safe_div") else ("%", "0")
    lines = [f"static inline {kind} {name}({kind} a, {kind} b)", "{"]
    zero, one = f"({kind})(0)", f"({kind})(1)"
    if element in _UNSIGNED:
        minus, number = f"({kind})(-1)", f"({kind})(0)" if last == "0" else f"({kind})(0) - a"
        if last == "a":
            number = _negated(kind, element, width)
        lines += [
            f"    {kind} divisor = ((b == {zero}) | (b == {minus})) ? {one} : b;",
            f"    {kind} result = b == {minus} ? {number} : ({kind})(a {sign} divisor);",
        ]
    else:
        lines += [
            f"    {kind} divisor = b == {zero} ? {one} : b;",
            f"    {kind} result = ({kind})(a {sign} divisor);",
        ]
    lines += [f"    return b == {zero} ? {zero} : result;", "}"]
    return "\n".join(lines) + "\n"


def _negated(kind: str, element: str, width: str) -> str:
    unsigned = _UNSIGNED[element]
    if width:
        return f"as_{kind}(-as_{unsigned}{width}(a))"
    return f"({kind})(-({'ulong' if element == 'long' else 'uint'})a)"


def _shift(name: str, kind: str, element: str, width: str) -> str:
    """Return a shift by any count: all bits out leaves 0, or the sign."""
    signed = element in _UNSIGNED
    bits = _BITS[element if signed else element.removeprefix("u")]
    inside = f"(b >= ({kind})(0)) & (b < ({kind})({bits}))" if signed else f"b < ({kind})({bits})"
    if name.startswith("safe_shr"):
        shifted = "a >> count"
        rest = f"(a < ({kind})(0) ? ({kind})(-1) : ({kind})(0))" if signed else f"({kind})(0)"
    else:
        unsigned = _UNSIGNED.get(element, element)
        shifted = f"as_{kind}(as_{unsigned}{width}(a) << as_{unsigned}{width}(count))"
        if not width:
            shifted = f"({'ulong' if bits == 64 else 'uint'})a << count"
        rest = f"({kind})(0)"
    return (
        f"static inline {kind} {name}({kind} a, {kind} b)\n{{\n"
        f"    {kind} count = {inside} ? b : ({kind})(0);\n"
        f"    return {inside} ? ({kind})({shifted}) : {rest};\n}}\n"
    )


def _nan_extreme(name: str, kind: str, element: str, width: str) -> str:
    """Return the larger or smaller of two floats; NaN propagates."""
    sign = ">" if name.startswith("nan_max") else "<"
    body = f"((a != a) | (a {sign} b)) ? a : b"
    return f"static inline {kind} {name}({kind} a, {kind} b) {{ return {body}; }}\n"


def _integer_pow(name: str, kind: str, element: str, width: str) -> str:
    """Return a power by repeated squaring, wrapping; a negative exponent gives 1 / a**-b towards zero."""
    one, zero = f"({kind})(1)", f"({kind})(0)"
    unsigned = _UNSIGNED.get(element, element) + width
    text = [
        f"static inline {kind} {name}({kind} a, {kind} b)",
        "{",
        f"    {unsigned} base = {_as(unsigned, 'a', width)}, result = ({unsigned})(1);",
        f"    {kind} left = {f'b < {zero} ? {zero} : b' if element in _UNSIGNED else 'b'};",
        f"    for (int bit = 0; bit < {_BITS[element if element in _UNSIGNED else element[1:]]}; bit++) {{",
        f"        result = (left & {one}) != {zero} ? ({unsigned})(result * base) : result;",
        f"        base = ({unsigned})(base * base);",
        f"        left = ({kind})(left >> {one});",
        "    }",
    ]
    if element in _UNSIGNED:
        text += [
            f"    {kind} odd_sign = (b & {one}) == {zero} ? {one} : a;",
            f"    {kind} inverse = ((a == {one}) | (a == ({kind})(-1))) ? odd_sign : {zero};",
            f"    return b < {zero} ? inverse : {_as(kind, 'result', width)};",
        ]
    else:
        text += [f"    return {_as(kind, 'result', width)};"]
    return "\n".join([*text, "}"]) + "\n"


def _as(kind: str, text: str, width: str) -> str:
    return f"as_{kind}({text})" if width else f"({kind}){text}"


def _round_half(name: str) -> str:
    """Return the rounding of a float to a half, held as a float: needs no ``cl_khr_fp16``."""
    width = name[len(name.rstrip("0123456789")) :]
    source = "double" if "double" in name else "float"
    vector = width or ""
    return (
        f"static inline float{vector} {name}({source}{vector} a)\n{{\n"
        f"    ushort{vector} bits;\n"
        f"    vstore_half{vector}_rte(a, 0, (half *)&bits);\n"
        f"    return vload_half{vector}(0, (half *)&bits);\n}}\n"
    )


def _moved_half(name: str) -> str:
    """Return the load or store of halves at any address, by way of their bits in a variable."""
    width = name[len(name.rstrip("0123456789")) :]
    if name.startswith("load"):
        return (
            f"static inline float{width} {name}(__global const half *from)\n{{\n"
            f"    const ushort{width} bits = vload{width}(0, (__global const ushort *)from);\n"
            f"    return vload_half{width}(0, (const half *)&bits);\n}}\n"
        )
    return (
        f"static inline void {name}(float{width} a, __global half *to)\n{{\n"
        f"    ushort{width} bits;\n"
        f"    vstore_half{width}_rte(a, 0, (half *)&bits);\n"
        f"    vstore{width}(bits, 0, (__global ushort *)to);\n}}\n"
    )


_WRITERS = {
    "safe_div": _safe_division,
    "safe_rem": _safe_division,
    "safe_shl": _shift,
    "safe_shr": _shift,
    "nan_max": _nan_extreme,
    "nan_min": _nan_extreme,
    "integer_pow": _integer_pow,
}
