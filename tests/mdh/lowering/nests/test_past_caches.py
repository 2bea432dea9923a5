"""Which results are stored past the caches; that they are right is seen where all of them are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from c_host_programs import host_programs_of
from polyloom.ir.host import HostProgram, MdHom
from polyloom.mdh.compiled import CompiledProgram
from polyloom.mdh.device.devices import DeviceModel
from polyloom.mdh.lowering.nests import past_caches
from polyloom.mdh.native.device import choose, opened
from polyloom.mdh.native.execution import function_of
from polyloom.mdh.print.c_source import c_source
from polyloom.mdh.schedule.choice import one_kernel_schedule
from polyloom.mdh.schedule.schedules import Caching, Memory, Schedule
from polyloom.mdh.tuning.schedule_lookup import TunedEmitter


def program_of(head: str, loops: str) -> HostProgram:
    (found,) = host_programs_of(f"void f({head})\n{{\n#pragma scop\n{loops}\n#pragma endscop\n}}\n")
    return found


def streamed(
    head: str, loops: str, caches: tuple[int, ...] = (1024, 8192), inputs: tuple[Caching, ...] = ()
) -> frozenset[str]:
    """Return what is stored past the caches, and see that the text says so, and waits for it."""
    model = choose("native", threads=2)

    def schedule(hom: MdHom, program: HostProgram, device: DeviceModel) -> Schedule:
        found = one_kernel_schedule(hom, program.by_name, device)
        return replace(found, inputs=inputs or found.inputs)

    function = function_of(program_of(head, loops), schedule, model)
    found = past_caches.past_caches(function, caches)
    text = c_source(found)
    assert ("stream_float32x" in text) == ("streamed_is_there();\n}" in text) == bool(found.streamed)
    return found.streamed


SUM = "for (int i = 0; i < 4096; i++) c[i] = a[i] + {b}[i];"
HEAD = "const float a[4096], const float b[4096], float c[4096]"


def test_large_results_of_maps() -> None:
    assert streamed(HEAD, SUM.format(b="b")) == {"c"}


@pytest.mark.parametrize("caches", [(), (1024, 1 << 20)])
def test_not_where_caches_keep_them(caches: tuple[int, ...]) -> None:
    assert streamed(HEAD, SUM.format(b="b"), caches) == frozenset()


def test_not_what_is_read_as_well() -> None:
    assert streamed(HEAD, SUM.format(b="c")) == frozenset()


def test_through_copies_of_inputs() -> None:
    copied = (Caching(Memory.LOCAL),) * 2
    assert streamed(HEAD, SUM.format(b="b"), inputs=copied) == {"c"}


def test_not_totals() -> None:
    head = "const float a[4100], const float w[5], float c[4096]"
    loops = (
        "for (int i = 0; i < 4096; i++) { c[i] = 0; for (int k = 0; k < 5; k++) c[i] += w[k] * a[i + k]; }"
    )
    assert streamed(head, loops) == frozenset()


def test_not_elements_that_lie_apart() -> None:
    assert (
        streamed("const float a[4096], float c[8192]", "for (int i = 0; i < 4096; i++) c[2 * i] = a[i];")
        == set()
    )


def test_not_of_open_sizes() -> None:
    loops = "for (int i = 0; i < n; i++) c[i] = a[i] + 1;"
    assert streamed("int n, const float a[n], float c[n]", loops) == frozenset()


@pytest.mark.parametrize(
    ("kind", "behind"),
    [("float", 0), ("float", 4), ("float", 16), ("double", 16), ("unsigned char", 16), ("short", 16)],
)
def test_results_are_there(monkeypatch: pytest.MonkeyPatch, kind: str, behind: int) -> None:
    """``behind``: bytes behind a line at which the result begins; the last vectors are not whole ones."""
    monkeypatch.setattr(past_caches, "PART_OF_CACHE", 1 << 60)
    n, head = 70003, f"const {kind} a[70003], {kind} c[70003]"
    program = program_of(head, f"for (int i = 0; i < {n}; i++) c[i] = a[i] * 3 + i % 5;")
    dtype: Any = {"unsigned char": np.uint8, "short": np.int16, "float": np.float32, "double": np.float64}[
        kind
    ]
    a = (np.arange(n) % 31).astype(dtype)
    room = np.zeros(n * a.itemsize + 128, np.uint8)
    start = -room.ctypes.data % 64 + behind
    c = room[start : start + n * a.itemsize].view(dtype)
    CompiledProgram(program, opened(choose("native", threads=2)), TunedEmitter()).run(a=a, c=c)
    np.testing.assert_array_equal(c, (a.astype(np.int64) * 3 + np.arange(n) % 5).astype(dtype))
    assert not room[:start].any() and not room[start + c.nbytes :].any()


def test_two_results_of_one_loop() -> None:
    head = "const float a[4096], float c[4096], float d[4096]"
    assert streamed(head, "for (int i = 0; i < 4096; i++) { c[i] = a[i] + 1; d[i] = a[i] * 2; }") == {
        "c",
        "d",
    }
