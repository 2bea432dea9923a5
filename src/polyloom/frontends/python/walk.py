"""A function's statements as drafts: domains in isl's notation, accesses, values with their types."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from polyloom.diagnostics import Span
from polyloom.frontends.python import affine, values
from polyloom.frontends.python.affine import Affine
from polyloom.frontends.python.source import FunctionText
from polyloom.frontends.python.values import HELD, Kind, Typed, Weak, as_kind, joined
from polyloom.ir.expressions import (
    Binary,
    Compare,
    CompareOp,
    Constant,
    Expression,
    Iterator,
    ParameterValue,
    Read,
    Select,
    Unary,
)
from polyloom.ir.rebuild import rebuilt
from polyloom.ir.scalar_functions.table import BinaryOp, UnaryOp
from polyloom.ir.types import ElementType

INT = ElementType.INT64
COMPARISONS: Mapping[type[ast.cmpop], tuple[str, CompareOp]] = {
    ast.Lt: ("<", CompareOp.LT),
    ast.LtE: ("<=", CompareOp.LE),
    ast.Gt: (">", CompareOp.GT),
    ast.GtE: (">=", CompareOp.GE),
    ast.Eq: ("=", CompareOp.EQ),
    ast.NotEq: ("!=", CompareOp.NE),
}
AFFINE = "loops and subscripts are sums of iterators, sizes and numbers, also `// 2` and `% 2`"


@dataclass(frozen=True)
class Array:
    """An array or scalar: its element type and extents. ``own``: made by the function."""

    type: ElementType
    extents: tuple[Affine, ...]
    span: Span | None = None
    own: bool = False


@dataclass(frozen=True)
class Access:
    """``array[indices]`` at the points where ``within`` holds."""

    array: str
    indices: tuple[Affine, ...]
    within: tuple[str, ...]
    span: Span | None


@dataclass(frozen=True)
class Loop:
    """A loop around: its iterator, its ``for``, and whether it counts down."""

    iterator: str
    span: Span
    descending: bool


@dataclass(frozen=True)
class Draft:
    """A statement: ``position`` is its place in each body around it, outermost first."""

    loops: tuple[Loop, ...]
    conditions: tuple[str, ...]
    position: tuple[int, ...]
    target: Access
    reads: tuple[Access, ...]
    value: Expression
    condition: Expression | None
    span: Span


@dataclass(frozen=True)
class Test:
    """A condition of the data: an expression, or a variable that holds it; ``wanted``: its value."""

    node: ast.expr
    variable: str
    wanted: bool


@dataclass
class Walk:
    """The walk over a function's body. ``kinds``: of scalar variables, as far as earlier walks know them."""

    text: FunctionText
    arrays: dict[str, Array]
    symbols: dict[str, Affine]
    kinds: dict[str, Kind]
    assigned: Mapping[str, int]
    drafts: list[Draft] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    loops: tuple[Loop, ...] = ()
    conditions: tuple[str, ...] = ()
    tests: tuple[Test, ...] = ()
    within: tuple[str, ...] = ()
    counters: list[int] = field(default_factory=lambda: [0])
    reads: list[Access] = field(default_factory=list)
    defined: set[str] = field(default_factory=set)
    temporaries: int = 0

    # -- statements

    def body(self, statements: Sequence[ast.stmt]) -> None:
        """Walk over a body."""
        for number, statement in enumerate(statements):
            if self.results or (isinstance(statement, ast.Return) and number < len(statements) - 1):
                self.text.refuse("python-statement", "`return` stands at the end of the function", statement)
            self.statement(statement)

    def statement(self, node: ast.stmt) -> None:
        """Walk over a statement."""
        match node:
            case ast.For(target=ast.Name(), orelse=[]):
                self._for(node)
            case ast.If():
                self._if(node)
            case ast.Assign(targets=[target], value=value):
                self._assign(node, target, value)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._assign(node, target, value)
            case ast.AugAssign(target=ast.Name() | ast.Subscript() as target, op=op, value=value):
                sum_ = ast.copy_location(ast.BinOp(target, op, value), node)
                self._assign(node, target, sum_)
            case ast.Return() if not self.loops and not self.conditions and not self.tests:
                self._return(node)
            case ast.Pass() | ast.Expr(value=ast.Constant()):
                pass
            case _:
                what = type(node).__name__.lower()
                help_ = "loops are `for i in range(...)`, branches `if`; the rest are assignments"
                self.text.refuse("python-statement", f"`{what}` has no affine form", node, "", help_)

    def _for(self, node: ast.For) -> None:
        assert isinstance(node.target, ast.Name)
        match node.iter:
            case ast.Call(func=ast.Name(id="range"), args=[_, *_] as ends, keywords=[]) if len(ends) <= 3:
                pass
            case _:
                self.text.refuse("python-loop", "a loop goes over `range(...)`", node.iter, "", AFFINE)
        iterator = node.target.id
        if iterator in self.symbols or iterator in self.arrays or iterator in self.kinds:
            help_ = "give the iterator a name of its own"
            self.text.refuse(
                "python-name", f"`{iterator}` has a meaning outside the loop", node.target, "", help_
            )
        found = [self.integer(end) for end in ends]
        start, stop = (affine.number(0), found[0]) if len(found) == 1 else found[:2]
        step = found[2].number if len(found) == 3 else 1
        if not step:
            self.text.refuse("python-loop", "the step of a loop is a number other than 0", ends[-1])
        i = affine.name(iterator)
        low, high = ("<=", "<") if step > 0 else (">=", ">")
        limits = [f"{start.text} {low} {i.text}", f"{i.text} {high} {stop.text}"]
        if abs(step) > 1:
            limits.append(f"({i.text} - {start.text}) mod {abs(step)} = 0")
        outer = self.loops, self.conditions, self.symbols
        self.symbols = {**self.symbols, iterator: i}
        self.loops = (*self.loops, Loop(iterator, self.text.span(node), step < 0))
        self.conditions = (*self.conditions, *limits)
        self.counters.append(0)
        self.body(node.body)
        self.counters.pop()
        self.counters[-1] += 1
        self.loops, self.conditions, self.symbols = outer

    def _if(self, node: ast.If) -> None:
        condition = self.condition(node.test)
        if condition is not None:
            outer = self.conditions
            for body, text in ((node.body, condition), (node.orelse, f"not ({condition})")):
                self.conditions = (*outer, text)
                self.body(body)
            self.conditions = outer
            return
        outer_tests = self.tests
        simple = (
            len(node.body) == 1 and not node.orelse and isinstance(node.body[0], ast.Assign | ast.AugAssign)
        )
        name = ""
        if not simple:  # what it tests may change in the branch
            self.temporaries += 1
            name = f"test_{self.temporaries}"
            kind = ElementType.UINT8
            truth = Select(self.value(node.test).value, Constant(1, kind), Constant(0, kind))
            self.arrays[name] = Array(kind, (), self.text.span(node.test), own=True)
            self._store(name, (), truth, node.test)
        for body, wanted in ((node.body, True), (node.orelse, False)):
            self.tests = (*outer_tests, Test(node.test, name, wanted))
            self.body(body)
        self.tests = outer_tests

    def _return(self, node: ast.Return) -> None:
        parts = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value] if node.value else []
        for part in parts:
            if isinstance(part, ast.Name) and (part.id in self.arrays or part.id in self.kinds):
                self.results.append(part.id)
                continue
            name = f"result_{len(self.results)}"
            found = self.value(part)
            self._scalar(name, found, part)
            self.results.append(name)

    def _assign(self, node: ast.stmt, target: ast.expr, value: ast.expr) -> None:
        match target, value:
            case ast.Tuple(elts=names), ast.Attribute(value=ast.Name(id=array), attr="shape"):
                extents = self.array(array, value).extents
                if len(names) != len(extents):
                    self.text.refuse("python-shape", f"`{array}` has {len(extents)} dimensions", target)
                for name, extent in zip(names, extents, strict=True):
                    self._symbol(name, extent)
            case ast.Tuple(elts=names), ast.Tuple(elts=parts) if len(names) == len(parts):
                message = "several assignments at once"
                self.text.refuse("python-statement", message, node, "", "write them one after the other")
            case ast.Name(id=name), ast.Call() if (made := self._new_array(value)) is not None:
                self._make(name, made, node)
            case ast.Name(id=name), _:
                found = self.affine(value) if self.assigned.get(name, 0) == 1 else None
                if found is not None:
                    self._symbol(target, found)
                else:
                    self._scalar(name, self.value(value), node)
            case ast.Subscript(), _:
                stored, indices = self._element(target)
                kind = self.array(stored, target).type
                self._store(stored, indices, as_kind(self.value(value), kind), node)
            case _:
                self.text.refuse("python-statement", "only names and elements are assigned to", target)

    def _symbol(self, node: ast.expr, value: Affine) -> None:
        if not isinstance(node, ast.Name) or self.assigned.get(node.id, 0) != 1 or node.id in self.arrays:
            self.text.refuse("python-name", "a size is a name that is assigned once", node)
        self.symbols = {**self.symbols, node.id: value}

    def _scalar(self, name: str, value: Typed, node: ast.AST) -> None:
        """Assign to a variable that holds a number."""
        if name in self.symbols or (name in self.arrays and self.arrays[name].extents):
            self.text.refuse("python-name", f"`{name}` has another meaning here", node)
        before = self.kinds.get(name)
        self.kinds[name] = kind = value.kind if before is None else joined(before, value.kind)
        held = HELD[kind] if isinstance(kind, Weak) else kind
        if held is ElementType.BOOL:
            self.text.refuse(
                "python-type", "a truth value is kept in no variable", node, "", "use it in `if`"
            )
        self.arrays[name] = Array(held, (), self.text.span(node), own=True)
        self._store(name, (), as_kind(value, held), node)

    def _make(self, name: str, made: tuple[Array, bool], node: ast.AST) -> None:
        array, is_zero = made
        if self.loops or self.conditions or self.tests or name in self.arrays or name in self.symbols:
            help_ = "make it once, at the beginning of the function"
            self.text.refuse(
                "python-array", "an array is made outside of loops, under a new name", node, "", help_
            )
        self.arrays[name] = array
        if is_zero:
            names = [f"{name}_{k}" for k in range(len(array.extents))]
            loops, conditions = self.loops, self.conditions
            self.loops = tuple(Loop(n, self.text.span(node), descending=False) for n in names)
            sizes = zip(names, array.extents, strict=True)
            self.conditions = tuple(f"0 <= {affine.PREFIX}{n} < {e.text}" for n, e in sizes)
            self.counters += [0] * len(names)
            self._store(name, tuple(map(affine.name, names)), Constant(0, array.type), node)
            del self.counters[len(self.counters) - len(names) :]
            self.loops, self.conditions = loops, conditions
            self.counters[-1] += 1

    def _store(self, name: str, indices: tuple[Affine, ...], value: Expression, node: ast.AST) -> None:
        """Add a statement; the reads of its value have been made."""
        span = self.text.span(node)
        condition: Expression | None = None
        for test in self.tests:
            found = self._tested(test)
            condition = found if condition is None else Binary(BinaryOp.AND, condition, found)
        target = Access(name, indices, (), span)
        numbers = {loop.iterator: k for k, loop in enumerate(self.loops)}
        self.drafts.append(
            Draft(
                loops=self.loops,
                conditions=self.conditions,
                position=tuple(self.counters),
                target=target,
                reads=tuple(self.reads),
                value=_with_iterators(value, numbers),
                condition=None if condition is None else _with_iterators(condition, numbers),
                span=span,
            )
        )
        self.reads = []
        self.defined.add(name)
        self.counters[-1] += 1

    def _tested(self, test: Test) -> Expression:
        if test.variable:
            kind = self.arrays[test.variable].type
            read = self._read(test.variable, (), test.node, kind)
            return Compare(CompareOp.NE if test.wanted else CompareOp.EQ, read, Constant(0, kind))
        found = self.value(test.node).value
        return found if test.wanted else Unary(UnaryOp.NOT, found)

    # -- arrays

    def array(self, name: str, node: ast.AST) -> Array:
        """Return an array. Errors: ``python-name``."""
        found = self.arrays.get(name)
        if found is None:
            self.text.refuse("python-name", f"`{name}` is no array here", node)
        return found

    def _new_array(self, node: ast.expr) -> tuple[Array, bool] | None:
        """Return what a call makes, and whether its elements are zeros; None where it makes no array."""
        assert isinstance(node, ast.Call)
        made = id(self.meant(node.func))
        keywords = {k.arg: k.value for k in node.keywords}
        span = self.text.span(node)
        if made in values.LIKE and node.args and isinstance(node.args[0], ast.Name):
            like = self.array(node.args[0].id, node)
            return Array(
                self._type(keywords.get("dtype")) or like.type, like.extents, span, own=True
            ), values.LIKE[made]
        if made not in values.ZEROS | values.EMPTY:
            return None
        shape = node.args[0] if node.args else keywords.get("shape")
        if shape is None:
            self.text.refuse("python-array", "the shape is missing", node)
        dtype = node.args[1] if len(node.args) > 1 else keywords.get("dtype")
        match shape:
            case ast.Attribute(value=ast.Name(id=name), attr="shape"):
                extents = self.array(name, shape).extents
            case ast.Tuple(elts=parts):
                extents = tuple(map(self.integer, parts))
            case _:
                extents = (self.integer(shape),)
        kind = self._type(dtype) or ElementType.FLOAT64
        return Array(kind, extents, span, own=True), made in values.ZEROS

    def _type(self, node: ast.expr | None) -> ElementType | None:
        match node:
            case None:
                return None
            case ast.Attribute(value=ast.Name(id=name), attr="dtype") if name in self.arrays:
                return self.arrays[name].type
            case ast.Constant(value=str(text)) if text in {k.value for k in ElementType}:
                return ElementType(text)
        found = values.TYPES.get(id(self.meant(node)))
        if found is None:
            self.text.refuse("python-type", "this is no element type", node, "", "`np.float32`, `a.dtype`")
        return found

    def _element(self, node: ast.Subscript) -> tuple[str, tuple[Affine, ...]]:
        """Return the array and the indices of ``A[i, j]`` or ``A[i][j]``."""
        parts: list[ast.expr] = []
        inner: ast.expr = node
        while isinstance(inner, ast.Subscript):
            own = inner.slice.elts if isinstance(inner.slice, ast.Tuple) else [inner.slice]
            parts = [*own, *parts]
            inner = inner.value
        if not isinstance(inner, ast.Name):
            self.text.refuse("python-name", "elements are those of arrays with a name", inner)
        array = self.array(inner.id, inner)
        if len(parts) != len(array.extents):
            help_ = "write a loop over each dimension"
            message = (
                f"`{inner.id}` has {len(array.extents)} dimensions, and here are {len(parts)} subscripts"
            )
            self.text.refuse("python-shape", message, node, "", help_)
        found = []
        for part, extent in zip(parts, array.extents, strict=True):
            index = self.integer(part)
            if index.number is not None and index.number < 0:
                index = affine.combined(ast.Add(), extent, index) or index
            found.append(index)
        return inner.id, tuple(found)

    def _read(self, name: str, indices: tuple[Affine, ...], node: ast.AST, kind: ElementType) -> Read:
        self.reads.append(Access(name, indices, self.within, self.text.span(node)))
        return Read(len(self.reads) - 1, kind)

    # -- integers and conditions

    def integer(self, node: ast.expr) -> Affine:
        """Return an affine integer. Errors: ``python-nonaffine``."""
        found = self.affine(node)
        if found is None:
            self.text.refuse("python-nonaffine", "this is not affine", node, "", AFFINE)
        return found

    def affine(self, node: ast.expr) -> Affine | None:
        """Return an affine integer; None where it is none."""
        match node:
            case ast.Constant(value=bool()):
                return None
            case ast.Constant(value=int(value)):
                return affine.number(value)
            case ast.Name(id=name) if name in self.symbols:
                return self.symbols[name]
            case ast.Name(id=name) if name not in self.arrays and name not in self.kinds:
                meant = self.text.names.get(name)
                return affine.number(meant) if type(meant) is int else None
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                inner = self.affine(operand)
                return None if inner is None else affine.negated(inner)
            case ast.BinOp(left=left, op=op, right=right):
                a, b = self.affine(left), self.affine(right)
                return None if a is None or b is None else affine.combined(op, a, b)
            case ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=name)]) if name in self.arrays:
                return self.arrays[name].extents[0]
            case ast.Subscript(value=ast.Attribute(value=ast.Name(id=name), attr="shape"), slice=place):
                at = self.affine(place)
                extents = self.array(name, node).extents
                if at is None or at.number is None or not -len(extents) <= at.number < len(extents):
                    return None
                return extents[at.number]
            case _:
                return None

    def condition(self, node: ast.expr) -> str | None:
        """Return a condition on iterators and sizes in isl's notation; None where it asks about data."""
        match node:
            case ast.BoolOp(op=op, values=parts):
                texts = [self.condition(part) for part in parts]
                word = " and " if isinstance(op, ast.And) else " or "
                return None if None in texts else "(" + word.join(f"({t})" for t in texts) + ")"
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                inner = self.condition(operand)
                return None if inner is None else f"not ({inner})"
            case ast.Compare(left=left, ops=ops, comparators=others):
                if not all(type(op) in COMPARISONS for op in ops):
                    return None
                sides = [self.affine(side) for side in (left, *others)]
                if any(side is None for side in sides):
                    return None
                known = [side.text for side in sides if side is not None]
                words = [COMPARISONS[type(op)][0] for op in ops]
                pairs = zip(known[:-1], words, known[1:], strict=True)
                return " and ".join(f"({a} {word} {b})" for a, word, b in pairs)
            case _:
                return None

    def meant(self, node: ast.expr | None) -> Any:
        """Return the object that a name of the function's surroundings means; None where it means none."""
        match node:
            case ast.Name(id=name) if name not in self.arrays and name not in self.symbols:
                return self.text.names.get(name)
            case ast.Attribute(value=inner, attr=name):
                module = self.meant(inner)
                return getattr(module, name, None) if any(module is m for m in values.MODULES) else None
            case _:
                return None

    # -- values

    def value(self, node: ast.expr) -> Typed:
        """Return the value of an expression; what it reads is added to ``reads``."""
        known = self.affine(node)
        if known is not None:
            return Typed(known.value, Weak.INT)
        match node:
            case ast.Constant(value=float(value)):
                return Typed(Constant(value, ElementType.FLOAT64), Weak.FLOAT)
            case ast.Name(id=name) if name in self.arrays and not self.arrays[name].extents:
                kind = self.kinds.get(name, self.arrays[name].type)
                return Typed(self._read(name, (), node, self.arrays[name].type), kind)
            case ast.Name() | ast.Attribute() if type(meant := self.meant(node)) is float:
                return Typed(Constant(meant, ElementType.FLOAT64), Weak.FLOAT)
            case ast.Subscript():
                name, indices = self._element(node)
                kind = self.arrays[name].type
                return Typed(self._read(name, indices, node, kind), kind)
            case ast.BinOp(left=left, op=op, right=right):
                return self._binary(node, op, self.value(left), self.value(right))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                inner = self.value(operand)
                return Typed(Unary(UnaryOp.NEGATE, inner.value), inner.kind)
            case ast.Call(func=function, args=arguments, keywords=[]):
                return self._call(node, id(self.meant(function)), arguments)
            case ast.IfExp(test=test, body=then, orelse=otherwise):
                return self._choice(test, then, otherwise)
            case ast.Compare() | ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
                return Typed(self._truth(node), ElementType.BOOL)
            case _:
                pass
        what = ast.unparse(node)
        help_ = "elements, numbers, `+ - * / **`, `min`, `max`, `abs`, functions of NumPy"
        raise self.text.fault("python-value", f"`{what}` has no form here", node, "", help_)

    def _binary(self, node: ast.BinOp, op: ast.operator, a: Typed, b: Typed) -> Typed:
        known = {ast.Add: BinaryOp.ADD, ast.Sub: BinaryOp.SUBTRACT, ast.Mult: BinaryOp.MULTIPLY}
        if joined(a.kind, b.kind) is ElementType.BOOL:
            raise self.text.fault("python-value", "truth values are not computed with here", node)
        if type(op) in known:
            return values.arithmetic(known[type(op)], a, b)
        if isinstance(op, ast.Div):
            return values.divided(a, b)
        kind = joined(a.kind, b.kind)
        is_float = kind is Weak.FLOAT or (isinstance(kind, ElementType) and kind.is_float)
        if isinstance(op, ast.Pow) and is_float:
            return values.arithmetic(BinaryOp.POWER, a, b)
        sign = {ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**"}.get(type(op), type(op).__name__)
        raise self.text.fault("python-value", f"`{sign}` is not computed on elements of this type", node)

    def _call(self, node: ast.Call, function: int, arguments: Sequence[ast.expr]) -> Typed:
        found = [self.value(a) for a in arguments]
        if len(found) == 1 and function in values.FUNCTIONS:
            return values.function(values.FUNCTIONS[function], found[0])
        if len(found) == 1 and function in values.ABSOLUTE:
            return Typed(Unary(UnaryOp.ABS, found[0].value), found[0].kind)
        if len(found) == 2 and function in values.EXTREMES:
            return values.arithmetic(values.EXTREMES[function], *found)
        if len(found) == 2 and function in values.CHOICES:
            a, b = found
            chosen = joined(a.kind, b.kind)
            better = values.compared(values.CHOICES[function], b, a)
            return Typed(Select(better.value, as_kind(b, chosen), as_kind(a, chosen)), chosen)
        if len(found) == 1 and function in values.TYPES:
            return Typed(as_kind(found[0], values.TYPES[function]), values.TYPES[function])
        help_ = "`np.exp`, `np.sqrt` and their like, `np.maximum`, `min`, `max`, `abs`; else a loop"
        raise self.text.fault("python-call", f"`{ast.unparse(node.func)}` is not known here", node, "", help_)

    def _choice(self, test: ast.expr, then: ast.expr, otherwise: ast.expr) -> Typed:
        condition, outer = self.condition(test), self.within
        truth = self._truth(test)
        self.within = outer if condition is None else (*outer, condition)
        a = self.value(then)
        self.within = outer if condition is None else (*outer, f"not ({condition})")
        b = self.value(otherwise)
        self.within = outer
        kind = joined(a.kind, b.kind)
        return Typed(Select(truth, as_kind(a, kind), as_kind(b, kind)), kind)

    def _truth(self, node: ast.expr) -> Expression:
        match node:
            case ast.BoolOp(op=op, values=parts):
                word = BinaryOp.AND if isinstance(op, ast.And) else BinaryOp.OR
                found = [self._truth(part) for part in parts]
                result = found[0]
                for other in found[1:]:
                    result = Binary(word, result, other)
                return result
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return Unary(UnaryOp.NOT, self._truth(operand))
            case ast.Compare(left=left, ops=ops, comparators=others) if all(
                type(o) in COMPARISONS for o in ops
            ):
                sides = [self.value(side) for side in (left, *others)]
                pairs = zip(sides[:-1], ops, sides[1:], strict=True)
                found = [values.compared(COMPARISONS[type(op)][1], a, b).value for a, op, b in pairs]
                result = found[0]
                for other in found[1:]:
                    result = Binary(BinaryOp.AND, result, other)
                return result
            case _:
                inner = self.value(node)
                return values.compared(CompareOp.NE, inner, Typed(Constant(0, INT), Weak.INT)).value


def _with_iterators(expression: Expression, numbers: Mapping[str, int]) -> Expression:
    """Return an expression with iterators as dimensions."""

    def own(part: Expression) -> Expression | None:
        if isinstance(part, ParameterValue) and part.name in numbers:
            return Iterator(numbers[part.name], part.type)
        return None

    return rebuilt(expression, own)
