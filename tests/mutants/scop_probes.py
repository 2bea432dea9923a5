"""Probes of ``scop/`` that results do not show: what is proved of writes, and what is said of loops."""

from __future__ import annotations

from dataclasses import replace

import c_probes
import pytest
from forms import KERNELS, read

from polyloom.ir.host import Copy, Loop, Role
from polyloom.scop.lowering.written_elements import WrongWrites, check_written
from polyloom.scop.schedule.loop_verdicts import Verdict
from polyloom.scop.transform import host_program

VERDICTS = {
    "recurrence": [Verdict.SERIAL],
    "written_twice": [Verdict.SERIAL],
    "neighbours": [Verdict.PARALLEL],
    "swapped": [Verdict.PARALLEL],
    "every_other": [Verdict.PARALLEL],
    "difference": [Verdict.SERIAL],
    "sum_of_differences": [Verdict.REDUCTION],
    "product_of_matrices": [Verdict.PARALLEL, Verdict.PARALLEL, Verdict.REDUCTION],
    "wavefront": [Verdict.SERIAL, Verdict.SERIAL],
}


def verdicts() -> None:
    """What is said of each loop."""
    for name, wanted in VERDICTS.items():
        found = [loop.verdict for loop in host_program(read(c_probes.functions()[name])).loops]
        assert found == wanted, (name, found)


def lost_writes_are_seen() -> None:
    """A host program without one of its nodes writes fewer elements."""
    scop = read(c_probes.functions()["read_before_written"])
    program = host_program(scop).program
    check_written(scop, program)
    with pytest.raises(WrongWrites):
        check_written(scop, replace(program, body=program.body[:-1]))


def copies_are_made() -> None:
    """A statement that runs in parallel, and writes what it reads elsewhere, reads a copy."""
    body = host_program(read(c_probes.functions()["shifted_up"])).program.body
    assert any(isinstance(node, Copy) for node in body)


def split_alike() -> None:
    """Two statements under one condition are split alike, inside one host loop: it is kept in no array."""
    program = host_program(read((KERNELS / "paths_with_successors.c").read_text())).program
    (loop,) = program.body
    assert isinstance(loop, Loop)
    assert not any(isinstance(node, Loop) for node in loop.body)
    assert not any(b.role is Role.LOCAL for b in program.buffers)
