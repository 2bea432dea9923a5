"""Libraries on a GPU of NVIDIA, arrays at home there: PyTorch (cuBLAS, cuDNN), CuPy (cuBLAS), Triton.

Times are those of the device, by its events around one call; ``call`` is the same from the host, until it is
done.
Single precision throughout: no TF32.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from contender import MOST, Call, Contender, Missing, Stage, times_of
from workloads import Arrays, Workload


class _OnGpu(Contender):
    """Has ``start`` and ``stop`` of a clock on the device, and waits for it."""

    def mark(self) -> Any:
        raise NotImplementedError

    def between(self, first: Any, last: Any) -> float:
        """Return seconds."""
        raise NotImplementedError

    def wait(self) -> None:
        raise NotImplementedError

    def visit(self, stage: Stage, seconds: float) -> dict[str, list[float]]:
        stage("visit")

        def once() -> None:
            self.call()
            self.wait()

        calls, device = times_of(once, seconds / 2), list[float]()
        end = time.perf_counter() + seconds / 2
        while len(device) < 2 or (time.perf_counter() < end and len(device) < MOST):
            first = self.mark()
            self.call()
            last = self.mark()
            self.wait()
            device.append(self.between(first, last))
        return {"call": calls, "device": device}


class Torch(_OnGpu):
    def load(self) -> None:
        import torch

        if not torch.cuda.is_available():
            raise Missing("PyTorch has no GPU")
        torch.set_grad_enabled(False)
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
        torch.backends.cudnn.benchmark = True
        self.torch = torch

    def mark(self) -> Any:
        event = self.torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def between(self, first: Any, last: Any) -> float:
        return float(first.elapsed_time(last)) * 1e-3

    def wait(self) -> None:
        self.torch.cuda.synchronize()

    def _there(self, a: Arrays) -> dict[str, Any]:
        return {name: self.torch.from_numpy(np.ascontiguousarray(array)).cuda() for name, array in a.items()}

    def _home(self, name: str, compute: Any) -> Call:
        def call() -> Any:
            found = compute()
            return lambda: {name: found.cpu().numpy()}

        return call

    def matmul(self, w: Workload, a: Arrays) -> Call:
        t = self._there(a)
        return self._home("C", lambda: t["A"] @ t["B"])

    def matmul_transposed(self, w: Workload, a: Arrays) -> Call:
        t = self._there(a)
        return self._home("C", lambda: t["A"].T @ t["B"])

    def batched_matmul(self, w: Workload, a: Arrays) -> Call:
        t = self._there(a)
        return self._home("C", lambda: self.torch.bmm(t["A"], t["B"]))

    def dot(self, w: Workload, a: Arrays) -> Call:
        t = self._there(a)
        return self._home("sum", lambda: self.torch.dot(t["x"], t["y"]).reshape(1))

    def matvec(self, w: Workload, a: Arrays) -> Call:
        t = self._there(a)
        return self._home("y", lambda: t["A"] @ t["x"])

    def ccsd_t(self, w: Workload, a: Arrays) -> Call:
        t = self._there(a)
        return self._home("Z", lambda: self.torch.einsum("gdab,efgc->abcdef", t["X"], t["Y"]).contiguous())

    def scan(self, w: Workload, a: Arrays) -> Call:
        t = self._there(a)
        return self._home("y", lambda: self.torch.cumsum(t["x"], 0))

    def histogram(self, w: Workload, a: Arrays) -> Call:
        t = self._there(a)
        return self._home("count", lambda: self.torch.bincount(t["data"], minlength=256))

    def multi_channel_convolution(self, w: Workload, a: Arrays) -> Call:
        t = self._there({name: array.transpose(0, 3, 1, 2) for name, array in a.items()})
        t = {name: each.to(memory_format=self.torch.channels_last) for name, each in t.items()}
        convolution = self.torch.nn.functional.conv2d
        return self._home(
            "out", lambda: convolution(t["image"], t["filter"]).permute(0, 2, 3, 1).contiguous()
        )

    def gaussian(self, w: Workload, a: Arrays) -> Call:
        t = self._there(a)
        image, filter_ = t["image"][None, None], t["filter"][None, None]
        return self._home("out", lambda: self.torch.nn.functional.conv2d(image, filter_)[0, 0])


class CuPy(_OnGpu):
    def load(self) -> None:
        import cupy

        self.cupy = cupy

    def mark(self) -> Any:
        event = self.cupy.cuda.Event()
        event.record()
        return event

    def between(self, first: Any, last: Any) -> float:
        return float(self.cupy.cuda.get_elapsed_time(first, last)) * 1e-3

    def wait(self) -> None:
        self.cupy.cuda.Device().synchronize()

    def _of(self, name: str, compute: Any) -> Call:
        def call() -> Any:
            found = compute()
            return lambda: {name: self.cupy.asnumpy(found)}

        return call

    def _there(self, a: Arrays) -> dict[str, Any]:
        return {name: self.cupy.asarray(array) for name, array in a.items()}

    def matmul(self, w: Workload, a: Arrays) -> Call:
        t = self._there(a)
        return self._of("C", lambda: t["A"] @ t["B"])

    def matmul_transposed(self, w: Workload, a: Arrays) -> Call:
        t = self._there(a)
        return self._of("C", lambda: t["A"].T @ t["B"])

    def batched_matmul(self, w: Workload, a: Arrays) -> Call:
        return self.matmul(w, a)

    def dot(self, w: Workload, a: Arrays) -> Call:
        t = self._there(a)
        return self._of("sum", lambda: self.cupy.dot(t["x"], t["y"]).reshape(1))

    def matvec(self, w: Workload, a: Arrays) -> Call:
        t = self._there(a)
        return self._of("y", lambda: t["A"] @ t["x"])

    def scan(self, w: Workload, a: Arrays) -> Call:
        t = self._there(a)
        return self._of("y", lambda: self.cupy.cumsum(t["x"]))

    def histogram(self, w: Workload, a: Arrays) -> Call:
        t = self._there(a)
        return self._of("count", lambda: self.cupy.bincount(t["data"], minlength=256))


class Triton(Torch):
    """The product of Triton's tutorial, by blocks that its tuner chooses; PyTorch for arrays and clocks."""

    def load(self) -> None:
        super().load()
        from triton_matmul import product

        self.product = product

    def prepare(self, stage: Stage, name: str) -> str:
        if not name.startswith("matmul") or "transposed" in name:
            return "has nothing for it"
        return super().prepare(stage, name)

    def matmul(self, w: Workload, a: Arrays) -> Call:
        t = self._there(a)
        return self._home("C", lambda: self.product(t["A"], t["B"]))
