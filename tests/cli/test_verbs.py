"""The command line: what each verb prints, exit statuses, and that ``--json`` prints one document."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from command_line import CONV, FF, MAPPED, Captured, document, failure, real_inputs

from polyloom import evaluate, read_program
from polyloom.cli.main import run

# show


def test_show_prints_lair_that_is_understood_again(capsys: Captured) -> None:
    assert run(["show", *FF]) == 0
    text = capsys.readouterr().out
    assert read_program(text) == read_program(FF[0], defines={"M": 32, "N": 16})


def test_show_json(capsys: Captured) -> None:
    shown = document(capsys, ["show", *FF])
    assert shown["inputs"][0] == {"name": "W", "type": "float16", "shape": [32, 16]}
    assert shown["statements"][0]["combine"] == ["++", "+"]
    assert read_program(shown["lair"]).name == "ff"


def test_show_as_md_hom(capsys: Captured) -> None:
    (shown,) = document(capsys, ["show", *FF, "--as", "mdh"])
    assert shown["ranges"] == [32, 16]
    assert shown["combine_operators"] == ["++", "+"]
    assert [v["buffer"] for v in shown["input_view"]] == ["W", "x"]
    assert run(["show", *FF, "--as", "mdh"]) == 0
    wanted = "out_view(y)(i)(y[i]) . md_hom(f, (++, +)) . in_view(W, x)(i, j)(W[i][j], x[j])"
    assert wanted in capsys.readouterr().out


def test_show_as_scop_is_not_for_lair(capsys: Captured) -> None:
    assert "error[show-form]" in failure(capsys, ["show", *FF, "--as", "scop"], 3)


def test_warnings_go_to_stderr(capsys: Captured, tmp_path: Path) -> None:
    source = tmp_path / "idle.lair"
    source.write_text("lair f(N): float16 x[4], float16 w[4] -> float16 y[4] { all (i) in (4) y[i] = x[i] }")
    assert run(["show", str(source), "-D", "N=3"]) == 0
    out, err = capsys.readouterr()
    assert "warning[lair-unused]" in err
    assert "warning" not in out
    document(capsys, ["show", str(source), "-D", "N=3"])


# explain

SIZES_SET_ANEW = ("set-length", "configure-each-call", "outer-sizes")
EXACT_AS_IN_THE_PAPER = ["--simd", "exact", *(f"--simd-without={step}" for step in SIZES_SET_ANEW)]
"""A length that depends on the index is then no SIMD instruction."""


def test_explain_json(capsys: Captured) -> None:
    shown = document(capsys, ["explain", *MAPPED])
    assert {"size", "ports", "placement", "memory", "tasks"} <= set(shown)
    assert shown["tasks"][0]["simd"]["strategy"] == "hull"


def test_explain_in_every_mode(capsys: Captured) -> None:
    modes = ("auto", "off", "hull", "exact", "enumerate")
    found = [document(capsys, ["explain", *MAPPED, "--simd", mode])["tasks"][0]["simd"] for mode in modes]
    assert [f["strategy"] for f in found] == ["hull", "none", "hull", "exact", "enumerated"]
    assert [f["sizes"] for f in found if f["strategy"] != "exact"] == [[[3]], None, [[3]], [[1], [2], [3]]]
    assert [f["sizes_set"] for f in found if f["strategy"] == "exact"] == ["call"]
    assert all(bool(f["reason"]) == (f["strategy"] == "none") for f in found)
    paper = document(capsys, ["explain", *MAPPED, *EXACT_AS_IN_THE_PAPER])["tasks"][0]["simd"]
    assert (paper["strategy"], paper["sizes"]) == ("none", None)
    assert paper["reason"]


def test_explain_for_a_person(capsys: Captured) -> None:
    assert run(["explain", *MAPPED]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "\x1b" not in out
    assert max(map(len, out.splitlines())) <= 100


def test_remarks_go_to_stderr(capsys: Captured) -> None:
    assert run(["explain", *MAPPED, *EXACT_AS_IN_THE_PAPER]) == 0
    out, err = capsys.readouterr()
    assert "remark[simd-none]" in err
    assert "remark" not in out


@pytest.mark.parametrize("verb", ["explain", "simulate"])
def test_what_is_done_well_is_no_remark(verb: str, capsys: Captured) -> None:
    """An extension of the paper stands in the document; stderr is for what was missed."""
    arguments = [verb, *MAPPED, "--simd", "exact"]
    assert run(arguments) == 0
    assert capsys.readouterr().err == ""
    remarks = document(capsys, ["explain", *arguments[1:]])["remarks"]
    assert "simd-set-length" in {r["code"] for r in remarks}


@pytest.mark.slow
@pytest.mark.ci
def test_explain_as_a_process_with_an_ascii_terminal() -> None:
    command = [sys.executable, "-X", "utf8=0", "-m", "polyloom", "explain", *MAPPED]
    done = subprocess.run(
        command, capture_output=True, check=False, env={"PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
    )
    assert done.returncode == 0, done.stderr
    assert b"C[PE_Y, index - i0, i0]" in done.stdout


# compile


def test_compile_writes_a_folder(capsys: Captured, tmp_path: Path) -> None:
    arguments = ["compile", *MAPPED, "--target", "wafer", "-o", str(tmp_path / "out")]
    assert run(arguments) == 0
    assert capsys.readouterr().err == ""
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"C_0.c", "layout.c", "pe.h", "manifest.json"} <= names
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["program"] == "C"
    before = (tmp_path / "out" / "C_0.c").read_text()
    assert run([*arguments, "--simd", "off"]) == 0
    assert (tmp_path / "out" / "C_0.c").read_text() != before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_compile_leaves_other_files_alone(capsys: Captured, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    arguments = ["compile", *MAPPED, "--target", "wafer", "-o", str(tmp_path)]
    assert "folder-occupied" in failure(capsys, arguments, 1)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_compile_for_opencl(capsys: Captured, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    assert run(["compile", *CONV, "--target", "opencl", "-o", str(folder)]) == 0
    names = [
        "C_C.cl",
        "build.txt",
        "manifest.json",
        "polyloom_host.c",
        "polyloom_host.h",
        "polyloom_opencl.h",
    ]
    assert capsys.readouterr().out == f"{folder}: {', '.join(names)}\n"
    assert sorted(path.name for path in folder.iterdir()) == names


# simulate


def test_simulate_json(capsys: Captured) -> None:
    shown = document(capsys, ["simulate", *MAPPED, "--check"])
    told = {"reference": "the evaluator's results", "reading_checked": False}
    reals = shown["check"].pop("reals")
    equal = {"passed": True, "exact": True, "max_error": 0.0, "tight": 1.0, "unknown": 0}
    bounds = {"no_numbers": 0, "coarse": False, "redirected": False}
    assert shown["check"] == {**equal, **bounds, **told}
    assert reals["passed"] and reals["max_error"] <= 1 and (reals["decades"], reals["seed"]) == (3, 1)
    assert shown["outputs"] == {"y": {"shape": [2, 14], "dtype": "float16"}}
    assert 0 < shown["limit"]["cycles"] <= shown["cycles"]
    assert set(shown) == {
        "cycles", "machine", "simd", "outputs", "pe", "work", "fabric", "events", "limit", "check",
    }  # fmt: skip
    assert set(shown["pe"]["busy"]) == {"min", "mean", "max"}


def test_simulate_without_a_check(capsys: Captured) -> None:
    assert document(capsys, ["simulate", *MAPPED])["check"] is None


def test_simulate_for_a_person(capsys: Captured) -> None:
    assert run(["simulate", *MAPPED, "--check"]) == 0
    out, err = capsys.readouterr()
    assert "equal to the evaluator" in out and "reals of 1e-3 to 1e3 (seed 1): passed" in out
    assert err == ""


def test_simulate_files_in_and_out(capsys: Captured, tmp_path: Path) -> None:
    tensors = real_inputs()
    np.savez(tmp_path / "in.npz", **tensors)
    arguments = ["--inputs", str(tmp_path / "in.npz"), "--outputs", str(tmp_path / "out.npz"), "--check"]
    shown = document(capsys, ["simulate", *MAPPED, *arguments])
    assert shown["check"]["passed"]
    assert shown["check"]["max_error"] <= 1
    with np.load(tmp_path / "out.npz") as written:
        assert written.files == ["y"]
        expected = evaluate(read_program(CONV[0]), tensors)["y"]
        np.testing.assert_allclose(written["y"], expected, rtol=0.01, atol=0.01)
    assert {path.name for path in tmp_path.iterdir()} == {"in.npz", "out.npz"}


def test_outputs_are_the_same_bytes_each_time(tmp_path: Path) -> None:
    for name in ("a.npz", "b.npz"):
        assert run(["simulate", *MAPPED, "--outputs", str(tmp_path / name)]) == 0
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_simulate_several_invocations(capsys: Captured) -> None:
    shown = document(capsys, ["simulate", *MAPPED, "--invocations", "3", "--density", "0.5", "--check"])
    assert shown["outputs"]["y"]["shape"] == [3, 2, 14]
    assert shown["check"]["passed"]


def test_the_trace_is_for_a_timeline_viewer(capsys: Captured, tmp_path: Path) -> None:
    document(capsys, ["simulate", *MAPPED, "--trace", str(tmp_path / "trace.json")])
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert {"ph", "name", "pid"} <= set(events[0])


def test_what_does_not_fit_is_refused_with_a_table(capsys: Captured) -> None:
    err = failure(capsys, ["simulate", *MAPPED, "--memory", "20"], 3)
    assert "y_local" in err
    assert "W_local" in err
    assert "`--memory` allows 20" in err


def test_a_wrong_result_fails(capsys: Captured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A simulation that gives something else than the evaluator: exit status 1, and where they differ."""
    from polyloom.wafer.simulation import check

    monkeypatch.setattr(check, "evaluate", lambda p, i: {n: a + 1 for n, a in evaluate(p, i).items()})
    shown = document(capsys, ["simulate", *MAPPED, "--check"], status=1)
    assert not shown["check"]["passed"]
    assert run(["simulate", *MAPPED, "--check"]) == 1
    err = capsys.readouterr().err
    assert "error[check-mismatch]" in err
    assert "y[0][0] is" in err
