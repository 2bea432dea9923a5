"""``polyloom trace``: every tensor by the evaluator, and the first one that differs from a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import EXAMPLES, Captured, document, failure

from polyloom import read_program, trace_tensors
from polyloom.cli.main import run

TRAINING = str(EXAMPLES / "training.lair")
ORDER = ["W", "x", "dy", "y", "dW", "dx", "W1"]


def tensors() -> dict[str, np.ndarray[Any, Any]]:
    return trace_tensors(read_program(TRAINING))


def test_intermediate_tensors_are_shown(capsys: Captured) -> None:
    shown = document(capsys, ["trace", TRAINING])
    assert list(shown["tensors"]) == ORDER
    assert [entry["role"] for entry in shown["tensors"].values()] == [
        "input", "input", "input", "output", "internal", "output", "output",
    ]  # fmt: skip
    wanted = tensors()["dW"]
    entry = shown["tensors"]["dW"]
    assert (entry["shape"], entry["dtype"]) == ([16, 8], "float16")
    assert (entry["smallest"], entry["largest"]) == (wanted.min(), wanted.max())
    assert shown["difference"] is None


def test_for_a_person(capsys: Captured) -> None:
    assert run(["trace", TRAINING]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert [line.split()[0] for line in out.splitlines()[1:]] == ORDER


def test_what_is_written_compares_equal(capsys: Captured, tmp_path: Path) -> None:
    target = str(tmp_path / "t.npz")
    assert run(["trace", TRAINING, "-o", target]) == 0
    with np.load(target) as written:
        assert written.files == ORDER
        assert all(np.array_equal(written[name], array) for name, array in tensors().items())
    capsys.readouterr()
    assert document(capsys, ["trace", TRAINING, "--compare", target])["difference"] is None


def test_the_inputs_are_those_given(capsys: Captured, tmp_path: Path) -> None:
    given = {name: np.full_like(tensors()[name], 2) for name in ("W", "x", "dy")}
    np.savez(tmp_path / "in.npz", **given)
    shown = document(capsys, ["trace", TRAINING, "--inputs", str(tmp_path / "in.npz")])
    assert shown["tensors"]["y"]["largest"] == 2 * 2 * 8


def test_the_first_that_differs_is_named(capsys: Captured, tmp_path: Path) -> None:
    wrong = tensors()
    for name in ("W1", "dW", "dx"):
        wrong[name] = wrong[name].copy()
        wrong[name].flat[5] += 4
    np.savez(tmp_path / "r.npz", **wrong)
    arguments = ["trace", TRAINING, "--compare", str(tmp_path / "r.npz")]
    shown = document(capsys, arguments, status=1)
    assert shown["difference"]["tensor"] == "dW"
    assert run(arguments) == 1
    err = capsys.readouterr().err
    assert "error[trace-differs]: `dW` is the first tensor that differs" in err
    assert "dW[0][5] is" in err
    assert "1 of 128 are wrong" in err


def test_rounding_is_no_difference(capsys: Captured, tmp_path: Path) -> None:
    """The same sums in another order: other bits, within n * eps * sum of |terms|."""
    generator = np.random.default_rng(3)
    shapes = {"W": (16, 8), "x": (8,), "dy": (16,)}
    given = {name: generator.normal(size=shape).astype(np.float16) for name, shape in shapes.items()}
    np.savez(tmp_path / "in.npz", **given)
    y = np.zeros(16, np.float16)
    for j in reversed(range(8)):
        y = y + given["W"][:, j] * given["x"][j]
    assert not np.array_equal(y, trace_tensors(read_program(TRAINING), given)["y"])
    np.savez(tmp_path / "r.npz", y=y)
    files = ["--inputs", str(tmp_path / "in.npz"), "--compare", str(tmp_path / "r.npz")]
    assert document(capsys, ["trace", TRAINING, *files])["difference"] is None


@pytest.mark.parametrize(
    ("arrays", "code"),
    [
        ({}, "compare-nothing"),
        ({"z": np.zeros(3)}, "compare-unknown"),
        ({"y": np.zeros(3)}, "compare-shape"),
        ({"y": np.full(16, "a")}, "compare-shape"),
    ],
)
def test_nothing_to_compare_with(
    capsys: Captured, tmp_path: Path, arrays: dict[str, np.ndarray[Any, Any]], code: str
) -> None:
    np.savez(tmp_path / "r.npz", **arrays)
    arguments = ["trace", TRAINING, "--compare", str(tmp_path / "r.npz"), "-o", str(tmp_path / "t.npz")]
    assert f"error[{code}]" in failure(capsys, arguments, 1)
    assert not (tmp_path / "t.npz").exists()
