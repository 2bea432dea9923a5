"""The examples of docs/python.md give what stands there; also for a user without a home or a cache."""

from __future__ import annotations

import doctest
import os
import subprocess
import sys
from pathlib import Path

import pytest

from samples import one_in

ROOT = Path(__file__).parents[1]

OTHER_USER = """
import ctypes, os
if os.getuid() == 0:  # user 65534, who may read everything, as Python may be root's, and write little
    libc = ctypes.CDLL(None)
    libc.prctl(8, 1, 0, 0, 0)
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
    READ = 1 << 2
    libc.capset((ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)(READ, READ, READ, 0, 0, 0))
    libc.prctl(47, 2, 2, 0, 0)
    assert os.getuid() == 65534 and not os.access("/", os.W_OK)
import numpy as np, polyloom
f = polyloom.load("void f(int n, float x[n]) { for (int i = 0; i < n; i++) x[i] *= 2; }")
x = np.ones(3, np.float32)
f(3, x)
layer = "lair g(N): float16 x[N] -> float16 y[N] { all (i) in (N) y[i] = x[i] + x[i] }"
cycles = polyloom.load(layer, N=4).simulate(size=(2, 1), check=True).cycles
print(x.tolist(), cycles > 0)
"""

HOMES = [
    {"HOME": "/"},
    {"XDG_CACHE_HOME": "READ-ONLY"},
    {"HOME": "/nonexistent"},
]


@pytest.mark.slow
@pytest.mark.ci
def test_the_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "python.md").read_text().replace("\n```", "\n\n```")
    test = doctest.DocTestParser().get_doctest(text, {}, "python.md", "docs/python.md", 0)
    assert len(test.examples) > 12
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    said: list[str] = []
    failed = doctest.DocTestRunner(optionflags=flags).run(test, out=said.append).failed
    assert failed == 0, "".join(said)
    assert (tmp_path / "conv1d.html").exists()


@pytest.mark.parametrize("variables", one_in(4, HOMES))
@pytest.mark.slow
@pytest.mark.ci
def test_any_user_without_a_cache(tmp_path: Path, variables: dict[str, str]) -> None:
    """As user 65534 where the tests run as root; the cache's folder belongs to somebody else."""
    folder = tmp_path / "cache"
    folder.mkdir()
    folder.chmod(0o555)
    given = {name: value.replace("READ-ONLY", str(folder)) for name, value in variables.items()}
    left_out = ("HOME", "XDG_CACHE_HOME", "POCL_CACHE_DIR", "TMPDIR")
    environment = {n: v for n, v in os.environ.items() if n not in left_out} | given
    command = [sys.executable, "-P", "-c", OTHER_USER]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd="/")
    assert (done.returncode, done.stdout) == (0, "[2.0, 2.0, 2.0] True\n"), done.stderr
    assert "Traceback" not in done.stderr
