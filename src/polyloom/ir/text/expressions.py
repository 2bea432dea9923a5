"""Parts of the IR as text, in LAIR's notation: affine functions, accesses, expressions."""

from __future__ import annotations

from collections.abc import Sequence

from polyloom.ir.expressions import (
    Assign,
    Binary,
    Compare,
    Constant,
    Convert,
    Expression,
    Iterator,
    Local,
    ParameterValue,
    Procedure,
    Read,
    Select,
    Step,
    Unary,
    When,
    While,
)
from polyloom.ir.host import Index, View
from polyloom.ir.reductions import Combine
from polyloom.ir.scalar_functions.function import Notation
from polyloom.ir.statements import Statement

_CHOICE, _OR, _AND, _NOT, _COMPARISON, _BITS, _SUM, _PRODUCT, _SIGN, _ATOM = range(10)
_LEVELS = {
    Notation.OR: _OR,
    Notation.AND: _AND,
    Notation.NOT: _NOT,
    Notation.BITS: _BITS,
    Notation.SUM: _SUM,
    Notation.PRODUCT: _PRODUCT,
    Notation.SIGN: _SIGN,
    Notation.CALL: _ATOM,
}


def affine_text(affine: Index, iterators: Sequence[str]) -> str:
    """Return an affine function: ``2*w + r - 1``; what is subtracted comes last."""
    pairs = list(zip(affine.coefficients, iterators, strict=True))
    added = [_scaled(c, i) for c, i in pairs if c > 0]
    added += [str(affine.constant)] if affine.constant > 0 else []
    taken = [_scaled(-c, i) for c, i in pairs if c < 0]
    taken += [str(-affine.constant)] if affine.constant < 0 else []
    if not added and not taken:
        return "0"
    first, *rest = added or ["-" + taken.pop(0)]
    return first + "".join(f" + {t}" for t in rest) + "".join(f" - {t}" for t in taken)


def _scaled(coefficient: int, iterator: str) -> str:
    return iterator if coefficient == 1 else f"{coefficient}*{iterator}"


def access_text(access: View, iterators: Sequence[str]) -> str:
    """Return an access: ``x[c][h + r]``."""
    return access.buffer + "".join(f"[{affine_text(i, iterators)}]" for i in access.affine)


def assignment_text(statement: Statement) -> str:
    """Return ``y[i] += W[i][j] * x[j]``."""
    sign = "=" if statement.reduction is Combine.CONCATENATE else f"{statement.reduction.value}="
    reads = [access_text(read, statement.iterators) for read in statement.reads]
    value = expression_text(statement.expression, reads, statement.iterators)
    return f"{access_text(statement.write, statement.iterators)} {sign} {value}"


def expression_text(expression: Expression, reads: Sequence[str], iterators: Sequence[str] = ()) -> str:
    """Return an expression; ``reads`` the text of each access.

    The surroundings tell the expression's type. A literal inside is written with its type only where
    nothing else tells it.
    """
    return _Printer(reads, iterators).text(expression, _CHOICE, True)


def _tells_type(expression: Expression) -> bool:
    match expression:
        case Constant():
            return False
        case Unary(operand=a):
            return _tells_type(a)
        case Binary(left=a, right=b) | Select(then=a, otherwise=b):
            return _tells_type(a) or _tells_type(b)
        case _:
            return True


class _Printer:
    """Precedence decides on parentheses; ``typed`` says whether the surroundings tell the type."""

    def __init__(self, reads: Sequence[str], iterators: Sequence[str]) -> None:
        self.reads = reads
        self.iterators = iterators

    def text(self, expression: Expression, room: int, typed: bool) -> str:
        level, text = self._written(expression, typed)
        return text if level >= room else f"({text})"

    def _written(self, expression: Expression, typed: bool) -> tuple[int, str]:
        match expression:
            case Read(position=k):
                return _ATOM, self.reads[k]
            case Constant():
                return _constant(expression, typed)
            case Iterator(dimension=k, type=kind):
                return _ATOM, f"{kind.value}({self.iterators[k]})"
            case ParameterValue(name=name, type=kind):
                return _ATOM, f"{kind.value}({name})"
            case Unary(op=op, operand=a):
                level = _LEVELS[op.notation]
                if op.notation is Notation.CALL:
                    return level, f"{op.name}({self.text(a, _CHOICE, typed)})"
                sign = "not " if op.notation is Notation.NOT else op.name
                return level, f"{sign}{self.text(a, level, typed)}"
            case Convert(type=kind, operand=a):
                return _ATOM, f"{kind.value}({self.text(a, _CHOICE, False)})"
            case Select():
                return self._select(expression, typed)
            case Local(name=name):
                return _ATOM, name
            case Procedure(body=body, result=result):
                return _ATOM, f"{{ {self._steps(body)} {result.name} }}"
            case Compare(op=op, left=a, right=b):
                first, second = self._pair(a, b, _SUM, _SUM, False)
                return _COMPARISON, f"{first} {op.value} {second}"
            case Binary(op=op, left=a, right=b):
                level = _LEVELS[op.notation]
                if op.notation is Notation.CALL:
                    first, second = self._pair(a, b, _CHOICE, _CHOICE, typed)
                    return level, f"{op.name}({first}, {second})"
                sides = (_SUM, _SUM) if op.notation is Notation.BITS else (level, level + 1)
                first, second = self._pair(a, b, *sides, typed)
                return level, f"{first} {op.name} {second}"

    def _steps(self, steps: Sequence[Step]) -> str:
        return " ".join(map(self._step, steps))

    def _step(self, step: Step) -> str:
        match step:
            case Assign(local=local, value=value):
                return f"{local.name} = {self.text(value, _CHOICE, True)};"
            case When(condition=condition, body=body, otherwise=otherwise):
                other = f" else {{ {self._steps(otherwise)} }}" if otherwise else ""
                return f"if ({self.text(condition, _CHOICE, True)}) {{ {self._steps(body)} }}{other}"
            case While(condition=condition, body=body):
                return f"while ({self.text(condition, _CHOICE, True)}) {{ {self._steps(body)} }}"

    def _pair(self, a: Expression, b: Expression, left: int, right: int, typed: bool) -> tuple[str, str]:
        """Write two operands of one type: one of them tells it, or else the first literal does."""
        known = typed or _tells_type(a) or _tells_type(b)
        return self.text(a, left, known), self.text(b, right, True)

    def _select(self, expression: Select, typed: bool) -> tuple[int, str]:
        condition = self.text(expression.condition, _CHOICE, True)
        first, second = self._pair(expression.then, expression.otherwise, _CHOICE, _CHOICE, typed)
        return _ATOM, f"select({condition}, {first}, {second})"


def _constant(constant: Constant, typed: bool) -> tuple[int, str]:
    text = repr(constant.value)
    if not typed:
        return _ATOM, f"{constant.type.value}({text})"
    return (_SIGN if text.startswith("-") else _ATOM), text
