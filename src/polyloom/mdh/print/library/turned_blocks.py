"""Blocks of elements, loaded along their rows in memory and turned in registers: a vector for each column.

    a0 =  0  1  2  3    b0 = low(a0, a2)  =  0  8  1  9    c0 = low(b0, b2)  = 0  4  8 12
    a1 =  4  5  6  7    b1 = high(a0, a2) =  2 10  3 11    c1 = high(b0, b2) = 1  5  9 13
    a2 =  8  9 10 11    b2 = low(a1, a3)  =  4 12  5 13    c2 = low(b1, b3)  = 2  6 10 14
    a3 = 12 13 14 15    b3 = high(a1, a3) =  6 14  7 15    c3 = high(b1, b3) = 3  7 11 15

Each of log2(rows) steps interleaves vectors half of the rows apart. Vectors of several pieces of 16 bytes are
filled piece by piece, from rows that lie as far apart as a piece has elements: x86 interleaves pieces by one
instruction, and takes a piece from memory as cheaply as a vector.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class TurnedNames:
    """Names in C: ``kind`` of a vector, ``element`` as it lies in memory, ``load`` of a piece.

    ``lanes``: of a vector, ``rows``: of a piece.
    """

    kind: str
    element: str
    load: str
    lanes: int
    rows: int


def turned_block(name: str, names: TurnedNames) -> str:
    """Return a function that fills ``to[c]`` with ``from[r * step + c]``, as many columns as rows.

    Compilers without a shuffle of vectors get loops over elements.
    """
    kind, rows = names.kind, names.rows
    given = f"(const {names.element} *from, int64_t step, {kind} *to)"
    head = "static inline __attribute__((always_inline)) void"
    columns = range(0, names.lanes, rows)
    calls = "".join(f"    {name}_part(from + {at}, step, to + {at});\n" for at in columns)
    plain = (
        f"    for (int l = 0; l < {names.lanes}; l++)\n"
        f"        for (int c = 0; c < {names.lanes}; c++)\n"
        f"            to[c][l] = from[l * step + c];\n"
    )
    return (
        "#if defined __has_builtin\n#if __has_builtin(__builtin_shufflevector)\n"
        "#define HAS_SHUFFLED_VECTORS\n#endif\n#endif\n"
        f"#ifdef HAS_SHUFFLED_VECTORS\n{_interleaved(name, names)}{head} {name}_part{given}\n{{\n"
        + "".join(f"    {line}\n" for line in (*_loaded(names), *_steps(name, names)))
        + f"}}\n\n{head} {name}{given}\n{{\n{calls}}}\n"
        f"#else\n{head} {name}{given}\n{{\n{plain}}}\n#endif\n"
    )


def _interleaved(name: str, names: TurnedNames) -> str:
    """Return functions that interleave the first, or the second, halves of the pieces of two vectors."""
    half, found = names.rows // 2, ""
    for word, begin in ("low", 0), ("high", half):
        places = [p + begin + k + v for p in _pieces(names) for k in range(half) for v in (0, names.lanes)]
        found += (
            f"static inline {names.kind} {name}_{word}({names.kind} a, {names.kind} b)\n"
            f"{{\n    return {_shuffled(['a', 'b'], places)};\n}}\n\n"
        )
    return found


def _pieces(names: TurnedNames) -> range:
    return range(0, names.lanes, names.rows)


def _loaded(names: TurnedNames) -> list[str]:
    """Return lines that fill vectors with rows, piece by piece."""
    found = []
    for row in range(names.rows):
        parts = [f"{names.load}(from + {row + p} * step)" for p in _pieces(names)]
        size = names.rows
        while len(parts) > 1:
            size *= 2
            pairs = zip(parts[::2], parts[1::2], strict=True)
            parts = [_shuffled(pair, range(size)) for pair in pairs]
        found.append(f"const {names.kind} a{row} = {parts[0]};")
    return found


def _steps(name: str, names: TurnedNames) -> list[str]:
    """Return lines that interleave vectors until each is a column."""
    found, letter, half = [], "a", names.rows // 2
    for _ in range(names.rows.bit_length() - 1):
        after = chr(ord(letter) + 1)
        for k in range(half):
            pair = f"({letter}{k}, {letter}{k + half})"
            found.append(f"const {names.kind} {after}{2 * k} = {name}_low{pair};")
            found.append(f"const {names.kind} {after}{2 * k + 1} = {name}_high{pair};")
        letter = after
    return [*found, *(f"to[{k}] = {letter}{k};" for k in range(names.rows))]


def _shuffled(vectors: Sequence[str], chosen: Iterable[int]) -> str:
    return f"__builtin_shufflevector({', '.join([*vectors, *map(str, chosen)])})"
