"""Random C programs with static control, each from a seed.

Loops up, down and by steps, triangles, branches on iterators and on data, breaks, scalars and arrays of the
part's own, quotients and remainders in subscripts, every arithmetic type, one to three parts in a function.
Subscripts stay inside their arrays and numbers stay small, so that every program has one meaning: sums of
floats are exact, and come out the same in whatever order they are made.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np

EXTENT = 40
LARGEST = 9
"""The largest value of an iterator."""

TYPES = {
    "int": "int32",
    "long": "int64",
    "short": "int16",
    "unsigned char": "uint8",
    "signed char": "int8",
    "unsigned": "uint32",
    "unsigned short": "uint16",
    "float": "float32",
    "double": "float64",
}
RANKS = {"a": 1, "b": 1, "c": 1, "A": 2, "B": 2}
SIZES = {"n": (0, 8), "m": (1, 7)}


@dataclass(frozen=True)
class CProgram:
    """``void kernel(int n, int m, TYPE a[EXTENT], ...)``. ``parts``: how many SCoPs it has."""

    text: str
    types: Mapping[str, str]
    parts: int


@dataclass
class Scope:
    """What a piece of program may speak of."""

    random: Random
    types: Mapping[str, str]
    iterators: list[str] = field(default_factory=list)
    scalars: list[str] = field(default_factory=list)
    own: list[str] = field(default_factory=list)
    numbers: list[int] = field(default_factory=lambda: [0])
    reals: set[str] = field(default_factory=set)
    """Names of what holds floats."""
    name: str = "kernel"
    form: Callable[[Scope], list[str]] | None = None
    """What a program holds besides; its functions stand in ``helpers``."""
    helpers: list[str] = field(default_factory=list)

    def inner(self, *iterators: str) -> Scope:
        every = [*self.iterators, *iterators]
        own = (list(self.scalars), list(self.own))
        more = (self.name, self.form, self.helpers)
        return Scope(self.random, self.types, every, *own, self.numbers, self.reals, *more)

    def declared(self, name: str, kind: str) -> str:
        """Return a declaration without its semicolon, and remember what it holds."""
        if kind in ("float", "double"):
            self.reals.add(name)
        return f"{kind} {name}"

    def converted(self, target: str, value: str) -> str:
        """Return a value as its target may take it: C says nothing of floats that an integer cannot hold."""
        return f"(long)({value})" if self._is_real(value) and not self._is_real(_word(target)) else value

    def _is_real(self, text: str) -> bool:
        words = set(re.findall(r"[A-Za-z_]\w*", text))
        return bool(words & (self.reals | {"float", "double"})) or "." in text

    def fresh(self, prefix: str) -> str:
        self.numbers[0] += 1
        return f"{prefix}{self.numbers[0]}"


def random_program(
    seed: int, name: str = "kernel", form: Callable[[Scope], list[str]] | None = None
) -> CProgram:
    """Make the program of a seed. ``form``: other lines that it may hold."""
    random = Random(seed)
    types = {array: random.choice(list(TYPES)) for array in RANKS}
    parts = random.choice([1, 1, 1, 1, 2, 3])
    head = ", ".join(["int n", "int m", *(f"{t} {a}" + f"[{EXTENT}]" * RANKS[a] for a, t in types.items())])
    lines = [f"void {name}({head})", "{"]
    numbers, helpers = [0], list[str]()
    for _ in range(parts):
        reals = {name for name, kind in types.items() if kind in ("float", "double")}
        scope = Scope(random, types, numbers=numbers, reals=reals, name=name)
        scope.form, scope.helpers = form, helpers
        body = [line for _ in range(random.randint(1, 3)) for line in _item(scope, 0)]
        lines += ["#pragma scop", *(f"  {line}" for line in body), "#pragma endscop"]
    return CProgram("\n".join([*helpers, *lines, "}"]) + "\n", types, parts)


def data(types: Mapping[str, str], seed: int) -> dict[str, Any]:
    """Return sizes and arrays of small whole numbers."""
    rng = np.random.default_rng(seed)
    arrays = {
        name: rng.integers(0 if "u" in TYPES[kind] else -9, 10, (EXTENT,) * RANKS[name]).astype(TYPES[kind])
        for name, kind in types.items()
    }
    return {n: int(rng.integers(low, high + 1)) for n, (low, high) in SIZES.items()} | arrays


def _item(s: Scope, depth: int) -> list[str]:
    """Return a statement, a loop, a branch or a declaration."""
    kinds = {
        "loop": 6 - 2 * depth if depth < 3 else 0,
        "assign": 1 + 3 * depth,
        "branch": 2,
        "local": 1 + (depth > 0),
    }
    kinds["sum"] = 2 if depth < 3 else 0
    kinds["own"] = int(depth == 0)
    if s.form is not None:
        kinds["form"] = 4
    match s.random.choices(list(kinds), list(kinds.values()))[0]:
        case "loop":
            return _loop(s, depth)
        case "branch":
            return _branch(s, depth)
        case "local":
            name, kind = s.fresh("t"), s.random.choice(["int", "int", "long", "float", "double"])
            declaration = s.declared(name, kind)
            line = f"{declaration} = {s.converted(name, expression(s))};"
            s.scalars.append(name)
            return [line]
        case "own":
            return _own_array(s)
        case "form" if s.form is not None:
            return s.form(s)
        case "sum":
            return _sum(s)
        case _:
            return _assignment(s)


def _indented(lines: list[str]) -> list[str]:
    return [f"  {line}" for line in lines]


def _block(s: Scope, depth: int) -> list[str]:
    return [line for _ in range(s.random.randint(1, 2)) for line in _item(s, depth)]


def _loop(s: Scope, depth: int) -> list[str]:
    i = s.fresh("i")
    inner = s.inner(i)
    body = _block(inner, depth + 1)
    if s.random.random() < 0.1:
        body.append(f"if ({static_condition(inner)}) {s.random.choice(['break', 'continue'])};")
        body += _block(inner, depth + 1)
    return [_head(s, i), *_indented(body), "}"]


def _head(s: Scope, i: str) -> str:
    r, outer = s.random, s.iterators[-1:]
    low = r.choice(["0", "0", "0", "1", "2", "m - 1", *outer, *(f"{o} + 1" for o in outer)])
    high = r.choice(
        ["n", "n", "m", "5", "n - 1", *outer, *(f"n - {o}" for o in outer), *(f"{o} / 2 + 2" for o in outer)]
    )
    kind = r.random()
    if kind < 0.12:
        return f"for (int {i} = {low}; {i} < {high}; {i} += {r.randint(2, 3)}) {{"
    if kind < 0.24:
        return f"for (int {i} = {high}; {i} >= {low}; {i}--) {{"
    if kind < 0.36:
        return f"for (int {i} = {low}; {i} <= {high}; ++{i}) {{"
    return f"for (int {i} = {low}; {i} < {high}; {i}++) {{"


def _branch(s: Scope, depth: int) -> list[str]:
    condition = _condition(s)
    lines = [f"if ({condition}) {{", *_indented(_block(s.inner(), depth + 1)), "}"]
    if s.random.random() < 0.3:
        lines += ["else {", *_indented(_block(s.inner(), depth + 1)), "}"]
    return lines


def _condition(s: Scope) -> str:
    """Return a condition on iterators, on scalars, on elements, or on several of these."""
    r = s.random
    kind = r.random()
    if kind < 0.35:
        return static_condition(s)
    if kind < 0.5:
        joined = r.choice(["&&", "||"])
        return f"{static_condition(s)} {joined} {_data_condition(s)}"
    return _data_condition(s)


def _data_condition(s: Scope) -> str:
    r = s.random
    left = r.choice(s.scalars) if s.scalars and r.random() < 0.4 else element(s)
    right = element(s) if r.random() < 0.2 else str(r.randint(-3, 4))
    negated = "!" if r.random() < 0.15 else ""
    return f"{negated}({left} {r.choice(['<', '<=', '>', '>=', '==', '!='])} {right})"


def static_condition(s: Scope) -> str:
    r = s.random
    if not s.iterators:
        return r.choice(["n > 3", "m == 2", "n > m", "n % 2 == 0"])
    i, j = r.choice(s.iterators), r.choice(s.iterators)
    choices = [
        f"{i} % {r.randint(2, 3)} == {r.randint(0, 1)}",
        f"{i} <= {j} + {r.randint(0, 2)}",
        f"{i} == {r.randint(0, 3)} || {i} > n - 2",
        f"{i} >= 1 && {i} < m",
        f"{i} < {r.choice(['m', '3', 'n - 1'])}",
        f"{i} + {j} > n",
    ]
    return r.choice(choices)


def subscript(s: Scope) -> str:
    """Return a subscript from 0 to EXTENT - 1, whatever the iterators are."""
    r = s.random
    if not s.iterators or r.random() < 0.1:
        return r.choice([str(r.randint(0, 5)), "n", "m + 1"])
    i, j = r.choice(s.iterators), r.choice(s.iterators)
    kind = r.random()
    if kind < 0.5:
        return i
    choices = [
        f"2 * {i} + {r.randint(0, 3)}",
        f"{LARGEST + r.randint(0, 3)} - {i}",
        f"{i} + {j}",
        f"{i} - {j} + {LARGEST + 1}",
        f"{i} + {r.randint(1, 2)}",
        f"{i} + n",
        f"{i} / 2",
        f"{i} % 3",
        f"({i} + 2 * {j}) / 3",
        f"({i} + {j}) % 4",
        f"{i} * 2 - {i} / 2",
    ]
    return r.choice(choices)


def element(s: Scope, computed: bool = True) -> str:
    r = s.random
    if s.own and r.random() < 0.25:
        return f"{r.choice(s.own)}[{subscript(s)}]"
    name = r.choice(list(RANKS))
    indices = [subscript(s) for _ in range(RANKS[name])]
    if computed and r.random() < 0.06:
        whole = [n for n, kind in s.types.items() if "float" not in TYPES[kind] and RANKS[n] == 1]
        if whole:
            indices[-1] = f"{r.choice(whole)}[{subscript(s)}] & 7"
    return name + "".join(f"[{i}]" for i in indices)


def expression(s: Scope, depth: int = 2) -> str:
    r = s.random
    leaves = (
        ["element"] * 5 + ["constant"] + ["iterator"] * bool(s.iterators) + ["scalar"] * (2 * bool(s.scalars))
    )
    if depth:
        leaves += ["binary"] * 4 + ["choice", "choice", "cast"]
    match r.choice(leaves):
        case "element":
            return element(s)
        case "constant":
            return (
                r.choice([str(r.randint(-3, 7)), "2.0f", "0.5"])
                if r.random() < 0.3
                else str(r.randint(-3, 7))
            )
        case "iterator":
            return r.choice(s.iterators)
        case "scalar":
            return r.choice(s.scalars)
        case "choice":
            return f"({_condition(s)} ? {expression(s, 0)} : {expression(s, 0)})"
        case "cast":
            return f"({r.choice(['int', 'float', 'double', 'short'])})(long){element(s)}"
        case _:
            sign = r.choice("++--*")
            return f"({expression(s, depth - 1)} {sign} {expression(s, depth - 1)})"


def _target(s: Scope) -> str:
    if s.scalars and s.random.random() < 0.3:
        return s.random.choice(s.scalars)
    return element(s, computed=s.random.random() < 0.3)


def _assignment(s: Scope) -> list[str]:
    r, target, value = s.random, _target(s), expression(s)
    kind = r.random()
    if kind < 0.32:
        sign = "+" if kind < 0.25 else "-"
        sum_ = s.converted(target, f"{target} {sign} {value}")
        return [f"{target} = {sum_};" if sum_.startswith("(long)") else f"{target} {sign}= {value};"]
    value = s.converted(target, value)
    if kind < 0.4:
        return [f"{target} = {target} > {value} ? {target} : {value};"]
    if kind < 0.48:
        return [f"if ({value} < {target}) {target} = {value};"]
    if kind < 0.52:
        return [f"if ({_data_condition(s)}) {target} = {value};"]
    return [f"{target} = {value};"]


def _own_array(s: Scope) -> list[str]:
    """Declare an array of the part's own and fill it."""
    name, i = s.fresh("own"), s.fresh("i")
    declaration = s.declared(name, s.random.choice(["int", "double", "long"]))
    value = s.converted(name, f"{element(s, computed=False)} + {i}")
    s.own.append(name)
    return [f"{declaration}[{EXTENT}];", f"for (int {i} = 0; {i} < {EXTENT}; {i}++) {name}[{i}] = {value};"]


def _sum(s: Scope) -> list[str]:
    """Accumulate in a scalar, and store it behind the loop or on the way."""
    r, name, i = s.random, s.fresh("s"), s.fresh("i")
    inner = s.inner(i)
    declaration = s.declared(name, r.choice(["int", "long", "double"]))
    sign = r.choice(["+", "+", "-", ""])
    value = expression(inner, 1)
    change = f"{name} = {s.converted(name, f'{name} {sign} {value}' if sign else value)};"
    if r.random() < 0.4:
        change = f"if ({_condition(inner)}) {change}"
    lines = [f"{declaration} = {r.randint(0, 3)};", _head(s, i), f"  {change}"]
    if r.random() < 0.5:
        target = element(inner, computed=False)
        lines.append(f"  {target} = {s.converted(target, name)};")
    s.scalars.append(name)
    target = element(s, computed=False)
    return [*lines, "}", f"{target} = {s.converted(target, name)};"]


def _word(text: str) -> str:
    """Return the name at the beginning of a target."""
    return text.partition("[")[0]
