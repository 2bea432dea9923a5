"""A Python function and the types of its arguments to a static control part.

``A[i + 1] += x`` under ``for i in range(n)``:   { S1[i] : 0 <= i < n },  { S1[i] -> A[i + 1] }
"""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import islpy as isl

from polyloom.diagnostics import Span, Unsupported, error
from polyloom.frontends.python import affine
from polyloom.frontends.python.affine import PREFIX, Affine
from polyloom.frontends.python.early_ends import TooManyEnds, with_one_return
from polyloom.frontends.python.reading import Access
from polyloom.frontends.python.scope import Array
from polyloom.frontends.python.source import FunctionText, with_truths
from polyloom.frontends.python.storing import Draft, with_iterators
from polyloom.frontends.python.subscripts import is_of_data
from polyloom.frontends.python.values import Kind, Weak, held
from polyloom.frontends.python.walk import Walk
from polyloom.ir.expressions import Constant
from polyloom.ir.types import ElementType
from polyloom.polyhedra.loops.generate import CodeBuilder
from polyloom.polyhedra.loops.tree import IntExpression, Name, Number, sum_of
from polyloom.scop.model import (
    Origin,
    Scop,
    ScopAccess,
    ScopArray,
    ScopParameter,
    ScopStatement,
)

_DIM = isl.dim_type
_Relation = TypeVar("_Relation", isl.Set, isl.Map)
_WALKS = 6
"""Walks until the types of variables stay as they are; each makes some wider."""


@dataclass(frozen=True)
class ArrayType:
    """An argument that is an array."""

    type: ElementType
    rank: int


@dataclass(frozen=True)
class NumberType:
    """An argument that is a number; an ``int`` is a size."""

    kind: Kind


@dataclass(frozen=True)
class TruthType:
    """An argument that is True or False: a constant of the function for such arguments."""

    value: bool


Types = Mapping[str, ArrayType | NumberType]


@dataclass(frozen=True, eq=False)
class Calls:
    """What calls of a function need to know: ``results``: names of what it returns."""

    results: tuple[str, ...]
    shapes: Mapping[str, tuple[str, ...]]
    """The parameters that are the extents of each array that is given."""
    weak: frozenset[str]
    """Variables that hold numbers of Python."""
    truths: frozenset[str]
    """Names of arrays and variables of truth values, which are held as bytes."""
    valid: isl.Set
    """The sizes for which every index is in its array; the context of the part holds for all of these."""
    assumed: bool
    """Whether slices of the same length, or an ``assert``, limit these."""
    flag: str
    """The variable that holds the number of an index that was outside, from 1; empty where none may be."""
    asked: tuple[tuple[str, Span | None], ...]
    """The arrays of these indices, and where they stand."""


@dataclass(frozen=True, eq=False)
class Found:
    """What a function is."""

    scop: Scop
    calls: Calls


def read_python(text: FunctionText, given: Mapping[str, ArrayType | NumberType | TruthType]) -> Found:
    """Return a function for arguments of these types as a static control part.

    Errors: ``Unsupported`` with ``python-...``, at a place in the file of the function.
    """
    _check_arguments(text)
    text = with_truths(text, {n: t.value for n, t in given.items() if isinstance(t, TruthType)})
    types = {n: t for n, t in given.items() if not isinstance(t, TruthType)}
    text, returned = _with_one_return(text)
    kinds: dict[str, Kind] = {}
    for _ in range(_WALKS):
        before = dict(kinds)
        walk = _walk(text, returned, types, kinds)
        if kinds == before:
            break
    else:
        text.refuse("python-type", "the types of variables do not become one", text.tree)
    return _found(text, types, walk)


def _with_one_return(text: FunctionText) -> tuple[FunctionText, str]:
    """Return a function that returns at its end alone, and how the names of its results begin."""
    known = {node.id for node in ast.walk(text.tree) if isinstance(node, ast.Name)}
    name = "returned"
    while any(other.startswith(name) for other in known):
        name += "_"
    try:
        body = with_one_return(text.tree.body, name)
    except TooManyEnds:
        help_ = "return at the end of the function"
        text.refuse("python-statement", "the function returns in too many places", text.tree, "", help_)
    tree = copy.copy(text.tree)
    tree.body = body
    return replace(text, tree=tree), name


