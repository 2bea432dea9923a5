"""What is wrong or cannot be expressed: diagnostics raised, and the reason why something is not affine."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NoReturn

from polyloom.diagnostics import PolyloomError, Source, Span, Unsupported, error, near

STEPS_OF = "polyloom_steps_of_"
"""What the names of integers begin with that say how far a pointer was moved (``stepped_pointers``)."""

BEGUN_WITH = "polyloom_begun_with_"
"""What the names of counters begin with that a part has of its own (``counted_loops``)."""

_MOVED = re.compile(rf"(\w+)\[(\+\+|--)?{STEPS_OF}\1(\+\+|--)?\]")
_OFFSET = re.compile(rf"\(?\b(\w+) \+ {STEPS_OF}\1\b\)?|(?:{STEPS_OF}|{BEGUN_WITH})(?=\w)")


def as_written(text: str) -> str:
    """Return a text about the program with pointers as the user moves them: ``*p++``."""
    return _OFFSET.sub(r"\1", _MOVED.sub(r"*\2\1\3", text))


class NotAffine(Exception):
    """An integer expression is no affine function of iterators and parameters.

    ``reason`` is a clause about the part at ``span``: ``multiplies two variables``.
    """

    def __init__(self, span: Span | None, reason: str) -> None:
        super().__init__(reason)
        self.span = span
        self.reason = reason


def fail(
    code: str,
    message: str,
    span: Span | None,
    *,
    label: str = "",
    notes: Iterable[str] = (),
    helps: Iterable[str],
) -> NoReturn:
    """Raise a ``PolyloomError`` with one error: the program is wrong."""
    raise PolyloomError(error(code, message, span, label=label, notes=notes, helps=helps))


def refuse(
    code: str,
    message: str,
    span: Span | None,
    *,
    label: str = "",
    notes: Iterable[str] = (),
    helps: Iterable[str],
) -> NoReturn:
    """Raise ``Unsupported`` with one error: the program is C, but no static control part."""
    raise Unsupported(error(code, as_written(message), span, label=label, notes=notes, helps=helps))


def did_you_mean(name: str, known: Iterable[str]) -> list[str]:
    """Return a help text with the known name that is near to an unknown one, where there is one."""
    meant = near(name, known)
    return [f"did you mean `{meant}`?"] if meant else []


def worst(faults: Iterable[PolyloomError]) -> PolyloomError:
    """Return one error with the diagnostics of all, each once, in the order of the text.

    It is ``Unsupported`` where nothing is wrong and something cannot be expressed.
    """
    found = list(faults)
    wrong = any(not isinstance(fault, Unsupported) for fault in found)
    diagnostics = dict.fromkeys(d for fault in found for d in fault.diagnostics)
    ordered = sorted(diagnostics, key=lambda d: d.span.start if d.span else -1)
    return PolyloomError(*ordered) if wrong else Unsupported(*ordered)


def line_span(source: Source, line: int) -> Span | None:
    """Return what stands on a line, without the blanks around it; None for a line that is not there."""
    if not 1 <= line < len(source.line_starts):
        return None
    start = source.line_starts[line - 1]
    text = source.line(line)
    blanks = len(text) - len(text.lstrip())
    return Span(source, start + blanks, start + max(len(text.rstrip()), blanks + 1))
