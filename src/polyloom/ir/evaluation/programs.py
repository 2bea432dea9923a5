"""The meaning of a program, in NumPy: what its nodes leave in the buffers. The oracle of all tests.

An element of a tensor program is the neutral element of its statement's reduction, combined with the terms of
the instances that write it, one after another in lexicographic order; every operation is rounded to the
element type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.ir.evaluation.inputs import checked_host_inputs, shape_of
from polyloom.ir.evaluation.md_homs import run_md_hom
from polyloom.ir.evaluation.nests import run_nest
from polyloom.ir.evaluation.uninitialised import garbage
from polyloom.ir.host import Buffer, Copy, HostNode, HostProgram, MdHom, Nest, Role
from polyloom.ir.integers import holds, integer
from polyloom.ir.program import Program
from polyloom.polyhedra.loops.tree import Branch, Loop

NDArray = npt.NDArray[Any]
Leaf = MdHom | Nest | Copy
Carrier = Callable[[Leaf, Mapping[str, int]], None]


def evaluate(program: Program, inputs: Mapping[str, NDArray]) -> dict[str, NDArray]:
    """Return every tensor that a statement writes, by name.

    ``inputs``: one array per input, of its shape and element type. Memory beyond the tensors
    themselves is bounded; a statement of 10**7 points takes about a second.

    Errors: ``input-missing``, ``input-unknown``, ``input-shape``, ``input-type``.
    Source: dtg_codegen, Sec. 4.1.1 (initializing reductions). Rounding and order: not in the papers.
    """
    return evaluate_host(program, {}, inputs)


def evaluate_host(
    program: HostProgram, parameters: Mapping[str, int], inputs: Mapping[str, NDArray]
) -> dict[str, NDArray]:
    """Return what the program leaves in its outputs and updated buffers (``HostProgram.results``), by name.

    ``parameters``: a value for each; ``inputs``: an array for each buffer that is an input or updated, which
    stays as it is. Local buffers and outputs without a first value start as garbage, the same in every run:
    a program that reads or returns what it has not written shows.

    Errors: those of ``checked_host_inputs``; IndexError where a node writes outside of a buffer.
    """
    arrays = initial_arrays(program, parameters, inputs)
    with np.errstate(all="ignore"):
        carried_out(program.body, dict(parameters), partial(_leaf, arrays))
    return {name: arrays[name] for name in program.results}


def initial_arrays(
    program: HostProgram, parameters: Mapping[str, int], inputs: Mapping[str, NDArray]
) -> dict[str, NDArray]:
    """Return an array for every buffer as the program finds it: copies of what it updates."""
    given = checked_host_inputs(program, parameters, inputs)
    updated = {b.name: given[b.name].copy() for b in program.given if b.role is Role.UPDATED}
    others = {b.name: blank(b, parameters) for b in program.buffers if b.name not in given}
    return {**given, **updated, **others}


def blank(buffer: Buffer, parameters: Mapping[str, int]) -> NDArray:
    """Return a buffer that nobody has written: its first value everywhere, or garbage."""
    shape = shape_of(buffer, parameters)
    if buffer.start is None:
        return garbage(shape, buffer.type)
    return np.full(shape, buffer.start, buffer.type.dtype)


def _leaf(arrays: Mapping[str, NDArray], node: Leaf, names: Mapping[str, int]) -> None:
    match node:
        case MdHom():
            run_md_hom(node, arrays, names)
        case Nest():
            run_nest(node, arrays, names)
        case Copy(source=source, target=target):
            arrays[target][...] = arrays[source]


def carried_out(nodes: tuple[HostNode, ...], names: Mapping[str, int], leaf: Carrier) -> None:
    """Walk host loops and branches in order; ``leaf`` carries out what is inside.

    ``names``: parameters and the iterators of host loops around the nodes.
    """
    for node in nodes:
        match node:
            case Branch(condition=condition, body=body, otherwise=otherwise):
                carried_out(body if holds(condition, names) else otherwise, names, leaf)
            case Loop():
                _loop(node, names, leaf)
            case _:
                leaf(node, names)


def _loop(loop: Loop[HostNode], names: Mapping[str, int], leaf: Carrier) -> None:
    inner = {**names, loop.iterator: integer(loop.start, names)}
    while holds(loop.condition, inner):
        carried_out(loop.body, inner, leaf)
        inner[loop.iterator] += integer(loop.step, inner)