def _walk(text: FunctionText, returned: str, types: Types, kinds: dict[str, Kind]) -> Walk:
    arrays: dict[str, Array] = {}
    symbols: dict[str, Affine] = {}
    for name, given in types.items():
        if isinstance(given, ArrayType):
            extents = tuple(affine.name(f"{name}_{k}") for k in range(given.rank))
            arrays[name] = Array(given.type, extents)
        elif given.kind is Weak.INT:
            symbols[name] = affine.name(name)
        else:
            arrays[name] = Array(held(given.kind), ())
            kinds[name] = given.kind
    arrays |= {n: Array(held(kind), (), None, own=True) for n, kind in kinds.items() if n not in arrays}
    assigned = _assigned(text.tree)
    extents_of = (n for a in arrays.values() for e in a.extents for n in e.names)
    taken = frozenset({*assigned, *extents_of})
    walk = Walk(text, arrays, symbols, kinds, assigned=assigned, taken=taken, result_names=returned)
    walk.body(text.tree.body)
    return walk


def _check_arguments(text: FunctionText) -> None:
    arguments = text.tree.args
    others = [*arguments.kwonlyargs, *(a for a in (arguments.vararg, arguments.kwarg) if a)]
    if others:
        text.refuse(
            "python-statement", "arguments are given by position or name, none is left open", others[0]
        )


def _assigned(tree: ast.FunctionDef) -> Mapping[str, int]:
    """Return how often each name is assigned to; a loop's iterator counts as often."""
    found: Counter[str] = Counter(a.arg for a in tree.args.args)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found[node.id] += (
                2 if any(node is n.target for n in ast.walk(tree) if isinstance(n, ast.AugAssign)) else 1
            )
    return found


def _found(text: FunctionText, types: Types, walk: Walk) -> Found:
    drafts = [draft for draft in (*_start(text, walk), *walk.drafts) if not _set(draft, "S").is_empty()]
    statements = tuple(_statement(k, draft) for k, draft in enumerate(drafts, 1))
    if not statements:
        text.refuse("python-statement", "the function computes nothing", text.tree)
    used = {a.array for s in statements for a in (s.target, *s.reads)} | set(walk.results)
    written = {s.target.array for s in statements}
    names = _parameters(types, walk)
    arrays = tuple(
        replace(_array(n, a, n in written), origin=_origin(n, types, walk))
        for n, a in walk.arrays.items()
        if n in used
    )
    context = _context(names, walk)
    valid = _in_bounds(walk.arrays, drafts, statements, context)
    scop = Scop(
        name=text.name,
        source=text.source,
        parameters=tuple(ScopParameter(n, ElementType.INT64, n) for n in names),
        context=isl.Set.from_basic_set(valid.simple_hull()),
        statements=statements,
        schedule=_schedule(drafts, statements),
        arrays=arrays,
        arguments=tuple(types),
        extent=(text.span(text.tree).start, text.span(text.tree).end),
    )
    shapes = {
        name: tuple(f"{name}_{k}" for k in range(given.rank))
        for name, given in types.items()
        if isinstance(given, ArrayType)
    }
    calls = Calls(
        results=tuple(walk.results),
        shapes=shapes,
        weak=frozenset(name for name, kind in walk.kinds.items() if isinstance(kind, Weak)),
        truths=frozenset(n for n, a in walk.arrays.items() if a.type is ElementType.BOOL and n in used),
        valid=valid,
        assumed=bool(walk.assumed),
        flag=walk.flag,
        asked=tuple((outside.array, outside.span) for outside in walk.asked),
    )
    return Found(scop, calls)


def _start(text: FunctionText, walk: Walk) -> list[Draft]:
    """Return the statement before all others: no index was outside."""
    if not walk.flag:
        return []
    target, value = walk.access(walk.flag, (), text.tree), Constant(0, ElementType.INT64)
    return [Draft((), (), (-1,), target, (), value, None, text.span(text.tree))]


