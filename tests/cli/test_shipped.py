"""``polyloom examples`` and ``polyloom docs``: what comes with Polyloom, also in a wheel."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from command_line import Captured, document, failure

from polyloom import shipped
from polyloom.cli.main import run

ROOT = Path(__file__).parents[2]
SOURCES = {path.relative_to(ROOT / "examples") for path in (ROOT / "examples").rglob("*.*")}


def test_every_program_of_the_folder_is_an_example() -> None:
    listed = {Path(example.file) for example in shipped.examples()}
    assert listed == {path for path in SOURCES if path.suffix in (".lair", ".c", ".onnx")}


LATER = [pytest.mark.slow, pytest.mark.ci]
SHORT = ("conv1d.lair",)
PROGRAMS = [e.file for e in shipped.examples() if not e.file.endswith(".lair") and e.file not in SHORT]


@pytest.mark.parametrize("file", [*SHORT, *(pytest.param(file, marks=LATER) for file in PROGRAMS)])
def test_a_copied_example_runs_by_its_command(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.chdir(tmp_path)
    copied = document(capsys, ["examples", "-o", "examples"])
    assert copied["files"] == sum(path.is_file() for path in Path("examples").rglob("*")) > 100
    (command,) = [e["command"] for e in document(capsys, ["examples"]) if e["file"] == file]
    assert run(command.split()[1:]) == 0
    assert re.search(r"check +passed", capsys.readouterr().out)


def test_examples_go_to_an_empty_folder_only(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    assert "folder-occupied" in failure(capsys, ["examples", "-o", str(tmp_path)], 1)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    empty = tmp_path / "empty"
    empty.mkdir()
    assert document(capsys, ["examples", "-o", str(empty)])["files"] > 100


def test_documents_are_listed_and_printed(capsys: Captured) -> None:
    listed = document(capsys, ["docs"])["pages"]
    named = set(re.findall(r"\((\w+)\.md\)", (ROOT / "docs" / "README.md").read_text()))
    assert set(listed) == named
    assert all(listed.values())
    for name in ("models", "docs/models.md"):
        assert run(["docs", name]) == 0
        assert capsys.readouterr().out == (ROOT / "docs" / "models.md").read_text()


def test_an_unknown_document(capsys: Captured) -> None:
    said = failure(capsys, ["docs", "model"], 1)
    assert "document-unknown" in said and "`models`" in said


def test_messages_name_documents_that_are_there() -> None:
    sources = "".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    named = set(re.findall(r"`polyloom docs (\w+)`", sources))
    assert len(named) > 1
    assert named <= set(shipped.pages())


def test_without_the_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Captured) -> None:
    monkeypatch.setattr(shipped, "_WHEEL", tmp_path)
    monkeypatch.setattr(shipped, "_CLONE", tmp_path)
    assert "shipped-missing" in failure(capsys, ["docs"], 1)


@pytest.mark.slow
@pytest.mark.ci
def test_a_wheel_has_examples_and_documents(tmp_path: Path) -> None:
    build = "import sys; from hatchling.build import build_wheel; print(build_wheel(sys.argv[1]))"
    command = [sys.executable, "-c", build, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    unpacked = tmp_path / "unpacked"
    zipfile.ZipFile(tmp_path / done.stdout.split()[-1]).extractall(unpacked)
    asked = "print(len(shipped.examples()), len(shipped.pages()), shipped.folder('docs'))"
    alone = f"from polyloom import shipped; {asked}"
    command = [sys.executable, "-P", "-c", f"import sys; sys.path.insert(0, {str(unpacked)!r}); {alone}"]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout.split()
    assert int(said[0]) == len(shipped.examples())
    assert int(said[1]) == len(shipped.pages())
    assert said[2].startswith(str(unpacked))
