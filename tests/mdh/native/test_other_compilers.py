"""Emitted C by clang and zig, on this processor, and on aarch64 (cross-compiled by zig, run under qemu)."""

from __future__ import annotations

import shutil
import subprocess
import sys
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from test_dropin_loops import FUNCTIONS, PROGRAMS, expected, made
from trees import C_FILES, HOMS, c_programs, inputs, sizes

from polyloom.c_compilers import c_compiler
from polyloom.ir.host import HostProgram
from polyloom.ir.transform.specialise import specialise
from polyloom.ir.verification.host_results import check_run
from polyloom.ir.verification.references import evaluated
from polyloom.mdh.compiled import CompiledProgram
from polyloom.mdh.native.device import NativeDevice, choose, opened
from polyloom.mdh.native.execution import function_of
from polyloom.mdh.print.c_source import c_source
from polyloom.mdh.print.team import TEAM
from polyloom.mdh.tuning.schedule_lookup import TunedEmitter

pytestmark = pytest.mark.slow

CLANG = next(
    (name for k in ("", *range(30, 14, -1)) if shutil.which(name := f"clang-{k}".rstrip("-"))), "clang"
)
ZIG = (sys.executable, "-m", "ziglang", "cc", "-fno-sanitize=all")
QEMU = shutil.which("qemu-aarch64") or shutil.which("qemu-aarch64-static") or ""

needs_zig = pytest.mark.skipif(find_spec("ziglang") is None, reason="`pip install ziglang` is not here")
needs_qemu = pytest.mark.skipif(not QEMU, reason="`qemu-aarch64` is not here (Debian: qemu-user)")
needs_clang = pytest.mark.skipif(c_compiler(CLANG) is None, reason="clang is not here")
COMPILERS = pytest.mark.parametrize(
    "compiler", [pytest.param(CLANG, marks=needs_clang), pytest.param("zig", marks=needs_zig)]
)


@cache
def device(compiler: str) -> NativeDevice:
    found = opened(choose(f"native:{compiler}", threads=2))
    assert isinstance(found, NativeDevice)
    return found


def assert_right(program: HostProgram, compiler: str) -> None:
    parameters = sizes(program, (7, 5, 6))
    given = inputs(program, parameters)
    run = CompiledProgram(program, device(compiler), TunedEmitter())
    found = run.run(**parameters, **{name: array.copy() for name, array in given.items()}).arrays
    wanted = evaluated(program)(parameters, given)
    verdict = check_run(program, parameters, given, wanted, found, made_up=True)  # type: ignore[arg-type]
    assert verdict.passed, verdict.mismatches


@COMPILERS
@pytest.mark.parametrize("name", HOMS)
def test_md_homs(name: str, compiler: str) -> None:
    assert_right(HOMS[name], compiler)


@COMPILERS
@pytest.mark.parametrize("path", C_FILES, ids=lambda path: path.name)
def test_programs_in_c(path: Path, compiler: str) -> None:
    for program in c_programs(path):
        assert_right(program, compiler)


