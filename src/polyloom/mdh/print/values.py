"""Expressions in OpenCL C and C: scalar functions of the IR, and integer expressions of loops and indices.

The same text serves scalars and vectors (``width`` elements at once). Semantics are those of
``ir.expressions``: integers wrap, division by zero gives 0, NaN propagates through max and min. A half is
held as a float and rounded after each operation, so that no device needs ``cl_khr_fp16``. Functions such as
``exp`` are the device's own: a few units in the last place. How the languages differ is in ``dialect``.

What a text calls of ``helpers`` must be defined before it: a dialect that is ``noting`` knows what it was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from math import ceil, copysign, floor

import numpy as np

from polyloom.ir.expressions import (
    Binary,
    BinaryOp,
    Compare,
    CompareOp,
    Constant,
    Convert,
    Expression,
    Iterator,
    Local,
    ParameterValue,
    Procedure,
    Read,
    Select,
    Unary,
)
from polyloom.ir.scalar_functions.spelling import (
    Bits,
    Call,
    Formula,
    Guarded,
    Helper,
    Infix,
    Logical,
    Magnitude,
    Prefix,
    Same,
    Spelling,
    Wrapping,
)
from polyloom.ir.types import ElementType
from polyloom.ir.value_ranges import AS_UNSIGNED, ValueRanges, fits
from polyloom.mdh.print.dialect import (
    COMPARED,
    NARROW,
    OPENCL,
    ROUND_HALF,
    SHORTS_MULTIPLIED,
    SIGNED,
    Dialect,
    held,
    value_bytes,
)
from polyloom.polyhedra.loops.tree import IntExpression, Name, Number, Operation

_ATOM, _PREFIX, _TIMES, _PLUS, _SHIFT, _LESS, _EQUAL, _BIT, _AND, _OR, _CHOICE = range(11, 0, -1)


@dataclass(frozen=True)
class Text:
    """C text and how tightly its outermost operator binds."""

    text: str
    level: int = _ATOM

    def within(self, level: int) -> str:
        """Return the text as an operand of an operator that binds at ``level``."""
        return self.text if self.level >= level else f"({self.text})"


@dataclass(frozen=True)
class Leaves:
    """C texts for what an expression reads: each an identifier, a call or in parentheses.

    ``reads[k]``: the value of read number k (a half already as a float), of the value type and width.
    ``iterators[d]``, ``parameters[name]``: integers, ``int`` or ``long``. ``lanes``: an iterator as a vector
    of the type that is asked for or of int64, and which of them. ``same``: a conversion as a vector, where
    all its elements are one; None where they are not. ``for_all``: so for a condition, as one truth value.
    """

    reads: Mapping[int, str] | Sequence[str] = ()
    iterators: Mapping[int, str] | Sequence[str] = ()
    parameters: Mapping[str, str] = field(default_factory=dict)
    lanes: Callable[[int, ElementType], tuple[str, ElementType]] | None = None
    same: Callable[[Convert], str | None] | None = None
    for_all: Callable[[Expression], Text | None] | None = None


def value_type(element: ElementType, width: int = 1, dialect: Dialect = OPENCL) -> str:
    """Return the type of a value in a variable; ``float`` for a half, ``int`` for a truth value."""
    return dialect.type(element, width)


def memory_type(element: ElementType, dialect: Dialect = OPENCL) -> str:
    """Return the type of an element in memory."""
    return dialect.half if element is ElementType.FLOAT16 else dialect.scalars[element]


def expression_c(expression: Expression, leaves: Leaves, width: int = 1, dialect: Dialect = OPENCL) -> str:
    """Return a scalar function in C, of the value type of ``expression`` with ``width`` elements."""
    return expression_text(expression, leaves, width, dialect).text


def expression_text(expression: Expression, leaves: Leaves, width: int, dialect: Dialect) -> Text:
    """Return a scalar function in C, with how tightly it binds."""
    return _Printer(leaves, width, dialect).text(expression)


def truth_text(condition: Expression, leaves: Leaves, width: int, dialect: Dialect) -> Text:
    """Return a truth value; of vectors a mask whose elements have four bytes, as variables hold it."""
    return _Printer(leaves, width, dialect).mask(condition, 4)


def literal(value: float | int, element: ElementType, width: int = 1, dialect: Dialect = OPENCL) -> str:
    """Return a constant, rounded or wrapped to its type, as C."""
    if element.is_float:
        return dialect.all_of(_float_literal(value, element, dialect), element, width)
    return dialect.all_of(_integer_literal(int(value), element, dialect), element, width)


def _float_literal(value: float | int, element: ElementType, dialect: Dialect) -> str:
    with np.errstate(over="ignore"):
        rounded = np.float64(value).astype(element.dtype)
    double = element is ElementType.FLOAT64
    if not np.isfinite(rounded):
        name = dialect.of_header("math.h", "NAN" if np.isnan(rounded) else "INFINITY")
        sign = "-" if rounded < 0 else ""
        return f"({'(double)' if double else ''}{sign}{name})" if sign or double else name
    shortest = np.float64(rounded) if double else np.float32(rounded)
    text = str(shortest)
    text += "" if any(c in text for c in ".en") else ".0"
    text += "" if double else "f"
    return f"({text})" if copysign(1, float(rounded)) < 0 else text


def _integer_literal(value: int, element: ElementType, dialect: Dialect) -> str:
    bits, signed = 8 * element.dtype.itemsize, element.dtype.kind == "i"
    wrapped = value % 2**bits
    if signed and wrapped >= 2 ** (bits - 1):
        wrapped -= 2**bits
    if element in NARROW:
        kind = dialect.type(element)
        return f"({kind}){wrapped}" if wrapped >= 0 else f"({kind})({wrapped})"
    suffix = dialect.suffixes.get(element, "")
    if signed and wrapped == -(2 ** (bits - 1)):
        return f"({wrapped + 1}{suffix} - 1)"
    return f"{wrapped}{suffix}" if wrapped >= 0 else f"({wrapped}{suffix})"


@dataclass(frozen=True)
class _Printer:
    """``where``: conditions under which a value is used, and whether they hold or do not."""

    leaves: Leaves
    width: int
    dialect: Dialect
    where: tuple[tuple[Expression, bool], ...] = ()
    ranges: ValueRanges = field(default_factory=lambda: ValueRanges(()))

    def text(self, e: Expression) -> Text:
        match e:
            case Read(position=k):
                return Text(self.leaves.reads[k])
            case Constant(value=value, type=kind):
                return Text(literal(value, kind, self.width, self.dialect))
            case Iterator(dimension=k, type=kind):
                return self._iterator(k, kind)
            case ParameterValue(name=name, type=kind):
                return self._converted(Text(self.leaves.parameters[name]), ElementType.INT64, kind)
            case Unary():
                return self._unary(e)
            case Binary():
                return self._binary(e)
            case Compare():
                return self._compare(e)
            case Select():
                return self._select(e)
            case Convert(type=kind, operand=a):
                same = None if self.leaves.same is None else self.leaves.same(e)
                return self._convert(a, kind) if same is None else Text(same)
            case Local() | Procedure():
                raise AssertionError("steps are statements of the tree")

    def _call(self, function: str, *operands: Expression) -> Text:
        return Text(f"{function}({', '.join(self.text(o).text for o in operands)})")

    def _typed(self, family: str, *operands: Expression) -> Text:
        """Call a helper that is named after its type."""
        return self._call(self.dialect.helper(family, operands[0].type, self.width), *operands)

    def _type(self, kind: ElementType) -> str:
        return self.dialect.type(kind, self.width)

    def _iterator(self, dimension: int, kind: ElementType) -> Text:
        if self.leaves.lanes is None:
            return self._converted(Text(self.leaves.iterators[dimension]), ElementType.INT64, kind)
        text, found = self.leaves.lanes(dimension, kind)
        return Text(text) if found is kind else self._converted(Text(text), found, kind)

    def _rounded(self, text: Text, kind: ElementType) -> Text:
        """Round what an operation gave to the element type that a value of it only stands for."""
        return self._as_half(text) if kind is ElementType.FLOAT16 else self._narrowed(text, kind)

    def _as_half(self, text: Text) -> Text:
        return self._halved(text, ElementType.FLOAT32)

    def _halved(self, text: Text, source: ElementType) -> Text:
        """Round a float, or a double, to a half."""
        return Text(f"{self.dialect.helper(ROUND_HALF, source, self.width)}({text.text})")

    def _narrowed(self, text: Text, kind: ElementType) -> Text:
        """Undo C's promotion of ``char`` and ``short`` to ``int``."""
        if kind in NARROW and self.width == 1:
            return Text(f"({self._type(kind)}){text.within(_PREFIX)}", _PREFIX)
        return text

    def _infix(self, sign: str, level: int, a: Text, b: Text) -> Text:
        return Text(f"{a.within(level)} {sign} {b.within(level + 1)}", level)

    def _unary(self, e: Unary) -> Text:
        a = self.text(e.operand)
        match e.op.form(e.type).opencl:
            case Prefix(sign="!") if self._is_of_masks:
                return Text(f"~{a.within(_PREFIX)}", _PREFIX)
            case Prefix(sign=sign):
                # `--` is another operator
                inner = a.within(_ATOM if sign == "-" else _PREFIX)
                return self._narrowed(Text(f"{sign}{inner}", _PREFIX), e.type)
            case Magnitude():
                return self._magnitude(a.text, e)
            case Same():
                return a
            case spelling:
                return self._called(spelling, e.operand)

    @property
    def _is_of_masks(self) -> bool:
        """Whether truth values are masks that the language takes for integers."""
        return self.width > 1 and not self.dialect.masks_are_truths

    def _magnitude(self, a: str, e: Unary) -> Text:
        kind, name = e.type, self._type(e.type)
        if kind.dtype.kind == "u":
            return Text(a, _CHOICE)
        if not self.dialect.own_functions:
            family = "abs" if self.width > 1 or self.ranges.may_overflow(e) else "plain_abs"
            return Text(f"{self.dialect.helper(family, kind, self.width)}({a})")
        return Text(f"as_{name}(abs({a}))" if self.width > 1 else f"({name})abs({a})", _PREFIX)

    def _binary(self, e: Binary) -> Text:
        match e.op.form(e.type).opencl:
            case Logical(sign=sign):
                return self._logical(e, sign)
            case Infix(sign=sign):
                return self._rounded(self._operator(sign, e), e.type)
            case Bits(sign=sign):
                return self._rounded(self._infix(sign, _BIT, self._bits(e.left), self._bits(e.right)), e.type)
            case Wrapping(sign=sign) if self._wraps_by_itself(e.type):
                return self._operator(sign, e)
            case Guarded(sign=sign, harmless=harmless) if isinstance(e.right, Constant) and harmless(
                int(e.right.value), 8 * e.type.size
            ):
                return self._rounded(self._operator(sign, e), e.type)
            case Guarded(sign=">>" as sign) if self._leaves_a_bit(e):
                return self._rounded(self._operator(sign, e), e.type)
            case Wrapping(sign="*") if (operands := self._of_shorts(e)) is not None:
                return self._call(self.dialect.helper(SHORTS_MULTIPLIED, e.type, self.width), *operands)
            case Wrapping(sign=sign) if not self.ranges.may_overflow(e):
                return self._rounded(self._operator(sign, e), e.type)
            case Guarded(sign="<<") if self._shifts_bits(e):
                return self._shifted(e)
            case spelling:
                return self._called(spelling, e.left, e.right)

    def _shifts_bits(self, e: Binary) -> bool:
        """Whether vectors of C are shifted by what is known to leave a bit of them."""
        return self.width > 1 and not self.dialect.own_functions and self._leaves_a_bit(e)

    def _leaves_a_bit(self, e: Binary) -> bool:
        """Whether a shift leaves a bit whatever its count is made of."""
        return self.ranges.is_shift_within(e.right, e.type)

    def _of_shorts(self, e: Binary) -> tuple[Expression, Expression] | None:
        """Return factors of 16 bits, the second without a sign in the other half; None where they have more.

        Vectors of C have an instruction for these that takes half as long as that of 32 bits.
        """
        if self.width == 1 or self.dialect.own_functions or e.type is not ElementType.INT32:
            return None
        factors = e.left, e.right
        if any(_is_power_of_two(f) or not fits(self.ranges.of(f), ElementType.INT16) for f in factors):
            return None
        first, second = sorted(factors, key=lambda f: self.ranges.of(f)[0])
        if self.ranges.of(second)[0] < 0:
            second = Binary(BinaryOp.BIT_AND, second, Constant(0xFFFF, e.type))
        return first, second

    def _shifted(self, e: Binary) -> Text:
        """Return a shift to the left of the bits as those of unsigned numbers, whose overflow is defined."""
        bits = AS_UNSIGNED.get(e.type, e.type)
        kind = self._type(bits)
        if isinstance(e.right, Constant):
            count = literal(e.right.value, bits, self.width, self.dialect)
        else:
            count = self.dialect.reinterpret.format(kind=kind, value=self.text(e.right).text)
        inner = self.dialect.reinterpret.format(kind=kind, value=self.text(e.left).text)
        return Text(self.dialect.reinterpret.format(kind=self._type(e.type), value=f"{inner} << {count}"))

    def _called(self, spelling: Spelling, *operands: Expression) -> Text:
        """Write a function as a call, of OpenCL's own or of a helper."""
        match spelling:
            case Call(function=function, rounded=rounded):
                kind = operands[0].type
                text = self._call(self.dialect.function(function, kind, self.width), *operands)
                return self._rounded(text, kind) if rounded else text
            case Formula(family=family):
                return self._rounded(self._typed(family, *operands), operands[0].type)
            case Helper(family=family) | Wrapping(family=family) | Guarded(family=family):
                return self._typed(family, *operands)
            case _:
                raise AssertionError(f"{spelling} is no call")

    def _operator(self, sign: str, e: Binary) -> Text:
        operand = self._bits if _LEVELS[sign] == _SHIFT else self.text
        return self._infix(sign, _LEVELS[sign], operand(e.left), operand(e.right))

    def _wraps_by_itself(self, kind: ElementType) -> bool:
        return kind.dtype.kind == "u" and (self.width > 1 or kind not in NARROW)

    def _logical(self, e: Binary, sign: str) -> Text:
        bytes_ = max(_mask_bytes(e.left), _mask_bytes(e.right))
        operands = [self.mask(operand, bytes_) for operand in (e.left, e.right)]
        if self._is_of_masks:
            return self._both(sign, *operands)
        if sign == "||":
            operands = [_apart(operand) for operand in operands]
        return self._infix(sign, _LEVELS[sign], *operands)

    def _both(self, sign: str, left: Text, right: Text) -> Text:
        """Return two masks as one."""
        return self._infix(_OF_MASKS[sign], _BIT, Text(left.within(_PREFIX)), Text(right.within(_PREFIX)))

    def _bits(self, e: Expression) -> Text:
        """Return an operand of a bit operation or a shift, with parentheses around all but the simplest."""
        text = self.text(e)
        return text if text.level >= _PREFIX else Text(f"({text.text})")

    def _compare(self, e: Compare) -> Text:
        level = _EQUAL if e.op.is_equality else _LESS
        if e.left.type is ElementType.BOOL:
            bytes_ = max(_mask_bytes(e.left), _mask_bytes(e.right))
            compared = self._infix(e.op.value, level, self.mask(e.left, bytes_), self.mask(e.right, bytes_))
        else:
            compared = self._infix(e.op.value, level, self.text(e.left), self.text(e.right))
        return self._signed(compared, _mask_bytes(e))

    def _signed(self, mask: Text, bytes_: int) -> Text:
        """Return a mask of signed integers: clang compares bytes to ``char``, which has no sign on ARM."""
        if bytes_ > 1 or not self._is_of_masks:
            return mask
        return Text(self.dialect.reinterpret.format(kind=self._type(SIGNED[1]), value=mask.text))

    def _select(self, e: Select) -> Text:
        bytes_ = value_bytes(e.type)
        if e.type is ElementType.BOOL:
            then, otherwise = self.mask(e.then, bytes_), self.mask(e.otherwise, bytes_)
        else:
            then, otherwise = (
                replace(self, where=(*self.where, (e.condition, holds))).text(value)
                for value, holds in ((e.then, True), (e.otherwise, False))
            )
            family = _extreme_of(e)
            if family is not None and self._has_extremes:
                extreme = self.dialect.helper(family, e.type, self.width)
                return Text(f"{extreme}({then.text}, {otherwise.text})")
        for_all = None if self.leaves.for_all is None else self.leaves.for_all(e.condition)
        if for_all is not None:
            return _choice(for_all, then, otherwise)
        return self._narrowed(self._chosen(self.mask(e.condition, bytes_), then, otherwise, e.type), e.type)

    @property
    def _has_extremes(self) -> bool:
        """Whether a choice between two numbers is a call, in which each of them stands once."""
        return self._is_of_masks if self.width > 1 else not self.dialect.own_functions

    def _chosen(self, condition: Text, then: Text, otherwise: Text, kind: ElementType) -> Text:
        if self._is_of_masks:
            select = self.dialect.helper("select", kind, self.width)
            return Text(f"{select}({condition.text}, {then.text}, {otherwise.text})")
        return _choice(condition, then, otherwise)

    def mask(self, e: Expression, bytes_: int) -> Text:
        """Return a truth value; for vectors a mask whose elements have that many bytes."""
        found = _mask_bytes(e)
        if self.width == 1 or found == bytes_:
            return self.text(e)
        if self._is_of_masks and found > bytes_ and self.width * found == self.dialect.widest:
            small = self._small_mask(e, bytes_)
            if small is not None:
                return small
        return Text(self.dialect.converted(self.text(e).text, SIGNED[found], SIGNED[bytes_], self.width))

    def _small_mask(self, e: Expression, bytes_: int) -> Text | None:
        """Return a truth value of the longest vectors as a mask of smaller elements, made as such."""
        match e:
            case Compare(op=op, left=left, right=right) if left.type is not ElementType.BOOL:
                family = f"{COMPARED}{op.name}_{held(left.type).value}"
                return self._call(self.dialect.helper(family, SIGNED[bytes_], self.width), left, right)
            case Unary(operand=operand) if e.op.form(e.type).opencl == Prefix("!"):
                return Text(f"~{self.mask(operand, bytes_).within(_PREFIX)}", _PREFIX)
            case Binary(left=left, right=right) if isinstance(sign := e.op.form(e.type).opencl, Logical):
                return self._both(sign.sign, self.mask(left, bytes_), self.mask(right, bytes_))
        return None

    def _convert(self, operand: Expression, kind: ElementType) -> Text:
        if kind is ElementType.BOOL:
            if operand.type is ElementType.BOOL:
                return self.text(operand)
            zero = literal(0, operand.type, self.width, self.dialect)
            return self._signed(self._infix("!=", _EQUAL, self.text(operand), Text(zero)), operand.type.size)
        if isinstance(operand, Convert) and self._needs_few_bits(operand, kind):
            return self._convert(operand.operand, kind)
        return self._converted(self.text(operand), operand.type, kind, operand)

    def _converted(
        self, text: Text, source: ElementType, kind: ElementType, operand: Expression | None = None
    ) -> Text:
        """Convert as NumPy does: float to integer by way of 64 bits, of which 32 do where they have it."""
        if source is kind and operand is not None:
            return text
        if source is ElementType.BOOL:
            return self._from_truth(text, kind, operand)
        if source.is_float and not kind.is_float:
            whole = self._integers_of(operand, kind)
            text, source = self._cast(source, whole, text), whole
        if kind is ElementType.FLOAT16 and source is ElementType.FLOAT64:
            return self._halved(text, source)
        if self._type(source) == self._type(kind) and operand is not None:
            return self._rounded(text, kind)
        cast = self._cast(source, kind, text)
        return self._as_half(cast) if kind is ElementType.FLOAT16 else cast

    def _needs_few_bits(self, whole: Convert, kind: ElementType) -> bool:
        """Whether a float may become a short integer at once, and not the ``whole`` one in between."""
        is_between = whole.operand.type.is_float and whole.type in (ElementType.INT32, ElementType.INT64)
        is_short = not kind.is_float and kind.size < ElementType.INT32.size
        return is_between and is_short and self._integers_of(whole.operand, kind) is ElementType.INT32

    def _integers_of(self, operand: Expression | None, kind: ElementType) -> ElementType:
        """Return the type by way of which a float becomes an integer: of 64 bits, or of 32 that hold it.

        What is no number becomes the lowest one, whose last bits are 0 in both.
        """
        found = None if operand is None else self.ranges.of_float(operand, self.where)
        if found is None or not fits((floor(found.low), ceil(found.high)), ElementType.INT32):
            return ElementType.INT64
        return ElementType.INT64 if found.may_be_no_number and kind.size >= 4 else ElementType.INT32

    def _from_truth(self, text: Text, kind: ElementType, operand: Expression | None) -> Text:
        if self.width == 1:
            return self._cast(ElementType.BOOL, kind, text)
        one, zero = (Text(literal(value, kind, self.width, self.dialect)) for value in (1, 0))
        assert operand is not None
        return self._chosen(self.mask(operand, value_bytes(kind)), one, zero, kind)

    def _cast(self, source: ElementType, kind: ElementType, text: Text) -> Text:
        if self.width > 1:
            return Text(self.dialect.converted(text.text, source, kind, self.width))
        return Text(f"({self._type(kind)}){text.within(_PREFIX)}", _PREFIX)


