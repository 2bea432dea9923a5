"""What docs/semantics.md says, a test for each line of its table."""

from __future__ import annotations

import islpy as isl
import numpy as np
import numpy.typing as npt
import pytest

from polyloom.diagnostics import Source
from polyloom.frontends.lair import lower
from polyloom.frontends.lair.syntax.parse import parse
from polyloom.pipeline import analyse_layer
from polyloom.wafer.analysis import LayerAnalysis
from polyloom.wafer.dataflow.tasks import TaskKind, possible_drivers
from polyloom.wafer.machine.model import load_machine
from polyloom.wafer.machine.options import ALL_EXTENSIONS, Extension, without
from polyloom.wafer.mapping.reader import read_mapping
from polyloom.wafer.program.wafer_program import compile_program
from polyloom.wafer.simd.decision import SimdMode, SimdOptions, Strategy
from polyloom.wafer.simulation.run import Simulation, simulate_program
from samples import LATER

MODES = (SimdMode.AUTO, SimdMode.OFF)
Half = npt.NDArray[np.generic]


def analysed(
    lair: str, places: str, mode: SimdMode = SimdMode.AUTO, without: frozenset[Extension] = frozenset()
) -> LayerAnalysis:
    program = lower(parse(Source("layer.lair", lair)), None, {})
    options = SimdOptions(mode, extensions=ALL_EXTENSIONS - without)
    return analyse_layer(program, read_mapping(Source("layer.map", places), program), options)


def simulated(
    lair: str, places: str, mode: SimdMode, invocations: int = 1, **inputs: npt.ArrayLike
) -> Simulation:
    program = compile_program(analysed(lair, places, mode), load_machine("cs2"))
    arrays: dict[str, Half] = {name: np.array(v, np.float16) for name, v in inputs.items()}
    return simulate_program(program, arrays, invocations=invocations)


def outputs(
    lair: str, places: str, mode: SimdMode, invocations: int = 1, **inputs: npt.ArrayLike
) -> dict[str, Half]:
    return simulated(lair, places, mode, invocations, **inputs).outputs


SUM = "lair f(): float16 x[6] -> float16 s { all (j) in (6) s += x[j] }"
SUM_MAP = """size: {{ PE[3, 1] }}
compute_map: {{ f[j] -> PE[j//2, 0] }}
iport_map: {{ x[j] -> [PE[j//2, -1] -> index[j]] }}
oport_map: {{ s[] -> [PE[{x}, 0] -> index[0]] }}"""


@pytest.mark.parametrize("mode", MODES)
def test_a_multiply_add_rounds_twice(mode: SimdMode) -> None:
    lair = "lair f(): float16 W[2], float16 x[2] -> float16 y[2] { all (i, j) in (2, 2) y[i] += W[i] * x[j] }"
    places = """size: { PE[1, 1] }
    compute_map: { f[i, j] -> PE[0, 0] }
    iport_map: { x[j] -> [PE[0, -1] -> index[j]] }
    sparse: x"""
    a, b = np.float16(1.001), np.float16(0.999)
    got = outputs(lair, places, mode, W=[float(a), float(b)], x=[float(a), -float(b)])["y"]
    twice = [np.float16(np.float16(w * a) + np.float16(w * -b)) for w in (a, b)]
    once = [np.float16(np.float64(np.float16(w * a)) - np.float64(w) * np.float64(b)) for w in (a, b)]
    np.testing.assert_array_equal(got, twice)
    assert twice != once


@pytest.mark.parametrize("mode", MODES)
def test_a_chain_adds_from_the_far_end_towards_the_port(mode: SimdMode) -> None:
    """Each PE has its own sum first; 2048 + 1 is 2048 in float16, 2048 + 2 is 2050."""
    x = [2048.0, 0.0, 1.0, 0.0, 1.0, 0.0]
    assert outputs(SUM, SUM_MAP.format(x=3), mode, x=x)["s"] == 2048
    assert outputs(SUM, SUM_MAP.format(x=-1), mode, x=x)["s"] == 2050


