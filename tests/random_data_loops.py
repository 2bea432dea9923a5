"""Random functions in C with loops of which data decide how often they go: `while`, `do`, rows of open ends.

Each loop ends by a count of its own. Subscripts stay inside the arrays, for at most 64 iterations; products
of integers stay small.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

HEAD = (
    "void f(int n, const int row[n + 1], const int idx[64], const double x[64], double y[n], int oa[n],\n"
    "       int ob[n], double os[n], double ot[n])\n"
)
COMPARED = ("<", "<=", ">", "==", "!=")


@dataclass
class _Writer:
    """Writes one function; ``counters``: of the loops around; ``element``: loops store to ``y[i]``.

    ``near``: all elements are those of ``i``, so that vectors of iterations go together.
    """

    random: Random
    element: bool
    near: bool
    loops: int = 0
    depth: int = 0
    counters: list[str] = field(default_factory=list)

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def integer(self, depth: int = 0) -> str:
        kind = self.random.randrange(8) if depth < 3 else 0
        if kind <= 2:
            return self.random.choice(["a", "b", "i", *self.counters])
        a = self.integer(depth + 1)
        if kind == 3:
            return str(self.random.randint(-3, 9))
        if kind == 4:
            return "row[i]" if self.near else f"idx[({a}) & 63]"
        if kind == 5:
            return f"(({a}) % 7)"
        if kind == 6:
            return f"(({a}) & 255)"
        return f"({a} {self.random.choice('+-*')} ({self.integer(depth + 1)}) % 100)"

    def number(self, depth: int = 0) -> str:
        kind = self.random.randrange(7) if depth < 3 else 0
        if kind <= 1:
            return self.random.choice("st")
        if kind == 2:
            return "x[i]" if self.near else f"x[({self.integer(depth + 1)}) & 63]"
        if kind == 3:
            return f"{self.random.randint(1, 9)}.5"
        if kind == 4:
            return f"(double)({self.integer(depth + 1)} & 15)"
        if kind == 5:
            return "y[i]" if self.element else f"({self.truth(1)} ? {self.number(2)} : {self.number(2)})"
        return f"({self.number(depth + 1)} {self.random.choice('+-*')} {self.number(depth + 1)})"

    def truth(self, depth: int = 0) -> str:
        kind = self.random.randrange(5) if depth < 2 else 0
        if kind <= 1:
            return f"{self.integer(1)} {self.random.choice(COMPARED)} {self.integer(1)}"
        if kind == 2:
            return f"{self.number(1)} {self.random.choice('<>')} {self.number(1)}"
        if kind == 3:
            return f"!({self.truth(depth + 1)})"
        return f"({self.truth(depth + 1)} {self.random.choice(['&&', '||'])} {self.truth(depth + 1)})"

    def statement(self, *, inside: bool) -> str:
        kind = self.random.randrange(11)
        if kind <= 2:
            return f"{self.random.choice('ab')} = ({self.integer()}) & 1023;"
        if kind == 3:
            return f"{self.random.choice('ab')}{self.random.choice(['++', '--'])};"
        if kind <= 5:
            return f"{self.random.choice('st')} = ({self.number()}) * 0.25;"
        if kind == 6 and self.element:
            return f"y[i] {self.random.choice(['=', '+='])} {self.number()} * 0.125;"
        if kind <= 8:
            other = f" else {{ {self.block(inside=inside)} }}" if self.chance(0.4) else ""
            return f"if ({self.truth()}) {{ {self.block(inside=inside)} }}{other}"
        if kind == 9 and inside:
            return f"if ({self.truth()}) {self.random.choice(['break', 'continue'])};"
        return self.loop() if self.depth < 2 else "s += 1;"

    def block(self, *, inside: bool) -> str:
        return "\n".join(self.statement(inside=inside) for _ in range(self.random.randint(1, 3)))

    def loop(self) -> str:
        self.depth, self.loops = self.depth + 1, self.loops + 1
        name, kind = f"k{self.loops}", self.random.randrange(4)
        if kind >= 2:
            body = f"{name}++;\nif ({name} > 20) break;\n{self.block(inside=True)}"
            head, end = ("do", f" while ({self.truth()});") if kind == 2 else (f"while ({self.truth()})", "")
            found = f"int {name} = 0;\n{head} {{\n{body}\n}}{end}"
        else:
            self.counters.append(name)
            asked = f" && {self.truth()}" if self.chance(0.3) else ""
            bounds = f"row[i] + {self.random.randint(0, 2)}", f"row[i + 1]{asked}", "1"
            if kind == 1:
                bounds = "0", str(self.random.randint(1, 9)), str(self.random.randint(1, 2))
            first, last, step = bounds
            leave = f"\nif ({self.truth()}) break;" if kind == 1 else ""
            body = f"{self.block(inside=True)}{leave}"
            found = f"for (int {name} = {first}; {name} < {last}; {name} += {step}) {{\n{body}\n}}"
            self.counters.pop()
        self.depth -= 1
        return found


def data_loops(seed: int) -> str:
    """Return a function ``f``; the same seed gives the same."""
    random = Random(seed)
    writer = _Writer(random, element=random.random() < 0.4, near=random.random() < 0.5)
    body = "\n".join(writer.loop() for _ in range(random.randint(1, 2)))
    left = [f"o{v}[i] = {v};" for v in "abst" if random.random() < 0.6] or ["os[i] = s;"]
    at = "x[i]" if writer.near else "x[i & 63]"
    first = f"int a = i & 7, b = 3;\ndouble s = 0.5, t = {at};"
    return f"{HEAD}{{\nfor (int i = 0; i < n; i++) {{\n{first}\n{body}\n{' '.join(left)}\n}}\n}}\n"
