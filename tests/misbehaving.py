"""What a child process of the tuner may do: work, crash, hang, raise. Imported by the child, by name."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

from polyloom.caches import temporary_folder
from polyloom.diagnostics import PolyloomError, error

Stage = Callable[[str], None]


class Job:
    def __init__(self, argument: Any) -> None:
        if argument == "refuse":
            raise PolyloomError(error("device-missing", "there is no such device"))
        if argument == "die":
            os._exit(3)
        self.argument = argument

    def double(self, stage: Stage, number: int) -> int:
        stage("build")
        print("a driver that prints", flush=True)
        return 2 * number

    def abort(self, stage: Stage) -> None:
        stage("build")
        print("LLVM ERROR: out of registers", file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGABRT)

    def hang(self, stage: Stage) -> None:
        stage("run")
        time.sleep(1000)

    def fail(self, stage: Stage) -> None:
        raise ValueError("a fault of ours")

    def litter(self, stage: Stage) -> str:
        """Make a temporary folder, which nobody removes where the process is killed."""
        return str(temporary_folder())

    def pid(self, stage: Stage) -> int:
        return os.getpid()


def dies(argument: object) -> None:
    os._exit(3)
