"""What names stand for at a point of emitted C, and how elements and integers are written there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from polyloom.ir.expressions import Expression
from polyloom.ir.types import ElementType
from polyloom.mdh.print.dialect import C
from polyloom.mdh.print.values import Leaves, Text, expression_text, integer_text, memory_type
from polyloom.mdh.tree.nodes import Compute, Condition, Load, Subscript
from polyloom.polyhedra.loops.tree import (
    IntExpression,
    Name,
    Number,
    Operation,
    names_in,
    replace_name,
    sum_of,
)


@dataclass(frozen=True)
class Variable:
    """An array or a value in C.

    ``held``: of values, halves as floats; else of elements as they are in memory. ``lanes``: elements of each
    vector, 0 where it has none; an array has them as its last dimension, a value has nothing else.
    ``qualifiers``: of the pointer by which functions get it: ``const``, ``restrict``.
    """

    text: str
    type: ElementType
    shape: tuple[IntExpression, ...] = ()
    held: bool = False
    lanes: int = 0
    qualifiers: frozenset[str] = frozenset()

    @property
    def is_value(self) -> bool:
        """Whether it is one value, by its name alone; else a pointer or an array."""
        return self.held and not self.shape

    @property
    def element(self) -> str:
        """The C type of an element, a vector where it has lanes."""
        if self.lanes:
            return C.type(self.type, self.lanes)
        return C.type(self.type) if self.held else memory_type(self.type, C)

    @property
    def extents(self) -> tuple[IntExpression, ...]:
        """The extents of the C array: without lanes."""
        return self.shape[:-1] if self.lanes and self.shape else self.shape


@dataclass(frozen=True)
class Scope:
    """``names``: identifiers of all; ``variables``: those declared; ``lane``: of a loop over lanes around."""

    names: Mapping[str, str]
    variables: Mapping[str, Variable] = field(default_factory=dict)
    lane: str | None = None

    def with_variable(self, name: str, variable: Variable) -> Scope:
        """Return the scope after a declaration."""
        return replace(self, variables={**self.variables, name: variable})

    def integer(self, expression: IntExpression) -> str:
        """Return an integer."""
        return integer_text(expression, self.names).text

    def operand(self, expression: IntExpression) -> str:
        """Return an integer that can stand beside any operator."""
        return integer_text(expression, self.names).within(_ATOM)

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
        return expression_text(expression, leaves, 1, C)

    def load(self, load: Load) -> str:
        """Return the value of an element or of a name, as an operand of any operator."""
        variable = self.variables[load.array]
        text = self.place(load.array, load.subscripts)
        if variable.type is ElementType.BOOL and variable.lanes:
            return f"({text} != 0)"
        is_half = variable.type is ElementType.FLOAT16 and not variable.held
        return f"((float){text})" if is_half else text

    def place(self, array: str, subscripts: tuple[Subscript, ...]) -> str:
        """Return an element as something that can be assigned to: ``A[i][k]``."""
        variable = self.variables[array]
        if not subscripts and not variable.is_value:
            return f"{variable.text}[0]"
        if not subscripts and variable.lanes:
            return f"{variable.text}[{self.lane}]"
        return variable.text + "".join(f"[{self.subscript(s)}]" for s in subscripts)

    def pointer(self, variable: Variable, name: str | None = None) -> str:
        """Return the declaration of a pointer to an array: ``const float (*restrict A)[n]``."""
        const = "const " if "const" in variable.qualifiers else ""
        restrict = "restrict " if "restrict" in variable.qualifiers else ""
        inner = "".join(f"[{self.integer(n)}]" for n in variable.extents[1:])
        pointer = f"*{restrict}{name or variable.text}"
        return f"{const}{variable.element} {f'({pointer}){inner}' if inner else pointer}"


_ATOM = 11


def coefficient(expression: IntExpression, name: str) -> IntExpression | None:
    """Return by how much an integer grows with ``name``, None where that is not the same everywhere."""
    if name not in names_in(expression):
        return Number(0)
    following = replace_name(expression, name, Operation("+", (Name(name), Number(1))))
    found = sum_of([(1, following), (-1, expression)])
    return None if name in names_in(found) else found


def at_zero(expression: IntExpression, name: str) -> IntExpression:
    """Return an integer where ``name`` is 0."""
    return replace_name(expression, name, Number(0)) if name in names_in(expression) else expression
