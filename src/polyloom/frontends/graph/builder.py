"""The builder of tensor programs: statements over values, with what is known at import folded.

A *constant* is a tensor whose elements are known. A statement that reads constants alone is carried out at
once, by the evaluator, and gives a constant; so shape arithmetic needs no code of its own. A constant that a
statement reads becomes an input of the program with a given value; one of a single element becomes a literal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.diagnostics import Diagnostic
from polyloom.frontends.graph import scalar, values
from polyloom.frontends.graph.draft import Draft, Function, Term, narrowed
from polyloom.frontends.graph.linear import Formula, Linear, affines, iterators
from polyloom.frontends.graph.model import element_type
from polyloom.frontends.graph.names import Names
from polyloom.frontends.graph.refusal import Refused
from polyloom.frontends.graph.values import Value
from polyloom.ir.evaluation.boxes import is_inside, view
from polyloom.ir.evaluation.programs import evaluate
from polyloom.ir.expressions import Expression, Read, walk
from polyloom.ir.host import Buffer, View
from polyloom.ir.program import Program
from polyloom.ir.reductions import Combine, neutral
from polyloom.ir.statements import Statement
from polyloom.ir.types import ElementType
from polyloom.ir.verification.expressions import type_faults

NDArray = npt.NDArray[Any]

__all__ = ["Builder", "Function", "Term", "check_constant", "check_size"]

FOLD_POINTS = 2**22
"""Points of a statement that is carried out at import; a larger one stays in the program."""

MOST_FOLDED = 2**28
"""Points of all statements that are carried out at import: later ones stay in the program."""

MOST_MADE = 2**28
"""Bytes of the constants that are made at import, beside three times those that the file holds."""

MOST_POSITIONS = 2**20
"""Elements of a known tensor that are looked at one by one."""

LARGEST_TENSOR = 2**34
"""Bytes of a tensor at most: what a hostile file declares is refused before it is allocated."""

MOST_AXES = 32
"""Axes of a tensor at most: NumPy has 64, and a statement may have twice as many iterators."""

LARGEST_CONSTANT = 2**31
"""Bytes of a tensor that is made at import."""


@dataclass
class Builder:
    """Collects statements, tensors and constants.

    ``layer`` names the statements that are made next, ``result`` their tensors.

    ``wide_sums``: sums and products of float16 go on in float32 and are rounded once, as frameworks do.
    ``remarks``: what of the graph does not come into the program.
    ``changing``: the constants that a call gives another value, so that results are not computed at import.
    """

    names: Names = field(default_factory=Names)
    layer: str = "t"
    result: str = "t"
    wide_sums: bool = True
    statements: list[Statement] = field(default_factory=list)
    tensors: dict[str, Buffer] = field(default_factory=dict)
    constants: dict[str, NDArray] = field(default_factory=dict)
    shared: dict[str, Value] = field(default_factory=dict)
    changing: set[str] = field(default_factory=set)
    remarks: list[Diagnostic] = field(default_factory=list)
    _users: dict[str, list[int]] = field(default_factory=dict)
    _order: Callable[[int], Sequence[int]] | None = None
    _room: int = MOST_MADE
    _folded: int = 0

    # -- values ------------------------------------------------------------------------------------------

    def input(self, name: str, kind: ElementType, shape: Sequence[int]) -> Value:
        """Declare an input of the program, called like ``name``."""
        tensor = self._declare(self.names.new(name, name), kind, shape)
        return values.whole(tensor, kind, shape)

    def constant(self, array: NDArray, name: str | None = None) -> Value:
        """Return an array as a value; one with a name is held by the file.

        Raises ``Refused`` for types that the IR has not, and for too many bytes made at import.
        """
        kind = element_type(array.dtype)
        if kind is None:
            raise Refused(f"elements of type {array.dtype}")
        if name:
            self._room += 3 * array.nbytes
        else:
            self.take_room(array.size, array.itemsize)
        tensor = self.names.new(name or f"{self.result}_constant", name or None)
        stored = array.astype(np.uint8) if kind is ElementType.BOOL else array
        self.constants[tensor] = np.ascontiguousarray(stored).reshape(array.shape)
        return values.whole(tensor, kind, array.shape)

    def shared_constant(self, name: str, make: Callable[[], NDArray]) -> Value:
        """Return the constant with this name, made when it is first used."""
        if name not in self.shared:
            array = make()
            self.take_room(array.size, array.itemsize)
            kind = _type_of(array)
            tensor = self.names.new(name)
            self.constants[tensor] = array
            self.shared[name] = values.whole(tensor, kind, array.shape)
        return self.shared[name]

    def known(self, value: Value) -> NDArray | None:
        """Return a value's elements if they are known at import: a view, not to be changed."""
        source = self.constants.get(value.tensor)
        if source is None:
            return None
        found = np.empty(value.shape, source.dtype) if 0 in value.shape else _seen(source, value)
        return found.view(np.bool_) if value.type is ElementType.BOOL else found

    def known_few(self, value: Value) -> NDArray | None:
        """Return a value's elements if they are known and few enough to be looked at one by one."""
        return self.known(value) if value.size <= MOST_POSITIONS else None

    def known_for(self, value: Value, count: int) -> NDArray | None:
        """Return a value's elements if they are known and a constant of ``count`` of them may be made."""
        return self.known(value) if count * _stored(value.type).size <= self._room else None

    def take_room(self, count: int, bytes_each: int) -> None:
        """Count a constant that is made at import. Raises ``Refused`` where these are too many bytes."""
        if count * bytes_each > self._room:
            raise Refused(
                f"a constant of {count} elements, beside those before, is too large to be made at import"
            )
        self._room -= count * bytes_each

    # -- statements --------------------------------------------------------------------------------------

    def statement(
        self,
        domain: Sequence[int],
        terms: Sequence[Term],
        shape: Sequence[int],
        write: Sequence[Formula],
        function: Function,
        reduction: Combine = Combine.CONCATENATE,
        hint: str = "",
        *,
        fold: bool = True,
    ) -> Value:
        """Return the value that a statement writes: ``out[write] reduction= function(terms)``.

        ``function`` gets an expression for each term. ``hint``: what this is in the layer, for its name.
        Raises ``Refused`` for a tensor of too many bytes.
        """
        return self._drafted(Draft(domain, terms, shape, write, function, reduction, hint, fold))

    def _drafted(self, draft: Draft) -> Value:
        if self.wide_sums and draft.sums_halves():
            return self._wide(draft)
        return self._made(draft) if self._order is None else self._reordered(draft, self._order)

    def _wide(self, draft: Draft) -> Value:
        """Reduce float16 in float32, and round the result once."""
        wide = draft.widened()
        total = self._made(wide) if self._order is None else self._reordered(wide, self._order)
        if not draft.is_narrow():
            return total
        axes = iterators(len(draft.shape))
        return self.statement(draft.shape, [Term(total, axes)], draft.shape, axes, narrowed, hint=draft.hint)

    def _reordered(self, draft: Draft, order: Callable[[int], Sequence[int]]) -> Value:
        places = list(order(len(draft.shape)))
        with self.stored(None):
            made = self._made(draft.reordered(places))
        return values.transposed(made, [places.index(k) for k in range(len(places))])

    @contextmanager
    def stored(self, order: Callable[[int], Sequence[int]] | None) -> Iterator[None]:
        """Let what is made inside lie in memory in another order of axes; its values look the same.

        ``order``: from the rank to the axes in the order in which they are stored; None: as they are.
        TensorFlow's images have their channels last: ``y[n][h][w][k]``.
        """
        before, self._order = self._order, order
        try:
            yield
        finally:
            self._order = before

    def _made(self, draft: Draft) -> Value:
        read, expression = self._reads(draft.terms, draft.function)
        kind, shape = expression.type, draft.shape
        check_size(shape, kind)
        known = all(t.tensor in self.constants and t.tensor not in self.changing for t in read)
        if 0 in shape or 0 in draft.domain:
            return self._of_no_points(shape, kind, draft.reduction)
        _check_types(expression)
        tensor = self._declare(self.names.new(_joined(self.result, draft.hint)), kind, shape)
        made = self._statement(draft, read, tensor, scalar.convert(expression, _stored(kind)))
        self._check_places(made)
        if draft.fold and known and self._folds(prod(draft.domain), prod(shape), kind):
            self._fold(made)
        else:
            self._add(made)
        return values.whole(tensor, kind, shape)

    def _check_places(self, made: Statement) -> None:
        """Raise ``Refused`` where a tensor would be read or written outside its shape."""
        for access in (*made.reads, made.write):
            held = self.constants.get(access.buffer)
            shape = self.tensors[access.buffer].extents if held is None else held.shape
            if not is_inside(access, shape, tuple(map(range, made.domain))):
                raise Refused(f"places outside a tensor of shape {list(shape)}")

    def _statement(
        self, draft: Draft, read: Sequence[_Read], tensor: str, expression: Expression
    ) -> Statement:
        width = len(draft.domain)
        accesses = tuple(View(a.tensor, tuple(i.affine(width) for i in a.indices)) for a in read)
        return Statement.of(
            self.names.new(_joined(self.layer, draft.hint)),
            tuple(f"i{k}" for k in range(width)),
            tuple(draft.domain),
            accesses,
            View(tensor, affines(draft.write, width)),
            expression,
            draft.reduction,
        )

    def _reads(self, terms: Sequence[Term], function: Function) -> tuple[list[_Read], Expression]:
        """Return what a statement reads, once each, and its expression over these reads."""
        read: list[_Read] = []
        operands = [self._operand(term, read) for term in terms]
        return read, function(*operands)

    def _operand(self, term: Term, read: list[_Read]) -> Expression:
        literal = self._literal(term.value)
        if literal is not None:
            return literal
        found = _Read(term.value.tensor, term.value.at(term.places))
        if found not in read and any(r.tensor == found.tensor for r in read):
            copied = self.copy(term.value, "copy")
            found = _Read(copied.tensor, copied.at(term.places))
        if found not in read:
            read.append(found)
        kind = term.value.type
        operand = Read(read.index(found), _stored(kind))
        return scalar.convert(operand, kind) if kind is ElementType.BOOL else operand

    def _literal(self, value: Value) -> Expression | None:
        if value.size != 1 or value.tensor not in self.constants or value.tensor in self.changing:
            return None
        array = self.known(value)
        assert array is not None
        number = array.item()
        return scalar.number(number, value.type) if np.isfinite(number) else None

    def copy(self, value: Value, hint: str = "") -> Value:
        """Return the value as a tensor of its own, written by a statement (of a constant: another name)."""
        known = self.known(value)
        if known is not None:
            return self.constant(known)
        axes = iterators(value.rank)
        return self.statement(value.shape, [Term(value, axes)], value.shape, axes, lambda x: x, hint=hint)

    def moved(self, value: Value) -> Value:
        """Return the value as a tensor that a statement of the program writes, also of a constant."""
        axes = iterators(value.rank)
        term = Term(value, axes)
        return self.statement(value.shape, [term], value.shape, axes, lambda x: x, fold=False)

    def _of_no_points(self, shape: Sequence[int], kind: ElementType, reduction: Combine) -> Value:
        """Return what the reduction starts from, whatever the operands: one element, seen many times."""
        start = neutral(reduction, _stored(kind))
        return values.expanded(self.constant(np.full((), start, kind.dtype)), shape)

    def _declare(self, name: str, kind: ElementType, shape: Sequence[int]) -> str:
        check_size(shape, kind)
        whole = Buffer.of(name, _stored(kind), tuple(shape))
        self.tensors[name] = replace(whole, truths=kind is ElementType.BOOL)
        return name

    def _add(self, statement: Statement) -> None:
        for access in statement.reads:
            self._use(access.buffer)
        for name in {access.buffer for access in (*statement.reads, statement.write)}:
            self._users.setdefault(name, []).append(len(self.statements))
        self.statements.append(statement)

    def _use(self, tensor: str) -> None:
        """Declare a constant that a statement reads."""
        if tensor not in self.tensors:
            array = self.constants[tensor]
            kind = element_type(array.dtype)
            assert kind is not None
            self.tensors[tensor] = Buffer.of(tensor, kind, array.shape)

    def _folds(self, points: int, elements: int, kind: ElementType) -> bool:
        """Tell whether a statement may be carried out at import, and count it."""
        bytes_made = elements * _stored(kind).size
        if (
            max(points, elements) > FOLD_POINTS
            or self._folded + points > MOST_FOLDED
            or bytes_made > self._room
        ):
            return False
        self._folded += points
        self._room -= bytes_made
        return True

    def _fold(self, statement: Statement) -> None:
        """Carry a statement out; its tensor becomes a constant."""
        target = self.tensors.pop(statement.write.buffer)
        read = list(dict.fromkeys(a.buffer for a in statement.reads))
        arrays = {name: self.constants[name] for name in read}
        given = [Buffer.of(n, _type_of(a), a.shape) for n, a in arrays.items()]
        program = Program.of("folded", (*given, target), tuple(read), (target.name,), (statement,))
        self.constants[target.name] = evaluate(program, arrays)[target.name]
        self.names.free(statement.name)

    # -- names -------------------------------------------------------------------------------------------

    def is_written(self, tensor: str) -> bool:
        """Tell whether a statement writes a tensor: it is no input and no constant."""
        return any(self.statements[k].write.buffer == tensor for k in self._users.get(tensor, ()))

    def rename_tensor(self, old: str, wanted: str) -> str:
        """Call a tensor like ``wanted``, in the statements that use it."""
        self.names.free(old)
        new = self.names.new(wanted, wanted)
        if old in self.constants:
            self.constants[new] = self.constants.pop(old)
        if old in self.tensors:
            self.tensors[new] = replace(self.tensors.pop(old), name=new)
        users = self._users.pop(old, [])
        for k in users:
            self.statements[k] = _with_tensor(self.statements[k], old, new)
        self._users[new] = users
        return new

    def rename_statement(self, number: int, wanted: str) -> None:
        """Call a statement like ``wanted``."""
        old = self.statements[number]
        self.names.free(old.name)
        self.statements[number] = replace(old, name=self.names.new(wanted, wanted))


