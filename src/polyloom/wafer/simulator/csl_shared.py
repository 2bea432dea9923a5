"""Units of C emitted from CSL that differ only in numbers become one unit, which reads them from its program.

A layout that tells each PE a number of its own makes a unit for each; the functions of all of them are
compiled once. What differs stands in `.numbers` and `.floats` of each ``CSL_PROGRAM``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""(?P<other> "(?:\\.|[^"\\])*" | ^\#.*$ | \bcost\([^)]*\) | \bcase\s[^:]*: | \[\d+\] )
    | (?P<float> (?:(?<=\))-)? (?<![\w.]) 0x[0-9a-f]+\.[0-9a-f]+p[+-]\d+ f? (?![\w.]) )
    | (?P<whole> (?:(?<=\))-)? (?<![\w.]) \d+ (?:u?ll|u)? (?![\w.]) )""",
    re.MULTILINE | re.VERBOSE,
)
"""Numbers of a unit, and what has numbers that must stay: messages, lines, costs, labels, sizes."""

_ENUMERATOR = re.compile(r"^enum \{ (\w+) = (csl_number\(\d+\)) \};$", re.MULTILINE)
_PROGRAM = "CSL_PROGRAM("
_FIELDS = {"whole": ("numbers", "int64_t", "csl_number"), "float": ("floats", "double", "csl_float")}


@dataclass(frozen=True)
class _Unit:
    """A unit in parts. shape: its functions without numbers; numbers: with their kinds; program: the rest."""

    name: str
    shape: tuple[str, ...]
    kinds: tuple[str, ...]
    numbers: tuple[str, ...]
    program: str


def share_units(units: Mapping[str, str]) -> dict[str, str]:
    """Return files of C that define the same programs, those that differ only in numbers in one.

    Both map names to texts; a file has the name of its first program.
    """
    groups: dict[tuple[tuple[str, ...], tuple[str, ...]], list[_Unit]] = {}
    for name, text in sorted(units.items()):
        unit = _taken_apart(name, text)
        groups.setdefault((unit.shape, unit.kinds), []).append(unit)
    return {
        group[0].name: units[group[0].name] if len(group) == 1 else _together(group)
        for group in groups.values()
    }


def _taken_apart(name: str, text: str) -> _Unit:
    functions, marker, program = text.rpartition(_PROGRAM)
    shape, kinds, numbers, end = [], [], [], 0
    for match in _TOKEN.finditer(functions):
        if match.lastgroup is None or match.lastgroup == "other":
            continue
        shape.append(functions[end : match.start()])
        kinds.append(match.lastgroup)
        numbers.append(match.group())
        end = match.end()
    parts = (*shape, functions[end:])
    return _Unit(name, shape=parts, kinds=tuple(kinds), numbers=tuple(numbers), program=marker + program)


def _together(group: list[_Unit]) -> str:
    """Return one text for units of one shape: a number in which all agree stays where it is."""
    first = group[0]
    columns: dict[str, dict[tuple[str, ...], int]] = {kind: {} for kind in _FIELDS}
    parts = []
    for before, kind, values in zip(
        first.shape, first.kinds, zip(*(u.numbers for u in group), strict=True), strict=False
    ):
        parts += [before, _read(columns[kind], kind, values)]
    functions = _ENUMERATOR.sub(r"#define \1 \2", "".join([*parts, first.shape[-1]]))
    programs = (_program(unit, columns, at) for at, unit in enumerate(group))
    return functions + "\n".join(programs)


def _read(columns: dict[tuple[str, ...], int], kind: str, values: tuple[str, ...]) -> str:
    if len(set(values)) == 1:
        return values[0]
    return f"{_FIELDS[kind][2]}({columns.setdefault(values, len(columns))})"


def _program(unit: _Unit, columns: Mapping[str, Iterable[tuple[str, ...]]], at: int) -> str:
    """Return the program of the unit at this place of its group, with the numbers that it has there."""
    head, comma, rest = unit.program.partition(",")
    return f"{head},{''.join(_fields(columns, at))}{comma and rest}"


def _fields(columns: Mapping[str, Iterable[tuple[str, ...]]], at: int) -> Iterator[str]:
    for kind, (field, element, _) in _FIELDS.items():
        if values := [column[at] for column in columns[kind]]:
            yield f"\n  .{field} = (const {element}[]){{{', '.join(values)}}},"
