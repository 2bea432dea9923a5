"""SIMD instructions against a loop that does one element after the other."""

from __future__ import annotations

import itertools

import numpy as np
from simulated import INSTRUCTIONS, error_of, fabric, one_pe, role_text, set_memory

from polyloom.wafer.simulator.fabric import Fabric

WORDS = 200
GENERIC = role_text(
    f"int16_t config[28]; half data[{WORDS}];",
    """
    static int16_t word(int i) { return load(M.config[i]); }
    static void set(operand o, int at) {
      configure(o, SIZES(word(at), word(at + 1), word(at + 2), word(at + 3)),
                STRIDES(word(at + 4), word(at + 5), word(at + 6), word(at + 7)));
      set_base_address(o, &M.data[word(at + 8)]);
    }
    static void main(void) {
      operand to = {0}, a = {1}, b = {2};
      set(to, 1);
      set(a, 10);
      set(b, 19);
      if (word(0) == 0) invoke_simd(fmach, to, a, b, (half)1.5f);
      if (word(0) == 1) invoke_simd(faddh, to, a, b);
      if (word(0) == 2) invoke_simd(fmovh, to, a);
      if (word(0) == 3) invoke_simd(fmaxh, to, (half)-2.0f, b);
    }
    """,
)
ALL_RUN_IT = """
#include "layout.h"
extern const struct role P;
void layout(int PE_X, int PE_Y) { program(&P); }
"""


def operand(rng: np.random.Generator, sizes: list[int], spread: int) -> list[int]:
    """Random strides, and a base that keeps every element in the array."""
    strides = [int(s) for s in rng.integers(-spread, spread + 1, 4)]
    reach = [(s - 1) * stride for s, stride in zip(sizes, strides, strict=True)]
    low, high = sum(min(r, 0) for r in reach), sum(max(r, 0) for r in reach)
    assert high - low < WORDS
    return [*sizes, *strides, int(rng.integers(-low, WORDS - high))]


def nest(rng: np.random.Generator) -> list[int]:
    sizes = rng.choice(
        [[1, 1, 1, 6], [1, 1, 3, 4], [1, 2, 2, 3], [2, 2, 2, 2], [2, 1, 5, 1], [1, 1, 1, 12], [1, 0, 1, 2]]
    )
    return [int(s) for s in sizes]


def configuration(rng: np.random.Generator, sizes: list[int]) -> list[int]:
    """An instruction; the operands' nests are equal, or permuted: only the number of elements must agree."""
    shapes = [sizes, sizes if rng.random() < 0.5 else [*rng.permutation(sizes)], [*rng.permutation(sizes)]]
    given = [operand(rng, [int(s) for s in shape], int(rng.choice([1, 7]))) for shape in shapes]
    return [int(rng.integers(0, 4)), *itertools.chain(*given)]


def addresses(given: list[int]) -> list[int]:
    sizes, strides, base = given[:4], given[4:8], given[8]
    points = itertools.product(*(range(n) for n in sizes))
    return [base + sum(i * s for i, s in zip(point, strides, strict=True)) for point in points]


