"""The database of tuning results: what is kept, found, merged, and what a broken file gives."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from polyloom.diagnostics import PolyloomError
from polyloom.mdh.schedule.signature import Key
from polyloom.mdh.tuning.database import Database, default_path
from polyloom.mdh.tuning.exchange import exported, imported
from polyloom.mdh.tuning.outcome import Outcome, Status


def key(*sizes: int | str, device: str = "cpu", generator: str = "1") -> Key:
    return Key(signature="abc", sizes=sizes, device=device, generator=generator)


def right(seconds: float) -> Outcome:
    return Outcome(status=Status.VERIFIED, seconds=seconds, times=(seconds,), reason="", max_error=0.0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "tuning.sqlite"


def test_the_best_right_schedule_is_found_in_a_new_process(path: Path) -> None:
    with Database(path) as database:
        database.record(key(8), "p", '{"a":1}', right(2.0))
        database.record(key(8), "p", '{"a":2}', right(1.0))
        database.record(
            key(8),
            "p",
            '{"a":3}',
            Outcome(status=Status.WRONG, seconds=0.5, times=(0.5,), reason="y[0] is 1, not 2", max_error=1.0),
        )
        database.record(
            key(8), "p", '{"a":4}', Outcome(status=Status.CRASHED, seconds=None, times=(), reason="signal 6")
        )
    with Database(path) as database:
        best = database.best(key(8))
        assert best is not None and best.schedule == '{"a":2}' and best.outcome == right(1.0)
        assert database.rejected(key(8)) == {'{"a":3}': Status.WRONG, '{"a":4}': Status.CRASHED}
        assert database.best(key(9)) is None


def test_confirmed_timings_win_over_single_ones(path: Path) -> None:
    with Database(path) as database:
        database.record(key(8), "p", "lucky", right(0.5))
        database.confirm(key(8), "p", {"solid": right(0.7), "other": right(0.8)})
        assert [e.schedule for e in database.entries(key(8))] == ["solid", "other", "lucky"]
        database.confirm(key(8), "p", {"lucky": right(0.6)})
        assert [e.schedule for e in database.entries(key(8))] == ["lucky", "solid", "other"]


def test_the_nearest_sizes_come_first(path: Path) -> None:
    with Database(path) as database:
        for other in (key(1024), key(100), key(120), key("n0"), key(8, 8), key(101, device="gpu")):
            database.record(other, "p", f"at {other.sizes} {other.device}", right(1.0))
        found = [e.key.sizes for e in database.nearest(key(100))]
        assert found == [(120,), (1024,), ("n0",), (101,)]
        assert database.nearest(Key(signature="other", sizes=(100,), device="cpu", generator="1")) == ()


def test_another_generator_s_result_is_a_seed_and_no_best(path: Path) -> None:
    with Database(path) as database:
        database.record(key(8, generator="old"), "p", "s", right(1.0))
        assert database.best(key(8)) is None
        assert [e.key.generator for e in database.nearest(key(8))] == ["old"]


def test_export_and_import_carry_everything_right(path: Path, tmp_path: Path) -> None:
    with Database(path) as database, Database(tmp_path / "other.sqlite") as other:
        database.record(key(8), "p", '{"a":1}', right(2.0))
        database.record(
            key(8), "p", '{"a":9}', Outcome(status=Status.REFUSED, seconds=None, times=(), reason="no")
        )
        database.confirm(key(9), "q", {'{"a":2}': right(1.0)})
        document = json.loads(json.dumps(exported(database)))
        other.record(key(8), "p", '{"a":1}', right(1.5))
        assert imported(other, document, "x.json") == 2
        best = other.best(key(8))
        assert best is not None and best.outcome.seconds == 1.5
        assert other.entries(key(9)) == database.entries(key(9))


@pytest.mark.parametrize(
    "change",
    [
        lambda d: [],
        lambda d: {**d, "format": "x"},
        lambda d: {**d, "version": 99},
        lambda d: {"format": d["format"], "version": 1},
        lambda d: {**d, "problems": [{"sizes": []}]},
        lambda d: _with(d, "seconds", "fast"),
        lambda d: _with(d, "seconds", -1),
        lambda d: _with(d, "schedule", 7),
    ],
)
def test_a_document_that_is_none_is_refused_whole(path: Path, change: Any) -> None:
    with Database(path) as database:
        database.record(key(8), "p", '{"a":1}', right(2.0))
        document = change(exported(database))
        with pytest.raises(PolyloomError) as caught:
            imported(database, document, "x.json")
        assert [d.code for d in caught.value.diagnostics] == ["tuning-document"]
        assert len(database.entries(key(8))) == 1


def _with(document: dict[str, Any], name: str, value: object) -> dict[str, Any]:
    document["problems"][0]["measurements"][0][name] = value
    return document


def _code(path: Path, *, readonly: bool = False) -> str:
    with pytest.raises(PolyloomError) as caught:
        Database(path, readonly=readonly)
    (diagnostic,) = caught.value.diagnostics
    assert str(path) in diagnostic.message and diagnostic.helps
    return diagnostic.code


def test_files_that_are_no_database_are_refused(tmp_path: Path) -> None:
    broken = tmp_path / "broken.sqlite"
    broken.write_text("no database " * 1000)
    assert _code(broken) == "database-broken"
    assert broken.read_text().startswith("no database")
    assert _code(tmp_path) == "database-unusable"
    assert _code(broken / "below.sqlite") == "database-unusable"
    assert _code(tmp_path / "none.sqlite", readonly=True) == "database-unusable"


def test_a_later_layout_is_left_alone(path: Path) -> None:
    Database(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 9")
    assert _code(path) == "database-later"


def test_a_full_disk_is_one_diagnostic_and_loses_nothing(path: Path) -> None:
    with Database(path) as database:
        database.record(key(8), "p", "first", right(2.0))
        (pages,) = database._connection.execute("PRAGMA page_count").fetchone()
        database._connection.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(PolyloomError) as caught:
            for number in range(1000):
                database.record(key(8), "p", f"{number}" + "x" * 500, right(1.0))
        assert [d.code for d in caught.value.diagnostics] == ["database-full"]
    check_whole(path)
    with Database(path) as database:
        assert database.entries(key(8))[-1].schedule == "first"


_WRITER = """
import sys
from pathlib import Path
from polyloom.mdh.tuning.database import Database
from polyloom.mdh.tuning.outcome import Outcome, Status
from polyloom.mdh.schedule.signature import Key
KEY = Key(signature="abc", sizes=(8,), device="cpu", generator="1")
with Database(Path(sys.argv[1])) as database:
    for number in range(10**9):
        outcome = Outcome(status=Status.VERIFIED, seconds=1.0 / (number + 1), times=(1.0,))
        database.record(KEY, "p", f"{number:09d}" + "x" * 2000, outcome)
        print(number, flush=True)
