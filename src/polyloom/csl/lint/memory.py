"""Rules on memory: descriptors inside their arrays, types that they take, room, vectors that are fast."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from polyloom.csl import types, values
from polyloom.csl.comptime import DSD_OPERATIONS, type_at
from polyloom.csl.comptime.descriptors import element_offset
from polyloom.csl.lint.bodies import operations, used_variables, value_of
from polyloom.csl.lint.operations import operations_of
from polyloom.csl.lint.subject import Subject, place_of, uses_memcpy
from polyloom.csl.types import Type
from polyloom.diagnostics import Diagnostic, error, remark, warning

ROOM = 48 * 1024
"""Bytes of a PE's memory: code, globals and stack."""

MANY = 64


def visited(dsd: values.MemoryDsd) -> tuple[int, int, types.Array] | None:
    """Return the first and last element that a descriptor visits, and its array, where they are known."""
    if not isinstance(dsd.base, values.Address) or 0 in dsd.extents:
        return None
    path = dsd.base.path
    before = element_offset(dsd.base)
    whole = type_at(dsd.base.variable.type, path[:-1] if path and isinstance(path[-1], tuple) else path)
    if not isinstance(whole, types.Array):
        return None
    reach = [(e - 1) * s for e, s in zip(dsd.extents, dsd.strides, strict=True)]
    start = before + dsd.offset
    return start + sum(r for r in reach if r < 0), start + sum(r for r in reach if r > 0), whole


def ranges(subject: Subject) -> Iterator[Diagnostic]:
    """R39: nothing checks at run time that a descriptor stays in its array."""
    for program in subject.programs:
        for node, scope in operations(program):
            if node.name not in DSD_OPERATIONS | {"load_to_dsr", "map"}:
                continue
            for operand in node.arguments:
                dsd = value_of(operand, scope)
                found = visited(dsd) if isinstance(dsd, values.MemoryDsd) else None
                if found is None or not isinstance(dsd, values.MemoryDsd):
                    continue
                first, last, whole = found
                if isinstance(dsd.base, values.Address) and (first < 0 or last >= whole.count):
                    name = dsd.base.variable.name
                    yield warning(
                        "csl-dsd-range",
                        f"this descriptor visits elements {first} to {last} of `{name}`",
                        operand.span,
                        notes=[f"`{name}` is a `{whole}`: its elements are 0 to {whole.count - 1}"],
                        helps=["correct the extent, the stride or the offset"],
                    )


def elements(subject: Subject) -> Iterator[Diagnostic]:
    """R45, R46: descriptors are over 16 and 32 bits."""
    for _, variable in subject.variables():
        dsd = variable.value
        if isinstance(dsd, values.MemoryDsd):
            bits = dsd.element.bits if isinstance(dsd.element, types.Integer | types.Float) else None
            if bits is not None and bits not in (16, 32):
                yield error(
                    "csl-dsd-element",
                    f"`{variable.name}` is over elements of type `{dsd.element}`",
                    place_of(variable),
                    helps=["descriptors take integers and floats of 16 and 32 bits"],
                )


def fifos(subject: Subject) -> Iterator[Diagnostic]:
    """R43: a FIFO is a global `const` over a `var`."""
    for _, variable in subject.variables():
        fifo = variable.value
        if not isinstance(fifo, values.Fifo):
            continue
        if not variable.is_const:
            yield error(
                "csl-fifo-var",
                f"FIFO `{variable.name}` is a `var`",
                place_of(variable),
                helps=["make it `const`"],
            )
        if fifo.buffer.variable.is_const:
            yield error(
                "csl-fifo-buffer",
                f"the buffer of FIFO `{variable.name}` is a `const`",
                place_of(variable),
                helps=["make the buffer a `var`"],
            )


def memcpy_registers(subject: Subject) -> Iterator[Diagnostic]:
    """R42: memcpy keeps two registers for itself."""
    kept = {(types.DSR_DEST, 0), (types.DSR_SRC1, 0)}
    for program, variable in subject.variables():
        dsr = variable.value
        if isinstance(dsr, values.Handle) and (dsr.type, dsr.id) in kept and uses_memcpy(program):
            yield warning(
                "csl-memcpy-dsr",
                f"register {dsr.id} of `{dsr.type}` is memcpy's",
                place_of(variable),
                helps=["use registers from 1 on"],
            )


def room(subject: Subject) -> Iterator[Diagnostic]:
    """R58: globals fit into a PE's memory."""
    for program in subject.programs:
        sizes = [(size_of(v.type), v) for v in used_variables(program) if not v.is_const]
        total = sum(size for size, _ in sizes)
        if total > ROOM:
            size, largest = max(sizes, key=lambda s: (s[0], s[1].name))
            yield error(
                "csl-memory",
                f"globals take {total:,} bytes, a PE has {ROOM:,}",
                place_of(largest),
                notes=[f"the largest is `{largest.name}` with {size:,}; code and stack come on top"],
                helps=["spread the arrays over more PEs"],
            )


