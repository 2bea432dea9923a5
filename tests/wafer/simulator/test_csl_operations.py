"""DSD operations of CSL programs in memory: values, costs, registers, @map, and what is an error."""

from __future__ import annotations

import numpy as np
import pytest
from tests.wafer.simulator.csl_programs import fabric, failure, floats, one_pe, shorts, unit

GO = '{CSL_LOCAL_TASK, 8, "go", go},'
START = ".activated = (const uint8_t[]){CSL_ID(8), 0},"
ACTIVATION, LAUNCH = 14, 6
"""Cycles on WSE-2; of the machine file."""


def program(body: str, *, before: str = "", memory: int = 256, more: str = "") -> dict[str, str]:
    code = f"{before}\nTASK(go) {{ (void)w; {body} }}"
    return unit(code, tasks=GO, memory=memory, more=START + more)


def floats_image(count: int, memory: int = 256) -> bytes:
    return np.arange(count, dtype=np.float32).tobytes().ljust(memory, b"\0")


def test_a_multiply_add_and_its_cycles() -> None:
    body = """csl_dsd y = csl_mem1d(0, 4, 4, 1, 0), a = csl_mem1d(20, 4, 4, 1, 0);
      csl_run(CSL_fmacs, SYNC, csl_of_dsd(y), csl_of_dsd(y), csl_of_dsd(a), csl_of_f32(2));"""
    simulation = one_pe(program(body), floats_image(9))
    simulation.finish()
    assert floats(simulation, 0, 4) == [0 + 10, 1 + 12, 2 + 14, 3 + 16]
    assert simulation.cycles == ACTIVATION + LAUNCH + 4


def test_operands_in_one_bank_take_twice_as_long() -> None:
    body = """csl_dsd y = csl_mem1d(0, 4, 4, 1, 0), a = csl_mem1d(16, 4, 4, 1, 0);
      csl_run(CSL_fmacs, SYNC, csl_of_dsd(y), csl_of_dsd(y), csl_of_dsd(a), csl_of_f32(2));"""
    simulation = one_pe(program(body), floats_image(9))
    simulation.finish()
    assert simulation.cycles == ACTIVATION + LAUNCH + 2 * 4


def test_all_operations_on_one_element() -> None:
    """One operation after the other, each with its own slot: values as numpy's or as plain integers say."""
    half, single = "csl_of_f16((half)", "csl_of_f32((float)"
    cases = {
        "mov16": ("csl_of_u16(7)", 7),
        "add16": ("csl_of_u16(65535), csl_of_u16(2)", 1),
        "addc16": ("csl_of_u16(5), csl_of_u16(2)", 7),
        "sub16": ("csl_of_u16(1), csl_of_u16(2)", 65535),
        "and16": ("csl_of_u16(12), csl_of_u16(10)", 8),
        "or16": ("csl_of_u16(12), csl_of_u16(10)", 14),
        "xor16": ("csl_of_u16(12), csl_of_u16(10)", 6),
        "sll16": ("csl_of_u16(3), csl_of_u16(15)", 32768),
        "slr16": ("csl_of_u16(0x8000), csl_of_u16(3)", 0x1000),
        "sar16": ("csl_of_u16(0x8000), csl_of_u16(3)", 0xF000),
        "clz": ("csl_of_u16(1)", 15),
        "ctz": ("csl_of_u16(8)", 3),
        "popcnt": ("csl_of_u16(255)", 8),
        "faddh": (f"{half}1.5), {half}2.25)", np.float16(3.75)),
        "fsubh": (f"{half}1.5), {half}2.25)", np.float16(-0.75)),
        "fmulh": (f"{half}1.5), {half}2.25)", np.float16(3.375)),
        "fmaxh": (f"{half}1.5), {half}2.25)", np.float16(2.25)),
        "fmach": (f"{half}1), {half}3), {half}2)", np.float16(7)),
        "fmovh": (f"{half}1.5)", np.float16(1.5)),
        "fnegh": (f"{half}1.5)", np.float16(-1.5)),
        "fabsh": (f"{half}-1.5)", np.float16(1.5)),
        "fs2h": (f"{single}0.1)", np.float16(0.1)),
        "fscaleh": (f"{half}1.5), csl_of_u16(3)", np.float16(12)),
        "fnormh": (f"{half}12)", np.float16(1.5)),
        "fh2xp16": (f"{half}2.5)", 2),
        "fs2xp16": (f"{single}-70000)", 0x8000),
        "xp162fh": ("csl_of_i16(-3)", np.float16(-3)),
    }
    body = "".join(
        f"csl_run(CSL_{name}, (csl_options){{0}}, csl_of_address({2 * k}), {sources});\n"
        for k, (name, (sources, _)) in enumerate(cases.items())
    )
    simulation = one_pe(program(body))
    simulation.finish()
    expected = [int(v.view(np.uint16)) if isinstance(v, np.float16) else v for _, v in cases.values()]
    found = dict(zip(cases, shorts(simulation, 0, len(cases)), strict=True))
    assert found == dict(zip(cases, expected, strict=True))


