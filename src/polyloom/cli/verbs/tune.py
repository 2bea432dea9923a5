"""``polyloom tune``: search for the fastest schedules of a program, and carry results between machines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from polyloom.cli.messages import print_document, print_remarks
from polyloom.cli.options import (
    any_device_option,
    c_options,
    database_option,
    driver_patch_option,
    fp_option,
    json_option,
    number,
    optional_source_options,
    reductions_option,
    scalar_option,
    threads_option,
)
from polyloom.diagnostics import PolyloomError, error, warning
from polyloom.files import read_source, write_whole
from polyloom.sources import Reading

if TYPE_CHECKING:
    from polyloom.mdh.compiled import CompiledProgram
    from polyloom.mdh.device.devices import DeviceModel
    from polyloom.mdh.tuning.database import Database
    from polyloom.workers.cluster import Cluster

_FILE = click.Path(path_type=Path)
INTERRUPTED = 130


@click.command()
@optional_source_options
@c_options
@any_device_option
@driver_patch_option
@threads_option
@scalar_option
@reductions_option
@fp_option
@database_option
@click.option(
    "--budget",
    metavar="SECONDS",
    type=click.FloatRange(min=0, min_open=True),
    callback=number,
    default=60.0,
    show_default=True,
    help="Seconds for the whole program.",
)
@click.option(
    "--evaluations", metavar="N", type=click.IntRange(min=1), help="Candidates for each md_hom at most."
)
@click.option("--seed", metavar="N", type=int, default=0, help="Of the search's random choices.")
@click.option(
    "--jobs",
    metavar="N",
    type=click.IntRange(1, 1024),
    help="On native: how many candidates are built at a time; default: as many as there are threads.",
)
@click.option(
    "--cluster",
    metavar="ADDRESS",
    help="A dask scheduler, tcp://HOST:PORT: its workers that have the device time candidates.",
)
@click.option("--export", "target", metavar="FILE", type=_FILE, help="Write all results as JSON, at the end.")
@click.option("--import", "origin", metavar="FILE", type=_FILE, help="Take over exported results, first.")
@json_option
def command(
    source: Path | None,
    device: str | None,
    driver_patch: bool,
    threads: int | None,
    parameters: dict[str, int | float],
    database: Path | None,
    budget: float,
    evaluations: int | None,
    seed: int,
    jobs: int | None,
    cluster: str | None,
    target: Path | None,
    origin: Path | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Time schedules of SOURCE's md_homs on a device and keep the results.

    Every candidate runs in a child process, and its results are checked before it may win. Results are
    kept at once: Ctrl-C ends the search and loses nothing. `run` and `polyloom.compile` use the best one.
    """
    if source is None and target is None and origin is None:
        raise click.UsageError("Missing argument 'SOURCE' (or --export, --import).")
    from polyloom.mdh.native.device import choose
    from polyloom.mdh.tuning.cluster.workers import connected
    from polyloom.mdh.tuning.database import Database, default_path

    path = default_path() if database is None else database
    document: dict[str, Any] = {}
    interrupted = False
    with Database(path) as results:
        if origin is not None:
            document |= _imported_from(results, origin, quiet=as_json)
        if source is not None:
            settings = {"budget": budget, "evaluations": evaluations, "seed": seed, "jobs": jobs}
            model = choose(device, driver_patch=driver_patch, threads=threads)
            with connected(cluster) as workers:
                reading = Reading(**options)
                found = _tuned(source, model, parameters, results, settings, reading, workers, as_json)
            document |= found
            interrupted = found["interrupted"]
        if target is not None:
            document |= _exported_to(results, target, quiet=as_json)
        damaged = results.damaged
    if damaged:
        message = f"{damaged} entries of `{path}` hold nothing that Polyloom writes, and were passed over"
        print_remarks([warning("database-damaged", message)], quiet=as_json)
    if as_json:
        print_document(document)
    return INTERRUPTED if interrupted else 0


def _tuned(
    source: Path,
    model: DeviceModel,
    parameters: dict[str, int | float],
    results: Any,
    settings: dict[str, Any],
    reading: Reading,
    workers: Cluster | None,
    quiet: bool,
) -> dict[str, Any]:
    from polyloom.device_pipeline import open_program, tune_opencl
    from polyloom.mdh.tuning.tune import TuneOptions
    from polyloom.report.progress import status_line
    from polyloom.report.tuning_view import print_tuning, tuning_document, tuning_progress
    from polyloom.sources import load_host_programs

    with status_line(f"reading {source.name}"):
        loaded = load_host_programs(source, reading)
    print_remarks([remark for part in loaded for remark in part.remarks], quiet=quiet)
    with tuning_progress(quiet=quiet) as observer:
        options = TuneOptions(**settings)
        programs = [part.program for part in loaded]
        found = tune_opencl(programs, parameters, model, results, options, observer, workers)
    if not quiet:
        print_tuning(found, model.id)
    document = {**tuning_document(found, model.id, str(results.path)), "checks": []}
    if found and not document["interrupted"]:
        with status_line("building what was found"):
            opened = [open_program(part, model, results.path) for part in loaded]
        document["checks"] = [_checked(program, parameters, quiet) for program in opened]
    return document


def _checked(program: CompiledProgram, parameters: dict[str, int | float], quiet: bool) -> dict[str, Any]:
    """Compare a tuned program with its reference; say so where that cannot be done.

    Errors: ``check-mismatch``.
    """
    from polyloom.device_pipeline import check_tuned
    from polyloom.mdh.running import RESULTS
    from polyloom.report.progress import status_line
    from polyloom.report.terminal import print_pairs
    from polyloom.report.verdict_view import verdict_rows

    name = program.program.name
    try:
        with status_line(f"comparing {name} with its reference"):
            found = check_tuned(program, parameters)
    except PolyloomError as fault:
        reason = fault.diagnostics[0].message
        print_remarks([warning("tuning-unchecked", f"`{name}` was not checked: {reason}")], quiet=quiet)
        return {"function": name, "check": None, "reason": reason}
    if found is None or found.check is None:
        return {"function": name, "check": None, "reason": "there is nothing to compare with"}
    if not found.passed:
        raise found.check.mismatch(RESULTS)
    if not quiet:
        print_pairs(verdict_rows(found.check))
    return {"function": name, "check": found.check.json()}


def _imported_from(database: Database, path: Path, *, quiet: bool) -> dict[str, Any]:
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


def _exported_to(database: Database, path: Path, *, quiet: bool) -> dict[str, Any]:
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
