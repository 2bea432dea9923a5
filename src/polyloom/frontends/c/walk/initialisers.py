"""Initial values of arrays that are declared inside a SCoP, as assignments.

More values than there are elements are refused: C forbids them (C99, 6.7.8), and gcc only warns.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NoReturn

from pycparser import c_ast

from polyloom.frontends.c.integers.affine import constant_of
from polyloom.frontends.c.scope.state import State
from polyloom.frontends.c.scope.types import Array, CType, Scalar
from polyloom.frontends.c.syntax.faults import refuse

LONGEST = 256
"""How many listed values are taken."""


def assignments(node: c_ast.Decl, ctype: CType, state: State) -> list[c_ast.Node]:
    """Return statements that store the initial values of an array. Errors: ``c-initialiser``.

    ``double w[2][3] = {{1}, {2, 3}};`` becomes ``for (..) for (..) w[..][..] = 0;`` and three assignments.
    """
    listed = list(_listed(node.init, ctype, c_ast.ID(node.name, node.coord), state))
    extents = _extents(ctype, node, state)
    if len(listed) > LONGEST:
        _refuse(node, f"more than {LONGEST} values are listed", state)
    target: c_ast.Node = c_ast.ID(node.name, node.coord)
    iterators = [f"{node.name}_{k}" for k in range(len(extents))]
    for iterator in iterators:
        target = c_ast.ArrayRef(target, c_ast.ID(iterator, node.coord), node.coord)
    zeros: c_ast.Node = c_ast.Assignment("=", target, _number(0, node), node.coord)
    for iterator, extent in zip(reversed(iterators), reversed(extents), strict=True):
        zeros = _loop(iterator, extent, zeros, node)
    full = len(listed) == _product(extents)
    return [*([] if full else [zeros]), *listed]


def constant_extent(ctype: Array) -> int | None:
    """Return how many elements the outermost dimension has; None where that is no constant."""
    affine = ctype.extent.affine if ctype.extent is not None else None
    return None if affine is None else constant_of(affine)


def is_too_long(values: c_ast.InitList, ctype: Array) -> bool:
    """Whether more values are listed than the outermost dimension has elements."""
    extent = constant_extent(ctype)
    return extent is not None and len(values.exprs) > extent


def _product(extents: list[int]) -> int:
    result = 1
    for extent in extents:
        result *= extent
    return result


def _extents(ctype: CType, node: c_ast.Decl, state: State) -> list[int]:
    extents = []
    while isinstance(ctype, Array):
        extent = constant_extent(ctype)
        if extent is None:
            _refuse(node, "its extent is no constant", state)
        extents.append(extent)
        ctype = ctype.element
    if not isinstance(ctype, Scalar):
        _refuse(node, "its elements are no numbers", state)
    return extents


def _listed(values: c_ast.Node, ctype: CType, target: c_ast.Node, state: State) -> Iterator[c_ast.Assignment]:
    """Yield an assignment for each value of a list, an inner list for each row."""
    if isinstance(ctype, Array):
        if not isinstance(values, c_ast.InitList):
            _refuse(values, "a row has no list of its own", state)
        if is_too_long(values, ctype):
            _refuse(values, "more values are listed than a row has elements", state)
        for k, value in enumerate(values.exprs):
            element = c_ast.ArrayRef(target, _number(k, values), values.coord)
            yield from _listed(value, ctype.element, element, state)
        return
    if isinstance(values, (c_ast.InitList, c_ast.NamedInitializer)):
        _refuse(values, "a value is named or in braces", state)
    yield c_ast.Assignment("=", target, values, values.coord)


def _number(value: int, node: c_ast.Node) -> c_ast.Constant:
    return c_ast.Constant("int", str(value), node.coord)


def _loop(iterator: str, extent: int, body: c_ast.Node, node: c_ast.Node) -> c_ast.For:
    """Return ``for (int iterator = 0; iterator < extent; iterator++) body``."""
    at = node.coord
    kind = c_ast.TypeDecl(iterator, [], None, c_ast.IdentifierType(["int"], at), at)
    first = c_ast.Decl(iterator, [], [], [], [], kind, _number(0, node), None, at)
    condition = c_ast.BinaryOp("<", c_ast.ID(iterator, at), _number(extent, node), at)
    step = c_ast.UnaryOp("p++", c_ast.ID(iterator, at), at)
    return c_ast.For(c_ast.DeclList([first], at), condition, step, body, at)


def _refuse(node: c_ast.Node, reason: str, state: State) -> NoReturn:
    refuse(
        "c-initialiser",
        "the initial values of an array cannot be stored",
        state.span(node),
        notes=[reason],
        helps=["assign its elements, or declare it outside the SCoP"],
    )
