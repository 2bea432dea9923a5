"""A diagnostic as text: the message, the line of the source with a caret, the notes and the help."""

from __future__ import annotations

from polyloom.diagnostics.messages import Diagnostic
from polyloom.diagnostics.span import Span
from polyloom.diagnostics.visible import visible, visible_name


def render(diagnostic: Diagnostic) -> str:
    """Return the diagnostic as lines of plain text, ending without a newline.

    Control characters of files are shown as escapes.
    """
    lines = [_hanging(f"{diagnostic.severity.value}[{diagnostic.code}]: ", diagnostic.message, 2)]
    if diagnostic.span is not None:
        lines += _excerpt(diagnostic.span, diagnostic.label)
    lines += [_hanging("note: ", note) for note in diagnostic.notes]
    lines += [_hanging("help: ", help_) for help_ in diagnostic.helps]
    return "\n".join(lines)


def _excerpt(span: Span, label: str) -> list[str]:
    text = span.source.line(span.line)
    margin = " " * len(str(span.line))
    before, after = text[: span.column - 1], text[span.column - 1 :]
    marked = visible(after[: max(1, span.end - span.start)])
    pad = "".join("\t" if c == "\t" else " " for c in visible(before))
    caret = pad + "^" * max(1, len(marked)) + (f" {visible_name(label)}" if label else "")
    shown = f"{span.line} | {visible(text)}"
    return [f"{margin}--> {visible_name(str(span))}", f"{margin} |", shown, f"{margin} | {caret}"]


def _hanging(lead: str, text: str, indent: int | None = None) -> str:
    return lead + visible(text).replace("\n", "\n" + " " * (len(lead) if indent is None else indent))
