"""A static control part as a host program of MDHs.

branches and named values -> updates -> dependences -> expansion -> plan -> contraction -> host nodes
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import reduce

import islpy as isl

from polyloom.diagnostics import Diagnostic, PolyloomError, Source, Span, Unsupported, error, remark
from polyloom.ir.host import Buffer, Copy, HostNode, HostProgram, MdHom, Nest, Role, has_shared_loops
from polyloom.ir.inequalities import conjunction
from polyloom.ir.naming import Names
from polyloom.ir.node_names import with_unique_names
from polyloom.ir.rounding.library_functions import library_functions
from polyloom.ir.transform.decided_choices import with_decided_choices
from polyloom.ir.transform.reroll_sums import rerolled_sums
from polyloom.ir.transform.walks import loops_cross_rows, walks_along_rows
from polyloom.ir.verification.passes import after_pass, at_the_end, is_on
from polyloom.ir.verification.programs import InvalidProgram
from polyloom.polyhedra.effort import TooHardError, at_most
from polyloom.polyhedra.loops.generate import CodeBuilder, WrongLoops
from polyloom.polyhedra.loops.guarded import NoBounds, Timed, guarded_loops
from polyloom.polyhedra.loops.tree import Branch, leaves_in
from polyloom.scop.dependence.dependences import Dependences, Kind, dependences
from polyloom.scop.dependence.nesting import times_of
from polyloom.scop.dependence.reductions import Update, update_of
from polyloom.scop.lowering.conditional_stores import in_steps, stores_where_asked_only
from polyloom.scop.lowering.filled_holes import with_filled_holes
from polyloom.scop.lowering.fusion import fused, without_dead
from polyloom.scop.lowering.host_nodes import Emitter
from polyloom.scop.lowering.narrow_floats import with_narrow_floats, with_narrow_statements
from polyloom.scop.lowering.sequential import nest, nest_of
from polyloom.scop.lowering.whole_body import automatic
from polyloom.scop.lowering.written_elements import WrongWrites, check_written
from polyloom.scop.model import Scop
from polyloom.scop.preparation.branches import joined
from polyloom.scop.preparation.choices import with_choices_made
from polyloom.scop.preparation.chosen.decisions import with_decisions
from polyloom.scop.preparation.chosen.last_values import with_last_values
from polyloom.scop.preparation.coordinates import over_written
from polyloom.scop.preparation.excluded_points import with_excluded_points
from polyloom.scop.preparation.existing_targets import with_existing_targets
from polyloom.scop.preparation.forward_substitution import substituted
from polyloom.scop.preparation.joined_accumulators import with_accumulators_joined
from polyloom.scop.preparation.local_arrays import without_local_arrays
from polyloom.scop.preparation.remainders import with_remainders_joined
from polyloom.scop.preparation.scalars.conditional_locals import with_locals_always_set
from polyloom.scop.preparation.scalars.straight_lines import with_steps
from polyloom.scop.preparation.scalars.swaps import with_values_in_order
from polyloom.scop.preparation.unchanged import without_unchanged
from polyloom.scop.schedule.arrays import buffers, parameters
from polyloom.scop.schedule.blocks.blocking import blocked, may_have_blocks
from polyloom.scop.schedule.blocks.kept_values import kept_by, with_kept
from polyloom.scop.schedule.blocks.tiles import goes_diagonally, in_tiles
from polyloom.scop.schedule.contraction import Storage, contracted, private_buffers, rewriting
from polyloom.scop.schedule.custom_combiners import ordered_updates
from polyloom.scop.schedule.expansion import Expansion, expanded
from polyloom.scop.schedule.gathering.branches import with_branches_inside
from polyloom.scop.schedule.gathering.grouping import gathered, with_users_inside
from polyloom.scop.schedule.hyperplanes import Edge, edge
from polyloom.scop.schedule.loop_verdicts import LoopVerdict, Verdict, verdicts
from polyloom.scop.schedule.node_splitting import with_old_values
from polyloom.scop.schedule.plan import Block, NoRow, Part, Plan, parts, walk_plans
from polyloom.scop.schedule.scheduling import arrange
from polyloom.scop.schedule.stated_reductions import stated_errors, stated_updates
from polyloom.scop.schedule.statement_groups import Patterns, selections, together
from polyloom.scop.schedule.trees.given import START, check_tree, plans_of, read_tree, runs_all
from polyloom.scop.schedule.trees.written import schedule_text


class ReductionMode(Enum):
    """Where combine operators other than ``++`` come from."""

    DETECT = "detect"
    """Recognised in the source, and stated."""
    STATED = "stated"
    """Only from ``#pragma mdh parallel``: md_poly's solution 2."""
    IGNORE = "ignore"
    """None: md_poly's solution 1, as PPCG does."""


