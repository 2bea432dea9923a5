"""The text of ports: which rows or columns need, or have, the elements of a tensor, and in which order.

Written as a person would where tiles are plain, ``x[i = 0:15] -> [PE[i//4, -1] -> index[i mod 4]]``; else
as isl prints the relation that the placement gives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import islpy as isl

from polyloom.ir.host import Buffer, Index, View
from polyloom.ir.program import Program
from polyloom.ir.relations import element_set
from polyloom.ir.statements import Statement
from polyloom.wafer.dataflow.reductions import written_of
from polyloom.wafer.dataflow.streams import all_needed
from polyloom.wafer.mapping.grid import Grid, Side
from polyloom.wafer.mapping.mapping import Mapping
from polyloom.wafer.placement.classes import plain_iterator
from polyloom.wafer.placement.coordinates import Coordinate, Place, Tile, affine_text


@dataclass(frozen=True)
class Port:
    """``order``: the tensor's dimensions from the outermost index to the innermost."""

    side: Side
    order: tuple[int, ...]

    @property
    def axis(self) -> int:
        """The axis on which the side's positions lie: 0 (x) for north and south."""
        return 0 if self.side.line == "PE_X" else 1


@dataclass(frozen=True)
class _Span:
    """``low + slope * p .. high + slope * p``, at most ``most``: what line p has of one dimension."""

    slope: int
    low: int
    high: int
    most: int


@dataclass(frozen=True)
class _Need:
    """What the lines ``first`` to ``last`` need of a tensor, a box on each."""

    first: int
    last: int
    spans: tuple[_Span, ...]


Places = Sequence[Place | None]
"""Of the statements, in their order; None where only the relation is known."""


def input_text(program: Program, placed: Mapping, places: Places, name: str, port: Port) -> str:
    """Return ``x[...] -> [PE[...] -> index[...]]``; empty where no instance reads the tensor."""
    tensor = program.buffer(name)
    need = _joint_need(program, places, name, port.axis)
    if need is None:
        return _input_by_isl(program, placed, tensor, port)
    return _plain_tiles(tensor, need, port, placed.grid) or _windows(tensor, need, port, placed.grid)


def output_text(program: Program, placed: Mapping, places: Places, name: str, port: Port) -> str:
    """Return ``y[...] -> [PE[...] -> index[...]]`` for a tensor that a statement writes."""
    tensor = program.buffer(name)
    for statement, place in zip(program.statements, places, strict=True):
        if statement.write.buffer == name:
            text = None if place is None else _plain_output(tensor, statement, place, port, placed.grid)
            return text or _output_by_isl(program, placed, statement, port)
    raise AssertionError(f"{name} is written by nothing")


def external(side: Side, grid: Grid, line: str) -> str:
    """Return ``PE[line, -1]``: the external PE beside a row or column."""
    return {
        Side.NORTH: f"PE[{line}, -1]",
        Side.SOUTH: f"PE[{line}, {grid.height}]",
        Side.WEST: f"PE[-1, {line}]",
        Side.EAST: f"PE[{grid.width}, {line}]",
    }[side]


# Inputs.


def _joint_need(program: Program, places: Places, name: str, axis: int) -> _Need | None:
    """Return what all statements need together, where that is one box a line; else None."""
    needs: list[_Need] = []
    for statement, place in zip(program.statements, places, strict=True):
        for access in statement.reads:
            if access.buffer == name:
                need = None if place is None else _need(statement, access, (place.x, place.y)[axis])
                if need is None:
                    return None
                needs.append(need)
    if not needs or len({(n.first, n.last, tuple(s.slope for s in n.spans)) for n in needs}) > 1:
        return None
    spans = tuple(_wider(together) for together in zip(*(n.spans for n in needs), strict=True))
    return _Need(needs[0].first, needs[0].last, spans)


def _wider(spans: Sequence[_Span]) -> _Span:
    low, high = min(s.low for s in spans), max(s.high for s in spans)
    return _Span(spans[0].slope, low, high, max(s.most for s in spans))


def _need(statement: Statement, access: View, coordinate: Coordinate) -> _Need | None:
    tiles = [t for t in coordinate.tiles if t.count > 1]
    if not tiles:
        spans = _spans(statement, access, None, 1)
        return None if spans is None else _Need(coordinate.constant, coordinate.constant, spans)
    k = tiles[0].iterator
    if len(tiles) > 1 or k is None or tiles[0].step > 1 or tiles[0].cycle or coordinate.constant:
        return None
    spans = _spans(statement, access, k, tiles[0].size)
    return None if spans is None else _Need(0, tiles[0].count - 1, spans)