_OF_MASKS = {"&&": "&", "||": "|", "!=": "^"}


def _choice(condition: Text, then: Text, otherwise: Text) -> Text:
    parts = condition.within(_OR), then.within(_OR), otherwise.within(_OR)
    return Text("{} ? {} : {}".format(*parts), _CHOICE)


def _extreme_of(e: Select) -> str | None:
    """Return the helper that a choice between two numbers is: ``a > b ? a : b`` or ``a < b ? a : b``.

    Of floats, strict comparisons alone: the others choose another operand of two zeros than x86 does.
    """
    if not isinstance(e.condition, Compare) or e.condition.left.type is not e.type:
        return None
    both = e.condition.left, e.condition.right
    if both == (e.otherwise, e.then):
        greater, less = (CompareOp.LT, CompareOp.LE), (CompareOp.GT, CompareOp.GE)
    elif both == (e.then, e.otherwise):
        greater, less = (CompareOp.GT, CompareOp.GE), (CompareOp.LT, CompareOp.LE)
    else:
        return None
    op = e.condition.op
    if e.type in (ElementType.FLOAT32, ElementType.FLOAT64):
        return {greater[0]: "larger", less[0]: "smaller"}.get(op)
    if e.type.is_float:
        return None
    return "max" if op in greater else "min" if op in less else None