@dataclass(frozen=True, eq=False)
class Transformation:
    """The host program, what each loop of the source is, and remarks on those that are serial.

    ``planned``: the statements with those that expansion adds, and their plans, without blocks that keep
    values by statements of their own; None: in the source's order.
    """

    program: HostProgram
    loops: tuple[LoopVerdict, ...] = ()
    remarks: tuple[Diagnostic, ...] = ()
    planned: tuple[Scop, tuple[Plan, ...]] | None = None


def host_program(
    scop: Scop,
    mode: ReductionMode = ReductionMode.DETECT,
    *,
    strict: bool = False,
    schedule: Source | None = None,
) -> Transformation:
    """Return the host program of a static control part; every one has one.

    ``strict``: sums and products of floats keep the order of the source. ``schedule``: a schedule tree in
    isl's text, which is taken in place of ours.

    Errors: ``PolyloomError`` where a stated reduction contradicts the dependences; ``Unsupported`` with
    ``fp-fma`` for what has no exact form; ``schedule-...``.
    Source: md_poly, Sec. 3.2.2. Not in the papers: the transformation of arbitrary parts.
    """
    if strict and scop.fused:
        raise Unsupported(*(_rounded_twice(span) for span in scop.fused))
    if schedule is not None:
        return _finished(_scheduled(with_parameters(scop), mode, strict, schedule), scop, strict)
    return _transformation(scop, mode, strict=strict)


def _finished(found: Transformation, scop: Scop, strict: bool) -> Transformation:
    """Return a form as its users get it: with the condition on its parameters, and verified."""
    found = replace(found, program=with_narrow_floats(_in_context(found.program, scop)))
    found = _marked(found) if strict else found
    at_the_end(f"the transformation of `{scop.name}`", found.program)
    return found


def _in_context(program: HostProgram, scop: Scop) -> HostProgram:
    """Return the program with what was taken for granted of the parameters: it is checked before each run."""
    with at_most(_CONTEXT, f"what is known of the parameters of `{scop.name}`"):
        context = scop.context.params()
        condition = CodeBuilder(isl.Set.universe(context.get_space()), {}).condition(context)
    return replace(program, context=conjunction([c for c in (condition, *scop.equal) if c is not None]))


def _transformation(scop: Scop, mode: ReductionMode, *, strict: bool) -> Transformation:
    if not scop.statements:
        return _finished(Transformation(serial_program(scop)), scop, strict)
    for in_blocks in (True, False) if may_have_blocks(scop.statements) else (False,):
        try:
            each = 2 * _PARALLEL if in_blocks else _PARALLEL
            with at_most(each * (8 + len(scop.statements)), f"the parallel form of `{scop.name}`"):
                found = _parallel(with_parameters(scop), mode, strict, in_blocks)
            return _finished(_with_rows(found, scop, mode, strict), scop, strict)
        except TooHardError as fault:
            notes = [f"isl was given up on a question: {fault}"]
        except (isl.Error, WrongLoops, NoRow, WrongWrites, InvalidProgram) as fault:
            if isinstance(fault, InvalidProgram) and is_on():
                raise
            notes = [str(fault).partition(" in ")[0]]
    message = f"`{scop.name}` runs sequentially: no loops were found for its parallel form"
    remarks = (remark("scop-fallback", message, notes=notes),)
    return _finished(Transformation(serial_program(scop), (), remarks), scop, strict)


def _with_rows(found: Transformation, scop: Scop, mode: ReductionMode, strict: bool) -> Transformation:
    """Give a program with wavefronts, or whose md_homs cross rows, another form.

    In tiles, with the loops of the source, or as it is written where that goes along rows.
    """
    plans = () if found.planned is None else found.planned[1]
    has_waves = any(Part.WAVEFRONT in row for row in parts(plans).values())
    with at_most(_PARALLEL, f"which loops of `{scop.name}` go diagonally"):
        may_be_tiled = has_waves or any(map(goes_diagonally, plans))
    if may_be_tiled:
        rows = _by_processors(scop, mode, strict, tiled=True)
        if rows is not None and has_shared_loops(rows):
            return replace(found, program=replace(found.program, in_rows=rows))
    rows = _by_processors(scop, mode, strict, tiled=False) if has_waves else None
    if not may_be_tiled and not has_waves and loops_cross_rows(found.program):
        rows = _as_written(scop, mode, strict)
    return found if rows is None else replace(found, program=replace(found.program, in_rows=rows))


