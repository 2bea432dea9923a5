"""Functions of floats for whole vectors of C, by polynomials: the library's would be called lane by lane.

    exp(a)      2^n (1 + r + r^2 p(r)), where a = n ln 2 + r and |r| <= ln 2 / 2
    erf(a)      a p(a^2) up to 1; from there on 1 - exp(-q(|a|)), with the sign of a
    tanh(a)     a + a^3 p(a^2) up to 0.63; from there on 1 - 2 / (exp(2 |a|) + 1), with the sign of a
    sigmoid(a)  1 / (1 + exp(-a))

The coefficients are minimax fits (Lawson's iteration on Chebyshev nodes, in double, rounded once). Errors, in
units in the last place against double precision, over all floats of the tests: ``tests/mdh/print`` states
them. NaN, infinities and the ends of the range are the library's.

Source: Cody and Waite, Software Manual for the Elementary Functions (reduction). Not in the papers.
"""

from __future__ import annotations

from collections.abc import Sequence

PREFIX = "quick_"
"""Of the families of helpers."""

FUNCTIONS = frozenset({"exp", "erf", "tanh", "sigmoid"})

_EXP = (0.5, 0.1666666567325592, 0.04166628, 0.008333504, 0.0013945752, 0.00019789262)
_ERF_SMALL = (
    1.128379225730896,
    -0.3761263787746,
    0.1128378212451935,
    -0.0268654003739357,
    0.00522094545885921,
    -0.000848282885272056,
    0.000112569490738684,
    -9.64151968219085e-06,
)
_ERF_LARGE = (
    -0.0001880363270174712,
    1.1295783519744873,
    0.6332198977470398,
    0.1084185466170311,
    -0.025208238512277603,
    0.004204555414617062,
    -0.0004413351125549525,
    2.168675018765498e-05,
)
_TANH = (
    -0.3333333134651184,
    0.13333190977573395,
    -0.05394488945603371,
    0.02169015444815159,
    -0.008150697685778141,
    0.002118017990142107,
)


def polynomial(coefficients: Sequence[float], variable: str) -> str:
    """Return a polynomial in Horner's form; ``coefficients``: the lowest first."""
    *rest, text = (f"{c!r}f" for c in coefficients)
    for coefficient in reversed(rest):
        text = f"({text} * {variable} + {coefficient})"
    return text


def quick_function(name: str, family: str, kind: str, mask: str, select: str, exp: str) -> str:
    """Return the definition of ``family`` by ``name``, for vectors of the type ``kind`` of floats.

    ``mask``: the type of integers beside it; ``select``, ``exp``: what helpers for this type are called.
    """
    bodies = {
        "exp": _EXP_BODY.format(kind=kind, mask=mask, select=select, p=polynomial(_EXP, "r")),
        "sigmoid": f"    return 1.0f / (1.0f + {exp}(-a));\n",
        "erf": _TWO_SIDES.format(
            kind=kind,
            mask=mask,
            select=select,
            most="4.0f",
            small=f"t * {polynomial(_ERF_SMALL, 's')}",
            large=f"1.0f - {exp}(-{polynomial(_ERF_LARGE, 't')})",
            limit="1.0f",
        ),
        "tanh": _TWO_SIDES.format(
            kind=kind,
            mask=mask,
            select=select,
            most="10.0f",
            small=f"t + t * s * {polynomial(_TANH, 's')}",
            large=f"1.0f - 2.0f / ({exp}(2.0f * t) + 1.0f)",
            limit="0.63f",
        ),
    }
    body = bodies[family.removeprefix(PREFIX)]
    return f"static inline {kind} {name}({kind} a)\n{{\n{body}}}\n"


_EXP_BODY = """\
    const {kind} zero = {{0.0f}}, low = zero - 104.0f, high = zero + 89.0f;
    const {kind} x = {select}(a < -104.0f, low, {select}(a > 89.0f, high, a));
    const {kind} shifted = x * 1.44269504f + 12582912.0f; /* an integer in its last bits */
    const {kind} n = shifted - 12582912.0f;
    const {kind} r = x - n * 0.693359375f + n * 2.12194440e-4f;
    const {mask} i = ({mask})shifted - 0x4b400000, half = i >> 1;
    const {kind} one = ({kind})((half + 127) << 23), other = ({kind})((i - half + 127) << 23);
    return (r * r * {p} + r + 1.0f) * one * other;
"""

_TWO_SIDES = """\
    const {mask} sign = ({mask})a & (-2147483647 - 1);
    const {kind} positive = ({kind})(({mask})a ^ sign), zero = {{0.0f}};
    const {kind} t = {select}(positive > {most}, zero + {most}, positive), s = t * t;
    const {kind} small = {small};
    const {kind} large = {large};
    return ({kind})(({mask}){select}(positive < {limit}, small, large) | sign);
"""
