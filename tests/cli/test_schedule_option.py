"""``explain --schedule-tree`` and ``--schedule`` on the command line."""

from __future__ import annotations

from pathlib import Path

from command_line import CONV, Captured, failure

from polyloom.cli.main import run

PROGRAM = """void kernel(int n, unsigned A[n], unsigned B[n]) {
#pragma scop
  for (int i = 0; i < n; i++) A[i] *= 3;
  for (int i = 0; i < n - 1; i++) B[i] = A[i] + A[i + 1];
#pragma endscop
}
"""


def test_what_explain_prints_is_what_schedule_takes(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "f.c").write_text(PROGRAM)
    assert run(["explain", str(tmp_path / "f.c"), "--schedule-tree"]) == 0
    tree = capsys.readouterr().out
    assert tree.startswith("domain: ")
    (tmp_path / "f.tree").write_text(tree)
    assert run(["explain", str(tmp_path / "f.c"), "--schedule", str(tmp_path / "f.tree")]) == 0
    given = capsys.readouterr().out
    assert run(["explain", str(tmp_path / "f.c")]) == 0
    assert capsys.readouterr().out == given


def test_a_schedule_against_a_dependence_is_refused(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "f.c").write_text(PROGRAM)
    domain = 'domain: "[n] -> { S1[i] : 0 <= i < n; S2[i] : 0 <= i < n - 1 }"\n'
    band = 'child:\n  schedule: "[{ S1[i] -> [2i]; S2[i] -> [2i + 1] }]"\n'
    (tmp_path / "f.tree").write_text(domain + band)
    arguments = ["explain", str(tmp_path / "f.c"), "--schedule", str(tmp_path / "f.tree")]
    message = failure(capsys, arguments, 1)
    assert "error[schedule-order]: the schedule runs S2[0] not after S1[1]" in message
    assert "S2[0] reads the `A` that S1[1] writes (n = 2)" in message


def test_a_schedule_is_of_c(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "f.tree").write_text("")
    assert "it is of C" in failure(capsys, ["run", *CONV, "--schedule", str(tmp_path / "f.tree")], 2)
