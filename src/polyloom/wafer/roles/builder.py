"""What the parts of a role's program are made from, and how subscripts and values are written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import islpy as isl

from polyloom.ir.naming import fresh
from polyloom.ir.types import ElementType
from polyloom.polyhedra.loops.generate import CodeBuilder, IntExpression, Number
from polyloom.wafer.analysis import LayerAnalysis
from polyloom.wafer.dataflow.local_arrays import LocalArray
from polyloom.wafer.machine.options import Extension
from polyloom.wafer.machine.temporaries import temporary_bank
from polyloom.wafer.pe_program.tree import (
    ArrayDeclaration,
    Code,
    Configure,
    ConfigureFabric,
    Element,
    Filter,
    OperandDeclaration,
    OperandRef,
    SetBase,
)
from polyloom.wafer.roles.roles import Role
from polyloom.wafer.simd.decision import SimdMode


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
    shared: dict[tuple[str, IntExpression], OperandRef] = field(default_factory=dict)
    """Operands that several places use, by their name and number of elements."""
    filters: list[Filter] = field(default_factory=list)
    begun: set[str] = field(default_factory=set)
    """Tensors whose elements begin with their first term: nothing needs to be set before."""

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
        unique = fresh(name, (declared.name for declared in self.operands), first=2)
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

    def shared_fabric_operand(
        self, name: str, queue: str, elements: IntExpression, *, output: bool
    ) -> OperandRef:
        """Return an operand on the fabric, one for all that ask for it by this name and number."""
        key = (name, elements)
        if key not in self.shared:
            self.shared[key] = self.fabric_operand(name, queue, elements, output=output)
        return self.shared[key]

    def queue_memory(self, queue: str, element: ElementType, elements: int) -> str:
        """Declare the array that holds elements of a queue between instructions: at least so many."""
        name = f"{queue}_{element.value}"
        held = self.temporaries.get(name)
        elements = max(elements, 0 if held is None else held.extents[0])
        self.temporaries[name] = ArrayDeclaration(
            name=name, type=element, extents=(elements,), comment="as they came"
        )
        return name

    def shared_memory_operand(self, name: str, array: str, elements: IntExpression) -> OperandRef:
        """Return an operand on the beginning of an array, one for all that ask for it."""
        key = (name, elements)
        if key not in self.shared:
            self.shared[key] = self.memory_operand(name, (elements,), (1,))
            self.setup.append((SetBase(self.shared[key], Element(array, (Number(0),))),))
        return self.shared[key]

    def variable(self, name: str) -> str:
        """Return a name for an integer of a block that is not taken."""
        self.variables.append(fresh(name, self.variables, first=2))
        return self.variables[-1]

    def temporary(self, position: int, element: ElementType, elements: int) -> str:
        """Declare a temporary of at least so many elements; tasks share those of one position and type."""
        name = f"temporary_{element.value}_{-position}"
        held = self.temporaries.get(name)
        elements = max(elements, 0 if held is None else held.extents[0])
        padded = self.analysis.options.has(Extension.BANK_PADDING)
        bank = temporary_bank(position, element) if padded else None
        self.temporaries[name] = ArrayDeclaration(
            name=name, type=element, extents=(elements,), comment="between instructions", bank=bank
        )
        return name

    def counter(self, name: str) -> str:
        """Declare a 16-bit counter in local memory."""
        if name not in self.counters:
            self.counters.append(name)
        return name