def _spans(statement: Statement, access: View, tiled: int | None, size: int) -> tuple[_Span, ...] | None:
    """Return the range of each index over a tile of iterator ``tiled``; None where it runs backwards."""
    spans: list[_Span] = []
    for index in access.affine:
        low = high = index.constant
        slope, most = 0, 0
        for k, (c, n) in enumerate(zip(index.coefficients, statement.domain, strict=True)):
            if k == tiled and c:
                if c < 0:
                    return None
                slope, high, most = c * size, high + c * (size - 1), c * (n - size)
            else:
                low, high = low + min(0, c * (n - 1)), high + max(0, c * (n - 1))
        spans.append(_Span(slope, low, high, high + most))
    return tuple(spans)


def _names(tensor: Buffer) -> list[str]:
    return (
        ["i", "j", "k", "l", "m", "n"][: len(tensor.extents)]
        if len(tensor.extents) <= 6
        else [f"i{k}" for k in range(len(tensor.extents))]
    )


def _plain_tiles(tensor: Buffer, need: _Need, port: Port, grid: Grid) -> str | None:
    """``x[i = 0:15, j = 0:3] -> [PE[i//4, -1] -> index[i mod 4, j]]`` where one dimension is cut in tiles."""
    cut = [d for d, s in enumerate(need.spans) if s.slope]
    if any(s.high - s.low + 1 != s.slope for s in need.spans if s.slope) or len(cut) > 1:
        return None
    if not cut and need.first != need.last:
        return None
    names = _names(tensor)
    heads, line, indices = [], str(need.first), []
    for d, (name, span) in enumerate(zip(names, need.spans, strict=True)):
        heads.append(f"{name} = {span.low}:{span.most if d in cut else span.high}")
        shifted = _less(name, span.low)
        if d in cut:
            inner = shifted if shifted == name else f"({shifted})"
            line = inner if span.slope == 1 else f"{inner}//{span.slope}"
            indices.append(f"{inner} mod {span.slope}" if span.slope > 1 else "0")
        else:
            indices.append(shifted)
    return _port_text(tensor, heads, external(port.side, grid, line), indices, port.order)


def _windows(tensor: Buffer, need: _Need, port: Port, grid: Grid) -> str:
    """``x[i, j] -> [PE[p, -1] -> index[i - 4*p, j]] : 0 <= p < 4 and 4*p <= i <= 4*p + 5 and ...``."""
    names, conditions, indices = _names(tensor), [f"{need.first} <= p <= {need.last}"], []
    for name, span in zip(names, need.spans, strict=True):
        step = "p" if span.slope == 1 else f"{span.slope}*p"
        start = _less(step, -span.low) if span.slope else str(span.low)
        end = _less(step, -span.high) if span.slope else str(span.high)
        conditions.append(f"{start} <= {name} <= {end}")
        if span.slope:
            conditions.append(f"{name} <= {span.most}")
        indices.append(_less(f"{name} - {step}" if span.slope else name, span.low))
    text = _port_text(tensor, names, external(port.side, grid, "p"), indices, port.order)
    return f"{text} : {' and '.join(conditions)}"


def _less(name: str, low: int) -> str:
    return name if not low else f"{name} {'-' if low > 0 else '+'} {abs(low)}"


def _port_text(
    tensor: Buffer, heads: Sequence[str], pe: str, indices: Sequence[str], order: Sequence[int]
) -> str:
    ordered = ", ".join(indices[d] for d in order) or "0"
    return f"{tensor.name}[{', '.join(heads)}] -> [{pe} -> index[{ordered}]]"


def _input_by_isl(program: Program, placed: Mapping, tensor: Buffer, port: Port) -> str:
    lines = input_lines(program, placed, tensor.name, port.side)
    return "" if lines.is_empty() else _with_index(tensor, lines, port.order)


def input_lines(program: Program, placed: Mapping, name: str, side: Side) -> isl.Map:
    """Return ``{ x[i] -> PE[x, -1] }``: the ports of a side that face lines in which elements are read."""
    needed = all_needed(program, placed, name).reverse()
    return needed.apply_range(_to_port(side, placed.grid)).coalesce()


def _to_port(side: Side, grid: Grid) -> isl.Map:
    return isl.Map(f"{{ PE[x, y] -> {external(side, grid, 'x' if side.line == 'PE_X' else 'y')} }}")


def _with_index(tensor: Buffer, lines: isl.Map, order: Sequence[int]) -> str:
    """Return the text of ``{ x[i] -> PE }`` with the elements' own coordinates as index."""
    names = _names(tensor)
    index = ", ".join(names[d] for d in order) or "0"
    own = isl.Map(f"{{ {tensor.name}[{', '.join(names)}] -> index[{index}] }}")
    return relation_text(lines.range_product(own).coalesce())


def relation_text(relation: isl.Map) -> str:
    """Return a relation without its braces."""
    text = relation.to_str()
    return text[text.index("{") + 1 : text.rindex("}")].strip()


# Outputs.