@pytest.mark.parametrize("mode", MODES)
def test_an_output_of_a_sparse_trigger_starts_with_its_value_at_zero(mode: SimdMode) -> None:
    lair = "lair f(): float16 x[4] -> float16 y[4] { all (i) in (4) y[i] = exp(x[i]) }"
    places = """size: { PE[1, 1] }
    compute_map: { f[i] -> PE[0, 0] }
    iport_map: { x[i] -> [PE[0, -1] -> index[i]] }
    sparse: x"""
    (task,) = analysed(lair, places, mode).graph.compute
    assert task.kind is TaskKind.SPARSE
    got = outputs(lair, places, mode, x=[0, 1, 0, 0])["y"]
    assert got.tolist() == [1, np.float16(np.e), 1, 1]


@pytest.mark.parametrize("mode", MODES)
def test_a_zero_that_matters_is_stored_and_waited_for(mode: SimdMode) -> None:
    lair = "lair f(): float16 x[4], float16 b[4] -> float16 y[4] { all (i) in (4) y[i] = x[i] + b[i] }"
    places = """size: { PE[1, 1] }
    compute_map: { f[i] -> PE[0, 0] }
    iport_map: { x[i] -> [PE[0, -1] -> index[i]] }
    sparse: x"""
    analysis = analysed(lair, places, mode)
    assert [task.kind for task in analysis.graph.compute] == [TaskKind.LOCAL]
    assert [fault.code for fault in analysis.graph.remarks] == ["task-zero-matters"]
    assert outputs(lair, places, mode, x=[0, 1, 0, 2], b=[5, 6, 7, 8])["y"].tolist() == [5, 7, 7, 10]


@pytest.mark.parametrize(
    ("place", "holder"),
    [
        ("PE[j mod 3, 0]", "{ PE[2, 0] -> s[] }"),
        ("PE[0, j mod 2]", "{ PE[0, 1] -> s[] }"),
        ("PE[j mod 2, 0]", "{ PE[1, 0] -> s[] }"),
    ],
)
def test_a_result_without_a_port_lies_on_the_last_pe(place: str, holder: str) -> None:
    analysis = analysed(SUM, f"size: {{ PE[3, 2] }}\ncompute_map: {{ f[j] -> {place} }}")
    assert analysis.graph.result("s").owners.is_equal(isl.Map(holder))


PAD = "lair f(): float16 x[4] -> float16 y[9] { all (i) in (4) y[2*i + 1] += x[i] }"


def test_unwritten_elements_belong_to_the_pe_beside_their_port() -> None:
    places = """size: { PE[3, 2] }
    compute_map: { f[i] -> PE[1, i//2] }
    oport_map: { y[i] -> [PE[3, i//5] -> index[i]] }"""
    owners = analysed(PAD, places).graph.result("y").owners
    even = owners.intersect_range(isl.Set("{ y[i] : i mod 2 = 0 }"))
    assert even.is_equal(isl.Map("{ PE[2, r] -> y[i] : r = floor(i/5) and i mod 2 = 0 and 0 <= i < 9 }"))
    for mode in MODES:
        assert outputs(PAD, places, mode, x=[1, 2, 3, 4])["y"].tolist() == [0, 1, 0, 2, 0, 3, 0, 4, 0]


def test_unwritten_elements_without_a_port_belong_to_the_last_pe() -> None:
    places = "size: { PE[3, 2] }\ncompute_map: { f[i] -> PE[1, i//2] }"
    owners = analysed(PAD, places).graph.result("y").owners
    even = owners.intersect_range(isl.Set("{ y[i] : i mod 2 = 0 }"))
    assert even.is_equal(isl.Map("{ PE[1, 1] -> y[i] : i mod 2 = 0 and 0 <= i < 9 }"))


OUTER = """lair f(): float16 a[4], float16 b[4] -> float16 y[4][4]
{ all (i, j) in (4, 4) y[i][j] = a[i] * b[j] }"""


