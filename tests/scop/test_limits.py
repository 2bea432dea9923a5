"""What is asked of isl is bounded, and what is too hard runs sequentially, and right."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import islpy as isl
import pytest
from test_seeded_c import differences

from polyloom.diagnostics import Source, Unsupported
from polyloom.frontends.c import read_c
from polyloom.ir.host import HostProgram, MdHom
from polyloom.ir.verification.programs import InvalidProgram
from polyloom.polyhedra import effort
from polyloom.polyhedra.effort import TooHardError, at_most, none_outside
from polyloom.polyhedra.loops.generate import WrongLoops
from polyloom.polyhedra.loops.tree import leaves_in
from polyloom.scop import transform
from polyloom.scop.model import Scop
from polyloom.scop.transform import ReductionMode, host_program, serial_program
from samples import LATER
from seeded_c import meanings, program

SEEDS = range(6)


def part(text: str) -> Scop:
    (scop,) = read_c(Source("k.c", text))
    return scop


def raising(fault: Exception) -> Any:
    def function(*_: object, **__: object) -> None:
        raise fault

    return function


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("dependences", isl.Error("isl_domain_factor")),
        pytest.param("dependences", TooHardError("the dependences"), marks=LATER),
        pytest.param("arrange", isl.Error("no schedule"), marks=LATER),
        ("nest", WrongLoops("the loops")),
    ],
)
def test_where_isl_fails_the_part_runs_sequentially_and_right(
    name: str, fault: Exception, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Each question that isl may fail at; where even its loops are wrong, those of the constraints run."""
    cases = [program(seed) for seed in SEEDS]
    monkeypatch.setattr(transform, name, raising(fault))
    for case, expected in zip(cases, meanings(cases, tmp_path), strict=True):
        scop = part(case.text)
        found = serial_program(scop) if name == "nest" else host_program(scop).program
        assert differences(case, found, expected) == [], case.text


@pytest.mark.slow
@pytest.mark.ci
def test_a_form_that_is_no_program_gives_way_to_the_sequential_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A fault of ours, found at the very end, costs speed and not the program."""
    cases = [program(seed) for seed in SEEDS]
    forms: list[str] = []

    def verified(name: str, found: HostProgram) -> HostProgram:
        forms.append(name)
        if any(isinstance(node, MdHom) for node in leaves_in(found.body)):
            raise InvalidProgram("injected")
        return found

    monkeypatch.setattr(transform, "at_the_end", verified)
    monkeypatch.setattr(transform, "is_on", lambda: False)
    for case, expected in zip(cases, meanings(cases, tmp_path), strict=True):
        found = host_program(part(case.text))
        assert [r.code for r in found.remarks] in (["scop-fallback"], []), case.text
        assert differences(case, found.program, expected) == [], case.text
    assert len(forms) > len(cases)


def test_where_passes_are_verified_such_a_form_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transform, "at_the_end", raising(InvalidProgram("injected")))
    with pytest.raises(InvalidProgram):
        host_program(part(program(0).text))


def test_a_fault_of_the_form_in_rows_leaves_the_wavefront(monkeypatch: pytest.MonkeyPatch) -> None:
    text = """void kernel(int n, double a[n][n]) {
      for (int i = 1; i < n; i++) for (int j = 1; j < n; j++) a[i][j] += a[i - 1][j] + a[i][j - 1];
    }"""
    made = transform._parallel

    def parallel(*given: Any, **options: Any) -> Any:
        if not options.get("wavefronts", True):
            raise InvalidProgram("injected")
        return made(*given, **options)

    assert host_program(part(text)).program.in_rows is not None
    monkeypatch.setattr(transform, "_parallel", parallel)
    monkeypatch.setattr(transform, "is_on", lambda: False)
    found = host_program(part(text))
    assert found.program.in_rows is None
    assert any(isinstance(node, MdHom) for node in leaves_in(found.program.body))


MODES = [pytest.param(mode, marks=[] if mode is ReductionMode.DETECT else LATER) for mode in ReductionMode]


@pytest.mark.parametrize("operations", [1, 1000, 20_000])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.slow
@pytest.mark.ci
def test_any_budget_gives_a_right_program(
    operations: int, mode: ReductionMode, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Given up at whatever question: a remark says at which."""
    cases = [program(seed) for seed in range(4)]
    monkeypatch.setattr(transform, "_PARALLEL", operations)
    for case, expected in zip(cases, meanings(cases, tmp_path), strict=True):
        found = host_program(part(case.text), mode)
        assert differences(case, found.program, expected) == [], case.text
        fallback = [r for r in found.remarks if r.code == "scop-fallback"]
        assert operations > 1 or "isl was given up on a question" in fallback[0].notes[0]


