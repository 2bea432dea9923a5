"""What the parts of a role's program are made from, and how subscripts and values are written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count

import islpy as isl

from polyloom.ir.types import ElementType
from polyloom.polyhedra.functions import coefficient
from polyloom.polyhedra.loops.generate import CodeBuilder, IntExpression, Number, operation_count, product_of
from polyloom.wafer.analysis import LayerAnalysis
from polyloom.wafer.array_layout.banks import temporary_bank
from polyloom.wafer.dataflow.local_arrays import LocalArray
from polyloom.wafer.machine.options import Extension
from polyloom.wafer.machine.scalar_c import scalar_operations
from polyloom.wafer.pe_program.tree import (
    ArrayDeclaration,
    Code,
    Compute,
    Configure,
    ConfigureFabric,
    Cost,
    Element,
    OperandDeclaration,
    OperandRef,
)
from polyloom.wafer.roles.roles import Role
from polyloom.wafer.simd.decision import SimdMode

_DIM = isl.dim_type


@dataclass(eq=False)
class RoleBuilder:
    """Collects the declarations of one role while its tasks are made: the only mutable thing of the stage."""

    analysis: LayerAnalysis
    role: Role
    operands: list[OperandDeclaration] = field(default_factory=list)
    setup: list[Code] = field(default_factory=list)
    counters: list[str] = field(default_factory=list)
    variables: list[str] = field(default_factory=list)
    at_chunk: dict[str, list[Code]] = field(default_factory=dict)
    """What is done at the end of each chunk of a stream, by the stream's name."""
    temporaries: dict[str, ArrayDeclaration] = field(default_factory=dict)

    @property
    def simd(self) -> bool:
        """Whether SIMD instructions may be used at all."""
        return self.analysis.options.mode is not SimdMode.OFF

    def array(self, tensor: str) -> LocalArray:
        """Return the local array of a tensor."""
        return self.analysis.arrays[tensor]

    def code(self, context: isl.Set | None = None, names: dict[str, str] | None = None) -> CodeBuilder:
        """Return the maker of loops and expressions for this role's PEs."""
        return CodeBuilder(self.role.context if context is None else context, names or {})

    def operand(self, name: str, count: int = 1, comment: str = "") -> OperandRef:
        """Declare a SIMD operand under a name that is not taken."""
        unique = _unique(name, {declared.name for declared in self.operands})
        self.operands.append(OperandDeclaration(unique, count, comment))
        return OperandRef(unique)

    def memory_operand(
        self, name: str, sizes: Sequence[IntExpression], strides: Sequence[int], comment: str = ""
    ) -> OperandRef:
        """Declare an operand in memory and configure it once, at the start."""
        operand = self.operand(name, comment=comment)
        self.setup.append((Configure(operand, tuple(sizes), tuple(strides)),))
        return operand

    def fabric_operand(self, name: str, queue: str, elements: IntExpression, *, output: bool) -> OperandRef:
        """Declare an operand on the fabric and configure it once, at the start."""
        operand = self.operand(name)
        self.setup.append((ConfigureFabric(operand, output, queue, elements),))
        return operand

    def variable(self, name: str) -> str:
        """Return a name for an integer of a block that is not taken."""
        self.variables.append(_unique(name, set(self.variables)))
        return self.variables[-1]

    def temporary(self, position: int, element: ElementType, elements: int) -> str:
        """Declare a temporary of at least so many elements; tasks share those of one position and type."""
        name = f"temporary_{element.value}_{-position}"
        held = self.temporaries.get(name)
        elements = max(elements, 0 if held is None else held.extents[0])
        padded = self.analysis.options.has(Extension.BANK_PADDING)
        bank = temporary_bank(position, element) if padded else None
        self.temporaries[name] = ArrayDeclaration(name, element, (elements,), "between instructions", bank)
        return name

    def counter(self, name: str) -> str:
        """Declare a 16-bit counter in local memory."""
        if name not in self.counters:
            self.counters.append(name)
        return name


def _unique(name: str, taken: set[str]) -> str:
    candidates = (name if k == 1 else f"{name}_{k}" for k in count(1))
    return next(candidate for candidate in candidates if candidate not in taken)


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
    function = isl.PwMultiAff.from_multi_aff(access).pullback_pw_multi_aff(point.as_pw_multi_aff())
    subscripts = (code.value(function.get_pw_aff(k)) for k in range(function.dim(_DIM.out)))
    return Element(array.name, tuple(subscripts))


def point_values(point: isl.Set, code: CodeBuilder) -> tuple[IntExpression, ...]:
    """Return the coordinates of a parametric point."""
    function = point.as_pw_multi_aff()
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


def scalar_cost(compute: Compute, targets: Sequence[Element] = (), *, iterations: int = 0) -> Cost:
    """Return what evaluating and storing one value costs, address computation included."""
    simple, multiplications = scalar_operations(compute.expression)
    elements = [v for _, v in compute.values if isinstance(v, Element)]
    addresses = sum(address_operations(e) for e in (*elements, *targets))
    return Cost(
        operations=simple + addresses,
        loads=len(elements),
        stores=len(targets),
        multiplications=multiplications,
        iterations=iterations,
    )


def address_operations(element: Element) -> int:
    """Return the operations that computing an element's address takes: an addition per varying subscript."""
    varying = [s for s in element.subscripts if not isinstance(s, Number)]
    return sum(1 + operation_count(s) for s in varying)
