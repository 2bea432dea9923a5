"""Cycle counts that are worked out by hand, from the numbers of the machine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from simulated import CS2, changed, dense, fabric, feed, one_pe, role_text

from polyloom.wafer.machine.model import Machine
from polyloom.wafer.simulator.result import Result

LAUNCH, CONFIGURE, BASE = CS2.simd_launch, CS2.configure, CS2.set_base_address
ACTIVATE, DISPATCH, RAMP, HOP = (
    CS2.local_task_activate,
    CS2.data_task_dispatch,
    CS2.ramp_latency,
    CS2.hop_latency,
)


def run(role: str, machine: Machine = CS2, **more: Any) -> Result:
    result = one_pe(role, machine=machine, **more).run()
    assert result.error is None, result.error
    return result


def test_scalar_work() -> None:
    """2 operations, 3 loads, 1 store, 4 multiplications, 5 iterations, 6 branches, each times its cycles."""
    role = role_text(
        "half a[1];",
        "static void main(void) { cost(.operations = 2, .loads = 3, .stores = 1, .multiplications = 4, "
        ".iterations = 5, .branches = 6); }",
    )
    machine = changed(
        scalar_operation=1,
        scalar_load=10,
        scalar_store=100,
        scalar_multiplication=1000,
        loop_iteration=10_000,
        branch=100_000,
    )
    result = run(role, machine)
    assert result.cycles == 2 * 1 + 3 * 10 + 1 * 100 + 4 * 1000 + 5 * 10_000 + 6 * 100_000
    assert result.scalar_operations == 2 + 4
    assert result.busy.tolist() == [[result.cycles]]


def simd(to: str, a: str, b: str | None = None, *, memory: str = "half x[4096];", name: str = "fmovh") -> str:
    """main: configures one to three operands, each `sizes; strides; address`, and runs one instruction."""
    given = [text.split(";") for text in (to, a, b) if text]
    lines = []
    for k, (sizes, strides, base) in enumerate(given):
        lines.append(
            f"operand o{k} = {{{k}}}; configure(o{k}, SIZES({sizes}), STRIDES({strides}));"
            f" set_base_address(o{k}, &M.{base});"
        )
    names = ", ".join(f"o{k}" for k in range(len(given)))
    return role_text(memory, f"static void main(void) {{ {' '.join(lines)} invoke_simd({name}, {names}); }}")


def simd_cycles(role: str, operands: int) -> int:
    """What remains of the run without configuration and launch."""
    return run(role).cycles - operands * (CONFIGURE + BASE) - LAUNCH


@pytest.mark.parametrize(
    ("stride", "per_cycle"),
    [
        (1, 4),
        (-1, 2),
        (2, 4),
        (3, 4),
        (4, 2),
        (5, 4),
        (6, 4),
        (7, 2),
        (8, 1),
        (9, 2),
        (16, 1),
        (-2, 4),
        (0, 4),
    ],
)
def test_strides_limit_the_width(stride: int, per_cycle: int) -> None:
    """20 halves at 4 a cycle, or less where the stride of the source says so."""
    base = 2000 if stride < 0 else 0
    role = simd("20;1;x[3000]", f"20;{stride};x[{base}]")
    assert simd_cycles(role, 2) == -(-20 // per_cycle)


@pytest.mark.parametrize(("offset", "factor"), [(64, 2), (65, 1), (66, 1), (67, 1), (68, 2)])
def test_two_sources_in_the_same_banks_take_twice_as_long(offset: int, factor: int) -> None:
    """16 additions at 4 a cycle; bases whose words differ by a multiple of 4 collide."""
    role = simd("16;1;x[1000]", "16;1;x[0]", f"16;1;x[{offset}]", name="faddh")
    assert simd_cycles(role, 3) == factor * 4


@pytest.mark.parametrize(
    ("stride", "base", "factor"), [(8, 0, 2), (16, 64, 2), (8, 1, 1), (9, 0, 1), (1, 0, 1), (0, 0, 1)]
)
def test_writing_into_the_bank_that_is_read(stride: int, base: int, factor: int) -> None:
    """The destination's stride of 8 words allows one element a cycle; where the source's is a multiple of 8
    as well and both lie in one bank (mod 4), each element takes two."""
    role = simd("20;8;x[1000]", f"20;{stride};x[{base}]", name="fmovh")
    assert simd_cycles(role, 2) == factor * 20


def test_rows_are_rounded_up_one_by_one_unless_they_are_contiguous() -> None:
    """3 rows of 5 at 4 a cycle: 3 * 2. The same 15 elements in one piece: 4."""
    apart = simd("3, 5;6, 1;x[1000]", "3, 5;7, 1;x[0]")
    joined = simd("3, 5;5, 1;x[1000]", "3, 5;5, 1;x[0]")
    half_joined = simd("3, 5;5, 1;x[1000]", "3, 5;7, 1;x[0]")
    assert (simd_cycles(apart, 2), simd_cycles(joined, 2), simd_cycles(half_joined, 2)) == (6, 4, 6)


@pytest.mark.parametrize(("name", "per_cycle"), [("fmovs", 2), ("mov32", 2), ("fmuls", 1)])
def test_widths_of_instructions(name: str, per_cycle: int) -> None:
    """12 elements of 32 bits; their stride of 2 words of 16 bits allows the full width."""
    kind = "int32_t" if name == "mov32" else "float"
    memory = f"{kind} x[100];"
    operands = ["12;1;x[0]", "12;1;x[25]", "12;1;x[52]"] if name == "fmuls" else ["12;1;x[0]", "12;1;x[25]"]
    banks = 2 if name == "fmuls" and (2 * 25 - 2 * 52) % 4 == 0 else 1
    role = simd(*operands, memory=memory, name=name)
    assert simd_cycles(role, len(operands)) == banks * 12 // per_cycle


def test_published_multiplication_of_floats() -> None:
    """fmuls of 5124 elements on WSE-2: 5130 cycles with friendly banks, about twice that with others.

    Source: SpMM_Cerebras, src/fmacs_test: 5130 and 10254.
    """
    friendly = "5124;1;x[0]", "5124;0;x[0]", "5124;1;x[0]"
    role = simd(*friendly, memory="float x[5200];", name="fmuls")
    assert simd_cycles(role, 3) + LAUNCH == 5130
    colliding = "5124;1;x[0]", "5124;1;x[0]", "5124;1;x[0]"
    role = simd(*colliding, memory="float x[5200];", name="fmuls")
    assert simd_cycles(role, 3) + LAUNCH == 10254


def test_a_data_task_for_each_wavelet() -> None:
    """The first wavelet leaves the source at 0, is in the router at HOP, in the queue at HOP + RAMP; then
    3 tasks of DISPATCH + 7 operations follow each other without a gap."""
    role = role_text(
        "half a[1];",
        "static void handle(half data) { cost(.operations = 7); }\nstatic void main(void) { unblock(0); }",
        inputs="{ DENSE_HALF(handle) }",
    )
    simulation = one_pe(role)
    feed(simulation, "north", 0, 0, dense(np.ones(3, np.float16)))
    result = simulation.run()
    assert result.error is None
    assert result.cycles == HOP + RAMP + 3 * (DISPATCH + 7)
    assert result.busy[0, 0] == 1 + 3 * (DISPATCH + 7)
    assert result.events == 3 + 3 + 1


PASS_ON = """
#include "layout.h"
extern const struct role P;
void layout(int PE_X, int PE_Y) {
  program(&P);
  route(PE_X % 2, RAMP, EAST);
  bind_output(0, PE_X % 2);
  if (PE_X > 0) { route(1 - PE_X % 2, WEST, RAMP); bind_input(0, 1 - PE_X % 2); }
}
"""


@pytest.mark.parametrize(("stages", "elements"), [(1, 1), (2, 1), (4, 1), (4, 10), (15, 128)])
def test_a_pipelined_chain(stages: int, elements: int) -> None:
    """The first PE starts its instruction after main (3 * CONFIGURE + BASE cycles), ACTIVATE and LAUNCH.

    From there a stage of the chain takes 1 (the addition), RAMP (to the router), HOP, and for the next one
    RAMP (to its queue): 6 on cs2, as measured on WSE-2 (chain-512 of benchmarks/machine_validation.py). The
    last element is elements - 1 cycles behind the first."""
    role = role_text(
        "half a[128];",
        f"""
        static void work(void) {{
          operand in = {{0}}, out = {{1}}, a = {{2}};
          if (PE_X == 0) invoke_simd(fmovh, out, a); else invoke_simd(faddh, out, in, a);
        }}
        static void main(void) {{
          operand in = {{0}}, out = {{1}}, a = {{2}};
          configure_input(in, 0, {elements});
          configure_output(out, 0, {elements});
          configure(a, SIZES({elements}), STRIDES(1));
          set_base_address(a, &M.a[0]);
          activate(work);
        }}
        """,
        tasks="BLOCKING(work)",
    )
    simulation = fabric({"P.c": role, "layout.c": PASS_ON}, stages, 1)
    everywhere = range(stages), [0] * stages
    simulation.load(
        *everywhere, 0, np.ones((stages, 128), np.float16).view(np.uint8), np.ones((stages, 128), bool), 2
    )
    simulation.sink("east", 0, (stages - 1) % 2, elements)
    result = simulation.run()
    assert result.error is None
    payload, _, cycles = simulation.received("east", 0, (stages - 1) % 2)
    start = 3 * CONFIGURE + BASE + ACTIVATE + LAUNCH
    stage = 1 + RAMP + HOP
    assert cycles[0] == start + stages * stage + (stages - 1) * RAMP
    assert cycles[-1] == cycles[0] + elements - 1
    assert (payload.astype(np.uint16).view(np.float16) == stages).all()


@pytest.mark.parametrize(("scalar", "elements"), [(100, 20), (100, 80), (5, 20)])
def test_a_microthread_takes_cycles_from_the_main_thread(scalar: int, elements: int) -> None:
    """A microthread sends from memory while the main thread computes: every second cycle is the
    microthread's, and delays the end of the main thread's task; when that has ended, all cycles are."""
    role = role_text(
        "half a[200];",
        f"""
        static void done(void) {{}}
        static void main(void) {{
          operand out = {{0}}, a = {{1}};
          configure_output(out, 0, {elements});
          configure(a, SIZES({elements}), STRIDES(1));
          set_base_address(a, &M.a[0]);
          start_simd(done, fmovh, out, a);
          cost(.operations = {scalar});
        }}
        """,
        tasks="LOCAL(done)",
    )
    simulation = one_pe(role)
    simulation.load([0], [0], 0, np.zeros((1, 400), np.uint8), np.ones((1, 200), np.bool_), 2)
    simulation.sink("east", 0, 2, elements)
    result = simulation.run()
    assert result.error is None
    cycles = simulation.received("east", 0, 2)[2]
    start = 2 * CONFIGURE + BASE + LAUNCH
    turns = min(scalar, elements - 1)
    assert cycles[0] == start + 1 + RAMP + HOP
    assert np.diff(cycles).tolist() == [2] * turns + [1] * (elements - 1 - turns)
    assert result.busy[0, 0] == start + scalar + elements + ACTIVATE


@pytest.mark.parametrize("wake", [1, 5, 13])
def test_a_microthread_sleeps_where_its_queue_is_empty(wake: int) -> None:
    """It wakes so many cycles after the first of two elements has come; the second one is there by then."""
    role = role_text(
        "half a[2];",
        """
        static void done(void) {}
        static void main(void) {
          operand in = {0}, a = {1};
          configure_input(in, 0, 2);
          configure(a, SIZES(2), STRIDES(1));
          set_base_address(a, &M.a[0]);
          start_simd(done, fmovh, a, in);
        }
        """,
        tasks="LOCAL(done)",
    )
    start = 2 * CONFIGURE + BASE + LAUNCH
    simulation = one_pe(role, machine=changed(microthread_wake=wake, hop_latency=40))
    feed(simulation, "north", 0, 0, dense(np.ones(2, np.float16)))
    result = simulation.run()
    assert result.error is None and start < 40 + RAMP
    assert result.cycles - ACTIVATE == 40 + RAMP + wake + 2


@pytest.mark.parametrize("beside", [False, True])
def test_a_task_starts_when_the_one_before_has_received_its_last_element(*, beside: bool) -> None:
    """Nothing else happens on the PE then: a microthread that was beside has ended long ago."""
    role = role_text(
        "half a[2]; half b[40];",
        f"""
        static const operand in = {{0}}, in_1 = {{1}}, a = {{2}}, b = {{3}};
        static void reply(void) {{ send(0, (half)1); }}
        static void work(void) {{ invoke_simd(fmovh, b, in_1); activate(reply); }}
        static void done(void) {{}}
        static void main(void) {{
          configure_input(in, 0, 2);
          configure_input(in_1, 1, 40);
          configure(a, SIZES(2), STRIDES(1));
          configure(b, SIZES(40), STRIDES(1));
          set_base_address(a, &M.a[0]);
          set_base_address(b, &M.b[0]);
          {"start_simd(done, fmovh, a, in);" if beside else ""}
          activate(work);
        }}
        """,
        tasks="BLOCKING(reply), BLOCKING(work), LOCAL(done)",
    )
    simulation = one_pe(role, machine=changed(hop_latency=100, router_buffer=101))
    if beside:
        feed(simulation, "north", 0, 0, dense(np.ones(2, np.float16)))
    feed(simulation, "west", 0, 1, dense(np.ones(40, np.float16)))
    simulation.sink("east", 0, 2, 1)
    result = simulation.run()
    assert result.error is None
    received = 100 + RAMP + 40 + 4 * beside  # the microthread's two elements take the ramp and the engine
    assert simulation.received("east", 0, 2)[2].tolist() == [received + ACTIVATE + CS2.send + RAMP + 100]


def test_send_and_receive() -> None:
    """Out at 1 + ACTIVATE + send, over ramp and link; the clock of the task counts both."""
    role = role_text(
        "half a[1];",
        "static void work(void) {"
        " send(0, (half)1); half v = receive(half, 0); cost(.operations = 3); send(0, v); }\n"
        "static void main(void) { activate(work); }",
        tasks="BLOCKING(work)",
    )
    simulation = one_pe(role)
    feed(simulation, "north", 0, 0, dense(np.full(1, 7, np.float16)))
    simulation.sink("east", 0, 2, 2)
    result = simulation.run()
    assert result.error is None
    sent = 1 + ACTIVATE + CS2.send
    received = sent + CS2.receive  # it had come before
    assert simulation.received("east", 0, 2)[2].tolist() == [
        sent + RAMP + HOP,
        received + 3 + CS2.send + RAMP + HOP,
    ]
