"""Programs that were read, evaluated: a model's tensors have the names of its file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from polyloom.frontends.graph.imported import Imported
from polyloom.ir.evaluation.inputs import elements_of
from polyloom.ir.evaluation.programs import evaluate
from polyloom.ir.evaluation.random_inputs import Scale, random_inputs, random_reals
from polyloom.ir.rounding.programs import error_bound
from polyloom.ir.verification.comparison import Difference, first_difference
from polyloom.sources import Loaded

NDArray = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Trace:
    """Inputs and all that statements compute, in the order of the program or model.

    ``roles``: of each, ``input``, ``output`` or ``internal``. ``difference``: the first tensor that is not as
    something else computes it; None where none was found, or nothing was compared.
    """

    tensors: dict[str, NDArray]
    roles: dict[str, str]
    difference: Difference | None


def model_inputs(model: Imported, given: Mapping[str, NDArray] | None) -> dict[str, NDArray]:
    """Return an array for every input of the program; None: small integers, but for the model's weights."""
    if given is not None:
        return model.inputs(given)
    made_up = random_inputs(model.program)
    return model.inputs({name: made_up[name] for name in model.arguments})


def elements_of_loaded(loaded: Loaded) -> int:
    """Return how many elements a file of its tensors may hold at most.

    Of a model these are the elements of all tensors: weights may be given, too.
    """
    values = () if loaded.model is None else loaded.model.values.values()
    return sum(value.size for value in values) + (elements_of(loaded.program) or 0)


def model_reals(model: Imported, scale: Scale, seed: int) -> dict[str, NDArray] | None:
    """Return reals of mixed scale as inputs of a model, with its weights; None where none are floats."""
    made_up = random_reals(model.program, scale, seed)
    if made_up is None or not any(made_up[name].dtype.kind == "f" for name in model.arguments):
        return None
    return model.inputs({name: made_up[name] for name in model.arguments})


def trace(
    loaded: Loaded, given: Mapping[str, NDArray] | None = None, wanted: Mapping[str, NDArray] | None = None
) -> Trace:
    """Evaluate a program and return every tensor of it.

    ``given``: an array for each input; None: small integers. ``wanted``: tensors as something else computes
    them; the first that differs by more than the error bound is the ``difference``.

    Errors: ``input-...``, ``compare-...``.
    """
    program, model = loaded.program, loaded.model
    if model is None:
        arrays = dict(random_inputs(program) if given is None else given)
        inputs, outputs = list(program.inputs), set(program.outputs)
    else:
        arrays = model_inputs(model, given)
        inputs, outputs = list(model.arguments), set(model.results)
    named = dict if model is None else model.tensors
    written = evaluate(program, arrays)
    found = named({**{name: arrays[name] for name in inputs}, **written})
    taken = {name if model is None else model.names.get(name, name) for name in inputs}
    tensors = {name: found[name] for name in sorted(found, key=lambda name: name not in taken)}
    roles = {n: "input" if n in taken else "output" if n in outputs else "internal" for n in tensors}
    if wanted is None:
        return Trace(tensors, roles, None)
    bounds = {n: b.astype(float) for n, b in named(error_bound(program, arrays)).items() if n in tensors}
    return Trace(tensors, roles, first_difference(tensors, bounds, wanted))