def size_of(type_: Type) -> int:
    """Return the bytes of a global of a type; 0 for what takes no memory."""
    if isinstance(type_, types.Array):
        return type_.count * size_of(type_.element)
    if isinstance(type_, types.Struct):
        return sum(size_of(f.type) for f in type_.fields)
    if isinstance(type_, types.Integer | types.Float):
        return -(-type_.bits // 16) * 2
    return 2 if isinstance(type_, types.Pointer | types.Enum) or type_ == types.BOOL else 0


def many_programs(subject: Subject) -> Iterator[Diagnostic]:
    """R57: each program is compiled by itself."""
    programs = subject.layout.programs
    if len(programs) > MANY:
        names = sorted(
            {
                name
                for other in programs
                for (name, value), (_, first) in zip(other.parameters, programs[0].parameters, strict=False)
                if value != first
            }
        )
        yield remark(
            "csl-many-programs",
            f"{len(programs)} programs for {len(subject.layout.tiles)} PEs",
            programs[0].span,
            notes=["their parameters differ in " + ", ".join(f"`{n}`" for n in names)] if names else [],
            helps=["read what differs at run time, coordinates from `<layout>`: equal PEs share a program"],
        )


WIDTHS = {("wse2", 16): 4, ("wse2", 32): 2, ("wse3", 16): 8, ("wse3", 32): 4}
FULL_SPEED = frozenset({2, 3, 5, 6})


def vectors(subject: Subject) -> Iterator[Diagnostic]:
    """R53, R54: lengths and strides at which the machine does several elements a cycle."""
    for _, variable in subject.variables():
        dsd = variable.value
        if not isinstance(dsd, values.MemoryDsd) or not isinstance(dsd.element, types.Integer | types.Float):
            continue
        width = WIDTHS.get((subject.arch, dsd.element.bits))
        stride, length = dsd.strides[-1], prod(dsd.extents)
        if width is None or length < 2 * width:
            continue
        if abs(stride) > 1 and stride % 8 == 0:
            yield remark(
                "csl-simd-stride",
                f"`{variable.name}` has stride {stride}: one element a cycle",
                place_of(variable),
                notes=["strides that are multiples of 8 hit one memory bank"],
                helps=["pad the array by one element a row, or store it transposed"],
            )
        if stride in (0, 1) and dsd.extents[-1] % width:
            yield remark(
                "csl-simd-extent",
                f"`{variable.name}` has {dsd.extents[-1]} elements, no multiple of {width}",
                place_of(variable),
                notes=[f"up to {width} elements are done in a cycle; the last ones take as long as {width}"],
                helps=[f"pad the array to a multiple of {width}"],
            )


BANKS = 4
"""A source that moves on reads a word of 16 bits of each of so many banks in turn."""


def banks(subject: Subject) -> Iterator[Diagnostic]:
    """R55: two sources of one array that begin in one bank are read one after the other."""
    for program in subject.programs:
        for node, operands, _, scope in operations_of(operations(program)):
            found = [value_of(operand, scope) for operand in operands[1:]]
            sources = [v for v in found if isinstance(v, values.MemoryDsd) and any(v.strides)]
            if len(sources) == 2 and _begin_in_one_bank(*sources):
                yield remark(
                    "csl-bank",
                    f"both sources of `@{node.name}` begin in one memory bank",
                    node.span,
                    notes=[f"banks are words of 16 bits, {BANKS} in turn; two reads of one take two cycles"],
                    helps=["shift one of them by an odd number of elements, or put it into another array"],
                )


def _begin_in_one_bank(one: values.MemoryDsd, other: values.MemoryDsd) -> bool:
    starts = [_first_word(dsd) for dsd in (one, other)]
    if not all(isinstance(dsd.base, values.Address) for dsd in (one, other)) or None in starts:
        return False
    same = one.base.variable is other.base.variable  # type: ignore[union-attr]
    return same and (starts[0] - starts[1]) % BANKS == 0  # type: ignore[operator]


def _first_word(dsd: values.MemoryDsd) -> int | None:
    """Return which 16-bit word of its array a descriptor begins at, where that is known."""
    if not isinstance(dsd.base, values.Address) or not isinstance(dsd.element, types.Integer | types.Float):
        return None
    if visited(dsd) is None or any(not isinstance(part, tuple) for part in dsd.base.path):
        return None
    return (element_offset(dsd.base) + dsd.offset) * (dsd.element.bits // 16)
