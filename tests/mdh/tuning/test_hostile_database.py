"""Databases and documents of tuning results that others have written: passed over or refused."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from polyloom.cli.main import run
from polyloom.diagnostics import PolyloomError
from polyloom.mdh.schedule.signature import Key
from polyloom.mdh.tuning.database import Database
from polyloom.mdh.tuning.exchange import exported, imported
from polyloom.mdh.tuning.outcome import Outcome, Status

KEY = Key(signature="abc", sizes=(8, "n"), device="cpu", generator="1")
RIGHT = Outcome(status=Status.VERIFIED, seconds=1.0, times=(1.0,), reason="", max_error=0.0)
LAYER = "lair C() : float32 x[4] -> float32 y[4] { all (i) in (4) y[i] = x[i] + 1.0 }"
VALUES = [
    "nonsense", "", "[", "{}", "null", "[[1]]", '["a"]', "[-1]", "[1e999]", "[NaN]", "9" * 400,
    "[" + "9" * 400 + "]", "[" * 100_000, b"\xff\xfe", 7, -1.0, 1e308, 2**62, "\x00",
]  # fmt: skip
COLUMNS = {
    "problems": ["signature", "sizes", "device", "generator", "options", "program"],
    "measurements": ["schedule", "status", "seconds", "times", "reason", "max_error", "confirmed", "at"],
}


def whole(path: Path) -> Path:
    """A database with results for what is asked of it here, and others."""
    path.unlink(missing_ok=True)
    with Database(path) as database:
        for key in (KEY, Key(signature="abc", sizes=(9, "n"), device="cpu", generator="1")):
            database.record(key, "p", '{"a":1}', RIGHT)
            database.record(
                key,
                "p",
                '{"a":2}',
                Outcome(status=Status.WRONG, seconds=1.0, times=(1.0,), reason="wrong", max_error=1.0),
            )
    return path


def spoil(path: Path) -> int:
    """Add rows that differ from sound ones in one column; return how many."""
    connection = sqlite3.connect(path)
    for table, columns in COLUMNS.items():
        (row,) = connection.execute(f"SELECT * FROM {table} LIMIT 1").fetchall()
        for k, column in enumerate(columns):
            for number, value in enumerate(VALUES):
                named = dict(zip(columns, row[1:], strict=True))
                named["program" if table == "problems" else "schedule"] = f"{{{k}{number}}}"
                named[column] = value
                first = None if table == "problems" else row[0]
                marks = ", ".join("?" * (1 + len(columns)))
                connection.execute(
                    f"INSERT OR IGNORE INTO {table} VALUES ({marks})", (first, *named.values())
                )
    connection.commit()
    (count,) = connection.execute(
        "SELECT (SELECT COUNT(*) FROM problems) + COUNT(*) FROM measurements"
    ).fetchone()
    connection.close()
    return int(count)


def test_rows_that_are_broken_are_passed_over(tmp_path: Path) -> None:
    assert spoil(whole(tmp_path / "t.sqlite")) > 200
    with Database(tmp_path / "t.sqlite") as database:
        assert '{"a":1}' in [entry.schedule for entry in database.entries(KEY)]
        assert '{"a":2}' in database.rejected(KEY)
        assert (9, "n") in [entry.key.sizes for entry in database.nearest(KEY, limit=1000)]
        assert database.damaged > 50
        json.dumps(exported(database), allow_nan=False)
        database.record(KEY, "p", '{"a":3}', RIGHT)


def test_they_are_counted(tmp_path: Path) -> None:
    with sqlite3.connect(whole(tmp_path / "t.sqlite")) as connection:
        connection.execute("UPDATE measurements SET times = 'nonsense'")
    connection.close()
    with Database(tmp_path / "t.sqlite") as database:
        assert database.entries(KEY) == () and database.damaged == 1


def document() -> dict[str, Any]:
    measurement = {
        "schedule": {"a": 1},
        "seconds": 1.0,
        "times": [1.0],
        "max_error": 0.0,
        "confirmed": True,
        "at": 1.0,
    }
    names = ("signature", "device", "generator", "options", "program")
    problem = {**dict.fromkeys(names, "x"), "sizes": [8], "measurements": [measurement]}
    return {"format": "polyloom-tuning", "version": 1, "problems": [problem]}


HOSTILE: list[Any] = [
    None, True, -1, 10**400, 2**63, float("nan"), float("inf"), "text", "\ud800", "a\x00b",
    [], [[]], {}, {"a": "\ud800"},
]  # fmt: skip


def test_documents_bent_in_one_place(tmp_path: Path) -> None:
    """Every value of a document replaced by every other: taken over whole, or refused."""
    with Database(tmp_path / "t.sqlite") as database:
        assert imported(database, document(), "d") == 1
        for value in HOSTILE:
            for name in document():
                take(database, {**document(), name: value})
            for name in document()["problems"][0]:
                take(database, document() | {"problems": [document()["problems"][0] | {name: value}]})
            for name in document()["problems"][0]["measurements"][0]:
                bent = document()
                bent["problems"][0]["measurements"][0][name] = value
                take(database, bent)
        json.dumps(exported(database), allow_nan=False)


def take(database: Database, bent: object) -> None:
    try:
        imported(database, bent, "d")
    except PolyloomError as fault:
        assert fault.diagnostics[0].code == "tuning-document"


@pytest.mark.parametrize("text", ["[" * 200_000, '{"a":' * 200_000, "\ufeff{}", "", "9" * 5000])
def test_documents_that_are_none(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str) -> None:
    (tmp_path / "d.json").write_text(text)
    assert run(["tune", "--import", str(tmp_path / "d.json"), "--database", str(tmp_path / "t.sqlite")]) == 1
    assert "error[tuning-document]" in capsys.readouterr().err


def test_what_is_no_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """The user's own is as none for `run`; one that was named is refused; `tune` refuses both."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("polyloom.mdh.tuning.database.READER_WAIT", 0.1)
    monkeypatch.setattr("polyloom.mdh.tuning.database.WAIT", 0.1)
    source = tmp_path / "a.lair"
    source.write_text(LAYER)
    own = tmp_path / "polyloom" / "tuning.sqlite"
    own.parent.mkdir()
    for make in (garbage, later, locked, empty_tables, os.mkfifo, Path.mkdir):
        held = make(own)
        capsys.readouterr()
        assert run(["run", str(source), "--check"]) == 0, make
        assert run(["run", str(source), "--database", str(own)]) == 1, make
        assert run(["tune", str(source), "--evaluations", "1"]) == 1, make
        assert capsys.readouterr().err.count("error[database-") == 2, make
        del held
        own.rmdir() if own.is_dir() else own.unlink()


def garbage(path: Path) -> None:
    path.write_bytes(b"SQLite format 3\0" + bytes(range(256)) * 40)


def later(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()


def locked(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(whole(path), isolation_level=None)
    connection.execute("BEGIN EXCLUSIVE")
    return connection


def empty_tables(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE problems (x)")
        connection.execute("PRAGMA user_version = 1")
    connection.close()
