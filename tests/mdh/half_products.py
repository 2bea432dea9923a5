"""Products of halves that matrix units can do: md_homs in several layouts, and schedules of theirs."""

from __future__ import annotations

from random import Random

from homs import KEEP, at, binary, buffer, hom_of, number, program, read, sums

from polyloom.ir.expressions import BinaryOp, Constant, Convert, Expression
from polyloom.ir.host import HostProgram, MdHom, Role, View
from polyloom.ir.types import ElementType
from polyloom.mdh.cuda.architectures import architectures
from polyloom.mdh.schedule.legality import problems
from polyloom.mdh.schedule.matrix_designs import Form
from polyloom.mdh.schedule.matrix_units import Product, product_of
from polyloom.mdh.schedule.schedules import Schedule, plain_schedule
from polyloom.mdh.schedule.tiling import TileFacts

HALF, FLOAT = ElementType.FLOAT16, ElementType.FLOAT32
DEVICE = architectures()["sm_80"]
TERM = binary(BinaryOp.MULTIPLY, Convert(FLOAT, read(0, HALF)), Convert(FLOAT, read(1, HALF)))
ROUNDED = Convert(HALF, read(2, FLOAT))


def half_product(
    rows: int,
    columns: int,
    steps: int,
    *,
    turned: tuple[bool, bool, bool] = (False, False, False),
    batch: int = 0,
    finish: Expression | None = ROUNDED,
    bias: bool = False,
    term: Expression = TERM,
) -> HostProgram:
    """``C[b][i][j] = float16(sum of float32(A[b][i][k]) * float32(B[b][k][j]))``; ``turned``: A, B and C.

    ``bias``: ``max(sum + x[j], 0)`` is stored.
    """
    unit = {"b": at(1, 0, 0, 0), "i": at(0, 1, 0, 0), "j": at(0, 0, 1, 0), "k": at(0, 0, 0, 1)}
    sizes = {"b": max(batch, 1), "i": rows, "j": columns, "k": steps}
    used = [("A", "ik"), ("B", "kj"), ("C", "ij")]
    orders = {name: axes[::-1] if turn else axes for (name, axes), turn in zip(used, turned, strict=True)}
    orders = {name: f"b{axes}" if batch else axes for name, axes in orders.items()}
    views = {name: View(name, tuple(unit[a] for a in axes)) for name, axes in orders.items()}
    inputs: tuple[View, ...] = (views["A"], views["B"])
    kind = FLOAT if finish is None else HALF
    buffers = [
        buffer(
            name,
            kind if name == "C" else HALF,
            tuple(sizes[a] for a in axes),
            Role.OUTPUT if name == "C" else Role.INPUT,
        )
        for name, axes in orders.items()
    ]
    if bias:
        inputs += (View("x", (unit["j"],)),)
        buffers.append(buffer("x", HALF, (columns,)))
        total = binary(BinaryOp.ADD, read(3, FLOAT), Convert(FLOAT, read(2, HALF)))
        finish = Convert(HALF, binary(BinaryOp.MAXIMUM, total, Constant(0, FLOAT)))
    hom = MdHom(
        name="product",
        iterators=("b", "i", "j", "k"),
        extents=tuple(map(number, sizes.values())),
        inputs=inputs,
        outputs=(views["C"],),
        terms=(term,),
        combine=(KEEP, KEEP, KEEP, sums(FLOAT)),
        initial=(None,),
        finish=(finish,),
    )
    return program(hom, *buffers)


def half_convolution(n: int, side: int, features: int, channels: int, window: int) -> HostProgram:
    """``y[p][q][f] = sum of x[p + r][q + s][c] * w[r][s][c][f]``: a product for each point of the window."""
    p, q, f, r, s, c = range(6)

    def unit(*dimensions: int):  # type: ignore[no-untyped-def]
        return at(*(int(d in dimensions) for d in range(6)))

    x = View("A", (unit(p, r), unit(q, s), unit(c)))
    w = View("B", (unit(r), unit(s), unit(c), unit(f)))
    y = View("C", (unit(p), unit(q), unit(f)))
    sizes = (n, side, features, window, window, channels)
    hom = MdHom(
        name="convolution",
        iterators=("p", "q", "f", "r", "s", "c"),
        extents=tuple(map(number, sizes)),
        inputs=(x, w),
        outputs=(y,),
        terms=(TERM,),
        combine=(KEEP, KEEP, KEEP, *[sums(FLOAT)] * 3),
        initial=(None,),
        finish=(ROUNDED,),
    )
    return program(
        hom,
        buffer("A", HALF, (n + window - 1, side + window - 1, channels)),
        buffer("B", HALF, (window, window, channels, features)),
        buffer("C", HALF, (n, side, features), Role.OUTPUT),
    )


def product_schedule(given: HostProgram, form: Form) -> Schedule:
    """Return the schedule of a product in a form; of what is none, as if its inputs were factors."""
    hom = hom_of(given)
    facts = TileFacts(hom, plain_schedule(len(hom.extents), len(hom.inputs)))
    found = product_of(facts.of_hom, given.by_name) or Product(0, 1, (), (), ())
    return form.schedule(facts.schedule, facts, found)


def reasons(given: HostProgram, schedule: Schedule) -> tuple[str, ...]:
    """Return why a product may not have a schedule on an A100."""
    return problems(TileFacts(hom_of(given), schedule), given.by_name, DEVICE)


def random_form(rng: Random, matrix: tuple[int, int, int], steps: int) -> Form:
    """Return a form at random of a product of so many steps."""
    sizes = [(1, 1), (2, 1), (1, 2), (2, 2), (1, 3)]
    deep = [n for n in (16, 32, 48, 64) if steps % n == 0]
    return Form(matrix, rng.choice(sizes), rng.choice(sizes), rng.choice(deep), rng.choice((0, 8, 16)))


PRODUCTS: dict[str, tuple[HostProgram, tuple[int, int, int]]] = {
    "whole": (half_product(32, 32, 32), (1, 2, 3)),
    "rests": (half_product(20, 37, 32), (1, 2, 3)),
    "batch": (half_product(17, 24, 16, batch=3), (1, 2, 3)),
    "left turned": (half_product(24, 24, 32, turned=(True, False, False)), (1, 2, 3)),
    "right turned": (half_product(19, 24, 32, turned=(False, True, False), batch=2), (1, 2, 3)),
    "both turned": (half_product(24, 40, 16, turned=(True, True, False)), (1, 2, 3)),
    "result turned": (half_product(24, 20, 32, turned=(False, False, True)), (2, 1, 3)),
    "sums kept": (half_product(18, 16, 32, finish=None), (1, 2, 3)),
    "with a bias": (half_product(33, 20, 16, bias=True), (1, 2, 3)),
    "convolution": (half_convolution(3, 20, 24, 16, 2), (1, 2, 5)),
}
"""Products by name, and the dimensions that are rows, columns and steps."""
