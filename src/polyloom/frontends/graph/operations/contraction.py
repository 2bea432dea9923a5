"""Contractions: Einstein sums, matrix products with broadcasting."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from polyloom.frontends.graph.basis import (
    Builder,
    Combine,
    Expression,
    Function,
    Linear,
    Refused,
    Term,
    Value,
    expanded,
    iterator,
    refuse_if,
    scalar,
    squeezed,
    unsqueezed,
)
from polyloom.frontends.graph.operations.elementwise import broadcast_shape


def product(*factors: Expression) -> Expression:
    """Return the product of expressions."""
    return reduce(scalar.multiply, factors)


def einsum(
    b: Builder,
    labels: Sequence[str],
    output: str,
    values: Sequence[Value],
    function: Function = product,
    hint: str = "",
) -> Value:
    """Return ``out[output] += product of values[labels]``, one statement however many operands there are.

    A label is one character for each axis. Axes of size 1 stretch. A label twice in one operand takes its
    diagonal, twice in the result writes one among zeros. Raises ``Refused`` where sizes do not agree.
    """
    sizes: dict[str, int] = {}
    for text, value in zip(labels, values, strict=True):
        _check_rank(text, value)
        for label, size in zip(text, value.shape, strict=True):
            _agree(sizes, label, size)
    order = list(dict.fromkeys([*output, *sizes]))
    axes: dict[str, Linear] = {label: iterator(k) for k, label in enumerate(order)}
    terms = [Term(v, _places(text, v, axes)) for text, v in zip(labels, values, strict=True)]
    summed = {*order} > {*output} or len({*output}) < len(output)
    shape = [sizes[label] for label in output]
    write = [axes[label] for label in output]
    combine = Combine.ADD if summed else Combine.CONCATENATE
    return b.statement([sizes[label] for label in order], terms, shape, write, function, combine, hint)


def _check_rank(text: str, value: Value) -> None:
    refuse_if(len(text) != value.rank, f"`{text}` names {len(text)} axes of {value.rank}")


def _agree(sizes: dict[str, int], label: str, size: int) -> None:
    known = sizes.setdefault(label, size)
    if known == 1:
        sizes[label] = size
    elif size not in (known, 1):
        raise Refused(f"`{label}` is {known} and {size}")


def _places(text: str, value: Value, axes: dict[str, Linear]) -> tuple[Linear, ...]:
    pairs = zip(text, value.shape, strict=True)
    return tuple(axes[label] if size != 1 else Linear() for label, size in pairs)


def matrix_product(b: Builder, left: Value, right: Value, hint: str = "") -> Value:
    """Return ``left @ right`` as NumPy has it: batches broadcast, vectors are rows or columns."""
    refuse_if(left.rank == 0 or right.rank == 0, "a matrix product with a scalar")
    one, two = left.rank == 1, right.rank == 1
    first = unsqueezed(left, [0]) if one else left
    second = unsqueezed(right, [1]) if two else right
    refuse_if(first.shape[-1] != second.shape[-2], f"{first.shape[-1]} columns by {second.shape[-2]} rows")
    batch = broadcast_shape([first.shape[:-2], second.shape[:-2]])
    names = "".join(chr(ord("A") + k) for k in range(len(batch)))
    first = expanded(first, (*batch, *first.shape[-2:]))
    second = expanded(second, (*batch, *second.shape[-2:]))
    labels = [f"{names}mk", f"{names}kn"]
    result = einsum(b, labels, f"{names}mn", [first, second], hint=hint)
    return squeezed(result, [*([result.rank - 2] if one else []), *([result.rank - 1] if two else [])])


def parse_einsum(equation: str, values: Sequence[Value]) -> tuple[list[str], str, list[Value]]:
    """Return labels of operands and result; an ellipsis stands for labels of its own. Raises ``Refused``."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    texts = left.split(",")
    refuse_if(len(texts) != len(values), f"`{equation}` has {len(texts)} operands, not {len(values)}")
    widths = [
        v.rank - len(t.replace("...", "")) if "..." in t else 0 for t, v in zip(texts, values, strict=True)
    ]
    refuse_if(min(widths, default=0) < 0, f"`{equation}` names more axes than there are")
    rest = "".join(chr(0x3B1 + k) for k in range(max(widths, default=0)))
    labels = [t.replace("...", rest[len(rest) - n :]) for t, n in zip(texts, widths, strict=True)]
    every = "".join(labels)
    output = right.replace("...", rest) if arrow else _implicit(every, rest)
    refuse_if(not set(output) <= set(every), f"`{equation}` has results that no operand has")
    return labels, output, list(values)


def _implicit(every: str, rest: str) -> str:
    once = sorted({x for x in every if every.count(x) == 1 and x not in rest})
    return rest + "".join(once)
