"""In which banks of a PE's memory arrays start, so that an instruction reads two of them without waiting.

The two moving sources of an instruction are read in one cycle only from different banks, which are the
16-bit words modulo 4. Arrays are placed so that two that are read together meet as seldom as possible: where
loops and rows move one against the other, the part of the rows that each distance has is counted. Temporaries
have fixed banks, one after the other.

Not in the papers. Source of the rule: wafer-target.md, 1.1 (the best alignment there is 4 bytes apart).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TypeVar

import islpy as isl

from polyloom.ir.expressions import Read
from polyloom.polyhedra.functions import compose, function_of
from polyloom.wafer.array_layout.bank_distances import BANKS, over_rows, spread, walk_of, words_of_loop
from polyloom.wafer.dataflow.local_arrays import LocalArray
from polyloom.wafer.machine.instruction_cost import Shape, instruction_cycles
from polyloom.wafer.machine.instruction_selection import is_memory
from polyloom.wafer.machine.options import Extension
from polyloom.wafer.machine.temporaries import is_temporary, temporary_bank
from polyloom.wafer.simd.decision import SimdAnalysis, SimdOptions, steps_of
from polyloom.wafer.simd.domain import Operand
from polyloom.wafer.simd.steps import Step

Distances = tuple[float, ...]
"""For each distance modulo ``BANKS``, how large a part of the rows has it."""

_UNKNOWN: Distances = (1 / BANKS,) * BANKS

_ROUNDS = 3
"""How often banks are chosen at most: again when the others are known; 32-bit arrays have even ones."""

_Key = TypeVar("_Key")


@dataclass(frozen=True, eq=False)
class BankUse:
    """A task's instructions: ``shape``: the nest as it is run through; ``runs``: how often, about."""

    analysis: SimdAnalysis
    shape: Shape
    runs: float


def with_banks(
    arrays: Mapping[str, LocalArray], uses: Sequence[BankUse], options: SimdOptions
) -> dict[str, LocalArray]:
    """Return the arrays with the banks in which those start that an instruction reads together."""
    result = dict(arrays)
    if not options.has(Extension.BANK_PADDING):
        return result
    pairs: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0] * BANKS)
    fixed: dict[str, list[float]] = defaultdict(lambda: [0.0] * BANKS)
    for use in uses:
        for step in steps_of(use.analysis):
            _weigh(use, step, arrays, options, pairs, fixed)
    told, bound = _that_matter(pairs), _that_matter(fixed)
    order = _most_used_first(told, bound)
    for _ in range(_ROUNDS):
        before = [result[name].bank for name in order]
        for name in order:
            result[name] = replace(result[name], bank=_best_bank(name, result, told, bound))
        if [result[name].bank for name in order] == before:
            break
    return result


def _that_matter(costs: Mapping[_Key, Sequence[float]]) -> dict[_Key, Sequence[float]]:
    """Return those that wait less at some distances than at others."""
    return {key: waits for key, waits in costs.items() if min(waits) < max(waits)}


def _weigh(
    use: BankUse,
    step: Step,
    arrays: Mapping[str, LocalArray],
    options: SimdOptions,
    pairs: dict[tuple[str, str], list[float]],
    fixed: dict[str, list[float]],
) -> None:
    """Add what an instruction would wait at each distance between the banks of two of its sources.

    ``pairs[a, b][d]``: if b starts d words behind a; ``fixed[a][d]``: if a starts in bank d.
    """
    for first, second, weight in _source_pairs(use, step, options):
        distances = _distances(use, first, second, arrays)
        if distances is _UNKNOWN:
            continue
        a, b = (_tensor(use.analysis, read) for read in (first, second))
        for distance, part in enumerate(distances):
            if a is not None and b is not None and a != b:
                pairs[a, b][distance] += weight * part
            elif a is not None and b is None:
                bank = temporary_bank(second.position, second.type)
                fixed[a][(bank - distance) % BANKS] += weight * part
            elif a is None and b is not None:
                bank = temporary_bank(first.position, first.type)
                fixed[b][(bank + distance) % BANKS] += weight * part


def _source_pairs(use: BankUse, step: Step, options: SimdOptions) -> Iterator[tuple[Read, Read, float]]:
    """Yield the pairs of sources that move, and the cycles that are at stake."""
    if step.instruction is None:
        return
    memory = [o for o in step.operands if isinstance(o, Read) and is_memory(o, use.analysis.scalars)]
    positions = [o.position if isinstance(o, Read) and o in memory else None for o in step.operands]
    cycles = instruction_cycles(options.machine, step.instruction, use.shape, step.target, positions)
    for first, second in moving_sources(use.analysis, use.shape, step):
        yield first, second, use.runs * (cycles - options.machine.simd_launch)


