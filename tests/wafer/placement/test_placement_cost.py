"""The cost model: what it says of compiled layers is close to what the simulator counts."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from math import inf

import pytest
from corpus import compiled, layers
from ranks import rank_correlation
from wafer_cycles import read_golden

from polyloom import compile_wafer, read_mapping, read_program, simulate
from polyloom.diagnostics import PolyloomError
from polyloom.polyhedra.loops.generate import Name, Number, Operation
from polyloom.wafer.placement.cost.code import evenly, stride_limit
from polyloom.wafer.placement.cost.integer_values import trips, value_of
from polyloom.wafer.placement.cost.model import TooSlow, Watch, estimate, estimated_cycles
from polyloom.wafer.placement.cost.passing import line_of
from polyloom.wafer.program.wafer_program import RoleProgram, WaferProgram, compile_program
from polyloom.wafer.simd.decision import SimdMode


@pytest.mark.slow
@pytest.mark.ci
def test_estimates_rank_maps_as_the_simulator_does() -> None:
    """Hand-written maps of one layer, with adapters and without, beside the cycles that were counted.

    Each estimate by itself is compared in ``test_cycles_golden``. The least ratio, 0.69, is that of ports
    reversed: streams that cross each other in one row of adapters wait for each other, which has no price.
    The largest is 1.13.
    """
    golden = read_golden()
    maps = [x for x in layers() if x.source == "ff" and x.defines == ("M=32", "N=16")]
    estimates = [estimated_cycles(compiled(x, SimdMode.AUTO, "cs2")) for x in maps]
    simulated = [golden[x.name]["full"]["auto"] for x in maps]
    assert len(maps) > 12
    assert rank_correlation(estimates, simulated) > 0.95
    ratios = [e / c for e, c in zip(estimates, simulated, strict=True)]
    assert max(ratios) / min(ratios) < 1.7


BROADCAST = """
lair first(): float16 x[64] -> float16 s[64] { all (i) in (64) s[i] = x[i] + 1 }
lair second(): float16 s[64], float16 W[8][64] -> float16 y[8]
{ all (k, i) in (8, 64) y[k] += s[i] * W[k][i] }
graph net(): float16 x[64], float16 W[8][64] -> float16 y[8] { s = first()(x)  y = second()(s, W) }
"""


@pytest.mark.parametrize("first", ["i//8", "0"], ids=["both ways", "one way"])
def test_a_line_waits_for_what_each_pe_takes_before_it_passes_it_on(first: str) -> None:
    program = read_program(BROADCAST)
    text = f"size: {{ PE[8, 1] }}\ncompute_map: {{ first[i] -> PE[{first}, 0]; second[k, i] -> PE[k, 0] }}\n"
    text += "oport_map: { y[k = 0:7] -> [PE[k, 1] -> index[0]] }\n"
    mapping = read_mapping(text, program)
    simulated = simulate(program, mapping).simulation.cycles
    assert 0.8 < estimated_cycles(compile_wafer(program, mapping).program) / simulated < 1.2


@pytest.mark.parametrize("shape", ["chain", "two-phase", "tree"])
def test_reductions_of_every_shape(shape: str) -> None:
    program = read_program("lair dot(): float16 x[16][8], float16 W[16][8] -> float16 y[8] {\n"
                           "  all (i, j) in (16, 8) y[j] += x[i][j] * W[i][j]\n}\n")  # fmt: skip
    text = "size: { PE[16, 1] }\ncompute_map: { dot[i, j] -> PE[i, 0] }\n"
    text += "oport_map: { y[j = 0:7] -> [PE[16, 0] -> index[j]] }\n"
    mapping = read_mapping(text, program)
    compiled = compile_wafer(program, mapping, reduction=shape).program
    simulated = simulate(program, mapping, reduction=shape).simulation.cycles
    assert 0.8 < estimated_cycles(compiled) / simulated < 1.25


@pytest.mark.parametrize("share", [1.0, 0.85])
@pytest.mark.parametrize("name", ["ff44 M=32 N=16", "conv1d", "maxpool", "dot N=16"])
def test_what_roles_take_at_least_is_close_to_the_estimate_and_never_above(name: str, share: float) -> None:
    layer = next(x for x in layers() if x.name == name)
    program = layer.program()
    _check_watch(compile_wafer(program, layer.mapping(program)).program, share)


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("share", [1.0, 0.95])
def test_what_moves_wait_for_is_part_of_what_a_layer_takes_at_least(share: float) -> None:
    """Four moves of a stencil take 132 of 1,025 cycles, however little its PEs do beside them."""
    layer = next(x for x in layers() if x.name == "stencil7 N=5 Z=5")
    program = layer.program()
    _check_watch(compile_wafer(program, layer.mapping(program)).program, share)


@pytest.mark.parametrize("element", ["float16", "float32"])
@pytest.mark.parametrize("share", [1.0, 0.9])
def test_what_pes_take_before_they_pass_it_on_is_part_of_what_a_layer_takes_at_least(
    share: float, element: str
) -> None:
    program = read_program(BROADCAST.replace("float16", element))
    text = "size: { PE[8, 1] }\ncompute_map: { first[i] -> PE[i//8, 0]; second[k, i] -> PE[k, 0] }\n"
    text += "oport_map: { y[k = 0:7] -> [PE[k, 1] -> index[0]] }\n"
    _check_watch(compile_wafer(program, read_mapping(text, program)).program, share)


@pytest.mark.parametrize("share", [1.0, 0.9])
@pytest.mark.parametrize("element", ["float16", "float32"])
def test_what_pes_wait_for_that_send_in_turn_is_part_of_what_a_layer_takes_at_least(
    share: float, element: str
) -> None:
    program = read_program(
        f"lair relu(): {element} x[32][8] -> {element} y[32][8]\n"
        "{ all (i, j) in (32, 8) y[i][j] = max(x[i][j], 0) }"
    )
    text = "size: { PE[1, 8] }\ncompute_map: { relu[i, j] -> PE[0, i//4] }\n"
    text += "oport_map: { y[i, j] -> [PE[0, 8] -> index[i, j]] }\n"
    found = compile_wafer(program, read_mapping(text, program)).program
    assert [c.turns for r in found.analysis.graph.results for c in r.chains] == [0]
    _check_watch(found, share)


@pytest.mark.parametrize("element", ["float16", "float32"])
@pytest.mark.parametrize(
    ("extents", "place", "index"), [((4, 256), "j//32", "j, i"), ((8, 128), "i", "i, j")]
)
def test_streams_and_results_along_the_same_line(
    extents: tuple[int, int], place: str, index: str, element: str
) -> None:
    """Seen with a depthwise convolution, whose PEs have a turn for each channel, and a layer norm."""
    n, m = extents
    program = read_program(
        f"lair relu(): {element} x[{n}][{m}] -> {element} y[{n}][{m}]\n"
        f"{{ all (i, j) in ({n}, {m}) y[i][j] = max(x[i][j], 0) }}"
    )
    text = f"size: {{ PE[1, 8] }}\ncompute_map: {{ relu[i, j] -> PE[0, {place}] }}\n"
    text += f"iport_map: {{ x[i, j] -> [PE[0, -1] -> index[{index}]] }}\n"
    text += "oport_map: { y[i, j] -> [PE[0, 8] -> index[i, j]] }\ntrigger: relu = none\n"
    mapping = read_mapping(text, program)
    simulated = simulate(program, mapping).simulation.cycles
    assert 0.88 < estimated_cycles(compile_wafer(program, mapping).program) / simulated < 1.1


def _check_watch(found: WaferProgram, share: float) -> None:
    """Look at a layer's roles with a share of its estimated cycles as the limit: it is too slow below 1."""
    watch = Watch(found.analysis, found.machine, share * estimated_cycles(found))
    with nullcontext() if share == 1 else pytest.raises(TooSlow) as slow:
        compile_program(found.analysis, found.machine, files=False, onlooker=watch)
    if slow is not None:
        assert watch.limit < slow.value.cycles <= watch.limit / share


