"""How much an iteration of a parallel loop has to do, as a function in C: by it threads get even shares.

    parallel by work for i from 0 to n:           static int64_t f_1_work(int64_t point, int64_t n)
      for j from 0 to i:                    ->    {
        C[i, j] = C[i, j] * beta                      const int64_t i = point;
                                                      int64_t work = 0;
                                                      for (int64_t way = 1; way < 8; way += 2) {
                                                          work += greater_int64(0, i);
                                                      }
                                                      return work;
                                                  }

Values that are computed are counted, with the iterators of inner loops at some places: ``tree/trips.Way``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from polyloom.mdh.print.c_scope import Scope
from polyloom.mdh.print.c_statements import indented
from polyloom.mdh.tree.nodes import Code, Compute, For, If, Kind, Let, LetInteger, Statement, Store
from polyloom.mdh.tree.trips import Way, trip_count
from polyloom.polyhedra.loops.tree import (
    IntExpression,
    Number,
    names_in,
    product_of,
)

Lines = tuple[list[str], frozenset[str]]
"""Lines, and the integers that they speak of; ``_WAY`` where it matters which way through loops is taken."""

_WAY = ""


PIECES, ROWS = 64, 256
"""Into how many pieces a parallel loop falls at most, and several nested ones; work is counted of each."""


def point_lines(
    loops: Sequence[For],
    scope: Scope,
    used: Collection[str] | None = None,
    *,
    inner: IntExpression | None = None,
) -> Iterator[str]:
    """Yield the iterators of nested loops at ``point``; those that are ``used``, or all.

    ``inner``: points of further loops inside.
    """
    counts, within = [trip_count(each) for each in loops], [] if inner is None else [inner]
    for k, loop in enumerate(loops):
        if used is not None and loop.iterator not in used:
            continue
        inner = product_of([*counts[k + 1 :], *within])
        text = "point" if inner == Number(1) else f"point / {scope.operand(inner)}"
        if k and counts[k] != Number(1):
            text = f"{text} % {scope.operand(counts[k])}"
        elif k:
            text = "0"
        text = text if loop.step == Number(1) else f"{text} * {scope.operand(loop.step)}"
        text = text if loop.start == Number(0) else f"{scope.operand(loop.start)} + {text}"
        yield f"const int64_t {scope.names[loop.iterator]} = {text};"


def work_lines(loops: Sequence[For], scope: Scope) -> list[str]:
    """Return the body of a function that tells how much nested parallel loops have to do at a ``point``."""
    lines, used = _block(loops[-1].body, scope, 0)
    if _WAY in used:
        lines = ["for (int64_t way = 1; way < 8; way += 2) {", *indented(lines), "}"]
    return [*point_lines(loops, scope, used), "int64_t work = 0;", *lines, "return work;"]


def share_lines(loops: Sequence[For], work: str, scope: Scope) -> list[str]:
    """Return lines that count the work before pieces of nested parallel loops: ``work`` at some ``point``.

    Pieces are points where there are few, else rows: all points of the inner loops.
    """
    row = scope.operand(product_of([trip_count(each) for each in loops[1:]]))
    most, middle, whole = PIECES, "shares.size / 2", []
    if len(loops) > 1:
        whole = [f"shares.size = shares.size <= 1 ? shares.size : (shares.size + {row} - 1) / {row} * {row};"]
        most, middle = ROWS, f"(shares.size == 1 ? 0 : shares.size / {row} / 2 * {row} + {row} / 2)"
    return [
        f"struct shares shares = {{.size = (points + {most - 1}) / {most}}};",
        *whole,
        "for (; team->threads > 1 && shares.pieces * shares.size < points; shares.pieces++) {",
        f"    const int64_t point = shares.pieces * shares.size + {middle};",
        f"    shares.before[shares.pieces + 1] = shares.before[shares.pieces] + {work};",
        "}",
    ]


def _total(depth: int) -> str:
    return f"work_{depth}" if depth else "work"


def _block(code: Code, scope: Scope, depth: int) -> Lines:
    """Return lines that add what there is to do in a block to the total of a depth."""
    lines: list[str] = []
    names: frozenset[str] = frozenset()
    for statement in reversed(code):
        if isinstance(statement, LetInteger):
            if statement.name in names:
                declared = f"const int64_t {scope.names[statement.name]} = {scope.integer(statement.value)};"
                lines.insert(0, declared)
                names = (names - {statement.name}) | names_in(statement.value)
            continue
        before, more = _statement(statement, scope, depth)
        lines[:0] = before
        names |= more
    values = _values(code)
    return ([f"{_total(depth)} += {values};", *lines] if values else lines), names


def _values(code: Code) -> int:
    """Return how many values statements of a block compute that stand in no loop."""
    found = 0
    for statement in code:
        match statement:
            case Store() | Let():
                found += 1
            case For(kind=Kind.VECTOR, body=body):
                found += _values(body)
            case _:
                pass
    return found


def _statement(statement: Statement, scope: Scope, depth: int) -> Lines:
    match statement:
        case For(kind=Kind.VECTOR):
            return [], frozenset()
        case For():
            return _loop(statement, scope, depth)
        case If(condition=condition, body=body, otherwise=otherwise):
            return _branch(condition, _block(body, scope, depth), _block(otherwise, scope, depth), scope)
        case _:
            return [], frozenset()


def _loop(loop: For, scope: Scope, depth: int) -> Lines:
    trips = trip_count(loop)
    values = _values(loop.body)
    if not any(map(_has_blocks, loop.body)):
        if not values:
            return [], frozenset()
        return [f"{_total(depth)} += {scope.integer(product_of([Number(values), trips]))};"], names_in(trips)
    lines, names = _block(loop.body, scope, depth + 1)
    count = f"trips_{depth}"
    head = [f"const int64_t {count} = {scope.integer(trips)};", f"int64_t {_total(depth + 1)} = 0;"]
    if loop.iterator in names:
        eighths = f"way * {Way(0, depth).eighths} % 8" if depth % 4 else "way"
        start, step = scope.integer(loop.start), scope.integer(loop.step)
        place = f"{start} + {count} * ({eighths}) / 8 * {step}"
        head.insert(1, f"const int64_t {scope.names[loop.iterator]} = {place};")
        names |= names_in(loop.start) | {_WAY}
    lines = [*head, *lines, f"{_total(depth)} += {count} * {_total(depth + 1)};"]
    return ["{", *indented(lines), "}"], (names - {loop.iterator}) | names_in(trips)


def _has_blocks(statement: Statement) -> bool:
    """Whether a statement is a branch, or a loop of other points than those of a vector."""
    return isinstance(statement, If) or (isinstance(statement, For) and statement.kind is not Kind.VECTOR)


def _branch(condition: IntExpression | Compute, taken: Lines, otherwise: Lines, scope: Scope) -> Lines:
    if isinstance(condition, Compute):
        return max(taken, otherwise, key=lambda lines: len(lines[0]))
    if not taken[0] and not otherwise[0]:
        return [], frozenset()
    lines = [f"if ({scope.condition(condition)}) {{", *indented(taken[0]), "}"]
    if otherwise[0]:
        lines[-1:] = ["} else {", *indented(otherwise[0]), "}"]
    return lines, taken[1] | otherwise[1] | names_in(condition)
