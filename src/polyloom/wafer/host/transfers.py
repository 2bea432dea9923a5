"""The host's side of a compiled layer: which bytes lie where at the start, what ports are fed and give.

All of it is read off the relations of the analysis; points are enumerated here, with NumPy, and not before.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import islpy as isl
import numpy as np
import numpy.typing as npt

from polyloom.ir.types import ElementType
from polyloom.polyhedra.bounds import integer_bounds
from polyloom.polyhedra.functions import function_of
from polyloom.polyhedra.vectorized import Integers, contains, evaluate_aff, evaluate_function
from polyloom.wafer.dataflow.local_arrays import LocalArray
from polyloom.wafer.mapping.grid import Side
from polyloom.wafer.program.wafer_program import RoleProgram, WaferProgram

AnyArray = npt.NDArray[np.generic]
Wavelets = tuple[npt.NDArray[np.uint32], npt.NDArray[np.bool_]]
"""Payloads and control flags, uint32[n] and bool[n]."""


class Carried(Protocol):
    """What passes a port: elements of a type, sparse or dense."""

    @property
    def type(self) -> ElementType:
        """The element type."""

    @property
    def sparse(self) -> bool:
        """Whether zeros are left out."""

    @property
    def block(self) -> int | None:
        """After how many elements a wavelet ends where two travel in one; None where each has its own."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PortOrder:
    """The elements at one port, in order: ``index``: int64[n, rank]; ``element``: int64[n, tensor rank].

    ``chunks``: the extents of the outer index.
    """

    side: Side
    position: int
    index: Integers
    element: Integers
    chunks: tuple[int, ...]

    @property
    def chunk_number(self) -> Integers:
        """Return the row-major number of each element's chunk, int64[n]."""
        number = np.zeros(len(self.index), dtype=np.int64)
        for k, extent in enumerate(self.chunks):
            number = number * extent + self.index[:, k]
        return number

    @property
    def chunk_count(self) -> int:
        """Number of chunks, each ended by one end-of-chunk."""
        return int(np.prod(self.chunks, dtype=np.int64))


def port_orders(schedule: isl.Map, side: Side, extent: int) -> Iterator[PortOrder]:
    """Yield, for each port of a side that has any, its elements in the order of their index.

    ``schedule``: ``{ x[i] -> [PE[x, y] -> index[k]] }`` with the external PEs of this side; ``extent``:
    number of positions on the side.
    """
    by_index = function_of(schedule.reverse())
    bounds = integer_bounds(schedule.range())
    axis = 0 if side.line == "PE_X" else 1
    (low, high), fixed = bounds[axis], bounds[1 - axis][0]
    boxes = [np.arange(first, last + 1, dtype=np.int64) for first, last in bounds[2:]]
    grid = np.meshgrid(*boxes, indexing="ij")
    flat = [g.ravel() for g in grid]
    for position in range(max(low, 0), min(high, extent - 1) + 1):
        here = [np.full(1, fixed), np.full(1, fixed)]
        here[axis] = np.full(1, position)
        element, defined = evaluate_function(by_index, [*here, *flat], {})
        if defined.any():
            index = np.stack([f[defined] for f in flat], axis=1)
            coordinates = [e[defined] for e in element]
            elements = np.stack(coordinates, axis=1) if coordinates else np.zeros((len(index), 0), np.int64)
            chunks = tuple(int(index[:, k].max()) + 1 for k in range(index.shape[1] - 1))
            yield PortOrder(side=side, position=position, index=index, element=elements, chunks=chunks)


def wavelet_bits(values: AnyArray, element: ElementType) -> npt.NDArray[np.uint32]:
    """Return elements as payloads of wavelets: 16-bit types in the low half."""
    if element.size == 2:
        return np.ascontiguousarray(values).view(np.uint16).astype(np.uint32)
    return np.ascontiguousarray(values).view(np.uint32)


def from_wavelet_bits(bits: npt.NDArray[np.uint32], element: ElementType) -> AnyArray:
    """Return the elements that payloads carry."""
    if element.size == 2:
        return (bits & 0xFFFF).astype(np.uint16).view(element.dtype)
    return np.ascontiguousarray(bits).view(element.dtype)


