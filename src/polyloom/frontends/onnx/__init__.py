"""ONNX models: ``ModelProto`` to a graph, and its operations as statements. Opsets 7 and later.

model.onnx -> read_model -> Graph (functions of the file inlined) -> lower, with OPERATIONS -> Imported
"""

from __future__ import annotations

from pathlib import Path

from polyloom.frontends.graph.imported import Imported
from polyloom.frontends.graph.lowering import Sizes, lower
from polyloom.frontends.onnx.read import read_graph
from polyloom.frontends.onnx.table import find_operation


def import_onnx(path: Path | bytes, sizes: Sizes | None = None) -> Imported:
    """Return an ONNX file, or the bytes of one without external data, as a tensor program.

    ``sizes``: see ``lower``. Errors: ``file-...``, ``model-...``; ``Unsupported`` with every node that has no
    affine form.
    """
    return lower(read_graph(path), find_operation, sizes)


__all__ = ["import_onnx"]
