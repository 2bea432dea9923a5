"""Public kernels of wafer-scale machines, as LAIR layers with maps: their sizes, their data, their results.

What they compute and with which data is stated in the vendor's public examples; no code of theirs is used.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from corpus import EXAMPLES, Layer

from polyloom.diagnostics import Source
from polyloom.ir import evaluate
from polyloom.pipeline import analyse_layer
from polyloom.wafer.machine.model import load_machine
from polyloom.wafer.mapping.reader import read_mapping
from polyloom.wafer.program.wafer_program import compile_program
from polyloom.wafer.simd.decision import SimdMode, SimdOptions
from polyloom.wafer.simulation.run import Simulation, simulate_program

Array = npt.NDArray[np.generic]


def run(layer: Layer, invocations: int = 1, **inputs: npt.ArrayLike) -> Simulation:
    program = layer.compile(SimdMode.AUTO)
    tensors = program.analysis.program
    arrays = {name: np.asarray(a, tensors.buffer(name).type.dtype) for name, a in inputs.items()}
    return simulate_program(program, arrays, invocations=invocations)


def gemv(name: str, *defines: str) -> Layer:
    return Layer(name, "gemv_bias", defines)


def uniform(m: int, n: int, dtype: npt.DTypeLike) -> dict[str, Array]:
    """A, x and b of the examples: uniform in [0, 1), NumPy's old generator with seed 7."""
    generator = np.random.RandomState(7)
    return {k: generator.rand(*shape).astype(dtype) for k, shape in (("A", (m, n)), ("x", (n,)), ("b", (m,)))}


def test_a1_a_checkerboard_gemv() -> None:
    """32 x 16 on 4 x 4 PEs in float16: x in memory, one instruction for the 8 x 4 elements of a PE."""
    layer = gemv("gemv_bias_west", "M=32", "N=16")
    y = run(layer, **uniform(32, 16, np.float16)).outputs["y"]
    np.testing.assert_allclose(y[:4], [6.41, 6.066, 5.684, 5.34], atol=0.01)
    assert y.astype(np.float32).sum() == pytest.approx(171.332, abs=0.1)
    (product, _) = layer.compile(SimdMode.AUTO).analysis.simd
    assert product.hull is not None and product.hull.size == (8, 4)


@pytest.mark.parametrize(("name", "m", "n"), [("gemv_bias_4x3", 6, 8), ("gemv_bias_2x2", 4, 6)])
def test_a2_a3_gemv_in_float32(name: str, m: int, n: int) -> None:
    a = np.arange(m * n).reshape(m, n)
    y = run(gemv(name, f"M={m}", f"N={n}", "T=float32"), A=a, x=np.ones(n), b=np.full(m, 2)).outputs["y"]
    np.testing.assert_array_equal(y, a.sum(1) + 2)


@pytest.mark.parametrize("name", ["gemv_bias_corners", "gemv_bias_edges"])
def test_a4_a5_gemv_from_single_ports(name: str) -> None:
    """x and b enter at one PE each and are handed out; with A4 all of y leaves beside one PE."""
    data = uniform(32, 16, np.float32)
    y = run(gemv(name, "M=32", "N=16", "T=float32"), **data).outputs["y"]
    np.testing.assert_allclose(y, data["A"] @ data["x"] + data["b"], rtol=1e-5)


def test_a6_the_infinity_norm_of_a_residual() -> None:
    data = {"A": np.arange(24).reshape(6, 4), "x": np.arange(100, 104), "b": np.arange(200, 206)}
    assert run(Layer("residual", "residual", ("M=6", "N=4")), **data).outputs["norm"] == 8529


STENCIL = Layer("stencil7", "stencil7", ("N=5", "Z=5"))


@pytest.mark.slow
@pytest.mark.ci
def test_a12_a_7_point_stencil() -> None:
    """5 x 5 PEs exchange with their four neighbours; the third dimension is local."""
    y = run(STENCIL, x=100 + np.arange(125).reshape(5, 5, 5)).outputs["y"]
    assert (y.sum(), y.min(), y.max()) == (-217750, -2876, -437)
    assert y[0, 0].tolist() == [-591, -1096, -1106, -1116, -496]
    assert y[2, 2].tolist() == [-1586, -2396, -2411, -2426, -1451]


@pytest.mark.slow
@pytest.mark.ci
def test_an_exchange_with_neighbours_takes_the_same_time_on_any_grid() -> None:
    cycles = []
    for n in (5, 11):
        program = Layer("stencil7", "stencil7", (f"N={n}", "Z=5")).program()
        text = (EXAMPLES / "stencil7.map").read_text().replace("PE[5, 5]", f"PE[{n}, {n}]")
        analysis = analyse_layer(program, read_mapping(Source("grid.map", text), program), SimdOptions())
        compiled = compile_program(analysis, load_machine("cs2"))
        x = np.arange(5 * n * n, dtype=np.float32).reshape(n, n, 5)
        simulation = simulate_program(compiled, {"x": x})
        np.testing.assert_array_equal(simulation.outputs["y"], evaluate(program, {"x": x})["y"])
        cycles.append(simulation.cycles)
    assert cycles[0] == cycles[1]
