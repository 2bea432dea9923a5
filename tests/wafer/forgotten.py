"""What the choice of instructions remembers, cleared: for tests that change what it is made of."""

from __future__ import annotations

from polyloom.wafer.simd import instruction_options, instruction_sequences
from polyloom.wafer.vector_functions.elementary import vector_function


def forget_instructions() -> None:
    """Let the next choice find instructions, functions and covers anew."""
    vector_function.cache_clear()
    instruction_options._options.cache_clear()
    instruction_sequences._plans_of.cache_clear()
