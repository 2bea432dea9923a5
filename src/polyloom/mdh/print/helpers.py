"""Small functions of OpenCL C and C for what these leave open: overflow, division by zero, NaN, halves.

Emitted code calls them by name (``wrap_add_int``, ``nan_max_float16``: sixteen floats; in C
``nan_max_float32x16``); ``helper_functions`` writes the definitions of those that a text calls. All but
``integer_pow`` cost an instruction or two. C has more of them: what OpenCL has for vectors.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial

from polyloom.ir.scalar_functions.function import BINARY, UNARY
from polyloom.ir.scalar_functions.spelling import Call, Formula
from polyloom.ir.types import ElementType
from polyloom.mdh.print.dialect import NARROW, OPENCL, SIGNED, UNSIGNED, Dialect, value_bytes

_TYPED = "wrap_add wrap_sub wrap_mul wrap_neg safe_div safe_rem safe_shl safe_shr nan_max nan_min integer_pow"
_ONLY_IN_C = "splat select abs lanes load store gather scatter rsqrt"


def helper_functions(text: str, dialect: Dialect = OPENCL) -> str:
    """Return the definitions of the helpers that a text calls; empty where it calls none.

    In C the types of vectors come first, and a function that another one calls before it.
    """
    found: dict[str, str] = {}
    _define(text, dialect, found)
    definitions = "".join(definition + "\n" for definition in found.values())
    return definitions if dialect.own_functions else _vector_types(definitions + text, dialect) + definitions


def _define(text: str, dialect: Dialect, found: dict[str, str]) -> None:
    for name in sorted(set(_calls(dialect, _families(dialect)).findall(text)) - found.keys()):
        definition = _definition(name, dialect)
        if not dialect.own_functions:
            _define(definition.replace(f"{name}(", ""), dialect, found)
        found[name] = definition


def _families(dialect: Dialect) -> tuple[str, ...]:
    """Return the families of helpers that have one for each type."""
    own = () if dialect.own_functions else (*_ONLY_IN_C.split(), *_library())
    return (*_TYPED.split(), *_formulas(), *own)


@lru_cache(maxsize=8)
def _calls(dialect: Dialect, families: tuple[str, ...]) -> re.Pattern[str]:
    """Return what matches the name of a called helper."""
    kinds = sorted(dialect.kinds, key=len, reverse=True)
    return re.compile(
        rf"\b(?:floor_div|lesser|greater|(?:{'|'.join(families)})_(?:{'|'.join(kinds)})"
        r"|round_half(?:_double)?\d*|(?:load|store|gather|scatter)_half\d+)(?=\()"
    )


def _formulas() -> dict[str, Formula]:
    """Return the helpers that are formulas of the table of scalar functions, by their families."""
    forms = (form for row in UNARY.values() for form in (row.floats, row.integers) if form is not None)
    return {f.opencl.family: f.opencl for f in forms if isinstance(f.opencl, Formula)}


def _library() -> dict[str, int]:
    """Return the functions of the language's library that the table of scalar functions calls: arguments."""
    return {
        form.opencl.function: arguments
        for table, arguments in ((UNARY, 1), (BINARY, 2))
        for row in table.values()
        for form in (row.floats, row.integers)
        if form is not None and isinstance(form.opencl, Call)
    }


def _vector_types(text: str, dialect: Dialect) -> str:
    """Return the types of vectors that a text names."""
    lines = []
    for name in sorted(set(re.findall(r"\b(?:float|u?int)\d+x\d+\b", text))):
        if name.startswith("float16x"):
            size, element = 2, dialect.half
        else:
            kind, _ = dialect.kinds[name]
            size, element = kind.size, dialect.type(kind)
        bytes_ = size * int(name.partition("x")[2])
        lines.append(f"typedef {element} {name} __attribute__((vector_size({bytes_})));\n")
    return "".join(lines) + ("\n" if lines else "")


def _definition(name: str, dialect: Dialect) -> str:
    integer = dialect.type(ElementType.INT64)
    if name in _OF_INTEGERS:
        return _OF_INTEGERS[name].format(int=integer)
    if name.startswith("round_half"):
        return _round_half(name, dialect)
    if "_half" in name:
        return _moved_half(name, dialect)
    family = next(
        f for f in _families(dialect) if name.startswith(f"{f}_") and name[len(f) + 1 :] in dialect.kinds
    )
    kind = _Kind.named(name[len(family) + 1 :], dialect)
    if not dialect.own_functions and kind.width > 1 and family not in _VECTORS:
        return _lane_by_lane(name, family, kind)
    if family in _formulas():
        body = _formulas()[family].body.format(one=kind.cast("1"))
        return _one_line(name, kind, "a", _in_c(body, kind) if not dialect.own_functions else body)
    if family.startswith("wrap"):
        return _wrapping(family, kind)
    return _WRITERS[family](name, kind)


