"""Functions of floats for whole vectors of C, by polynomials: the library's would be called lane by lane.

    exp(a)      2^n (1 + r + r^2 p(r)), where a = n ln 2 + r and |r| <= ln 2 / 2
    log(a)      n ln 2 + log(1 + f), where a = 2^n (1 + f) and 1 + f is from the root of 1/2 to that of 2;
                in double by s = f / (2 + f), of which log(1 + f) is an odd function
    sin, cos(a) polynomials of r, where a = n pi / 2 + r; large a are left to the library. Up to 1e5 no double
                is so near to n pi / 2 that three parts of pi / 2 do not give r
    erf(a)      a p(a^2) up to 1; from there on 1 - exp(-q(|a|)), in double 1 - erfc(|a|), with the sign of a
    erfc(a)     exp(-a^2) p(q) / (1 + 2 a), where q = (a - c) / (a + c); 2 minus that of -a where a < 0
    tanh(a)     a + a^3 p(a^2) up to 0.63; from there on 1 - 2 / (exp(2 |a|) + 1), with the sign of a
    sigmoid(a)  1 / (1 + exp(-a))

The coefficients are minimax fits (Lawson's iteration on Chebyshev nodes, in double, rounded once), those of
erfc, and of erf and tanh in double, go through Chebyshev nodes (in 60 digits, rounded once). Errors, in units
in the last place, over all floats of the tests: ``tests/mdh/print`` states them. Several roundings add
up in erfc, to 6. NaN, infinities and the ends of the range are the library's.

Source: Cody and Waite, Software Manual for the Elementary Functions (reduction); Shepherd and Laframboise,
Chebyshev approximation of (1 + 2x) exp(x^2) erfc x (Math. Comp. 36, 1981). Not in the papers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from polyloom.ir.types import ElementType

PREFIX = "quick_"
"""Of the families of helpers."""

FUNCTIONS = {
    ElementType.FLOAT32: frozenset({"exp", "log", "sin", "cos", "erf", "erfc", "tanh", "sigmoid"}),
    ElementType.FLOAT64: frozenset({"exp", "log", "sin", "cos", "erf", "erfc", "tanh", "sigmoid"}),
}

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
_ERFC = (
    1.2530080080032349,
    -0.13562114536762238,
    -0.04756231978535652,
    0.12964671850204468,
    -0.11927191913127899,
    0.0682930275797844,
    -0.023794664070010185,
    0.0025768564082682133,
    0.0020017712377011776,
    -0.000788120727520436,
    -0.0002735960006248206,
)
_ERF_OF_DOUBLE = (
    1.1283791670955126,
    -0.37612638903183543,
    0.11283791670945006,
    -0.02686617064323777,
    0.0052239776071164225,
    -0.0008548325975389692,
    0.00012055294904839707,
    -1.492473690741966e-05,
    1.6447424703317362e-06,
    -1.6208483801871705e-07,
    1.3720064546777686e-08,
    -7.795898827002142e-10,
)
_ERFC_OF_DOUBLE = (
    1.2329951186255526,
    -0.1396211168405629,
    0.01537965210262074,
    0.06809705425473732,
    -0.10103906603635213,
    0.09373283499679412,
    -0.06633036581152939,
    0.03716751556249286,
    -0.016197734059115006,
    0.005031969755895426,
    -0.00075777334141333,
    -0.00019925550755614952,
    0.000150622243948303,
    -2.4403169244974074e-05,
    -1.1224789135154701e-05,
    5.7178872846321855e-06,
    3.0135049944875397e-07,
    -8.351619688696847e-07,
    6.270727157198311e-08,
    1.1534943745754157e-07,
    -7.71541861441783e-09,
    -1.3670989863347383e-08,
    -1.8206098680308682e-09,
)
_TANH = (
    -0.3333333134651184,
    0.13333190977573395,
    -0.05394488945603371,
    0.02169015444815159,
    -0.008150697685778141,
    0.002118017990142107,
)
_TANH_OF_DOUBLE = (
    -0.3333333333333333,
    0.1333333333333296,
    -0.05396825396781054,
    0.021869488515352347,
    -0.008863235024306106,
    0.003592120760870841,
    -0.0014557676940659455,
    0.000589622148687206,
    -0.0002374675659822325,
    9.23274970808537e-05,
    -3.092912547386467e-05,
    6.354340814859719e-06,
)


_EXP_OF_DOUBLE = (
    0.5,
    0.1666666666666667,
    0.04166666666666667,
    0.008333333333325544,
    0.0013888888888883327,
    0.00019841269876864356,
    2.4801587327007187e-05,
    2.755725283351691e-06,
    2.75572718102198e-07,
    2.5106274733573296e-08,
    2.0915442297780116e-09,
)
_LOG = (
    0.3333333134651184,
    -0.2499999701976776,
    0.20000717043876648,
    -0.16667808592319489,
    0.14249008893966675,
    -0.12425486743450165,
    0.11685719341039658,
    -0.11481477320194244,
    0.06973070651292801,
)
_LOG_OF_DOUBLE = (
    0.666666666666667,
    0.3999999999989819,
    0.28571428626570206,
    0.2222221103781659,
    0.18182896183483102,
    0.15331487235865296,
    0.14619343453517167,
)
_SIN = (-0.166666641831398, 0.008332746103405952, -0.00019587387214414775)
_COS = (0.0416666641831398, -0.0013888300163671374, 2.4547436623834074e-05)
_SIN_OF_DOUBLE = (
    -0.16666666666666666,
    0.008333333333330925,
    -0.00019841269836722418,
    2.755731608381636e-06,
    -2.50511279440138e-08,
    1.5917848524785488e-10,
)
_COS_OF_DOUBLE = (
    0.041666666666666664,
    -0.0013888888888887382,
    2.4801587298743067e-05,
    -2.7557317260007344e-07,
    2.0876143827751e-09,
    -1.1382456763816695e-11,
)


@dataclass(frozen=True, kw_only=True)
class Names:
    """What types and helpers are called in C for one type of vectors.

    ``kind``: the vectors; ``mask``: integers of the same size; ``doubles``: as many doubles; ``select``,
    ``exp``, ``erfc``: helpers; ``library``: the same function of one number; ``lanes``: how many elements.
    """

    kind: str
    mask: str
    doubles: str
    select: str
    exp: str
    erfc: str
    library: str
    lanes: int


def polynomial(coefficients: Sequence[float], variable: str, suffix: str = "f") -> str:
    """Return a polynomial in Horner's form; ``coefficients``: the lowest first."""
    *rest, text = (f"{c!r}{suffix}" for c in coefficients)
    for coefficient in reversed(rest):
        text = f"({text} * {variable} + {coefficient})"
    return text


