"""The program of one role with its PEs, its queues' colors and its memory by C's rules of alignment."""

from __future__ import annotations

from dataclasses import dataclass

import islpy as isl

from polyloom.wafer.pe_program.tree import RoleCode, array_offsets
from polyloom.wafer.roles.activities import RoleActivities
from polyloom.wafer.roles.adapter_work import AdapterRole
from polyloom.wafer.roles.roles import Role


@dataclass(frozen=True)
class MemoryField:
    """A field of a role's ``struct memory``: ``offset`` and ``bytes`` in bytes."""

    name: str
    offset: int
    bytes: int


@dataclass(frozen=True, eq=False)
class RoleProgram:
    """One role: what its PEs do, their program, and its memory by C's rules of alignment.

    ``work``: of PEs of the compute rectangle, or of adapters, which are in the given one.
    ``origin``: where PE (0, 0) of that rectangle is in the given one.
    """

    work: RoleActivities | AdapterRole
    code: RoleCode
    origin: tuple[int, int]
    memory: tuple[MemoryField, ...]

    @property
    def role(self) -> Role:
        """The class of PEs."""
        return self.work.role

    @property
    def pes(self) -> isl.Set:
        """Return ``{ PE[x, y] }`` of the given rectangle."""
        return self.role.pes.apply(self.to_given())

    def to_given(self) -> isl.Map:
        """Return ``{ PE[x, y] -> PE[x, y] }``: from the role's rectangle to the given one."""
        x, y = self.origin
        return isl.Map(f"{{ PE[x, y] -> PE[x + {x}, y + {y}] }}")

    @property
    def memory_bytes(self) -> int:
        """``sizeof(struct memory)``."""
        size = max((f.offset + f.bytes for f in self.memory), default=2)
        alignment = max((a.type.size for a in self.code.arrays), default=2)
        return -(-size // alignment) * alignment

    def offset(self, name: str) -> int:
        """Return the byte offset of a field; KeyError where the role has none of that name."""
        return {f.name: f.offset for f in self.memory}[name]

    def has(self, name: str) -> bool:
        """Whether the role's memory has a field."""
        return any(f.name == name for f in self.memory)


def memory_fields(code: RoleCode) -> tuple[MemoryField, ...]:
    """Return the fields of a role's ``struct memory``, in their order."""
    fields: list[MemoryField] = []
    end = 0
    for array, offset in zip(code.arrays, array_offsets(code.arrays), strict=True):
        fields.append(MemoryField(array.name, offset, array.bytes))
        end = offset + array.bytes
    end += end % 2
    for counter in code.counters:
        fields.append(MemoryField(counter, end, 2))
        end += 2
    return tuple(fields)
