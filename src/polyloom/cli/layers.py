"""Each layer of a program by itself: ``simulate --per-layer``, ``explain`` of a model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from polyloom.cli.loading import load_whole
from polyloom.cli.messages import print_document, print_remarks
from polyloom.diagnostics import PolyloomError, error
from polyloom.files import is_folder, read_arrays, write_text

if TYPE_CHECKING:
    from polyloom.ir.conversion.split_layers import Layer
    from polyloom.sources import Loaded


def run_layers(
    source: Path,
    options: dict[str, Any],
    folder: Path | None,
    inputs: Path | None,
    common: dict[str, Any],
    *,
    report: Path | None,
    crew: Mapping[str, Any],
    as_json: bool,
) -> None:
    """Simulate the layers and print them.

    ``folder``: of maps, NAME.map for a layer; ``common``: the options of ``simulate`` that hold for each;
    ``report``: where a page goes; ``crew``: ``jobs`` (one, in a process of its own, where not given) and
    ``cluster``.
    Raises what the layers were refused for, when all of them have been printed.
    """
    from polyloom.api.simulation import simulate_layers
    from polyloom.ir.conversion.split_layers import layers_of
    from polyloom.models import elements_of_loaded
    from polyloom.report.progress import layer_status, status_line
    from polyloom.report.wafer.layers_view import print_layers

    loaded = load_whole(source, options, quiet=as_json, inputs=inputs)
    arrays = None if inputs is None else read_arrays(inputs, elements_of_loaded(loaded))
    layers = layers_of(loaded.program)
    maps = {} if folder is None else _maps(folder, layers)
    watch = None if report is None else ()
    with layer_status(len(layers)) as progress:
        run = simulate_layers(
            loaded,
            arrays,
            maps,
            watch=watch,
            progress=progress,
            jobs=crew["jobs"] or 1,
            cluster=crew["cluster"],
            **common,
        )
    chosen = [(r.layer.program.name, r.choice.text) for r in run.layers if r.choice is not None]
    write_maps(click.get_current_context().params.get("write_map"), chosen)
    if report is not None:
        from polyloom.report.html.layers import write_layers_report

        with status_line(f"writing {report.name}"):
            write_layers_report(report, run)
    if as_json:
        print_document(run.json())
    else:
        print_layers(run)
    fault = run.fault()
    if fault is not None:
        raise fault


def explain_layers_of(
    loaded: Loaded, folder: Path | None, common: dict[str, Any], crew: Mapping[str, Any], *, as_json: bool
) -> None:
    """Explain the layers of a model and print them.

    ``folder``, ``crew``: as of ``run_layers``, where neither is given as many processes as there are
    processors; ``common``: the options of ``explain``. Raises what the layers were refused for, when all of
    them have been printed.
    """
    from polyloom.api.layers import explain_layers
    from polyloom.ir.conversion.split_layers import layers_of
    from polyloom.mdh.native.team import available_threads
    from polyloom.report.progress import layer_status
    from polyloom.report.terminal import console
    from polyloom.workers.local import crew_of

    layers = layers_of(loaded.program)
    maps = {} if folder is None else _maps(folder, layers)
    if not any(crew.values()) and len(layers) > 1:
        crew = {"jobs": min(len(layers), available_threads()), "cluster": None}
    with crew_of(**crew, apart=len(layers) > 1) as workers, layer_status(len(layers)) as progress:
        found = explain_layers(loaded.program, maps, progress=progress, crew=workers, **common)
    chosen = [(each.layer.program.name, each.choice.text) for each in found.layers if each.choice is not None]
    write_maps(click.get_current_context().params.get("write_map"), chosen)
    if as_json:
        print_document(found.json())
    else:
        found.print(console())
    print_remarks(found.remarks, quiet=as_json)
    fault = found.fault()
    if fault is not None:
        raise fault


def _maps(folder: Path, layers: Iterable[Layer]) -> Mapping[str, Path]:
    """Return the maps that there are."""
    found = maps_in(folder)
    return {layer.name: found[layer.program.name] for layer in layers if layer.program.name in found}


def maps_in(folder: Path) -> Mapping[str, Path]:
    """Return the maps of a folder by the layers' names: NAME.map each. Errors: ``map-folder``."""
    if not is_folder(folder):
        message = f"`{folder}` is no folder"
        helps = ["for several layers, `--map` names a folder that holds NAME.map for some of them"]
        raise PolyloomError(error("map-folder", message, helps=helps))
    return {path.stem: path for path in sorted(folder.glob("*.map"))}


def write_maps(folder: Path | None, maps: Iterable[tuple[str, str]]) -> None:
    """Write the texts of maps into a folder, NAME.map each; nothing where none is given.

    Errors: ``file-unwritable``.
    """
    if folder is None:
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        message = f"`{folder}` cannot be made: {fault.strerror}"
        raise PolyloomError(error("file-unwritable", message, helps=["choose another folder"])) from fault
    for name, text in maps:
        write_text(folder / f"{name}.map", text)
