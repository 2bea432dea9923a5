"""PyTorch on the CPU: oneDNN's convolutions in the layout that ``argument`` names, MKL's products."""

from __future__ import annotations

from typing import Any

import numpy as np
from contender import Call, Contender, Missing
from workloads import Arrays, Workload


class Peer(Contender):
    def load(self) -> None:
        import torch

        self.torch = torch
        torch.set_grad_enabled(False)

    def _only_plain(self) -> None:
        if self.argument != "nchw":
            raise Missing("measured under the other layout")

    def _tensors(self, a: Arrays) -> dict[str, Any]:
        return {name: self.torch.from_numpy(array) for name, array in a.items()}

    def matmul(self, w: Workload, a: Arrays) -> Call:
        self._only_plain()
        t = self._tensors(a)
        out = self.torch.empty(a["A"].shape[0], a["B"].shape[1])
        return lambda: {"C": self.torch.matmul(t["A"], t["B"], out=out)}

    def matmul_transposed(self, w: Workload, a: Arrays) -> Call:
        self._only_plain()
        t = self._tensors(a)
        out = self.torch.empty(a["A"].shape[1], a["B"].shape[1])
        return lambda: {"C": self.torch.matmul(t["A"].T, t["B"], out=out)}

    def batched_matmul(self, w: Workload, a: Arrays) -> Call:
        self._only_plain()
        t = self._tensors(a)
        out = self.torch.empty(*a["A"].shape[:2], a["B"].shape[2])
        return lambda: {"C": self.torch.bmm(t["A"], t["B"], out=out)}

    def dot(self, w: Workload, a: Arrays) -> Call:
        self._only_plain()
        t = self._tensors(a)
        return lambda: {"sum": self.torch.dot(t["x"], t["y"]).reshape(1)}

    def matvec(self, w: Workload, a: Arrays) -> Call:
        self._only_plain()
        t = self._tensors(a)
        return lambda: {"y": self.torch.mv(t["A"], t["x"])}

    def ccsd_t(self, w: Workload, a: Arrays) -> Call:
        self._only_plain()
        t = self._tensors(a)
        return lambda: {"Z": self.torch.einsum("gdab,efgc->abcdef", t["X"], t["Y"]).contiguous()}

    def scan(self, w: Workload, a: Arrays) -> Call:
        self._only_plain()
        t = self._tensors(a)
        return lambda: {"y": self.torch.cumsum(t["x"], 0)}

    def multi_channel_convolution(self, w: Workload, a: Arrays) -> Call:
        image = a["image"].transpose(0, 3, 1, 2)
        filter_ = a["filter"].transpose(0, 3, 1, 2)
        return self._convolution(image, filter_, lambda out: {"out": out.transpose(0, 2, 3, 1)})

    def gaussian(self, w: Workload, a: Arrays) -> Call:
        image, filter_ = a["image"][None, None], a["filter"][None, None]
        return self._convolution(image, filter_, lambda out: {"out": out[0, 0]})

    def _convolution(self, image: Any, filter_: Any, results: Any) -> Call:
        torch = self.torch
        x = torch.from_numpy(np.ascontiguousarray(image))
        y = torch.from_numpy(np.ascontiguousarray(filter_))
        if self.argument == "nhwc":
            x, y = (t.to(memory_format=torch.channels_last) for t in (x, y))
        if self.argument == "blocked":
            x, y = x.to_mkldnn(), self._reordered(y, list(x.shape))
        convolution = torch.nn.functional.conv2d

        def call() -> Any:
            out = convolution(x, y)
            return lambda: results((out.to_dense() if out.is_mkldnn else out).numpy())

        return call

    def _reordered(self, y: Any, shape: list[int]) -> Any:
        reorder = self.torch._C._nn.mkldnn_reorder_conv2d_weight
        return reorder(y.to_mkldnn(), (0, 0), (1, 1), (1, 1), 1, shape)
