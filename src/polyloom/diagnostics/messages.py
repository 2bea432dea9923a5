"""A message is data: severity, code, text, place, reasons, ways out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar, TypeAlias

from polyloom.diagnostics.span import Span


class Severity(Enum):
    """How much a message matters. A remark names a missed optimisation and its reason."""

    ERROR = "error"
    WARNING = "warning"
    REMARK = "remark"


@dataclass(frozen=True)
class Diagnostic:
    """One message.

    ``code`` is stable and hyphenated (``lair-nonaffine``); ``message`` says what was found, without a
    full stop; ``label`` stands beside the caret; ``notes`` say why; ``helps`` say what to do.
    """

    severity: Severity
    code: str
    message: str
    span: Span | None = None
    label: str = ""
    notes: tuple[str, ...] = ()
    helps: tuple[str, ...] = ()


def error(
    code: str,
    message: str,
    span: Span | None = None,
    *,
    label: str = "",
    notes: Iterable[str] = (),
    helps: Iterable[str] = (),
) -> Diagnostic:
    """Make an error diagnostic."""
    return Diagnostic(Severity.ERROR, code, message, span, label, tuple(notes), tuple(helps))


def warning(
    code: str, message: str, span: Span | None = None, *, notes: Iterable[str] = (), helps: Iterable[str] = ()
) -> Diagnostic:
    """Make a warning: something that is allowed and probably not meant."""
    return Diagnostic(Severity.WARNING, code, message, span, "", tuple(notes), tuple(helps))


def remark(
    code: str, message: str, span: Span | None = None, *, notes: Iterable[str] = (), helps: Iterable[str] = ()
) -> Diagnostic:
    """Make a remark: a missed optimisation and its reason."""
    return Diagnostic(Severity.REMARK, code, message, span, "", tuple(notes), tuple(helps))


class PolyloomError(Exception):
    """The program or its input is wrong: the user's to mend. Carries every diagnostic found.

    As text it is what the command line prints: the excerpt with a caret, the reasons, the ways out.
    An internal fault is never a ``PolyloomError``.
    """

    exit_status: ClassVar[int] = 1

    def __init__(self, *diagnostics: Diagnostic) -> None:
        super().__init__(*diagnostics)
        self.diagnostics = diagnostics

    def __str__(self) -> str:
        from polyloom.diagnostics.render import render

        return "\n\n".join(map(render, self.diagnostics))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({'; '.join(f'{d.code}: {d.message}' for d in self.diagnostics)})"

    def _render_traceback_(self) -> list[str]:
        """Return what a notebook shows in place of a traceback (a protocol of IPython)."""
        return str(self).split("\n")


class InternalFault(Exception):
    """A fault of Polyloom's own in one of several tasks, of which the others go on. Carries its diagnostic.

    ``trace``: where it happened, as Python prints it.
    """

    exit_status: ClassVar[int] = 70

    def __init__(self, *diagnostics: Diagnostic, trace: str = "") -> None:
        super().__init__(*diagnostics)
        self.diagnostics = diagnostics
        self.trace = trace

    def __str__(self) -> str:
        from polyloom.diagnostics.render import render

        return "\n\n".join(map(render, self.diagnostics))


Refusal: TypeAlias = PolyloomError | InternalFault
"""Why one of several tasks has no result."""


class Unsupported(PolyloomError):
    """The input was understood, but it holds something that Polyloom cannot express."""

    exit_status: ClassVar[int] = 3
