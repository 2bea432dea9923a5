"""New arrays, and whole arrays and parts of them that are assigned to.

y[1:] = x[:-1] + 1        y[at + 1] = x[at] + 1
x[x > 2] = 0              x[at] = 0, where x[at] > 2
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator as Iterator_
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from polyloom.frontends.python import affine, values
from polyloom.frontends.python.affine import Affine
from polyloom.frontends.python.reductions import Reductions
from polyloom.frontends.python.scope import Array
from polyloom.frontends.python.storing import Test
from polyloom.frontends.python.values import Kind, Typed, Weak, as_kind, held
from polyloom.frontends.python.views import Slices, is_new, whole
from polyloom.ir.expressions import Constant
from polyloom.ir.types import ElementType

INT = ElementType.INT64
_LIKE = ("a", "dtype")
_PLACES = {
    **dict.fromkeys(values.FILLS_LIKE, _LIKE),
    values.FULL: ("shape", "fill_value", "dtype"),
    values.FULL_LIKE: ("a", "fill_value", "dtype"),
}
"""The arguments by place of functions that make arrays, where they are not the shape and the type."""


@dataclass
class WholeArrays(Reductions):
    """The statements of whole arrays, at a place in loops and branches."""

    def give_slices(self, node: ast.stmt, form: Slices, value: ast.expr) -> None:
        """Assign to slices; where the value has other elements of the array, all of it is kept before."""
        stored = self.array(form.array, node)
        kept = ""
        if any(part.array == form.array and part != form for part in self.read_parts(value)):
            kept = self.fresh("part")
            room = tuple(affine.number(1) if a is None else stored.extents[a] for a in form.axes)
            self.arrays[kept] = self.at_all(node, kept, form.lengths, value, room)
        with self.points(node, form.lengths):
            if kept:
                new = self.read(kept, tuple(iterator for iterator, _ in self.space), node)
            else:
                new = self.whole_value(value)
            if isinstance(node, ast.AugAssign) and not np.can_cast(
                held(new.kind).dtype, stored.type.dtype, "same_kind"
            ):
                message = (
                    f"NumPy stores no {held(new.kind).value} in place in an array of {stored.type.value}"
                )
                self.text.refuse("python-value", message, node, "", "convert the array, or write a loop")
            self.store(form.array, self.indices(form, value), as_kind(new, stored.type), node)

    def read_parts(self, value: ast.AST) -> Iterator_[Slices]:
        """Yield the parts of arrays that an expression reads, with their axes as they run in it."""
        if isinstance(value, ast.expr) and (form := self.slices(value)) is not None:
            yield form
            return
        turned = self.turned(value) if isinstance(value, ast.expr) else None
        for part in ast.iter_child_nodes(value):
            for form in self.read_parts(part):
                yield form if turned is None else form.turned

    def is_masked(self, target: ast.Subscript) -> bool:
        """Return whether a subscript is an array, as in ``x[x > 2]``."""
        is_tuple = isinstance(target.slice, ast.Tuple)
        return not is_tuple and self.slices(target.value) is not None and bool(self.shape(target.slice))

    def give_masked(self, node: ast.stmt, target: ast.Subscript, value: ast.expr) -> None:
        """Assign to the elements at which an array of truth values, the subscript, holds."""
        form, mask = self.slices(target.value), self.reduced(target.slice)
        assert form is not None
        numbers = _without_subscript(value, target.slice, ast.Constant(0))
        if len(self.shape(mask)) != len(form.axes) or self.shape(numbers):
            help_ = "a mask has the shape of the array, and stands behind each array in the value"
            message = f"`{ast.unparse(target)}` and what it gets are not masked alike"
            self.text.refuse("python-shape", message, target, "", help_)
        for length, extent in zip(self.shape(mask), form.lengths, strict=True):
            self.same(length, extent, mask)
        if self._kind_at_all(node, form.lengths, mask) is not ElementType.BOOL:
            help_ = "write a loop over its elements, `for i in range(len(a)): x[a[i]] = ...`"
            self.text.refuse("python-shape", "a subscript is an array of numbers", target.slice, "", help_)
        if any(part.array == form.array and part != form for part in self.read_parts(mask)):
            name = self.fresh("mask")
            self.arrays[name] = self.at_all(node, name, form.lengths, mask)
            mask = ast.copy_location(ast.Name(name, ast.Load()), mask)
        outer = self.tests
        self.tests = (*outer, Test(mask, "", wanted=True))
        self.give_slices(node, form, _without_subscript(value, target.slice, None))
        self.tests = outer

    def _kind_at_all(self, node: ast.AST, extents: Sequence[Affine], value: ast.expr) -> Kind:
        """Return the kind of a value of whole arrays."""
        with self.trying(), self.points(node, extents):
            return self.whole_value(value).kind

    def make(self, name: str, made: tuple[Array, Typed | None], node: ast.AST) -> None:
        """Make an array, and fill it."""
        array, fill = made
        stored = self._room(name, array, node)
        self._named(name, stored, array)
        if fill is not None:
            with self.points(node, array.extents):
                places = tuple(iterator for iterator, _ in self.space)
                self.store(stored, places, as_kind(fill, array.type), node)

    def make_of(self, name: str, extents: tuple[Affine, ...], value: ast.expr, node: ast.stmt) -> None:
        """Make an array of a value."""
        kind = self._kind_at_all(node, extents, value)
        array = Array(held(kind), extents, self.text.span(node), own=True)
        stored = self._room(name, array, node)
        if stored in self.arrays:
            self.give_slices(node, whole(stored, extents), value)
        else:
            self._named(name, stored, self.at_all(node, stored, extents, value))

    def _named(self, name: str, stored: str, array: Array) -> None:
        self.arrays[stored] = array
        if stored != name:
            self.views = {**self.views, name: whole(stored, array.extents)}

    def _room(self, name: str, array: Array, node: ast.AST) -> str:
        """Return what holds an array that gets a name: what held that of this name before, or a new one.

        The same memory again is right where nothing else is a name for it. Errors: ``python-array``.
        """
        before = self.arrays.get(name)
        help_ = "make it outside of loops, or under a new name; a copy can be made anew: `b = a.copy()`"
        if self.around() & frozenset[str]().union(*(e.names for e in array.extents)):
            message = "the size of an array that is made in a loop differs from one iteration to the next"
            self.text.refuse("python-array", message, node, "", help_)
        if before is None and name not in (self.symbols.keys() | self.views.keys()):
            return name
        parts = {form.array for form in self.views.values()}
        if before is not None and before.own and name not in parts and name not in self.views:
            is_alike = before.type is array.type and len(before.extents) == len(array.extents)
            pairs = zip(before.extents, array.extents, strict=is_alike)
            if is_alike and all(affine.minus(a, b).number == 0 for a, b in pairs):
                return name
        if self.loops or self.conditions or self.tests or name in self.symbols or name in self.kinds:
            message = f"`{name}` has another meaning outside of the loop or branch"
            self.text.refuse("python-array", message, node, "", help_)
        return self.fresh(name)

    # -- arrays

    def new_array(self, node: ast.Call) -> tuple[Array, Typed | None] | None:
        """Return what a call makes, and what that is full of; None where it makes no array."""
        made = id(self.meant(node.func))
        given = dict(zip(_PLACES.get(made, ("shape", "dtype")), node.args, strict=False))
        given |= {k.arg: k.value for k in node.keywords if k.arg is not None}
        fills = values.FILLS | values.FILLS_LIKE
        if made in fills:
            number = fills[made]
            fill = None if number is None else Typed(Constant(number, INT), Weak.INT)
        elif made in (values.FULL, values.FULL_LIKE) and "fill_value" in given:
            fill = self.value(given["fill_value"])
        else:
            return None
        usual = ElementType.FLOAT64 if made in fills or fill is None else fill.held
        extents, usual = self._form(node, given, usual)
        kind = self.element_type(given.get("dtype")) or usual
        return Array(kind, extents, self.text.span(node), own=True), fill

    def _form(
        self, node: ast.Call, given: Mapping[str, ast.expr], kind: ElementType
    ) -> tuple[tuple[Affine, ...], ElementType]:
        """Return the extents of a new array, and the type of its elements where none is given."""
        match given.get("shape", given.get("a")):
            case None:
                raise self.text.fault("python-array", "the shape is missing", node)
            case like if "a" in given:
                form = self.slices(like)
                if form is None:
                    self.text.refuse(
                        "python-array", "the form of an array is that of an array with a name", like
                    )
                return form.lengths, self.arrays[form.array].type
            case ast.Attribute(value=like, attr="shape") if extents := self.shape(like):
                return extents, kind
            case ast.Tuple(elts=parts):
                return tuple(map(self.integer, parts)), kind
            case shape:
                return (self.integer(shape),), kind

    def with_fixed_places(self, node: ast.stmt, value: ast.expr) -> ast.expr:
        """Return a part of an array with new variables for the indices that it reads from data.

        ``row = a[k[i]]``      becomes      ``index_1 = k[i]; row = a[index_1]``
        """
        if isinstance(value, ast.Name):
            return value
        if not isinstance(value, ast.Subscript):
            self.refuse_of_data(node)
        inner = self.with_fixed_places(node, value.value)
        given = value.slice.elts if isinstance(value.slice, ast.Tuple) else [value.slice]
        parts = [self._fixed(node, part) for part in given]
        part = ast.copy_location(ast.Tuple(parts, ast.Load()), value.slice) if len(parts) > 1 else parts[0]
        return ast.copy_location(ast.Subscript(inner, part, ast.Load()), value)

    def _fixed(self, node: ast.stmt, part: ast.expr) -> ast.expr:
        if isinstance(part, ast.Slice | ast.Constant) or is_new(part) or self.affine(part) is not None:
            return part
        name = self.fresh("index")
        self.scalar(name, self.value(part), node)
        return ast.copy_location(ast.Name(name, ast.Load()), part)


def _without_subscript(value: ast.expr, subscript: ast.expr, instead: ast.expr | None) -> ast.expr:
    """Return an expression with arrays, or something else, in place of them under a subscript."""
    text = ast.unparse(subscript)

    class Without(ast.NodeTransformer):
        def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
            if ast.unparse(node.slice) == text:
                return node.value if instead is None else ast.copy_location(instead, node)
            return node

    found: ast.expr = Without().visit(copy.deepcopy(value))
    return found
