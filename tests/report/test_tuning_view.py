"""How tuning looks: the line that moves, the table, the document."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from polyloom.mdh.schedule.signature import Key
from polyloom.mdh.tuning.outcome import Status
from polyloom.mdh.tuning.tune import Progress, Tuned
from polyloom.report.tuning_view import print_tuning, progress_text, seconds_text, tuning_document

TUNED = Tuned(
    name="S1",
    key=Key(signature="abc", sizes=(10, 500, 64, 10, 64), device="cpu", generator="v1"),
    schedule='{"group":[1,2]}',
    seconds=2e-6,
    default=5e-6,
    evaluations=40,
    rejected={Status.SLOW: 3, Status.CRASHED: 1},
    interrupted=False,
    operations=640000,
    sizes=(10, 500, 64),
)


def test_the_line_says_best_evaluations_and_time_left() -> None:
    text = progress_text(
        Progress(name="S1", number=1, count=2, evaluations=40, rejected=4, first=5e-6, best=2e-6, left=31.4)
    )
    assert text == "S1 (1 of 2): best 2 us, 2.50x the first; 40 evaluated, 4 rejected; 31 s left"
    text = progress_text(
        Progress(
            name="S1", number=1, count=1, evaluations=2, rejected=2, first=math.inf, best=math.inf, left=31.4
        )
    )
    assert text == "S1: nothing right yet; 2 evaluated, 2 rejected; 31 s left"


def test_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    print_tuning([TUNED], "a device")
    out = capsys.readouterr().out
    assert "tuned for a device" in out
    assert out.splitlines()[-1].split() == (
        ["S1", "10", "x", "500", "x", "64", "5", "us", "2", "us", "2.50x", "320.0", "40", "4"]
    )
    print_tuning([], "a device")
    assert "nothing to tune" in capsys.readouterr().out


@pytest.mark.parametrize("character", ["\x1b", "\x07", "\x9b", "\u202e", "\u2066"])
def test_control_characters_of_names_are_shown_as_escapes(
    capsys: pytest.CaptureFixture[str], character: str
) -> None:
    name = f"a{character}[red]b"
    print_tuning([replace(TUNED, name=name)], name)
    shown = name.encode("unicode_escape").decode()
    out = capsys.readouterr().out
    assert character not in out and out.count(shown) == 2
    line = progress_text(
        Progress(name=name, number=1, count=2, evaluations=40, rejected=4, first=5e-6, best=2e-6, left=31.4)
    )
    assert line.startswith(shown)


def test_the_document() -> None:
    document = tuning_document([TUNED], "a device", "t.sqlite")
    (hom,) = document["md_homs"]
    assert (hom["schedule"], hom["sizes"], hom["gflops"]) == ({"group": [1, 2]}, [10, 500, 64], 320.0)
    assert hom["rejected"] == {"crashed": 1, "slow": 3}


def test_times_are_readable() -> None:
    texts = [seconds_text(s) for s in (2.0, 1.5e-3, 7.25e-6, 3e-9, math.inf)]
    assert texts == ["2 s", "1.5 ms", "7.25 us", "3 ns", "none"]
