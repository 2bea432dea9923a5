"""``explain`` of C: the source with a verdict beside each loop, the reasons below, and what became of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from polyloom.ir.rounding.reassociation import Reassociated, reassociated
from polyloom.ir.rounding.rules import epsilon
from polyloom.report import schedule_view
from polyloom.report.mdh_view import document as md_hom_document
from polyloom.report.mdh_view import text as md_hom_text
from polyloom.report.schedule_view import Scheduled
from polyloom.scop.model import Scop
from polyloom.scop.schedule.loop_verdicts import LoopVerdict, Witness
from polyloom.scop.schedule.plan import Part
from polyloom.scop.transform import Transformation

WIDTH = 72
"""Columns of source beside which the verdicts stand."""


def document(scop: Scop, found: Transformation, scheduled: Scheduled | None = None) -> dict[str, Any]:
    """Return the loops and the md_homs for a program; ``scheduled``: where they are for some sizes."""
    return {
        "function": scop.name,
        **_sizes(scheduled),
        "loops": [{**_loop(loop), **_schedule(loop, scheduled)} for loop in found.loops],
        "md_homs": md_hom_document([found.program]),
        "reassociated": [
            {"md_hom": r.name, "type": r.type.value, "terms": r.terms, "epsilon": epsilon(r.type)}
            for r in reassociated(found.program)
        ],
    }


def _sizes(scheduled: Scheduled | None) -> dict[str, Any]:
    if scheduled is None:
        return {}
    known = {"device": scheduled.device, "parameters": dict(scheduled.parameters)}
    return {**known, "reasons": list(scheduled.reasons)}


def _schedule(loop: LoopVerdict, scheduled: Scheduled | None) -> dict[str, Any]:
    return {} if scheduled is None else {"schedule": schedule_view.document(scheduled, loop)}


def _loop(loop: LoopVerdict) -> dict[str, Any]:
    witness = loop.witness
    return {
        "iterator": loop.iterator,
        "line": loop.span.line if loop.span else None,
        "column": loop.span.column if loop.span else None,
        "statements": list(loop.statements),
        "verdict": loop.verdict.value,
        "operator": loop.operator,
        "becomes": [part.value for part in loop.parts],
        "witness": None
        if witness is None
        else {
            "array": witness.array,
            "kind": witness.kind.value,
            "source": witness.source,
            "sink": witness.sink,
            "parameters": dict(witness.parameters),
        },
        "notes": list(loop.notes),
        "helps": list(loop.helps),
    }


def text(scop: Scop, found: Transformation, scheduled: Scheduled | None = None) -> str:
    """Return the explanation for a person; ``scheduled``: where the loops are for some sizes."""
    parts = ["\n".join(_annotated(scop, found.loops, scheduled)), "\n".join(_reasons(found.loops))]
    parts += [] if scheduled is None else ["\n".join(scheduled.reasons)]
    parts.append(f"becomes:\n{md_hom_text([found.program])}")
    parts.append("\n".join(map(_rounding, reassociated(found.program))))
    return "\n\n".join(part for part in parts if part.strip())


def _annotated(scop: Scop, loops: Sequence[LoopVerdict], scheduled: Scheduled | None) -> Iterator[str]:
    """Yield the lines of the source, a verdict beside those with a loop, its schedule below that."""
    lines = _lines(scop, loops)
    if not lines:
        return
    yield f"{scop.source.name}: {scop.name}{_for(scheduled)}"
    digits = len(str(lines[-1]))
    width = min(WIDTH, max(len(scop.source.line(line).expandtabs(4)) for line in lines))
    for line in lines:
        found = [loop for loop in loops if loop.span is not None and loop.span.line == line]
        here = ", ".join(f"{_short(loop)}{_place(loop)}" for loop in found)
        shown = scop.source.line(line).expandtabs(4)
        yield f"{line:{digits}} | {shown:{width}}{'  <- ' + here if here else ''}".rstrip()
        if scheduled is not None:
            below = (words for loop in found for words in schedule_view.lines(scheduled, loop))
            inside = " " * (len(shown) - len(shown.lstrip()) + 4)
            yield from (f"{'':{digits}} | {inside}{words}" for words in below)


def _for(scheduled: Scheduled | None) -> str:
    if scheduled is None:
        return ""
    sizes = ", ".join(f"{name} = {value}" for name, value in scheduled.parameters.items())
    return f" on {scheduled.device}{f', {sizes}' if sizes else ''}"


def _rounding(found: Reassociated) -> str:
    """Say how far the order of a sum or product may move it. Source: docs/semantics.md, floating point."""
    what = "product of them" if found.product else "sum of their sizes"
    count = found.terms
    terms = count if re.fullmatch(r"\w+", count) else f"({count})"
    return (
        f"rounding: an element of `{found.name}` combines its {count} terms in any order, which moves it by\n"
        f"  at most {terms} * {epsilon(found.type):.1e} * the {what} and its start (not with `--fp strict`)"
    )


def _lines(scop: Scop, loops: Sequence[LoopVerdict]) -> range:
    spans = [loop.span for loop in loops if loop.span] + [s.span for s in scop.statements if s.span]
    spans = [span for span in spans if span.source == scop.source]
    return range(min(s.line for s in spans), max(s.line for s in spans) + 1) if spans else range(0)


def _short(loop: LoopVerdict) -> str:
    operator = f"({loop.operator})" if loop.operator else ""
    return f"{loop.iterator} {loop.verdict.value}{operator}"


def _place(loop: LoopVerdict) -> str:
    """Say what becomes of a loop, of its statements one by one where they differ."""
    of: dict[Part, list[str]] = {}
    for statement, part in zip(loop.statements, loop.parts, strict=True):
        of.setdefault(part, []).append(statement)
    if len(of) < 2:
        return "".join(f": {part.value}" for part in of)
    return ": " + "; ".join(f"{part.value} ({', '.join(names)})" for part, names in of.items())


def _distance(witness: Witness) -> Iterator[str]:
    """Yield between which lines a dependence lies, and how far its instances are apart."""
    if witness.lines is not None:
        first, second = witness.lines
        lines = f"in line {first}" if first == second else f"from line {first} to line {second}"
        yield f"  {lines}, at a distance of ({', '.join(witness.distance)})"


def _reasons(loops: Sequence[LoopVerdict]) -> Iterator[str]:
    for loop in loops:
        if not (loop.witness or loop.notes or loop.helps):
            continue
        where = f"line {loop.span.line}, " if loop.span else ""
        yield f"{where}loop over `{loop.iterator}`: {_short(loop).partition(' ')[2]}"
        if loop.witness:
            yield f"  because {loop.witness}"
            yield from _distance(loop.witness)
        yield from (f"  note: {note}" for note in loop.notes)
        yield from (f"  help: {help_}" for help_ in loop.helps)