def test_single_precision_operations() -> None:
    half, single = "csl_of_f16((half)", "csl_of_f32((float)"
    cases = {
        "fadds": (f"{single}1.5), {single}2.25)", 3.75),
        "fsubs": (f"{single}1.5), {single}2.25)", -0.75),
        "fmuls": (f"{single}1.5), {single}2.25)", 3.375),
        "fmaxs": (f"{single}1.5), {single}2.25)", 2.25),
        "fmacs": (f"{single}1), {single}3), {single}2)", 7.0),
        "fmachs": (f"{single}1), {half}3), {half}2)", 7.0),
        "faddhs": (f"{single}1), {half}3)", 4.0),
        "fmovs": (f"{single}1.5)", 1.5),
        "fnegs": (f"{single}1.5)", -1.5),
        "fabss": (f"{single}-1.5)", 1.5),
        "fh2s": (f"{half}1.5)", 1.5),
        "xp162fs": ("csl_of_i16(-3)", -3.0),
        "fscales": (f"{single}1.5), csl_of_i16(-1)", 0.75),
        "fnorms": (f"{single}-12)", -1.5),
    }
    body = "".join(
        f"csl_run(CSL_{name}, (csl_options){{0}}, csl_of_address({4 * k}), {sources});\n"
        for k, (name, (sources, _)) in enumerate(cases.items())
    )
    simulation = one_pe(program(body))
    simulation.finish()
    assert floats(simulation, 0, len(cases)) == [value for _, value in cases.values()]


def test_four_dimensions_and_changed_copies() -> None:
    """A 2 x 3 block of a 4 x 4 array, transposed into a dense one; then parts of it by changed copies."""
    body = """const uint16_t n[] = {3, 2}; const int16_t s[] = {1, 4};
      csl_run(CSL_fmovs, SYNC, MEM(64, 6),
              csl_of_dsd(csl_mem4d(0, 4, 2, n, s, 1)));
      PE_HERE("changed");
      csl_dsd d = csl_mem1d(0, 4, 1, 1, 0), e = csl_mem1d(4, 4, 3, 1, 0);
      d = csl_set_dsd_stride(csl_increment_dsd_offset(d, 2, 4, &pe_here), 5, &pe_here);
      d = csl_set_dsd_length(d, 3, &pe_here);
      csl_run(CSL_fmovs, SYNC, csl_of_dsd(csl_set_dsd_base_addr(e, 96, 4, &pe_here)), csl_of_dsd(d));"""
    simulation = one_pe(program(body), floats_image(16))
    simulation.finish()
    assert floats(simulation, 64, 6) == [1, 5, 2, 6, 3, 7]
    assert floats(simulation, 96, 3) == [2, 7, 12]


