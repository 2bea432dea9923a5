"""C to static control parts.

preprocess -> parse -> regions -> (enter -> walk -> finish) for each part
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain
from math import prod
from pathlib import Path

import islpy as isl
from pycparser import c_ast

from polyloom.diagnostics import Diagnostic, PolyloomError, Severity, Source, Unsupported, error, remark
from polyloom.frontends.c.counted_loops import with_counted_loops
from polyloom.frontends.c.enter import enter
from polyloom.frontends.c.escaping import escaping_iterators, is_read_after
from polyloom.frontends.c.expressions.constant_places import check_spots, next_walk
from polyloom.frontends.c.expressions.lvalues import place, staying
from polyloom.frontends.c.expressions.null_pointers import dereferenced, not_null, unused
from polyloom.frontends.c.expressions.values import value
from polyloom.frontends.c.finish import Statement, schedule_of, statements_of
from polyloom.frontends.c.integers.first_elements import begin_at_pointers
from polyloom.frontends.c.integers.invariant_products import bound_loops
from polyloom.frontends.c.integers.linearised import delinearise
from polyloom.frontends.c.integers.sizes import size_of
from polyloom.frontends.c.parameters import context_of, equality, is_seen, parameters_of, products_of, reached
from polyloom.frontends.c.row_pointers import with_row_pointers
from polyloom.frontends.c.scope.drafts import FoundArray
from polyloom.frontends.c.scope.initial_values import initial
from polyloom.frontends.c.scope.layout import structure_member
from polyloom.frontends.c.scope.state import ConstantElements, Hooks, Mode, State
from polyloom.frontends.c.scope.types import Scalar
from polyloom.frontends.c.scope.writes import addressed
from polyloom.frontends.c.syntax.faults import fail, worst
from polyloom.frontends.c.syntax.nodes import LOOPS, nodes_in
from polyloom.frontends.c.syntax.parse import parse, parsed
from polyloom.frontends.c.syntax.places import Places
from polyloom.frontends.c.syntax.preprocess import own_texts, preprocess, preprocess_with_system
from polyloom.frontends.c.syntax.regions import PAIR, Region, extent_in, helpers, loop_lines, regions
from polyloom.frontends.c.syntax.statement_macros import Kind, statement_macros
from polyloom.frontends.c.syntax.stepped_pointers import with_offsets
from polyloom.frontends.c.syntax.steps import with_steps_apart
from polyloom.frontends.c.syntax.unmarked_parts import unmarked_parts
from polyloom.frontends.c.walk.control import walk_all
from polyloom.frontends.c.walk.inlining import inlined, take_returned
from polyloom.frontends.c.walk.pragmas import refuse_shared
from polyloom.frontends.c.walk.summaries import summarised
from polyloom.ir.expressions import has_procedure
from polyloom.ir.text.integers import integer_text
from polyloom.polyhedra.bounds import width
from polyloom.polyhedra.effort import refusing
from polyloom.scop.model import Origin, Scop, ScopArray, ScopStatement

_DIM = isl.dim_type

WORTH_POINTS = 64
"""Points that loops have, if that is known, to be taken where nobody marked them: a call takes 5 ns."""


@dataclass(frozen=True, eq=False)
class Part:
    """A static control part as C has it, with what Polyloom cannot compute in it."""

    region: Region
    state: State
    statements: tuple[Statement, ...]
    schedule: isl.UnionMap
    extent: tuple[int, int]
    tree: c_ast.FileAST
    remarks: tuple[Diagnostic, ...] = ()

    @property
    def name(self) -> str:
        """The function's name."""
        return self.region.name

    @cached_property
    def scop(self) -> Scop:
        """The model. Errors: those of ``scop_of``."""
        with refusing(f"the model of `{self.name}`", _limit(self.state.places.source)):
            return _scop_of(self)


