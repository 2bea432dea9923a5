"""Names of ours in the functions' file are none of the program's."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest

from polyloom import drop_in

SWEEP = """
void sweep(int n, int w[n], int A[n][n])
{
#pragma scop
  for (int i = 1; i < n; i++)
    for (int j = 1; j < n; j++)
      A[i][j] = (A[i - 1][j] > A[i][j - 1] ? A[i - 1][j] : A[i][j - 1]) + w[j];
  for (int i = 1; i < n; i++) w[i] = (w[i - 1] * w[i] + i) % 7;
#pragma endscop
}
"""
SIZE = 9


def left(folder: Path, *files: str) -> list[list[int]]:
    """Return the arrays after a call of the program that these files make."""
    command = ["gcc", "-O1", "-w", "-fopenmp", "-shared", "-fPIC", *files, "-o", "program.so"]
    subprocess.run(command, cwd=folder, check=True)
    weights, values = np.arange(SIZE, dtype=np.int32), np.arange(SIZE * SIZE, dtype=np.int32) % 5
    pointers = [a.ctypes.data_as(ctypes.c_void_p) for a in (weights, values)]
    ctypes.CDLL(str(folder / "program.so")).sweep(SIZE, *pointers)
    return [weights.tolist(), values.tolist()]


@pytest.mark.parametrize("name", ["w", "c1", "c3", "point", "team", "first"])
def test_an_array_has_a_name_that_iterators_have(name: str, tmp_path: Path) -> None:
    """Iterators of wavefronts would be ``w``, those of loops as they stand ``c1``, ``c3``."""
    (tmp_path / "sweep.c").write_text(SWEEP.replace("w[", f"{name}["))
    drop_in(tmp_path / "sweep.c", target="c").write(tmp_path / "out")
    assert left(tmp_path / "out", "sweep.c", "polyloom_loops.c") == left(tmp_path, "sweep.c")
