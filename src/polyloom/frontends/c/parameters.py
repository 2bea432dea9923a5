"""The parameters of a part: what is known of them, what they are made of, what C calls them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import islpy as isl

from polyloom.frontends.c.finish import Statement
from polyloom.frontends.c.integers.invariant_products import used_products
from polyloom.frontends.c.integers.polynomials import Affine
from polyloom.frontends.c.scope.drafts import Product
from polyloom.frontends.c.scope.names import Variable
from polyloom.frontends.c.scope.state import State
from polyloom.frontends.c.scope.types import Scalar, is_unsigned
from polyloom.ir.expressions import ParameterValue, walk
from polyloom.polyhedra.loops.tree import (
    IntExpression,
    Name,
    Number,
    Operation,
    names_in,
    product_of,
    sum_of,
)
from polyloom.scop.model import Origin, ScopParameter

_DIM = isl.dim_type


def context_of(state: State, statements: Sequence[Statement]) -> isl.Set:
    """Return what is known of the parameters: what was assumed, and that unsigned ones are not negative."""
    context = state.context.params()
    for parameter in parameters_of(state, statements):
        if is_unsigned(parameter.type):
            name = parameter.name
            context = context.intersect(isl.Set(f"[{name}] -> {{ : {name} >= 0 }}"))
    return context.drop_unused_params()


def parameters_of(state: State, statements: Sequence[Statement]) -> tuple[ScopParameter, ...]:
    """Return the parameters that occur, in the order in which they are declared."""
    used = _named(state, statements)
    used |= {name for product in products_of(state, statements) for name in names_in(equality(product))}
    texts = _texts(state)
    found = ((name, element) for name, element in state.parameters.items() if name in used)
    return tuple(ScopParameter(name, element, texts.get(name, "")) for name, element in found)


def products_of(state: State, statements: Sequence[Statement]) -> tuple[Product, ...]:
    """Return the parameters that are products of others: made so, or taken to be."""
    return (*used_products(_named(state, statements), state), *state.equal)


def equality(product: Product) -> IntExpression:
    """Return that a parameter is the product that it is taken to be, as a condition."""
    factors = [
        sum_of([(c, Name(name) if name else Number(1)) for name, c in factor]) for factor in product.factors
    ]
    return Operation("==", (Name(product.name), product_of(factors)))


def _named(state: State, statements: Sequence[Statement]) -> set[str]:
    """Return the names of the parameters of which something is said."""
    used: set[str | None] = set(state.context.params().drop_unused_params().get_var_names(_DIM.param))
    for statement in statements:
        used |= set(statement.domain.get_var_names(_DIM.param))
        for access in (*statement.reads, *statement.writes):
            used |= set(access.relation.get_var_names(_DIM.param))
            used |= {p.name for i in access.indices for p in walk(i) if isinstance(p, ParameterValue)}
        for expression in (statement.draft.value, statement.draft.condition):
            if expression is not None:
                used |= {p.name for p in walk(expression) if isinstance(p, ParameterValue)}
    for array in state.arrays.values():
        used |= {n for e in array.extents if e is not None for n in names_in(e.expression)}
    return {name for name in used if name is not None}


def _texts(state: State) -> dict[str, str]:
    """Return what C calls integers where the part stands, by their names in the model."""
    elements = state.elements.integers.items()
    in_memory = {
        element.variable.unique: path for path, element in elements if is_seen(element.place.variable, state)
    }
    texts = {v.unique: v.name for v in _visible(state)} | in_memory
    for product in state.products.values():
        if all(name in texts for factor in product.factors for name, _ in factor if name):
            texts[product.name] = " * ".join(["1LL", *(_sum(factor, texts) for factor in product.factors)])
    return texts


def _sum(factor: Affine, texts: Mapping[str, str]) -> str:
    """Return a sum as C, in 64 bits where it is more than a name."""
    match factor:
        case ((str(name), 1),) if name:
            return texts[name]
        case _:
            terms = (f"{c}LL * {texts[name]}" if name else f"{c}LL" for name, c in factor)
            return f"({' + '.join(terms)})"


def _visible(state: State) -> list[Variable]:
    """Return the variables that have their names where the part stands."""
    around = state.scope.outer
    assert around is not None
    return [found for found in around.names_around().values() if isinstance(found, Variable)]


def reached(taken: frozenset[str], state: State) -> tuple[str, ...]:
    """Return the numbers that pointers may lead to: those of the file, and those whose address is taken."""
    numbers = (v for v in _visible(state) if isinstance(v.type, Scalar) and not v.constant)
    return tuple(v.name for v in numbers if v.origin is Origin.GLOBAL or v.name in taken)


def is_seen(variable: Variable, state: State) -> bool:
    """Whether a variable, or the one in which a pointer is kept, has its name where the part stands."""
    kept = {element.variable: element.place.variable for element in state.elements.pointers.values()}
    while variable in kept:
        variable = kept[variable]
    return variable in _visible(state)
