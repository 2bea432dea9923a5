"""Drop-ins in C of seeded programs leave the bytes that the programs leave, also where arrays overlap."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import seeded_c
from polyloom import drop_in

FLAGS = ("-O1", "-fwrapv", "-ffp-contract=off", "-w", "-fopenmp", "-shared", "-fPIC")
SEEDS = range(100)
SIZES = ((0, 3), (1, 0), (8, 6))


def built(folder: Path, *files: str) -> ctypes.CDLL:
    subprocess.run(["gcc", *FLAGS, *files, "-o", "kernel.so", "-lm"], cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "kernel.so"))


def in_one_block(arrays: dict[str, Any], random: Random) -> tuple[Any, dict[str, Any]]:
    """Return memory, and arrays in it that share elements with others of their type, or lie beside them."""
    block = np.zeros(sum(array.nbytes for array in arrays.values()) // 8 + 512)
    placed: dict[str, Any] = {}
    end = 0
    for name in random.sample(list(arrays), len(arrays)):
        array, start = arrays[name], end
        others = [other for other in placed.values() if other.dtype == array.dtype]
        if others and random.random() < 0.6:
            other = random.choice(others)
            shift = random.choice((0, 8, 16, -8, 80, other.nbytes - 8))
            start = max(0, other.ctypes.data - block.ctypes.data + shift)
        placed[name] = block.view(np.uint8)[start : start + array.nbytes].view(array.dtype)
        placed[name] = placed[name].reshape(array.shape)
        placed[name][...] = array
        end = max(end, -(-(start + array.nbytes) // 8) * 8)
    return block, placed


def left(library: ctypes.CDLL, program: seeded_c.SeededProgram, trial: int) -> bytes:
    """Return the memory after a call; in the first trials no two arrays overlap."""
    if trial == 0:
        arrays = {name: array.copy() for name, array in program.arrays.items()}
    else:
        block, arrays = in_one_block(program.arrays, Random(trial))
    sizes = program.sizes.values() if trial < len(SIZES) else SIZES[trial % len(SIZES)]
    pointers = [arrays[name].ctypes.data_as(ctypes.c_void_p) for name in program.arrays]
    getattr(library, program.name)(*map(ctypes.c_int, sizes), *pointers)
    return b"".join(a.tobytes() for a in arrays.values()) if trial == 0 else block.tobytes()


def compare(seed: int, folder: Path) -> None:
    program = seeded_c.program(seed)
    (folder / "kernel.c").write_text(program.text)
    drop_in(folder / "kernel.c", target="c").write(folder / "out")
    original = built(folder, "kernel.c")
    replaced = built(folder / "out", "kernel.c", "polyloom_loops.c")
    for trial in range(9):
        assert left(replaced, program, trial) == left(original, program, trial), (seed, trial)


@pytest.mark.parametrize("seed", [5])
def test_a_seeded_program(seed: int, tmp_path: Path) -> None:
    """Without the check for overlap, this one differs."""
    compare(seed, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_seeded_programs(seed: int, tmp_path: Path) -> None:
    compare(seed, tmp_path)