def test_a_pointer_that_is_destination_and_source_accumulates() -> None:
    body = """csl_run(CSL_fadds, SYNC, csl_of_address(64), csl_of_address(64), MEM(0, 5));
      csl_dsd back = csl_mem1d(16, 4, 5, -1, 0);
      csl_run(CSL_fmaxs, SYNC, csl_of_address(68), csl_of_f32(2.5f), csl_of_dsd(back));
      csl_run(CSL_fsubs, SYNC, csl_of_address(72), csl_of_f32(100), csl_of_dsd(back));"""
    simulation = one_pe(program(body), floats_image(5))
    simulation.finish()
    assert floats(simulation, 64, 3) == [0 + 1 + 2 + 3 + 4, 4, 100 - 10]


def test_a_register_keeps_its_address() -> None:
    body = """PE_HERE("load");
      csl_load_to_dsr(CSL_DEST, 1, csl_mem1d(64, 4, 2, 1, 0), false, NULL, &pe_here);
      csl_load_to_dsr(CSL_SRC0, 1, csl_mem1d(64, 4, 2, 1, 0), false, NULL, &pe_here);
      csl_load_to_dsr(CSL_SRC1, 2, csl_mem1d(0, 4, 2, 1, 0), true, NULL, &pe_here);
      csl_run(CSL_fmovs, SYNC, csl_of_dsr(CSL_DEST, 1), csl_of_f32(0));
      for (int i = 0; i < 3; i++)
        csl_run(CSL_fmacs, SYNC, csl_of_dsr(CSL_DEST, 1), csl_of_dsr(CSL_SRC0, 1), csl_of_dsr(CSL_SRC1, 2),
                csl_of_f32(10));"""
    simulation = one_pe(program(body), floats_image(6))
    simulation.finish()
    assert floats(simulation, 64, 2) == [10 * (0 + 2 + 4), 10 * (1 + 3 + 5)]


def test_an_index_moves_marked_operands() -> None:
    """`.index` counts 16-bit words, for the operands with wavelet_index_offset only."""
    body = """csl_dsd y = csl_mem1d(0, 4, 2, 1, 0); y.index = 1;
      csl_run(CSL_fmacs, ((csl_options){.has_index = true, .index = 2 * 3}), csl_of_dsd(y), csl_of_dsd(y),
              MEM(20, 2), csl_of_f32(100));"""
    simulation = one_pe(program(body), floats_image(9))
    simulation.finish()
    assert floats(simulation, 0, 7) == [0, 1, 2, 503, 604, 5, 6]


def test_map_runs_a_step_for_each_element() -> None:
    before = """struct captured { float factor; csl_address sum; };
      static void step(void *c, const uint32_t *in, uint32_t *out) {
        struct captured *k = c; float x, y; __builtin_memcpy(&x, in, 4); y = x * k->factor;
        csl_store(f32, k->sum, csl_load(f32, k->sum) + y); __builtin_memcpy(out, &y, 4);
        cost(.multiplications = 1); }"""
    body = """struct captured k = {3, 128}; PE_HERE("map");
      csl_map(step, &k, (csl_operand[]){MEM(0, 4)}, (uint8_t[]){4}, 1,
              MEM(64, 4), 4, &pe_here);"""
    simulation = one_pe(program(body, before=before), floats_image(4))
    simulation.finish()
    assert floats(simulation, 64, 4) == [0, 3, 6, 9]
    assert floats(simulation, 128, 1) == [18]
    one_step = 2 + 1 + 1 + 6  # load, multiplication, store, iteration
    assert simulation.cycles == ACTIVATION + LAUNCH + 4 * one_step


