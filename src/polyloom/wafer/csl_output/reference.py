"""A layer in NumPy, element by element, for a host that has no Polyloom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from polyloom.diagnostics import Unsupported, error
from polyloom.ir.evaluation.inputs import shape_of
from polyloom.ir.expressions import Binary, Compare, Constant, Convert, Expression, Read, Select, Unary
from polyloom.ir.program import Program
from polyloom.ir.statements import Statement
from polyloom.polyhedra.loops.generate import Number

_CALLS = {
    "max": "max({}, {})",
    "min": "min({}, {})",
    "abs": "abs({})",
    "sigmoid": "1 / (1 + np.exp(-{}))",
    "rsqrt": "1 / np.sqrt({})",
    "asin": "np.arcsin({})",
    "acos": "np.arccos({})",
    "atan": "np.arctan({})",
    "cbrt": "np.cbrt({})",
    "round": "np.rint({})",
    "pow": "({} ** {})",
}
_OF_NUMPY = frozenset(
    [
        "exp",
        "log",
        "sqrt",
        "tanh",
        "floor",
        "ceil",
        "trunc",
        "sin",
        "cos",
        "tan",
        "sinh",
        "cosh",
        "exp2",
        "log2",
        "log10",
        "log1p",
        "expm1",
    ]
)


def reference_file(program: Program) -> str:
    """Return a module with ``reference(tensors)``: tensors by name, to the results by name, in float64."""
    lines = [
        "def reference(tensors):",
        '    """Return all tensors of the layer, computed in double precision."""',
    ]
    lines.append("    tensors = {name: np.asarray(value, np.float64) for name, value in tensors.items()}")
    for statement in program.body:
        lines += [f"    {line}" for line in _statement(program, statement)]
    lines.append("    return tensors")
    head = (
        '"""What the layer computes, in NumPy."""\n\nimport numpy as np\nfrom itertools import product\n\n\n'
    )
    return head + "\n".join(lines) + "\n"


def _statement(program: Program, statement: Statement) -> list[str]:
    """Return the loops of one statement; what it writes starts from its first value."""
    target = program.buffer(statement.write.buffer)
    shape = shape_of(target, {})
    names = [f"i{k}" for k in range(len(statement.domain))]
    start = "np.nan" if target.start is None else f"float({str(float(target.start))!r})"
    lines = [f"tensors[{target.name!r}] = np.full({shape}, {start})"]
    ranges = ", ".join(f"range({extent})" for extent in statement.domain)
    lines.append(f"for {', '.join(names)}, in product({ranges}):" if names else "for _ in (0,):")
    inner = "    "
    for condition in statement.conditions:
        lines.append(f"{inner}if {_index(condition, names)} < 0: continue")
    reads = {k: _element(view.buffer, view.affine, names) for k, view in enumerate(statement.reads)}
    value = _scalar(statement.expression, reads)
    place = _element(target.name, statement.write.affine, names)
    operator = statement.reduction.operator
    if operator is not None:
        value = _call(operator.name, [place, value])
    lines.append(f"{inner}{place} = {value}")
    return lines


def _index(index: Any, names: Sequence[str]) -> str:
    terms = [f"{c} * {name}" for c, name in zip(index.coefficients, names, strict=True) if c]
    assert isinstance(index.offset, Number)
    return " + ".join([*terms, str(index.offset.value)])


def _element(buffer: str, indices: Sequence[Any], names: Sequence[str]) -> str:
    return f"tensors[{buffer!r}][{', '.join(_index(i, names) for i in indices) or '()'}]"


def _scalar(expression: Expression, reads: Mapping[int, str]) -> str:
    match expression:
        case Read(position=position):
            return reads[position]
        case Constant(value=value):
            return f"np.float64({float(value)!r})" if value == value else "np.nan"
        case Unary(op=op, operand=operand):
            return _call(op.name, [_scalar(operand, reads)])
        case Binary(op=op, left=left, right=right):
            return _call(op.name, [_scalar(left, reads), _scalar(right, reads)])
        case Convert(operand=operand):
            return _scalar(operand, reads)
        case Compare(op=op, left=left, right=right):
            return f"({_scalar(left, reads)} {op.value} {_scalar(right, reads)})"
        case Select(condition=condition, then=then, otherwise=otherwise):
            parts = [_scalar(part, reads) for part in (then, condition, otherwise)]
            return "({} if {} else {})".format(*parts)
        case _:
            raise Unsupported(error("csl-function", "the value of an iterator has no place in a reference"))


def _call(name: str, operands: Sequence[str]) -> str:
    if name in ("+", "-", "*", "/"):
        return f"(-{operands[0]})" if len(operands) == 1 else f"({f' {name} '.join(operands)})"
    if name in _CALLS:
        return _CALLS[name].format(*operands)
    if name in _OF_NUMPY:
        return f"np.{name}({operands[0]})"
    raise Unsupported(error("csl-function", f"`{name}` has no place in a reference in NumPy"))
