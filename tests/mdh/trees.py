"""Host programs of many kinds, and whether their kernel trees compute what they mean."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import homs
import numpy as np

from c_host_programs import host_programs_of
from polyloom.diagnostics import Source
from polyloom.frontends.lair import lower
from polyloom.frontends.lair.syntax.parse import parse
from polyloom.ir.conversion.to_host_program import host_program as host_of_program
from polyloom.ir.evaluation.programs import evaluate_host
from polyloom.ir.evaluation.random_inputs import random_inputs
from polyloom.ir.host import HostProgram
from polyloom.ir.transform.specialise import specialise
from polyloom.mdh.lowering.program_tree import LowerHom, program_tree
from polyloom.mdh.tree.evaluate import Order, evaluate, in_order

ROOT = Path(__file__).parents[2]
C_FILES = sorted([*(ROOT / "tests/scop/kernels").glob("*.c"), *(ROOT / "examples/c").glob("*.c")])
LAYERS = sorted((ROOT / "examples").glob("*.lair"))
HOMS: dict[str, HostProgram] = {
    "matmul": homs.matmul(5, 7, 6),
    "gemm": homs.gemm(4, 6, 5),
    "guarded gemm": homs.gemm(5, 6, 7, guard=homs.at_most("k", "i")),
    "convolution": homs.convolution(3, 3, 2, 3, 2, 2),
    "stencil": homs.stencil(6, 7),
    "dot": homs.dot(23),
    "row maximum": homs.row_maximum(5, 6, homs.F32, None),
    "largest from the first": homs.largest_from_the_first(9),
    "best record": homs.best_record(4, 7),
    "jacobi": homs.jacobi(6, 7),
    "turned": homs.turned(5, 6),
    "shifted": homs.shifted(5, 6),
    "gather": homs.gather(5, 6),
}


def c_programs(path: Path, change: str = "=") -> tuple[HostProgram, ...]:
    """Return the host programs of a C file; ``change``: ``old=new`` in its text."""
    old, _, new = change.partition("=")
    text = path.read_text()
    return host_programs_of(text.replace(old, new) if old else text)


ZOO = {e["name"]: e["lair"] for e in json.loads((ROOT / "tests/data/zoo.json").read_text())}
"""Layers in LAIR, by name."""


def layer(text: str) -> HostProgram:
    return host_of_program(lower(parse(Source("layer.lair", text))))


def sizes(program: HostProgram, numbers: tuple[int, ...]) -> dict[str, int]:
    return {p.name: numbers[k % len(numbers)] for k, p in enumerate(program.parameters)}


def inputs(program: HostProgram, parameters: Mapping[str, int]) -> dict[str, Any]:
    """Return made-up inputs; square matrices of floats have a large diagonal and can be factorised."""
    arrays = random_inputs(program, parameters=parameters)
    for array in arrays.values():
        if array.ndim == 2 and array.shape[0] == array.shape[1] and array.dtype.kind == "f":
            array += 30 * np.eye(len(array), dtype=array.dtype)
    return arrays


def assert_computes(
    program: HostProgram,
    parameters: Mapping[str, int],
    given: Mapping[str, Any],
    lower_hom: LowerHom = lambda hom: None,
    *,
    known: bool = False,
    order: Order = in_order,
    together: bool = False,
) -> None:
    """The tree leaves what the program means, to the bit; ``known``: with the parameters put in."""
    wanted = evaluate_host(program, parameters, given)
    function = program_tree(specialise(program, parameters) if known else program, lower_hom)
    left = {} if known else parameters
    found = evaluate(function, given, left, order=order, together=together)
    assert found.keys() <= wanted.keys()
    for name, array in wanted.items():
        left_there = found[name] if name in found else given[name]
        np.testing.assert_array_equal(left_there, array, err_msg=name, strict=True)
