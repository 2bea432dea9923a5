"""Random static control programs in C, for hypothesis: loops, guards, several statements, reductions.

All iterators stay between 0 and LARGEST, all subscripts inside the arrays, all data are integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st

LARGEST = 11
EXTENT = 40
PARAMETERS = {"n": (1, 7), "m": (2, 6)}
ARRAYS = {"a": 1, "b": 1, "A": 2, "B": 2, "C": 2}
C_TYPES = {"int": "int32", "long": "int64", "short": "int16", "unsigned char": "uint8", "unsigned": "uint32"}


@dataclass(frozen=True)
class CProgram:
    """``void kernel(int n, int m, TYPE a[EXTENT], ...)``."""

    text: str
    types: dict[str, str]

    def data(self, seed: int) -> dict[str, Any]:
        generator = np.random.default_rng(seed)
        return {
            name: generator.integers(0 if "u" in C_TYPES[kind] else -9, 10, (EXTENT,) * ARRAYS[name]).astype(
                C_TYPES[kind]
            )
            for name, kind in self.types.items()
        }


@dataclass
class _Scope:
    """What may be spoken of: iterators around, scalars that have a value, and the arrays."""

    iterators: list[str]
    scalars: list[str]
    types: dict[str, str]
    fresh: list[int] = field(default_factory=lambda: [0])

    def new(self, prefix: str) -> str:
        self.fresh[0] += 1
        return f"{prefix}{self.fresh[0]}"

    def inner(self, iterator: str) -> _Scope:
        return _Scope([*self.iterators, iterator], list(self.scalars), self.types, self.fresh)


@st.composite
def c_programs(
    draw: Any, types: Sequence[str] = ("int", "int", "long", "short", "unsigned char")
) -> CProgram:
    chosen = {name: draw(st.sampled_from(list(types))) for name in ARRAYS}
    scope = _Scope([], [], chosen)
    body = [line for _ in range(draw(st.integers(1, 3))) for line in draw(_items(scope, 0))]
    arguments = ", ".join(
        ["int n", "int m", *(f"{t} {name}" + f"[{EXTENT}]" * ARRAYS[name] for name, t in chosen.items())]
    )
    lines = [
        f"void kernel({arguments})",
        "{",
        "#pragma scop",
        *(f"  {x}" for x in body),
        "#pragma endscop",
        "}",
    ]
    return CProgram("\n".join(lines) + "\n", chosen)


@st.composite
def _items(draw: Any, scope: _Scope, depth: int) -> list[str]:
    """A statement, a loop or a branch: lines of text."""
    kinds = ["loop"] * (5 - 2 * depth) if depth < 3 else []
    kinds += ["statement"] * (2 * depth) if scope.iterators else []
    kinds += ["branch"] * bool(scope.iterators)
    kinds += ["sum", "declaration"] if 0 < depth < 3 else []
    match draw(st.sampled_from(kinds)):
        case "loop":
            return draw(_loops(scope, depth))
        case "branch":
            condition = draw(_conditions(scope))
            lines = [f"if ({condition}) {{", *_indented(draw(_block(scope, depth + 1))), "}"]
            if draw(st.integers(0, 3)) == 0:
                lines += ["else {", *_indented(draw(_block(scope, depth + 1))), "}"]
            return lines
        case "sum":
            return draw(_sums(scope, depth))
        case "declaration":
            value = draw(_values(scope))
            name = scope.new("s")
            scope.scalars.append(name)
            return [f"int {name} = {value};"]
        case _:
            return [draw(_assignments(scope))]


def _indented(lines: list[str]) -> list[str]:
    return [f"  {line}" for line in lines]


@st.composite
def _block(draw: Any, scope: _Scope, depth: int) -> list[str]:
    inner = _Scope(list(scope.iterators), list(scope.scalars), scope.types, scope.fresh)
    return [line for _ in range(draw(st.integers(1, 2))) for line in draw(_items(inner, depth))]


@st.composite
def _loops(draw: Any, scope: _Scope, depth: int) -> list[str]:
    iterator = scope.new("i")
    head = draw(_heads(scope, iterator))
    inner = scope.inner(iterator)
    return [head, *_indented(draw(_block(inner, depth + 1))), "}"]


@st.composite
def _heads(draw: Any, scope: _Scope, i: str) -> str:
    outer = scope.iterators[-1:]
    lows = ["0", "0", "0", "1", "2", *outer, *(f"{o} + 1" for o in outer)]
    highs = ["n", "n", "m", "5", *outer, *(f"n - {o}" for o in outer)]
    low, high = draw(st.sampled_from(lows)), draw(st.sampled_from(highs))
    match draw(st.integers(0, 7)):
        case 0:
            return f"for (int {i} = {low}; {i} < {high}; {i} += {draw(st.integers(2, 3))}) {{"
        case 1:
            return f"for (int {i} = {high}; {i} >= {low}; {i}--) {{"
        case 2:
            return f"for (int {i} = {low}; {i} <= {high}; {i}++) {{"
        case _:
            return f"for (int {i} = {low}; {i} < {high}; {i}++) {{"


@st.composite
def _affine(draw: Any, scope: _Scope) -> str:
    """A subscript from 0 to EXTENT - 1, whatever the iterators are."""
    if not scope.iterators or draw(st.integers(0, 9)) == 0:
        return str(draw(st.integers(0, 5)))
    first = draw(st.sampled_from(scope.iterators))
    match draw(st.integers(0, 9)):
        case 0:
            return f"2 * {first} + {draw(st.integers(0, 3))}"
        case 1:
            return f"{LARGEST + draw(st.integers(0, 3))} - {first}"
        case 2 if len(scope.iterators) > 1:
            return f"{first} + {draw(st.sampled_from(scope.iterators))}"
        case 3 if len(scope.iterators) > 1:
            return f"{first} - {draw(st.sampled_from(scope.iterators))} + {LARGEST}"
        case 4:
            return f"{first} + {draw(st.integers(1, 2))}"
        case 5:
            return f"{first} + n"
        case _:
            return first


@st.composite
def _elements(draw: Any, scope: _Scope, computed: bool = True) -> str:
    name = draw(st.sampled_from(list(ARRAYS)))
    indices = [draw(_affine(scope)) for _ in range(ARRAYS[name])]
    if computed and draw(st.integers(0, 14)) == 0:
        inner = draw(_elements(scope, computed=False))
        indices[-1] = f"{inner} & 7"
    return name + "".join(f"[{i}]" for i in indices)


@st.composite
def _values(draw: Any, scope: _Scope, depth: int = 2) -> str:
    leaves = ["element"] * 5 + ["constant"] + ["iterator"] * bool(scope.iterators)
    leaves += ["scalar"] * (2 * bool(scope.scalars))
    kind = draw(st.sampled_from(leaves + ["binary"] * (3 * bool(depth)) + ["choice", "divide"] * bool(depth)))
    match kind:
        case "element":
            return draw(_elements(scope))
        case "constant":
            return str(draw(st.integers(-3, 7)))
        case "iterator":
            return draw(st.sampled_from(scope.iterators))
        case "scalar":
            return draw(st.sampled_from(scope.scalars))
        case "choice":
            a, b = draw(_values(scope, 0)), draw(_values(scope, 0))
            return f"({a} > {b} ? {a} : {b})"
        case "divide":
            return (
                f"({draw(_values(scope, depth - 1))} {draw(st.sampled_from('/%'))} {draw(st.integers(2, 5))})"
            )
        case _:
            sign = draw(st.sampled_from("++-*&^"))
            return f"({draw(_values(scope, depth - 1))} {sign} {draw(_values(scope, depth - 1))})"


@st.composite
def _conditions(draw: Any, scope: _Scope) -> str:
    i = draw(st.sampled_from(scope.iterators))
    match draw(st.integers(0, 5)):
        case 0:
            return f"{i} % 2 == {draw(st.integers(0, 1))}"
        case 1:
            return f"{draw(_elements(scope, computed=False))} > {draw(st.integers(-3, 3))}"
        case 2 if len(scope.iterators) > 1:
            return f"{i} <= {draw(st.sampled_from(scope.iterators))} + {draw(st.integers(0, 2))}"
        case 3:
            return f"{i} == {draw(st.integers(0, 3))} || {i} > n - 2"
        case 4:
            return f"{i} >= 1 && {i} < m"
        case _:
            return f"{i} < {draw(st.sampled_from(['m', '3', 'n - 1']))}"


@st.composite
def _assignments(draw: Any, scope: _Scope) -> str:
    if scope.scalars and draw(st.integers(0, 2)) == 0:
        target = draw(st.sampled_from(scope.scalars))
    else:
        target = draw(_elements(scope, computed=draw(st.integers(0, 9)) == 0))
    value = draw(_values(scope))
    match draw(st.integers(0, 9)):
        case 0 | 1 | 2:
            return f"{target} += {value};"
        case 3:
            return f"{target} {draw(st.sampled_from(['*=', '-=', '^=', '|=']))} {value};"
        case 4:
            return f"{target} = {target} > {value} ? {target} : {value};"
        case 5:
            return f"if ({value} < {target}) {target} = {value};"
        case _:
            return f"{target} = {value};"


@st.composite
def _sums(draw: Any, scope: _Scope, depth: int) -> list[str]:
    """A scalar that a loop accumulates, stored after it or on the way."""
    name, iterator = scope.new("s"), scope.new("i")
    inner = scope.inner(iterator)
    start = draw(st.sampled_from(["0", "1", "b[3]"]))
    sign = draw(st.sampled_from(["+=", "+=", "*="]))
    head = draw(_heads(scope, iterator))
    lines = [f"int {name} = {start};", head, f"  {name} {sign} {draw(_values(inner, 1))};"]
    if draw(st.booleans()):
        lines.append(f"  {draw(_elements(inner, computed=False))} = {name};")
    lines.append("}")
    return [*lines, f"{draw(_elements(scope, computed=False))} = {name};"]