@pytest.mark.parametrize(
    ("ports", "stated", "driving"),
    [
        ("a[i] -> [PE[0, -1] -> index[i]]; b[i] -> [PE[-1, 0] -> index[i]]", "", "b"),
        ("b[i] -> [PE[-1, 0] -> index[i]]; a[i] -> [PE[0, -1] -> index[i]]", "", "a"),
        ("b[i] -> [PE[-1, 0] -> index[i]]; a[i] -> [PE[0, -1] -> index[i]]", "trigger: f = b", "b"),
    ],
)
def test_the_last_stream_of_the_map_drives_by_default_and_the_others_are_stored(
    ports: str, stated: str, driving: str
) -> None:
    places = (
        f"size: {{ PE[1, 1] }}\ncompute_map: {{ f[i, j] -> PE[0, 0] }}\niport_map: {{ {ports} }}\n{stated}"
    )
    program = lower(parse(Source("layer.lair", OUTER)), None, {})
    mapping = read_mapping(Source("layer.map", places), program)
    (statement,) = program.statements
    assert possible_drivers(program, mapping, statement)[0] == driving
    graph = analysed(OUTER, places if stated else f"{places}trigger: f = {driving}").graph
    (task,) = graph.compute
    assert task.stream is not None and task.stream.tensor == driving
    assert [store.stream.tensor for store in graph.stores] == [name for name in "ab" if name != driving]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("sparse", ["", "sparse: a"])
def test_no_stream_drives_where_the_map_says_none(mode: SimdMode, sparse: str) -> None:
    places = f"""size: {{ PE[1, 2] }}
    compute_map: {{ f[i, j] -> PE[0, i//2] }}
    iport_map: {{ a[i] -> [PE[1, i//2] -> index[i]]; b[i] -> [PE[0, -1] -> index[i]] }}
    oport_map: {{ y[i, j] -> [PE[-1, i//2] -> index[i, j]] }}
    trigger: f = none
    {sparse}"""
    found = analysed(OUTER, places)
    (task,) = found.graph.compute
    assert task.stream is None and not found.graph.remarks
    assert [store.stream.tensor for store in found.graph.stores] == ["a", "b"]
    got = outputs(OUTER, places, mode, a=[1, 0, 3, 4], b=[5, 6, 7, 8])
    assert got["y"].tolist() == np.outer([1, 0, 3, 4], [5, 6, 7, 8]).tolist()


def test_a_stream_called_none_may_drive() -> None:
    lair = "lair f(): float16 none[4], float16 b[4] -> float16 y[4] { all (i) in (4) y[i] = none[i] * b[i] }"
    places = """size: { PE[1, 1] }
    compute_map: { f[i] -> PE[0, 0] }
    iport_map: { none[i] -> [PE[0, -1] -> index[i]]; b[i] -> [PE[-1, 0] -> index[i]] }
    trigger: f = none"""
    (task,) = analysed(lair, places).graph.compute
    assert task.stream is not None and task.stream.tensor == "none"


KEEP = "lair f(): float16 x[3][4][8] -> float16 y[3] { all (p, i, j) in (3, 4, 8) y[p] += x[p][i][j] }"
KEPT = """size: {{ PE[1, 3] }}
compute_map: {{ f[p, i, j] -> PE[0, p] }}
iport_map: {{ x[p, i, j] -> [PE[0, -1] -> index[{order}]] }}
oport_map: {{ y[p] -> [PE[1, p] -> index[0]] }}
trigger: f = none"""


@pytest.mark.parametrize(
    ("order", "mode"),
    [
        pytest.param(order, mode, marks=LATER if (k + i) % len(MODES) else ())
        for k, order in enumerate(
            ("p, i, j", "i, p, j", "i, j, p", "7 - j, i, p", "i, 8*p + j", "2 - p, j, i")
        )
        for i, mode in enumerate(MODES)
    ],
)
def test_a_part_of_a_dense_stream_is_kept(mode: SimdMode, order: str) -> None:
    x = np.arange(96).reshape(3, 4, 8) % 7
    got = outputs(KEEP, KEPT.format(order=order), mode, x=x)
    assert got["y"].tolist() == x.sum((1, 2)).tolist()


