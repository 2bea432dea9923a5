"""Small functions of OpenCL C and C for what these leave open: overflow, division by zero, NaN, halves.

Emitted code calls them by name (``wrap_add_int``, ``nan_max_float16``: sixteen floats; in C
``nan_max_float32x16``), which a dialect notes; ``helper_functions`` writes the definitions of those. All but
``integer_pow`` cost an instruction or two. C has more of them: what OpenCL has for vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from polyloom.ir.expressions import CompareOp
from polyloom.ir.scalar_functions.function import BINARY, UNARY
from polyloom.ir.scalar_functions.spelling import Call, Formula
from polyloom.ir.types import ElementType
from polyloom.ir.value_ranges import AS_UNSIGNED
from polyloom.mdh.print.dialect import (
    ANY_LANE,
    COMPARED,
    ENDS,
    INTERLEAVED,
    LOADED_IN_TURN,
    NARROW,
    ROUND_HALF,
    SHORTS_MULTIPLIED,
    TURNED,
    WIDENED,
    Dialect,
)
from polyloom.mdh.print.library.kinds import Kind, one_line
from polyloom.mdh.print.library.moves import (
    half,
    interleaved_load,
    interleaved_store,
    moved,
    moved_half,
    turned,
)
from polyloom.mdh.print.library.quick_functions import PREFIX, Names, quick_function
from polyloom.mdh.print.library.streamed_stores import streamed
from polyloom.mdh.print.library.x86 import (
    absolute,
    any_of_lanes,
    chosen_extreme,
    compared,
    extreme,
    shorts_multiplied,
    square_root,
    widened,
)
from polyloom.mdh.print.needs import Helper, Needs, all_needs


def helper_functions(needs: Needs, dialect: Dialect) -> str:
    """Return the definitions of noted helpers, and of those that they call; empty where there are none.

    The types of vectors come first where a language lacks them, and a function before what calls it.
    """
    return definitions(needs, dialect)[0]


def definitions(needs: Needs, dialect: Dialect, earlier: Needs | None = None) -> tuple[str, Needs]:
    """Return the definitions of noted helpers and types, and what these need: headers.

    ``earlier``: those in front of them.
    """
    found: dict[Helper, _Definition] = {}
    if earlier is not None:
        for helper in earlier.helpers:
            _define(helper, dialect, found)
    before = set(found)
    for helper in sorted(needs.helpers, key=lambda h: _name(h, dialect)):
        _define(helper, dialect, found)
    whole = all_needs([needs, *(d.needs for d in found.values())])
    types = "" if dialect.own_functions else _vector_types(whole)
    texts = (d.text for helper, d in found.items() if helper not in before)
    return types + "".join(f"{text}\n" for text in texts), whole


@dataclass(frozen=True)
class _Definition:
    text: str
    needs: Needs


def _define(helper: Helper, dialect: Dialect, found: dict[Helper, _Definition]) -> None:
    """Add the definition of a helper, behind those of what it calls."""
    if helper in found:
        return
    noting = dialect.noting()
    text, needs = _definition(helper, noting), noting.noted
    for other in needs.helpers:
        if other != helper:
            _define(other, dialect, found)
    found[helper] = _Definition(text, needs)


def _name(helper: Helper, dialect: Dialect) -> str:
    return dialect.noting().helper(*helper)


def formulas() -> dict[str, Formula]:
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


def _vector_types(needs: Needs) -> str:
    """Return the types of vectors that were noted."""
    lines = (
        f"typedef {element} {name} __attribute__((vector_size({size})));\n"
        for name, (element, size) in sorted(needs.vectors.items())
    )
    return "".join([*lines, "\n"]) if needs.vectors else ""


def _definition(helper: Helper, dialect: Dialect) -> str:
    family, element, width = helper
    if family in _OF_INTEGERS:
        return _OF_INTEGERS[family].format(
            int=dialect.type(ElementType.INT64), function=dialect.function_head
        )
    name, kind = dialect.helper(*helper), Kind(dialect, element, width)
    if family == ROUND_HALF:
        return _round_half(name, kind)
    if element is ElementType.FLOAT16:
        return moved_half(name, family, kind)
    if family.startswith(WIDENED):
        return widened(name, ElementType(family.removeprefix(WIDENED)), kind)
    if family.startswith(COMPARED):
        operator, source = family.removeprefix(COMPARED).split("_")
        return compared(name, CompareOp[operator], ElementType(source), kind)
    if family.startswith(PREFIX):
        return quick_function(name, family, element, _names(family, kind))
    if not dialect.own_functions and width > 1 and family not in _VECTORS:
        plain = _lane_by_lane(name, family, kind)
        return square_root(name, kind, plain) if family == "sqrt" else plain
    if family in formulas():
        return one_line(name, kind, "a", _filled(formulas()[family].body, kind))
    return _WRITERS[family](name, family, kind)


def _names(family: str, kind: Kind) -> Names:
    """Return what a quick function needs, all of which is noted: no more than it does."""
    dialect, element, width = kind.dialect, kind.element, kind.width
    function = family.removeprefix(PREFIX)
    turns, by_tail = function in ("sin", "cos"), function == "erf" and element is ElementType.FLOAT64
    by_exp = function in ("sigmoid", "erf", "erfc", "tanh") and not by_tail
    return Names(
        kind=str(kind),
        mask=str(kind.mask),
        doubles=dialect.type(ElementType.FLOAT64, width) if turns else "",
        select=dialect.helper("select", element, width),
        exp=dialect.helper(f"{PREFIX}exp", element, width) if by_exp else "",
        erfc=dialect.helper(f"{PREFIX}erfc", element, width) if by_tail else "",
        library=dialect.function(function, element, 1) if turns else "",
        lanes=width,
    )


_OF_INTEGERS = {
    "floor_div": """{function} {int} floor_div({int} a, {int} b)
{{
    {int} q = a / b;
    return q - (a % b != 0 && (a < 0) != (b < 0));
}}
""",
    "lesser": "{function} {int} lesser({int} a, {int} b) {{ return a < b ? a : b; }}\n",
    "greater": "{function} {int} greater({int} a, {int} b) {{ return a > b ? a : b; }}\n",
}


def _wrapping(name: str, family: str, kind: Kind) -> str:
    """Return integer arithmetic by way of unsigned numbers, whose overflow is defined in C."""
    sign = {"add": "+", "sub": "-", "mul": "*", "neg": "-"}[family.removeprefix("wrap_")]
    parameters = "a" if family == "wrap_neg" else "a b"
    if kind.width > 1:
        a, b = kind.unsigned.reinterpreted("a"), kind.unsigned.reinterpreted("b")
    else:
        a, b = f"({kind.wide})a", f"({kind.wide})b"
    value = f"-{a}" if family == "wrap_neg" else f"{a} {sign} {b}"
    result = kind.reinterpreted(value) if kind.width > 1 else f"({kind})({value})"
    return one_line(name, kind, parameters, result)


def _plain_absolute(name: str, family: str, kind: Kind) -> str:
    """Return the absolute value of an integer that is not the lowest one."""
    return one_line(name, kind, "a", f"({kind})(a < 0 ? -a : a)")


def _safe_division(name: str, family: str, kind: Kind) -> str:
    """Return division where 0 divides to 0, and the lowest number by -1 wraps."""
    is_quotient = family == "safe_div"
    sign, zero, one = "/" if is_quotient else "%", f"({kind})(0)", f"({kind})(1)"
    lines = [f"{kind.dialect.function_head} {kind} {name}({kind} a, {kind} b)", "{"]
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


def _negated(kind: Kind) -> str:
    if kind.width > 1:
        return kind.reinterpreted(f"-{kind.unsigned.reinterpreted('a')}")
    return f"({kind})(-({kind.wide})a)"


def _shift(name: str, family: str, kind: Kind) -> str:
    """Return a shift by any count: all bits out leaves 0, or the sign."""
    inside = (
        f"(b >= ({kind})(0)) & (b < ({kind})({kind.bits}))" if kind.signed else f"b < ({kind})({kind.bits})"
    )
    rest = f"({kind})(0)"
    if family == "safe_shr":
        shifted = "a >> count"
        rest = f"(a < ({kind})(0) ? ({kind})(-1) : ({kind})(0))" if kind.signed else rest
    elif kind.width > 1:
        bits = kind.unsigned
        shifted = kind.reinterpreted(f"{bits.reinterpreted('a')} << {bits.reinterpreted('count')}")
    else:
        shifted = f"({kind.wide})a << count"
    return (
        f"{kind.dialect.function_head} {kind} {name}({kind} a, {kind} b)\n{{\n"
        f"    {kind} count = {inside} ? b : ({kind})(0);\n"
        f"    return {inside} ? ({kind})({shifted}) : {rest};\n}}\n"
    )


def _nan_extreme(name: str, family: str, kind: Kind) -> str:
    """Return the larger or smaller of two floats; NaN propagates."""
    sign = ">" if family == "nan_max" else "<"
    value = kind.chosen(f"((a != a) | (a {sign} b))", "a", "b")
    return one_line(name, kind, "a b", value)


def _number_extreme(name: str, family: str, kind: Kind) -> str:
    """Return the larger or smaller of two vectors of floats: the other one where one is NaN, as C's ``fmax``.

    Of two zeros it is ``b``, as in glibc.
    """
    chosen = kind.dialect.helper("larger" if family == "fmax" else "smaller", kind.element, kind.width)
    return one_line(name, kind, "a b", kind.chosen("b != b", "a", f"{chosen}(a, b)"))


def _integer_pow(name: str, family: str, kind: Kind) -> str:
    """Return a power by repeated squaring, wrapping; a negative exponent gives 1 / a**-b towards zero."""
    one, zero, unsigned = f"({kind})(1)", f"({kind})(0)", kind.unsigned
    times = partial(_times_base, unsigned)
    text = [
        f"{kind.dialect.function_head} {kind} {name}({kind} a, {kind} b)",
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


def _times_base(kind: Kind, name: str) -> str:
    """Return ``name * base``; in C not of ``int``, to which it converts small unsigned numbers."""
    if kind.dialect.own_functions or kind.element not in NARROW:
        return f"{name} * base"
    return f"({kind.wide}){name} * base"


def _round_half(name: str, source: Kind) -> str:
    """Return the rounding of a float to a half, held as a float: needs no ``cl_khr_fp16``."""
    dialect, width = source.dialect, source.width
    target = Kind(dialect, ElementType.FLOAT32, width)
    if not dialect.own_functions:
        value = f"(float)({dialect.half})a"
        if width > 1:
            value = f"__builtin_convertvector(__builtin_convertvector(a, {dialect.halves(width)}), {target})"
        return f"{source.dialect.function_head} {target} {name}({source} a) {{ return {value}; }}\n"
    vector = "" if width == 1 else str(width)
    return (
        f"{source.dialect.function_head} {target} {name}({source} a)\n{{\n"
        f"    ushort{vector} bits;\n"
        f"    vstore_half{vector}_rte(a, 0, (half *)&bits);\n"
        f"    return vload_half{vector}(0, (half *)&bits);\n}}\n"
    )


def _splat(name: str, family: str, kind: Kind) -> str:
    items = ", ".join(["a"] * kind.width)
    return f"static inline {kind} {name}({kind.scalar} a) {{ return ({kind}){{{items}}}; }}\n"


def _lanes(name: str, family: str, kind: Kind) -> str:
    """Return 0, 1, 2, ... as a vector."""
    items = ", ".join(map(str, range(kind.width)))
    return f"static inline {kind} {name}(void) {{ return ({kind}){{{items}}}; }}\n"


def _selected(name: str, family: str, kind: Kind) -> str:
    bits = kind.mask
    a, b = (bits.reinterpreted(side) for side in "ab")
    value = kind.reinterpreted(f"(mask & {a}) | (~mask & {b})")
    return f"static inline {kind} {name}({bits} mask, {kind} a, {kind} b) {{ return {value}; }}\n"


def _without_sign(name: str, family: str, kind: Kind) -> str:
    """Return the absolute value of a vector of floats."""
    bits = Kind(kind.dialect, AS_UNSIGNED[kind.mask.element], kind.width)
    rest = bits.cast(f"{(1 << bits.bits - 1) - 1:#x}")
    return one_line(name, kind, "a", kind.reinterpreted(f"{bits.reinterpreted('a')} & {rest}"))


def _bfloat16(name: str, family: str, kind: Kind) -> str:
    """Return the rounding of a float to bfloat16, to nearest even, in its own type; NaN stays."""
    dialect, width = kind.dialect, kind.width
    if kind.element is ElementType.FLOAT64:
        narrow, inner = (
            dialect.type(ElementType.FLOAT32, width),
            dialect.helper(family, ElementType.FLOAT32, width),
        )
        if width == 1:
            return one_line(name, kind, "a", f"{inner}(({narrow})a)")
        rounded = f"{inner}({dialect.convert.format(kind=narrow, value='a')})"
        return one_line(name, kind, "a", dialect.convert.format(kind=kind, value=rounded))
    bits = Kind(dialect, ElementType.UINT32, width)
    lines = [f"{dialect.function_head} {kind} {name}({kind} a)", "{"]
    if width == 1:
        lines += [f"    union {{ {kind} value; {bits} bits; }} u;", "    u.value = a;"]
        lines += ["    u.bits = (u.bits + 0x7fffu + ((u.bits >> 16) & 1u)) & 0xffff0000u;"]
        value = "u.value"
    else:
        lines += [f"    {bits} bits = {bits.reinterpreted('a')};"]
        lines += ["    bits = (bits + 0x7fffu + ((bits >> 16) & 1u)) & 0xffff0000u;"]
        value = kind.reinterpreted("bits")
    return "\n".join([*lines, f"    return {kind.chosen('a != a', 'a', value)};", "}"]) + "\n"


def _reciprocal_root(name: str, family: str, kind: Kind) -> str:
    return one_line(name, kind, "a", _filled("1 / {sqrt}(a)", kind))


class _Functions(dict[str, str]):
    """Functions of the library as a language calls them for a type, noted as they are asked for."""

    def __init__(self, kind: Kind) -> None:
        super().__init__(one=kind.cast("1"))
        self.kind = kind

    def __missing__(self, name: str) -> str:
        return self.kind.dialect.function(name, self.kind.element, self.kind.width)


def _filled(body: str, kind: Kind) -> str:
    """Return a formula for a type: ``{one} / ({one} + {exp}(-a))``."""
    return body.format_map(_Functions(kind))


def _lane_by_lane(name: str, family: str, kind: Kind) -> str:
    """Return a function of vectors of C by that of scalars."""
    two = _library().get(family, 1 if family in formulas() else 2) == 2
    scalar = kind.dialect.function if family in _library() else kind.dialect.helper
    arguments = "a[l], b[l]" if two else "a[l]"
    return (
        f"static inline {kind} {name}({kind} a{f', {kind} b' if two else ''})\n{{\n"
        f"    for (int l = 0; l < {kind.width}; l++)\n"
        f"        a[l] = {scalar(family, kind.element, 1)}({arguments});\n"
        "    return a;\n}\n"
    )


_VECTORS = frozenset(
    [
        *(
            "wrap_add",
            "wrap_sub",
            "wrap_mul",
            "wrap_neg",
            "nan_max",
            "nan_min",
            "max",
            "min",
            "larger",
            "smaller",
        ),
        *(
            "fmax",
            "fmin",
            "abs",
            "fabs",
            "to_bfloat16",
            "splat",
            "select",
            "lanes",
            "load",
            "store",
            "stream",
            "gather",
            "scatter",
        ),
        *INTERLEAVED.values(),
        *LOADED_IN_TURN.values(),
        *ENDS,
        TURNED,
        ANY_LANE,
        SHORTS_MULTIPLIED,
    ]
)
"""Helpers of C that work on whole vectors; the others do so element by element."""

_WRITERS: dict[str, Callable[[str, str, Kind], str]] = {
    "wrap_add": _wrapping,
    "wrap_sub": _wrapping,
    "wrap_mul": _wrapping,
    "wrap_neg": _wrapping,
    "safe_div": _safe_division,
    "safe_rem": _safe_division,
    "safe_shl": _shift,
    "safe_shr": _shift,
    "nan_max": _nan_extreme,
    "nan_min": _nan_extreme,
    "fmax": _number_extreme,
    "fmin": _number_extreme,
    "integer_pow": _integer_pow,
    "max": extreme,
    "min": extreme,
    "larger": chosen_extreme,
    "smaller": chosen_extreme,
    "abs": absolute,
    "plain_abs": _plain_absolute,
    "fabs": _without_sign,
    "rsqrt": _reciprocal_root,
    "to_bfloat16": _bfloat16,
    "splat": _splat,
    "select": _selected,
    "lanes": _lanes,
    "load": moved,
    "store": moved,
    "gather": moved,
    "scatter": moved,
    **dict.fromkeys(INTERLEAVED.values(), interleaved_store),
    **dict.fromkeys(LOADED_IN_TURN.values(), interleaved_load),
    **dict.fromkeys(ENDS, half),
    TURNED: turned,
    ANY_LANE: any_of_lanes,
    SHORTS_MULTIPLIED: shorts_multiplied,
    "stream": streamed,
}
"""What writes the definition of a helper."""
