"""What names stand for at a point of emitted code, and how elements and integers are written there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import gcd

from polyloom.ir.expressions import Expression
from polyloom.ir.types import ElementType
from polyloom.mdh.print.dialect import C, Dialect
from polyloom.mdh.print.needs import Needs
from polyloom.mdh.print.values import Leaves, Text, expression_text, integer_text, memory_type
from polyloom.mdh.tree.nodes import Compute, Condition, Load, Part, Subscript
from polyloom.mdh.tree.ranges import multiple
from polyloom.polyhedra.loops.tree import (
    IntExpression,
    Name,
    Number,
    Operation,
    linear_terms,
    names_in,
    product_of,
    replace_name,
    sum_of,
)


@dataclass(frozen=True)
class Variable:
    """An array or a value in C, or in a dialect of it.

    ``flat``: elements have one subscript, row by row. ``held``: of values, halves as floats; else of elements
    as they are in memory. ``lanes``: elements of each vector, 0 where it has none; an array has them as its
    last dimension, a value has nothing else. ``qualifiers``: of the pointer by which functions get it:
    ``const``, ``restrict``. ``memory``: the array whose elements these are, where it is another one.
    ``streams``: what is stored there may bypass the caches. ``packed``: of halves as they are in memory.
    ``part``: of blocks in a matrix unit.
    """

    text: str
    type: ElementType
    shape: tuple[IntExpression, ...] = ()
    held: bool = False
    lanes: int = 0
    qualifiers: frozenset[str] = frozenset()
    flat: bool = False
    streams: bool = False
    memory: str = ""
    packed: bool = False
    part: Part | None = None

    def beside_others(self) -> Variable:
        """Return the variable where others may have its elements, too."""
        return replace(self, qualifiers=self.qualifiers - {"restrict"})

    @property
    def is_value(self) -> bool:
        """Whether it is one value, by its name alone; else a pointer or an array."""
        return self.held and not self.shape

    def element(self, dialect: Dialect) -> str:
        """Return the type of an element, a vector where it has lanes."""
        if self.lanes:
            return dialect.type(self.type, self.lanes)
        return dialect.type(self.type) if self.held else memory_type(self.type, dialect)

    @property
    def is_half(self) -> bool:
        """Whether its elements are halves as they are in memory."""
        return self.type is ElementType.FLOAT16 and not self.held

    @property
    def extents(self) -> tuple[IntExpression, ...]:
        """The extents of the C array: without lanes."""
        return self.shape[:-1] if self.lanes and self.shape else self.shape


@dataclass(frozen=True)
class Scope:
    """``names``: identifiers of all; ``variables``: those declared; ``lane``: of a vector, at hand.

    ``multiples``: what divides integers, by their names in the tree, where it is not 1. ``rolled``: whether
    lines that differ in subscripts alone become loops, for which registers are elements of arrays.
    ``repeated``: what is stored in registers the next iteration waits for.

    What is printed is noted in the ``dialect``: what it needs, and the names that it speaks of.
    """

    names: Mapping[str, str]
    variables: Mapping[str, Variable] = field(default_factory=dict)
    lane: str | None = None
    dialect: Dialect = field(default_factory=C.noting)
    multiples: Mapping[str, int] = field(default_factory=dict)
    rolled: bool = False
    repeated: bool = False

    def with_multiple(self, name: str, *values: IntExpression) -> Scope:
        """Return the scope where an integer is a sum of multiples of these."""
        divisor = gcd(*(multiple(value, self.multiples) for value in values))
        return self if divisor == 1 else replace(self, multiples={**self.multiples, name: divisor})

    @property
    def needs(self) -> Needs:
        """What was printed needs."""
        return self.dialect.noted

    def apart(self) -> Scope:
        """Return the scope of a text that has needs of its own."""
        return replace(self, dialect=self.dialect.noting())

    def with_variable(self, name: str, variable: Variable) -> Scope:
        """Return the scope after a declaration."""
        return replace(self, variables={**self.variables, name: variable})

    def variable(self, name: str) -> Variable:
        """Return what a name stands for, which the text speaks of."""
        self.needs.names.add(name)
        return self.variables[name]

    def integer(self, expression: IntExpression) -> str:
        """Return an integer."""
        return self._integer(expression).text

    def _integer(self, expression: IntExpression) -> Text:
        self.needs.names.update(names_in(expression))
        return integer_text(expression, self.names, self.dialect)

    def operand(self, expression: IntExpression) -> str:
        """Return an integer that can stand beside any operator."""
        return self._integer(expression).within(_ATOM)

    def subscript(self, subscript: Subscript) -> str:
        """Return a subscript, of integers or of data."""
        return self.value(subscript).text if isinstance(subscript, Compute) else self.integer(subscript)

    def condition(self, condition: Condition) -> str:
        """Return a condition."""
        return self.subscript(condition)

    def value(self, value: Compute) -> Text:
        """Return what a scalar function gives."""
        return self._expression(value.expression, [self.load(a) for a in value.loads], value.iterators)

    def _expression(
        self, expression: Expression, reads: list[str], iterators: Iterable[IntExpression]
    ) -> Text:
        leaves = Leaves(reads, [self.operand(i) for i in iterators])
        return expression_text(expression, leaves, 1, self.dialect)

    def load(self, load: Load) -> str:
        """Return the value of an element or of a name, as an operand of any operator."""
        variable = self.variable(load.array)
        text = self.place(load.array, load.subscripts)
        if variable.type is ElementType.BOOL and variable.lanes:
            return f"({text} != 0)"
        return self.dialect.load_half.format(place=text) if variable.is_half else text

    def stored(self, variable: Variable, place: str, value: str) -> str:
        """Return a statement that stores a value in an element."""
        if variable.is_half:
            return self.dialect.store_half.format(place=place, value=value)
        return f"{place} = {value};"

    def place(self, array: str, subscripts: tuple[Subscript, ...]) -> str:
        """Return an element as something that can be assigned to: ``A[i][k]``."""
        variable = self.variable(array)
        if not subscripts and not variable.is_value:
            return f"{variable.text}[0]"
        if not subscripts and variable.lanes:
            return self.element_of(variable.text)
        if variable.flat:
            place = row_by_row(subscripts, variable)
            text = self._of_data(subscripts, variable.shape) if place is None else self.integer(place)
            return f"{variable.text}[{text}]"
        if variable.lanes:
            vector = self.vector(variable, subscripts)
            return self._lane(vector, self.subscript(self._at_lanes(subscripts[-1])))
        return variable.text + "".join(f"[{self.subscript(s)}]" for s in subscripts)

    def _at_lanes(self, subscript: Subscript) -> Subscript:
        """Return a subscript with the numbers of lanes that are written out in it: 11 in place of 3 + 8."""
        if isinstance(subscript, Compute):
            return subscript
        for name in names_in(subscript):
            if (text := self.names.get(name, name)).isdigit():
                subscript = replace_name(subscript, name, Number(int(text)))
        return subscript

    def vector(self, variable: Variable, subscripts: tuple[Subscript, ...]) -> str:
        """Return the vector that an element of an array with lanes is in."""
        return variable.text + "".join(f"[{self.subscript(s)}]" for s in subscripts[:-1])

    def element_of(self, vector: str) -> str:
        """Return the element of a vector at the lane at hand."""
        assert self.lane is not None
        return self._lane(vector, self.lane)

    def _lane(self, vector: str, lane: str) -> str:
        number = f"{int(lane):x}" if lane.isdigit() else lane
        return self.dialect.lane.format(vector=vector, lane=lane, digit=number)

    def _of_data(self, subscripts: tuple[Subscript, ...], shape: tuple[IntExpression, ...]) -> str:
        text = Text("")
        for subscript, extent in zip(subscripts, shape, strict=True):
            row = f"{text.within(_TIMES)} * {self.operand(extent)} + " if text.text else ""
            text = Text(f"{row}{self._whole(subscript).within(_TIMES)}", _PLUS if row else _TIMES)
        return text.text

    def _whole(self, subscript: Subscript) -> Text:
        """Return a subscript as wide as products with it are."""
        if isinstance(subscript, Compute):
            return Text(f"({self.dialect.index}){self.value(subscript).within(_PREFIX)}", _PREFIX)
        return self._integer(subscript)

    def pointer(self, variable: Variable, name: str | None = None) -> str:
        """Return the declaration of a pointer to an array: ``const float (*restrict A)[n]``."""
        const = "const " if "const" in variable.qualifiers else ""
        restrict = "restrict " if "restrict" in variable.qualifiers else ""
        inner = "".join(f"[{self.integer(n)}]" for n in variable.extents[1:])
        pointer = f"*{restrict}{name or variable.text}"
        return f"{const}{variable.element(self.dialect)} {f'({pointer}){inner}' if inner else pointer}"


_ATOM, _PREFIX, _TIMES, _PLUS = 11, 10, 9, 8


def row_by_row(subscripts: tuple[Subscript, ...], variable: Variable) -> IntExpression | None:
    """Return the place of an element in memory: ``i * n + k``; None where data decide."""
    found = list[tuple[int, IntExpression]]()
    for k, subscript in enumerate(subscripts):
        if isinstance(subscript, Compute):
            return None
        found.append((1, product_of([subscript, *variable.shape[k + 1 :]])))
    return sum_of(found)


def coefficient(expression: IntExpression, name: str) -> IntExpression | None:
    """Return by how much an integer grows with ``name``, None where that is not the same everywhere."""
    if name not in names_in(expression):
        return Number(0)
    terms, _ = linear_terms([(1, expression)])
    if not any(name in names_in(term) for _, term in terms if term != Name(name)):
        return Number(next((factor for factor, term in terms if term == Name(name)), 0))
    following = replace_name(expression, name, Operation("+", (Name(name), Number(1))))
    found = sum_of([(1, following), (-1, expression)])
    return None if name in names_in(found) else found


def at_zero(expression: IntExpression, name: str) -> IntExpression:
    """Return an integer where ``name`` is 0."""
    return replace_name(expression, name, Number(0)) if name in names_in(expression) else expression
