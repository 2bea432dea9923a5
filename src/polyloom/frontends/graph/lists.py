"""Lists of tensors whose lengths are known at import: there are none in a program, only their elements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from polyloom.frontends.graph.refusal import Refused
from polyloom.frontends.graph.values import Shape, Value
from polyloom.ir.types import ElementType


@dataclass(frozen=True)
class ValueList:
    """Tensors by position; None: one that nothing has written yet.

    ``type``, ``shape``: of the elements, None where the graph does not say.
    """

    items: tuple[Value | None, ...]
    type: ElementType | None = None
    shape: Shape | None = None

    def __len__(self) -> int:
        return len(self.items)

    def item(self, position: int) -> Value | None:
        """Return an element; None where it is not written. Raises ``Refused`` outside."""
        if not 0 <= position < len(self.items):
            raise Refused(f"element {position} of a list of {len(self.items)}")
        return self.items[position]

    def with_item(self, position: int, value: Value) -> ValueList:
        """Return the list with another element. Raises ``Refused`` outside."""
        self.item(position)
        return self.of([*self.items[:position], value, *self.items[position + 1 :]])

    def of(self, items: Sequence[Value | None]) -> ValueList:
        """Return a list of other elements."""
        return replace(self, items=tuple(items))

    def written(self) -> list[Value]:
        """Return the elements that are written."""
        return [v for v in self.items if v is not None]


Anything = Value | ValueList