def read_c(
    source: Source,
    function: str | None = None,
    defines: Mapping[str, str] | None = None,
    include: Sequence[Path] = (),
    preprocessor: str | None = None,
) -> tuple[Scop, ...]:
    """Return the static control parts of a C file, in the order of the text.

    ``function``: those of one function. ``defines``: macros. ``include``: folders of headers.
    ``preprocessor``: a command in place of the built-in one, ``gcc -E``.

    Errors: ``PolyloomError`` where the program is wrong, ``Unsupported`` where it is no static control part.
    Source: md_poly, Sec. 3.2.1.
    """
    return tuple(map(scop_of, read_computed(source, function, defines, include, preprocessor)))


def read_computed(
    source: Source,
    function: str | None = None,
    defines: Mapping[str, str] | None = None,
    include: Sequence[Path] = (),
    preprocessor: str | None = None,
    *,
    unmarked: bool = False,
) -> tuple[Part, ...]:
    """Return the parts of which ``scop_of`` gives the model. Errors: those of ``read_c``.

    ``unmarked``: as in ``read_parts``.
    """
    return read_parts(source, function, defines, include, preprocessor, Mode.COMPUTE, unmarked=unmarked)


def read_parts(
    source: Source,
    function: str | None = None,
    defines: Mapping[str, str] | None = None,
    include: Sequence[Path] = (),
    preprocessor: str | None = None,
    mode: Mode = Mode.TEXT,
    *,
    unmarked: bool = False,
) -> tuple[Part, ...]:
    """Return the parts with all that could be found out, also where it cannot be computed.

    ``unmarked``: of a function that as a whole cannot be computed, those loops that can.

    Errors: those of ``read_c``, but for calls of functions that Polyloom does not know.
    """
    places = Places(source)
    tree = _tree(places, defines or {}, include, preprocessor)
    try:
        tree = with_steps_apart(tree) if mode is Mode.COMPUTE else tree
        with refusing(f"the loops of `{source.name}`", _limit(source)):
            found = regions(tree, function, places, every=unmarked)
            if not unmarked:
                return tuple(_explained(region, tree, places, mode) for region in found)
            others = () if function is not None else helpers(tree, places)
            macros = statement_macros(own_texts(source, include, angled=True), defines or {})
            return _unmarked(found, others, tree, places, _Way(mode, macros))
    except RecursionError:
        fail("c-syntax", "an expression or a statement is nested too deeply", None, helps=["take it apart"])


def _limit(source: Source) -> int:
    """Return what isl may spend on reading a text: most take a hundredth."""
    return 20_000_000 + 20_000 * len(source.text)


def _tree(
    places: Places, defines: Mapping[str, str], include: Sequence[Path], preprocessor: str | None
) -> c_ast.FileAST:
    """Return the syntax tree. What our own headers lack, those of the system may have."""
    text = preprocess(places.source, defines, include, preprocessor)
    try:
        return parse(text, places)
    except PolyloomError:
        other = None
        if preprocessor is None:
            other = preprocess_with_system(places.source, defines, include)
        tree = None if other is None else parsed(other, places)
        if tree is None:
            raise
        return tree


@dataclass(frozen=True)
class _Way:
    """How loops are read that nobody marked, and the macros of their file that hold statements."""

    mode: Mode
    macros: Mapping[str, Kind]


def _unmarked(
    found: Sequence[Region], called: Sequence[Region], tree: c_ast.FileAST, places: Places, way: _Way
) -> tuple[Part, ...]:
    """Return regions as parts, or the loops in them that are some. Errors: where there is none at all.

    ``called``: regions that others hold, unless one of these is none as a whole.
    """
    parts, faults, left = list[Part](), list[PolyloomError](), list[Diagnostic]()
    seen = {id(region.function) for region in found}
    further = (region for region in called if faults and id(region.function) not in seen)
    for region in chain(found, further):
        try:
            part = _explained(region, tree, places, way.mode, asked=True)
            scop = scop_of(part)
            if not region.marked:
                _check_loops(region, scop)
            open_array = None if region.marked else _open_array(part)
            parts += (open_array and _loops_of(region, open_array, tree, places, way)) or (part,)
        except PolyloomError as fault:
            if region.marked:
                raise
            faults.append(fault)
            loops = _loops_of(region, fault, tree, places, way)
            parts += loops
            left += [] if loops else [_left_alone(region, fault)]
    if not parts and faults:
        raise faults[0]
    if left:
        parts[0] = replace(parts[0], remarks=(*left, *parts[0].remarks))
    return tuple(parts)


