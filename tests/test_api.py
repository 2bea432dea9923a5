"""``import polyloom``: the verbs on NumPy arrays."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import polyloom

EXAMPLES = Path(__file__).parents[1] / "examples"
LAYER = "lair f(N): float16 x[N], float16 w[N] -> float16 y[N] { all (i) in (N) y[i] = x[i] * w[i] }"
MAP = """
size: { PE[2, 1] }
compute_map: { f[i] -> PE[i//3, 0] }
iport_map: { x[i=0:5] -> [PE[i//3, -1] -> index[i%3]] }
oport_map: { y[i=0:5] -> [PE[i//3, 1] -> index[i%3]] }
"""


def test_texts_instead_of_files() -> None:
    program = polyloom.read_program(LAYER, defines={"N": 6})
    mapping = polyloom.read_mapping(MAP, program)
    inputs = polyloom.random_inputs(program, seed=3)
    result = polyloom.simulate(program, mapping, inputs)
    np.testing.assert_array_equal(result.outputs["y"], polyloom.evaluate(program, inputs)["y"])


def test_files() -> None:
    program = polyloom.read_program(EXAMPLES / "conv1d.lair")
    mapping = polyloom.read_mapping(str(EXAMPLES / "conv1d.map"), program)
    found = polyloom.explain(program, mapping, simd="enumerate").json()
    assert found["tasks"][0]["simd"]["sizes"] == [[1], [2], [3]]
    compiled = polyloom.compile_wafer(program, mapping, machine="cs3")
    assert "C_0.c" in compiled.files
    assert compiled.manifest["machine"] == "cs3"
    result = polyloom.simulate(program, mapping, check=True, invocations=2, density=0.5)
    assert result.check is not None and result.check.passed
    assert result.outputs["y"].shape == (2, 2, 14)


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"simd": "sometimes"}, "simd-mode"),
        ({"machine": "cs9"}, "machine-unknown"),
        ({"invocations": 0}, "invocations"),
        ({"density": float("nan")}, "density"),
        ({"inputs": {}}, "input-missing"),
    ],
)
def test_wrong_options(options: dict[str, object], code: str) -> None:
    program = polyloom.read_program(LAYER, defines={"N": 6})
    mapping = polyloom.read_mapping(MAP, program)
    with pytest.raises(polyloom.PolyloomError) as caught:
        polyloom.simulate(program, mapping, **options)  # type: ignore[arg-type]
    assert {d.code for d in caught.value.diagnostics} == {code}
    assert all(d.helps for d in caught.value.diagnostics)


def test_a_result_within_the_error_bound_passes() -> None:
    """A sum in another order: real data, so not the same bits."""
    program = polyloom.read_program(EXAMPLES / "ff.lair", defines={"M": 32, "N": 16})
    mapping = polyloom.read_mapping(EXAMPLES / "ff44.map", program)
    generator = np.random.default_rng(0)
    shapes = {"W": (32, 16), "x": (16,)}
    inputs = {n: generator.normal(size=s).astype(np.float16) for n, s in shapes.items()}
    result = polyloom.simulate(program, mapping, inputs, check=True)
    assert result.check is not None and result.check.passed
    assert 0 < result.check.max_error <= 1


def test_every_public_function_says_what_it_does() -> None:
    for name in polyloom.__all__:
        documentation = inspect.getdoc(getattr(polyloom, name))
        assert documentation and len(documentation) > 20, name
    assert dir(polyloom) == sorted(polyloom.__all__)


def test_what_is_not_there() -> None:
    with pytest.raises(AttributeError, match="no attribute 'frobnicate'"):
        polyloom.frobnicate  # noqa: B018


def test_importing_polyloom_imports_nothing_heavy() -> None:
    code = "import sys, polyloom; print([m for m in ('numpy', 'islpy', 'rich', 'lark') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


GEMV = """
void gemv(int n, int m, double beta, double y[n], double A[n][m], double x[m])
{
  for (int i = 0; i < n; i++) {
    y[i] = beta * y[i];
    for (int j = 0; j < m; j++)
      y[i] += A[i][j] * x[j];
  }
}
"""


def test_a_c_function_is_a_python_function(tmp_path: Path) -> None:
    path = tmp_path / "gemv.c"
    path.write_text(GEMV)
    gemv = polyloom.compile(path)
    generator = np.random.default_rng(2)
    y, a, x = (generator.integers(-3, 4, shape).astype(float) for shape in ((5,), (5, 7), (7,)))
    wanted = 2 * y + a @ x
    result = gemv(5, 7, 2.0, y, a, x)
    assert result is y
    np.testing.assert_array_equal(y, wanted)
    np.testing.assert_array_equal(gemv(beta=0.0, y=y, A=a, x=x), a @ x)


def test_run_tells_where_the_time_went(tmp_path: Path) -> None:
    path = tmp_path / "gemv.c"
    path.write_text(GEMV)
    gemv = polyloom.compile(path)
    made_up = polyloom.run(gemv, {"n": 6, "m": 3}, check=True)
    assert made_up.check is not None and made_up.check.passed and made_up.check.exact
    assert made_up.outputs["y"].shape == (6,) and made_up.execution.timing.device > 0
    y = np.linspace(0, 1, 6)
    real = polyloom.run(gemv, {"beta": 0.3, "y": y, "A": np.ones((6, 3)), "x": np.full(3, 0.1)}, check=True)
    assert real.check is not None and real.check.passed and not real.check.exact
    np.testing.assert_array_equal(y, np.linspace(0, 1, 6))


def test_a_layer_is_a_python_function() -> None:
    ff = polyloom.compile(EXAMPLES / "ff.lair", defines={"M": 4, "N": 3, "T": "float32"})
    w, x = np.arange(12, dtype=np.float32).reshape(4, 3), np.ones(3, np.float32)
    np.testing.assert_array_equal(ff(W=w, x=x), w @ x)


def test_devices_and_wrong_modes() -> None:
    assert polyloom.devices()[0].compute_units > 0
    with pytest.raises(polyloom.PolyloomError, match="reductions"):
        polyloom.compile(EXAMPLES / "ff.lair", reductions="all")


def test_a_small_memory_has_no_room_for_temporaries() -> None:
    """With 180 bytes the tensors fit, a temporary beside them does not: loops take its place."""
    text = """lair f(): float16 c[16], float16 r[16], float16 g[16], float16 b[16] -> float16 y[16]
    { all (i) in (16) y[i] = c[i] * r[i] * g[i] + b[i] }"""
    program = polyloom.read_program(text)
    mapping = polyloom.read_mapping("size: { PE[1, 1] }\ncompute_map: { f[i] -> PE[0, 0] }", program)
    small, large = (polyloom.simulate(program, mapping, memory=m, check=True) for m in (180, None))
    assert small.check is not None and small.check.passed
    assert small.cycles > large.cycles
