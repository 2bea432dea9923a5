"""The task graph: what each PE does when, as sets over all PEs at once.

Computation tasks react to the arrival of an element, read a whole tensor, operate on local memory, or
initialise it; communication tasks store what arrives, reduce, gather and send.
Source: dtg_codegen, Sec. 4.2.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from collections.abc import Mapping as ReadOnly
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

import islpy as isl

from polyloom.diagnostics import Diagnostic, PolyloomError, error, remark
from polyloom.ir.host import View
from polyloom.ir.program import Program
from polyloom.ir.relations import access_relation
from polyloom.ir.scalar_functions.known_values import Number
from polyloom.ir.statements import Statement
from polyloom.polyhedra.binding import PE_PARAMETERS, bind_range
from polyloom.polyhedra.effort import naming, remembered
from polyloom.polyhedra.simplify import with_explicit_divs
from polyloom.wafer.dataflow.reductions import Results, Written, build_results
from polyloom.wafer.dataflow.sparsity import initial_value, zeros_may_be_dropped
from polyloom.wafer.dataflow.streams import Stream, build_streams, every_index
from polyloom.wafer.mapping.grid import pes_of
from polyloom.wafer.mapping.mapping import Mapping


class TaskKind(Enum):
    """How a computation task starts; the value is its name in the JSON of ``explain``."""

    SPARSE = "sparse"
    DENSE = "dense"
    LOCAL = "local"


@dataclass(frozen=True, eq=False, kw_only=True)
class ComputeTask:
    """The instances of one statement that one event starts on a PE.

    ``placed`` (11): the statement's instances on PE (PE_X, PE_Y); ``instances`` (12) (17) (27) (32): those
    for the element with the index ``index_names``; ``known`` (15): the parameter values that occur.
    """

    name: str
    kind: TaskKind
    statement: Statement
    stream: Stream | None
    index_names: tuple[str, ...]
    placed: isl.Set
    instances: isl.Set

    @property
    def known(self) -> isl.Set:
        """Return the constraints on PE coordinates and index values at which there are instances (15)."""
        return self.instances.params()

    @cached_property
    def pes(self) -> isl.Set:
        """The PEs that have instances: ``{ PE[x, y] }``."""
        return pes_of(self.instances)

    @property
    def trigger(self) -> int | None:
        """The position of the read that the arriving element is; None for a local task."""
        if self.stream is None:
            return None
        return trigger_position(self.statement, self.stream.tensor)

    def operand_reads(self) -> tuple[tuple[int, View], ...]:
        """Return the reads that come from local memory, with their positions."""
        reads = enumerate(self.statement.reads)
        return tuple((k, access) for k, access in reads if k != self.trigger)


@dataclass(frozen=True, eq=False)
class StoreTask:
    """A stream that PEs keep: ``stored``: ``{ PE[x, y] -> x[i] }``."""

    stream: Stream
    stored: isl.Map

    @cached_property
    def passing(self) -> ReadOnly[str, isl.Map]:
        """Return ``{ PE[x, y] -> index[k] }`` by name: what comes to PEs before, between and after what they
        keep, and is not kept.
        """
        carried = self.stream.carried.intersect_range(_at(self.stream.receivers, self.stream.index_rank))
        return _passing(carried, self.stored)


@remembered
def _passing(carried: isl.Map, stored: isl.Map) -> dict[str, isl.Map]:
    """``carried``: ``{ x[i] -> [PE[x, y] -> index[k]] }`` at the PEs that the stream comes to."""
    kept = carried.uncurry().intersect_domain(stored.reverse().wrap()).domain_factor_range()
    others = with_explicit_divs(carried.range().unwrap().subtract(kept))
    later = isl.Map.lex_lt(kept.range().get_space())
    first, last, earlier = kept.lexmin(), kept.lexmax(), later.reverse()
    behind, ahead = first.apply_range(later), last.apply_range(earlier)
    return {
        "before": with_explicit_divs(others.intersect(first.apply_range(earlier))),
        "between": with_explicit_divs(others.intersect(behind).intersect(ahead)),
        "after": with_explicit_divs(others.intersect(last.apply_range(later))),
    }


@dataclass(frozen=True, eq=False)
class InitializeTask:
    """Setting the elements of a tensor that a PE holds to one value before each invocation."""

    tensor: str
    value: Number

    @property
    def value_text(self) -> str:
        """The value as a person writes it: an integer with all of its digits."""
        return f"{self.value:g}" if isinstance(self.value, float) else str(self.value)


@dataclass(frozen=True, eq=False, kw_only=True)
class TaskGraph:
    """Everything that happens on the PEs, and the remarks that its construction gave.

    ``awaited``: for each stream that drives a statement, the tensors that must be reduced or moved across PEs
    first;
    ``stream_order``: the streamed tensors, each after those that its statements wait for.
    """

    program: Program
    mapping: Mapping
    streams: tuple[Stream, ...]
    compute: tuple[ComputeTask, ...]
    stores: tuple[StoreTask, ...]
    initialize: tuple[InitializeTask, ...]
    results: tuple[Results, ...]
    awaited: dict[str, frozenset[str]]
    stream_order: tuple[str, ...]
    remarks: tuple[Diagnostic, ...]

    def result(self, tensor: str) -> Results:
        """Return what becomes of a written tensor; KeyError where no statement writes it."""
        return next(r for r in self.results if r.tensor == tensor)


def _at(pes: isl.Set, rank: int) -> isl.Set:
    """Return ``{ [PE[x, y] -> index[k]] }`` at some PEs."""
    return isl.Map.from_domain_and_range(pes, every_index(rank)).wrap()


def trigger_position(statement: Statement, tensor: str) -> int:
    """Return the position of the statement's read of a tensor."""
    return next(k for k, access in enumerate(statement.reads) if access.buffer == tensor)


