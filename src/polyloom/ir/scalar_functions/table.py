"""The scalar functions: one row each, which is all that any part of the compiler knows of one.

``UnaryOp.EXP`` is such a row; ``add_function`` adds one from outside.
"""

from __future__ import annotations

from math import pi, sqrt

import numpy as np

from polyloom.ir.scalar_functions import error_rules, evaluation, known_values, narrow, sizes, spelling
from polyloom.ir.scalar_functions.evaluation import both_in_float64, in_float64
from polyloom.ir.scalar_functions.function import (
    BinaryForm,
    BinaryFunction,
    Notation,
    OnWafer,
    UnaryForm,
    UnaryFunction,
    add_function,
)
from polyloom.ir.scalar_functions.known_values import at_zero, exact_small, of_both
from polyloom.ir.scalar_functions.rounding import EXACT, PRODUCT, QUOTIENT, ROOT, SUM, Rounding, library
from polyloom.ir.scalar_functions.spelling import (
    Bits,
    Call,
    Defined,
    Formula,
    Guarded,
    Helper,
    Infix,
    Logical,
    Magnitude,
    Prefix,
    Same,
    Spelling,
    Wrapping,
)


def _analysis(
    name: str,
    numpy: evaluation.OfOne,
    *,
    rounding: Rounding,
    error: error_rules.OfOne = error_rules.monotone,
    known: known_values.OfOne = known_values.never,
    size: sizes.OfOne = sizes.same,
    of_positive: bool = False,
    in_lair: bool = False,
    in_c: bool = True,
    opencl: Spelling | None = None,
    wafer: str = "",
) -> UnaryFunction:
    """Return the row of a function of floats that devices compute in many steps; ``wafer``: its C for PEs.

    ``in_c``: whether C has it by this name, as OpenCL C does where ``opencl`` says nothing else.
    """
    return UnaryFunction(
        name=name,
        notation=Notation.CALL,
        in_lair=in_lair,
        c_names=(name,) if in_c else (),
        floats=UnaryForm(numpy=numpy, error=error, opencl=opencl or Call(name, rounded=True)),
        integers=None,
        truths=None,
        rounding=rounding,
        known=known,
        size=size,
        of_positive=of_positive,
        instructions=15.0,
        wafer=OnWafer(
            spelling=Defined(name, ("a",), wafer or f"__builtin_{name}((double)a)", None), operations=32
        ),
    )


def _to_integers(name: str, numpy: np.ufunc, c_names: tuple[str, ...], opencl: str) -> UnaryFunction:
    """Return the row of a function that gives integers, and leaves integers alone."""
    return UnaryFunction(
        name=name,
        notation=Notation.CALL,
        in_lair=True,
        c_names=c_names,
        floats=UnaryForm(numpy=numpy, error=error_rules.monotone, opencl=Call(opencl, rounded=True)),
        integers=UnaryForm(numpy=evaluation.same, error=error_rules.unknown, opencl=Same()),
        truths=None,
        rounding=EXACT,
        known=at_zero(0),
        size=sizes.same,
        of_positive=False,
        instructions=1.0,
        wafer=OnWafer(spelling=Defined(name, ("a",), f"__builtin_{opencl}((double)a)", "a"), operations=32),
    )


def _extreme(
    name: str,
    numpy: np.ufunc,
    floats: Spelling,
    integers: str,
    *,
    known: known_values.OfTwo,
    in_lair: bool,
    sign: str | None,
) -> BinaryFunction:
    """Return the row of a maximum or minimum: ``sign``: of its C for processing elements."""
    return BinaryFunction(
        name=name,
        notation=Notation.CALL,
        in_lair=in_lair,
        c_names=() if in_lair else (name,),
        floats=BinaryForm(numpy=numpy, error=error_rules.extreme, opencl=floats),
        integers=BinaryForm(numpy=numpy, error=error_rules.extreme, opencl=Call(integers, rounded=False)),
        truths=None,
        rounding=EXACT,
        known=known,
        size=sizes.larger,
        instructions=1.0,
        wafer=OnWafer(
            spelling=Defined(name, ("a", "b"), f"a {sign} b || a != a ? a : b", f"a {sign} b ? a : b"),
            operations=1,
        )
        if sign
        else None,
    )


