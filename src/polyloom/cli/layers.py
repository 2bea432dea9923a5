"""``polyloom simulate --per-layer``: each layer of a program by itself, and a table of all."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from polyloom.cli.loading import load_whole
from polyloom.diagnostics import PolyloomError, error
from polyloom.files import exists, is_folder, read_arrays, write_text

if TYPE_CHECKING:
    from polyloom.ir.conversion.split_layers import Layer
    from polyloom.wafer.explain.layers import ModelRun


def run_layers(
    source: Path,
    options: dict[str, Any],
    folder: Path | None,
    inputs: Path | None,
    common: dict[str, Any],
    *,
    as_json: bool,
) -> None:
    """Simulate the layers and print them.

    ``folder``: of maps, NAME.map for a layer; ``common``: the options of ``simulate`` that hold for each.
    Raises what the layers were refused for, when all of them have been printed.
    """
    from polyloom.api.simulation import simulate_layers
    from polyloom.ir.conversion.split_layers import layers_of
    from polyloom.models import elements_of_loaded
    from polyloom.report.progress import layer_status
    from polyloom.report.wafer.layers_view import print_layers

    loaded = load_whole(source, options, quiet=as_json, inputs=inputs)
    arrays = None if inputs is None else read_arrays(inputs, elements_of_loaded(loaded))
    layers = layers_of(loaded.program)
    maps = {} if folder is None else _maps(folder, layers)
    with layer_status(len(layers)) as progress:
        run = simulate_layers(loaded, arrays, maps, progress=progress, **common)
    _write_maps(click.get_current_context().params.get("write_map"), run)
    if as_json:
        click.echo(json.dumps(run.json(), indent=1))
    else:
        print_layers(run)
    fault = run.fault()
    if fault is not None:
        raise fault


def _maps(folder: Path, layers: Iterable[Layer]) -> Mapping[str, Path]:
    """Return the maps that there are."""
    if not is_folder(folder):
        message = f"`{folder}` is no folder"
        helps = ["with `--per-layer`, `--map` names a folder that holds NAME.map for some layers"]
        raise PolyloomError(error("map-folder", message, helps=helps))
    files = {layer.name: folder / _file(layer) for layer in layers}
    return {name: path for name, path in files.items() if exists(path)}


def _write_maps(folder: Path | None, run: ModelRun) -> None:
    if folder is None:
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        message = f"`{folder}` cannot be made: {fault.strerror}"
        raise PolyloomError(error("file-unwritable", message, helps=["choose another folder"])) from fault
    for layer in run.layers:
        if layer.choice is not None:
            write_text(folder / _file(layer.layer), layer.choice.text)


def _file(layer: Layer) -> str:
    return f"{layer.program.name}.map"
