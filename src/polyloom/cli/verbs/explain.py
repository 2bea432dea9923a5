"""``polyloom explain``: the wafer back end's stages, with sets; loops of C; loops on the processor."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from polyloom.cli.layers import explain_layers_of
from polyloom.cli.loading import chosen_for, load_whole, reading_of
from polyloom.cli.messages import print_document, print_remarks
from polyloom.cli.options import (
    c_options,
    c_scalar_option,
    csl_options,
    database_option,
    fp_option,
    jobs_option,
    json_option,
    machine_option,
    map_option,
    reduction_option,
    reductions_option,
    schedule_option,
    simd_option,
    source_options,
    threads_option,
)
from polyloom.diagnostics import Diagnostic
from polyloom.files import is_folder
from polyloom.report.progress import status_line
from polyloom.sources import is_loops

if TYPE_CHECKING:
    from polyloom.ir.program import Program
    from polyloom.mdh.device.devices import DeviceModel


@click.command()
@source_options
@c_options
@c_scalar_option
@map_option
@reductions_option
@fp_option
@schedule_option
@simd_option
@reduction_option
@machine_option
@click.option("--device", metavar="native", help="How it runs on the processor: schedules, and all loops.")
@threads_option
@database_option
@csl_options
@click.option("--schedule-tree", is_flag=True, help="Of C: print the schedule as a tree, for --schedule.")
@jobs_option
@json_option
def command(
    source: Path,
    device: str | None,
    threads: int | None,
    database: Path | None,
    map_file: Path | None,
    simd: str,
    simd_without: tuple[str, ...],
    reduction: str,
    machine: str,
    arch: str,
    params: tuple[str, ...],
    colors: tuple[str, ...],
    import_paths: tuple[Path, ...],
    schedule_tree: bool,
    jobs: int | None,
    cluster: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Print every stage that SOURCE goes through under MAP, with its sets in the paper's notation.

    The numbers at the right are the equations of `dtg_codegen` (Verdoolaege et al., IMPACT 2020).

    Without MAP and --size, each layer of a model is explained by itself, under a map that is chosen for it
    (--map DIR: under NAME.map, where DIR has it; --size: the whole model as one layer).

    Without MAP and --size, a C source is printed with what each of its loops is: parallel, a reduction or
    serial, and why; with `--param`, also where each loop is in the schedule for these sizes, and what is not
    tiled or fused and why.

    With `--device native`, the schedule of each md_hom and the program's loops on the processor.

    A layout in CSL is printed as what it puts on the wafer: programs and their PEs, tasks and what starts
    them, queues, memory, routes, exports.
    """
    if source.suffix == ".csl":
        _explain_csl(source, arch, (params, colors), import_paths, as_json=as_json)
        return
    if device is not None:
        from polyloom.mdh.native.device import choose

        _explain_native(source, options, choose(device, threads=threads), database, as_json=as_json)
        return
    if map_file is None and is_loops(source) and options["size"] is None:
        where = options["parameters"] or None, threads, database
        _explain_loops(source, options, where, tree=schedule_tree, as_json=as_json)
        return
    loaded = load_whole(source, options, quiet=as_json)
    common = {"simd": simd, "machine": machine, "simd_without": simd_without, "reduction": reduction}
    has_maps = map_file is not None and is_folder(map_file)
    if has_maps or (loaded.model is not None and map_file is None and options["size"] is None):
        crew = {"jobs": jobs, "cluster": cluster}
        explain_layers_of(loaded, map_file, common, crew, as_json=as_json)
    else:
        _explain_layer(loaded.program, map_file, common, source.name, as_json=as_json)


def _explain_layer(
    program: Program, map_file: Path | None, common: dict[str, Any], name: str, *, as_json: bool
) -> None:
    """Explain a program as one layer. ``common``: options of ``explain``; ``name``: of the source."""
    from polyloom.api.wafer import explain

    choice = chosen_for(program, map_file, quiet=as_json)
    with status_line(f"compiling {name}"):
        found = explain(program, choice.mapping, **common)
    if as_json:
        chosen = {"choice": choice.json()} if choice.candidates else {}
        print_document({**chosen, **found.json()})
        return
    from polyloom.report.wafer.explain_view import print_explanation

    print_explanation(found.analysis, found.survey)
    refused = (found.survey,) if isinstance(found.survey, Diagnostic) else ()
    print_remarks((*found.remarks, *refused), quiet=as_json)


def _explain_native(
    source: Path, options: dict[str, Any], device: DeviceModel, database: Path | None, *, as_json: bool
) -> None:
    from polyloom.api.processor import explain_native
    from polyloom.device_pipeline import open_loaded
    from polyloom.sources import load_program

    with status_line(f"compiling {source.name}"):
        program = open_loaded(load_program(source, reading_of(options)), device, database)
        found = explain_native(program, options["parameters"])
    print_document(found.json()) if as_json else click.echo(str(found).rstrip("\n"))


def _explain_csl(
    source: Path,
    arch: str,
    given: tuple[tuple[str, ...], tuple[str, ...]],
    import_paths: tuple[Path, ...],
    *,
    as_json: bool,
) -> None:
    from polyloom.csl.compile import compile_layout
    from polyloom.csl.host.opening import machine_model
    from polyloom.csl.host.options import numbers
    from polyloom.csl.survey import survey
    from polyloom.report.csl.explain_view import print_survey

    params, colors = numbers(given[0], "--params"), numbers(given[1], "--colors")
    with status_line(f"compiling {source.name}"):
        found = survey(compile_layout(source, arch, params, colors, import_paths))
    if as_json:
        print_document(found.json())
    else:
        print_survey(found, machine_model(arch).sram_bytes)


def _explain_loops(
    source: Path,
    options: dict[str, Any],
    where: tuple[Mapping[str, Any] | None, int | None, Path | None],
    *,
    tree: bool,
    as_json: bool,
) -> None:
    """Print the verdicts on the loops of a C file; as JSON one object, or a list of several.

    ``where``: parameters, threads and the database of tuned schedules, for where the loops are then.
    """
    from polyloom.api.loops import explain_loops

    given, threads, database = where
    with status_line(f"looking at the loops of {source.name}"):
        if tree or given is None:
            found = explain_loops(source, reading_of(options))
        else:
            from polyloom.mdh.native.device import NATIVE, choose

            device = choose(NATIVE, threads=threads)
            found = explain_loops(source, reading_of(options), given, device, database)
    print_remarks([remark for scop, _ in found.parts for remark in scop.remarks], quiet=as_json)
    if tree:
        click.echo(found.schedule_trees(), nl=False)
        return
    print_document(found.json()) if as_json else click.echo(str(found).rstrip("\n"))
