"""Kernels that are built as one program compute what each of them says, whatever their names are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from polyloom.diagnostics import PolyloomError
from polyloom.mdh.device.devices import OpenDevice, choose_device, open_device
from polyloom.mdh.lowering.launch import Kernel
from polyloom.mdh.print.kernel_source import UNCONTRACTED
from polyloom.mdh.runtime import build
from polyloom.mdh.runtime.build import build_kernels
from polyloom.mdh.runtime.joint_source import joint_sources
from polyloom.polyhedra.loops.tree import Number

HELPED = """static inline int helper(int a)
{{
    return a * {factor};
}}

__kernel void {name}(__global int *x)
{{
    x[0] = helper(x[0]) + 1;
}}
"""


def kernel(name: str, factor: int) -> Kernel:
    source = HELPED.format(name=name, factor=factor)
    return Kernel(source=source, name=name, arguments=(), global_size=(Number(1),))


def other(source: str) -> Kernel:
    return Kernel(source=source, name="other", arguments=(), global_size=(Number(1),))


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The sources of the programs that were built."""
    sources: list[str] = []
    right = build._program

    def noting(device: OpenDevice, source: str, options: Any) -> Any:
        sources.append(source)
        return right(device, source, options)

    monkeypatch.setattr(build, "_program", noting)
    return sources


def results(kernels: list[Kernel]) -> list[int]:
    """Return what each kernel makes of 1."""
    import pyopencl as cl

    device = open_device(choose_device())
    found = []
    for made in build_kernels(device, kernels):
        x = np.ones(1, np.int32)
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        buffer = cl.Buffer(device.context, flags, hostbuf=x)
        made.set_args(buffer)
        cl.enqueue_nd_range_kernel(device.queue, made, (1,), None)
        cl.enqueue_copy(device.queue, x, buffer)
        found.append(int(x[0]))
    return found


def test_functions_of_the_same_name_are_those_of_their_kernel(programs: list[str]) -> None:
    kernels = [kernel("f", 2), kernel("g", 3), kernel("f", 5), kernel("helper_of", 7), kernel("f", 2)]
    assert results(kernels) == [3, 4, 6, 8, 3]
    assert len(programs) == 1


def test_a_kernel_and_a_function_of_one_name(programs: list[str]) -> None:
    named = replace(other("__kernel void helper(__global int *x) { x[0] = 9; }"), name="helper")
    assert results([kernel("f", 2), kernel("f_in_1", 3), named]) == [3, 4, 9]
    assert len(programs) == 1


@pytest.mark.slow
@pytest.mark.ci
def test_what_cannot_be_together_is_built_apart(programs: list[str]) -> None:
    """Two types of one name: no function, which is all that is renamed."""
    text = "typedef struct {{ int v[{}]; }} T;\n__kernel void other(__global int *x) {{ x[0] = sizeof(T); }}"
    types = [other(text.format(n)) for n in (1, 2)]
    assert results([kernel("f", 2), *types]) == [3, 4, 8]
    assert len(programs) == 4


def test_contraction_and_options_are_those_of_each_kernel() -> None:
    plain, apart = kernel("f", 2), other(UNCONTRACTED + "__kernel void other(__global int *x) { x[0] = 4; }")
    fast = replace(plain, options=("-w",))
    found = joint_sources([plain, apart, fast, kernel("g", 3)])
    assert [(joint.options, sorted(joint.names)) for joint in found] == [
        ((), [0, 3]),
        ((), [1]),
        (("-w",), [2]),
    ]
    assert [UNCONTRACTED in joint.source for joint in found] == [False, True, False]


def test_the_kernel_that_is_refused_is_named() -> None:
    wrong = other("__kernel void other(__global int *x) { x[0] = what; }")
    with pytest.raises(PolyloomError) as raised:
        build_kernels(open_device(choose_device()), [kernel("f", 2), wrong])
    (diagnostic,) = raised.value.diagnostics
    assert diagnostic.code == "device-build" and "`other`" in diagnostic.message
