"""Barriers that nobody needs go, the others stay: threads one after another compute the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import takewhile
from math import prod

import numpy as np
import pytest

from c_host_programs import host_programs_of
from polyloom.ir.evaluation.programs import evaluate_host
from polyloom.ir.evaluation.random_inputs import random_inputs
from polyloom.ir.host import HostProgram
from polyloom.ir.integers import integer
from polyloom.ir.transform.specialise import specialise
from polyloom.mdh.lowering.asked import asked
from polyloom.mdh.lowering.program_tree import program_tree
from polyloom.mdh.print.c_source import c_source
from polyloom.mdh.tree.evaluate import evaluate
from polyloom.mdh.tree.nodes import ZERO, Code, For, Function, Kind, LetInteger, Mark, Statement, counted
from polyloom.mdh.tree.rewrite import walk, with_blocks
from polyloom.mdh.tree.team_barriers import without_needless_barriers
from polyloom.mdh.tree.trips import nested_groups, trip_count
from polyloom.mdh.tree.verify import verify
from polyloom.polyhedra.loops.tree import Name, Number, Operation, sum_of

I = "for (int i = 0; i < n; i++)"  # noqa: E741
IJ = f"{I} for (int j = 0; j < n; j++)"
SEVEN = "for (int i = 0; i < 7; i++)"

CASES: dict[str, tuple[str, str]] = {
    "other arrays": (f"{I} x[i] = a[i] * 2; {SEVEN} y[i] = b[i] * 3;", "-w"),
    "the same iteration": (f"{SEVEN} x[i] = a[i] * 2; {I} b[i] = a[i]; {I} y[i] = b[i] + 1;", "--w"),
    "the neighbour": (f"{I} x[i] = a[i] * 2; {I} y[i] = x[(i + 1) % n];", "ww"),
    "what a neighbour read": (f"{I} x[i] = a[i + 1] * 2; {SEVEN} a[i] = 3;", "ww"),
    "other bounds": (f"{I} x[i] = a[i] * 2; {SEVEN} y[i] = x[i];", "ww"),
    "two loops before": (f"{I} x[i] = a[i] * 2; {SEVEN} b[i] = a[i]; {I} y[i] = x[n - 1 - i];", "-ww"),
    "rows, then columns": (f"{IJ} A[i][j] = B[i][j]; {IJ} C[i][j] = A[j][i];", "ww"),
    "nested loops as one": (f"{IJ} A[i][j] = B[i][j]; {IJ} C[i][j] += A[i][j];", "-w"),
    "in a loop in order": (
        f"for (int t = 0; t < 3; t++) {{ {I} x[i] += a[i]; {I} y[i] += x[i] * t; {I} a[i] = y[n - 1 - i]; }}",
        "-ww",
    ),
}


def program(body: str) -> HostProgram:
    arrays = "int a[40], int b[40], int x[40], int y[40], int A[12][12], int B[12][12], int C[12][12]"
    text = f"void f(int n, {arrays})\n{{\n#pragma scop\n{body}\n#pragma endscop\n}}"
    (found,) = host_programs_of(text)
    return specialise(found, {"n": 9})


def groups(code: Code) -> Iterator[For]:
    """Yield the loops that a team shares, whole nests of them once."""
    inner = {id(loop) for s in walk(code) if _is_group(s) for loop in nested_groups(s)[1:]}
    yield from (s for s in walk(code) if _is_group(s) and id(s) not in inner)


def _is_group(statement: Statement) -> bool:
    return isinstance(statement, For) and statement.kind is Kind.GROUP


def waiting(function: Function) -> str:
    return "".join("-" if loop.nowait else "w" for loop in groups(function.body))


def one_after_another(code: Code, threads: int) -> Code:
    """Return loops in which each thread of a team does a whole run of them, the last thread first."""
    found: list[Statement] = []
    while code:
        goes_on = list(takewhile(lambda s: isinstance(s, Mark) or getattr(s, "nowait", False), code))
        run = code[: len(goes_on) + 1]
        code = code[len(run) :]
        if not _is_group(run[0]):
            found += (with_blocks(s, lambda block: one_after_another(block, threads)) for s in run)
            continue
        for me in reversed(range(threads)):
            found += (share(loop, me, threads) for loop in run if isinstance(loop, For))
    return tuple(found)


def share(loop: For, me: int, threads: int) -> For:
    loops = nested_groups(loop)
    counts = [integer(trip_count(each), {}) for each in loops]
    first, end = (prod(counts) * k // threads for k in (me, me + 1))
    lets = []
    for k, each in enumerate(loops):
        at = Operation("%", (Operation("/", (Name("at"), Number(prod(counts[k + 1 :])))), Number(counts[k])))
        lets.append(LetInteger(each.iterator, sum_of([(integer(each.step, {}), at), (1, each.start)])))
    body: Code = (*lets, *loops[-1].body)
    return replace(counted("at", Number(end), body), start=Number(first) if first else ZERO)


def assert_same(made: HostProgram, function: Function, threads: int) -> None:
    inputs = random_inputs(made)
    found = evaluate(replace(function, body=one_after_another(function.body, threads)), inputs, {})
    for name, array in evaluate_host(made, {}, inputs).items():
        if name in found:
            assert np.array_equal(found[name], array), name


@pytest.mark.parametrize("name", CASES)
def test_who_waits(name: str) -> None:
    body, wanted = CASES[name]
    made = program(body)
    function = without_needless_barriers(program_tree(made))
    assert waiting(function) == wanted
    assert c_source(function).count("team->wait(") == wanted[:-1].count("w") + ("t = 0" in body)
    for threads in (2, 3):
        assert_same(made, function, threads)


@pytest.mark.parametrize("name", CASES)
def test_the_verifier_finds_no_thread_that_does_not_wait(name: str) -> None:
    made = program(CASES[name][0])
    verdict = verify(without_needless_barriers(program_tree(made)), asked(made))
    assert verdict.wrong == ()


@pytest.mark.parametrize("name", CASES)
def test_one_barrier_too_few(name: str) -> None:
    """Where a barrier that stayed is taken away the verifier says so, and threads compute something else."""
    made = program(CASES[name][0])
    function = without_needless_barriers(program_tree(made))
    kept = [loop for loop in groups(function.body) if not loop.nowait][:-1]
    for loop in kept:
        body = _changed(function.body, loop)
        wrong = replace(function, body=body)
        said = verify(wrong, asked(made)).wrong
        assert any("no barrier is between" in text or "no parallel one" in text for text in said)
        if "no parallel one" in said[0]:
            continue
        with pytest.raises(AssertionError):
            assert_same(made, wrong, 2)
            assert_same(made, wrong, 3)
            assert_same(made, wrong, 9)


def _changed(code: Code, loop: For) -> Code:
    return tuple(
        replace(loop, nowait=True) if s is loop else with_blocks(s, lambda block: _changed(block, loop))
        for s in code
    )


def test_somebody_must_wait_at_the_end() -> None:
    function = program_tree(program(CASES["other arrays"][0]))
    last = list(groups(function.body))[-1]
    wrong = replace(function, body=_changed(function.body, last))
    assert any("no parallel one follows" in text for text in verify(wrong).wrong)


def test_loops_shared_by_work_are_no_others() -> None:
    function = program_tree(program(CASES["the same iteration"][0]))
    by_work = replace(
        function, body=tuple(replace(s, by_work=True) if _is_group(s) else s for s in function.body)
    )
    assert waiting(without_needless_barriers(by_work)) == "-ww"


def test_without_effort_barriers_stay() -> None:
    function = program_tree(program(CASES["nested loops as one"][0]))
    assert waiting(without_needless_barriers(function, effort=1)) == "ww"
