"""What the matrix unit of a warp does, in CUDA C: each step is a call of its header, or of our own.

    nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, float> total_blocks[2][2];
    nvcuda::wmma::fill_fragment(total_blocks[0][0], 0.0f);
    nvcuda::wmma::load_matrix_sync(A_blocks[0], &A_copy[32 * i_item][k_step], 40);
    nvcuda::wmma::mma_sync(total_blocks[0][0], A_blocks[0], B_blocks[0], total_blocks[0][0]);
    nvcuda::wmma::store_matrix_sync(&total_shared[i_item][j_item][0][0], total_blocks[0][0], 36, ...);

Blocks in memory begin at multiples of 32 bytes, their rows lie multiples of 16 bytes apart.
"""

from __future__ import annotations

from polyloom.ir.types import ElementType
from polyloom.mdh.print.c_scope import Scope, Variable, row_by_row
from polyloom.mdh.print.library.matrix_units import MATRIX_UNITS
from polyloom.mdh.print.values import literal
from polyloom.mdh.tree.matrix.steps import SIDE, Fetch, Fill, Leave, Multiply, step_of
from polyloom.mdh.tree.nodes import Array, For, Load, Part, Space
from polyloom.mdh.tree.ranges import multiple
from polyloom.polyhedra.loops.tree import Number

_WMMA = "nvcuda::wmma::"
_BEGIN, _ROW = 32, 16
"""Bytes of whose multiples blocks begin, and rows are apart."""

_KINDS = {
    Part.SUM: "accumulator, {side}, {side}, {side}, float",
    Part.LEFT: "matrix_a, {side}, {side}, {side}, __half, {space}row_major",
    Part.LEFT_TURNED: "matrix_a, {side}, {side}, {side}, __half, {space}col_major",
    Part.RIGHT: "matrix_b, {side}, {side}, {side}, __half, {space}row_major",
    Part.RIGHT_TURNED: "matrix_b, {side}, {side}, {side}, __half, {space}col_major",
}


def declared_blocks(part: Part, variable: Variable, scope: Scope) -> str:
    """Return the declaration of blocks in a matrix unit. Errors: ValueError where the language has none."""
    _refuse_others(scope)
    kind = _KINDS[part].format(side=SIDE, space=_WMMA)
    extents = "".join(f"[{scope.integer(n)}]" for n in variable.shape[:-2])
    return f"{_WMMA}fragment<{_WMMA}{kind}> {variable.text}{extents};"


def matrix_step(loop: For, scope: Scope) -> str:
    """Return the call that does what loops of ``Kind.MATRIX`` say. Errors: ValueError."""
    _refuse_others(scope)
    match step_of(loop, {name: _array(name, v) for name, v in scope.variables.items()}):
        case Fill(target=target, value=value):
            text = literal(value, ElementType.FLOAT32, 1, scope.dialect)
            return f"{_WMMA}fill_fragment({_block(target, scope)}, {text});"
        case Fetch(target=target, first=first):
            return f"{_WMMA}load_matrix_sync({_block(target, scope)}, {_rows(first, scope)});"
        case Multiply(sums=sums, left=left, right=right):
            a, b, c = (_block(place, scope) for place in (left, right, sums))
            return f"{_WMMA}mma_sync({c}, {a}, {b}, {c});"
        case Leave(first=first, sums=sums):
            place, row = _rows(first, scope).rsplit(", ", 1)
            return f"{_WMMA}store_matrix_sync({place}, {_block(sums, scope)}, {row}, {_WMMA}mem_row_major);"


def _refuse_others(scope: Scope) -> None:
    if not scope.dialect.has_matrix_units:
        raise ValueError("the language has no matrix units")
    scope.needs.definitions[MATRIX_UNITS] = None


def _array(name: str, variable: Variable) -> Array | None:
    """Return what a name stands for as an array that the group shares, or in a unit; None for others."""
    if variable.held or variable.flat:
        return None
    space = Space.GROUP if variable.part is None else Space.UNIT
    return Array(
        name=name,
        type=variable.type,
        shape=variable.shape,
        space=space,
        packed=variable.packed,
        part=variable.part,
    )


def _block(place: Load, scope: Scope) -> str:
    return scope.place(place.array, place.subscripts)


def _rows(first: Load, scope: Scope) -> str:
    """Return the address of a block in memory, and how far its rows are apart."""
    variable = scope.variables[first.array]
    place, row = row_by_row(first.subscripts, variable), variable.shape[-1]
    size = variable.type.size
    if place is None or not isinstance(row, Number) or row.value * size % _ROW:
        raise ValueError(f"rows of `{first.array}` are not multiples of {_ROW} bytes apart")
    if multiple(place, scope.multiples) * size % _BEGIN:
        raise ValueError(f"a block of `{first.array}` is not known to begin at a multiple of {_BEGIN} bytes")
    return f"&{scope.place(first.array, first.subscripts)}, {row.value}"
