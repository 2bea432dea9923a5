"""Where the nodes of a task graph are drawn: in columns, each to the right of its predecessors.

Within a column nodes are ordered by the mean place of their neighbours in the column before, which keeps
crossings few. Source: Sugiyama, Tagawa, Toda 1981 (layered drawing), without its dummy nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from polyloom.wafer.explain.task_links import TaskArrow, TaskLinks, TaskNode

WIDTH, HEIGHT = 150, 34
GAP_X, GAP_Y = 46, 16
MARGIN = 8


@dataclass(frozen=True)
class Placed:
    """A node with its box's upper left corner."""

    node: TaskNode
    x: int
    y: int


@dataclass(frozen=True)
class Curve:
    """An arrow as an SVG path, with where its label stands."""

    arrow: TaskArrow
    path: str
    x: float
    y: float


@dataclass(frozen=True)
class Drawing:
    """A drawn task graph."""

    width: int
    height: int
    nodes: tuple[Placed, ...]
    curves: tuple[Curve, ...]


def draw(links: TaskLinks) -> Drawing:
    """Lay a task graph out from left to right."""
    columns = _columns(links)
    tallest = max((len(column) for column in columns), default=0)
    height = tallest * (HEIGHT + GAP_Y) - GAP_Y + 2 * MARGIN
    placed: dict[str, Placed] = {}
    for k, column in enumerate(columns):
        top = (height - len(column) * (HEIGHT + GAP_Y) + GAP_Y) // 2
        for row, node in enumerate(column):
            x, y = MARGIN + k * (WIDTH + GAP_X), top + row * (HEIGHT + GAP_Y)
            placed[node.name] = Placed(node, x, y)
    width = len(columns) * (WIDTH + GAP_X) - GAP_X + 2 * MARGIN
    curves = tuple(_curve(arrow, placed) for arrow in links.arrows)
    return Drawing(width, height, tuple(placed.values()), curves)


def _columns(links: TaskLinks) -> list[list[TaskNode]]:
    depth = _depths(links)
    columns: list[list[TaskNode]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for node in links.nodes:
        columns[depth[node.name]].append(node)
    before: dict[str, float] = {}
    for column in columns:
        column.sort(key=lambda node: _mean_place(links, node, before))
        before |= {node.name: (row + 0.5) / len(column) for row, node in enumerate(column)}
    return columns


def _depths(links: TaskLinks) -> dict[str, int]:
    """Return each node's column: beside its reader where nothing comes before it."""
    origins: dict[str, list[str]] = {node.name: [] for node in links.nodes}
    targets: dict[str, list[str]] = {node.name: [] for node in links.nodes}
    for arrow in links.arrows:
        origins[arrow.target].append(arrow.origin)
        targets[arrow.origin].append(arrow.target)
    depth: dict[str, int] = {}
    for name in origins:
        _longest(name, origins, depth, ())
    for name in origins:
        if not origins[name] and targets[name]:
            depth[name] = max(0, min(depth[target] for target in targets[name]) - 1)
    return depth


def _longest(
    name: str, origins: Mapping[str, list[str]], depth: dict[str, int], path: tuple[str, ...]
) -> int:
    """The longest way to a node; a way in a circle (state that is carried over) does not count."""
    if name in path:
        return -1
    if name not in depth:
        before = [_longest(origin, origins, depth, (*path, name)) for origin in origins[name]]
        depth[name] = max(before, default=-1) + 1
    return depth[name]


def _mean_place(links: TaskLinks, node: TaskNode, places: Mapping[str, float]) -> float:
    known = [places[a.origin] for a in links.arrows if a.target == node.name and a.origin in places]
    return sum(known) / len(known) if known else 0.5


def _curve(arrow: TaskArrow, placed: Mapping[str, Placed]) -> Curve:
    origin, target = placed[arrow.origin], placed[arrow.target]
    x1, y1 = origin.x + WIDTH, origin.y + HEIGHT / 2
    x2, y2 = target.x - 5, target.y + HEIGHT / 2
    bend = max(GAP_X / 2, (x2 - x1) / 2)
    path = f"M{x1} {y1:g} C{x1 + bend:g} {y1:g} {x2 - bend:g} {y2:g} {x2} {y2:g}"
    return Curve(arrow, path, (x1 + x2) / 2, (y1 + y2) / 2)
