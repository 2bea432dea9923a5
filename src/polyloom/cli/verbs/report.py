"""``polyloom report``: two runs side by side, from their pages."""

from __future__ import annotations

from pathlib import Path

import click

from polyloom.cli.messages import print_document
from polyloom.cli.options import json_option

_FILE = click.Path(path_type=Path)


@click.command()
@click.argument("first", metavar="A.html", type=_FILE)
@click.argument("second", metavar="B.html", type=_FILE)
@click.option("-o", "--output", metavar="OUT.html", type=_FILE, required=True, help="Where the page goes.")
@json_option
def command(first: Path, second: Path, output: Path, as_json: bool) -> None:
    """Compare two runs: pages that `simulate --report` or `run --report` wrote, as one page."""
    from polyloom.report.html.beside import write_beside
    from polyloom.report.progress import status_line

    with status_line(f"writing {output.name}"):
        write_beside(output, first, second)
    if as_json:
        print_document({"file": str(output)})
