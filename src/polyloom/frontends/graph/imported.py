"""What importing a model gives: a tensor program, the values of its constants, and where everything went."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from textwrap import shorten
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.diagnostics import Diagnostic, PolyloomError, error, visible_name
from polyloom.frontends.graph.values import Value
from polyloom.ir.evaluation.boxes import view
from polyloom.ir.host import View
from polyloom.ir.program import Program
from polyloom.ir.scalar_functions.narrow_formats import as_held, as_narrow
from polyloom.ir.types import ElementType

NDArray = npt.NDArray[Any]


@dataclass(frozen=True)
class Row:
    """What became of a node: its statements, the points of their domains, and its results in words."""

    node: str
    op: str
    statements: tuple[str, ...]
    instances: int
    became: str


@dataclass(frozen=True)
class Ends:
    """What a caller gives to a model and gets, and where these are in its program.

    ``program_inputs``: of the program. ``names``: of these, from the program to the model. ``arguments``:
    those that are no weights, each with its type in the model. ``results``: by their names in the model the
    tensor of the program, the type and the shape. ``unused``: inputs that nothing depends on. ``narrow``:
    by their names in the model the formats of those that programs hold in wider types (``FORMATS``).
    ``order``: all inputs of the model in its order, with those that nothing depends on.
    """

    program_inputs: tuple[str, ...]
    names: Mapping[str, str]
    arguments: Mapping[str, ElementType]
    results: Mapping[str, tuple[str, ElementType, tuple[int, ...]]]
    unused: frozenset[str]
    narrow: Mapping[str, str] = field(default_factory=dict)
    order: tuple[str, ...] = ()

    def inputs(self, given: Mapping[str, NDArray]) -> dict[str, NDArray]:
        """Return what is given by the names of the program. Errors: ``input-unknown``."""
        found = {}
        for name, array in given.items():
            place = self._places.get(name)
            if place is not None:
                stored = _stored(array, self.arguments.get(place))
                form = self.narrow.get(self.names.get(place, place))
                found[place] = stored if form is None else as_held(stored, form)
            elif name not in self.unused:
                raise PolyloomError(self._unknown(name))
        return found

    @cached_property
    def _places(self) -> dict[str, str]:
        """The inputs of the program, by all names that a caller may use: the model's go before its own."""
        originals = {original: name for name, original in self.names.items()}
        own, inputs = {name: name for name in self.program_inputs}, {*self.program_inputs}
        return {name: place for name, place in {**own, **originals}.items() if place in inputs}

    def _unknown(self, name: str) -> Diagnostic:
        known = ", ".join(self.names.get(n, n) for n in self.arguments) or "none"
        return error("input-unknown", f"the model has no input `{name}`", helps=[f"its inputs: {known}"])

    def outputs(self, arrays: Mapping[str, NDArray]) -> dict[str, NDArray]:
        """Return the model's outputs, by their names in it, from those of the program."""
        found = {
            name: _given(arrays[tensor], kind) if prod(shape) else np.empty(shape, kind.dtype)
            for name, (tensor, kind, shape) in self.results.items()
        }
        return {n: as_narrow(a, self.narrow[n]) if n in self.narrow else a for n, a in found.items()}


