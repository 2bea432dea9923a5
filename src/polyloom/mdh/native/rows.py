"""Programs with wavefronts, or with the loops of the source: which of the two suits a processor.

A wavefront (``w = 4 * t + 2 * i + j``) leaves parallel points that lie far apart in memory, and threads meet
after each of its many steps. The loops of the source walk along rows: in md_homs, whose vectors are
neighbours, or as linear recurrences in vectors. Few threads do these sooner than the other. Where a loop
would remain that is neither, the wavefront stays; what both forms have in common does not matter.
"""

from __future__ import annotations

from dataclasses import replace

from polyloom.ir.host import HostProgram, Nest, has_shared_loops
from polyloom.mdh.device.devices import DeviceModel
from polyloom.mdh.lowering.nests.linear_recurrences import are_all_in_vectors
from polyloom.mdh.lowering.program_tree import program_tree
from polyloom.mdh.native.device import NATIVE
from polyloom.polyhedra.loops.tree import leaves_in

FEW_THREADS = 8
"""Threads up to which rows are taken. Estimate: on one thread the rows of Gauss-Seidel's method took 0.42 of
the time of its wavefront, those of Nussinov's algorithm 0.36; on two 0.27 and 0.65."""


def suited(program: HostProgram, device: DeviceModel) -> HostProgram:
    """Return a program, or its form in rows where that suits the device better."""
    rows = program.in_rows
    if rows is None or device.platform != NATIVE:
        return program
    if has_shared_loops(rows):
        return rows
    if device.compute_units > FEW_THREADS:
        return program
    others = tuple(node for node in rows.body if node not in program.body)
    return rows if _is_quick(replace(rows, body=others), device) else program


def _is_quick(rows: HostProgram, device: DeviceModel) -> bool:
    """Return whether each sequential nest of a program is a recurrence in vectors."""
    if not any(isinstance(node, Nest) for node in leaves_in(rows.body)):
        return True
    return are_all_in_vectors(program_tree(rows, lambda hom: ()), device.vector_bytes)
