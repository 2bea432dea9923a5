"""Plans as isl's schedule trees, which a user can start from.

    an md_hom                   a band, all members coincident: in any order, in parallel
    a host loop                 a band of one member; in blocks, of ``floor(time / size)``
    a node with loops inside    a band of its parallel coordinates, then one in the order of the source
    plans one after another     a sequence

Source: schedule trees (Verdoolaege et al. 2014).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import islpy as isl

from polyloom.polyhedra.binding import parameter_names, project_out_parameters
from polyloom.scop.model import Scop, ScopStatement
from polyloom.scop.schedule.hyperplanes import rows_map
from polyloom.scop.schedule.plan import (
    Block,
    Blocks,
    Group,
    Hyperplane,
    Leaf,
    Plan,
    Row,
    Sequential,
    row_of,
    statements_of,
)


def schedule_text(scop: Scop, plans: Sequence[Plan]) -> str:
    """Return the schedule tree of plans, which run all instances of ``scop``, as isl prints it.

    Its domain, which isl puts together of pieces, is written as the source has it.
    """
    tree = _Trees(scop, frozenset(parameter_names(scop.context))).sequence(plans)
    printer = isl.Printer.to_str(isl.DEFAULT_CONTEXT).set_yaml_style(isl.yaml_style.BLOCK)
    _, *rest = printer.print_schedule(tree).get_str().strip().splitlines()
    domains = (isl.UnionSet.from_set(s.domain) for s in scop.statements)
    every = reduce(isl.UnionSet.union, domains).intersect_params(scop.context).coalesce()
    return "\n".join([f'domain: "{every}"', *rest, ""])


@dataclass(frozen=True, eq=False)
class _Trees:
    scop: Scop
    parameters: frozenset[str]

    def sequence(self, plans: Sequence[Plan], fixed: tuple[Sequential, ...] = ()) -> isl.Schedule:
        """Return plans one after another; ``fixed``: the host loops around them."""
        return reduce(isl.Schedule.sequence, [self._tree(plan, fixed) for plan in plans])

    def _tree(self, plan: Plan, fixed: tuple[Sequential, ...]) -> isl.Schedule:
        match plan:
            case Sequential(time=time, body=body):
                member = self._times(plan, time)
                return _with_band(self.sequence(body, (*fixed, plan)), [member], parallel=False)
            case Blocks(time=time, size=size, body=body):
                member = self._times(plan, time, size)
                return _with_band(self.sequence(body, fixed), [member], parallel=False)
            case Leaf(statement=statement):
                planes = [{statement.name: row} for row in _free(statement, fixed)]
                rows = [self._times(plan, plane) for plane in planes]
                return _with_band(self._points(plan), rows, parallel=True)
            case Group(otherwise=block):
                return self._ordered(block)
            case Block(parallel=parallel):
                rows = [self._times(plan, plane) for plane in parallel]
                return _with_band(self._ordered(plan), rows, parallel=True)

    def _ordered(self, block: Block) -> isl.Schedule:
        """Return statements in their order: that of the source, if no other is given."""
        points = self._points(block)
        times = (block.order or self.scop.schedule).intersect_domain(points.get_domain())
        return points.insert_partial_schedule(isl.MultiUnionPwAff.from_union_map(times))

    def _points(self, plan: Plan) -> isl.Schedule:
        domains = (isl.UnionSet.from_set(self._domain(s)) for s in statements_of(plan))
        return isl.Schedule.from_domain(reduce(isl.UnionSet.union, domains))

    def _domain(self, statement: ScopStatement) -> isl.Set:
        """Return the instances of a statement, those of all blocks, by its name in the source."""
        domain = statement.domain
        blocks = [name for name in parameter_names(domain) if name not in self.parameters]
        domain = project_out_parameters(domain, blocks) if blocks else domain
        return domain.set_tuple_name(self._name(statement)).intersect_params(self.scop.context)

    def _name(self, statement: ScopStatement) -> str:
        names = {s.name for s in self.scop.statements}
        return next(name for name in (statement.name, *statement.origins) if name in names)

    def _times(self, plan: Plan, plane: Hyperplane, size: int = 1) -> isl.MultiUnionPwAff:
        """Return ``{ S[x] -> [floor(row . x / size)] }`` for the statements of a plan."""
        found = isl.UnionMap.empty(self.scop.context.get_space())
        statements = statements_of(plan)
        rows = {(self._name(s), row_of(plane, s)) for s in statements}
        apart = len(rows) == len({name for name, _ in rows})
        for statement in statements:
            domain = self._domain(statement)
            times = rows_map(domain.get_space(), row_of(plane, statement))
            times = times.apply_range(isl.Map(f"{{ [t] -> [b] : {size}b <= t < {size}b + {size} }}"))
            found = found.union(isl.UnionMap.from_map(times if apart else times.intersect_domain(domain)))
        return isl.MultiUnionPwAff.from_union_map(found)


def _free(statement: ScopStatement, fixed: Sequence[Sequential]) -> list[Row]:
    """Return the unit rows of the iterators that no host loop around fixes alone."""
    size = len(statement.iterators)
    units = [tuple(int(j == k) for j in range(size)) for k in range(size)]
    moving = [[k for k, c in enumerate(row_of(loop.time, statement)[:size]) if c] for loop in fixed]
    return [unit for k, unit in enumerate(units) if [k] not in moving]


def _with_band(
    inner: isl.Schedule, members: Sequence[isl.MultiUnionPwAff], *, parallel: bool
) -> isl.Schedule:
    """Return a tree with one more band around it; ``parallel``: its members are coincident."""
    if not members:
        return inner
    node = inner.insert_partial_schedule(reduce(isl.MultiUnionPwAff.flat_range_product, members))
    band = node.get_root().child(0)
    for k in range(len(members) if parallel else 0):
        band = band.band_member_set_coincident(k, 1)
    return band.band_set_permutable(int(parallel)).get_schedule()
