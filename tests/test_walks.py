"""The walks of ARCHITECTURE.md are what happens: each stage in its turn, and none again after the next."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from command_line import run

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "polyloom"
BLOCK = re.compile(r"```walk\n(?P<command>polyloom .+)\n(?P<stages>(?:.+\n)+)```")


@dataclass(frozen=True)
class Walk:
    """A command, and the functions that it goes through, as ``file.py function``."""

    command: str
    stages: tuple[str, ...]


def walks(text: str) -> list[Walk]:
    """Return the walks of a document: blocks of a command, then a stage a line."""
    found = BLOCK.finditer(text)
    return [
        Walk(m["command"], tuple(" ".join(s.split()[:2]) for s in m["stages"].splitlines())) for m in found
    ]


WALKS = walks((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"))


def entered(command: str, stages: Sequence[str]) -> list[str]:
    """Run a command; return which of the stages were entered, in order, each as often as it was."""
    found: list[str] = []
    names = {stage.partition(" ")[2] for stage in stages}

    def watch(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_qualname in names and code.co_filename.startswith(f"{SOURCE}/"):
            found.append(f"{Path(code.co_filename).relative_to(SOURCE).as_posix()} {code.co_qualname}")

    sys.setprofile(watch)
    try:
        assert run(command.split()[1:]) == 0
    finally:
        sys.setprofile(None)
    return [stage for stage in found if stage in stages]


def steps_back(order: Sequence[str], stages: Sequence[str]) -> list[str]:
    """Return the stages that are entered after a later one."""
    places = [stages.index(stage) for stage in order]
    return [order[k] for k in range(1, len(order)) if places[k] < max(places[:k])]


def test_there_is_a_walk_from_every_kind_of_file() -> None:
    assert {Path(w.command.split()[2]).suffix for w in WALKS} >= {".lair", ".c", ".onnx"}
    assert all(len(walk.stages) > 5 for walk in WALKS)


@pytest.mark.parametrize("walk", WALKS, ids=lambda w: w.command.split()[1])
def test_a_walk_never_goes_back_up(walk: Walk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    order = entered(walk.command, walk.stages)
    assert [stage for stage in walk.stages if stage not in order] == [], "stages that were not entered"
    assert steps_back(order, walk.stages) == []


def test_a_step_back_is_seen() -> None:
    assert steps_back(["a", "b", "b", "c"], ["a", "b", "c"]) == []
    assert steps_back(["a", "c", "b"], ["a", "b", "c"]) == ["b"]
