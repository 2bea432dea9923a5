"""Colors of uses of routers: none that meet share one, and no more than are needed."""

from __future__ import annotations

import islpy as isl
from hypothesis import given
from hypothesis import strategies as st

from polyloom.wafer.routing.coloring import Use, color_uses, conflicts_of, greedy_clique


def rectangle(low: tuple[int, int], high: tuple[int, int]) -> isl.Set:
    (x, y), (p, q) = low, high
    return isl.Set(f"{{ PE[x, y] : {x} <= x <= {p} and {y} <= y <= {q} }}")


corners = st.tuples(st.integers(0, 6), st.integers(0, 6))
rectangles = st.builds(
    lambda low, size: rectangle(low, (low[0] + size[0], low[1] + size[1])), corners, corners
)


@given(st.lists(rectangles, max_size=9))
def test_uses_that_meet_have_colors_apart(sets: list[isl.Set]) -> None:
    uses = [Use(str(k), pes) for k, pes in enumerate(sets)]
    colors = color_uses(uses, len(uses))
    assert colors is not None
    for k, others in enumerate(conflicts_of(uses)):
        assert others == {n for n in range(len(uses)) if n != k and not sets[n].is_disjoint(sets[k])}
        assert colors[k] not in {colors[other] for other in others}
    if uses:
        pes, here = greedy_clique(uses)
        assert max(colors) + 1 >= len(here)
        assert all(not pes.is_empty() and pes.is_subset(use.pes) for use in here)


def test_the_search_finds_what_the_first_colouring_misses() -> None:
    """Each of a, b, c meets all but its partner among p, q, r: first-fit takes 3 colors, 2 are enough."""
    cells = [(k, n) for k in range(3) for n in range(3) if k != n]
    left = [cells_of([c for c in cells if c[0] == k]) for k in range(3)]
    right = [cells_of([c for c in cells if c[1] == n]) for n in range(3)]
    uses = [
        Use(str(n), pes) for n, pes in enumerate(s for pair in zip(left, right, strict=True) for s in pair)
    ]
    assert color_uses(uses, 3) == (0, 0, 1, 1, 2, 2)
    found = color_uses(uses, 2)
    assert found is not None
    assert len(set(found)) == 2
    assert color_uses(uses, 1) is None


def cells_of(cells: list[tuple[int, int]]) -> isl.Set:
    result = isl.Set("{ PE[x, y] : false }")
    for x, y in cells:
        result = result.union(rectangle((x, y), (x, y)))
    return result