def quick_function(name: str, family: str, element: ElementType, names: Names) -> str:
    """Return the definition of ``family`` by ``name``, for vectors of floats or doubles."""
    bodies = _DOUBLE_BODIES if element is ElementType.FLOAT64 else _FLOAT_BODIES
    body = bodies[family.removeprefix(PREFIX)].format(**vars(names))
    return f"static inline {names.kind} {name}({names.kind} a)\n{{\n{body}}}\n"


_EXP_BODY = """\
    const {kind} zero = {{0.0f}}, low = zero - 104.0f, high = zero + 89.0f;
    const {kind} x = {select}(a < -104.0f, low, {select}(a > 89.0f, high, a));
    const {kind} shifted = x * 1.44269504f + 12582912.0f; /* an integer in its last bits */
    const {kind} n = shifted - 12582912.0f;
    const {kind} r = x - n * 0.693359375f + n * 2.12194440e-4f;
    const {mask} i = ({mask})shifted - 0x4b400000, half = i >> 1;
    const {kind} one = ({kind})((half + 127) << 23), other = ({kind})((i - half + 127) << 23);
    return (r * r * POLYNOMIAL + r + 1.0f) * one * other;
"""

_EXP_OF_DOUBLE_BODY = """\
    const {kind} zero = {{0.0}}, low = zero - 746.0, high = zero + 710.0;
    const {kind} x = {select}(a < -746.0, low, {select}(a > 710.0, high, a));
    const {kind} shifted = x * 1.4426950408889634 + 6755399441055744.0; /* an integer in its last bits */
    const {kind} n = shifted - 6755399441055744.0;
    const {kind} r = x - n * 0.693147180559663 - n * 2.8235290563031577e-13;
    const {mask} i = ({mask})shifted - 0x4338000000000000, half = i >> 1;
    const {kind} one = ({kind})((half + 1023) << 52), other = ({kind})((i - half + 1023) << 52);
    return (r * r * POLYNOMIAL + r + 1.0) * one * other;
"""

