"""Diagnostics on the terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

import click

from polyloom.diagnostics import Diagnostic, Severity, render

_COLORS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.REMARK: "cyan"}


def print_diagnostics(diagnostics: Iterable[Diagnostic]) -> None:
    """Print messages to stderr, a blank line between them, with colour on a terminal."""
    click.echo("\n\n".join(_text(diagnostic) for diagnostic in diagnostics), err=True, nl=True)


def print_remarks(diagnostics: Iterable[Diagnostic], *, quiet: bool) -> None:
    """Print warnings and remarks for a person; nothing for a program."""
    shown = () if quiet else tuple(diagnostics)
    if shown:
        print_diagnostics(shown)


def _text(diagnostic: Diagnostic) -> str:
    head, line, rest = render(diagnostic).partition("\n")
    label, _, message = head.partition(": ")
    if not sys.stderr.isatty() or os.environ.get("NO_COLOR"):  # no-color.org
        return head + line + rest
    return click.style(label, fg=_COLORS[diagnostic.severity], bold=True) + f": {message}" + line + rest
