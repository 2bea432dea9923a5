"""Output folders: only what Polyloom wrote, as it wrote it, is replaced; never half of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from polyloom import folders
from polyloom.diagnostics import PolyloomError
from polyloom.folders import write_folder

OLD = {"a.c": "int a;\n", "b.h": "/* b */\n"}
NEW = {"a.c": "long a;\n", "c.h": "/* c */\n"}


def contents(folder: Path) -> dict[str, str | None]:
    """Every file below a folder; None for a folder."""
    return {
        str(path.relative_to(folder)): path.read_text() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


def write(folder: Path, texts: dict[str, str], *, others_stay: bool = False) -> None:
    write_folder(texts, {"target": "test"}, folder, others_stay=others_stay)


def refusal(folder: Path, texts: dict[str, str], *, others_stay: bool = False) -> str:
    """The message of a refusal, after which everything is as it was, also beside the folder."""
    before = contents(folder.parent)
    with pytest.raises(PolyloomError) as caught:
        write(folder, texts, others_stay=others_stay)
    assert contents(folder.parent) == before
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code in ("folder-occupied", "file-unwritable") and diagnostic.helps
    return diagnostic.message


def holds(folder: Path, texts: dict[str, str]) -> bool:
    return set(contents(folder)) == {*texts, "manifest.json"} and all(
        (folder / name).read_text() == text for name, text in texts.items()
    )


@pytest.mark.parametrize("others_stay", [False, True])
def test_a_folder_is_replaced_whole(tmp_path: Path, others_stay: bool) -> None:
    folder = tmp_path / "out"
    write(folder, OLD, others_stay=others_stay)
    assert holds(folder, OLD)
    write(folder, NEW, others_stay=others_stay)
    assert holds(folder, NEW)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_others_stay_beside(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes").write_text("mine")
    for texts in (OLD, NEW):
        write(tmp_path, texts, others_stay=True)
        found = contents(tmp_path)
        assert (found.pop("mine"), found.pop("mine/notes")) == (None, "mine")
        assert {**texts, "manifest.json": found["manifest.json"]} == found


FOREIGN: dict[str, Callable[[Path], object]] = {
    "names itself": lambda d: (d / "manifest.json").write_text(
        '{"files": ["notes", "data", "manifest.json"]}'
    ),
    "names its parent": lambda d: (d / "manifest.json").write_text('{"files": ["..", "notes", "data"]}'),
    "no object": lambda d: (d / "manifest.json").write_text("[]"),
    "nested deep": lambda d: (d / "manifest.json").write_text("[" * 100_000),
    "a bare mark": lambda d: (d / "manifest.json").write_text(
        json.dumps({"polyloom": {"format": "polyloom-folder", "version": 1, "sha256": {"notes": None}}})
    ),
    "a pipe": lambda d: os.mkfifo(d / "manifest.json"),
    "a folder": lambda d: (d / "manifest.json").mkdir(),
}


@pytest.mark.parametrize("others_stay", [False, True])
@pytest.mark.parametrize("make", FOREIGN.values(), ids=FOREIGN)
def test_a_manifest_of_others_is_no_mark(
    tmp_path: Path, make: Callable[[Path], object], others_stay: bool
) -> None:
    folder = tmp_path / "site"
    (folder / "data").mkdir(parents=True)
    (folder / "data" / "results.csv").write_text("precious")
    (folder / "notes").write_text("mine")
    make(folder)
    assert "`manifest.json`" in refusal(folder, OLD, others_stay=others_stay)


def edit(path: Path) -> None:
    path.write_text(path.read_text() + " ")


def link(path: Path) -> None:
    path.rename(path.parent.parent / "elsewhere")
    path.symlink_to(path.parent.parent / "elsewhere")


def folder_instead(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("others_stay", [False, True])
@pytest.mark.parametrize("name", ["a.c", "b.h", "manifest.json"])
@pytest.mark.parametrize("change", [edit, link, folder_instead])
def test_a_changed_file_stays(
    tmp_path: Path, change: Callable[[Path], None], name: str, others_stay: bool
) -> None:
    folder = tmp_path / "out"
    write(folder, OLD, others_stay=others_stay)
    change(folder / name)
    assert f"`{name}`" in refusal(folder, NEW, others_stay=others_stay)


def test_all_that_is_in_the_way_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    write(folder, OLD)
    edit(folder / "b.h")
    for k in range(7):
        (folder / f"s{k}").touch()
    (folder / "a.out").touch()
    message = refusal(folder, {f"s{k}": "" for k in range(8)})
    assert "`s0`, `s1`, `s2`, `s3`, `s4` and 2 more" in message and "`b.h` in it is no longer" in message
    assert "a.out" not in message


def test_all_of_an_unmarked_folder_is_in_the_way(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    for k in range(7):
        (folder / f"s{k}").touch()
    assert "`s0`, `s1`, `s2`, `s3`, `s4` and 2 more" in refusal(folder, NEW)


def test_what_was_built_in_a_folder_stays(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    write(folder, OLD)
    (folder / "a.out").write_text("built")
    for texts in (NEW, OLD):
        write(folder, texts)
        assert holds(folder, {**texts, "a.out": "built"})
    (folder / "c.h").write_text("mine")
    assert "`c.h` in it is not written by Polyloom" in refusal(folder, NEW)


def test_what_somebody_removed_is_written_anew(tmp_path: Path) -> None:
    write(tmp_path / "out", OLD)
    (tmp_path / "out" / "a.c").unlink()
    write(tmp_path / "out", NEW)
    assert holds(tmp_path / "out", NEW)


@pytest.mark.parametrize("step", range(1, 6))
def test_a_step_that_fails_is_undone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    """Files change one by one where others lie between; the disk may refuse each of these steps."""
    write(tmp_path, OLD, others_stay=True)
    (tmp_path / "mine").touch()
    before = contents(tmp_path)
    counted = iter(range(1, 1000))
    genuine = Path.rename

    def rename(self: Path, to: Path) -> Path:
        if next(counted) == step:
            raise OSError(28, "No space left on device")
        return genuine(self, to)

    monkeypatch.setattr(Path, "rename", rename)
    if step <= 4:
        with pytest.raises(PolyloomError, match="No space left"):
            write(tmp_path, NEW, others_stay=True)
        assert contents(tmp_path) == before
    else:
        write(tmp_path, NEW, others_stay=True)
        assert holds(tmp_path, {**NEW, "mine": ""})


def test_without_an_exchange_in_one_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "_exchanged", lambda one, other: False)
    for texts in (OLD, NEW, OLD):
        write(tmp_path / "out", texts)
        assert holds(tmp_path / "out", texts)


def test_the_current_folder_stays_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    number = tmp_path.stat().st_ino
    for texts in (OLD, NEW):
        write(Path(), texts)
        assert holds(tmp_path, texts) and tmp_path.stat().st_ino == number


WRITER = """
import sys
from pathlib import Path
from polyloom.folders import write_folder
texts = [{f"{k}.c": f"{t} {k}" for k in range(20 + t)} for t in range(2)]
write_folder(texts[0], {}, Path(sys.argv[1]), others_stay=sys.argv[2] == "True")
print("go", flush=True)
while True:
    for each in texts:
        write_folder(each, {}, Path(sys.argv[1]), others_stay=sys.argv[2] == "True")
"""


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("others_stay", [False, True])
def test_a_killed_process_leaves_no_half(tmp_path: Path, others_stay: bool) -> None:
    """Either whole, or (where files of others lie between) known for Polyloom's and replaced by the next."""
    folder = tmp_path / "out"
    folder.mkdir()
    if others_stay:
        (folder / "mine").write_text("mine")
    for k in range(4):
        command = [sys.executable, "-c", WRITER, str(folder), str(others_stay)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None and process.stdout.readline()
            time.sleep(0.02 + 0.013 * k)
            process.send_signal(signal.SIGKILL)
        if not others_stay:
            found = contents(folder)
            count = len(found) - 1
            assert found.keys() >= {"manifest.json"} and count in (20, 21)
            assert all(found[f"{k}.c"] == f"{count - 20} {k}" for k in range(count))
        write(folder, OLD, others_stay=others_stay)
        expected = {*OLD, "manifest.json", *(["mine"] if others_stay else [])}
        assert {n for n in contents(folder) if not n.startswith(".polyloom-")} == expected
