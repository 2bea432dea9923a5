"""PyTorch programs: what ``torch.export`` writes, as graphs, and ATen's operations as statements.

program.pt2 -> read_archive (JSON and raw tensors, no PyTorch) -> Graph -> lower, with OPERATIONS -> Imported
a running PyTorch -> torch.export.export, save into memory -> the same
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from polyloom.files import read_regular
from polyloom.frontends.graph.imported import Imported
from polyloom.frontends.graph.lowering import Sizes, lower
from polyloom.frontends.graph.model import Graph
from polyloom.frontends.torch.in_memory import archive_of
from polyloom.frontends.torch.read import graph_of_bytes
from polyloom.frontends.torch.table import OPERATIONS, find_operation
from polyloom.frontends.torch.traced import graph_of_traced

_HELPS = (
    "save `program.run_decompositions()`: composed operations, and those that write into tensors (`add_`), "
    "become simple ones",
)


def import_torch(path: Path | bytes, sizes: Sizes | None = None) -> Imported:
    """Return an archive of ``torch.export.save``, or its bytes, as a tensor program; PyTorch is not needed.

    ``sizes``: see ``lower``.

    Errors: ``file-...``, ``model-...``; ``Unsupported`` with every node that has no affine form.
    """
    if isinstance(path, bytes):
        graph = graph_of_bytes(path, "model", "the program")
    else:
        graph = graph_of_bytes(read_regular(path), path.stem, f"`{path}`")
    return lower(graph, find_operation, sizes, _HELPS)


def import_program(
    program: Any,
    arguments: Sequence[Any] = (),
    keywords: Mapping[str, Any] | None = None,
    sizes: Sizes | None = None,
) -> Imported:
    """Return an ``ExportedProgram`` or a module of a running PyTorch as a tensor program.

    ``arguments``, ``keywords``: examples with which a module is exported. Errors: as above.
    """
    data, name = archive_of(program, tuple(arguments), dict(keywords or {}), tuple(OPERATIONS))
    return lower(graph_of_bytes(data, name, f"the program `{name}`"), find_operation, sizes)


def import_graph(graph: Graph) -> Imported:
    """Return a traced graph of ATen's operations as a tensor program.

    Errors: ``Unsupported`` with every node that has no affine form.
    """
    return lower(graph, find_operation)


__all__ = ["graph_of_traced", "import_graph", "import_program", "import_torch"]