def _bits(
    name: str, notation: Notation, integers: BinaryForm | None, truths: BinaryForm | None, size: sizes.OfTwo
) -> BinaryFunction:
    """Return the row of an operation on bits or on truth values."""
    return BinaryFunction(
        name=name,
        notation=notation,
        in_lair=False,
        c_names=(),
        floats=None,
        integers=integers,
        truths=truths,
        rounding=EXACT,
        known=known_values.never,
        size=size,
        instructions=1.0,
        wafer=None,
    )


class UnaryOp:
    """The functions of one argument: ``Unary(UnaryOp.EXP, x)``."""

    NEGATE = UnaryFunction(
        name="-",
        notation=Notation.SIGN,
        in_lair=False,
        c_names=(),
        floats=UnaryForm(numpy=np.negative, error=error_rules.kept, opencl=Prefix("-")),
        integers=UnaryForm(numpy=np.negative, error=error_rules.kept, opencl=Helper("wrap_neg")),
        truths=None,
        rounding=EXACT,
        known=known_values.negated,
        size=sizes.same,
        of_positive=False,
        instructions=1.0,
        wafer=OnWafer(spelling=Prefix("-"), operations=1),
    )
    EXP = _analysis(
        "exp",
        in_float64(np.exp),
        rounding=library(3.0),
        known=at_zero(1),
        size=sizes.exponential,
        in_lair=True,
    )
    LOG = _analysis(
        "log",
        in_float64(np.log),
        rounding=library(3.0),
        of_positive=True,
        in_lair=True,
    )
    SQRT = _analysis(
        "sqrt",
        np.sqrt,
        rounding=ROOT,
        known=at_zero(0),
        of_positive=True,
        in_lair=True,
    )
    RSQRT = _analysis(
        "rsqrt",
        in_float64(lambda a: 1 / np.sqrt(a)),
        rounding=library(2.0),
        of_positive=True,
        in_lair=True,
        in_c=False,
        wafer="1.0 / __builtin_sqrt((double)a)",
    )
    TANH = _analysis(
        "tanh",
        in_float64(np.tanh),
        rounding=library(5.0),
        error=error_rules.steepest(1.0),
        known=at_zero(0),
        size=sizes.at_most_one,
        in_lair=True,
    )
    SIGMOID = _analysis(
        "sigmoid",
        in_float64(lambda a: 1 / (1 + np.exp(-a))),
        rounding=library(7.0),
        error=error_rules.steepest(0.25),
        size=sizes.at_most_one,
        in_lair=True,
        in_c=False,
        opencl=Formula("sigmoid", "{one} / ({one} + {exp}(-a))"),
        wafer="1.0 / (1.0 + __builtin_exp(-(double)a))",
    )
    ERF = _analysis(
        "erf",
        in_float64(evaluation.erf),
        rounding=library(16.0),
        error=error_rules.steepest(2 / sqrt(pi)),
        known=at_zero(0),
        size=sizes.at_most_one,
        in_lair=True,
    )
    ABS = UnaryFunction(
        name="abs",
        notation=Notation.CALL,
        in_lair=True,
        c_names=("fabs",),
        floats=UnaryForm(numpy=np.abs, error=error_rules.kept, opencl=Call("fabs", rounded=False)),
        integers=UnaryForm(numpy=np.abs, error=error_rules.kept, opencl=Magnitude()),
        truths=None,
        rounding=EXACT,
        known=at_zero(0),
        size=sizes.same,
        of_positive=False,
        instructions=1.0,
        wafer=OnWafer(
            spelling=Defined("abs", ("a",), "__builtin_fabs((double)a)", "a < 0 ? -(int64_t)a : a"),
            operations=1,
        ),
    )
    FLOOR = _to_integers("floor", np.floor, ("floor",), "floor")
    CEIL = _to_integers("ceil", np.ceil, ("ceil",), "ceil")
    ROUND = _to_integers("round", np.rint, ("rint", "nearbyint"), "rint")
    """To the nearest integer, ties to even."""
    TRUNC = _to_integers("trunc", np.trunc, ("trunc",), "trunc")
    BFLOAT16 = narrow.BFLOAT16
    SIN = _analysis(
        "sin",
        in_float64(np.sin),
        rounding=library(4.0),
        error=error_rules.steepest(1.0),
        known=at_zero(0),
        size=sizes.at_most_one,
        in_lair=True,
    )
    COS = _analysis(
        "cos",
        in_float64(np.cos),
        rounding=library(4.0),
        error=error_rules.steepest(1.0),
        known=at_zero(1),
        size=sizes.at_most_one,
        in_lair=True,
    )
    TAN = _analysis(
        "tan",
        in_float64(np.tan),
        rounding=library(5.0),
        error=error_rules.tangent,
        known=at_zero(0),
        in_lair=True,
    )
    ASIN = _analysis(
        "asin",
        in_float64(np.arcsin),
        rounding=library(4.0),
        known=at_zero(0),
        in_lair=True,
    )
    ACOS = _analysis(
        "acos",
        in_float64(np.arccos),
        rounding=library(4.0),
        in_lair=True,
    )
    ATAN = _analysis(
        "atan",
        in_float64(np.arctan),
        rounding=library(5.0),
        error=error_rules.steepest(1.0),
        known=at_zero(0),
        in_lair=True,
    )
    SINH = _analysis(
        "sinh",
        in_float64(np.sinh),
        rounding=library(4.0),
        known=at_zero(0),
        size=sizes.exponential,
        in_lair=True,
    )
    COSH = _analysis(
        "cosh",
        in_float64(np.cosh),
        rounding=library(4.0),
        known=at_zero(1),
        size=sizes.exponential,
        in_lair=True,
    )
    EXP2 = _analysis(
        "exp2",
        in_float64(np.exp2),
        rounding=library(3.0),
        known=at_zero(1),
        size=sizes.exponential,
    )
    LOG2 = _analysis(
        "log2",
        in_float64(np.log2),
        rounding=library(3.0),
        of_positive=True,
    )
    LOG10 = _analysis(
        "log10",
        in_float64(np.log10),
        rounding=library(3.0),
        of_positive=True,
    )
    CBRT = _analysis(
        "cbrt",
        in_float64(np.cbrt),
        rounding=library(2.0),
        known=at_zero(0),
    )
    LOG1P = _analysis(
        "log1p",
        in_float64(np.log1p),
        rounding=library(2.0),
        known=at_zero(0),
    )
    EXPM1 = _analysis(
        "expm1",
        in_float64(np.expm1),
        rounding=library(3.0),
        known=at_zero(0),
        size=sizes.exponential,
    )
    ERFC = _analysis(
        "erfc",
        in_float64(evaluation.erfc),
        rounding=library(16.0),
        error=error_rules.steepest(2 / sqrt(pi)),
        known=at_zero(1),
        size=lambda size: 2.0,
    )
    COMPLEMENT = UnaryFunction(
        name="~",
        notation=Notation.SIGN,
        in_lair=False,
        c_names=(),
        floats=None,
        integers=UnaryForm(numpy=np.invert, error=error_rules.unknown, opencl=Prefix("~")),
        truths=None,
        rounding=EXACT,
        known=known_values.never,
        size=sizes.same,
        of_positive=False,
        instructions=1.0,
        wafer=None,
    )
    """Of integers, bit by bit."""
    NOT = UnaryFunction(
        name="!",
        notation=Notation.NOT,
        in_lair=False,
        c_names=(),
        floats=None,
        integers=None,
        truths=UnaryForm(numpy=np.logical_not, error=error_rules.kept, opencl=Prefix("!")),
        rounding=EXACT,
        known=known_values.never,
        size=sizes.same,
        of_positive=False,
        instructions=1.0,
        wafer=None,
    )
    """Of a truth value."""


