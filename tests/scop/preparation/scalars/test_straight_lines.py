"""Long computations of variables are steps of what they lead to, and give what they gave."""

from __future__ import annotations

import pytest

import polyloom
from polyloom.diagnostics import Source
from polyloom.frontends.c import read_c
from polyloom.ir.expressions import Procedure, has_procedure, walk
from polyloom.scop.model import Scop
from polyloom.scop.transform import ReductionMode, prepared


def swap(k: int, kind: str = "float") -> str:
    return f"if (p{k} > p{k + 1}) {{ {kind} t = p{k}; p{k} = p{k + 1}; p{k + 1} = t; }}"


def sorted_values(count: int, kind: str = "float") -> str:
    """Return a network that sorts neighbours of an array."""
    first = " ".join(f"{kind} p{k} = a[i + {k}];" for k in range(count))
    return first + "\n".join(swap(k, kind) for n in range(count - 1, 0, -1) for k in range(n))


HEAD = "float f(int n, float a[n + 8], float b[n + 8])"


def text_of(body: str, head: str = HEAD) -> str:
    return f"{head} {{\nfloat s = 0;\nfor (int i = 0; i < n; i++) {{ {body} }}\nreturn s;\n}}\n"


WITH_STEPS = {
    "a median": sorted_values(7) + "b[i] = p3;",
    "several results": sorted_values(6) + "b[i] = p2; s += p3 * p1;",
    "its own array in the end": sorted_values(6) + "a[i] = p2 + a[i + 1];",
    "a sum alone": sorted_values(6) + "s += p2;",
}
AS_BEFORE = {
    "short": sorted_values(3) + "b[i] = p1;",
    "an array that changes before": sorted_values(6) + "a[i] = p2; p1 = p1 + a[i]; b[i] = p1 + p3;",
}
FORMS = WITH_STEPS | AS_BEFORE


def prepared_part(form: str) -> Scop:
    (scop,) = read_c(Source("f.c", text_of(FORMS[form])))
    return prepared(scop, ReductionMode.DETECT, strict=False)


@pytest.mark.parametrize("form", FORMS)
def test_variables_of_long_computations_are_steps(form: str) -> None:
    scop = prepared_part(form)
    has_steps = any(has_procedure(s.value) for s in scop.statements)
    assert has_steps == (form in WITH_STEPS)
    if has_steps:
        assert not [s.name for s in scop.statements if s.target.array[0] in "pt"]


def test_results_share_their_steps() -> None:
    """They are carried out once for all results of an iteration."""
    scop = prepared_part("several results")
    bodies = [p.body for s in scop.statements for p in walk(s.value) if isinstance(p, Procedure)]
    assert len(bodies) == 2
    assert len(set(bodies)) == 1
    loops = polyloom.drop_in(text_of(WITH_STEPS["several results"]), target="c").files["polyloom_loops.c"]
    assert loops.count("p3_") <= 30  # 22; 44 where each result has its own


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("form", FORMS)
def test_the_same_as_the_program_as_it_stands(form: str) -> None:
    assert polyloom.load(text_of(FORMS[form])).run(n=45, check=True).passed


@pytest.mark.slow
@pytest.mark.ci
def test_integers_too() -> None:
    text = text_of(sorted_values(7, "int") + "b[i] = p3;", HEAD.replace("float a", "int a"))
    assert polyloom.load(text.replace("float b", "int b")).run(n=45, check=True).passed
