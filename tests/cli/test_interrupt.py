"""Ctrl-C: the command ends within a second, with 130, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
COMMAND = (sys.executable, "-c", "from polyloom.cli.main import main; main()")
BUSY = """
import os, sys, tempfile
from polyloom.cli.supervise import supervised

def work():
    import numpy
    folder = tempfile.mkdtemp()
    open(os.path.join(folder, "half"), "w").close()
    ones = numpy.ones((4000, 4000), int)
    print("busy", flush=True)
    ones @ ones
    return 0

sys.exit(supervised(work))
"""
PATIENT = BUSY.replace("ones @ ones", "import time; time.sleep(60)").replace(
    "folder = tempfile.mkdtemp()", "keep = tempfile.TemporaryDirectory(); folder = keep.name"
)


def started(tmp_path: Path, *command: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )


def interrupted(process: subprocess.Popen[str]) -> tuple[float, str]:
    """Send SIGINT; return how long the process took to end, and what it printed to stderr."""
    before = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    return time.monotonic() - before, said


def children(process: subprocess.Popen[str]) -> list[int]:
    found = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [int(number) for number in found]


def is_alive(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("script", [BUSY, PATIENT], ids=["in C", "in Python"])
def test_work_of_any_kind_is_ended(script: str, tmp_path: Path) -> None:
    process = started(tmp_path, sys.executable, "-c", script)
    assert process.stdout is not None
    assert process.stdout.readline() == "busy\n"
    inside = children(process) if sys.platform == "linux" else []
    seconds, said = interrupted(process)
    assert process.returncode == 130
    assert seconds < 20, "a second, and what a busy machine needs; the work takes a minute"
    assert "Traceback" not in said
    assert [*tmp_path.iterdir()] == []
    assert not any(map(is_alive, inside))


def test_nothing_goes_on_when_the_command_is_killed(tmp_path: Path) -> None:
    process = started(tmp_path, sys.executable, "-c", BUSY)
    assert process.stdout is not None
    process.stdout.readline()
    inside = children(process)
    process.kill()
    process.communicate(timeout=30)
    assert inside
    deadline = time.monotonic() + 10
    while any(map(is_alive, inside)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(is_alive, inside))


@pytest.mark.parametrize("status", [0, 3])
def test_the_exit_status_is_that_of_the_work(status: int) -> None:
    script = (
        f"import sys; from polyloom.cli.supervise import supervised; sys.exit(supervised(lambda: {status}))"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == status


def test_a_crash_stays_one() -> None:
    script = "import os; from polyloom.cli.supervise import supervised; supervised(os.abort)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -signal.SIGABRT


@pytest.mark.slow  # once it ended with 70 in place of 130 beside other tests; the cause is not found yet
@pytest.mark.parametrize("delay", [0.15, 0.5])
def test_at_any_moment(delay: float, tmp_path: Path) -> None:
    """During imports, too, there is no traceback; before Python has got that far it is its own."""
    text = "\n".join(f"for (int i = 1; i < n; i++) a[i] += a[i - 1] * {k};" for k in range(300))
    source = tmp_path / "many.c"
    source.write_text(f"void k(int n, int a[n]) {{\n#pragma scop\n{text}\n#pragma endscop\n}}")
    (tmp_path / "tmp").mkdir()
    process = started(tmp_path / "tmp", *COMMAND, "explain", str(source))
    if sys.platform == "linux":
        while not children(process):
            time.sleep(0.01)
    time.sleep(delay)
    seconds, said = interrupted(process)
    assert process.returncode == 130
    assert seconds < 4
    assert said.strip() == "interrupted"
    assert [*(tmp_path / "tmp").iterdir()] == []


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("delay", [0.5, 1.5, 3.0, 6.0])
@pytest.mark.parametrize(
    "verb",
    [
        ("run", "c/gemm.c", "--param", "n=4000", "--param", "m=4000", "--param", "k=4000", "--check"),
        ("tune", "c/gemm.c", "--param", "n=1000", "--param", "m=1000", "--param", "k=1000", "--budget", "60"),
        ("simulate", "ff.lair", "-D", "M=320", "-D", "N=160", "--size", "40x40", "--invocations", "2000"),
    ],
    ids=lambda verb: verb[0],
)
def test_long_verbs(verb: tuple[str, ...], delay: float, tmp_path: Path) -> None:
    first, source, *options = verb
    process = started(tmp_path, *COMMAND, first, str(EXAMPLES / source), *options)
    time.sleep(delay)
    if process.poll() is not None:
        pytest.fail(f"it took less than {delay} s: {process.communicate()}")
    seconds, said = interrupted(process)
    assert process.returncode == 130
    assert seconds < 4
    assert "Traceback" not in said
    assert [*tmp_path.iterdir()] == []
