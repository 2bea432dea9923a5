"""``polyloom cs-python``: the host program of a CSL program."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from polyloom.csl.host.run import Run

_FILE = click.Path(path_type=Path)


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option(
    "--trace", metavar="T.json", type=_FILE, help="Write what happened when, for a timeline viewer."
)
@click.option("--line-trace", metavar="T.log", type=_FILE, help="The same in lines that wse-viz reads.")
@click.option("--report", metavar="R.html", type=_FILE, help="Write the run as a page.")
@click.option("--summary", is_flag=True, help="Print cycles and what was done in them, when a run stops.")
@click.option("--json", is_flag=True, expose_value=False, help="Print our errors as JSON, too.")
@click.argument("script", type=click.Path(path_type=Path))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(
    trace: Path | None,
    line_trace: Path | None,
    report: Path | None,
    summary: bool,
    script: Path,
    arguments: tuple[str, ...],
) -> None:
    """Run the Python file SCRIPT with ARGUMENTS; options of ours stand before SCRIPT.

    Its imports of the vendor's SDK find Polyloom's simulator: modules with the SDK's public names
    (`cerebras.sdk...`). This is not the vendor's product, and contains nothing of it; programs run on the
    simulated wafer only. What programs print goes to `sim.log` in the current folder.
    """
    from polyloom.csl.host.opening import Recording, recording
    from polyloom.csl.host.script import run_script

    with recording(Recording(trace, line_trace, summary, _writer(report, script))):
        status = run_script(script, arguments)
    if status:
        raise SystemExit(status)


def _writer(page: Path | None, script: Path) -> Callable[[Run], None] | None:
    """Return what writes a run as a page; of a host program with several runs the last one stays."""
    if page is None:
        return None
    from polyloom.report.html.csl_page import write_csl_report

    return lambda run: write_csl_report(page, run, f"{script.resolve().parent.name}/{script.name}")
