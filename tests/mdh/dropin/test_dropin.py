"""Drop-ins of whole programs: compiled by the command line, built with gcc, equal to the sequential C."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from drop_in_programs import build, run, write

from polyloom.cli.main import run as polyloom
from samples import LATER

EXAMPLES = Path(__file__).parents[3] / "examples" / "c"
PROGRAMS = sorted(path.name for path in EXAMPLES.glob("*.c") if "int main(" in path.read_text())


WARNINGS = re.compile(r"\d+ warnings? generated\.")
"""PoCL says so on stderr when it builds a kernel for the first time; the kernels are not the user's."""


def compiled(source: Path, folder: Path, *options: str) -> Path:
    assert polyloom(["compile", str(source), "--target", "opencl", "-o", str(folder), *options]) == 0
    return folder


def expected(source: Path, folder: Path) -> str:
    folder.mkdir()
    shutil.copy(source, folder)
    return run(build(folder, [source.name], opencl=False)).stdout


def assert_equal(source: Path, tmp_path: Path, *options: str) -> Path:
    folder = compiled(source, tmp_path / "out", *options)
    done = run(build(folder, [source.name, "polyloom_host.c"]))
    said = [line for line in done.stderr.splitlines() if not WARNINGS.fullmatch(line)]
    assert (done.returncode, said) == (0, [])
    assert done.stdout == expected(source, tmp_path / "sequential")
    return folder


KINDS = ("gemm.c", "histogram.c", "calls.c", "boxes.c")
"""A product, elements that data choose, repeated calls, structures; drivers compile others for seconds."""


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in KINDS else LATER) for n in PROGRAMS])
def test_example(name: str, tmp_path: Path) -> None:
    """Every example prints what it prints without Polyloom; all its lines stay, in their order."""
    source = EXAMPLES / name
    folder = assert_equal(source, tmp_path)
    after = iter((folder / name).read_text().splitlines())
    assert all(line in after for line in source.read_text().splitlines())


@pytest.mark.slow
@pytest.mark.ci
def test_sizes_of_their_own_beside_the_general_ones(tmp_path: Path) -> None:
    folder = assert_equal(EXAMPLES / "gemm.c", tmp_path, "--param", "n=97", "--param", "k=108")
    host = (folder / "polyloom_host.c").read_text()
    assert "if (n == 97 && k == 108) {" in host and "} else {" in host
    main = (folder / "gemm.c").read_text().replace("n = 97", "n = 31")
    (folder / "gemm.c").write_text(main)
    other = write(
        tmp_path / "other", {"gemm.c": (EXAMPLES / "gemm.c").read_text().replace("n = 97", "n = 31")}
    )
    sequential = run(build(other, ["gemm.c"], opencl=False)).stdout
    assert run(build(folder, ["gemm.c", "polyloom_host.c"])).stdout == sequential != ""


CORPUS = Path(__file__).parents[1] / "drop_ins"
QUICK = ("boxes.c", "calls.c", "kmeans.c", "parts_of_arrays.c", "sizes.c", "staying.c", "types.c")
"""Those that show what no example does: structures, repeated calls, data in subscripts, types."""


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in KINDS else LATER) for n in QUICK])
def test_program(name: str, tmp_path: Path) -> None:
    assert_equal(CORPUS / name, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({path.name for path in CORPUS.glob("*.c")} - {*QUICK}))
def test_more_programs(name: str, tmp_path: Path) -> None:
    assert_equal(CORPUS / name, tmp_path)


LAYER = """\
lair fc(M, N): int32 W[M][N], int32 x[N] -> int32 y[M]
{
  all (i, j) in (M, N)
    y[i] += W[i][j] * x[j]
}
"""
CALLER = """\
#include <stdio.h>
#include "polyloom_host.h"
int main(void) {
  static int W[13][7], x[7], y[13];
  for (int i = 0; i < 13; i++) for (int j = 0; j < 7; j++) W[i][j] = i - 3 * j;
  for (int j = 0; j < 7; j++) x[j] = j * j;
  polyloom_fc(W, x, y);
  for (int i = 0; i < 13; i++) printf("%d ", y[i]);
  return 0;
}
"""


