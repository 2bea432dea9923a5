"""The SIMD instructions of the machine: one table.

An instruction is specified by a body that says what it does to one element; the emitter, the simulator
and the documentation all read it. Widths (elements a cycle) belong to the machine and stand in its data
file under the instruction's name.
Source: wafer-target.md, 1.1 (the list of SIMD-capable builtins); names as in dtg_codegen's slides.
Unlike a fused multiply-add, ``fmach`` rounds the product before it adds: the bits are the same as those
of the loop ``y += data * W``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from polyloom.ir.expressions import Binary, BinaryOp, Convert, Expression, Read, Unary, UnaryOp
from polyloom.ir.scalar_functions.function import BinaryFunction, UnaryFunction
from polyloom.ir.types import ElementType
from polyloom.wafer.machine.scalar_c import C_TYPES, scalar_code

_NAMES = ("a", "b", "c")


@dataclass(frozen=True)
class Instruction:
    """``destination = body(a, b, c)`` for every element of up to four dimensions.

    ``sources``: the operands' types, in the order in which the body's ``Read``s number them;
    ``scalar_only``: the positions of operands that cannot come from memory.
    """

    name: str
    destination: ElementType
    sources: tuple[ElementType, ...]
    body: Expression
    scalar_only: tuple[int, ...] = ()

    @property
    def body_text(self) -> str:
        """The body in C, in terms of a, b, c."""
        return scalar_code(self.body, dict(enumerate(_NAMES)))


@cache
def instructions() -> tuple[Instruction, ...]:
    """Return the table."""
    f16, f32, i16, i32 = (
        ElementType.FLOAT16,
        ElementType.FLOAT32,
        ElementType.INT16,
        ElementType.INT32,
    )
    table = [
        _multiply_add("fmach", f16, f16),
        _multiply_add("fmachs", f32, f16),
        _multiply_add("fmacs", f32, f32),
    ]
    for suffix, element in (("h", f16), ("s", f32)):
        table += [
            _binary(f"fadd{suffix}", BinaryOp.ADD, element),
            _binary(f"fsub{suffix}", BinaryOp.SUBTRACT, element),
            _binary(f"fmul{suffix}", BinaryOp.MULTIPLY, element),
            _binary(f"fmax{suffix}", BinaryOp.MAXIMUM, element),
            _unary(f"fneg{suffix}", UnaryOp.NEGATE, element),
            _unary(f"fabs{suffix}", UnaryOp.ABS, element),
            Instruction(f"fmov{suffix}", element, (element,), Read(0, element)),
        ]
    table += [
        _binary("add16", BinaryOp.ADD, i16),
        _binary("sub16", BinaryOp.SUBTRACT, i16),
        Instruction("mov16", i16, (i16,), Read(0, i16)),
        Instruction("mov32", i32, (i32,), Read(0, i32)),
        Instruction("fh2s", f32, (f16,), Convert(f32, Read(0, f16))),
        Instruction("fs2h", f16, (f32,), Convert(f16, Read(0, f32))),
    ]
    return tuple(table)


def instruction(name: str) -> Instruction:
    """Return the instruction called ``name``; KeyError where there is none."""
    return {entry.name: entry for entry in instructions()}[name]


def move_instruction(element: ElementType) -> Instruction:
    """Return the instruction that copies elements of a type."""
    names = {
        ElementType.FLOAT16: "fmovh",
        ElementType.FLOAT32: "fmovs",
        ElementType.INT16: "mov16",
        ElementType.INT32: "mov32",
    }
    return instruction(names[element])


def combining_instruction(op: BinaryFunction, element: ElementType) -> Instruction | None:
    """Return the instruction that combines two elements with a reduction's operator, if there is one."""
    wanted = Binary(op, Read(0, element), Read(1, element))
    return next((entry for entry in instructions() if entry.body == wanted), None)


def table_text() -> str:
    """Return the table as the C macros that the simulator's engine is generated from."""
    return "".join(_macro(entry) + "\n" for entry in instructions())


def table_markdown() -> str:
    """Return the table for the documentation: ``docs/instructions.md`` is this text."""
    rows = [f"| `{e.name}` | {_operands_text(e)} | `{e.body_text}` |" for e in instructions()]
    return "\n".join([_HEADING, "| instruction | operands | destination = |", "|---|---|---|", *rows]) + "\n"


_HEADING = """\
# The SIMD instructions

Each works element by element on up to four dimensions, in lexicographic order. Sources are numbered a, b, c;
each may be an operand in memory, one of them an operand of the fabric, or a scalar; where it says `scalar` it
must be one. Every operation rounds to its type, so `fmach` rounds the product before it adds. Widths
(elements a cycle) stand in the machine files. This page is made from the table in
`wafer/machine/instructions.py`.

The forms are those of the public language of the machine (Cerebras SDK 2.10, DSD builtins): `@fmach`,
`@fmachs` and `@fmacs` have one form (destination, source, source, scalar). There is no multiply-add of three
operands in memory, no minimum, division, comparison or selection, and no product of integers. What needs them
is several instructions, or a loop (`polyloom docs simd`).
"""


def _operands_text(entry: Instruction) -> str:
    sources = []
    for k, element in enumerate(entry.sources):
        scalar = " scalar" if k in entry.scalar_only else ""
        sources.append(f"{_NAMES[k]}: {element.value}{scalar}")
    return f"{', '.join(sources)} -> {entry.destination.value}"


def _macro(entry: Instruction) -> str:
    types = ", ".join(C_TYPES[t] for t in (entry.destination, *entry.sources))
    return f"SIMD_INSTRUCTION{len(entry.sources)}({entry.name}, {types}, {entry.body_text})"


def _multiply_add(name: str, accumulator: ElementType, factor: ElementType) -> Instruction:
    left: Expression = Read(1, factor)
    right: Expression = Read(2, factor)
    if factor is not accumulator:
        left, right = Convert(accumulator, left), Convert(accumulator, right)
    product = Binary(BinaryOp.MULTIPLY, left, right)
    body = Binary(BinaryOp.ADD, Read(0, accumulator), product)
    return Instruction(name, accumulator, (accumulator, factor, factor), body, scalar_only=(2,))


def _binary(name: str, op: BinaryFunction, element: ElementType) -> Instruction:
    return Instruction(name, element, (element, element), Binary(op, Read(0, element), Read(1, element)))


def _unary(name: str, op: UnaryFunction, element: ElementType) -> Instruction:
    return Instruction(name, element, (element,), Unary(op, Read(0, element)))
