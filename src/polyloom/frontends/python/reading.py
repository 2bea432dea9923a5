"""Expressions of a function as typed values, and the elements that they read.

A call of another function of Python is what that returns: ``clip(x[i])`` is the value of its ``return``.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, NoReturn

import numpy as np

from polyloom.diagnostics import Span
from polyloom.frontends.python import affine, functions, operators, subscripts, values
from polyloom.frontends.python.affine import Affine
from polyloom.frontends.python.scope import COMPARISONS, Scope
from polyloom.frontends.python.source import FunctionText, text_of_function
from polyloom.frontends.python.subscripts import Datum
from polyloom.frontends.python.values import Typed, Weak, as_kind
from polyloom.frontends.python.views import Slices
from polyloom.ir.expressions import Binary, Compare, CompareOp, Constant, Expression, Read, Unary
from polyloom.ir.scalar_functions.table import BinaryOp, UnaryOp
from polyloom.ir.types import ElementType

_REDUCTIONS = (
    "write `np.sum(a)`, `a.max()` in a statement of the compiled function; not behind `if`, `and`, `or` of "
    "an expression, nor in functions that it calls"
)
_DEEPEST = 8
"""Functions that are read in the place of calls within each other."""


@dataclass(frozen=True)
class Access:
    """``array[indices]`` at the points where ``within`` holds."""

    array: str
    indices: tuple[Affine, ...]
    within: tuple[str, ...]
    span: Span | None
    data: tuple[Datum, ...] = ()
    """The indices in ``indices`` that are read from data."""


@dataclass(frozen=True)
class Outside:
    """A condition under which an index is outside its array, and where it stands."""

    condition: Expression
    span: Span
    array: str


Points = tuple[tuple[Affine, Affine], ...]


@dataclass
class Reader(Scope):
    """Reads expressions; ``reads``: of the statement at hand, at the points where ``within`` holds."""

    within: tuple[str, ...] = ()
    reads: list[Access] = field(default_factory=list)
    places: tuple[FunctionText, ...] = ()
    """Functions around the one that is read in the place of a call."""
    whole: dict[str, str] = field(default_factory=dict)
    """The names outside of arrays that such a function has under its own names."""
    space: Points = ()
    """The points at which a statement on whole arrays is read: iterators, with how many there are of each."""
    assumed: list[str] = field(default_factory=list)
    """What such statements need of sizes, in isl's notation."""
    caller: Reader | None = None
    """The function in which this one is read in the place of a call."""
    guards: tuple[Expression, ...] = ()
    """Conditions of data under which Python reads what is read here."""
    outside: list[Outside] = field(default_factory=list)
    """What the statement at hand has to ask of indices that are read from data."""
    indexing: bool = False
    """Whether an index is read, of which the parts are read once."""

    def read(self, name: str, indices: tuple[Affine, ...], node: ast.AST) -> Typed:
        """Return an element, or a variable with no indices."""
        array, name = self.arrays[name], self.whole.get(name, name)
        access = self.access(name, indices, node, self.within)
        known = [replace(other, span=access.span) for other in self.reads] if self.indexing else []
        position = known.index(access) if access in known else len(self.reads)
        self.reads += [access] * (position == len(self.reads))
        read = Read(position, array.held)
        if array.type is ElementType.BOOL:
            kind = array.type if array.extents else self.kinds.get(name, array.type)
            return Typed(Compare(CompareOp.NE, read, Constant(0, array.held)), kind)
        return Typed(read, array.type if array.extents else self.kinds.get(name, array.type))

    def access(
        self, name: str, indices: tuple[Affine, ...], node: ast.AST, within: tuple[str, ...] = ()
    ) -> Access:
        """Return an access to an element."""
        names = frozenset[str]().union(*(index.names for index in indices))
        data = tuple(datum for datum in self.data.values() if datum.name in names)
        return Access(name, indices, within, self.text.span(node), data)

    def value(self, node: ast.expr) -> Typed:
        """Return the value of an expression; what it reads is added to ``reads``."""
        known = self.affine(node)
        if known is not None:
            return Typed(known.value, Weak.INT)
        if self.space and (form := self.slices(node)) is not None and form.axes:
            return self.read(form.array, self.indices(form, node), node)
        if self.space and (turned := self.turned(node)) is not None:
            rank = len(self.shape(turned))
            with self.reading_at(self.space[len(self.space) - rank :][::-1]):
                return self.value(turned)
        if self._is_reduction(node):
            message = f"`{ast.unparse(node)}` is computed before the statement that it stands in"
            raise self.text.fault("python-call", message, node, "", _REDUCTIONS)
        if self.space and self._is_of_numbers(node) and any(map(self.shape, _operands(node))):
            message = f"`{ast.unparse(node)}` has no form for whole arrays"
            raise self.text.fault("python-value", message, node, "", "write a loop over elements")
        match node:
            case ast.Constant(value=bool(value)):
                bit = Constant(int(value), ElementType.UINT8)
                nought = Constant(0, ElementType.UINT8)
                return Typed(Compare(CompareOp.NE, bit, nought), Weak.BOOL)
            case ast.Constant(value=float(value)):
                return Typed(Constant(value, ElementType.FLOAT64), Weak.FLOAT)
            case ast.Name(id=name) if name in self.arrays and not self.arrays[name].extents:
                return self.read(name, (), node)
            case ast.Name(id=name) if name in self.bound:
                return self.bound[name]
            case ast.Name() | ast.Attribute() if type(meant := self.meant(node)) is float:
                return Typed(Constant(meant, ElementType.FLOAT64), Weak.FLOAT)
            case ast.Subscript():
                form = self.element(node)
                return self.read(form.array, self.indices(form, node), node)
            case ast.BinOp(left=left, op=op, right=right):
                return self._operated(node, operators.operated(op, self.value(left), self.value(right)))
            case ast.UnaryOp(op=ast.USub() | ast.UAdd() | ast.Invert() as op, operand=operand):
                return self._operated(node, operators.signed(op, self.value(operand)))
            case ast.Call(func=function, args=[inner], keywords=[]) if self.meant(function) is np.copy:
                return self.value(inner)
            case ast.Call(func=ast.Attribute(value=inner, attr="copy"), args=[]) if self.shape(inner):
                return self.value(inner)
            case ast.Call(func=ast.Attribute(value=inner, attr="astype"), args=[wanted], keywords=[]):
                kind = self.element_type(wanted)
                assert kind is not None
                return Typed(as_kind(self.value(inner), kind), kind)
            case ast.Call(args=arguments, keywords=named) if not named or self.function_of(node) is not None:
                return self._call(node, arguments)
            case ast.IfExp(test=test, body=then, orelse=otherwise):
                return self._choice(test, then, otherwise)
            case ast.UnaryOp(op=ast.Not()):
                return Typed(self.truth(node), Weak.BOOL)
            case ast.Compare() if all(type(op) in COMPARISONS for op in node.ops):
                return self._compared(node)
            case ast.BoolOp(op=op, values=parts):
                return self._one_of(op, parts)
            case _:
                pass
        what = ast.unparse(node)
        help_ = "elements, numbers, operators, `min`, `max`, `abs`, functions of `np` and `math`"
        raise self.text.fault("python-value", f"`{what}` has no form here", node, "", help_)

    @contextmanager
    def reading_at(self, space: Points) -> Iterator[None]:
        """Read at other points."""
        outer, self.space = self.space, space
        yield
        self.space = outer

    def indices(self, form: Slices, node: ast.expr) -> tuple[Affine, ...]:
        """Return the indices of what slices have at the point at hand; a length of 1 is there for all."""
        points = self.space[len(self.space) - len(form.axes) :]
        found = [place.start for place in form.places]
        for axis, (iterator, extent) in zip(form.axes, points, strict=True):
            if axis is None:
                continue
            length = form.places[axis].length
            assert length is not None
            if length.number == 1 != extent.number:
                continue
            self.same(length, extent, node)
            found[axis] = form.places[axis].at(iterator)
        self.need(form.needs)
        return tuple(self._with_data(index, form.array) for index in found)

    def _with_data(self, index: Affine, array: str) -> Affine:
        """Return an index with the values of those that are read from data."""
        data = [datum for datum in self.data.values() if datum.name in index.names]
        if not data:
            return index
        known = {datum.name: self._datum_value(datum, array) for datum in data}
        return replace(index, value=subscripts.with_values(index.value, known))

    def _datum_value(self, datum: Datum, array: str) -> Expression:
        """Return an index that is read from data, moved into the array; ask whether it was outside."""
        outer, self.indexing = self.indexing, True
        found = self.value(datum.node)
        self.indexing = outer
        if found.held.is_float or found.held is ElementType.BOOL:
            help_ = "write `int(...)` around it"
            message = f"`{ast.unparse(datum.node)}` is no integer"
            self.text.refuse("python-nonaffine", message, datum.node, "", help_)
        self.need([f"{datum.extent.text} >= 1"])
        index, extent = as_kind(found, subscripts.INT), datum.extent.value
        asked = reduce(operators.both, (*self.guards, subscripts.is_outside(index, extent)))
        if all(one.condition != asked for one in self.outside):
            self.outside.append(Outside(asked, self.text.span(datum.node), self.whole.get(array, array)))
        return subscripts.within(index, extent)

    def need(self, conditions: Sequence[str]) -> None:
        """Assume conditions on iterators and sizes, wherever what is read here is read."""
        own = frozenset[str]().union(*(iterator.names for iterator, _ in self.space))
        around = ", ".join(affine.PREFIX + name for name in sorted(self.around() - own))
        limits = [c for c in (*self.limits(), *self.within) if not any(affine.PREFIX + n in c for n in own)]
        for condition in dict.fromkeys(c for c in conditions if not subscripts.is_of_data(c)):
            wrong = " and ".join(f"({c})" for c in (*limits, f"not ({condition})"))
            self.assumed.append(f"not (exists ({around} : {wrong}))" if around else f"not ({wrong})")

    def same(self, a: Affine, b: Affine, node: ast.expr) -> None:
        """Assume that two lengths are the same. Errors: ``python-shape`` where they are not, or for some."""
        rest = affine.combined(ast.Sub(), a, b)
        assert rest is not None
        if a.text == b.text or rest.number == 0:
            return
        if rest.number is not None or self.around() & (a.names | b.names):
            help_ = "slices have the same length; or write a loop over elements"
            message = f"`{ast.unparse(node)}` has another length than what it is assigned to"
            self.text.refuse("python-shape", message, node, "", help_)
        self.assumed.append(f"{a.text} = {b.text}")

    def _is_of_numbers(self, node: ast.expr) -> bool:
        """Return whether Python takes an expression of numbers alone, not of arrays."""
        match node:
            case ast.IfExp() | ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
                return True
            case ast.Compare(ops=ops):
                return len(ops) > 1
            case ast.Call():
                return not self.operands(node)
            case _:
                return False

    def _is_reduction(self, node: ast.expr) -> bool:
        """Return whether an expression combines elements of whole arrays."""
        match node:
            case ast.BinOp(left=a, op=ast.MatMult(), right=b):
                return bool(self.shape(a) or self.shape(b))
            case ast.Call(func=ast.Attribute(value=a, attr=name)) if name in values.REDUCTIONS:
                return any(map(self.shape, (a, *node.args)))
            case ast.Call(func=ast.Name(id="sum" | "max" | "min"), args=[a]):
                return bool(self.shape(a))
            case _:
                return False

    def around(self) -> frozenset[str]:
        """Return the iterators of the loops around."""
        return self.caller.around() if self.caller else frozenset()

    def limits(self) -> tuple[str, ...]:
        """Return the conditions on iterators and sizes around, in isl's notation."""
        return self.caller.limits() if self.caller else ()

    def _operated(self, node: ast.BinOp | ast.UnaryOp, found: Typed | None) -> Typed:
        if found is None:
            message = f"`{ast.unparse(node)}` is not computed on elements of these types"
            raise self.text.fault("python-value", message, node)
        return found

    def _call(self, node: ast.Call, arguments: Sequence[ast.expr]) -> Typed:
        name, meant = ast.unparse(node.func), self.meant(node.func)
        if (function := self.function_of(node)) is not None:
            given = self.returned(node, function)
            if len(given) == 1:
                return given[0]
            help_ = "give them names, `a, b = f(x)`"
            message = f"`{name}` returns {len(given)} values, and one is needed here"
            raise self.text.fault("python-call", message, node, "", help_)
        if id(meant) not in functions.KNOWN:
            help_ = "functions of `np` and `math` of numbers, `min`, `max`, `int`, `float`; else a loop"
            raise self.text.fault("python-call", f"`{name}` is not known here", node, "", help_)
        found = functions.called(id(meant), [self.value(a) for a in arguments])
        if found is None:
            help_ = "give it the arguments that it has in Python, by their place, in other types"
            raise self.text.fault(
                "python-call", f"`{name}` has no value for these arguments", node, "", help_
            )
        return found

    # -- functions that are read in the place of a call

    def function_of(self, node: ast.expr) -> Any:
        """Return the function of Python that is read in the place of its call; None where none is.

        NumPy's own are none: their text is of objects, not of loops.
        """
        meant = self.meant(node.func) if isinstance(node, ast.Call) else None
        function = inspect.unwrap(meant) if callable(meant) else meant
        is_numpys = (getattr(function, "__module__", None) or "").partition(".")[0] == "numpy"
        return function if inspect.isfunction(function) and not is_numpys else None

    def _arguments_of(self, node: ast.Call, function: Any, text: FunctionText) -> Mapping[str, ast.expr]:
        """Return what the arguments of a function are in a call; those left out are numbers of its own."""
        names = [a.arg for a in text.tree.args.args]
        own = function.__defaults__ or ()
        found: dict[str, ast.expr] = {
            name: ast.copy_location(ast.Constant(value), node)
            for name, value in zip(names[len(names) - len(own) :], own, strict=True)
            if type(value) in (int, float)
        }
        found |= dict(zip(names, node.args, strict=False))
        found |= {keyword.arg or "": keyword.value for keyword in node.keywords}
        twice = {keyword.arg for keyword in node.keywords} & {*names[: len(node.args)]}
        is_open = text.tree.args.vararg or text.tree.args.kwonlyargs or text.tree.args.kwarg
        if is_open or twice or found.keys() != {*names} or len(node.args) > len(names):
            message = f"`{text.name}` takes other arguments: {', '.join(f'`{name}`' for name in names)}"
            help_ = "give each argument by its place or name; `*` and `**` are not read"
            raise self.text.fault("python-call", message, node, "", help_)
        return found

    def returned(self, node: ast.Call, function: Any) -> tuple[Typed, ...]:
        """Return what a function of Python returns in a call. Errors: ``python-call``."""
        text = text_of_function(function)
        arguments = self._arguments_of(node, function, text)
        if len(self.places) == _DEEPEST or text.is_same(self.text):
            raise self.text.fault("python-call", f"`{text.name}` calls itself, or too many others", node)
        places = (*self.places, text)
        inner = Reader(text, {}, {}, {}, within=self.within, reads=self.reads, places=places, caller=self)
        inner.assumed, inner.outside, inner.data = self.assumed, self.outside, self.data
        inner.guards, inner.indexing = self.guards, self.indexing
        for name, argument in arguments.items():
            form = self.slices(argument)
            if form is not None and form.axes:
                self.check_fixed(form, argument)
                inner.arrays[f".{name}"] = self.arrays[form.array]
                inner.whole[f".{name}"] = self.whole.get(form.array, form.array)
                inner.views[name] = replace(form, array=f".{name}")
            elif (whole := self.affine(argument)) is not None:
                inner.symbols[name] = whole
            else:
                inner.bound[name] = self.value(argument)
        return inner._returned(text.tree.body, node)

    def check_fixed(self, form: Slices, node: ast.AST) -> None:
        """Refuse a part of an array whose place is read from data, which gets a name."""
        if form.is_of_data:
            self.refuse_of_data(node)

    def refuse_of_data(self, node: ast.AST) -> NoReturn:
        """Refuse a part of an array whose place is read from data. Errors: ``python-nonaffine``."""
        help_ = "name the index, and write it where the part is used, `a[k, j]`; or copy the part"
        self.text.refuse("python-nonaffine", "the place of this part is read from data", node, "", help_)

    def _returned(self, statements: Sequence[ast.stmt], call: ast.AST) -> tuple[Typed, ...]:
        """Return the values of the ``return`` that is reached."""
        match statements:
            case [ast.Return(value=ast.Tuple(elts=parts)), *_]:
                return tuple(map(self.value, parts))
            case [ast.Return(value=ast.expr() as value), *_]:
                return (self.value(value),)
            case [ast.Expr(value=ast.Constant()) | ast.Pass(), *rest]:
                return self._returned(rest, call)
            case [ast.Assign(targets=[ast.Name(id=name)], value=value), *rest]:
                self._bind(name, value)
                return self._returned(rest, call)
            case [
                ast.Assign(
                    targets=[ast.Tuple(elts=targets)], value=ast.Tuple() | ast.Call() as value
                ) as node,
                *rest,
            ]:
                self._bind_all(targets, value, node)
                return self._returned(rest, call)
            case [ast.AugAssign(target=ast.Name(id=name) as target, op=op, value=value) as node, *rest]:
                self._bind(name, ast.copy_location(ast.BinOp(ast.Name(target.id), op, value), node))
                return self._returned(rest, call)
            case [ast.If(test=test, body=then, orelse=otherwise), *rest]:
                return self._chosen(
                    test,
                    (lambda: self._returned([*then, *rest], call)),
                    (lambda: self._returned([*otherwise, *rest], call)),
                )
            case [other, *_]:
                message = f"`{self.text.name}` is more than assignments to names, `if` and `return`"
                raise self.text.fault("python-call", message, other, "", "write it where it is called")
            case _:
                message = f"`{self.text.name}` ends without `return`"
                raise self.text.fault("python-call", message, self.text.tree)

    def _bind_all(self, targets: Sequence[ast.expr], value: ast.Tuple | ast.Call, node: ast.AST) -> None:
        """Give values to names: all of them are computed before."""
        found = self.values(value)
        names = [target.id for target in targets if isinstance(target, ast.Name)]
        if not len(names) == len(targets) == len(found):
            message = f"{len(found)} values are given to {len(targets)} names"
            self.text.refuse("python-statement", message, node)
        for name, part in zip(names, found, strict=True):
            self.symbols.pop(name, None)
            self.bound[name] = part

    def values(self, node: ast.Tuple | ast.Call) -> tuple[Typed, ...]:
        """Return the values of a tuple, or of those that a function returns."""
        if isinstance(node, ast.Tuple):
            return tuple(map(self.value, node.elts))
        function = self.function_of(node)
        return (self.value(node),) if function is None else self.returned(node, function)

    def _bind(self, name: str, value: ast.expr) -> None:
        whole = self.affine(value)
        found = Typed(whole.value, Weak.INT) if whole is not None else self.value(value)
        self.symbols.pop(name, None)
        self.bound.pop(name, None)
        if whole is not None:
            self.symbols[name] = whole
        else:
            self.bound[name] = found

    def _choice(self, test: ast.expr, then: ast.expr, otherwise: ast.expr) -> Typed:
        return self._chosen(test, lambda: (self.value(then),), lambda: (self.value(otherwise),))[0]

    def _chosen(
        self,
        test: ast.expr,
        then: Callable[[], tuple[Typed, ...]],
        otherwise: Callable[[], tuple[Typed, ...]],
    ) -> tuple[Typed, ...]:
        truth = self.truth(test)
        with self._where(self.implied(test, truth=True), truth):
            a = then()
        with self._where(self.implied(test, truth=False), operators.negated(truth)):
            b = otherwise()
        if len(a) != len(b):
            message = f"`{self.text.name}` returns {len(a)} values or {len(b)}"
            self.text.refuse("python-call", message, test)
        return tuple(operators.chosen(truth, x, y) for x, y in zip(a, b, strict=True))

    @contextmanager
    def _where(self, condition: str | None, truth: Expression) -> Iterator[None]:
        """Read where a test is true, of which ``condition`` says what it says of iterators.

        Names that are bound there are forgotten.
        """
        outer = self.within, dict(self.symbols), dict(self.bound), self.guards
        self.within = outer[0] if condition is None else (*outer[0], condition)
        self.guards = (*self.guards, truth)
        yield
        self.within, self.symbols, self.bound, self.guards = outer

    def _one_of(self, op: ast.boolop, parts: Sequence[ast.expr]) -> Typed:
        """Return ``a and b``, which is b where a is true, else a: b is read only where a is true."""
        is_and = isinstance(op, ast.And)
        found = self.value(parts[0])
        if len(parts) == 1:
            return found
        truth = values.truth(found)
        with self._where(self.implied(parts[0], truth=is_and), truth if is_and else operators.negated(truth)):
            rest = self._one_of(op, parts[1:])
        if found.held is rest.held is ElementType.BOOL:
            operator = BinaryOp.AND if is_and else BinaryOp.OR
            return Typed(Binary(operator, truth, rest.value), values.joined(found.kind, rest.kind))
        return operators.chosen(truth, *((rest, found) if is_and else (found, rest)))

    def _one_after_the_other(self, op: ast.boolop, parts: Sequence[ast.expr]) -> Expression:
        """Return whether ``a and b`` is true: b is read only where a is."""
        is_and = isinstance(op, ast.And)
        found = self.truth(parts[0])
        if len(parts) == 1:
            return found
        with self._where(self.implied(parts[0], truth=is_and), found if is_and else operators.negated(found)):
            rest = self._one_after_the_other(op, parts[1:])
        return Binary(BinaryOp.AND if is_and else BinaryOp.OR, found, rest)

    def _compared(self, node: ast.Compare) -> Typed:
        """Return ``a < b < c``: a truth value of Python's where all of these are its own numbers."""
        sides = [self.value(side) for side in (node.left, *node.comparators)]
        pairs = zip(sides[:-1], node.ops, sides[1:], strict=True)
        found = [operators.compared(COMPARISONS[type(op)][1], a, b) for a, op, b in pairs]
        is_own = all(isinstance(side.kind, Weak) for side in sides)
        return Typed(reduce(operators.both, found), Weak.BOOL if is_own else ElementType.BOOL)

    def truth(self, node: ast.expr) -> Expression:
        """Return whether an expression is true."""
        match node:
            case ast.BoolOp(op=op, values=parts):
                return self._one_after_the_other(op, parts)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return Unary(UnaryOp.NOT, self.truth(operand))
            case _:
                return values.truth(self.value(node))


def _operands(node: ast.expr) -> list[ast.expr]:
    return [part for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)]