@pytest.mark.slow
@pytest.mark.ci
def test_a_layer_is_a_c_function(tmp_path: Path) -> None:
    layer = tmp_path / "fc.lair"
    layer.write_text(LAYER)
    folder = compiled(layer, tmp_path / "out", "-D", "M=13", "-D", "N=7")
    (folder / "caller.c").write_text(CALLER)
    done = run(build(folder, ["caller.c", "polyloom_host.c"]))
    W = np.arange(13)[:, None] - 3 * np.arange(7)
    assert [int(word) for word in done.stdout.split()] == (W @ np.arange(7) ** 2).tolist()


def test_the_manifest_and_how_to_build(tmp_path: Path) -> None:
    source = tmp_path / "with space.c"
    source.write_text("void f(float *x) { for (int i = 0; i < N; i++) x[i] = 0; }\n")
    folder = compiled(source, tmp_path / "out", "-D", "N=5", "-I", str(tmp_path))
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["target"] == "opencl" and manifest["functions"] == ["int polyloom_f(void *x)"]
    assert sorted(manifest["files"]) == sorted(path.name for path in folder.iterdir())
    command = f"cc -O2 -DN=5 -I{tmp_path.resolve()} 'with space.c' polyloom_host.c -ldl -lm\n"
    assert (folder / "build.txt").read_text().startswith(command)


@pytest.mark.parametrize("name", ["-Dx.c", "a b.c", 'a"b.c'])
def test_a_file_whose_name_means_something_to_a_shell_or_a_compiler(name: str, tmp_path: Path) -> None:
    source = tmp_path / name
    source.write_text("void f(float x[5]) { for (int i = 0; i < 5; i++) x[i] = 0; }\n")
    folder = compiled(source, tmp_path / "out")
    command = [*shlex.split((folder / "build.txt").read_text().splitlines()[0]), "-c"]
    assert subprocess.run(command, cwd=folder, capture_output=True).returncode == 0
    assert (folder / f"{name[:-2]}.o").exists()


def test_nothing_is_left_where_a_file_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "bad.c"
    source.write_text("void f(int n, float *x) { for (int i = 1; i < n; i *= 2) x[i] = 0; }\n")
    status = polyloom(["compile", str(source), "--target", "opencl", "-o", str(tmp_path / "out")])
    assert status in (1, 3) and "error[c-" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.c"]


def test_a_folder_in_which_one_has_built_is_filled_anew(tmp_path: Path) -> None:
    source, folder = tmp_path / "f.c", tmp_path / "out"
    source.write_text("void f(float *x) { for (int i = 0; i < 5; i++) x[i] = 0; }\n")
    before = {path.name for path in compiled(source, folder).iterdir()}
    (folder / "a.out").write_text("built")
    source.write_text("void g(float *x) { for (int i = 0; i < 5; i++) x[i] = 1; }\n")
    after = {path.name for path in compiled(source, folder).iterdir()}
    assert after - before == {"a.out", "g_S1.cl"} and before - after == {"f_S1.cl"}
    assert (folder / "a.out").read_text() == "built" and "polyloom_g" in (folder / "f.c").read_text()


def test_the_users_own_file_is_never_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "void f(float *x) { for (int i = 0; i < 5; i++) x[i] = 0; }\n"
    (tmp_path / "f.c").write_text(text)
    assert polyloom(["compile", str(tmp_path / "f.c"), "--target", "opencl", "-o", str(tmp_path)]) == 1
    err = capsys.readouterr().err
    assert "error[folder-occupied]" in err and "`f.c` in it is not written by Polyloom" in err
    assert [path.name for path in tmp_path.iterdir()] == ["f.c"] and (tmp_path / "f.c").read_text() == text


def test_from_python(tmp_path: Path) -> None:
    import polyloom as package

    made = package.drop_in(EXAMPLES / "heat.c", reductions="ignore")
    assert "polyloom_main(" in made.files["heat.c"]
    assert set(made.write(tmp_path / "out")) == {path.name for path in (tmp_path / "out").iterdir()}
    assert "manifest.json" not in made.files and made.document["target"] == "opencl"


def test_a_value_of_no_parameter(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["compile", str(EXAMPLES / "gemm.c"), "--target", "opencl", "-o", str(tmp_path / "out")]
    assert polyloom([*arguments, "--param", "q=3"]) == 1
    assert capsys.readouterr().err == (
        "error[parameter-unknown]: there is no parameter `q`\nhelp: parameters are: n, m, k\n"
    )
    assert not (tmp_path / "out").exists()