_LOG_BODY = """\
    const {kind} zero = {{0.0f}};
    const {mask} tiny = a < 1.17549435e-38f; /* no normal floats, or none that has a logarithm */
    const {kind} x = {select}(tiny, a * 8388608.0f, a);
    const {mask} i = ({mask})x - 0x3f3504f3, e = i >> 23;
    const {kind} f = ({kind})(({mask})x - (e << 23)) - 1.0f, s = f * f;
    const {kind} n = ({kind})(e + 0x4b400000) - 12582912.0f - {select}(tiny, zero + 23.0f, zero);
    const {kind} found = n * 0.693145752f + (f - (s * 0.5f - (s * f * POLYNOMIAL + n * 1.42860677e-6f)));
    const {kind} end = {select}(a == 0.0f, zero - __builtin_inff(), zero + __builtin_nanf(""));
    return {select}(a > 0.0f, {select}(a < __builtin_inff(), found, a), {select}(a <= 0.0f, end, a));
"""

_LOG_OF_DOUBLE_BODY = """\
    const {kind} zero = {{0.0}};
    const {mask} tiny = a < 2.2250738585072014e-308; /* no normal doubles, or none that has a logarithm */
    const {kind} x = {select}(tiny, a * 18014398509481984.0, a);
    const {mask} i = ({mask})x - 0x3fe6a09e667f3bcd, e = i >> 52;
    const {kind} f = ({kind})(({mask})x - (e << 52)) - 1.0, h = f * f * 0.5, s = f / (2.0 + f), z = s * s;
    const {kind} n = ({kind})(e + 0x4338000000000000) - 6755399441055744.0
            - {select}(tiny, zero + 54.0, zero);
    const {kind} found = n * 0.693147180559663
            + (f - (h - (s * (h + z * POLYNOMIAL) + n * 2.8235290563031577e-13)));
    const {kind} end = {select}(a == 0.0, zero - __builtin_inf(), zero + __builtin_nan(""));
    return {select}(a > 0.0, {select}(a < __builtin_inf(), found, a), {select}(a <= 0.0, end, a));
"""

_TURNS_BODY = """\
    const {mask} sign = {{0}}, signs = sign - 2147483647 - 1;
    const {kind} positive = ({kind})(({mask})a & ~signs), shifted = a * 0.636619772f + 12582912.0f;
    const {mask} far = ~(positive <= 8192.0f), quarters = ({mask})shifted + QUARTERS;
    const {doubles} n = __builtin_convertvector(shifted - 12582912.0f, {doubles});
    const {doubles} turned = __builtin_convertvector(a, {doubles}) - n * 1.5707963267341256;
    const {kind} r = __builtin_convertvector(turned - n * 6.077100506506192e-11, {kind}), s = r * r;
    const {kind} sine = ({kind})(({mask})(r + r * s * SINE) | (({mask})r & signs)); /* -0 of -0 */
    const {kind} cosine = s * s * COSINE - s * 0.5f + 1.0f;
    {kind} found = ({kind})(({mask}){select}(-(quarters & 1), cosine, sine) ^ ((quarters & 2) << 30));
"""

_TURNS_OF_DOUBLE_BODY = """\
    const {mask} sign = {{0}}, signs = sign - 0x7fffffffffffffff - 1;
    const {kind} positive = ({kind})(({mask})a & ~signs);
    const {kind} shifted = a * 0.6366197723675814 + 6755399441055744.0, n = shifted - 6755399441055744.0;
    const {mask} far = ~(positive <= 1e5), quarters = ({mask})shifted + QUARTERS;
    const {kind} first = a - n * 1.5707963267923333, by = n * 2.5633441515839558e-12, second = first - by;
    const {kind} rest = n * 1.0562999066987428e-23 - ((first - second) - by), r = second - rest;
    const {kind} t = (second - r) - rest, s = r * r; /* a is n turns by a quarter, r and t */
    const {kind} sum = r + (r * s * SINE + t * (1.0 - s * 0.5));
    const {kind} sine = ({kind})(({mask})sum | (({mask})r & signs)); /* -0 of -0 */
    const {kind} h = s * 0.5, w = 1.0 - h, cosine = w + (((1.0 - w) - h) + (s * s * COSINE - r * t));
    {kind} found = ({kind})(({mask}){select}(-(quarters & 1), cosine, sine) ^ ((quarters & 2) << 62));
"""

_FAR_BODY = """\
    int64_t any = 0;
    for (int l = 0; l < {lanes}; l++)
        any |= far[l];
    for (int l = 0; l < (any ? {lanes} : 0); l++)
        found[l] = far[l] ? {library}(a[l]) : found[l];
    return found;
"""

_ERFC_BODY = """\
    const {mask} none = {{0}}, sign = ({mask})a & (LOWEST);
    const {kind} positive = ({kind})(({mask})a ^ sign), zero = {{0.0f}};
    const {kind} x = {select}(positive > MOST, zero + MOST, positive), q = (x - CENTRE) / (x + CENTRE);
    const {kind} high = ({kind})(({mask})x & ~LOW_BITS); /* its square is exact */
    const {kind} first = high * high, more = (x - high) * (x + high), square = first + more;
    const {kind} rest = (first - square) + more; /* x * x is square and rest */
    const {kind} power = {exp}(-square);
    const {kind} tail = (power - power * rest) * (POLYNOMIAL / (1.0f + 2.0f * x));
    return {select}(sign < none, 2.0f - tail, tail);
"""

