"""Positions of temporaries, the arrays between instructions, and of the 16-bit words of their elements.

Positions are those of ``Read``: a statement's reads count from 0, the written element is ``ACCUMULATOR``.
Not in the papers.
"""

from __future__ import annotations

from dataclasses import dataclass

from polyloom.ir.expressions import Read
from polyloom.ir.types import ElementType

FIRST_TEMPORARY = -2
"""Temporary k is read at the position ``FIRST_TEMPORARY - k``."""

_FIRST_WORD = -1000


@dataclass(frozen=True)
class Word:
    """``word``, counted from the lowest, of each element of a temporary, of ``words``, its 16-bit words."""

    position: int
    words: int
    word: int


def is_temporary(position: int) -> bool:
    """Whether a position is that of a temporary, or of words of one."""
    return position <= FIRST_TEMPORARY


def word_of(temporary: Read, word: int) -> Read:
    """Return the read of a 16-bit word of each element of a temporary."""
    number = 4 * (FIRST_TEMPORARY - temporary.position) + 2 * (temporary.type.size // 2 - 1) + word
    return Read(_FIRST_WORD - number, ElementType.INT16)


def as_word(position: int) -> Word | None:
    """Return what a position stands for, if it is that of words; the inverse of ``word_of``."""
    if position > _FIRST_WORD:
        return None
    temporary, rest = divmod(_FIRST_WORD - position, 4)
    return Word(FIRST_TEMPORARY - temporary, rest // 2 + 1, rest % 2)


def temporary_bank(position: int, element: ElementType) -> int:
    """Return the bank in which a temporary starts: 2, 1, 3, 0 for 16-bit elements, 2 and 0 for others."""
    banks = (2, 1, 3, 0) if element.size == 2 else (2, 0)
    return banks[(FIRST_TEMPORARY - position) % len(banks)]
