"""A function of a running TensorFlow: its graph, and what it has captured with its values.

The only module that meets TensorFlow's objects; it imports TensorFlow only to trace a function.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from importlib import import_module
from itertools import chain, count
from typing import Any

import numpy as np

from polyloom.diagnostics import PolyloomError, error
from polyloom.frontends.graph.model import Graph
from polyloom.frontends.protobuf.reading import parse
from polyloom.frontends.protobuf.tensorflow_schema import tensorflow_messages
from polyloom.frontends.tensorflow.read import Selection, graph_of
from polyloom.frontends.tensorflow.tensors import Elements, as_elements


def graph_of_function(function: Any) -> Graph:
    """Return the graph of a ``ConcreteFunction``.

    Inputs have the names of its arguments. The results of a function that returns a dictionary have its keys,
    others the names of their tensors. Variables and captured tensors have their values; a variable that the
    function changes is a result too (``kernel_new``). Of variables with one name the second has a number.
    """
    name = _name(function)
    data = function.graph.as_graph_def().SerializeToString()
    message = parse(tensorflow_messages()["GraphDef"], data, f"the function `{name}`")
    handles = {id(v.handle): v for v in function.variables}
    values: dict[str, Elements] = {}
    variables, captured = {}, {}
    for outside, inside in function.graph.captures:
        variable = handles.get(id(outside))
        if variable is None:
            captured[_tensor(inside)] = as_elements(np.asarray(outside))
        else:
            variables[_tensor(inside)] = known = _unlike(_tensor(variable), values)
            values[known] = as_elements(np.asarray(variable))
    outputs = dict(zip(_keys(function), map(_tensor, function.outputs), strict=True))
    return graph_of(message, name, Selection({}, outputs, variables, values, captured=captured, changes=True))


def concrete(function: Any, examples: Sequence[Any]) -> Any:
    """Return a ``ConcreteFunction`` of what TensorFlow can call. Errors: ``model-tensorflow``."""
    if hasattr(function, "structured_outputs"):
        return function
    try:
        traced = function if hasattr(function, "get_concrete_function") else _tensorflow().function(function)
        return traced.get_concrete_function(*examples)
    except Exception as fault:  # whatever TensorFlow's tracing of the user's own code raises
        reason = (str(fault).strip().splitlines() or [type(fault).__name__])[0]
        message = "TensorFlow cannot trace the function"
        helps = ["give its arguments, or their types: `polyloom.load(f, tf.TensorSpec((2, 3), tf.float32))`"]
        raise PolyloomError(error("model-tensorflow", message, notes=[reason], helps=helps)) from fault


def _tensorflow() -> Any:
    return import_module("tensorflow")


def _unlike(name: str, others: Collection[str]) -> str:
    """Return a variable's name, or with a number where another variable has it: ``kernel_1``."""
    names = chain([name], (f"{name}_{k}" for k in count(1)))
    return next(n for n in names if n not in others)


def _name(function: Any) -> str:
    """Return what the function is called in Python."""
    name = function.name.decode() if isinstance(function.name, bytes) else str(function.name)
    name = name.removeprefix("__inference_")
    head, _, number = name.rpartition("_")
    return head if head and number.isdigit() else name


def _tensor(tensor: Any) -> str:
    return str(tensor.name).removesuffix(":0")


def _keys(function: Any) -> list[str]:
    """Return a name for each result, in the order of the graph's outputs: dictionaries are sorted."""
    structure = function.structured_outputs
    if isinstance(structure, dict) and len(structure) == len(function.outputs):
        return sorted(structure)
    return [_tensor(t) for t in function.outputs]
