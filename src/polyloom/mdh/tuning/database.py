"""The results of tuning, kept in one SQLite file.

Robust by SQLite's rollback journal: every result is one transaction, so that neither ``kill -9`` nor a full
disk leaves more behind than the results of whole transactions. The journal was taken, not the write-ahead
log, because its file also works on network file systems, and because nothing is left beside the database
when a process dies in peace. Several processes may use one file: writers wait for each other.
"""

from __future__ import annotations

import json
import math
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from polyloom.caches import cache_home
from polyloom.diagnostics import Diagnostic, PolyloomError, error
from polyloom.mdh.schedule.signature import Key
from polyloom.mdh.tuning.outcome import Outcome, Status

VERSION = 1
"""The layout of the tables; a file with a higher number comes from a later Polyloom."""

MAX_DISTANCE = 1e6
"""Sizes further apart, or of another rank, have nothing to do with each other."""

WAIT = 20.0
"""Seconds that a writer waits for another one."""

READER_WAIT = 5.0
"""Seconds that a reader waits for a writer."""

T = TypeVar("T")

_TABLES = """
CREATE TABLE problems (
    id INTEGER PRIMARY KEY,
    signature TEXT NOT NULL, sizes TEXT NOT NULL, device TEXT NOT NULL,
    generator TEXT NOT NULL, options TEXT NOT NULL, program TEXT NOT NULL,
    UNIQUE (signature, sizes, device, generator, options)
);
CREATE TABLE measurements (
    problem INTEGER NOT NULL REFERENCES problems (id),
    schedule TEXT NOT NULL, status TEXT NOT NULL, seconds REAL, times TEXT NOT NULL,
    reason TEXT NOT NULL, max_error REAL, confirmed INTEGER NOT NULL DEFAULT 0, at REAL NOT NULL,
    PRIMARY KEY (problem, schedule)
);
CREATE INDEX by_speed ON measurements (problem, status, confirmed, seconds);
"""