def meeting_rows(use: BankUse, step: Step, arrays: Mapping[str, LocalArray]) -> float | None:
    """Return in which part of its rows two sources of an instruction lie in one bank; None: not known."""
    total = 0.0
    for first, second in moving_sources(use.analysis, use.shape, step):
        distances = _distances(use, first, second, arrays)
        a, b = (_tensor(use.analysis, read) for read in (first, second))
        one = a is not None and a == b
        banks = [0 if one else _bank(use, read, arrays) for read in (first, second)]
        if distances is _UNKNOWN or banks[0] is None or banks[1] is None:
            return None
        total += distances[(banks[1] - banks[0]) % BANKS]
    return min(1.0, total)


def _bank(use: BankUse, read: Read, arrays: Mapping[str, LocalArray]) -> int | None:
    """Return the bank in which what is read starts; None where it may be any."""
    tensor = _tensor(use.analysis, read)
    return temporary_bank(read.position, read.type) if tensor is None else arrays[tensor].bank


def moving_sources(analysis: SimdAnalysis, shape: Shape, step: Step) -> Iterator[tuple[Read, Read]]:
    """Yield the pairs of sources of an instruction that are read in memory and move."""
    memory = [o for o in step.operands if isinstance(o, Read) and is_memory(o, analysis.scalars)]
    yield from combinations([o for o in memory if _row_stride(shape, o.position)], 2)


def _row_stride(shape: Shape, position: int) -> int:
    """Return the stride within a row: that of the innermost dimension that is not of size 1."""
    live = [s for s, size in zip(shape.of(position), shape.sizes, strict=True) if size > 1]
    return live[-1] if live else 0


def _tensor(analysis: SimdAnalysis, read: Read) -> str | None:
    if is_temporary(read.position):
        return None
    return next(o.tensor for o in analysis.operands if o.position == read.position)


def _distances(use: BankUse, first: Read, second: Read, arrays: Mapping[str, LocalArray]) -> Distances:
    """Return how far, in words, the first source is ahead of the second at the start of each row."""
    starts = [_start_words(use, read, arrays) for read in (first, second)]
    ahead = starts[0].sub(starts[1])
    walk = walk_of(use.analysis)
    start = None if walk is None else walk.value_at_start(ahead)
    if walk is None or start is None:
        return _UNKNOWN
    distances = [float(d == start % BANKS) for d in range(BANKS)]
    for count, steps in zip(walk.counts, walk.steps, strict=True):
        step = words_of_loop(use.analysis, first, steps, arrays)
        step -= words_of_loop(use.analysis, second, steps, arrays)
        distances = spread(distances, count, step)
    return tuple(over_rows(distances, use.shape, first, second))


def _start_words(use: BankUse, read: Read, arrays: Mapping[str, LocalArray]) -> isl.PwAff:
    """Return where an operand starts in its array, in 16-bit words, as a function of the parameters."""
    start = function_of(use.analysis.start)
    zero = isl.PwAff.zero_on_domain(isl.LocalSpace.from_space(start.get_space().domain()))
    zero = zero.intersect_params(use.analysis.task.known)
    if is_temporary(read.position):
        return zero
    operand: Operand = next(o for o in use.analysis.operands if o.position == read.position)
    array = arrays[operand.tensor]
    access = isl.PwMultiAff.from_multi_aff(compose(operand.compressed, array.map))
    cells = access.pullback_pw_multi_aff(start)
    words = read.type.size // 2
    for k, stride in enumerate(array.strides):
        zero = zero.add(cells.get_pw_aff(k).scale_val(isl.Val(stride * words)))
    return zero


def _most_used_first(
    pairs: Mapping[tuple[str, str], Sequence[float]], fixed: Mapping[str, Sequence[float]]
) -> list[str]:
    weight: dict[str, float] = defaultdict(float)
    for (a, b), costs in pairs.items():
        weight[a] += sum(costs)
        weight[b] += sum(costs)
    for name, costs in fixed.items():
        weight[name] += sum(costs)
    return sorted(weight, key=lambda name: (-weight[name], name))


def _best_bank(
    name: str,
    arrays: Mapping[str, LocalArray],
    pairs: Mapping[tuple[str, str], Sequence[float]],
    fixed: Mapping[str, Sequence[float]],
) -> int:
    """Return the bank with the least waiting for those that are placed already; of equal ones an even one."""

    def waiting(bank: int) -> float:
        total = fixed[name][bank] if name in fixed else 0.0
        for (a, b), costs in pairs.items():
            first, second = (bank if name == n else arrays[n].bank for n in (a, b))
            if name in (a, b) and first is not None and second is not None:
                total += costs[(second - first) % BANKS]
        return total

    even_first = (0, 2, 1, 3) if arrays[name].type.size == 2 else (0, 2)
    return min(even_first, key=waiting)
