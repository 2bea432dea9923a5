"""Programs whose rows do not depend on each other, cut into programs for some of the rows.

A dimension ``i`` of every md_hom, combined by ``++``, runs along the first dimension of the results and of
what they are made from, and nowhere else: the batch of a model, the outermost parallel loop of C.

    all (i, j) in (N, M)  y[i][j] += W[j][k] * x[i][k]      rows of y and x; W is whole
    for rows 2 .. 4:  N = 3, y[0:3] of y[2:5], x[0:3] of x[2:5]
"""

from __future__ import annotations

from collections.abc import Iterator as Iterator_
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from polyloom.diagnostics import Unsupported, error
from polyloom.ir.expressions import Expression, Iterator, children
from polyloom.ir.host import (
    Buffer,
    Copy,
    HostLeaf,
    HostProgram,
    Index,
    MdHom,
    Nest,
    Order,
    View,
    expressions_of,
    uses,
)
from polyloom.polyhedra.loops.tree import Number, leaves_in, names_in, with_leaves


@dataclass(frozen=True)
class Rows:
    """``count``: points of the dimension that is cut. ``dimensions``: of each md_hom that has it, by name.

    ``reach``: of each array that is cut, which rows point i touches: from i plus the first of these numbers
    to i plus the second. Only of inputs do they differ.
    """

    count: int
    dimensions: Mapping[str, int]
    reach: Mapping[str, tuple[int, int]]

    def of(self, name: str, first: int, count: int) -> slice:
        """Return the rows of an array that ``count`` points from ``first`` on touch."""
        low, high = self.reach[name]
        return slice(first + low, first + count + high)


def independent_rows(program: HostProgram) -> Rows:
    """Return what can be cut of a program whose sizes are known. Errors: Unsupported with ``split-rows``."""
    nodes = list(leaves_in(program.body))
    found: dict[str, int] = {}
    touched: dict[str, set[int]] = {}
    waiting = list(program.results)
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        for node in (n for n in nodes if name in uses([n]).written):
            waiting += _cut(node, found, touched)
    for name in program.results:
        if name not in touched:
            raise _refusal(f"nothing is written to the rows of `{name}`")
    _check_readers(nodes, found, touched)
    counts = {_extent(node, found[node.name]) for node in nodes if node.name in found}
    if len(counts) != 1:
        raise _refusal("its md_homs have different numbers of rows" if counts else "it has no parallel rows")
    written = uses(program.body).written
    reach = {name: (min(at), max(at)) for name, at in touched.items()}
    moved = [name for name, (low, high) in reach.items() if low != high and name in written]
    if moved:
        raise _refusal(f"a row of `{moved[0]}` is made from other rows of it")
    return Rows(counts.pop(), found, reach)


def part(program: HostProgram, rows: Rows, count: int) -> HostProgram:
    """Return the program for so many of its rows; arrays that are cut are given as ``Rows.of`` says."""

    def view(given: View, dimension: int) -> View:
        if given.buffer not in rows.reach:
            return given
        first = given.indices[0]
        assert isinstance(first, Index)
        moved = replace(first, offset=Number(first.constant - rows.reach[given.buffer][0]))
        return replace(given, indices=(moved, *given.indices[1:]))

    def leaf(node: HostLeaf) -> tuple[HostLeaf, ...]:
        if not isinstance(node, MdHom) or node.name not in rows.dimensions:
            return (node,)
        k = rows.dimensions[node.name]
        return (
            replace(
                node,
                extents=(*node.extents[:k], Number(count), *node.extents[k + 1 :]),
                inputs=tuple(view(v, k) for v in node.inputs),
                outputs=tuple(view(v, k) for v in node.outputs),
            ),
        )

    def buffer(given: Buffer) -> Buffer:
        if given.name not in rows.reach:
            return given
        low, high = rows.reach[given.name]
        return replace(given, shape=(Number(count + high - low), *given.shape[1:]), rows=None)

    buffers = tuple(map(buffer, program.buffers))
    return replace(program, buffers=buffers, body=with_leaves(program.body, leaf))


