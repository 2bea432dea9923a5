"""Made-up data to time and check an md_hom with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy.typing as npt

from polyloom.ir.expressions import Binary, BinaryOp, walk
from polyloom.ir.host import Buffer, HostProgram, MdHom, Role
from polyloom.mdh.runtime.sample_inputs import LARGEST, made_up_inputs

NDArray = npt.NDArray[Any]

VARIED = 100
"""The largest value where nothing adds up: so many, that a maximum of too few elements is another one."""

_GROWING = frozenset({BinaryOp.ADD, BinaryOp.SUBTRACT, BinaryOp.MULTIPLY, BinaryOp.POWER})


def trial_arrays(hom: MdHom, buffers: Sequence[Buffer], seed: int = 0) -> dict[str, NDArray]:
    """Return an array for every buffer, outputs too. The same seed gives the same arrays."""
    given = tuple(replace(buffer, role=Role.UPDATED) for buffer in buffers)
    program = HostProgram(name=hom.name, parameters=(), buffers=given, body=(hom,))
    return made_up_inputs(program, {}, seed, LARGEST if _grows(hom) else VARIED)


def _grows(hom: MdHom) -> bool:
    combined = [r for operator in hom.combine if operator.combiner for r in operator.combiner.results]
    return any(isinstance(p, Binary) and p.op in _GROWING for e in combined for p in walk(e))
