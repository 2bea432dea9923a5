"""Models evaluated: inputs made up where none are given, every tensor by the name that it has in its file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from polyloom.frontends.graph.imported import Imported
from polyloom.ir.evaluation.inputs import elements_of
from polyloom.ir.evaluation.programs import evaluate
from polyloom.ir.evaluation.random_inputs import Scale, random_inputs, random_reals
from polyloom.ir.rounding.program_bounds import error_bound
from polyloom.ir.verification.comparison import Difference, first_beyond

NDArray = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class TracedModel:
    """Inputs and all that nodes compute, in the order of the model; what differs from what was given."""

    tensors: dict[str, NDArray]
    difference: Difference | None


def model_inputs(model: Imported, given: Mapping[str, NDArray] | None) -> dict[str, NDArray]:
    """Return an array for every input of the program; None: small integers, but for the model's weights."""
    if given is not None:
        return model.inputs(given)
    made_up = random_inputs(model.program)
    return model.inputs({name: made_up[name] for name in model.arguments})


def elements_of_model(model: Imported) -> int:
    """Return how many elements the tensors of a model have together, by which files of them are bounded."""
    return sum(value.size for value in model.values.values()) + elements_of(model.program)


def model_reals(model: Imported, scale: Scale, seed: int) -> dict[str, NDArray] | None:
    """Return reals of mixed scale as inputs of a model, with its weights; None where none are floats."""
    made_up = random_reals(model.program, scale, seed)
    if made_up is None or not any(made_up[name].dtype.kind == "f" for name in model.arguments):
        return None
    return model.inputs({name: made_up[name] for name in model.arguments})


def trace_model(
    model: Imported, given: Mapping[str, NDArray] | None = None, wanted: Mapping[str, NDArray] | None = None
) -> TracedModel:
    """Evaluate a model and return every tensor of it.

    ``wanted``: tensors by their names in the model, as something else computes them; the first that is not as
    the evaluator has it, beyond the error bound, is the ``difference``.

    Errors: ``input-...``, ``compare-...``.
    """
    arrays = model_inputs(model, given)
    written = evaluate(model.program, arrays)
    inputs = {name: arrays[name] for name in model.arguments}
    tensors = model.tensors({**inputs, **written})
    if wanted is None:
        return TracedModel(tensors, None)
    bounds = model.tensors(error_bound(model.program, arrays))
    floats = {name: bound.astype(float) for name, bound in bounds.items() if name in tensors}
    return TracedModel(tensors, first_beyond(tensors, floats, wanted))
