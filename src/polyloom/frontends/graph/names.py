"""Names of tensors and layers as LAIR can write them, each to be found again in the model."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from polyloom.frontends.lair.lowering.names import is_reserved

_OTHER = re.compile(r"[^A-Za-z0-9_]+")
_LONGEST = 120


@dataclass
class Names:
    """Gives every name once. ``originals``: from the name in the program to that in the model."""

    originals: dict[str, str] = field(default_factory=dict)
    _taken: set[str] = field(default_factory=set)
    _last: dict[str, int] = field(default_factory=dict)

    def new(self, wanted: str, original: str | None = None) -> str:
        """Return an identifier like ``wanted`` that is not taken; remember the ``original`` it stands for."""
        name = base = identifier(wanted)
        number = self._last.get(base, 1)
        while name in self._taken:
            number += 1
            name = f"{base}_{number}"
            self._last[base] = number
        self._taken.add(name)
        if original is not None:
            self.originals[name] = original
        return name

    def free(self, name: str) -> None:
        """Give a name back that nothing has any more."""
        self._taken.discard(name)
        self.originals.pop(name, None)


def identifier(text: str) -> str:
    """Return a text as an identifier that LAIR does not reserve: ``/conv1/Relu:0`` is ``conv1_Relu_0``."""
    name = _OTHER.sub("_", text).strip("_")[:_LONGEST] or "t"
    if name[0].isdigit() or is_reserved(name) or _is_iterator(name):
        return f"t_{name}" if name[0].isdigit() else f"{name}_"
    return name


def _is_iterator(name: str) -> bool:
    """Tell whether statements call their iterators so (see ``Builder``)."""
    return re.fullmatch(r"i[0-9]+", name) is not None
