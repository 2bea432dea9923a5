"""Intel MKL through its C interface (pip: mkl)."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

import numpy as np
from contender import Call, Contender, Missing
from workloads import Arrays, NDArray, Workload

ROWS, PLAIN, TRANSPOSED = 101, 111, 112
ONE, ZERO = ctypes.c_float(1), ctypes.c_float(0)


def pointer(array: NDArray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


class Peer(Contender):
    def load(self) -> None:
        found = sorted(Path(sys.prefix, "lib").glob("libmkl_rt.so*"))
        if not found:
            raise Missing("pip install mkl")
        self.mkl = ctypes.CDLL(str(found[-1]))
        self.mkl.MKL_Set_Threading_Layer(0)  # Intel OpenMP, which the wheel depends on
        self.mkl.cblas_sdot.restype = ctypes.c_float

    def _gemm(self, a: NDArray, b: NDArray, out: NDArray, transposed: bool) -> None:
        m, n = out.shape
        k = b.shape[0]
        first = TRANSPOSED if transposed else PLAIN
        lda = m if transposed else k
        args = (pointer(a), lda, pointer(b), n, ZERO, pointer(out), n)
        self.mkl.cblas_sgemm(ROWS, first, PLAIN, m, n, k, ONE, *args)

    def matmul(self, w: Workload, a: Arrays) -> Call:
        return self._product(a, transposed=False)

    def matmul_transposed(self, w: Workload, a: Arrays) -> Call:
        return self._product(a, transposed=True)

    def _product(self, a: Arrays, *, transposed: bool) -> Call:
        rows = a["A"].shape[1 if transposed else 0]
        out = np.empty((rows, a["B"].shape[1]), np.float32)

        def call() -> Arrays:
            self._gemm(a["A"], a["B"], out, transposed)
            return {"C": out}

        return call

    def batched_matmul(self, w: Workload, a: Arrays) -> Call:
        x, y = a["A"], a["B"]
        batch, m, k = x.shape
        n = y.shape[2]
        out = np.empty((batch, m, n), np.float32)
        long = ctypes.c_longlong
        head = (ROWS, PLAIN, PLAIN, m, n, k, ONE)

        def call() -> Arrays:
            inputs = (pointer(x), k, long(m * k), pointer(y), n, long(k * n))
            rest = (ZERO, pointer(out), n, long(m * n), batch)
            self.mkl.cblas_sgemm_batch_strided(*head, *inputs, *rest)
            return {"C": out}

        return call

    def dot(self, w: Workload, a: Arrays) -> Call:
        x, y = pointer(a["x"]), pointer(a["y"])
        return lambda: {"sum": np.array([self.mkl.cblas_sdot(a["x"].size, x, 1, y, 1)])}

    def matvec(self, w: Workload, a: Arrays) -> Call:
        matrix, x = a["A"], a["x"]
        m, n = matrix.shape
        out = np.empty(m, np.float32)

        def call() -> Arrays:
            args = (pointer(matrix), n, pointer(x), 1, ZERO, pointer(out), 1)
            self.mkl.cblas_sgemv(ROWS, PLAIN, m, n, ONE, *args)
            return {"y": out}

        return call
