"""How the function of a host program is called: whole numbers first, then pointers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from polyloom.ir.host import Buffer, HostProgram, Role
from polyloom.ir.types import ElementType
from polyloom.mdh.print.c_source import wrapped
from polyloom.mdh.print.names import CPP_WORDS, c_names
from polyloom.mdh.print.values import integer_c

C_TYPES = {
    ElementType.FLOAT32: "float",
    ElementType.FLOAT64: "double",
    ElementType.INT8: "int8_t",
    ElementType.INT16: "int16_t",
    ElementType.INT32: "int32_t",
    ElementType.INT64: "int64_t",
    ElementType.UINT8: "uint8_t",
    ElementType.UINT16: "uint16_t",
    ElementType.UINT32: "uint32_t",
    ElementType.UINT64: "uint64_t",
}
"""What C calls the elements; a float16 has no name that every compiler knows."""


_OF_DEFINITIONS = """
floor_div lesser greater arrays kernel polyloom touched pace run room bytes_of rows_of are_apart are_few_apart
overlap is_there free room_or frame
"""
TAKEN = (*_OF_DEFINITIONS.split(), *CPP_WORDS)
"""What no argument is called: functions and variables of the definitions, and words of C++."""


@dataclass(frozen=True)
class Signature:
    """How the function of a host program is called: integers first, then pointers.

    ``parameters`` and ``buffers`` are names of the host program, in the order of the arguments.
    """

    function: str
    parameters: tuple[str, ...]
    buffers: tuple[Buffer, ...]

    @property
    def declaration(self) -> str:
        """The function's type in C, without names, which a macro of the caller could change."""
        pointers = [f"{qualifier(b)}void *" for b in self.buffers]
        return f"int {self.function}({', '.join(['long long'] * len(self.parameters) + pointers) or 'void'})"

    @property
    def prototype(self) -> str:
        """The first line of the definition; it needs no header."""
        return self.typed("int", self.function)

    def typed(self, result: str, function: str) -> str:
        """Return the first line of a function with the same arguments."""
        names = self.names
        integers = [f"long long {names[name]}" for name in self.parameters]
        pointers = [f"{qualifier(b)}void *{names[b.name]}" for b in self.buffers]
        return f"{result} {function}({', '.join([*integers, *pointers]) or 'void'})"

    @property
    def names(self) -> dict[str, str]:
        """What the definition calls its arguments."""
        return c_names((*self.parameters, *(b.name for b in self.buffers)), TAKEN)

    @property
    def about(self) -> str:
        """The arguments as people write them: ``long long n, const float A[n][4]``."""
        names = self.names
        words = [f"long long {names[name]}" for name in self.parameters]
        for buffer in self.buffers:
            extents = "".join(f"[{integer_c(n, names)}]" for n in buffer.shape)
            kind = C_TYPES.get(buffer.type, buffer.type.value)
            words.append(f"{qualifier(buffer)}{kind} {'' if extents else '*'}{names[buffer.name]}{extents}")
        return ", ".join(words)


def signature(program: HostProgram, function: str) -> Signature:
    """Return how the host program is called as a C function: all but its local buffers are arguments."""
    buffers = tuple(b for b in program.buffers if b.role is not Role.LOCAL)
    return Signature(function, tuple(p.name for p in program.parameters), buffers)


def qualifier(buffer: Buffer) -> str:
    """Return what stands in front of a pointer's type."""
    return "const " if buffer.role is Role.INPUT else ""


def header(name: str, calls: Sequence[Signature]) -> str:
    """Return a header file with the functions, for C and C++."""
    guard = name.upper().replace(".", "_")
    functions = wrapped("\n".join(f"/* {call.about} */\n{call.prototype};\n" for call in calls))
    return _HEADER.format(guard=guard, functions=functions)


_HEADER = """\
/* Integers first, then pointers to the first elements of arrays, row by row. A function that was not made for
 * such arguments (arrays overlap, sizes are others) does nothing and returns 0; else it returns 1.
 */
#ifndef {guard}
#define {guard}

#ifdef __cplusplus
extern "C" {{
#endif

{functions}
#ifdef __cplusplus
}}
#endif

#endif
"""