_BEST = """
SELECT m.schedule, m.status, m.seconds, m.times, m.reason, m.max_error, m.confirmed, m.at
FROM measurements m WHERE m.problem = ? AND m.status = 'verified'
ORDER BY m.confirmed DESC, m.seconds, m.schedule
"""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A schedule (its JSON text) for a key, and what became of it; ``confirmed``: timed again at the end."""

    key: Key
    schedule: str
    outcome: Outcome
    confirmed: bool
    at: float


def default_path(environment: Mapping[str, str] | None = None) -> Path:
    """Return where the database lies when nobody says so.

    ``$XDG_CACHE_HOME/polyloom/tuning.sqlite``, else in what the platform has for caches.

    Errors: ``database-unusable`` where there is no such place.
    """
    given = Path("" if environment is None else environment.get("XDG_CACHE_HOME", ""))
    home = given if given.is_absolute() else cache_home()
    if home is None:
        message = "there is no folder for the results of tuning: this user has none"
        helps = ["name a file with `--database`"]
        raise PolyloomError(error("database-unusable", message, helps=helps))
    return home / "polyloom" / "tuning.sqlite"


class Database:
    """An open database.

    Errors of every method: ``database-full``, ``database-unusable``, ``database-broken``,
    ``database-later`` (``PolyloomError``).
    """

    def __init__(self, path: Path, *, readonly: bool = False) -> None:
        self.path = path
        self.damaged = 0
        """How many rows were passed over because they hold nothing that Polyloom writes."""
        with self._refusing():
            if not readonly:
                path.parent.mkdir(parents=True, exist_ok=True)
            if path.exists() and not path.is_file():
                raise OSError("it is no file")
            mode = "ro" if readonly else "rwc"
            uri = f"{path.absolute().as_uri()}?mode={mode}"
            wait = READER_WAIT if readonly else WAIT
            self._connection = sqlite3.connect(uri, uri=True, timeout=wait, isolation_level=None)
            self._connection.text_factory = lambda data: data.decode("utf-8", errors="replace")
            try:
                self._prepare(readonly)
            except BaseException:
                self._connection.close()
                raise

    def __enter__(self) -> Database:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def record(self, key: Key, program: str, schedule: str, outcome: Outcome) -> None:
        """Keep what became of a schedule; a new timing takes the place of an old one."""
        with self._transaction():
            self._write(self._problem(key, program), schedule, outcome, 0, time.time())

    def confirm(self, key: Key, program: str, results: Mapping[str, Outcome]) -> None:
        """Keep the last, careful timings of the best schedules: the best of them is the best of the key."""
        with self._transaction():
            problem = self._problem(key, program)
            self._connection.execute("UPDATE measurements SET confirmed = 0 WHERE problem = ?", (problem,))
            for schedule, outcome in results.items():
                self._write(problem, schedule, outcome, 1, time.time())

    def entries(self, key: Key) -> tuple[Entry, ...]:
        """Return the right schedules of a key, the best first."""
        with self._refusing():
            found = self._connection.execute(
                "SELECT id FROM problems WHERE signature = ? AND sizes = ? AND device = ? "
                "AND generator = ? AND options = ?",
                _columns(key),
            ).fetchone()
            rows = self._connection.execute(_BEST, found).fetchall() if found else []
        return tuple(self._sound(_entry(key, row) for row in rows))

    def best(self, key: Key) -> Entry | None:
        """Return the best right schedule of a key; None where there is none."""
        return next(iter(self.entries(key)), None)

    def rejected(self, key: Key) -> dict[str, Status]:
        """Return the schedules that were timed and may not win, with what became of them."""
        query = (
            "SELECT m.schedule, m.status FROM measurements m JOIN problems p ON p.id = m.problem "
            "WHERE p.signature = ? AND p.sizes = ? AND p.device = ? AND p.generator = ? AND p.options = ? "
            "AND m.status != 'verified'"
        )
        with self._refusing():
            rows = self._connection.execute(query, _columns(key)).fetchall()
        return dict(self._sound(_rejection(row) for row in rows))

    def nearest(self, key: Key, limit: int = 4, within: float = math.inf) -> tuple[Entry, ...]:
        """Return the best schedule of each of the nearest problems: other sizes, generators, drivers.

        The same md_hom on the same device comes first, then by distance of the sizes: the sum of
        |log2(a / b)| over the extents, of which none is larger than ``within``. An entry of the key itself
        is not among them.
        """
        with self._refusing():
            rows = self._connection.execute(
                "SELECT signature, sizes, device, generator, options FROM problems WHERE signature = ?",
                (key.signature,),
            ).fetchall()
        found = set(self._sound(_key(row) for row in rows))
        others = sorted(found - {key}, key=lambda other: _distance(key, other))
        near = (other for other in others if _farthest(key.sizes, other.sizes) <= min(within, MAX_DISTANCE))
        best = (self.best(other) for other in near)
        return tuple(entry for entry in best if entry is not None)[:limit]

    def problems(self) -> tuple[tuple[Key, str], ...]:
        """Return every key with the name of the program that it was first tuned for."""
        query = "SELECT signature, sizes, device, generator, options, program FROM problems ORDER BY id"
        with self._refusing():
            rows = self._connection.execute(query).fetchall()
        return tuple(self._sound(_problem(row) for row in rows))

    def _sound(self, found: Iterable[T | None]) -> Iterator[T]:
        """Yield what rows say, and count those that say nothing that Polyloom writes."""
        for each in found:
            if each is None:
                self.damaged += 1
            else:
                yield each

    def merge(self, problems: Sequence[tuple[Key, str, Sequence[Entry]]]) -> None:
        """Take over results from elsewhere, all or nothing; an entry that is there stays unless slower."""
        with self._transaction():
            for key, program, entries in problems:
                problem = self._problem(key, program)
                for entry in entries:
                    if self._is_faster(problem, entry):
                        self._write(problem, entry.schedule, entry.outcome, int(entry.confirmed), entry.at)

    def _is_faster(self, problem: int, entry: Entry) -> bool:
        query = "SELECT seconds FROM measurements WHERE problem = ? AND schedule = ? AND status = 'verified'"
        found = self._connection.execute(query, (problem, entry.schedule)).fetchone()
        return found is None or entry.outcome.cost < found[0]

    def _prepare(self, readonly: bool) -> None:
        (version,) = self._connection.execute("PRAGMA user_version").fetchone()
        if version > VERSION:
            raise PolyloomError(_later(self.path, version))
        if version == VERSION or readonly:
            return
        with self._transaction():
            (version,) = self._connection.execute("PRAGMA user_version").fetchone()
            if version == 0:
                for statement in _TABLES.split(";\n"):
                    self._connection.execute(statement)
                self._connection.execute(f"PRAGMA user_version = {VERSION}")

    def _problem(self, key: Key, program: str) -> int:
        self._connection.execute(
            "INSERT OR IGNORE INTO problems (signature, sizes, device, generator, options, program) "
            "VALUES (?, ?, ?, ?, ?, ?)",
            (*_columns(key), program),
        )
        row = self._connection.execute(
            "SELECT id FROM problems WHERE signature = ? AND sizes = ? AND device = ? "
            "AND generator = ? AND options = ?",
            _columns(key),
        ).fetchone()
        return int(row[0])

    def _write(self, problem: int, schedule: str, outcome: Outcome, confirmed: int, at: float) -> None:
        self._connection.execute(
            "INSERT OR REPLACE INTO measurements VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                problem,
                schedule,
                outcome.status.value,
                outcome.seconds,
                json.dumps(outcome.times),
                outcome.reason,
                outcome.max_error,
                confirmed,
                at,
            ),
        )

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._refusing():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as fault:
            raise PolyloomError(_refusal(self.path, fault)) from fault


def _refusal(path: Path, fault: sqlite3.Error | OSError) -> Diagnostic:
    code = getattr(fault, "sqlite_errorcode", None)
    primary = None if code is None else code & 0xFF
    if primary in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
        message = f"`{path}` cannot be written: {fault}"
        helps = ["make room on the disk, or choose another file with `--database`; what was kept is whole"]
        return error("database-full", message, helps=helps)
    if primary in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        helps = ["move it away, or choose another file with `--database`"]
        return error("database-broken", f"`{path}` is no database of tuning results: {fault}", helps=helps)
    helps = ["choose another file with `--database`"]
    return error("database-unusable", f"`{path}` cannot be used: {fault}", helps=helps)


def _later(path: Path, version: int) -> Diagnostic:
    message = f"`{path}` was written by a later version of Polyloom (layout {version}, not {VERSION})"
    return error("database-later", message, helps=["choose another file with `--database`"])


def _columns(key: Key) -> tuple[str, str, str, str, str]:
    return key.signature, json.dumps(key.sizes), key.device, key.generator, key.options


def _key(row: Sequence[Any]) -> Key | None:
    """Return the key that a row says; None where it says none, as for the following."""
    signature, sizes, device, generator, options = row
    found = _array(sizes)
    texts = (signature, device, generator, options)
    if found is None or not all(_is_text(text) for text in texts):
        return None
    if not all(_is_text(size) or (type(size) is int and 0 <= size < 2**63) for size in found):
        return None
    return Key(signature=signature, sizes=tuple(found), device=device, generator=generator, options=options)


def _problem(row: Sequence[Any]) -> tuple[Key, str] | None:
    key, program = _key(row[:5]), row[5]
    return (key, program) if key is not None and _is_text(program) else None


def _entry(key: Key, row: Sequence[Any]) -> Entry | None:
    schedule, status, seconds, times, reason, max_error, confirmed, at = row
    found = _array(times)
    sound = (
        found is not None
        and all(map(_is_time, (seconds, *found)))
        and _is_text(schedule)
        and _is_text(reason)
        and (max_error is None or _is_finite(max_error))
        and _is_finite(at)
    )
    if not sound or found is None:
        return None
    outcome = Outcome(
        status=Status(status), seconds=seconds, times=tuple(found), reason=reason, max_error=max_error
    )
    return Entry(key=key, schedule=schedule, outcome=outcome, confirmed=bool(confirmed), at=at)


def _rejection(row: Sequence[Any]) -> tuple[str, Status] | None:
    schedule, status = row
    known = status in {each.value for each in Status} and _is_text(schedule)
    return (schedule, Status(status)) if known else None


def _array(text: object) -> list[Any] | None:
    try:
        found = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, list) else None


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_finite(value: object) -> bool:
    return isinstance(value, float | int) and abs(value) < math.inf


def _is_time(value: object) -> bool:
    return isinstance(value, float | int) and 0 < value < math.inf


def _distance(key: Key, other: Key) -> tuple[bool, float, bool, bool]:
    """Return what ``other`` is sorted by: device first, then sizes, options and generator."""
    return (
        key.device != other.device,
        size_distance(key.sizes, other.sizes),
        key.options != other.options,
        key.generator != other.generator,
    )


def size_distance(sizes: Sequence[int | str], others: Sequence[int | str]) -> float:
    """Return how far the sizes of two problems of one signature are apart: the sum of |log2(a / b)|."""
    return sum(_log_ratio(a, b) for a, b in zip(sizes, others, strict=False))


def _farthest(sizes: Sequence[int | str], others: Sequence[int | str]) -> float:
    if len(sizes) != len(others):
        return math.inf
    return max((_log_ratio(a, b) for a, b in zip(sizes, others, strict=True)), default=0.0)


def _log_ratio(a: int | str, b: int | str) -> float:
    if isinstance(a, int) and isinstance(b, int):
        return abs(math.log2(max(a, 1)) - math.log2(max(b, 1)))
    return 0.0 if a == b else 4.0
