"""Programs on the threads of an OpenMP runtime that others in the process use."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

RUN = """
import os, subprocess, numpy as np, polyloom
from polyloom.mdh.native.team import borrow_threads, team_library

def threads(): return len(os.listdir("/proc/self/task"))

f = polyloom.compile('''void f(int n, int m, float a[n][m], float s[n], float y[n][m]) {
  for (int i = 0; i < n; i++) { s[i] = 0; for (int j = 0; j < m; j++) s[i] += a[i][j]; }
  for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) y[i][j] = a[i][j] - s[n - 1 - i];
}''', device="native", threads=3)
a = np.arange(1500 * 1500, dtype=np.float32).reshape(1500, 1500) % 7

def right():
    s, y = np.empty(1500, np.float32), np.empty((1500, 1500), np.float32)
    f(1500, 1500, a, s, y)
    return bool((y == a - a.sum(1)[::-1, None]).all())

compiler = f.executable.device.compiler
found = subprocess.check_output([*compiler.command, "-print-file-name=libgomp.so.1"], text=True).strip()
assert not borrow_threads(team_library(compiler), found + ".none")
assert borrow_threads(team_library(compiler), found)
before = threads()
print(right(), threads() - before, right())
pid = os.fork()
if pid == 0:
    os._exit(0 if right() and right() and threads() == 3 else 1)
print("child", os.waitpid(pid, 0)[1])
"""


@pytest.mark.parametrize(
    ("limit", "started"),
    [("1", 0), pytest.param("", 2, marks=pytest.mark.slow), pytest.param("2", 1, marks=pytest.mark.slow)],
)
def test_threads_are_those_of_openmp(limit: str, started: int) -> None:
    """Also where OpenMP gives fewer than were asked for; a forked child has its own."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"} | ({"OMP_THREAD_LIMIT": limit} if limit else {})
    command = [sys.executable, "-c", RUN]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.split("\n")[:2] == [f"True {started} True", "child 0"], done.stderr