def _origin(name: str, types: Types, walk: Walk) -> Origin:
    """Return where an array comes from: what a function makes and does not return is dead after it."""
    if name in types:
        return Origin.ARGUMENT
    return Origin.OUTER if name in (*walk.results, walk.flag) else Origin.INNER


def _parameters(types: Types, walk: Walk) -> tuple[str, ...]:
    found = []
    for name, given in types.items():
        if isinstance(given, ArrayType):
            found += [f"{name}_{k}" for k in range(given.rank)]
        elif given.kind is Weak.INT:
            found.append(name)
    return tuple(found)


def _array(name: str, array: Array, is_written: bool) -> ScopArray:
    return ScopArray(
        name=name,
        type=array.held,
        shape=tuple(map(_extent, array.extents)),
        origin=Origin.ARGUMENT,
        constant=not is_written,
        span=array.span,
        undefined=array.own,
        truths=array.type is ElementType.BOOL,
    )


def _extent(extent: Affine) -> IntExpression:
    if extent.is_plain:
        terms: list[tuple[int, IntExpression]] = [(f, Name(n)) for n, f in extent.terms.items()]
        return (
            sum_of([*terms, (extent.constant, Number(1))]) if extent.constant or not terms else sum_of(terms)
        )
    names = ", ".join(PREFIX + name for name in sorted(extent.names))
    text = f"[{names}] -> {{ [extent] : extent = {extent.text} }}"
    on_sizes = _with_plain_parameters(isl.Set(text)).dim_max(0).project_domain_on_params()
    context = isl.Set.universe(on_sizes.get_domain_space().params())
    return CodeBuilder(context, {}).value(on_sizes)


# -- relations


def _set(draft: Draft, name: str, more: Iterable[str] = ()) -> isl.Set:
    dimensions = ", ".join(PREFIX + loop.iterator for loop in draft.loops)
    return isl.Set(_declared(f"{{ {name}[{dimensions}] : {_all((*draft.conditions, *more))} }}", draft))


def _all(conditions: Iterable[str]) -> str:
    return " and ".join(f"({c})" for c in conditions) or "true"


def _declared(text: str, draft: Draft) -> str:
    """Return isl's text with its parameters declared: all names that are no iterators."""
    iterators = {PREFIX + loop.iterator for loop in draft.loops}
    words = "".join(c if c.isalnum() or c == "_" else " " for c in text).split()
    names = sorted({w for w in words if w.startswith(PREFIX) and not is_of_data(w)} - iterators)
    return f"[{', '.join(names)}] -> {text}"


def _plain(relation: isl.Map, draft: Draft) -> isl.Map:
    """Return a relation with the user's names."""
    relation = _with_plain_parameters(relation)
    for k, loop in enumerate(draft.loops):
        relation = relation.set_dim_name(_DIM.in_, k, loop.iterator)
    return relation


def _with_plain_parameters(relation: _Relation) -> _Relation:
    for k in range(relation.dim(_DIM.param)):
        name = str(relation.get_dim_name(_DIM.param, k)).removeprefix(PREFIX)
        relation = relation.set_dim_name(_DIM.param, k, name)
    return relation


def _plain_set(points: isl.Set, draft: Draft) -> isl.Set:
    return _plain(isl.Map.from_domain(points), draft).domain()


def _statement(number: int, draft: Draft) -> ScopStatement:
    name = f"S{number}"
    return ScopStatement(
        name=name,
        domain=_plain_set(_set(draft, name), draft).coalesce(),
        iterators=tuple(loop.iterator for loop in draft.loops),
        loops=tuple(loop.span for loop in draft.loops),
        target=_access(draft.target, draft, name),
        reads=tuple(_access(read, draft, name) for read in draft.reads),
        value=draft.value,
        condition=draft.condition,
        span=draft.span,
    )


