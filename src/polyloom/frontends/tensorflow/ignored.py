"""Attributes that a lowering may ignore, each with the reason.

All others change a result, or may: one that no lowering asks for is refused by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from polyloom.frontends.graph.context import refuse_unknown

_TYPES = (
    *(
        "T",
        "U",
        "Ta",
        "Tb",
        "Taxis",
        "Tblock_shape",
        "Tcond",
        "Tcrops",
        "Tdim",
        "TI",
        "Tidx",
        "Tin",
        "Tindex",
    ),
    *("Tindices", "TInput", "Tk", "Tlabels", "Tlen", "Tmultiples", "Tnumsegments", "Tout", "Toutput_types"),
    *("Tpaddings", "Tparams", "Tperm", "Tshape", "Tshift", "SrcT", "Index", "dtype", "element_dtype"),
    *("index_type", "output_types", "shape_type"),
)
"""Types of operands, which they have themselves, and of results where those follow from operands."""

_COUNTS = ("N", "num", "num_split", "num_elements", "output_shapes")
"""How many operands or results there are, and the shapes of results: they follow from operands."""

_EXECUTION = ("parallel_iterations", "use_cudnn_on_gpu", "use_locking")
"""How TensorFlow computes, not what."""

_HINTS = ("grad_a", "grad_b", "grad_x", "grad_y", "message")
"""Whether a product is of a gradient, and what a check says that fails."""

_CHECKS = ("incompatible_shape_error", "validate_indices", "validate_shape")
"""Whether TensorFlow refuses operands that do not fit: those are refused here in any case."""

_IRRELEVANT = frozenset((*_TYPES, *_COUNTS, *_EXECUTION, *_HINTS, *_CHECKS))

_STATISTICS = ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
_DIAGONALS = ("MatrixDiagV3", "MatrixDiagPartV3", "MatrixSetDiagV3")
_BRANCHES = ("If", "StatelessIf")
_TAKEN = ("then_branch", "else_branch")

_OF_OPERATIONS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(_STATISTICS, ("exponential_avg_factor",)),  # of running statistics, where it trains
    **dict.fromkeys(_DIAGONALS, ("align",)),  # one diagonal fills its row whole
    **dict.fromkeys(_BRANCHES, _TAKEN),  # where the condition is known, one branch is not looked at
    "AccumulateNV2": ("shape",),  # of the result, which follows from operands
    "MaxPoolGradWithArgmax": (
        "Targmax",
        "include_batch_in_index",
    ),  # the places are found anew
    "TopKV2": ("sorted",),  # it is sorted in any case
}
"""What does not matter where the lowering does not ask for it."""

_NEUTRAL: Mapping[str, tuple[Any, ...]] = {
    "Truncate": (False,),
    "bad_indices_policy": ("", "DEFAULT", "ERROR"),
    "explicit_paddings": ((),),
    "resize_if_index_out_of_bounds": (False,),
}
"""The values of an attribute that change nothing."""


def refuse_ignored(op: str, unread: Mapping[str, Any]) -> None:
    """Raise ``Refused`` for attributes that a lowering did not ask for and that may change the result.

    A name that begins with ``_`` is no attribute of an operation: tools leave notes there.
    """
    harmless = _IRRELEVANT | {*_OF_OPERATIONS.get(op, ())}
    names = [n for n, v in unread.items() if n not in harmless and v not in _NEUTRAL.get(n, ())]
    refuse_unknown("attribute", [n for n in names if not n.startswith("_")], op)
