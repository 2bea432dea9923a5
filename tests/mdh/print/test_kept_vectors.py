"""Vectors that several sums use: loaded once, in a register; not where there are too few registers."""

from __future__ import annotations

import platform
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from test_c_source import assert_same

from polyloom.c_compilers import c_compiler
from polyloom.ir.expressions import Binary, BinaryOp, Constant, Read
from polyloom.ir.types import ElementType
from polyloom.mdh.native.build import FLAGS
from polyloom.mdh.print.c_source import c_source
from polyloom.mdh.print.vectors.c_vectors import VectorLoop
from polyloom.mdh.tree.nodes import (
    Array,
    Code,
    Compute,
    For,
    Function,
    Kind,
    Load,
    Parameter,
    Space,
    Store,
    Totals,
    counted,
)
from polyloom.mdh.tree.rewrite import renamed_array, rewritten, substituted
from polyloom.polyhedra.loops.tree import Name, Number, sum_of

F32, F64 = ElementType.FLOAT32, ElementType.FLOAT64
ROW, COLUMN, K, L = map(Name, "ijkl")
ROWS, COLUMNS, POINTS = 60, 64, 40


def product(
    tiles: list[tuple[int, int, int]], kind: ElementType = F32, points: int = 1, addends: int = 0
) -> Function:
    """Return ``y[i][j] = 3 * sum over k of A[k][i] * x[k][j] + 5`` in register tiles.

    ``tiles``: rows, vectors and lanes of each of several sets of totals, which go through ``k`` together,
    ``points`` at a time. ``addends``: how many vectors of ``b``, the same for all tiles, are added to each.
    """
    product_of = Binary(BinaryOp.MULTIPLY, Read(1, kind), Read(2, kind))
    more = Binary(BinaryOp.ADD, Read(0, kind), product_of)
    arrays, begin, added, stored = list[Array](), list[For](), list[For](), list[For]()
    for t, (rows, vectors, lanes) in enumerate(tiles):
        for r in range(rows):
            for v in range(vectors):
                name, row = f"total{t}_{r}_{v}", sum_of([(1, ROW), (1, Number(r))])
                column = sum_of([(1, COLUMN), (1, Number(v * lanes)), (1, L)])
                shape, whole = (Number(lanes),), Totals(None, 0)
                arrays.append(
                    Array(name=name, type=kind, shape=shape, space=Space.REGISTER, lanes=True, totals=whole)
                )
                loads = Load(name, (L,)), Load("A", (K, row)), Load("x", (K, column))
                begin.append(_lanes(lanes, Store(name, (L,), Compute(Constant(0, kind)))))
                added.append(_lanes(lanes, Store(name, (L,), Compute(more, loads))))
                scaled = Binary(BinaryOp.MULTIPLY, Read(0, kind), Constant(3, kind))
                value, last = Binary(BinaryOp.ADD, scaled, Constant(5, kind)), (Load(name, (L,)),)
                for b in range(addends):
                    value = Binary(BinaryOp.ADD, value, Read(b + 1, kind))
                    last = (*last, Load("b", (sum_of([(1, Number((v * addends + b) * lanes)), (1, L)]),)))
                total = Compute(value, last)
                stored.append(_lanes(lanes, Store("y", (Number(t), row, column), total)))
    written_out = [
        statement
        for point in range(points)
        for statement in substituted(tuple(added), "k", sum_of([(1, K), (1, Number(point))]))
    ]
    loop = counted("k", Number(POINTS), tuple(written_out), step=points)
    body: Code = (*arrays, *begin, loop, *stored)
    rows, width = tiles[0][0], tiles[0][1] * tiles[0][2]
    inner = counted("j", Number(COLUMNS), body, step=width)
    added_to = Parameter(name="b", type=kind, shape=(Number(COLUMNS),), constant=True, alone=True)
    return Function(
        name="product",
        parameters=(
            *([added_to] if addends else ()),
            Parameter(name="A", type=kind, shape=(Number(POINTS), Number(ROWS)), constant=True, alone=True),
            Parameter(
                name="x", type=kind, shape=(Number(POINTS), Number(COLUMNS)), constant=True, alone=True
            ),
            Parameter(
                name="y", type=kind, shape=(Number(len(tiles)), Number(ROWS), Number(COLUMNS)), alone=True
            ),
        ),
        integers=(),
        body=(counted("i", Number(ROWS), (inner,), kind=Kind.GROUP, step=rows),),
    )


