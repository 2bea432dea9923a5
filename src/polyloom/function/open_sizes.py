"""A model whose sizes are open: a function for each of them, made when arrays of these shapes come first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from polyloom.diagnostics import PolyloomError, error
from polyloom.frontends.graph.model import GraphTensor
from polyloom.function.arguments import Argument, Taken
from polyloom.function.functions import Function
from polyloom.function.pages import function_page
from polyloom.function.saving import Saved
from polyloom.ir.scalar_functions.narrow_formats import FORMATS
from polyloom.polyhedra.effort import limited
from polyloom.sources import Given, Loaded, LoadedHost, Reading

Shapes = Mapping[str, tuple[int, ...]]
Key = tuple[tuple[str, tuple[int, ...]], ...]


class OpenFunction(Function):
    """A model that leaves sizes open. Each call takes those of its arrays; ``at(batch=8)`` states them.

    What is made for some sizes is kept. The inputs' open extents are their names.
    """

    def __init__(
        self,
        source: Given,
        reading: Reading,
        name: str,
        inputs: dict[str, Argument],
        outputs: dict[str, Argument],
        fault: PolyloomError,
        sized: Callable[[Shapes, Mapping[str, object]], Function],
    ) -> None:
        """``fault``: what is open; ``sized``: makes the function for shapes of inputs, or sizes by name."""
        self._source, self._reading, self._values = source, reading, {}
        self._fault, self.sized = fault, sized
        self._known: dict[Key, Function] = {}
        self.__name__, self.inputs, self.outputs = name, inputs, outputs

    def add(self, shapes: Shapes, function: Function) -> None:
        """Keep a function for the shapes of inputs."""
        self._known[_key(shapes)] = function

    @property
    def loaded(self) -> Loaded | LoadedHost:  # type: ignore[override]
        """There is no one program. Errors: ``model-shape``, with what is open."""
        raise self._fault

    @property
    def _ends(self) -> None:
        return None

    def __repr__(self) -> str:
        takes = ", ".join(f"{a.name}: {a!r}" for a in self.inputs.values())
        return f"<{self.__name__}({takes}), {len(self._known)} sizes made>"

    def _repr_html_(self) -> str:
        about = f"of open sizes, of which {len(self._known)} are made"
        return function_page(self.__name__, self.inputs, self.outputs, about)

    @limited("the program")
    def at(self, **sizes: object) -> Function:
        """Return the function for sizes by name: ``at(batch=8)``, ``at(image="1x3x224x224")``.

        Errors: ``model-size``, ``model-shape``; those of ``load``.
        """
        found = self.sized({}, sizes)
        shapes = {name: _numbers(found.inputs[name]) for name in self.inputs if name in found.inputs}
        return self._known.setdefault(_key(shapes), found)

    def for_arrays(self, arrays: Mapping[str, Any]) -> Function:
        """Return the function for the shapes of arrays. Errors: ``model-shape``; those of ``load``."""
        shapes = {name: tuple(np.shape(a)) for name, a in arrays.items() if name in self.inputs}
        if _key(shapes) not in self._known:
            self._known[_key(shapes)] = self._made(shapes)
        return self._known[_key(shapes)]

    @limited("the program")
    def _made(self, shapes: Shapes) -> Function:
        return self.sized(shapes, {})

    def _results(self, used: Taken) -> dict[str, Any]:
        function = self.for_arrays(used.arrays)
        found = function._results(used)
        self._remember(function._again)
        return found

    def run(self, *arrays: Any, check: bool = False, **named: Any) -> Any:
        """Run once, as ``Function.run``; the arrays must be given, for they say the sizes."""
        given = self._given(arrays, named)
        return self.for_arrays(given).run(check=check, **given)

    def _saved(self, sizes: Sequence[Mapping[str, int]]) -> Saved:
        for values in sizes:
            self.at(**values)
        if not self._known:
            helps = ["call it once, or give sizes: `save(path, {'batch': 8})`"]
            raise PolyloomError(
                error("save-sizes", "no sizes are known for which it is to be built", helps=helps)
            )
        variants = []
        for key, function in self._known.items():
            (variant,) = function._saved(()).variants
            variant.shapes = dict(key)
            variants.append(variant)
        return Saved(
            self.__name__, self._source, self._reading, {}, variants, dict(self.inputs), dict(self.outputs)
        )


def _numbers(argument: Argument) -> tuple[int, ...]:
    return tuple(n for n in argument.shape if isinstance(n, int))


def _key(shapes: Shapes) -> Key:
    return tuple(sorted(shapes.items()))


def argument_of(tensor: GraphTensor) -> Argument:
    """Return a tensor as a graph declares it; an extent without a name is ``?``."""
    shape = tuple(n if isinstance(n, int) else n or "?" for n in tensor.shape or ())
    wide = tensor.type.value if tensor.type else "unknown"
    own = tensor.other_type if tensor.other_type in FORMATS else wide
    return Argument(tensor.name, own, shape)
