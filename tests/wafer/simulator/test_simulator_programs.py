"""Whole programs: numbers that come out, in every order of visits, and every time the same."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from simulated import (
    CS2,
    changed,
    dense,
    fabric,
    feed,
    files_of,
    halves,
    one_pe,
    role_text,
    set_memory,
    sparse,
)

from polyloom.wafer.machine.model import load_machine
from polyloom.wafer.simulator import fabric as of_fabrics
from polyloom.wafer.simulator.fabric import Fabric
from polyloom.wafer.simulator.result import Result


def chain(width: int, height: int, invocations: int, **more: Any) -> tuple[Fabric, np.ndarray]:
    size = f"enum {{ WIDTH = {width}, HEIGHT = {height} }};\n"
    simulation = fabric(files_of("chain", size=size), width, height, invocations=invocations, **more)
    rng = np.random.default_rng(width * height)
    ys, xs = (a.ravel() for a in np.indices((height, width)))
    weights = rng.integers(-2, 3, (height, width, 16, 8)).astype(np.float16)
    set_memory(simulation, xs, ys, 32, weights.reshape(height * width, 128))
    x = rng.integers(-2, 3, (invocations, width, 8)).astype(np.float16)
    for column in range(width):
        feed(simulation, "north", column, 0, *map(sparse, x[:, column]), ends=1)
    for row in range(height):
        simulation.sink("east", row, 1 + (width - 1) % 2, 17 * invocations)
    return simulation, np.einsum("yxij,nxj->nyi", weights.astype(float), x.astype(float))


def rows_of(simulation: Fabric, invocations: int) -> Iterator[np.ndarray]:
    for row in range(simulation.height):
        payload, control, _ = simulation.received("east", row, 1 + (simulation.width - 1) % 2)
        assert control.reshape(invocations, 17)[:, 16].all() and control.sum() == invocations
        yield halves(payload.reshape(invocations, 17)[:, :16])


@pytest.mark.parametrize(("width", "height", "invocations"), [(1, 1, 1), (2, 1, 2), (4, 4, 3), (5, 3, 2)])
def test_matrix_vector_product_reduced_along_rows(width: int, height: int, invocations: int) -> None:
    simulation, expected = chain(width, height, invocations)
    result = simulation.run()
    assert result.error is None
    for row, values in enumerate(rows_of(simulation, invocations)):
        np.testing.assert_array_equal(values, expected[:, row])


def summary(simulation: Fabric) -> list[Any]:
    result = simulation.run()
    assert result.error is None
    ports = [
        simulation.received("east", row, 1 + (simulation.width - 1) % 2) for row in range(simulation.height)
    ]
    return [
        result.cycles,
        result.events,
        result.busy.tolist(),
        [[a.tolist() for a in port] for port in ports],
    ]


@pytest.mark.parametrize("name", ["cs1", "cs2", "cs3"])
def test_nothing_depends_on_the_order_of_visits(name: str) -> None:
    machine = load_machine(name)
    runs = [summary(chain(6, 5, 3, machine=machine, backwards=b)[0]) for b in (False, True, False)]
    assert runs[0] == runs[1] == runs[2]


@pytest.mark.parametrize("threads", [2, 3, 5, 9])
def test_threads_change_neither_bits_nor_cycles(threads: int) -> None:
    alone, shared = (chain(6, 5, 3, threads=n)[0] for n in (1, threads))
    assert summary(shared) == summary(alone)


@pytest.mark.parametrize("buffer", [1, 2, 5])
def test_threads_wait_for_full_routers_as_one_does(buffer: int) -> None:
    machine = dataclasses.replace(load_machine("cs2"), router_buffer=buffer)
    runs = [summary(chain(4, 6, 2, machine=machine, threads=n)[0]) for n in (1, 2, 3, 6)]
    assert all(run == runs[0] for run in runs)


def test_threads_are_as_many_as_pes_with_programs_pay_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A PE that only passes wavelets on has little work to share."""
    monkeypatch.setattr(of_fabrics, "PROGRAMS_FOR_THREADS", 12)
    monkeypatch.setattr(of_fabrics.os, "sched_getaffinity", lambda _: {0, 1, 2}, raising=False)
    files = {"P.c": role_text("", "static void main(void) {}")}
    for columns, threads in ((2, 1), (3, 3), (6, 3)):
        layout = f"""
#include "layout.h"
extern const struct role P;
void layout(int PE_X, int PE_Y) {{ if (PE_X < {columns}) program(&P); }}
"""
        with fabric(files | {"layout.c": layout}, 6, 4) as simulation:
            assert simulation.threads == threads
            assert simulation.run().error is None


