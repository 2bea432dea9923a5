"""C to static control parts.

preprocess -> parse -> regions -> (enter -> walk -> finish) for each part
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import islpy as isl
from pycparser import c_ast

from polyloom.diagnostics import Diagnostic, Source, Unsupported
from polyloom.frontends.c.c_types import Scalar, is_unsigned
from polyloom.frontends.c.control import walk_all
from polyloom.frontends.c.drafts import FoundArray
from polyloom.frontends.c.enter import enter
from polyloom.frontends.c.escaping import escaping_iterators
from polyloom.frontends.c.faults import fail, worst
from polyloom.frontends.c.finish import Statement, schedule_of, statements_of
from polyloom.frontends.c.initial import initial
from polyloom.frontends.c.inlining import inlined
from polyloom.frontends.c.linearised import delinearise
from polyloom.frontends.c.parse import parse
from polyloom.frontends.c.places import Places
from polyloom.frontends.c.preprocess import preprocess
from polyloom.frontends.c.regions import Region, extent_in, regions
from polyloom.frontends.c.state import Hooks, Mode, State
from polyloom.frontends.c.summaries import summarised
from polyloom.frontends.c.values import value
from polyloom.ir.expressions import ParameterValue, walk
from polyloom.polyhedra.loops_tree import names_in
from polyloom.scop.model import Origin, Scop, ScopArray, ScopParameter

_DIM = isl.dim_type


@dataclass(frozen=True, eq=False)
class Part:
    """A static control part as C has it, with what Polyloom cannot compute in it."""

    region: Region
    state: State
    statements: tuple[Statement, ...]
    schedule: isl.UnionMap
    extent: tuple[int, int]
    remarks: tuple[Diagnostic, ...] = ()

    @property
    def name(self) -> str:
        """The function's name."""
        return self.region.name


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
    parts = read_parts(source, function, defines, include, preprocessor, Mode.COMPUTE)
    return tuple(scop_of(part) for part in parts)


def read_parts(
    source: Source,
    function: str | None = None,
    defines: Mapping[str, str] | None = None,
    include: Sequence[Path] = (),
    preprocessor: str | None = None,
    mode: Mode = Mode.TEXT,
) -> tuple[Part, ...]:
    """Return the parts with all that could be found out, also where it cannot be computed.

    Errors: those of ``read_c``, but for calls of functions that Polyloom does not know.
    """
    places = Places(source)
    tree = parse(preprocess(source, defines or {}, include, preprocessor), places)
    try:
        return tuple(_part(region, tree, places, mode) for region in regions(tree, function, places))
    except RecursionError:
        fail("c-syntax", "an expression or a statement is nested too deeply", None, helps=["take it apart"])


def _part(region: Region, tree: c_ast.FileAST, places: Places, mode: Mode) -> Part:
    state = enter(region, tree, places, mode)
    state.hooks = Hooks(walk_all, inlined, summarised, value)
    walk_all(region.body, state)
    if state.refused:
        raise worst(state.refused)
    remarks = delinearise(state)
    statements = statements_of(state)
    return Part(region, state, statements, schedule_of(statements), extent_in(region, places), remarks)


def scop_of(part: Part) -> Scop:
    """Return the model of a part. Errors: ``Unsupported`` with every statement that cannot be computed."""
    state = part.state
    refused = [d for s in part.statements for d in s.draft.refused]
    if refused:
        raise Unsupported(*dict.fromkeys(refused))
    models = tuple(s.model for s in part.statements if s.model is not None and not s.domain.is_empty())
    names = {m.name for m in models}
    kept = [s for s in part.statements if s.name in names]
    arguments = part.region.function.decl.type.args
    return Scop(
        name=part.name,
        source=state.places.source,
        parameters=parameters_of(part),
        context=context_of(part),
        statements=models,
        schedule=schedule_of(kept),
        arrays=tuple(_array(a, part) for a in state.arrays.values() if isinstance(a.type, Scalar)),
        stated=tuple(state.stated),
        assumed=(*state.assumed, *_assumed(part)),
        extent=part.extent,
        remarks=part.remarks,
        arguments=tuple(d.name for d in (arguments.params if arguments else ()) if getattr(d, "name", None)),
        escaping=escaping_iterators(part.region),
    )


def _assumed(part: Part) -> list[str]:
    """Return what is taken for granted in every part, one sentence each."""
    pointers = [
        a.place.variable
        for a in part.state.arrays.values()
        if a.place.variable.origin is Origin.ARGUMENT and a.extents
    ]
    shared = dict.fromkeys(v.name for v in pointers if not getattr(v.type, "restrict", False))
    sentences = ["arithmetic of signed integers does not overflow", "subscripts lie inside their dimensions"]
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
        origin=variable.origin,
        constant=variable.constant,
        restrict=getattr(variable.type, "restrict", False),
        record=(variable.name, *found.place.members) if found.place.members else (),
        span=variable.span,
        levels=found.levels if found.place.members else (),
        variable=variable.name,
        undefined=start.undefined,
        initial=start.value,
    )


def context_of(part: Part) -> isl.Set:
    """Return what is known of the parameters: what was assumed, and that unsigned ones are not negative."""
    context = part.state.context.params()
    for parameter in parameters_of(part):
        if is_unsigned(parameter.type):
            name = parameter.name
            context = context.intersect(isl.Set(f"[{name}] -> {{ : {name} >= 0 }}"))
    return context.drop_unused_params()


def parameters_of(part: Part) -> tuple[ScopParameter, ...]:
    """Return the parameters that occur, in the order in which they are declared."""
    state = part.state
    used: set[str | None] = set(state.context.params().drop_unused_params().get_var_names(_DIM.param))
    for statement in part.statements:
        used |= set(statement.domain.get_var_names(_DIM.param))
        for access in (*statement.reads, *statement.writes):
            used |= set(access.relation.get_var_names(_DIM.param))
            used |= {p.name for i in access.indices for p in walk(i) if isinstance(p, ParameterValue)}
        for expression in (statement.draft.value, statement.draft.condition):
            if expression is not None:
                used |= {p.name for p in walk(expression) if isinstance(p, ParameterValue)}
    for array in state.arrays.values():
        used |= {n for e in array.extents if e is not None for n in names_in(e.expression)}
    return tuple(ScopParameter(name, element) for name, element in state.parameters.items() if name in used)
