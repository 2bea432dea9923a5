"""Lines one after another that differ in subscripts by equal steps, as loops that compilers write out.

    sum[0] = sum[0] + x[i] * y[0];            UNROLLED for (int64_t at = 0; at < 4; at++)
    sum[1] = sum[1] + x[i + 1] * y[2];   ->       sum[at] = sum[at] + x[i + at] * y[2 * at];
    sum[2] = sum[2] + x[i + 2] * y[4];
    sum[3] = sum[3] + x[i + 3] * y[6];

Written out, such a loop is the same lines in the same order. gcc does that before it gives registers to
elements of arrays.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

UNROLLED = """\
#ifdef __clang__
#define UNROLLED _Pragma("clang loop unroll(full)")
#else
#define UNROLLED _Pragma("GCC unroll 64")
#endif

"""
"""What stands in front of such loops."""

COUNTERS = ("at", *(f"at_{k}" for k in range(1, 8)))
"""Names of their counters, by how many of them are around."""

MOST_TIMES, MOST_LINES = 64, 64
"""Iterations of a loop; lines that it may have in place of itself, as loops are written inside it."""

WIDE = 90
"""Characters of a line, without what it is indented by."""

LEAST_SAVED = 1
"""Lines that a loop must be shorter than what it stands for."""


_Steps = tuple[tuple[int, str], ...]
"""How a number grows with counters."""


@dataclass(frozen=True)
class _Line:
    """``template``: a line with a mark in place of each number that is added in a subscript."""

    template: str
    numbers: tuple[int, ...]


@dataclass(frozen=True)
class _Loop:
    """``count`` times ``body``; from one time to the next its numbers grow by ``steps``."""

    count: int
    steps: tuple[int, ...]
    body: tuple[_Line | _Loop, ...]


_Item = _Line | _Loop


def rolled(lines: Sequence[str]) -> list[str]:
    """Return lines of a function with such runs as loops."""
    found = list[str]()
    for indent, run in groupby(lines, _indent):
        if indent is None:
            found += run
            continue
        for item in _rolled([_line(text.strip()) for text in run]):
            found += [indent + line for line in _printed(item, [()] * len(_numbers(item)))]
    return found


_PLAIN = re.compile(r"( *)[A-Za-z_]\w*(\[[^=]*\])?( = |\().*;")


def _indent(line: str) -> str | None:
    """Return what a line is indented by that is one assignment or call; None for others."""
    found = _PLAIN.fullmatch(line)
    return None if found is None or found.group(0).lstrip().startswith(_OTHERS) else found.group(1)


_OTHERS = ("return", "for ", "for(", "if ", "if(", "while", "switch")

_SUBSCRIPT = re.compile(r"\[([^\[\]]*)\]")
_SUM = re.compile(r"(?:(.*\S) ([+-]) )?(\d+)")
_UNSAFE = re.compile(r"[?<>&|^=,]")
_MARK = re.compile(r"\[([^\[\]]*)\0\]")


def _line(text: str) -> _Line:
    """Take the numbers out of a line."""
    numbers = list[int]()

    def taken(found: re.Match[str]) -> str:
        inside = found.group(1)
        if _UNSAFE.search(inside):
            return found.group()
        parts = _SUM.fullmatch(inside)
        if parts is None:
            numbers.append(0)
            return f"[{inside}\0]"
        sign = -1 if parts.group(2) == "-" else 1
        numbers.append(sign * int(parts.group(3)))
        return f"[{parts.group(1) or ''}\0]"

    template = _SUBSCRIPT.sub(taken, text)
    return _Line(template, tuple(numbers))


def _numbers(item: _Item) -> tuple[int, ...]:
    """Return the numbers of the first time."""
    if isinstance(item, _Line):
        return item.numbers
    return tuple(number for inner in item.body for number in _numbers(inner))


def _key(item: _Item) -> object:
    """Return what items that differ in their numbers have in common."""
    if isinstance(item, _Line):
        return item.template
    return item.count, item.steps, tuple(map(_key, item.body))


def _length(item: _Item) -> int:
    """Return how many lines it takes, long ones more than one."""
    if isinstance(item, _Line):
        return 1 + len(item.template) // WIDE
    return 1 + sum(map(_length, item.body)) + (len(item.body) > 1)


def _depth(item: _Item) -> int:
    return 0 if isinstance(item, _Line) else 1 + max(map(_depth, item.body))


def _rolled(items: Sequence[_Item]) -> Sequence[_Item]:
    """Return a run with loops, the shortest bodies first."""
    period = 1
    while period <= min(MOST_LINES, len(items) // 2):
        found = _with_loops(items, period)
        period = period + 1 if len(found) == len(items) else 1
        items = found
    return items


def _with_loops(items: Sequence[_Item], period: int) -> Sequence[_Item]:
    """Return a run with loops in place of items that come again after ``period`` others."""
    keys, numbers = [*map(_key, items)], [*map(_numbers, items)]
    found, at = list[_Item](), 0
    while at < len(items):
        times, steps = _times(keys, numbers, at, period)
        body = tuple(items[at : at + period])
        loop = _Loop(times, steps, body)
        saved = times * sum(map(_length, body)) - _length(loop)
        if times > 1 and saved >= LEAST_SAVED and _depth(loop) <= len(COUNTERS):
            found.append(loop)
            at += times * period
        else:
            found.append(items[at])
            at += 1
    return found


def _times(
    keys: Sequence[object], numbers: Sequence[tuple[int, ...]], at: int, period: int
) -> tuple[int, tuple[int, ...]]:
    """Return how often the items at a place come, and by what their numbers grow each time."""
    first, times = _flat(numbers[at : at + period]), 1
    steps = tuple[int, ...]()
    while times < MOST_TIMES:
        here = at + times * period
        if keys[here : here + period] != keys[at : at + period]:
            break
        grown = tuple(b - a for a, b in zip(first, _flat(numbers[here : here + period]), strict=True))
        if times == 1:
            steps = grown
        elif grown != tuple(times * step for step in steps):
            break
        times += 1
    return times, steps


def _flat(numbers: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(number for some in numbers for number in some)


def _printed(item: _Item, steps: Sequence[_Steps], depth: int = 0) -> list[str]:
    """Return the lines of an item whose numbers grow with the counters around."""
    if isinstance(item, _Line):
        left = iter(zip(item.numbers, steps, strict=True))
        return [_MARK.sub(lambda found: f"[{_subscript(found.group(1), *next(left))}]", item.template)]
    name, body, at = COUNTERS[depth], list[str](), 0
    inside = [(*around, (step, name)) for around, step in zip(steps, item.steps, strict=True)]
    for inner in item.body:
        count = len(_numbers(inner))
        body += _printed(inner, inside[at : at + count], depth + 1)
        at += count
    head = f"UNROLLED for (int64_t {name} = 0; {name} < {item.count}; {name}++)"
    if len(item.body) == 1:
        return [head, *(f"    {line}" for line in body)]
    return [f"{head} {{", *(f"    {line}" for line in body), "}"]


def _subscript(base: str, number: int, steps: _Steps) -> str:
    """Return ``base + 8 * at + number``."""
    terms = [(1, base)] if base else []
    terms += [(step, name) for step, name in steps if step]
    text = ""
    for factor, name in terms:
        product = name if abs(factor) == 1 else f"{abs(factor)} * {name}"
        text += f"{' - ' if factor < 0 else ' + '}{product}"
    text += f"{' - ' if number < 0 else ' + '}{abs(number)}" if number or not text else ""
    return text.removeprefix(" + ") if not text.startswith(" - ") else f"-{text.removeprefix(' - ')}"
