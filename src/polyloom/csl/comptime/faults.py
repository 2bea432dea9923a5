"""What goes wrong at compile time: the user's faults, and what is only known at run time."""

from __future__ import annotations

from collections.abc import Iterable

from polyloom.diagnostics import PolyloomError, Span, error


class NotComptime(Exception):
    """An expression needs what is known at run time only; ``what`` names it.

    Not the user's fault by itself.
    """

    def __init__(self, span: Span, what: str) -> None:
        super().__init__(what)
        self.span = span
        self.what = what


def fault(
    code: str, message: str, span: Span, *, helps: Iterable[str], label: str = "", notes: Iterable[str] = ()
) -> PolyloomError:
    """Return the error of one diagnostic."""
    return PolyloomError(error(code, message, span, label=label, notes=notes, helps=helps))


def not_comptime(found: NotComptime, why: str) -> PolyloomError:
    """Return the error of a value that must be known at compile time; ``why`` says who asks for it."""
    return fault(
        "csl-not-comptime",
        f"{found.what} is not known at compile time",
        found.span,
        notes=[why],
        helps=["use a `const`, a `param` or a literal; a `var` of a module has a value at run time only"],
    )