def test_a_fabric_with_threads_can_be_closed_at_any_time() -> None:
    for invocations in (1, 400):
        simulation, _ = chain(6, 5, invocations, threads=3)
        if invocations > 1:
            simulation._library.fabric_run(simulation._handle, 0.0)
        simulation.close()


def convolution(**more: Any) -> tuple[Fabric, np.ndarray]:
    simulation = fabric(files_of("convolution"), 1, 2, invocations=2, **more)
    rng = np.random.default_rng(5)
    x, w = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((2, 16), (2, 3)))
    set_memory(simulation, [0, 0], [0, 1], 36, w)
    feed(simulation, "north", 0, 0, *map(sparse, x), ends=1)
    for k in (0, 1):
        simulation.sink("west", k, 1, 40)
    full = [
        [np.convolve(row, kernel[::-1], "valid") for kernel in w.astype(float)] for row in x.astype(float)
    ]
    return simulation, np.array(full)


def test_convolution_of_a_sparse_stream_over_two_invocations() -> None:
    simulation, expected = convolution()
    assert simulation.run().error is None
    for k in (0, 1):
        payload, control, _ = simulation.received("west", k, 1)
        for n, part in enumerate(payload.reshape(2, 20)):
            np.testing.assert_array_equal(halves(part[:14]), expected[n, k])
            np.testing.assert_array_equal(halves(part[14:18]), expected[n, k, :4])
            assert part[18] >> 16 == 5 and halves(part[18:19])[0] == expected[n, k, 5]
        assert control.nonzero()[0].tolist() == [19, 39]


def test_zeros_may_be_left_out_and_chunks_may_be_empty() -> None:
    simulation = fabric(files_of("convolution"), 1, 2, invocations=1)
    set_memory(simulation, [0, 0], [0, 1], 36, np.ones((2, 3), np.float16))
    feed(simulation, "north", 0, 0, np.zeros(0, np.uint32), ends=1)
    for k in (0, 1):
        simulation.sink("west", k, 1, 20)
    assert simulation.run().error is None
    assert not halves(simulation.received("west", 1, 1)[0][:18]).any()


MULTICAST = """
#include "layout.h"
extern const struct role P;
void layout(int PE_X, int PE_Y) {
  program(&P);
  route(0, NORTH, PE_Y < 3 ? RAMP | SOUTH : RAMP);
  route(1, RAMP, EAST);
  bind_input(0, 0);
  bind_output(0, 1);
}
"""
SLOW_LAST = role_text(
    "half last[1];",
    """
    static void handle(half data) { cost(.operations = PE_Y == 3 ? 100 : 1); store(M.last[0], data); }
    static void end(void) { activate(answer); }
    static void answer(void) { send(0, load(M.last[0])); }
    static void main(void) { unblock(0); }
    """,
    inputs="{ DENSE_HALF(handle), .end = end }",
    tasks="BLOCKING(answer)",
)


def column(count: int, **more: Any) -> tuple[Fabric, Result]:
    simulation = fabric({"P.c": SLOW_LAST, "layout.c": MULTICAST}, 1, 4, **more)
    feed(simulation, "north", 0, 0, dense(np.arange(count).astype(np.float16)), ends=1)
    for row in range(4):
        simulation.sink("east", row, 1, 1)
    return simulation, simulation.run()


