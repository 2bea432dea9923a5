"""What may be read behind a statement is told of every read that a run of the function shows."""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from pycparser import c_ast, c_parser

from polyloom.frontends.c.scope.liveness import is_live_behind
from polyloom.frontends.c.syntax.nodes import nodes_in

COMPILER = shutil.which("gcc") or shutil.which("cc")
COUNT = 400

HEAD = """
#include <setjmp.h>
#include <stdio.h>
static unsigned long seed;
static int steps, placed, live;
static jmp_buf out;
static int c(void) {
  if (++steps > 400) longjmp(out, 1);
  seed = seed * 6364136223846793005UL + 1442695040888963407UL;
  return seed >> 40 & 1;
}
static int four(int v) { (void)v; return 2 * c() + c(); }
static int use(int v) { (void)v; live |= placed; return c(); }
static int other(int v) { (void)v; return c(); }
static int new(void) { placed = 0; return c(); }
static void place(void) { placed = 1; }
"""
MAIN = """
int main(void) {
  for (int k = 0; k < COUNT; k++) {
    live = 0;
    for (int t = 1; t < 1000; t++) {
      seed = t * 77;
      steps = placed = 0;
      if (!setjmp(out)) functions[k](0);
    }
    printf("%d ", live);
  }
}
"""


class Made:
    """A function at random with one ``place()``, reads ``use(x)``, writes ``x = new()``, and jumps."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.labels = [f"L{k}" for k in range(self.random.randint(0, 3))]
        self.open, self.placed = [*self.labels], False
        body = " ".join(self.statement(0) for _ in range(self.random.randint(3, 9)))
        first = "" if self.placed else "place(); "
        self.text = f"{first}{body} {' '.join(f'{label}: ;' for label in self.open)}"

    def value(self, depth: int = 0) -> str:
        def inner() -> str:
            return "c()" if depth > 1 else self.value(depth + 1)

        forms = [
            "use(x)",
            "(x = new())",
            f"(c() && {inner()})",
            f"(c() ? {inner()} : {inner()})",
            f"(c() || {inner()})",
        ]
        return self.random.choice([*forms, "c()", "c()", "c()"])

    def statement(self, depth: int, jumps: tuple[str, ...] = ()) -> str:
        label = f"{self.open.pop()}: " if self.open and self.random.random() < 0.2 else ""
        if not self.placed and self.random.random() < 0.12:
            self.placed = True
            return f"{label}place();"
        return label + self.random.choice(self.forms(depth, jumps))()

    def forms(self, depth: int, jumps: tuple[str, ...]) -> list[Callable[[], str]]:
        def inner(*more: str) -> str:
            return self.statement(depth + 1, (*jumps, *more))

        loop = ("break", "continue")
        plain: list[Callable[[], str]] = [
            lambda: "use(x);",
            lambda: "x = new();",
            lambda: "{ int x = other(0); other(x); x = c(); }",
            *([lambda: f"{self.random.choice(jumps)};"] if jumps else []),
            *([lambda: f"if (c()) goto {self.random.choice(self.labels)};"] if self.labels else []),
            lambda: "if (c()) return;",
        ]
        nested: list[Callable[[], str]] = [
            lambda: f"if ({self.value()}) {inner()} else {inner()}",
            lambda: f"if ({self.value()}) {inner()}",
            lambda: f"for ({self.value()}; {self.value()}; {self.value()}) {inner(*loop)}",
            lambda: f"while ({self.value()}) {inner(*loop)}",
            lambda: f"do {inner(*loop)} while ({self.value()});",
            lambda: f"switch (four({self.value()})) {{ case 0: {inner('break')} case 1: {inner('break')} }}",
            lambda: f"switch (four({self.value()})) {{ case 2: {inner('break')} default: {inner('break')} }}",
            lambda: f"{{ {inner()} {inner()} {inner()} }}",
        ]
        return plain if depth > 3 else plain + nested


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.skipif(COMPILER is None, reason="there is no C compiler to compare with")
def test_every_read_that_is_seen_is_told(tmp_path: Path) -> None:
    texts = [Made(seed).text for seed in range(COUNT)]
    functions = [f"static void f{k}(int x) {{ {text} }}" for k, text in enumerate(texts)]
    listed = ", ".join(f"f{k}" for k in range(COUNT))
    table = f"static void (*functions[])(int) = {{ {listed} }};"
    main = MAIN.replace("COUNT", str(COUNT))
    (tmp_path / "reads.c").write_text("\n".join([HEAD, *functions, table, main]))
    build = [COMPILER or "cc", "-w", "-o", str(tmp_path / "reads"), str(tmp_path / "reads.c")]
    subprocess.run(build, check=True)
    seen = subprocess.run([tmp_path / "reads"], capture_output=True, text=True, check=True).stdout.split()
    told = [live(text) for text in texts]
    assert [t for t, s, live_ in zip(texts, seen, told, strict=True) if s == "1" and not live_] == []
    assert sum(told) < COUNT * 0.8


def live(text: str) -> bool:
    body = c_parser.CParser().parse(f"void f(int x) {{ {text} }}").ext[0].body
    (place,) = (n for n in nodes_in(body) if isinstance(n, c_ast.FuncCall) and n.name.name == "place")
    return is_live_behind(body, place, "x")
