"""Ctrl-C: the command ends within a second, with 130, and leaves nothing behind."""

from __future__ import annotations

import json
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


TOY = """
import enum, functools, signal, sys, time
from types import ModuleType
import click
from polyloom.cli.command import VERBS
from polyloom.cli.main import main

def interrupt(*ignored):
    signal.raise_signal(signal.SIGINT)

@click.command()
def command():
    {body}

sys.modules["polyloom.cli.verbs.toy"] = toy = ModuleType("polyloom.cli.verbs.toy")
toy.command = command
VERBS["toy"] = "What a verb may do."
{before}
main(["toy"])
"""
IN_CLASS = "class Named:\n        attribute = type('', (), {'__set_name__': interrupt})()"
IN_ISL = "import islpy; islpy.Set('{[i] : 0 <= i < 3}').foreach_point(interrupt)"
SWALLOWED = "try: interrupt()\n    except BaseException: pass"
LOST = "type('', (), {'__del__': interrupt})(); time.sleep(60)"
IN_MODULE_IN_C = (
    "make = enum.EnumType._create_; enum.EnumType._create_ = lambda *a, **n: (interrupt(), make(*a, **n))[1]"
)


@pytest.mark.parametrize("body", [IN_CLASS, IN_ISL, SWALLOWED, LOST])
def test_whatever_becomes_of_it(body: str, tmp_path: Path) -> None:
    """Python, isl and others make something else of an interruption: a fault of ours, or nothing."""
    check_interrupted(TOY.format(body=body, before=""), tmp_path)


def test_while_a_module_in_c_is_imported(tmp_path: Path) -> None:
    """In islpy it would be the end of the process, with a remark."""
    check_interrupted(TOY.format(body="pass", before=IN_MODULE_IN_C), tmp_path)


def check_interrupted(script: str, tmp_path: Path) -> None:
    process = started(tmp_path, sys.executable, "-c", script)
    _, said = process.communicate(timeout=30)
    assert said.strip() == "interrupted"
    assert process.returncode == 130


@pytest.mark.parametrize(
    ("one_in", "command"),
    [
        pytest.param(100, "explain c/gemm.c", marks=(pytest.mark.slow, pytest.mark.ci)),
        pytest.param(40, "explain c/gemm.c", marks=(pytest.mark.slow, pytest.mark.ci)),
        pytest.param(80, "simulate conv1d.lair --map conv1d.map", marks=(pytest.mark.slow, pytest.mark.ci)),
        pytest.param(40, "show models/cnn.onnx", marks=(pytest.mark.slow, pytest.mark.ci)),
    ],
)
def test_in_any_function(one_in: int, command: str) -> None:
    script = Path(__file__).with_name("interrupted_copies.py")
    process = subprocess.run(
        [sys.executable, str(script), str(one_in), *command.split()],
        cwd=EXAMPLES,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    copies = json.loads(process.stdout.splitlines()[-1])
    assert len(copies) > 1000 / one_in
    assert [wrong for wrong in copies if wrong] == []


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


SIZES = ("--param", "n=1000", "--param", "m=1000", "--param", "k=1000")


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("delay", [0.5, 1.5, 3.0, 6.0])
@pytest.mark.parametrize(
    "verb",
    [
        ("run", "c/gemm.c", "--param", "n=4000", "--param", "m=4000", "--param", "k=4000", "--check"),
        ("tune", "c/gemm.c", *SIZES, "--budget", "60"),
        ("tune", "c/gemm.c", "--device", "cpu", *SIZES, "--budget", "60"),
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
