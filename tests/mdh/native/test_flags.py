"""What compilers are told on their command lines, and what those do with it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from polyloom.c_compilers import CCompiler, c_compiler
from polyloom.mdh.native.build import LARGE, LIMITED, builder_of

REST = """
void rest(long begin, long end, double *restrict a, const double *restrict b)
{
    for (long k = 0; k < 7; k++)
        if (b[k] > a[k])
            a[k] = __builtin_sqrt(a[k]) + b[k] * b[k + begin] / a[k + end];
}
"""
"""Seven steps, each longer than the room for loops that are written out as a whole is for seven of them."""

REFUSING = """#!/bin/sh
for word; do case $word in --param=*) echo "unknown: $word" >&2; exit 1;; esac; done
exec "{gcc}" "$@"
"""


@pytest.fixture(name="gcc")
def _gcc() -> CCompiler:
    compiler = c_compiler("gcc")
    if compiler is None:
        pytest.skip("there is no gcc")
    return compiler


def roots(compiler: CCompiler, text: str, folder: Path) -> int:
    """Return how often the assembly of the steps has a root, built with the flags for a file."""
    (folder / "rest.c").write_text(text)
    flags = builder_of(compiler).flags_for(text)
    words = [*compiler.command, *flags, "-O3", "-fno-tree-vectorize", "-S", "rest.c", "-o", "rest.s"]
    subprocess.run(words, cwd=folder, check=True)
    return (folder / "rest.s").read_text().count("sqrtsd")


def test_a_short_loop_with_a_long_body_stays_a_loop_in_a_large_file(gcc: CCompiler, tmp_path: Path) -> None:
    assert roots(gcc, REST, tmp_path) == 7
    assert roots(gcc, REST + LARGE * " ", tmp_path) == 1


def test_a_compiler_that_knows_no_such_limit_goes_without(gcc: CCompiler, tmp_path: Path) -> None:
    command = tmp_path / "cc"
    command.write_text(REFUSING.format(gcc=gcc.command[0]))
    command.chmod(0o755)
    assert builder_of(gcc).limits == LIMITED
    assert builder_of(CCompiler((str(command),), "cc")).limits == ()
