"""The child process of the tuner: crashes, hangs and faults reach the parent as what they are."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from polyloom.caches import temporary_folder
from polyloom.diagnostics import PolyloomError
from polyloom.workers.child import Died, Job, Overdue, Worker

LIMITS = {"start": 30.0, "build": 20.0, "run": 0.2, "": 20.0}


@pytest.fixture
def worker() -> Iterator[Worker]:
    made = Worker(Job("misbehaving:Job", 1), LIMITS)
    yield made
    made.close()


def test_a_call_is_answered_and_prints_do_no_harm(worker: Worker) -> None:
    assert [worker.call("double", k) for k in range(3)] == [0, 2, 4]
    assert worker.starts == 1


def test_a_crash_is_told_with_its_signal_and_last_words(worker: Worker) -> None:
    with pytest.raises(Died, match=r"SIGABRT.* during build: LLVM ERROR: out of registers"):
        worker.call("abort")
    assert worker.call("double", 4) == 8
    assert worker.starts == 2


def test_a_hang_is_killed(worker: Worker) -> None:
    worker.call("double", 1)
    begin = time.monotonic()
    with pytest.raises(Overdue, match=r"longer than 0.2 s for run"):
        worker.call("hang")
    assert time.monotonic() - begin < 500, "it sleeps for 1000 s"
    assert worker.call("double", 4) == 8


def test_a_limit_may_be_given_with_the_call(worker: Worker) -> None:
    with pytest.raises(Overdue, match=r"0.05 s"):
        worker.call("hang", limits={"run": 0.05})


def test_a_fault_inside_a_method_leaves_the_child_alive(worker: Worker) -> None:
    with pytest.raises(RuntimeError, match="ValueError: a fault of ours"):
        worker.call("fail")
    assert worker.call("double", 4) == 8
    assert worker.starts == 1


def test_a_diagnostic_of_the_factory_arrives_as_one() -> None:
    worker = Worker(Job("misbehaving:Job", "refuse"), LIMITS)
    with pytest.raises(PolyloomError) as caught:
        worker.call("double", 1)
    assert caught.value.diagnostics[0].code == "device-missing"
    worker.close()


def test_a_child_that_dies_at_once() -> None:
    worker = Worker(Job("misbehaving:Job", "die"), LIMITS)
    for _ in range(2):
        with pytest.raises(Died, match="exit status 3"):
            worker.call("double", 1)
    worker.close()


def test_temporary_files_of_a_killed_child_go_with_it(worker: Worker) -> None:
    folder = Path(worker.call("litter"))
    assert folder.is_dir()
    with pytest.raises(Overdue):
        worker.call("hang", limits={"run": 0.05})
    assert not folder.exists() and not folder.parent.exists()
    assert folder.parents[1] == temporary_folder(), "where they go, too, if this process is killed"


def test_close_ends_the_child(worker: Worker) -> None:
    pid = worker.call("pid")
    worker.close()
    assert not alive(pid)


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's signal at a parent's death is Linux's")
def test_a_child_does_not_outlive_a_killed_parent() -> None:
    text = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from polyloom.workers.child import Job, Worker\n"
        "worker = Worker(Job('misbehaving:Job', 1), {'start': 30.0})\n"
        "print(worker.call('pid'), flush=True)\n"
        "worker.call('hang')\n"
    )
    command = [sys.executable, "-c", text, str(Path(__file__).parents[1])]
    parent = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    assert alive(child)
    os.kill(parent.pid, signal.SIGKILL)
    parent.communicate()
    deadline = time.monotonic() + 10
    while alive(child) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not alive(child)


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state not in "ZX"