def test_a_stream_drives_on_some_pes_and_is_kept_in_part_on_others() -> None:
    """Of the PEs that keep a part, one drops what comes before it and the other what comes after."""
    lair = """lair A(): float16 x[2][8] -> float16 a[2] { all (p, j) in (2, 8) a[p] += x[p][j] }
    lair B(): float16 x[2][8] -> float16 b[2] { all (p, j) in (2, 8) b[p] += x[p][j] * x[p][j] }
    graph g: float16 x[2][8] -> float16 a[2], float16 b[2] { a = A()(x) b = B()(x) }"""
    places = """size: { PE[1, 4] }
    compute_map: { A[p, j] -> PE[0, p]; B[p, j] -> PE[0, 2 + p] }
    iport_map: { x[p, j] -> [PE[0, -1] -> index[p, j]] }
    oport_map: { a[p] -> [PE[1, p] -> index[0]]; b[p] -> [PE[1, 2 + p] -> index[0]] }"""
    x = np.arange(16).reshape(2, 8) % 5
    got = outputs(lair, places, SimdMode.AUTO, x=x)
    assert got["a"].tolist() == x.sum(1).tolist()
    assert got["b"].tolist() == (x * x).sum(1).tolist()


def cycles_to_keep(order: str, *without: Extension) -> int:
    places = analysed(KEEP, KEPT.format(order=order), without=frozenset(without))
    inputs = {"x": np.ones((3, 4, 8), np.float16)}
    return simulate_program(compile_program(places, load_machine("cs2")), inputs).cycles


@pytest.mark.slow
@pytest.mark.ci
def test_a_part_of_a_dense_stream_is_kept_by_instructions() -> None:
    """The middle PE drops 32 elements, keeps 32 and drops 32; where they alternate, a loop sorts them."""
    orders = ("p, i, j", "i, p, j", "i, j, p")
    together, rows, alone = (cycles_to_keep(order, Extension.FILTERS) for order in orders)
    assert 96 < together < 300 and together < rows < alone and alone > 96 * 8
    assert all(96 < cycles_to_keep(order) < 300 for order in orders), "routers bring what is kept only"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("sparse", ["", "sparse: x", "sparse: x, y"])
def test_holes_in_an_index_cost_nothing_but_empty_chunks(mode: SimdMode, sparse: str) -> None:
    lair = "lair f(): float16 x[6] -> float16 y[6] { all (i) in (6) y[i] = 2 * x[i] }"
    places = f"""size: {{ PE[1, 1] }}
    compute_map: {{ f[i] -> PE[0, 0] }}
    iport_map: {{ x[i] -> [PE[0, -1] -> index[3*(i//2) + 1, 5*i + 2]] }}
    oport_map: {{ y[i] -> [PE[1, 0] -> index[2*(i//3) + 1, 3*i + 1]] }}
    {sparse}"""
    assert outputs(lair, places, mode, x=[1, 0, 3, 0, 0, 6])["y"].tolist() == [2, 0, 6, 0, 0, 12]


@pytest.mark.parametrize("mode", MODES)
def test_accumulators_begin_anew_and_a_state_goes_on(mode: SimdMode) -> None:
    lair = """lair f(): float16 W[4], float16 x[4] -> float16 y[4], float16 V[4]
    { all (i) in (4) y[i] += W[i] * x[i]
      all (i) in (4) V[i] = W[i] + 1 }"""
    places = """size: { PE[2, 1] }
    compute_map: { f_y[i] -> PE[i//2, 0]; f_V[i] -> PE[i//2, 0] }
    iport_map: { x[i] -> [PE[i//2, -1] -> index[i]] }
    oport_map: { y[i] -> [PE[i//2, 1] -> index[i]] }
    sparse: x
    state: W = V"""
    got = outputs(lair, places, mode, invocations=3, W=[0, 1, 2, 3], x=[[1] * 4, [0] * 4, [1] * 4])
    assert got["y"].tolist() == [[0, 1, 2, 3], [0, 0, 0, 0], [2, 3, 4, 5]]
    assert got["V"].tolist() == [3, 4, 5, 6]


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("mode", MODES)
def test_a_state_goes_to_where_the_old_one_lies(mode: SimdMode) -> None:
    """W is read backwards and on both rows: W1 travels; what a PE does not read is not copied."""
    lair = """lair f(): float16 W[8], float16 x[8] -> float16 y[8], float16 V[8]
    { all (i) in (8) y[i] = W[i] + x[i]
      all (i) in (8) V[i] = W[7 - i] - x[i] }"""
    places = """size: { PE[2, 2] }
    compute_map: { f_y[i] -> PE[i mod 2, 1]; f_V[i] -> PE[i//4, 0] }
    iport_map: { x[i] -> [PE[0:1, -1] -> index[i]] }
    oport_map: { y[i] -> [PE[i mod 2, 2] -> index[i]] }
    state: W = V"""
    x = np.array([[1, 2, 3, 4, 5, 6, 7, 8], [0] * 8, [1] * 8])
    got = outputs(lair, places, mode, invocations=3, W=np.arange(8), x=x)
    state, sums = np.arange(8), []
    for sample in x:
        sums.append(state + sample)
        state = state[::-1] - sample
    np.testing.assert_array_equal(got["y"], sums)
    np.testing.assert_array_equal(got["V"], state)


