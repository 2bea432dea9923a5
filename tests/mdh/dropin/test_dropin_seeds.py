"""Drop-ins in C of seeded programs leave the bytes that the programs leave, also where arrays overlap."""

from __future__ import annotations

import ctypes
import re
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
    """Return memory, and arrays in it that share elements with others of their type, or lie beside them.

    None overlaps one of another type: which of two such accesses comes first is the compiler's to choose.
    """
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
            if any(overlap(block, start, array, one) for one in placed.values() if one.dtype != array.dtype):
                start = end
        placed[name] = block.view(np.uint8)[start : start + array.nbytes].view(array.dtype)
        placed[name] = placed[name].reshape(array.shape)
        placed[name][...] = array
        end = max(end, -(-(start + array.nbytes) // 8) * 8)
    return block, placed


def overlap(block: Any, start: int, array: Any, other: Any) -> bool:
    """Return whether an array at a byte of the block would share bytes with another in it."""
    first = other.ctypes.data - block.ctypes.data
    return bool(start < first + other.nbytes and first < start + array.nbytes)


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


def replaced_by(program: seeded_c.SeededProgram, folder: Path) -> Path:
    """Return the folder of a program's drop-in."""
    (folder / "kernel.c").write_text(program.text)
    drop_in(folder / "kernel.c", target="c").write(folder / "out")
    return folder / "out"


def differing(program: seeded_c.SeededProgram, folder: Path) -> list[int]:
    """Return the trials in which a drop-in leaves other bytes than its program."""
    original = built(folder, "kernel.c")
    replaced = built(folder / "out", "kernel.c", "polyloom_loops.c")
    return [n for n in range(9) if left(replaced, program, n) != left(original, program, n)]


def compare(seed: int, folder: Path) -> None:
    program = seeded_c.program(seed)
    replaced_by(program, folder)
    assert not differing(program, folder), seed


def test_a_seeded_program_with_and_without_the_check_for_overlap(tmp_path: Path) -> None:
    program = seeded_c.program(10)
    loops = replaced_by(program, tmp_path) / "polyloom_loops.c"
    assert not differing(program, tmp_path)
    unchecked = re.sub(r"!are_(few_)?apart\(", r"0 && \g<0>", loops.read_text())
    assert unchecked != loops.read_text()
    again = tmp_path / "again"  # a library is loaded once under one name
    again.mkdir()
    replaced_by(program, again)
    (again / "out" / "polyloom_loops.c").write_text(unchecked)
    assert differing(program, again)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_seeded_programs(seed: int, tmp_path: Path) -> None:
    compare(seed, tmp_path)
