"""Results of tuning as a JSON document, to carry them from one machine to another."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from polyloom.diagnostics import PolyloomError, error
from polyloom.mdh.schedule.signature import Key, canonical_json
from polyloom.mdh.tuning.database import Database, Entry
from polyloom.mdh.tuning.outcome import Outcome, Status

FORMAT = "polyloom-tuning"
VERSION = 1

Problems = list[tuple[Key, str, list[Entry]]]


def exported(database: Database) -> dict[str, Any]:
    """Return all right schedules of a database as a JSON document, the best of each key first."""
    problems = [
        {
            **_key_json(key),
            "program": program,
            "measurements": [_entry_json(e) for e in database.entries(key) if _is_object(e.schedule)],
        }
        for key, program in database.problems()
    ]
    return {"format": FORMAT, "version": VERSION, "problems": problems}


def imported(database: Database, document: object, name: str) -> int:
    """Take over the schedules of a document called ``name``, all or nothing; return how many it holds.

    Errors: ``tuning-document`` where it is no such document, and those of the database.
    """
    problems = _checked_document(document, name)
    database.merge(problems)
    return sum(len(entries) for _, _, entries in problems)


def _key_json(key: Key) -> dict[str, Any]:
    return {
        "signature": key.signature,
        "sizes": list(key.sizes),
        "device": key.device,
        "generator": key.generator,
        "options": key.options,
    }


def _entry_json(entry: Entry) -> dict[str, Any]:
    outcome = entry.outcome
    return {
        "schedule": json.loads(entry.schedule),
        "seconds": outcome.seconds,
        "times": list(outcome.times),
        "max_error": outcome.max_error,
        "confirmed": entry.confirmed,
        "at": entry.at,
    }


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _checked_document(document: object, name: str) -> Problems:
    try:
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise ValueError(f'it has no "format": "{FORMAT}"')
        if document["version"] != VERSION:
            raise ValueError(f"its version is {document['version']}, not {VERSION}")
        return [_problem_of(problem) for problem in document["problems"]]
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as fault:
        reason = f"it lacks {fault}" if isinstance(fault, KeyError) else str(fault)
        message = f"`{name}` holds no tuning results"
        helps = ["give a file that `polyloom tune --export FILE` wrote"]
        raise PolyloomError(error("tuning-document", message, notes=[reason], helps=helps)) from fault


def _problem_of(problem: Mapping[str, Any]) -> tuple[Key, str, list[Entry]]:
    sizes = tuple(_size(size) for size in problem["sizes"])
    names = ("signature", "device", "generator", "options")
    texts = {name: _checked(problem[name], (str,)) for name in names}
    key = Key(sizes=sizes, **texts)
    found = [_entry_of(key, measurement) for measurement in problem["measurements"]]
    return key, _checked(problem["program"], (str,)), found


def _entry_of(key: Key, measurement: Mapping[str, Any]) -> Entry:
    seconds = _positive(measurement["seconds"])
    times = tuple(_positive(each) for each in measurement["times"])
    max_error = None if measurement["max_error"] is None else _finite(measurement["max_error"])
    outcome = Outcome(status=Status.VERIFIED, seconds=seconds, times=times, reason="", max_error=max_error)
    schedule = canonical_json(_checked(measurement["schedule"], (dict,)))
    return Entry(
        key=key,
        schedule=schedule,
        outcome=outcome,
        confirmed=bool(measurement["confirmed"]),
        at=_finite(measurement["at"]),
    )


def _positive(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise ValueError(f"{value!r} is no time")
    return float(value)


def _finite(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{value!r} is no number")
    return float(value)


def _size(value: Any) -> int | str:
    size: int | str = _checked(value, (int, str))
    if isinstance(size, int) and not 0 <= size < 2**63:
        raise ValueError(f"{size!r} is no size")
    return size


def _checked(value: Any, types: tuple[type, ...]) -> Any:
    if isinstance(value, bool) or not isinstance(value, types):
        raise ValueError(f"{value!r} is not of type {' or '.join(t.__name__ for t in types)}")
    if isinstance(value, str):
        value.encode()  # half of a surrogate pair is no text
    return value
