"""``--json``: documents with a version, errors as documents, and what ``--help`` shows."""

from __future__ import annotations

import json
import re
import shlex
from itertools import takewhile
from pathlib import Path

import pytest
from command_line import CONV, MAPPED, Captured, document

from polyloom.cli.command import EXAMPLES, VERBS
from polyloom.cli.main import run

GEMM = """void gemm(int n, float a[n][n], float b[n][n], float c[n][n]) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      for (int k = 0; k < n; k++)
        c[i][j] += a[i][k] * b[k][j];
}
"""


def test_errors_are_documents(tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "bad.c"
    path.write_text("void f(int n, float a[n]) { for (int i = 0; i < n; i++) a[i] = b[i]; }\n")
    found = document(capsys, ["run", str(path), "--param", "n=3"], 1)
    assert list(found) == ["errors"]
    (only,) = found["errors"]
    assert only["severity"] == "error" and only["code"].startswith("c-") and only["message"]
    assert only["place"] == f"{path}:1:64"


WRONG = {
    **{verb: ["nowhere.c"] for verb in ("show", "explain", "simulate", "run", "tune", "bench", "trace")},
    "compile": ["nowhere.c", "--target", "c", "-o", "out"],
    "report": ["nowhere.html", "nowhere.html", "-o", "both.html"],
    "check": ["nowhere.csl"],
    "cslc": ["nowhere.csl"],
    "cs-python": ["nowhere.py"],
    "csl-test": ["nowhere"],
    "devices": ["--nonsense"],
    "examples": ["-o", "full"],
    "docs": ["nowhere"],
}


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_errors_as_documents(
    verb: str, capsys: Captured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").touch()
    assert run([verb, *WRONG[verb], "--json"]) in (1, 2)
    found = json.loads(capsys.readouterr().out)
    assert found["version"] == 1 and found["errors"]
    assert all(e["severity"] == "error" and e["code"] and e["message"] for e in found["errors"])


@pytest.mark.parametrize("verb", VERBS)
def test_the_status_of_a_failure_does_not_depend_on_it(
    verb: str, capsys: Captured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").touch()
    plain = run([verb, *WRONG[verb]])
    assert plain in (1, 2) and capsys.readouterr().err
    assert run([verb, "--json", *WRONG[verb]]) == plain
    assert json.loads(capsys.readouterr().out)["errors"]


@pytest.mark.slow
@pytest.mark.ci
def test_what_verbs_write_is_a_document(tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "gemm.c"
    path.write_text(GEMM)
    wanted = ["compile", str(path), "--target", "c", "-o", str(tmp_path / "out")]
    found = document(capsys, wanted)
    assert found["folder"] == str(tmp_path / "out") and not found["remarks"]
    assert {*found["files"]} == {p.name for p in (tmp_path / "out").iterdir()}
    pages = [str(tmp_path / f"{n}.html") for n in "abc"]
    for page in pages[:2]:
        assert run(["simulate", *MAPPED, "--report", page]) == 0
    capsys.readouterr()
    assert document(capsys, ["report", *pages[:2], "-o", pages[2]]) == {"file": pages[2]}


def test_wrong_usage_is_a_document_too(capsys: Captured) -> None:
    assert run(["run", "--no-such-option", "--json"]) == 2
    out, err = capsys.readouterr()
    (only,) = json.loads(out)["errors"]
    assert only["code"] == "usage" and "no-such-option" in only["message"] and "no-such-option" in err


def test_objects_have_a_version(capsys: Captured) -> None:
    for arguments in (["simulate", *MAPPED], ["run", *CONV], ["show", *CONV, "--as", "lair"]):
        assert run([*arguments, "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert next(iter(found)) == "version" and found["version"] == 1


@pytest.mark.slow
@pytest.mark.ci
def test_a_run_says_its_rate(tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "gemm.c"
    path.write_text(GEMM)
    found = document(capsys, ["run", str(path), "--param", "n=64"])
    assert found["gflops"] == pytest.approx(2 * 64**3 / found["seconds"]["device"] * 1e-9)
    assert run(["run", str(path), "--param", "n=64", "--beside", "cc -O3"]) == 0
    out, _ = capsys.readouterr()
    assert "GFLOP/s in the kernels" in out and "times as fast as `cc -O3` on one core" in out
    triangle = GEMM.replace("j < n", "j <= i")
    path.write_text(triangle)
    assert "gflops" in document(capsys, ["run", str(path), "--param", "n=64"])


def test_help_is_a_word_too(capsys: Captured) -> None:
    for word, option in ((["help"], ["--help"]), (["help", "devices"], ["devices", "--help"])):
        assert run(word) == run(option) == 0
        out, _ = capsys.readouterr()
        assert out[: len(out) // 2] == out[len(out) // 2 :] != ""
    assert run(["help", "nothing"]) == 2


@pytest.mark.parametrize("verb", VERBS)
def test_help_shows_examples(verb: str, capsys: Captured) -> None:
    """Of options that the verb has."""
    assert run([verb, "--help"]) == 0
    out, _ = capsys.readouterr()
    known = set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", out.split("Examples:")[0]))
    for line in EXAMPLES[verb]:
        assert f"  polyloom {line}\n" in out
        first, *words = shlex.split(line)
        assert first == verb
        ours = takewhile(lambda word: not word.endswith(".py"), words)  # what follows is the script's
        assert {word.split("=")[0] for word in ours if word.startswith("-")} <= known