def _as_written(scop: Scop, mode: ReductionMode, strict: bool) -> HostProgram | None:
    """Return the loops of the source in their order, if they go along rows."""
    try:
        with at_most(
            _PARALLEL * (8 + len(scop.statements)), f"the loops of `{scop.name}` as they are written"
        ):
            rows = serial_program(prepared(scop, mode, strict=strict))
    except (TooHardError, isl.Error, Unsupported):
        return None
    return replace(_in_context(rows, scop), strict=strict) if walks_along_rows(rows) else None


def _by_processors(scop: Scop, mode: ReductionMode, strict: bool, *, tiled: bool) -> HostProgram | None:
    """Return the form in tiles, or that with the loops of the source; None where isl takes too long."""
    try:
        each = 2 * _PARALLEL if tiled else _PARALLEL
        with at_most(each * (8 + len(scop.statements)), f"the loops of `{scop.name}` without wavefronts"):
            whole = with_parameters(scop)
            rows = _parallel(whole, mode, strict, in_blocks=tiled, wavefronts=tiled, tiled=tiled).program
    except (TooHardError, isl.Error, WrongLoops, NoRow, WrongWrites, InvalidProgram) as fault:
        if isinstance(fault, InvalidProgram) and is_on():
            raise
        return None
    return replace(_in_context(rows, scop), strict=strict)


def _scheduled(scop: Scop, mode: ReductionMode, strict: bool, text: Source) -> Transformation:
    """Return the host program under a user's schedule. Errors: ``schedule-...``."""
    try:
        with at_most(_GIVEN * (8 + len(scop.statements)), f"the schedule of `{scop.name}`"):
            scop = prepared(scop, mode, strict=strict)
            found = _transformed(scop, mode, strict, tree=read_tree(text))
            check_written(scop, found.program)
            return replace(found, program=with_unique_names(found.program))
    except (TooHardError, isl.Error, WrongLoops, NoRow, WrongWrites) as fault:
        message = f"`{scop.name}` cannot be run under the schedule in `{text.name}`"
        notes = [str(fault).partition(" in ")[0]]
        raise PolyloomError(error("schedule-hard", message, notes=notes, helps=[START])) from fault


_PARALLEL = 250_000
"""What isl may spend on one statement of the parallel form, and twice in blocks; most take a fifth."""
_GIVEN = 4_000_000
"""The same for a schedule that a user wrote, who would rather wait than not get it."""
_SERIAL = 100_000
"""The same for the sequential form."""
_CONTEXT = 50_000
"""The same for the condition on the parameters, once."""


def prepared(scop: Scop, mode: ReductionMode, *, strict: bool) -> Scop:
    """Return the part as its dependences are asked for: the statements that schedules speak of."""
    whole = with_excluded_points(with_values_in_order(with_narrow_statements(scop)), strict=strict)
    alone = with_existing_targets(with_locals_always_set(whole))
    chosen = with_choices_made(with_remainders_joined(joined(alone)))
    found = without_local_arrays(substituted(with_steps(chosen)))
    if mode is ReductionMode.DETECT:
        fewer = with_accumulators_joined(found, strict=strict)
        found = found if fewer is found else substituted(fewer)
    return without_unchanged(with_decisions(with_last_values(found)))


def _parallel(
    scop: Scop,
    mode: ReductionMode,
    strict: bool,
    in_blocks: bool,
    *,
    wavefronts: bool = True,
    tiled: bool = False,
) -> Transformation:
    scop = prepared(scop, mode, strict=strict)
    scop = over_written(scop) if tiled else scop
    if mode is ReductionMode.IGNORE:
        found = _automatic(scop)
    else:
        found = _transformed(scop, mode, strict, in_blocks=in_blocks, wavefronts=wavefronts, tiled=tiled)
    check_written(scop, found.program)
    program = with_filled_holes(with_unique_names(found.program))
    program = after_pass(f"the filling of holes of `{scop.name}`", program)
    program = after_pass(f"the decided choices of `{scop.name}`", with_decided_choices(program))
    if not strict:
        program = after_pass(f"the rerolling of sums of `{scop.name}`", rerolled_sums(program))
    return replace(found, program=with_unique_names(program))


