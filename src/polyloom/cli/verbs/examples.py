"""``polyloom examples``: the examples that come with Polyloom."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from polyloom.cli.messages import print_document
from polyloom.cli.options import json_option


@click.command()
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Copy all of them to this new folder.")
@json_option
def command(output: Path | None, as_json: bool) -> None:
    """List the examples, each with a command to try, or copy them: `polyloom examples -o examples`."""
    from polyloom.shipped import copy_examples, examples

    if output is not None:
        count = copy_examples(output)
        if as_json:
            print_document({"folder": str(output), "files": count})
        else:
            click.echo(f"{output}: {count} files")
        return
    found = examples()
    if as_json:
        print_document([asdict(example) for example in found])
        return
    width = max(len(example.file) for example in found)
    for example in found:
        click.echo(f"{example.file:{width}}  {example.command}")
    click.echo("\n`polyloom examples -o examples` copies them here, where these commands find them.")
