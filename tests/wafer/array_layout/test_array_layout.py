"""Where arrays lie: transposed, reversed, padded, in banks; the maps stay true and the numbers right."""

from __future__ import annotations

from dataclasses import replace

import islpy as isl
import numpy as np
import pytest
from test_vectorise import ONE, cycles_if_right, placed
from test_zoo_shapes import case

from polyloom.diagnostics import Unsupported
from polyloom.ir.types import ElementType
from polyloom.pipeline import analyse_layer
from polyloom.polyhedra.loops.tree import Number
from polyloom.wafer.analysis import LayerAnalysis
from polyloom.wafer.array_layout.banks import temporary_bank
from polyloom.wafer.codegen.steps import nest_of
from polyloom.wafer.dataflow.local_arrays import LocalArray, array_of
from polyloom.wafer.host.transfers import load_image, local_elements
from polyloom.wafer.machine.model import load_machine
from polyloom.wafer.machine.options import ALL_EXTENSIONS, Extension
from polyloom.wafer.pe_program.tree import ArrayDeclaration, array_offsets
from polyloom.wafer.program.wafer_program import compile_program
from polyloom.wafer.simd.decision import SimdOptions

FF = "lair S(): float16 W[16][16], float16 x[16] -> float16 y[16]\n"
FF += "{ all (i, j) in (16, 16) y[i] += W[i][j] * x[j] }"
BOTH = "lair S(): float16 W[16][16], float16 x[16], float16 dy[16] -> float16 y[16], float16 dx[16]\n"
BOTH += "{ all (i, j) in (16, 16) y[i] += W[i][j] * x[j]\n all (i, j) in (16, 16) dx[j] += W[i][j] * dy[i] }"
COLUMNS = """\
size: { PE[2, 2] }
compute_map: { S[i, j] -> PE[j // 8, i // 8] }
iport_map: { x[j = 0:15] -> [PE[j // 8, -1] -> index[j mod 8]] }
sparse: x
"""
PLACE = "%s[i, j] -> PE[j // 8, i // 8]"
LAYOUTS = (Extension.TRANSPOSED_ARRAYS, Extension.REVERSED_ARRAYS, Extension.PADDED_ROWS)


def analysed(text: str, map_text: str, *without: Extension) -> LayerAnalysis:
    program, mapping = placed(text, map_text)
    return analyse_layer(program, mapping, SimdOptions(extensions=ALL_EXTENSIONS - set(without)))


def test_a_matrix_that_is_read_by_columns_is_transposed() -> None:
    analysis = analysed(FF, COLUMNS)
    assert analysis.arrays["W"].order == (1, 0)
    assert "simd-transposed-arrays" in {remark.code for remark in analysis.extension_remarks}
    assert cycles_if_right(analysis) < cycles_if_right(analysed(FF, COLUMNS, *LAYOUTS))


def test_an_array_is_not_transposed_where_a_nest_could_not_be_joined_to_four_dimensions() -> None:
    """Its descriptors had five: the simulator refused the program (random maps, seed 990074)."""
    text = "lair S(): float16 dy[2][2][2], float16 x[3][2][3] -> float16 dW[2][2]\n"
    text += "{ all (q, s, d, h, w) in (2, 2, 2, 2, 2) dW[q][s] += dy[d][h][w] * x[q + d][h][s + w] }"
    analysis = analysed(text, "size: { PE[1, 1] }\ncompute_map: { S[q, s, d, h, w] -> PE[0, 0] }")
    assert analysis.simd[0].steps
    assert cycles_if_right(analysis) > 0


def test_a_descriptor_that_is_too_deep_is_refused_by_name() -> None:
    """No layout that the compiler chooses asks for it: it is what is left if one ever does."""
    analysis = analysed(FF, COLUMNS).simd[0]
    plain = replace(analysis, order=(), steps=())
    sizes = [Number(2)] * 5
    joined, _ = nest_of(plain, sizes, {0: (16, 8, 4, 2, 1)})
    assert len(joined) == 1
    with pytest.raises(Unsupported) as refused:
        nest_of(plain, sizes, {0: (162, 54, 18, 6, 2)})
    found = refused.value.diagnostics[0]
    assert found.code == "wafer-nest" and "5 dimensions" in found.message
    assert found.span is not None and found.span.source.name == "S.lair"


