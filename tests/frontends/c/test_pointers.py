"""Pointers that are cast, given to helpers, or led out of a row: the elements that C means, or a refusal."""

from __future__ import annotations

import itertools

import islpy as isl
import numpy as np
import pytest

from compiled_c import call
from polyloom.diagnostics import PolyloomError, Source
from polyloom.frontends.c import read_c
from polyloom.ir.evaluation.programs import evaluate_host
from polyloom.ir.host import Role
from polyloom.scop.transform import host_program

HELPERS = """static double named({to} *p, int i) {{ return p[i]; }}
static void copied(int n, {to} *p, double *y) {{ for (int i = 0; i < n; i++) y[i] = p[i]; }}
static double untyped(void *p, int i) {{ return (({to} *)p)[i]; }}
"""
USES = {
    "cast": "for (int i = 0; i < n; i++) y[i] = (({to} *)x)[i];",
    "cast of an element's address": "for (int i = 0; i < n; i++) y[i] = *({to} *)(void *)&x[i];",
    "local": "{to} *p = ({to} *)x; for (int i = 0; i < n; i++) y[i] = p[i];",
    "const": "const {to} *p = (const {to} *)x; for (int i = 0; i < n; i++) y[i] = *(p + i);",
    "value": "for (int i = 0; i < n; i++) y[i] = named(({to} *)x, i);",
    "argument": "copied(n, ({to} *)x, y);",
    "void argument": "for (int i = 0; i < n; i++) y[i] = untyped(x, i);",
    "target": "for (int i = 0; i < n; i++) (({to} *)x)[i] = y[i];",
}
OTHERS = [
    ("float", "int"),
    ("float", "double"),
    ("int", "unsigned"),
    ("unsigned char", "_Bool"),
    ("long", "char"),
]


def program(use: str, kind: str, to: str) -> str:
    body = USES[use].format(to=to)
    head = f"{HELPERS.format(to=to)}void f(int n, {kind} x[n], double y[n])"
    return f"{head} {{\n#pragma scop\n{body}\n#pragma endscop\n}}\n"


def refused(text: str) -> str:
    with pytest.raises(PolyloomError) as refusal:
        read_c(Source("f.c", text), "f")
    return refusal.value.diagnostics[0].code


@pytest.mark.parametrize(("use", "kinds"), [*itertools.product(USES, OTHERS)])
def test_elements_are_not_seen_as_another_type(use: str, kinds: tuple[str, str]) -> None:
    assert refused(program(use, *kinds)) == "c-cast"


@pytest.mark.parametrize("use", USES)
def test_a_cast_to_the_same_type_changes_nothing(use: str) -> None:
    check(program(use, "double", "double"), {"n": 5})


ROWS = {
    "helper": ("g(a, y);", "static void g(double x[][{m}], double *y) {body}"),
    "pointer": ("g(a, y);", "static void g(double (*x)[{m}], double *y) {body}"),
    "with an extent": ("g({m}, a, y);", "static void g(int m, double x[][m], double *y) {body}"),
    "cast": ("double (*x)[{m}] = (double (*)[{m}])a; {body}", ""),
}
BODY = "{ for (int i = 0; i < 3; i++) for (int j = 0; j < 3; j++) y[3 * i + j] = x[i][j]; }"


def in_rows(use: str, length: int) -> str:
    part, helper = (t.replace("{m}", str(length)).replace("{body}", BODY) for t in ROWS[use])
    return f"{helper}\nvoid f(double a[4][3], double y[12]) {{\n#pragma scop\n{part}\n#pragma endscop\n}}\n"


@pytest.mark.parametrize("use", ROWS)
def test_rows_keep_their_length(use: str) -> None:
    check(in_rows(use, 3), {})
    assert refused(in_rows(use, 4)) == "c-cast"


FLAT = {
    "cast": "double *p = (double *)a;",
    "first element": "double *p = &a[0][0];",
    "row": "double *p = a[0];",
    "second row": "double *p = a[1] - 3;",
}
LEAVING = {
    "forwards": "for (int i = 0; i < 12; i++) p[i] = y[i]; for (int i = 0; i < 4; i++) y[i] = a[i][i % 3];",
    "backwards": """for (int i = 0; i < 4; i++) {
        for (int j = 0; j < 3; j++) a[i][j] = i;
        y[i] = p[11 - 3 * i];
    }""",
    "a step": "for (int i = 0; i < 3; i++) { y[i] = p[4 * i + 1]; a[i + 1][i] = y[i + 3]; }",
}


