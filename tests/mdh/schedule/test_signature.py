"""Under which key a tuned schedule is kept: names do not count, sizes are apart, types count."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from polyloom.ir.expressions import Binary, BinaryOp, Read
from polyloom.ir.host import Buffer, CombineOperator, Combiner, Index, MdHom, Order, Role, View
from polyloom.ir.types import ElementType
from polyloom.mdh.schedule.signature import Key, canonical, digest_of, key_of
from polyloom.polyhedra.loops.tree import IntExpression, Name, Number

F32 = ElementType.FLOAT32


def plus(type_: ElementType) -> Combiner:
    return Combiner(name="+", results=(Binary(BinaryOp.ADD, Read(0, type_), Read(1, type_)),), neutral=(0,))


def matmul(
    m: IntExpression,
    n: int,
    k: int,
    names: tuple[str, str, str] = ("A", "B", "C"),
    type_: ElementType = F32,
) -> tuple[MdHom, tuple[Buffer, ...]]:
    a, b, c = names
    hom = MdHom(
        name=f"mm_{c}",
        iterators=(f"i{c}", f"j{c}", f"k{c}"),
        extents=(m, Number(n), Number(k)),
        inputs=(View(a, (Index((1, 0, 0)), Index((0, 0, 1)))), View(b, (Index((0, 0, 1)), Index((0, 1, 0))))),
        outputs=(View(c, (Index((1, 0, 0)), Index((0, 1, 0)))),),
        terms=(Binary(BinaryOp.MULTIPLY, Read(0, type_), Read(1, type_)),),
        combine=(
            CombineOperator(Order.CONCATENATE),
            CombineOperator(Order.CONCATENATE),
            CombineOperator(Order.POINTWISE, plus(type_)),
        ),
        initial=(None,),
        finish=(None,),
    )
    buffers = (
        Buffer(name="unused", type=type_, shape=(), role=Role.LOCAL),
        Buffer(name=c, type=type_, shape=(m, Number(n)), role=Role.OUTPUT),
        Buffer(name=a, type=type_, shape=(m, Number(k)), role=Role.INPUT),
        Buffer(name=b, type=type_, shape=(Number(k), Number(n)), role=Role.INPUT),
    )
    return hom, buffers


def key(hom: MdHom, buffers: tuple[Buffer, ...]) -> Key:
    return key_of(hom, buffers, "cpu")


def test_names_do_not_count() -> None:
    assert key(*matmul(Number(8), 9, 10)) == key(*matmul(Number(8), 9, 10, ("x", "y", "z")))


def test_sizes_stand_apart() -> None:
    one, other = key(*matmul(Number(8), 9, 10)), key(*matmul(Number(80), 9, 10))
    assert one != other and one.signature == other.signature
    assert one.sizes == (8, 9, 10, 8, 10, 10, 9, 8, 9)
    assert key(*matmul(Name("n"), 9, 10)).sizes[0] == "n3"


def test_types_and_accesses_count() -> None:
    hom, buffers = matmul(Number(8), 9, 10)
    one = key(hom, buffers).signature
    assert one != key(*matmul(Number(8), 9, 10, type_=ElementType.FLOAT64)).signature
    transposed = View("A", (Index((0, 0, 1)), Index((1, 0, 0))))
    assert one != key(replace(hom, inputs=(transposed, hom.inputs[1])), buffers).signature
    same = View("A", (Index((0, 0, 1)), Index((0, 1, 0))))
    assert one != key(replace(hom, inputs=(hom.inputs[0], same)), buffers).signature, "A * A is not A * B"


def test_the_text_says_what_is_computed() -> None:
    text, _ = canonical(*matmul(Number(8), 9, 10))
    assert text.startswith(
        "3; float32[2] float32[2] float32[2]; (b0[Index((1, 0, 0), 0), Index((0, 0, 1), 0)]"
    )


def test_the_version_of_the_generator_is_that_of_every_module(tmp_path: Path) -> None:
    """A module that is changed, moved or added makes another version; what is no module does not."""
    deep = tmp_path / "mdh" / "kernel" / "tiles.py"
    deep.parent.mkdir(parents=True)
    deep.write_text("x = 1")
    first = digest_of(tmp_path, ["mdh"])
    (tmp_path / "mdh" / "notes.txt").write_text("no code")
    (deep.parent / "__pycache__").mkdir()
    (deep.parent / "__pycache__" / "tiles.py").write_text("no source")
    assert digest_of(tmp_path, ["mdh"]) == first
    deep.write_text("x = 2")
    second = digest_of(tmp_path, ["mdh"])
    third = digest_of(tmp_path, ["mdh"]) if deep.rename(tmp_path / "mdh" / "tiles.py") else ""
    (tmp_path / "mdh" / "new.json").write_text("")
    assert len({first, second, third, digest_of(tmp_path, ["mdh"])}) == 4