def crossed(folder: Path, *words: str) -> Path:
    """Build a program for aarch64."""
    command = [*ZIG, "-target", "aarch64-linux-musl", "-std=gnu11", "-O2", "-ffp-contract=off", "-w", *words]
    command += ["-o", "crossed", "-lm"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "crossed"


def under_qemu(program: Path) -> str:
    done = subprocess.run([QEMU, program], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@needs_zig
@needs_qemu
@pytest.mark.parametrize("source", PROGRAMS, ids=lambda path: path.name)
def test_drop_ins_on_aarch64(source: Path, tmp_path: Path) -> None:
    wanted = expected(source, tmp_path / "sequential")
    folder = made(source, tmp_path / "out")
    assert under_qemu(crossed(folder, source.name, FUNCTIONS)) == wanted
    if "!defined(__has_feature)" in (folder / source.name).read_text():
        return  # the source asks for the compiler, and keeps its loops under clang, as zig is
    text = (folder / FUNCTIONS).read_text()
    (folder / FUNCTIONS).write_text(text.replace("    function(&member", "    if (0) function(&member"))
    assert under_qemu(crossed(folder, source.name, FUNCTIONS)) != wanted, "it is the original loops that ran"


MAIN = """
#include <stdio.h>
#include "team.h"
struct crew;
struct call {
    struct crew *crew;
    void *function;
    void *const *arrays;
    const int64_t *integers;
    int64_t *times;
};
extern struct crew *new_crew(int64_t threads);
extern void run_together(const struct call *call);
extern void FUNCTION(struct team *team, int64_t me, void *const *arrays, const int64_t *integers);
ARRAYS
int main(void)
{
    void *arrays[] = {NAMES};
    const struct call call = {new_crew(3), FUNCTION, arrays, 0, 0};
    for (int run = 0; run < 20; run++) {
        FILL
        run_together(&call);
    }
    PRINT
    return 0;
}
"""


def harness(program: HostProgram, given: dict[str, np.ndarray], name: str) -> str:  # type: ignore[type-arg]
    """Return a program that runs a function by a team of three, twenty times, and prints what it leaves."""
    arrays, fill, printing = list[str](), list[str](), list[str]()
    for buffer in program.buffers:
        shape = [n.value for n in buffer.shape]  # type: ignore[union-attr]
        count = int(np.prod(shape))
        start = given.get(buffer.name, np.zeros(shape)).ravel()
        text = ", ".join(float(value).hex() for value in start)
        arrays.append(f"static _Alignas(64) double {buffer.name}[{count}];")
        arrays.append(f"static const double {buffer.name}_start[{count}] = {{{text}}};")
        each = f"for (int k = 0; k < {count}; k++) "
        fill.append(f"{each}{buffer.name}[k] = {buffer.name}_start[k];")
        printing.append(f'{each}printf("%a\\n", {buffer.name}[k]);')
    names = ", ".join(b.name for b in program.buffers)
    text = MAIN.replace("FUNCTION", name).replace("NAMES", names)
    for word, lines in (("ARRAYS", arrays), ("FILL", fill), ("PRINT", printing)):
        text = text.replace(word, "\n".join(lines))
    return text


WAVES = """
void waves(double x[1000], double y[1000], double W[60][1000]) {
  for (int t = 0; t < 6; t++) {
    for (int i = 1; i < 999; i++) y[i] = x[i - 1] + 0.5 * x[i + 1];
    for (int i = 1; i < 999; i++) x[i] = 0.25 * y[i];
    for (int k = 0; k < 60; k++)
      for (int i = 0; i < 1000; i++) W[k][i] += x[i] * k;
  }
}
"""


@needs_zig
@needs_qemu
def test_a_team_on_aarch64(tmp_path: Path) -> None:
    (tmp_path / "waves.c").write_text(WAVES)
    (program,) = c_programs(tmp_path / "waves.c")
    model = device("zig").model
    function = function_of(specialise(program, {}), TunedEmitter().schedule, model)
    rng = np.random.default_rng(1)
    given = {b.name: rng.integers(-8, 8, inputs(program, {})[b.name].shape) / 4.0 for b in program.buffers}
    (tmp_path / "team.h").write_text(f"#include <stdint.h>\n\n{TEAM}")
    (tmp_path / "emitted.c").write_text(text := c_source(function))
    assert "points, me + 1, team)" in text and "team->wait" in text
    (tmp_path / "main.c").write_text(harness(program, given, function.name))
    shutil.copy(str(files("polyloom.mdh.native") / "team.c"), tmp_path)
    printed_ = under_qemu(crossed(tmp_path, "emitted.c", "main.c", "team.c", "-pthread"))
    left = evaluated(program)({}, given).arrays
    wanted = np.concatenate([np.asarray(left.get(b.name, given[b.name])).ravel() for b in program.buffers])
    np.testing.assert_array_equal([float.fromhex(line) for line in printed_.split()], wanted)
