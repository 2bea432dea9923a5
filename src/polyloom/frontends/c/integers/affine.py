"""Integer expressions of C as quasi-affine functions of iterators and parameters.

Signed arithmetic is taken not to overflow, as C demands. Arithmetic in unsigned types is taken as it is only
where its result provably does not wrap: sums, differences and multiples on the way to it may. Division and
remainder truncate towards zero. Source: ISO C99, 6.5.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import islpy as isl
from pycparser import c_ast

from polyloom.diagnostics import PolyloomError
from polyloom.frontends.c.integers.invariant_products import product_of_parameters
from polyloom.frontends.c.scope.conversions import wrapped
from polyloom.frontends.c.scope.declarations import type_of_name
from polyloom.frontends.c.scope.functions import AFFINE_FUNCTIONS, affine_function, parameters_of, returned
from polyloom.frontends.c.scope.literals import integer_literal
from polyloom.frontends.c.scope.names import Address, Defined, EnumConstant, Known, Scope, Value, Variable
from polyloom.frontends.c.scope.sets import LARGEST, constant_affine, everywhere, parameter_affine
from polyloom.frontends.c.scope.state import Mode, State
from polyloom.frontends.c.scope.types import Scalar, common, is_unsigned, promoted, value_range
from polyloom.frontends.c.syntax.faults import NotAffine
from polyloom.ir.expressions import Constant
from polyloom.ir.types import ElementType
from polyloom.polyhedra.functions import isl_integer
from polyloom.scop.model import Origin

_DIM = isl.dim_type

INT32 = ElementType.INT32


@dataclass(frozen=True, eq=False)
class Affine:
    """A value, with its type in C.

    ``wraps``: C's value is this one modulo 2 to the number of the unsigned type's bits, which may be another.
    """

    value: isl.PwAff
    type: ElementType
    wraps: bool = False


def affine(node: c_ast.Node, state: State) -> isl.PwAff:
    """Return the value of an expression. Errors: ``NotAffine``, with the part that is at fault."""
    return typed(node, state).value


def typed(node: c_ast.Node, state: State) -> Affine:
    """Return the value of an expression and its type. Errors: ``NotAffine``."""
    return _unwrapped(_typed(node, state), node, state)


def subscript_value(node: c_ast.Node, state: State) -> isl.PwAff:
    """Return the value of a subscript: in 64 bits it is inside of its array only where it did not wrap.

    Errors: ``NotAffine``.
    """
    found = _typed(node, state)
    return (found if found.type.size >= _WIDE else _unwrapped(found, node, state)).value


def _typed(node: c_ast.Node, state: State) -> Affine:
    """Return the value of an expression, which may have wrapped. Errors: ``NotAffine``."""
    match node:
        case c_ast.Constant():
            value, element = integer_literal(node, state)
            return Affine(constant_affine(value), element)
        case c_ast.ID(name=name):
            return _name(name, node, state)
        case c_ast.UnaryOp():
            return _unary(node, state)
        case c_ast.BinaryOp():
            return _binary(node, state)
        case c_ast.TernaryOp(cond=cond, iftrue=then, iffalse=otherwise):
            return _ternary(holds(cond, state), then, otherwise, state)
        case c_ast.Cast(to_type=to_type, expr=expr):
            return _cast(to_type, expr, node, state)
        case c_ast.FuncCall():
            return _call(node, state)
        case c_ast.ArrayRef() | c_ast.StructRef():
            if (stays := _staying(node, state)) is not None:
                return stays
            raise NotAffine(state.span(node), f"`{state.text(node)}` reads memory")
        case _:
            raise NotAffine(state.span(node), f"`{state.text(node)}` is no integer arithmetic")


def holds(node: c_ast.Node, state: State) -> isl.Set:
    """Return where a condition holds. Errors: ``NotAffine``."""
    match node:
        case c_ast.BinaryOp(op="&&", left=left, right=right):
            first = holds(left, state)
            with state.within(first):
                return first.intersect(holds(right, state))
        case c_ast.BinaryOp(op="||", left=left, right=right):
            first = holds(left, state)
            with state.within(first.complement()):
                return first.union(holds(right, state))
        case _ if (said := state.above.not_null(node, state)) is not None:
            return everywhere() if said else everywhere().complement()
        case c_ast.BinaryOp(op=op, left=left, right=right) if op in _COMPARISONS:
            a, b = typed(left, state), typed(right, state)
            wide = common(a.type, b.type)
            for side, part in ((a, left), (b, right)):
                check_conversion(side, wide, part, state)
            return _COMPARISONS[op](a.value, b.value)
        case c_ast.UnaryOp(op="!", expr=expr):
            return holds(expr, state).complement()
        case _:
            return affine(node, state).ne_set(constant_affine(0))


_COMPARISONS: dict[str, Callable[[isl.PwAff, isl.PwAff], isl.Set]] = {
    "<": lambda a, b: a.lt_set(b),
    "<=": lambda a, b: a.le_set(b),
    ">": lambda a, b: a.gt_set(b),
    ">=": lambda a, b: a.ge_set(b),
    "==": lambda a, b: a.eq_set(b),
    "!=": lambda a, b: a.ne_set(b),
}


def constant_of(value: isl.PwAff) -> int | None:
    """Return the integer that a function is everywhere; None where it is none."""
    pieces = value.coalesce().get_pieces()
    if len(pieces) != 1 or not pieces[0][1].is_cst():
        return None
    number = pieces[0][1].get_constant_val()
    return int(number.to_python()) if number.is_int() else None


def _name(name: str, node: c_ast.Node, state: State) -> Affine:
    found = state.scope.find(name)
    match found:
        case EnumConstant(value=value, element=element):
            return Affine(constant_affine(value), element)
        case Variable(type=Scalar(element=element)) if (fact := state.fact(found)) is not None:
            if fact.affine is None:
                raise NotAffine(state.span(node), f"the value of `{name}` is no affine function")
            return Affine(fact.affine, element)
        case Variable(type=Scalar(element=element)) if element.is_float:
            raise NotAffine(state.span(node), f"`{name}` is no integer")
        case Variable(type=Scalar()):
            why = state.unusable.get(found, f"the value of `{name}` is data: it is written inside the SCoP")
            raise NotAffine(state.span(node), why)
        case Address() | Variable():
            raise NotAffine(state.span(node), f"`{name}` is no integer")
        case Value():
            raise NotAffine(state.span(node), f"the value of `{name}` depends on data")
        case Defined():
            raise NotAffine(state.span(node), f"`{name}` is a function")
        case _:
            raise NotAffine(state.span(node), f"`{name}` is not declared")


def _unary(node: c_ast.UnaryOp, state: State) -> Affine:
    match node.op:
        case "!":
            return _truth(holds(node, state))
        case "+" | "-":
            inner = _typed(node.expr, state)
            element = promoted(inner.type)
            value = inner.value.neg() if node.op == "-" else inner.value
            return _wrapping(Affine(value, element), state)
        case "~" if state.mode is not Mode.TEXT:
            inner = _typed(node.expr, state)
            minus_one = inner.value.neg().sub(constant_affine(1))
            return _wrapping(Affine(minus_one, promoted(inner.type)), state)
        case "sizeof":
            return _size(node, state)
        case "*":
            if (stays := _staying(node, state)) is not None:
                return stays
            raise NotAffine(state.span(node), f"`{state.text(node)}` reads memory")
        case _:
            raise NotAffine(state.span(node), f"`{node.op.strip('p')}` is no affine operation")


def _staying(node: c_ast.Node, state: State) -> Affine | None:
    """Return an integer in memory that is a parameter."""
    known = state.above.staying(node, state)
    return None if known is None else Affine(known.affine, known.value.type)


def _size(node: c_ast.UnaryOp, state: State) -> Affine:
    try:
        return Affine(state.above.size(node.expr, state), ElementType.UINT64)
    except PolyloomError as fault:
        raise NotAffine(state.span(node), fault.diagnostics[0].message) from fault


def _truth(where: isl.Set) -> Affine:
    return Affine(where.indicator_function(), INT32)


def _binary(node: c_ast.BinaryOp, state: State) -> Affine:
    if node.op in _COMPARISONS or node.op in ("&&", "||"):
        return _truth(holds(node, state))
    if node.op in ("<<", ">>", "&") and state.mode is Mode.TEXT:
        raise NotAffine(state.span(node), f"`{node.op}` is no affine operation in pet's sense")
    if node.op == "&":
        return _masked(node, state)
    is_modular, is_shift = node.op in _MODULAR, node.op in ("<<", ">>")
    operand = _typed if is_modular else typed
    left, right = operand(node.left, state), operand(node.right, state)
    element = promoted(left.type) if is_shift else common(left.type, right.type)
    for side, part in () if is_shift else ((left, node.left), (right, node.right)):
        if side.wraps and element.size > side.type.size:
            _unwrapped(side, part, state)
        if not (is_modular and is_unsigned(element)):
            check_conversion(side, element, part, state)
    return _wrapping(Affine(_arithmetic(node, left.value, right.value, state), element), state)


_MODULAR = ("+", "-", "*")
"""What is right modulo a number where its operands are."""


def _arithmetic(node: c_ast.BinaryOp, left: isl.PwAff, right: isl.PwAff, state: State) -> isl.PwAff:
    match node.op:
        case "+":
            return left.add(right)
        case "-":
            return left.sub(right)
        case "*":
            return _product(node, left, right, state)
        case "/" | "%":
            return truncated(node.op, left, _constant(node.right, right, "divides by", state, zero=False))
        case "<<":
            shift = _constant(node.right, right, "shifts by", state)
            return left.scale_val(isl_integer(2**shift)) if 0 <= shift < 63 else _bad_shift(node, state)
        case ">>":
            shift = _constant(node.right, right, "shifts by", state)
            return floor_divided(left, 2**shift) if 0 <= shift < 63 else _bad_shift(node, state)
        case _:
            raise NotAffine(state.span(node), f"`{node.op}` is no affine operation")


def _bad_shift(node: c_ast.Node, state: State) -> isl.PwAff:
    raise NotAffine(state.span(node), "shifts by more than the type has bits")


def _product(node: c_ast.BinaryOp, left: isl.PwAff, right: isl.PwAff, state: State) -> isl.PwAff:
    if constant_of(left) is not None or constant_of(right) is not None:
        return left.mul(right)
    made = product_of_parameters(left, right, state) if state.mode is Mode.COMPUTE else None
    if made is None:
        raise NotAffine(state.span(node), f"`{state.text(node)}` multiplies two variables")
    return made


def _masked(node: c_ast.BinaryOp, state: State) -> Affine:
    """``x & 2^k - 1`` is x modulo 2^k, also of negative x in two's complement; ``x & -2^k`` is the rest."""
    sides = ((node.left, _typed(node.left, state)), (node.right, _typed(node.right, state)))
    element = common(sides[0][1].type, sides[1][1].type)
    for (part, side), (_, other) in (sides, sides[::-1]):
        number = constant_of(other.value)
        if number is None:
            continue
        value = _unwrapped(side, part, state)
        check_conversion(value, element, part, state)
        bits = masked(value.value, wrapped(wrapped(number, other.type), element), element)
        if bits is not None:
            return _wrapping(Affine(bits, element), state)
    raise NotAffine(state.span(node), f"`{state.text(node)}` is no affine operation")