def reference(config: list[int], data: np.ndarray, known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    out, sure = data.copy(), known.copy()
    to, a, b = (addresses(config[at : at + 9]) for at in (1, 10, 19))
    for t, i, j in zip(to, a, b, strict=True):
        match config[0]:
            case 0:
                out[t], sure[t] = out[i] + out[j] * np.float16(1.5), sure[i] and sure[j]
            case 1:
                out[t], sure[t] = out[i] + out[j], sure[i] and sure[j]
            case 2:
                out[t], sure[t] = out[i], sure[i]
            case _:
                out[t], sure[t] = max(np.float16(-2), out[j]), sure[j]
    return out, sure


def test_random_nests_strides_and_overlaps() -> None:
    """Operands overlap as they like: the order of elements is visible, also in what is poison."""
    rng = np.random.default_rng(7)
    side = 20
    simulation = fabric({"P.c": GENERIC, "layout.c": ALL_RUN_IT}, side, side)
    cases = []
    for y, x in itertools.product(range(side), range(side)):
        config = configuration(rng, nest(rng))
        data = rng.integers(-9, 10, WORDS).astype(np.float16)
        known = rng.random(WORDS) < 0.9
        simulation.load(
            [x], [y], 0, np.array([config], np.int16).view(np.uint8), np.ones((1, 28), np.bool_), 2
        )
        simulation.load([x], [y], 56, data[None].view(np.uint8), known[None], 2)
        cases.append((x, y, config, np.where(known, data, np.float16(0)), known))
    assert simulation.run().error is None
    for x, y, config, data, known in cases:
        expected, sure = reference(config, data, known)
        got, got_sure = simulation.read([x], [y], 56, 2 * WORDS)
        np.testing.assert_array_equal(got_sure[0], sure)
        np.testing.assert_array_equal(got[0].view(np.float16)[sure], expected[sure])


SUM = role_text(
    "half cell[1]; half x[64]; half small[1]; float wide[1]; float f[8];",
    """
    static void main(void) {
      operand cell = {0}, x = {1}, wide = {2}, head = {3};
      array(M.cell); array(M.x); array(M.small); array(M.wide); array(M.f);
      configure(cell, SIZES(64), STRIDES(0));
      configure(x, SIZES(64), STRIDES(1));
      set_base_address(cell, &M.cell[0]);
      set_base_address(x, &M.x[0]);
      invoke_simd(faddh, cell, cell, x);
      configure(wide, SIZES(64), STRIDES(0));
      set_base_address(wide, &M.wide[0]);
      invoke_simd(fmachs, wide, wide, x, (half)0.5f);
      configure(head, SIZES(8), STRIDES(1));
      set_base_address(head, &M.f[0]);
      invoke_simd(fmuls, head, head, 3.0f);
    }
    """,
)


def test_accumulation_into_one_cell_and_mixed_precision() -> None:
    """64 numbers are summed in order, in float16 with a rounding each, and in float32."""
    x = np.random.default_rng(0).normal(size=64).astype(np.float16)
    simulation = one_pe(SUM)
    set_memory(simulation, [0], [0], 0, np.array([[0]], np.float16))
    set_memory(simulation, [0], [0], 2, x[None])
    set_memory(simulation, [0], [0], 132, np.zeros((1, 1), np.float32))
    set_memory(simulation, [0], [0], 136, np.arange(8, dtype=np.float32)[None])
    result = simulation.run()
    assert result.error is None
    half_sum, wide_sum = np.float16(0), np.float32(0)
    for value in x:
        half_sum = np.float16(half_sum + value)
        wide_sum = np.float32(wide_sum + np.float32(value) * np.float32(0.5))
    assert read(simulation, 0, np.float16)[0] == half_sum
    assert read(simulation, 132, np.float32)[0] == wide_sum
    np.testing.assert_array_equal(read(simulation, 136, np.float32, 8), 3 * np.arange(8))
    assert (result.simd_instructions, result.simd_operations) == (3, 64 + 64 + 8)


def read(simulation: Fabric, offset: int, dtype: type, count: int = 1) -> np.ndarray:
    size = np.dtype(dtype).itemsize * count
    return simulation.read([0], [0], offset, size)[0][0].view(dtype)


def test_without_stated_arrays_an_operand_stays_in_the_role() -> None:
    over = """
    static void main(void) {
      operand o = {0};
      configure(o, SIZES(9), STRIDES(1));
      set_base_address(o, &M.a[0]);
      invoke_simd(fmovh, o, (half)1);
    }
    """
    assert one_pe(role_text("half a[4]; half b[5];", over)).run().error is None
    assert error_of(one_pe(role_text("half a[4]; half b[4];", over))).kind == "out-of-bounds"


def test_the_table_of_the_compiler_builds() -> None:
    from polyloom.wafer.machine.instructions import table_text
    from polyloom.wafer.simulator.build import build_program
    from polyloom.wafer.simulator.library import load_library

    library = load_library(
        build_program(
            {"P.c": role_text("half a[1];", "static void main(void) {}"), "layout.c": ALL_RUN_IT},
            table_text(),
        )
    )
    names = [library.fabric_instruction_name(i).decode() for i in range(library.fabric_instruction_count())]
    assert "fmach" in names and len(names) == len(table_text().splitlines())
    assert len(names) > len(INSTRUCTIONS.splitlines())


def pair_role(count: int, step: int = 1) -> str:
    """Elements come in pairs, go to memory, so many cells apart, and leave in pairs with 1 added."""
    return role_text(
        "half to[400];",
        f"""
        static void work(void) {{
          operand in = {{0}}, out = {{1}}, memory = {{2}};
          configure_input_pairs(in, 0, {count});
          configure_output_pairs(out, 0, {count});
          configure(memory, SIZES({count}), STRIDES({step}));
          set_base_address(memory, &M.to[0]);
          invoke_simd(fmovh, memory, in);
          invoke_simd(faddh, out, memory, (half)1.0f);
        }}
        static void main(void) {{ activate(work); }}
        """,
        tasks="BLOCKING(work)",
    )


def passed_in_pairs(count: int, step: int = 1) -> tuple[list[float], int]:
    """What comes out for 1, 2, ..., and the cycles."""
    here = one_pe(pair_role(count, step))
    values = np.arange(1, count + 1, dtype=np.float16).view(np.uint16).astype(np.uint32)
    padded = np.append(values, 0)[: count + count % 2].astype(np.uint32)
    wavelets = padded[0::2] | padded[1::2] << np.uint32(16)
    here.source("north", 0, 0, wavelets, np.zeros(len(wavelets), np.bool_))
    here.sink("east", 0, 2, len(wavelets))
    result = here.run()
    assert result.error is None
    payload, _, _ = here.received("east", 0, 2)
    words = np.stack([payload & 0xFFFF, payload >> 16], axis=1).reshape(-1)[:count]
    return words.astype(np.uint16).view(np.float16).astype(float).tolist(), result.cycles


def test_two_elements_in_a_wavelet_keep_their_order() -> None:
    for count in (2, 5, 8):
        assert passed_in_pairs(count)[0] == [k + 2.0 for k in range(count)]


def test_two_elements_take_one_cycle_where_strides_allow_it() -> None:
    """Of both instructions: 12 more elements are 6 cycles more each, or 12 with a stride of 8."""
    assert passed_in_pairs(32)[1] - passed_in_pairs(20)[1] == 2 * 6
    assert passed_in_pairs(32, 8)[1] - passed_in_pairs(20, 8)[1] == 2 * 12


def test_queues_with_single_and_with_paired_elements_do_not_meet() -> None:
    text = pair_role(4).replace("configure_output_pairs", "configure_output")
    here = one_pe(text.replace("invoke_simd(fmovh, memory, in)", "invoke_simd(fmovh, out, in)"))
    here.source("north", 0, 0, np.zeros(2, np.uint32), np.zeros(2, np.bool_))
    here.sink("east", 0, 2, 4)
    assert "two elements in a wavelet" in error_of(here).message