def _is_power_of_two(e: Expression) -> bool:
    return isinstance(e, Constant) and int(e.value).bit_count() == 1


def _mask_bytes(e: Expression) -> int:
    """Return how many bytes an element of a vector's truth value has."""
    match e:
        case Compare(left=left) if left.type is not ElementType.BOOL:
            return value_bytes(left.type)
        case Compare(left=left, right=right) | Binary(left=left, right=right):
            return max(_mask_bytes(left), _mask_bytes(right))
        case Unary(operand=operand):
            return _mask_bytes(operand)
        case Convert(operand=operand) if operand.type is not ElementType.BOOL:
            return value_bytes(operand.type)
        case Convert(operand=operand):
            return _mask_bytes(operand)
        case _:
            return 4


def integer_c(
    expression: IntExpression, names: Mapping[str, str] | None = None, dialect: Dialect = OPENCL
) -> str:
    """Return an integer expression or condition of loops in C; ``names`` replaces variables.

    Operands are integers of any kind; helpers (``floor_div``, ``lesser``, ``greater``) work on ``long``.
    """
    return integer_text(expression, names or {}, dialect).text


def integer_text(expression: IntExpression, names: Mapping[str, str], dialect: Dialect = OPENCL) -> Text:
    """Return an integer expression with how tightly it binds."""
    match expression:
        case Number(value=value):
            return Text(str(value), _ATOM if value >= 0 else _PREFIX)
        case Name(name=name):
            return Text(names.get(name, name))
        case Operation(operator="?", operands=(c, a, b)):
            parts = (integer_text(part, names, dialect).within(_OR) for part in (c, a, b))
            return Text("{} ? {} : {}".format(*parts), _CHOICE)
        case Operation(operator="-" | "not" as operator, operands=(a,)):
            sign = "-" if operator == "-" else "!"
            return Text(f"{sign}{integer_text(a, names, dialect).within(_ATOM)}", _PREFIX)
        case Operation(operator=operator, operands=operands):
            texts = [integer_text(o, names, dialect) for o in operands]
            if operator in _CALLS:
                call = dialect.helper(_CALLS[operator], ElementType.INT64)
                return reduce(lambda a, b: Text(f"{call}({a.text}, {b.text})"), texts)
            sign = _WORDS.get(operator, operator)
            level = _LEVELS[sign]
            if operator == "or":
                texts = [_apart(text) for text in texts]
            return reduce(lambda a, b: Text(f"{a.within(level)} {sign} {b.within(level + 1)}", level), texts)


def _apart(text: Text) -> Text:
    """Put ``a && b`` into parentheses, as an operand of ``||``: compilers warn without."""
    return Text(f"({text.text})") if text.level == _AND else text


_CALLS = {"floor": "floor_div", "min": "lesser", "max": "greater"}
_LEVELS = {
    "+": _PLUS,
    "-": _PLUS,
    "*": _TIMES,
    "/": _TIMES,
    "%": _TIMES,
    ">>": _SHIFT,
    "&&": _AND,
    "||": _OR,
    "==": _EQUAL,
    "!=": _EQUAL,
    "<": _LESS,
    "<=": _LESS,
    ">": _LESS,
    ">=": _LESS,
}
_WORDS = {"and": "&&", "or": "||"}
