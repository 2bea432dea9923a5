"""NumPy, whose matrix products are OpenBLAS's."""

from __future__ import annotations

import numpy as np
from contender import Call, Contender
from workloads import Arrays, Workload


class Peer(Contender):
    def matmul(self, w: Workload, a: Arrays) -> Call:
        out = np.empty((a["A"].shape[0], a["B"].shape[1]), np.float32)
        return lambda: {"C": np.matmul(a["A"], a["B"], out=out)}

    def matmul_transposed(self, w: Workload, a: Arrays) -> Call:
        out = np.empty((a["A"].shape[1], a["B"].shape[1]), np.float32)
        return lambda: {"C": np.matmul(a["A"].T, a["B"], out=out)}

    def batched_matmul(self, w: Workload, a: Arrays) -> Call:
        out = np.empty((*a["A"].shape[:2], a["B"].shape[2]), np.float32)
        return lambda: {"C": np.matmul(a["A"], a["B"], out=out)}

    def multi_channel_convolution(self, w: Workload, a: Arrays) -> Call:
        image, filter_ = a["image"], a["filter"]
        k, r, s, _ = filter_.shape
        n, p, q = image.shape[0], image.shape[1] - r + 1, image.shape[2] - s + 1
        weights = np.ascontiguousarray(filter_.reshape(k, -1).T)
        windows = np.lib.stride_tricks.sliding_window_view(image, (r, s), axis=(1, 2))

        def call() -> Arrays:
            columns = windows.transpose(0, 1, 2, 4, 5, 3).reshape(n * p * q, -1)
            return {"out": (columns @ weights).reshape(n, p, q, k)}

        return call

    def gaussian(self, w: Workload, a: Arrays) -> Call:
        image, filter_ = a["image"], a["filter"]
        rows, columns = image.shape[0] - 4, image.shape[1] - 4
        out, part = np.empty((2, rows, columns), np.float32)

        def call() -> Arrays:
            out[...] = 0
            for r in range(5):
                for s in range(5):
                    np.multiply(image[r : r + rows, s : s + columns], filter_[r, s], out=part)
                    np.add(out, part, out=out)
            return {"out": out}

        return call

    def jacobi3d(self, w: Workload, a: Arrays) -> Call:
        x, c = a["in"], slice(1, -1)
        parts = (x[:-2, c, c], x[2:, c, c], x[c, :-2, c], x[c, 2:, c], x[c, c, :-2], x[c, c, 2:])

        def call() -> Arrays:
            around = parts[0] + parts[1]
            for part in parts[2:]:
                around += part
            around *= np.float32(0.1)
            around += np.float32(0.4) * x[c, c, c]
            return {"out": around}

        return call

    def dot(self, w: Workload, a: Arrays) -> Call:
        return lambda: {"sum": np.array([np.dot(a["x"], a["y"])])}

    def matvec(self, w: Workload, a: Arrays) -> Call:
        return lambda: {"y": np.dot(a["A"], a["x"])}

    def ccsd_t(self, w: Workload, a: Arrays) -> Call:
        return lambda: {"Z": np.einsum("gdab,efgc->abcdef", a["X"], a["Y"], optimize=True)}

    def histogram(self, w: Workload, a: Arrays) -> Call:
        return lambda: {"count": np.bincount(a["data"], minlength=256)}

    def scan(self, w: Workload, a: Arrays) -> Call:
        out = np.empty_like(a["x"])
        return lambda: {"y": np.cumsum(a["x"], out=out)}