def _plain_output(tensor: Buffer, statement: Statement, place: Place, port: Port, grid: Grid) -> str | None:
    """``y[i = 0:15] -> [PE[i//4, 4] -> index[i mod 4]]``; ``y[2*h + 1]`` leaves at ``(i - 1)//8``."""
    coordinate = (place.x, place.y)[port.axis]
    dims = _dims_of_iterators(statement)
    names = _names(tensor)
    indices, lines = list(names), [str(coordinate.constant)] if coordinate.constant else []
    for tile in (t for t in coordinate.tiles if t.count > 1):
        d = None if tile.iterator is None else dims.get(tile.iterator)
        if d is None or tile.cycle:
            return None
        plain = _is_whole(tensor, statement, d)
        line = _line(tensor, statement, tile, d)
        lines.append(line if tile.step == 1 else f"{tile.step}*({line})")
        if plain:
            indices[d] = f"{names[d]} mod {tile.size}" if tile.size > 1 else "0"
    heads = [f"{name} = 0:{n - 1}" for name, n in zip(names, tensor.extents, strict=True)]
    pe = external(port.side, grid, " + ".join(lines) or "0")
    ordered = _at_once(tensor, statement, (place.x, place.y)[1 - port.axis], indices, port.order)
    return _port_text(tensor, heads, pe, ordered, range(len(ordered)))


def _at_once(
    tensor: Buffer, statement: Statement, along: Coordinate, indices: list[str], order: Sequence[int]
) -> list[str]:
    """Return indices in an order in which all that a PE of a line has leaves at once.

    What the line is cut by comes first: ``y[k][h]`` leaves ``PE[0, h//2]`` by ``index[h, k]``. Of several
    tiles that is their number: ``PE[0, h//2 + 4*k]`` by ``index[h//2 + 4*k, h mod 2, 0]``.
    """
    names, dims = _names(tensor), _dims_of_iterators(statement)
    tiles = sorted((t for t in along.tiles if t.count > 1 and t.iterator in dims), key=lambda t: t.step)
    cut = {dims[t.iterator]: t for t in tiles if t.iterator is not None}
    if any(t.cycle or not _is_whole(tensor, statement, d) for d, t in cut.items()):
        return [indices[d] for d in order]
    if len(cut) < 2:
        return [indices[d] for d in (*cut, *(d for d in order if d not in cut))]
    number, step = list[str](), 1
    for d, tile in cut.items():
        line = _line(tensor, statement, tile, d)
        number.append(line if step == 1 else f"{step}*({line})")
        step *= tile.count
    inner = {d: f"{names[d]} mod {t.size}" if t.size > 1 else "0" for d, t in cut.items()}
    return [" + ".join(number), *(inner.get(d, indices[d]) for d in order)]


def _dims_of_iterators(statement: Statement) -> dict[int, int]:
    """Return the dimension that an iterator indexes alone: what its tiles cut there are slices."""
    found: dict[int, int] = {}
    for d, index in enumerate(statement.write.affine):
        used = [k for k, c in enumerate(index.coefficients) if c]
        if len(used) == 1:
            found.setdefault(used[0], d)
    return found


def _is_whole(tensor: Buffer, statement: Statement, d: int) -> bool:
    """Whether a dimension is indexed by an iterator as it stands, all of it."""
    k = plain_iterator(statement.write.affine[d])
    return k is not None and statement.domain[k] == tensor.extents[d]


def _line(tensor: Buffer, statement: Statement, tile: Tile, d: int) -> str:
    """Return the tile of index ``d``; what is not written goes with the elements beside it."""
    index = statement.write.affine[d]
    slope = next(c for c in index.coefficients if c)
    sign = 1 if slope > 0 else -1
    size = abs(slope) * tile.size
    ends = [sign * (i - index.constant) // size for i in (0, tensor.extents[d] - 1)]
    value = affine_text(Index.of((sign,), 0), (_names(tensor)[d],), -sign * index.constant)
    inner = value if value.isidentifier() else f"({value})"
    line = (inner if sign < 0 else value) if size == 1 else f"{inner}//{size}"
    if min(ends) < 0:
        line = f"max(0, {line})"
    return f"min({tile.count - 1}, {line})" if max(ends) >= tile.count else line


def _output_by_isl(program: Program, placed: Mapping, statement: Statement, port: Port) -> str:
    tensor = program.buffer(statement.write.buffer)
    return _with_index(tensor, output_lines(program, placed, tensor.name, port.side), port.order)


def output_lines(program: Program, placed: Mapping, name: str, side: Side) -> isl.Map:
    """Return ``{ y[i] -> PE[4, y] }``: each element leaves the line in which it is complete.

    ``placed`` has no output ports. What no instance writes leaves at the first of these lines.
    """
    statement = program.definition(name)
    assert statement is not None
    owners = written_of(program, placed, statement).owners.reverse()
    lines = owners.apply_range(_to_port(side, placed.grid)).lexmax()
    unwritten = element_set(program.buffer(name)).subtract(lines.domain())
    if not unwritten.is_empty():
        lines = lines.union(isl.Map.from_domain_and_range(unwritten, lines.range().lexmin()))
    return lines.coalesce()
