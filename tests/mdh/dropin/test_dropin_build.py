"""What ``build.txt`` says builds here and runs, whatever the file is called, with no OpenCL installed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from drop_in_programs import STRICT, opencl_library

from polyloom.cli.main import run as polyloom

SOURCE = """\
#include <stdio.h>
int main(void) {
  int n = 9;
  static int x[9];
#pragma scop
  for (int i = 0; i < n; i++) x[i] = 2 * i;
#pragma endscop
  for (int i = 0; i < n; i++) printf("%d ", x[i]);
  return 0;
}
"""
PRINTED = "0 2 4 6 8 10 12 14 16 "
NOTHING = '-DPOLYLOOM_PIP_LIBRARY="/nowhere/libOpenCL.so"'


def bare(**variables: str) -> dict[str, str]:
    """An environment in which nothing points to a driver."""
    left_out = ("PYOPENCL_HOME", "LD_LIBRARY_PATH", "OCL_ICD_VENDORS")
    return {name: value for name, value in os.environ.items() if name not in left_out} | variables


def made(folder: Path, name: str = "a.c") -> Path:
    (folder / "source").mkdir()
    (folder / "source" / name).write_text(SOURCE)
    os.chdir(folder / "source")
    assert polyloom(["compile", "--target", "opencl", "-o", str(folder / "out"), "--", name]) == 0
    return folder / "out"


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize(
    "name",
    [
        "a.c",
        "-Dx.c",
        "with space.c",
        'quo"te.c',
        "new\nline.c",
        "$(touch x).c",
        os.fsdecode(b"\xff.c"),
    ],
)
def test_the_command_builds_and_the_program_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = made(tmp_path, name)
    command = json.loads((folder / "manifest.json").read_text())["build"]
    assert (folder / "build.txt").read_bytes().startswith(os.fsencode(f"{command}\n"))
    subprocess.run(["sh", "-c", command], cwd=folder, check=True)
    done = subprocess.run([folder / "a.out"], env=bare(), capture_output=True, text=True, check=True)
    assert done.stdout == PRINTED
    assert not (folder / "x").exists()


def test_a_layer_is_built_with_the_file_that_calls_it(tmp_path: Path) -> None:
    layer = "lair twice() : float32 x[3] -> float32 y[3]\n{\n  all (i) in (3)\n    y[i] = 2 * x[i]\n}\n"
    (tmp_path / "twice.lair").write_text(layer)
    folder = tmp_path / "out"
    assert polyloom(["compile", str(tmp_path / "twice.lair"), "--target", "c", "-o", str(folder)]) == 0
    alone = subprocess.run(["sh", "build.txt"], cwd=folder, capture_output=True, text=True, check=False)
    assert alone.returncode
    assert "name the C file that calls the function" in alone.stderr
    (folder / "my main.c").write_text(CALLS)
    subprocess.run(["sh", "build.txt", "my main.c"], cwd=folder, check=True)
    done = subprocess.run([folder / "a.out"], capture_output=True, text=True, check=True)
    assert done.stdout == "1 2 4 6\n"


CALLS = """\
#include <stdio.h>
#include "polyloom_loops.h"

int main(void) {
  float x[3] = {1, 2, 3}, y[3];
  int done = polyloom_twice(x, y);
  printf("%d %g %g %g\\n", done, y[0], y[1], y[2]);
}
"""


def program(folder: Path, options: Sequence[str]) -> Path:
    command = [shutil.which("gcc") or "cc", *STRICT, "a.c", "polyloom_host.c", *options, "-ldl", "-lm"]
    subprocess.run([*command, "-o", "program"], cwd=folder, check=True)
    return folder / "program"


@pytest.mark.slow
@pytest.mark.ci
def test_a_user_without_a_home_needs_no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """PoCL has no device where it cannot write its cache; the host side names a folder for it."""
    monkeypatch.chdir(tmp_path)
    built = program(made(tmp_path), [])
    home = {"HOME": "/proc/none", "XDG_CACHE_HOME": "", "TMPDIR": str(tmp_path)}
    variables = {name: value for name, value in bare(**home).items() if name != "POCL_CACHE_DIR"}
    for _ in range(2):
        done = subprocess.run([built], env=variables, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (0, PRINTED), done.stderr
    (folder,) = tmp_path.glob("polyloom-pocl-*")
    assert folder.stat().st_mode & 0o77 == 0
    folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere")  # not followed: somebody else may have put it there
    done = subprocess.run([built], env=variables, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, PRINTED) and "no device" in done.stderr


@pytest.mark.parametrize("way", ["no library", "linked", "in the path", "no such vendors"])
def test_without_a_driver_the_loops_run_and_there_is_one_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """The library of pip crashed where it found no driver."""
    monkeypatch.chdir(tmp_path)
    folder = made(tmp_path)
    shutil.copy(opencl_library(), folder / "libOpenCL.so.1")
    (folder / opencl_library().name).symlink_to("libOpenCL.so.1")
    linked = ["-DPOLYLOOM_LINK", str(opencl_library())]
    built = program(folder, {"linked": linked, "no such vendors": []}.get(way, [NOTHING]))
    variables = {"LD_LIBRARY_PATH": str(folder)} if way in ("linked", "in the path") else {}
    if way == "no such vendors":
        variables = {"OCL_ICD_VENDORS": "/nowhere"}
    done = subprocess.run([built], env=bare(**variables), capture_output=True, text=True, check=False)
    expected = (
        "the OpenCL library cannot be loaded: libOpenCL.so.1"
        if way == "no library"
        else "no device: no OpenCL"
    )
    assert (done.returncode, done.stdout) == (0, PRINTED)
    assert done.stderr.startswith(f"polyloom: {expected}") and done.stderr.count("\n") == 1


def test_a_source_with_a_name_of_the_host_side_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "polyloom_host.c"
    source.write_text(SOURCE)
    assert polyloom(["compile", str(source), "--target", "opencl", "-o", str(tmp_path / "out")]) == 3
    assert "error[drop-in-name]" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
