"""What is known where a static control part begins: names, types, parameters."""

from __future__ import annotations

import islpy as isl
from pycparser import c_ast

from polyloom.diagnostics import PolyloomError
from polyloom.frontends.c.affine import affine, constant_of
from polyloom.frontends.c.c_types import Array, Scalar, is_unsigned, value_range
from polyloom.frontends.c.declarations import type_of_name
from polyloom.frontends.c.extents import extent_of
from polyloom.frontends.c.faults import NotAffine
from polyloom.frontends.c.names import Defined, EnumConstant, Known, Scope, TypeName, Unusable, Variable
from polyloom.frontends.c.places import Places
from polyloom.frontends.c.regions import Region
from polyloom.frontends.c.sets import constant_affine, everywhere, parameter_affine
from polyloom.frontends.c.state import State
from polyloom.frontends.c.written import repeated_names, written_names
from polyloom.ir.expressions import Constant, ParameterValue
from polyloom.scop.model import Origin

_LARGE = 2**62
"""What no parameter of 64 bits is taken to exceed."""


def enter(region: Region, tree: c_ast.FileAST, places: Places) -> State:
    """Return the state before the first statement of a part.

    Integers that the part does not write are its parameters; constants are folded.
    """
    state = State(places, Scope(), everywhere(), everywhere(), set())
    own = tree.ext.index(region.function)
    later = [node for node in tree.ext[own:] if isinstance(node, c_ast.FuncDef)]
    for node in (*tree.ext[:own], *later):
        _declare_outside(node, state, Origin.GLOBAL)
    state.repeated = repeated_names(region.function)
    state.scope = Scope(state.scope)
    for node in region.function.decl.type.args.params if region.function.decl.type.args else ():
        if isinstance(node, c_ast.Decl) and node.name:
            _declare_outside(node, state, Origin.ARGUMENT)
    for node in region.before:
        for decl in node.decls if isinstance(node, c_ast.DeclList) else [node]:
            _declare_outside(decl, state, Origin.OUTER)
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
            state.scope.names[name] = TypeName(type_of_name(node, state, extent_of))
        case c_ast.FuncDef(decl=decl):
            inline = "inline" in (decl.funcspec or [])
            state.scope.names[decl.name] = Defined(decl.name, decl.type, node, inline)
        case c_ast.Decl(type=c_ast.FuncDecl()):
            known = state.scope.find(node.name)
            if not isinstance(known, Defined) or known.body is None:
                state.scope.names[node.name] = Defined(node.name, node.type, None, False)
        case c_ast.Decl():
            _enumerate(node, state)
            _variable(node, state, origin)
        case _:
            pass


def _enumerate(node: c_ast.Node, state: State) -> None:
    """Define the members of the enumerations inside a declaration."""
    if isinstance(node, c_ast.Enum) and node.values is not None:
        following = 0
        for member in node.values.enumerators:
            if member.value is not None:
                following = _constant(member.value, state)
            state.scope.names[member.name] = EnumConstant(following)
            following += 1
        return
    for _, child in node.children():
        _enumerate(child, state)


def _constant(node: c_ast.Node, state: State) -> int:
    try:
        return constant_of(affine(node, state)) or 0
    except NotAffine:
        return 0


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
    if "const" in (node.quals or []) and node.init is not None:
        try:
            fixed = constant_of(affine(node.init, state))
        except NotAffine:
            fixed = None
        if fixed is not None:
            state.known[variable] = Known(constant_affine(fixed), Constant(fixed, ctype.element))
            return
    state.parameters[name] = ctype.element
    state.known[variable] = Known(parameter_affine(name), ParameterValue(name, ctype.element))
    least, greatest = value_range(ctype.element)
    low, high = max(-_LARGE, least), min(_LARGE, greatest)
    bounds = isl.Set(f"[{name}] -> {{ [] : {low} <= {name} <= {high} }}")
    state.limits = state.limits.intersect(bounds)
    if is_unsigned(ctype.element):
        state.context = state.context.intersect(isl.Set(f"[{name}] -> {{ [] : {name} >= 0 }}"))


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
