"""Everything that can be wrong from outside: one diagnostic, the right exit status, nothing half written."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from command_line import CONV, EXAMPLES, FF, MAPPED, Captured, failure, real_inputs

from polyloom.cli.main import run
from polyloom.cli.verbs import explain as explain_verb


@pytest.mark.parametrize(
    "arguments",
    [
        ["frobnicate"],
        ["explain"],
        ["explain", *MAPPED, "--simd", "sometimes"],
        ["explain", *MAPPED, "--frobnicate"],
        ["show", FF[0], "-D", "M"],
        ["show", FF[0], "-D", "=3"],
        ["show", FF[0], "-D", "M=32", "-D", "M=16"],
        ["compile", *MAPPED, "--target", "wafer"],
        ["compile", *MAPPED, "-o", "out"],
        ["simulate", *MAPPED, "--machine", "cs9"],
        ["simulate", *MAPPED, "--invocations", "0"],
        ["simulate", *MAPPED, "--density", "1.5"],
        ["simulate", *MAPPED, "--density", "nan"],
        ["simulate", *MAPPED, "--memory", "-1"],
        ["simulate", *MAPPED, "--param", "M=3"],
        ["trace", *FF, "--param", "M=3"],
    ],
)
def test_wrong_usage(capsys: Captured, arguments: list[str]) -> None:
    assert "Error: " in failure(capsys, arguments, 2)


def test_a_verb_that_is_near_is_named(capsys: Captured) -> None:
    assert "Did you mean 'explain'?" in failure(capsys, ["explane", *MAPPED], 2)
    assert "Did you mean" not in failure(capsys, ["frobnicate"], 2)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["show", "nowhere.lair"], "file-missing"),
        (["show", str(EXAMPLES)], "source-unknown"),
        (["show", "text.txt"], "source-unknown"),
        (["show", FF[0]], "lair-missing-parameter"),
        (["show", *FF, "-D", "K=1"], "lair-unknown-define"),
        (["show", FF[0], "-D", "M=many", "-D", "N=1"], "lair-bad-define"),
        (["show", *CONV, "--node", "D"], "lair-unknown-node"),
        (["explain", *CONV, "--map", "nowhere.map"], "file-missing"),
        (["simulate", *CONV, "--map", str(EXAMPLES)], "file-unreadable"),
        (["simulate", *MAPPED, "--inputs", "nowhere.npz"], "file-missing"),
        (["simulate", *MAPPED, "--inputs", str(EXAMPLES)], "file-unreadable"),
    ],
)
def test_wrong_input(capsys: Captured, arguments: list[str], code: str) -> None:
    assert f"error[{code}]" in failure(capsys, arguments, 1)


@pytest.mark.parametrize("source", ["none.onnx", "none.pb", "none.pt2"])
def test_models_that_are_not_there(capsys: Captured, source: str) -> None:
    assert "error[file-missing]" in failure(capsys, ["show", source], 1)


def test_a_saved_model_that_is_none(capsys: Captured, tmp_path: Path) -> None:
    (tmp_path / "saved_model.pb").write_bytes(b"")
    assert "error[model-" in failure(capsys, ["show", str(tmp_path)], 1)


def test_a_size_that_is_none(capsys: Captured) -> None:
    for text in ("4", "0x3", "4x4x4", "70000x1"):
        assert "4x4" in failure(capsys, ["explain", *CONV, "--size", text], 2)


def test_refused_input_leaves_no_report(capsys: Captured, tmp_path: Path) -> None:
    report = tmp_path / "r.html"
    wrong = ["--inputs", str(tmp_path / "none.npz")]
    assert "error[file-missing]" in failure(capsys, ["simulate", *MAPPED, *wrong, "--report", str(report)], 1)
    assert not report.exists()


def test_a_report_that_cannot_be_written(capsys: Captured, tmp_path: Path) -> None:
    report = tmp_path / "none" / "r.html"
    assert "error[file-unwritable]" in failure(capsys, ["simulate", *MAPPED, "--report", str(report)], 1)


def test_a_watched_pe_is_two_numbers(capsys: Captured) -> None:
    assert "X,Y" in failure(capsys, ["simulate", *MAPPED, "--watch", "3"], 2)


def test_a_source_that_is_no_text(capsys: Captured, tmp_path: Path) -> None:
    source = tmp_path / "latin.lair"
    source.write_bytes("lair f(): # Größe\n".encode("latin-1"))
    err = failure(capsys, ["show", str(source)], 1)
    assert "error[file-encoding]" in err
    assert f"{source}:1:" in err


def test_every_fault_of_a_text_is_shown(capsys: Captured, tmp_path: Path) -> None:
    source = tmp_path / "two.lair"
    source.write_text(
        "lair f(): float16 x[4] -> float16 y[4], float16 z[4] {\n"
        "  all (i) in (4) y[i] = x[i + 1]\n  all (i) in (4) z[i] = x[2 * i]\n}\n"
    )
    assert failure(capsys, ["show", str(source)], 1).count("error[") == 2


@pytest.fixture
def arrays(tmp_path: Path) -> Path:
    return tmp_path / "in.npz"


def test_arrays_of_wrong_names_shapes_and_types(capsys: Captured, arrays: Path) -> None:
    given = real_inputs()
    np.savez(arrays, x=given["x"][:5], V=given["W"])
    err = failure(capsys, ["simulate", *MAPPED, "--inputs", str(arrays)], 1)
    assert all(f"error[input-{what}]" in err for what in ("unknown", "missing", "shape"))
    np.savez(arrays, x=given["x"].astype(np.float64), W=given["W"])
    assert "error[input-type]" in failure(capsys, ["simulate", *MAPPED, "--inputs", str(arrays)], 1)


def test_arrays_of_several_invocations(capsys: Captured, arrays: Path) -> None:
    np.savez(arrays, **real_inputs())
    err = failure(capsys, ["simulate", *MAPPED, "--inputs", str(arrays), "--invocations", "2"], 1)
    assert "2 x 16" in err


def broken_archives(folder: Path) -> list[Path]:
    good = folder / "good.npz"
    np.savez(good, **real_inputs())
    whole = good.read_bytes()
    objects = folder / "objects.npz"
    np.savez(objects, x=np.array([object()]), W=np.zeros(3))
    single = folder / "single.npy"
    np.save(single, np.zeros(3))
    texts = folder / "texts.npz"
    with zipfile.ZipFile(texts, "w") as archive:
        archive.writestr("x.npy", b"\x93NUMPY\x01\x00\x10\x00{'descr': f(}   \n")
    cut, flipped = folder / "cut.npz", folder / "flipped.npz"
    cut.write_bytes(whole[: len(whole) // 2])
    flipped.write_bytes(whole[:60] + b"\xff\xff\xff\xff" + whole[64:])
    empty = folder / "empty.npz"
    empty.write_bytes(b"")
    return [objects, single, texts, cut, flipped, empty]


def test_broken_archives(capsys: Captured, tmp_path: Path) -> None:
    for path in broken_archives(tmp_path):
        err = failure(capsys, ["simulate", *MAPPED, "--inputs", str(path)], 1)
        assert "error[npz-broken]" in err, path
        assert err.count("error[") == 1


MODEL = str(Path(__file__).parents[1] / "data" / "torch" / "mlp.pt2")


def bomb(path: Path, name: str, shape: tuple[int, ...], dtype: str) -> str:
    """Write an archive whose one array of zeros is said to be large, and return its path."""
    header = io.BytesIO()
    described = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(header, described)
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open(f"{name}.npy", "w") as member,
    ):
        member.write(header.getvalue() + bytes(2**20))
    return str(path)


@pytest.mark.parametrize(
    ("name", "shape", "dtype"),
    [
        ("x", (2**30,), "<f4"),
        ("x", (1,), f"<U{2**25}"),
        ("x", (2**20, 100), "|u1"),
        ("other", (2**27,), "<f4"),
        ("x", (-1, 2**40), "<f4"),
    ],
)
def test_an_archive_that_unpacks_to_much_is_refused_before(
    capsys: Captured,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    shape: tuple[int, ...],
    dtype: str,
) -> None:
    path = bomb(tmp_path / "bomb.npz", name, shape, dtype)
    pointer = tmp_path / "pointer.c"
    pointer.write_text("void twice(int n, double *x) { for (int i = 0; i < n; i++) x[i] *= 2; }")

    def unpack(*arguments: object, **options: object) -> None:
        raise AssertionError("it is unpacked")

    monkeypatch.setattr(np, "load", unpack)
    for command in (
        ["simulate", *MAPPED, "--inputs", path],
        ["trace", *CONV, "--inputs", path],
        ["trace", *CONV, "--compare", path],
        ["run", *CONV, "--inputs", path],
        ["run", MODEL, "--inputs", path],
        ["trace", MODEL, "--inputs", path],
        ["simulate", MODEL, "--inputs", path, "--per-layer"],
        ["run", str(pointer), "--inputs", path],
        ["run", str(pointer), "--inputs", path, "--param", "n=10"],
        ["run", str(EXAMPLES / "c" / "gemm.c"), "--inputs", path],
    ):
        err = failure(capsys, command, 1)
        assert "error[npz-large]" in err and f"`{name}`" in err


def test_nothing_is_left_of_outputs_that_cannot_be_written(capsys: Captured, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    for option in ("--outputs", "--trace"):
        target = str(tmp_path / "file" / "out")
        assert run(["simulate", *MAPPED, option, target]) == 1
        assert "error[file-unwritable]" in capsys.readouterr().err
    arguments = ["compile", *MAPPED, "--target", "wafer", "-o", str(tmp_path / "file" / "out")]
    assert "error[file-unwritable]" in failure(capsys, arguments, 1)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_an_interrupted_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "out.npz"
    target.write_bytes(b"old")

    def fail(*arguments: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np.lib.format, "write_array", fail)
    assert run(["simulate", *MAPPED, "--outputs", str(target)]) == 1
    assert target.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["out.npz"]


def test_a_fault_of_ours_is_not_the_users(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object, **options: object) -> None:
        raise KeyError("simulated")

    monkeypatch.setattr(explain_verb, "load_whole", fail)
    err = failure(capsys, ["explain", *MAPPED], 70)
    assert "KeyError" in err
    assert "report" in err
    assert run(["explain", *MAPPED, "--debug"]) == 70
    assert "Traceback" in capsys.readouterr().err


def test_a_program_that_needs_more_memory_than_there_is(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object, **options: object) -> None:
        raise MemoryError("Unable to allocate 24.0 GiB")

    monkeypatch.setattr(explain_verb, "load_whole", fail)
    err = failure(capsys, ["explain", *MAPPED], 1)
    assert "error[memory]" in err
    assert "24.0 GiB" in err


def test_an_interruption(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(explain_verb, "load_whole", interrupt)
    assert failure(capsys, ["explain", *MAPPED], 130).strip() == "interrupted"


@pytest.mark.slow
@pytest.mark.ci
def test_whoever_reads_may_go_away() -> None:
    command = [sys.executable, "-m", "polyloom", "explain", *MAPPED, "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    assert b"Traceback" not in process.stderr.read()
    process.stderr.close()
    assert process.wait() in (0, 1)


@pytest.mark.parametrize("name", [b"\xff", b"a\nb", b"-x"])
def test_files_may_be_called_anything(
    capsys: Captured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: bytes
) -> None:
    monkeypatch.chdir(tmp_path)
    source, placed = (f"{os.fsdecode(name)}.{ending}" for ending in ("lair", "map"))
    Path(source).write_text(Path(CONV[0]).read_text())
    Path(placed).write_text(Path(MAPPED[-1]).read_text())
    assert run(["compile", "--target", "opencl", "-o", f"out{source}", "--", source]) == 0
    written = ["--report", f"r{source}.html", "--trace", f"t{source}.json"]
    assert run(["simulate", *written, "--map", placed, "--", source]) == 0
    Path(source).write_text(Path(CONV[0]).read_text().replace("+=", "+= &"))
    capsys.readouterr()
    assert "error[lair-syntax]" in failure(capsys, ["show", "--", source], 1)


LONG = "a" * 300
"""No file system has such a name: to ask whether it is there is an error already."""


@pytest.mark.parametrize(
    "arguments",
    [
        *(["show", f"{LONG}{ending}"] for ending in (".c", ".lair", ".onnx", ".pb", ".pt2", "", "/a.c")),
        ["explain", *CONV, "--map", LONG],
        ["simulate", *MAPPED, "--inputs", LONG],
        ["compile", *CONV, "--target", "opencl", "-o", f"{LONG}/b"],
        ["compile", *MAPPED, "--target", "wafer", "-o", LONG],
        ["run", *CONV, "--database", LONG],
        ["tune", "--export", LONG, "--database", LONG],
    ],
)
def test_names_that_are_too_long(capsys: Captured, arguments: list[str]) -> None:
    assert run(arguments) == 1
    assert "error[" in capsys.readouterr().err
