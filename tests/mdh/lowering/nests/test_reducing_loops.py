"""Sums of floats whose order is free, as loops of which the C compiler makes vectors."""

from __future__ import annotations

from dataclasses import replace

import pytest

from c_host_programs import host_programs_of
from polyloom.ir.host import HostProgram
from polyloom.mdh.native.device import choose
from polyloom.mdh.native.execution import tree_of
from polyloom.mdh.schedule.schedules import plain_schedule
from polyloom.mdh.tree.nodes import For, Function, Kind
from polyloom.mdh.tree.rewrite import rewritten, walk
from polyloom.mdh.tree.verify import problems

ARGUMENTS = (
    "int n, int m, const float s[n], const double t[n][m], float r[m], double q[n], int k[n], int p[m]"
)
SUMS = {
    "products of neighbours": ("for (int l = 0; l < m; l++) {{ {0} r[l] = a; }}", "n - l", "s[i] * s[i + l]"),
    "rows": ("for (int l = 0; l < n; l++) {{ {0} q[l] = a; }}", "m", "t[l][i]"),
}
OTHERS = {
    "columns": ("for (int l = 0; l < m; l++) {{ {0} r[l] = a; }}", "n", "t[i][l]"),
    "of so many points": ("for (int l = 0; l < m; l++) {{ {0} r[l] = a; }}", "70", "s[i] * s[i + l]"),
    "where data says": ("for (int l = 0; l < m; l++) {{ {0} r[l] = a; }}", "n", "s[k[i]] * l"),
    "of integers": ("for (int l = 0; l < m; l++) {{ {0} p[l] = a; }}", "n", "k[i] * l"),
}


def program(form: tuple[str, str, str], kind: str = "float") -> HostProgram:
    around, end, term = form
    body = around.format(f"{kind} a = 1; for (int i = 0; i < {end}; i++) a += {term};")
    (found,) = host_programs_of(f"void f({ARGUMENTS}) {{\n#pragma scop\n{body}\n#pragma endscop\n}}")
    return found


def tree(found: HostProgram) -> Function:
    def point_by_point(hom: object, around: object, device: object) -> object:
        return plain_schedule(len(hom.extents), len(hom.inputs))  # type: ignore[attr-defined]

    return tree_of(found, point_by_point, choose("native", threads=1))  # type: ignore[arg-type]


def reducing(function: Function) -> int:
    return sum(isinstance(s, For) and s.kind is Kind.REDUCING for s in walk(function.body))


@pytest.mark.parametrize("name", SUMS)
def test_sums_of_neighbours_are_combined_in_any_order(name: str) -> None:
    assert reducing(tree(program(SUMS[name]))) == 1


@pytest.mark.parametrize("name", OTHERS)
def test_other_loops_stay(name: str) -> None:
    assert not reducing(tree(program(OTHERS[name], "int" if name == "of integers" else "float")))


def test_strict_programs_stay() -> None:
    assert not reducing(tree(replace(program(SUMS["rows"]), strict=True)))


def test_what_is_no_total_is_refused() -> None:
    """A loop that only stores what each of its points computes has nothing to combine."""
    (found,) = host_programs_of(
        "void f(int n, const float s[n], float r[n]) { for (int i = 0; i < n; i++) r[i] = 2 * s[i]; }"
    )
    function = tree(found)
    made = rewritten(function.body, lambda s: (replace(s, kind=Kind.REDUCING) if isinstance(s, For) else s,))
    assert not problems(function)
    assert any("is no total" in problem for problem in problems(replace(function, body=made)))