def _marked(found: Transformation) -> Transformation:
    """Say in the program that floats keep their order, and name what may have other bits than in C."""
    program = replace(found.program, strict=True)
    return replace(found, program=program, remarks=(*found.remarks, *_rounded_by_libraries(program)))


def _rounded_twice(span: Span | None) -> Diagnostic:
    message = "`fma` is a product and a sum here, each rounded: not the bits of C"
    return error("fp-fma", message, span, helps=["write the product and the sum, or leave out `--fp strict`"])


def _rounded_by_libraries(program: HostProgram) -> Iterator[Diagnostic]:
    names = library_functions(program)
    if names:
        message = f"the last bits of {', '.join(names)} are the device's, not those of C's library"
        notes = ["no standard says how these functions are rounded; all else has the bits of the C compiler"]
        yield remark("fp-library", message, notes=notes)


def _automatic(scop: Scop) -> Transformation:
    """Ignore reductions: one md_hom with serial dimensions as in the paper, where the part has that form."""
    general = _transformed(scop, ReductionMode.IGNORE)
    found = automatic(scop)
    if found is None:
        return general
    body: tuple[HostNode, ...] = (found.node,)
    held = tuple(buffers(scop, dependences(scop, {}).exposed))
    condition = CodeBuilder(scop.context, {}).condition(found.context.params())
    if condition is not None:
        rest = _transformed(replace(scop, context=scop.context.subtract(found.context)), ReductionMode.IGNORE)
        body = (Branch(condition, body, rest.program.body),)
        known = {b.name for b in held}
        held += tuple(b for b in rest.program.buffers if b.name not in known)
    return replace(
        general,
        program=HostProgram(
            name=scop.name, parameters=parameters(scop), buffers=_used(held, body), body=body
        ),
    )


def _transformed(
    scop: Scop,
    mode: ReductionMode,
    strict: bool = False,
    *,
    in_blocks: bool = False,
    wavefronts: bool = True,
    tiled: bool = False,
    tree: isl.Schedule | None = None,
) -> Transformation:
    updates = _updates(scop, mode, strict)
    before = dependences(scop, updates)
    larger, expansions = expanded(scop, before)
    if tree is not None and not runs_all(tree, larger) and runs_all(tree, scop):
        larger, expansions = scop, ()
    after = _again(before, larger, updates, {n for e in expansions for n in (e.name, e.array.name)})
    whole, found = larger, after
    split, touched = with_old_values(larger, after)
    if tree is None or runs_all(tree, split):
        larger, after = split, _again(after, split, updates, touched)
    ordered = {**_ordered(larger, mode, strict), **_by_functions(larger, mode)}
    wrong = tuple(stated_errors(scop, after, ordered))
    if wrong and mode is not ReductionMode.IGNORE:
        raise PolyloomError(*wrong)
    edges = edges_of(after)
    patterns = replace(_patterns(larger, updates, ordered, mode, strict), wavefronts=wavefronts)
    asked_only = stores_where_asked_only(larger, updates) | in_steps(larger)
    if tree is None:
        kept = (edge(a, b, "", False, False, p) for s in patterns.selections for a, b, p in together(s))
        edges += kept
        arranged = arrange(larger.statements, edges, patterns)
        arranged = with_branches_inside(arranged, expansions, edges, patterns.names, asked_only)
        arranged = gathered(arranged, expansions, edges, patterns)
        arranged = with_users_inside(arranged, larger.statements, expansions, edges, patterns, asked_only)
        planned = (larger, arranged)
        if tiled:
            arranged = in_tiles(arranged, edges, patterns) or arranged
        if in_blocks:
            arranged = blocked(arranged, edges, larger, patterns)
            kept_values = kept_by(arranged)
            larger = with_kept(larger, kept_values)
            planned = planned if kept_values else (larger, arranged)
    else:
        check_tree(tree, larger, after)
        arranged = plans_of(tree, larger.statements, edges, patterns)
        planned = (larger, arranged)
    plans, storages = _stored(arranged, expansions, Names({a.name for a in larger.arrays}))
    held = {b.name: b for b in _buffers(larger, before, storages)}
    private = private_buffers(storages, held)
    emitter = Emitter(larger, updates, held, rewriting(storages), private, asked_only)
    passing = frozenset(b.name for b in held.values() if b.role is Role.LOCAL)
    nodes = emitter.nodes(plans)

    def made(last: str, body: tuple[HostNode, ...]) -> HostProgram:
        used = _used((*held.values(), *emitter.locals), body)
        program = with_unique_names(
            HostProgram(name=scop.name, parameters=parameters(scop), buffers=used, body=body)
        )
        return after_pass(f"{last} of `{scop.name}`", program)

    alive = without_dead(made("emission", nodes).body, passing)
    program = made("fusion", fused(made("the removal of dead nodes", alive).body, passing))
    loops = verdicts(whole, found, expansions, updates, arranged, ordered)
    return Transformation(program, loops, tuple(_remarks(loops)), planned)


