"""TensorFlow models: GraphDefs and SavedModels to graphs, and their operations as statements.

model.pb or a SavedModel -> read (calls inlined, variables as tensors) -> Graph -> lower -> Imported
"""

from __future__ import annotations

from pathlib import Path

from polyloom.frontends.graph.imported import Imported
from polyloom.frontends.graph.lowering import Sizes, lower
from polyloom.frontends.graph.model import Graph
from polyloom.frontends.protobuf.reading import broken
from polyloom.frontends.tensorflow.read import read_graph_def
from polyloom.frontends.tensorflow.saved_model import is_saved_model, read_saved_model
from polyloom.frontends.tensorflow.table import find_operation


def import_tensorflow(path: Path, sizes: Sizes | None = None, signature: str | None = None) -> Imported:
    """Return a GraphDef (``.pb``) or a SavedModel (a folder) as a tensor program.

    ``sizes``: see ``lower``; ``signature``: of a SavedModel.

    Errors: ``file-...``, ``model-...``; ``Unsupported`` with every node that has no affine form.
    """
    return lower(_read(path, signature), find_operation, sizes)


def _read(path: Path, signature: str | None) -> Graph:
    try:
        return read_saved_model(path, signature) if path.is_dir() else read_graph_def(path)
    except UnicodeDecodeError as fault:
        raise broken(f"`{path}`", "a name in it is no text") from fault


__all__ = ["import_tensorflow", "is_saved_model"]
