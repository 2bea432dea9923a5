"""TensorLists: what loops collect and what they go through. Their lengths and positions are known."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from polyloom.frontends.graph.core import (
    Anything,
    Context,
    ElementType,
    Refused,
    Shape,
    Table,
    Value,
    ValueList,
    check_constant,
    concatenated,
    filled,
    folded,
    refuse_if,
    scalar,
    stacked,
    unstacked,
)
from polyloom.frontends.tensorflow.operations.elementwise import element_type_of


def _shape(c: Context, position: int) -> Shape | None:
    """Return the shape of elements that an input states; None where a part of it is open."""
    if c.optional(position) is None or c.b.known(c.input(position)) is None:
        return None
    stated = c.integers(position, "the shape of its elements")
    return None if c.input(position).rank == 0 or min(stated, default=0) < 0 else tuple(stated)


def _reserved(c: Context) -> Sequence[Anything]:
    count = c.whole(1, "its length")
    check_constant([count], 1000)
    return [ValueList((None,) * count, element_type_of(c, "element_dtype"), _shape(c, 0))]


def _empty(c: Context) -> Sequence[Anything]:
    kind = c.attribute("element_dtype")
    return [ValueList((), kind if isinstance(kind, ElementType) else None, _shape(c, 0))]


def _from_tensor(c: Context) -> Sequence[Anything]:
    x = c.input()
    refuse_if(x.rank == 0, "a list of a tensor without axes")
    return [ValueList(tuple(unstacked(x, 0)), x.type, x.shape[1:])]


def _element(c: Context, found: ValueList, position: int, stated: int) -> Value:
    """Return an element; one that nothing has written is zero."""
    value = found.item(position)
    if value is not None:
        return value
    shapes = {v.shape for v in found.written()}
    shape = found.shape or _shape(c, stated) or (shapes.pop() if len(shapes) == 1 else None)
    if shape is None or found.type is None:
        raise Refused(f"element {position} is not written, and its shape is not stated")
    return filled(c.b, shape, 0, found.type)


def _item(c: Context) -> Sequence[Anything]:
    return [_element(c, c.listed(), c.whole(1, "its position"), 2)]


def _with_item(c: Context) -> Sequence[Anything]:
    return [c.listed().with_item(c.whole(1, "its position"), c.input(2))]


def _all(c: Context, stated: int) -> list[Value]:
    found = c.listed()
    refuse_if(not len(found), "a list without elements as a tensor")
    return [_element(c, found, k, stated) for k in range(len(found))]


def _stack(c: Context) -> Sequence[Anything]:
    return [stacked(c.b, _all(c, 1), 0)]


def _concat(c: Context) -> Sequence[Anything]:
    parts = _all(c, 1)
    lengths = c.b.constant(np.asarray([p.shape[0] for p in parts], np.int64))
    return [concatenated(c.b, parts, 0), lengths]


def _gather(c: Context) -> Sequence[Anything]:
    found = c.listed()
    return [stacked(c.b, [_element(c, found, k, 2) for k in c.integers(1, "its positions")], 0)]


def _length(c: Context) -> Sequence[Anything]:
    return [c.b.constant(np.asarray(len(c.listed()), np.int32))]


def _element_shape(c: Context) -> Sequence[Anything]:
    found = c.listed()
    shapes = {found.shape} - {None} or {v.shape for v in found.written()}
    refuse_if(len(shapes) != 1, "the shape of its elements is not known")
    kind = element_type_of(c, "shape_type", ElementType.INT32)
    return [c.b.constant(np.asarray(shapes.pop(), kind.dtype))]


def _pushed(c: Context) -> Sequence[Anything]:
    found, value = c.listed(), c.input(1)
    return [ValueList((*found.items, value), found.type or value.type, found.shape)]


def _popped(c: Context) -> Sequence[Anything]:
    found = c.listed()
    return [found.of(found.items[:-1]), _element(c, found, len(found) - 1, 1)]


def _resized(c: Context) -> Sequence[Anything]:
    found, count = c.listed(), c.whole(1, "its length")
    check_constant([count], 1000)
    return [found.of([*found.items[:count], *[None] * (count - len(found))])]


def zeros_like(c: Context, found: ValueList) -> ValueList:
    """Return a list of zeros; elements that are not written stay so."""
    zero = [v and filled(c.b, v.shape, 0, v.type) for v in found.items]
    return found.of(zero)


def added(c: Context, lists: Sequence[ValueList]) -> ValueList:
    """Return the sums of elements; one that is not written counts as zero. Raises ``Refused``."""
    if len({len(found) for found in lists}) != 1:
        raise Refused(f"lists of {', '.join(str(len(found)) for found in lists)} elements")
    columns = zip(*(found.items for found in lists), strict=True)
    return lists[0].of([_sum(c, [v for v in column if v is not None]) for column in columns])


def _sum(c: Context, values: Sequence[Value]) -> Value | None:
    if len(values) < 2:
        return values[0] if values else None
    return folded(c.b, scalar.add, values)


def _add(c: Context) -> Sequence[Anything]:
    """AddN, also of the gradients of lists."""
    operands = c.everything
    lists = [v for v in operands if isinstance(v, ValueList)]
    if not lists:
        return [folded(c.b, scalar.add, c.inputs)]
    refuse_if(len(lists) != len(operands), "a sum of tensors and lists")
    return [added(c, lists)]


def _zeros(c: Context) -> Sequence[Anything]:
    """ZerosLike, also of a list."""
    found = c.anything(0)
    if isinstance(found, ValueList):
        return [zeros_like(c, found)]
    x = c.input()
    return [filled(c.b, x.shape, 0, x.type)]


OPERATIONS: Table = {
    "AddN": _add,
    "AccumulateNV2": _add,
    "ZerosLike": _zeros,
    "TensorListReserve": _reserved,
    "EmptyTensorList": _empty,
    "TensorListFromTensor": _from_tensor,
    "TensorListGetItem": _item,
    "TensorListSetItem": _with_item,
    "TensorListStack": _stack,
    "TensorListConcatV2": _concat,
    "TensorListGather": _gather,
    "TensorListLength": _length,
    "TensorListElementShape": _element_shape,
    "TensorListPushBack": _pushed,
    "TensorListPopBack": _popped,
    "TensorListResize": _resized,
}
