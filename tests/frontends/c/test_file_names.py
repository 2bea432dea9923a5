"""A file is one source, whatever its path looks like."""

from __future__ import annotations

from pathlib import Path

import pytest

from polyloom.cli.main import run

TEXT = "void f(double y[8]) {\n#pragma scop\n  for (int i = 0; i < 8; i++) y[i] *= 2;\n#pragma endscop\n}\n"


def test_a_path_that_goes_up_is_compared_with_its_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "f.c").write_text("#include <math.h>\n" + TEXT)
    (tmp_path / "inside").mkdir()
    monkeypatch.chdir(tmp_path / "inside")
    run(["run", "../f.c", "--check", "--device", "native"])
    said = capsys.readouterr()
    assert "check" in said.out
    assert "was not used" not in said.out + said.err


def test_loops_of_such_a_path_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The preprocessor calls the file by its absolute path behind an ``#include``."""
    text = "#include <stdio.h>\nvoid f(int n, double *y) {\n  for (int i = 0; i < n; i++) y[i] *= 2;\n"
    (tmp_path / "f.c").write_text(text + '  puts("done");\n}\n')
    (tmp_path / "inside").mkdir()
    monkeypatch.chdir(tmp_path / "inside")
    run(["compile", "../f.c", "--target", "c", "-o", "out"])
    assert "polyloom_f(" in (tmp_path / "inside" / "out" / "f.c").read_text()