"""


@pytest.mark.slow
@pytest.mark.ci
def test_kill_9_while_writing_keeps_what_was_reported(path: Path) -> None:
    for _ in range(4):
        writer = subprocess.Popen(
            [sys.executable, "-c", _WRITER, str(path)], stdout=subprocess.PIPE, text=True
        )
        assert writer.stdout is not None
        last = int(writer.stdout.readline())
        deadline = time.monotonic() + 0.15
        while time.monotonic() < deadline:
            last = int(writer.stdout.readline())
        os.kill(writer.pid, signal.SIGKILL)
        writer.communicate()
        check_whole(path)
        with Database(path) as database:
            numbers = {int(e.schedule.rstrip("x")) for e in database.entries(key(8))}
        assert set(range(last + 1)) <= numbers


def test_the_size_of_a_file_may_be_limited(path: Path) -> None:
    limited = "import resource as r; r.setrlimit(r.RLIMIT_FSIZE, (100_000, 100_000))\n"
    catching = "\n".join("    " + line for line in _WRITER.splitlines())
    text = f"{limited}try:\n{catching}\nexcept Exception as fault:\n    print(fault.diagnostics[0].code)\n"
    run = subprocess.run([sys.executable, "-c", text, str(path)], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[-1] == "database-full"
    check_whole(path)


def check_whole(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_the_folder_follows_the_platform_s_convention(tmp_path: Path) -> None:
    assert default_path({"XDG_CACHE_HOME": str(tmp_path)}) == tmp_path / "polyloom" / "tuning.sqlite"
    assert default_path({"XDG_CACHE_HOME": "relative"}).parent.name == "polyloom"
