"""Programs with wavefronts, or with the loops of the source: which of the two suits a processor.

A wavefront (``w = 4 * t + 2 * i + j``) leaves parallel points that lie far apart in memory, and threads meet
after each of its many steps. The loops of the source walk along rows: in md_homs, whose vectors are
neighbours, as linear recurrences in vectors, or in order. Few threads do these sooner than the other, but for
a wavefront along rows (``w = t + i`` around a loop over ``j``): that one stays where a loop would remain that
is neither md_hom nor recurrence. What both forms have in common does not matter. So it is where md_homs in
host loops store from row to row alone, and the loops of the source go along rows.
"""

from __future__ import annotations

from dataclasses import replace

from polyloom.ir.host import HostNode, HostProgram, MdHom, Nest, has_shared_loops
from polyloom.ir.transform.walks import goes_along_rows, loops_cross_rows
from polyloom.mdh.device.devices import DeviceModel
from polyloom.mdh.lowering.nests.linear_recurrences import are_all_in_vectors
from polyloom.mdh.lowering.program_tree import program_tree
from polyloom.mdh.native.device import NATIVE
from polyloom.polyhedra.loops.tree import Loop, leaves_in

FEW_THREADS = 8
"""Threads up to which rows are taken. Estimate: on one thread the rows of Gauss-Seidel's method took 0.42 of
the time of its wavefront, those of Nussinov's algorithm 0.36; on two 0.27 and 0.65. Rows in order of tables
of alignments, which are no linear recurrences, took 0.2 to 0.5 on one thread."""


def suited(program: HostProgram, device: DeviceModel) -> HostProgram:
    """Return a program, or its form in rows where that suits the device better."""
    rows = program.in_rows
    if rows is None or device.platform != NATIVE:
        return program
    if has_shared_loops(rows):
        return rows
    if device.compute_units > FEW_THREADS:
        return program
    if loops_cross_rows(program):
        return rows
    others = tuple(node for node in rows.body if node not in program.body)
    waves = tuple(node for node in program.body if node not in rows.body)
    is_better = _is_quick(replace(rows, body=others), device) or _all_jump(waves)
    return rows if is_better else program


def _all_jump(nodes: tuple[HostNode, ...]) -> bool:
    """Return whether no md_hom in the loops of a wavefront goes along rows of what it writes."""
    loops = (node.body for node in nodes if isinstance(node, Loop))
    homs = (leaf for body in loops for leaf in leaves_in(body) if isinstance(leaf, MdHom))
    return not any(goes_along_rows(view) for hom in homs for view in hom.outputs)


def _is_quick(rows: HostProgram, device: DeviceModel) -> bool:
    """Return whether each sequential nest of a program is a recurrence in vectors."""
    if not any(isinstance(node, Nest) for node in leaves_in(rows.body)):
        return True
    return are_all_in_vectors(program_tree(rows, lambda hom: ()), device.vector_bytes)
