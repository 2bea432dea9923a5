"""Dependences with many quotients of their own, on which isl's ``coalesce`` ended the process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from samples import LATER

PROGRAM = """\
void kernel(int n, int m, short a[40], unsigned char b[40], double c[40], float A[40][40],
            unsigned short B[40][40])
{
#pragma scop
  for (int i1 = 2; i1 <= m; ++i1) {
    if ((a[i1 / 2] < 2)) {
      if (!(b[i1] <= -2)) {
        b[i1 * 2 - i1 / 2] = (long)(((B[(i1 + i1) % 4][i1 / 2] <= 3) ? b[2 * i1 + 3]
            : A[2 * i1 + 0][i1 + 2]));
        B[i1 + 1][2 * i1 + 2] = ((B[m + 1][i1] == 0) ? B[i1][i1] : -2);
      }
      else {
        a[i1 + 1] = (long)(A[i1][i1]);
        if ((int)(long)B[m + 1][(i1 + 2 * i1) / 3] < c[i1]) c[i1] = (int)(long)B[m + 1][(i1 + 2 * i1) / 3];
      }
      if ((B[9 - i1][i1] >= 3)) {
        B[11 - i1][i1 + 2] += 1;
        b[i1 + i1] = b[i1 + i1] >
            (long)((i1 % 3 == 1 ? A[i1][i1] : c[i1])) ? b[i1 + i1]
            : (long)((i1 % 3 == 1 ? A[i1][i1] : c[i1]));
      }
      else {
        if ((A[i1 + i1][i1 * 2 - i1 / 2] != 1)) {
          b[i1 - i1 + 10] = b[i1 + 2];
          b[2 * i1 + 0] = 3;
        }
        float t2 = b[b[m + 1] & 7];
      }
    }
  }
  if ((a[n] != -2)) {
    if (n > 3) {
      for (int i3 = 0; i3 < n; i3 += 2) {
        B[i3 + n][9 - i3] = (long)(B[i3 + n][9 - i3] + A[i3][i3 / 2]);
      }
      int t4 = (a[n] - B[2][m + 1]);
    }
    else {
      c[4] = (c[m + 1] - (short)(long)B[m + 1][m + 1]);
      for (int i5 = m - 1; i5 < 5; i5++) {
        B[i5 * 2 - i5 / 2][b[i5] & 7] = (long)(B[i5 * 2 - i5 / 2][b[i5] & 7]
            - (double)(long)a[(i5 + 2 * i5) / 3]);
        float t6 = ((a[i5] >= c[i5 / 2]) ? c[2 * i5 + 1] : c[i5]);
      }
    }
  }
  b[n] = (long)(((c[2] - A[n][m + 1]) - (a[2] - B[4][n])));
#pragma endscop
}
"""


@pytest.mark.parametrize("program", [pytest.param(PROGRAM, marks=LATER, id="two quotients")])
def test_a_process_goes_on(program: str, tmp_path: Path) -> None:
    (tmp_path / "kernel.c").write_text(program)
    command = [sys.executable, "-m", "polyloom", "explain", str(tmp_path / "kernel.c")]
    assert subprocess.run(command, capture_output=True, timeout=100).returncode == 0