ERRORS = {
    """PE_HERE("up"); csl_dsd d = csl_increment_dsd_offset(csl_mem1d(0, 4, 2, 1, 0), 16, 4, &pe_here);
       csl_run(CSL_fmovs, SYNC, csl_of_dsd(d), csl_of_f32(0));""": (
        "out-of-bounds",
        "covers the bytes 64 to 72, a has 0 to 64",
    ),
    "csl_run(CSL_fmovs, SYNC, MEM(64, 5), csl_of_f32(0));": (
        "out-of-bounds",
        "covers the bytes 64 to 84, b has 64 to 80",
    ),
    "csl_run(CSL_fmovs, SYNC, MEM(64, 2), MEM(0, 3));": (
        "operand",
        "one operand has 2 elements, another 3",
    ),
    "(void)csl_load(f32, 240);": ("poison", "not initialised"),
    "(void)csl_load(f32, 254);": ("out-of-bounds", "4 bytes at address 254"),
    "(void)csl_load(u16, 0xfe00);": ("register", "0x7f00 is not modelled"),
    "(void)csl_index(5, 5);": ("out-of-bounds", "the array has 5 elements"),
    'csl_assert(1 == 2, "one is two");': ("assertion", "one is two"),
    "csl_run(CSL_fmovs, SYNC, csl_of_dsr(CSL_DEST, 3), csl_of_f32(0));": (
        "operand",
        "nothing was loaded",
    ),
    "csl_run(CSL_fmovs, ASYNC(), csl_of_address(0), csl_of_f32(0));": (
        "operand",
        "needs an operand of the fabric",
    ),
    'PE_HERE("a"); csl_activate(9, &pe_here);': ("unknown-task", "no local task is bound"),
    "csl_command_done();": ("command", "no command of the host runs"),
    "csl_dsd d = {.kind = CSL_MEMORY, .dims = 1, .index = 1};"
    "csl_run(CSL_mov32, SYNC, csl_of_dsd(d), csl_of_u32(0));": (
        "operand",
        "there is no .index",
    ),
}


def test_what_a_program_sets_up_by_itself() -> None:
    """Registers loaded before the first task, at no cost; a mistake there is an error like others."""
    before = """static void set(void) { PE_HERE("set");
      csl_load_to_dsr(CSL_DEST, NUMBER, csl_mem1d(64, 4, 2, 1, 0), false, NULL, &pe_here); }"""
    body = "csl_run(CSL_fmovs, SYNC, csl_of_dsr(CSL_DEST, 3), csl_of_f32(5));"
    simulation = one_pe(program(body, before=before.replace("NUMBER", "3"), more=".initialise = set,"))
    simulation.finish()
    assert floats(simulation, 64, 2) == [5, 5]
    assert simulation.cycles == ACTIVATION + LAUNCH + 1
    fault = failure(one_pe(program(body, before=before.replace("NUMBER", "99"), more=".initialise = set,")))
    assert (fault.kind, fault.task) == ("operand", "initialise")


def test_loose_bounds_end_with_the_memory() -> None:
    arrays = 'static const struct csl_array arrays[] = {{64, 16, "b"}, {0}};'
    beyond = "csl_run(CSL_fmovs, SYNC, MEM(64, %d), csl_of_f32(3));"
    units = program(beyond % 6, before=arrays, more=".arrays = arrays,")
    simulation = one_pe(units, bytes(256), loose=True)
    simulation.finish()
    assert floats(simulation, 64, 7) == [3, 3, 3, 3, 3, 3, 0]
    units = program(beyond % 49, before=arrays, more=".arrays = arrays,")
    assert failure(one_pe(units, bytes(256), loose=True)).kind == "out-of-bounds"


@pytest.mark.parametrize("body", list(ERRORS))
def test_errors(body: str) -> None:
    arrays = 'static const struct csl_array arrays[] = {{0, 64, "a"}, {64, 16, "b"}, {0}};'
    known = np.ones(128, np.uint8)
    known[120:] = 0
    units = program(body, before=arrays, more=".arrays = arrays,")
    simulation = fabric(units)
    simulation.place(0, 0, "p", bytes(256), known.tobytes())
    fault = failure(simulation)
    kind, message = ERRORS[body]
    assert fault.kind == kind
    assert message in fault.message
    assert fault.pe == (0, 0) and fault.task == "go"
