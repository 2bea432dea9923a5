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
