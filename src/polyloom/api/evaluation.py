"""Tensor programs computed by the NumPy evaluator, from Python."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy.typing as npt

from polyloom.api.reading import load_tensor_program
from polyloom.ir.evaluation.programs import evaluate as evaluated
from polyloom.ir.evaluation.random_inputs import random_inputs as made_up_integers
from polyloom.ir.program import Program
from polyloom.models import model_inputs
from polyloom.sources import Given


def evaluate(program: Program | Given, inputs: Mapping[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
    """Return every tensor that a statement writes, by name, as NumPy computes it.

    ``inputs``: one array per input, of its shape and element type; of a model, its weights need not be given.

    Errors: ``input-missing``, ``input-unknown``, ``input-shape``, ``input-type``.
    """
    loaded = load_tensor_program(program)
    return evaluated(loaded.program, inputs if loaded.model is None else model_inputs(loaded.model, inputs))


def random_inputs(
    program: Program | Given, seed: int = 0, density: Mapping[str, float] | float = 1.0
) -> dict[str, npt.NDArray[Any]]:
    """Return one array per input: small integers, never 0 but where ``density`` asks for it.

    ``density``: the fraction of nonzero elements, of all inputs or by name. Inputs under a root or logarithm
    are positive. The same seed gives the same arrays.
    """
    return made_up_integers(load_tensor_program(program).program, seed, density)


def trace_tensors(
    program: Program | Given, inputs: Mapping[str, npt.NDArray[Any]] | None = None
) -> dict[str, npt.NDArray[Any]]:
    """Return every tensor of a program by name: its inputs, then all that statements write, in their order.

    ``inputs``: an array of the tensor's shape and type for every input; None: small integers from a fixed
    seed. Results have the shapes and types of the tensors.

    Errors: ``input-missing``, ``input-unknown``, ``input-shape``, ``input-type``. Not in the papers.
    """
    loaded = load_tensor_program(program)
    program = loaded.program
    if loaded.model is not None:
        inputs = model_inputs(loaded.model, inputs)
    given = random_inputs(program) if inputs is None else inputs
    written = evaluated(program, given)
    return {**{name: given[name] for name in program.inputs}, **written}