def _lanes(lanes: int, store: Store) -> For:
    return counted("l", Number(lanes), (store,), kind=Kind.VECTOR)


def kept(function: Function) -> list[str]:
    return re.findall(r"kept_\d+ = load_\w+\(&(.*)\);", c_source(function))


def test_a_vector_of_several_sums_is_loaded_once() -> None:
    assert kept(product([(6, 2, 8)])) == ["x[k][j]", "x[k][j + 8]"]
    text = c_source(product([(6, 2, 8)]))
    assert text.count("* kept_0;") == text.count("* kept_1;") == 6
    assert text.count("in_register(kept_0);") == 1
    assert "#pragma GCC unroll 1\n" in text
    assert kept(product([(4, 2, 4)], F64)) == ["x[k][j]", "x[k][j + 4]"]


def test_with_avx_512_there_are_twice_as_many_registers() -> None:
    text = c_source(product([(6, 4, 16)]))
    assert kept(product([(6, 4, 16)])) == ["x[k][j]", "x[k][j + 16]", "x[k][j + 32]", "x[k][j + 48]"]
    assert text.count("in_wide_register(kept_3);") == 1
    assert kept(product([(12, 2, 8)], F64)) == ["x[k][j]", "x[k][j + 8]"]


@pytest.mark.parametrize(
    "tile",
    [
        pytest.param((15, 1, 8), id="a factor, 15 totals and a vector need 17"),
        pytest.param((4, 4, 8), id="16 totals"),
        pytest.param((1, 4, 8), id="no vector is used twice"),
        pytest.param((31, 1, 16), id="a factor, 31 totals of AVX-512 and a vector need 33"),
        pytest.param((6, 1, 32), id="vectors of two registers"),
    ],
)
def test_it_is_left_to_the_compiler(tile: tuple[int, int, int]) -> None:
    assert not kept(product([tile]))
    assert "_register(" not in c_source(product([tile]))


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize(
    ("tiles", "kind"),
    [
        ([(6, 2, 8)], F32),
        ([(4, 2, 4)], F64),
        ([(4, 1, 8), (4, 2, 4)], F32),
        ([(6, 4, 16)], F32),
        ([(6, 1, 16), (6, 1, 8)], F32),
        ([(12, 2, 8)], F64),
    ],
)
def test_results_are_the_same(tiles: list[tuple[int, int, int]], kind: ElementType) -> None:
    assert len(kept(product(tiles, kind))) == sum(vectors for _, vectors, _ in tiles)
    rng = np.random.default_rng(3)
    shapes = {"A": (POINTS, ROWS), "x": (POINTS, COLUMNS), "y": (len(tiles), ROWS, COLUMNS)}
    given = {name: rng.integers(-9, 9, shape).astype(kind.dtype) for name, shape in shapes.items()}
    assert_same(product(tiles, kind), given)


def test_a_copy_that_the_block_declares_is_left_to_the_compiler() -> None:
    """Sums behind a declaration in their own block."""
    function = product([(6, 2, 8)])
    (outer,) = function.body
    assert isinstance(outer, For)
    (inner,) = outer.body
    assert isinstance(inner, For)
    loop = next(s for s in inner.body if isinstance(s, For) and s.kind is Kind.SEQUENTIAL)
    copy = Array(name="x_copy", type=F32, shape=(Number(POINTS), Number(COLUMNS)), space=Space.PRIVATE)
    sums = tuple(renamed_array(loop.body, "x", Load("x_copy")))
    changed = tuple(replace(s, body=(copy, *sums)) if s is loop else s for s in inner.body)
    assert not kept(replace(function, body=(replace(outer, body=(replace(inner, body=changed),)),)))


def _innermost(function: Function, folder: Path, lanes: int) -> str:
    """Return gcc's instructions of the first loop with products, which has no loop inside: AVX2, AVX-512."""
    compiler = c_compiler("gcc")
    if compiler is None:
        pytest.skip("there is no gcc")
    (folder / "product.c").write_text(c_source(function))
    processor = ["-mavx512f"] if lanes == 16 else ["-mavx2", "-mfma", "-mno-avx512f"]
    words = [*compiler.command, *FLAGS, *processor, "-ffp-contract=fast", "-S"]
    subprocess.run([*words, "product.c", "-o", "product.s"], cwd=folder, check=True)
    text = (folder / "product.s").read_text()
    first = text.index("vfmadd")
    begin = text.rindex("\n.L", 0, first)
    return text[begin : text.index("\n\tj", first)]


