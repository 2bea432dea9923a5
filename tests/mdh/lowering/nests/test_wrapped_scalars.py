"""Scalars that hold what the iteration before read are read again, and loops carry them no more."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import polyloom
from polyloom.diagnostics import Source
from polyloom.frontends.c import read_c
from polyloom.ir.transform.specialise import specialise
from polyloom.mdh.lowering.nests.scalars_in_registers import scalars_in_registers
from polyloom.mdh.lowering.nests.wrapped_scalars import wrapped_scalars
from polyloom.mdh.native.device import choose
from polyloom.mdh.native.execution import plain, tree_of
from polyloom.mdh.tree.evaluate import evaluate
from polyloom.mdh.tree.nodes import Code, For, Function, LetInteger, Statement, Store
from polyloom.mdh.tree.rewrite import loads_of, rewritten, substituted, walk
from polyloom.polyhedra.loops.tree import Name
from polyloom.scop.transform import host_program

HEAD = "void kernel(int n, double a[n], double b[n], double c[n])"
ALL = "for (int i = 0; i < n; i++)"
AGAIN = {
    "a value": f"double y = b[n - 1]; {ALL} {{ a[i] = b[i] + y; y = b[i]; }}",
    "two values": f"double x = b[0], y = 1; {ALL} {{ a[i] = b[i] - x * y; x = y; y = b[i]; }}",
    "last value": "double y = 1; for (int i = 2; i < n; i++) { a[i] = b[i] * y; y = c[i - 1]; } c[0] = y;",
    "a product": f"double y = b[n - 1]; {ALL} {{ a[i] = b[i] + y; y = b[i] * c[i]; }}",
    "a value that is used at once": (
        f"double y = 1; {ALL} {{ double x = b[i] * c[i] - i; a[i] = x + y; y = x; }} c[0] = y;"
    ),
    "a product and a value": f"double x = 1, y = 2; {ALL} {{ a[i] = x - y; x = b[i]; y = b[i] + c[i]; }}",
    "under a condition": f"double y = 0; {ALL} {{ if (b[i] > 1) a[i] = y; y = c[i]; }}",
}
OF_KNOWN_SIZES = {
    "an index": f"int k = n - 1; {ALL} {{ a[i] = b[i] - b[k]; k = i; }}",
    "two indices": f"int k = 1, l = 0; {ALL} {{ a[i] = b[k] - c[l] * b[i]; l = k; k = i; }}",
}
CARRIED = {
    "what the loop stores": f"double y = 0; {ALL} {{ b[n - 1 - i] = a[i] + y; y = b[i]; }}",
    "stored sometimes": f"double y = 0; {ALL} {{ a[i] = b[i] + y; if (c[i] > 1) y = b[i]; }}",
    "a sum": f"double y = 0; {ALL} {{ a[i] = b[i] + y; y = y * 0.5 + c[i]; }}",
    "of what the loop stores": f"double y = 0; {ALL} {{ b[n - 1 - i] = a[i] + y; y = b[i] * c[i]; }}",
    "much to do": f"double y = 0; {ALL} {{ a[i] = b[i] + y; y = 1 / (b[i] * b[i] + 1) * sqrt(c[i]); }}",
    "used behind": f"double y = 0, x = 0; {ALL} {{ a[i] = y + x; y = b[i]; x = x * y + 1; }}",
    "three": f"double x = 1, y = 2, z = 3; {ALL} {{ a[i] = x + y * z; x = y; y = z; z = b[i]; }}",
}
FORMS = AGAIN | OF_KNOWN_SIZES | CARRIED


def scalars_of(body: str, sizes: dict[str, int]) -> Function:
    """Return a program for one thread, with its scalars in registers."""
    program = host_program(next(iter(read_c(Source("kernel.c", f"{HEAD} {{\n{body}\n}}\n"))))).program
    known = specialise(program, sizes) if sizes else program
    return scalars_in_registers(tree_of(known, plain, choose("native", threads=1)))


def carried(function: Function) -> set[str]:
    """Return the scalars that a loop loads and stores."""
    loops = [list(walk(s.body)) for s in walk(function.body) if isinstance(s, For)]
    stored = [{s.array for s in inside if isinstance(s, Store) and not s.subscripts} for inside in loops]
    loaded = [{load.array for s in inside for load in loads_of(s)} for inside in loops]
    return {name for one, other in zip(stored, loaded, strict=True) for name in one & other}


@pytest.mark.parametrize("form", FORMS)
def test_the_same_values_and_nothing_carried(form: str) -> None:
    for n in (2, 3, 9) if form in OF_KNOWN_SIZES else (0,):
        before = scalars_of(FORMS[form], {"n": n} if n else {})
        after = wrapped_scalars(before)
        assert carried(before)
        assert bool(carried(after)) == (form in CARRIED)
        for size in (n,) if n else (1, 2, 3, 4, 9):
            rng = np.random.default_rng(size)
            given = {name: 2 * rng.random(size) for name in "abc"}
            wanted = evaluate(before, given, {"n": size})
            for name, found in evaluate(after, given, {"n": size}).items():
                np.testing.assert_array_equal(found, wanted[name], err_msg=f"{name}, n = {size}")


def test_a_place_that_the_loop_itself_names_stays() -> None:
    """The next iteration has another integer of that name."""
    before = scalars_of(AGAIN["a value"], {})

    def named(statement: Statement) -> Code:
        if not isinstance(statement, For):
            return (statement,)
        inside = substituted(statement.body, statement.iterator, Name("at"))
        return (replace(statement, body=(LetInteger("at", Name(statement.iterator)), *inside)),)

    before = replace(before, body=rewritten(before.body, named))
    after = wrapped_scalars(before)
    rng = np.random.default_rng(5)
    given = {name: 2 * rng.random(9) for name in "abc"}
    wanted = evaluate(before, given, {"n": 9})
    np.testing.assert_array_equal(evaluate(after, given, {"n": 9})["a"], wanted["a"])


def test_beside_c(tmp_path: Path) -> None:
    path = tmp_path / "kernel.c"
    path.write_text(
        f"{HEAD} {{\n{AGAIN['two values']}\n{OF_KNOWN_SIZES['an index'].replace('a[i]', 'c[i]', 1)}\n}}\n"
    )
    made = polyloom.compile(path, device="native", threads=1, check=True)
    for n in (2, 1000):
        rng = np.random.default_rng(n)
        made(n=n, **{name: rng.random(n) for name in "abc"})
