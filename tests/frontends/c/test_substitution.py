"""Values that stand in the place of integers: constants, rows of flat arrays, induction variables, memory."""

from __future__ import annotations

import islpy as isl
import pytest

from polyloom.diagnostics import PolyloomError, Source
from polyloom.frontends.c import read_c
from polyloom.scop.model import Scop

SAME = "for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) y[i * m + j] = x[i * m + j];"
OVER_I, OVER_J = "for (int i = 0; i < n; i++)", "for (int j = 0; j < m; j++)"
BOTH = f"{OVER_I} {OVER_J}"
AS_FLAT = {
    "row": f"{OVER_I} {{ int r = i * m; {OVER_J} y[r + j] = x[j + r]; }}",
    "element": f"{BOTH} {{ k = i * m + j; y[k] = x[k]; }}",
    "in steps": f"{OVER_I} {{ k = i; k *= m; {OVER_J} y[k + j] = x[k + j]; }}",
    "counted": f"k = -1; {BOTH} {{ k++; y[k] = x[k]; }}",
    "counted after": f"k = 0; {BOTH} {{ y[k] = x[k]; k += 1; }}",
    "rows counted": f"k = 0; {OVER_I} {{ {OVER_J} y[k + j] = x[k + j]; k += m; }}",
    "from elsewhere": f"{BOTH} {{ y[z] = x[z]; z = z + 1; }}",
    "two": f"k = 0; l = 0; {BOTH} {{ y[k] = x[l]; k++; l++; }}",
    "pointers": f"{BOTH} py[i * m + j * one] = px[i * m + j];",
}


def read(body: str, after: str = "") -> Scop:
    text = "void f(int n, int m, float x[n * m], float y[n * m]) { int k, l, z = 0, one = 1; "
    text += "float *px = x, *py = y;"
    (scop,) = read_c(Source("f.c", f"{text}\n#pragma scop\n{body}\n#pragma endscop\n{after}\n}}\n"))
    return scop


@pytest.mark.parametrize("name", AS_FLAT)
def test_the_same_program_as_with_plain_subscripts(name: str) -> None:
    wanted, found = read(SAME), read(AS_FLAT[name])
    assert [len(a.shape) for a in found.arrays] == [len(a.shape) for a in wanted.arrays] == [2, 2]
    (a,), (b,) = wanted.statements, found.statements
    assert a.target.relation.is_equal(b.target.relation.set_tuple_name(isl.dim_type.in_, a.name))
    assert a.reads[0].relation.is_equal(b.reads[0].relation.set_tuple_name(isl.dim_type.in_, a.name))


KEPT = {
    "read after": ("k = 0; for (int i = 0; i < n; i++) { k++; y[k] = 0; }", "y[k] = 1;"),
    "its address": ("k = 0; for (int i = 0; i < n; i++) { k++; y[k] = 0; }", "int *p = &k; y[*p] = 1;"),
}


@pytest.mark.parametrize("name", KEPT)
def test_what_is_read_after_the_part_is_still_stored(name: str) -> None:
    assert "k" in [s.target.array for s in read(*KEPT[name]).statements]


NO_INDUCTION = {
    "on data": "if (x[i] > 0) k++;",
    "on some iterations": "if (i % 2) k++;",
    "by data": "k += (int)x[i];",
    "by the iterator": "k += i;",
    "by what it is": "k += k;",
    "set anew": "k++; k = (int)x[i];",
    "a triangle": "for (int j = 0; j < i; j++) k++;",
    "left out": "if (i == 2) continue; k++;",
    "cut short": "for (int j = 0; j < 4; j++) { if (j == i) break; k++; }",
}


@pytest.mark.parametrize("name", NO_INDUCTION)
def test_what_does_not_grow_evenly_is_read_from_memory(name: str) -> None:
    scop = read(f"k = 0; for (int i = 0; i < n; i++) {{ y[k] = 0; {NO_INDUCTION[name]} }}", "y[k] = 1;")
    written = next(s for s in scop.statements if s.target.array == "y")
    assert "k" in [access.array for access in written.reads]


STAYING = {
    "a member": ("p->n", "p[0].n"),
    "a member of a member": ("p->in.k", "p[0].in.k"),
    "by value": ("s.n", "s.n"),
    "an element": ("g[1]", "g[1]"),
    "a pointer": ("*q", "q[0]"),
    "through a pointer in memory": ("p->next->n", "p[0].next[0].n"),
}
HEAD = """
struct part { int n; double *d; struct { int k; } in; struct part *next; };
int g[3];
void f(struct part *p, struct part s, int *q, double *x, int *y)
"""


@pytest.mark.parametrize("name", STAYING)
@pytest.mark.parametrize(
    "loop", ["for (int i = 0; i < {}; i++) x[i] = 1;", "for (int i = {}; i < 9; i++) x[i] = 1;"]
)
def test_bounds_in_memory_are_parameters(name: str, loop: str) -> None:
    text, path = STAYING[name]
    (scop,) = read_c(Source("f.c", f"{HEAD}{{ {loop.format(text)} x[1] += {text}; }}"))
    assert [p.text for p in scop.parameters] == [path]
    assert [a.name for a in scop.arrays] == ["x"]


def test_a_pointer_in_memory_is_an_array() -> None:
    (scop,) = read_c(Source("f.c", f"{HEAD}{{ for (int i = 0; i < p->n; i++) p->d[i] = p->next->d[i]; }}"))
    assert {a.variable for a in scop.arrays} == {"p[0].d", "p[0].next[0].d"}


CHANGED = {
    "the member": "for (int i = 0; i < p->n; i++) { p->n = 3; x[i] = 1; }",
    "the element": "for (int i = 0; i < q[0]; i++) q[i] = 1;",
    "before": "g[1] = y[2]; for (int i = 0; i < g[1]; i++) x[i] = 1;",
    "data as well": "for (int i = 0; i < q[0]; i++) x[i] = q[i];",
    "the pointer": "p->next = 0; for (int i = 0; i < p->next->n; i++) x[i] = 1;",
    "not constant": "for (int j = 0; j < 3; j++) for (int i = 0; i < g[j]; i++) x[i] = 1;",
}


@pytest.mark.parametrize("name", CHANGED)
def test_bounds_that_change_are_refused(name: str) -> None:
    with pytest.raises(PolyloomError) as caught:
        read_c(Source("f.c", f"{HEAD}{{ {CHANGED[name]} }}"))
    assert all(d.span is not None and d.helps for d in caught.value.diagnostics)


def test_members_of_a_union_without_a_name_share_their_memory() -> None:
    text = "struct s { union { int a; float b; }; }; void f(struct s *p) { p->a = 1; p->b = p->a; }"
    with pytest.raises(PolyloomError):
        read_c(Source("f.c", text))


def test_constants_only_where_the_part_runs_once_after_them() -> None:
    inside = "\n#pragma scop\n  for (int i = 0; i < 9; i++) { k++; x[k] = 1; }\n#pragma endscop\n"
    for text, reads in (
        (f"int k = 0; {inside}", False),
        (f"int k = 0; while (x[0] > 0) {{ {inside} }}", True),
        (f"while (x[0] > 0) {{ int k = 0; {inside} }}", False),
        (f"static int k = 0; {inside}", True),
        (f"int k = 0; k = (int)x[1]; {inside}", True),
        (f"int k = 0; again: ; {inside} if (x[3] > 1) goto again;", True),
    ):
        (scop,) = read_c(Source("f.c", f"void f(float *x) {{ {text} }}"))
        assert any(a.array == "k" for s in scop.statements for a in s.reads) == reads, text
