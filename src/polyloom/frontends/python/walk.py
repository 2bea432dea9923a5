"""A function's body, statement by statement."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from polyloom.frontends.python import affine, values
from polyloom.frontends.python.affine import Affine
from polyloom.frontends.python.early_ends import TooManyEnds, without_break, without_continue
from polyloom.frontends.python.scope import AFFINE, Array
from polyloom.frontends.python.storing import Loop, Test
from polyloom.frontends.python.values import Typed, Weak, as_kind
from polyloom.frontends.python.views import Slices
from polyloom.frontends.python.whole_arrays import WholeArrays
from polyloom.ir.types import ElementType

INT = ElementType.INT64
_WAYS_OUT: Mapping[type[ast.stmt], str] = {
    ast.Break: "a loop ends by an `if` of its body on sizes and iterators, as `if j > i: break`; else let it"
    " run to its end, and write what is not to be done any more under an `if`",
    ast.Return: "give the result a name, let loops run to their end, and return it at the end",
    ast.While: "count with `for i in range(...)`, up to a size",
    ast.FunctionDef: "define the function outside; it is read in the place of its calls",
    ast.Expr: "leave it out: what is printed or done elsewhere is done with what the function returns",
}


_Place = tuple[tuple[str, ...], tuple[Test, ...]]
"""Conditions on sizes and iterators, and tests of data, under which a side of an ``if`` runs."""


@dataclass(frozen=True)
class _Elements:
    """What a loop over elements goes over: names for those of ``arrays``, and ``at`` for their index."""

    at: ast.Name | None
    names: list[ast.expr]
    arrays: list[Slices]


@dataclass
class Walk(WholeArrays):
    """The walk over a function's body. ``results``: the names of what it returns."""

    results: list[str] = field(default_factory=list)
    around_names: frozenset[str] = frozenset()
    """Names of arrays, and of parts of them, outside of the loop or branch at hand."""
    result_names: str = ""
    """How the names begin that hold what is returned at several places."""
    ranks: dict[str, int] = field(default_factory=dict)
    """The number of dimensions of each of these."""

    # -- statements

    def body(self, statements: Sequence[ast.stmt]) -> None:
        """Walk over a body."""
        for number, statement in enumerate(statements):
            if self.results or (isinstance(statement, ast.Return) and number < len(statements) - 1):
                self.text.refuse("python-statement", "`return` stands at the end of the function", statement)
            self.statement(statement)

    def statement(self, node: ast.stmt) -> None:
        """Walk over a statement."""
        try:
            self._statement(self._with_totals(node))
        except values.OutOfRange as fault:
            message, label = f"{fault}", "Python raises `OverflowError` here"
            raise self.text.fault("python-value", message, node, label) from None

    def _with_totals(self, node: ast.stmt) -> ast.stmt:
        """Return a statement with names in place of reductions of whole arrays, which are made before it."""
        match node:
            case ast.Assign(value=ast.expr() as value):
                new: ast.stmt = ast.Assign(node.targets, self.reduced(value))
            case ast.AugAssign(value=ast.expr() as value):
                new = ast.AugAssign(node.target, node.op, self.reduced(value))
            case ast.AnnAssign(value=ast.expr() as value):
                new = ast.AnnAssign(node.target, node.annotation, self.reduced(value), node.simple)
            case ast.Return(value=ast.expr() as value):
                new = ast.Return(self.reduced(value))
            case ast.If():
                new = ast.If(self.reduced(node.test), node.body, node.orelse)
            case _:
                return node
        return ast.copy_location(new, node)

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.For(target=target, iter=values_, orelse=[]) if (
                over := self._elements_of(target, values_)
            ) is not None:
                self._for_elements(node, over)
            case ast.For(target=ast.Name(), orelse=[]):
                self._for(node)
            case ast.Assert(test=test) if not self.loops and not self.conditions and not self.tests:
                condition = self.condition(test)
                if condition is None:
                    help_ = "leave it out, or test it where the function is called"
                    self.text.refuse("python-statement", "`assert` asks about sizes", test, "", help_)
                self.assumed.append(condition)
            case ast.If():
                self._if(node)
            case ast.Assign(targets=[target], value=value):
                self._assign(node, target, value)
            case ast.Assign(targets=targets, value=value):
                self._give_to_all(node, [(targets, value)])
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._assign(node, target, value)
            case ast.AugAssign(target=ast.Name() | ast.Subscript() as target, op=op, value=value):
                if isinstance(target, ast.Name) and self.shape(target):  # NumPy stores in place
                    all_of_it = ast.copy_location(ast.Constant(...), target)
                    target = ast.copy_location(ast.Subscript(target, all_of_it, ast.Store()), target)
                sum_ = ast.copy_location(ast.BinOp(target, op, value), node)
                self._assign(node, target, sum_)
            case ast.Return() if not self.loops and not self.conditions and not self.tests:
                self._return(node)
            case ast.Pass() | ast.Expr(value=ast.Constant()):
                pass
            case _:
                what = type(node).__name__.lower()
                usual = "loops are `for i in range(...)`, branches `if`; the rest are assignments"
                help_ = _WAYS_OUT.get(type(node), usual)
                self.text.refuse("python-statement", f"`{what}` has no affine form", node, "", help_)

    def _elements_of(self, target: ast.expr, iterated: ast.expr) -> _Elements | None:
        """Return what ``for x in a``, over ``zip`` and ``enumerate`` too, goes over; None for other loops."""
        at: ast.Name | None = None
        if (counted := self._arguments(iterated, enumerate)) is not None:
            match target, counted:
                case ast.Tuple(elts=[ast.Name() as index, ast.Name() | ast.Tuple() as element]), [one]:
                    at, target, iterated = index, element, one
                case _:
                    return None
        names, arrays = [target], [iterated]
        if (zipped := self._arguments(iterated, zip)) is not None:
            if not isinstance(target, ast.Tuple) or not zipped or len(target.elts) != len(zipped):
                return None
            names, arrays = target.elts, zipped
        found = [form for a in arrays if (form := self.slices(a)) is not None and form.axes]
        parts = [part for n in names for part in (n.elts if isinstance(n, ast.Tuple) else [n])]
        is_known = len(found) == len(arrays) and all(isinstance(part, ast.Name) for part in parts)
        return _Elements(at, names, found) if is_known else None

    def _arguments(self, node: ast.expr, function: object) -> list[ast.expr] | None:
        """Return the arguments of a call of a function; None where it is no call of it by place alone."""
        is_call = isinstance(node, ast.Call) and not node.keywords and self.meant(node.func) is function
        return node.args if is_call and isinstance(node, ast.Call) else None

    def _for_elements(self, node: ast.For, over: _Elements) -> None:
        """Walk over ``for k in range(min(len(a), len(b))): x = a[k]; y = b[k]; ...``."""
        outer = dict(self.views)
        at = over.at or ast.Name(self.fresh("at"), ast.Store())
        array = self.fresh("over")
        names = [ast.Name(f"{array}_{k}", ast.Load()) for k in range(len(over.arrays))]
        for name, form in zip(names, over.arrays, strict=True):
            self._view(name.id, form, node)
        lengths: list[ast.expr] = [ast.Call(ast.Name("len", ast.Load()), [a], []) for a in names]
        length = lengths[0] if len(lengths) == 1 else ast.Call(ast.Name("min", ast.Load()), lengths, [])
        ends = ast.Call(ast.Name("range", ast.Load()), [length], [])
        given: list[ast.stmt] = [
            ast.Assign([name], ast.Subscript(array, ast.Name(at.id, ast.Load()), ast.Load()))
            for name, array in zip(over.names, names, strict=True)
        ]
        loop = ast.For(at, ends, [*given, *node.body], [])
        for new in (at, *ast.walk(ends), *(part for one in given for part in ast.walk(one))):
            if not hasattr(new, "lineno"):
                ast.copy_location(new, node.target)
        self._for(ast.copy_location(loop, node))
        self.views = outer

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
            self._refuse_step(ends[-1])
        i = affine.name(iterator)
        low, high = ("<=", "<") if step > 0 else (">=", ">")
        limits = [f"{start.text} {low} {i.text}", f"{i.text} {high} {stop.text}"]
        if abs(step) > 1:
            limits.append(f"({i.text} - {start.text}) mod {abs(step)} = 0")
        outer = self.loops, self.conditions, self.symbols
        self.symbols = {**self.symbols, iterator: i}
        self.loops = (*self.loops, Loop(iterator, self.text.span(node), step < 0))
        body, ends = without_break(self._whole_iterations(node))
        ended = self.ended_before(i, limits, ends, body)
        self.conditions = (*self.conditions, *limits, *ended)
        self.counters.append(0)
        self._inner(body if ended or not ends else node.body)
        self.counters.pop()
        self.counters[-1] += 1
        self.loops, self.conditions, self.symbols = outer

    def _refuse_step(self, step: ast.expr) -> NoReturn:
        """Refuse a step that is 0, or no number that is known. Errors: ``python-loop``."""
        if self.integer(step).number == 0:
            self.text.refuse(
                "python-loop", "the step of a loop is 0", step, "Python raises `ValueError` here"
            )
        text = ast.unparse(step)
        message = f"the step `{text}` of this loop is no number that is known when the function is compiled"
        helps = [
            "write it as a number, or as a name of the module that is one",
            f"multiples of `{text}` have no affine form: go over all, and test the data",
        ]
        self.text.refuse("python-loop", message, step, "", *helps)

    def _whole_iterations(self, node: ast.For) -> list[ast.stmt]:
        """Return a loop's body without ``continue``."""
        try:
            return without_continue(node.body)
        except TooManyEnds:
            help_ = "write the rest under an `if`"
            self.text.refuse("python-statement", "the loop has too many `continue`", node, "", help_)

    def _inner(self, statements: Sequence[ast.stmt]) -> frozenset[str]:
        """Walk over the body of a loop or a branch; return its names of parts of arrays.

        There alone they mean these.
        """
        outer = self.views, self.around_names
        self.views = dict(self.views)
        self.around_names = frozenset({*self.views, *self.arrays})
        self.body(statements)
        found = frozenset(self.views) - frozenset(outer[0])
        self.views, self.around_names = outer
        return found

    def _if(self, node: ast.If) -> None:
        match node:
            case ast.If(test=ast.BoolOp(op=ast.And() as op, values=parts), orelse=[]):
                known = [part for part in parts if self.condition(part) is not None]
                others = [part for part in parts if part not in known]
                if known and others:  # the data is read only where the rest holds
                    inner = ast.If(_joined(op, others), node.body, [])
                    node = ast.If(_joined(op, known), [ast.copy_location(inner, node)], [])
        self._sides(node, self._places_of_sides(node))

    def _places_of_sides(self, node: ast.If) -> list[_Place]:
        """Return the conditions and tests under which the sides of an ``if`` run."""
        condition = self.condition(node.test)
        if condition is not None:
            return [((*self.conditions, text), self.tests) for text in (condition, f"not ({condition})")]
        name = ""
        if self._changes_its_test(node):
            name = self.fresh("test")
            self.arrays[name] = Array(ElementType.BOOL, (), self.text.span(node.test), own=True)
            self.store(name, (), self.truth(node.test), node.test)
        places = list[_Place]()
        for wanted in (True, False):
            where = self.implied(node.test, wanted)
            conditions = self.conditions if where is None else (*self.conditions, where)
            places.append((conditions, (*self.tests, Test(node.test, name, wanted))))
        return places

    def _sides(self, node: ast.If, places: Sequence[_Place]) -> None:
        """Walk over the sides of an ``if``."""
        outer = self.conditions, self.tests
        parts = frozenset[str]()
        for body, (self.conditions, self.tests) in zip((node.body, node.orelse), places, strict=True):
            before = frozenset(self.arrays)
            found = self._inner(body)
            for name in sorted(parts & (self.arrays.keys() - before)):
                message = (
                    f"`{name}` is a part of an array on one side of the `if`, and a new one on the other"
                )
                self.text.refuse("python-array", message, node, "", "`a.copy()` is a new array")
            parts = found
        self.conditions, self.tests = outer

    def _changes_its_test(self, node: ast.If) -> bool:
        """Return whether what is stored after the first element of a branch may find another answer."""
        match node:
            case ast.If(body=[ast.Assign(targets=[target]) | ast.AugAssign(target=target)], orelse=[]):
                if isinstance(target, ast.Name | ast.Subscript) and not self._is_whole(target):
                    return False
        stored = set()
        for part in (inner for branch in (*node.body, *node.orelse) for inner in ast.walk(branch)):
            match part:
                case ast.Name(id=name, ctx=ast.Store()):
                    stored.add(name)
                case ast.Subscript(ctx=ast.Store()):
                    stored |= _names(part.value)
        return not stored.isdisjoint(_names(node.test))

    def _is_whole(self, target: ast.expr) -> bool:
        return (isinstance(target, ast.Subscript) and self.is_masked(target)) or bool(self.shape(target))

    def _return(self, node: ast.Return) -> None:
        parts = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value] if node.value else []
        for part in parts:
            form = self.slices(part)
            if form is not None and form.is_all(self.arrays[form.array].extents):
                self.results.append(form.array)
                continue
            if isinstance(part, ast.Name) and part.id in self.kinds:
                self.results.append(part.id)
                continue
            name = f"result_{len(self.results)}"
            if form is not None and form.axes and not self.arrays[form.array].own:
                help_ = f"return a new array, `{ast.unparse(part)}.copy()`"
                message = f"`{ast.unparse(part)}` is a part of an array that is given"
                self.text.refuse("python-array", message, part, "", help_)
            if extents := self.shape(part):
                self.arrays[name] = self.at_all(node, name, extents, part)
            else:
                self.scalar(name, self.value(part), part)
            self.results.append(name)

    def _check_result(self, name: str, value: ast.expr) -> None:
        """Refuse parts of arrays, and results of several forms, for what is returned at several places."""
        form, rank = self.slices(value), len(self.shape(value))
        if (form is not None and form.axes) or self.ranks.setdefault(name, rank) != rank:
            message = "at several places numbers are returned, or new arrays of one size"
            help_ = "return at the end of the function alone, or `a.copy()`"
            self.text.refuse("python-statement", message, value, "", help_)

    def _assign(self, node: ast.stmt, target: ast.expr, value: ast.expr) -> None:
        if self.result_names and isinstance(target, ast.Name) and target.id.startswith(self.result_names):
            self._check_result(target.id, value)
        match target, value:
            case ast.Tuple(elts=names), ast.Attribute(value=array, attr="shape") if extents := self.shape(
                array
            ):
                if len(names) != len(extents):
                    message = f"`{ast.unparse(array)}` has {len(extents)} dimensions"
                    self.text.refuse("python-shape", message, target)
                for name, extent in zip(names, extents, strict=True):
                    self._symbol(name, extent)
            case ast.Tuple(elts=targets), ast.Tuple(elts=parts) if len(targets) == len(parts):
                self._give_to_all(node, [([t], part) for t, part in zip(targets, parts, strict=True)])
            case ast.Tuple(elts=targets), _ if (slices := self.slices(value)) is not None and slices.axes:
                self._give_parts(node, targets, value, slices)
            case ast.Tuple(elts=targets), ast.Call() if self.function_of(value) is not None:
                self._give_returned(node, targets, value)
            case ast.Name(id=name), ast.Call() if (made := self.new_array(value)) is not None:
                self.make(name, made, node)
            case ast.Subscript(), _ if self.is_masked(target):
                self.give_masked(node, target, value)
            case ast.Subscript(), _ if (slices := self.slices(target)) is not None and slices.lengths:
                self.give_slices(node, slices, value)
            case ast.Name(), ast.Name(id=total) if total in self.totals and (extents := self.shape(value)):
                self.make_of(target.id, extents, value, node)
            case ast.Name(id=name), _ if (slices := self.slices(value)) is not None and slices.axes:
                fixed = self.slices(self.with_fixed_places(node, value)) if slices.is_of_data else slices
                assert fixed is not None, "fixed indices take the same part"
                self._view(name, fixed, node)
            case ast.Name(id=name), _ if extents := self.shape(value):
                self.make_of(name, extents, value, node)
            case ast.Name(id=name), _ if self.assigned.get(name, 0) == 1 and (whole := self.affine(value)):
                self._symbol(target, whole)
            case _:
                self._give(node, target, self.value(value))

    def _give_to_all(self, node: ast.stmt, pairs: Iterable[tuple[Sequence[ast.expr], ast.expr]]) -> None:
        """Assign ``a, b = b, a`` or ``a = b = x``: each value once, and all before any target."""
        kept = [(targets, self._kept(node, value)) for targets, value in pairs]
        for target, name in ((target, name) for targets, name in kept for target in targets):
            if isinstance(name, str):
                self._give(node, target, self.read(name, (), node))
            elif isinstance(target, ast.Name) and self.assigned.get(target.id, 0) == 1:
                self._symbol(target, name)
            else:
                self._give(node, target, Typed(name.value, Weak.INT))

    def _give_parts(self, node: ast.stmt, targets: Sequence[ast.expr], value: ast.expr, form: Slices) -> None:
        """Assign ``x, y = a[i]``: the array has as many elements, or parts, as there are names."""
        length = form.lengths[0]
        if length.number not in (None, len(targets)):
            message = f"`{ast.unparse(value)}` has {length.number} elements for {len(targets)} names"
            self.text.refuse("python-shape", message, node)
        self.need([f"{length.text} = {len(targets)}"])
        numbers = [ast.copy_location(ast.Constant(k), value) for k in range(len(targets))]
        parts = [ast.copy_location(ast.Subscript(value, k, ast.Load()), value) for k in numbers]
        if len(form.axes) > 1:
            for target, part in zip(targets, parts, strict=True):
                self._assign(node, target, part)
        else:
            self._give_to_all(node, [([t], part) for t, part in zip(targets, parts, strict=True)])

    def _give_returned(self, node: ast.stmt, targets: Sequence[ast.expr], call: ast.Call) -> None:
        """Assign ``a, b = f(x)``: all that the function returns is kept before."""
        names = list[str]()
        while not names or len(names) < len(targets):
            found = self.values(call)
            if len(found) != len(targets):
                message = f"`{ast.unparse(call.func)}` returns {len(found)} values for {len(targets)} names"
                self.text.refuse("python-call", message, node)
            names.append(self.fresh("part"))
            self.scalar(names[-1], found[len(names) - 1], node)
        for target, name in zip(targets, names, strict=True):
            self._give(node, target, self.read(name, (), node))

    def _kept(self, node: ast.stmt, value: ast.expr) -> str | Affine:
        """Return a new variable that holds a value; a size as it is."""
        whole = self.affine(value)
        if whole is not None:
            return whole
        name = self.fresh("part")
        self.scalar(name, self.value(value), node)
        return name

    def _give(self, node: ast.stmt, target: ast.expr, value: Typed) -> None:
        match target:
            case ast.Name(id=name):
                self.scalar(name, value, node)
            case ast.Subscript():
                form = self.element(target)
                kind = self.arrays[form.array].type
                self.store(form.array, self.indices(form, target), as_kind(value, kind), node)
            case _:
                self.text.refuse("python-statement", "only names and elements are assigned to", target)

    def _symbol(self, node: ast.expr, value: Affine) -> None:
        if not isinstance(node, ast.Name) or self.assigned.get(node.id, 0) != 1 or node.id in self.arrays:
            self.text.refuse("python-name", "a size is a name that is assigned once", node)
        self.symbols = {**self.symbols, node.id: value}

    def _view(self, name: str, form: Slices, node: ast.AST) -> None:
        """Give a part of an array a name."""
        has_meaning = name in self.symbols or name in self.kinds or name in self.around_names
        if has_meaning or (name in self.arrays and bool(self.loops or self.conditions or self.tests)):
            help_ = "give the part of the array a name of its own"
            self.text.refuse("python-name", f"`{name}` has another meaning here", node, "", help_)
        self.need((*form.needs, *(f"{length.text} >= 0" for length in form.lengths)))
        self.views = {**self.views, name: form}


def _names(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def _joined(op: ast.boolop, parts: list[ast.expr]) -> ast.expr:
    return parts[0] if len(parts) == 1 else ast.copy_location(ast.BoolOp(op, parts), parts[0])
