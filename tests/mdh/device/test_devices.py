"""Devices: what is known of them, how one is chosen, drivers that the loader misses, PoCL's repair."""

from __future__ import annotations

import os
import pickle
import struct
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from polyloom.diagnostics import PolyloomError
from polyloom.mdh.device import devices, drivers
from polyloom.mdh.device.devices import (
    DeviceKind,
    DeviceModel,
    choose_device,
    find_devices,
    open_device,
    processor_caches,
    processor_ways,
)
from polyloom.mdh.device.drivers import Surroundings, missing_drivers, show_drivers_to_loader
from polyloom.mdh.device.pocl import (
    _PROCESSORS,
    keep_threads_apart,
    let_linker_be_found,
    name_field,
    needs_repair,
    processor_flags,
    processor_for,
    repair,
    stored_name,
)
from polyloom.mdh.lowering.launch import Kernel
from polyloom.mdh.runtime.build import build_kernels, first_error
from polyloom.polyhedra.loops.tree import Number


def code(raised: pytest.ExceptionInfo[PolyloomError]) -> str:
    return raised.value.diagnostics[0].code


def test_there_is_a_device_that_computes() -> None:
    model = choose_device()
    assert model == find_devices()[0]
    assert model.compute_units > 0 and model.local_memory > 0 and model.vector_bytes >= 4
    assert pickle.loads(pickle.dumps(model)) == model
    source = "__kernel void k(__global int *a) { a[0] = 1; }"
    build_kernels(
        open_device(model), [Kernel(source=source, name="k", arguments=(), global_size=(Number(1),))]
    )


def test_pocl_is_not_asked_to_build_without_a_linker(monkeypatch: pytest.MonkeyPatch) -> None:
    pocl = next((m for m in find_devices() if m.platform == "Portable Computing Language"), None)
    if pocl is None:
        pytest.skip("PoCL is not here")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(PolyloomError) as raised:
        devices._opened.__wrapped__(pocl.index)
    assert code(raised) == "device-linker"


def test_of_two_devices_of_one_name_each_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    (model, device), *_ = devices._found()
    second, elsewhere = replace(model, index=1), replace(model, index=7)
    monkeypatch.setattr(devices, "_found", lambda: ((model, device), (second, device)))
    monkeypatch.setattr(devices, "_opened", devices._opened.__wrapped__)
    assert [open_device(each).model.index for each in (model, second, elsewhere)] == [0, 1, 0]


@pytest.mark.slow
@pytest.mark.ci
def test_no_driver_is_loaded_by_an_import() -> None:
    modules = "polyloom.api.opencl, polyloom.mdh.runtime.host_program"
    text = f"import {modules}, sys; sys.exit('pyopencl' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", text], check=False).returncode == 0


def models() -> tuple[DeviceModel, ...]:
    first = replace(find_devices()[0], name="pthread-EPYC", platform="Portable Computing Language")
    second = replace(first, index=1, name="NVIDIA H200", platform="NVIDIA CUDA", kind=DeviceKind.GPU)
    third = replace(first, index=2, name="Intel 3", platform="Intel(R) OpenCL")
    return first, second, third


@pytest.mark.parametrize(
    ("wanted", "index"),
    [(None, 0), ("1", 1), ("gpu", 1), ("cpu", 0), ("h200", 1), ("Intel(R)", 2), (" Portable ", 0), ("2", 2)],
)
def test_choosing(monkeypatch: pytest.MonkeyPatch, wanted: str | None, index: int) -> None:
    monkeypatch.setattr(devices, "find_devices", models)
    assert choose_device(wanted).index == index


@pytest.mark.parametrize("wanted", ["7", "amd", "", "other"])
def test_a_device_that_is_not_there(monkeypatch: pytest.MonkeyPatch, wanted: str) -> None:
    monkeypatch.setattr(devices, "find_devices", models)
    with pytest.raises(PolyloomError) as raised:
        choose_device(wanted)
    assert code(raised) == "device-missing"
    assert raised.value.diagnostics[0].notes[1] == "1: NVIDIA H200 (gpu, NVIDIA CUDA)"


def test_no_device_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "find_devices", lambda: ())
    with pytest.raises(PolyloomError) as raised:
        choose_device()
    assert code(raised) == "device-none"


