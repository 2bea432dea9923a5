"""Subscripts, addresses and what they cost: how elements of local arrays are written in the tree of a PE."""

from __future__ import annotations

from collections.abc import Sequence

import islpy as isl

from polyloom.polyhedra.functions import coefficient, function_of
from polyloom.polyhedra.loops.generate import CodeBuilder, IntExpression, Number, operation_count, product_of
from polyloom.wafer.dataflow.local_arrays import LocalArray
from polyloom.wafer.machine.scalar_c import scalar_operations
from polyloom.wafer.pe_program.tree import (
    Code,
    Compute,
    Cost,
    Element,
    StoreElement,
)

_DIM = isl.dim_type


def flat_strides(access: isl.MultiAff, array: LocalArray) -> tuple[int, ...]:
    """Return, for each dimension of a nest, the distance of successive elements in a local array."""
    return tuple(
        sum(coefficient(access.get_at(k), d) * stride for k, stride in enumerate(array.strides))
        for d in range(access.dim(_DIM.in_))
    )


def in_order(items: isl.Set, name: str) -> isl.UnionMap:
    """Return ``{ name[i...] -> [i...] }`` on the items, a schedule; ``[0]`` for a tensor of rank 0."""
    dims = ", ".join(f"i{k}" for k in range(items.dim(_DIM.set)))
    visit = isl.Map(f"{{ {name}[{dims}] -> [{dims or '0'}] }}")
    return isl.UnionMap.from_map(visit.intersect_domain(items.set_tuple_name(name)))


def element_at(
    array: LocalArray, access: isl.MultiAff, arguments: Sequence[IntExpression], code: CodeBuilder
) -> Element:
    """Return the element that an access to the emitted array names at given arguments."""
    subscripts = (code.affine(access.get_at(k), arguments) for k in range(access.dim(_DIM.out)))
    return Element(array.name, tuple(subscripts))


def element_at_point(array: LocalArray, access: isl.MultiAff, point: isl.Set, code: CodeBuilder) -> Element:
    """Return the element that an access names at a parametric point of its domain."""
    function = isl.PwMultiAff.from_multi_aff(access).pullback_pw_multi_aff(function_of(point))
    subscripts = (code.value(function.get_pw_aff(k)) for k in range(function.dim(_DIM.out)))
    return Element(array.name, tuple(subscripts))


def point_values(point: isl.Set, code: CodeBuilder) -> tuple[IntExpression, ...]:
    """Return the coordinates of a parametric point."""
    function = function_of(point)
    return tuple(code.value(function.get_pw_aff(k)) for k in range(function.dim(_DIM.out)))


def without_units(
    sizes: Sequence[IntExpression], *strides: Sequence[int]
) -> tuple[tuple[IntExpression, ...], list[tuple[int, ...]]]:
    """Drop the dimensions of size 1 from a nest, but not all of them."""
    kept = [k for k, size in enumerate(sizes) if size != Number(1)] or [0]
    if not sizes:
        return (Number(1),), [(0,) for _ in strides]
    return tuple(sizes[k] for k in kept), [tuple(s[k] for k in kept) for s in strides]


def coalesced(
    sizes: Sequence[IntExpression], strides: Sequence[int]
) -> tuple[tuple[IntExpression, ...], tuple[int, ...]]:
    """Merge neighbouring dimensions that one stride runs through."""
    out_sizes: list[IntExpression] = [sizes[-1]]
    out_strides = [strides[-1]]
    for size, stride in zip(reversed(sizes[:-1]), reversed(strides[:-1]), strict=True):
        inner = out_sizes[0]
        if isinstance(inner, Number) and stride == out_strides[0] * inner.value:
            out_sizes[0] = product_of([size, inner])
        else:
            out_sizes.insert(0, size)
            out_strides.insert(0, stride)
    return tuple(out_sizes), tuple(out_strides)


def count_of(sizes: Sequence[IntExpression]) -> IntExpression:
    """Return the number of elements of a nest."""
    return product_of(sizes)


def stored(element: Element, compute: Compute) -> Code:
    """Return the code that computes a value and stores it, with its cost."""
    return (scalar_cost(compute, [element]), StoreElement(element, compute))


def scalar_cost(compute: Compute, targets: Sequence[Element] = ()) -> Cost:
    """Return what evaluating and storing one value costs, address computation included."""
    simple, multiplications = scalar_operations(compute.expression)
    elements = [v for _, v in compute.values if isinstance(v, Element)]
    addresses = sum(address_operations(e) for e in (*elements, *targets))
    return Cost(
        operations=simple + addresses,
        loads=len(elements),
        stores=len(targets),
        multiplications=multiplications,
    )


def address_operations(element: Element) -> int:
    """Return the operations that computing an element's address takes: an addition per varying subscript."""
    varying = [s for s in element.subscripts if not isinstance(s, Number)]
    return sum(1 + operation_count(s) for s in varying)