def test_a_slow_receiver_holds_back_the_whole_multicast() -> None:
    """The last PE takes 116 cycles a wavelet; the buffers before it bound how far the first one is ahead."""
    simulation, result = column(200)
    assert result.error is None
    times = [simulation.received("east", row, 1)[2][0] for row in range(4)]
    assert [halves(simulation.received("east", row, 1)[0])[0] for row in range(4)] == [199] * 4
    buffered = sum((CS2.input_queues[0], CS2.ramp_latency, 3 * CS2.router_buffer))
    assert times[0] > (200 - buffered - 2) * 116
    assert times[3] >= 201 * 16 + 200 * 100
    assert result.busy[0, 0] < result.busy[3, 0]


def test_wavelets_and_hops_of_a_multicast_are_counted() -> None:
    """11 wavelets enter at the north, each over 3 links and 4 ramps; 4 answers leave over one link."""
    _, result = column(10)
    assert result.wavelets == 11 + 4
    assert result.hops == 11 * 3 + 4
    tasks = 4 * (1 + 11 + 1)
    assert result.events == 11 * 7 + 4 + tasks
    assert result.max_link_use == pytest.approx(11 / result.cycles)


ASYNCHRONOUS = role_text(
    "half x[24]; half y[24]; int16_t loops[1];",
    """
    static const operand x_recv = {0}, x_store = {1}, y_send = {2}, y_all = {3}, x_all = {4};
    static void main(void) {
      configure_input(x_recv, 0, 24);
      configure(x_store, SIZES(4, 6), STRIDES(6, 1));
      set_base_address(x_store, &M.x[0]);
      configure(x_all, SIZES(24), STRIDES(1));
      set_base_address(x_all, &M.x[0]);
      configure(y_all, SIZES(24), STRIDES(1));
      set_base_address(y_all, &M.y[0]);
      configure_output(y_send, 0, 24);
      start_simd(compute, fmovh, x_store, x_recv);
      set_base_address(x_store, &M.y[0]); /* the microthread keeps its own copy */
      activate(count);
    }
    static void count(void) { cost(.operations = 30); store(M.loops[0], (int16_t)1); }
    static void compute(void) {
      block(0);
      invoke_simd(fmulh, y_all, x_all, x_all);
      start_simd(finish, fmovh, y_send, y_all);
    }
    static void finish(void) { activate(last); }
    static void last(void) { send_end(0); unblock(0); }
    static void end(void) {}
    """,
    inputs="{ .end = end }",
    tasks="LOCAL(count), LOCAL(compute), LOCAL(finish), BLOCKING(last)",
)


@pytest.mark.parametrize("backwards", [False, True])
def test_asynchronous_store_and_send(backwards: bool) -> None:
    simulation = one_pe(ASYNCHRONOUS, backwards=backwards)
    x = np.arange(24).astype(np.float16)
    feed(simulation, "north", 0, 0, dense(x), ends=1)
    simulation.sink("east", 0, 2, 25)
    result = simulation.run()
    assert result.error is None
    np.testing.assert_array_equal(halves(simulation.received("east", 0, 2)[0][:24]), x * x)


BESIDE = role_text(
    "half a[16]; half b[16]; half c[400];",
    """
    static const operand in = {0}, out = {1}, a_all = {2}, b_all = {3}, c_all = {4}, in_1 = {5};
    static void main(void) {
      configure_input(in, 0, 16);
      configure_input(in_1, 1, 16);
      configure_output(out, 0, 16);
      configure(a_all, SIZES(16), STRIDES(1));
      set_base_address(a_all, &M.a[0]);
      configure(b_all, SIZES(16), STRIDES(1));
      set_base_address(b_all, &M.b[0]);
      configure(c_all, SIZES(400), STRIDES(1));
      set_base_address(c_all, &M.c[0]);
      start_simd(done, fmovh, a_all, in);
      start_simd(done, fmovh, b_all, in_1);
      activate(work);
    }
    static void work(void) {
      invoke_simd(fmovh, c_all, (half)1);
      for (int i = 0; i < 16; i++) { cost(.iterations = 1, .loads = 1); send(0, load(M.c[i])); }
      invoke_simd(fmovh, out, c_all_16);
    }
    static void done(void) {}
    """,
    tasks="LOCAL(done), BLOCKING(work)",
).replace("c_all_16", "a_all")