def test_an_estimate_says_where_cycles_go() -> None:
    layer = next(x for x in layers() if x.name == "ff44 M=32 N=16")
    program = layer.program()
    found = estimate(compile_wafer(program, layer.mapping(program)).program)
    assert min(found.setup, found.work, found.feed, found.waiting) > 0
    assert found.cycles == found.setup + max(max(found.work, found.feed) + found.waiting, found.shared)


def test_trips_of_a_loop() -> None:
    i, n = Name("i"), Name("n")
    assert trips(Operation("<", (i, Number(7))), "i", 0, 1, {}) == 7
    assert trips(Operation("<=", (i, Number(7))), "i", 1, 3, {}) == 3
    assert trips(Operation("<", (Operation("*", (Number(2), i)), n)), "i", 0, 1, {"n": 9}) == 5
    both = Operation("and", (Operation("<", (i, n)), Operation("<=", (i, Number(3)))))
    assert trips(both, "i", 0, 1, {"n": 10}) == 4
    assert trips(Operation("<", (i, n)), "i", 5, 1, {"n": 2}) == 0


def test_values_follow_c() -> None:
    seven, two = Number(-7), Number(2)
    assert value_of(Operation("floor", (seven, two)), {}) == -4
    assert value_of(Operation("/", (seven, two)), {}) == -3
    assert value_of(Operation("%", (seven, two)), {}) == -1
    assert value_of(Operation("?", (Operation(">", (Name("a"), two)), Number(1), Number(0))), {"a": 3}) == 1


