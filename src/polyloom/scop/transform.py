"""A static control part as a host program of MDHs.

updates -> dependences -> expansion -> plan -> contraction -> host nodes
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import reduce

import islpy as isl

from polyloom.diagnostics import Diagnostic, PolyloomError, remark
from polyloom.ir.host import Buffer, Copy, HostBranch, HostNode, HostProgram, MdHom, Nest, Role, walk_host
from polyloom.polyhedra.loops import CodeBuilder, WrongLoops
from polyloom.scop.arrange import arrange
from polyloom.scop.automatic import automatic
from polyloom.scop.buffers import buffers, parameters
from polyloom.scop.contract import Storage, contracted, private_buffers, rewriting
from polyloom.scop.dependences import Dependences, Kind, dependences
from polyloom.scop.emit import Emitter
from polyloom.scop.expand import Expansion, expanded
from polyloom.scop.functions import ordered_updates
from polyloom.scop.fuse import fused, without_dead
from polyloom.scop.gather import gathered
from polyloom.scop.hyperplanes import Edge, edge
from polyloom.scop.model import Scop
from polyloom.scop.nests import nest
from polyloom.scop.patterns import Patterns, selections, together
from polyloom.scop.plan import NoRow
from polyloom.scop.stated import stated_errors, stated_updates
from polyloom.scop.updates import Update, update_of
from polyloom.scop.verdicts import LoopVerdict, Verdict, verdicts


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
    """The host program, what each loop of the source is, and remarks on those that are serial."""

    program: HostProgram
    loops: tuple[LoopVerdict, ...] = ()
    remarks: tuple[Diagnostic, ...] = ()


def host_program(scop: Scop, mode: ReductionMode = ReductionMode.DETECT) -> Transformation:
    """Return the host program of a static control part; every one has one.

    Errors: ``PolyloomError`` where a stated reduction contradicts the dependences.
    Source: md_poly, Sec. 3.2.2. Not in the papers: the transformation of arbitrary parts.
    """
    scop = with_parameters(scop)
    if not scop.statements:
        return Transformation(serial_program(scop))
    try:
        return _automatic(scop) if mode is ReductionMode.IGNORE else _transformed(scop, mode)
    except (isl.Error, WrongLoops, NoRow) as fault:
        notes = [str(fault).partition(" in ")[0]]
        message = f"`{scop.name}` runs sequentially: no loops were found for its parallel form"
        return Transformation(serial_program(scop), (), (remark("scop-fallback", message, notes=notes),))


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
        body = (HostBranch(condition, body, rest.program.body),)
        known = {b.name for b in held}
        held += tuple(b for b in rest.program.buffers if b.name not in known)
    return replace(general, program=HostProgram(scop.name, parameters(scop), _used(held, body), body))


def _transformed(scop: Scop, mode: ReductionMode) -> Transformation:
    updates = _updates(scop, mode)
    before = dependences(scop, updates)
    larger, expansions = expanded(scop, before)
    after = _again(before, larger, updates, expansions)
    ordered = {} if mode is ReductionMode.IGNORE else ordered_updates(larger)
    wrong = tuple(stated_errors(scop, after, ordered))
    if wrong and mode is not ReductionMode.IGNORE:
        raise PolyloomError(*wrong)
    edges = edges_of(after)
    patterns = _patterns(larger, updates, ordered, mode)
    edges += [edge(a, b, "", False, False, pairs) for s in patterns.selections for a, b, pairs in together(s)]
    arranged = gathered(arrange(larger.statements, edges, patterns), expansions, edges, patterns)
    plans, storages = contracted(arranged, expansions)
    held = {b.name: b for b in _buffers(larger, before, storages)}
    emitter = Emitter(larger, updates, held, rewriting(storages), private_buffers(storages, held))
    passing = frozenset(b.name for b in held.values() if b.role is Role.LOCAL)
    body = fused(without_dead(emitter.nodes(plans), passing), passing)
    found = _used((*held.values(), *emitter.locals), body)
    program = HostProgram(scop.name, parameters(scop), found, body)
    loops = verdicts(larger, after, expansions, updates, arranged, ordered)
    return Transformation(program, loops, tuple(_remarks(loops)))


def _again(
    before: Dependences, scop: Scop, updates: Mapping[str, Update], expansions: Sequence[Expansion]
) -> Dependences:
    """Return the dependences after expansion; those through other arrays are as before."""
    touched = {name for e in expansions for name in (e.name, e.array.name)}
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
    for node in walk_host(body):
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


def _updates(scop: Scop, mode: ReductionMode) -> dict[str, Update]:
    if mode is ReductionMode.IGNORE:
        return {}
    found = {s.name: update for s in scop.statements if (update := update_of(s)) is not None}
    return stated_updates(scop, found) if mode is ReductionMode.STATED else found


def _patterns(
    scop: Scop, updates: Mapping[str, Update], ordered: Mapping[str, Update], mode: ReductionMode
) -> Patterns:
    found = selections(scop) if mode is ReductionMode.DETECT else ()
    return Patterns(frozenset(s.name for s in scop.statements), updates, found, ordered)


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
    """Return the whole part as one sequential program: always right, never parallel."""
    scop = with_parameters(scop)
    schedule = scop.schedule.intersect_domain(instances(scop))
    body = (nest(scop.name, scop.statements, schedule, scop.context),) if scop.statements else ()
    exposed = dependences(scop, {}).exposed
    return HostProgram(scop.name, parameters(scop), buffers(scop, exposed), body)


def instances(scop: Scop) -> isl.UnionSet:
    """Return all instances of all statements where the context holds."""
    result = isl.UnionSet.empty(scop.context.get_space())
    for statement in scop.statements:
        result = result.union(isl.UnionSet.from_set(statement.domain))
    return result.intersect_params(scop.context)
