"""Random functions of Python over arrays, as text, with arguments: what ``@polyloom.jit`` may be given.

Branches of a choice, and values of a variable, are of one type: elsewhere Python's types follow the data.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32")
FLOATS = ("float32", "float64")
LARGEST = 8
"""The largest extent."""
SLICES = {
    "n": (":n", "0:n"),
    "n - 1": ("1:n", ":n - 1"),
    "n - 2": ("1:n - 1", "2:n", ":n - 2"),
    "n // 2": (":n // 2", "0:n - 1:2", "1:n:2"),
}
"""Slices by their lengths."""

HELPERS = """import math

import numpy as np


def clipped(value, high):
    low = -abs(high)
    if value < low:
        return low
    return high if value > high else value


def before(array, i):
    return np.float64(array[i - 1]) if i > 0 and array[i - 1] > 0 else np.float64(0)


"""


@dataclass(frozen=True)
class PythonFunction:
    """``text``: the function ``kernel``; ``types``: of its arrays, with their numbers of dimensions."""

    text: str
    types: dict[str, tuple[str, int]]

    def arguments(self, seed: int) -> dict[str, Any]:
        """Return arrays, and a size ``n`` that is at least 3 and at most their extents."""
        generator = np.random.default_rng(seed)
        n = int(generator.integers(3, LARGEST))
        given: dict[str, Any] = {
            name: _array(generator, kind, tuple(generator.integers(n, LARGEST + 1, rank)))
            for name, (kind, rank) in self.types.items()
        }
        return {**given, "n": n}


def _array(generator: np.random.Generator, kind: str, shape: tuple[int, ...]) -> Any:
    if kind == "bool":
        return generator.random(shape) < 0.5
    if kind in FLOATS:
        return (generator.integers(-40, 40, shape) / 4).astype(kind)
    few = generator.random() < 0.7
    info = np.iinfo(kind)
    low, high = (max(-9, info.min), 9) if few else (info.min, info.max)
    return generator.integers(low, high, shape, dtype=kind, endpoint=True)


@dataclass
class _Writer:
    rng: Random
    types: dict[str, tuple[str, int]]
    iterators: list[str] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    number: int = 0

    # -- statements

    def nest(self, indent: int) -> None:
        if self.rng.random() < 0.3 and self.has_numbers():
            self.slices(indent)
        if self.rng.random() < 0.4:
            self.variable(indent)
        self.loop(indent)

    def variable(self, indent: int) -> None:
        self.number += 1
        name, kind = f"s{self.number}", self.rng.choice(("int", "float"))
        self.add(indent, f"{name} = np.{kind}64({self.rng.choice((0, 1, 3))})")
        self.variables[name] = kind

    def loop(self, indent: int) -> None:
        name = f"i{len(self.iterators)}"
        ends = ["n", "1, n - 1", "0, n, 2", "n - 1, -1, -1", "max(0, n - 4), min(n, 5)"]
        if self.iterators:
            ends += [self.iterators[-1], f"{self.iterators[-1]}, n"]
        self.add(indent, f"for {name} in range({self.rng.choice(ends)}):")
        self.iterators.append(name)
        inner = len(self.iterators) < 3 and self.rng.random() < 0.5
        if inner and self.rng.random() < 0.3:
            self.variable(indent + 1)
        if inner:
            self.loop(indent + 1)
        if not inner or self.rng.random() < 0.4:
            for _ in range(self.rng.randint(1, 2)):
                self.statement(indent + 1)
        self.iterators.pop()

    def statement(self, indent: int) -> None:
        kind = self.rng.random()
        if kind < 0.05 and len(names := sorted(n for n, (k, _) in self.types.items() if k in FLOATS)) > 1:
            a, b = self.element(names[0]), self.element(names[1])
            self.add(indent, f"if {self.truth(2)}:")
            self.add(indent + 1, f"{a}, {b} = {b}, {a}")
        elif kind < 0.15:
            self.add(indent, f"if {self.truth(2)}:")
            self.store(indent + 1)
            if self.rng.random() < 0.5:
                self.add(indent, "else:")
                self.store(indent + 1)
        elif kind < 0.3 and self.variables:
            name = self.rng.choice(sorted(self.variables))
            if self.variables[name] == "int":
                self.add(indent, f"{name} = np.int64({name} {self.rng.choice('+-^')} {self.whole(2)})")
            else:
                self.add(indent, f"{name} = {name} {self.rng.choice('+-')} np.float64({self.real(2)})")
        elif kind < 0.4 and self.has_numbers():
            self.slices(indent)
        else:
            self.store(indent)

    def has_numbers(self) -> bool:
        """Return whether an array holds numbers, not truth values."""
        return any(kind != "bool" for kind, _ in self.types.values())

    def slices(self, indent: int) -> None:
        """Assign to a slice what is computed from slices of the same lengths."""
        name = self.rng.choice(sorted(n for n, (k, _) in self.types.items() if k != "bool"))
        kind, rank = self.types[name]
        axes = 2 if rank == 2 and (not self.iterators or self.rng.random() < 0.5) else 1
        lengths = tuple(self.rng.choice(sorted(SLICES)) for _ in range(axes))
        kinds = (*INTEGERS, *FLOATS) if kind in FLOATS else INTEGERS
        target, value = self.sliced(name, lengths), self.whole_arrays(kinds, lengths, 2)
        sign = "+=" if kind in FLOATS and self.rng.random() < 0.3 else "="
        if value.startswith(f"{name}["):  # NumPy 2.4 itself reads some elements that it has stored already
            value = f"({value} + 0)"
        self.add(indent, f"{target} {sign} {value}")

    def store(self, indent: int) -> None:
        name = self.rng.choice(sorted(self.types))
        kind = self.types[name][0]
        value = self.truth(2) if kind == "bool" else self.real(3) if kind in FLOATS else self.whole(3)
        sign = self.rng.choice(("=", "=", "+=")) if kind != "bool" else "="
        if kind == "bool":
            value = f"({value})"
        self.add(indent, f"{self.element(name)} {sign} {value}")

    def add(self, indent: int, text: str) -> None:
        self.lines.append("    " * (indent + 1) + text)

    # -- expressions

    def element(self, name: str) -> str:
        found = [
            self.rng.choice(
                (i, i, i, f"n - 1 - {i}", f"max({i} - 1, 0)", f"min({i} + 1, n - 1)", f"{i} // 2")
            )
            for i in self.rng.choices(self.iterators, k=self.types[name][1])
        ]
        return f"{name}[{', '.join(found)}]"

    def sliced(self, name: str, lengths: tuple[str, ...]) -> str:
        """Return a slice of an array; other axes of it have one index."""
        found = [self.rng.choice(SLICES[length]) for length in lengths]
        if self.types[name][1] > len(lengths):
            found.insert(self.rng.randrange(2), self.rng.choice([*self.iterators, "0", "n // 2"]))
        return f"{name}[{', '.join(found)}]"

    def whole_arrays(self, kinds: tuple[str, ...], lengths: tuple[str, ...], depth: int) -> str:
        """Return a value for each element of slices of these lengths."""
        names = [n for n, (kind, rank) in self.types.items() if kind in kinds and rank >= len(lengths)]
        if not names or depth == 0 or self.rng.random() < 0.2:
            numbers = [str(self.rng.choice((1, 2, 5))), *self.iterators]
            arrays = [self.sliced(self.rng.choice(names), lengths) for _ in range(4 if names else 0)]
            return self.rng.choice([*arrays, *numbers])
        a, b, c, d = (self.whole_arrays(kinds, lengths, depth - 1) for _ in range(4))
        forms = [
            f"({a} {self.rng.choice('+-*')} {b})",
            f"np.{self.rng.choice(('minimum', 'maximum'))}({a}, {b})",
        ]
        forms += [
            f"np.where({a} {self.rng.choice(('<', '==', '>='))} {b}, {c}, {d})",
            f"np.abs({a})",
            f"(-{a})",
        ]
        floats = (f"({a} / 4)", f"np.sqrt(np.abs({a}))")
        return self.rng.choice(
            [*forms, *(floats if set(kinds) & set(FLOATS) else (f"({a} & {b})", f"({a} // 3)"))]
        )

    def read(self, kinds: tuple[str, ...], otherwise: str) -> str:
        names = [n for n, (kind, _) in self.types.items() if kind in kinds]
        return self.element(self.rng.choice(names)) if names else otherwise

    def earlier(self) -> str:
        names = [n for n, (kind, rank) in self.types.items() if kind in FLOATS and rank == 1]
        return f"before({self.rng.choice(names)}, {self.rng.choice(self.iterators)})" if names else "1.5"

    def whole(self, depth: int) -> str:
        leaf = self.rng.random()
        if depth == 0 or leaf < 0.2:
            held = [n for n, kind in self.variables.items() if kind == "int"]
            choices = [
                self.read(INTEGERS, "7"),
                self.read(INTEGERS, "3"),
                str(self.rng.choice((0, 1, 2, 3, 5))),
                self.rng.choice(self.iterators),
            ]
            return self.rng.choice([*choices, *held])
        a, b = self.whole(depth - 1), self.whole(depth - 1)
        return self.rng.choice(
            (
                f"({a} {self.rng.choice('+-*')} {b})",
                f"({a} {self.rng.choice('&|^')} {b})",
                f"({a} {self.rng.choice(('//', '%'))} {b})",
                f"({a} {self.rng.choice(('<<', '>>'))} {self.rng.choice(('1', '3', f'({b} & 7)'))})",
                f"({a} // {self.rng.choice((1, 2, 3, 7, -2))})",
                f"abs({a})",
                f"(~{a})",
                f"(-{a})",
                f"{self.rng.choice(('min', 'max'))}(np.int64({a}), np.int64({b}), np.int64({a}))",
                f"(np.int64({a}) if {self.truth(depth - 1)} else np.int64({b}))",
                f"{self.rng.choice(('int', 'math.floor', 'math.ceil', 'round'))}({self.read(FLOATS, '2.5')})",
                f"np.{self.rng.choice(INTEGERS)}(np.int64({a}) & 63)",
                f"({self.read(INTEGERS, '2')} ** {self.rng.choice((1, 2, 3))})",
            )
        )

    def real(self, depth: int) -> str:
        if depth == 0 or self.rng.random() < 0.2:
            held = [n for n, kind in self.variables.items() if kind == "float"]
            return self.rng.choice(
                [self.read(FLOATS, "0.5"), self.read(FLOATS, "0.25"), self.rng.choice(("0.5", "2.0")), *held]
            )
        a, b = self.real(depth - 1), self.real(depth - 1)
        return self.rng.choice(
            (
                f"({a} {self.rng.choice('+-*')} {b})",
                f"({a} / {self.rng.choice(('2', '4.0', b))})",
                f"({a} {self.rng.choice(('//', '%'))} {self.rng.choice((b, '0.5', '-3'))})",
                f"{self.rng.choice(('abs', '-', 'np.floor', 'np.rint', 'float', 'np.float32'))}({a})",
                f"{self.rng.choice(('np.sqrt', 'math.sqrt'))}(abs({a}))",
                f"{self.rng.choice(('np.tanh', 'math.atan', 'np.sin', 'math.cos'))}({a})",
                f"{self.rng.choice(('min', 'max'))}(np.float64({a}), np.float64({b}))",
                f"np.{self.rng.choice(('minimum', 'maximum'))}({a}, {b})",
                f"clipped(np.float64({a}), np.float64({b}))",
                self.earlier(),
                f"np.where({self.truth(depth - 1)}, np.float64({a}), np.float64({b}))",
                f"(np.float64({a}) if {self.truth(depth - 1)} else np.float64({b}))",
                f"({a} + {self.whole(depth - 1)})",
                f"({self.whole(depth - 1)} / {self.rng.choice(('2', '4'))})",
                f"({a} ** 2)",
            )
        )

    def truth(self, depth: int) -> str:
        signs = ("<", "<=", ">", ">=", "==", "!=")
        if depth > 0 and self.rng.random() < 0.4:
            a, b = self.truth(depth - 1), self.truth(depth - 1)
            word = self.rng.choice(("and", "or"))
            return self.rng.choice((f"({a} {word} {b})", f"(not {a})", f"(0 < {self.whole(0)} <= 5)"))
        part = self.rng.choice((self.whole, self.real))
        plain = f"({part(max(depth - 1, 0))} {self.rng.choice(signs)} {part(max(depth - 1, 0))})"
        bits = [n for n, (kind, _) in self.types.items() if kind == "bool"]
        return self.element(self.rng.choice(bits)) if bits and self.rng.random() < 0.4 else plain


def random_function(seed: int) -> PythonFunction:
    """Return the function of a seed."""
    rng = Random(seed)
    kinds = [*INTEGERS, *FLOATS, *FLOATS, *FLOATS, "bool"]
    types = {
        name: (rng.choice(kinds), rng.choice((1, 1, 2))) for name in ("x", "y", "z")[: rng.randint(2, 3)]
    }
    writer = _Writer(rng, types)
    for _ in range(rng.randint(1, 3)):
        writer.nest(0)
    if writer.variables:
        writer.add(0, f"return {', '.join(sorted(writer.variables))}")
    text = "\n".join([f"def kernel({', '.join(types)}, n):", *writer.lines])
    return PythonFunction(f"{HELPERS}{text}\n", types)