def test_the_driver_refuses_a_kernel() -> None:
    refused = Kernel(
        source="__kernel void k(__global int *a) { a[0] = what; }",
        name="k",
        arguments=(),
        global_size=(Number(1),),
    )
    with pytest.raises(PolyloomError) as raised:
        build_kernels(open_device(choose_device()), [refused])
    assert code(raised) == "device-build"
    assert "what" in raised.value.diagnostics[0].notes[0]


@pytest.mark.parametrize(
    ("log", "line"),
    [
        ("warning: x\n<source>:3:5: error: use of `y`\n  y\nerror: z", "<source>:3:5: error: use of `y`"),
        ("\n  ptxas fatal\n", "ptxas fatal"),
        ("", "no reason is given"),
    ],
)
def test_the_first_error_of_a_log(log: str, line: str) -> None:
    assert first_error(log) == line


def test_cache_sizes(tmp_path: Path) -> None:
    for index, (level, kind, size, ways) in enumerate(
        [(1, "Data", "48K", 12), (1, "Instruction", "32K", 8), (2, "Unified", "2M", 16)]
    ):
        folder = tmp_path / f"index{index}"
        folder.mkdir()
        for name, text in (
            ("level", str(level)),
            ("type", kind),
            ("size", size),
            ("ways_of_associativity", str(ways)),
        ):
            (folder / name).write_text(text + "\n")
    assert processor_caches(tmp_path) == (48 * 2**10, 2 * 2**20)
    assert processor_ways(tmp_path) == (12, 16)
    assert processor_caches(tmp_path / "none") == processor_ways(tmp_path / "none") == ()
    (tmp_path / "index2" / "ways_of_associativity").write_text("0\n")
    assert processor_ways(tmp_path) == ()  # virtual machines do not say


# -- drivers


def test_drivers_that_no_file_names(tmp_path: Path) -> None:
    system, library = tmp_path / "vendors", tmp_path / "libintelocl.so"
    system.mkdir()
    (system / "pocl.icd").write_text("libpocl.so\n")
    (tmp_path / "libnvidia-opencl.so.1").touch()
    around = Surroundings(system, (tmp_path / "nowhere", tmp_path), library)
    nvidia = str(tmp_path / "libnvidia-opencl.so.1")
    assert missing_drivers(around) == {"polyloom-intel.icd": str(library), "polyloom-nvidia.icd": nvidia}
    (system / "nvidia.icd").write_text("libnvidia-opencl.so.1\n")
    (system / "intel.icd").write_text(f"{library}\n")
    assert missing_drivers(around) == {}


def test_the_loader_is_shown_all_drivers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drivers, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.setenv(drivers.VARIABLE, "")
    monkeypatch.delenv(drivers.VARIABLE)
    system = tmp_path / "vendors"
    system.mkdir()
    (system / "pocl.icd").write_text("libpocl.so")
    folder = show_drivers_to_loader(Surroundings(system, (), tmp_path / "libintelocl.so"))
    assert folder is not None and drivers.os.environ[drivers.VARIABLE] == str(folder)
    assert {p.name for p in folder.iterdir()} == {"pocl.icd", "polyloom-intel.icd"}
    assert show_drivers_to_loader(Surroundings(system, (), tmp_path / "other.so")) is None  # it is set now


def test_nothing_is_done_where_nothing_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(drivers.VARIABLE, "")
    monkeypatch.delenv(drivers.VARIABLE)
    assert show_drivers_to_loader(Surroundings(tmp_path)) is None
    assert drivers.VARIABLE not in drivers.os.environ


def test_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = tmp_path / "file"
    blocked.touch()
    monkeypatch.setattr(drivers, "cache_folder", lambda: blocked)
    monkeypatch.setenv(drivers.VARIABLE, "")
    monkeypatch.delenv(drivers.VARIABLE)
    assert show_drivers_to_loader(Surroundings(tmp_path, (), tmp_path / "libintelocl.so")) is None


# -- PoCL on processors that it does not know

AVX2 = "sse4_1 ssse3 avx popcnt pclmulqdq avx2 fma bmi1 bmi2 abm movbe f16c"
AVX512 = f"{AVX2} avx512f avx512bw avx512cd avx512dq avx512vl adx clflushopt clwb"


