"""What is known where a static control part begins: names, types, parameters."""

from __future__ import annotations

from collections.abc import Iterator

import islpy as isl
from pycparser import c_ast

from polyloom.diagnostics import PolyloomError
from polyloom.frontends.c.expressions.lvalues import steady
from polyloom.frontends.c.integers.affine import affine, constant_of, fits_in
from polyloom.frontends.c.integers.enumerations import enumerate_members
from polyloom.frontends.c.integers.extents import extent_of
from polyloom.frontends.c.integers.from_isl import expression_of
from polyloom.frontends.c.integers.invariant_products import has_product
from polyloom.frontends.c.scope.declarations import elements_are_const, type_of_name
from polyloom.frontends.c.scope.initial_values import initial
from polyloom.frontends.c.scope.names import Defined, Known, Scope, TypeName, Unusable, Variable
from polyloom.frontends.c.scope.parameters import new_parameter
from polyloom.frontends.c.scope.sets import constant_affine, everywhere
from polyloom.frontends.c.scope.state import Hooks, Mode, State
from polyloom.frontends.c.scope.types import Array, Pointer, Scalar, value_range
from polyloom.frontends.c.scope.writes import names_in, repeated_names, written_names
from polyloom.frontends.c.syntax.attributes import REPLACEABLE
from polyloom.frontends.c.syntax.faults import NotAffine
from polyloom.frontends.c.syntax.places import Places
from polyloom.frontends.c.syntax.regions import Region, runs_once_after
from polyloom.ir.expressions import Constant
from polyloom.scop.model import Origin


def enter(region: Region, tree: c_ast.FileAST, places: Places, mode: Mode, hooks: Hooks) -> State:
    """Return the state before the first statement of a part.

    Integers that the part does not write are its parameters; ``const`` ones with a constant are folded. Where
    the part is to be computed, locals that are constants, functions of parameters, or pointers into arrays,
    and stay so, are these.
    """
    state = State(places, Scope(), everywhere(), everywhere(), set(), hooks, mode=mode)
    state.inner_names = frozenset(_own_names(region))
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
    if mode is Mode.COMPUTE:
        _begin_with_constants(region, state)
    return state


def _own_names(region: Region) -> Iterator[str]:
    """Yield the names of the function's arguments, and of the variables that it declares before the part."""
    listed = region.function.decl.type.args
    declared = [d for n in region.before for d in (n.decls if isinstance(n, c_ast.DeclList) else [n])]
    for node in (*(listed.params if listed is not None else ()), *declared):
        if isinstance(node, c_ast.Decl) and node.name:
            yield node.name


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
            body = None if REPLACEABLE in (decl.funcspec or []) else node
            state.scope.names[decl.name] = Defined(decl.name, decl.type, body, inline)
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
    constant = "const" in (node.quals or []) or elements_are_const(node.type, pointed=True)
    hidden = origin is Origin.GLOBAL and node.name in state.inner_names
    name = state.fresh(f"{node.name}_global" if hidden else node.name)
    register = "register" in (node.storage or [])
    variable = Variable(node.name, name, ctype, origin, constant, state.span(node), register)
    state.scope.names[node.name] = variable
    if isinstance(ctype, Array) or not isinstance(ctype, Scalar) or ctype.element.is_float:
        return
    if "const" in (node.quals or []):
        value = _first_value(node, ctype, state)
        if value is not None:
            state.known[variable] = Known(constant_affine(value), Constant(value, ctype.element))
            return
    state.known[variable] = new_parameter(name, ctype.element, state)


def _follow(node: c_ast.Node, changed: frozenset[str], state: State) -> None:
    """A local that nothing changes, and that is made of such parameters (``int p = h - r + 1``), is
    their function; a pointer into an array is that place.
    """
    variable = state.scope.names.get(getattr(node, "name", None) or "")
    if not isinstance(variable, Variable) or node.init is None or "volatile" in (node.quals or []):
        return
    ctype = variable.type
    if isinstance(ctype, Pointer) and not names_in(node.init) & (changed | _shared(state)):
        _follow_pointer(variable, node.init, ctype, state)
    if variable.unique not in state.parameters or not isinstance(ctype, Scalar) or ctype.boolean:
        return
    try:
        found = affine(node.init, state)
    except NotAffine:
        return
    shared = {v.unique for v in state.scope.variables(_shared(state))}
    names = set(found.get_var_names(isl.dim_type.param))
    if names & (changed | shared) or has_product(found, state) or not fits_in(found, ctype.element, state):
        return
    value = expression_of(found, state.type_of, ctype.element)
    state.known[variable] = Known(found, value)
    state.parameters.pop(variable.unique)


def _shared(state: State) -> frozenset[str]:
    """Return the names of variables of the file that other functions may change, which arrays are not."""
    found = state.scope.names_around().items()
    shared = {n: v for n, v in found if isinstance(v, Variable) and v.origin is Origin.GLOBAL}
    return frozenset(name for name, variable in shared.items() if not isinstance(variable.type, Array))


def _follow_pointer(variable: Variable, node: c_ast.Node, ctype: Pointer, state: State) -> None:
    """Let a pointer be the place that it points to, where that holds elements of its type.

    A copy of a pointer in memory is an array of its own: what stands in memory may be another one when the
    part begins.
    """
    try:
        found = steady(node, ctype, state)
    except PolyloomError:
        return
    in_memory = {element.variable for element in state.elements.pointers.values()}
    if isinstance(ctype.target, Scalar) and found.place.variable not in in_memory:
        state.scope.names[variable.name] = found


def _begin_with_constants(region: Region, state: State) -> None:
    """What the part writes holds the constant of its declaration until then, if nothing names it before."""
    for name in written_names(list(region.body), state.scope):
        variable = state.scope.names_around().get(name)
        if not isinstance(variable, Variable) or variable.origin is not Origin.OUTER:
            continue
        ctype, value = variable.type, initial(name, region, state).value
        if (
            not isinstance(ctype, Scalar)
            or ctype.boolean
            or not isinstance(value, int)
            or ctype.element.is_float
        ):
            continue
        low, high = value_range(ctype.element)
        if isinstance(value, int) and low <= value <= high and runs_once_after(region, name):
            state.known[variable] = Known(constant_affine(value), Constant(value, ctype.element))


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
