"""A diagnostic as text: the message, the line of the source with a caret, the notes and the help."""

from __future__ import annotations

from polyloom.diagnostics.messages import Diagnostic
from polyloom.diagnostics.span import Span


def render(diagnostic: Diagnostic) -> str:
    """Return the diagnostic as lines of plain text, ending without a newline."""
    lines = [f"{diagnostic.severity.value}[{diagnostic.code}]: {diagnostic.message}"]
    if diagnostic.span is not None:
        lines += _excerpt(diagnostic.span, diagnostic.label)
    lines += [_hanging("note: ", note) for note in diagnostic.notes]
    lines += [_hanging("help: ", help_) for help_ in diagnostic.helps]
    return "\n".join(lines)


def _excerpt(span: Span, label: str) -> list[str]:
    text = span.source.line(span.line)
    margin = " " * len(str(span.line))
    width = max(1, min(span.end - span.start, len(text) - span.column + 1))
    pad = "".join("\t" if c == "\t" else " " for c in text[: span.column - 1])
    caret = pad + "^" * width + (f" {label}" if label else "")
    return [f"{margin}--> {span}", f"{margin} |", f"{span.line} | {text}", f"{margin} | {caret}"]


def _hanging(lead: str, text: str) -> str:
    return lead + text.replace("\n", "\n" + " " * len(lead))
