"""Local memory: which tensors a PE keeps, and where in its arrays their elements are.

Source: dtg_codegen, Sec. 4.3, eqs. (7)-(9); the enlargement: Sec. 5.3.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from operator import mul

import islpy as isl

from polyloom.ir.program import Program
from polyloom.ir.types import ElementType
from polyloom.polyhedra.binding import PE_PARAMETERS, bind_domain
from polyloom.polyhedra.bounds import integer_bounds
from polyloom.polyhedra.box_hull import BoxHull, box_hull
from polyloom.polyhedra.effort import naming
from polyloom.polyhedra.functions import coefficients, compose, minus_offset
from polyloom.wafer.dataflow.streams import needed_elements
from polyloom.wafer.dataflow.tasks import TaskGraph

_DIM = isl.dim_type

Columns = tuple[tuple[int, ...], ...]
"""For each dimension of a nest, by how much each index of an access changes from one point to the next."""


def columns_of(access: isl.MultiAff) -> Columns:
    """Return the columns of an access."""
    rows = coefficients(access)
    return tuple(tuple(row[d] for row in rows) for d in range(access.dim(_DIM.in_)))


@dataclass(frozen=True, eq=False, kw_only=True)
class LocalArray:
    """The part of a tensor that a PE keeps, as a box of fixed size.

    ``elements`` (7): ``{ PE[x, y] -> y[i] }``; ``offset``: ``[PE_X, PE_Y] -> { [] -> y[...] }``, the
    element at the box's lowest corner; ``extent_before``: the box; ``low`` and ``extent``: by how much
    the array is enlarged below the box, and its whole extents; ``zero_padding``: cells around the box hold
    zeros from the start on; ``given``: no statement writes the tensor.

    All of these speak of the tensor's dimensions. How they lie in memory: ``order``: the dimensions from the
    outermost to the innermost one, where that is not their own order; ``reversed``: those that run backwards;
    ``padding``: cells behind each row that hold nothing; ``bank``: the 16-bit word, modulo 4, at which it
    starts, where that matters.
    """

    tensor: str
    type: ElementType
    elements: isl.Map
    offset: isl.MultiAff
    extent_before: tuple[int, ...]
    low: tuple[int, ...]
    extent: tuple[int, ...]
    zero_padding: bool = False
    given: bool = False
    order: tuple[int, ...] = ()
    reversed: frozenset[int] = frozenset()
    padding: int = 0
    bank: int | None = None

    @property
    def name(self) -> str:
        """The array's name in the emitted code."""
        return f"{self.tensor}_local"

    @cached_property
    def map_before(self) -> isl.MultiAff:
        """``{ y[i] -> y_local[i - offset] }`` (9)."""
        return minus_offset(self.offset, self.name, (0,) * len(self.extent))

    @cached_property
    def map(self) -> isl.MultiAff:
        """The same into the enlarged array: shifted by ``low``, its dimensions as they lie in memory."""
        if not self.order and not self.reversed:
            return minus_offset(self.offset, self.name, self.low)
        return compose(self.map_before, self.placing)

    @cached_property
    def placing(self) -> isl.MultiAff:
        """``{ y_local[i] -> y_local[...] }``: from the box (by ``map_before``) to the array (by ``map``).

        Of a box 4 x 3 with order (1, 0) and the second dimension reversed: ``y_local[2 - i1, i0]``.
        """
        names = [f"i{k}" for k in range(len(self.extent))]
        cells = (self._cell(k, names[k]) for k in self.dimensions)
        return isl.MultiAff(f"{{ {self.name}[{', '.join(names)}] -> {self.name}[{', '.join(cells)}] }}")

    def _cell(self, k: int, name: str) -> str:
        if k in self.reversed:
            return f"{self.extent[k] - 1 - self.low[k]} - {name}"
        return f"{name} + {self.low[k]}"

    @cached_property
    def dimensions(self) -> tuple[int, ...]:
        """The tensor's dimensions in the order in which they lie in memory, the outermost first."""
        return self.order or tuple(range(len(self.extent)))

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The extents of the array as it is declared."""
        extents = tuple(self.extent[k] for k in self.dimensions)
        return (*extents[:-1], extents[-1] + self.padding) if extents else ()

    @property
    def corner(self) -> tuple[int, ...]:
        """The smallest subscripts, in the array as it is declared, of the box of the tensor's elements."""
        ends = (e - low - n for e, low, n in zip(self.extent, self.low, self.extent_before, strict=True))
        ends_at = tuple(ends)
        return tuple(ends_at[k] if k in self.reversed else self.low[k] for k in self.dimensions)

    @property
    def box_shape(self) -> tuple[int, ...]:
        """The extents of the box of the tensor's elements, in the array as it is declared."""
        return tuple(self.extent_before[k] for k in self.dimensions)

    @property
    def bytes(self) -> int:
        """Bytes of the enlarged array."""
        return self.type.size * prod(self.shape)

    @cached_property
    def strides(self) -> tuple[int, ...]:
        """Elements from one index to the next, in each dimension of the array as declared (row-major)."""
        shape = self.shape
        return tuple(prod(shape[k + 1 :]) for k in range(len(shape)))

    @cached_property
    def signed_strides(self) -> tuple[int, ...]:
        """Elements from one index of the tensor to the next, in each of its dimensions."""
        strides = dict(zip(self.dimensions, self.strides, strict=True))
        return tuple(-strides[k] if k in self.reversed else strides[k] for k in range(len(strides)))

    def flat_strides(self, access: isl.MultiAff) -> tuple[int, ...]:
        """Return, for each dimension of a nest, the distance of successive elements that it accesses.

        ``access``: to the tensor.
        """
        return self.strides_along(columns_of(access))

    def strides_along(self, columns: Columns) -> tuple[int, ...]:
        """Return the same for the ``columns_of`` an access."""
        strides = self.signed_strides
        return tuple(sum(map(mul, column, strides)) for column in columns)

    def contiguous_along(self, columns: Columns, dimension: int) -> LocalArray:
        """Return the array in the order in which its elements follow each other along a nest's dimension.

        ``columns``: of the access to the tensor. Unchanged where one dimension of the tensor alone does not
        vary with it.
        """
        varying = [k for k, step in enumerate(columns[dimension]) if step]
        if len(varying) != 1 or varying[0] == self.dimensions[-1]:
            return self
        others = (k for k in range(len(self.extent)) if k != varying[0])
        return self.lying((*others, varying[0]), self.reversed, self.padding)

    def lying(self, order: tuple[int, ...], backward: frozenset[int], padding: int) -> LocalArray:
        """Return the array as it lies in another way: once and for all, its strides are asked for again."""
        way = order, backward, padding
        if way not in self._lying:
            self._lying[way] = replace(self, order=order, reversed=backward, padding=padding)
        return self._lying[way]

    @cached_property
    def _lying(self) -> dict[tuple[tuple[int, ...], frozenset[int], int], LocalArray]:
        return {}

    def held(self) -> isl.Set:
        """Return ``[PE_X, PE_Y] -> { y[i] }``: the elements on a PE."""
        return bind_domain(self.elements, PE_PARAMETERS)

    def in_box(self) -> isl.Set:
        """Return ``[PE_X, PE_Y] -> { y[i] }``: all elements that have a cell in the box."""
        return self.local_box().apply(isl.Map.from_multi_aff(self.map_before).reverse())

    def local_box(self) -> isl.Set:
        """Return ``{ y_local[...] }``: the array before it is enlarged."""
        names = [f"i{k}" for k in range(len(self.extent_before))]
        bounds = [f"0 <= {i} < {n}" for i, n in zip(names, self.extent_before, strict=True)]
        return isl.Set(f"{{ {self.name}[{', '.join(names)}] : {' and '.join(bounds) or 'true'} }}")

    def enlarged(self, touched: isl.Set) -> LocalArray:
        """Return the array, extended to hold the local elements (by ``map_before``) that are touched."""
        if touched.is_empty() or not self.extent:
            return self
        bounds = integer_bounds(touched)
        low = tuple(max(old, -first) for old, (first, _) in zip(self.low, bounds, strict=True))
        above = [e - old for e, old in zip(self.extent, self.low, strict=True)]
        above = [max(a, last + 1) for a, (_, last) in zip(above, bounds, strict=True)]
        return replace(self, low=low, extent=tuple(a + b for a, b in zip(low, above, strict=True)))