@pytest.mark.parametrize(
    ("flags", "name"),
    [
        (AVX512, "skylake-avx512"),
        (AVX512.replace("avx512dq", ""), "haswell"),
        (AVX2, "haswell"),
        (AVX2.replace("avx2 fma", ""), "ivybridge"),
        ("avx popcnt pclmulqdq", "sandybridge"),
        ("sse4_1 ssse3", "penryn"),
        ("", "x86-64"),
    ],
)
def test_names_for_processors(flags: str, name: str) -> None:
    assert processor_for(frozenset(flags.split())) == name


def test_flags_of_this_processor(tmp_path: Path) -> None:
    text = tmp_path / "cpuinfo"
    text.write_text("processor\t: 0\nflags\t\t: fpu avx2 fma\nflags: other\n")
    assert processor_flags(text) == {"fpu", "avx2", "fma"}
    assert processor_flags(tmp_path / "none") == frozenset()


@pytest.mark.parametrize(
    ("cores", "before", "after"),
    [(range(os.cpu_count() or 1), None, "1"), (range(os.cpu_count() or 1), "0", "0"), ((9999,), None, None)],
)
def test_threads_stay_apart_where_all_cores_are_ours(
    cores: Iterable[int], before: str | None, after: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POCL_AFFINITY", before or "")
    if before is None:
        monkeypatch.delenv("POCL_AFFINITY")
    keep_threads_apart(frozenset(cores))
    assert os.environ.get("POCL_AFFINITY") == after


@pytest.mark.parametrize("given", [None, "", "/nowhere", "linker"])
def test_the_linker_is_found(given: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """PoCL ends the process where it finds no `ld`; a `PATH` that has one stays as it is."""
    (tmp_path / "ld").write_text("#!/bin/sh\n")
    (tmp_path / "ld").chmod(0o755)
    path = str(tmp_path) if given == "linker" else given
    monkeypatch.setenv("PATH", path or "")
    if path is None:
        monkeypatch.delenv("PATH")
    let_linker_be_found()
    added = {None: os.defpath, "": os.defpath, "/nowhere": f"/nowhere{os.pathsep}{os.defpath}"}
    assert os.environ["PATH"] == added.get(given, path)


def test_when_a_repair_is_needed() -> None:
    known = "OpenCL 3.0 PoCL HSTR: pthread-x86_64-unknown-linux-gnu-"
    wide = frozenset(_PROCESSORS[0][1].split())
    assert stored_name(known + "skylake \n") == "skylake"
    assert needs_repair(known + "generic", frozenset())
    assert needs_repair(known + "znver3", wide)
    assert not needs_repair(known + "znver3", wide - {"avx512f"})
    assert not needs_repair(known + "skylake", wide)
    assert not needs_repair("OpenCL 3.1 (Build 0)", wide)


class Memory:
    """A few bytes at chosen addresses; everything else cannot be read."""

    def __init__(self) -> None:
        self.parts: dict[int, bytes] = {}

    def text(self, address: int, text: bytes) -> int:
        self.parts[address] = text + b"\0"
        return address

    def structure(self, address: int, *pointers: int) -> int:
        self.parts[address] = struct.pack(f"<{len(pointers)}Q", *pointers)
        return address

    def read(self, address: int, count: int) -> bytes:
        return self.parts.get(address, b"")[:count]


def test_the_field_is_found_behind_the_triple() -> None:
    memory = Memory()
    triple, name = memory.text(0x9000, b"x86_64-unknown-linux-gnu"), memory.text(0xA000, b"generic")
    structure = memory.structure(0x8000, 1, 2**63, 0xDEAD0, triple, name, 0)
    assert name_field(structure, "generic", memory.read) == structure + 4 * 8


@pytest.mark.parametrize("order", ["no triple", "twice", "other name", "unreadable"])
def test_nothing_is_found_in_another_structure(order: str) -> None:
    memory = Memory()
    triple, name = memory.text(0x9000, b"x86_64-unknown-linux-gnu"), memory.text(0xA000, b"generic")
    zen = memory.text(0xB000, b"znver3")
    pointers = {
        "no triple": (zen, name),
        "twice": (triple, name, triple, name),
        "other name": (triple, zen),
        "unreadable": (),
    }
    assert name_field(memory.structure(0x8000, *pointers[order]), "generic", memory.read) is None


def test_a_wrong_address_is_no_crash() -> None:
    assert not repair(0, "generic", "haswell")
    assert not repair(2**64 - 8, "generic", "haswell")