def test_what_is_said_of_a_layout_stands_where_its_tensor_is_declared() -> None:
    remarks = analysed(FF, COLUMNS).extension_remarks
    assert {str(r.span) for r in remarks if "`W`" in r.message} == {"S.lair:1:11"}


def test_rows_are_padded_where_transposing_is_switched_off() -> None:
    analysis = analysed(FF, COLUMNS, Extension.TRANSPOSED_ARRAYS)
    assert analysis.arrays["W"].padding > 0
    assert cycles_if_right(analysis) < cycles_if_right(analysed(FF, COLUMNS, *LAYOUTS))


@pytest.mark.slow
@pytest.mark.ci
def test_rows_are_padded_where_columns_and_rows_are_read() -> None:
    """The forward pass walks along columns, the backward pass along rows."""
    text = COLUMNS.replace("S[i, j] -> PE[j // 8, i // 8]", f"{PLACE % 'S_y'}; {PLACE % 'S_dx'}")
    text = text.replace("mod 8]]", "mod 8]]; dy[i = 0:15] -> [PE[-1, i // 8] -> index[i mod 8]]")
    text = text.replace("sparse: x", "sparse: x, dy")
    analysis = analysed(BOTH, text)
    assert analysis.arrays["W"].padding > 0 and not analysis.arrays["W"].order
    assert cycles_if_right(analysis) < cycles_if_right(analysed(BOTH, text, *LAYOUTS))


@pytest.mark.parametrize("name", ["c2", "c2m", "jac"])
def test_a_filter_is_kept_backwards(name: str) -> None:
    found = case(name)
    cycles = {}
    for without in ((), (Extension.REVERSED_ARRAYS,)):
        options = SimdOptions(extensions=ALL_EXTENSIONS - set(without))
        analysis = analyse_layer(found.program, found.mapping, options)
        turned = any(array.reversed for array in analysis.arrays.values())
        assert turned == (not without)
        cycles[without] = cycles_if_right(analysis)
    assert cycles[()] < cycles[Extension.REVERSED_ARRAYS,]


def array() -> LocalArray:
    """Elements [2..5][0..2] of T on PE (0, 0), [3..6][0..2] on PE (1, 0)."""
    held = isl.Map("{ PE[x, y] -> T[i, j] : 0 <= x <= 1 and y = 0 and 2 + x <= i <= 5 + x and 0 <= j <= 2 }")
    return array_of("T", ElementType.FLOAT16, held)


@pytest.mark.parametrize("order", [(), (1, 0)])
@pytest.mark.parametrize("turned", [frozenset[int](), frozenset({0}), frozenset({0, 1})])
@pytest.mark.parametrize("padding", [0, 2])
def test_the_map_says_where_the_host_loads_each_element(
    order: tuple[int, ...], turned: frozenset[int], padding: int
) -> None:
    touched = isl.Set("{ T_local[i, j] : -1 <= i <= 4 and 0 <= j <= 2 }")
    laid_out = replace(array().enlarged(touched), order=order, reversed=turned, padding=padding)
    tensor = np.arange(10 * 3, dtype=np.float16).reshape(10, 3)
    xs, ys = np.array([0, 1]), np.array([0, 0])
    data, known = load_image(laid_out, tensor, xs, ys)
    cells = data.view(np.float16).reshape(2, *laid_out.shape)
    for pe in (0, 1):
        place = isl.Map.from_multi_aff(laid_out.map).fix_val(isl.dim_type.param, 0, isl.Val(pe))
        for i in range(2 + pe, 6 + pe):
            for j in range(3):
                element = isl.Set(f"{{ T[{i}, {j}] }}").apply(place).sample_point()
                at = tuple(int(element.get_coordinate_val(isl.dim_type.set, k).to_python()) for k in (0, 1))
                assert cells[(pe, *at)] == tensor[i, j]
                assert known.reshape(2, *laid_out.shape)[(pe, *at)]
    first, second = local_elements(laid_out, xs, ys)
    assert first.shape == second.shape == (2, np.prod(laid_out.shape))


