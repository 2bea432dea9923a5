"""A network as stages and the tensors that pass between them: what is placed, and what is only re-ordered.

    conv1, relu1, pool1, flatten, dense     stages: conv1 (with relu1), pool1, dense; flatten is a re-ordering

An elementwise layer joins the layer that it reads. A layer that only moves elements (reshape, transpose)
is no stage: whoever reads its result takes the elements in another order. Not in the papers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import islpy as isl

from polyloom.diagnostics import Diagnostic, Unsupported, error
from polyloom.ir.conversion.split_layers import complete_parts, layer_of, readers_of
from polyloom.ir.expressions import Read
from polyloom.ir.host import Buffer
from polyloom.ir.program import Part, Program
from polyloom.ir.reductions import Combine
from polyloom.ir.relations import access_relation, element_set, instance_set
from polyloom.ir.statements import Statement
from polyloom.wafer.network.constants import Before, divided
from polyloom.wafer.placement.operands import streamed_inputs


@dataclass(frozen=True)
class Stage:
    """What lies on a rectangle of its own. ``streams``: inputs that come from stages or the host."""

    name: str
    program: Program
    streams: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Sink:
    """An input of a stage; ``elements``: ``{ input[i] -> tensor[j] }``, what it is of what is sent."""

    stage: str
    input: str
    elements: isl.Map


@dataclass(frozen=True, eq=False)
class Stream:
    """A tensor on its way. ``source``: the stage that computes it, None for the host.

    ``results``: outputs of the program that the host makes of it, each with ``{ output[i] -> tensor[j] }``.
    ``state``: an input of the program and the output that is its next value: each sample is sent what came of
    the one before, the first one what the host has loaded.
    """

    tensor: str
    source: str | None
    sinks: tuple[Sink, ...]
    results: tuple[tuple[str, isl.Map], ...]
    state: tuple[str, str] | None = None


@dataclass(frozen=True, eq=False)
class Network:
    """The stages in order, each after those whose results it reads, and the streams between them.

    ``held``: tensors that are none of the program's, but copies. ``before``: what the host computes once, as
    no sample reaches it: inputs of the program, and results.
    """

    program: Program
    stages: tuple[Stage, ...]
    streams: tuple[Stream, ...]
    held: Mapping[str, Buffer] = field(default_factory=dict)
    before: Before | None = None

    def buffer(self, name: str) -> Buffer:
        """Return a tensor by its name."""
        return self.held[name] if name in self.held else self.program.buffer(name)

    @property
    def streamed(self) -> tuple[str, ...]:
        """The inputs that the host is given for each sample, and sends; the others stay in PE memory."""
        computed = frozenset[str]() if self.before is None else self.before.varying
        return tuple(s.tensor for s in self.streams if s.source is None and s.tensor not in computed)

    @property
    def state(self) -> tuple[tuple[str, str], ...]:
        """Inputs, each with the output that is its value for the next sample."""
        of_host = () if self.before is None else self.before.state
        return (*(s.state for s in self.streams if s.state is not None), *of_host)


def network_of(
    program: Program, streamed: Collection[str] | None = None, state: Mapping[str, str] | None = None
) -> Network:
    """Return the stages of a program. ``streamed``: the inputs that each sample has anew (of a model, its
    arguments); None: those that the rules for layers without a map let stream. ``state``: inputs among them,
    each with the output that is its value for the next sample.

    Errors: ``Unsupported`` with ``network-...`` where nothing is left to place.
    """
    every = tuple(complete_parts(program))
    program, before = divided(program, every, streamed, _moved(program, every).keys(), state or {})
    parts = _joined(program, tuple(complete_parts(program)))
    moved = _moved(program, parts)
    kept = [p for p in parts if not any(_statement(program, n).write.buffer in moved for n in p.statements)]
    known = () if before is None else before.program.results
    if before is not None and streamed is not None:
        streamed = (*streamed, *before.varying)
    stages = _stages(program, kept, moved, streamed, known)
    if not stages:
        helps = ["simulate it as a layer: leave `--one-wafer` out"]
        raise Unsupported(error("network-empty", "no layer computes anything", helps=helps))
    return Network(program, stages, tuple(_streams(program, stages, moved)), before=before)


# ---- Elementwise layers


def _joined(program: Program, parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """Let elementwise parts join the part whose result they alone read."""
    result: list[Part] = []
    place: dict[str, int] = {}
    for part in parts:
        before = _elementwise_of(program, part)
        host = None if before is None else place.get(before)
        alone = before is not None and before not in program.outputs and _readers(program, before) == 1
        if host is None or not alone or _is_move(program, result[host]) or _is_move(program, part):
            host = len(result)
            result.append(part)
        else:
            joined = result[host]
            result[host] = replace(joined, statements=(*joined.statements, *part.statements))
        place |= {_statement(program, name).write.buffer: host for name in part.statements}
    return tuple(result)


def _elementwise_of(program: Program, part: Part) -> str | None:
    """Return the tensor of which a part of one statement computes each element from the same one."""
    if len(part.statements) != 1:
        return None
    statement = _statement(program, part.statements[0])
    computed = [view for view in statement.reads if program.definition(view.buffer) is not None]
    if statement.reduction is not Combine.CONCATENATE or statement.conditions or len(computed) != 1:
        return None
    (view,) = computed
    plain = view.affine == statement.write.affine
    return view.buffer if plain and len(statement.domain) == len(view.affine) else None


def _readers(program: Program, tensor: str) -> int:
    return sum(tensor in {view.buffer for view in s.reads} for s in program.statements)


def _statement(program: Program, name: str) -> Statement:
    return next(s for s in program.statements if s.name == name)


# ---- Layers that only move elements


def _moved(program: Program, parts: Sequence[Part]) -> dict[str, tuple[str, isl.Map]]:
    """Return what is only re-ordered: tensor to the tensor that it has its elements from, and which."""
    found: dict[str, tuple[str, isl.Map]] = {}
    for part in parts:
        if _is_move(program, part):
            statement = _statement(program, part.statements[0])
            read, write = statement.reads[0], statement.write
            inside = instance_set(statement)
            back = access_relation(statement, write).intersect_domain(inside).reverse()
            elements = back.apply_range(access_relation(statement, read))
            source = read.buffer
            if source in found:
                source, before = found[source]
                elements = elements.apply_range(before)
            found[write.buffer] = source, elements
    return found


def _is_move(program: Program, part: Part) -> bool:
    if len(part.statements) != 1:
        return False
    s = _statement(program, part.statements[0])
    plain = isinstance(s.expression, Read) and s.reduction is Combine.CONCATENATE and not s.conditions
    return plain and len(s.reads) == 1


# ---- Stages and streams


def _stages(
    program: Program,
    parts: Sequence[Part],
    moved: dict[str, tuple[str, isl.Map]],
    streamed: Collection[str] | None,
    known: Collection[str],
) -> tuple[Stage, ...]:
    """Return a stage for each part. ``known``: tensors that are the same for all samples."""
    stages: list[Stage] = []
    readers = readers_of(program)
    names: set[str] = set()
    passing = {*program.results, *(streamed or ()), *moved}
    for part in parts:
        layer = layer_of(program, part, readers)
        name = next(n for n in _numbered(layer.program.name) if n not in names)
        names.add(name)
        own = replace(layer.program, name=name)
        streams = tuple(n for n in own.inputs if n in passing)
        if streamed is None and not streams:
            streams = tuple(n for n in streamed_inputs(own, (), ()) if n not in known)
            passing |= set(streams)
        if not streams:
            raise Unsupported(_nothing_streams(layer.name))
        stages.append(Stage(name, own, streams))
    return tuple(stages)


def _numbered(name: str) -> Iterator[str]:
    yield name
    number = 2
    while True:
        yield f"{name}_{number}"
        number += 1


def _nothing_streams(name: str) -> Diagnostic:
    return error(
        "network-constant",
        f"the layer `{name}` reads nothing that a sample brings",
        helps=["compute it before, and give its result as an input"],
    )


def _streams(
    program: Program, stages: Sequence[Stage], moved: dict[str, tuple[str, isl.Map]]
) -> Iterator[Stream]:
    source = {output: stage.name for stage in stages for output in stage.program.outputs}

    def origin(name: str) -> tuple[str, isl.Map]:
        same = isl.Map.identity(element_set(program.buffer(name)).get_space().map_from_set())
        return moved.get(name, (name, same.intersect_domain(element_set(program.buffer(name)))))

    taken: dict[str, list[Sink]] = {}
    for stage in stages:
        for name in stage.streams:
            tensor, elements = origin(name)
            taken.setdefault(tensor, []).append(Sink(stage.name, name, elements))
    wanted: dict[str, list[tuple[str, isl.Map]]] = {}
    for name in program.outputs:
        tensor, elements = origin(name)
        wanted.setdefault(tensor, []).append((name, elements))
    for name in source:
        if name not in taken and name not in wanted:  # nothing reads it; the host takes it and lets it go
            wanted[name] = [origin(name)]
    passing = [t for t in (*program.inputs, *program.results) if t in taken or t in wanted]
    for tensor in passing:
        yield Stream(tensor, source.get(tensor), tuple(taken.get(tensor, ())), tuple(wanted.get(tensor, ())))
