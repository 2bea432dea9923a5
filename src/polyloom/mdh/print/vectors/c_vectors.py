"""Vector loops in C and OpenCL C: every statement for all lanes at once.

    vector for l from 0 to 8:                       sum = sum + load_float32x8(&A[i]) * splat_float32x8(x[k]);
      sum[l] = sum[l] + A[i + l] * x[k]      ->

What vectors cannot say of a statement (``A[bin[l]]``) is said lane by lane, beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Iterator as Iterator_
from dataclasses import dataclass, field, replace
from functools import partial

from polyloom.ir.expressions import Convert, Expression, Iterator, Read, walk
from polyloom.ir.types import ElementType
from polyloom.mdh.print.c_scope import Scope, Variable, at_zero, coefficient
from polyloom.mdh.print.dialect import ENDS, INTERLEAVED, Dialect, held
from polyloom.mdh.print.values import Leaves, Text, expression_text, truth_text
from polyloom.mdh.print.vectors.interleaved_stores import interleaved_stores
from polyloom.mdh.tree.nodes import Compute, For, Let, LetInteger, Load, Statement, Store, Subscript
from polyloom.mdh.tree.rewrite import with_integers
from polyloom.polyhedra.loops.tree import (
    IntExpression,
    Name,
    Number,
    linear_terms,
    names_in,
    product_of,
    replace_name,
    sum_of,
)


def is_vector_width(lanes: int, dialect: Dialect) -> bool:
    """Return whether a language has vectors of so many elements."""
    return 2 <= lanes <= dialect.widest and not lanes & (lanes - 1)


@dataclass
class VectorLoop:
    """Prints the statements of a vector loop over ``lane``."""

    lane: str
    width: int
    scope: Scope
    before: list[str] = field(default_factory=list)
    """Lines that the statement at hand needs before it."""
    gathered: int = 0
    """Vectors that were filled lane by lane."""
    kept: Mapping[str, str] = field(default_factory=dict)
    """Values that are in registers: their names, by the texts of the loads of them."""
    turned: Mapping[Load, str] = field(default_factory=dict)
    """The same of blocks that were loaded before, by the loads."""
    rows: Mapping[Load, str] = field(default_factory=dict)
    """Elements that all lanes read by a pointer: their texts, by the loads."""
    texts: dict[tuple[str, Load], str] = field(default_factory=dict)
    """What loads of sums over these lanes, in the same block, were printed as."""

    @property
    def dialect(self) -> Dialect:
        """The language."""
        return self.scope.dialect

    def _type(self, kind: ElementType) -> str:
        return self.dialect.type(kind, self.width)

    @staticmethod
    def can_say(loop: For) -> bool:
        """Return whether a loop's body consists of statements that vectors have."""
        return all(isinstance(s, Store | Let | LetInteger) for s in loop.body)

    def lines(self, body: tuple[Statement, ...]) -> list[str]:
        """Return the lines of the body, as a block where they declare something."""
        lines = list(self._statements(body))
        if self.gathered or not all(isinstance(s, Store) for s in body):
            return ["{", *(f"    {line}" for line in lines), "}"]
        return lines

    def _statements(self, body: tuple[Statement, ...]) -> Iterator_[str]:
        stored = 0
        for number, statement in enumerate(body):
            self.before.clear()
            if number < stored:
                continue
            if together := self._interleaved(body[number:]):
                yield self._stored_in_turn(together)
                stored = number + len(together)
                continue
            match statement:
                case LetInteger(name=name, value=value) if self.lane in names_in(value):
                    change = partial(replace_name, name=name, value=value)
                    rest = tuple(with_integers(s, change) for s in body[number + 1 :])
                    yield from self._statements(rest)
                    return
                case LetInteger(name=name, value=value):
                    text = self.scope.integer(value)
                    yield f"const {self.dialect.index} {self.scope.names[name]} = {text};"
                case Let():
                    line = self._let(statement)
                    yield from (*self.before, line)
                case Store():
                    lines = self._store(statement)
                    yield from (*self.before, *lines)

    def _let(self, let: Let) -> str:
        name, kind = self.scope.names[let.name], let.value.type
        value = self._value(let.value)
        self.scope = self.scope.with_variable(let.name, Variable(name, kind, held=True, lanes=self.width))
        return f"const {self._type(kind)} {name} = {value.text};"

    def _store(self, store: Store) -> list[str]:
        variable = self.scope.variable(store.array)
        if variable.lanes == self.width and self._is_whole(store.subscripts):
            place = self.scope.vector(variable, store.subscripts)
            return [f"{place} = {self._value(store.value).text};"]
        step = None if variable.lanes or variable.held else self._step(variable, store.subscripts)
        streams = variable.streams and "stream" in self.dialect.moves_of(variable.is_half)
        family = self._family(variable, step, "stream" if streams else "store", "scatter")
        if family is None or step == Number(0):
            return self._stored_by_lanes(store)
        address, value = self._address(store.array, store.subscripts), self._value(store.value).text
        return [self._moved(family, variable, address=address, step=step, value=value)]

    def _interleaved(self, body: tuple[Statement, ...]) -> tuple[Store, ...]:
        """Return the first statements where they are stores that are made together."""
        stores = interleaved_stores(body, self.lane, self.width, self.scope)
        return stores if INTERLEAVED.get(len(stores)) in self.dialect.moves else ()

    def _stored_in_turn(self, stores: tuple[Store, ...]) -> str:
        """Return a store of vectors whose elements take turns in memory."""
        kind = held(self.scope.variable(stores[0].array).type)
        address = self._address(stores[0].array, stores[0].subscripts)
        values = {f"v{k}": self._value(store.value).text for k, store in enumerate(stores)}
        return self.dialect.move(INTERLEAVED[len(stores)], kind, self.width, address=address, **values)

    def _family(self, variable: Variable, step: IntExpression | None, near: str, far: str) -> str | None:
        """Return how elements with a distance are loaded or stored; None where they are one by one."""
        family = near if step == Number(1) else far
        return family if step is not None and family in self.dialect.moves_of(variable.is_half) else None

    def _moved(self, family: str, variable: Variable, step: IntExpression | None, **texts: str) -> str:
        distance = "" if step is None else self.scope.integer(step)
        kind = variable.type if variable.is_half else held(variable.type)
        return self.dialect.move(family, kind, self.width, step=distance, **texts)

    def _stored_by_lanes(self, store: Store) -> list[str]:
        """Return stores one by one, of a vector that was computed before."""
        variable = self.scope.variable(store.array)
        name, value = "lanes", self._value(store.value).text

        def stored(inside: Scope) -> str:
            place = inside.place(store.array, store.subscripts)
            return inside.stored(variable, place, inside.element_of(name))

        return [
            "{",
            f"    const {self._type(store.value.type)} {name} = {value};",
            *(f"    {line}" for line in self._for_each_lane(stored)),
            "}",
        ]

    def _for_each_lane(self, text: Callable[[Scope], str]) -> list[str]:
        """Return a text for each lane: in a loop where a language has variable lanes."""
        if self.dialect.has_loops_over_lanes:
            return [self._head(), f"    {text(self._inside())}"]
        return [text(self._inside(str(lane))) for lane in range(self.width)]

    def _value(self, value: Compute) -> Text:
        """Return a vector of what a scalar function gives in each lane."""
        kind = value.type
        if not self._varies(value):
            return Text(self._everywhere(self.scope.value(value), kind))
        texts = [self._load(load) for load in value.loads]
        reads = [self.kept.get(text, text) for text in texts]
        leaves = Leaves(
            reads,
            lanes=partial(self._iterator, value),
            same=partial(self._same, value),
            for_all=partial(self._for_all, value) if not self.dialect.masks_are_truths else None,
        )
        if kind is ElementType.BOOL:
            return truth_text(value.expression, leaves, self.width, self.dialect)
        return expression_text(value.expression, leaves, self.width, self.dialect)

    def _everywhere(self, value: Text, kind: ElementType) -> str:
        text = f"-({value.text})" if kind is ElementType.BOOL else value.text
        return self.dialect.all_of(text, kind, self.width)

    def _load(self, load: Load) -> str:
        """Return a load of all lanes, as an operand of any operator."""
        if load in self.turned:
            return self.turned[load]
        known = self.texts.get((self.lane, load))
        if known is not None:
            return known
        gathered, text = self.gathered, self._loaded(load)
        if gathered == self.gathered:
            self.texts[self.lane, load] = text
        return text

    def _loaded(self, load: Load) -> str:
        variable = self.scope.variable(load.array)
        if not load.subscripts and variable.lanes:
            return variable.text
        if variable.lanes == self.width and self._is_whole(load.subscripts):
            return self.scope.vector(variable, load.subscripts)
        if (half := self._half(variable, load.subscripts)) is not None:
            return half
        if not self._differs(load):
            text = self.rows[load] if load in self.rows else self.scope.load(load)
            return self._everywhere(Text(text), variable.type)
        step = None if variable.lanes or variable.held else self._step(variable, load.subscripts)
        family = self._family(variable, step, "load", "gather")
        if family is None:
            return self._by_lanes(lambda inside: inside.load(load), variable.type)
        address = self._address(load.array, load.subscripts)
        return self._moved(family, variable, address=address, step=step)

    def _half(self, variable: Variable, subscripts: tuple[Subscript, ...]) -> str | None:
        """Return half of a vector in a register; None where all lanes are not that."""
        if variable.lanes != 2 * self.width or not subscripts or any(map(self._changes, subscripts[:-1])):
            return None
        for family, first in zip(ENDS, (0, self.width), strict=True):
            is_it = subscripts[-1] == sum_of([(1, Name(self.lane)), (1, Number(first))])
            if is_it and family in self.dialect.moves:
                whole = self.scope.vector(variable, (*subscripts[:-1], Name(self.lane)))
                return self.dialect.move(family, held(variable.type), self.width, vector=whole)
        return None

    def from_memory(self, value: Compute) -> list[tuple[str, bool]]:
        """Return the vectors that a value has from memory, each as it would be printed.

        With each: whether instructions take it from there. Those of another type are left out, and what is
        filled lane by lane.
        """
        found = []
        for load in value.loads if self._varies(value) else ():
            variable, text = self.scope.variable(load.array), self._load(load)
            if not variable.held and not self.before and self._type(variable.type) == self._type(value.type):
                is_next = self._differs(load) and self._step(variable, load.subscripts) == Number(1)
                found.append((text, is_next and not variable.is_half))
            self.before.clear()
        return found

    def _same(self, value: Compute, part: Convert) -> str | None:
        """Return a conversion of integers that all lanes have, computed once; None where it is none."""
        if part.type is ElementType.BOOL or any(isinstance(p, Read) for p in walk(part)):
            return None
        used = {p.dimension for p in walk(part) if isinstance(p, Iterator)}
        if not used or any(self.lane in names_in(value.iterators[d]) for d in used):
            return None
        return self._everywhere(self.scope.value(Compute(part, iterators=value.iterators)), part.type)

    def _for_all(self, value: Compute, condition: Expression) -> Text | None:
        """Return a condition that holds in all lanes or in none, asked once; None where it is none."""
        parts = list(walk(condition))
        loads = (value.loads[p.position] for p in parts if isinstance(p, Read))
        integers = (value.iterators[p.dimension] for p in parts if isinstance(p, Iterator))
        if any(map(self._differs, loads)) or any(self.lane in names_in(i) for i in integers):
            return None
        return self.scope.value(Compute(condition, value.loads, value.iterators))

    def _iterator(self, value: Compute, dimension: int, kind: ElementType) -> tuple[str, ElementType]:
        """Return an iterator in each lane, and its type: ``kind`` where no wider vector is needed for it."""
        expression = value.iterators[dimension]
        factor = coefficient(expression, self.lane)
        if factor is None or kind not in (ElementType.INT32, ElementType.UINT32):
            kind = ElementType.INT64
        return self._integers(expression, factor, kind), kind

    def _integers(self, expression: IntExpression, factor: IntExpression | None, kind: ElementType) -> str:
        """Return an integer in each lane, as an operand of any operator; ``factor``: from lane to lane."""
        if factor is None:
            return self._by_lanes(lambda inside: inside.integer(expression), kind)
        start = at_zero(expression, self.lane)
        if factor == Number(0):
            return self._integer(start, kind)
        lanes = self.dialect.numbers(kind, self.width)
        if factor != Number(1):
            lanes = f"{self._integer(factor, kind)} * {lanes}"
        terms, constant = linear_terms([(1, start)])
        if constant and terms:  # iterators that differ by constants share the vector of what varies
            lanes = f"({lanes} + {self._integer(Number(constant), kind)})"
            start = sum_of(terms)
        return f"({self._integer(start, kind)} + {lanes})"

    def _integer(self, expression: IntExpression, kind: ElementType) -> str:
        """Return an integer that all lanes have."""
        text = Text(self.scope.integer(expression))
        if kind is not ElementType.INT64:
            text = Text(f"({self.dialect.type(kind)})({text.text})")
        return self._everywhere(text, kind)

    def _by_lanes(self, text: Callable[[Scope], str], kind: ElementType) -> str:
        """Return a vector with a text in each lane; where a loop is to fill it, that stands before."""
        if not self.dialect.has_loops_over_lanes:
            return f"({self._type(kind)})({', '.join(self._for_each_lane(text))})"
        name = f"gathered{self.gathered}"
        self.gathered += 1
        self.before += [f"{self._type(kind)} {name};"]
        self.before += self._for_each_lane(lambda inside: f"{name}[{inside.lane}] = {text(inside)};")
        return name

    def _head(self) -> str:
        name, index = self.scope.names[self.lane], self.dialect.index
        return f"for ({index} {name} = 0; {name} < {self.width}; {name}++)"

    def _inside(self, lane: str | None = None) -> Scope:
        """Return the scope at a lane: that of a loop over lanes, or a number."""
        lane = lane or self.scope.names[self.lane]
        return replace(self.scope, lane=lane, names={**self.scope.names, self.lane: lane})

    def _is_whole(self, subscripts: tuple[Subscript, ...]) -> bool:
        """Return whether subscripts name the vector of all lanes."""
        *outer, last = subscripts
        return last == Name(self.lane) and not any(self._changes(s) for s in outer)

    def _changes(self, subscript: Subscript) -> bool:
        if isinstance(subscript, Compute):
            return self._varies(subscript)
        return self.lane in names_in(subscript)

    def _varies(self, value: Compute) -> bool:
        """Return whether a value may differ from lane to lane."""
        by_iterators = any(self.lane in names_in(i) for i in value.iterators)
        return by_iterators or any(map(self._differs, value.loads))

    def _differs(self, load: Load) -> bool:
        """Return whether a load may differ from lane to lane."""
        named = not load.subscripts and self.scope.variables[load.array].lanes > 0
        return named or any(map(self._changes, load.subscripts))

    def _step(self, variable: Variable, subscripts: tuple[Subscript, ...]) -> IntExpression | None:
        """Return the distance between elements of neighbouring lanes; None where there is no such number."""
        terms: list[tuple[int, IntExpression]] = []
        for k, subscript in enumerate(subscripts):
            if isinstance(subscript, Compute):
                if self._varies(subscript):
                    return None
                continue
            factor = coefficient(subscript, self.lane)
            if factor is None:
                return None
            terms.append((1, product_of([factor, *variable.shape[k + 1 :]])))
        return sum_of([(c, t) for c, t in terms if t != Number(0)])

    def distance(self, load: Load) -> IntExpression | None:
        """Return how far apart the elements of neighbouring lanes are; None where there is no such number."""
        return self._step(self.scope.variable(load.array), load.subscripts)

    def address(self, load: Load) -> str:
        """Return where the element of lane 0 is that is loaded."""
        return self._address(load.array, load.subscripts)

    def _address(self, array: str, subscripts: tuple[Subscript, ...]) -> str:
        """Return where the element of lane 0 is."""
        first = tuple(s if isinstance(s, Compute) else at_zero(s, self.lane) for s in subscripts)
        return f"&{self.scope.place(array, first)}"
