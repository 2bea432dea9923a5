"""The md_homs of a program over fewer dimensions, in arrays that lie as before.

    y[c][h][w] = max(x[c][h][w], 0)  over 64 x 7 x 7    ->    y_3136[p] = max(x_3136[p], 0)  over 3136

A buffer has one shape in the whole program; what an md_hom calls it under another one is ``Reshaped``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from polyloom.ir.host import Buffer, HostProgram, MdHom, used_buffers
from polyloom.ir.naming import Names
from polyloom.ir.transform.flatten_dimensions import flat_md_hom
from polyloom.mdh.lowering.program_tree import names_of
from polyloom.mdh.lowering.sequential_nest import term_names
from polyloom.mdh.schedule.addresses import names_used
from polyloom.mdh.schedule.tiling import has_tiles
from polyloom.mdh.tree.nodes import Reshaped, Statement, Store
from polyloom.polyhedra.loops.tree import Instance, IntExpression, Name, Number, Operation, leaves_in


@dataclass(frozen=True, kw_only=True)
class Rows:
    """An md_hom over rows; ``program``: the one around it, its buffers with their shapes for it.

    ``points``: what the iterators before are, in its own. ``terms``: what its terms are called, as before.
    """

    hom: MdHom
    program: HostProgram
    points: Mapping[str, IntExpression]
    terms: Mapping[str, str]

    def placed(self, statement: Statement) -> tuple[Statement, ...]:
        """Return a statement whose instance is one of the md_hom as it was."""
        done = statement.instance if isinstance(statement, Store) else None
        if not isinstance(statement, Store) or done is None or done.statement not in self.terms:
            return (statement,)
        values = dict(zip(self.hom.iterators, done.arguments, strict=False))
        arguments = tuple(_replaced(point, values) for point in self.points.values())
        return (replace(statement, instance=Instance(self.terms[done.statement], arguments)),)


@dataclass(frozen=True)
class ProgramRows:
    """What md_homs of a program become, and the names that they have for buffers then."""

    homs: Mapping[MdHom, Rows]
    reshaped: tuple[Reshaped, ...]


def rows_of(program: HostProgram, kept: Collection[str] = ()) -> ProgramRows:
    """Return those with tiles that have fewer dimensions; what host loops change stays as it is.

    ``kept``: buffers that have one shape alone.
    """
    names, found = Names(names_of(program)), dict[MdHom, Rows]()
    reshaped: dict[str, Reshaped] = {}
    for hom in leaves_in(program.body):
        if not isinstance(hom, MdHom) or not has_tiles(hom) or names_used(hom, program.by_name):
            continue
        if any(name in kept for name in used_buffers(hom)):
            continue
        flat = flat_md_hom(hom, program.by_name)
        if len(flat.hom.extents) == len(hom.extents):
            continue
        others = {}
        for name, buffer in flat.buffers.items():
            if buffer.shape != program.buffer(name).shape:
                others[name] = _reshaped(names, buffer)
                reshaped[others[name].name] = others[name]
        renamed = {name: other.name for name, other in others.items()}
        buffers = [replace(flat.buffers[name], name=other) for name, other in renamed.items()]
        around = replace(program, buffers=(*program.buffers, *buffers))
        over = _over(flat.hom, renamed)
        terms = dict(zip(term_names(over), term_names(hom), strict=True))
        found[hom] = Rows(hom=over, program=around, points=flat.points, terms=terms)
    return ProgramRows(found, tuple(reshaped.values()))


def _reshaped(names: Names, buffer: Buffer) -> Reshaped:
    shape = tuple(extent for extent in buffer.shape if isinstance(extent, Number))
    assert len(shape) == len(buffer.shape)
    extents = "_".join(str(extent.value) for extent in shape)
    return Reshaped(names.of((buffer.name, shape), f"{buffer.name}_{extents}"), buffer.name, shape)


def _over(hom: MdHom, names: Mapping[str, str]) -> MdHom:
    """Return an md_hom on buffers by other names."""
    inputs, outputs = (
        tuple(replace(view, buffer=names.get(view.buffer, view.buffer)) for view in views)
        for views in (hom.inputs, hom.outputs)
    )
    return replace(hom, inputs=inputs, outputs=outputs)


def _replaced(expression: IntExpression, values: Mapping[str, IntExpression]) -> IntExpression:
    """Return an expression with values for all its names at once."""
    match expression:
        case Name(name=name):
            return values.get(name, expression)
        case Operation(operator=operator, operands=operands):
            return Operation(operator, tuple(_replaced(operand, values) for operand in operands))
        case _:
            return expression
