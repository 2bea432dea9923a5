"""Members of enumerations, which are integer constants, and the types of enumerations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pycparser import c_ast

from polyloom.diagnostics import PolyloomError, Unsupported, error
from polyloom.frontends.c.integers.affine import affine, constant_of
from polyloom.frontends.c.scope.names import EnumConstant, Unusable
from polyloom.frontends.c.scope.state import State
from polyloom.frontends.c.scope.types import ENUMERATION, CType, Scalar, value_range
from polyloom.frontends.c.syntax.attributes import MARK
from polyloom.frontends.c.syntax.faults import NotAffine
from polyloom.ir.types import ElementType

_E = ElementType


def enumerate_members(node: c_ast.Node, state: State) -> None:
    """Define the members of the enumerations inside a declaration."""
    if isinstance(node, c_ast.Enum) and node.values is not None:
        members = node.values.enumerators
        found = list(_values(members, state))
        kind = _type_of([value for value in found if isinstance(value, int)])
        is_marked = any(member.name == MARK for member in members)
        known = not is_marked and all(isinstance(value, int) for value in found)
        enumeration: CType = Scalar(kind, f"enum {node.name or ''}".strip()) if known else ENUMERATION
        for member, value in zip(members, found, strict=True):
            state.scope.names[member.name] = (
                EnumConstant(value, _own(value, kind), enumeration)
                if isinstance(value, int)
                else Unusable(value)
            )
        if node.name:
            state.scope.enumerations[node.name] = enumeration
        return
    for _, child in node.children():
        enumerate_members(child, state)


def _values(members: Sequence[c_ast.Enumerator], state: State) -> Iterator[int | PolyloomError]:
    """Yield the members' values; what cannot be computed is a fault, and so are those counted from it."""
    following: int | PolyloomError = 0
    for member in members:
        if member.value is not None:
            following = _constant(member.value, state)
        if isinstance(following, int):
            known = EnumConstant(following, _own(following, _E.INT64), ENUMERATION)
            state.scope.names[member.name] = known  # those that follow may be computed from it
        yield following
        following = following + 1 if isinstance(following, int) else following


def _constant(node: c_ast.Node, state: State) -> int | PolyloomError:
    try:
        found = constant_of(affine(node, state))
    except NotAffine:
        found = None
    except PolyloomError as fault:
        return fault
    message = f"`{state.text(node)}` is no constant that Polyloom computes, so the enumeration has no type"
    helps = ["write the number"]
    return Unsupported(error("c-type", message, state.span(node), helps=helps)) if found is None else found


def _type_of(values: Sequence[int]) -> ElementType:
    """Return the type of an enumeration: as GCC and Clang have it, unsigned without negative members."""
    kinds = (_E.INT32, _E.INT64) if min(values, default=0) < 0 else (_E.UINT32, _E.UINT64)
    return next((kind for kind in kinds if all(_holds(kind, v) for v in values)), kinds[-1])


def _own(value: int, kind: ElementType) -> ElementType:
    """Return the type of a member: ``int``, or that of the enumeration where ``int`` does not hold it."""
    return _E.INT32 if _holds(_E.INT32, value) else kind


def _holds(kind: ElementType, value: int) -> bool:
    least, greatest = value_range(kind)
    return least <= value <= greatest