@pytest.mark.parametrize("backwards", [False, True])
def test_microthreads_beside_the_main_thread(backwards: bool) -> None:
    """Two streams are stored while the main thread computes and sends; all elements arrive, in order."""
    simulation = one_pe(BESIDE, backwards=backwards)
    a, b = np.arange(16).astype(np.float16), np.arange(16, 32).astype(np.float16)
    feed(simulation, "north", 0, 0, dense(a))
    feed(simulation, "west", 0, 1, dense(b))
    simulation.sink("east", 0, 2, 32)
    result = simulation.run()
    assert result.error is None
    payload, _, cycles = simulation.received("east", 0, 2)
    np.testing.assert_array_equal(halves(payload), [1] * 16 + a.tolist())
    assert cycles.tolist() == sorted(cycles.tolist()) and result.cycles < 500


def test_every_element_type_travels() -> None:
    role = role_text(
        "float f[1]; int16_t i[1]; int32_t j[1];",
        """
        static void take_f(float data) { store(M.f[0], (float)(data * 2)); }
        static void take_j(int32_t data) { store(M.j[0], (int32_t)(data * 2)); }
        static void end_f(void) { activate(reply); }
        static void end_j(void) {}
        static void reply(void) {
          send(0, load(M.f[0])); send(0, load(M.j[0]));
          send(0, (int16_t)-7); send_sparse(0, 65535, (int16_t)-2);
        }
        static void main(void) { unblock(0); unblock(1); }
        """,
        inputs="{ DENSE_FLOAT(take_f), .end = end_f }, { DENSE_INT32(take_j), .end = end_j }",
        tasks="BLOCKING(reply)",
    )
    simulation = one_pe(role)
    feed(simulation, "west", 0, 1, dense(np.array([-(2**30) - 3], np.int32)), ends=1)
    feed(simulation, "north", 0, 0, dense(np.array([0.1, 1.5], np.float32)), ends=1)
    simulation.sink("east", 0, 2, 4)
    assert simulation.run().error is None
    payload, _, _ = simulation.received("east", 0, 2)
    assert payload[:1].view(np.float32)[0] == 3.0
    assert payload.view(np.int32)[1] == (2 * (-(2**30) - 3) + 2**31) % 2**32 - 2**31
    assert payload[2] == 0xFFF9 and payload[3] == 0xFFFFFFFE


def test_two_colors_share_a_link_fairly() -> None:
    """Two sources on one edge, two wavelets of 300 each: neither waits for the end of the other."""
    layout = """
    #include "layout.h"
    void layout(int PE_X, int PE_Y) { route(0, WEST, EAST); route(1, WEST, EAST); }
    """
    simulation = fabric({"layout.c": layout}, 5, 1)
    for color in (0, 1):
        feed(simulation, "west", 0, color, np.arange(300, dtype=np.uint32))
        simulation.sink("east", 0, color, 300)
    result = simulation.run()
    cycles = [simulation.received("east", 0, color)[2] for color in (0, 1)]
    assert abs(int(cycles[0][-1]) - int(cycles[1][-1])) <= 1
    assert result.max_link_use > 0.97
    assert (np.diff(cycles[0]) == 2).all()


@pytest.mark.parametrize("latency", [1, 2, 3])
def test_a_stream_keeps_one_wavelet_a_cycle(latency: int) -> None:
    """8 routers between source and sink: the first wavelet takes 9 links, the others follow at once."""
    layout = '#include "layout.h"\nvoid layout(int PE_X, int PE_Y) { route(3, WEST, EAST); }\n'
    simulation = fabric(
        {"layout.c": layout}, 8, 1, machine=changed(hop_latency=latency, router_buffer=latency + 1)
    )
    feed(simulation, "west", 0, 3, np.arange(100, dtype=np.uint32))
    simulation.sink("east", 0, 3, 100)
    assert simulation.run().error is None
    payload, _, cycles = simulation.received("east", 0, 3)
    np.testing.assert_array_equal(payload, np.arange(100))
    np.testing.assert_array_equal(cycles, 9 * latency + np.arange(100))
