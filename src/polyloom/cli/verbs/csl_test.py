"""``polyloom csl-test``: CSL programs of a folder, run by their own commands."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from polyloom.cli.messages import print_document
from polyloom.cli.options import json_option

_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


def _pairs(ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> list[tuple[str, str]]:
    pairs = [value.partition("=") for value in values]
    for old, equals, _ in pairs:
        if not (old and equals):
            raise click.BadParameter("it is not of the form OLD=NEW", ctx, parameter)
    return [(old, new) for old, _, new in pairs]


@click.command()
@click.argument("folder", type=_FOLDER)
@click.option("--only", metavar="TEXT", default="", help="Scripts with TEXT in their path.")
@click.option(
    "--jobs", metavar="N", type=click.IntRange(min=1), default=1, help="Scripts at a time. Default 1."
)
@click.option(
    "--seconds",
    metavar="S",
    type=click.FloatRange(min=1),
    default=300.0,
    help="The limit of each. Default 300.",
)
@click.option(
    "--replace",
    "replacements",
    metavar="OLD=NEW",
    multiple=True,
    callback=_pairs,
    help="Text of the scripts that is another command here.",
)
@click.option("--show", is_flag=True, help="Print what each script that did not pass printed.")
@json_option
def command(
    folder: Path,
    only: str,
    jobs: int,
    seconds: float,
    replacements: list[tuple[str, str]],
    show: bool,
    as_json: bool,
) -> None:
    """Run the CSL programs under FOLDER on the simulated wafer, by their own `commands*.sh`.

    Each script runs in a copy of FOLDER, where `cslc` and `cs_python` are Polyloom's. It passed if it ended
    with status 0 and ran a host program; the exit status is 1 if one failed or took too long.
    """
    from polyloom.csl.runner.scripts import Outcome, Result, find_scripts, run_scripts

    scripts = find_scripts(folder, only, replacements)
    width = max(len(str(script.path)) for script in scripts)

    def print_one(result: Result) -> None:
        click.echo(
            f"{result.script:{width}}  {result.outcome.value:9}  {result.seconds:6.1f} s  {result.reason}"
        )
        if show and result.outcome is not Outcome.PASSED:
            click.echo(result.output)

    def seen(result: Result) -> None:
        if not as_json:
            print_one(result)

    results = list(run_scripts(folder, scripts, seconds=seconds, jobs=jobs, seen=seen))
    counts = {outcome.value: sum(r.outcome is outcome for r in results) for outcome in Outcome}
    if as_json:
        rows = [{**asdict(result), "outcome": result.outcome.value} for result in results]
        print_document({"counts": counts, "results": rows})
    else:
        click.echo(f"{len(results)} scripts: " + ", ".join(f"{n} {name}" for name, n in counts.items()))
    if counts["stopped"] or counts["failed"] or counts["timed out"]:
        raise SystemExit(1)
