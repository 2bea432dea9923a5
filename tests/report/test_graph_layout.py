"""The drawn task graph: arrows lead to the right, boxes do not lie over each other."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from polyloom.report.html.graph_layout import HEIGHT, WIDTH, draw
from polyloom.wafer.explain.task_links import TaskArrow, TaskLinks, TaskNode


def links(count: int, pairs: set[tuple[int, int]]) -> TaskLinks:
    nodes = tuple(TaskNode(f"n{k}", "compute", f"task {k}") for k in range(count))
    return TaskLinks(nodes, tuple(TaskArrow(f"n{a}", f"n{b}", "x") for a, b in sorted(pairs)))


@st.composite
def graphs(draw: st.DrawFn) -> TaskLinks:
    count = draw(st.integers(1, 12))
    ends = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)).filter(lambda p: p[0] < p[1])
    return links(count, draw(st.sets(ends, max_size=20)) if count > 1 else set())


@given(graphs())
def test_arrows_lead_to_the_right(graph: TaskLinks) -> None:
    drawing = draw(graph)
    places = {placed.node.name: placed for placed in drawing.nodes}
    assert len(places) == len(graph.nodes)
    assert all(places[a.origin].x < places[a.target].x for a in graph.arrows)
    for p, q in combinations(drawing.nodes, 2):
        assert abs(p.x - q.x) >= WIDTH or abs(p.y - q.y) >= HEIGHT
    for p in drawing.nodes:
        assert 0 <= p.x <= drawing.width - WIDTH and 0 <= p.y <= drawing.height - HEIGHT


def test_a_circle_does_not_matter() -> None:
    drawing = draw(links(3, {(0, 1), (1, 2), (2, 1)}))
    assert len(drawing.nodes) == 3 and len(drawing.curves) == 3


def test_nothing_to_draw() -> None:
    assert draw(TaskLinks((), ())).nodes == ()
