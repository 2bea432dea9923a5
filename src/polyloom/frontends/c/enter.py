"""What is known where a static control part begins: names, types, parameters."""

from __future__ import annotations

import islpy as isl
from pycparser import c_ast

from polyloom.diagnostics import PolyloomError
from polyloom.frontends.c.affine import affine, constant_of, fits_in
from polyloom.frontends.c.c_types import Array, Scalar, value_range
from polyloom.frontends.c.declarations import type_of_name
from polyloom.frontends.c.enumerations import enumerate_members
from polyloom.frontends.c.extents import extent_of
from polyloom.frontends.c.faults import NotAffine
from polyloom.frontends.c.from_isl import expression_of
from polyloom.frontends.c.names import Defined, Known, Scope, TypeName, Unusable, Variable
from polyloom.frontends.c.places import Places
from polyloom.frontends.c.regions import Region
from polyloom.frontends.c.sets import constant_affine, everywhere, parameter_affine
from polyloom.frontends.c.state import Mode, State
from polyloom.frontends.c.written import repeated_names, written_names
from polyloom.ir.expressions import Constant, ParameterValue
from polyloom.scop.model import Origin

_LARGE = 2**62
"""What no parameter of 64 bits is taken to exceed."""


def enter(region: Region, tree: c_ast.FileAST, places: Places, mode: Mode) -> State:
    """Return the state before the first statement of a part.

    Integers that the part does not write are its parameters; ``const`` ones with a constant are folded. Where
    the part is to be computed, locals that are functions of parameters, and stay so, are no parameters.
    """
    state = State(places, Scope(), everywhere(), everywhere(), set(), mode=mode)
    own = tree.ext.index(region.function)
    later = [node for node in tree.ext[own:] if isinstance(node, c_ast.FuncDef)]
    for node in (*tree.ext[:own], *later):
        _declare_outside(node, state, Origin.GLOBAL)
    state.repeated = repeated_names(region.function)
    state.scope = Scope(state.scope)
    for node in region.function.decl.type.args.params if region.function.decl.type.args else ():
        if isinstance(node, c_ast.Decl) and node.name:
            _declare_outside(node, state, Origin.ARGUMENT)
    changed = written_names(region.function.body, state.scope) | state.repeated
    for node in region.before:
        for decl in node.decls if isinstance(node, c_ast.DeclList) else [node]:
            fixed = mode is Mode.COMPUTE and getattr(decl, "name", None) not in changed
            _declare_outside(decl, state, Origin.OUTER)
            if fixed:
                _follow(decl, changed, state)
    state.scope = Scope(state.scope)
    _forget_written(region, state)
    return state


def _declare_outside(node: c_ast.Node, state: State, origin: Origin) -> None:
    """Bring a declared name into the scope; what a SCoP cannot use is a fault where it is used."""
    try:
        _declare(node, state, origin)
    except PolyloomError as fault:
        name = getattr(node, "name", None)
        if name:
            state.scope.names[name] = Unusable(fault)


def _declare(node: c_ast.Node, state: State, origin: Origin) -> None:
    match node:
        case c_ast.Typedef(name=name):
            enumerate_members(node, state)
            state.scope.names[name] = TypeName(type_of_name(node, state, extent_of))
        case c_ast.FuncDef(decl=decl):
            inline = "inline" in (decl.funcspec or [])
            state.scope.names[decl.name] = Defined(decl.name, decl.type, node, inline)
        case c_ast.Decl(type=c_ast.FuncDecl()):
            known = state.scope.find(node.name)
            if not isinstance(known, Defined) or known.body is None:
                state.scope.names[node.name] = Defined(node.name, node.type, None, False)
        case c_ast.Decl():
            enumerate_members(node, state)
            _variable(node, state, origin)
        case _:
            pass


def _variable(node: c_ast.Decl, state: State, origin: Origin) -> None:
    ctype = type_of_name(node, state, extent_of)
    if node.name is None:
        return
    constant = "const" in (node.quals or []) or _points_to_const(node.type)
    name = state.fresh(node.name)
    variable = Variable(node.name, name, ctype, origin, constant, state.span(node))
    state.scope.names[node.name] = variable
    if isinstance(ctype, Array) or not isinstance(ctype, Scalar) or ctype.element.is_float:
        return
    if "const" in (node.quals or []):
        value = _first_value(node, ctype, state)
        if value is not None:
            state.known[variable] = Known(constant_affine(value), Constant(value, ctype.element))
            return
    state.parameters[name] = ctype.element
    state.known[variable] = Known(parameter_affine(name), ParameterValue(name, ctype.element))
    least, greatest = value_range(ctype.element)
    low, high = max(-_LARGE, least), min(_LARGE, greatest)
    bounds = isl.Set(f"[{name}] -> {{ [] : {low} <= {name} <= {high} }}")
    state.limits = state.limits.intersect(bounds)


def _follow(node: c_ast.Node, changed: frozenset[str], state: State) -> None:
    """A local that nothing changes, and that is made of such parameters (``int p = h - r + 1``), is
    their function.
    """
    variable = state.scope.names.get(getattr(node, "name", None) or "")
    if not isinstance(variable, Variable) or variable.unique not in state.parameters:
        return
    ctype = variable.type
    if node.init is None or not isinstance(ctype, Scalar) or ctype.boolean:
        return
    try:
        found = affine(node.init, state)
    except NotAffine:
        return
    around = state.scope.names_around().values()
    shared = {v.unique for v in around if isinstance(v, Variable) and v.origin is Origin.GLOBAL}
    names = set(found.get_var_names(isl.dim_type.param))
    if not names or names & (changed | shared) or not fits_in(found, ctype.element, state):
        return
    value = expression_of(found, state.type_of, ctype.element)
    state.known[variable] = Known(found, value)
    state.parameters.pop(variable.unique)


def _first_value(node: c_ast.Decl, ctype: Scalar, state: State) -> int | None:
    """Return the constant that a declaration stores; None where it stores none that the type can hold."""
    if node.init is None or ctype.boolean:
        return None
    try:
        value = constant_of(affine(node.init, state))
    except NotAffine:
        return None
    low, high = value_range(ctype.element)
    return value if value is not None and low <= value <= high else None


def _points_to_const(node: c_ast.Node) -> bool:
    """Whether the elements that a declaration describes are ``const``."""
    while isinstance(node, (c_ast.PtrDecl, c_ast.ArrayDecl)):
        node = node.type
    return isinstance(node, c_ast.TypeDecl) and "const" in (node.quals or [])


def _forget_written(region: Region, state: State) -> None:
    """What the part writes is no parameter."""
    for name in written_names(list(region.body), state.scope):
        try:
            found = state.scope.find(name)
        except PolyloomError:
            continue
        if isinstance(found, Variable) and found in state.known:
            state.known.pop(found)
            state.parameters.pop(found.unique, None)
