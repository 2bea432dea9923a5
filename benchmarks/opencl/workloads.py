"""What is measured: programs in C (kernels/), their sizes, data, right results, and how work is counted."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

NDArray = npt.NDArray[Any]
Arrays = dict[str, NDArray]

KERNELS = Path(__file__).parent / "kernels"


@dataclass(frozen=True)
class Workload:
    """``kernel``: the C file and function. ``sizes``: its macros. ``inputs``: array shapes by C name.

    ``flops`` and ``bytes``: arithmetic operations, and the least traffic with memory, of one execution.
    ``right``: the results in double precision from the inputs.
    """

    name: str
    title: str
    kernel: str
    sizes: dict[str, int]
    inputs: dict[str, tuple[int, ...]]
    flops: int
    bytes: int
    right: Callable[[Arrays], Arrays]
    paper: bool = False

    @property
    def written(self) -> int:
        """The bytes of ``bytes`` that are written."""
        size = 1 if self.kernel == "histogram" else 4
        return max(0, self.bytes - size * sum(math.prod(shape) for shape in self.inputs.values()))

    @property
    def source(self) -> Path:
        return KERNELS / f"{self.kernel}.c"

    def arrays(self) -> Arrays:
        """Return the inputs: the same in every process."""
        rng = np.random.default_rng(7)
        return {name: _made(self.kernel, name, shape, rng) for name, shape in self.inputs.items()}


def _made(kernel: str, name: str, shape: tuple[int, ...], rng: np.random.Generator) -> NDArray:
    if kernel == "histogram":
        return rng.integers(0, 256, shape, dtype=np.uint8)
    if kernel == "record_linkage" and name != "weight":
        return rng.integers(0, 50, shape, dtype=np.int32)
    if kernel == "record_linkage":
        return np.array([8, 4, 2, 1], np.float32)
    return (rng.random(shape, dtype=np.float32) - 0.5).astype(np.float32)


def tolerance(name: str, right: NDArray) -> float:
    """Return what may differ from the right result: none for integers, rounding for floats."""
    if right.dtype.kind in "iu":
        return 0.0
    scale = max(1.0, float(np.abs(right).max()))
    return (2e-3 if name in ("dot", "scan") else 1e-4) * scale


def _matmul(a: Arrays) -> Arrays:
    return {"C": a["A"].astype(np.float64) @ a["B"].astype(np.float64)}


def _matmul_transposed(a: Arrays) -> Arrays:
    return {"C": a["A"].T.astype(np.float64) @ a["B"].astype(np.float64)}


def _convolution(a: Arrays) -> Arrays:
    image, filter_ = a["image"].astype(np.float64), a["filter"].astype(np.float64)
    windows = np.lib.stride_tricks.sliding_window_view(image, filter_.shape[1:3], axis=(1, 2))
    return {"out": np.einsum("npqcrs,krsc->npqk", windows, filter_, optimize=True)}


def _gaussian(a: Arrays) -> Arrays:
    image, filter_ = a["image"].astype(np.float64), a["filter"].astype(np.float64)
    rows, columns = image.shape[0] - 4, image.shape[1] - 4
    parts = (filter_[r, s] * image[r : r + rows, s : s + columns] for r in range(5) for s in range(5))
    return {"out": sum(parts, np.zeros((rows, columns)))}


def _jacobi(a: Arrays) -> Arrays:
    x = a["in"].astype(np.float64)
    c = slice(1, -1)
    around = x[:-2, c, c] + x[2:, c, c] + x[c, :-2, c] + x[c, 2:, c] + x[c, c, :-2] + x[c, c, 2:]
    return {"out": np.float32(0.4) * x[c, c, c] + np.float32(0.1) * around}


def _dot(a: Arrays) -> Arrays:
    return {"sum": np.array([a["x"].astype(np.float64) @ a["y"].astype(np.float64)])}


def _matvec(a: Arrays) -> Arrays:
    return {"y": a["A"].astype(np.float64) @ a["x"].astype(np.float64)}


def _contraction(a: Arrays) -> Arrays:
    x, y = a["X"].astype(np.float64), a["Y"].astype(np.float64)
    return {"Z": np.einsum("gdab,efgc->abcdef", x, y, optimize=True)}


def _linkage(a: Arrays) -> Arrays:
    score = np.full(len(a["new_records"]), -1.0)
    match = np.full(len(score), -1, np.int32)
    for i, record in enumerate(a["new_records"]):
        found = ((a["known"] == record) * a["weight"]).sum(axis=1)
        match[i] = found.argmax()
        score[i] = found[match[i]]
    return {"score": score, "match": match}


def _histogram(a: Arrays) -> Arrays:
    return {"count": np.bincount(a["data"], minlength=256).astype(np.int32)}


def _scan(a: Arrays) -> Arrays:
    return {"y": np.cumsum(a["x"], dtype=np.float64)}


def _matmul_workload(name: str, title: str, m: int, n: int, k: int, paper: bool) -> Workload:
    moved = 4 * (m * k + k * n + m * n)
    shapes = {"A": (m, k), "B": (k, n)}
    return Workload(
        name, title, "matmul", {"M": m, "N": n, "K": k}, shapes, 2 * m * n * k, moved, _matmul, paper
    )


BIG = 1 << 24
MCC = {"N": 1, "K": 512, "P": 7, "Q": 7, "C": 512, "R": 3, "S": 3}
CCSD = {"NA": 24, "NB": 16, "NC": 16, "ND": 24, "NE": 16, "NF": 16, "NG": 24}
CCSD_OUT = 24 * 16 * 16 * 24 * 16 * 16

WORKLOADS = (
    _matmul_workload("matmul_rw", "MatMul 10 x 500 x 64", 10, 500, 64, True),
    _matmul_workload("matmul_pp", "MatMul 1024^3", 1024, 1024, 1024, True),
    Workload(
        "mcc_rw",
        "Multi-channel convolution 1, 512 -> 512, 7 x 7, 3 x 3",
        "multi_channel_convolution",
        MCC,
        {"image": (1, 9, 9, 512), "filter": (512, 3, 3, 512)},
        2 * 512 * 49 * 512 * 9,
        4 * (81 * 512 + 512 * 9 * 512 + 49 * 512),
        _convolution,
        True,
    ),
    Workload(
        "gaussian_pp",
        "Gaussian convolution 4096 x 4096, 5 x 5",
        "gaussian",
        {"H": 4096, "W": 4096},
        {"image": (4100, 4100), "filter": (5, 5)},
        2 * 25 * BIG,
        4 * (4100 * 4100 + BIG),
        _gaussian,
        True,
    ),
    Workload("dot", "Dot 2^24", "dot", {"N": BIG}, {"x": (BIG,), "y": (BIG,)}, 2 * BIG, 8 * BIG, _dot),
    Workload(
        "matvec",
        "MatVec 4096^2",
        "matvec",
        {"M": 4096, "N": 4096},
        {"A": (4096, 4096), "x": (4096,)},
        2 * BIG,
        4 * BIG,
        _matvec,
    ),
    Workload(
        "jacobi3d",
        "Jacobi3D 256^3, 7 points",
        "jacobi3d",
        {"N": 256},
        {"in": (258, 258, 258)},
        8 * BIG,
        4 * (258**3 + BIG),
        _jacobi,
    ),
    Workload(
        "batched_matmul",
        "Batched MatMul 16 x 10 x 500 x 64",
        "batched_matmul",
        {"L": 16, "M": 10, "N": 500, "K": 64},
        {"A": (16, 10, 64), "B": (16, 64, 500)},
        2 * 16 * 10 * 500 * 64,
        4 * 16 * (640 + 32000 + 5000),
        _matmul,
    ),
    Workload(
        "matmul_transposed",
        "MatMul^T 10 x 500 x 64",
        "matmul_transposed",
        {"M": 10, "N": 500, "K": 64},
        {"A": (64, 10), "B": (64, 500)},
        2 * 10 * 500 * 64,
        4 * (640 + 32000 + 5000),
        _matmul_transposed,
    ),
    Workload(
        "ccsd_t",
        "CCSD(T) abcdef-gdab-efgc",
        "ccsd_t",
        CCSD,
        {"X": (24, 24, 24, 16), "Y": (16, 16, 24, 16)},
        2 * CCSD_OUT * 24,
        4 * (24 * 24 * 24 * 16 + 16 * 16 * 24 * 16 + CCSD_OUT),
        _contraction,
    ),
    Workload(
        "record_linkage",
        "PRL 1024 new, 32768 known records",
        "record_linkage",
        {"N": 1024, "M": 32768},
        {"new_records": (1024, 4), "known": (32768, 4), "weight": (4,)},
        8 * 1024 * 32768,
        16 * (1024 + 32768) + 8 * 1024,
        _linkage,
    ),
    Workload(
        "histogram", "Histogram 2^24 bytes", "histogram", {"N": BIG}, {"data": (BIG,)}, BIG, BIG, _histogram
    ),
    Workload("scan", "Scan 2^24", "scan", {"N": BIG}, {"x": (BIG,)}, BIG, 8 * BIG, _scan),
)


def workload(name: str) -> Workload:
    """Return the workload called ``name``."""
    return next(each for each in WORKLOADS if each.name == name)
