"""md_homs of many kinds, small and with awkward sizes, and how they are run on a device."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.ir.evaluation.inputs import shape_of
from polyloom.ir.evaluation.programs import evaluate_host
from polyloom.ir.expressions import (
    Binary,
    BinaryOp,
    Compare,
    CompareOp,
    Constant,
    Convert,
    Expression,
    Iterator,
    Read,
    Select,
)
from polyloom.ir.host import (
    Buffer,
    CombineOperator,
    Combiner,
    HostProgram,
    Index,
    MdHom,
    Order,
    Parameter,
    Role,
    View,
)
from polyloom.ir.scalar_functions.function import BinaryFunction
from polyloom.ir.types import ElementType
from polyloom.mdh.device.devices import DeviceModel, OpenDevice, choose_device, open_device
from polyloom.mdh.lowering.launch import Launch
from polyloom.mdh.lowering.lower import emit_md_hom
from polyloom.mdh.runtime.driver import Driver
from polyloom.mdh.runtime.host_program import Prepared, prepare
from polyloom.mdh.schedule.choice import one_kernel_schedule
from polyloom.mdh.schedule.legality import problems
from polyloom.mdh.schedule.schedules import Caching, Memory, Schedule, plain_schedule
from polyloom.mdh.schedule.tiling import TileFacts
from polyloom.polyhedra.loops.tree import IntExpression, Name, Number, Operation

NDArray = npt.NDArray[Any]
Extent = int | str
KEEP = CombineOperator(Order.CONCATENATE)
F32 = ElementType.FLOAT32


def number(n: Extent) -> IntExpression:
    return Number(n) if isinstance(n, int) else Name(n)


def at(*coefficients: int, plus: int = 0) -> Index:
    return Index(coefficients, Number(plus))


def read(k: int, kind: ElementType = F32) -> Read:
    return Read(k, kind)


def binary(op: BinaryFunction, a: Expression, b: Expression) -> Binary:
    return Binary(op, a, b)


def times(kind: ElementType) -> Expression:
    return binary(BinaryOp.MULTIPLY, read(0, kind), read(1, kind))


def reduce_by(op: BinaryFunction, kind: ElementType, neutral: float | None) -> CombineOperator:
    combiner = Combiner(name=op.name, results=(binary(op, read(0, kind), read(1, kind)),), neutral=(neutral,))
    return CombineOperator(Order.POINTWISE, combiner)


def sums(kind: ElementType) -> CombineOperator:
    return reduce_by(BinaryOp.ADD, kind, 0)


def buffer(name: str, kind: ElementType, shape: tuple[Extent, ...], role: Role = Role.INPUT) -> Buffer:
    return Buffer(name=name, type=kind, shape=tuple(map(number, shape)), role=role)


def program(hom: MdHom, *buffers: Buffer) -> HostProgram:
    names = {e.name for b in buffers for e in b.shape if isinstance(e, Name)}
    parameters = tuple(Parameter(n, ElementType.INT64) for n in sorted(names))
    return HostProgram(name=hom.name, parameters=parameters, buffers=buffers, body=(hom,))


def matmul(
    m: Extent,
    n: Extent,
    k: Extent,
    kind: ElementType = F32,
    op: CombineOperator | None = None,
    **more: Any,
) -> HostProgram:
    """``C[i][j] = sum of A[i][k] * B[k][j]``."""
    a, b = View("A", (at(1, 0, 0), at(0, 0, 1))), View("B", (at(0, 0, 1), at(0, 1, 0)))
    c = View("C", (at(1, 0, 0), at(0, 1, 0)))
    extents = (number(m), number(n), number(k))
    given: dict[str, Any] = {"initial": (None,), "finish": (None,), **more}
    combine = (KEEP, KEEP, op or sums(kind))
    hom = MdHom(
        name="matmul",
        iterators=("i", "j", "k"),
        extents=extents,
        inputs=(a, b),
        outputs=(c,),
        terms=(times(kind),),
        combine=combine,
        **given,
    )
    output = buffer("C", kind, (m, n), Role.OUTPUT)
    return program(hom, buffer("A", kind, (m, k)), buffer("B", kind, (k, n)), output)


def gemm(m: int, n: int, k: int, kind: ElementType = F32, **more: Any) -> HostProgram:
    """``C = max(beta * C + A B, 0)``, in place."""
    a, b = View("A", (at(1, 0, 0), at(0, 0, 1))), View("B", (at(0, 0, 1), at(0, 1, 0)))
    c = View("C", (at(1, 0, 0), at(0, 1, 0)))
    initial = binary(BinaryOp.MULTIPLY, read(2, kind), read(3, kind))
    finish = binary(BinaryOp.MAXIMUM, read(4, kind), Constant(0, kind))
    extents = (Number(m), Number(n), Number(k))
    inputs = (a, b, c, View("beta", ()))
    combine = (KEEP, KEEP, sums(kind))
    hom = MdHom(
        name="gemm",
        iterators=("i", "j", "k"),
        extents=extents,
        inputs=inputs,
        outputs=(c,),
        terms=(times(kind),),
        combine=combine,
        initial=(initial,),
        finish=(finish,),
        **more,
    )
    shapes = (buffer("A", kind, (m, k)), buffer("B", kind, (k, n)), buffer("beta", kind, ()))
    return program(hom, *shapes, buffer("C", kind, (m, n), Role.UPDATED))


def convolution(p: int, q: int, k: int, c: int, r: int, s: int, kind: ElementType = F32) -> HostProgram:
    """``O[p][q][k] = sum of I[p + r][q + s][c] * F[k][r][s][c]``."""
    image = View("I", (at(1, 0, 0, 1, 0, 0), at(0, 1, 0, 0, 1, 0), at(0, 0, 0, 0, 0, 1)))
    rows = [at(0, 0, 1, 0, 0, 0), at(0, 0, 0, 1, 0, 0), at(0, 0, 0, 0, 1, 0), at(0, 0, 0, 0, 0, 1)]
    out = View("O", (at(1, 0, 0, 0, 0, 0), at(0, 1, 0, 0, 0, 0), at(0, 0, 1, 0, 0, 0)))
    combine = (KEEP, KEEP, KEEP, sums(kind), sums(kind), sums(kind))
    extents = tuple(map(Number, (p, q, k, r, s, c)))
    inputs = (image, View("F", tuple(rows)))
    names = ("p", "q", "k", "r", "s", "c")
    hom = MdHom(
        name="conv",
        iterators=names,
        extents=extents,
        inputs=inputs,
        outputs=(out,),
        terms=(times(kind),),
        combine=combine,
        initial=(None,),
        finish=(None,),
    )
    shapes = buffer("I", kind, (p + r - 1, q + s - 1, c)), buffer("F", kind, (k, r, s, c))
    return program(hom, *shapes, buffer("O", kind, (p, q, k), Role.OUTPUT))


def stencil(n: int, m: int, r: int = 5, s: int = 5, kind: ElementType = F32) -> HostProgram:
    """``y[i][j] = sum of w[r][s] * x[i + r][j + s]``."""
    x, w = View("x", (at(1, 0, 1, 0), at(0, 1, 0, 1))), View("w", (at(0, 0, 1, 0), at(0, 0, 0, 1)))
    y = View("y", (at(1, 0, 0, 0), at(0, 1, 0, 0)))
    extents = tuple(map(Number, (n, m, r, s)))
    combine = (KEEP, KEEP, sums(kind), sums(kind))
    names = ("i", "j", "r", "s")
    hom = MdHom(
        name="stencil",
        iterators=names,
        extents=extents,
        inputs=(x, w),
        outputs=(y,),
        terms=(times(kind),),
        combine=combine,
        initial=(None,),
        finish=(None,),
    )
    shapes = buffer("x", kind, (n + r - 1, m + s - 1)), buffer("w", kind, (r, s))
    return program(hom, *shapes, buffer("y", kind, (n, m), Role.OUTPUT))


def dot(n: Extent, kind: ElementType = F32) -> HostProgram:
    x, y, z = View("x", (at(1),)), View("y", (at(1),)), View("z", ())
    hom = MdHom(
        name="dot",
        iterators=("k",),
        extents=(number(n),),
        inputs=(x, y),
        outputs=(z,),
        terms=(times(kind),),
        combine=(sums(kind),),
        initial=(None,),
        finish=(None,),
    )
    return program(hom, buffer("x", kind, (n,)), buffer("y", kind, (n,)), buffer("z", kind, (), Role.OUTPUT))


def row_maximum(m: int, n: int, kind: ElementType, neutral: float | None) -> HostProgram:
    combine = (KEEP, reduce_by(BinaryOp.MAXIMUM, kind, neutral))
    a, y = View("A", (at(1, 0), at(0, 1))), View("y", (at(1, 0),))
    extents = (Number(m), Number(n))
    hom = MdHom(
        name="rowmax",
        iterators=("i", "k"),
        extents=extents,
        inputs=(a,),
        outputs=(y,),
        terms=(read(0, kind),),
        combine=combine,
        initial=(None,),
        finish=(None,),
    )
    return program(hom, buffer("A", kind, (m, n)), buffer("y", kind, (m,), Role.OUTPUT))


def largest_from_the_first(n: int) -> HostProgram:
    """``y = max(x[0], x[1], ..., x[n]) + x[0]``, ``x[0]`` being the initial value, the others terms."""
    others, first, y = View("x", (at(1, plus=1),)), View("x", (at(0),)), View("y", ())
    combine = (reduce_by(BinaryOp.MAXIMUM, F32, float("-inf")),)
    finish = binary(BinaryOp.ADD, read(2), read(1))
    hom = MdHom(
        name="largest",
        iterators=("j",),
        extents=(Number(n),),
        inputs=(others, first),
        outputs=(y,),
        terms=(read(0),),
        combine=combine,
        initial=(read(1),),
        finish=(finish,),
    )
    return program(hom, buffer("x", F32, (n + 1,)), buffer("y", F32, (), Role.OUTPUT))


def best_record(m: int, n: int, commutative: bool = True) -> HostProgram:
    """The largest element of each row and where it is: an operator on pairs, without a neutral element.

    Where it does not commute it takes the left one of equal elements, else the one that stands first.
    """
    whole = ElementType.INT32
    larger: Expression = Compare(CompareOp.GE, read(0), read(2))
    if commutative:
        equal = Compare(CompareOp.EQ, read(0), read(2))
        before = Compare(CompareOp.LT, read(1, whole), read(3, whole))
        first = binary(BinaryOp.AND, equal, before)
        larger = binary(BinaryOp.OR, Compare(CompareOp.GT, read(0), read(2)), first)
    results = (Select(larger, read(0), read(2)), Select(larger, read(1, whole), read(3, whole)))
    combine = (
        KEEP,
        CombineOperator(
            Order.POINTWISE,
            Combiner(name="best", results=results, neutral=(None, None), commutative=commutative),
        ),
    )
    a, value, place = View("A", (at(1, 0), at(0, 1))), View("value", (at(1, 0),)), View("place", (at(1, 0),))
    terms = (read(0), Iterator(1, whole))
    extents, none = (Number(m), Number(n)), (None, None)
    hom = MdHom(
        name="best",
        iterators=("i", "k"),
        extents=extents,
        inputs=(a,),
        outputs=(value, place),
        terms=terms,
        combine=combine,
        initial=none,
        finish=none,
    )
    outputs = buffer("value", F32, (m,), Role.OUTPUT), buffer("place", whole, (m,), Role.OUTPUT)
    return program(hom, buffer("A", F32, (m, n)), *outputs)


def jacobi(n: int, m: int, kind: ElementType = F32) -> HostProgram:
    """Five neighbours of a grid, no reduction."""

    def x(di: int, dj: int) -> View:
        return View("x", (at(1, 0, plus=1 + di), at(0, 1, plus=1 + dj)))

    views = (x(0, 0), x(0, 1), x(1, 0), x(-1, 0), x(0, -1))
    plus = BinaryOp.ADD
    left = binary(plus, read(0, kind), read(1, kind))
    right = binary(plus, read(2, kind), binary(BinaryOp.SUBTRACT, read(3, kind), read(4, kind)))
    y = View("y", (at(1, 0), at(0, 1)))
    hom = MdHom(
        name="jacobi",
        iterators=("i", "j"),
        extents=(Number(n), Number(m)),
        inputs=views,
        outputs=(y,),
        terms=(binary(plus, left, right),),
        combine=(KEEP, KEEP),
        initial=(None,),
        finish=(None,),
    )
    return program(hom, buffer("x", kind, (n + 2, m + 2)), buffer("y", kind, (n, m), Role.OUTPUT))


def turned(n: int, m: int) -> HostProgram:
    """``y[j][i] = x[n - 1 - i][2 * j] + i * j``: backwards, a stride, transposed, iterators as values."""
    kind, long = ElementType.INT16, ElementType.INT64
    x = View("x", (at(-1, 0, plus=n - 1), at(0, 2)))
    y = View("y", (at(0, 1), at(1, 0)))
    product = Convert(kind, binary(BinaryOp.MULTIPLY, Iterator(0, long), Iterator(1, long)))
    term = binary(BinaryOp.ADD, read(0, kind), product)
    extents = (Number(n), Number(m))
    hom = MdHom(
        name="turned",
        iterators=("i", "j"),
        extents=extents,
        inputs=(x,),
        outputs=(y,),
        terms=(term,),
        combine=(KEEP, KEEP),
        initial=(None,),
        finish=(None,),
    )
    return program(hom, buffer("x", kind, (n, 2 * m)), buffer("y", kind, (m, n), Role.OUTPUT))


def shifted(n: int, m: int, element: ElementType = F32) -> HostProgram:
    """``y[i][j] = j > 0 ? x[i][j - 1] : 7``: what is not chosen lies outside."""
    whole = ElementType.INT32
    inside = Compare(CompareOp.GT, Iterator(1, whole), Constant(0, whole))
    term = Select(inside, read(0, element), Constant(7, element))
    x, y = View("x", (at(1, 0), at(0, 1, plus=-1))), View("y", (at(1, 0), at(0, 1)))
    extents = (Number(n), Number(m))
    hom = MdHom(
        name="shifted",
        iterators=("i", "j"),
        extents=extents,
        inputs=(x,),
        outputs=(y,),
        terms=(term,),
        combine=(KEEP, KEEP),
        initial=(None,),
        finish=(None,),
    )
    return program(hom, buffer("x", element, (n, m)), buffer("y", element, (n, m), Role.OUTPUT))


def gather(n: int, m: int) -> HostProgram:
    """``y[i] = sum of x[place[i][k]]``: a computed index."""
    whole = ElementType.INT32
    x, place = View("x", (read(1, whole),)), View("place", (at(1, 0), at(0, 1)))
    y = View("y", (at(1, 0),))
    extents, combine = (Number(n), Number(m)), (KEEP, sums(F32))
    hom = MdHom(
        name="gather",
        iterators=("i", "k"),
        extents=extents,
        inputs=(x, place),
        outputs=(y,),
        terms=(read(0),),
        combine=combine,
        initial=(None,),
        finish=(None,),
    )
    shapes = buffer("x", F32, (5,)), buffer("place", whole, (n, m))
    return program(hom, *shapes, buffer("y", F32, (n,), Role.OUTPUT))


def at_most(a: str, b: str) -> IntExpression:
    return Operation("<=", (Name(a), Name(b)))


KINDS = tuple(kind for kind in ElementType if kind is not ElementType.BOOL)

ZOO: dict[str, tuple[HostProgram, dict[str, int]]] = {
    "matmul": (matmul(17, 37, 23), {}),
    "matmul_even": (matmul(16, 32, 24), {}),
    "matmul_symbolic": (matmul("M", "N", "K"), {"M": 13, "N": 35, "K": 19}),
    "matmul_half": (matmul(9, 17, 13, ElementType.FLOAT16), {}),
    "matmul_int8": (matmul(9, 17, 13, ElementType.INT8), {}),
    "gemm": (gemm(13, 18, 21), {}),
    "gemm_triangle": (gemm(13, 18, 21, guard=at_most("k", "i")), {}),
    "gemm_written": (gemm(13, 18, 21, ElementType.FLOAT64, written=at_most("j", "i")), {}),
    "convolution": (convolution(5, 7, 11, 6, 3, 3), {}),
    "convolution_bytes": (convolution(3, 4, 5, 16, 2, 2, ElementType.UINT8), {}),
    "stencil": (stencil(13, 37), {}),
    "dot": (dot(1001), {}),
    "largest": (largest_from_the_first(333), {}),
    "largest_of_one": (largest_from_the_first(0), {}),
    "dot_symbolic": (dot("N"), {"N": 333}),
    "row_maximum": (row_maximum(7, 45, F32, float("-inf")), {}),
    "row_maximum_of_nothing": (row_maximum(7, 45, ElementType.INT32, None), {}),
    "best_record": (best_record(9, 41), {}),
    "best_record_in_order": (best_record(9, 41, commutative=False), {}),
    "jacobi": (jacobi(19, 35), {}),
    "turned": (turned(11, 18), {}),
    "shifted": (shifted(7, 33), {}),
    "gather": (gather(9, 40), {}),
}


def hom_of(given: HostProgram) -> MdHom:
    (hom,) = given.body
    assert isinstance(hom, MdHom)
    return hom


def device() -> OpenDevice:
    return open_device(choose_device(os.environ.get("POLYLOOM_TEST_DEVICE", "cpu")))


def made_up(given: HostProgram, parameters: Mapping[str, int], seed: int) -> dict[str, NDArray]:
    """Return small integers for every buffer, outputs too."""
    rng = np.random.default_rng(seed)
    found = {}
    for each in given.buffers:
        low = 0 if each.type.dtype.kind == "u" or each.name == "place" else -3
        found[each.name] = rng.integers(low, 4, shape_of(each, parameters)).astype(each.type.dtype)
    return found


def run_on_device(
    given: HostProgram,
    schedule: Schedule | None,
    parameters: Mapping[str, int],
    arrays: Mapping[str, NDArray],
    on: OpenDevice | Driver | None = None,
) -> dict[str, NDArray]:
    """Return what is in the buffers that the program writes, after a run on the device."""

    def emit(node: MdHom, whole: HostProgram, model: DeviceModel) -> Launch:
        return emit_md_hom(node, whole, model, schedule, one_kernel_schedule)

    prepared = prepare(given, parameters, on or device(), emit)
    return run_program(prepared, given, arrays)


def run_program(prepared: Prepared, given: HostProgram, arrays: Mapping[str, NDArray]) -> dict[str, NDArray]:
    """Return what is in the buffers that a prepared program writes, after a run."""
    driver = prepared.driver
    memory = {name: driver.allocate(array.nbytes) for name, array in arrays.items()}
    for name, array in arrays.items():
        driver.upload(memory[name], np.ascontiguousarray(array))
    prepared.run(memory)
    found = {}
    for each in given.buffers:
        if each.role is not Role.INPUT:
            found[each.name] = np.empty_like(arrays[each.name])
            driver.download(memory[each.name], found[each.name])
    return found


def check(
    given: HostProgram,
    schedule: Schedule | None,
    parameters: Mapping[str, int],
    seed: int = 0,
    on: OpenDevice | Driver | None = None,
) -> None:
    """Compare a run under a schedule with the evaluator, exactly."""
    arrays = made_up(given, parameters, seed)
    inputs = {b.name: arrays[b.name] for b in given.buffers if b.role in (Role.INPUT, Role.UPDATED)}
    wanted = evaluate_host(given, parameters, inputs)
    found = run_on_device(given, schedule, parameters, arrays, on)
    for name, value in wanted.items():
        np.testing.assert_array_equal(found[name], value, err_msg=f"{name} under {schedule}")


def buffers_of(given: HostProgram) -> dict[str, Buffer]:
    return {each.name: each for each in given.buffers}


def wild_schedule(given: HostProgram, rng: Random) -> Schedule:
    """Return a valid schedule as no cost model would choose it: odd tiles, items, orders, copies."""
    hom = hom_of(given)
    while True:
        schedule = random_schedule(hom, rng)
        if not problems(TileFacts(hom, schedule), buffers_of(given), device().model):
            return schedule


def copying_schedule(given: HostProgram) -> Schedule:
    """Return a schedule of several work-items that share a copy of each input."""
    hom = hom_of(given)
    plain = plain_schedule(len(hom.extents), len(hom.inputs))
    copies = (Caching(Memory.LOCAL),) * len(hom.inputs)
    return replace(plain, items=(2, 2, *plain.items[2:]), local=(8,) * len(hom.extents), inputs=copies)


def random_schedule(hom: MdHom, rng: Random) -> Schedule:
    """Return a schedule at random, legal or not."""
    count = len(hom.extents)

    def order() -> tuple[int, ...]:
        return tuple(rng.sample(range(count), count))

    vector = rng.choice([None, *range(count)])
    width = 1 if vector is None else rng.choice([2, 4, 8, 16])
    private = [rng.choice([1, 1, 2, 3, 4] if count < 4 else [1, 1, 1, 2, 3]) for _ in range(count)]
    items = [rng.choice([1, 1, 1, 2, 3, 4]) for _ in range(count)] if rng.random() < 0.4 else [1] * count
    step = [private[d] * items[d] * (width if d == vector else 1) for d in range(count)]
    local = [rng.choice([0, 0, step[d], 2 * step[d], 3]) for d in range(count)]
    group = [rng.choice([0, 0, step[d], 2 * (local[d] or step[d]), 5]) for d in range(count)]
    schedule = Schedule(
        group=tuple(group),
        items=tuple(items),
        local=tuple(local),
        private=tuple(private),
        strided=tuple(rng.random() < 0.3 for _ in range(count)),
        vector=vector,
        width=width,
        group_order=order(),
        item_order=order(),
        local_order=order(),
        private_order=order(),
        unrolled_order=order(),
        inputs=tuple(_wild_caching(len(view.indices), rng) for view in hom.inputs),
        follow=rng.choice([None, None, *range(len(hom.inputs))]),
        streaming=rng.random() < 0.2,
    )
    facts = TileFacts(hom, replace(schedule, stages=2))
    return facts.schedule if facts.staged and rng.random() < 0.4 else schedule


def _wild_caching(rank: int, rng: Random) -> Caching:
    if rng.random() < 0.6:
        return Caching()
    axes = tuple(rng.sample(range(rank), rank))
    return Caching(Memory.LOCAL, axes, rng.choice([0, 0, 1, 16]), rng.random() < 0.4)
