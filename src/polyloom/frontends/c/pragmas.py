"""Pragmas inside a SCoP: ``mdh parallel``; others are passed over."""

from __future__ import annotations

from pycparser import c_ast

from polyloom.frontends.c.state import State
from polyloom.scop.model import StatedParallel


def stated_parallel(node: c_ast.Pragma, state: State) -> list[StatedParallel]:
    """Return what the pragma states about the next loop."""
    return []
