"""Vectors from memory that several sums use, in a register each while they are needed.

    a = a + splat(x[0]) * load(&w[0]);        kept_0 = load(&w[0]);  in_register(kept_0);
    b = b + splat(x[1]) * load(&w[0]);   ->   a = a + splat(x[0]) * kept_0;
                                              b = b + splat(x[1]) * kept_0;

Compilers load such a vector in every product where instructions take operands from memory: six products of
one vector are six loads of it beside six of the other factors, six cycles of loads for three of products.
Where there are more values than registers it is left to them.

gcc moves what does not change out of loops, and what is loaded twice into a register, without counting those
that sums take: then a sum is on the stack in the innermost loop, which takes twice as long. It is told not to
in files with such sums, and that memory may be another behind each step of them: else what is added to all
totals behind the sums (a bias, the terms of a normalisation) was loaded in front of the loops around them.

Elements that all lanes read at fixed distances from each other have one pointer. Else gcc has a pointer
for each row of such a tile, more than there are registers, and loads them in each step:

    a = a + splat(x[i][k]) * kept_0;            row_0 = &x[i][k];
    b = b + splat(x[i + 1][k]) * kept_0;   ->   a = a + splat(row_0[0]) * kept_0;
                                                b = b + splat(row_0[240]) * kept_0;
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from polyloom.mdh.print.c_scope import Scope
from polyloom.mdh.print.dialect import value_bytes
from polyloom.mdh.print.vectors.c_vectors import VectorLoop
from polyloom.mdh.tree.nodes import Code, Compute, For, Kind, Load, Statement, Store
from polyloom.mdh.tree.rewrite import loads_of
from polyloom.polyhedra.loops.tree import IntExpression, Number, linear_terms, names_in


@dataclass(frozen=True)
class Registers:
    """Of one size: how many a processor has, and the macro that keeps a value in one."""

    count: int
    macro: str


_NARROW, _WIDE = Registers(16, "in_register"), Registers(32, "in_wide_register")

REGISTERS = {64: _WIDE, 32: _NARROW, 16: _NARROW}
"""Those of AVX-512 and AVX, whose instructions take operands from memory, by the bytes of a vector."""

NAMES = tuple(f"kept_{k}" for k in range(_WIDE.count))

ROWS = tuple(f"row_{k}" for k in range(_WIDE.count))
"""Names of pointers."""

IN_REGISTER = """\
#if defined(__AVX512F__)
#define in_register(v) /* there are twice as many */
#define in_wide_register(v) __asm__("" : "+v"(v)) /* nobody knows what it is now, so it is not loaded again */
#elif defined(__AVX__)
#define in_register(v) __asm__("" : "+x"(v))
#define in_wide_register(v)
#else
#define in_register(v)
#define in_wide_register(v)
#endif
#if defined(__AVX__)
#define loaded_later() __asm__ volatile("" : : : "memory") /* what is used behind sums is loaded there */
#ifndef __clang__
#pragma GCC optimize("no-move-loop-invariants", "no-gcse") /* they take registers of sums */
#endif
#else
#define loaded_later()
#endif

