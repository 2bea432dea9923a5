"""Samples of many cases alike: some in `make test`, others in CI, more each time, all in `make test-slow`."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any

import pytest

ParameterSet = type(pytest.param())

LATER = (pytest.mark.slow, pytest.mark.ci)
"""Not in `make test`, but in CI."""

AT_MOST = 6
"""So many cases of one test are in `make test`."""

TURNS = 4
"""Of the other cases, each run of CI takes one in so many; all have had their turn after as many runs."""


def put_off(items: Iterable[pytest.Item], turn: int) -> None:
    """Let a few cases of each test run at once, spread from the first to the last, and the others later.

    ``turn``: a number that says which share of the others runs in CI: one in `TURNS`.
    """
    cases: dict[tuple[object, str], list[pytest.Item]] = {}
    for item in items:
        if hasattr(item, "callspec") and not item.get_closest_marker("slow"):
            cases.setdefault((item.parent, getattr(item, "originalname", item.name)), []).append(item)
    for alike in cases.values():
        step = max(1.0, (len(alike) - 1) / (AT_MOST - 1))
        now = {round(k * step) for k in range(AT_MOST)}
        others = (item for k, item in enumerate(alike) if k not in now)
        for k, item in enumerate(others):
            for mark in LATER if k % TURNS == turn % TURNS else LATER[:1]:
                item.add_marker(mark)


def first_of_each(
    cases: Iterable[Any], kind: Callable[[Any], Hashable], *, name: Callable[[Any], str] | None = None
) -> list[Any]:
    """Return cases as parameters: those that are not the first of their kind are for later.

    Cases are parameters or tuples of values. Parameters keep their marks: where these put one off, another is
    the first.
    """
    seen: set[Hashable] = set()
    found = []
    for case in cases:
        given = case if isinstance(case, ParameterSet) else pytest.param(*case)
        what = kind(given.values[0] if len(given.values) == 1 else given.values)
        marks = given.marks or (LATER if what in seen else ())
        if not marks:
            seen.add(what)
        found.append(pytest.param(*given.values, marks=marks, id=name(case) if name else given.id))
    return found


def one_in(
    step: int, cases: Iterable[Any], *, start: int = 0, name: Callable[[Any], str] | None = None
) -> list[Any]:
    """Return cases as parameters, all but each so many-th for later."""
    cases = list(cases)
    assert not any(isinstance(case, ParameterSet) for case in cases), "marks of cases would be lost"
    return [
        pytest.param(case, marks=() if k % step == start else LATER, id=name(case) if name else None)
        for k, case in enumerate(cases)
    ]