_OF_INTEGERS = {
    "floor_div": """static inline {int} floor_div({int} a, {int} b)
{{
    {int} q = a / b;
    return q - (a % b != 0 && (a < 0) != (b < 0));
}}
""",
    "lesser": "static inline {int} lesser({int} a, {int} b) {{ return a < b ? a : b; }}\n",
    "greater": "static inline {int} greater({int} a, {int} b) {{ return a > b ? a : b; }}\n",
}


@dataclass(frozen=True)
class _Kind:
    """A type of a helper."""

    dialect: Dialect
    element: ElementType
    width: int

    @staticmethod
    def named(name: str, dialect: Dialect) -> _Kind:
        element, width = dialect.kinds[name]
        return _Kind(dialect, element, width)

    def __str__(self) -> str:
        return self.dialect.type(self.element, self.width)

    @property
    def scalar(self) -> _Kind:
        return _Kind(self.dialect, self.element, 1)

    @property
    def signed(self) -> bool:
        return self.element in UNSIGNED

    @property
    def unsigned(self) -> _Kind:
        return _Kind(self.dialect, UNSIGNED.get(self.element, self.element), self.width)

    @property
    def bits(self) -> int:
        return 8 * self.element.size

    @property
    def mask(self) -> _Kind:
        return _Kind(self.dialect, SIGNED[value_bytes(self.element)], self.width)

    @property
    def wide(self) -> str:
        """The unsigned scalar that C computes with: no ``short``, which would become ``int``."""
        return self.dialect.type(ElementType.UINT64 if self.bits == 64 else ElementType.UINT32)

    def cast(self, value: str) -> str:
        """Return a number in this type, in all elements."""
        if self.width == 1 or self.dialect.own_functions:
            return f"({self})({value})"
        return self.dialect.all_of(value, self.element, self.width)

    def reinterpreted(self, text: str) -> str:
        """Return the same bits of a vector, or a converted scalar."""
        if self.width == 1:
            return f"({self}){text}"
        return self.dialect.reinterpret.format(kind=self, value=text)

    def chosen(self, condition: str, then: str, otherwise: str) -> str:
        if self.width > 1 and not self.dialect.masks_are_truths:
            return f"select_{self}({condition}, {then}, {otherwise})"
        return f"{condition} ? {then} : {otherwise}"


def _one_line(name: str, kind: _Kind, parameters: str, value: str) -> str:
    typed = ", ".join(f"{kind} {p}" for p in parameters.split())
    return f"static inline {kind} {name}({typed}) {{ return {value}; }}\n"


def _wrapping(family: str, kind: _Kind) -> str:
    """Return integer arithmetic by way of unsigned numbers, whose overflow is defined in C."""
    sign = {"add": "+", "sub": "-", "mul": "*", "neg": "-"}[family.removeprefix("wrap_")]
    parameters = "a" if family == "wrap_neg" else "a b"
    if kind.width > 1:
        a, b = kind.unsigned.reinterpreted("a"), kind.unsigned.reinterpreted("b")
    else:
        a, b = f"({kind.wide})a", f"({kind.wide})b"
    value = f"-{a}" if family == "wrap_neg" else f"{a} {sign} {b}"
    result = kind.reinterpreted(value) if kind.width > 1 else f"({kind})({value})"
    return _one_line(f"{family}_{kind}", kind, parameters, result)


def _safe_division(name: str, kind: _Kind) -> str:
    """Return division where 0 divides to 0, and the lowest number by -1 wraps."""
    is_quotient = name.startswith("safe_div")
    sign, zero, one = "/" if is_quotient else "%", f"({kind})(0)", f"({kind})(1)"
    lines = [f"static inline {kind} {name}({kind} a, {kind} b)", "{"]
    if kind.signed:
        minus = f"({kind})(-1)"
        number = _negated(kind) if is_quotient else zero
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


def _negated(kind: _Kind) -> str:
    if kind.width > 1:
        return kind.reinterpreted(f"-{kind.unsigned.reinterpreted('a')}")
    return f"({kind})(-({kind.wide})a)"


