"""The meaning of a host program, in NumPy: what its nodes leave in the buffers. The oracle of all tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.ir.evaluation.host_inputs import checked_host_inputs, shape_of
from polyloom.ir.evaluation.md_homs import run_md_hom
from polyloom.ir.evaluation.nests import run_nest
from polyloom.ir.evaluation.uninitialised import garbage
from polyloom.ir.host import Copy, HostBranch, HostLoop, HostNode, HostProgram, MdHom, Nest, Role
from polyloom.ir.integers import holds, integer

NDArray = npt.NDArray[Any]
Leaf = MdHom | Nest | Copy
Carrier = Callable[[Leaf, Mapping[str, int]], None]


def evaluate_host(
    program: HostProgram, parameters: Mapping[str, int], inputs: Mapping[str, NDArray]
) -> dict[str, NDArray]:
    """Return what the program leaves in its outputs and updated buffers, by name.

    ``parameters``: a value for each; ``inputs``: an array for each buffer that is an input or updated, which
    stays as it is. Local buffers and outputs start as garbage, the same in every run: a program that reads
    or returns what it has not written shows.

    Errors: those of ``checked_host_inputs``; IndexError where a node writes outside of a buffer.
    """
    arrays = initial_arrays(program, parameters, inputs)
    with np.errstate(all="ignore"):
        carried_out(program.body, dict(parameters), partial(_leaf, arrays))
    written = (b.name for b in program.buffers if b.role in (Role.OUTPUT, Role.UPDATED))
    return {name: arrays[name] for name in written}


def initial_arrays(
    program: HostProgram, parameters: Mapping[str, int], inputs: Mapping[str, NDArray]
) -> dict[str, NDArray]:
    """Return an array for every buffer as the program finds it: inputs copied, the others garbage."""
    given = checked_host_inputs(program, parameters, inputs)
    return {
        b.name: np.array(given[b.name], order="C")
        if b.name in given
        else garbage(shape_of(b, parameters), b.type)
        for b in program.buffers
    }


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
            case HostBranch(condition=condition, body=body, otherwise=otherwise):
                carried_out(body if holds(condition, names) else otherwise, names, leaf)
            case HostLoop():
                _loop(node, names, leaf)
            case _:
                leaf(node, names)


def _loop(loop: HostLoop, names: Mapping[str, int], leaf: Carrier) -> None:
    inner = {**names, loop.iterator: integer(loop.start, names)}
    while holds(loop.condition, inner):
        carried_out(loop.body, inner, leaf)
        inner[loop.iterator] += integer(loop.step, inner)
