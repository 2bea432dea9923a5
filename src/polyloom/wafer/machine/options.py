"""Our extensions of SIMD detection and memory layout: each has a name and can be switched off.

Not in the papers: dtg_codegen names several of these as future work (Sec. 3, 5.2, 5.3). See docs/simd.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Extension(Enum):
    """What the paper does not have; the value is its name on the command line and in JSON."""

    FLOOR_OFFSET = "floor-offset"
    WHOLE_STREAM = "whole-stream"
    CONSTANT_DIMENSIONS = "constant-dimensions"
    UNIMODULAR = "unimodular"
    BOXES = "boxes"
    SET_LENGTH = "set-length"
    CONFIGURE_EACH_CALL = "configure-each-call"
    OUTER_SIZES = "outer-sizes"
    OUTSIDE_READS = "outside-reads"
    ZERO_PADDING = "zero-padding"
    SINGLE_INSTANCE = "single-instance"
    COALESCING = "coalescing"
    OUTER_LOOPS = "outer-loops"
    REORDERED_SUMS = "reordered-sums"
    FIXED_SCALARS = "fixed-scalars"
    SEVERAL_INSTRUCTIONS = "several-instructions"
    VECTOR_FUNCTIONS = "vector-functions"
    TRANSPOSED_ARRAYS = "transposed-arrays"
    REVERSED_ARRAYS = "reversed-arrays"
    PADDED_ROWS = "padded-rows"
    BANK_PADDING = "bank-padding"
    PAIRED_WAVELETS = "paired-wavelets"
    FIRST_TERMS = "first-terms"
    TAKING_TURNS = "taking-turns"
    FILTERS = "filters"

    @property
    def meaning(self) -> str:
        """What it does, in a line."""
        return MEANINGS[self]


MEANINGS = {
    Extension.FLOOR_OFFSET: "the offset of a box hull may hold floor divisions",
    Extension.WHOLE_STREAM: "one instruction works on a whole dense stream as it comes",
    Extension.CONSTANT_DIMENSIONS: "dimensions of the nest that hold one value are left out",
    Extension.UNIMODULAR: "instances that are a box only in another basis of the lattice are transformed",
    Extension.BOXES: "instances that are no box are done as a few boxes",
    Extension.SET_LENGTH: "the length of a nest of one dimension is set before each call",
    Extension.CONFIGURE_EACH_CALL: "sizes that depend on the index are configured before each call",
    Extension.OUTER_SIZES: "sizes that depend on outer indices are set when these change",
    Extension.OUTSIDE_READS: "extra instances of a box hull may read outside of arrays, which are enlarged",
    Extension.ZERO_PADDING: "extra instances read zeros around an array where they would change elements",
    Extension.SINGLE_INSTANCE: "a single instance runs as scalar code where that is cheaper",
    Extension.COALESCING: "neighbouring dimensions of a nest that is too deep are joined",
    Extension.OUTER_LOOPS: "loops go around instructions, or the dimensions of a nest change places",
    Extension.REORDERED_SUMS: "a sum is taken in another order where that is at least twice as fast",
    Extension.FIXED_SCALARS: "elements in local memory that are the same for all instances are scalars",
    Extension.SEVERAL_INSTRUCTIONS: "several instructions do a statement of several operations",
    Extension.VECTOR_FUNCTIONS: "exp, quotients, roots, tanh and sigmoid by instructions, a few ulps apart",
    Extension.TRANSPOSED_ARRAYS: "a local array is kept in another order of its dimensions",
    Extension.REVERSED_ARRAYS: "a local array is kept backwards, or a nest is run through from its end",
    Extension.PADDED_ROWS: "the rows of a local array have unused cells behind them",
    Extension.BANK_PADDING: "arrays that an instruction reads together start in different banks",
    Extension.PAIRED_WAVELETS: "two elements of 16 bits of a dense stream travel in one wavelet",
    Extension.FIRST_TERMS: "sums begin with their first term, not with zeros; none is copied to be sent",
    Extension.TAKING_TURNS: "results leave past other PEs, each PE's in its turn, by switches of routers",
    Extension.FILTERS: "of a stream that passes a PE, its router brings it only what it keeps",
}

ALL_EXTENSIONS = frozenset(Extension)


@dataclass(frozen=True)
class Effect:
    """An extension that changed how a task is done; ``detail`` says how."""

    extension: Extension
    detail: str


def without(*names: str) -> frozenset[Extension]:
    """Return all extensions but the named ones; ValueError where a name is unknown."""
    return ALL_EXTENSIONS - {Extension(name) for name in names}
