"""What the machine can do as C: fused multiply-adds and memory traffic, by ``rates.c``, on all processors."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from contender import MOST, Contender, Missing, Stage

ROUNDS = 100_000
ELEMENTS = 1 << 25
FLAGS = ("-O3", "-march=native", "-ffast-math", "-fopenmp", "-shared", "-fPIC")


class Peak(Contender):
    """Its "times" are rates: operations (fma) or bytes (scale: read and written, sum: read) per second."""

    def load(self) -> None:
        compiler = shutil.which("gcc") or shutil.which("cc")
        if compiler is None:
            raise Missing("no C compiler")
        os.environ["OMP_WAIT_POLICY"] = "passive"  # threads that spin would take a core from the next one
        self.threads = len(os.sched_getaffinity(0))
        with tempfile.TemporaryDirectory() as folder:
            library = Path(folder) / "rates.so"
            source = Path(__file__).with_name("rates.c")
            subprocess.run([compiler, *FLAGS, str(source), "-o", str(library)], check=True)
            self.library = ctypes.CDLL(str(library))
        self.library.operations.restype = ctypes.c_int64
        self.memory = [np.ones(ELEMENTS, np.float32) for _ in range(2)]

    def prepare(self, stage: Stage, name: str) -> str:
        return ""

    def visit(self, stage: Stage, seconds: float) -> dict[str, list[float]]:
        stage("visit")
        first, second = (array.ctypes.data_as(ctypes.c_void_p) for array in self.memory)
        rounds, threads, n = (ctypes.c_int64(each) for each in (ROUNDS, self.threads, ELEMENTS))
        operations = self.threads * self.library.operations(rounds)
        moved = self.memory[0].nbytes
        calls: dict[str, tuple[int, Callable[[], object]]] = {
            "fma": (operations, lambda: self.library.fma_peak(threads, rounds, first)),
            "scale": (2 * moved, lambda: self.library.scale(n, first, second)),
            "sum": (moved, lambda: self.library.sum(n, first)),
        }
        return {name: rates_of(amount, call, seconds / 3) for name, (amount, call) in calls.items()}


def rates_of(amount: int, call: Callable[[], object], seconds: float) -> list[float]:
    """Return what repeated calls do in a second, without the first one."""
    rates: list[float] = []
    end = time.perf_counter() + seconds
    while len(rates) < 3 or (time.perf_counter() < end and len(rates) < MOST):
        begin = time.perf_counter()
        call()
        rates.append(amount / (time.perf_counter() - begin))
    return rates[1:]
