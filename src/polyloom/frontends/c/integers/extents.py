"""How long arrays are, over the parameters."""

from __future__ import annotations

import islpy as isl
from pycparser import c_ast

from polyloom.frontends.c.integers.affine import affine
from polyloom.frontends.c.integers.invariant_products import has_product
from polyloom.frontends.c.scope.state import State
from polyloom.frontends.c.scope.types import Extent
from polyloom.frontends.c.syntax.faults import NotAffine, refuse
from polyloom.polyhedra.loops.generate import CodeBuilder
from polyloom.polyhedra.loops.tree import IntExpression, product_of, sum_of

_DIM = isl.dim_type


def extent_of(node: c_ast.Node, state: State) -> Extent:
    """Return an array's extent. Errors: ``c-extent`` for what parameters do not tell."""
    if isinstance(node, c_ast.UnaryOp) and node.op == "*":
        refuse("c-extent", "`[*]` says no extent", state.span(node), helps=["name the extent"])
    try:
        found = affine(node, state)
        _check_parameters(found, node, state)
    except NotAffine as fault:
        return Extent(_polynomial(node, state, fault), None)
    if has_product(found, state):
        return Extent(_polynomial(node, state, NotAffine(state.span(node), "it is a product")), None)
    return Extent(written(found), found)


def written(value: isl.PwAff) -> IntExpression:
    """Return an affine function of parameters as an expression."""
    on_parameters = value.project_domain_on_params()
    context = isl.Set.universe(on_parameters.get_domain_space().params())
    return CodeBuilder(context, {}).value(on_parameters)


def _check_parameters(value: isl.PwAff, node: c_ast.Node, state: State) -> None:
    iterators = {frame.iterator: frame.name for frame in state.frames}
    for k in range(value.dim(_DIM.param)):
        name = value.get_dim_name(_DIM.param, k)
        if name in iterators and value.involves_dims(_DIM.param, k, 1):
            raise NotAffine(state.span(node), f"the extent depends on the loop over `{iterators[name]}`")


def _polynomial(node: c_ast.Node, state: State, fault: NotAffine) -> IntExpression:
    match node:
        case c_ast.BinaryOp(op="*", left=left, right=right):
            return product_of([extent_of(left, state).expression, extent_of(right, state).expression])
        case c_ast.BinaryOp(op="+" | "-" as op, left=left, right=right):
            sign = 1 if op == "+" else -1
            return sum_of(
                [(1, extent_of(left, state).expression), (sign, extent_of(right, state).expression)]
            )
        case _:
            return refuse(
                "c-extent",
                f"the extent `{state.text(node)}` is not known when the SCoP starts",
                fault.span,
                label=fault.reason,
                helps=["use parameters and constants"],
            )