def test_where_nothing_is_left_a_diagnostic_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transform, "_PARALLEL", 1)
    monkeypatch.setattr(transform, "_SERIAL", 1)
    with pytest.raises(Unsupported) as refused:
        host_program(part(loops(2)))
    (found,) = refused.value.diagnostics
    assert found.code == "scop-too-hard"
    assert "the loops of `k`" in found.notes[0]


def loops(count: int, body: str = "a[i] = b[i] * {k};") -> str:
    """Return a part of so many loops, one after another."""
    texts = [f"for (int i = 1; i < n; i++) {body.format(k=k, before=k - 1)}" for k in range(1, count)]
    texts.append("for (int i = 0; i < n; i++) b[i] += a[i];")
    return "void k(int n, int a[n], int b[n]) {\n#pragma scop\n" + "\n".join(texts) + "\n#pragma endscop\n}"


def cost(text: str) -> int:
    """Return how many operations of isl a part takes."""
    with at_most(10**9):
        scop = part(text)
        before = effort.spent()
        host_program(scop)
        return effort.spent() - before


@pytest.mark.parametrize(("body", "most"), [("a[i] = b[i] * {k};", 2.7), ("b[i] = b[i - 1] + a[i];", 3.6)])
@pytest.mark.slow
@pytest.mark.ci
def test_what_isl_does_grows_less_than_the_square_of_the_statements(body: str, most: float) -> None:
    """A read before several writes has a dependence to each of them: that part is a square."""
    cost(loops(10, body))
    assert cost(loops(60, body)) < most * cost(loops(30, body))


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("body", ["a[i] = b[i] * {k};"])
def test_two_hundred_statements(body: str) -> None:
    started = time.process_time()
    found = host_program(part(loops(200, body)))
    assert time.process_time() - started < 30
    assert all(isinstance(node, MdHom) for node in found.program.body)


HARD = {
    "skewed": """
void kernel(int n, int m, int b[48], int A[48][48]) {
#pragma scop
  for (int i = n; i >= 0; i--) {
    for (int z = 0; z < 8; z++) A[i - z + 7][12 + z] += 3;
    for (int j = i / 2; j <= (i < m ? i : m); ++j)
      for (int k = j; k < n + m; k++) {
        if (i % 3 == 1) continue;
        if (5 >= i + j + k)
          A[3 * k + i == j ? 1 : j][i / 2] += (A[1][i % 3] % -3) * (b[j - k + 6] - b[i + 6]);
      }
  }
#pragma endscop
}""",
    "quotients": """
void kernel(int n, int m, int a[48], int b[48], int B[48][48]) {
#pragma scop
  for (int i = 0; i < m; i += 3)
    if (i % 2 == 1)
      for (int j = m - 1; j >= i; j -= 2)
        for (int k = j + 1; k < n / 2; k++)
          for (int l = 0; l < n / 2; l++) {
            if (a[i < k ? i : k] >= 0) {
              if (l >= 1 && l < n - 1) {
                if (B[(6 - i) >> 1][k] >= 3) {
                  a[k % 6] = b[i];
                  if (k >= 1 && !(i == 1)) b[(l + j) % 4] &= l;
                }
              } else
                a[2 * (l - k) + l + 2] = a[2 * (3 * l + j) + 5];
            }
            if (k % 3 == 1) break;
          }
#pragma endscop
}""",
    "factors": """
void kernel(int n, int m, int a[48], long b[48]) {
#pragma scop
  for (int i = 0; i < m; i++)
    for (int j = 0; j < n; j++)
      for (int k = j; k < i; k++) {
        if (i > 2 || i == n - 1) a[0] = j + b[j];
        else a[i % 2] = b[k + 2];
      }
#pragma endscop
}""",
}


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("name", HARD)
@pytest.mark.parametrize("mode", MODES)
def test_hard_parts_take_seconds_at_most(name: str, mode: ReductionMode) -> None:
    started = time.process_time()
    host_program(part(HARD[name]), mode)
    assert time.process_time() - started < 5


def test_every_question_has_a_limit() -> None:
    scop = part(loops(3))
    with none_outside():
        for mode in ReductionMode:
            assert not [r for r in host_program(scop, mode).remarks if r.code == "scop-fallback"]
        serial_program(scop)
        with pytest.raises(isl.Error):
            isl.Set("{ [i] : 0 <= i < 4 }").lexmin()
