"""``polyloom trace``: every intermediate tensor, by the evaluator."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from polyloom.cli.loading import load
from polyloom.cli.options import c_options, json_option, parameter_option, source_options
from polyloom.diagnostics import PolyloomError, error
from polyloom.ir.verification.comparison import Difference
from polyloom.sources import is_model

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
    from polyloom.api.evaluation import random_inputs, trace_tensors
    from polyloom.files import read_arrays, write_arrays
    from polyloom.ir.evaluation.inputs import elements_of
    from polyloom.ir.verification.comparison import first_difference
    from polyloom.report.wafer.trace_view import trace_document

    if is_model(source):
        document, found = _traced_model(source, options, inputs, output, compare)
        _print(document, found, as_json=as_json)
        return
    program = load(source, options, quiet=as_json)
    given = random_inputs(program) if inputs is None else read_arrays(inputs, elements_of(program))
    tensors = trace_tensors(program, given)
    found = None
    if compare is not None:
        wanted = read_arrays(compare, elements_of(program, every=True))
        found = first_difference(program, given, tensors, wanted)
    if output is not None:
        write_arrays(output, tensors)
    _print(trace_document(program, tensors, found), found, as_json=as_json)


def _traced_model(
    source: Path, options: dict[str, Any], inputs: Path | None, output: Path | None, compare: Path | None
) -> tuple[dict[str, Any], Difference | None]:
    """Evaluate a model; its tensors have the names that they have in its file."""
    from polyloom.files import read_arrays, read_shapes, write_arrays
    from polyloom.models import elements_of_model, trace_model
    from polyloom.report.wafer.trace_view import model_trace_document
    from polyloom.sources import load_model

    shapes = None if inputs is None else read_shapes(inputs)
    model = load_model(source, options["defines"], shapes, options.get("function"))
    most = elements_of_model(model)
    given = None if inputs is None else read_arrays(inputs, most)
    traced = trace_model(model, given, None if compare is None else read_arrays(compare, most))
    if output is not None:
        write_arrays(output, traced.tensors)
    return model_trace_document(model, traced.tensors, traced.difference), traced.difference


def _print(document: dict[str, Any], found: Difference | None, *, as_json: bool) -> None:
    """Print a trace. Errors: ``trace-differs``."""
    from polyloom.report.wafer.trace_view import print_trace

    if as_json:
        click.echo(json.dumps(document, indent=1))
    else:
        print_trace(document)
    if found is not None:
        message = f"`{found.tensor}` is the first tensor that differs"
        helps = [f"look at the statement that writes `{found.tensor}`: what comes before it agrees"]
        raise PolyloomError(error("trace-differs", message, notes=[found.text], helps=helps))
