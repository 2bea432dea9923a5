"""Numba: the loops of the C programs in Python, outer loops parallel, with fast-math."""

from __future__ import annotations

from typing import Any

import numpy as np
from contender import Call, Contender
from workloads import Arrays, Workload


class Peer(Contender):
    def load(self) -> None:
        import numba

        self.numba = numba

    def _compiled(self, function: Any) -> Any:
        return self.numba.njit(parallel=True, fastmath=True)(function)

    def matmul(self, w: Workload, a: Arrays) -> Call:
        prange = self.numba.prange

        def product(x, y, out):  # type: ignore[no-untyped-def]
            for i in prange(x.shape[0]):
                out[i, :] = 0
                for k in range(x.shape[1]):
                    for j in range(y.shape[1]):
                        out[i, j] += x[i, k] * y[k, j]

        run = self._compiled(product)
        out = np.empty((a["A"].shape[0], a["B"].shape[1]), np.float32)
        return lambda: (run(a["A"], a["B"], out), {"C": out})[1]

    def matmul_transposed(self, w: Workload, a: Arrays) -> Call:
        prange = self.numba.prange

        def product(x, y, out):  # type: ignore[no-untyped-def]
            for i in prange(x.shape[1]):
                out[i, :] = 0
                for k in range(x.shape[0]):
                    for j in range(y.shape[1]):
                        out[i, j] += x[k, i] * y[k, j]

        run = self._compiled(product)
        out = np.empty((a["A"].shape[1], a["B"].shape[1]), np.float32)
        return lambda: (run(a["A"], a["B"], out), {"C": out})[1]

    def batched_matmul(self, w: Workload, a: Arrays) -> Call:
        prange = self.numba.prange

        def product(x, y, out):  # type: ignore[no-untyped-def]
            for b in prange(x.shape[0]):
                for i in range(x.shape[1]):
                    out[b, i, :] = 0
                    for k in range(x.shape[2]):
                        for j in range(y.shape[2]):
                            out[b, i, j] += x[b, i, k] * y[b, k, j]

        run = self._compiled(product)
        out = np.empty((*a["A"].shape[:2], a["B"].shape[2]), np.float32)
        return lambda: (run(a["A"], a["B"], out), {"C": out})[1]

    def multi_channel_convolution(self, w: Workload, a: Arrays) -> Call:
        prange = self.numba.prange

        def convolve(image, filter_, out):  # type: ignore[no-untyped-def]
            for k in prange(filter_.shape[0]):
                for n in range(out.shape[0]):
                    for p in range(out.shape[1]):
                        for q in range(out.shape[2]):
                            total = np.float32(0)
                            for r in range(filter_.shape[1]):
                                for s in range(filter_.shape[2]):
                                    for c in range(filter_.shape[3]):
                                        total += image[n, p + r, q + s, c] * filter_[k, r, s, c]
                            out[n, p, q, k] = total

        run = self._compiled(convolve)
        n, h, v, _ = a["image"].shape
        k, r, s, _ = a["filter"].shape
        out = np.empty((n, h - r + 1, v - s + 1, k), np.float32)
        return lambda: (run(a["image"], a["filter"], out), {"out": out})[1]

    def gaussian(self, w: Workload, a: Arrays) -> Call:
        prange = self.numba.prange

        def convolve(image, filter_, out):  # type: ignore[no-untyped-def]
            for i in prange(out.shape[0]):
                for j in range(out.shape[1]):
                    total = np.float32(0)
                    for r in range(5):
                        for s in range(5):
                            total += image[i + r, j + s] * filter_[r, s]
                    out[i, j] = total

        run = self._compiled(convolve)
        out = np.empty((a["image"].shape[0] - 4, a["image"].shape[1] - 4), np.float32)
        return lambda: (run(a["image"], a["filter"], out), {"out": out})[1]

    def jacobi3d(self, w: Workload, a: Arrays) -> Call:
        prange = self.numba.prange

        def step(x, out):  # type: ignore[no-untyped-def]
            for i in prange(out.shape[0]):
                for j in range(out.shape[1]):
                    for k in range(out.shape[2]):
                        around = x[i, j + 1, k + 1] + x[i + 2, j + 1, k + 1] + x[i + 1, j, k + 1]
                        around += x[i + 1, j + 2, k + 1] + x[i + 1, j + 1, k] + x[i + 1, j + 1, k + 2]
                        out[i, j, k] = np.float32(0.4) * x[i + 1, j + 1, k + 1] + np.float32(0.1) * around

        run = self._compiled(step)
        n = a["in"].shape[0] - 2
        out = np.empty((n, n, n), np.float32)
        return lambda: (run(a["in"], out), {"out": out})[1]

    def dot(self, w: Workload, a: Arrays) -> Call:
        prange = self.numba.prange

        def product(x, y):  # type: ignore[no-untyped-def]
            total = np.float32(0)
            for i in prange(x.shape[0]):
                total += x[i] * y[i]
            return total

        run = self._compiled(product)
        return lambda: {"sum": np.array([run(a["x"], a["y"])])}

    def matvec(self, w: Workload, a: Arrays) -> Call:
        prange = self.numba.prange

        def product(matrix, x, out):  # type: ignore[no-untyped-def]
            for i in prange(matrix.shape[0]):
                total = np.float32(0)
                for j in range(matrix.shape[1]):
                    total += matrix[i, j] * x[j]
                out[i] = total

        run = self._compiled(product)
        out = np.empty(a["A"].shape[0], np.float32)
        return lambda: (run(a["A"], a["x"], out), {"y": out})[1]

    def ccsd_t(self, w: Workload, a: Arrays) -> Call:
        prange = self.numba.prange

        def contract(x, y, out):  # type: ignore[no-untyped-def]
            for i in prange(out.shape[0]):
                for b in range(out.shape[1]):
                    for c in range(out.shape[2]):
                        for d in range(out.shape[3]):
                            for e in range(out.shape[4]):
                                for f in range(out.shape[5]):
                                    total = np.float32(0)
                                    for g in range(x.shape[0]):
                                        total += x[g, d, i, b] * y[e, f, g, c]
                                    out[i, b, c, d, e, f] = total

        run = self._compiled(contract)
        s = w.sizes
        out = np.empty([s[n] for n in ("NA", "NB", "NC", "ND", "NE", "NF")], np.float32)
        return lambda: (run(a["X"], a["Y"], out), {"Z": out})[1]

    def record_linkage(self, w: Workload, a: Arrays) -> Call:
        prange = self.numba.prange

        def link(new, known, weight, score, match):  # type: ignore[no-untyped-def]
            for i in prange(new.shape[0]):
                best, at = np.float32(-1), -1
                for j in range(known.shape[0]):
                    s = np.float32(0)
                    for f in range(4):
                        if new[i, f] == known[j, f]:
                            s += weight[f]
                    if s > best:
                        best, at = s, j
                score[i] = best
                match[i] = at

        run = self._compiled(link)
        count = a["new_records"].shape[0]
        score, match = np.empty(count, np.float32), np.empty(count, np.int32)
        args = (a["new_records"], a["known"], a["weight"], score, match)
        return lambda: (run(*args), {"score": score, "match": match})[1]

    def histogram(self, w: Workload, a: Arrays) -> Call:
        prange = self.numba.prange
        parts = self.numba.get_num_threads()

        def count(data, partial):  # type: ignore[no-untyped-def]
            for t in prange(partial.shape[0]):
                partial[t, :] = 0
                size = data.size // partial.shape[0]
                for i in range(t * size, data.size if t == partial.shape[0] - 1 else (t + 1) * size):
                    partial[t, data[i]] += 1

        run = self._compiled(count)
        partial = np.empty((parts, 256), np.int32)
        return lambda: (run(a["data"], partial), {"count": partial.sum(axis=0)})[1]
