"""Caches: what is broken in them is made anew, and where they cannot be written work goes on."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from polyloom import caches
from polyloom.caches import is_whole, kept

EXAMPLES = Path(__file__).parents[1] / "examples"
CONV = [str(EXAMPLES / "conv1d.lair"), "--map", str(EXAMPLES / "conv1d.map")]
GEMM = [str(EXAMPLES / "c" / "gemm.c"), *(part for name in "nmk" for part in ("--param", f"{name}=4"))]


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:2000])


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def longer(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"x")


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


BROKEN: list[Callable[[Path], None]] = [cut, flip, empty, longer, pipe]


@pytest.mark.parametrize("harm", BROKEN)
def test_a_broken_file_is_made_anew(tmp_path: Path, harm: Callable[[Path], None]) -> None:
    made: list[int] = []

    def make() -> bytes:
        made.append(1)
        return b"content" * 1000

    path = kept(tmp_path, "a.o", make)
    assert kept(tmp_path, "a.o", make) == path and len(made) == 1
    harm(path)
    assert kept(tmp_path, "a.o", make) == path and len(made) == 2
    assert is_whole(path) and path.read_bytes().startswith(b"content" * 1000)


def test_a_cache_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "a.o").mkdir()
    path = kept(tmp_path, "a.o", lambda: b"content")
    assert is_whole(path) and path.parent == caches.temporary_folder()
    assert is_whole(kept(tmp_path / "gone", "b.o", lambda: b"content"))


def polyloom(arguments: list[str], **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the command line with other variables; ``HOME`` and the like are as given, or none."""
    left_out = ("HOME", "XDG_CACHE_HOME", "POCL_CACHE_DIR", "OCL_ICD_VENDORS")
    environment = {name: value for name, value in os.environ.items() if name not in left_out} | variables
    command = [sys.executable, "-P", "-m", "polyloom", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.ci
def test_a_simulation_from_a_broken_cache(tmp_path: Path) -> None:
    first = polyloom(["simulate", *CONV], XDG_CACHE_HOME=str(tmp_path))
    assert first.returncode == 0, first.stderr
    for path in (tmp_path / "polyloom").glob("*.*o"):
        cut(path)
    again = polyloom(["simulate", *CONV], XDG_CACHE_HOME=str(tmp_path))
    assert (again.returncode, again.stdout) == (0, first.stdout), again.stderr


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize(
    "variables",
    [
        {"HOME": "/proc/none"},
        *(
            pytest.param(each, marks=[pytest.mark.slow, pytest.mark.ci])
            for each in (
                {"HOME": "/dev/null"},
                {"HOME": "/proc/none", "POCL_CACHE_DIR": "TEMPORARY"},
                {"HOME": "relative"},
                {"HOME": ""},
                {"XDG_CACHE_HOME": "/proc/none"},
            )
        ),
    ],
    ids=str,
)
def test_no_home_as_in_containers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]
) -> None:
    """Everything works, and nothing is left behind."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tmp").mkdir()
    places = {"TEMPORARY": str(tmp_path / "tmp" / "pocl")}
    given = {name: places.get(value, value) for name, value in variables.items()}
    device = ["--device", "cpu"] if "POCL_CACHE_DIR" in given else []
    done = polyloom(["run", *GEMM, *device], TMPDIR=str(tmp_path / "tmp"), **given)
    assert done.returncode == 0, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["tmp"]
    assert [path.name for path in (tmp_path / "tmp").iterdir()] == (
        ["pocl"] if "POCL_CACHE_DIR" in given else []
    )


@pytest.mark.slow
@pytest.mark.ci
def test_a_simulation_without_a_cache(tmp_path: Path) -> None:
    done = polyloom(["simulate", *CONV], TMPDIR=str(tmp_path), HOME="/proc/none")
    assert (done.returncode, done.stderr, list(tmp_path.iterdir())) == (0, "", [])


@pytest.mark.slow
@pytest.mark.ci
def test_a_driver_that_shows_no_device_is_named(tmp_path: Path) -> None:
    done = polyloom(["run", *GEMM, "--device", "cpu"], HOME=str(tmp_path), POCL_CACHE_DIR="/proc/none")
    assert done.returncode == 1
    assert "PoCL 3.0 is installed and shows no device" in done.stderr
    assert "`/proc/none` (POCL_CACHE_DIR) cannot be written" in done.stderr
    assert "pip install pocl" not in done.stderr


@pytest.mark.parametrize("home", ["relative", "/proc/none"])
def test_results_of_tuning_are_not_written_into_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = polyloom(["tune", *GEMM, "--evaluations", "1"], HOME=home, TMPDIR=str(tmp_path))
    assert done.returncode == 1 and "error[database-unusable]" in done.stderr and "--database" in done.stderr


HOLDER = """
import time
from polyloom.caches import temporary_folder
print(temporary_folder(), flush=True)
time.sleep(60)
"""


def test_what_a_killed_process_leaves_goes_with_the_next(tmp_path: Path) -> None:
    variables = {**os.environ, "TMPDIR": str(tmp_path)}
    (tmp_path / "polyloom-mine").mkdir()
    (tmp_path / "polyloom-link").symlink_to(tmp_path / "polyloom-mine")

    def holder() -> tuple[subprocess.Popen[str], Path]:
        process = subprocess.Popen(
            [sys.executable, "-c", HOLDER], env=variables, stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        return process, Path(process.stdout.readline().strip())

    living, first = holder()
    killed, second = holder()
    killed.kill()
    killed.communicate()
    assert first.is_dir() and second.is_dir()
    last, third = holder()
    assert first.is_dir() and third.is_dir() and not second.exists()
    assert {path.name for path in tmp_path.iterdir()} == {
        first.name,
        third.name,
        "polyloom-mine",
        "polyloom-link",
    }
    for process in (living, last):
        process.kill()
        process.communicate()


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such locks")
def test_two_processes_do_not_time_at_once(tmp_path: Path) -> None:
    text = """
from polyloom.caches import alone
import sys, time
with alone("timing"):
    print("began", flush=True)
    input()
    print("ended", time.monotonic_ns())
"""
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}

    def started() -> subprocess.Popen[str]:
        command = [sys.executable, "-c", text]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, text=True)

    with started() as one:
        assert one.stdout is not None and one.stdout.readline() == "began\n"
        with started() as two:
            with pytest.raises(subprocess.TimeoutExpired):
                two.wait(1.0)
            assert two.stdout is not None
            os.set_blocking(two.stdout.fileno(), False)
            assert not two.stdout.read(1)
            os.set_blocking(two.stdout.fileno(), True)
            one.communicate("\n", timeout=60)
            assert "began" in two.communicate("\n", timeout=60)[0]
