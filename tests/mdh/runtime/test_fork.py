"""OpenCL in a process that was forked: refused at once, since the driver's threads are not in it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

SCRIPT = """
import multiprocessing, os, sys
import numpy as np
import polyloom

LAYER = "lair C() : float32 x[4] -> float32 y[4] {{ all (i) in (4) y[i] = x[i] + 1.0 }}"
x = np.arange(4, dtype=np.float32)
{before}

def child(_=None):
    try:
        {child}
    except polyloom.PolyloomError as fault:
        return fault.diagnostics[0].code

if sys.argv[1] == "pool":
    with multiprocessing.get_context("fork").Pool(1) as pool:
        print(pool.map(child, [0]))
else:
    pid = os.fork()
    if pid == 0:
        print([child()])
        sys.exit(0)
    assert os.waitpid(pid, 0)[1] == 0
{after}
"""
COMPILED = "f = polyloom.compile(LAYER, device='cpu')"
CALLED = f"{COMPILED}; f(x)"


PATIENCE = 240.0
"""Seconds: on a machine with ten processes for each core a driver takes twenty to start."""

SLOW = [pytest.mark.slow, pytest.mark.ci]


@pytest.mark.parametrize("way", ["fork", pytest.param("pool", marks=SLOW)])
@pytest.mark.parametrize(
    ("before", "child", "code"),
    [
        (CALLED, "f(x)", "device-forked"),
        ("polyloom.devices()", f"{COMPILED}", "device-forked"),
        pytest.param(COMPILED, "f(x)", "device-forked", marks=SLOW),
        pytest.param(f"{COMPILED}; d = f.to_device(x)", "d.get()", "device-forked", marks=SLOW),
        pytest.param("", f"{CALLED}", None, marks=SLOW),
    ],
    ids=["called", "devices", "compiled", "array", "nothing"],
)
def test_a_forked_child(way: str, before: str, child: str, code: str | None) -> None:
    after = "print(f(x))" if before == CALLED else ""
    script = SCRIPT.format(before=before, child=child, after=after)
    done = subprocess.run(
        [sys.executable, "-c", script, way], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"[{code!r}]")
    assert ("[1. 2. 3. 4.]" in done.stdout) == (before == CALLED)  # the parent goes on


ENDS = """
import gc, os, sys
import numpy as np
import polyloom

LAYER = "lair C() : float32 x[4] -> float32 y[4] { all (i) in (4) y[i] = x[i] + 1.0 }"
f = polyloom.compile(LAYER, device="cpu")
d = f.to_device(np.arange(4, dtype=np.float32))
f(d)
gc.freeze()
pid = os.fork()
if pid:
    os.waitpid(pid, 0)
print("parent" if pid else "child", "ends", file=sys.stderr, flush=True)
"""


def test_a_child_releases_nothing() -> None:
    """It would take locks that threads of the driver hold, which are not in it, and wait for commands."""
    done = subprocess.run(
        [sys.executable, "-c", ENDS],
        env={**os.environ, "POCL_DEBUG": "refcounts"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    child, _, parent = done.stderr.partition("child ends")[2].partition("parent ends")
    if "Release" not in parent:
        pytest.skip("the driver does not tell what it releases")
    assert "Release" not in child and "Free" not in child