def test_strides_are_those_of_the_map() -> None:
    access = isl.MultiAff("{ [a, b] -> T[b, a] }")
    assert array().flat_strides(access) == (1, 3)
    assert replace(array(), order=(1, 0)).flat_strides(access) == (4, 1)
    assert replace(array(), reversed=frozenset({0})).flat_strides(access) == (1, -3)
    assert replace(array(), padding=2).flat_strides(access) == (1, 5)


def test_arrays_lie_in_their_banks() -> None:
    def declared(count: int, element: ElementType, bank: int | None) -> ArrayDeclaration:
        return ArrayDeclaration(name="a", type=element, extents=(count,), comment="", bank=bank)

    half, single = ElementType.FLOAT16, ElementType.FLOAT32
    arrays = [declared(3, half, None), declared(1, half, 2), declared(1, single, None), declared(2, half, 0)]
    assert array_offsets(arrays) == (0, 12, 16, 24)


def test_sources_in_one_bank_are_moved_apart() -> None:
    text = "lair S(): float16 a[64], float16 b[64] -> float16 c[64]\n{ all (i) in (64) c[i] = a[i] * b[i] }"
    apart, together = analysed(text, ONE % "i"), analysed(text, ONE % "i", Extension.BANK_PADDING)
    (role,) = compile_program(apart, load_machine("cs2")).roles
    assert role.offset("a_local") // 2 % 4 != role.offset("b_local") // 2 % 4
    assert "simd-bank-padding" in {remark.code for remark in apart.extension_remarks}
    assert cycles_if_right(apart) == cycles_if_right(together) - 16


def test_banks_that_change_nothing_are_left_alone() -> None:
    """One source gets a word further behind the other from row to row: a quarter of them wait in any bank."""
    text = "lair S(): float16 a[4][3], float16 b[16] -> float16 c[4][3]\n"
    text += "{ all (i, j) in (4, 3) c[i][j] = a[i][j] * b[4*i + j] }"
    analysis = analysed(text, ONE % "i, j", *LAYOUTS)
    assert not analysis.extension_remarks
    assert {array.bank for array in analysis.arrays.values()} == {None}


def test_an_odd_distance_keeps_rows_apart() -> None:
    """One source gets 2 words further behind the other from row to row: they meet at even distances only."""
    text = "lair S(): float16 a[4][3], float16 b[4][5] -> float16 c[4][3]\n"
    text += "{ all (i, j) in (4, 3) c[i][j] = a[i][j] * b[i][2*j] }"
    analysis = analysed(text, ONE % "i, j", *LAYOUTS)
    assert sorted(str(array.bank) for array in analysis.arrays.values()) in (
        ["0", "1", "None"],
        ["0", "3", "None"],
    )
    plain = analysed(text, ONE % "i, j", *LAYOUTS, Extension.BANK_PADDING)
    assert cycles_if_right(analysis) < cycles_if_right(plain)


def test_temporaries_are_in_banks_of_their_own() -> None:
    assert [temporary_bank(-2 - k, ElementType.FLOAT16) for k in range(4)] == [2, 1, 3, 0]
    assert [temporary_bank(-2 - k, ElementType.FLOAT32) for k in range(3)] == [2, 0, 2]


def test_two_states_lie_alike() -> None:
    text = "lair S(): float16 W[16][16], float16 x[16] -> float16 y[16], float16 W1[16][16]\n"
    text += (
        "{ all (i, j) in (16, 16) y[i] += W[i][j] * x[j]\n all (i, j) in (16, 16) W1[i][j] = 2 * W[i][j] }"
    )
    where = f"{PLACE % 'S_y'}; {PLACE % 'S_W1'}"
    mapped = COLUMNS.replace("S[i, j] -> PE[j // 8, i // 8]", where) + "state: W = W1\n"
    analysis = analysed(text, mapped)
    old, new = (analysis.arrays[name] for name in ("W", "W1"))
    assert (old.order, old.reversed, old.padding) == (new.order, new.reversed, new.padding) != ((), set(), 0)
    cycles_if_right(analysis)
