"""Results of tuning as files: what ``tune --export`` and ``tune --import`` do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from polyloom.diagnostics import PolyloomError, error
from polyloom.files import read_source, write_whole

if TYPE_CHECKING:
    from polyloom.mdh.tuning.database import Database


def imported_from(database: Database, path: Path, *, quiet: bool) -> dict[str, Any]:
    """Take over a file's results. Errors: ``file-...``, ``tuning-document``, those of the database."""
    from polyloom.mdh.tuning.exchange import imported

    text = read_source(path).text
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as fault:
        message = f"`{path}` holds no tuning results"
        helps = ["give a file that `polyloom tune --export FILE` wrote"]
        diagnostic = error("tuning-document", message, notes=[f"it is no JSON: {fault}"], helps=helps)
        raise PolyloomError(diagnostic) from fault
    count = imported(database, document, str(path))
    if not quiet:
        click.echo(f"imported {count} schedules from {path}")
    return {"imported": count}


def exported_to(database: Database, path: Path, *, quiet: bool) -> dict[str, Any]:
    """Write all results to a file. Errors: ``file-unwritable``, those of the database."""
    from polyloom.mdh.tuning.exchange import exported

    document = exported(database)
    count = sum(len(problem["measurements"]) for problem in document["problems"])
    text = json.dumps(document, indent=1) + "\n"
    write_whole(path, lambda part: _write(part, text))
    if not quiet:
        click.echo(f"exported {count} schedules of {len(document['problems'])} md_homs to {path}")
    return {"exported": count}


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