def _check_loops(region: Region, scop: Scop) -> None:
    """Refuse what is steps alone, with no loop around: there is nothing that threads or vectors could do."""
    steps = [s for s in scop.statements if has_procedure(s.value)]
    if steps and not any(s.iterators for s in scop.statements):
        message = f"data decide how often the loops of `{region.name}` go, with no other around them"
        helps = ["the C compiler makes as much of it; a function that calls it in a loop can be replaced"]
        raise Unsupported(error("c-while", message, steps[0].span, helps=helps))


def _loops_of(
    region: Region, fault: PolyloomError, tree: c_ast.FileAST, places: Places, way: _Way
) -> tuple[Part, ...]:
    """Return the loops of a function that as a whole is none, the first with a remark that says so."""
    read = partial(_computed, tree=tree, places=places, mode=way.mode)
    found = unmarked_parts(region.function, places, read, way.macros)
    if not found:
        return ()
    first, *others = found
    return (replace(first, remarks=(*first.remarks, _taken_apart(region, found, fault))), *others)


def _computed(region: Region, *, tree: c_ast.FileAST, places: Places, mode: Mode) -> Part | None:
    """Return a part that can be computed and replaced; None for what is none, or is over at once.

    Where nothing says how long an array of several loops is, those that do not need it may be parts.
    """
    try:
        part = _part(region, tree, places, mode, asked=True)
        scop = scop_of(part)
    except PolyloomError:
        return None
    if _has_several_loops(region) and _open_array(part) is not None:
        return None
    points = (prod(width(s.domain, k) for k in range(s.domain.dim(_DIM.set))) for s in scop.statements)
    return part if sum(points) >= WORTH_POINTS and not scop.escaping else None


def _has_several_loops(region: Region) -> bool:
    return sum(isinstance(inside, LOOPS) for node in region.body for inside in nodes_in(node)) > 1


def _open_array(part: Part) -> Unsupported | None:
    """Say of which array any element may be meant while nothing tells how many it has; None for none.

    Those that are alone with what they hold (``restrict``) need not be that long.
    """
    stored = [part.state.pool[d.target].array for d in part.state.drafts if d.target is not None]
    others = [a for a in map(part.state.arrays.get, stored) if a is not None and a.extents]
    if others and all(_is_restrict(a) for a in others):
        return None
    arrays = {
        name: array
        for name, array in part.state.arrays.items()
        if array.extents[:1] == (None,) and not _is_restrict(array)
    }
    for access in part.state.pool:
        if access.array in arrays and any(index.affine is None for index in access.indices[:1]):
            message = f"how many elements `{access.array}` has is not said"
            return Unsupported(error("drop-in-extent", message, arrays[access.array].place.variable.span))
    return None


def _is_restrict(array: FoundArray) -> bool:
    return bool(getattr(array.place.variable.type, "restrict", False))


def _taken_apart(region: Region, found: Sequence[Part], fault: PolyloomError) -> Diagnostic:
    """Say which loops of a function are taken, and why not all of it."""
    first = fault.diagnostics[0]
    listed = ", ".join(part.state.places.source.lines(*(part.region.characters or (0, 0))) for part in found)
    message = f"`{region.name}` is no static control part as a whole: {first.message}"
    notes = [f"taken by themselves are the loops in line {listed}; the rest stays as it is"]
    said = remark("c-unmarked", message, first.span, notes=notes, helps=[PAIR])
    return replace(said, label=first.label)


