"""Members of structures lie where the C compiler says that they do."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyloom.diagnostics import Source
from polyloom.frontends.c.read import read_c
from polyloom.scop.model import Scop, StructureMember
from random_tests import tried

GCC = shutil.which("gcc") or "cc"
NUMBERS = ("char", "short", "int", "long", "float", "double", "_Bool", "unsigned char", "double *")
Member = tuple[str, tuple[int, ...]]


def members(scop: Scop) -> list[StructureMember | None]:
    return [array.member for array in scop.arrays if array.record]


@st.composite
def structures(draw: st.DrawFn) -> tuple[list[Member], list[Member]]:
    """Members of a structure, and of one that lies inside of it, twice."""
    member = st.tuples(st.sampled_from(NUMBERS), st.lists(st.integers(1, 3), max_size=2).map(tuple))
    inner = draw(st.lists(member, min_size=1, max_size=4))
    return draw(st.lists(member, max_size=4)), [*inner, ("int", ())]


def declared(named: list[Member], prefix: str) -> str:
    return " ".join(
        f"{kind} {prefix}{k}{''.join(f'[{n}]' for n in extents)};" for k, (kind, extents) in enumerate(named)
    )


@pytest.mark.slow
@pytest.mark.ci
@tried(60)
@given(structures())
def test_offsets_and_sizes_are_those_of_gcc(drawn: tuple[list[Member], list[Member]]) -> None:
    outer, inner = drawn
    last = f"t{len(inner) - 1}"
    types = f"struct in {{ {declared(inner, 't')} }};\n"
    types += f"struct out {{ {declared(outer, 'm')} struct in q[2]; float last[4][3]; }};\n"
    text = f"""{types}void f(int n, struct out x[n]) {{
#pragma scop
  for (int i = 0; i < n; i++)
    for (int j = 0; j < 2; j++) {{ x[i].q[j].{last} = i; x[i].last[j][2] = j; }}
#pragma endscop
}}
"""
    (scop,) = read_c(Source("x.c", text))
    main = f"""#include <stddef.h>
#include <stdio.h>
{types}int main(void) {{
  printf("%zu %zu %zu ", sizeof(struct out), offsetof(struct out, q[0].{last}), sizeof(struct in));
  printf("%zu %zu %zu\\n", offsetof(struct out, last), sizeof(float[3]), sizeof(float));
}}
"""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "m.c").write_text(main)
        subprocess.run([GCC, "m.c", "-o", "m"], cwd=folder, check=True, timeout=60)
        done = subprocess.run([f"{folder}/m"], check=True, capture_output=True, text=True, timeout=60)
    size, at, step, behind, row, one = map(int, done.stdout.split())
    assert members(scop) == [
        StructureMember(array="x", depth=1, size=size, first=at, steps=(step,)),
        StructureMember(array="x", depth=1, size=size, first=behind, steps=(row, one)),
    ]


@pytest.mark.parametrize(
    "structure",
    ["unsigned f : 3; double v;", "double v; _Atomic int f;", "volatile char f; double v;"],
)
def test_of_some_structures_it_is_not_known_how_they_lie(structure: str) -> None:
    text = f"struct s {{ {structure} }};\nvoid f(struct s *x) {{ for (int i = 0; i < 9; i++) x[i].v = 0; }}\n"
    (scop,) = read_c(Source("x.c", text))
    assert members(scop) == [None]


def test_members_beside_a_union_lie_behind_its_largest() -> None:
    text = "struct s { union { char c; int n[3]; } u; double v; };\n"
    text += "void f(struct s *x) { for (int i = 0; i < 9; i++) x[i].v = 0; }\n"
    (scop,) = read_c(Source("x.c", text))
    assert members(scop) == [StructureMember(array="x", depth=1, size=24, first=16)]
