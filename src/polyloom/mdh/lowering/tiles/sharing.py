"""Whether loops are shared by threads at all: small ones are done by one before others hear of them.

parallel for i from 0 to 10: ...    ->    for i from 0 to 10: ...
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from polyloom.ir.host import MdHom
from polyloom.mdh.schedule.addresses import known
from polyloom.mdh.tree.nodes import Code, For, Kind, Statement
from polyloom.mdh.tree.rewrite import rewritten

LEAST_SHARED = 16_384
"""Points of an md_hom that threads share, at least: fewer take one thread about half a microsecond, which
is what it takes two to meet. Estimate: two cores of a Xeon, 16 points in a vector, two vectors in a cycle."""


def shared_if_large(hom: MdHom, code: Code, least: int = LEAST_SHARED) -> Code:
    """Make the group loops of an md_hom sequential that is known to have less than ``least`` points.

    Keeps true: the same statements; all kinds of loops mean the same as sequential ones.
    """
    extents = [known(extent) for extent in hom.extents]
    if None in extents or prod(n for n in extents if n is not None) >= least:
        return code
    return rewritten(code, _alone)


def _alone(statement: Statement) -> Code:
    if isinstance(statement, For) and statement.kind is Kind.GROUP:
        return (replace(statement, kind=Kind.SEQUENTIAL),)
    return (statement,)
