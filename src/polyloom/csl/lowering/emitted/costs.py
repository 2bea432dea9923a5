"""What scalar code costs: instructions counted in typed trees, in the units that the machine model prices.

Source of the prices: ``wafer/machine/machines``. The counts are estimates for a 16-bit machine: values of
32 bits take two instructions where there is no wider one; an integer division is a routine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from polyloom.csl import types
from polyloom.csl.lowering import tree

DIVISION_OPERATIONS = 24
"""Instructions of an integer division by what is not constant, which the machine has none for. Estimate."""
WIDE_MULTIPLICATIONS = 3
"""16-bit multiplications of a 32-bit one, which is composed."""

Count = Counter[str]


def of(expression: tree.Expression | str) -> Count:
    """Return the instructions that evaluate an expression once; both sides of ``and`` and ``if`` count."""
    match expression:
        case str() | tree.Constant() | tree.Address() | tree.Local() | tree.Global():
            return Counter()
        case tree.Load(address=address):
            return of(address) + Counter(loads=1)
        case tree.Offset(base=base, index=index, fixed=fixed) if fixed is not None:
            return of(base) if fixed == index else of(base) + of(index) - of(fixed)
        case tree.Offset(base=base, index=index):
            known = isinstance(index, tree.Constant)
            return of(base) + of_index(index) + Counter(operations=0 if known else 1)
        case tree.Binary() if _halves(expression):
            return total(_halves(expression)) + Counter(operations=2)
        case tree.Binary():
            return of(expression.left) + of(expression.right) + _binary(expression)
        case tree.Unary(operand=operand):
            return of(operand) + Counter(operations=1)
        case tree.Convert(operand=operand):
            return of(operand) + Counter(operations=int(_is_work(operand.type, expression.type)))
        case tree.Bits(operand=operand) | tree.Field(operand=operand):
            return of(operand)
        case tree.Select():
            both = of(expression.condition) + of(expression.then) + of(expression.otherwise)
            moved = all(
                isinstance(v, tree.Constant | tree.Local) for v in (expression.then, expression.otherwise)
            )
            return both + (Counter(operations=1) if moved else Counter(branches=1))
        case tree.Call(arguments=arguments, is_inline=is_inline):
            entering = Counter() if is_inline else Counter(operations=len(arguments), branches=2)
            return total(arguments) + entering
        case tree.StructValue(fields=fields):
            return total(value for _, value in fields)
        case tree.Braces(items=items):
            return total(value for _, value in items)
        case tree.Native():
            return total(expression.arguments) + Counter(expression.cost)


def total(expressions: Iterable[tree.Expression | str]) -> Count:
    """Return the instructions of several expressions."""
    count: Count = Counter()
    for expression in expressions:
        count += of(expression)
    return count


def iteration(loop: tree.While) -> Count:
    """Return what one more iteration costs: it increments, compares and branches, all else is extra."""
    return of(loop.condition) - Counter(operations=1) + Counter(iterations=1)


def is_increment(loop: tree.While) -> bool:
    """Return whether the step only adds a constant to a local variable, as an iteration does."""
    match loop.step:
        case (tree.Assign(tree.Local(), tree.Binary(operator="+" | "-", left=tree.Local(), right=right)),):
            return isinstance(right, tree.Constant)
    return False


def entry(loop: tree.While) -> Count:
    """Return what the test before the first iteration costs; nothing where its outcome is known.

    The other tests are parts of iterations: a compiler puts them at the end of the loop.
    """
    return Counter() if loop.runs else of(loop.condition) + Counter(branches=1)


def of_index(index: tree.Expression) -> Count:
    """Return what an index costs: a number that is added to it is part of the address."""
    match index:
        case tree.Binary(operator="+" | "-", left=left, right=tree.Constant()):
            return of(left)
        case tree.Binary(operator="+", left=tree.Constant(), right=right):
            return of(right)
    return of(index)


def _halves(expression: tree.Binary) -> tuple[tree.Expression, ...]:
    """Return the 16-bit values of which ``high << 16 | low`` makes a word; none where it does not."""
    high, low = expression.left, expression.right
    if not (expression.operator == "|" and _bits(expression.type) == 32 and isinstance(high, tree.Binary)):
        return ()
    by_word = high.operator == "<<" and isinstance(high.right, tree.Constant) and high.right.value == 16
    found = tuple(
        half.operand
        for half in (high.left, low)
        if isinstance(half, tree.Convert) and _bits(half.operand.type) == 16
    )
    return found if by_word and len(found) == 2 else ()


def _bits(kind: types.Type) -> int:
    return kind.bits if isinstance(kind, types.Integer) else 0


def _division(kind: types.Integer, divisor: tree.Expression, words: int) -> Count:
    """Count a division or remainder: by a power of two a shift or a mask, by a constant a multiplication."""
    if not isinstance(divisor, tree.Constant) or divisor.value <= 0:
        return Counter(operations=DIVISION_OPERATIONS * words)
    if int(divisor.value).bit_count() == 1:
        return Counter(operations=(3 if kind.signed else 1) * words)
    return Counter(multiplications=words, operations=3 * words)


def _is_work(source: types.Type, target: types.Type) -> bool:
    """Return whether a conversion takes an instruction: integers keep their low bits as they are."""
    if isinstance(source, types.Integer) and isinstance(target, types.Integer):
        return source.bits < target.bits
    return True


def _binary(expression: tree.Binary) -> Count:
    operator, kind = expression.operator, expression.left.type
    if operator in ("and", "or"):
        return Counter(branches=1)
    words = 2 if isinstance(kind, types.Integer) and kind.bits > 16 else 1
    if isinstance(kind, types.Integer) and operator in ("/", "%"):
        return _division(kind, expression.right, words)
    if isinstance(kind, types.Integer) and operator == "*":
        return Counter(multiplications=WIDE_MULTIPLICATIONS if words > 1 else 1, operations=words - 1)
    return Counter(operations=words)