def masked(value: isl.PwAff, mask: int, element: ElementType) -> isl.PwAff | None:
    """Return the last bits of a number of some type, or all but these; None for other masks."""
    high = value_range(element)[1]
    others = high + 1 - mask if is_unsigned(element) else -mask
    if 0 <= mask < LARGEST and not mask & (mask + 1):
        return value.mod_val(isl_integer(mask + 1))
    if 0 < others <= LARGEST and not others & (others - 1):
        return value.sub(value.mod_val(isl_integer(others)))
    return None


def _constant(node: c_ast.Node, value: isl.PwAff, what: str, state: State, *, zero: bool = True) -> int:
    number = constant_of(value)
    if number is None:
        raise NotAffine(state.span(node), f"{what} `{state.text(node)}`, which is no constant")
    if number == 0 and not zero:
        raise NotAffine(state.span(node), f"{what} zero")
    return number


def truncated(op: str, value: isl.PwAff, divisor: int) -> isl.PwAff:
    """Return C's ``value / divisor`` or ``value % divisor``. Source: C99, 6.5.5."""
    positive = constant_affine(abs(divisor))
    if op == "%":
        return value.tdiv_r(positive)
    quotient = value.tdiv_q(positive)
    return quotient if divisor > 0 else quotient.neg()


def floor_divided(value: isl.PwAff, divisor: int) -> isl.PwAff:
    """Return the greatest integer not above ``value / divisor``."""
    return value.scale_down_val(isl_integer(divisor)).floor()


