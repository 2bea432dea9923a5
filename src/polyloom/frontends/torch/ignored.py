"""Arguments that a lowering may ignore, each with the reason.

All others change a result, or may: one that no lowering asks for is refused by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from polyloom.frontends.graph.context import refuse_unknown

_MEMORY = ("device", "layout", "memory_format", "physical_layout", "pin_memory", "non_blocking")
"""Where and how a tensor lies."""

_GRADIENTS = ("requires_grad", "scale_grad_by_freq", "sparse", "sparse_grad")
"""How gradients are kept: those of an exported program are operations of their own."""

_ALGORITHM = ("compute_mode", "cudnn_enable", "cudnn_enabled", "path", "unroll_dim")
"""How PyTorch computes, not what."""

_TYPES = ("dtype", "input_dtype", "out_dtype", "out_int32")
"""Types of results: those that the archive states are compared with what comes out."""

_ORDER = ("sorted", "stable")
"""Results are sorted always, and equal elements keep their order."""

_AXES = ("dim", "dim0", "dim1", "axis0", "axis1", "start_dim", "end_dim", "keepdim", "descending")
"""Scalars have no axes; PyTorch lets 0 and -1 name one, which may be kept, or sorted."""

_IRRELEVANT = frozenset((*_MEMORY, *_GRADIENTS, *_ALGORITHM, *_TYPES, *_ORDER, "implicit"))

_OF_OPERATIONS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("dropout", "feature_dropout", "alpha_dropout"), ("p",)),
    **dict.fromkeys(("lstm", "gru", "rnn_relu", "rnn_tanh"), ("dropout",)),
    **dict.fromkeys(("rrelu", "rrelu_with_noise_functional"), ("generator",)),
    **dict.fromkeys(
        (
            *("batch_norm", "instance_norm", "_native_batch_norm_legit"),
            *("_native_batch_norm_legit_no_training", "_native_batch_norm_legit_functional"),
        ),
        ("momentum",),
    ),
    "convolution_backward": ("bias_sizes", "output_padding"),
    "cross_entropy_loss": ("ignore_index",),
    **dict.fromkeys(("linalg_inv_ex", "linalg_solve_ex", "_linalg_solve_ex"), ("check_errors",)),
    "max_pool2d_with_indices_backward": ("indices",),
    "max_pool3d_with_indices_backward": ("indices",),
    "max_unpool3d": ("stride", "padding"),
    "native_group_norm": ("N", "C", "HxW"),
    "embedding": ("padding_idx",),
    **dict.fromkeys(("new_empty", "new_full", "new_ones", "new_zeros"), ("self",)),
    "empty_strided": ("stride",),
    "new_empty_strided": ("self", "stride"),
}
"""What does not matter where the lowering does not ask for it: rates of what only training drops or keeps,
labels to be ignored where there are probabilities, rows without a gradient, what operands say themselves,
where a new tensor lies whose elements are written later, windows whose result has a stated size."""

_NEUTRAL: Mapping[str, Any] = {
    "half_to_float": False,
    "output_padding": 0,
    "training": True,
}
"""The value of an argument that changes nothing."""


def refuse_ignored(op: str, unread: Mapping[str, Any], *, scalars: bool) -> None:
    """Raise ``Refused`` for arguments that a lowering did not ask for and that may change the result.

    ``scalars``: all operands are scalars.
    """
    harmless = _IRRELEVANT | {*_OF_OPERATIONS.get(op.split(".")[1], ())} | {*(_AXES if scalars else ())}
    names = [n for n, v in unread.items() if v is not None and n not in harmless and not _is_neutral(n, v)]
    refuse_unknown("argument", names, op)


def _is_neutral(name: str, value: Any) -> bool:
    values = value if isinstance(value, tuple) else (value,)
    return name in _NEUTRAL and all(v == _NEUTRAL[name] for v in values)