def build_tasks(program: Program, mapping: Mapping, written: Sequence[Written]) -> TaskGraph:
    """Break a placed program up into tasks; ``written``: by this map.

    Raises PolyloomError and Unsupported with ``map-...`` where the map does not work.
    """
    streams = build_streams(program, mapping)
    results = build_results(program, mapping, written)
    triggers = {s.name: _trigger(program, mapping, s) for s in program.statements}
    before = _streams_before(program, mapping, triggers)
    _check_order(mapping, before)
    remarks = tuple(_stored_remarks(program, mapping, triggers))
    compute: list[ComputeTask] = []
    for statement in program.statements:
        with naming(f"the tasks of `{statement.name}`", statement.span):
            compute += _compute_tasks(mapping, statement, triggers[statement.name], streams)
    stores = tuple(s for stream in streams if (s := _store(program, mapping, stream, triggers)))
    initialize = tuple(_initializations(program, mapping, triggers, stores))
    awaited = _awaited_reductions(program, triggers, results)
    order = tuple(_in_order(before))
    return TaskGraph(
        program=program,
        mapping=mapping,
        streams=streams,
        compute=tuple(compute),
        stores=stores,
        initialize=initialize,
        results=results,
        awaited=awaited,
        stream_order=order,
        remarks=remarks,
    )


def _trigger(program: Program, mapping: Mapping, statement: Statement) -> str | None:
    """Return the stream that drives a statement: the stated one, else the last in ``iport_map``.

    None where the map says that nothing does: its streams are stored, and it runs when they have ended. A
    stream cannot drive a statement that reads a tensor which is complete only after the stream's end.
    """
    stated = mapping.trigger.get(statement.name)
    if _waits(mapping, statement):
        return None
    if stated in streams_behind(program, mapping.inputs, statement):
        raise PolyloomError(_drives_too_early(mapping, statement, str(stated)))
    moving = _moving(program, mapping, statement)
    chosen = stated or (moving[-1] if moving else None)
    return chosen if chosen is not None and _can_drive(mapping, statement, chosen) else None


def _moving(program: Program, mapping: Mapping, statement: Statement) -> list[str]:
    """Return the streams that a statement reads and that end after what else it needs is complete."""
    read = {access.buffer for access in statement.reads}
    behind = streams_behind(program, mapping.inputs, statement)
    return [tensor for tensor in mapping.inputs if tensor in read and tensor not in behind]


