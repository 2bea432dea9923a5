"""A wrong C program, device, file or disk: one diagnostic from every verb, and nothing half written."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import Any

import numpy as np
import pytest
from command_line import Captured, failure

from polyloom.mdh.device.devices import find_devices
from samples import LATER

VERBS = {
    "show": ["show", "--as", "mdh"],
    "explain": ["explain"],
    "run": ["run", "--param", "n=5", "--outputs", "out.npz"],
    "compile": ["compile", "--target", "opencl", "-o", "out"],
    "tune": ["tune", "--param", "n=5", "--budget", "1", "--database", "out.sqlite"],
}

WRONG = {
    "c-scop-pragma": (
        1,
        "void f(int n, int x[n]) {\n#pragma scop\n  for (int i = 0; i < n; i++) x[i] = 0;\n}\n",
    ),
    "c-syntax": (1, "void f(int n, int x[n]) { for (int i = 0; i < n; i++ x[i] = 0; }\n"),
    "c-preprocessor": (1, '#include "nothere.h"\nvoid f(int n, int x[n]) { x[0] = n; }\n'),
    "c-no-function": (1, "int x;\n"),
    "c-loop": (3, "void f(int n, int x[n]) { for (int i = 1; i < n; i *= 2) x[i] = 0; }\n"),
    "c-while": (3, "void f(int n, int x[n]) { while (x[0] < n) { x[0]++; x[x[0]] = n; } }\n"),
    "c-call": (3, "int g(int);\nvoid f(int n, int x[n]) { for (int i = 0; i < n; i++) x[i] = g(i); }\n"),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("code", WRONG)
def test_a_wrong_program(code: str, verb: str, folder: Path, capsys: Captured) -> None:
    status, text = WRONG[code]
    (folder / "f.c").write_text(text)
    err = failure(capsys, [VERBS[verb][0], "f.c", *VERBS[verb][1:]], status)
    assert err.startswith(f"error[{code}]: ") and "\nhelp: " in err
    assert left(folder) == {"f.c"}


def left(folder: Path) -> set[str]:
    """What lies in the folder; a database is whole from the start, without a result in it."""
    return {path.name for path in folder.iterdir()} - {"out.sqlite"}


GOOD = "void f(int n, int x[n], int y[n]) { for (int i = 0; i < n; i++) y[i] = 2 * x[i]; }\n"


@pytest.mark.parametrize("verb", ["run", "compile", "tune"])
def test_a_device_that_is_not_there(verb: str, folder: Path, capsys: Captured) -> None:
    (folder / "f.c").write_text(GOOD)
    err = failure(capsys, [VERBS[verb][0], "f.c", *VERBS[verb][1:], "--device", "Hypercube"], 1)
    assert err.startswith("error[device-missing]: there is no OpenCL device `Hypercube`\nnote: 0: ")
    assert left(folder) == {"f.c"}


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize(
    "verb", ["run", *(pytest.param(v, marks=LATER) for v in ("compile", "tune", "devices"))]
)
def test_no_driver_at_all(verb: str, folder: Path) -> None:
    (folder / "f.c").write_text(GOOD)
    arguments = ["devices"] if verb == "devices" else [VERBS[verb][0], "f.c", *VERBS[verb][1:]]
    device = {} if verb in ("devices", "compile") else {"POLYLOOM_DEVICE": "cpu"}
    done = without(arguments, {"OCL_ICD_VENDORS": str(folder / "none"), **device})
    if verb != "devices":
        assert done.returncode == 1 and done.stderr.startswith("error[device-none]: ")
        assert "--device native" in done.stderr
    assert "Traceback" not in done.stderr and not (folder / "out").exists()


def without(arguments: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "polyloom", *arguments]
    known = {**os.environ, **environment}
    return subprocess.run(command, env=known, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.skipif(find_spec("ziglang") is not None, reason="a C compiler that needs no PATH is installed")
@pytest.mark.parametrize("compiler", ["none", pytest.param("broken", marks=LATER)])
@pytest.mark.slow
@pytest.mark.ci
def test_no_driver_and_no_compiler(compiler: str, folder: Path) -> None:
    (folder / "f.c").write_text(GOOD)
    (folder / "bin").mkdir()
    if linker := which("ld"):  # PoCL's
        (folder / "bin/ld").symlink_to(linker)
    if compiler == "broken":
        (folder / "bin/gcc").write_text("#!/bin/sh\nexit 1\n")
        (folder / "bin/gcc").chmod(0o755)
    nothing = {"PATH": str(folder / "bin"), "OCL_ICD_VENDORS": str(folder / "none")}
    for arguments in (["devices"], ["run", "f.c", "--param", "n=5"]):
        done = without(arguments, nothing)
        assert done.returncode == 1 and done.stderr.startswith("error[device-none]: "), done.stderr
        assert "ziglang" in done.stderr and "/etc/OpenCL" in done.stderr
    if find_devices():
        with_opencl = without(["run", "f.c", "--param", "n=5", "--json"], {"PATH": str(folder / "bin")})
        assert json.loads(with_opencl.stdout)["device"] == find_devices()[0].id


@pytest.mark.parametrize(
    ("arrays", "code"),
    [
        ({"x": np.zeros(4, np.int32)}, "input-shape"),
        ({"x": np.zeros((5, 1), np.int32)}, "input-shape"),
        ({"x": np.zeros(5, np.float32)}, "input-type"),
        ({"y": np.zeros(5, np.int32)}, "input-missing"),
        ({"x": np.zeros(5, np.int32), "z": np.zeros(5, np.int32)}, "argument-unknown"),
    ],
)
def test_wrong_arrays(arrays: dict[str, Any], code: str, folder: Path, capsys: Captured) -> None:
    (folder / "f.c").write_text(GOOD)
    np.savez(folder / "in.npz", **arrays)
    err = failure(capsys, ["run", "f.c", *VERBS["run"][1:], "--inputs", "in.npz"], 1)
    assert f"error[{code}]: " in err and not (folder / "out.npz").exists()


def test_a_file_of_arrays_that_is_none(folder: Path, capsys: Captured) -> None:
    (folder / "f.c").write_text(GOOD)
    (folder / "in.npz").write_bytes(b"PK\x03\x04 nothing")
    err = failure(capsys, ["run", "f.c", *VERBS["run"][1:], "--inputs", "in.npz"], 1)
    assert err.startswith("error[npz-broken]: ")


def full(*arguments: Any, **options: Any) -> int:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_leaves_no_half_folder(
    folder: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "f.c").write_text(GOOD)
    monkeypatch.setattr(Path, "write_bytes", full)
    err = failure(capsys, ["compile", "f.c", *VERBS["compile"][1:]], 1)
    assert err.startswith("error[file-unwritable]: `out` cannot be written: No space left on device")
    assert [path.name for path in folder.iterdir()] == ["f.c"]


def test_a_full_disk_leaves_the_folder_before_it(
    folder: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "f.c").write_text(GOOD)
    arguments = ["compile", "f.c", *VERBS["compile"][1:]]
    from polyloom.cli.main import run

    assert run(arguments) == 0
    before = {path.name: path.read_bytes() for path in (folder / "out").iterdir()}
    (folder / "f.c").write_text(GOOD.replace("2 *", "3 *"))
    capsys.readouterr()
    monkeypatch.setattr(Path, "write_bytes", full)
    failure(capsys, arguments, 1)
    assert {path.name: path.read_bytes() for path in (folder / "out").iterdir()} == before
    assert sorted(path.name for path in folder.iterdir()) == ["f.c", "out"]


def test_outputs_on_a_full_disk(folder: Path, capsys: Captured) -> None:
    (folder / "f.c").write_text(GOOD)
    err = failure(capsys, ["run", "f.c", "--param", "n=5", "--outputs", "/dev/full"], 1)
    assert "error[file-unwritable]: `/dev/full` cannot be written: No space left on device" in err


def test_aliasing_arguments(folder: Path) -> None:
    import polyloom
    from polyloom.diagnostics import PolyloomError

    (folder / "f.c").write_text(GOOD)
    program = polyloom.compile(folder / "f.c")
    x = np.arange(6, dtype=np.int32)
    with pytest.raises(PolyloomError) as caught:
        program(5, x[:5], x[1:])
    assert [found.code for found in caught.value.diagnostics] == ["input-alias"]
    assert x.tolist() == [0, 1, 2, 3, 4, 5]