def _ternary(where: isl.Set, then: c_ast.Node, otherwise: c_ast.Node, state: State) -> Affine:
    if state.always(where):
        return typed(then, state)
    if state.always(where.complement()):
        return typed(otherwise, state)
    with state.within(where):
        first = typed(then, state)
    with state.within(where.complement()):
        second = typed(otherwise, state)
        check_conversion(second, common(first.type, second.type), otherwise, state)
    with state.within(where):
        check_conversion(first, common(first.type, second.type), then, state)
    chosen = where.indicator_function().cond(first.value, second.value)
    return Affine(chosen, common(first.type, second.type))


def _cast(to_type: c_ast.Node, expr: c_ast.Node, node: c_ast.Node, state: State) -> Affine:
    target = type_of_name(to_type, state)
    if not isinstance(target, Scalar) or target.element.is_float:
        raise NotAffine(state.span(node), f"`{state.text(node)}` is no integer")
    inner = typed(expr, state)
    check_conversion(inner, target.element, node, state)
    if target.boolean:
        return _truth(inner.value.ne_set(constant_affine(0)))
    return Affine(inner.value, target.element)


def fits_in(value: isl.PwAff, element: ElementType, state: State) -> bool:
    """Whether a value keeps its meaning in a type: in wide signed types it does but for large constants.

    ``int m = n`` of a ``long n`` is taken to, and 0x80000000 is no ``int``, which becomes negative.
    """
    if element.size < INT32.size or is_unsigned(element):
        return _fits(value, element, state)
    usual = everywhere()
    for number in (parameter_affine(name) for name in value.get_var_names(_DIM.param) if name is not None):
        usual = usual.intersect(number.le_set(constant_affine(_USUAL)))
        usual = usual.intersect(number.ge_set(constant_affine(-_USUAL)))
    with state.within(usual):
        return _fits(value, element, state)