def _can_drive(mapping: Mapping, statement: Statement, stream: str) -> bool:
    if sum(a.buffer == stream for a in statement.reads) != 1:
        return False
    return stream not in mapping.sparse or zeros_may_be_dropped(
        statement, trigger_position(statement, stream)
    )


def possible_drivers(program: Program, mapping: Mapping, statement: Statement) -> tuple[str | None, ...]:
    """Return what may drive a statement, None among it; the default first.

    One thing where the map says so, where there is no stream, or where the last one is sparse: what it costs
    depends on the data.
    """
    moving = _moving(program, mapping, statement)
    if statement.name in mapping.trigger or not moving or moving[-1] in mapping.sparse:
        return (_trigger(program, mapping, statement),)
    able = [name for name in moving if _can_drive(mapping, statement, name)]
    return tuple(dict.fromkeys([_trigger(program, mapping, statement), None, *able]))


def _waits(mapping: Mapping, statement: Statement) -> bool:
    """Whether the map says that no stream drives a statement."""
    return mapping.trigger.get(statement.name, "") is None


def _drives_too_early(mapping: Mapping, statement: Statement, stream: str) -> Diagnostic:
    return error(
        "map-trigger",
        f"`{stream}` cannot trigger `{statement.name}`",
        mapping.span("trigger"),
        notes=[f"`{statement.name}` reads a tensor that is complete only after the end of `{stream}`"],
        helps=[f"leave it out: `{stream}` is then stored, and `{statement.name}` runs afterwards"],
    )


def _awaited_reductions(
    program: Program, triggers: dict[str, str | None], results: tuple[Results, ...]
) -> dict[str, frozenset[str]]:
    """Return, for each stream, the tensors that must be reduced or moved before its elements are taken."""
    reduced = {result.tensor for result in results if result.reduce or result.moves}
    found: dict[str, set[str]] = {}
    for statement in program.statements:
        trigger = triggers[statement.name]
        if trigger is not None:
            found.setdefault(trigger, set()).update(_tensors_behind(program, statement) & reduced)
    return {stream: frozenset(tensors) for stream, tensors in found.items()}


def _tensors_behind(program: Program, statement: Statement) -> set[str]:
    """Return the written tensors that a statement reads, and those behind them."""
    found: set[str] = set()
    for access in statement.reads:
        definition = program.definition(access.buffer)
        if definition is not None:
            found |= {access.buffer} | _tensors_behind(program, definition)
    return found


def _stored_remarks(
    program: Program, mapping: Mapping, triggers: dict[str, str | None]
) -> Iterator[Diagnostic]:
    for statement in program.statements:
        sparse = [
            a.buffer for a in statement.reads if a.buffer in mapping.sparse and a.buffer in mapping.inputs
        ]
        if sparse and triggers[statement.name] is None and not _waits(mapping, statement):
            yield remark(
                "task-zero-matters",
                f"`{statement.name}` waits for the end of `{sparse[-1]}`",
                statement.span,
                notes=["a zero that is not sent would change its result, so the elements are stored first"],
                helps=[f"leave `{sparse[-1]}` out of `sparse` if it has few zeros"],
            )


def _streams_before(
    program: Program, mapping: Mapping, triggers: dict[str, str | None]
) -> dict[str, set[str]]:
    """Return, for each stream, those that must have ended before its elements are taken."""
    before: dict[str, set[str]] = {name: set() for name in mapping.inputs}
    for statement in program.statements:
        trigger = triggers[statement.name]
        if trigger is not None:
            stored = {a.buffer for a in statement.reads if a.buffer in mapping.inputs}
            stored |= streams_behind(program, mapping.inputs, statement)
            before[trigger] |= stored - {trigger}
    return before


def _in_order(before: dict[str, set[str]]) -> Iterator[str]:
    """Yield the streams, each after those before it, else in the order of ``iport_map``."""
    left = dict(before)
    while left:
        free = [name for name, earlier in left.items() if not earlier & left.keys()]
        for name in free:
            yield name
            del left[name]