"""


AS_IT_IS = "#pragma GCC unroll 1"
"""In front of a loop around such sums: written out by a compiler they have more values than registers."""


@dataclass(frozen=True)
class Kept:
    """Of a statement: lines around it; ``names``: of values in registers, by the loads of them.

    ``texts``: as which its loads were printed.
    """

    before: Sequence[str]
    names: Mapping[str, str]
    texts: dict[tuple[str, Load], str]
    after: Sequence[str] = ()


def kept_vectors(code: Code, scope: Scope) -> dict[int, Kept]:
    """Return what sums one after another find in registers, by the numbers of statements of a block."""
    if not scope.dialect.keeps_vectors:
        return {}
    found = dict[int, Kept]()
    for vector, group in groupby(enumerate(code), lambda pair: _vector(pair[1], scope)):
        run = [(k, s) for k, s in group if isinstance(s, For)]
        if vector is not None and len(run) > 1:
            kept = _kept([s for _, s in run], vector, scope)
            found |= {k: each for (k, _), each in zip(run, kept, strict=False)}
    return found


_Vector = tuple[str, Registers]
"""The type of vectors in C, and where they are kept."""


def _vector(statement: Statement, scope: Scope) -> _Vector | None:
    """Return the vectors of a sum whose total is a register; None: it is no such sum.

    What the block itself declares is not known yet: its sums are done once, no loop is around them.
    """
    if not isinstance(statement, For) or statement.kind is not Kind.VECTOR:
        return None
    match statement.end, statement.body:
        case Number(value=width), (Store(array=array) as store,):
            variable, kind = scope.variables.get(array), store.value.type
            is_known = all(load.array in scope.variables for load in loads_of(store))
            is_total = is_known and variable is not None and variable.held and variable.lanes == width
            registers = REGISTERS.get(value_bytes(kind) * width) if kind.is_float else None
            return (scope.dialect.type(kind, width), registers) if is_total and registers else None
        case _:
            return None


_Span = tuple[int, int]
"""The first and the last sum that use a value."""


def _kept(sums: Sequence[For], vector: _Vector, scope: Scope) -> list[Kept]:
    """Return what each sum finds in registers; nothing where it is left to the compiler."""
    kind, registers = vector
    rows = _rows(sums, scope)
    spans, operands, totals = dict[str, _Span](), set[str](), set[object]()
    texts = dict[tuple[str, Load], str]()
    for k, loop in enumerate(sums):
        (store,), width = loop.body, loop.end
        assert isinstance(store, Store) and isinstance(width, Number)
        totals.add((store.array, store.subscripts[:-1]))
        vectors = VectorLoop(loop.iterator, width.value, scope, texts=texts, rows=rows.texts)
        for text, is_operand in vectors.from_memory(store.value):
            spans[text] = spans.get(text, (k, k))[0], k
            operands |= {text} if is_operand else set()
    kept = {text: span for text, span in spans.items() if text in operands and span[0] < span[1]}
    needed = [span for text, span in spans.items() if text in kept or text not in operands]
    if not kept or len(totals) + _most_at_once(needed) > registers.count:
        return []
    scope.needs.definitions[IN_REGISTER] = None
    names = _names(kept)
    lines = [list[str]() for _ in sums]
    lines[0] += ["{", *rows.before, f"{kind} {', '.join(sorted(set(names.values()), key=NAMES.index))};"]
    for text, (first, _) in kept.items():
        lines[first] += [f"{names[text]} = {text};", f"{registers.macro}({names[text]});"]
    here = [
        {text: names[text] for text, (first, last) in kept.items() if first <= k <= last}
        for k in range(len(sums))
    ]
    found = [Kept(before, known, texts) for before, known in zip(lines, here, strict=True)]
    return [*found[:-1], replace(found[-1], after=["loaded_later();", "}"])]


@dataclass(frozen=True)
class _Rows:
    """Pointers to elements that all lanes read: lines that declare them; ``texts``: of the loads by them."""

    before: list[str]
    texts: dict[Load, str]


def _rows(sums: Sequence[For], scope: Scope) -> _Rows:
    """Return pointers to what several sums read at fixed distances."""
    groups = dict[object, dict[Load, int]]()
    for loop in sums:
        for load in (load for store in loop.body for load in loads_of(store)):
            place = _place(load, loop.iterator, scope)
            if place is not None:
                groups.setdefault((load.array, place[0]), {})[load] = place[1]
    found = _Rows([], {})
    several = (group for group in groups.values() if len(group) > 1)
    for name, group in zip(ROWS, several, strict=False):
        first, start = next(iter(group.items()))
        element = scope.variable(first.array).element(scope.dialect)
        found.before.append(f"const {element} *{name} = &{scope.place(first.array, first.subscripts)};")
        found.texts.update({load: f"{name}[{at - start}]" for load, at in group.items()})
    return found


_Terms = frozenset[tuple[int, IntExpression]]


def _place(load: Load, lane: str, scope: Scope) -> tuple[_Terms, int] | None:
    """Return where an element is that all lanes read: terms and a number; None where that is not known."""
    variable, place = scope.variables[load.array], list[tuple[int, IntExpression]]()
    if variable.held or variable.lanes or variable.flat or variable.is_half or not load.subscripts:
        return None
    distance = 1
    for subscript, extent in zip(reversed(load.subscripts), reversed(variable.shape), strict=True):
        if isinstance(subscript, Compute) or lane in names_in(subscript) or not distance:
            return None
        place.append((distance, subscript))
        distance *= extent.value if isinstance(extent, Number) else 0
    terms, number = linear_terms(place)
    return frozenset(terms), number


def _names(spans: Mapping[str, _Span]) -> dict[str, str]:
    """Return a name for each value, in the order of their first uses; those apart may share one."""
    names, free, busy = dict[str, str](), list(reversed(NAMES)), list[tuple[int, str]]()
    for text, (first, last) in spans.items():
        free += sorted((name for end, name in busy if end < first), reverse=True)
        busy = [(end, name) for end, name in busy if end >= first]
        names[text] = free.pop()
        busy.append((last, names[text]))
    return names


def _most_at_once(spans: Sequence[_Span]) -> int:
    """Return how many values there are at once, where they are most."""
    return max((sum(first <= end <= last for first, last in spans) for _, end in spans), default=0)
