"""Samples of many cases alike: some in `make test`, others in CI, more each time, all in `make test-slow`."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any

import pytest

ParameterSet = type(pytest.param())

LATER = (pytest.mark.slow, pytest.mark.ci)
"""Not in `make test`, but in CI."""

AT_MOST = 2
"""So many cases of one test are in `make test`."""

TURNS = 9
"""Of the other cases, each run of CI takes one in so many; all have had their turn after as many runs."""

TURNS_OF_SLOW = 3
"""The same of cases that a test itself puts off, where they are more than `AT_MOST`."""


def put_off(items: Iterable[pytest.Item], turn: int) -> None:
    """Let a few cases of each test run at once, spread from the first to the last, and the others later.

    ``turn``: a number that says which share of the others runs in CI.
    """
    slow = _cases(items, is_slow=True)
    for alike in _cases(items, is_slow=False):
        step = max(1.0, (len(alike) - 1) / (AT_MOST - 1))
        now = {round(k * step) for k in range(AT_MOST)}
        others = (item for k, item in enumerate(alike) if k not in now)
        for k, item in enumerate(others):
            for mark in LATER if k % TURNS == turn % TURNS else LATER[:1]:
                item.add_marker(mark)
    for alike in slow:
        for k, item in enumerate(alike if len(alike) > AT_MOST else ()):
            if k % TURNS_OF_SLOW != turn % TURNS_OF_SLOW:
                item.own_markers[:] = [mark for mark in item.own_markers if mark.name != "ci"]


def _cases(items: Iterable[pytest.Item], *, is_slow: bool) -> list[list[pytest.Item]]:
    """Return the cases of each test that are slow or are not, as they stand."""
    cases: dict[tuple[object, str], list[pytest.Item]] = {}
    for item in items:
        if hasattr(item, "callspec") and (item.get_closest_marker("slow") is not None) is is_slow:
            cases.setdefault((item.parent, getattr(item, "originalname", item.name)), []).append(item)
    return list(cases.values())


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
