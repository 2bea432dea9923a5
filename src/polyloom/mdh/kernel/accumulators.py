"""What points have combined to so far, in variables: one per result of a register tile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from polyloom.ir.host import Combiner
from polyloom.mdh.kernel.lines import Lines
from polyloom.mdh.kernel.loads import Place, Points
from polyloom.mdh.print.values import literal, value_type


@dataclass(frozen=True)
class Total:
    """The partial result of one place: a variable per output, all of ``width``.

    ``started``: a variable that is 0 as long as nothing was combined; None where the neutral element is there
    from the beginning.
    """

    values: tuple[str, ...]
    width: int
    started: str | None


@dataclass(frozen=True)
class Combining:
    """Writes how terms and partial results are combined by one operator."""

    points: Points
    combiner: Combiner

    @property
    def has_neutral(self) -> bool:
        """Whether there is a value to start from."""
        return all(n is not None for n in self.combiner.neutral)

    def declare(self, lines: Lines, suffix: str, width: int) -> Total:
        """Declare the variables of a partial result of nothing."""
        names = []
        for view, result, neutral in zip(
            self.points.hom.outputs, self.combiner.results, self.combiner.neutral, strict=True
        ):
            wanted = f"{self.points.signature.names.get(view.buffer, view.buffer)}_sum{suffix}"
            variable = self.points.namer.fresh(wanted)
            value = literal(0 if neutral is None else neutral, result.type, width)
            lines.add(f"{value_type(result.type, width)} {variable} = {value};")
            names.append(variable)
        return Total(tuple(names), width, None if self.has_neutral else self._flag(lines, suffix))

    def _flag(self, lines: Lines, suffix: str) -> str:
        flag = self.points.namer.fresh(f"started{suffix}")
        lines.add(f"int {flag} = 0;")
        return flag

    def add_point(self, lines: Lines, total: Total, place: Place) -> None:
        """Combine the terms at a place into a total."""
        terms = self.points.hom.terms
        if total.started is None and len(terms) == 1:
            fused = self.points.fused(self.combiner, terms[0], total.values[0], place)
            if fused is not None:
                lines.add(f"{total.values[0]} = {fused};")
                return
        texts = [self.points.value(term, place) for term in terms]
        self.add(lines, total, [f"({text})" for text in texts])

    def add(self, lines: Lines, total: Total, texts: Sequence[str]) -> None:
        """Combine values into a total, on its right."""
        if total.started is not None:
            texts = self._kept(lines, texts, total.width)
            with lines.block(f"if ({total.started})"):
                self._assign(lines, total, texts)
            with lines.block("else"):
                lines.add(*(f"{v} = {t};" for v, t in zip(total.values, texts, strict=True)))
                lines.add(f"{total.started} = 1;")
            return
        if len(total.values) > 1:
            texts = self._kept(lines, texts, total.width)
        self._assign(lines, total, texts)

    def _kept(self, lines: Lines, texts: Sequence[str], width: int) -> list[str]:
        """Put values that are used more than once into variables."""
        names = [self.points.namer.fresh("term_0") for _ in texts]
        for result, variable, text in zip(self.combiner.results, names, texts, strict=True):
            lines.add(f"const {value_type(result.type, width)} {variable} = {text};")
        return names

    def _assign(self, lines: Lines, total: Total, texts: Sequence[str]) -> None:
        """Write ``total = total op texts``; all results are there before the first is assigned."""
        found = self.points.combined(self.combiner, total.values, texts, total.width)
        if len(found) > 1:
            found = self._kept(lines, found, total.width)
        lines.add(*(f"{v} = {t};" for v, t in zip(total.values, found, strict=True)))

    def merge(self, lines: Lines, total: Total, other: Total) -> None:
        """Combine a total with another of the same width, on its right."""
        if other.started is None:
            self.add(lines, total, other.values)
            return
        with lines.block(f"if ({other.started})"):
            self.add(lines, total, other.values)

    def across(self, lines: Lines, total: Total, suffix: str) -> Total:
        """Combine the elements of vectors: halves, quarters, ... Return the scalars."""
        values, width = list(total.values), total.width
        while width > 1:
            width //= 2
            halves = [f"{v}.lo" for v in values], [f"{v}.hi" for v in values]
            texts = self.points.combined(self.combiner, *halves, width)
            names = [self.points.namer.fresh(f"half{suffix}_{width}") for _ in texts]
            for result, variable, text in zip(self.combiner.results, names, texts, strict=True):
                kind = value_type(result.type, width)
                lines.add(f"{'const ' if width > 1 else ''}{kind} {variable} = {text};")
            values = names
        return Total(tuple(values), 1, total.started)
