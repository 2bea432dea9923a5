"""Loops that data end, on the processor, against the C compiler's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from cases import Outcome

import polyloom
from polyloom.diagnostics import PolyloomError
from random_data_loops import data_loops


class DataLoops:
    """A random function with such loops, compared with itself as gcc builds it."""

    batch = 5

    def judged(self, seeds: Sequence[int]) -> Iterator[Outcome]:
        for seed in seeds:
            yield self._outcome(data_loops(seed), seed)

    def again(self, files: Mapping[str, bytes], seed: int) -> Outcome:
        return self._outcome(files["program.c"].decode(), seed)

    def _outcome(self, text: str, seed: int) -> Outcome:
        files = {"program.c": text}
        try:
            found = polyloom.load(text).run(n=20, check=True)
        except PolyloomError as refused:
            return Outcome(seed, "refused", refused.diagnostics[0].code, files)
        except Exception as fault:
            return Outcome(seed, "fault", f"{type(fault).__name__}: {fault}"[:2000], files)
        if found.check is None or "the C program" not in found.check.by:
            return Outcome(seed, "skipped", "nothing to compare with", files)
        return (
            Outcome(seed, "right") if found.passed else Outcome(seed, "wrong", str(found.check)[:500], files)
        )
