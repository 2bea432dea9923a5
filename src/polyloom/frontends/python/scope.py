"""What names mean in a function: arrays, sizes, iterators, and integers and conditions made of them."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from polyloom.diagnostics import Span
from polyloom.frontends.python import affine, values, views
from polyloom.frontends.python.affine import Affine
from polyloom.frontends.python.source import FunctionText
from polyloom.frontends.python.subscripts import MARK, Datum
from polyloom.frontends.python.values import Kind, Typed
from polyloom.frontends.python.views import Place, Slices
from polyloom.ir.expressions import CompareOp
from polyloom.ir.types import ElementType

COMPARISONS: Mapping[type[ast.cmpop], tuple[str, CompareOp]] = {
    ast.Lt: ("<", CompareOp.LT),
    ast.LtE: ("<=", CompareOp.LE),
    ast.Gt: (">", CompareOp.GT),
    ast.GtE: (">=", CompareOp.GE),
    ast.Eq: ("=", CompareOp.EQ),
    ast.NotEq: ("!=", CompareOp.NE),
}
AFFINE = "loops and subscripts are sums of iterators, sizes and numbers, also `// 2`, `% 2`, `min`, `max`"


@dataclass(frozen=True)
class Array:
    """An array or scalar: its element type and extents. ``own``: made by the function."""

    type: ElementType
    extents: tuple[Affine, ...]
    span: Span | None = None
    own: bool = False

    @property
    def held(self) -> ElementType:
        """The type of its elements in memory: truth values are bytes, 1 or 0."""
        return ElementType.UINT8 if self.type is ElementType.BOOL else self.type


@dataclass
class Scope:
    """Names at a place of a function. ``kinds``: of scalar variables, as far as earlier walks know them."""

    text: FunctionText
    arrays: dict[str, Array]
    symbols: dict[str, Affine]
    kinds: dict[str, Kind]
    bound: dict[str, Typed] = field(default_factory=dict)
    """Names of values, in a function that is read in the place of its call."""
    views: dict[str, Slices] = field(default_factory=dict)
    """Names of parts of arrays: ``row = a[i]``."""
    data: dict[tuple[str, str], Datum] = field(default_factory=dict)
    """Indices that are read from data, by what they and the extents around them are as texts."""

    # -- arrays

    def array(self, name: str, node: ast.AST) -> Array:
        """Return an array. Errors: ``python-name``."""
        found = self.arrays.get(name)
        if found is None:
            self.text.refuse("python-name", f"`{name}` is no array here", node)
        return found

    def element_type(self, node: ast.expr | None) -> ElementType | None:
        """Return the type that a ``dtype`` states; None for None. Errors: ``python-type``."""
        match node:
            case None:
                return None
            case ast.Attribute(value=value, attr="dtype") if (form := self.slices(value)) is not None:
                return self.arrays[form.array].type
            case ast.Constant(value=str(text)) if text in {k.value for k in ElementType}:
                return ElementType(text)
        found = values.ELEMENTS.get(id(self.meant(node)))
        if found is None:
            self.text.refuse("python-type", "this is no element type", node, "", "`np.float32`, `a.dtype`")
        return found

    def element(self, node: ast.expr) -> Slices:
        """Return the array and the indices of ``A[i, j]`` or ``A[i][j]``."""
        form = self.slices(node)
        if form is None:
            help_ = "give the array, also one of the module, as an argument"
            self.text.refuse("python-name", "elements are those of arrays with a name", node, "", help_)
        if form.axes:
            is_part = any(isinstance(part, ast.Slice) for part in ast.walk(node))
            help_ = "assign to a part of an array, `a[1:] = b[1:]`, or write a loop over elements"
            message = f"`{ast.unparse(node)}` is a part of an array, and a number is needed here"
            if not is_part and isinstance(node, ast.Subscript):
                count = len(node.slice.elts) if isinstance(node.slice, ast.Tuple) else 1
                there = f"`{ast.unparse(node.value)}` has {count + len(form.axes)} dimensions"
                message = f"{there}, and here are {count} subscripts"
            self.text.refuse("python-shape", message, node, "", help_)
        return form

    def slices(self, node: ast.expr) -> Slices | None:
        """Return what is taken of an array, dimensions that are not spoken of as a whole; None of none."""
        match node:
            case ast.Name(id=name) if name in self.views:
                return self.views[name]
            case ast.Name(id=name) if name in self.arrays and self.arrays[name].extents:
                return views.whole(name, self.arrays[name].extents)
            case ast.Subscript(value=value, slice=part):
                inner = self.slices(value)
                parts = part.elts if isinstance(part, ast.Tuple) else [part]
                return None if inner is None else self._part(inner, parts, node)
            case _ if (turned := self.turned(node)) is not None:
                inner = self.slices(turned)
                return None if inner is None else inner.turned
            case _:
                return None

    def turned(self, node: ast.expr) -> ast.expr | None:
        """Return what ``a.T``, ``a.transpose()`` or ``np.transpose(a)`` has the axes of, turned round."""
        match node:
            case ast.Attribute(value=value, attr="T"):
                return value
            case ast.Call(func=ast.Attribute(value=value, attr="transpose"), args=[], keywords=[]):
                return value
            case ast.Call(func=function, args=[value], keywords=[]) if self.meant(function) is np.transpose:
                return value
            case _:
                return None

    def _part(self, form: Slices, given: Sequence[ast.expr], node: ast.expr) -> Slices:
        """Return a part of a part."""
        parts = views.parts_for_axes(given, len(form.axes))
        if parts is None:
            message = f"there are {len(form.axes)} dimensions, and here are {len(given)} subscripts"
            self.text.refuse("python-shape", message, node, "", "give one subscript for each dimension")
        extents = self.arrays[form.array].extents
        places, axes, left = list(form.places), list[int | None](), iter(form.axes)
        for part in parts:
            if views.is_new(part):
                axes.append(None)
            elif (axis := next(left)) is None:
                if isinstance(part, ast.Slice) and not (part.lower or part.upper or part.step):
                    axes.append(None)
                elif isinstance(part, ast.Slice) or self.integer(part).number not in (0, -1):
                    self.text.refuse("python-shape", "a new axis has one element", part)
            else:
                before = places[axis]
                assert before.length is not None
                place = self._place(part, before.length)
                is_whole = before.is_whole(extents[axis])
                places[axis] = place if is_whole else views.within(before, place)
                if place.length is not None:
                    axes.append(axis)
        return Slices(form.array, tuple(places), tuple(axes))

    def _place(self, part: ast.expr, extent: Affine) -> Place:
        if self.shape(part):
            help_ = "write a loop over elements, with `if`; or `np.where(mask, x, 0)`, `x[mask] = 0`"
            message = f"an array, `{ast.unparse(part)}`, is no subscript here"
            self.text.refuse("python-shape", message, part, "", help_)
        if not isinstance(part, ast.Slice):
            index = self.affine(part)
            if index is None:
                return Place(affine.name(self._datum(part, extent).name))
            return Place(self._from_the_end(index, extent))
        step = 1 if part.step is None else self.integer(part.step).number
        if not step:
            help_ = "the step is a number other than 0"
            self.text.refuse("python-shape", "a slice has another form", part.step or part, "", help_)
        last = affine.plus(extent, affine.number(-1))
        ends = (affine.number(0), extent) if step > 0 else (last, affine.number(-1))
        lower, upper = (None if end is None else self.integer(end) for end in (part.lower, part.upper))
        start = ends[0] if lower is None else self._from_the_end(lower, extent)
        stop = ends[1] if upper is None else self._from_the_end(upper, extent)
        way = affine.minus(stop, start) if step > 0 else affine.minus(start, stop)
        computed = [end for end in (lower, upper) if end is not None and end.number is None]
        needs = tuple(f"{end.text} {'< 0' if affine.is_taken_off(end) else '>= 0'}" for end in computed)
        return Place(start, step, affine.parts_of(way, abs(step)), needs)

    def _datum(self, node: ast.expr, extent: Affine) -> Datum:
        """Return an index that is read from data."""
        new = Datum(f"{MARK}{len(self.data)}", node, extent)
        return self.data.setdefault((ast.unparse(node), extent.text), new)

    def _from_the_end(self, index: Affine, extent: Affine) -> Affine:
        """Return an index; one from which all is taken off counts from the end: ``-1``, ``-k - 1``."""
        return affine.plus(extent, index) if affine.is_taken_off(index) else index

    def shape(self, node: ast.expr) -> tuple[Affine, ...]:
        """Return the extents of an expression of whole arrays; none: it is a number."""
        found = self.slices(node)
        if found is not None:
            return found.lengths
        if (turned := self.turned(node)) is not None:
            return self.shape(turned)[::-1]
        match node:
            case ast.BinOp(left=a, right=b):
                parts = [a, b]
            case ast.UnaryOp(operand=a):
                parts = [a]
            case ast.Compare(left=a, comparators=others):
                parts = [a, *others]
            case ast.Call():
                parts = self.operands(node)
            case _:
                return ()
        return broadcast(list(map(self.shape, parts)))

    def operands(self, node: ast.Call) -> list[ast.expr]:
        """Return what a call computes element by element of; none where it does not."""
        match node:
            case ast.Call(func=ast.Attribute(value=inner, attr="astype" | "copy")) if self.shape(inner):
                return [inner]
            case ast.Call(func=function, args=others):
                return others if values.is_elementwise(self.meant(function)) else []

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
            case ast.Name(id=name) if name not in self.kinds:
                meant = self.meant(node)
                return affine.number(meant) if type(meant) is int else None
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                inner = self.affine(operand)
                return None if inner is None else affine.negated(inner)
            case ast.BinOp(left=left, op=op, right=right):
                a, b = self.affine(left), self.affine(right)
                return None if a is None or b is None else affine.combined(op, a, b)
            case ast.Call(func=ast.Name(id="len"), args=[value]) if extents := self.shape(value):
                return extents[0]
            case ast.Attribute(value=value, attr="size") if len(extents := self.shape(value)) == 1:
                return extents[0]
            case ast.Attribute(value=value, attr="ndim") if extents := self.shape(value):
                return affine.number(len(extents))
            case ast.Call(func=function, args=[_, _, *_] as sides, keywords=[]) if self.meant(function) in (
                min,
                max,
            ):
                parts = [part for side in sides if (part := self.affine(side)) is not None]
                return affine.extreme(self.meant(function), parts) if len(parts) == len(sides) else None
            case ast.Subscript(value=ast.Attribute(value=value, attr="shape"), slice=place):
                at = self.affine(place)
                extents = self.shape(value)
                if at is None or at.number is None or not -len(extents) <= at.number < len(extents):
                    return None
                return extents[at.number]
            case _:
                return None

    def condition(self, node: ast.expr) -> str | None:
        """Return a condition on iterators and sizes in isl's notation; None where it asks about data."""
        match node:
            case ast.Constant(value=bool(value)):
                return "true" if value else "false"
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

    def ended_before(
        self, i: Affine, limits: Sequence[str], tests: Sequence[ast.expr], body: Sequence[ast.stmt]
    ) -> list[str]:
        """Return the condition that no test held in an iteration before, as a loop ends where one does.

        ``limits``: conditions on the iterator ``i``, its start first. Nothing where a test asks about data,
        or about what the body changes.
        """
        stored = {name for node in body for part in ast.walk(node) if (name := _stored_name(part))}
        asked = {part.id for test in tests for part in ast.walk(test) if isinstance(part, ast.Name)}
        texts = [text for test in tests if (text := self.condition(test)) is not None]
        if not tests or len(texts) < len(tests) or stored & asked:
            return []
        earlier, word = f"before_{i.text}", "<" if "<=" in limits[0] else ">"
        joined = " and ".join((*limits, f"({' or '.join(f'({text})' for text in texts)})"))
        renamed = re.sub(rf"\b{i.text}\b", earlier, joined)
        return [f"not (exists ({earlier} : {earlier} {word} {i.text} and {renamed}))"]

    def implied(self, test: ast.expr, truth: bool) -> str | None:
        """Return a condition on iterators and sizes that holds where a test is true, or is not."""
        known = self.condition(test)
        if known is not None:
            return known if truth else f"not ({known})"
        match test:
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self.implied(operand, not truth)
            case ast.BoolOp(op=op, values=parts) if isinstance(op, ast.And) == truth:
                found = [text for part in parts if (text := self.implied(part, truth)) is not None]
                return " and ".join(f"({text})" for text in found) or None
            case _:
                return None

    def meant(self, node: ast.expr | None) -> Any:
        """Return the object that a name of the function's surroundings means; None where it means none."""
        match node:
            case ast.Name(id=name) if name not in {*self.arrays, *self.symbols, *self.bound, *self.views}:
                return self.text.names.get(name)
            case ast.Attribute(value=inner, attr=name):
                module = self.meant(inner)
                return getattr(module, name, None) if inspect.ismodule(module) else None
            case _:
                return None


def broadcast(shapes: Sequence[tuple[Affine, ...]]) -> tuple[Affine, ...]:
    """Return the extents of what is computed element by element of arrays with these."""
    result: tuple[Affine, ...] = ()
    for shape in shapes:
        longer, shorter = (shape, result) if len(shape) > len(result) else (result, shape)
        rest = len(longer) - len(shorter)
        pairs = zip(longer[rest:], shorter, strict=True)
        result = (*longer[:rest], *(b if a.number == 1 else a for a, b in pairs))
    return result


def _stored_name(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else ""
