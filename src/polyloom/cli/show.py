"""``polyloom show``: what was understood of a source."""

from __future__ import annotations

import json
from pathlib import Path

import click

from polyloom.cli.loading import load
from polyloom.cli.options import json_option, source_options


@click.command()
@source_options
@click.option(
    "--as",
    "form",
    type=click.Choice(["lair", "mdh", "scop"]),
    default="lair",
    show_default=True,
    help="As LAIR, as md_hom expressions, or as a static control part.",
)
@json_option
def command(source: Path, node: str | None, defines: dict[str, str], form: str, as_json: bool) -> None:
    """Print what was understood of SOURCE: specialized, with all sizes and types."""
    from polyloom.report.program_view import document, text

    program = load(source, node, defines, quiet=as_json)
    if as_json:
        click.echo(json.dumps(document(program, form), indent=1))
    else:
        click.echo(text(program, form), nl=False)
