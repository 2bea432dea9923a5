"""Vector loops in C: every statement for all lanes at once, with the vectors of gcc and clang.

    vector for l from 0 to 8:                       sum = sum + load_float32x8(&A[i]) * splat_float32x8(x[k]);
      sum[l] = sum[l] + A[i + l] * x[k]      ->

What vectors cannot say of a statement (``A[bin[l]]``) is said lane by lane, beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial

from polyloom.ir.types import ElementType
from polyloom.mdh.print.c_scope import Scope, Variable, at_zero, coefficient
from polyloom.mdh.print.dialect import C
from polyloom.mdh.print.values import Leaves, Text, expression_text, truth_text
from polyloom.mdh.tree.nodes import Compute, For, Let, LetInteger, Load, Statement, Store, Subscript
from polyloom.mdh.tree.rewrite import with_integers
from polyloom.polyhedra.loops.tree import (
    IntExpression,
    Name,
    Number,
    names_in,
    product_of,
    replace_name,
    sum_of,
)

WIDEST = 64


def is_vector_width(lanes: int) -> bool:
    """Return whether C has vectors of so many elements."""
    return 2 <= lanes <= WIDEST and not lanes & (lanes - 1)


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

    def _statements(self, body: tuple[Statement, ...]) -> Iterator[str]:
        for number, statement in enumerate(body):
            self.before.clear()
            match statement:
                case LetInteger(name=name, value=value) if self.lane in names_in(value):
                    change = partial(replace_name, name=name, value=value)
                    rest = tuple(with_integers(s, change) for s in body[number + 1 :])
                    yield from self._statements(rest)
                    return
                case LetInteger(name=name, value=value):
                    yield f"const int64_t {self.scope.names[name]} = {self.scope.integer(value)};"
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
        return f"const {C.type(kind, self.width)} {name} = {value.text};"

    def _store(self, store: Store) -> list[str]:
        variable = self.scope.variables[store.array]
        if variable.lanes == self.width and self._is_whole(store.subscripts):
            place = variable.text + "".join(f"[{self.scope.subscript(s)}]" for s in store.subscripts[:-1])
            return [f"{place} = {self._value(store.value).text};"]
        step = None if variable.lanes or variable.held else self._step(variable, store.subscripts)
        if step is None or step == Number(0):
            return self._stored_by_lanes(store)
        address, value = self._address(store.array, store.subscripts), self._value(store.value).text
        if step == Number(1):
            return [f"store_{self._moved(variable)}({address}, {value});"]
        return [f"scatter_{self._moved(variable)}({address}, {self.scope.integer(step)}, {value});"]

    def _stored_by_lanes(self, store: Store) -> list[str]:
        """Return stores one by one, of a vector that was computed before."""
        variable = self.scope.variables[store.array]
        name, value = "lanes", self._value(store.value).text
        inside = self._inside()
        text = f"{name}[{inside.lane}]"
        if variable.type is ElementType.FLOAT16 and not variable.held:
            text = f"(_Float16){text}"
        return [
            "{",
            f"    const {C.type(store.value.type, self.width)} {name} = {value};",
            f"    {self._head()}",
            f"        {inside.place(store.array, store.subscripts)} = {text};",
            "}",
        ]

    def _value(self, value: Compute) -> Text:
        """Return a vector of what a scalar function gives in each lane."""
        kind = value.type
        if not self._varies(value):
            return Text(self._everywhere(self.scope.value(value), kind))
        reads = [self._load(load) for load in value.loads]
        leaves = Leaves(reads, [self._integers(i) for i in value.iterators])
        if kind is ElementType.BOOL:
            return truth_text(value.expression, leaves, self.width, C)
        return expression_text(value.expression, leaves, self.width, C)

    def _everywhere(self, value: Text, kind: ElementType) -> str:
        text = f"-({value.text})" if kind is ElementType.BOOL else value.text
        return f"splat_{C.type(kind, self.width)}({text})"

    def _load(self, load: Load) -> str:
        """Return a load of all lanes, as an operand of any operator."""
        variable = self.scope.variables[load.array]
        if not load.subscripts and variable.lanes:
            return variable.text
        if variable.lanes == self.width and self._is_whole(load.subscripts):
            return variable.text + "".join(f"[{self.scope.subscript(s)}]" for s in load.subscripts[:-1])
        if not self._differs(load):
            return self._everywhere(Text(self.scope.load(load)), variable.type)
        step = None if variable.lanes or variable.held else self._step(variable, load.subscripts)
        if step is None:
            return self._by_lanes(self._inside().load(load), variable.type)
        address = self._address(load.array, load.subscripts)
        if step == Number(1):
            return f"load_{self._moved(variable)}({address})"
        return f"gather_{self._moved(variable)}({address}, {self.scope.integer(step)})"

    def _integers(self, expression: IntExpression) -> str:
        """Return an integer in each lane, as an operand of any operator."""
        kind = C.type(ElementType.INT64, self.width)
        factor = coefficient(expression, self.lane)
        if factor is None:
            return self._by_lanes(self._inside().integer(expression), ElementType.INT64)
        start, lanes = at_zero(expression, self.lane), f"lanes_{kind}()"
        if factor != Number(1):
            lanes = f"splat_{kind}({self.scope.integer(factor)}) * {lanes}"
        return f"(splat_{kind}({self.scope.integer(start)}) + {lanes})"

    def _by_lanes(self, text: str, kind: ElementType) -> str:
        """Return a vector that is filled before, lane by lane, with ``text``."""
        name = f"gathered{self.gathered}"
        self.gathered += 1
        self.before += [f"{C.type(kind, self.width)} {name};", self._head()]
        self.before.append(f"    {name}[{self._inside().lane}] = {text};")
        return name

    def _head(self) -> str:
        name = self.scope.names[self.lane]
        return f"for (int64_t {name} = 0; {name} < {self.width}; {name}++)"

    def _inside(self) -> Scope:
        """Return the scope inside a loop over lanes."""
        return replace(self.scope, lane=self.scope.names[self.lane])

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

    def _address(self, array: str, subscripts: tuple[Subscript, ...]) -> str:
        """Return where the element of lane 0 is."""
        first = tuple(s if isinstance(s, Compute) else at_zero(s, self.lane) for s in subscripts)
        return f"&{self.scope.place(array, first)}"

    def _moved(self, variable: Variable) -> str:
        """Return what loads and stores of vectors are called for an array's elements."""
        if variable.type is ElementType.FLOAT16:
            return f"half{self.width}"
        return C.type(variable.type, self.width)