def _stored(
    plans: tuple[Plan, ...], expansions: Sequence[Expansion], names: Names
) -> tuple[tuple[Plan, ...], tuple[Storage, ...]]:
    """Return plans, and where expanded arrays lie: whole, where nodes have an order that a user wrote."""
    if any(isinstance(plan, Block) and plan.order is not None for plan in walk_plans(plans)):
        return plans, tuple(Storage(e, e.name, tuple(e.axes), private=False) for e in expansions)
    return contracted(plans, expansions, names)


def schedule_tree(scop: Scop, found: Transformation) -> str:
    """Return the schedule of a program as isl prints trees; ``--schedule`` takes it.

    Errors: ``Unsupported`` with ``scop-too-hard``.
    """
    try:
        with at_most(_PARALLEL * (8 + len(scop.statements)), f"the schedule tree of `{scop.name}`"):
            whole = with_parameters(scop)
            larger, plans = found.planned or (whole, (Block(whole.statements, ()),))
            return schedule_text(larger, plans)
    except (TooHardError, isl.Error) as fault:
        message = f"isl was given up on the schedule tree of `{scop.name}`"
        raise Unsupported(error("scop-too-hard", message, notes=[str(fault).partition(" in ")[0]])) from fault


def _again(
    before: Dependences, scop: Scop, updates: Mapping[str, Update], touched: Collection[str]
) -> Dependences:
    """Return the dependences where accesses to some arrays are others; the rest are as before."""
    if not touched:
        return before
    new = dependences(scop, updates, touched)
    edges = [e for e in before.edges if e.array not in touched]
    exposed = {array: elements for array, elements in before.exposed.items() if array not in touched}
    return Dependences((*edges, *new.edges), {**exposed, **new.exposed})


def _remarks(loops: Sequence[LoopVerdict]) -> Iterator[Diagnostic]:
    """Yield a remark for each loop that is serial."""
    for loop in loops:
        if loop.verdict is Verdict.SERIAL and not loop.runs_parallel:
            message = f"the iterations of the loop over `{loop.iterator}` depend on each other"
            notes = [*loop.notes, *([str(loop.witness)] if loop.witness else [])]
            yield remark("scop-serial", message, loop.span, notes=notes, helps=loop.helps)


def _buffers(scop: Scop, found: Dependences, storages: Sequence[Storage]) -> Iterator[Buffer]:
    """Yield the buffers, expanded arrays with the axes that they kept."""
    kept = {s.expansion.name: s for s in storages}
    for buffer in buffers(scop, found.exposed):
        storage = kept.get(buffer.name)
        if storage is None:
            yield buffer
        else:
            extents = tuple(axis.extent for axis in storage.axes)
            gone = len(storage.expansion.axes)
            yield replace(buffer, shape=(*extents, *buffer.shape[gone:]))


def _used(held: Sequence[Buffer], body: tuple[HostNode, ...]) -> tuple[Buffer, ...]:
    """Return the buffers without local ones that nothing uses."""
    names: set[str] = set()
    for node in leaves_in(body):
        match node:
            case MdHom(inputs=inputs, outputs=outputs):
                names |= {view.buffer for view in (*inputs, *outputs)}
            case Nest(assignments=assignments):
                names |= {view.buffer for a in assignments for view in (a.target, *a.reads)}
            case Copy(source=source, target=target):
                names |= {source, target}
            case _:
                pass
    return tuple(b for b in held if b.role is not Role.LOCAL or b.name in names)


