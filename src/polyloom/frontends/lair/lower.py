"""LAIR to the IR: choose a node or graph, give its parameters values, lower it.

parse -> choose -> bind -> lower (nodes.py, graphs.py) -> verify
"""

from __future__ import annotations

from collections.abc import Mapping

from polyloom.frontends.lair.lowering.bindings import from_defines
from polyloom.frontends.lair.lowering.faults import Faults, fail
from polyloom.frontends.lair.lowering.graphs import Callers, lower_item
from polyloom.frontends.lair.lowering.names import check_new, suggestion
from polyloom.frontends.lair.lowering.scope import check_names
from polyloom.frontends.lair.syntax.tree import Graph, Module, Name, Node
from polyloom.ir.program import Program


def lower(module: Module, node: str | None = None, defines: Mapping[str, str] | None = None) -> Program:
    """Return the program of a node or graph of a file, fully specialized.

    ``node``: its name; None for the last graph of the file, else the only node. ``defines``: size and
    type parameters as text (``{"M": "32", "T": "float32"}``).

    Errors: a ``PolyloomError`` with every error found; the codes begin with ``lair-``.
    Source: dtg_codegen, Sec. 4.1.1.
    """
    items = _items(module)
    item = choose(module, node)
    check_names(item)
    return lower_item(item, from_defines(item, defines or {}), Callers(items))


def _items(module: Module) -> dict[str, Node | Graph]:
    faults = Faults()
    items: dict[str, Node | Graph] = {}
    for item in module.items:
        with faults.collect():
            check_new([item.name])
            _check_duplicate(item.name, items)
        items.setdefault(item.name.text, item)
    faults.raise_any()
    return items


def _check_duplicate(name: Name, items: Mapping[str, Node | Graph]) -> None:
    if name.text in items:
        fail(
            "lair-duplicate-node",
            f"there are two nodes or graphs `{name.text}`",
            name.span,
            label="defined again",
            notes=[f"first at {items[name.text].name.span}"],
            help="rename one of them",
        )


def choose(module: Module, node: str | None = None) -> Node | Graph:
    """Return the node or graph called ``node``; for None the last graph, else the only node.

    Errors: ``lair-unknown-node``, ``lair-which-node``, ``lair-empty``.
    """
    names = [item.name.text for item in module.items]
    if node is not None:
        return _named(module, node, names)
    graphs = [item for item in module.items if isinstance(item, Graph)]
    if graphs:
        return graphs[-1]
    if len(names) == 1:
        return module.items[0]
    if not names:
        _refuse_empty(module)
    return fail(
        "lair-which-node",
        f"{module.source.name} holds several nodes: {', '.join(names)}",
        None,
        help=f"choose one: `--node {names[-1]}`",
    )


def _refuse_empty(module: Module) -> None:
    fail(
        "lair-empty",
        f"{module.source.name} holds no node",
        None,
        help="write `lair name(): float16 x[4] -> float16 y[4] { all (i) in (4) y[i] = x[i] }`",
    )


def _named(module: Module, node: str, names: list[str]) -> Node | Graph:
    if node not in names:
        fail("lair-unknown-node", f"there is no node or graph `{node}`", None, help=suggestion(node, names))
    return module.items[names.index(node)]