ON_STACK = r"\(%r[sb]p\).*[yz]mm|[yz]mm.*\(%r[sb]p\)"


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="instructions of x86")
@pytest.mark.parametrize(
    ("tile", "points"),
    [
        ((6, 2, 8), 4),
        ((4, 3, 8), 4),
        ((8, 1, 8), 4),
        pytest.param((6, 2, 8), 2, id="gcc has loads that it shares and invariants in registers of totals"),
        pytest.param((6, 4, 16), 2, id="29 of the 32 registers of AVX-512"),
    ],
)
def test_totals_stay_in_registers(tile: tuple[int, int, int], points: int, tmp_path: Path) -> None:
    """The loop of a tile that fits loads each value once, and has nothing on the stack."""
    rows, vectors, lanes = tile
    loop = _innermost(product([tile], points=points), tmp_path, lanes)
    products = [line for line in loop.splitlines() if "vfmadd" in line]
    assert len(products) == points * rows * vectors
    assert not re.search(ON_STACK, loop), loop
    assert not any("(" in line for line in products), loop
    assert loop.count("vbroadcastss") == points * rows


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="instructions of x86")
@pytest.mark.parametrize("tile", [(4, 2, 8), (6, 2, 8), (6, 4, 16), (7, 3, 16)])
def test_what_is_added_to_totals_behind_many_loops_takes_no_register_of_them(
    tile: tuple[int, int, int], tmp_path: Path
) -> None:
    """The same vectors are added in all tiles, and the sums go through the window of a convolution."""
    function = product([tile], addends=4)
    (outer,) = function.body
    assert isinstance(outer, For)
    (inner,) = outer.body
    assert isinstance(inner, For)
    sums = next(s for s in inner.body if isinstance(s, For) and s.kind is Kind.SEQUENTIAL)
    window = counted("n", Number(3), (counted("m", Number(3), (sums,)),))
    inner = replace(inner, body=tuple(window if s is sums else s for s in inner.body))
    tiles = replace(outer, kind=Kind.SEQUENTIAL, body=(inner,))
    images = counted("image", Number(3), (tiles,), kind=Kind.GROUP)
    rows, vectors, lanes = tile
    loop = _innermost(replace(function, body=(images,)), tmp_path, lanes)
    assert loop.count("vfmadd") == rows * vectors
    assert not re.search(ON_STACK, loop), loop


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="instructions of x86")
def test_rows_that_all_lanes_read_have_one_pointer(tmp_path: Path) -> None:
    """The reduction goes along rows of ``A``, more of them than the processor has general registers."""
    turned = product([(20, 1, 16)], points=4)
    across = rewritten(
        turned.body, lambda s: (replace(s, value=_turned(s.value)),) if isinstance(s, Store) else (s,)
    )
    shape = Number(ROWS), Number(POINTS)
    parameters = tuple(replace(p, shape=shape) if p.name == "A" else p for p in turned.parameters)
    function = replace(turned, body=across, parameters=parameters)
    text = c_source(function)
    assert "const float *row_0 = &A[i][k];" in text
    assert f"splat_float32x16(row_0[{19 * POINTS + 3}])" in text
    loop = _innermost(function, tmp_path, 16)
    assert loop.count("vfmadd") == 4 * 20
    assert len(re.findall(r"movq\s+-?\d*\(%r[sb]p\)", loop)) < 4, loop
    rng = np.random.default_rng(3)
    shapes = {"A": (ROWS, POINTS), "x": (POINTS, COLUMNS), "y": (1, ROWS, COLUMNS)}
    assert_same(function, {n: rng.integers(-9, 9, s).astype(np.float32) for n, s in shapes.items()})


def _turned(value: Compute) -> Compute:
    """Return a value that reads ``A[i][k]`` where it read ``A[k][i]``."""
    turned = (Load("A", load.subscripts[::-1]) if load.array == "A" else load for load in value.loads)
    return replace(value, loads=tuple(turned))


def test_a_load_that_several_sums_have_is_printed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    printed = list[Load]()
    plain = VectorLoop._loaded

    def noted(loop: VectorLoop, load: Load) -> str:
        printed.append(load)
        return plain(loop, load)

    monkeypatch.setattr(VectorLoop, "_loaded", noted)
    c_source(product([(6, 2, 8)]))
    rows = [load for load in printed if load.array == "A"]
    assert len(rows) == len(set(rows)) == 6
