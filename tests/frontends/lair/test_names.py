"""What statements and internal tensors are called, and what is lowered when nothing is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from polyloom.diagnostics import PolyloomError, Source, Unsupported
from polyloom.frontends.lair import from_program, lower
from polyloom.frontends.lair.syntax.parse import parse
from polyloom.frontends.lair.unused import unused
from polyloom.ir import Buffer, ElementType, Index, Program, Statement, View
from polyloom.ir.expressions import Constant, Iterator, Read, Unary, UnaryOp

GOOD = Path(__file__).parent / "good"
NODE = "lair n(): float16 x[4] -> float16 y[4] { all (i) in (4) h[i] = 2*x[i] all (i) in (4) y[i] = h[i] }\n"
ONE = "lair one(): float16 x[4] -> float16 y[4] { all (i) in (4) y[i] = x[i] }\n"


def lowered(text: str, node: str | None = None) -> Program:
    return lower(parse(Source("names.lair", text)), node)


def names(program: Program) -> list[str]:
    return [s.name for s in program.statements]


def test_a_statement_has_the_name_of_its_node() -> None:
    assert names(lowered(ONE)) == ["one"]


def test_several_statements_are_named_node_output() -> None:
    program = lowered(NODE)
    assert names(program) == ["n_h", "n_y"]
    assert program.internal == ("h",)


def test_a_node_called_once_keeps_its_name() -> None:
    assert names(lower(parse(Source("fc", (GOOD / "fc.lair").read_text())))) == ["ff", "fg", "fd", "update"]


def test_the_output_stands_for_a_node_called_more_than_once() -> None:
    program = lowered(
        ONE + NODE + "graph g: float16 x[4] -> float16 c[4] { a = one(x) b = n(a) d = n(b) c = one(d) }"
    )
    assert names(program) == ["a", "b_h", "b_y", "d_h", "d_y", "c"]
    assert program.internal == ("a", "h", "b", "d_h", "d")


def test_names_of_inner_graphs_do_not_collide() -> None:
    inner = "graph inner: float16 x[4] -> float16 y[4] { h = one(x) y = n(h) }\n"
    outer = "graph g: float16 x[4] -> float16 b[4] { a = inner(x) b = inner(a) }"
    program = lowered(ONE + NODE + inner + outer)
    assert len(set(names(program))) == 6
    assert names(program) == ["a_one", "a_n_h", "a_n_y", "b_one", "b_n_h", "b_n_y"]
    assert lowered(from_program(program)) == program


def test_the_last_graph_is_lowered_by_default() -> None:
    text = ONE + "graph g: float16 x[4] -> float16 y[4] { y = one(x) }\n" + NODE
    assert lowered(text).name == "g"
    assert lowered(text, "one").name == "one"


def test_sizes_come_from_the_arguments() -> None:
    node = "lair f<T>(M, N): T x[M][N] -> T y[N] { all (j, i) in (N, M) y[j] += x[i][j] }\n"
    program = lowered(node + "graph g: int32 x[3][5] -> int32 y[5] { y = f(x) }")
    assert program.statements[0].domain == (5, 3)
    assert program.buffer("y").type is ElementType.INT32


def test_internal_tensors_are_as_large_as_what_is_written() -> None:
    text = (
        "lair f(): float32 x[4] -> float32 y { all (i) in (4) h[2*i + 1] += x[i] all (k) in (8) y += h[k] }"
    )
    h = lowered(text).buffer("h")
    assert (h.type, h.extents) == (ElementType.FLOAT32, (8,))


@pytest.mark.parametrize("text", [ONE + NODE, "", "# nothing"])
def test_nothing_to_choose(text: str) -> None:
    with pytest.raises(PolyloomError):
        lowered(text)


F32 = ElementType.FLOAT32


def made(
    expression: object, kind: ElementType = F32, guard: tuple[Index, ...] = (), name: str = "y"
) -> Program:
    read, write = View("x", (Index.of((1,)),)), View(name, (Index.of((1,)),))
    statement = Statement.of("S", ("i",), (4,), (read,), write, expression, conditions=guard)  # type: ignore[arg-type]
    tensors = (Buffer.of("x", kind, (4,)), Buffer.of(name, kind, (4,)))
    return Program.of("S", tensors, ("x",), (name,), (statement,))


@pytest.mark.parametrize(
    "program",
    [
        made(Unary(UnaryOp.CBRT, Read(0, F32))),
        made(Read(0, F32), guard=(Index.of((1,), -1),)),
        made(Iterator(0, F32)),
        made(Constant(float("inf"), F32)),
        made(Read(0, F32), name="max"),
        made(Read(0, F32), name="i"),
    ],
)
def test_what_lair_has_not_is_refused(program: Program) -> None:
    with pytest.raises(Unsupported) as caught:
        from_program(program)
    assert {d.code for d in caught.value.diagnostics} == {"lair-inexpressible"}


def test_unused_names_are_warnings() -> None:
    text = (
        "lair f<T=float16, U=float32>(M, K): T x[M], T z[M] -> T y[M]\n"
        "{ all (i, j) in (M, 3) y[i] += x[i]\n all (i) in (M) h[i] = T(x[i]) }"
    )
    module = parse(Source("unused.lair", text))
    found = [d.message for d in unused(module)]
    assert found == [
        "the parameter `U` is never used",
        "the parameter `K` is never used",
        "the input `z` is never used",
        "the iterator `j` is never used",
        "the tensor `h` is never used",
    ]
    assert lower(module, None, {"M": "2", "K": "1"}).internal == ("h",)


@pytest.mark.parametrize("name", ["fc", "everything"])
def test_good_files_have_nothing_unused(name: str) -> None:
    assert unused(parse(Source(name, (GOOD / f"{name}.lair").read_text()))) == ()


def test_a_tensor_passed_twice_and_accessed_alike_is_read_once() -> None:
    node = "lair mul(): float16 a[4], float16 b[4] -> float16 y[4] { all (i) in (4) y[i] = a[i] * b[i] }\n"
    program = lowered(node + "graph g: float16 x[4] -> float16 y[4] { y = mul(x, x) }")
    assert [read.buffer for read in program.statements[0].reads] == ["x"]
    assert lowered(from_program(program)) == program


def test_a_node_may_have_no_inputs() -> None:
    program = lowered("lair ones(): -> float16 y[3] { all (i) in (3) y[i] = 1 }")
    assert program.inputs == ()
    assert lowered(from_program(program)) == program


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("all (i) in (4) exp[i] = x[i] all (i) in (4) y[i] = exp[i]", "lair-reserved-name"),
        ("all (i) in (4) h[i] = x[i] all (h) in (4) y[h] = x[h]", "lair-duplicate-name"),
    ],
)
def test_names_of_inferred_tensors_are_checked(text: str, code: str) -> None:
    with pytest.raises(PolyloomError) as caught:
        lowered(f"lair f(): float16 x[4] -> float16 y[4] {{ {text} }}")
    assert code in {d.code for d in caught.value.diagnostics}
