"""``polyloom show``: what was understood of a source."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from polyloom.cli.loading import load, reading_of
from polyloom.cli.messages import print_document, print_remarks
from polyloom.cli.options import c_options, json_option, parameter_option, reductions_option, source_options
from polyloom.report.progress import status_line
from polyloom.sources import Reading, is_loops, is_model, load_model


@click.command()
@source_options
@c_options
@click.option(
    "--as",
    "form",
    type=click.Choice(["lair", "mdh", "scop"]),
    help="As LAIR (the default of LAIR), md_hom expressions, or a static control part (of C). A model: what "
    "became of each node.",
)
@parameter_option
@reductions_option
@json_option
def command(source: Path, form: str | None, as_json: bool, defines: dict[str, str], **options: Any) -> None:
    """Print what was understood of SOURCE: specialized, with all sizes and types."""
    reading = reading_of({**options, "defines": defines})
    if is_loops(source) and form in (None, "scop"):
        _show_parts(source, reading, as_json=as_json)
        return
    if form == "mdh":
        _show_md_homs(source, reading, as_json=as_json)
        return
    if is_model(source):
        _show_model(source, reading, form, as_json=as_json)
        return
    from polyloom.report.program_view import document, text

    program = load(source, {**options, "defines": defines}, quiet=as_json)
    if as_json:
        print_document(document(program, form or "lair"))
    else:
        click.echo(text(program, form or "lair"), nl=False)


def _show_model(source: Path, reading: Reading, form: str | None, *, as_json: bool) -> None:
    """Print what became of each node of a model, or its statements as LAIR."""
    from polyloom.report import model_view
    from polyloom.report.program_view import text

    with status_line(f"reading {source.name}"):
        model = load_model(source, reading.defines, None, reading.function)
    print_remarks(model.remarks, quiet=as_json)
    if as_json:
        print_document(model_view.document(model, form))
    elif form is None:
        model_view.print_model(model)
    else:
        click.echo(text(model.program, form), nl=False)


def _show_md_homs(source: Path, reading: Reading, *, as_json: bool) -> None:
    """Print md_homs and the host loops around them; as JSON one list of all md_homs."""
    from polyloom.report.mdh_view import document, text
    from polyloom.sources import load_host_programs

    with status_line(f"looking at the loops of {source.name}"):
        loaded = load_host_programs(source, reading)
    for part in loaded:
        print_remarks(part.remarks, quiet=as_json)
    programs = [part.program for part in loaded]
    if as_json:
        print_document(document(programs))
    else:
        click.echo(text(programs), nl=False)


def _show_parts(source: Path, reading: Reading, *, as_json: bool) -> None:
    """Print the static control parts of a C file; as JSON one object, or a list of several."""
    from polyloom.report.scop_view import documents, text
    from polyloom.sources import load_parts

    with status_line(f"looking at the loops of {source.name}"):
        parts = load_parts(source, reading)
    if not as_json:
        click.echo(text(parts), nl=False)
        return
    found = documents(parts)
    print_document(found[0] if len(found) == 1 else found)
