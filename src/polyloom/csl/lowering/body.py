"""What is at hand while the body of a function is lowered: names, the unit, statements so far.

An operand is either a ``Value``, known at compile time, or a typed expression. A place is what can be
assigned to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from polyloom.csl import comptime, types
from polyloom.csl.lowering import tree
from polyloom.csl.syntax import tree as syntax
from polyloom.csl.values import FunctionValue, TypeValue, Value
from polyloom.diagnostics import PolyloomError, Span, error

if TYPE_CHECKING:
    from polyloom.csl.lowering.unit import Unit

Operand = Value | tree.Expression


@dataclass(frozen=True)
class Memory:
    """A place with an address."""

    type: types.Type
    address: tree.Expression
    is_const: bool = False


@dataclass(frozen=True)
class Register:
    """A place without an address: a local variable, or a DSD of the module; ``fields`` lead into a struct."""

    type: types.Type
    variable: tree.Local | tree.Global
    is_const: bool = False
    fields: tuple[str, ...] = ()


Place = Memory | Register


@dataclass(frozen=True)
class Target:
    """What ``break`` and ``continue`` lead to; ``result``: where ``break`` puts its value."""

    source_label: str | None
    label: str
    is_loop: bool
    result: Place | None = None


class Rules(NamedTuple):
    """The functions that lower nodes, which need each other."""

    operand: Callable[[Body, syntax.Expression, types.Type | None], Operand]
    place: Callable[[Body, syntax.Expression], Place | None]
    statement: Callable[[Body, syntax.Statement], None]


@dataclass
class Body:
    """A function while it is lowered."""

    unit: Unit
    rules: Rules
    scope: comptime.Scope
    result: types.Type
    addressed: frozenset[str]
    """Local variables that must have an address."""
    symbol: str
    out: list[tree.Statement] = field(default_factory=list)
    targets: list[Target] = field(default_factory=list)
    count: list[int] = field(default_factory=lambda: [0])

    def fresh(self, name: str) -> str:
        """Return a name that nothing else in the function has."""
        self.count[0] += 1
        return f"{name}_{self.count[0]}"

    def operand(self, node: syntax.Expression, wanted: types.Type | None = None) -> Operand:
        """Lower an expression; ``wanted`` is what the context asks for, which the caller converts to."""
        return self.rules.operand(self, node, wanted)

    def statement(self, node: syntax.Statement) -> None:
        """Lower a statement."""
        self.rules.statement(self, node)

    def evaluate(self, node: syntax.Expression) -> Value | None:
        """Return what an expression is at compile time, or None if that is known at run time only."""
        if isinstance(node, syntax.Call) and self._does_something(node.callee):
            return None
        try:
            return comptime.evaluate(node, self.scope)
        except comptime.NotComptime:
            return None
        except PolyloomError as fault:
            if all(found.code == "csl-not-comptime" for found in fault.diagnostics):
                return None
            raise

    def _does_something(self, node: syntax.Expression) -> bool:
        """Return whether a function without a result is called: that is for the run time."""
        if not isinstance(node, syntax.Name | syntax.Field):
            return False
        callee = self.evaluate(node)
        return isinstance(callee, FunctionValue) and callee.type.result == types.VOID

    def type_of(self, node: syntax.Expression) -> types.Type:
        """Return the type that an expression means."""
        value = self.operand(node)
        if isinstance(value, TypeValue):
            return value.of
        return fail("csl-type", "expected a type", node.span)

    @contextmanager
    def names(self) -> Iterator[None]:
        """Open a scope for names."""
        outer = self.scope
        self.scope = outer.child()
        try:
            yield
        finally:
            self.scope = outer

    @contextmanager
    def collected(self) -> Iterator[list[tree.Statement]]:
        """Collect statements aside."""
        outer, self.out = self.out, []
        try:
            yield self.out
        finally:
            self.out = outer


def fail(code: str, message: str, span: Span, label: str = "", help_: str = "") -> NoReturn:
    """Raise a diagnostic."""
    raise PolyloomError(error(code, message, span, label=label, helps=[help_] if help_ else []))