def _access(access: Access, draft: Draft, name: str) -> ScopAccess:
    dimensions = ", ".join(PREFIX + loop.iterator for loop in draft.loops)
    indices = ", ".join(index.text for index in access.indices)
    where = _all((*draft.conditions, *access.within))
    if access.data:
        found = [f"e__{k}" for k in range(len(access.indices))]
        equal = (f"{e} = {index.text}" for e, index in zip(found, access.indices, strict=True))
        free, limits = ", ".join(PREFIX + d.name for d in access.data), (d.limits for d in access.data)
        indices, where = ", ".join(found), f"{where} and exists ({free} : {_all((*equal, *limits))})"
    text = f"{{ {name}[{dimensions}] -> target[{indices}] : {where} }}"
    relation = _plain(isl.Map(_declared(text, draft)), draft).set_tuple_name(_DIM.out, access.array)
    numbers = {loop.iterator: k for k, loop in enumerate(draft.loops)}
    values = tuple(with_iterators(index.value, numbers) for index in access.indices)
    computed = tuple((k, values[k]) for k, index in enumerate(access.indices) if is_of_data(index.text))
    return ScopAccess(
        array=access.array,
        relation=relation.coalesce(),
        computed=computed,
        span=access.span,
        indices=values,
    )


def _schedule(drafts: Sequence[Draft], statements: Sequence[ScopStatement]) -> isl.UnionMap:
    depth = max(len(draft.loops) for draft in drafts)
    result = isl.UnionMap("{ }")
    for draft, statement in zip(drafts, statements, strict=True):
        times: list[str] = []
        for k in range(depth + 1):
            times.append(str(draft.position[k]) if k < len(draft.position) else "0")
            if k < depth:
                inside = k < len(draft.loops)
                sign = "-" if inside and draft.loops[k].descending else ""
                times.append(f"{sign}{PREFIX}{draft.loops[k].iterator}" if inside else "0")
        dimensions = ", ".join(PREFIX + loop.iterator for loop in draft.loops)
        relation = isl.Map(f"{{ {statement.name}[{dimensions}] -> [{', '.join(times)}] }}")
        result = result.union(
            isl.UnionMap.from_map(_plain(relation, draft).intersect_domain(statement.domain))
        )
    return result


def _context(names: Sequence[str], walk: Walk) -> isl.Set:
    """Return what is known of the sizes: extents of arrays are not negative."""
    extents = {n for a in walk.arrays.values() if not a.own for e in a.extents for n in e.terms}
    known = [f"{PREFIX}{n} >= 0" for n in names if n in extents]
    text = f"[{', '.join(PREFIX + n for n in names)}] -> {{ : {_all([*known, *walk.assumed])} }}"
    found = isl.Set(text)
    return _with_plain_parameters(found)


def _in_bounds(
    arrays: Mapping[str, Array],
    drafts: Sequence[Draft],
    statements: Sequence[ScopStatement],
    context: isl.Set,
) -> isl.Set:
    """Return the sizes for which every index is in its array: Python would count others from the end.

    Errors: ``python-bounds`` where there are hardly any such sizes.
    """
    for draft, statement in zip(drafts, statements, strict=True):
        pairs = zip((draft.target, *draft.reads), (statement.target, *statement.reads), strict=True)
        for access, model in pairs:
            outside = _outside(arrays[access.array], access, model)
            bad = outside.params()
            left = context.subtract(bad)
            known = statement.domain.params().intersect(context)
            if not known.is_empty() and known.subtract(bad).is_empty():
                span = access.span or draft.span
                message = f"an index of `{access.array}` is outside, or counts from the end"
                helps = ["subscripts run from 0 to the extent less 1"]
                raise Unsupported(error("python-bounds", message, span, helps=helps))
            context = left
    return context.coalesce()


def _outside(array: Array, access: Access, model: ScopAccess) -> isl.Set:
    """Return the points at which an index is outside its array."""
    reached = model.relation.range()
    dimensions = [f"v__{k}" for k in range(len(array.extents))]
    limits = [f"0 <= {d} < {e.text}" for d, e in zip(dimensions, array.extents, strict=True)]
    names = sorted({PREFIX + n for e in array.extents for n in e.names})
    box = isl.Set(f"[{', '.join(names)}] -> {{ [{', '.join(dimensions)}] : {_all(limits)} }}")
    return reached.subtract(_with_plain_parameters(box).set_tuple_name(access.array))
