"""The type of a small function: its elements, how many of them, and how a language says them."""

from __future__ import annotations

from dataclasses import dataclass

from polyloom.ir.types import ElementType
from polyloom.ir.value_ranges import AS_UNSIGNED
from polyloom.mdh.print.dialect import SIGNED, Dialect, value_bytes


@dataclass(frozen=True)
class Kind:
    """A type of a helper."""

    dialect: Dialect
    element: ElementType
    width: int

    def __str__(self) -> str:
        return self.dialect.type(self.element, self.width)

    @property
    def scalar(self) -> Kind:
        """One element."""
        return Kind(self.dialect, self.element, 1)

    @property
    def signed(self) -> bool:
        """Whether it is of integers with a sign."""
        return self.element in AS_UNSIGNED

    @property
    def unsigned(self) -> Kind:
        """The same without a sign."""
        return Kind(self.dialect, AS_UNSIGNED.get(self.element, self.element), self.width)

    @property
    def bits(self) -> int:
        """Of an element."""
        return 8 * self.element.size

    @property
    def mask(self) -> Kind:
        """What a comparison gives, where the language has masks."""
        return Kind(self.dialect, SIGNED[value_bytes(self.element)], self.width)

    @property
    def wide(self) -> str:
        """The unsigned scalar that C computes with: no ``short``, which would become ``int``."""
        return self.dialect.type(ElementType.UINT64 if self.bits == 64 else ElementType.UINT32)

    def cast(self, value: str) -> str:
        """Return a number in this type, in all elements."""
        if self.width == 1 or self.dialect.own_functions:
            return f"({self})({value})"
        return self.dialect.all_of(value, self.element, self.width)

    def reinterpreted(self, text: str) -> str:
        """Return the same bits of a vector, or a converted scalar."""
        if self.width == 1:
            return f"({self}){text}"
        return self.dialect.reinterpret.format(kind=self, value=text)

    def chosen(self, condition: str, then: str, otherwise: str) -> str:
        """Return a choice between two values, element by element."""
        if self.width > 1 and not self.dialect.masks_are_truths:
            select = self.dialect.helper("select", self.element, self.width)
            return f"{select}({condition}, {then}, {otherwise})"
        return f"{condition} ? {then} : {otherwise}"


def one_line(name: str, kind: Kind, parameters: str, value: str) -> str:
    """Return a function of parameters of one type that only returns a value."""
    typed = ", ".join(f"{kind} {p}" for p in parameters.split())
    return f"{kind.dialect.function_head} {kind} {name}({typed}) {{ return {value}; }}\n"