def _shift(name: str, kind: _Kind) -> str:
    """Return a shift by any count: all bits out leaves 0, or the sign."""
    inside = (
        f"(b >= ({kind})(0)) & (b < ({kind})({kind.bits}))" if kind.signed else f"b < ({kind})({kind.bits})"
    )
    rest = f"({kind})(0)"
    if name.startswith("safe_shr"):
        shifted = "a >> count"
        rest = f"(a < ({kind})(0) ? ({kind})(-1) : ({kind})(0))" if kind.signed else rest
    elif kind.width > 1:
        bits = kind.unsigned
        shifted = kind.reinterpreted(f"{bits.reinterpreted('a')} << {bits.reinterpreted('count')}")
    else:
        shifted = f"({kind.wide})a << count"
    return (
        f"static inline {kind} {name}({kind} a, {kind} b)\n{{\n"
        f"    {kind} count = {inside} ? b : ({kind})(0);\n"
        f"    return {inside} ? ({kind})({shifted}) : {rest};\n}}\n"
    )


def _nan_extreme(name: str, kind: _Kind) -> str:
    """Return the larger or smaller of two floats; NaN propagates."""
    sign = ">" if name.startswith("nan_max") else "<"
    value = kind.chosen(f"((a != a) | (a {sign} b))", "a", "b")
    return _one_line(name, kind, "a b", value)


def _extreme(name: str, kind: _Kind) -> str:
    """Return the larger or smaller of two integers, which OpenCL has."""
    sign = ">" if name.startswith("max") else "<"
    return _one_line(name, kind, "a b", kind.chosen(f"a {sign} b", "a", "b"))


def _integer_pow(name: str, kind: _Kind) -> str:
    """Return a power by repeated squaring, wrapping; a negative exponent gives 1 / a**-b towards zero."""
    one, zero, unsigned = f"({kind})(1)", f"({kind})(0)", kind.unsigned
    times = partial(_times_base, unsigned)
    text = [
        f"static inline {kind} {name}({kind} a, {kind} b)",
        "{",
        f"    {unsigned} base = {unsigned.reinterpreted('a')}, result = ({unsigned})(1);",
        f"    {kind} left = {f'b < {zero} ? {zero} : b' if kind.signed else 'b'};",
        f"    for (int bit = 0; bit < {kind.bits}; bit++) {{",
        f"        result = (left & {one}) != {zero} ? ({unsigned})({times('result')}) : result;",
        f"        base = ({unsigned})({times('base')});",
        f"        left = ({kind})(left >> {one});",
        "    }",
    ]
    if kind.signed:
        text += [
            f"    {kind} odd_sign = (b & {one}) == {zero} ? {one} : a;",
            f"    {kind} inverse = ((a == {one}) | (a == ({kind})(-1))) ? odd_sign : {zero};",
            f"    return b < {zero} ? inverse : {kind.reinterpreted('result')};",
        ]
    else:
        text += [f"    return {kind.reinterpreted('result')};"]
    return "\n".join([*text, "}"]) + "\n"


def _times_base(kind: _Kind, name: str) -> str:
    """Return ``name * base``; in C not of ``int``, to which it converts small unsigned numbers."""
    if kind.dialect.own_functions or kind.element not in NARROW:
        return f"{name} * base"
    return f"({kind.wide}){name} * base"


def _round_half(name: str, dialect: Dialect) -> str:
    """Return the rounding of a float to a half, held as a float: needs no ``cl_khr_fp16``."""
    width = name[len(name.rstrip("0123456789")) :]
    source = "double" if "double" in name else "float"
    if not dialect.own_functions:
        return _round_half_c(
            name, _Kind(dialect, ElementType(f"float{64 if source == 'double' else 32}"), int(width or 1))
        )
    vector = width or ""
    return (
        f"static inline float{vector} {name}({source}{vector} a)\n{{\n"
        f"    ushort{vector} bits;\n"
        f"    vstore_half{vector}_rte(a, 0, (half *)&bits);\n"
        f"    return vload_half{vector}(0, (half *)&bits);\n}}\n"
    )


def _round_half_c(name: str, source: _Kind) -> str:
    target = _Kind(source.dialect, ElementType.FLOAT32, source.width)
    value = f"(float)({source.dialect.half})a"
    if source.width > 1:
        value = f"__builtin_convertvector(__builtin_convertvector(a, float16x{source.width}), {target})"
    return f"static inline {target} {name}({source} a) {{ return {value}; }}\n"


def _moved_half(name: str, dialect: Dialect) -> str:
    """Return the load or store of halves at any address, by way of their bits in a variable."""
    width = name[len(name.rstrip("0123456789")) :]
    if not dialect.own_functions:
        return _moved(name, _Kind(dialect, ElementType.FLOAT16, int(width)))
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


