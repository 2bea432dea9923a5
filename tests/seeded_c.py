"""Programs in C, each made of one number: conditions on data, scalars that live on, scans, maps beside sums.

Unlike those of ``random_c`` many are built into one library, and a number is all that it takes to repeat one.
All subscripts stay inside the arrays, all data are integers, what is stored in ``double`` too.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from compiled_c import build

EXTENT = 40
SIDE = 24
LINES = ("a", "b", "c")
TABLES = ("A", "B")
REALS = ("x", "y")
SHAPES = {
    **dict.fromkeys((*LINES, *REALS), (EXTENT,)),
    **dict.fromkeys(TABLES, (SIDE, SIDE)),
    "outs": (8,),
}
OUTSIDE = {"t": 3, "u": -2, "w": 7}
"""Locals that are declared before the part, with their first values; ``outs`` gets their last ones."""
STORED = ("t", "u", "w")


@dataclass(frozen=True)
class SeededProgram:
    """``void NAME(int n, int m, ...)``, and the values that it is called with."""

    name: str
    text: str
    sizes: dict[str, int]
    arrays: dict[str, Any]


def program(seed: int, most: int = 4, *, tiled: bool = False, known: bool = False) -> SeededProgram:
    """Return the program of a number, with at most so many nests of loops or forms.

    ``tiled``: every other loop is one over tiles and one inside, as people tile by hand.
    ``known``: its sizes are numbers in its text, too.
    """
    rng = Random(seed)
    writer = _Writer(rng, tiles=Random(f"tiles of {seed}") if tiled else None)
    body = writer.body(most)
    name = f"kernel_{seed}"
    lines = [f"void {name}({', '.join(_arguments())})", "{"]
    lines += [f"  int {local} = {value};" for local, value in OUTSIDE.items()]
    sizes = {"n": rng.choice((0, 1, 2, 3, 5, 7, 8)), "m": rng.choice((0, 1, 2, 4, 6))}
    if known:
        body = [re.sub(r"\b[nm]\b", lambda found: str(sizes[found[0]]), line) for line in body]
    lines += ["#pragma scop", *(f"  {line}" for line in body), "#pragma endscop"]
    lines += [f"  outs[{k}] = {local};" for k, local in enumerate(STORED)] + ["}"]
    data = np.random.default_rng(seed)
    arrays = {
        name: data.integers(-9, 10, shape).astype("float64" if name in REALS else "int32")
        for name, shape in SHAPES.items()
    }
    return SeededProgram(name, "\n".join(lines) + "\n", sizes, arrays)


def _arguments() -> list[str]:
    arrays = [
        f"{'double' if name in REALS else 'int'} {name}" + "".join(f"[{n}]" for n in shape)
        for name, shape in SHAPES.items()
    ]
    return ["int n", "int m", *arrays]


def meanings(programs: Sequence[SeededProgram], folder: Path) -> list[dict[str, Any]]:
    """Return what each program leaves in its arrays and locals, as gcc has it; all are built at once."""
    library = ctypes.CDLL(str(build("\n".join(p.text for p in programs), folder)))
    return [_called(getattr(library, p.name), p) for p in programs]


def _called(function: Callable[..., Any], program: SeededProgram) -> dict[str, Any]:
    arrays = {name: array.copy() for name, array in program.arrays.items()}
    pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in arrays.values()]
    function(*(ctypes.c_int(size) for size in program.sizes.values()), *pointers)
    outside = {name: arrays["outs"][k] for k, name in enumerate(STORED)}
    return {**{name: a for name, a in arrays.items() if name != "outs"}, **outside}


@dataclass
class _Writer:
    """Writes lines; ``iterators``: of the loops around; ``locals``: scalars that have a value."""

    rng: Random
    tiles: Random | None = None
    iterators: list[str] = field(default_factory=list)
    locals: list[str] = field(default_factory=lambda: list(OUTSIDE))
    count: int = 0
    few: list[str] = field(default_factory=list)

    def body(self, most: int) -> list[str]:
        self.few = self.rng.sample([*LINES, *TABLES, *REALS], self.rng.randint(2, 4))
        parts = [self.part() for _ in range(self.rng.randint(1, most))]
        return [line for part in parts for line in part]

    def part(self) -> list[str]:
        """A nest of loops, or one of the forms that passes join or replace."""
        forms = [self.loop] * 5 + [self.single] * 2
        forms += [self.scan, self.table_of_sums, self.sum_between_maps, self.search]
        forms += [self.conditional_scalar] * 3
        return self.rng.choice(forms)()

    def new(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    # Loops

    def loop(self, depth: int = 0) -> list[str]:
        i = self.new("i")
        head = self.tiled_head(i) if self.tiles and self.tiles.random() < 0.5 else self.head(i)
        self.iterators.append(i)
        known = list(self.locals)
        lines = [line for _ in range(self.rng.randint(1, 3)) for line in self.item(depth + 1)]
        self.locals = known
        self.iterators.pop()
        return [f"{head} {{", *_indented(lines), "}"]

    def tiled_head(self, i: str) -> str:
        """Two loops on one line: over tiles, by their first element or their number, and inside one."""
        assert self.tiles is not None
        b, size, high = f"b{i}", self.tiles.choice([2, 3, 4]), self.tiles.choice(["n", "m", "6"])
        inside = f"for (int {i} = {b}; {i} < {b} + {size} && {i} < {high}; {i}++)"
        return self.tiles.choice(
            [
                f"for (int {b} = 0; {b} < {high}; {b} += {size}) {inside}",
                f"for (int {b} = 1; {b} < {high}; {b} += {size}) {inside}",
                f"for (int {b} = 0; {b} < {high} / {size}; {b}++) for (int {i} = {size} * {b};"
                f" {i} < {size} * {b} + {size}; {i}++)",
                f"for (int {b} = ({high} - 1) / {size}; {b} >= 0; {b}--) for (int {i} = {size} * {b};"
                f" {i} <= {size} * {b} + {size - 1}; {i}++) if ({i} < {high})",
            ]
        )

    def head(self, i: str) -> str:
        low = self.rng.choice(
            ["0", "0", "0", "1", "2", *self.iterators[-1:], *(f"{o} + 1" for o in self.iterators[-1:])]
        )
        high = self.rng.choice(
            ["n", "n", "m", "6", *self.iterators[-1:], *(f"n - {o}" for o in self.iterators[-1:])]
        )
        return self.rng.choice(
            [
                *[f"for (int {i} = {low}; {i} < {high}; {i}++)"] * 6,
                f"for (int {i} = {high} - 1; {i} >= {low}; {i}--)",
                f"for (int {i} = {low}; {i} <= {high}; {i} += 2)",
            ]
        )

    def item(self, depth: int) -> list[str]:
        choices = [self.assignment] * 4 + [self.branch, self.branch]
        choices += [lambda: self.loop(depth)] * 2 if depth < 3 else []
        choices += [self.declaration, self.leaving]
        if depth < 3:
            choices += [self.sum_here]
        return self.rng.choice(choices)()

    def branch(self) -> list[str]:
        lines = [f"if ({self.condition()}) {{", *_indented(self.few_assignments()), "}"]
        if self.rng.random() < 0.4:
            lines += ["else {", *_indented(self.few_assignments()), "}"]
        return lines

    def few_assignments(self) -> list[str]:
        return [line for _ in range(self.rng.randint(1, 2)) for line in self.assignment()]

    def declaration(self) -> list[str]:
        name = self.new("s")
        lines = [f"int {name} = {self.value()};"]
        self.locals.append(name)
        if self.rng.random() < 0.6:
            lines += [f"if ({self.condition()}) {name} = {self.value()};"]
        return lines

    def leaving(self) -> list[str]:
        word = self.rng.choice(["break", "continue"])
        i = self.iterators[-1]
        bound = self.rng.choice(["m", "4", *self.iterators[:-1]])
        return [f"if ({i} {self.rng.choice(['>', '==', '>='])} {bound}) {word};"]

    def sum_here(self) -> list[str]:
        name, k = self.new("s"), self.new("k")
        head = self.head(k)
        lines = [f"int {name} = {self.rng.choice(['0', '1', self.value()])};"]
        self.iterators.append(k)
        sign = self.rng.choice(["+=", "+=", "*=", "^="])
        guard = f"if ({self.condition()}) " if self.rng.random() < 0.4 else ""
        lines += [f"{head} {guard}{name} {sign} {self.value()};"]
        self.iterators.pop()
        self.locals.append(name)
        return [*lines, *self.assignment()]

    # Values

    def subscript(self, extent: int) -> str:
        if not self.iterators:
            return str(self.rng.choice([0, 0, 1, 2, 5, 7]))
        i = self.rng.choice(self.iterators[-2:])
        forms = [i] * 6 + [f"{i} + 1", f"{i} + 2", f"{i} + n", f"11 - {i}", "0", "3"]
        forms += [f"2 * {i}"] if extent > 26 else []
        forms += (
            [f"{i} + {self.rng.choice(self.iterators)}"] if len(self.iterators) > 1 and extent > 26 else []
        )
        return self.rng.choice(forms)

    def element(self, name: str | None = None) -> str:
        name = name or self.rng.choice(self.few)
        if name in LINES and self.rng.random() < 0.06:
            return f"{name}[{self.rng.choice(LINES)}[{self.subscript(EXTENT)}] & 7]"
        return name + "".join(f"[{self.subscript(extent)}]" for extent in SHAPES[name])

    def integer_element(self) -> str:
        names = [name for name in self.few if name not in REALS] or ["a"]
        return self.element(self.rng.choice(names))

    def value(self, depth: int = 2) -> str:
        """An integer."""
        kinds = ["element"] * 5 + ["number"] + ["local"] * 3 + ["iterator"] * bool(self.iterators)
        kinds += (["binary"] * 4 + ["choice"] * 2) if depth else []
        match self.rng.choice(kinds):
            case "element":
                return self.integer_element()
            case "number":
                return str(self.rng.randint(-3, 6))
            case "local":
                return self.rng.choice(self.locals)
            case "iterator":
                return self.rng.choice(self.iterators)
            case "binary":
                sign = self.rng.choice("+++--*&^")
                return f"({self.value(depth - 1)} {sign} {self.value(depth - 1)})"
            case _:
                return f"({self.condition()} ? {self.value(depth - 1)} : {self.value(depth - 1)})"

    def condition(self) -> str:
        data = f"{self.integer_element()} {self.rng.choice(['>', '<', '>=', '=='])} {self.rng.randint(-4, 4)}"
        scalar = f"{self.rng.choice(self.locals)} > {self.integer_element()}"
        affine = [
            f"{i} {self.rng.choice(['<', '>', '=='])} {self.rng.choice('m123')}" for i in self.iterators[-1:]
        ]
        affine += [f"{self.iterators[-1]} % 2 == 0"] if self.iterators else []
        return self.rng.choice([data, data, data, scalar, *affine])

    def assignment(self) -> list[str]:
        target = self.rng.choice(self.locals) if self.rng.random() < 0.3 else self.element()
        real = target[0] in REALS
        value = f"{self.element(self.rng.choice(REALS))} + {self.value(1)} % 16" if real else self.value()
        match self.rng.randrange(9):
            case 0 | 1:
                return [f"{target} += {value};"]
            case 2 if not real:
                return [f"{target} {self.rng.choice(['*=', '-=', '^=', '|=', '&='])} {value};"]
            case 3:
                return [f"{target} = {target} > {value} ? {target} : {value};"]
            case 4:
                return [f"if ({value} < {target}) {target} = {value};"]
            case _:
                return [f"{target} = {value};"]

    # Forms that are joined, replaced or recognised

    def single(self) -> list[str]:
        return self.assignment()

    def scan(self) -> list[str]:
        """A first element, then each from the one before: forwards or backwards, sometimes with a gap."""
        name = self.rng.choice([f for f in self.few if f not in TABLES] or ["a"])
        first = self.rng.choice([0, 1, 2])
        i = self.new("i")
        gap = self.rng.choice([0, 0, 0, 1])
        start = [f"{name}[{first}] = {self.simple(name)};"] if self.rng.random() < 0.8 else []
        self.iterators.append(i)
        parts = [f"{name}[{i} - 1]", *(self.simple(name) for _ in range(self.rng.randint(1, 3)))]
        self.rng.shuffle(parts)
        sign = self.rng.choice(["+", "+", "+", "*" if name not in REALS else "+"])
        self.iterators.pop()
        low, high = first + 1 + gap, self.rng.choice(["n", "8", "n + 2"])
        lines = [
            f"for (int {i} = {low}; {i} < {high}; {i}++) {name}[{i}] = {_associated(self.rng, parts, sign)};"
        ]
        if self.rng.random() < 0.3:
            lines = [line.replace(f"{name}[{i} - 1]", f"{name}[{i} + 1]") for line in lines]
            lines = [
                line.replace(
                    f"int {i} = {low}; {i} < {high}; {i}++", f"int {i} = {high} - 1; {i} >= 0; {i}--"
                )
                for line in lines
            ]
        return [*start, *lines]

    def simple(self, name: str) -> str:
        if name in REALS:
            return self.element(self.rng.choice(REALS))
        return self.integer_element() if self.rng.random() < 0.8 else self.value(1)

    def table_of_sums(self) -> list[str]:
        """Prefix sums along rows, then along columns."""
        s, a = self.rng.sample(TABLES, 2) if self.rng.random() < 0.7 else ("A", "A")
        i, j, k, q = (self.new("i") for _ in range(4))
        source = self.rng.choice([a, a, s])
        return [
            f"for (int {i} = 0; {i} < n; {i}++) {{",
            f"  {s}[{i}][0] = {source}[{i}][0];",
            f"  for (int {j} = 1; {j} < m; {j}++) {s}[{i}][{j}] = {s}[{i}][{j} - 1] + {source}[{i}][{j}];",
            "}",
            f"for (int {k} = 0; {k} < m; {k}++)",
            f"  for (int {q} = 1; {q} < n; {q}++) {s}[{q}][{k}] = {s}[{q} - 1][{k}] + {s}[{q}][{k}];",
        ]

    def sum_between_maps(self) -> list[str]:
        """A map, a reduction, a map, over ranges that are the same or nearly; in one nest or in three."""
        s = self.rng.choice(LINES)
        t = self.rng.choice([s, s, *LINES])
        table = self.rng.choice(TABLES)
        i, j = self.new("i"), self.new("j")
        ranges = [
            self.rng.choice([("0", "n"), ("0", "n"), ("0", "n"), ("1", "n"), ("0", "n + 1")])
            for _ in range(3)
        ]
        inner = self.rng.choice([("0", "m"), ("0", "m"), ("0", i), (i, "n"), ("1", "m"), ("0", f"n - {i}")])
        at = self.rng.choice([i, i, i, f"{i} + 1", f"9 - {i}"])
        others = [self.rng.choice([at, at, at, f"{i} + 1", f"9 - {i}"]) for _ in range(2)]
        sign = self.rng.choice(["+=", "+=", "-=", "*="])
        begin = self.rng.choice(["0", "1", f"{s}[{others[0]}] * 2", f"{t}[{i}]", f"{table}[{i}][0]"])
        end = self.rng.choice([f"{s}[{others[1]}] * 2 + 1", f"{s}[{others[1]}] > 3 ? {s}[{others[1]}] : {i}"])
        guard = self.rng.choice(["", "", f"if ({table}[{i}][{j}] > 0) ", f"if ({i} % 2 == 0) "])
        element = self.rng.choice([f"{table}[{i}][{j}]", f"{table}[{j}][{i}]", f"{table}[{i}][{j}] * {i}"])
        first, last = f"{s}[{others[0]}] = {begin};", f"{t}[{at}] = {end};"
        middle = f"for (int {j} = {inner[0]}; {j} < {inner[1]}; {j}++) {guard}{s}[{at}] {sign} {element};"
        if self.rng.random() < 0.5:
            low, high = ranges[0]
            return [
                f"for (int {i} = {low}; {i} < {high}; {i}++) {{",
                f"  {first}",
                f"  {middle}",
                f"  {last}",
                "}",
            ]
        heads = [f"for (int {i} = {low}; {i} < {high}; {i}++)" for low, high in ranges]
        lines = [f"{head} {line}" for head, line in zip(heads, (first, middle, last), strict=True)]
        return lines[: self.rng.choice([2, 3, 3])]

    def conditional_scalar(self) -> list[str]:
        """``t = 7; if (a[i] > 0) t = 1; y[i] = t + z[i]``: some writes are perhaps only."""
        i, t = self.new("i"), self.rng.choice(list(OUTSIDE))
        self.iterators.append(i)
        own = self.rng.random() < 0.4
        name = self.new("s") if own else t
        lines = [f"{'int ' * own}{name} = {self.value()};"] if own or self.rng.random() < 0.8 else []
        self.locals.append(name)
        lines += [f"if ({self.condition()}) {name} = {self.value()};"]
        if self.rng.random() < 0.5:
            lines += [f"if ({self.condition()}) {name} {self.rng.choice(['=', '+='])} {self.value()};"]
        lines += self.assignment()
        lines += [f"{self.element(self.rng.choice(LINES))} = {name} + {self.integer_element()};"]
        self.locals.pop()
        self.iterators.pop()
        return [
            f"for (int {i} = 0; {i} < {self.rng.choice(['n', 'm', '7'])}; {i}++) {{",
            *_indented(lines),
            "}",
        ]

    def search(self) -> list[str]:
        """The largest or smallest element and its place."""
        i, (best, place) = self.new("i"), self.rng.sample(list(OUTSIDE), 2)
        name, sign = self.rng.choice(LINES), self.rng.choice(["<", ">", "<=", ">="])
        start = [f"{best} = {name}[0];", f"{place} = 0;"] if self.rng.random() < 0.7 else []
        moves = [f"{best} = {name}[{i}];", f"{place} = {i};"]
        head = f"for (int {i} = 0; {i} < n; {i}++)"
        return [*start, f"{head} if ({name}[{i}] {sign} {best}) {{ {' '.join(moves)} }}"]


def _associated(rng: Random, parts: list[str], sign: str) -> str:
    """Combine all parts by a sign, with parentheses anywhere."""
    parts = list(parts)
    while len(parts) > 1:
        k = rng.randrange(len(parts) - 1)
        parts[k : k + 2] = [f"({parts[k]} {sign} {parts[k + 1]})"]
    return parts[0]


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"  {line}" for line in lines]