def _left_alone(region: Region, fault: PolyloomError) -> Diagnostic:
    first = fault.diagnostics[0]
    message = f"no loop of `{region.name}` is a static control part: {first.message}"
    said = remark("c-unmarked", message, first.span, notes=["all of it stays as it is"])
    return replace(said, label=first.label)


def _explained(
    region: Region, tree: c_ast.FileAST, places: Places, mode: Mode, *, asked: bool = False
) -> Part:
    """Return a part; where a whole function is none, say which lines of it may be."""
    try:
        return _part(region, tree, places, mode, asked=asked)
    except PolyloomError as fault:
        lines = [] if region.marked else loop_lines(region)
        outside = [d for d in fault.diagnostics if d.span is not None and d.span.line not in lines]
        if not lines or not outside:
            raise
        first, last = lines[0], lines[-1]
        marks = f"put `#pragma scop` before line {first} and `#pragma endscop` after line {last}"
        raise type(fault)(*(replace(d, helps=(*d.helps, marks)) for d in fault.diagnostics)) from fault


def _part(region: Region, tree: c_ast.FileAST, places: Places, mode: Mode, *, asked: bool = False) -> Part:
    """Return a part. ``asked``: whether who calls it asks what is assumed, and runs C's loops otherwise.

    Loops up to a product beside an array whose dimensions were not found are no part then: alone they may be.
    """
    if mode is Mode.COMPUTE:
        unread = partial(_is_unread, region)
        region = with_offsets(with_row_pointers(region, unread=unread), unread=unread, added=asked)
        region = with_counted_loops(region, unread=unread)
    state, elements = _walked(region, tree, places, mode, ConstantElements()), None
    while (elements := next_walk(state)) is not None:
        state = _walked(region, tree, places, mode, elements)
    if state.refused:
        raise worst(state.refused)
    check_spots(state)
    remarks = delinearise(state, asked=asked)
    if asked and remarks and bound_loops(state):
        raise Unsupported(*(replace(said, severity=Severity.ERROR) for said in remarks))
    if asked:
        begin_at_pointers(state)
    statements = statements_of(state)
    extent = extent_in(region, places)
    return Part(region, state, statements, schedule_of(statements), extent, tree, remarks)


def _is_unread(region: Region, name: str) -> bool:
    return not is_read_after(region, name)


def _walked(
    region: Region, tree: c_ast.FileAST, places: Places, mode: Mode, elements: ConstantElements
) -> State:
    hooks = Hooks(walk_all, inlined, place, size_of, staying, summarised, value, not_null)
    state = enter(region, tree, places, mode, hooks)
    state.elements = elements
    if not region.marked:
        take_returned(region.function, state)
    refuse_shared(region.body, state)
    state.bodies.append(c_ast.Compound(list(region.body)))
    walk_all(region.body, state)
    return state


def scop_of(part: Part) -> Scop:
    """Return the model of a part. Errors: ``Unsupported`` with every statement that cannot be computed."""
    return part.scop


def _scop_of(part: Part) -> Scop:
    state = part.state
    refused = [d for s in part.statements for d in s.draft.refused]
    refused += [*state.touched.refused, *unused(state)]  # the former: of what no statement came
    if refused:
        raise Unsupported(*dict.fromkeys(refused))
    models = tuple(s.model for s in part.statements if s.model is not None and not s.domain.is_empty())
    used = {access.array for m in models for access in (m.target, *m.reads)}
    if faults := dereferenced(used, state):
        raise Unsupported(*faults)
    known = [a for a in state.arrays.values() if a.place.variable not in state.nulls]
    arrays = tuple(_array(a, part) for a in known if isinstance(a.type, Scalar))
    unread = _unread(arrays, models)
    models = tuple(m for m in models if m.target.array not in unread)
    names = {m.name for m in models}
    kept = [s for s in part.statements if s.name in names]
    arguments = part.region.function.decl.type.args
    return Scop(
        name=part.name,
        source=state.places.source,
        parameters=parameters_of(state, part.statements),
        context=context_of(state, part.statements),
        statements=models,
        schedule=schedule_of(kept),
        arrays=tuple(a for a in arrays if a.name not in unread),
        stated=tuple(state.stated),
        assumed=(*state.assumed, *_assumed(part)),
        extent=part.extent,
        remarks=part.remarks,
        arguments=tuple(d.name for d in (arguments.params if arguments else ()) if getattr(d, "name", None)),
        escaping=tuple(dict.fromkeys((*escaping_iterators(part.region), *sorted(state.outside)))),
        fused=tuple(dict.fromkeys(state.fused)),
        returned=next((a.name for a in arrays if _holds_returned(state, a.name)), None),
        marked=part.region.has_pragmas,
        static="static" in (part.region.function.decl.storage or ()),
        present=tuple(v.name if is_seen(v, state) else "" for v in state.present),
        reached=reached(addressed(part.region.function), state),
        equal=tuple(map(equality, products_of(state, part.statements))),
        stepped=part.region.stepped,
        repeated=part.region.repeated,
    )


