"""Networks on one wafer: results of each sample, and that nothing but order, place and color decides them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from polyloom.api.network import compile_one_wafer, simulate_one_wafer
from polyloom.api.reading import load_tensor_program
from polyloom.diagnostics import PolyloomError, Unsupported
from polyloom.report.html.network import network_page
from polyloom.report.wafer.network_view import floor_plan_lines
from polyloom.wafer.machine.model import load_machine
from polyloom.wafer.network.areas import Place, place_stages
from polyloom.wafer.network.blocks import Placed
from polyloom.wafer.network.colors import color_plan
from polyloom.wafer.network.delays import with_copies, with_delays
from polyloom.wafer.network.exchanges import SPARE, carry
from polyloom.wafer.network.floor_plan import plan
from polyloom.wafer.network.graph import Stage, network_of
from polyloom.wafer.network.program import compile_network
from polyloom.wafer.network.run import simulate_network
from samples import one_in
from wafer.network.networks import ALONE, COPIED, MAPS, MLP, RESIDUAL, SCALARS, TRAINED, TRANSPOSED


def test_a_perceptron_is_right_sample_by_sample() -> None:
    rng = np.random.default_rng(1)
    w1, w2 = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((12, 8), (6, 12)))
    x = rng.integers(-3, 4, (3, 8)).astype(np.float16)
    result = simulate_one_wafer(MLP, {"W1": w1, "W2": w2, "x": x}, samples=3, maps=MAPS, check=True)
    assert result.check is not None
    assert result.check.passed
    hidden = np.maximum(x.astype(np.float64) @ w1.T, 0)
    assert np.array_equal(result.outputs["y"], hidden @ w2.T)
    first = result.simulation.finished[0]
    assert result.interval < first, "samples do not overlap"
    assert 0 < result.bottleneck[0] < first
    hurried = replace(result, simulation=replace(result.simulation, finished=np.array([90, 91, 92])))
    assert hurried.interval == 1
    assert hurried.samples_per_second * hurried.bottleneck[0] == pytest.approx(0.85e9)
    assert [part.name for part in result.stages] == ["s", "y"]
    assert sum(line.count("A") for line in floor_plan_lines(result)) >= result.stages[0].pes
    assert "y_distribute_h" in network_page(result)


def test_tables_that_are_wrong_are_noticed() -> None:
    compiled = compile_one_wafer(MLP, maps=MAPS)
    exchange = next(e for e in compiled.exchanges if e.line.name == "y_distribute_h")
    position = min(exchange.tables)
    exchange.tables[position]["gives"][0, 1] += 1
    inputs = {"W1": np.eye(12, 8), "W2": np.ones((6, 12)), "x": np.ones((2, 8))}
    halves = {name: array.astype(np.float16) for name, array in inputs.items()}
    with pytest.raises(PolyloomError) as fault:
        simulate_network(compiled, halves, 2)
    assert fault.value.diagnostics[0].code in ("simulation-poison", "simulation-out-of-bounds")


def test_a_layer_that_only_moves_elements_takes_no_pes() -> None:
    network = network_of(load_tensor_program(TRANSPOSED).program)
    assert [stage.name for stage in network.stages] == ["scale", "rows"]
    (sink,) = next(s for s in network.streams if s.tensor == "b").sinks
    assert sink.input == "c"
    assert str(sink.elements.intersect_domain(sink.elements.domain())).startswith("{ c[i0, i1] -> b[i1, i0]")


def test_where_branches_join_the_shorter_one_holds_samples() -> None:
    network = with_delays(network_of(load_tensor_program(RESIDUAL).program))
    assert [stage.name for stage in network.stages] == ["s", "t", "hold_s_add_0", "add"]
    to_hold = next(sink for s in network.streams for sink in s.sinks if sink.stage == "hold_s_add_0")
    assert to_hold.elements.is_bijective()
    inputs = sorted(sink.input for s in network.streams for sink in s.sinks if sink.stage == "add")
    assert inputs == ["s", "t"]


@pytest.mark.slow
@pytest.mark.ci
def test_what_does_not_fit_is_refused_with_what_would() -> None:
    with pytest.raises(Unsupported) as many:
        compile_one_wafer(MLP, pes=3, maps=MAPS)
    assert many.value.diagnostics[0].code == "network-pes"
    with pytest.raises(Unsupported) as large:
        compile_one_wafer(MLP, memory=16, maps=MAPS)
    assert large.value.diagnostics[0].code == "network-stage"
    constant = "graph c: float16 a[4] -> float16 b[4]\n{\n  b = relu(4)(a)\n}\n"
    program = load_tensor_program(MLP.split("graph")[0] + constant).program
    with pytest.raises(Unsupported) as nothing:
        network_of(program, streamed=())
    assert nothing.value.diagnostics[0].code == "network-constant"
    moved = "graph c: float16 a[4][6] -> float16 b[6][4]\n{\n  b = transpose(4, 6)(a)\n}\n"
    with pytest.raises(Unsupported) as empty:
        network_of(load_tensor_program(MLP.split("graph")[0] + moved).program)
    assert empty.value.diagnostics[0].code == "network-empty"


def test_colors_and_the_mesh_are_limits() -> None:
    compiled = compile_one_wafer(MLP, maps=MAPS)
    machine = load_machine("cs2")
    needed = compiled.colors.count
    assert color_plan(compiled.plan, replace(machine, colors=needed)).count == needed
    with pytest.raises(Unsupported) as few:
        color_plan(compiled.plan, replace(machine, colors=needed - 2))
    assert few.value.diagnostics[0].code == "network-colors"


def test_memory_of_exchanges_the_mesh_and_ports_are_limits() -> None:
    compiled = compile_one_wafer(MLP, maps=MAPS)
    machine, floor = load_machine("cs2"), compiled.plan
    with pytest.raises(Unsupported) as small:
        carry(floor, replace(machine, sram_bytes=4096, reserved_bytes=4096 - SPARE))
    assert small.value.diagnostics[0].code == "network-exchange"
    blocks = [place.block for place in floor.places]
    with pytest.raises(Unsupported) as narrow:
        plan(floor.network, blocks, replace(machine, grid=(5, 5)))
    assert narrow.value.diagnostics[0].code == "network-grid"
    assert plan(floor.network, blocks, replace(machine, grid=(7, 20))).width <= 7

    def twice(stage: Stage, _: tuple[int, int]) -> Placed:
        placed = floor.place(stage.name).block.placed
        return replace(placed, program=replace(placed.program, inputs=placed.program.inputs * 2))

    with pytest.raises(Unsupported) as ports:
        place_stages(floor.network, machine, None, twice, fixed=tuple(MAPS))
    assert "reason: network-ports" in ports.value.diagnostics[0].notes


def test_the_slowest_stage_is_searched_in_full_until_that_does_not_help() -> None:
    compiled = compile_one_wafer(MLP, maps=MAPS)
    floor, searched = compiled.plan, list[str]()

    def place(cycles: dict[str, float], names: list[str]) -> Place:
        def placed(stage: Stage, _: tuple[int, int]) -> Placed:
            names.append(stage.name)
            return replace(floor.place(stage.name).block.placed, estimate=cycles[stage.name])

        return placed

    def found(
        quick: dict[str, float], full: dict[str, float], fixed: tuple[str, ...] = ()
    ) -> dict[str, float]:
        searched.clear()
        quickly, thoroughly, machine = place(quick, []), place(full, searched), load_machine("cs2")
        stages = place_stages(floor.network, machine, None, quickly, fixed=fixed, thoroughly=thoroughly)
        return {placed.stage.name: placed.estimate for placed in stages}

    both = {"s": 9000.0, "y": 8000.0}
    assert found(both, {"s": 5000.0, "y": 8500.0}) == {"s": 5000.0, "y": 8000.0}
    assert searched == ["s", "y"]
    assert found(both, {"s": 8500.0, "y": 1.0}) == {"s": 8500.0, "y": 8000.0}
    assert searched == ["s"]
    assert found(both, {"s": 1.0, "y": 1.0}, fixed=tuple(MAPS)) == both
    assert searched == []


def test_shelves_one_below_the_other_give_the_same_results() -> None:
    compiled = compile_one_wafer(MLP, maps=MAPS)
    blocks = [place.block for place in compiled.plan.places]
    machine = replace(load_machine("cs2"), grid=(7, 20))
    folded = compile_network(plan(compiled.plan.network, blocks, machine), machine)
    assert {place.shelf for place in folded.plan.places} == {0, 1}
    inputs = {"W1": np.eye(12, 8), "W2": np.ones((6, 12)), "x": np.arange(16).reshape(2, 8)}
    halves = {name: array.astype(np.float16) for name, array in inputs.items()}
    outputs = [simulate_network(each, halves, 2).outputs["y"] for each in (compiled, folded)]
    assert np.array_equal(*outputs)
    assert outputs[0][:, 0].tolist() == [28, 92]


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("samples", one_in(3, [1, 2, 5], start=2))
def test_a_state_is_what_came_of_the_sample_before(samples: int) -> None:
    rng = np.random.default_rng(1)
    w, e, x = (rng.integers(-3, 4, s).astype(np.float16) for s in ((3, 2), (samples, 3), (samples, 2)))
    inputs = {"W": w, "e": e, "x": x} if samples > 1 else {"W": w, "e": e[0], "x": x[0]}
    result = simulate_one_wafer(TRAINED, inputs, samples=samples, maps=ALONE, state={"W": "V"}, check=True)
    assert result.check is not None
    assert result.check.passed
    wanted = []
    for target, sample in zip(e, x, strict=True):
        wanted.append(w @ sample)
        w = w - np.outer(target, sample)
    assert np.array_equal(np.reshape(result.outputs["y"], (samples, 3)), wanted)
    assert np.array_equal(result.outputs["V"], w)


@pytest.mark.slow
@pytest.mark.ci
def test_a_state_above_its_reader_goes_up_the_avenue() -> None:
    compiled = compile_one_wafer(TRAINED, maps=ALONE, state={"W": "V"})
    blocks = [place.block for place in compiled.plan.places]
    machine = replace(load_machine("cs2"), grid=(9, 40))
    folded = compile_network(plan(compiled.plan.network, blocks, machine), machine)
    assert len({place.shelf for place in folded.plan.places}) > 1
    inputs = {"W": np.eye(3, 2), "e": np.ones((2, 3)), "x": np.ones((2, 2))}
    halves = {name: array.astype(np.float16) for name, array in inputs.items()}
    outputs = simulate_network(folded, halves, 2).outputs
    assert np.array_equal(outputs["V"], np.eye(3, 2) - 2)


@pytest.mark.parametrize("state", [{"W": "y"}, {"Q": "V"}, {"x": "nothing"}])
def test_a_state_that_is_none_is_refused(state: dict[str, str]) -> None:
    with pytest.raises(PolyloomError) as fault:
        compile_one_wafer(TRAINED, maps=ALONE, state=state)
    assert fault.value.diagnostics[0].code == "network-state"


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("text", [MLP, RESIDUAL, TRANSPOSED], ids=["mlp", "residual", "transposed"])
def test_chosen_maps_branches_and_other_orders(text: str) -> None:
    result = simulate_one_wafer(text, samples=3, check=True)
    assert result.check is not None
    assert result.check.passed


@pytest.mark.slow
@pytest.mark.parametrize("machine", ["cs1", "cs3"])
def test_other_machines(machine: str) -> None:
    result = simulate_one_wafer(MLP, samples=2, maps=MAPS, machine=machine, check=True)
    assert result.check is not None
    assert result.check.passed


@pytest.mark.slow
@pytest.mark.ci
def test_a_scalar_is_a_result_and_is_read_by_other_layers() -> None:
    x = np.arange(12, dtype=np.float16).reshape(3, 4)
    result = simulate_one_wafer(SCALARS, {"x": x}, samples=3, pes=16, check=True)
    assert result.check is not None
    assert result.check.passed
    assert np.array_equal(result.outputs["t"], x.sum(axis=1))
    assert np.array_equal(result.outputs["y"], x - x.sum(axis=1, keepdims=True))


@pytest.mark.slow
@pytest.mark.ci
def test_a_result_that_is_an_input_in_another_order_passes_a_layer_that_holds_it() -> None:
    a = np.arange(18, dtype=np.float16).reshape(3, 2, 3)
    result = simulate_one_wafer(COPIED, {"a": a}, samples=3, pes=8, check=True)
    assert result.check is not None
    assert result.check.passed
    assert np.array_equal(result.outputs["c"], a.transpose(0, 2, 1))
    assert np.array_equal(result.outputs["b"], 2 * a)


def test_a_result_that_no_sample_brings_is_refused() -> None:
    network = network_of(load_tensor_program(COPIED).program)
    with pytest.raises(Unsupported) as fault:
        with_copies(network, ())
    assert fault.value.diagnostics[0].code == "network-constant"


@pytest.mark.slow
@pytest.mark.ci
def test_stages_shrink_until_they_fit_in_what_is_allowed() -> None:
    w1, w2, x = np.ones((12, 8)), np.ones((6, 12)), np.ones((2, 8))
    inputs = {"W1": w1, "W2": w2, "x": x}
    halves = {name: array.astype(np.float16) for name, array in inputs.items()}
    result = simulate_one_wafer(MLP, halves, samples=2, pes=3, check=True)
    assert result.check is not None
    assert result.check.passed
    assert sum(part.pes for part in result.stages) == 3
    with pytest.raises(Unsupported) as fault:
        compile_one_wafer(MLP, pes=1)
    assert fault.value.diagnostics[0].code == "network-pes"
