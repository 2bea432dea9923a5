"""Lines as loops: written out again, they are the lines that they were."""

from __future__ import annotations

import re
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from polyloom.mdh.print.rolled import rolled
from random_tests import tried

_HEAD = re.compile(r" *UNROLLED for \(int64_t (\w+) = 0; \w+ < (\d+); \w+\+\+\)( \{)?")


def written_out(lines: list[str]) -> list[str]:
    """Return lines without loops, in the order in which they are executed."""
    found: list[str] = []
    while lines:
        head = _HEAD.fullmatch(lines[0])
        if head is None:
            found.append(lines.pop(0).strip())
            continue
        indent = len(lines[0]) - len(lines[0].lstrip())
        lines.pop(0)
        body: list[str] = []
        while lines and len(lines[0]) - len(lines[0].lstrip()) > indent:
            body.append(lines.pop(0))
        if head.group(3):
            assert lines.pop(0).strip() == "}"
        for k in range(int(head.group(2))):
            text = [re.sub(rf"\b{head.group(1)}\b(?! =)", str(k), line) for line in body]
            found += written_out(text)
    return found


def numbers_added(line: str) -> str:
    """Return a line whose subscripts are names and one number: ``a[i + 8 * 2 + 1]`` is ``a[i + 17]``."""

    def added(found: re.Match[str]) -> str:
        terms = re.findall(r"([+-]?) ?((?:\d+ \* )*\w+)", found.group(1))
        number = sum(eval(f"{sign}{t}") for sign, t in terms if re.fullmatch(r"[\d* ]+", t))
        names = [f"{sign}{t}" for sign, t in terms if not re.fullmatch(r"[\d* ]+", t)]
        return f"[{names} {number}]"

    return re.sub(r"\[([^\[\]]*)\]", added, line)


def same(lines: list[str]) -> bool:
    again = written_out(rolled(lines))
    return [*map(numbers_added, again)] == [numbers_added(line.strip()) for line in lines]


def test_a_tile_is_two_loops() -> None:
    lines = [
        f"    total[{r}][{c}] = total[{r}][{c}] + x[i + {r}] * load(&y[k][j + {8 * c}]);"
        for r, c in product(range(3), range(4))
    ]
    assert rolled(lines) == [
        "    UNROLLED for (int64_t at = 0; at < 3; at++)",
        "        UNROLLED for (int64_t at_1 = 0; at_1 < 4; at_1++)",
        "            total[at][at_1] = total[at][at_1] + x[i + at] * load(&y[k][j + 8 * at_1]);",
    ]
    assert same(lines)


def test_a_subscript_without_a_number_is_the_first() -> None:
    lines = ["f(a[i]);", "f(a[i + 1]);", "f(a[i + 2]);", "f(a[i + 4]);"]
    head = "UNROLLED for (int64_t at = 0; at < 3; at++)"
    assert rolled(lines) == [head, "    f(a[i + at]);", "f(a[i + 4]);"]
    assert same(lines)


def test_numbers_may_fall() -> None:
    lines = [f"a[{9 - 3 * k}] = b[n - {2 * k + 1}];" for k in range(4)]
    assert rolled(lines)[1] == "    a[-3 * at + 9] = b[n - 2 * at - 1];"
    assert same(lines)


def test_what_declares_or_branches_stays() -> None:
    for line in ("const int64_t a = b[{}];", "double a[{}];", "if (a[{}]) f();", "for (;;) a[{}] = 1;", "}}"):
        lines = [line.format(k) for k in range(6)]
        assert rolled(lines) == lines


def test_a_subscript_that_chooses_stays() -> None:
    lines = [f"a[{k}] = b[c ? i : j + {k}];" for k in range(4)]
    assert rolled(lines) == lines


LINES = st.sampled_from(["a[{}] = b[i + {}];", "f(&a[n - {}][{}]);", "c = c + a[i][{}];", "d = {};"])


@tried(300)
@given(st.lists(st.tuples(LINES, st.integers(0, 3), st.integers(0, 3)), max_size=8), st.integers(1, 4))
def test_written_out_it_is_the_same(some: list[tuple[str, int, int]], times: int) -> None:
    steps = [(line.format(first + k, step * k + 1)) for k in range(times) for line, first, step in some]
    assert same(steps)


def test_counters_are_as_many_as_there_are_names_for() -> None:
    """Ten loops inside each other are more than that; what is left is written out."""
    places = list(product(range(2), repeat=10))
    lines = [f"f(a{''.join(f'[{k}]' for k in place)}, a long one, {'x' * 80});" for place in places]
    assert len(rolled(lines)) < 40
    assert same(lines)
