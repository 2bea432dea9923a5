"""`--check` fails where dependences, planning or fusion are wrong: broken compilers, one line each.

The programs are such that also work-items that run in order, one after another, go wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

import polyloom
from polyloom import run
from polyloom.diagnostics import PolyloomError
from polyloom.ir.host import uses
from polyloom.ir.transform import fuse_maps
from polyloom.mdh.lowering import loop_fusion as loop_fusion
from polyloom.mdh.native import execution
from polyloom.mdh.native.device import all_devices
from polyloom.scop import transform
from polyloom.scop.dependence import dependences, reductions
from polyloom.scop.dependence.dependences import Dependences, Kind
from polyloom.scop.lowering import fusion
from polyloom.scop.schedule import hyperplanes, scheduling
from samples import one_in

pytestmark = pytest.mark.skipif(not all_devices(), reason="there is no device")

Patch = pytest.MonkeyPatch
N = 40


def only(wanted: Callable[[Any], bool]) -> Callable[[Patch], None]:
    """Return a mutant that keeps some dependences."""

    def mutate(patch: Patch) -> None:
        whole = transform.dependences

        def some(*arguments: Any) -> Dependences:
            found = whole(*arguments)
            return replace(found, edges=tuple(e for e in found.edges if wanted(e)))

        patch.setattr(transform, "dependences", some)

    return mutate


def no_conditions(patch: Patch) -> None:
    """Take a conditional write for sure."""
    whole = dependences._Use._writes
    certain = lambda use, surely: whole(use, surely=True).union(whole(use, surely=False))  # noqa: E731
    nothing = lambda use: whole(use, surely=True).subtract(whole(use, surely=True))  # noqa: E731
    patch.setattr(
        dependences._Use, "_writes", lambda use, *, surely: certain(use, surely) if surely else nothing(use)
    )


def plans_in_reverse(patch: Patch) -> None:
    whole = transform.arrange
    patch.setattr(transform, "arrange", lambda *arguments: tuple(reversed(whole(*arguments))))


def always_parallel(patch: Patch) -> None:
    patch.setattr(hyperplanes, "_leaves", lambda *_: False)


def planes_backwards(patch: Patch) -> None:
    """Turn every host loop around."""
    whole = scheduling.hyperplanes

    def turned(*arguments: Any, **named: Any) -> Iterator[Any]:
        for plane in whole(*arguments, **named):
            yield {name: tuple(-c for c in row) for name, row in plane.items()}

    patch.setattr(scheduling, "hyperplanes", turned)


def always_by_snapshot(patch: Patch) -> None:
    patch.setattr(scheduling, "by_snapshot", lambda *_: True)


def every_update_commutes(patch: Patch) -> None:
    """Take a difference for an update whose operands may change places."""
    whole = reductions._signed_terms
    patch.setattr(reductions, "_signed_terms", lambda value, sign: [(1, e) for _, e in whole(value, sign)])


def maps_wait_for_nothing(patch: Patch) -> None:
    def pairs(nodes: Any) -> Iterator[tuple[int, int]]:
        homs = [k for k, node in enumerate(nodes) if hasattr(node, "terms")]
        for k in homs:
            for later in (j for j in homs if j > k):
                if uses([nodes[k]]).written & uses([nodes[later]]).read:
                    yield k, later

    patch.setattr(fusion, "_pairs", pairs)


def starts_by_buffer(patch: Patch) -> None:
    """Compare buffers where elements decide whether a node replaces what it starts from."""
    patch.setattr(fuse_maps, "_replaces", lambda *_: True)
    patch.setattr(fusion, "verify_writes", lambda *_: None)
    patch.setattr(transform, "check_written", lambda *_: None)


def everything_is_dead(patch: Patch) -> None:
    patch.setattr(fusion, "_is_dead", lambda node, body, local: uses([node]).written <= local)


def loops_in_reverse(patch: Patch) -> None:
    whole = loop_fusion._Parts.tree
    patch.setattr(
        loop_fusion._Parts, "tree", lambda parts, nodes, around: whole(parts, tuple(reversed(nodes)), around)
    )


@dataclass(frozen=True)
class Case:
    """A mutant, and a function whose results it spoils."""

    mutate: Callable[[Patch], None]
    arguments: str
    body: str
    device: str | None = None


FOR = "for (int i = 1; i < n; i++)"
DOWN = "for (int i = n - 2; i >= 0; i--)"
CASES = {
    "no dependences: a running sum": Case(only(lambda _: False), "float x[n]", f"{FOR} x[i] += x[i - 1];"),
    "no dependences: a recurrence": Case(
        only(lambda _: False), "int x[n], int y[n]", f"{FOR} x[i] = x[i - 1] * 2 - y[i] * x[i];"
    ),
    "no flow": Case(
        only(lambda e: e.kind is not Kind.FLOW), "float x[n], float y[n]", f"{DOWN} x[i] = x[i + 1] - y[i];"
    ),
    "no anti": Case(
        only(lambda e: e.kind is not Kind.ANTI),
        "float a[n + 1], float b[n], float c[n]",
        f"{FOR} {{ a[i] = c[i]; b[i] = a[i + 1]; }}",
    ),
    "no output": Case(
        only(lambda e: e.kind is not Kind.OUTPUT),
        "float a[n + 1], float c[n]",
        f"{FOR} {{ a[i] = 2 * c[i]; a[i + 1] = c[i] - 7; }}",
    ),
    "conditions": Case(
        no_conditions,
        "float a[n], float y[n], float z[n]",
        f"{FOR} {{ float t = 7; if (a[i] > 0) t = z[i]; y[i] = t + z[i]; }}",
    ),
    "plans in reverse": Case(
        plans_in_reverse, "float a[n], float b[n]", f"{FOR} a[i] = 2; {FOR} b[i] = a[i] + b[i];"
    ),
    "always parallel": Case(
        always_parallel,
        "float a[n][n]",
        f"{DOWN} for (int j = n - 2; j >= 0; j--) a[i][j] = a[i + 1][j] - a[i][j + 1] * a[i + 1][j + 1];",
    ),
    "planes backwards": Case(
        planes_backwards,
        "int a[n][n]",
        f"{DOWN} for (int j = 0; j < n; j++) a[i][j] = a[i + 1][n - 1 - j] * 2 - a[i][j];",
    ),
    "always by snapshot": Case(
        always_by_snapshot, "float x[n], float y[n]", f"{DOWN} x[i] = x[i + 1] * y[i] - x[i] * y[i + 1];"
    ),
    "updates": Case(
        every_update_commutes, "float s[1], float x[n]", "for (int i = 0; i < n; i++) s[0] = x[i] - s[0];"
    ),
    "maps wait for nothing": Case(
        maps_wait_for_nothing,
        "float A[n][n], float x[n], float y[n]",
        f"{FOR} y[i] = x[i]; {FOR} x[i] = 5; {FOR} for (int j = 0; j < n; j++) y[i] += A[i][j];",
    ),
    "starts by buffer": Case(
        starts_by_buffer,
        "int a[8], int s[8]",
        "s[0] = a[0]; for (int i = 1; i < 8; i++) s[i] = s[i - 1] + a[i];",
    ),
    "dead": Case(
        everything_is_dead,
        "float x[n], float y[n]",
        f"float t[n]; {FOR} t[i] = x[i] * 2; {FOR} y[i] = t[n - i] + t[i];",
    ),
    "loops in reverse": Case(
        loops_in_reverse,
        "float x[n], float y[n]",
        f"for (int t = 0; t < 9; t++) {{ {FOR} y[i] = x[i - 1] - x[i]; {FOR} x[i] = y[i] * 2 - x[i]; }}",
        "cpu",
    ),
}


def passed(case: Case, folder: Path) -> bool:
    path = folder / "program.c"
    path.write_text(f"void f(int n, {case.arguments})\n{{\n{case.body}\n}}\n")
    result = run(polyloom.compile(path, device=case.device), {"n": N}, check=True)
    assert result.check is not None and result.check.reading_checked
    return result.passed


@pytest.mark.parametrize("name", one_in(3, CASES))
def test_the_check_fails(name: str, tmp_path: Path, monkeypatch: Patch) -> None:
    assert passed(CASES[name], tmp_path)
    CASES[name].mutate(monkeypatch)
    monkeypatch.setattr(execution, "proved", lambda program, function: function)  # the check is alone
    try:
        assert not passed(CASES[name], tmp_path)
    except PolyloomError as fault:
        assert fault.diagnostics[0].code == "check-mismatch"