def _holds_returned(state: State, name: str) -> bool:
    places = (result.place for result in state.results)
    return any(p is not None and p.variable is state.arrays[name].place.variable for p in places)


def _unread(arrays: Sequence[ScopArray], statements: Sequence[ScopStatement]) -> frozenset[str]:
    """Return the integers of the part whose values stand wherever they were read."""
    read = {access.array for s in statements for access in s.reads}
    inner = (a for a in arrays if a.origin is Origin.INNER and not a.shape and not a.type.is_float)
    unread = frozenset(a.name for a in inner if a.name not in read)
    return unread if any(s.target.array not in unread for s in statements) else frozenset()


def _assumed(part: Part) -> list[str]:
    """Return what is taken for granted in every part, one sentence each."""
    pointers = [
        a.place.variable
        for a in part.state.arrays.values()
        if a.place.variable.origin is Origin.ARGUMENT and a.extents
    ]
    shared = dict.fromkeys(v.name for v in pointers if not getattr(v.type, "restrict", False))
    sentences = [f"`{variable.name}` is not NULL" for variable in part.state.present]
    sentences += [f"`{integer_text(equality(product))}`" for product in part.state.equal]
    sentences += ["arithmetic of signed integers does not overflow", "subscripts lie inside their dimensions"]
    if len(shared) > 1:
        names = ", ".join(f"`{name}`" for name in shared)
        sentences.append(f"the arrays that {names} point to do not overlap")
    return sentences


def _array(found: FoundArray, part: Part) -> ScopArray:
    variable = found.place.variable
    start = initial(variable.name, part.region, part.state)
    assert isinstance(found.type, Scalar)
    return ScopArray(
        name=found.name,
        type=found.type.element,
        shape=tuple(None if e is None else e.expression for e in found.extents),
        origin=_origin(found, part),
        constant=variable.constant,
        restrict=getattr(variable.type, "restrict", False),
        record=(variable.name, *found.place.members) if found.place.members else (),
        span=variable.span,
        levels=found.place.levels if found.place.members else (),
        variable=variable.name,
        hidden=variable.origin is not Origin.INNER and not is_seen(variable, part.state),
        undefined=start.undefined or _holds_returned(part.state, found.name),
        initial=start.value,
        truths=found.type.boolean,
        register=variable.register,
        member=structure_member(found.place),
    )


def _origin(found: FoundArray, part: Part) -> Origin:
    """Return where an array comes from. A local integer that nothing reads is as one of the part itself."""
    variable = found.place.variable
    kind = variable.type
    if variable.origin is not Origin.OUTER or not isinstance(kind, Scalar) or kind.element.is_float:
        return variable.origin
    read = any(a.array == found.name for s in part.statements for a in s.reads)
    pointers = {offset: pointer for pointer, offset in part.region.stepped}
    if read or is_read_after(part.region, pointers.get(variable.name, variable.name)):
        return variable.origin
    return Origin.INNER
