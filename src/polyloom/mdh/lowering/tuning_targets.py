"""What there is to tune in a host program: its md_homs, each as a program of its own.

An md_hom inside host loops may depend on their iterators. It is tuned at one launch, the middle one of each
loop, and kept under the key of the md_hom as it stands, iterators symbolic: that is what a runtime asks for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from polyloom.ir.host import Buffer, HostNode, HostProgram, MdHom, Role
from polyloom.ir.integers import holds, integer
from polyloom.ir.transform.flatten_dimensions import with_fewer_dimensions
from polyloom.ir.transform.specialise import specialise_md_hom
from polyloom.polyhedra.loops.tree import Branch, Loop

MOST_STEPS = 1_000_000
"""Host iterations that are counted one by one; beyond, a loop counts as that long."""


@dataclass(frozen=True, kw_only=True)
class TuneTarget:
    """An md_hom of a program without parameters.

    ``node``: as it stands; ``launched``: with values of host iterators; ``executions``: how often about it
    runs. ``buffers``: those that it reads or writes, all of them given to it.
    """

    node: MdHom
    launched: MdHom
    buffers: tuple[Buffer, ...]
    executions: int
    strict: bool = False

    def program(self) -> HostProgram:
        """Return a program of this md_hom alone."""
        return HostProgram(
            name=self.node.name,
            parameters=(),
            buffers=self.buffers,
            body=(self.launched,),
            strict=self.strict,
        )


def tune_targets(program: HostProgram) -> tuple[TuneTarget, ...]:
    """Return the md_homs of a program whose parameters are folded, in its order, those that run.

    They are over as few dimensions as they can have, where all launches are the same.
    """
    return tuple(map(_flat, _targets(program.body, {}, 1, program)))


def _targets(
    nodes: Sequence[HostNode], names: Mapping[str, int], executions: int, program: HostProgram
) -> Iterator[TuneTarget]:
    for node in nodes:
        match node:
            case MdHom():
                launched = specialise_md_hom(node, names)
                if all(integer(extent, {}) > 0 for extent in launched.extents):
                    yield _target(node, launched, program, executions)
            case Branch(condition=condition, body=body, otherwise=otherwise):
                taken = body if holds(condition, names) else otherwise
                yield from _targets(taken, names, executions, program)
            case Loop(iterator=iterator, body=body):
                values = _values(node, names)
                if values:
                    inner = {**names, iterator: values[len(values) // 2]}
                    yield from _targets(body, inner, executions * len(values), program)
            case _:
                pass


def _values(loop: Loop[HostNode], names: Mapping[str, int]) -> list[int]:
    """Return the iterator's values, as many as are counted."""
    values: list[int] = []
    inner = {**names, loop.iterator: integer(loop.start, names)}
    while len(values) < MOST_STEPS and holds(loop.condition, inner):
        values.append(inner[loop.iterator])
        inner[loop.iterator] += integer(loop.step, inner)
    return values


def _flat(target: TuneTarget) -> TuneTarget:
    if target.launched != target.node:
        return target
    node, buffers = flattened(target.node, target.buffers)
    return replace(target, node=node, launched=node, buffers=buffers)


def _target(node: MdHom, launched: MdHom, program: HostProgram, executions: int) -> TuneTarget:
    used = {view.buffer for view in (*node.inputs, *node.outputs)}
    given = (
        Buffer(name=b.name, type=b.type, shape=b.shape, role=Role.UPDATED, span=b.span)
        for b in program.buffers
        if b.name in used
    )
    return TuneTarget(
        node=node, launched=launched, buffers=tuple(given), executions=executions, strict=program.strict
    )


def flattened(node: MdHom, buffers: Sequence[Buffer]) -> tuple[MdHom, tuple[Buffer, ...]]:
    """Return what is scheduled for an md_hom: itself over fewer dimensions, and its buffers' shapes for it.

    Not for an md_hom that changes from launch to launch: all its launches have one schedule.
    """
    flat, shapes = with_fewer_dimensions(node, {b.name: b for b in buffers})
    return flat, tuple(shapes.get(b.name, b) for b in buffers)
