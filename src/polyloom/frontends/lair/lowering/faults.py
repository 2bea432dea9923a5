"""Collecting errors, so that one run reports as many independent ones as there are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NoReturn

from polyloom.diagnostics import Diagnostic, PolyloomError, Span, error


def fail(
    code: str, message: str, span: Span | None, *, label: str = "", notes: Iterable[str] = (), help: str = ""
) -> NoReturn:
    """Raise a ``PolyloomError`` with one error."""
    raise PolyloomError(error(code, message, span, label=label, notes=notes, helps=[help] if help else []))


class Faults:
    """The errors met so far."""

    def __init__(self) -> None:
        self._found: list[Diagnostic] = []

    @contextmanager
    def collect(self) -> Iterator[None]:
        """Keep the errors that the body raises, and go on after it."""
        try:
            yield
        except PolyloomError as fault:
            self._found += fault.diagnostics

    def raise_any(self) -> None:
        """Raise what was collected, each error once, in the order of the text."""
        if self._found:
            first = {(d.code, d.message, d.span): d for d in reversed(self._found)}
            raise PolyloomError(*sorted(first.values(), key=_position))


def _position(diagnostic: Diagnostic) -> int:
    return diagnostic.span.start if diagnostic.span else -1
