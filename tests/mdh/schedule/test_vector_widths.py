"""How wide vectors are chosen where a result is narrower than what it is made of."""

from __future__ import annotations

from dataclasses import replace

from homs import buffers_of, hom_of, turned

import polyloom
from polyloom.mdh.device.costs import CpuCosts
from polyloom.mdh.native.device import choose
from polyloom.mdh.schedule.cost.compute_cost import CycleModel, StepModel
from polyloom.mdh.schedule.cost.loop_sizes import LoopSizes
from polyloom.mdh.schedule.search_space import ScheduleSpace

COUNT = """void f(int n, double a[n], int out[1]) {
  int k = 0;
  for (int i = 0; i < n; i++) if (a[i] > 0.5) k++;
  out[0] = k;
}"""

BUTTERFLY = """void f(int n, float re[n][4], float im[n][4]) {
  for (int i = 0; i < n; i++) {
    float ar = re[i][0] + re[i][2], ai = im[i][0] + im[i][2], br = re[i][0] - re[i][2];
    float bi = im[i][0] - im[i][2], cr = re[i][1] + re[i][3], ci = im[i][1] + im[i][3];
    float dr = re[i][1] - re[i][3], di = im[i][1] - im[i][3];
    re[i][0] = ar + cr; im[i][0] = ai + ci; re[i][2] = ar - cr; im[i][2] = ai - ci;
    re[i][1] = br + di; im[i][1] = bi - dr; re[i][3] = br - di; im[i][3] = bi + dr;
  }
}"""


def test_results_that_take_turns_in_memory_have_vectors() -> None:
    function = polyloom.load(BUTTERFLY, device="native")
    (node,) = (n for n in function.explain(native={"n": 20000}).json()["md_homs"] if n["schedule"])
    assert node["schedule"]["width"] > 1


def test_a_count_of_doubles_has_vectors_of_as_many_doubles_as_a_register_holds() -> None:
    function = polyloom.load(COUNT, device="native")
    (node,) = (n for n in function.explain(native={"n": 32000}).json()["md_homs"] if n["schedule"])
    assert 1 < node["schedule"]["width"] <= function.compiled.device.vector_bytes // 8


def test_a_map_that_stores_across_rows_takes_longer() -> None:
    program = turned(256, 256)
    device = replace(choose("native", threads=1), vector_bytes=32)
    space = ScheduleSpace(hom=hom_of(program), buffers=buffers_of(program), device=device)
    (output,) = space.reads.outputs
    assert output is not None
    assert [output.is_unit(d) for d in (0, 1)] == [True, False]
    assert isinstance(device.costs.kernels, CpuCosts)
    models = [
        CycleModel(
            StepModel(LoopSizes(space.facts(schedule), space.reads), device.costs.instructions, 32),
            device.costs.kernels,
        )
        for schedule in (replace(space.plain, vector=d, width=8) for d in (0, 1))
    ]
    assert models[1].tile_cycles >= models[0].tile_cycles + 8 * device.costs.kernels.scattered_element