def _moved(name: str, kind: _Kind) -> str:
    """Return a load or a store of C: neighbouring elements, or some with a distance."""
    is_half = kind.element is ElementType.FLOAT16
    element = kind.dialect.half if is_half else str(kind.scalar)
    held = f"float16x{kind.width}" if is_half else str(kind)
    read = f"__builtin_convertvector(v, {kind})" if is_half else "v"
    written = f"__builtin_convertvector(a, {held})" if is_half else "a"
    lanes = f"for (int l = 0; l < {kind.width}; l++)"
    match name.partition("_")[0]:
        case "load":
            return (
                f"static inline {kind} {name}(const {element} *from)\n{{\n"
                f"    {held} v;\n    memcpy(&v, from, sizeof v);\n    return {read};\n}}\n"
            )
        case "store":
            return (
                f"static inline void {name}({element} *to, {kind} a)\n{{\n"
                f"    const {held} v = {written};\n    memcpy(to, &v, sizeof v);\n}}\n"
            )
        case "gather":
            items = ", ".join(f"from[{_times(k)}]" for k in range(kind.width))
            return (
                f"static inline {kind} {name}(const {element} *from, int64_t step)\n{{\n"
                f"    return ({kind}){{{items}}};\n}}\n"
            )
        case _:
            return (
                f"static inline void {name}({element} *to, int64_t step, {kind} a)\n{{\n"
                f"    {lanes}\n        to[l * step] = a[l];\n}}\n"
            )


def _times(k: int) -> str:
    return ("0", "step")[k] if k < 2 else f"{k} * step"


def _splat(name: str, kind: _Kind) -> str:
    items = ", ".join(["a"] * kind.width)
    return f"static inline {kind} {name}({kind.scalar} a) {{ return ({kind}){{{items}}}; }}\n"


def _lanes(name: str, kind: _Kind) -> str:
    """Return 0, 1, 2, ... as a vector."""
    items = ", ".join(map(str, range(kind.width)))
    return f"static inline {kind} {name}(void) {{ return ({kind}){{{items}}}; }}\n"


def _selected(name: str, kind: _Kind) -> str:
    bits = kind.mask
    a, b = (bits.reinterpreted(side) for side in "ab")
    value = kind.reinterpreted(f"(mask & {a}) | (~mask & {b})")
    return f"static inline {kind} {name}({bits} mask, {kind} a, {kind} b) {{ return {value}; }}\n"


def _absolute(name: str, kind: _Kind) -> str:
    return _one_line(name, kind, "a", f"a < 0 ? ({kind})(0 - ({kind.wide})a) : a")


def _reciprocal_root(name: str, kind: _Kind) -> str:
    return _one_line(name, kind, "a", _in_c("1 / sqrt(a)", kind))


def _in_c(body: str, kind: _Kind) -> str:
    """Return a formula with the functions of the library as C calls them for a type."""
    functions = "|".join(_library())
    return re.sub(
        rf"\b({functions})(?=\()",
        lambda found: kind.dialect.function(found[1], kind.element, kind.width),
        body,
    )


def _lane_by_lane(name: str, family: str, kind: _Kind) -> str:
    """Return a function of vectors of C by that of scalars."""
    two = _library().get(family, 1 if family in _formulas() or family == "abs" else 2) == 2
    scalar = (
        kind.dialect.function(family, kind.element, 1) if family in _library() else f"{family}_{kind.scalar}"
    )
    arguments = "a[l], b[l]" if two else "a[l]"
    return (
        f"static inline {kind} {name}({kind} a{f', {kind} b' if two else ''})\n{{\n"
        f"    for (int l = 0; l < {kind.width}; l++)\n"
        f"        a[l] = {scalar}({arguments});\n"
        "    return a;\n}\n"
    )


_VECTORS = frozenset(
    [
        *("wrap_add", "wrap_sub", "wrap_mul", "wrap_neg", "nan_max", "nan_min", "max", "min"),
        *("splat", "select", "lanes", "load", "store", "gather", "scatter"),
    ]
)
"""Helpers of C that work on whole vectors; the others do so element by element."""

_WRITERS: dict[str, Callable[[str, _Kind], str]] = {
    "safe_div": _safe_division,
    "safe_rem": _safe_division,
    "safe_shl": _shift,
    "safe_shr": _shift,
    "nan_max": _nan_extreme,
    "nan_min": _nan_extreme,
    "integer_pow": _integer_pow,
    "max": _extreme,
    "min": _extreme,
    "abs": _absolute,
    "rsqrt": _reciprocal_root,
    "splat": _splat,
    "select": _selected,
    "lanes": _lanes,
    "load": _moved,
    "store": _moved,
    "gather": _moved,
    "scatter": _moved,
}
