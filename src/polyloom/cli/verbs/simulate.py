"""``polyloom simulate``: the compiled code on a simulated wafer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from polyloom.cli.layers import run_layers
from polyloom.cli.loading import load_placed
from polyloom.cli.messages import print_document, print_remarks
from polyloom.cli.network import run_network
from polyloom.cli.options import (
    c_options,
    check_of_network,
    jobs_option,
    json_option,
    machine_option,
    map_option,
    network_options,
    number,
    parameter_option,
    reduction_option,
    simd_option,
    source_options,
    state_pairs,
)

if TYPE_CHECKING:
    from polyloom.wafer.simulator.result import Trace

_FILE = click.Path(path_type=Path)


def _pes(ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> list[tuple[int, int]]:
    return [_pe(ctx, parameter, value) for value in values]


def _pe(ctx: click.Context, parameter: click.Parameter, value: str) -> tuple[int, int]:
    try:
        x, y = (int(part) for part in value.split(","))
    except ValueError:
        raise click.BadParameter(f"'{value}' is not of the form X,Y", ctx, parameter) from None
    return x, y


def _refuse_with_layers(**given: object) -> None:
    for name, value in given.items():
        if value:
            raise click.UsageError(f"`--{name}` is of one layer, not of `--per-layer`")


_DEFAULT = click.core.ParameterSource.DEFAULT


def _refuse_with_network(**given: object) -> None:
    ctx = click.get_current_context()
    stated = [n for n in _OF_A_LAYER if ctx.get_parameter_source(n) is not _DEFAULT]
    for name in (*(name for name, value in given.items() if value), *stated):
        raise click.UsageError(f"`--{name.replace('_', '-')}` does not go with `--one-wafer`")


_OF_A_LAYER = ("simd", "simd_without", "reduction", "density")


@click.command()
@source_options
@c_options
@parameter_option
@map_option
@machine_option
@simd_option
@reduction_option
@click.option("--inputs", metavar="I.npz", type=_FILE, help="One array per input; without: small integers.")
@click.option("--outputs", metavar="O.npz", type=_FILE, help="Where the outputs go.")
@click.option(
    "--invocations",
    metavar="N",
    type=click.IntRange(min=1),
    default=1,
    help="Run the layer N times; streamed tensors then have a leading axis N.",
)
@click.option(
    "--density",
    metavar="P",
    type=click.FloatRange(0, 1),
    callback=number,
    default=1.0,
    help="Without --inputs: the fraction of a sparse tensor that is not 0. Default 1.",
)
@click.option(
    "--memory", metavar="BYTES", type=click.IntRange(min=0), help="What the data of a PE may fill at most."
)
@click.option(
    "--check",
    is_flag=True,
    help="Compare with the C program, or the NumPy evaluator; exit with 1 on a mismatch.",
)
@click.option("--trace", metavar="T", type=_FILE, help="Write what happened when, for a timeline viewer.")
@click.option("--report", metavar="R.html", type=_FILE, help="Write everything as one HTML page.")
@click.option(
    "--watch",
    metavar="X,Y",
    multiple=True,
    callback=_pes,
    help="A PE whose time line the report shows; on small rectangles it shows all.",
)
@click.option(
    "--per-layer",
    is_flag=True,
    help="Simulate each layer of SOURCE by itself; `--map` and `--write-map` are then folders of NAME.map.",
)
@network_options
@jobs_option
@json_option
def command(
    source: Path,
    map_file: Path | None,
    machine: str,
    simd: str,
    simd_without: tuple[str, ...],
    reduction: str,
    inputs: Path | None,
    outputs: Path | None,
    invocations: int,
    density: float,
    memory: int | None,
    check: bool,
    trace: Path | None,
    report: Path | None,
    watch: list[tuple[int, int]],
    per_layer: bool,
    one_wafer: bool,
    pes: int | None,
    state: tuple[str, ...],
    as_json: bool,
    **options: Any,
) -> None:
    """Run the code that SOURCE compiles to under MAP on a simulated wafer, and count its cycles."""
    common: dict[str, Any] = {
        "simd": simd,
        "simd_without": simd_without,
        "reduction": reduction,
        "machine": machine,
        "density": density,
        "memory": memory,
        "check": check,
    }
    crew = {name: options.pop(name) for name in ("jobs", "cluster")}
    if one_wafer:
        _refuse_with_network(trace=trace, per_layer=per_layer)
        common |= {"pes": pes, "samples": invocations, "state": state_pairs(state)}
        common["watch"] = None if report is None else watch
        run_network(source, options, map_file, (inputs, outputs, report), common, crew=crew, as_json=as_json)
        return
    check_of_network(pes, state)
    if per_layer:
        _refuse_with_layers(outputs=outputs, trace=trace, watch=watch, invocations=invocations > 1)
        run_layers(source, options, map_file, inputs, common, report=report, crew=crew, as_json=as_json)
        return
    from polyloom.api.simulation import simulate
    from polyloom.files import read_arrays, write_arrays
    from polyloom.models import elements_of_loaded
    from polyloom.report.progress import progress_bar, status_line
    from polyloom.report.wafer.simulation_view import print_simulation

    loaded, choice = load_placed(source, options, map_file, quiet=as_json, inputs=inputs)
    arrays = None if inputs is None else read_arrays(inputs, elements_of_loaded(loaded) * invocations)
    with progress_bar() as progress:
        result = simulate(
            loaded,
            choice.mapping,
            arrays,
            invocations=invocations,
            trace=trace is not None,
            watch=None if report is None else watch,
            progress=progress,
            **common,
        )
    if outputs is not None:
        write_arrays(outputs, result.outputs if (m := loaded.model) is None else m.outputs(result.outputs))
    if trace is not None and result.trace is not None:
        _write_trace(trace, result.trace)
    if report is not None:
        from polyloom.report.html import write_report

        with status_line(f"writing {report.name}"):
            write_report(report, result, choice.candidates)
    if as_json:
        print_document(result.json())
    else:
        print_simulation(result)
        print_remarks(result.remarks, quiet=False)
    if result.check is not None and not result.check.passed:
        raise result.check.mismatch("the simulation's results")


def _write_trace(path: Path, recorded: Trace) -> None:
    from polyloom.files import write_whole
    from polyloom.wafer.simulator.trace import write_trace

    write_whole(path, lambda part: write_trace(recorded, part))
