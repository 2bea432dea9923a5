"""The simulator is strict: each mistake is an error with PE, task, place and cycle, and never a crash."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from simulated import changed, dense, error_of, fabric, feed, one_pe, role_text, sparse

from polyloom.wafer.simulator.fabric import Fabric
from samples import LATER

NOTHING = np.zeros(0, np.uint32)


def in_main(statements: str, memory: str = "half a[4]; half b[4];", **more: Any) -> str:
    return role_text(memory, f"static void main(void) {{\n{statements}\n}}", **more)


def in_task(
    statements: str, memory: str = "half a[4]; half b[4];", inputs: str = "", functions: str = ""
) -> str:
    work = f"static void work(void) {{\n{statements}\n}}\n"
    code = f"{functions}\n{work}static void main(void) {{ activate(work); }}"
    return role_text(memory, code, tasks="BLOCKING(work)", inputs=inputs)


def line_of(role: str, text: str) -> int:
    return next(i for i, line in enumerate(role.splitlines(), 1) if text in line)


ARRAYS = "array(M.a); array(M.b); configure({0}, SIZES(4), STRIDES(1)); configure({1}, SIZES(4), STRIDES(1));"
OPERANDS = "operand o = {0}, p = {1}; configure(o, SIZES(4), STRIDES(1)); configure(p, SIZES(4), STRIDES(1));"
BASES = "set_base_address(o, &M.a[0]); set_base_address(p, &M.b[0]);"
IN_A_TASK = {
    "poison": [
        "store(M.a[1], load(M.a[0]));",
        "operand o = {0}; configure_output(o, 0, 4);"
        + OPERANDS.replace("operand o = {0}", "operand q = {2}").replace("o,", "q,")
        + " set_base_address(p, &M.b[0]); invoke_simd(fmovh, o, p);",
    ],
    "out-of-bounds": [
        "int i = 4 + PE_X; store(M.a[i], (half)0);",
        "int i = -1 - PE_X; cost(.loads = 1); (void)load(M.b[i]);",
        OPERANDS
        + "set_base_address(p, &M.b[0]); set_base_address(o, &M.b[1]); invoke_simd(fmovh, o, (half)1);",
        "array(M.a); array(M.b);"
        + OPERANDS
        + "set_base_address(o, &M.a[1]); invoke_simd(fmovh, o, (half)1);",
        "array(M.a); array(M.b); operand o = {0}; configure(o, SIZES(4), STRIDES(-1));"
        "set_base_address(o, &M.b[2]); invoke_simd(fmovh, o, (half)1);",
    ],
    "unknown-task": ["activate(nowhere);"],
    "too-many-queues": [
        "send(6, (half)1);",
        "(void)receive(half, 8);",
        "unblock(9);",
        "configure_input((operand){0}, 8, 1);",
    ],
    "unbound-queue": ["send(5, (half)1);", "(void)receive(half, 3);"],
    "operand": [
        "operand o = {0}; invoke_simd(fmovh, o, (half)1);",
        "operand o = {0}; configure(o, SIZES(4), STRIDES(1)); invoke_simd(fmovh, o, (half)1);",
        OPERANDS + BASES + "configure(p, SIZES(3), STRIDES(1)); invoke_simd(fmovh, o, p);",
        OPERANDS + BASES + "invoke_simd(fmovs, o, 1.0f);",
        OPERANDS + BASES + "invoke_simd(fmovh, o, 1.0f);",
        "operand o = {9}; configure(o, SIZES(4), STRIDES(1));",
        "operand o = {0}; configure(o, SIZES(2, 2), STRIDES(1));",
        "operand o = {0}; configure(o, SIZES(-1), STRIDES(1));",
        "operand o = {0}; configure_input(o, 0, 4);" + "invoke_simd(fmovh, o, (half)1);",
        "operand o = {0}, p = {1}, q = {2}; configure_output(o, 0, 4); configure_input(p, 0, 4);"
        "configure_input(q, 1, 4); invoke_simd(faddh, o, p, q);",
        "operand o = {0}, p = {1}; configure_output(o, 0, 4); configure_input(p, 0, 3);"
        "invoke_simd(fmovh, o, p);",
    ],
    "wavelet-type": ["send_sparse(0, 1, 1.0f);"],
    "index-range": ["send_sparse(0, 65536, (half)1);"],
    "endless": ["for (;;) cost(.iterations = 1000);"],
}


@pytest.mark.parametrize(
    ("kind", "statements"),
    [(k, s) for k, group in IN_A_TASK.items() for s in group[:1]]
    + [pytest.param(k, s, marks=LATER) for k, group in IN_A_TASK.items() for s in group[1:]],
)
def test_mistakes_in_a_task(kind: str, statements: str) -> None:
    role = in_task(statements)
    error = error_of(one_pe(role))
    assert (error.kind, error.pe, error.task) == (kind, (0, 0), "work")
    if kind != "endless":
        assert error.place == ("P.c", line_of(role, statements))
    assert error.message and error.cycle >= 0


def test_the_bounds_sanitizer_names_index_and_array() -> None:
    error = error_of(one_pe(in_task("int i = 17 + PE_X; store(M.a[i], (half)0);")))
    assert "17" in error.message and "[4]" in error.message


def test_arrays_of_two_dimensions_are_checked_in_each() -> None:
    role = in_task("int i = 3 + PE_X; store(M.c[0][i], (half)0);", memory="half c[2][3];")
    assert error_of(one_pe(role)).kind == "out-of-bounds"


@pytest.mark.parametrize("statements", ["send(0, (half)1);", "(void)receive(half, 0);", "send_end(0);"])
def test_only_blocking_tasks_may_wait(statements: str) -> None:
    error = error_of(one_pe(in_main(statements)))
    assert error.kind == "not-blocking" and "BLOCKING" in error.message and error.task == "main"


def test_poison_passes_through_simd_without_error() -> None:
    """b = a + a is as unknown as a; only what is known may leave, or be looked at."""
    statements = (
        OPERANDS + BASES + "store(M.a[2], (half)3); invoke_simd(faddh, p, o, o); store(M.a[0], load(M.b[2]));"
    )
    simulation = one_pe(in_task(statements))
    assert simulation.run().error is None
    values, known = simulation.read([0], [0], 0, 16)
    assert known[0].tolist() == [True, False, True, False, False, False, True, False]
    assert values[0].view(np.float16)[[0, 2, 6]].tolist() == [6, 3, 6]


HANDLER = "static void handle(half data) { cost(.operations = 1); }\nstatic void end(void) {}\n"


def listening(inputs: str, main: str = "unblock(0);") -> Fabric:
    return one_pe(role_text("half a[1];", HANDLER + f"static void main(void) {{ {main} }}", inputs=inputs))


def test_an_end_of_chunk_needs_a_task() -> None:
    simulation = listening("{ DENSE_HALF(handle) }")
    feed(simulation, "north", 0, 0, NOTHING, ends=1)
    error = error_of(simulation)
    assert error.kind == "no-end-task" and "queue 0" in error.message


def test_data_left_in_a_queue() -> None:
    simulation = listening("{ DENSE_HALF(handle) }", main="block(0);")
    feed(simulation, "north", 0, 0, dense(np.ones(3, np.float16)))
    error = error_of(simulation)
    assert error.kind == "data-left"
    assert error.details == ("PE(0, 0): 3 wavelets of color 0 in input queue 0 (blocked)",)


def test_a_source_that_is_not_emptied_is_a_deadlock() -> None:
    simulation = listening("{ DENSE_HALF(handle) }", main="block(0);")
    feed(simulation, "north", 0, 0, dense(np.ones(100, np.float16)))
    error = error_of(simulation)
    assert error.kind == "deadlock"
    assert error.details[0] == "source north 0, color 0: 88 of 100 wavelets not taken"
    assert error.details[1].startswith("PE(0, 0): 8 wavelets of color 0 in input queue 0 (blocked)")


def test_a_sink_that_expects_more() -> None:
    simulation = one_pe(in_task("send(0, (half)1);"))
    simulation.sink("east", 0, 2, 2)
    error = error_of(simulation)
    assert error.kind == "deadlock"
    assert error.details == ("sink east 0, color 2: 1 wavelets came, 2 are expected",)


def test_a_sink_that_expects_less() -> None:
    simulation = one_pe(in_task("send(0, (half)1); send(0, (half)1);"))
    simulation.sink("east", 0, 2, 1)
    assert error_of(simulation).details == ("sink east 0, color 2: 2 wavelets came, 1 are expected",)


def test_a_task_that_waits_for_ever_says_for_what() -> None:
    role = in_task("(void)receive(half, 1);")
    error = error_of(one_pe(role))
    assert error.kind == "deadlock"
    line = line_of(role, "receive(half, 1)")
    waits = "waits for an element of input queue 1, color 1, since cycle 15: receive(1)"
    assert error.details == (f"PE(0, 0): task work {waits} (P.c:{line})",)


def test_a_sender_that_nobody_reads_says_so() -> None:
    layout = LAYOUT.format(
        "program(&P); if (PE_X) { route(4, WEST, RAMP); bind_input(0, 4); }"
        " else { route(4, RAMP, EAST); bind_output(2, 4); }"
    )
    role = in_task("if (PE_X == 0) for (int i = 0; i < 100; i++) send(2, (half)i);")
    error = error_of(fabric({"P.c": role, "layout.c": layout}, 2, 1))
    assert error.kind == "deadlock"
    assert error.details[0].startswith(
        "PE(0, 0): task work waits for room in output queue 2, color 4, since cycle"
    )
    assert error.details[2].startswith("PE(1, 0): 8 wavelets of color 4 in input queue 0 (blocked)")


def test_control_tasks_are_named_after_the_data_task() -> None:
    code = (
        "static void handle(half data) {}\nstatic void end(void) { (void)load(M.a[0]); }\n"
        "static void main(void) { unblock(0); }"
    )
    simulation = one_pe(role_text("half a[1];", code, inputs="{ DENSE_HALF(handle), .end = end }"))
    feed(simulation, "north", 0, 0, NOTHING, ends=1)
    assert error_of(simulation).task == "end of handle"


def test_a_microthread_that_waits_for_ever_says_for_what() -> None:
    code = """
    static void done(void) {}
    static void main(void) {
      operand in = {0}, a = {1};
      configure_input(in, 0, 4);
      configure(a, SIZES(4), STRIDES(1));
      set_base_address(a, &M.a[0]);
      start_simd(done, fmovh, a, in);
    }
    """
    simulation = one_pe(role_text("half a[4];", code, tasks="LOCAL(done)"))
    feed(simulation, "north", 0, 0, dense(np.ones(3, np.float16)))
    error = error_of(simulation)
    assert error.kind == "deadlock"
    assert (
        "fmovh of a microthread waits for an element of input queue 0, color 0; 1 elements to come"
        in error.details[0]
    )


def test_long_reports_are_cut() -> None:
    layout = """
    #include "layout.h"
    extern const struct role P;
    void layout(int PE_X, int PE_Y) { program(&P); route(1, NORTH, RAMP); bind_input(1, 1); }
    """
    error = error_of(fabric({"P.c": in_task("(void)receive(half, 1);"), "layout.c": layout}, 5, 6))
    assert len(error.details) == 21 and error.details[-1] == "and 10 more"


def test_a_wavelet_of_another_type() -> None:
    layout = """
    #include "layout.h"
    extern const struct role P;
    void layout(int PE_X, int PE_Y) {
      program(&P);
      if (PE_X == 0) { route(0, RAMP, EAST); bind_output(0, 0); }
      else { route(0, WEST, RAMP); bind_input(0, 0); }
    }
    """
    cases = {
        "send(0, 1.0f);": ("wavelet-type", "float"),
        "send_sparse(0, 1, (half)1);": ("wavelet-type", "an (index, half) pair"),
        "send(0, (int16_t)1);": ("wavelet-type", "int16_t"),
        "send_end(0);": ("wavelet-type", "an end of chunk"),
    }
    for statement, (kind, name) in cases.items():
        role = in_task(f"if (PE_X == 0) {{ {statement} }} else (void)receive(half, 0);")
        error = error_of(fabric({"P.c": role, "layout.c": layout}, 2, 1))
        assert (error.kind, error.pe) == (kind, (1, 0)) and name in error.message
    role = role_text(
        "half a[1];",
        "static void handle(uint16_t index, half data) {}\n"
        "static void work(void) { if (PE_X == 0) send(0, (half)1); }\n"
        "static void main(void) { unblock(0); activate(work); }",
        inputs="{ SPARSE_HALF(handle) }",
        tasks="BLOCKING(work)",
    )
    error = error_of(fabric({"P.c": role, "layout.c": layout}, 2, 1))
    assert error.kind == "wavelet-type" and "handle" in error.message and error.pe == (1, 0)


def test_a_queue_has_one_reader() -> None:
    role = in_task("unblock(0); (void)receive(half, 0);", functions=HANDLER, inputs="{ DENSE_HALF(handle) }")
    assert error_of(one_pe(role)).kind == "queue-in-use"


LAYOUT = '#include "layout.h"\nextern const struct role P;\nvoid layout(int PE_X, int PE_Y) {{ {} }}\n'


@pytest.mark.parametrize(
    ("kind", "statements"),
    [
        ("route", "route(0, NORTH, RAMP); route(0, WEST, RAMP);"),
        ("route", "route(0, NORTH | SOUTH, RAMP);"),
        ("route", "route(0, NORTH, NORTH | RAMP);"),
        ("route", "route(0, NORTH, EAST);"),
        ("route", "route_in_turn(0, NORTH, NORTH, RAMP);"),
        ("route", "route_in_turn(0, NORTH, EAST, EAST | RAMP);"),
        ("filter", "filter(0, 0, 1, 2);"),
        ("filter", "route(0, RAMP, EAST); filter(0, 0, 1, 2);"),
        ("filter", "route(0, NORTH, RAMP); filter(0, 1, 2, 2);"),
        ("color", "route(24, NORTH, RAMP);"),
        (
            "binding",
            "program(&P); route(0, NORTH, RAMP); route(1, NORTH, RAMP); bind_input(0, 0); bind_input(0, 1);",
        ),
        ("binding", "program(&P); route(0, NORTH, RAMP); bind_input(0, 0); bind_input(1, 0);"),
        ("binding", "program(&P); bind_output(0, 0);"),
        ("too-many-queues", "program(&P); route(0, NORTH, RAMP); bind_input(8, 0);"),
        ("too-many-queues", "program(&P); route(0, RAMP, SOUTH); bind_output(6, 0);"),
    ],
)
def test_mistakes_of_the_layout(kind: str, statements: str) -> None:
    texts = {"P.c": in_main(""), "layout.c": LAYOUT.format(statements)}
    error = error_of(fabric(texts, 2, 1))
    assert error.kind == kind and error.pe == (0, 0)


def test_a_circle_of_routes() -> None:
    text = (
        "route(0, PE_Y == 0 ? (PE_X == 0 ? SOUTH : WEST) : (PE_X == 0 ? EAST : NORTH),"
        " PE_Y == 0 ? (PE_X == 0 ? EAST : SOUTH) : (PE_X == 0 ? NORTH : WEST));"
    )
    error = error_of(fabric({"layout.c": LAYOUT.format(text)}, 2, 2))
    assert error.kind == "route" and "circle" in error.message


def test_a_wavelet_that_leaves_where_nothing_takes_it() -> None:
    error = error_of(one_pe(in_task("send(0, (half)1);")))
    assert error.kind == "no-sink" and "color 2" in error.message


def test_a_wavelet_for_a_pe_that_does_not_listen() -> None:
    layout = LAYOUT.format("program(&P); route(0, NORTH, RAMP);")
    simulation = one_pe(in_main(""), layout=layout)
    feed(simulation, "north", 0, 0, sparse(np.ones(1, np.float16)))
    error = error_of(simulation)
    assert error.kind == "unbound-color" and "color 0" in error.message


def test_a_source_needs_a_route() -> None:
    simulation = one_pe(in_main(""))
    feed(simulation, "south", 0, 0, dense(np.ones(1, np.float16)))
    error = error_of(simulation)
    assert error.kind == "route" and "SOUTH" in error.message


def test_a_role_that_does_not_fit() -> None:
    error = error_of(one_pe(in_main("", memory="half a[100];"), machine=changed(sram_bytes=8192 + 100)))
    assert error.kind == "memory" and "200" in error.message


def test_a_limit_of_cycles() -> None:
    error = error_of(one_pe(in_task("for (;;) cost(.operations = 1);"), max_cycles=1000))
    assert error.kind == "cycle-limit" and error.cycle <= 1000
    role = role_text("half a[1];", "static void main(void) { activate(main); }", tasks="LOCAL(main)")
    assert error_of(one_pe(role, max_cycles=1000)).kind == "cycle-limit"


def test_too_many_microthreads() -> None:
    code = """
    static void done(void) {}
    static void main(void) {
      operand in = {0}, a = {1};
      configure_input(in, PE_X, 4);
      configure(a, SIZES(4), STRIDES(1));
      set_base_address(a, &M.a[0]);
      start_simd(done, fmovh, a, in);
      configure_input(in, 1, 4);
      start_simd(done, fmovh, a, in);
    }
    """
    error = error_of(
        one_pe(role_text("half a[4];", code, tasks="LOCAL(done)"), machine=changed(microthreads=1))
    )
    assert error.kind == "too-many-microthreads"


def test_the_first_failure_counts_and_of_one_cycle_the_first_pe() -> None:
    layout = LAYOUT.format("program(&P);")
    texts = {"P.c": in_main("if (PE_X != 1) (void)load(M.a[PE_Y]);"), "layout.c": layout}
    for more in ({"backwards": False}, {"backwards": True}, {"threads": 3}):
        assert error_of(fabric(texts, 3, 3, **more)).pe == (0, 0)


@pytest.mark.parametrize("limit", [None, 0, 1, 7, 20, 40])
def test_threads_fail_as_one_does(limit: int | None) -> None:
    """Wavelets that nobody takes: data left in the fabric, or the limit of cycles before that."""
    layout = """
    #include "layout.h"
    void layout(int PE_X, int PE_Y) { route(0, NORTH, PE_Y < 4 ? SOUTH : RAMP); }
    """
    errors = []
    for threads in (1, 2, 5):
        simulation = fabric({"layout.c": layout}, 2, 5, threads=threads, max_cycles=limit)
        feed(simulation, "north", 1, 0, np.arange(3, dtype=np.uint32))
        errors.append(error_of(simulation))
    assert errors[0] == errors[1] == errors[2]


def test_messages_say_where_and_when() -> None:
    text = str(error_of(one_pe(in_task("(void)load(M.a[0]);"))))
    assert text.startswith("load(M.a[0]): the element is not initialised (PE(0, 0), task work, P.c:")
