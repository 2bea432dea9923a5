"""``polyloom run`` and ``polyloom devices``: what they print, and one diagnostic for each wrong use."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import EXAMPLES, FF, Captured, document, failure

from polyloom.cli.main import run
from polyloom.mdh.device.devices import find_devices
from polyloom.mdh.native.device import all_devices, choose

SCALE = """
void scale(int n, float factor, float x[n], float y[n])
{
  for (int i = 0; i < n; i++)
    y[i] = factor * x[i] + y[i];
}
"""
TWO = """
void one(int n, float x[n]) {
#pragma scop
  for (int i = 0; i < n; i++) x[i] = 1;
#pragma endscop
}
void two(int n, float x[n]) {
#pragma scop
  for (int i = 0; i < n; i++) x[i] = 2;
#pragma endscop
#pragma scop
  for (int i = 0; i < n; i++) x[i] = 3;
#pragma endscop
}
"""


@pytest.fixture
def scale(tmp_path: Path) -> str:
    path = tmp_path / "scale.c"
    path.write_text(SCALE)
    return str(path)


def saved(folder: Path, **arrays: Any) -> str:
    path = folder / "inputs.npz"
    np.savez(path, **arrays)
    return str(path)


def vector(n: int, dtype: str = "float32") -> Any:
    return np.arange(n).astype(dtype)


def test_made_up_inputs(scale: str, capsys: Captured) -> None:
    found = document(capsys, ["run", scale, "--param", "n=13", "--check"])
    assert found["function"] == "scale" and found["parameters"] == {"n": 13}
    assert found["outputs"] == {"y": {"shape": [13], "dtype": "float32"}}
    check = found["check"]
    assert (check["passed"], check["exact"], check["max_error"]) == (True, True, 0.0)
    assert found["launches"] == 1 and found["seconds"]["device"] > 0
    assert found["device"] == all_devices()[0].id == choose().id
    assert [kernel["launches"] for kernel in found["kernels"]] == [1]


def test_given_inputs_and_outputs(scale: str, tmp_path: Path, capsys: Captured) -> None:
    x, y = vector(5), np.ones(5, np.float32)
    given = saved(tmp_path, x=x, y=y, factor=np.float32(0.5))
    outputs = tmp_path / "out.npz"
    assert run(["run", scale, "--inputs", given, "--outputs", str(outputs), "--check"]) == 0
    np.testing.assert_array_equal(np.load(outputs)["y"], x / 2 + 1)
    text = capsys.readouterr().out
    assert "float32 y[5]" in text and "passed" in text


def test_scalars_on_the_command_line(scale: str, tmp_path: Path) -> None:
    outputs = tmp_path / "out.npz"
    given = saved(tmp_path, x=vector(4), y=np.zeros(4, np.float32))
    arguments = ["run", scale, "--inputs", given, "--param", "factor=2.5", "--outputs", str(outputs)]
    assert run(arguments) == 0
    np.testing.assert_array_equal(np.load(outputs)["y"], 2.5 * vector(4))


def test_a_lair_layer(capsys: Captured) -> None:
    found = document(capsys, ["run", *FF, "--check"])
    assert found["function"] == "ff" and found["check"]["passed"]


@pytest.mark.parametrize("reductions", ["detect", "ignore"])
def test_reductions(capsys: Captured, reductions: str) -> None:
    sizes = ["--param", "n=5", "--param", "m=7", "--param", "k=11"]
    gemm = str(EXAMPLES / "c" / "gemm.c")
    found = document(capsys, ["run", gemm, *sizes, "--reductions", reductions, "--check"])
    assert found["check"]["passed"]


@pytest.mark.parametrize(
    ("arrays", "code"),
    [
        ({"y": vector(4)}, "input-missing"),
        ({"x": vector(4), "y": vector(5)}, "input-shape"),
        ({"x": vector(4, "float64"), "y": vector(4)}, "input-type"),
        ({"x": vector(4), "y": vector(4), "z": vector(4)}, "argument-unknown"),
        ({"x": vector(4), "y": vector(4), "n": np.float64(4)}, "parameter-type"),
        ({"x": vector(4), "y": vector(4), "n": np.int64(6)}, "input-shape"),
    ],
)
def test_wrong_inputs(scale: str, tmp_path: Path, capsys: Captured, arrays: Any, code: str) -> None:
    outputs = tmp_path / "out.npz"
    given = saved(tmp_path, factor=np.float32(1), **arrays)
    err = failure(capsys, ["run", scale, "--inputs", given, "--outputs", str(outputs)], 1)
    assert f"error[{code}]" in err and "help: " in err
    assert not outputs.exists()


def test_wrong_use(scale: str, tmp_path: Path, capsys: Captured) -> None:
    assert "parameter-missing" in failure(capsys, ["run", scale], 1)
    for n, code in ((2**31, "parameter-value"), (2**31 - 1, "memory")):
        assert f"error[{code}]" in failure(capsys, ["run", scale, "--param", f"n={n}"], 1)
    assert "argument-unknown" in failure(capsys, ["run", scale, "--param", "n=3", "--param", "q=1"], 1)
    err = failure(capsys, ["run", scale, "--param", "n=3", "--device", "tachyon"], 1)
    assert "device-missing" in err and all(model.name in err for model in find_devices())
    assert run(["run", scale, "--param", "n=three"]) == 2
    assert run(["run", scale, "--reductions", "some"]) == 2
    capsys.readouterr()


def test_several_scops(tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "two.c"
    path.write_text(TWO)
    assert "function-several" in failure(capsys, ["run", str(path), "--param", "n=3"], 1)
    assert document(capsys, ["run", str(path), "--function", "one", "--param", "n=3"])["function"] == "one"
    assert "function-parts" in failure(capsys, ["run", str(path), "--function", "two", "--param", "n=3"], 3)


def test_devices(capsys: Captured) -> None:
    found = document(capsys, ["devices"])
    assert [d["id"] for d in found] == [m.id for m in all_devices()]
    assert found[0]["kind"] == "cpu" and found[0]["platform"] == "native"
    assert run(["devices"]) == 0
    shown = capsys.readouterr().out
    assert all(word in shown for word in all_devices()[0].name.split())  # a long name takes several lines


def test_the_environment_names_a_device(
    scale: str, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setenv("POLYLOOM_DEVICE", "native")
    assert document(capsys, ["run", scale, "--param", "n=3"])["device"] == choose("native").id
    monkeypatch.setenv("POLYLOOM_DEVICE", "tachyon")
    assert "device-missing" in failure(capsys, ["run", scale, "--param", "n=3"], 1)
    assert document(capsys, ["run", scale, "--param", "n=3", "--device", "native"])["launches"] == 1


def test_no_devices(monkeypatch: pytest.MonkeyPatch, capsys: Captured, scale: str) -> None:
    from polyloom.mdh.native import device

    monkeypatch.setattr(device, "find_devices", lambda: ())
    monkeypatch.setattr(device, "works", lambda compiler: False)
    assert run(["devices", "--json"]) == 1
    out, err = capsys.readouterr()
    assert json.loads(out) == [] and "device-none" in err
    assert "device-none" in failure(capsys, ["run", scale, "--param", "n=3"], 1)


@pytest.mark.slow
@pytest.mark.ci
def test_a_program_that_enlarges_errors(capsys: Captured) -> None:
    lu = str(EXAMPLES / "c" / "lu.c")
    found = document(capsys, ["run", lu, "--param", "n=40", "--check"])
    assert found["check"]["passed"] and not found["check"]["exact"]


def test_a_computed_subscript_outside_of_its_array(tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "squares.c"
    path.write_text("void f(int n, float a[n]) { for (int i = 0; i < n; i++) a[i] = a[i] * a[i * i]; }")
    assert document(capsys, ["run", str(path), "--param", "n=2", "--check"])["check"]["passed"]
    assert "access-outside" in failure(capsys, ["run", str(path), "--param", "n=9", "--check"], 1)
