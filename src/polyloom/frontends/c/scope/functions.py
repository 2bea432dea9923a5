"""Functions that C programs call: of the library, of polyhedral tools, of the file itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import islpy as isl
from pycparser import c_ast

from polyloom.diagnostics import Span
from polyloom.frontends.c.scope.names import Defined
from polyloom.frontends.c.syntax.faults import NotAffine
from polyloom.ir.expressions import BinaryOp
from polyloom.ir.scalar_functions.function import BINARY, UNARY, BinaryFunction, UnaryFunction


def unary_function(name: str) -> UnaryFunction | None:
    """Return the function of ``math.h`` with one argument of that name; a final ``f`` makes it ``float``."""
    return next((function for function in UNARY.values() if name in function.c_names), None)


def binary_function(name: str) -> BinaryFunction | None:
    """Return the function of ``math.h`` with two arguments of that name; a final ``f`` makes it ``float``."""
    return next((function for function in BINARY.values() if name in function.c_names), None)


SPECIAL = ("round", "fdim", "fma", "isnan")
"""Functions of ``math.h`` that are made of others."""


def function_names() -> list[str]:
    """Return the names of the functions of ``math.h``, for ``double`` and ``float``."""
    unary = (name for found in UNARY.values() for name in found.c_names)
    binary = (name for found in BINARY.values() for name in found.c_names)
    return [form for name in (*unary, *binary, *SPECIAL) for form in (name, f"{name}f")]


EXTREMA = {
    "min": BinaryOp.MINIMUM,
    "max": BinaryOp.MAXIMUM,
    "imin": BinaryOp.MINIMUM,
    "imax": BinaryOp.MAXIMUM,
    "umin": BinaryOp.MINIMUM,
    "umax": BinaryOp.MAXIMUM,
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