def _fits(value: isl.PwAff, element: ElementType, state: State) -> bool:
    low, high = value_range(element)
    bounds = value.ge_set(constant_affine(low)).intersect(value.le_set(constant_affine(high)))
    return state.always(bounds)


def check_conversion(value: Affine, element: ElementType, node: c_ast.Node, state: State) -> None:
    """An integer keeps its value in another type, as ``fits_in`` has it. Errors: ``NotAffine``."""
    if value.type is element or element.is_float:
        return
    unsigned = is_unsigned(element) and not (is_unsigned(value.type) and element.size >= value.type.size)
    proper = value.value.ge_set(constant_affine(0))
    if unsigned and not _proper(proper, f"`{state.text(node)}` is not negative", state):
        raise NotAffine(state.span(node), f"`{state.text(node)}` may be negative, and is made unsigned")
    is_narrow = element.size < INT32.size
    is_wider = value.type.size > element.size
    may_turn = is_wider or (is_unsigned(value.type) and value.type.size == element.size)
    asked = is_wider if is_narrow else may_turn and not is_unsigned(element)
    if asked and not fits_in(value.value, element, state):
        raise NotAffine(state.span(node), f"`{state.text(node)}` may not fit in {element.value}")


def _wrapping(result: Affine, state: State) -> Affine:
    """Return the value of an operation, marked where its type is unsigned and it may have wrapped."""
    return replace(result, wraps=is_unsigned(result.type) and not _is_proper(result, state))


