"""What names mean in a function: arrays, sizes, iterators, and integers and conditions made of them."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from polyloom.diagnostics import Span
from polyloom.frontends.python import affine, values
from polyloom.frontends.python.affine import Affine
from polyloom.frontends.python.source import FunctionText
from polyloom.frontends.python.values import Kind, Typed
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


@dataclass(frozen=True)
class Place:
    """An index; or the indices ``start + step * k`` for ``k`` from 0 to before ``length``.

    ``stop``: the end that a slice gives as no number; a negative one would count from the array's end.
    """

    start: Affine
    step: int = 1
    length: Affine | None = None
    stop: Affine | None = None

    def at(self, k: Affine) -> Affine:
        """Return the index of the element ``k``."""
        offset = affine.combined(ast.Mult(), affine.number(self.step), k)
        found = None if offset is None else affine.combined(ast.Add(), self.start, offset)
        assert found is not None
        return found


@dataclass(frozen=True)
class Slices:
    """``a[i, 1:-1]``: an index or a slice for each dimension of an array."""

    array: str
    places: tuple[Place, ...]

    @property
    def lengths(self) -> tuple[Affine, ...]:
        """The extents of what it is."""
        return tuple(p.length for p in self.places if p.length is not None)


@dataclass
class Scope:
    """Names at a place of a function. ``kinds``: of scalar variables, as far as earlier walks know them."""

    text: FunctionText
    arrays: dict[str, Array]
    symbols: dict[str, Affine]
    kinds: dict[str, Kind]
    bound: dict[str, Typed] = field(default_factory=dict)
    """Names of values, in a function that is read in the place of its call."""

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
            case ast.Attribute(value=ast.Name(id=name), attr="dtype") if name in self.arrays:
                return self.arrays[name].type
            case ast.Constant(value=str(text)) if text in {k.value for k in ElementType}:
                return ElementType(text)
        found = values.ELEMENTS.get(id(self.meant(node)))
        if found is None:
            self.text.refuse("python-type", "this is no element type", node, "", "`np.float32`, `a.dtype`")
        return found

    def element(self, node: ast.Subscript) -> tuple[str, tuple[Affine, ...]]:
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
            help_ = "write a loop over each dimension, or assign to a part of an array"
            message = (
                f"`{inner.id}` has {len(array.extents)} dimensions, and here are {len(parts)} subscripts"
            )
            self.text.refuse("python-shape", message, node, "", help_)
        found = []
        for part, extent in zip(parts, array.extents, strict=True):
            if isinstance(part, ast.Slice):
                help_ = "assign to a part of an array, `a[1:] = b[1:]`, or write a loop over elements"
                message = f"`{ast.unparse(node)}` is a part of an array, and a number is needed here"
                self.text.refuse("python-shape", message, node, "", help_)
            found.append(self._from_the_end(self.integer(part), extent))
        return inner.id, tuple(found)

    def slices(self, node: ast.expr) -> Slices | None:
        """Return what is taken of an array, dimensions that are not spoken of as a whole; None of none."""
        parts: list[ast.expr] = []
        if isinstance(node, ast.Subscript):
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            node = node.value
        if not isinstance(node, ast.Name) or not self._extents(node.id):
            return None
        extents = self._extents(node.id)
        whole = ast.Slice()
        rest = len(extents) - len(parts)
        dots = [k for k, p in enumerate(parts) if isinstance(p, ast.Constant) and p.value is Ellipsis]
        if dots:
            parts = [*parts[: dots[0]], *[whole] * (rest + 1), *parts[dots[0] + 1 :]]
        elif rest > 0:
            parts = [*parts, *[whole] * rest]
        if len(parts) != len(extents):
            return None
        return Slices(node.id, tuple(map(self._place, parts, extents)))

    def _place(self, part: ast.expr, extent: Affine) -> Place:
        if not isinstance(part, ast.Slice):
            return Place(self._from_the_end(self.integer(part), extent))
        step = 1 if part.step is None else self.integer(part.step).number
        if not step or (step < 0 and (part.lower or part.upper)):
            help_ = "the step is a number; a negative one goes through a whole dimension, `a[::-1]`"
            self.text.refuse("python-shape", "a slice has another form", part.step or part, "", help_)
        lower = affine.number(0) if part.lower is None else self.integer(part.lower)
        upper = extent if part.upper is None else self.integer(part.upper)
        start, stop = self._from_the_end(lower, extent), self._from_the_end(upper, extent)
        length = affine.combined(ast.Sub(), stop, start)
        if abs(step) > 1 and length is not None:
            more = affine.combined(ast.Add(), length, affine.number(abs(step) - 1))
            length = more and affine.combined(ast.FloorDiv(), more, affine.number(abs(step)))
        if step < 0:
            start = affine.combined(ast.Sub(), extent, affine.number(1)) or start
        is_computed = part.upper is not None and upper.number is None
        return Place(start, step, length, stop if is_computed else None)

    def _from_the_end(self, index: Affine, extent: Affine) -> Affine:
        """Return an index; a negative number counts from the end."""
        if index.number is None or index.number >= 0:
            return index
        return affine.combined(ast.Add(), extent, index) or index

    def shape(self, node: ast.expr) -> tuple[Affine, ...]:
        """Return the extents of an expression of whole arrays; none: it is a number."""
        match node:
            case ast.Name() | ast.Subscript():
                found = self.slices(node)
                return () if found is None else found.lengths
            case ast.BinOp(left=a, right=b):
                parts = [a, b]
            case ast.UnaryOp(operand=a):
                parts = [a]
            case ast.Compare(left=a, comparators=others):
                parts = [a, *others]
            case ast.Call(func=function, args=others) if values.is_elementwise(self.meant(function)):
                parts = others
            case _:
                return ()
        result: tuple[Affine, ...] = ()
        for shape in map(self.shape, parts):
            longer, shorter = (shape, result) if len(shape) > len(result) else (result, shape)
            rest = len(longer) - len(shorter)
            pairs = zip(longer[rest:], shorter, strict=True)
            result = (*longer[:rest], *(b if a.number == 1 else a for a, b in pairs))
        return result

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
            case ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=name)]) if name in self.arrays:
                return self.arrays[name].extents[0]
            case ast.Attribute(value=ast.Name(id=name), attr="size") if len(self._extents(name)) == 1:
                return self.arrays[name].extents[0]
            case ast.Attribute(value=ast.Name(id=name), attr="ndim") if self._extents(name):
                return affine.number(len(self.arrays[name].extents))
            case ast.Call(func=function, args=[_, _, *_] as sides, keywords=[]) if self.meant(function) in (
                min,
                max,
            ):
                parts = [part for side in sides if (part := self.affine(side)) is not None]
                return affine.extreme(self.meant(function), parts) if len(parts) == len(sides) else None
            case ast.Subscript(value=ast.Attribute(value=ast.Name(id=name), attr="shape"), slice=place):
                at = self.affine(place)
                extents = self.array(name, node).extents
                if at is None or at.number is None or not -len(extents) <= at.number < len(extents):
                    return None
                return extents[at.number]
            case _:
                return None

    def _extents(self, name: str) -> tuple[Affine, ...]:
        return self.arrays[name].extents if name in self.arrays else ()

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
            case ast.Name(id=name) if name not in {*self.arrays, *self.symbols, *self.bound}:
                return self.text.names.get(name)
            case ast.Attribute(value=inner, attr=name):
                module = self.meant(inner)
                return getattr(module, name, None) if inspect.ismodule(module) else None
            case _:
                return None
