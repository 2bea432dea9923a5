"""The memory of a PE when its program starts: where objects lie, their bytes, what is initialised."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

from polyloom.csl import types, values
from polyloom.csl.lowering.emitted.c_types import alignment, field_offset, size_of

FIRST_ADDRESS = 16
"""The lowest bytes hold nothing, so that a pointer of 0 is an error."""
BANK_ALIGNMENT = 4
"""Objects begin at a 32-bit word, as operands should (documentation of the SDK, appendix)."""


@dataclass(frozen=True)
class Object:
    """Something in memory: a variable, a constant, a local variable with an address.

    ``value`` is None for local variables. ``name``: its symbol in C; ``source_name``: its name in CSL.
    """

    name: str
    source_name: str
    type: types.Type
    value: values.Value | None
    alignment: int = BANK_ALIGNMENT


@dataclass(frozen=True)
class Image:
    """``initialised``: a byte for each 16-bit word of ``data``, 1 where it has a value."""

    addresses: dict[str, int]
    data: bytes
    initialised: bytes


AddressOf = Callable[[values.Address | values.NumberAddress], int]


def place(objects: list[Object]) -> dict[str, int]:
    """Return the byte address of each object, one after another in the given order."""
    addresses, end = {}, FIRST_ADDRESS
    for item in objects:
        end += -end % max(item.alignment, BANK_ALIGNMENT, alignment(item.type))
        addresses[item.name] = end
        end += max(size_of(item.type), 1)
    return addresses


def build(
    objects: list[Object], addresses: dict[str, int], address_of: AddressOf, *, poison: bool = False
) -> Image:
    """Return the bytes of all objects; ``address_of`` gives the numbers of pointers.

    Variables of a module without a first value hold zeros, as they do on the machine when a program is loaded
    (public examples add to such variables), or nothing, if ``poison``.
    """
    ends = [addresses[item.name] + size_of(item.type) for item in objects]
    size = max(ends, default=FIRST_ADDRESS)
    size += size % 2
    data, known = bytearray(size), bytearray(size // 2)
    for item in objects:
        if item.value is not None:
            _Writer(data, known, address_of, poison).write(addresses[item.name], item.type, item.value)
    return Image(addresses, bytes(data), bytes(known))


@dataclass(frozen=True)
class _Writer:
    data: bytearray
    known: bytearray
    address_of: AddressOf
    poison: bool

    def write(self, address: int, kind: types.Type, value: values.Value) -> None:
        """Write a value and mark its words."""
        match value:
            case values.Uninitialised():
                if not self.poison:
                    self._bytes(address, bytes(size_of(kind)))
            case values.ArrayValue(elements=elements, is_fill=True):
                self._fill(address, value, elements[0])
            case values.ArrayValue(type=array):
                size = size_of(array.element)
                for index, element in enumerate(value):
                    self.write(address + index * size, array.element, element)
            case values.StructValue(type=kind_of, fields=fields):
                for field, inner in zip(kind_of.fields, fields, strict=True):
                    self.write(address + field_offset(kind_of, field.name), field.type, inner)
            case _:
                self._bytes(address, encoded(kind, self.number(value)))

    def number(self, value: values.Value) -> float:
        """Return what a register holds for a value that is no array and no struct."""
        match value:
            case values.Scalar(value=number) | values.EnumValue(value=number):
                return number
            case values.Handle(id=number):
                return number
            case values.Address() | values.NumberAddress():
                return self.address_of(value)
        raise TypeError(f"{type(value).__name__} in memory")

    def _fill(self, address: int, array: values.ArrayValue, element: values.Value) -> None:
        if isinstance(element, values.Scalar):
            self._bytes(address, encoded(array.type.element, element.value) * array.type.count)
            return
        size = size_of(array.type.element)
        for index in range(array.type.count):
            self.write(address + index * size, array.type.element, element)

    def _bytes(self, address: int, content: bytes) -> None:
        self.data[address : address + len(content)] = content
        first, last = address // 2, (address + len(content) + 1) // 2
        self.known[first:last] = b"\1" * (last - first)


def encoded(kind: types.Type, number: float) -> bytes:
    """Return a number as it lies in memory, low byte first."""
    if isinstance(kind, types.Float):
        return struct.pack("<e" if kind.bits == 16 else "<f", number)
    size = size_of(kind)
    return (int(number) & ((1 << (8 * size)) - 1)).to_bytes(size, "little")
