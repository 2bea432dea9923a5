"""What roles take of the machine: counted, within its limits, and with few descriptors still right."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest
from corpus import differences, expected, inputs_of, layers, together

from polyloom import pipeline
from polyloom.diagnostics import Unsupported
from polyloom.ir.program import Program
from polyloom.pipeline import analyse_layer
from polyloom.wafer.border.peeling import peel_border
from polyloom.wafer.dataflow.broadcasts import with_broadcasts
from polyloom.wafer.dataflow.tasks import build_tasks
from polyloom.wafer.explain.document import resources_document
from polyloom.wafer.machine.model import load_machine
from polyloom.wafer.mapping.mapping import Mapping
from polyloom.wafer.pe_program.descriptors import descriptor_use
from polyloom.wafer.program.queue_bound import check_least_queues
from polyloom.wafer.program.resources import COLORS, INPUTS, MEMORY, OUTPUTS, check_fits
from polyloom.wafer.program.wafer_program import compile_program, survey
from polyloom.wafer.simd.decision import SimdOptions
from polyloom.wafer.simulation.run import simulate_program
from samples import LATER

CS2 = load_machine("cs2")


def layer_named(name: str) -> tuple[Program, Mapping]:
    layer = next(one for one in layers() if one.map == name)
    program = layer.program()
    return program, layer.mapping(program)


@pytest.mark.parametrize("name", ["training", "mlp", "ff55_corner", pytest.param("layer_norm", marks=LATER)])
def test_every_role_is_counted(name: str) -> None:
    program, mapping = layer_named(name)
    analysis = analyse_layer(program, mapping, SimdOptions())
    found = survey(analysis, CS2)
    check_fits(analysis.mapping, CS2, found.resources)
    for role, program_of_role in zip(found.resources, found.roles, strict=True):
        assert role.amount(MEMORY).used == program_of_role.memory_bytes
        assert role.amount(INPUTS).names == program_of_role.code.inputs
        assert role.amount(OUTPUTS).names == program_of_role.code.outputs
        assert role.amount(COLORS).used <= len(found.routing.colors)
    document = resources_document(found, CS2)
    assert [role["role"] for role in document["roles"]] == [role.role for role in found.resources]
    assert document["colors"], "what each color carries"


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize(
    "name", ["training", "mlp_one_port", "softmax", "stencil7", pytest.param("layer_norm", marks=LATER)]
)
def test_queues_are_known_before_there_are_programs(name: str) -> None:
    """As many as the programs take then, which have no adapters here; and that these are too many."""
    program, mapping = layer_named(name)
    border = peel_border(program, mapping)
    tasks = build_tasks(program, border.compute, border.written)
    graph = with_broadcasts(tasks, CS2, len(border.adapters))
    check_least_queues(graph, border, CS2)
    found = survey(analyse_layer(program, mapping, SimdOptions()), CS2)
    most = {what: max(r.amount(what).used for r in found.resources) for what in (INPUTS, OUTPUTS)}
    for what, few in (
        (INPUTS, replace(CS2, input_queues=CS2.input_queues[: most[INPUTS] - 1])),
        (OUTPUTS, replace(CS2, output_queues=CS2.output_queues[: most[OUTPUTS] - 1])),
    ):
        with pytest.raises(Unsupported, match=f"need {most[what]} {what}"):
            check_least_queues(graph, border, few)


def test_a_candidate_with_too_many_queues_is_not_analysed(monkeypatch: pytest.MonkeyPatch) -> None:
    program, mapping = layer_named("mlp")
    monkeypatch.setattr(pipeline, "allocate", None)
    with pytest.raises(Unsupported, match="output queues"):
        pipeline._estimated(program, mapping, inf, replace(CS2, output_queues=CS2.output_queues[:1]))


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("name", ["training", "mlp"])
def test_few_descriptors_cost_cycles_and_change_no_bits(name: str) -> None:
    program, mapping = layer_named(name)
    runs = inputs_of(program, mapping, 1.0, 1)
    inputs, wanted = together(mapping, runs), expected(program, mapping, runs)
    cycles: list[int] = []
    for capacity in (40, 5):
        machine = replace(CS2, operand_descriptors=capacity)
        analysis = analyse_layer(program, mapping, SimdOptions(machine=machine))
        compiled = compile_program(analysis, machine)
        for role in compiled.roles:
            assert max(descriptor_use(role.code, capacity).held) <= capacity
        run = simulate_program(compiled, inputs)
        assert not differences(run.outputs, wanted)
        cycles.append(run.cycles)
    assert cycles[0] < cycles[1]


def test_what_cannot_be_loaded_for_each_use_is_refused() -> None:
    program, mapping = layer_named("mlp")
    machine = replace(CS2, operand_descriptors=0)
    analysis = analyse_layer(program, mapping, SimdOptions(machine=machine))
    with pytest.raises(Unsupported) as refused:
        compile_program(analysis, machine)
    assert refused.value.diagnostics[0].code == "wafer-descriptors"
    assert "--simd enumerate" in refused.value.diagnostics[0].helps[0]
