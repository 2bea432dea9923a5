"""CUDA's driver as a library of this process, by ctypes: nothing is linked, nothing is installed by pip.

Source: NVIDIA, CUDA Driver API. Every function returns 0 or the number of an error, which is raised.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from ctypes import POINTER, c_char_p, c_float, c_int, c_size_t, c_uint, c_uint64, c_void_p
from functools import cache
from typing import Any

VARIABLE = "POLYLOOM_CUDA"
"""The variable of the environment that names the driver's library."""

_NAMES = (
    "libcuda.so.1",
    "libcuda.so",
    "/usr/lib/wsl/lib/libcuda.so.1",
    "/usr/local/nvidia/lib64/libcuda.so.1",
)

Pointer = c_uint64
"""To memory of the device."""

_P = POINTER
_FUNCTIONS: Mapping[str, tuple[Any, ...]] = {
    "cuInit": (c_uint,),
    "cuDriverGetVersion": (_P(c_int),),
    "cuDeviceGetCount": (_P(c_int),),
    "cuDeviceGet": (_P(c_int), c_int),
    "cuDeviceGetName": (c_char_p, c_int, c_int),
    "cuDeviceTotalMem_v2": (_P(c_size_t), c_int),
    "cuDeviceGetAttribute": (_P(c_int), c_int, c_int),
    "cuDevicePrimaryCtxRetain": (_P(c_void_p), c_int),
    "cuCtxSetCurrent": (c_void_p,),
    "cuCtxSynchronize": (),
    "cuMemAlloc_v2": (_P(Pointer), c_size_t),
    "cuMemFree_v2": (Pointer,),
    "cuMemcpyHtoD_v2": (Pointer, c_void_p, c_size_t),
    "cuMemcpyDtoH_v2": (c_void_p, Pointer, c_size_t),
    "cuMemcpyDtoDAsync_v2": (Pointer, Pointer, c_size_t, c_void_p),
    "cuModuleLoadData": (_P(c_void_p), c_char_p),
    "cuModuleUnload": (c_void_p,),
    "cuModuleGetFunction": (_P(c_void_p), c_void_p, c_char_p),
    "cuFuncGetAttribute": (_P(c_int), c_int, c_void_p),
    "cuLaunchKernel": (c_void_p, *(c_uint,) * 6, c_uint, c_void_p, _P(c_void_p), _P(c_void_p)),
    "cuEventCreate": (_P(c_void_p), c_uint),
    "cuEventRecord": (c_void_p, c_void_p),
    "cuEventElapsedTime": (_P(c_float), c_void_p, c_void_p),
    "cuEventDestroy_v2": (c_void_p,),
}


class CudaError(RuntimeError):
    """A function of the driver that failed: ``name`` as CUDA calls the error."""

    def __init__(self, function: str, name: str, text: str) -> None:
        super().__init__(f"{function}: {name}, {text}")
        self.name = name


class Library:
    """The driver's functions: ``call("cuInit", 0)``. Errors: OSError where it cannot be loaded."""

    def __init__(self, path: str) -> None:
        self._library = ctypes.CDLL(path)
        for name, types in _FUNCTIONS.items():
            function = getattr(self._library, name, None)
            if function is None:
                raise OSError(f"{path} has no {name}: the driver is too old")
            function.argtypes, function.restype = types, c_int

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function. Errors: CudaError."""
        code = getattr(self._library, name)(*arguments)
        if code:
            raise CudaError(name, self._said("cuGetErrorName", code), self._said("cuGetErrorString", code))

    def _said(self, function: str, code: int) -> str:
        text = c_char_p()
        getattr(self._library, function)(c_int(code), ctypes.byref(text))
        return text.value.decode(errors="replace") if text.value else f"error {code}"

    def number(self, name: str, *arguments: Any) -> int:
        """Call a function whose first argument is where it leaves an ``int``."""
        found = c_int()
        self.call(name, ctypes.byref(found), *arguments)
        return found.value

    def handle(self, name: str, *arguments: Any) -> c_void_p:
        """Call a function whose first argument is where it leaves what it makes."""
        found = c_void_p()
        self.call(name, ctypes.byref(found), *arguments)
        return found


def library() -> Library | str:
    """Return the driver, once it has started; or why there is none, or none that finds a GPU."""
    return _library(os.environ.get(VARIABLE, ""), os.getpid())


@cache
def _library(named: str, process: int) -> Library | str:
    reasons = []
    for name in (named,) if named else _NAMES:
        try:
            found = Library(name)
        except OSError as fault:
            reasons.append(str(fault))
            continue
        try:
            found.call("cuInit", 0)
        except CudaError as fault:
            return str(fault)
        return found
    return reasons[0]
