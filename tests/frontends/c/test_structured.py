"""``continue`` on data, ``switch`` and ``do`` loops that run once: what gcc makes of them, or a refusal."""

from __future__ import annotations

import islpy as isl
import numpy as np
import pytest

import polyloom
from polyloom.diagnostics import PolyloomError, Source
from polyloom.frontends.c import read_c

ACCEPTED = {
    "continue": "if (x[i] < 0 || i == 3) continue; y[i] += x[i]; x[i] = -1;",
    "two ways": "if (x[i] > 0) { y[i] = 1; if (x[i] > 1) continue; y[i] = 2; } else { x[i] = 3; continue; "
    "} x[i] = y[i];",
    "block": "{ if (x[i] == 1) continue; y[i] = 4; } x[i]++;",
    "condition changed": "if (x[i] > 0) { x[i] = -x[i]; continue; } x[i] = 2; y[i] = x[i];",
    "own loop": "for (int j = 0; j < 3; j++) { if (x[i] == j) continue; y[i] += j; } y[i]++;",
    "cases": "switch (x[i]) { case -1: y[i] = 5; break; case 1: case 2: y[i] = x[i]; default: x[i] = 7; }",
    "numbers of all kinds": "switch (x[i]) { case 010: case 0x7fffffffu: y[i] = 5; break; "
    "case '\\2': case 0: y[i] = 3; }",
    "default first": "switch (x[i] & 3) { default: y[i] = 1; case 2: y[i] += 2; break; case 1: y[i] += 4; }",
    "leaving a case": "switch (x[i]) { case 1: { int t = y[i]; if (t > 0) break; y[i] = t; } break; case 2: "
    "x[i]--; }",
    "continue in a case": "switch (x[i]) { case 1: continue; case 2: y[i]++; } x[i] += 2;",
    "case in a case": "switch (x[i]) { case 1: switch (y[i]) { case 1: x[i] = 9; break; case -2: continue; } "
    "break; default: y[i] = 0; }",
    "loop in a case": "switch (i & 1) { case 0: for (int j = 0; j < 2; j++) { if (j > i) break; y[i] += j; } "
    "break; default: y[i] = x[i]; }",
    "changes its own": "switch (x[i]) { case 1: x[i] = 2; break; case 2: x[i] = 1; y[i] = 3; break; }",
    "once": "do { int t = x[i]; x[i] = y[i]; y[i] = t; } while (0); y[i]++;",
    "once, left": "do { if (x[i]) break; y[i] = 1; if (x[i] < -1) continue; y[i] = 2; } while (0); x[i]++;",
    "once, no block": "if (x[i]) do y[i] = x[i]; while (0); else do ; while (0);",
    "once, met again": "do { if (x[i]) { if (y[i]) break; y[i] = 1; } x[i] = 2; } while (0);",
    "nothing": "switch (x[i]) { case 1: ; } switch (y[i]) { }",
}

REFUSED = {
    "meet again": "if (x[i]) { if (y[i]) continue; y[i] = 1; } x[i] = 2;",
    "hidden name": "if (x[i]) { int n = 3; if (y[i]) continue; y[i] = n; } else continue; x[i] = n;",
    "more than once": "do { y[i]++; } while (1);",
    "side effect": "switch (x[i]++) { case 1: y[i] = 2; }",
    "a case beyond int": "switch (x[i]) { case 0x100000001: y[i] = 2; }",
    "a case as wide as long": "switch (x[i]) { case 1L << 32 | 1: y[i] = 2; }",
    "before a label": "switch (x[i]) { int t; case 1: y[i] = 2; }",
    "inside a loop": "switch (x[i]) { case 1: for (int j = 0; j < 2; j++) { case 2: y[i] = 2; } }",
}


def program(body: str) -> str:
    return f"void f(int n, int x[n], int y[n])\n{{\n  for (int i = 0; i < n; i++) {{\n    {body}\n  }}\n}}\n"


@pytest.mark.parametrize("name", ACCEPTED)
def test_jumps_that_choose(name: str) -> None:
    result = polyloom.load(program(ACCEPTED[name])).run(n=40, check=True)
    assert result.passed
    assert result.check is not None
    assert "the C program" in result.check.by
    assert any(len(np.unique(array)) > 1 for array in result.outputs.values()) or name == "nothing"


@pytest.mark.parametrize("name", REFUSED)
def test_jumps_that_do_more(name: str) -> None:
    with pytest.raises(PolyloomError) as refusal:
        polyloom.load(program(REFUSED[name])).run(n=40)
    assert refusal.value.diagnostics[0].code in ("c-data-jump", "c-statement", "c-while")


def test_where_no_data_plays_a_part_cases_are_domains() -> None:
    """Of two statements each has the iterations that choose it, and no condition."""
    body = "switch (i % 3) { case 0: x[i] = 1; break; case 1: y[i] = 2; }"
    ((scop,),) = [read_c(Source("f.c", program(body)), "f")]
    assert [s.condition for s in scop.statements] == [None, None]
    wanted = [isl.Set(f"[n] -> {{ S{k + 1}[i] : 0 <= i < n and i mod 3 = {k} }}") for k in range(2)]
    assert all(s.domain.is_equal(w) for s, w in zip(scop.statements, wanted, strict=True))


def test_a_loop_that_runs_once_may_be_the_whole_part() -> None:
    text = "void f(int n, int x[n], int y[n]) { do { for (int i = 0; i < n; i++) y[i] += x[i]; } while (0); }"
    assert polyloom.load(text).run(n=40, check=True).passed
