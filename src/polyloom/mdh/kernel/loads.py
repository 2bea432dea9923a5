"""Code at the points of a register tile: loads, each once, and the scalar function on vectors.

A value that does not depend on a loop is loaded before it: scopes are the places in the text where loads can
stand, each with the variables that are known there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from polyloom.ir.expressions import Binary, BinaryOp, Expression, Read, children
from polyloom.ir.host import Combiner, Index, MdHom, View
from polyloom.ir.types import ElementType
from polyloom.mdh.kernel.arguments import Signature
from polyloom.mdh.kernel.lines import Lines, Namer
from polyloom.mdh.print.values import (
    Leaves,
    expression_c,
    integer_c,
    load,
    load_vector_of,
    value_type,
)
from polyloom.mdh.schedule.addresses import ZERO, Access, access_of, row_length, scaled
from polyloom.mdh.schedule.risks import risky_reads
from polyloom.polyhedra.loops.tree import IntExpression, Number, Operation, names_in, sum_of

ScalarTypes = (ElementType.FLOAT32, ElementType.FLOAT64)


@dataclass(frozen=True)
class Place:
    """A point, or ``width`` neighbours along dimension ``vector``: a position per dimension."""

    positions: tuple[IntExpression, ...]
    width: int = 1
    vector: int | None = None

    def lane(self, lane: int) -> Place:
        """Return one point of a vector."""
        if self.vector is None or self.width == 1:
            return self
        positions = list(self.positions)
        positions[self.vector] = sum_of([(1, positions[self.vector]), (1, Number(lane))])
        return Place(tuple(positions))


@dataclass
class Scope:
    """A place for loads. ``names``: the variables known there; ``found``: what was loaded there.

    ``fixed``: whether it stands before what is being written; else loads are appended, and only as long as
    no block was opened inside.
    """

    lines: Lines
    names: frozenset[str]
    fixed: bool = False
    found: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class LocalCopy:
    """A copy in local memory: ``array[shift + sum(strides[d] * (position[d] - origin[d]))]``.

    ``origins[d]``: where the cache tile begins; for steps backwards, where it ends. ``shift``: of dimensions
    that go forwards along one axis and backwards along another one. ``panel``: the dimension along which the
    copy is cut, and how wide; then each panel holds ``rest`` rows.
    """

    array: str
    strides: tuple[int, ...]
    origins: tuple[IntExpression, ...]
    panel: tuple[int, int] | None = None
    rest: int = 0
    shift: IntExpression = ZERO


@dataclass(kw_only=True)
class Points:
    """Writes what happens at points, into the scopes that are open."""

    signature: Signature
    namer: Namer
    copies: Mapping[int, LocalCopy]
    scopes: list[Scope] = field(default_factory=list)
    aligned: bool = True
    """Whether register tiles begin at panels."""

    def __post_init__(self) -> None:
        hom = self.signature.hom
        count = len(hom.extents)
        self.accesses = [access_of(view, self.signature.buffers, count) for view in hom.inputs]
        self.risky = risky_reads(hom, self.signature.buffers)
        self.written = frozenset(view.buffer for view in hom.outputs)

    @property
    def hom(self) -> MdHom:
        """The md_hom that is written."""
        return self.signature.hom

    def integer(self, expression: IntExpression) -> str:
        """Return an integer expression in C."""
        return integer_c(expression, self.signature.names)

    @contextmanager
    def scope(self, lines: Lines, names: frozenset[str] | None = None) -> Iterator[None]:
        """Let loads stand in ``lines`` for a while: before everything else, where ``names`` are known."""
        fixed = names is not None
        self.scopes.append(Scope(lines.slot() if fixed else lines, names or frozenset(), fixed))
        yield
        self.scopes.pop()

    @contextmanager
    def without_copies(self) -> Iterator[None]:
        """Let everything be read from where it lies: copies hold what the last tile of a reduction read,
        and nothing at all where there was none.
        """
        copies, self.copies = self.copies, {}
        yield
        self.copies = copies

    def declare(self, element: ElementType, width: int, name: str, text: str, scope: Scope) -> str:
        """Keep a value in a constant of a scope, once."""
        kind = value_type(element, width)
        key = f"{kind} {text}"
        scope = next((each for each in self.scopes if key in each.found), scope)
        if key not in scope.found:
            variable = self.namer.fresh(name)
            scope.lines.add(f"const {kind} {variable} = {text};")
            scope.found[key] = variable
        return scope.found[key]

    def leaves(self, place: Place, results: Sequence[str] = (), reads: Sequence[int] = ()) -> Leaves:
        """Return the texts of what a scalar function reads at a place; ``results`` follow the inputs."""
        texts = {k: self.load(k, place) for k in reads if k < len(self.hom.inputs)}
        texts |= {len(self.hom.inputs) + o: text for o, text in enumerate(results)}
        return Leaves(texts, self._iterators(place), self._parameters(place.width))

    def _parameters(self, width: int) -> dict[str, str]:
        vector = "" if width == 1 else f"(long{width})"
        names = {n: f"{vector}{self.signature.names[n]}" for n in self.signature.numbers}
        return {n: f"({text})" if vector else text for n, text in names.items()}

    def _iterators(self, place: Place) -> list[str]:
        return [self._iterator(place, d) for d in range(len(place.positions))]

    def _iterator(self, place: Place, d: int) -> str:
        text = f"({self.integer(place.positions[d])})"
        if place.width == 1:
            return text
        vector = f"(long{place.width})"
        if d != place.vector:
            return f"({vector}{text})"
        lanes = ", ".join(map(str, range(place.width)))
        return f"({vector}{text} + {vector}({lanes}))"

    def load(self, position: int, place: Place) -> str:
        """Return the text of input ``position`` at a place, with ``place.width`` elements."""
        access = self.accesses[position]
        element = self.signature.buffers[self.hom.inputs[position].buffer].type
        if access is None or position in self.risky:
            return self._lanes(position, place, element)
        if place.width == 1 or place.vector is None or access.is_fixed(place.vector):
            value = self._value(position, access, place.lane(0), 1, element)
            return value if place.width == 1 else f"({value_type(element, place.width)})({value})"
        if self._is_contiguous(position, access, place.vector):
            return self._value(position, access, place, place.width, element)
        return self._lanes(position, place, element)

    def _is_contiguous(self, position: int, access: Access, vector: int) -> bool:
        copy = self.copies.get(position)
        return copy.strides[vector] == 1 if copy else access.is_unit(vector)

    def _value(self, position: int, access: Access, place: Place, width: int, element: ElementType) -> str:
        pointer, address = self._address(position, access, place)
        if position in self.copies:
            text = load_vector_of(pointer, self.integer(address), _in_local(element), width)
        else:
            text = load_vector_of(pointer, self.integer(address), element, width)
        scope = self._scope(position, address)
        return self.declare(element, width, f"{self.signature.names[access.buffer.name]}_0", text, scope)

    def _scope(self, position: int, address: IntExpression) -> Scope:
        """Return the outermost scope where an address is known; copies change with the cache tile.

        What the md_hom also writes is read where it is needed: further out, its element may be that of
        another work-item, which writes it meanwhile.
        """
        innermost = self.scopes[-1]
        if self.hom.guard is not None or self.hom.inputs[position].buffer in self.written:
            return innermost
        needed = names_in(address)
        allowed = self.scopes[1:] if position in self.copies else self.scopes
        return next((s for s in allowed if s.fixed and needed <= s.names), innermost)

    def _address(self, position: int, access: Access, place: Place) -> tuple[str, IntExpression]:
        copy = self.copies.get(position)
        if copy is None:
            terms = [(1, scaled(s, x)) for s, x in zip(access.strides, place.positions, strict=True)]
            return self.signature.names[access.buffer.name], sum_of([*terms, (1, access.base)])
        return copy.array, self._local_address(copy, place)

    def _local_address(self, copy: LocalCopy, place: Place) -> IntExpression:
        parts: list[tuple[int, IntExpression]] = [(1, copy.shift)]
        for d, stride in enumerate(copy.strides):
            if copy.panel and copy.panel[0] == d:
                parts += self._panel_address(copy, place.positions[d], copy.origins[d])
            elif stride:
                parts += [(stride, place.positions[d]), (-stride, copy.origins[d])]
        return sum_of(parts)

    def _panel_address(
        self, copy: LocalCopy, position: IntExpression, origin: IntExpression
    ) -> list[tuple[int, IntExpression]]:
        """Return the terms of the address in a copy that is cut into panels."""
        assert copy.panel is not None
        d, width = copy.panel
        inside = sum_of([(1, position), (-1, origin)])
        start = self.panel_starts.get(d)
        if self.aligned and start is not None:
            begin = sum_of([(1, start), (-1, origin)])
            return [(copy.rest, begin), (1, sum_of([(1, inside), (-1, begin)]))]
        panel = Operation("/", (inside, Number(width)))
        return [(copy.rest * width, panel), (1, Operation("%", (inside, Number(width))))]

    panel_starts: dict[int, IntExpression] = field(default_factory=dict)
    """Per dimension, where the register tile begins, at a panel."""

    def _lanes(self, position: int, place: Place, element: ElementType) -> str:
        """Load the elements of a vector one by one."""
        view = self.hom.inputs[position]
        texts = [self._single(position, view, place.lane(lane), element) for lane in range(place.width)]
        if place.width == 1:
            return texts[0]
        kind = value_type(element, place.width)
        text = f"({kind})({', '.join(texts)})"
        name = f"{self.signature.names[view.buffer]}_0"
        return self.declare(element, place.width, name, text, self.scopes[-1])

    def _single(self, position: int, view: View, place: Place, element: ElementType) -> str:
        access = self.accesses[position]
        name = f"{self.signature.names[view.buffer]}_0"
        if access is not None and position not in self.risky:
            return self._value(position, access, place, 1, element)
        text = load(self.signature.names[view.buffer], self._nearest(view, place), element)
        return self.declare(element, 1, name, text, self.scopes[-1])

    def _nearest(self, view: View, place: Place) -> str:
        """Return the address of an element; where it does not exist, of the nearest one."""
        buffer = self.signature.buffers[view.buffer]
        parts = []
        for axis, index in enumerate(view.indices):
            text = f"lesser({self.index(index, place)}, {self.integer(buffer.shape[axis])} - 1)"
            row = row_length(buffer, axis)
            parts.append(f"greater({text}, 0)" + ("" if row == Number(1) else f" * ({self.integer(row)})"))
        return " + ".join(parts) or "0"

    def index(self, index: Index | Expression, place: Place) -> str:
        """Return an index of a view at a point, affine or computed."""
        if isinstance(index, Index):
            parts = zip(index.coefficients, place.positions, strict=True)
            return self.integer(sum_of([*parts, (1, index.offset)]))
        return f"(long)({expression_c(index, self.leaves(place, reads=_reads(index)))})"

    def value(self, expression: Expression, place: Place, results: Sequence[str] = ()) -> str:
        """Return a scalar function at a place."""
        return expression_c(expression, self.leaves(place, results, _reads(expression)), place.width)

    def combined(
        self, combiner: Combiner, left: Sequence[str], right: Sequence[str], width: int
    ) -> list[str]:
        """Return ``left op right``, a text per output."""
        leaves = Leaves([*left, *right], (), self._parameters(width))
        return [expression_c(result, leaves, width) for result in combiner.results]

    def fused(self, combiner: Combiner, term: Expression, total: str, place: Place) -> str | None:
        """Return ``fma(a, b, total)`` where a product is added up; None where it is something else."""
        match combiner.results, term:
            case (
                (Binary(op=BinaryOp.ADD, left=Read(position=0), right=Read(position=1)),),
                Binary(op=BinaryOp.MULTIPLY, left=a, right=b, type=kind),
            ) if kind in ScalarTypes:
                return f"fma({self.value(a, place)}, {self.value(b, place)}, {total})"
            case _:
                return None


def _in_local(element: ElementType) -> ElementType:
    """Return the type of an element's copy: a half is copied as a float."""
    return ElementType.FLOAT32 if element is ElementType.FLOAT16 else element


def _reads(expression: Expression) -> tuple[int, ...]:
    if isinstance(expression, Read):
        return (expression.position,)
    return tuple(dict.fromkeys(k for child in children(expression) for k in _reads(child)))