def paired(payload: npt.NDArray[np.uint32], block: int) -> npt.NDArray[np.uint32]:
    """Return elements of 16 bits two in a wavelet, the first in the low half; a block begins a new one."""
    place = _places_in_pairs(len(payload), block)
    halves = np.zeros(2 * (place[-1] // 2 + 1) if len(place) else 0, dtype=np.uint32)
    halves[place] = payload
    return np.asarray(halves[0::2] | halves[1::2] << 16, dtype=np.uint32)


def unpaired(payload: npt.NDArray[np.uint32], elements: int, block: int) -> npt.NDArray[np.uint32]:
    """Return the elements that ``paired`` put into wavelets, each in the low half of its own."""
    halves = np.stack([payload & 0xFFFF, payload >> 16], axis=1).reshape(-1)
    return np.asarray(halves[_places_in_pairs(elements, block)], dtype=np.uint32)


def _places_in_pairs(elements: int, block: int) -> Integers:
    """Return which half of which wavelet each element is, int64[elements]."""
    number, within = np.divmod(np.arange(elements, dtype=np.int64), block)
    return np.asarray(number * (block + block % 2) + within, dtype=np.int64)


def wavelet_count(elements: int, carried: Carried) -> int:
    """Return how many wavelets so many elements of a dense stream take."""
    if carried.block is None:
        return elements
    whole, rest = divmod(elements, carried.block)
    return whole * -(-carried.block // 2) + -(-rest // 2)


def encode(order: PortOrder, tensor: AnyArray, stream: Carried) -> Wavelets:
    """Return what one port is fed in one invocation: payloads uint32[n] and control flags bool[n].

    Of a sparse stream, zeros are left out and every chunk has its end.
    """
    values = np.broadcast_to(tensor[tuple(order.element.T)], len(order.element))
    payload = wavelet_bits(values, stream.type)
    if not stream.sparse:
        payload = payload if stream.block is None else paired(payload, stream.block)
        return payload, np.zeros(len(payload), dtype=np.bool_)
    kept = values != 0
    pairs = (order.index[kept, -1].astype(np.uint32) << 16) | payload[kept]
    chunk = order.chunk_number[kept]
    ends = np.arange(order.chunk_count)
    keys = np.concatenate([2 * chunk, 2 * ends + 1])
    both = np.concatenate([pairs, np.zeros(len(ends), dtype=np.uint32)])
    control = np.concatenate([np.zeros(len(pairs), np.bool_), np.ones(len(ends), np.bool_)])
    arrangement = np.argsort(keys, kind="stable")
    return both[arrangement], control[arrangement]


def decode(
    order: PortOrder,
    payload: npt.NDArray[np.uint32],
    control: npt.NDArray[np.bool_],
    chain: Carried,
    tensor: AnyArray,
) -> None:
    """Put what one port gave in one invocation into the output tensor."""
    if not chain.sparse:
        payload = payload if chain.block is None else unpaired(payload, len(order.element), chain.block)
        put(tensor, list(order.element.T), from_wavelet_bits(payload, chain.type))
        return
    put(tensor, list(order.element.T), np.zeros(len(order.element), tensor.dtype))
    chunk: Integers = np.cumsum(control, dtype=np.int64) - control
    data = ~control
    last = int(order.index[:, -1].max()) + 1
    place = np.full(order.chunk_count * last, -1, dtype=np.int64)
    place[order.chunk_number * last + order.index[:, -1]] = np.arange(len(order.index))
    rows = place[chunk[data] * last + (payload[data] >> 16)]
    put(tensor, list(order.element[rows].T), from_wavelet_bits(payload[data], chain.type))


def put(tensor: AnyArray, coordinates: Sequence[Integers], values: AnyArray) -> None:
    """Set elements of a contiguous array of any rank: ``values``: [n], ``coordinates``: int64[n] each."""
    flat = np.zeros(len(values), dtype=np.int64)
    for coordinate, extent in zip(coordinates, tensor.shape, strict=True):
        flat = flat * extent + coordinate
    tensor.reshape(-1)[flat] = values


def pes_of_role(program: WaferProgram, role: RoleProgram) -> tuple[Integers, Integers]:
    """Return the coordinates of a role's PEs in its own rectangle, int64[n] each."""
    return pes_in(program, role.role.pes)


def pes_in(program: WaferProgram, pes: isl.Set) -> tuple[Integers, Integers]:
    """Return the coordinates of the PEs of a set, int64[n] each."""
    grid = program.analysis.border.given.grid
    y, x = np.mgrid[0 : grid.height, 0 : grid.width].astype(np.int64)
    inside = contains(pes, [x.ravel(), y.ravel()], {})
    return x.ravel()[inside], y.ravel()[inside]


def local_elements(array: LocalArray, xs: Integers, ys: Integers) -> list[Integers]:
    """Return the tensor coordinates of every cell of the (enlarged) array on PEs: int64[n, cells] each."""
    cells = np.indices(array.shape, dtype=np.int64).reshape(len(array.shape), math.prod(array.shape))
    parameters = {"PE_X": xs[:, None], "PE_Y": ys[:, None]}
    result: list[Integers] = []
    for k, low in enumerate(array.low):
        offset = evaluate_aff(array.offset.get_at(k), [], parameters)
        cell = cells[array.dimensions.index(k)][None, :]
        inside = array.extent[k] - 1 - cell if k in array.reversed else cell
        result.append(np.broadcast_to(inside - low + offset, (len(xs), cells.shape[1])))
    return result


def load_image(
    array: LocalArray, tensor: AnyArray, xs: Integers, ys: Integers
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.bool_]]:
    """Return the bytes of a resident tensor's array on PEs, uint8[n, bytes], and which cells are set."""
    coordinates = local_elements(array, xs, ys)
    cells = int(np.prod(array.shape, dtype=np.int64))
    inside = np.ones((len(xs), cells), dtype=np.bool_)
    for values, extent in zip(coordinates, tensor.shape, strict=True):
        inside &= (values >= 0) & (values < extent)
    clipped = tuple(np.clip(v, 0, n - 1) for v, n in zip(coordinates, tensor.shape, strict=True))
    data = tensor[clipped] if clipped else np.broadcast_to(tensor, (len(xs), 1))
    data = np.ascontiguousarray(data, dtype=array.type.dtype)
    if array.zero_padding:
        around = in_padding(array)
        data[:, around], inside[:, around] = 0, True
    return data.view(np.uint8).reshape(len(xs), -1), inside


def padding_image(array: LocalArray, pes: int) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.bool_]]:
    """Return the same for an array that only holds zeros around its box."""
    around = np.tile(in_padding(array), (pes, 1))
    return np.zeros((pes, array.bytes), dtype=np.uint8), around


def in_padding(array: LocalArray) -> npt.NDArray[np.bool_]:
    """Return which cells of the enlarged array lie outside the box of its elements: bool[cells]."""
    inside = np.zeros(array.shape, dtype=np.bool_)
    box = zip(array.corner, array.box_shape, strict=True)
    inside[tuple(slice(first, first + extent) for first, extent in box)] = True
    return ~inside.reshape(-1)