def _check_order(mapping: Mapping, before: dict[str, set[str]]) -> None:
    """Refuse triggers that wait for each other: A stored before B is read, and B before A."""
    cycle = _cycle(before)
    if cycle:
        raise PolyloomError(
            error(
                "map-trigger",
                "streams wait for each other",
                mapping.span("trigger") or mapping.span("iport_map"),
                notes=[" waits for ".join(f"`{name}`" for name in cycle)],
                helps=["let statements that read the same streams be triggered by the same one"],
            )
        )


def streams_behind(program: Program, streams: Collection[str], statement: Statement) -> set[str]:
    """Return the streams that must have ended before the statement's internal tensors are complete."""
    found: set[str] = set()
    for access in statement.reads:
        definition = program.definition(access.buffer)
        if definition is not None:
            found |= {a.buffer for a in definition.reads if a.buffer in streams}
            found |= streams_behind(program, streams, definition)
    return found


def _cycle(before: dict[str, set[str]]) -> list[str]:
    """Return names that wait for each other in a ring, the first one repeated; empty if there are none."""

    def search(name: str, path: list[str]) -> list[str]:
        if name in path:
            return [*path[path.index(name) :], name]
        for earlier in sorted(before[name]):
            found = search(earlier, [*path, name])
            if found:
                return found
        return []

    for name in before:
        found = search(name, [])
        if found:
            return found
    return []


def _compute_tasks(
    mapping: Mapping, statement: Statement, trigger: str | None, streams: tuple[Stream, ...]
) -> Iterator[ComputeTask]:
    placed = bind_range(mapping.placement[statement.name], PE_PARAMETERS).coalesce()  # eq. (11)
    if trigger is None:
        yield ComputeTask(
            name=statement.name,
            kind=TaskKind.LOCAL,
            statement=statement,
            stream=None,
            index_names=(),
            placed=placed,
            instances=placed,
        )
        return
    driving = [stream for stream in streams if stream.tensor == trigger]
    access = statement.reads[trigger_position(statement, trigger)]
    for stream in driving:
        wanted = stream.arriving().apply(access_relation(statement, access).reverse())
        instances = with_explicit_divs(placed.intersect(wanted))  # eqs. (12) (17) (27) (32)
        name = statement.name if len(driving) == 1 else f"{statement.name}_{stream.side.value}"
        kind = TaskKind.SPARSE if stream.sparse else TaskKind.DENSE
        if not instances.is_empty():
            yield ComputeTask(
                name=name,
                kind=kind,
                statement=statement,
                stream=stream,
                index_names=stream.index_names,
                placed=placed,
                instances=instances,
            )


def _store(
    program: Program, mapping: Mapping, stream: Stream, triggers: dict[str, str | None]
) -> StoreTask | None:
    """Return what PEs keep of a stream: all that a statement reads which it does not drive."""
    stored: isl.Map | None = None
    for statement in program.statements:
        placed = mapping.placement[statement.name].reverse()
        for access in statement.reads:
            if access.buffer == stream.tensor and triggers[statement.name] != stream.tensor:
                needed = placed.apply_range(access_relation(statement, access))
                stored = needed if stored is None else stored.union(needed)
    if stored is None:
        return None
    carried = stream.carried.range_factor_domain().reverse()
    kept = stored.intersect(carried).coalesce()
    return None if kept.is_empty() else StoreTask(stream, kept)


def _initializations(
    program: Program,
    mapping: Mapping,
    triggers: dict[str, str | None],
    stores: tuple[StoreTask, ...],
) -> Iterator[InitializeTask]:
    for tensor in dict.fromkeys(store.stream.tensor for store in stores if store.stream.sparse):
        yield InitializeTask(tensor, 0)
    for statement in program.statements:
        trigger = triggers[statement.name]
        sparse = trigger if trigger in mapping.sparse else None
        position = None if sparse is None else trigger_position(statement, sparse)
        value = initial_value(statement, position)
        if value is not None:
            yield InitializeTask(statement.write.buffer, value)