class BinaryOp:
    """The functions of two arguments: ``Binary(BinaryOp.ADD, a, b)``."""

    ADD = BinaryFunction(
        name="+",
        notation=Notation.SUM,
        in_lair=False,
        c_names=(),
        floats=BinaryForm(numpy=np.add, error=error_rules.added, opencl=Infix("+")),
        integers=BinaryForm(numpy=np.add, error=error_rules.added, opencl=Wrapping("+", "wrap_add")),
        truths=None,
        rounding=SUM,
        known=of_both(lambda a, b: exact_small(a + b)),
        size=sizes.total,
        instructions=1.0,
        wafer=OnWafer(spelling=Infix("+"), operations=1),
    )
    SUBTRACT = BinaryFunction(
        name="-",
        notation=Notation.SUM,
        in_lair=False,
        c_names=(),
        floats=BinaryForm(numpy=np.subtract, error=error_rules.added, opencl=Infix("-")),
        integers=BinaryForm(numpy=np.subtract, error=error_rules.added, opencl=Wrapping("-", "wrap_sub")),
        truths=None,
        rounding=SUM,
        known=of_both(lambda a, b: exact_small(a - b)),
        size=sizes.total,
        instructions=1.0,
        wafer=OnWafer(spelling=Infix("-"), operations=1),
    )
    MULTIPLY = BinaryFunction(
        name="*",
        notation=Notation.PRODUCT,
        in_lair=False,
        c_names=(),
        floats=BinaryForm(numpy=np.multiply, error=error_rules.multiplied, opencl=Infix("*")),
        integers=BinaryForm(
            numpy=np.multiply, error=error_rules.multiplied, opencl=Wrapping("*", "wrap_mul")
        ),
        truths=None,
        rounding=PRODUCT,
        known=known_values.product,
        size=sizes.product,
        instructions=1.0,
        wafer=OnWafer(spelling=Infix("*"), operations=1),
    )
    DIVIDE = BinaryFunction(
        name="/",
        notation=Notation.PRODUCT,
        in_lair=False,
        c_names=(),
        floats=BinaryForm(numpy=np.true_divide, error=error_rules.divided, opencl=Infix("/")),
        integers=BinaryForm(
            numpy=evaluation.divide_integers,
            error=error_rules.exact_or_unknown,
            opencl=Guarded("/", "safe_div", spelling.positive),
        ),
        truths=None,
        rounding=QUOTIENT,
        known=known_values.quotient,
        size=sizes.first,
        instructions=8.0,
        wafer=OnWafer(
            spelling=Defined("div", ("a", "b"), "a / b", "b == 0 ? 0 : (int64_t)a / b"), operations=8
        ),
    )
    """Of floats: rounded to nearest. Of integers: towards zero, as in C; by zero it gives 0."""
    POWER = BinaryFunction(
        name="pow",
        notation=Notation.CALL,
        in_lair=True,
        c_names=("pow",),
        floats=BinaryForm(
            numpy=both_in_float64(evaluation.power), error=error_rules.power, opencl=Call("pow", rounded=True)
        ),
        integers=BinaryForm(
            numpy=evaluation.power_integers, error=error_rules.exact_or_unknown, opencl=Helper("integer_pow")
        ),
        truths=None,
        rounding=library(16.0),
        known=known_values.never,
        size=sizes.power,
        instructions=40.0,
        wafer=OnWafer(
            spelling=Defined(
                "pow", ("a", "b"), "__builtin_pow((double)a, (double)b)", "pe_integer_power(a, b)"
            ),
            operations=32,
        ),
    )
    MAXIMUM = _extreme(
        "max", np.maximum, Helper("nan_max"), "max", known=of_both(max), in_lair=True, sign=">"
    )
    """NaN propagates."""
    MINIMUM = _extreme(
        "min", np.minimum, Helper("nan_min"), "min", known=of_both(min), in_lair=True, sign="<"
    )
    """NaN propagates."""
    FMAX = _extreme(
        "fmax", np.fmax, Call("fmax", rounded=True), "max", known=known_values.never, in_lair=False, sign=None
    )
    """The operand that is no NaN, as in C."""
    FMIN = _extreme(
        "fmin", np.fmin, Call("fmin", rounded=True), "min", known=known_values.never, in_lair=False, sign=None
    )
    """The operand that is no NaN, as in C."""
    REMAINDER = BinaryFunction(
        name="%",
        notation=Notation.PRODUCT,
        in_lair=False,
        c_names=("fmod",),
        floats=BinaryForm(
            numpy=np.fmod, error=error_rules.exact_or_unknown, opencl=Call("fmod", rounded=True)
        ),
        integers=BinaryForm(
            numpy=evaluation.remainder_of_integers,
            error=error_rules.exact_or_unknown,
            opencl=Guarded("%", "safe_rem", spelling.positive),
        ),
        truths=None,
        rounding=EXACT,
        known=known_values.never,
        size=sizes.first,
        instructions=8.0,
        wafer=None,
    )
    """Of integers, with the sign of the first, as in C (by zero it gives 0); of floats, C's ``fmod``."""
    ATAN2 = BinaryFunction(
        name="atan2",
        notation=Notation.CALL,
        in_lair=False,
        c_names=("atan2",),
        floats=BinaryForm(
            numpy=both_in_float64(np.arctan2), error=error_rules.angle, opencl=Call("atan2", rounded=True)
        ),
        integers=None,
        truths=None,
        rounding=library(6.0),
        known=known_values.never,
        size=sizes.larger,
        instructions=40.0,
        wafer=None,
    )
    HYPOT = BinaryFunction(
        name="hypot",
        notation=Notation.CALL,
        in_lair=False,
        c_names=("hypot",),
        floats=BinaryForm(
            numpy=both_in_float64(np.hypot), error=error_rules.added, opencl=Call("hypot", rounded=True)
        ),
        integers=None,
        truths=None,
        rounding=library(4.0),
        known=known_values.never,
        size=sizes.total,
        instructions=40.0,
        wafer=None,
    )
    BIT_AND = _bits(
        "&",
        Notation.BITS,
        BinaryForm(numpy=np.bitwise_and, error=error_rules.exact_or_unknown, opencl=Bits("&")),
        BinaryForm(numpy=np.bitwise_and, error=error_rules.exact_or_unknown, opencl=Logical("&&")),
        sizes.larger,
    )
    BIT_OR = _bits(
        "|",
        Notation.BITS,
        BinaryForm(numpy=np.bitwise_or, error=error_rules.exact_or_unknown, opencl=Bits("|")),
        BinaryForm(numpy=np.bitwise_or, error=error_rules.exact_or_unknown, opencl=Logical("||")),
        sizes.larger,
    )
    BIT_XOR = _bits(
        "^",
        Notation.BITS,
        BinaryForm(numpy=np.bitwise_xor, error=error_rules.exact_or_unknown, opencl=Bits("^")),
        BinaryForm(numpy=np.bitwise_xor, error=error_rules.exact_or_unknown, opencl=Logical("!=")),
        sizes.larger,
    )
    SHIFT_LEFT = _bits(
        "<<",
        Notation.BITS,
        BinaryForm(
            numpy=evaluation.shift(np.left_shift),
            error=error_rules.exact_or_unknown,
            opencl=Guarded("<<", "safe_shl", spelling.never),
        ),
        None,
        sizes.shifted,
    )
    SHIFT_RIGHT = _bits(
        ">>",
        Notation.BITS,
        BinaryForm(
            numpy=evaluation.shift(np.right_shift),
            error=error_rules.exact_or_unknown,
            opencl=Guarded(">>", "safe_shr", spelling.within_the_bits),
        ),
        None,
        sizes.larger,
    )
    """Of a signed integer: with its sign."""
    AND = _bits(
        "and",
        Notation.AND,
        None,
        BinaryForm(numpy=np.logical_and, error=error_rules.doubtful(False), opencl=Logical("&&")),
        sizes.larger,
    )
    """Of truth values."""
    OR = _bits(
        "or",
        Notation.OR,
        None,
        BinaryForm(numpy=np.logical_or, error=error_rules.doubtful(True), opencl=Logical("||")),
        sizes.larger,
    )
    """Of truth values."""


for _function in (*vars(UnaryOp).values(), *vars(BinaryOp).values()):
    if isinstance(_function, UnaryFunction | BinaryFunction):
        add_function(_function)
