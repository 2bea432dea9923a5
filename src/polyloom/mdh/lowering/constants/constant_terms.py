"""Parts of scalar functions that only constants decide, as md_homs of their own.

    y[c, i] = sum(...) * rsqrt(variance[c] + 1e-5)    ->    t[c] = rsqrt(variance[c] + 1e-5)
                                                            y[c, i] = sum(...) * t[c]

The new md_homs are nodes of constants, which run once (``at_load``). Values are computed as before, once for
all points that share them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from polyloom.ir.expressions import (
    Binary,
    Constant,
    Convert,
    Expression,
    Read,
    Select,
    Unary,
    walk,
)
from polyloom.ir.host import Buffer, CombineOperator, HostNode, HostProgram, Index, MdHom, Order, Role, View
from polyloom.ir.naming import Names
from polyloom.ir.rebuild import read_positions, rebuilt, with_reads
from polyloom.ir.types import ElementType
from polyloom.mdh.lowering.program_tree import names_of
from polyloom.mdh.schedule.addresses import names_used
from polyloom.polyhedra.loops.tree import Number

LEAST_INSTRUCTIONS = 4.0
"""Of what is worth a buffer: a division, a root. A product is as cheap as the load of its result."""


def constant_terms_apart(program: HostProgram, constants: Collection[str]) -> HostProgram:
    """Return a program whose md_homs load what only constants decide; sizes are known where it changes."""
    if not constants:
        return program
    names, buffers = Names(names_of(program)), list(program.buffers)
    body: list[HostNode] = []
    for node in program.body:
        if isinstance(node, MdHom) and not names_used(node, program.by_name):
            apart = _Apart(node, program, frozenset(constants), names)
            node = apart.changed()
            body += apart.made
            buffers += apart.buffers
        body.append(node)
    return replace(program, body=tuple(body), buffers=tuple(buffers))


@dataclass
class _Apart:
    """Takes parts out of one md_hom."""

    hom: MdHom
    program: HostProgram
    constants: frozenset[str]
    names: Names
    made: list[MdHom] = field(default_factory=list)
    buffers: list[Buffer] = field(default_factory=list)
    views: dict[Expression, tuple[View, ElementType]] = field(default_factory=dict)

    def changed(self) -> MdHom:
        """Return the md_hom without the parts, which are in ``made``."""
        hom, count = self.hom, len(self.hom.inputs)
        if hom.guard is not None or hom.written is not None:
            return hom
        for e in (*hom.terms, *hom.initial, *hom.finish):
            if e is not None:
                rebuilt(e, self._noted)
        if not self.views:
            return hom
        places = {e: Read(count + k, kind) for k, (e, (_, kind)) in enumerate(self.views.items())}

        def moved(e: Expression | None) -> Expression | None:
            return None if e is None else rebuilt(e, places.get)

        def moved_behind(e: Expression | None) -> Expression | None:
            """Replace parts where reads beyond the inputs are of what was combined."""
            if e is None:
                return None
            return moved(with_reads(e, lambda k: k + len(places) if k >= count else k))

        return replace(
            hom,
            inputs=(*hom.inputs, *(view for view, _ in self.views.values())),
            terms=tuple(rebuilt(term, places.get) for term in hom.terms),
            initial=tuple(map(moved, hom.initial)),
            finish=tuple(map(moved_behind, hom.finish)),
        )

    def _noted(self, part: Expression) -> Expression | None:
        """Note a part that constants decide; nothing is looked for in it, nor where data choose."""
        if isinstance(part, Select):
            return part
        if part in self.views:
            return part
        if not self._is_constant(part) or _instructions(part) < LEAST_INSTRUCTIONS:
            return None
        positions = read_positions(part)
        used = [self.hom.inputs[k] for k in positions]
        indices = [index for view in used for index in view.indices if isinstance(index, Index)]
        dimensions = [d for d in range(len(self.hom.extents)) if any(i.coefficients[d] for i in indices)]
        extents = tuple(n for d in dimensions if isinstance(n := self.hom.extents[d], Number))
        if not dimensions or len(extents) < len(dimensions):
            return part
        name = self.names.of((object(),), f"{self.hom.name}_constant")
        self.buffers.append(Buffer(name=name, type=part.type, shape=extents, role=Role.LOCAL))
        rank = len(dimensions)
        units = tuple(Index.unit(d, rank) for d in range(rank))
        self.made.append(
            MdHom(
                name=name,
                iterators=tuple(self.hom.iterators[d] for d in dimensions),
                extents=extents,
                inputs=tuple(_over(view, dimensions) for view in used),
                outputs=(View(name, units),),
                terms=(with_reads(part, positions.index),),
                combine=(CombineOperator(Order.CONCATENATE),) * rank,
                initial=(None,),
                finish=(None,),
                span=self.hom.span,
            )
        )
        here = tuple(Index.unit(d, len(self.hom.extents)) for d in dimensions)
        self.views[part] = View(name, here), part.type
        return part

    def _is_constant(self, part: Expression) -> bool:
        """Return whether a part is made of elements of constants, at affine places, and of literals."""
        if part.type not in (ElementType.FLOAT32, ElementType.FLOAT64):
            return False
        if not all(isinstance(p, Read | Constant | Unary | Binary | Convert) for p in walk(part)):
            return False
        reads = [p.position for p in walk(part) if isinstance(p, Read)]
        if not reads or max(reads) >= len(self.hom.inputs):
            return False
        views = [self.hom.inputs[k] for k in reads]
        is_affine = all(isinstance(index, Index) for view in views for index in view.indices)
        return is_affine and all(view.buffer in self.constants for view in views)


def _over(view: View, dimensions: Sequence[int]) -> View:
    """Return a view over some of its dimensions; it does not depend on the others."""
    indices = (index for index in view.indices if isinstance(index, Index))
    return replace(
        view,
        indices=tuple(Index(tuple(i.coefficients[d] for d in dimensions), i.offset) for i in indices),
    )


def _instructions(part: Expression) -> float:
    return sum(p.op.instructions for p in walk(part) if isinstance(p, Unary | Binary))
