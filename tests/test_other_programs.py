"""Other programs: found outside of the current folder, ended in time, whatever they do."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from polyloom.caches import temporary_folder
from polyloom.diagnostics import PolyloomError
from polyloom.oracle.c_compiler import CCompiler, build
from polyloom.programs import MOST_OUTPUT, Ended, ProgramFault, find_program, run_program
from polyloom.wafer.simulator.build import BuildFailure, build_program
from polyloom.wafer.simulator.compilers import choose_compiler, find_compiler
from samples import LATER

SOURCE = Path(__file__).parents[1] / "src"
EXAMPLES = SOURCE.parent / "examples"


def script(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_what_a_program_prints_need_not_be_text() -> None:
    done = run_program(["sh", "-c", r"printf 'a\377b'; printf err >&2; exit 3"], seconds=20)
    assert done == Ended(3, "a\ufffdb", "err")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("sleep 600", "longer than 0.3 s"),
        ("sleep 600 & exit 0", "longer than 0.3 s"),  # a child of it holds on to its outputs
        ("exec >&- 2>&-; sleep 600", "longer than 0.3 s"),
        ("kill -SEGV $$", "killed by SIGSEGV"),
        ("yes", f"more than {MOST_OUTPUT} bytes"),
    ],
)
def test_a_program_that_goes_wrong(text: str, reason: str) -> None:
    start = time.monotonic()
    with pytest.raises(ProgramFault, match=reason):
        run_program(["sh", "-c", text], seconds=20 if text == "yes" else 0.3)
    assert time.monotonic() - start < 300, "they sleep for 600 s"


@pytest.mark.parametrize("command", ["/nowhere/cc", "/etc", "a\0b"])
def test_a_program_that_is_none(command: str) -> None:
    with pytest.raises(ProgramFault, match="cannot be started"):
        run_program([command], seconds=1)


def test_a_program_of_the_current_folder_is_not_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(tmp_path, "gcc", "exit 0")
    monkeypatch.chdir(tmp_path)
    for empty in ("", ".", f"{os.pathsep}."):
        monkeypatch.setenv("PATH", empty)
        assert find_program("gcc") is None
    monkeypatch.setenv("PATH", f".{os.pathsep}{tmp_path}")
    assert find_program("gcc") == str(tmp_path / "gcc")


BROKEN = {
    "fails": "echo 'cc1: internal error: no luck' >&2; exit 1",
    "is killed": "kill -KILL $$",
    "prints what is no text": r"printf '\377\376' >&2; exit 1",
    "writes nothing": "exit 0",
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_a_compiler_that_breaks_after_the_probes(tmp_path: Path, text: str) -> None:
    """It builds the probes, and then not the program: a diagnostic."""
    good = find_compiler().command[0]
    broken = f'case "$*" in *probe.c*|*--version*) exec {good} "$@";; esac\n{text}'
    compiler = choose_compiler([(script(tmp_path, "cc", broken),)])
    with pytest.raises(BuildFailure) as caught:
        build_program({"P.c": "int a;"}, "", compiler=compiler, folder=tmp_path)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "compiler-failed" and diagnostic.helps
    assert [path.name for path in tmp_path.iterdir()] == ["cc"]


def test_a_compiler_that_never_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polyloom.wafer.simulator.compilers.PROBE_SECONDS", 0.2)
    with pytest.raises(PolyloomError, match="no-compiler"):
        choose_compiler([(script(tmp_path, "cc", "sleep 600"),)])


BLOCKS = [0, 8, *(pytest.param(blocks, marks=LATER) for blocks in (1, 60))]


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("blocks", BLOCKS, ids="{} blocks".format)
def test_no_room_for_files_is_what_is_said(tmp_path: Path, blocks: int) -> None:
    """No file may be longer than so many blocks of 512 bytes, as on a disk that is full."""
    verb = f"{sys.executable} -P -m polyloom simulate conv1d.lair --map conv1d.map"
    done = subprocess.run(
        ["sh", "-c", f"ulimit -f {blocks}; exec {verb}"],
        cwd=EXAMPLES,
        env=os.environ | {"XDG_CACHE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert "TMPDIR" in done.stderr
    assert "written" in done.stderr or "File size limit exceeded" in done.stderr


def test_temporary_files_of_compilers_lie_in_our_own_folder(tmp_path: Path) -> None:
    good, log = find_compiler().command[0], tmp_path / "log"
    logging = script(tmp_path, "cc", f'echo "$TMPDIR $*" >> {log}; exec {good} "$@"')
    choose_compiler([(logging,)])
    (tmp_path / "empty.c").write_text("void polyloom_enter(void *slots) {}")
    build(CCompiler((logging,), "cc"), tmp_path / "empty.c", (), tmp_path / "program")
    compiling = [line for line in log.read_text().splitlines() if "--version" not in line]
    assert any("-c" in line for line in compiling) and any("-pthread" in line for line in compiling)
    assert [line for line in compiling if not line.startswith(str(temporary_folder()))] == []


PLANTED = ("copy", "inspect", "typing", "click", "numpy", "sqlite3", "pickle", "json", "tempfile")
"""Modules that Polyloom imports, in this process or in a child."""


MODULE = [sys.executable, "-m", "polyloom"]
SCRIPT = [sys.executable, "-P", "-c", "from polyloom.__main__ import main; main()"]
PATHS = [str(SOURCE), f"{os.pathsep}{SOURCE}", f"{SOURCE}{os.pathsep}."]


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize(
    ("path", "command"),
    [
        pytest.param(path, command, marks=LATER if (k + i) % 2 else (), id=f"{path}-{('-m', 'script')[i]}")
        for k, path in enumerate(PATHS)
        for i, command in enumerate((MODULE, SCRIPT))
    ],
)
def test_no_module_comes_from_the_current_folder(tmp_path: Path, command: list[str], path: str) -> None:
    for name in PLANTED:
        (tmp_path / f"{name}.py").write_text("open('PLANTED', 'w'); raise ImportError('planted')")
    arguments = ["show", str(EXAMPLES / "conv1d.lair")]
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(
        [*command, *arguments], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "PLANTED").exists()


@pytest.mark.slow
@pytest.mark.ci
def test_the_tuner_runs_nothing_from_the_current_folder(tmp_path: Path) -> None:
    (tmp_path / "copy.py").write_text("open('PLANTED', 'w'); raise ImportError('planted')")
    source = EXAMPLES / "c" / "gemm.c"
    sizes = [part for name in "nmk" for part in ("--param", f"{name}=4")]
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "polyloom",
            "tune",
            source,
            *sizes,
            "--evaluations",
            "1",
            "--database",
            "t.sqlite",
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "PLANTED").exists()
