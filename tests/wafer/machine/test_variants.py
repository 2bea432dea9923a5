"""Machines of users' files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import polyloom
from polyloom.cli.main import run
from polyloom.diagnostics import PolyloomError
from polyloom.wafer.machine.model import load_machine
from polyloom.wafer.machine.variants import read_machine

EXAMPLES = Path(__file__).parents[3] / "examples"


def written(folder: Path, document: Any) -> Path:
    path = folder / "mine.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path


def test_what_differs_and_where_it_comes_from(tmp_path: Path) -> None:
    changes = {
        "like": "cs2",
        "sram_bytes": 98304,
        "clock_ghz": {"value": 1.1, "source": "a data sheet"},
        "simd_widths": {"fmach": 8},
        "grid": [10, 20],
    }
    mine, cs2 = read_machine(written(tmp_path, changes)), load_machine("cs2")
    assert (mine.name, mine.sram_bytes, mine.clock_ghz, mine.grid) == ("mine", 98304, 1.1, (10, 20))
    assert (mine.simd_width("fmach"), mine.simd_width("faddh")) == (8, cs2.simd_width("faddh"))
    assert mine.provenance["clock_ghz"] == "a data sheet"
    assert mine.provenance["sram_bytes"] == "estimate: mine.json"
    assert mine.provenance["colors"] == cs2.provenance["colors"]


def test_a_layer_runs_on_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, {"like": "cs2", "simd_launch": 60, "title": "slow to start"})
    layer = polyloom.load(EXAMPLES / "conv1d.lair")
    given = {"map": EXAMPLES / "conv1d.map", "check": True}
    slow, usual = layer.simulate(machine=str(path), **given).cycles, layer.simulate(**given).cycles
    assert slow > usual + 54
    command = ["simulate", str(EXAMPLES / "conv1d.lair"), "--map", str(EXAMPLES / "conv1d.map")]
    assert run([*command, "--machine", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cycles"] == slow


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ("{", "it is no JSON"),
        ("[" * 100000, "it is no JSON"),
        ([], "like"),
        ({"sram_bytes": 1}, "like"),
        ({"like": "cs2", "memory": 1}, "no machine has `memory`"),
        ({"like": "cs2", "provenance": {}}, "no machine has `provenance`"),
        ({"like": "cs2", "colors": "many"}, "`colors` is of another kind"),
        ({"like": "cs2", "colors": True}, "`colors` is of another kind"),
        ({"like": "cs2", "colors": 2**40}, "`colors` is of another kind"),
        ({"like": "cs2", "grid": [1]}, "`grid` is of another kind"),
        ({"like": "cs2", "input_queues": []}, "`input_queues` is of another kind"),
        ({"like": "cs2", "clock_ghz": -1.0}, "`clock_ghz` is of another kind"),
        ({"like": "cs2", "simd_widths": {"fmach": 1.5}}, "`simd_widths.fmach` is of another kind"),
        ({"like": "cs2", "simd_launch": 0}, "at least 1"),
        ({"like": "cs2", "colors": 33}, "32 colors"),
    ],
)
def test_a_file_that_describes_none(tmp_path: Path, document: Any, said: str) -> None:
    with pytest.raises(PolyloomError, match="machine-file") as caught:
        read_machine(written(tmp_path, document))
    assert said in str(caught.value)


def test_like_no_known_one(tmp_path: Path) -> None:
    with pytest.raises(PolyloomError, match="machine-unknown"):
        read_machine(written(tmp_path, {"like": "cs9"}))
