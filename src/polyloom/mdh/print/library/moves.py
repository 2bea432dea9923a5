"""Loads and stores of vectors in C: neighbours, elements that lie apart, blocks, halves."""

from __future__ import annotations

from polyloom.ir.types import ElementType
from polyloom.mdh.device.costs import NEAR, PIECE
from polyloom.mdh.print.dialect import INTERLEAVED, LOADED_IN_TURN
from polyloom.mdh.print.library.kinds import Kind
from polyloom.mdh.print.library.shuffles import apart, backwards, backwards_stored, every, interleaved, part
from polyloom.mdh.print.library.turned_blocks import TurnedNames, turned_block


def moved_half(name: str, family: str, kind: Kind) -> str:
    """Return the load or store of halves at any address, by way of their bits in a variable."""
    width = kind.width
    if not kind.dialect.own_functions:
        return moved(name, family, kind)
    if family == "load":
        return (
            f"static inline float{width} {name}(__global const half *from)\n{{\n"
            f"    const ushort{width} bits = vload{width}(0, (__global const ushort *)from);\n"
            f"    return vload_half{width}(0, (const half *)&bits);\n}}\n"
        )
    return (
        f"static inline void {name}(float{width} a, __global half *to)\n{{\n"
        f"    ushort{width} bits;\n"
        f"    vstore_half{width}_rte(a, 0, (half *)&bits);\n"
        f"    vstore{width}(bits, 0, (__global ushort *)to);\n}}\n"
    )


def moved(name: str, family: str, kind: Kind) -> str:
    """Return a load or a store of C: neighbouring elements, or some with a distance."""
    dialect, is_half = kind.dialect, kind.element is ElementType.FLOAT16
    element = dialect.half if is_half else str(kind.scalar)
    held = dialect.halves(kind.width) if is_half else str(kind)
    read = f"__builtin_convertvector(v, {kind})" if is_half else "v"
    written = f"__builtin_convertvector(a, {held})" if is_half else "a"
    match family:
        case "load":
            copy = dialect.of_header("string.h", "memcpy")
            return (
                f"static inline {kind} {name}(const {element} *from)\n{{\n"
                f"    {held} v;\n    {copy}(&v, from, sizeof v);\n    return {read};\n}}\n"
            )
        case "store":
            copy = dialect.of_header("string.h", "memcpy")
            return (
                f"static inline void {name}({element} *to, {kind} a)\n{{\n"
                f"    const {held} v = {written};\n    {copy}(to, &v, sizeof v);\n}}\n"
            )
        case "gather":
            items = ", ".join(f"from[{_times(k)}]" for k in range(kind.width))
            copy = kind.dialect.of_header("string.h", "memcpy")
            near = "".join(every(str(kind), copy, kind.width, s) for s in NEAR)
            near += backwards(str(kind), copy, kind.width)
            quick = "" if is_half or kind.width < 4 else near
            return (
                f"static inline {kind} {name}(const {element} *from, int64_t step)\n{{\n"
                f"{quick}    return ({kind}){{{items}}};\n}}\n"
            )
        case _:
            copy = kind.dialect.of_header("string.h", "memcpy")
            quick = "" if is_half or kind.width < 4 else backwards_stored(str(kind), copy, kind.width)
            return (
                f"static inline void {name}({element} *to, int64_t step, {kind} a)\n{{\n{quick}"
                f"    for (int l = 0; l < {kind.width}; l++)\n        to[l * step] = a[l];\n}}\n"
            )


def turned(name: str, family: str, kind: Kind) -> str:
    """Return a function that loads a block of elements along its rows, as a vector for each column."""
    rows = PIECE // kind.element.size
    load = kind.dialect.helper("load", kind.element, rows)
    element, lanes = str(kind.scalar), kind.width
    names = TurnedNames(kind=str(kind), element=element, load=load, lanes=lanes, rows=rows)
    return turned_block(name, names)


def interleaved_store(name: str, family: str, kind: Kind) -> str:
    """Return a function that stores vectors whose elements take turns."""
    (count,) = (n for n, each in INTERLEAVED.items() if each == family)
    copy = kind.dialect.of_header("string.h", "memcpy")
    parameters = "".join(f", {kind} v{k}" for k in range(count))
    one_by_one = "".join(f"        to[{count} * l + {k}] = v{k}[l];\n" for k in range(count))
    return (
        f"static inline void {name}({kind.scalar} *to{parameters})\n{{\n"
        f"{interleaved(str(kind), copy, kind.width, count)}"
        f"    for (int l = 0; l < {kind.width}; l++) {{\n{one_by_one}    }}\n}}\n"
    )


def interleaved_load(name: str, family: str, kind: Kind) -> str:
    """Return a function that loads vectors whose elements take turns."""
    (count,) = (n for n, each in LOADED_IN_TURN.items() if each == family)
    copy = kind.dialect.of_header("string.h", "memcpy")
    one_by_one = "".join(f"        v[{k}][l] = from[{count} * l + {k}];\n" for k in range(count))
    head = f"static inline __attribute__((always_inline)) void {name}"
    return (
        f"{head}(const {kind.scalar} *from, {kind} *v)\n{{\n"
        f"{apart(str(kind), copy, kind.width, count)}"
        f"    for (int l = 0; l < {kind.width}; l++) {{\n{one_by_one}    }}\n}}\n"
    )


def _times(k: int) -> str:
    return ("0", "step")[k] if k < 2 else f"{k} * step"


def half(name: str, family: str, kind: Kind) -> str:
    """Return the function that takes half of a vector, of which ``kind`` is."""
    whole, first = Kind(kind.dialect, kind.element, 2 * kind.width), 0 if family == "low" else kind.width
    copy = kind.dialect.of_header("string.h", "memcpy")
    return (
        f"static inline {kind} {name}({whole} a)\n{{\n{part('a', range(first, first + kind.width))}"
        f"    {kind} v;\n    {copy}(&v, (const {kind.scalar} *)&a + {first}, sizeof v);\n    return v;\n}}\n"
    )
