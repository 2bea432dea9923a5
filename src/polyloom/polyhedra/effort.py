"""A limit on what isl spends on a question that may be left unanswered.

Counted in isl's own operations, not in seconds: the same question is given up on every machine, or on none.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import islpy as isl


class TooHardError(Exception):
    """isl did more operations than allowed."""


@contextmanager
def at_most(operations: int) -> Iterator[None]:
    """Let isl do so many operations inside. Raises TooHardError where it would take more.

    Without operations left, some of isl's functions raise, and some return None, printing among them: what
    follows from that is any exception, or none.
    """
    context = isl.DEFAULT_CONTEXT
    context.set_max_operations(operations)
    context.reset_operations()
    try:
        yield
        if _exhausted():
            raise TooHardError
    except Exception as fault:
        if _exhausted():
            raise TooHardError from fault
        raise
    finally:
        context.set_max_operations(0)
        context.reset_operations()


def _exhausted() -> bool:
    """Tell whether isl has used up its operations."""
    try:
        isl.Set("{ [i] : 0 <= i < 2 }").coalesce()
    except isl.Error:
        return True
    return False
