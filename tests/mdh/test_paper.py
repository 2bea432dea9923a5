"""The statements of the paper on md_poly, as tests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import islpy as isl
import numpy as np
import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st

from md_homs import Case, md_homs
from polyloom.diagnostics import PolyloomError, Source
from polyloom.frontends.c import read_c
from polyloom.ir.evaluation.combining import Partial, combined
from polyloom.ir.evaluation.md_homs import run_md_hom
from polyloom.ir.evaluation.programs import evaluate_host
from polyloom.ir.expressions import Binary, BinaryOp, Constant, Expression, Iterator
from polyloom.ir.host import HostProgram, Index, MdHom, Order, View
from polyloom.ir.rebuild import rebuilt
from polyloom.ir.text.host_programs import md_hom_text, scalar_function_text
from polyloom.ir.transform.specialise import specialise
from polyloom.ir.verification.programs import verify
from polyloom.polyhedra.loops.tree import Name, Number, leaves_in, replace_name, sum_of
from polyloom.report.mdh_view import document
from polyloom.scop.model import Scop
from polyloom.scop.transform import ReductionMode, host_program
from random_tests import tried

MISSING = -(2**31) + 7
"""Stands in an output where no point contributed."""


def part(node: MdHom, dimension: int, start: int, length: int) -> MdHom:
    """The md_hom on the points ``start`` to ``start + length - 1`` of a dimension."""

    def moved(index: Any) -> Any:
        if not isinstance(index, Index):
            return index
        shift = sum_of([(1, index.offset), (1, Number(start * index.coefficients[dimension]))])
        return Index(index.coefficients, shift)

    def later(expression: Expression) -> Expression | None:
        if isinstance(expression, Iterator) and expression.dimension == dimension:
            return Binary(BinaryOp.ADD, expression, Constant(start, expression.type))
        return None

    name = node.iterators[dimension]
    extents = tuple(Number(length) if k == dimension else n for k, n in enumerate(node.extents))
    guard = node.guard
    if guard is not None:
        guard = replace_name(guard, name, sum_of([(1, Name(name)), (1, Number(start))]))
    return replace(
        node,
        extents=extents,
        inputs=tuple(View(v.buffer, tuple(moved(i) for i in v.indices)) for v in node.inputs),
        terms=tuple(rebuilt(t, later) for t in node.terms),
        guard=guard,
    )


def h(node: MdHom, inputs: dict[str, Any]) -> Partial:
    """The results of an md_hom, one axis per dimension, and where there are any."""
    kept = [k for k, o in enumerate(node.combine) if o.order is not Order.POINTWISE]
    sizes = [n.value for n in node.extents if isinstance(n, Number)]
    shape = tuple(sizes[k] if k in kept else 1 for k in range(len(sizes)))
    axes = tuple(
        Index(tuple(int(j == k and k in kept) for j in range(len(sizes)))) for k in range(len(sizes))
    )
    outputs = tuple(View(f"y{o}", axes) for o in range(len(node.outputs)))
    arrays = {**inputs, **{v.buffer: np.full(shape, MISSING, "int32") for v in outputs}}
    run_md_hom(replace(node, outputs=outputs), arrays, {})
    values = tuple(arrays[v.buffer] for v in outputs)
    return Partial(values, values[0] != MISSING)


def op(node: MdHom, dimension: int, a: Partial, b: Partial) -> Partial:
    """``a op_k b`` for the combine operator of a dimension."""
    operator = node.combine[dimension]
    if operator.order is Order.PREFIX:
        assert operator.combiner is not None
        last = a.take(slice(-1, None), dimension)
        b = combined(operator.combiner, last, b, {})
    if operator.order is Order.POINTWISE:
        assert operator.combiner is not None
        return combined(operator.combiner, a, b, {})
    values = tuple(np.concatenate(pair, dimension) for pair in zip(a.values, b.values, strict=True))
    return Partial(values, np.concatenate([a.present, b.present], dimension))


@tried(150)
@given(md_homs(), st.integers(0, 2**32), st.data())
def test_definition_3_1(case: Case, seed: int, data: Any) -> None:
    """``h(a ++_k b) = h(a) op_k h(b)`` for every dimension k of every md_hom."""
    node = case.node
    dimension = data.draw(st.integers(0, len(node.extents) - 1))
    extent = node.extents[dimension]
    assert isinstance(extent, Number)
    assume(extent.value > 1)
    cut = data.draw(st.integers(1, extent.value - 1))
    event(str(node.combine[dimension]))
    verify(case.program)
    inputs = case.data(seed)
    whole = h(node, inputs)
    a, b = h(part(node, dimension, 0, cut), inputs), h(part(node, dimension, cut, extent.value - cut), inputs)
    both = op(node, dimension, a, b)
    assert np.array_equal(whole.present, both.present)
    for found, wanted in zip(both.values, whole.values, strict=True):
        assert np.array_equal(found[whole.present], wanted[whole.present])


LISTING_1 = """void matmul(int M, int N, int K, float C[M][N], float A[M][K], float B[K][N])
{
#pragma scop
%s  for( int i = 0; i < M; ++i )
    for( int j = 0; j < N; ++j )
    {
      C[i][j] = 0; // Statement 1 (S1)
      for( int k = 0; k < K; ++k )
        C[i][j] += A[i][k] * B[k][j]; // Statement 2 (S2)
    }
#pragma endscop
}
"""


def scop(directive: str = "") -> Scop:
    (part_,) = read_c(Source("listing1.c", LISTING_1 % directive), None, {}, (), None)
    return part_


def accesses(reads: bool) -> dict[str, list[isl.Map]]:
    """The access relations by array, restricted to the iteration domains."""
    found: dict[str, list[isl.Map]] = {}
    for statement in scop().statements:
        for access in statement.reads if reads else [statement.target]:
            relation = access.relation.intersect_domain(statement.domain)
            found.setdefault(access.array, []).append(relation)
    return found


def test_section_3_2_1_iteration_domain() -> None:
    domains = {s.name: s.domain for s in scop().statements}
    assert domains["S1"] == isl.Set("[M, N, K] -> { S1[i, j] : 0 <= i < M and 0 <= j < N }")
    assert domains["S2"] == isl.Set("[M, N, K] -> { S2[i, j, k] : 0 <= i < M and 0 <= j < N and 0 <= k < K }")


def test_section_3_2_1_access_relation() -> None:
    """Read: A, B; write: void; read/write: C. The relations are those that are printed."""
    read, written = accesses(reads=True), accesses(reads=False)
    assert set(read) - set(written) == {"A", "B"}
    assert set(written) - set(read) == set()
    assert set(read) & set(written) == {"C"}
    s1, s2 = (s.domain for s in scop().statements)
    assert read["A"] == [isl.Map("{ S2[i, j, k] -> A[i, k] }").intersect_domain(s2)]
    assert read["B"] == [isl.Map("{ S2[i, j, k] -> B[k, j] }").intersect_domain(s2)]
    assert isl.Map("{ S1[i, j] -> C[i, j] }").intersect_domain(s1) in written["C"]


def automatic() -> HostProgram:
    """Solution 1: combine operators are ignored; the innermost loop runs."""
    found = host_program(scop(), ReductionMode.IGNORE).program
    return specialise(found, {"M": 6, "N": 5, "K": 4})


def test_section_3_2_2_parameters_1_to_8() -> None:
    """The views, the scalar function of Listing 2, and the combine operators, C an input too."""
    (entry,) = document([automatic()])
    views = {v["buffer"]: v["access"] for v in entry["input_view"]}
    assert views == {"C": ["i", "j"], "A": ["i", "k"], "B": ["k", "j"]}  # 1 input data, 3 accessed data
    assert all(v["indices"] == ["i", "j", "k"] for v in entry["input_view"])  # 2 access indices
    # 4 output data, 5 access indices, 6 accessed data
    assert entry["output_view"] == [{"buffer": "C", "indices": ["i", "j"], "access": ["i", "j"]}]
    # 7 scalar function: if (k == 0) C_i_j = 0; C_i_j += A_i_k * B_k_j; return C_i_j
    assert entry["scalar_function"] == "select(int64(k) == 0, 0.0, C[i][j]) + A[i][k] * B[k][j]"
    assert entry["combine_operators"] == ["++", "++", "serial"]  # 8; the third is unknown to solution 1
    assert entry["ranges"] == [6, 5, 4]
    assert entry["host_loops"] == []


def test_listing_2_computes_the_product() -> None:
    generator = np.random.default_rng(0)
    a, b = (generator.integers(-4, 5, s).astype("float32") for s in ((6, 4), (4, 5)))
    assert np.array_equal(evaluate_host(automatic(), {}, {"A": a, "B": b})["C"], a @ b)


@pytest.mark.parametrize(
    "sizes", [{"M": 3, "N": 2, "K": 0}, {"M": 0, "N": 2, "K": 1}, {"M": 2, "N": 2, "K": 1}]
)
@pytest.mark.parametrize("mode", list(ReductionMode))
def test_all_modes_for_small_sizes(sizes: dict[str, int], mode: ReductionMode) -> None:
    shapes = ((sizes["M"], sizes["K"]), (sizes["K"], sizes["N"]))
    a, b = (np.full(s, 3, "float32") for s in shapes)
    found = evaluate_host(host_program(scop(), mode).program, sizes, {"A": a, "B": b})
    assert np.array_equal(found["C"], a @ b)


MATMUL = "out_view(C)(i, j)(C[i][j]) . md_hom(f, (++, ++, +)) . in_view(A, B)(i, j, k)(A[i][k], B[k][j])"


def matmul(mode: ReductionMode, directive: str = "") -> MdHom:
    program = specialise(host_program(scop(directive), mode).program, {"M": 6, "N": 5, "K": 4})
    homs = [n for n in leaves_in(program.body) if isinstance(n, MdHom)]
    return next(n for n in homs if len(n.iterators) == 3)


@pytest.mark.parametrize(
    ("mode", "directive"),
    [
        (ReductionMode.DETECT, ""),
        (ReductionMode.STATED, "#pragma mdh parallel(++, ++, +:C[i][j])\n"),
        (ReductionMode.STATED, "#mdh parallel (++, ++, +:C[i][j])\n"),
    ],
)
def test_section_3_1_formula_of_matmul(mode: ReductionMode, directive: str) -> None:
    """``out_view . md_hom(*, (++, ++, +)) . in_view``: detected, or stated as in solution 2."""
    node = matmul(mode, directive)
    assert md_hom_text(replace(node, inputs=node.inputs[:2])) == MATMUL
    assert scalar_function_text(node) == "A[i][k] * B[k][j]"


@pytest.mark.parametrize("stated", ["++, ++, *:C[i][j]", "++, ++, ++", "+, ++, +:C[i][j]", "++, +:C[i][j]"])
def test_stated_operators_are_checked(stated: str) -> None:
    with pytest.raises(PolyloomError):
        host_program(scop(f"#pragma mdh parallel({stated})\n"), ReductionMode.STATED)


def test_transposed_output_view() -> None:
    """Section 3.1, end: the result is stored transposed by swapping i and j in the output view."""
    node = matmul(ReductionMode.DETECT)
    (view,) = node.outputs
    swapped = replace(node, outputs=(View("C", view.indices[::-1]),), initial=(None,))
    generator = np.random.default_rng(1)
    arrays = {
        name: generator.integers(-4, 5, s).astype("float32") for name, s in {"A": (6, 4), "B": (4, 5)}.items()
    }
    arrays["C"] = np.zeros((5, 6), "float32")
    run_md_hom(swapped, arrays, {})
    assert np.array_equal(arrays["C"], (arrays["A"] @ arrays["B"]).T)
    assert "C[j][i]" in md_hom_text(swapped)