@pytest.mark.parametrize("mode", MODES)
def test_a_state_may_have_any_rank(mode: SimdMode) -> None:
    lair = """lair f(): float16 n, float16 W[3][2][2][3][2], float16 d[3]
      -> float16 m, float16 V[3][2][2][3][2]
    { all () in () m = n + 1
      all (a, b, c, e, g) in (3, 2, 2, 3, 2) V[a][b][c][e][g] = W[a][b][c][e][g] - d[a] }"""
    places = """size: { PE[1, 1] }
    compute_map: { f_m[] -> PE[0, 0]; f_V[a, b, c, e, g] -> PE[0, 0] }
    iport_map: { d[i] -> [PE[0, -1] -> index[i]] }
    state: n = m, W = V"""
    before = np.arange(72).reshape(3, 2, 2, 3, 2)
    got = outputs(lair, places, mode, invocations=3, n=5, W=before, d=[[1, 2, 3]] * 3)
    assert got["m"] == 8
    expected = before - 3 * np.array([1, 2, 3]).reshape(3, 1, 1, 1, 1)
    np.testing.assert_array_equal(got["V"], expected)


def test_a_state_is_copied_without_simd_where_that_is_off() -> None:
    lair = "lair f(): float16 W[8], float16 d[8] -> float16 V[8] { all (i) in (8) V[i] = W[i] - d[i] }"
    places = """size: { PE[1, 1] }
    compute_map: { f[i] -> PE[0, 0] }
    iport_map: { d[i] -> [PE[0, -1] -> index[i]] }
    state: W = V"""
    program = compile_program(analysed(lair, places, SimdMode.OFF), load_machine("cs2"))
    assert not any("_simd(" in text for text in program.files.values())


def test_the_hull_may_have_a_floor_unless_the_papers_reading_is_asked_for() -> None:
    lair = """lair f(): float16 x[18], float16 W[4] -> float16 y[8]
    { all (w, r) in (8, 4) y[w] += x[2*w + r] * W[r] }"""
    places = """size: { PE[1, 1] }
    compute_map: { f[w, r] -> PE[0, 0] }
    iport_map: { x[i] -> [PE[0, -1] -> index[i]] }
    sparse: x"""
    (found,) = analysed(lair, places).simd
    assert found.strategy is Strategy.HULL and found.hull is not None and found.hull.has_floor
    program = lower(parse(Source("layer.lair", lair)), None, {})
    options = SimdOptions(extensions=without("floor-offset"))
    paper = analyse_layer(program, read_mapping(Source("layer.map", places), program), options)
    assert paper.simd[0].strategy is Strategy.ENUMERATED


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("statement", "wanted"),
    [
        ("float16 y[4] { all (i) in (4) y[i] = x[i] * x[i] }", {"y": [1, 4, 9, 16]}),
        ("float16 y { all (i) in (4) y += x[i] * x[i] }", {"y": 30}),
        ("float16 y[4] { all (i) in (4) y[i] = x[i] - x[i] }", {"y": [0, 0, 0, 0]}),
    ],
)
def test_an_element_that_is_used_twice_comes_once(mode: SimdMode, statement: str, wanted: object) -> None:
    """One instruction for the whole stream would take two operands from the fabric."""
    places = (
        "size: { PE[1, 1] }\ncompute_map: { f[i] -> PE[0, 0] }\n"
        "iport_map: { x[i] -> [PE[0, -1] -> index[i]] : 0 <= i < 4 }"
    )
    found = outputs(f"lair f(): float16 x[4] -> {statement}", places, mode, x=[1, 2, 3, 4])
    assert {name: array.tolist() for name, array in found.items()} == wanted
