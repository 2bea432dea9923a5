"""Arguments and options that several verbs share."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

_F = TypeVar("_F", bound=Callable[..., Any])

MODES = ("auto", "off", "hull", "exact", "enumerate")
MACHINES = ("cs1", "cs2", "cs3")


def source_options(function: _F) -> _F:
    """Add SOURCE, ``--node``, ``-D`` and the hidden ``--debug``."""
    for option in reversed(
        (
            click.argument("source", type=click.Path(path_type=Path)),
            click.option("--node", metavar="NAME", help="The LAIR node or graph, where a file has several."),
            click.option(
                "-D",
                "defines",
                metavar="NAME=VALUE",
                multiple=True,
                callback=_defines,
                help="A LAIR size or type parameter: -D M=32 -D T=float32.",
            ),
            click.option("--debug", is_flag=True, expose_value=False, hidden=True),
        )
    ):
        function = option(function)
    return function


def map_option(function: _F) -> _F:
    """Add ``--map``."""
    help_ = "The LAIR map: placement and ports."
    return click.option("--map", "map_file", metavar="MAP", type=click.Path(path_type=Path), help=help_)(
        function
    )


def simd_option(function: _F) -> _F:
    """Add ``--simd``."""
    help_ = "Which SIMD strategies are tried; auto: hull, then exact, then enumerate."
    return click.option("--simd", type=click.Choice(MODES), default="auto", show_default=True, help=help_)(
        function
    )


def machine_option(function: _F) -> _F:
    """Add ``--machine``."""
    help_ = "The machine model."
    option = click.option(
        "--machine", type=click.Choice(MACHINES), default="cs2", show_default=True, help=help_
    )
    return option(function)


def json_option(function: _F) -> _F:
    """Add ``--json``."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")(function)


def number(ctx: click.Context, parameter: click.Parameter, value: float) -> float:
    """Refuse what is no number, which lies in every range."""
    if math.isnan(value):
        raise click.BadParameter("'nan' is no number", ctx, parameter)
    return value


def _defines(ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in values:
        name, equals, value = text.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise click.BadParameter(f"'{text}' is not of the form NAME=VALUE", ctx, parameter)
        if name.strip() in found:
            raise click.BadParameter(f"'{name.strip()}' is given twice", ctx, parameter)
        found[name.strip()] = value.strip()
    return found
