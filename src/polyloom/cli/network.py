"""``polyloom simulate --one-wafer``: all layers of a program on one mesh."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from polyloom.cli.layers import maps_in, write_maps
from polyloom.cli.loading import load_whole
from polyloom.cli.messages import print_document
from polyloom.files import read_arrays, write_arrays

if TYPE_CHECKING:
    from polyloom.wafer.network.result import NetworkResult

SAMPLES = 4
"""How many samples run through where the command line does not say."""


def run_network(
    source: Path,
    options: dict[str, Any],
    folder: Path | None,
    files: tuple[Path | None, Path | None, Path | None],
    common: dict[str, Any],
    *,
    crew: Mapping[str, Any],
    as_json: bool,
) -> None:
    """Place a network on one wafer, simulate it and print what came of it.

    ``folder``: of maps, NAME.map for a layer; ``files``: inputs, outputs, report; ``common``: the options of
    ``simulate``, and ``pes``, ``samples``, ``state`` and ``watch``; ``crew``: ``jobs`` and ``cluster``.
    Raises ``check-mismatch`` where a sample is wrong.
    """
    from polyloom.api.network import simulate_one_wafer
    from polyloom.models import elements_of_loaded
    from polyloom.report.progress import network_status
    from polyloom.report.wafer.network_view import print_network
    from polyloom.workers.local import crew_of

    inputs, outputs, report = files
    ctx = click.get_current_context()
    if ctx.get_parameter_source("invocations") is click.core.ParameterSource.DEFAULT:
        common = {**common, "samples": SAMPLES}
    common = {
        name: common[name] for name in ("machine", "memory", "check", "pes", "samples", "state", "watch")
    }
    loaded = load_whole(source, options, quiet=as_json, inputs=inputs)
    samples = common["samples"]
    arrays = None if inputs is None else read_arrays(inputs, elements_of_loaded(loaded) * samples)
    maps = {} if folder is None else maps_in(folder)
    with network_status() as (placing, simulating), crew_of(**crew) as several:
        result = simulate_one_wafer(
            loaded, arrays, maps=maps, progress=placing, simulating=simulating, crew=several, **common
        )
    _write(result, outputs, report, loaded)
    if as_json:
        print_document(result.json())
    else:
        print_network(result)
    if result.check is not None and not result.check.passed:
        raise result.check.mismatch("the simulation's results")


def _write(result: NetworkResult, outputs: Path | None, report: Path | None, loaded: Any) -> None:
    places = result.program.plan.places
    write_maps(
        click.get_current_context().params.get("write_map"),
        [(p.block.placed.stage.name, p.block.placed.choice.text) for p in places],
    )
    if outputs is not None:
        model = loaded.model
        write_arrays(outputs, result.outputs if model is None else model.outputs(result.outputs))
    if report is not None:
        from polyloom.report.html.network import write_network_report
        from polyloom.report.progress import status_line

        with status_line(f"writing {report.name}"):
            write_network_report(report, result)
