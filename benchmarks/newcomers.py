"""Four newcomers, from a wheel to results of their own: ``python benchmarks/newcomers.py WHEEL``.

A reader of the papers, owners of C loops, of a model and of CSL programs: each gets a folder with a file of
their own, an empty HOME and an environment with nothing in it, installs the wheel, and runs what the README
says. ``--python``: the interpreter; ``--user``: whose rights they have. Needs the standard library only, so
that it runs on a fresh machine. A command that fails, or a newcomer who waits five minutes, is a fault.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MOST_SECONDS = 300

LAYER = """\
// A filter of five taps over each of four rows, weights of its own a row
lair filters() : float16 x[4][40], float16 w[4][5] -> float16 y[4][36]
{
  all (r, i, t) in (4, 36, 5)
    y[r][i] += x[r][i + t] * w[r][t]
}
"""
MAP = """\
size: { PE[1, 4] }
compute_map: { filters[r, i, t] -> PE[0, r] }
iport_map: { x[r, i] -> [PE[-1, r] -> index[r, i]] }
oport_map: { y[r, i] -> [PE[1, r] -> index[r, i]] }
"""
LOOPS = """\
/* Distances of points, and the nearest other one of each. */
#include <stdio.h>

int main(void) {
  enum { n = 700, d = 8 };
  static double p[n][d], q[n][n], least[n];
  for (int i = 0; i < n; i++)
    for (int k = 0; k < d; k++)
      p[i][k] = (i * 37 + k * 11) % 101 / 7.0;
#pragma scop
  for (int i = 0; i < n; i++) {
    least[i] = 1e30;
    for (int j = 0; j < n; j++) {
      q[i][j] = i == j ? 1e30 : 0;
      for (int k = 0; k < d; k++)
        q[i][j] += (p[i][k] - p[j][k]) * (p[i][k] - p[j][k]);
      least[i] = q[i][j] < least[i] ? q[i][j] : least[i];
    }
  }
#pragma endscop
  double sum = 0;
  for (int i = 0; i < n; i++) sum += least[i];
  printf("sum %g\\n", sum);
  return 0;
}
"""
IN_PYTHON = """\
import numpy as np
import polyloom

f = polyloom.load("examples/models/cnn.onnx")
print(f)
rng = np.random.default_rng(0)
result = f(*(rng.normal(size=v.shape).astype(v.dtype) for v in f.inputs.values()))
f.save("cnn.loom")
again = polyloom.load("cnn.loom")
print(again.times())

@polyloom.jit
def scale(a, b):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            b[i, j] = 2.0 * a[i, j] + i

a, b = rng.normal(size=(30, 40)), np.zeros((30, 40))
scale(a, b)
assert np.allclose(b, 2 * a + np.arange(30)[:, None])
"""
CSL = {
    "layout.csl": """\
param width: u16;
param n: u16;
const memcpy = @import_module("<memcpy/get_params>", .{ .width = width, .height = 1 });
layout {
  @set_rectangle(width, 1);
  for (@range(u16, width)) |x| {
    @set_tile_code(x, 0, "largest.csl", .{ .memcpy_params = memcpy.get_params(x), .n = n });
  }
  @export_name("x", [*]f32, true);
  @export_name("largest", fn()void);
}
""",
    "largest.csl": """\
param memcpy_params;
param n: u16;
const sys_mod = @import_module("<memcpy/memcpy>", memcpy_params);
var x = @zeros([n]f32);
const x_ptr: [*]f32 = &x;
fn largest() void {
  var m: f32 = x[0];
  for (@range(u16, n)) |i| {
    if (x[i] > m) { m = x[i]; }
  }
  x[0] = m;
  sys_mod.unblock_cmd_stream();
}
comptime {
  @export_symbol(x_ptr, "x");
  @export_symbol(largest);
}
""",
    "host.py": """\