def _is_proper(result: Affine, state: State) -> bool:
    if result.type.size < _WIDE:
        return _fits(result.value, result.type, state)
    return state.always(result.value.ge_set(constant_affine(0)))


def _unwrapped(result: Affine, node: c_ast.Node, state: State) -> Affine:
    """Unsigned arithmetic wraps below zero and, in 64 bits not thought of here, above its greatest value."""
    if not result.wraps:
        return result
    if not _proper(result.value.ge_set(constant_affine(0)), f"`{state.text(node)}` is not negative", state):
        raise NotAffine(state.span(node), f"`{state.text(node)}` is unsigned and may wrap below zero")
    high = value_range(result.type)[1]
    proper = result.value.le_set(constant_affine(high))
    if result.type.size < _WIDE and not _proper(proper, f"`{state.text(node)}` is at most {high}", state):
        raise NotAffine(state.span(node), f"`{state.text(node)}` is unsigned and may wrap")
    return replace(result, wraps=False)


_USUAL = 2**10
"""Sizes and iterators for which integers are asked to fit in types of 32 bits and more; of larger ones it is
taken for granted."""

_WIDE = 8
"""Bytes of a type that no array's extent exceeds."""


def _proper(holding: isl.Set, sentence: str, state: State) -> bool:
    """Whether a condition holds here, or the parameters may be taken to make it hold."""
    if state.always(holding):
        return True
    if state.assuming and state.assume(holding):
        state.assumed[sentence] = None
        return True
    return False


def _call(node: c_ast.FuncCall, state: State) -> Affine:
    name = node.name.name if isinstance(node.name, c_ast.ID) else ""
    defined = state.scope.find(name)
    arguments = list(node.args.exprs) if node.args is not None else []
    if isinstance(defined, Defined) and (result := returned(defined)) is not None:
        return _inlined(defined, arguments, result, state)
    if name in AFFINE_FUNCTIONS and (not isinstance(defined, Defined) or defined.body is None):
        values = [typed(argument, state) for argument in arguments]
        result_type = INT32
        for value in values:
            result_type = common(result_type, value.type)
        return Affine(affine_function(name, [v.value for v in values], state.span(node)), result_type)
    raise NotAffine(state.span(node), f"`{state.text(node)}` calls a function")


def _inlined(defined: Defined, arguments: list[c_ast.Node], result: c_ast.Node, state: State) -> Affine:
    """Return the value of a function that is one ``return`` of an integer expression."""
    scope = Scope(state.scope.file)
    bound = zip(parameters_of(defined), arguments, strict=False)
    for declaration, argument in bound:
        ctype = type_of_name(declaration, state)
        if not isinstance(ctype, Scalar) or ctype.element.is_float:
            raise NotAffine(state.span(argument), f"`{state.text(argument)}` is no integer")
        variable = Variable(declaration.name, declaration.name, ctype, Origin.INNER)
        scope.names[declaration.name] = variable
        value = typed(argument, state)
        check_conversion(value, ctype.element, argument, state)
        state.known[variable] = Known(value.value, Constant(0, ctype.element))
    with state.inside(scope):
        inner = typed(result, state)
    target = type_of_name(defined.declaration.type, state)
    if not isinstance(target, Scalar) or target.element.is_float:
        raise NotAffine(state.span(result), f"`{defined.name}` returns no integer")
    check_conversion(inner, target.element, result, state)
    return Affine(inner.value, target.element)
