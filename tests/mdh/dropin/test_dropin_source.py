"""What a drop-in makes of the user's file: calls in place of SCoPs, and nothing else changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from polyloom.diagnostics import Source, Unsupported
from polyloom.ir.host import Buffer, HostProgram, Parameter, Role
from polyloom.ir.types import ElementType
from polyloom.mdh.dropin.signature import signature
from polyloom.mdh.dropin.source import Place, replacement, with_calls
from polyloom.mdh.dropin.variables import Variable
from polyloom.polyhedra.loops.tree import Name

TEXT = """\
/* \u00e4rger */ void f(int n, float a[n], float s) {
    #pragma scop
    SCOP
    #pragma endscop
}
"""
INT, FLOAT = ElementType.INT32, ElementType.FLOAT32
BUFFERS = (
    Buffer(name="a", type=FLOAT, shape=(Name("n"),), role=Role.INPUT),
    Buffer(name="s", type=FLOAT, shape=(), role=Role.INPUT),
    Buffer(name="t", type=FLOAT, shape=(), role=Role.UPDATED),
    Buffer(name="inner", type=FLOAT, shape=(), role=Role.LOCAL),
)
PROGRAM = HostProgram(name="f", parameters=(Parameter("n", INT),), buffers=BUFFERS, body=())


VARIABLES = {b.name: Variable((b.name,), (len(b.shape),)) for b in BUFFERS}


def place(text: str = TEXT) -> Place:
    start = text.index("SCOP")
    return Place(
        name="f",
        source=Source("f.c", text),
        extent=(start - 2, start + 4),
        parameters={"n": "n"},
        variables=VARIABLES,
    )


def replaced(text: str, conditions: Sequence[str] = ()) -> str:
    found = place(text)
    call = signature(PROGRAM, "polyloom_f")
    return with_calls(text, [replacement(found.source, found, call)], conditions, "polyloom_host.c")


def test_only_the_range_changes() -> None:
    before, _, after = TEXT.partition("SCOP")
    assert replaced(TEXT) == (
        before
        + "{ /* by Polyloom, see polyloom_host.c */\n"
        + "      extern int polyloom_f(long long, const void *, const void *, void *);\n"
        + "      if (!polyloom_f((long long)n, (const void *)a, (float[1]){s}, &t)) {\n"
        + "    SCOP\n"
        + "      }\n"
        + "    }"
        + after
    )


def test_line_ends_stay_those_of_the_file() -> None:
    text = TEXT.replace("\n", "\r\n")
    assert replaced(text) == replaced(TEXT).replace("\n", "\r\n")


def test_a_range_inside_a_line() -> None:
    text = "void f(int n, float *a, float s) { float t;  SCOP }"
    assert replaced(text).startswith("void f(int n, float *a, float s) { float t;  { /*")


def test_with_another_number_for_a_macro_nothing_is_called() -> None:
    text = replaced(TEXT, ["(N) == (100) && (M) == (3)", "has(x)"])
    asked = "  int polyloom_done = 0;\n#if (N) == (100) && (M) == (3)\n#if has(x)\n"
    assert f"{asked}      polyloom_done = polyloom_f(" in text
    assert "#endif\n#endif\n      if (!polyloom_done) {\n    SCOP\n      }\n" in text


def test_what_a_call_cannot_say_is_refused() -> None:
    found = place()
    included = replace(found, source=Source("f.h", TEXT))
    call = signature(PROGRAM, "polyloom_f")
    with pytest.raises(Unsupported) as caught:
        replacement(found.source, included, call)
    assert [d.code for d in caught.value.diagnostics] == ["drop-in-included"]

    same = replace(found, variables={**VARIABLES, "s": Variable(("a",), (0,))}, escaping=("i",))
    longer = replace(PROGRAM, parameters=(*PROGRAM.parameters, Parameter("a_extent", INT)))
    with pytest.raises(Unsupported) as caught:
        replacement(found.source, same, signature(longer, "polyloom_f"))
    codes = [d.code for d in caught.value.diagnostics]
    assert codes == ["drop-in-extent", "drop-in-iterator", "drop-in-names"]


def test_members_of_structures_are_brought_together() -> None:
    found = place()
    members = replace(found, variables={**VARIABLES, "a": Variable(("p", "x"), (1, 0))})
    updated = replace(PROGRAM, buffers=(replace(BUFFERS[0], role=Role.UPDATED), *BUFFERS[1:]))
    text = with_calls(
        TEXT, [replacement(found.source, members, signature(updated, "polyloom_f"))], (), "side.c"
    )
    assert "float *polyloom_a = polyloom_take((long long)sizeof(float) * ((long long)n));" in text
    loop = "for (long long polyloom_0 = 0; polyloom_0 < (long long)n; polyloom_0++)"
    assert f"{loop} polyloom_a[polyloom_0] = p[polyloom_0].x;" in text
    assert f"{loop} p[polyloom_0].x = polyloom_a[polyloom_0];" in text
    assert "polyloom_done = polyloom_f((long long)n, polyloom_a, (float[1]){s}, &t);" in text
