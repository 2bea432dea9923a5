"""What is said to the compiler: ``#pragma mdh parallel``, ``__pencil_assume``;
other pragmas are passed over.
"""

from __future__ import annotations

import islpy as isl
from pycparser import c_ast

from polyloom.frontends.c.affine import holds
from polyloom.frontends.c.drafting import draft
from polyloom.frontends.c.faults import NotAffine
from polyloom.frontends.c.state import Mode, State
from polyloom.frontends.c.values import truth
from polyloom.scop.model import StatedParallel

_DIM = isl.dim_type


def stated_parallel(node: c_ast.Pragma, state: State) -> list[StatedParallel]:
    """Return what the pragma states about the next loop."""
    return []


def assume(condition: c_ast.Node, node: c_ast.Node, state: State) -> None:
    """Take a condition for granted wherever the walk now is; about data it says nothing that is used."""
    try:
        failing = state.path.subtract(holds(condition, state))
    except NotAffine:
        failing = None
    if failing is not None:
        for frame in state.frames:
            at = failing.find_dim_by_name(_DIM.param, frame.iterator)
            failing = failing if at < 0 else failing.project_out(_DIM.param, at, 1)
        state.context = state.context.subtract(failing).coalesce()
    if state.mode is Mode.TEXT:
        draft(None, truth(condition, state), node, state, None)
