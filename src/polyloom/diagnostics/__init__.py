"""Source spans and the messages that users see: errors with a caret, remarks, notes, help."""

from polyloom.diagnostics.messages import (
    Diagnostic,
    InternalFault,
    PolyloomError,
    Refusal,
    Severity,
    Unsupported,
    error,
    remark,
    warning,
)
from polyloom.diagnostics.near import near
from polyloom.diagnostics.render import render
from polyloom.diagnostics.span import Source, Span
from polyloom.diagnostics.visible import visible, visible_name

__all__ = [
    "Diagnostic",
    "InternalFault",
    "PolyloomError",
    "Refusal",
    "Severity",
    "Source",
    "Span",
    "Unsupported",
    "error",
    "near",
    "remark",
    "render",
    "visible",
    "visible_name",
    "warning",
]
