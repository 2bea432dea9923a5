"""TensorFlow models: GraphDefs and SavedModels to graphs, and their operations as statements.

model.pb or a SavedModel -> read (calls inlined, variables as tensors) -> Graph -> lower -> Imported
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from polyloom.files import is_folder
from polyloom.frontends.graph.imported import Imported
from polyloom.frontends.graph.lowering import Sizes, lower
from polyloom.frontends.graph.model import Graph
from polyloom.frontends.protobuf.reading import broken
from polyloom.frontends.tensorflow.in_memory import concrete, graph_of_function
from polyloom.frontends.tensorflow.read import graph_of_def, read_graph_def
from polyloom.frontends.tensorflow.saved_model import is_saved_model, read_saved_model
from polyloom.frontends.tensorflow.table import find_operation


def import_tensorflow(
    path: Path | bytes, sizes: Sizes | None = None, signature: str | None = None
) -> Imported:
    """Return a GraphDef (``.pb``, or its bytes) or a SavedModel (a folder) as a tensor program.

    ``sizes``: see ``lower``; ``signature``: of a SavedModel.

    Errors: ``file-...``, ``model-...``; ``Unsupported`` with every node that has no affine form.
    """
    return lower(_read(path, signature), find_operation, sizes)


def import_function(function: Any, sizes: Sizes | None = None, examples: Sequence[Any] = ()) -> Imported:
    """Return a function of a running TensorFlow as a tensor program.

    ``examples``: tensors, or their shapes and types, of the arguments of one that is no ``ConcreteFunction``.
    Errors: ``model-tensorflow`` where it cannot be traced with them; as above.
    """
    return lower(graph_of_function(concrete(function, examples)), find_operation, sizes)


def _read(path: Path | bytes, signature: str | None) -> Graph:
    try:
        if isinstance(path, bytes):
            return graph_of_def(path, "model", "the model")
        return read_saved_model(path, signature) if is_folder(path) else read_graph_def(path)
    except UnicodeDecodeError as fault:
        what = "the model" if isinstance(path, bytes) else f"`{path}`"
        raise broken(what, "a name in it is no text") from fault


__all__ = ["import_function", "import_tensorflow", "is_saved_model"]