_TWO_SIDES = """\
    const {mask} sign = ({mask})a & (LOWEST);
    const {kind} positive = ({kind})(({mask})a ^ sign), zero = {{0.0f}};
    const {kind} t = {select}(positive > MOST, zero + MOST, positive), s = t * t;
    const {kind} small = SMALL;
    const {kind} large = LARGE;
    return ({kind})(({mask}){select}(positive < LIMIT, small, large) | sign);
"""


def _with(template: str, **values: str) -> str:
    """Return a template with texts in place of its words in capitals."""
    for word, text in values.items():
        template = template.replace(word, text)
    return template


_LOWEST, _LOWEST_OF_DOUBLE = "-2147483647 - 1", "-0x7fffffffffffffff - 1"

_FLOAT_BODIES = {
    "exp": _with(_EXP_BODY, POLYNOMIAL=polynomial(_EXP, "r")),
    "log": _with(_LOG_BODY, POLYNOMIAL=polynomial(_LOG, "f")),
    "sigmoid": "    return 1.0f / (1.0f + {exp}(-a));\n",
    "erf": _with(
        _TWO_SIDES,
        LOWEST=_LOWEST,
        MOST="4.0f",
        SMALL=f"t * {polynomial(_ERF_SMALL, 's')}",
        LARGE="1.0f - {exp}(-" + polynomial(_ERF_LARGE, "t") + ")",
        LIMIT="1.0f",
    ),
    "erfc": _with(
        _ERFC_BODY,
        LOWEST=_LOWEST,
        MOST="10.5f",
        CENTRE="3.0f",
        LOW_BITS="0xfff",
        POLYNOMIAL=polynomial(_ERFC, "q"),
    ),
    "tanh": _with(
        _TWO_SIDES,
        LOWEST=_LOWEST,
        MOST="10.0f",
        SMALL=f"t + t * s * {polynomial(_TANH, 's')}",
        LARGE="1.0f - 2.0f / ({exp}(2.0f * t) + 1.0f)",
        LIMIT="0.63f",
    ),
    **{
        name: _with(
            _TURNS_BODY + _FAR_BODY,
            QUARTERS=quarters,
            COSINE=polynomial(_COS, "s"),
            SINE=polynomial(_SIN, "s"),
        )
        for name, quarters in (("sin", "0"), ("cos", "1"))
    },
}

_DOUBLE_BODIES = {
    "exp": _with(_EXP_OF_DOUBLE_BODY, POLYNOMIAL=polynomial(_EXP_OF_DOUBLE, "r", "")),
    "log": _with(_LOG_OF_DOUBLE_BODY, POLYNOMIAL=polynomial(_LOG_OF_DOUBLE, "z", "")),
    "sigmoid": "    return 1.0 / (1.0 + {exp}(-a));\n",
    "erf": _with(
        _TWO_SIDES,
        LOWEST=_LOWEST_OF_DOUBLE,
        MOST="7.0",
        SMALL=f"t * {polynomial(_ERF_OF_DOUBLE, 's', '')}",
        LARGE="1.0 - {erfc}(t)",
        LIMIT="1.0",
    ),
    "erfc": _with(
        _ERFC_BODY,
        LOWEST=_LOWEST_OF_DOUBLE,
        MOST="28.0",
        CENTRE="4.0",
        LOW_BITS="0x7ffffffL",
        POLYNOMIAL=polynomial(_ERFC_OF_DOUBLE, "q", ""),
    ),
    "tanh": _with(
        _TWO_SIDES,
        LOWEST=_LOWEST_OF_DOUBLE,
        MOST="22.0",
        SMALL=f"t + t * s * {polynomial(_TANH_OF_DOUBLE, 's', '')}",
        LARGE="1.0 - 2.0 / ({exp}(2.0 * t) + 1.0)",
        LIMIT="0.63",
    ),
    **{
        name: _with(
            _TURNS_OF_DOUBLE_BODY + _FAR_BODY,
            QUARTERS=quarters,
            COSINE=polynomial(_COS_OF_DOUBLE, "s", ""),
            SINE=polynomial(_SIN_OF_DOUBLE, "s", ""),
        )
        for name, quarters in (("sin", "0"), ("cos", "1"))
    },
}