@dataclass(frozen=True)
class _Read:
    tensor: str
    indices: tuple[Linear, ...]


def _check_types(expression: Expression) -> None:
    """Raise ``Refused`` for operands whose types do not fit: what a file combines need not fit."""
    faults = [fault for part in walk(expression) for fault in type_faults(part)]
    if faults:
        raise Refused(faults[0])


def _joined(name: str, hint: str) -> str:
    return f"{name}_{hint}" if hint else name


def _stored(kind: ElementType) -> ElementType:
    """Return the type of a tensor's elements in memory: truth values are uint8."""
    return ElementType.UINT8 if kind is ElementType.BOOL else kind


def _type_of(array: NDArray) -> ElementType:
    kind = element_type(array.dtype)
    assert kind is not None, array.dtype
    return kind


def _seen(source: NDArray, value: Value) -> NDArray:
    access = View(value.tensor, tuple(i.affine(value.rank) for i in value.indices))
    return view(source, access, tuple(range(n) for n in value.shape))


def _with_tensor(statement: Statement, old: str, new: str) -> Statement:
    def renamed(access: View) -> View:
        return replace(access, buffer=new) if access.buffer == old else access

    reads = tuple(renamed(a) for a in statement.reads)
    return statement.changed(reads=reads, write=renamed(statement.write))


def check_size(shape: Sequence[int], kind: ElementType) -> None:
    """Raise ``Refused`` for a tensor of more than ``LARGEST_TENSOR`` bytes or ``MOST_AXES`` axes."""
    if len(shape) > MOST_AXES:
        raise Refused(f"a tensor of {len(shape)} axes")
    if prod(shape) * _stored(kind).size > LARGEST_TENSOR:
        raise Refused(f"a tensor of {' x '.join(map(str, shape))} elements is larger than 16 GiB")


def check_constant(shape: Sequence[int], bytes_each: int) -> None:
    """Raise ``Refused`` for a constant of more than ``LARGEST_CONSTANT`` bytes, or of a negative extent."""
    if min(shape, default=0) < 0:
        raise Refused(f"a tensor with a negative extent: {' x '.join(map(str, shape))}")
    if prod(shape) * bytes_each > LARGEST_CONSTANT:
        raise Refused(f"a constant of {' x '.join(map(str, shape))} elements is larger than 2 GiB")
