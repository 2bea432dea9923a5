"""The table of docs/machine_model.md holds what the simulator gives, and every fit is named by a number."""

from __future__ import annotations

import pytest
from machine_validation import (
    PAGE,
    TOLERANCE,
    Case,
    between,
    cases,
    measured,
    parameter_table,
    results_table,
    row_text,
)

from polyloom.wafer.machine.model import load_machine, machines
from samples import one_in

QUICK = [case for case in cases() if not case.slow]


def lines_of_page() -> list[str]:
    return between(PAGE.read_text(), "results")[1].splitlines()


@pytest.mark.parametrize("case", one_in(3, QUICK, name=lambda case: case.name))
def test_a_line_of_the_page_is_what_the_simulator_gives(case: Case) -> None:
    assert row_text(measured(case)) in lines_of_page()


@pytest.mark.slow
def test_the_table_of_the_page_is_what_the_simulator_gives() -> None:
    assert results_table([measured(case) for case in cases()]).splitlines() == lines_of_page()


def test_the_page_has_every_case() -> None:
    names = [line.split(" | ")[0].removeprefix("| ") for line in lines_of_page() if line.startswith("| ")]
    assert names == ["case", *(case.name for case in cases())]


def test_the_numbers_of_the_page_are_those_of_the_machines() -> None:
    assert between(PAGE.read_text(), "parameters")[1] == parameter_table()


@pytest.mark.parametrize("name", machines())
def test_a_number_is_set_from_cases_that_there_are(name: str) -> None:
    known = {case.name for case in cases() if case.machine == name}
    assert {used for names in load_machine(name).fitted_to.values() for used in names} <= known


@pytest.mark.slow
@pytest.mark.ci
def test_a_fitted_number_fits() -> None:
    fits = [case for case in QUICK if case.is_fit]
    assert len(fits) > 5
    for case in fits:
        assert measured(case).ratio == pytest.approx(1, abs=TOLERANCE)
