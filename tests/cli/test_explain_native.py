"""``polyloom explain --device native``: schedules with their origins, and the loops of the whole program."""

from __future__ import annotations

import pytest
from command_line import EXAMPLES, Captured, document, failure

import polyloom
from polyloom.cli.main import run
from polyloom.mdh.schedule.schedules import schedule_from_json

GEMM = str(EXAMPLES / "c" / "gemm.c")
SIZES = ["--param", "n=64", "--param", "m=48", "--param", "k=32"]


def test_the_loops_of_a_c_program(capsys: Captured) -> None:
    found = document(capsys, ["explain", GEMM, *SIZES, "--device", "native", "--threads", "2"])
    assert found["device"].endswith(", 2 threads") and found["parameters"] == {"n": 64, "m": 48, "k": 32}
    (hom,) = found["md_homs"]
    assert hom["origin"] == "cost model" and schedule_from_json(hom["schedule"]).vector is not None
    assert run(["explain", GEMM, *SIZES, "--device", "native", "--threads", "2"]) == 0
    text = capsys.readouterr().out
    assert "  S2: cost model; " in text and "vectors of" in text and found["tree"] in text


def test_a_text_ends_its_last_line(capsys: Captured) -> None:
    for where in ([], [*SIZES, "--device", "native"]):
        assert run(["explain", GEMM, *where]) == 0
        text = capsys.readouterr().out
        assert text.endswith("\n") and not text.endswith("\n\n")


def test_a_model_and_what_has_no_schedule(capsys: Captured) -> None:
    found = document(capsys, ["explain", str(EXAMPLES / "models/cnn.onnx"), "--device", "native"])
    assert {"relu1", "dense"} <= {hom["name"] for hom in found["md_homs"]}
    scan = polyloom.load("void f(int n, int x[n]) { for (int i = 1; i < n; i++) x[i] += x[i - 1]; }")
    shown = str(scan.explain(native={"n": 9}))
    assert "x[9]" in shown and "cost model" not in shown


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--device", "native"], "parameter-missing"),
        ([*SIZES, "--device", "native:nocc"], "native-compiler"),
        ([*SIZES, "--device", "tachyon"], "device-missing"),
    ],
)
def test_wrong_use(arguments: list[str], code: str, capsys: Captured) -> None:
    assert f"error[{code}]" in failure(capsys, ["explain", GEMM, *arguments], 1)


def test_kernels_are_not_explained(capsys: Captured) -> None:
    if not any(model.kind.value == "cpu" and model.index >= 0 for model in polyloom.devices()):
        pytest.skip("there is no OpenCL device")
    err = failure(capsys, ["explain", GEMM, *SIZES, "--device", "cpu"], 1)
    assert "error[explain-device]" in err and "--device native" in err