import argparse
import numpy as np
from cerebras.sdk.runtime.sdkruntimepybind import MemcpyDataType, MemcpyOrder, SdkRuntime
parser = argparse.ArgumentParser()
parser.add_argument("--name")
runner = SdkRuntime(parser.parse_args().name)
how = {"streaming": False, "order": MemcpyOrder.ROW_MAJOR, "data_type": MemcpyDataType.MEMCPY_32BIT}
x, y = np.random.default_rng(0).normal(size=(4, 20)).astype(np.float32), np.zeros(4, np.float32)
runner.load()
runner.run()
runner.memcpy_h2d(runner.get_id("x"), x.ravel(), 0, 0, 4, 1, 20, nonblock=True, **how)
runner.launch("largest", nonblock=True)
runner.memcpy_d2h(y, runner.get_id("x"), 0, 0, 4, 1, 1, nonblock=False, **how)
runner.stop()
assert np.array_equal(y, x.max(1))
print("as NumPy has it", y)
""",
}

FILES: dict[str, dict[str, str]] = {
    "reader": {"filters.lair": LAYER, "filters.map": MAP},
    "loops": {"nearest.c": LOOPS},
    "model": {"mine.py": IN_PYTHON},
    "csl": CSL,
}
EXAMPLES = "polyloom examples -o examples"
COMMANDS: dict[str, list[str]] = {
    "reader": [
        EXAMPLES,
        "polyloom explain examples/conv1d.lair --map examples/conv1d.map",
        "polyloom compile examples/conv1d.lair --map examples/conv1d.map --target wafer -o out",
        "polyloom simulate filters.lair --map filters.map --check --report filters.html",
        "polyloom simulate filters.lair --size 2x2 --check",
        "polyloom docs equations",
    ],
    "loops": [
        "polyloom explain nearest.c",
        "polyloom run nearest.c --check",
        "polyloom run nearest.c --report run.html --beside 'cc -O3'",
        "polyloom compile nearest.c --target c -o out && cd out && sh build.txt && ./a.out",
        "cc -O2 -o plain nearest.c -lm && ./plain",
        "polyloom tune nearest.c --budget 20",
    ],
    "model": [
        EXAMPLES,
        "polyloom show examples/models/cnn.onnx",
        "polyloom run examples/models/cnn.onnx --check",
        "python mine.py",
        "polyloom simulate examples/models/cnn.onnx --one-wafer --check",
    ],
    "csl": [
        "polyloom check layout.csl --params=width:4,n:20",
        "polyloom cslc layout.csl --fabric-dims=11,3 --fabric-offsets=4,1 --params=width:4,n:20 -o out"
        " --memcpy --channels=1",
        "polyloom cs-python host.py --name out",
    ],
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--user", help="a user's name; only root may become another one")
    parser.add_argument("--only", action="append", choices=COMMANDS, help="one of the four")
    parser.add_argument("--show", action="store_true", help="print what commands print")
    options = parser.parse_args()
    late = [
        name
        for name in options.only or COMMANDS
        if newcomer(name, options.wheel.resolve(), options.python, options.user, show=options.show)
        > MOST_SECONDS
    ]
    return 1 if late else 0


def newcomer(name: str, wheel: Path, python: str, user: str | None, *, show: bool) -> float:
    """Return the seconds that a newcomer takes, whose folder is made and removed; raises where they fail."""
    with tempfile.TemporaryDirectory(prefix=f"newcomer-{name}-") as made:
        folder, home = Path(made), Path(made, "home")
        home.mkdir()
        for file, text in FILES[name].items():
            (folder / file).write_text(text, encoding="utf-8")
        if user:
            subprocess.run(["chown", "-R", user, made], check=True)
        path = f"{folder}/.venv/bin:/usr/local/bin:/usr/bin:/bin"
        kept = {k: v for k, v in os.environ.items() if k.startswith(("PIP_", "SSL_"))}
        environment = {"HOME": str(home), "PATH": path, **kept}
        start, cpu = time.perf_counter(), _cpu()
        install = [f"{python} -m venv .venv", f".venv/bin/pip install --quiet {wheel}"]
        for command in [*install, *COMMANDS[name]]:
            _run(command, folder, environment, user, show=show)
        seconds, cpu = time.perf_counter() - start, _cpu() - cpu
    print(f"{name:8} {seconds:6.1f} s from pip install to the last result, {cpu:.1f} of a core", flush=True)
    return seconds


def _cpu() -> float:
    """Return the seconds of a core that commands have taken, which other programs hardly change."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def _run(command: str, folder: Path, environment: dict[str, str], user: str | None, *, show: bool) -> None:
    start, cpu = time.perf_counter(), _cpu()
    found = subprocess.run(
        ["sh", "-c", command],
        cwd=folder,
        env=environment,
        user=user,
        group=user and folder.stat().st_gid,
        extra_groups=[] if user else None,
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    print(f"  {time.perf_counter() - start:6.1f} s, {_cpu() - cpu:5.1f} of a core  {command}", flush=True)
    if show or found.returncode:
        print(found.stdout)
    if found.returncode:
        raise SystemExit(f"status {found.returncode}: {command}")


if __name__ == "__main__":
    sys.exit(main())
