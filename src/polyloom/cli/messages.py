"""Diagnostics and documents of JSON on the terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from typing import Any

import click

from polyloom.diagnostics import Diagnostic, Severity, render
from polyloom.report.terminal import takes_escapes

_COLORS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.REMARK: "cyan"}


VERSION = 1
"""Of the documents: another number where a field means something else than before, or is gone."""

_printed = ContextVar("printed", default=False)
"""Whether this command has printed its document."""


def begin_documents() -> None:
    """Note that the command has printed no document yet."""
    _printed.set(False)


def print_document(document: Any) -> None:
    """Print the one document of ``--json``; an object says its version."""
    stated = {"version": VERSION, **document} if isinstance(document, dict) else document
    _printed.set(True)
    click.echo(json.dumps(stated, indent=1))


def print_errors(diagnostics: Sequence[Diagnostic]) -> None:
    """Print errors as the document of a command that has printed none: ``{version, errors}``."""
    if not _printed.get():
        print_document({"errors": [diagnostic_document(d) for d in diagnostics]})


def diagnostic_document(diagnostic: Diagnostic) -> dict[str, Any]:
    """Return a diagnostic as a document. ``place``: ``file:line:column``."""
    return {
        "severity": diagnostic.severity.value,
        "code": diagnostic.code,
        "message": diagnostic.message,
        "place": None if diagnostic.span is None else str(diagnostic.span),
        "notes": list(diagnostic.notes),
        "helps": list(diagnostic.helps),
    }


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
    if not takes_escapes(sys.stderr):
        return head + line + rest
    return click.style(label, fg=_COLORS[diagnostic.severity], bold=True) + f": {message}" + line + rest
