"""loopy with schedules as in its tutorial, on an OpenCL device; times are those of the call."""

from __future__ import annotations

from typing import Any

import numpy as np
from contender import Call, Contender
from workloads import Arrays, Workload


class Peer(Contender):
    def load(self) -> None:
        from polyloom.mdh.device.devices import choose_device, open_device

        device = open_device(choose_device(self.argument))
        import loopy
        import pyopencl.array

        self.loopy, self.array, self.device = loopy, pyopencl.array, device

    def _kernel(self, domain: str, body: str, a: Arrays, **sizes: int) -> Any:
        lp = self.loopy
        data = [lp.GlobalArg(n, v.dtype, v.shape) for n, v in a.items()]
        kernel = lp.make_kernel(domain, body, [*data, "..."], lang_version=(2018, 2))
        return lp.fix_parameters(kernel, **sizes) if sizes else kernel

    def _ready(self, kernel: Any, a: Arrays, out: str) -> Call:
        queue = self.device.queue
        given = {name: self.array.to_device(queue, array) for name, array in a.items()}
        run = kernel.executor(self.device.context)
        _, first = run(queue, **given)
        (results,) = first
        given[out] = results

        def call() -> Any:
            event, _ = run(queue, **given)
            event.wait()
            return lambda: {out: results.get()}

        return call

    def matmul(self, w: Workload, a: Arrays) -> Call:
        lp, s = self.loopy, w.sizes
        domain = f"{{[i,j,k]: 0<=i<{s['M']} and 0<=j<{s['N']} and 0<=k<{s['K']}}}"
        kernel = self._kernel(domain, "C[i,j] = sum(k, A[i,k] * B[k,j])", a)
        kernel = lp.split_iname(kernel, "i", 8, outer_tag="g.1", inner_tag="unr", slabs=(0, 1))
        kernel = lp.split_iname(kernel, "j", 16, outer_tag="g.0", inner_tag="l.0", slabs=(0, 1))
        return self._ready(kernel, a, "C")

    def gaussian(self, w: Workload, a: Arrays) -> Call:
        lp, s = self.loopy, w.sizes
        domain = f"{{[i,j,r,s]: 0<=i<{s['H']} and 0<=j<{s['W']} and 0<=r,s<5}}"
        body = "out[i,j] = sum((r,s), image[i+r,j+s] * filter[r,s])"
        kernel = self._kernel(domain, body, a)
        kernel = lp.split_iname(kernel, "j", 256, outer_tag="g.0", inner_tag="l.0")
        kernel = lp.tag_inames(kernel, {"i": "g.1", "r": "unr", "s": "unr"})
        return self._ready(kernel, a, "out")

    def matvec(self, w: Workload, a: Arrays) -> Call:
        lp, s = self.loopy, w.sizes
        domain = f"{{[i,j]: 0<=i<{s['M']} and 0<=j<{s['N']}}}"
        kernel = self._kernel(domain, "y[i] = sum(j, A[i,j] * x[j])", a)
        kernel = lp.split_iname(kernel, "i", 16, outer_tag="g.0", inner_tag="l.0")
        return self._ready(kernel, a, "y")

    def jacobi3d(self, w: Workload, a: Arrays) -> Call:
        lp, n = self.loopy, w.sizes["N"]
        a = {"inp": a["in"]}
        body = (
            "out[i,j,k] = 0.4f * inp[i+1,j+1,k+1] + 0.1f * (inp[i,j+1,k+1] + inp[i+2,j+1,k+1]"
            " + inp[i+1,j,k+1] + inp[i+1,j+2,k+1] + inp[i+1,j+1,k] + inp[i+1,j+1,k+2])"
        ).replace("f ", " ")
        kernel = self._kernel(f"{{[i,j,k]: 0<=i,j,k<{n}}}", body, a)
        kernel = lp.add_dtypes(kernel, {"out": np.float32})
        kernel = lp.split_iname(kernel, "k", 64, outer_tag="g.0", inner_tag="l.0")
        kernel = lp.tag_inames(kernel, {"i": "g.2", "j": "g.1"})
        return self._ready(kernel, a, "out")
