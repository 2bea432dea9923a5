"""What names mean at a place of a program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from polyloom.csl.values import Value, Variable

if TYPE_CHECKING:
    from polyloom.csl.comptime.modules import Module
    from polyloom.csl.syntax import tree


@dataclass(frozen=True, eq=False)
class Runtime:
    """A name whose value is known at run time only; ``payload`` belongs to who bound it."""

    payload: Any


Binding = Value | Variable | Runtime


class Effects(Protocol):
    """Takes the builtins that do something, where a ``comptime`` or ``layout`` block may use them."""

    def perform(self, node: tree.Builtin, scope: Scope) -> Value | None:
        """Carry the builtin out; return ``None`` if it is no effect. Errors: diagnostics."""


class Scope:
    """Local names over those of a module.

    ``effects``: who takes builtins that do something, or ``None`` where there is nobody, as in the body of a
    function that is tried at compile time.
    """

    __slots__ = ("effects", "is_comptime", "module", "names", "parent")

    def __init__(
        self,
        module: Module,
        parent: Scope | None = None,
        effects: Effects | None = None,
        is_comptime: bool | None = None,
    ) -> None:
        if parent is not None:
            effects = parent.effects if effects is None else effects
            is_comptime = parent.is_comptime if is_comptime is None else is_comptime
        self.module = module
        self.parent = parent
        self.effects: Effects | None = effects
        self.is_comptime: bool = bool(is_comptime)
        self.names: dict[str, Binding] = {}

    def child(self) -> Scope:
        """Return a scope inside this one."""
        return Scope(self.module, self)

    def bind(self, name: str, binding: Binding) -> None:
        """Give a name its meaning in this scope."""
        self.names[name] = binding

    def local(self, name: str) -> Binding | None:
        """Return what a local name means."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.parent
        return None

    def locals(self) -> dict[str, Binding]:
        """Return all local names with what they mean here."""
        return {**(self.parent.locals() if self.parent is not None else {}), **self.names}

    def lookup(self, name: str) -> Binding | None:
        """Return what a name means: a local, a member of the module, or ``None``. Errors: the member's."""
        found = self.local(name)
        return self.module.member(name) if found is None else found