def _cut(node: HostLeaf, found: dict[str, int], touched: dict[str, set[int]]) -> Iterator_[str]:
    """Cut a node that writes rows; yield the arrays whose rows it reads or writes."""
    if isinstance(node, Copy):
        raise _refusal(f"`{node.target}` is copied as a whole")
    if isinstance(node, Nest):
        raise _refusal(f"`{node.name}` is a sequential nest")
    k = _dimension(node)
    found[node.name] = k
    _check_values(node, k)
    for given in (*node.outputs, *node.inputs):
        along = [_coefficient(index, k) for index in given.indices]
        if not any(along):
            continue
        first = given.indices[0]
        if along != [1] + [0] * (len(along) - 1) or not isinstance(first, Index) or not _is_unit(first, k):
            raise _refusal(f"`{node.name}` reads `{given.buffer}` otherwise than by rows")
        touched.setdefault(given.buffer, set()).add(first.constant)
        yield given.buffer


def _dimension(node: MdHom) -> int:
    """Return the dimension that runs along the first dimension of all outputs of a node."""
    for k, operator in enumerate(node.combine):
        firsts = [view.indices[0] if view.indices else None for view in node.outputs]
        if operator.order is Order.CONCATENATE and all(
            isinstance(first, Index) and _is_unit(first, k) for first in firsts
        ):
            return k
    raise _refusal(f"`{node.name}` has no parallel dimension along the rows of what it writes")


def _is_unit(index: Index, dimension: int) -> bool:
    unit = all(c == (k == dimension) for k, c in enumerate(index.coefficients))
    return unit and isinstance(index.offset, Number)


def _coefficient(index: Index | Expression, dimension: int) -> int:
    """Return how an index changes with a dimension; of what is computed, 2 where it may."""
    if isinstance(index, Index):
        return index.coefficients[dimension]
    return 2 * any(isinstance(e, Iterator) and e.dimension == dimension for e in _parts(index))


def _parts(expression: Expression) -> Iterator_[Expression]:
    yield expression
    for child in children(expression):
        yield from _parts(child)


def _check_values(node: MdHom, dimension: int) -> None:
    """Refuse a node that computes with the number of its row."""
    values = (e for given in expressions_of(node) for e in _parts(given))
    named = {name for c in (node.guard, node.written) if c is not None for name in names_in(c)}
    by_value = any(isinstance(e, Iterator) and e.dimension == dimension for e in values)
    if by_value or node.iterators[dimension] in named:
        raise _refusal(f"what `{node.name}` computes depends on the number of the row")


def _check_readers(
    nodes: Sequence[HostLeaf], found: Mapping[str, int], touched: Mapping[str, set[int]]
) -> None:
    """Refuse nodes that read rows without being cut, and cut ones that read such an array whole."""
    for node in nodes:
        if not isinstance(node, MdHom) or node.name not in found:
            common = uses([node]).all & touched.keys()
            if common:
                raise _refusal(f"`{min(common)}` is used as a whole")
            continue
        for given in node.inputs:
            whole = not any(_coefficient(index, found[node.name]) for index in given.indices)
            if whole and given.buffer in touched:
                raise _refusal(f"`{node.name}` reads all of `{given.buffer}` for a row")


def _extent(node: HostLeaf, dimension: int) -> int:
    assert isinstance(node, MdHom)
    extent = node.extents[dimension]
    return extent.value if isinstance(extent, Number) else -1


def _refusal(reason: str) -> Unsupported:
    message = "the program cannot be cut into rows that do not depend on each other"
    helps = ["run it on one device; a model needs a batch as the first dimension of inputs and outputs"]
    return Unsupported(error("split-rows", message, notes=[reason], helps=helps))