@dataclass(frozen=True, eq=False)
class Imported:
    """A model as a tensor program.

    - ``constants``: the inputs of the program that the model holds (weights).
    - ``arguments``: the program's other inputs, each with its type in the model (BOOL is uint8 here).
    - ``results``: the model's outputs, by their names in it.
    - ``names``: from names in the program to names in the model.
    - ``values``: every tensor of the model, by its name there, as a view of one in the program.
    - ``rows``: the table of the import.
    - ``unused``: inputs of the model that nothing depends on.
    - ``narrow``: the formats of its inputs and outputs that the program holds in wider types.
    - ``remarks``: what of the model is not in the program, though results do not need it.
    - ``sized``: what may be given a size: the model's inputs, and the dimensions that it leaves open.
    - ``order``: all inputs of the model in its order.
    """

    program: Program
    constants: Mapping[str, NDArray]
    arguments: Mapping[str, ElementType]
    results: Mapping[str, Value]
    names: Mapping[str, str]
    values: Mapping[str, Value]
    rows: tuple[Row, ...]
    unused: frozenset[str]
    sized: tuple[str, ...] = ()
    narrow: Mapping[str, str] = field(default_factory=dict)
    remarks: tuple[Diagnostic, ...] = ()
    order: tuple[str, ...] = ()

    @cached_property
    def ends(self) -> Ends:
        """Its inputs and outputs."""
        inputs = tuple(self.program.inputs)
        results = {name: (v.tensor, v.type, v.shape) for name, v in self.results.items()}
        names = {name: original for name, original in self.names.items() if name in inputs}
        return Ends(inputs, names, self.arguments, results, self.unused, self.narrow, self.order)

    def type_name(self, name: str, kind: ElementType) -> str:
        """Return what the model calls the type of one of its inputs and outputs."""
        return self.narrow.get(name, kind.value)

    def __repr__(self) -> str:
        ends = f"{', '.join(self.arguments)} -> {', '.join(self.results)}"
        weights = sum(array.size for array in self.constants.values())
        return f"<Imported {self.program.name}: {shorten(ends, 120)}; {weights:,} weights>"

    def check_sizes(self, names: Iterable[str]) -> None:
        """Check what sizes are given for. Errors: ``model-size``."""
        check_sizes(self.sized, names)

    def inputs(self, given: Mapping[str, NDArray]) -> dict[str, NDArray]:
        """Return an array for every input of the program: those given, and constants for the others.

        ``given``: by the name in the model or in the program; a weight may be given too. Inputs of the model
        that nothing depends on are ignored. Errors: ``input-unknown``; later those of ``checked_inputs``.
        """
        return {**self.constants, **self.ends.inputs(given)}

    def outputs(self, arrays: Mapping[str, NDArray]) -> dict[str, NDArray]:
        """Return the model's outputs, by their names in it, from those of the program."""
        return self.ends.outputs(arrays)

    def tensors(self, arrays: Mapping[str, NDArray]) -> dict[str, NDArray]:
        """Return every tensor of the model that can be seen in ``arrays``, those of the program."""
        found = {n: v for n, v in self.values.items() if v.tensor in arrays}
        return {name: _seen(arrays[v.tensor], v) for name, v in found.items()}


def _stored(array: NDArray, kind: ElementType | None) -> NDArray:
    given = np.asarray(array)
    return given.astype(np.uint8) if kind is ElementType.BOOL and given.dtype == np.bool_ else given


def _given(array: NDArray, kind: ElementType) -> NDArray:
    return array.astype(np.bool_) if kind is ElementType.BOOL else array


def _seen(array: NDArray, value: Value) -> NDArray:
    if 0 in value.shape:
        return np.empty(value.shape, value.type.dtype)
    access = View(value.tensor, tuple(i.affine(value.rank) for i in value.indices))
    source = np.ascontiguousarray(array).reshape(array.shape)
    seen = view(source, access, tuple(range(n) for n in value.shape))
    return _given(np.array(seen), value.type)


def check_sizes(sized: Sequence[str], names: Iterable[str]) -> None:
    """Check that sizes are given for what has some: open dimensions and inputs. Errors: ``model-size``."""
    unknown = [name for name in names if name not in sized]
    if unknown:
        listed = ", ".join(f"`{visible_name(n)}`" for n in sized) or "none"
        helps = [f"its open dimensions and inputs: {listed}"]
        stated = [f"the model has no open dimension and no input `{visible_name(n)}`" for n in unknown]
        raise PolyloomError(*(error("model-size", text, helps=helps) for text in stated))
