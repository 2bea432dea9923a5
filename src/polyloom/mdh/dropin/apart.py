"""Whether memory is apart where functions do not ask it: what is copied side by side, sizes in memory.

Functions ask it of the arrays that they get, and of copies it is no question. In C, for ``y[k].r`` and
``x[k].r`` with k below n: ``(const char *)(y + (n)) <= (const char *)(x) || ...``. A size ``*n`` is read
once, in front of the loops, so they may not store integers there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product

from polyloom.ir.host import Buffer, Role
from polyloom.ir.types import C_TYPES
from polyloom.mdh.dropin.variables import Integers, Variable


@dataclass
class _Memory:
    """What buffers with one beginning in C have: where it begins, and before what each ends."""

    begin: str
    copied: bool
    written: bool = False
    integers: bool = False
    ends: dict[str, None] = field(default_factory=dict)


def conditions_apart(
    buffers: Sequence[Buffer],
    variables: Mapping[str, Variable],
    integers: Integers,
    reached: Sequence[str] = (),
) -> tuple[str, ...]:
    """Return what holds in C where nothing that is written and copied, or either, overlaps another array.

    And where sizes in memory are no elements of what is written. ``reached``: names of
    variables in C to which pointers may lead.
    """
    found = dict[str, _Memory]()
    for buffer in buffers:
        variable = variables[buffer.name]
        given = not buffer.shape and buffer.role is Role.INPUT  # its value, as it is before the loops
        if variable.register or (given and variable.element(()) not in reached):
            continue
        base = variable.base
        begin = f"(const char *)&{base}" if not buffer.shape else f"(const char *)({base})"
        memory = found.setdefault(base, _Memory(begin, given or not variable.is_dense))
        memory.written |= buffer.role is not Role.INPUT
        memory.integers |= not buffer.type.is_float
        memory.ends[_end(buffer, variable, begin, integers)] = None
    sizes = [text for text in integers.names.values() if _IN_MEMORY.fullmatch(text) or text in reached]
    return (*_pairs([*found.values()]), *_beside(sizes, found))


_IN_MEMORY = re.compile(r"\w+[.\[][\w.\[\]]*")
"""What C calls an integer that is no variable of its own: ``n[0]``, ``p[0].n``."""


def _beside(sizes: Sequence[str], memories: Mapping[str, _Memory]) -> Iterator[str]:
    """Yield that sizes are not where integers are stored; members of one structure are apart."""
    for base, memory in memories.items():
        for size in sizes if memory.written and memory.integers else ():
            if not size.startswith((f"{base}.", f"{base}[")):
                for end in memory.ends:
                    yield f"({end} <= (const char *)&{size} || (const char *)(&{size} + 1) <= {memory.begin})"


def _pairs(memories: Sequence[_Memory]) -> Iterator[str]:
    for a, b in combinations(memories, 2):
        named = all(memory.begin.startswith("(const char *)&") for memory in (a, b))
        if (a.copied or b.copied) and (a.written or b.written) and not named:
            for end_of_a, end_of_b in product(a.ends, b.ends):
                yield f"({end_of_a} <= {b.begin} || {end_of_b} <= {a.begin})"


def _end(buffer: Buffer, variable: Variable, begin: str, integers: Integers) -> str:
    extents = [f"({integers.text(extent)})" for extent in buffer.shape]
    if variable.is_dense:
        return " * ".join([f"{begin} + (long long)sizeof({C_TYPES[buffer.type]})", *extents])
    rows = extents if variable.is_linear(len(extents)) else extents[:1]
    return f"(const char *)({variable.base} + {' * '.join(rows)})"