@pytest.mark.parametrize(("pointer", "body", "outside"), [*itertools.product(FLAT, LEAVING, (False, True))])
def test_a_pointer_that_leaves_its_row_names_elements_of_the_next_ones(
    pointer: str, body: str, outside: bool
) -> None:
    begin = "\n#pragma scop\n"
    before = f"{FLAT[pointer]}{begin}" if outside else f"{begin}{FLAT[pointer]}"
    check(f"void f(double a[4][3], double y[12]) {{ {before}{LEAVING[body]}\n#pragma endscop\n}}\n", {})


def test_an_unknown_row_is_not_left() -> None:
    head = (
        "void f(int n, int m, int k, double a[n][m], double y[n * m]) {\n#pragma scop\ndouble *p = &a[0][0];"
    )
    both = "for (int i = 0; i < n; i++) for (int j = 0; j < m; j++)"
    assert refused(f"{head} {both} y[i * m + j] = p[i * m + j];\n#pragma endscop\n}}\n") == "c-row"
    (scop,) = read_c(Source("f.c", f"{head} for (int j = 0; j < k; j++) y[j] = p[j];\n#pragma endscop\n}}\n"))
    assert any("stay in them" in sentence for sentence in scop.assumed)
    assert scop.context.is_subset(
        isl.Set("[k, m] -> { : k <= m or k <= 0 }").align_params(scop.context.get_space())
    )


def check(text: str, parameters: dict[str, int]) -> None:
    """Compare the function, evaluated, with what the C compiler makes of it."""
    (scop,) = read_c(Source("f.c", text), "f")
    program = host_program(scop).program
    random = np.random.default_rng(len(text))
    shapes = {"a": (4, 3), "x": (5,), "y": (12,) if "a[4][3]" in text else (5,)}
    names = [n for n in ("a", "x", "y") if f" {n}[" in text.split("void f(")[1].split("{")[0]]
    arrays = {name: random.integers(-9, 9, shapes[name]).astype(float) for name in names}
    wanted = call(text, "f", {**parameters, **arrays})
    needed = [b.name for b in program.buffers if b.role in (Role.INPUT, Role.UPDATED)]
    found = evaluate_host(program, parameters, {n: arrays[n].copy() for n in needed})
    for name in found:
        np.testing.assert_array_equal(found[name], wanted[name])


@pytest.mark.parametrize(
    ("target", "is_constant"),
    [("s->y[i]", False), ("s->w[i]", True), ("s->x[i]", True), ("by.y[i]", False), ("by.w[i]", True)],
)
def test_what_a_constant_structure_points_to_may_be_written(target: str, is_constant: bool) -> None:
    structure = "struct box { const float *x; float *y; float w[9]; };"
    head = "void f(int n, const struct box *s, const struct box by)"
    source = Source("f.c", f"{structure}\n{head} {{ for (int i = 0; i < n; i++) {target} = 1; }}\n")
    if is_constant:
        with pytest.raises(PolyloomError, match="c-constant"):
            read_c(source)
    else:
        (scop,) = read_c(source)
        assert [a.constant for a in scop.arrays] == [False]


@pytest.mark.parametrize(("extent", "member"), [("", "d"), ("0", "d"), ("1", "d"), ("1", "in.d"), ("2", "")])
def test_a_structure_may_end_with_more_elements_than_it_says(extent: str, member: str) -> None:
    """``d[]``, ``d[0]`` and ``d[1]`` reach as far as the memory that a caller has asked for."""
    inner = f"struct row {{ int n; float d[{extent}]; }};"
    outer = "struct outer { int k; struct row in; };" if "." in member else ""
    head = f"void f(int n, struct {'outer' if outer else 'row'} *p)"
    text = f"{inner} {outer} {head} {{ for (int i = 0; i < n; i++) p->{member or 'd'}[i] = 1; }}\n"
    if member:
        with pytest.raises(PolyloomError) as caught:
            read_c(Source("f.c", text))
        assert caught.value.diagnostics[0].code == "c-pointer"
    else:
        (scop,) = read_c(Source("f.c", text))
        assert len(scop.arrays) == 1


def test_an_array_of_one_element_inside_of_a_structure_has_one() -> None:
    text = "struct s { float d[1]; int n; }; "
    text += "void f(int n, struct s p[n]) { for (int i = 0; i < n; i++) p[i].d[0] = 1; }"
    (scop,) = read_c(Source("f.c", text))
    assert len(scop.arrays) == 1
