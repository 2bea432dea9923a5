"""Functions that C programs call: those of the library, those that polyhedral tools define, and the
file's own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import islpy as isl
from pycparser import c_ast

from polyloom.diagnostics import Span
from polyloom.frontends.c.scope.names import Defined
from polyloom.frontends.c.syntax.faults import NotAffine
from polyloom.ir.expressions import BinaryOp, UnaryOp

_U, _B = UnaryOp, BinaryOp

UNARY = {
    "sin": _U.SIN,
    "cos": _U.COS,
    "tan": _U.TAN,
    "asin": _U.ASIN,
    "acos": _U.ACOS,
    "atan": _U.ATAN,
    "sinh": _U.SINH,
    "cosh": _U.COSH,
    "tanh": _U.TANH,
    "exp": _U.EXP,
    "exp2": _U.EXP2,
    "log": _U.LOG,
    "log2": _U.LOG2,
    "log10": _U.LOG10,
    "sqrt": _U.SQRT,
    "cbrt": _U.CBRT,
    "erf": _U.ERF,
    "fabs": _U.ABS,
    "floor": _U.FLOOR,
    "ceil": _U.CEIL,
    "trunc": _U.TRUNC,
    "rint": _U.ROUND,
    "nearbyint": _U.ROUND,
}
"""Functions of ``math.h`` with one argument; a final ``f`` makes them ``float``."""

BINARY = {
    "pow": _B.POWER,
    "fmod": _B.REMAINDER,
    "atan2": _B.ATAN2,
    "hypot": _B.HYPOT,
    "fmax": _B.FMAX,
    "fmin": _B.FMIN,
}
"""Functions of ``math.h`` with two arguments; a final ``f`` makes them ``float``."""

SPECIAL = ("round", "fdim", "fma", "isnan")
"""Functions of ``math.h`` that are made of others."""

EXTREMA = {
    "min": _B.MINIMUM,
    "max": _B.MAXIMUM,
    "imin": _B.MINIMUM,
    "imax": _B.MAXIMUM,
    "umin": _B.MINIMUM,
    "umax": _B.MAXIMUM,
}
"""Names that pet and polyhedral code use without a definition."""


def floor_quotient(value: isl.PwAff, divisor: isl.PwAff) -> isl.PwAff:
    """Return the greatest integer not above the quotient."""
    return value.div(divisor).floor()


def _modulo(value: isl.PwAff, divisor: isl.PwAff) -> isl.PwAff:
    return value.sub(divisor.mul(floor_quotient(value, divisor)))


_MIN: Callable[[isl.PwAff, isl.PwAff], isl.PwAff] = lambda a, b: a.min(b)  # noqa: E731
_MAX: Callable[[isl.PwAff, isl.PwAff], isl.PwAff] = lambda a, b: a.max(b)  # noqa: E731

AFFINE_FUNCTIONS: dict[str, Callable[[isl.PwAff, isl.PwAff], isl.PwAff]] = {
    "min": _MIN,
    "imin": _MIN,
    "umin": _MIN,
    "max": _MAX,
    "imax": _MAX,
    "umax": _MAX,
    "floord": floor_quotient,
    "intFloor": floor_quotient,
    "ceild": lambda a, b: a.div(b).ceil(),
    "intCeil": lambda a, b: a.div(b).ceil(),
    "intMod": _modulo,
}
"""Functions of two integers that polyhedral code generators print; the divisor is a constant."""


def affine_function(name: str, arguments: Sequence[isl.PwAff], span: Span | None) -> isl.PwAff:
    """Return the value of one of ``AFFINE_FUNCTIONS``. Errors: ``NotAffine``."""
    if len(arguments) != 2:
        raise NotAffine(span, f"`{name}` takes two arguments")
    divides = name not in EXTREMA
    if divides and not all(aff.is_cst() for _, aff in arguments[1].get_pieces()):
        raise NotAffine(span, f"`{name}` divides by what is no constant")
    return AFFINE_FUNCTIONS[name](arguments[0], arguments[1])


def parameters_of(defined: Defined) -> list[c_ast.Decl]:
    """Return the declared parameters, ``(void)`` being none."""
    listed = defined.declaration.args
    return [d for d in (listed.params if listed is not None else []) if isinstance(d, c_ast.Decl)]


def returned(defined: Defined) -> c_ast.Node | None:
    """Return ``e`` where the function's body is ``{ return e; }``, else None.

    ``if (c) return a; return b;`` and its like are ``{ return c ? (T)a : (T)b; }``, T being the type that the
    function returns.
    """
    if defined.body is None:
        return None
    items = defined.body.body.block_items or []
    if len(items) == 1 and isinstance(items[0], c_ast.Return):
        return items[0].expr
    result = c_ast.Typename(None, [], None, defined.declaration.type)
    return _chosen(items, result)


def _chosen(items: Sequence[c_ast.Node], result: c_ast.Typename) -> c_ast.Node | None:
    """Return what a block returns that holds nothing but choices and returns; None for others."""
    first = next((n for n in items if not isinstance(n, (c_ast.EmptyStatement, c_ast.Pragma))), None)
    rest = items[items.index(first) + 1 :] if first is not None else ()
    match first:
        case c_ast.Return(expr=expr) if expr is not None:
            return c_ast.Cast(result, expr, expr.coord)
        case c_ast.Compound(block_items=inner):
            return _chosen([*(inner or ()), *rest], result)
        case c_ast.If(cond=cond, iftrue=then, iffalse=otherwise):
            before = _chosen([then], result)
            after = _chosen([*([] if otherwise is None else [otherwise]), *rest], result)
            if before is None or after is None:
                return None
            return c_ast.TernaryOp(cond, before, after, first.coord)
        case _:
            return None
