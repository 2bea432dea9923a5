"""What gcc is told in emitted files has the effect that it is told for."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from polyloom.c_compilers import c_compiler
from polyloom.mdh.native.build import FLAGS
from polyloom.mdh.print.c_source import gcc_pragma

GUARDED = """
void steps(long begin, long n, float (*restrict a)[100], float (*restrict b)[100])
{
    for (long k = 0; k < n; k++) {
        for (long i = 0; i < 100; i++)
            if (k >= begin)
                b[k][i] = a[k][i];
        for (long i = 0; i < k; i++)
            a[i][k] = __builtin_sqrtf(a[i][k]);
    }
}
"""


@pytest.mark.parametrize("strict", [False, True])
def test_a_guard_on_the_steps_does_not_double_them(strict: bool, tmp_path: Path) -> None:
    """A loop over steps that is split in two at its guard has all that each step does twice."""
    compiler = c_compiler("gcc")
    if compiler is None:
        pytest.skip("there is no gcc")
    (tmp_path / "steps.c").write_text(gcc_pragma(strict=strict) + GUARDED)
    words = [*compiler.command, *FLAGS, "-fno-tree-vectorize", "-S", "steps.c", "-o", "steps.s"]
    subprocess.run(words, cwd=tmp_path, check=True)
    assert (tmp_path / "steps.s").read_text().count("sqrt") == 1