def test_samples_are_spread_evenly() -> None:
    assert evenly(3, 5) == [0, 1, 2]
    assert evenly(100, 5) == [10, 30, 50, 70, 90]


def test_strides_limit_the_width() -> None:
    """In 16-bit words, as the simulator has it (docs/simulator.md)."""
    assert [stride_limit(s, 2) for s in (-1, 4, 8, 9)] == [2, 2, 1, 2]
    assert stride_limit(1, 2) > 100
    assert stride_limit(4, 4) == 1


def test_pes_that_need_too_many_queues_are_seen_before_others_have_a_program() -> None:
    """The PEs that do most things are first: a map that cannot be is not compiled to its end."""
    layer = next(x for x in layers() if x.name == "training")
    program = layer.program()
    found = compile_wafer(program, layer.mapping(program)).program
    most = max(len(role.code.inputs) for role in found.roles)
    assert len(found.roles) > 1
    machine = replace(found.machine, input_queues=found.machine.input_queues[: most - 1])
    watch = Watch(found.analysis, machine, inf)
    seen = seen_by(watch)
    with pytest.raises(PolyloomError) as refused:
        compile_program(found.analysis, machine, files=False, onlooker=watch)
    assert refused.value.diagnostics[0].code == "wafer-queues"
    assert len(seen) == 1 and len(seen[0].code.inputs) == most


@pytest.mark.slow
@pytest.mark.ci
def test_pes_of_a_line_that_waits_are_seen_before_others() -> None:
    """A stencil's moves go along rows and columns, of which the first stand for all."""
    layer = next(x for x in layers() if x.name == "stencil7 N=5 Z=5")
    program = layer.program()
    found = compile_wafer(program, layer.mapping(program)).program
    watch = Watch(found.analysis, found.machine, inf)
    seen = seen_by(watch)
    compile_program(found.analysis, found.machine, files=False, onlooker=watch)
    lines = [line_of(move) for result in found.analysis.graph.results for move in result.moves]
    urgent = [any(map(role.role.overlaps, lines)) for role in seen]
    assert urgent == sorted(urgent, reverse=True) and len(set(urgent)) == 2


def seen_by(watch: Watch) -> list[RoleProgram]:
    """The programs that a watch looks at from now on."""
    seen: list[RoleProgram] = []
    see = watch.see

    def both(role: RoleProgram) -> None:
        seen.append(role)
        see(role)

    watch.see = both  # type: ignore[method-assign]
    return seen
