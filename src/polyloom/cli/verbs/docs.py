"""``polyloom docs``: the documents that come with Polyloom."""

from __future__ import annotations

import click

from polyloom.cli.messages import print_document
from polyloom.cli.options import json_option


@click.command()
@click.argument("page", required=False)
@json_option
def command(page: str | None, as_json: bool) -> None:
    """Print the document PAGE, or list all of them.

    Messages name documents so: "`polyloom docs models`".
    """
    from polyloom import shipped

    if page is not None:
        text = shipped.page(page)
        if as_json:
            print_document({"page": page, "text": text})
        else:
            click.echo(text, nl=False)
        return
    pages = shipped.pages()
    if as_json:
        print_document({"pages": pages})
        return
    width = max(map(len, pages))
    for name, about in pages.items():
        click.echo(f"{name:{width}}  {about}")
