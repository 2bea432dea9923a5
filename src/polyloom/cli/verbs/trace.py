"""``polyloom trace``: every intermediate tensor, by the evaluator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from polyloom.cli.loading import load_whole
from polyloom.cli.messages import print_document
from polyloom.cli.options import c_options, json_option, parameter_option, source_options
from polyloom.diagnostics import PolyloomError, error
from polyloom.ir.verification.comparison import Difference
from polyloom.report.progress import status_line

_FILE = click.Path(path_type=Path)


@click.command()
@source_options
@c_options
@parameter_option
@click.option("--inputs", metavar="I.npz", type=_FILE, help="One array per input; without: small integers.")
@click.option("-o", "--output", metavar="T.npz", type=_FILE, help="Where all the tensors go.")
@click.option(
    "--compare",
    metavar="R.npz",
    type=_FILE,
    help="Name the first tensor that is not as in R.npz; exit with 1.",
)
@json_option
def command(
    source: Path,
    inputs: Path | None,
    output: Path | None,
    compare: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Evaluate SOURCE in NumPy and show every tensor, the intermediate ones too."""
    from polyloom.files import read_arrays, write_arrays
    from polyloom.models import elements_of_loaded, trace
    from polyloom.report.wafer.trace_view import trace_document

    loaded = load_whole(source, options, quiet=as_json, inputs=inputs)
    given = None if inputs is None else read_arrays(inputs, elements_of_loaded(loaded))
    wanted = None if compare is None else read_arrays(compare, elements_of_loaded(loaded))
    with status_line(f"evaluating {source.name}"):
        found = trace(loaded, given, wanted)
    if output is not None:
        write_arrays(output, found.tensors)
    _print(trace_document(found), found.difference, as_json=as_json)


def _print(document: dict[str, Any], found: Difference | None, *, as_json: bool) -> None:
    """Print a trace. Errors: ``trace-differs``."""
    from polyloom.report.wafer.trace_view import print_trace

    if as_json:
        print_document(document)
    else:
        print_trace(document)
    if found is not None:
        message = f"`{found.tensor}` is the first tensor that differs"
        helps = [f"look at the statement that writes `{found.tensor}`: what comes before it agrees"]
        raise PolyloomError(error("trace-differs", message, notes=[found.text], helps=helps))
