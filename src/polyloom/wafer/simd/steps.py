"""The steps of a task, instructions and loops between them, and where their temporaries lie."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

from polyloom.ir.expressions import Expression, Read, walk
from polyloom.ir.rebuild import rebuilt
from polyloom.ir.types import ElementType
from polyloom.wafer.machine.instructions import Instruction
from polyloom.wafer.machine.temporaries import (
    FIRST_TEMPORARY,
    as_word,
    is_temporary,
    temporary_bank,
    word_of,
)


@dataclass(frozen=True)
class Step:
    """``target = instruction(operands)``, or, without an instruction, ``target = operands[0]`` in a loop.

    ``target``: a position: ``ACCUMULATOR``, a temporary, or words of one; the operands' reads are numbered
    likewise, and an operand that holds no read of memory is a scalar.
    """

    target: int
    type: ElementType
    instruction: Instruction | None
    operands: tuple[Expression, ...]

    @property
    def text(self) -> str:
        """Its name for a person: the instruction, or ``loop``."""
        return "loop" if self.instruction is None else self.instruction.name


def temporaries_of(steps: Sequence[Step]) -> dict[int, ElementType]:
    """Return the positions and types of all temporaries, those of words aside."""
    found: dict[int, ElementType] = {}
    for step in steps:
        reads = (n for operand in step.operands for n in walk(operand) if isinstance(n, Read))
        for read in (*reads, Read(step.target, step.type)):
            if is_temporary(read.position) and as_word(read.position) is None:
                found[read.position] = read.type
    return found


def memory_positions(steps: Sequence[Step]) -> frozenset[int]:
    """Return the positions along which instructions move, each of which takes a descriptor."""
    found: set[int] = set()
    for step in (step for step in steps if step.instruction is not None):
        found |= {step.target, *(o.position for o in step.operands if isinstance(o, Read))}
    return frozenset(found)


def words_of(steps: Sequence[Step]) -> tuple[int, ...]:
    """Return the positions of words of temporaries, in order."""
    reads = (n.position for step in steps for o in step.operands for n in walk(o) if isinstance(n, Read))
    positions = (*reads, *(step.target for step in steps))
    return tuple(dict.fromkeys(p for p in positions if as_word(p) is not None))


def with_few_temporaries(steps: Sequence[Step]) -> tuple[Step, ...]:
    """Give temporaries of one type that are not needed at the same time the same place.

    An instruction may write where it reads: each element is read before it is written. Two that an
    instruction reads together lie in different banks, where there are such places.
    """
    return tuple(_Places(steps).placed())


class _Places:
    """``last``: the last step at which a temporary is needed; ``partners``: those that it is read with."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self.steps = steps
        self.last = {p: k for k, step in enumerate(steps) for p in _needed(step)}
        self.partners: dict[int, set[int]] = defaultdict(set)
        for step in steps:
            for a, b in permutations(dict.fromkeys(_needed_to_read(step)), 2):
                self.partners[a].add(b)
        self.places: dict[int, Read] = {}
        self.free: list[Read] = []
        self.count = 0

    def placed(self) -> Iterator[Step]:
        for k, step in enumerate(self.steps):
            operands = tuple(self._moved(operand) for operand in step.operands)
            ended = (p for p in dict.fromkeys(_needed_to_read(step)) if self.last[p] == k)
            self.free += [self.places[p] for p in ended]
            target = step.target
            if is_temporary(target):
                target = self._place(target, step.type)
            yield Step(target, step.type, step.instruction, operands)

    def _place(self, position: int, kind: ElementType) -> int:
        """Return where a target lies; a whole one that is new, or words of one, gets a place."""
        word = as_word(position)
        whole = position if word is None else word.position
        if whole not in self.places:
            if word is not None:
                kind = ElementType.FLOAT32 if word.words == 2 else ElementType.FLOAT16
            self.places[whole] = self._best_place(whole, kind)
        place = self.places[whole]
        return place.position if word is None else word_of(place, word.word).position

    def _best_place(self, position: int, kind: ElementType) -> Read:
        """Return a free place, or a new one, that shares its bank with as few as possible."""
        read_with = [self.places[p] for p in self.partners[position] if p in self.places]
        banks = [temporary_bank(place.position, place.type) for place in read_with if place.type is kind]
        new = (Read(FIRST_TEMPORARY - self.count - k, kind) for k in range(2))
        known = [place for place in self.free if place.type is kind]
        best = min((*known, *new), key=lambda place: banks.count(temporary_bank(place.position, kind)))
        if best in known:
            self.free.remove(best)
        else:
            self.count = FIRST_TEMPORARY - best.position + 1
        return best

    def _moved(self, expression: Expression) -> Expression:
        reads = [n for n in walk(expression) if isinstance(n, Read) and is_temporary(n.position)]
        moved: dict[Expression, Read] = {}
        for read in reads:
            word = as_word(read.position)
            whole = self.places[read.position if word is None else word.position]
            moved[read] = whole if word is None else word_of(whole, word.word)
        return replaced(expression, moved, tuple(reads))


def _needed_to_read(step: Step) -> Iterator[int]:
    """Yield the whole temporaries that a step reads."""
    for operand in step.operands:
        for node in walk(operand):
            if isinstance(node, Read) and is_temporary(node.position):
                word = as_word(node.position)
                yield node.position if word is None else word.position


def _needed(step: Step) -> Iterator[int]:
    """Yield the whole temporaries that must be there before a step, or keep what it does not write."""
    yield from _needed_to_read(step)
    word = as_word(step.target)
    if word is not None:
        yield word.position


def replaced(
    expression: Expression, by: Mapping[Expression, Read], which: tuple[Expression, ...]
) -> Expression:
    """Return an expression with the nodes in ``which`` replaced by reads of what holds them."""
    return rebuilt(expression, lambda part: by[part] if part in which else None)
