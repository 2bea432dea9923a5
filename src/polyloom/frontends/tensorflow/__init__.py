"""TensorFlow models: GraphDefs and SavedModels to graphs, and their operations as statements.

model.pb or a SavedModel -> read (calls inlined, variables as tensors) -> Graph -> lower -> Imported
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from polyloom.files import is_folder
from polyloom.frontends.graph.imported import Imported
from polyloom.frontends.graph.lowering import Sizes, lower
from polyloom.frontends.graph.model import Graph
from polyloom.frontends.protobuf.reading import broken
from polyloom.frontends.tensorflow.dilations import with_dilations
from polyloom.frontends.tensorflow.in_memory import graph_of_function
from polyloom.frontends.tensorflow.read import read_graph_def
from polyloom.frontends.tensorflow.saved_model import is_saved_model, read_saved_model
from polyloom.frontends.tensorflow.table import find_operation


def import_tensorflow(path: Path, sizes: Sizes | None = None, signature: str | None = None) -> Imported:
    """Return a GraphDef (``.pb``) or a SavedModel (a folder) as a tensor program.

    ``sizes``: see ``lower``; ``signature``: of a SavedModel.

    Errors: ``file-...``, ``model-...``; ``Unsupported`` with every node that has no affine form.
    """
    return lower(with_dilations(_read(path, signature)), find_operation, sizes)


def import_function(function: Any, sizes: Sizes | None = None) -> Imported:
    """Return a ``ConcreteFunction`` of a running TensorFlow as a tensor program. Errors: as above."""
    return lower(with_dilations(graph_of_function(function)), find_operation, sizes)


def _read(path: Path, signature: str | None) -> Graph:
    try:
        return read_saved_model(path, signature) if is_folder(path) else read_graph_def(path)
    except UnicodeDecodeError as fault:
        raise broken(f"`{path}`", "a name in it is no text") from fault


__all__ = ["import_function", "import_tensorflow", "is_saved_model"]
