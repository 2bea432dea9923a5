"""Which arrays kernels of one node share: those before their loops, not those inside of them."""

from __future__ import annotations

from polyloom.ir.expressions import Read
from polyloom.ir.types import ElementType
from polyloom.mdh.lowering.kernels.pieces import pieces
from polyloom.mdh.tree.nodes import Array, Code, Compute, Kind, Load, Space, Store, counted
from polyloom.polyhedra.loops.tree import Name, Number

F32 = ElementType.FLOAT32


def of_group(name: str, size: int) -> Array:
    return Array(name=name, type=F32, shape=(Number(size),), space=Space.GROUP)


def copy(source: str, target: str) -> Store:
    return Store(target, (Name("i"),), Compute(Read(0, F32), (Load(source, (Name("i"),)),)))


def loop(*body: Array | Store) -> Code:
    return (counted("i", Number(8), tuple(body), kind=Kind.GROUP),)


def test_an_array_of_a_loop_is_no_array_before_another() -> None:
    first = loop(of_group("x_copy", 8), copy("x", "x_copy"), copy("x_copy", "partial"))
    second = (of_group("x_copy", 9), copy("partial", "x_copy"), copy("x_copy", "sum"))
    found = pieces((of_group("partial", 8), *first, *second), "alone")
    assert [[array.name for array in piece.shared] for piece in found] == [["partial"], ["partial"]]
    assert of_group("x_copy", 9) in found[1].loop.body
