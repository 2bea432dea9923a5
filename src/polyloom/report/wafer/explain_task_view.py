"""One computation task for a person: everything that Section 5 computes, and the decision."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from polyloom.polyhedra.text.documents import offset_text
from polyloom.polyhedra.text.paper_notation import (
    Points,
    notation,
    notation_in_prose,
    point_notation,
    set_notation,
)
from polyloom.wafer.dataflow.local_arrays import LocalArray
from polyloom.wafer.explain.instruction_costs import instruction_costs
from polyloom.wafer.explain.tasks import emitted_access, simd_sizes
from polyloom.wafer.simd.decision import SimdAnalysis, SimdOptions, Strategy

_STRATEGIES = {
    Strategy.HULL: "box hull, with extra instances where there are fewer",
    Strategy.EXACT: "exact bounds",
    Strategy.ENUMERATED: "one configuration for each size",
}


@dataclass(frozen=True)
class Row:
    """A line of a table: what it is, the set, the paper's equations."""

    label: str
    text: str
    equations: str = ""
    style: str = ""


def task_title(analysis: SimdAnalysis) -> str:
    """Return what the task is: ``C, on one arrival of x``."""
    task = analysis.task
    if task.stream is None:
        return f"{task.name}, on local memory"
    if analysis.whole is not None:
        return f"{task.name}, on the whole of {task.stream.tensor} as it comes"
    return f"{task.name}, on one arrival of {task.stream.tensor} from the {task.stream.side.value}"


def task_rows(
    analysis: SimdAnalysis, arrays: Mapping[str, LocalArray], options: SimdOptions, *, ascii_only: bool
) -> Iterator[Row]:
    """Yield the lines on a task; sets are simplified by the known constraints K, which are given once."""
    yield from _decision(analysis, ascii_only)
    for cost in dict.fromkeys(instruction_costs(analysis, arrays, options)):
        yield Row(f"  {cost.name}", cost.text)
    view = _TaskView(analysis, ascii_only)
    yield from view.instances()
    yield from view.compressed()
    yield from view.hull()
    yield from view.accesses(arrays)


def _decision(analysis: SimdAnalysis, ascii_only: bool) -> Iterator[Row]:
    for effect in analysis.effects:
        text = notation_in_prose(effect.detail, ascii_only=ascii_only)
        yield Row("extension used", f"{effect.extension.value}: {text}")
    if analysis.strategy is Strategy.NONE:
        yield Row("SIMD", "none: loops", style="bold yellow")
        yield Row("reason", notation_in_prose(analysis.reason, ascii_only=ascii_only))
        return
    shown = _sizes(analysis, ascii_only)
    steps = ", ".join(step.text for step in analysis.steps) or ", ".join(analysis.instructions)
    yield Row("SIMD", f"{steps} of {shown}", style="bold green")
    if analysis.nested is not None:
        around = set_notation(analysis.nested.points, analysis.task.known, ascii_only=ascii_only)
        yield Row("loops around", around)
    how = "the whole stream" if analysis.whole is not None else _STRATEGIES[analysis.strategy]
    yield Row("strategy", f"{analysis.strategy.value}: {how}")


def _sizes(analysis: SimdAnalysis, ascii_only: bool) -> str:
    sizes = simd_sizes(analysis)
    if isinstance(sizes, list) or analysis.sizes is None:
        return ", ".join(map(str, sizes or ()))
    return point_notation(analysis.sizes, analysis.task.known, ascii_only=ascii_only)


class _TaskView:
    def __init__(self, analysis: SimdAnalysis, ascii_only: bool) -> None:
        self.analysis = analysis
        self.paper = analysis.plain or analysis
        self.known = analysis.task.known
        self.ascii = ascii_only

    def instances(self) -> Iterator[Row]:
        task, box = self.analysis.task, self.analysis.uncompressed
        yield Row("K, known", self._full(self.known), "(15)")
        yield Row("placed", self._full(task.placed), "(11)")
        yield Row("instances", self._set(task.instances), "(12, 17, 27, 32)")
        yield Row("  minimum", self._point(box.minimum), "(13)")
        yield Row("  maximum", self._point(box.maximum), "(14)")
        yield Row("  size", self._point(box.size), "(16)")

    def compressed(self) -> Iterator[Row]:
        box, compression = self.paper.box, self.paper.compression
        yield Row("compression", self._text(str(compression.map)), "(18, 22, 28, 33)")
        yield Row("compressed", self._set(compression.compressed), "(19, 23, 29, 34)")
        yield Row("  minimum", self._point(box.minimum), "(20)")
        yield Row("  maximum", self._point(box.maximum), "(20)")
        yield Row("  size", self._point(box.size), "(21, 24)")

    def hull(self) -> Iterator[Row]:
        hull, extra = self.paper.hull, self.paper.extra
        if hull is None or extra is None:
            yield Row("box hull", "none of fixed size", "(35)")
            return
        size = ", ".join(map(str, hull.size))
        yield Row("box hull", f"{self._text(offset_text(hull.offset))} and size [{size}]", "(35)")
        if extra.instances.is_empty():
            yield Row("  extra", "none", "(36)")
            return
        yield Row("  extra", self._set(extra.instances), "(36)")
        for touched in extra.reads.values():
            yield Row("  extra reads", self._set(touched), "(38)")
        for touched in extra.proper_writes.values():
            yield Row("  proper writes", self._full(touched), "(40)")
        for touched in extra.writes.values():
            yield Row("  extra writes", self._full(touched), "(41)")

    def accesses(self, arrays: Mapping[str, LocalArray]) -> Iterator[Row]:
        if self.analysis.plain is not None:
            yield Row("runs through", self._text(str(self.analysis.compression.map)))
        for operand, done in zip(self.paper.operands, self.analysis.operands, strict=True):
            verb = "writes" if operand is self.paper.write else "reads"
            yield Row(f"{verb} {operand.tensor}", self._text(str(operand.access)), "(25)")
            yield Row("  compressed", self._text(str(operand.compressed)), "(26)")
            yield Row("  local", self._text(str(operand.local)), "(37, 39)")
            emitted = emitted_access(self.analysis, done, arrays)
            if not emitted.plain_is_equal(operand.local):
                yield Row("  emitted", self._text(str(emitted)))
        found = self.analysis.enumeration
        if found is not None and self.analysis.strategy is Strategy.ENUMERATED:
            yield Row("sizes", self._full(found.sizes), "(42)")
            yield Row("  offset", self._text(offset_text(found.hull.offset)))
            yield Row("  identifiers", self._full(found.identifiers), "(43)")

    def _set(self, points: Points) -> str:
        return set_notation(points, self.known, ascii_only=self.ascii)

    def _full(self, points: Points) -> str:
        return set_notation(points, ascii_only=self.ascii)

    def _point(self, point: Points) -> str:
        return point_notation(point, self.known, ascii_only=self.ascii)

    def _text(self, text: str) -> str:
        return notation(text, ascii_only=self.ascii)
