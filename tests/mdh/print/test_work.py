"""Parallel loops that threads share by work: each iteration is done once, and shares are about even."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from polyloom.c_compilers import c_compilers
from polyloom.ir.expressions import Binary, BinaryOp, Constant, Read
from polyloom.ir.types import ElementType
from polyloom.mdh.native.build import Unit, shared_object
from polyloom.mdh.native.entry import built
from polyloom.mdh.print.team import TEAM, WORK
from polyloom.mdh.tree.evaluate import evaluate
from polyloom.mdh.tree.nodes import Code, Compute, For, Function, If, Kind, Load, Parameter, Store, counted
from polyloom.polyhedra.loops.tree import IntExpression, Name, Number, Operation

I32 = ElementType.INT32
HERE, J, K, L = map(Name, "ijkl")
N, ZERO = 70, Number(0)


def plus(a: IntExpression, b: int) -> IntExpression:
    return Operation("+", (a, Number(b)))


def least(a: IntExpression, b: IntExpression) -> IntExpression:
    return Operation("min", (a, b))


def count(*subscripts: IntExpression) -> Code:
    """Add 1 to an element."""
    value = Binary(BinaryOp.ADD, Read(0, I32), Constant(1, I32))
    return (Store("y", subscripts, Compute(value, (Load("y", subscripts),))),)


def group(name: str, end: int, body: Code, start: int = 0, step: int = 1) -> For:
    loop = counted(name, Number(end), body, kind=Kind.GROUP, start=Number(start), step=step)
    return replace(loop, by_work=True)


def row(end: IntExpression, start: IntExpression = ZERO) -> Code:
    return (counted("j", end, count(HERE, J), start=start),)


TILE_ROW = counted("l", least(plus(K, 1), least(plus(J, 4), Number(N))), count(K, L), start=J)
TILE = counted("k", least(plus(HERE, 8), Number(N)), (TILE_ROW,), start=HERE)

SHAPES: dict[str, For] = {
    "lower triangle": group("i", N, row(plus(HERE, 1))),
    "upper triangle": group("i", N, row(Number(N), HERE)),
    "band": group("i", N, row(least(plus(HERE, 5), Number(N)), HERE), 3),
    "nothing at first": group("i", N, row(plus(HERE, -60))),
    "nothing at last": group("i", N, row(Operation("-", (Number(9), HERE)))),
    "tiles": group("i", N, (group("j", N, (TILE,), 0, 4),), 0, 8),
    "branch": group("i", N, (If(Operation("<", (HERE, Number(9))), row(Number(N)), count(HERE, Number(0))),)),
    "no rows": group("i", 0, row(Number(N))),
    "no columns": group("i", N, (group("j", 0, count(HERE, J)),)),
}


def test_each_iteration_is_done_once() -> None:
    shape = (Number(N), Number(N))
    parameter = Parameter(name="y", type=I32, shape=shape)
    function = Function(name="f", parameters=(parameter,), integers=(), body=tuple(SHAPES.values()))
    start = np.zeros((N, N), np.int32)
    wanted = evaluate(function, {"y": start}, {})["y"]
    assert wanted.max() > 1
    for threads in (1, 2, 7):
        found = start.copy()
        built(function, next(c_compilers()), threads).call([found.ctypes.data])()
        np.testing.assert_array_equal(found, wanted, err_msg=f"{threads} threads")


SHARE = """
int64_t share(int64_t pieces, int64_t size, const int64_t *before, int64_t points, int64_t me,
        int64_t threads)
{
    struct shares shares = {.pieces = pieces, .size = size};
    const struct team team = {.threads = threads};
    for (int64_t k = 0; k <= pieces; k++)
        shares.before[k] = before[k];
    return part_by_work(&shares, points, me, &team);
}
"""


@pytest.mark.parametrize("threads", [2, 5])
@pytest.mark.parametrize("points", [40, 1000, 64 * 47 + 5])
def test_shares_are_about_even(points: int, threads: int) -> None:
    library = ctypes.CDLL(
        str(shared_object(Unit((f"#include <stdint.h>\n{TEAM}{WORK}{SHARE}",)), next(c_compilers())))
    )
    library.share.restype = ctypes.c_int64
    for work in (np.arange(points) + 1, np.arange(points, 0, -1) ** 2, np.maximum(0, np.arange(points) - 30)):
        size = -(-points // 64)
        middles = np.arange(0, points, size) + size // 2
        before = np.concatenate([[0], np.cumsum(work[np.minimum(middles, points - 1)])]).astype(np.int64)
        given = [ctypes.c_int64(len(middles)), ctypes.c_int64(size), before.ctypes.data_as(ctypes.c_void_p)]
        ends = [
            library.share(*given, ctypes.c_int64(points), ctypes.c_int64(me), ctypes.c_int64(threads))
            for me in range(threads + 1)
        ]
        assert ends[0] == 0 and ends[-1] == points and ends == sorted(ends)
        shares = [work[a:b].sum() for a, b in pairwise(ends)]
        assert max(shares) <= 1.03 * work.sum() / threads + 2 * work.max(), ends
