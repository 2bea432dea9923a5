"""The cost model's choices for other processes: found again, checked, and made anew where they do not fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from homs import device, matmul

from polyloom.mdh.schedule.schedules import Schedule, plain_schedule, schedule_from_text
from polyloom.mdh.schedule.signature import key_of
from polyloom.mdh.tuning import kept_choices
from polyloom.mdh.tuning.kept_choices import kept_choice

CHOSEN = replace(plain_schedule(3, 2), private=(2, 1, 1))


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Schedule, int]]:
    """Return a function that gives a choice, and how often it was made."""
    monkeypatch.setattr(kept_choices, "cache_folder", lambda: tmp_path)
    program = matmul(17, 37, 24)
    key = key_of(program.body[0], program.buffers, "")  # type: ignore[arg-type]

    def asked(
        units: int = 2, read: Callable[[str], Schedule | None] = schedule_from_text
    ) -> tuple[Schedule, int]:
        made = []

        def choose() -> Schedule:
            made.append(CHOSEN)
            return CHOSEN

        model = replace(device().model, compute_units=units)
        return kept_choice(key, model, read, choose), len(made)

    return asked


def test_a_choice_is_made_once(ask: Callable[..., tuple[Schedule, int]]) -> None:
    assert ask() == (CHOSEN, 1)
    assert ask() == (CHOSEN, 0)


def test_another_device_has_its_own(ask: Callable[..., tuple[Schedule, int]]) -> None:
    ask()
    assert ask(units=4) == (CHOSEN, 1)


def test_what_cannot_be_read_is_chosen_anew(ask: Callable[..., tuple[Schedule, int]], tmp_path: Path) -> None:
    ask()
    assert ask(read=lambda text: None) == (CHOSEN, 1)
    (file,) = (tmp_path / "choices").iterdir()
    file.write_text("{}")
    assert ask() == (CHOSEN, 1)
    assert ask() == (CHOSEN, 0)