def allocate(graph: TaskGraph) -> dict[str, LocalArray]:
    """Return the local array of every tensor that some PE keeps, in the program's order."""
    program = graph.program
    arrays: dict[str, LocalArray] = {}
    for tensor in program.tensors:
        with naming(f"what each PE keeps of `{tensor.name}`", tensor.span):
            elements = _kept_elements(graph, tensor.name)
            if elements is not None and not elements.is_empty():
                array = array_of(tensor.name, tensor.type, elements.coalesce())
                arrays[tensor.name] = replace(array, given=tensor.name in program.inputs)
    return arrays


def _kept_elements(graph: TaskGraph, tensor: str) -> isl.Map | None:
    """Return ``{ PE -> elements }`` that PEs keep of a tensor (7); None where it only passes by."""
    program = graph.program
    if tensor in program.inputs:
        return _kept_input(graph, tensor)
    return graph.result(tensor).kept()


def _kept_input(graph: TaskGraph, tensor: str) -> isl.Map | None:
    if tensor in graph.mapping.inputs:
        relations = [store.stored for store in graph.stores if store.stream.tensor == tensor]
    else:
        relations = [
            needed_elements(graph.mapping, statement, tensor)
            for statement in graph.program.statements
            if any(access.buffer == tensor for access in statement.reads)
        ]
    return _union(relations)


def _union(relations: list[isl.Map]) -> isl.Map | None:
    result: isl.Map | None = None
    for relation in relations:
        result = relation if result is None else result.union(relation)
    return result


def array_of(tensor: str, element: ElementType, elements: isl.Map) -> LocalArray:
    """Return the array for what PEs keep, ``{ PE[x, y] -> y[i] }``: a box of fixed size.

    Source: dtg_codegen, Sec. 4.3, eqs. (7)-(9).
    """
    hull = _box(bind_domain(elements, PE_PARAMETERS))
    none = (0,) * len(hull.size)
    return LocalArray(
        tensor=tensor,
        type=element,
        elements=elements,
        offset=hull.offset,
        extent_before=hull.size,
        low=none,
        extent=hull.size,
    )


def _box(held: isl.Set) -> BoxHull:
    """Return the box hull of what a PE holds; where there is none, one box for all PEs."""
    hull = box_hull(held, implied=True)
    if hull is not None:
        return hull
    bounds = integer_bounds(held)
    offset = isl.MultiAff.zero(held.get_space().from_range())
    for k, (low, _) in enumerate(bounds):
        offset = offset.set_aff(k, offset.get_at(k).add_constant_val(isl.Val(low)))
    return BoxHull(offset, tuple(high - low + 1 for low, high in bounds))


def resident_tensors(program: Program, graph: TaskGraph) -> tuple[str, ...]:
    """Return the inputs without a port: they lie in PE memory before the start."""
    return tuple(name for name in program.inputs if name not in graph.mapping.inputs)
