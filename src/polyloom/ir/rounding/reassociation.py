"""Which sums and products of floats of a host program may be made in another order than the source's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from polyloom.ir.expressions import Binary, BinaryOp
from polyloom.ir.host import CombineOperator, HostProgram, MdHom
from polyloom.ir.text.integers import integer_text
from polyloom.ir.types import ElementType
from polyloom.polyhedra.loops.tree import leaves_in

_SUMS = (BinaryOp.ADD, BinaryOp.MULTIPLY)


@dataclass(frozen=True)
class Reassociated:
    """An md_hom, the type of its sum or ``product``, and how many terms an element has at most."""

    name: str
    type: ElementType
    product: bool
    terms: str


def reassociated(program: HostProgram) -> Iterator[Reassociated]:
    """Yield each sum and product of floats whose terms are combined in any order.

    An element of n terms is then off by at most ``n * eps`` times the sum of their sizes (of a product: times
    the product). Not in the papers.
    """
    for node in leaves_in(program.body):
        if isinstance(node, MdHom):
            for kind, product in dict.fromkeys(_kinds(node)):
                yield Reassociated(node.name, kind, product, _terms(node))


def _kinds(node: MdHom) -> Iterator[tuple[ElementType, bool]]:
    for operator in filter(_is_free, node.combine):
        assert operator.combiner is not None
        for result in operator.combiner.results:
            if isinstance(result, Binary) and result.type.is_float and result.op in _SUMS:
                yield result.type, result.op is BinaryOp.MULTIPLY


def _is_free(operator: CombineOperator) -> bool:
    return operator.combiner is not None and operator.combiner.associative


def _terms(node: MdHom) -> str:
    """Return the product of the extents of the dimensions that are combined."""
    pairs = zip(node.extents, node.combine, strict=True)
    return " * ".join(integer_text(extent) for extent, operator in pairs if operator.combiner is not None)