def _updates(scop: Scop, mode: ReductionMode, strict: bool) -> dict[str, Update]:
    """Return the updates whose terms may change places."""
    found = _found_updates(scop, mode, strict)
    return {name: u for name, u in found.items() if not isinstance(u.op, str)}


def _ordered(scop: Scop, mode: ReductionMode, strict: bool) -> dict[str, Update]:
    """Return the updates whose terms combine in their order."""
    found = _found_updates(scop, mode, strict)
    return {name: u for name, u in found.items() if isinstance(u.op, str)}


def _by_functions(scop: Scop, mode: ReductionMode) -> dict[str, Update]:
    return {} if mode is ReductionMode.IGNORE else ordered_updates(scop)


def _found_updates(scop: Scop, mode: ReductionMode, strict: bool) -> dict[str, Update]:
    if mode is ReductionMode.IGNORE:
        return {}
    found = {s.name: u for s in scop.statements if (u := update_of(s, strict=strict)) is not None}
    return stated_updates(scop, found) if mode is ReductionMode.STATED else found


def _patterns(
    scop: Scop,
    updates: Mapping[str, Update],
    ordered: Mapping[str, Update],
    mode: ReductionMode,
    strict: bool,
) -> Patterns:
    found = selections(scop) if mode is ReductionMode.DETECT else ()
    return Patterns(
        names=Names({s.name for s in scop.statements}),
        updates=updates,
        selections=found,
        ordered=ordered,
        strict=strict,
    )


def edges_of(found: Dependences) -> list[Edge]:
    """Return what a schedule must respect."""
    groups: dict[tuple[str, str, str, bool, bool], list[isl.Map]] = {}
    for d in found.edges:
        key = (d.source, d.sink, d.array, d.kind is Kind.ANTI, d.relaxed is not None)
        groups.setdefault(key, []).append(d.relation)
    return [edge(*key, reduce(isl.Map.union, maps).coalesce()) for key, maps in groups.items()]


def with_parameters(scop: Scop) -> Scop:
    """Return the same part, its context over all parameters."""
    space = scop.schedule.get_space().params().align_params(scop.context.get_space())
    names = ", ".join(p.name for p in scop.parameters)
    space = space.align_params(isl.Set(f"[{names}] -> {{ : }}").get_space())
    return replace(scop, context=scop.context.align_params(space))


def serial_program(scop: Scop) -> HostProgram:
    """Return the whole part as one sequential program: always right, never parallel.

    Every array that is read counts as read before it is written, so that nothing has to be asked of isl to
    which there might be no answer. Errors: ``Unsupported`` with ``scop-too-hard`` where even then
    isl does not find how large an array is, or where a loop ends.
    """
    try:
        with at_most(2 * _SERIAL * (8 + len(scop.statements)), f"the loops of `{scop.name}`"):
            full = with_parameters(scop)
            read = {access.array for s in scop.statements for access in s.reads}
            body = (_serial(full),) if scop.statements else ()
            return HostProgram(
                name=scop.name, parameters=parameters(full), buffers=buffers(full, read), body=body
            )
    except (TooHardError, NoBounds, isl.Error) as fault:
        message = f"`{scop.name}` is too hard to analyse"
        span = scop.statements[0].span if scop.statements else None
        notes = [f"isl was given up on a question: {str(fault).partition(' in ')[0]}"]
        helps = ["divide it into several SCoPs, or simplify its bounds and subscripts"]
        raise Unsupported(error("scop-too-hard", message, span, notes=notes, helps=helps)) from fault


def _serial(scop: Scop) -> Nest:
    """Return all instances in their order: by isl's loops, else by those that constraints give."""
    try:
        with at_most(_SERIAL * (8 + len(scop.statements)), f"the loops of `{scop.name}`"):
            schedule = scop.schedule.intersect_domain(instances(scop))
            return nest(scop.name, scop.statements, schedule, scop.context)
    except (TooHardError, WrongLoops, isl.Error):
        times = times_of(scop)
        timed = [Timed(s.domain, times[s.name]) for s in scop.statements]
        return nest_of(scop.name, scop.statements, guarded_loops(timed, scop.context), scop.context)


def instances(scop: Scop) -> isl.UnionSet:
    """Return all instances of all statements where the context holds."""
    result = isl.UnionSet.empty(scop.context.get_space())
    for statement in scop.statements:
        result = result.union(isl.UnionSet.from_set(statement.domain))
    return result.intersect_params(scop.context)
