"""Python functions of affine loops, each with arguments to try it with."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import polyloom

FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[[np.random.Generator], tuple[Any, ...]]]] = {}
WIDTH = 3
WEIGHT = 0.25


def case(arguments: Callable[[np.random.Generator], tuple[Any, ...]]) -> Any:
    def keep(function: Callable[..., Any]) -> Callable[..., Any]:
        FUNCTIONS[function.__name__] = function, arguments
        return function

    return keep


def floats(g: np.random.Generator, *shape: int) -> Any:
    return g.random(shape).astype(np.float32)


@case(lambda g: (2.0, floats(g, 5, 7), floats(g, 7, 4), floats(g, 5, 4)))
def gemm(alpha, a, b, c):  # type: ignore[no-untyped-def]
    n, m = c.shape
    for i in range(n):
        for j in range(m):
            s = 0.0
            for k in range(a.shape[1]):
                s += a[i, k] * b[k, j]
            c[i, j] = alpha * s + c[i, j]


@case(lambda g: (g.random(100), g.random(100)))
def dot(x, y):  # type: ignore[no-untyped-def]
    s = 0.0
    for i in range(len(x)):
        s += x[i] * y[i]
    return s


@case(lambda g: (4, g.random(50)))
def jacobi(steps, a):  # type: ignore[no-untyped-def]
    b = np.zeros_like(a)
    for _t in range(steps):
        for i in range(1, a.shape[0] - 1):
            b[i] = (a[i - 1] + a[i] + a[i + 1]) / 3
        for i in range(1, a.shape[0] - 1):
            a[i] = b[i]
    return a, b


@case(lambda g: (g.random(60),))
def largest(x):  # type: ignore[no-untyped-def]
    m = x[0]
    count = 0
    for i in range(1, len(x)):
        if x[i] > m:
            m = x[i]
        if x[i] > 0.5 and i % 2 == 0:
            count += 1
    return m, count


@case(lambda g: (g.random((9, 9)) + 9 * np.eye(9),))
def lu(a):  # type: ignore[no-untyped-def]
    n = a.shape[0]
    for k in range(n):
        for i in range(k + 1, n):
            a[i, k] /= a[k, k]
            for j in range(k + 1, n):
                a[i, j] -= a[i, k] * a[k, j]


@case(lambda g: (g.random(30), np.zeros(30)))
def backwards(x, y):  # type: ignore[no-untyped-def]
    n = x.shape[0]
    for i in range(n - 1, -1, -2):
        if i > 3:
            y[i] = np.sqrt(x[i]) if i < 8 else max(x[i], 0.3)
        else:
            y[i] = x[n - 1 - i] ** 2


@case(lambda g: (floats(g, 20),))
def both_branches(x):  # type: ignore[no-untyped-def]
    for i in range(x.shape[0]):
        if x[i] > 0.5:
            x[i] = x[i] - 0.5
            x[i] = x[i] * WEIGHT
        else:
            x[i] = 2 * x[i]


@case(lambda g: (g.integers(0, 9, 12).astype(np.int32), np.zeros(6, np.int64)))
def pairs(x, y):  # type: ignore[no-untyped-def]
    for i in range(len(x)):
        y[i // 2] += x[i] * i
    y[-1] = 7


@case(lambda g: (floats(g, 6, 8),))
def blurred(x):  # type: ignore[no-untyped-def]
    out = np.zeros((x.shape[0], x.shape[1] - WIDTH + 1), dtype=x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1] - WIDTH + 1):
            for k in range(WIDTH):
                out[i][j] += x[i][j + k] / WIDTH
    return out


@case(lambda g: (g.random(10), np.zeros(10)))
def edges(x, y):  # type: ignore[no-untyped-def]
    n = len(x)
    for i in range(n):
        y[i] = (x[i - 1] if i > 0 else 0.0) + (x[i + 1] if i + 1 < n else np.exp(x[i]))


@case(lambda g: (g.integers(-9, 9, 12), np.zeros(12, np.int64)))
def rounded_downwards(x, y):  # type: ignore[no-untyped-def]
    for i in range(len(x)):
        y[i] = (3 - i) // 2 * 100 + (2 - i) % 5 * 10 + (x[i] > 0) * 3


def whole(g: np.random.Generator, kind: str, *shape: int) -> Any:
    return g.integers(-90 if kind.startswith("i") else 0, 100, shape).astype(kind)


@case(lambda g: (whole(g, "int32", 40), whole(g, "int8", 40) % 6 - 3, np.zeros((40, 7), np.int64)))
def operators_of_integers(x, y, o):  # type: ignore[no-untyped-def]
    for i in range(x.size):
        o[i, 0] = x[i] // (y[i] | 1)
        o[i, 1] = x[i] % (y[i] | 1)
        o[i, 2] = x[i] << (y[i] & 7)
        o[i, 3] = (x[i] >> 2) ^ ~y[i]
        o[i, 4] = x[i] // -3 + x[i] % -3
        o[i, 5] = y[i] ** 3 + y[i] * y[i]
        o[i, 6] = np.int64(x[i] > 90) + (x[i] < 300) + (y[i] != i)


@case(lambda g: (g.random(30) * 9 - 4, g.random(30) * 4 - 2, np.zeros((30, 4))))
def operators_of_floats(x, y, o):  # type: ignore[no-untyped-def]
    for i in range(len(x)):
        o[i, 0] = x[i] // y[i]
        o[i, 1] = x[i] % y[i]
        o[i, 2] = math.floor(x[i]) + 10 * round(y[i]) + 100 * int(x[i])
        o[i, 3] = math.atan2(x[i], 2) + np.hypot(x[i], y[i]) + max(x[i], y[i], 0)


@case(lambda g: (floats(g, 12), floats(g, 12), whole(g, "int16", 12), np.zeros((12, 7))))
def types_of_results(x, y, k, o):  # type: ignore[no-untyped-def]
    for i in range(len(x)):
        o[i, 0] = float(x[i]) * y[i]
        o[i, 1] = x[i] * np.sqrt(2.0)
        o[i, 2] = x[i] * math.sqrt(2.0)
        o[i, 3] = math.exp(x[i]) * y[i]
        o[i, 4] = np.sqrt(np.abs(k[i]))
        o[i, 5] = k[i] / 2.5
        o[i, 6] = x[i] * np.where(y[i] > 0.5, 0.1, 0.3)


@case(lambda g: (g.random((5, 6)), g.random((5, 6)) < 0.5))
def truth_values(x, m):  # type: ignore[no-untyped-def]
    some = False
    kept = np.ones_like(m)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            kept[i, j] = (m[i, j] | (x[i, j] > 0.8)) & (x[i, j] > 0.1) ^ (not m[i, j])
            if m[i, j] != (x[i, j] > 0.5) and not kept[i, j]:
                some = True
    return some, kept


@case(lambda g: (g.random(20),))
def swapped(x):  # type: ignore[no-untyped-def]
    n, half = x.shape[0], x.shape[0] // 2
    s = t = 1.0
    for i in range(half):
        x[i], x[n - 1 - i] = x[n - 1 - i], x[i]
        s, t = t, 0.5 * (s + t) + x[i]
        if x[i] > 0.4:
            x[i], s = 0.0, x[i] + s
    return s, t


@case(lambda g: (2, floats(g, 20)))
def windows(k, x):  # type: ignore[no-untyped-def]
    n = len(x)
    out = np.full(n, 0.5, x.dtype)
    for i in range(n):
        for j in range(max(0, i - k), min(n, i + k + 1)):
            out[i] += x[j] - x[max(i - 1, 0)]
        if 0 <= i < n:
            out[i] += 1
        else:
            out[0] = 7
    return out


def clipped(value, low, high):  # type: ignore[no-untyped-def]
    """Return a value between two others."""
    if value < low:
        return low
    value += 0.0
    return min(value, high)


@polyloom.jit
def scaled(value):  # type: ignore[no-untyped-def]
    return WEIGHT * value


def at(array, i):  # type: ignore[no-untyped-def]
    return array[i] if i >= 0 else 0.0


@case(lambda g: (g.random(20), g.random(20)))
def functions_in_place(x, y):  # type: ignore[no-untyped-def]
    for i in range(len(x)):
        y[i] = clipped(x[i], 0.2, 0.7) + scaled(y[i]) + at(x, i - 3)


@case(lambda g: (g.random(20), np.zeros(20)))
def neighbours(x, y):  # type: ignore[no-untyped-def]
    n = len(x)
    for i in range(n):
        if i > 0 and x[i - 1] > x[i] and i < n - 1:
            y[i] = x[i + 1]
        if (i > 0 and x[i - 1] > 0.2) or x[i] > 0.5:
            y[i] += 2
        else:
            y[i] -= x[i - 1] if i > 0 and x[i - 1] > 0.1 else 1
        if i > 0 and x[i] > 0.3:
            y[i] += 1
            y[i] *= x[i - 1]
        elif i == 0 or x[i - 1] > 0.4:
            y[i] += 5
        else:
            y[i] += x[i - 1]


@case(lambda g: (g.random((8, 9)), g.random((8, 9)), 3))
def sweeps_over_slices(a, b, steps):  # type: ignore[no-untyped-def]
    for _t in range(steps):
        b[1:-1, 1:-1] = 0.2 * (a[1:-1, 1:-1] + a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:])
        a[:] = b


@case(lambda g: (floats(g, 9), floats(g, 5, 9), floats(g, 5), g.integers(0, 9, 9).astype(np.int16)))
def parts_of_arrays(x, a, y, k):  # type: ignore[no-untyped-def]
    x[1:] = x[:-1] * 2 + x[1:]
    x[::2] -= x[0]
    a[:, 3] += y
    a[0] = x[::-1]
    a[..., 1] = 0
    k[2:] += k[:-2]
    for i in range(len(y)):
        a[i, :i] = y[:i] / 2
    if x[1] > 0:
        x[:] = x - x[1]
    a[1:2] = np.where(a[:1] > x, a[2:3], np.sqrt(np.abs(x)))


@case(lambda g: (floats(g, 4, 6), g.random((4, 6)), floats(g, 6)))
def whole_arrays(a, b, x):  # type: ignore[no-untyped-def]
    assert a.shape[1] == len(x), "a row for each"
    c = a * x + b
    above = c > 1.0
    for i, v in enumerate(x):
        if above[0, i]:
            c[0, i] = v
    d = -a
    total = 0.0
    for v in x:
        total += v
    return c, d, total


@case(lambda g: (floats(g, 3, 5), floats(g, 5), g.integers(0, 9, 4).astype(np.int8), floats(g, 7)))
def in_place_and_side_by_side(a, x, k, y):  # type: ignore[no-untyped-def]
    a += 1
    a *= x
    x -= x[::-1]
    k **= 2
    k += 120
    for i, (u, v) in enumerate(zip(x, y)):  # noqa: B905
        y[i] = u - v
    total = 0.0
    for u, v, w in zip(y, x, k):  # noqa: B905
        total += u * v - w
        x[0] += 1
    return total


@case(lambda g: (g.random((4, 5)), g.random((5, 4)), g.random(9)))
def named_parts(a, b, x):  # type: ignore[no-untyped-def]
    b[:] = (a + 1).T * 2 - b[::-1, 2::-1][:, :1]
    for i, row in enumerate(a):
        for v in row[1:]:
            x[i] += v
        row[::-2] = row[0]
    odd = x[1::2]
    back = odd[::-1]
    back[1] = len(back)
    x[1:5] = x[5:1:-1]
    turned = b.T
    for i in range(turned.shape[0]):
        for j in range(i):
            turned[i, j] = a.T[j, i]
    a[:] = x[: len(a), None] * b.T[:, ::-1] + x[np.newaxis, :5]
    return a.T.copy()


@case(lambda g: (g.random((4, 4)), floats(g, 4), 3))
def made_anew(a, x, steps):  # type: ignore[no-untyped-def]
    b = x.astype(np.float64)
    for _ in range(steps):
        b = b[::-1] * 0.5 + 1
    for i in range(4):
        t = a[i] * 2
        t = t + t[::-1]
        z = np.zeros(3)
        z[1] += t[0]
        b[i] += z[1] + z[2]
    x = x * 2
    x = x[::-1] + x
    return b, x, np.float32(b) + x


def ordered(a, b):  # type: ignore[no-untyped-def]
    low, high = a, b
    if a > b:
        low, high = high, low
    return low, high


def sum_and_order(row):  # type: ignore[no-untyped-def]
    low, high = ordered(row[0], row[1])
    return low, high, row[0] + row[1]


@case(lambda g: (g.random((6, 3)), g.random(6)))
def several_results(a, x):  # type: ignore[no-untyped-def]
    for i in range(6):
        a[i, 0], x[i], a[i, 1] = sum_and_order(a[i, ::-1])


@case(lambda g: (g.random((5, 6)), floats(g, 6), floats(g, 3, 5, 6), 3))
def reductions_and_products(a, x, stack, steps):  # type: ignore[no-untyped-def]
    e = np.exp(a - a.max(axis=1, keepdims=True))
    e = e / e.sum(axis=1, keepdims=True)
    v = a.T[:, 0].copy()
    for _ in range(steps):
        v = a.T @ (a @ v)
        v /= np.sqrt(v.dot(v))
    total = 0.0
    for i in range(a.shape[0]):
        total += a[i].min() * np.argmax(a[i])
        if a[i].sum() > x.sum():
            a[i] -= a[i].mean()
    part_1 = (a + 1)[1:, ::2]
    return e, v, total, stack @ a.T, np.dot(x, x), part_1.sum(axis=(0, -1)), x @ stack.sum(0).T


@case(lambda g: (floats(g, 9), whole(g, "int16", 9), np.array([0.0, -0.0, np.nan, np.inf, -3.5] * 2)[:9]))
def functions_of_numpy(x, k, v):  # type: ignore[no-untyped-def]
    y = np.clip(x - 0.5, 0.0, 0.25) + np.clip(k, -2, 3.5)
    for i in range(9):
        y[i] += np.clip(x[i], x[8 - i], 0.5) + np.round(10 * x[i]) + np.radians(x[i]) + pow(x[i], 2)
        k[i] = np.sign(k[i]) * np.square(np.fmod(k[i], 5)) - np.power(np.remainder(k[i], 4), 2)
        x[i] = np.nan if np.isnan(v[i]) or math.isinf(v[i]) else np.fmax(v[i], np.sign(v[i]))
        if np.isfinite(v[i]) and np.logical_not(np.greater(v[i], -1)):
            v[i] = math.fmod(v[i], 1.25) + np.add(i, 1) - math.degrees(0.5)
    return y, np.sign(v), np.isnan(v), np.logical_and(x > 0, np.isfinite(v)), np.clip(2, 3, 5)


@case(lambda g: (g.random(11), g.random((5, 6)), 3))
def early_ends(x, a, k):  # type: ignore[no-untyped-def]
    total = 0.0
    for i in range(a.shape[0]):
        if i == 1:
            continue
        for j in range(a.shape[1]):
            if a[i, j] < 0.3 or j == i:
                continue
            if a[i, j] > 0.7:
                a[i, j] = 1
            else:
                if j == 2:
                    a[i, j] = 2
                    continue
                a[i, j] += 1
            total += a[i, j]
        total += x[-i - 1] * x[-k]
    if total > 1000:
        return total, 0
    if k > 2:
        total += x[0]
        return total, k
    return -total, k


@case(lambda g: (g.random(11), whole(g, "int16", 11), g.random((5, 6)), 3))
def parts_from_the_end_and_masks(x, c, a, k):  # type: ignore[no-untyped-def]
    lagged = np.sum(x[:-k] * x[k:])
    odd = x[1::2].copy()
    pooled = np.zeros((a.shape[0] // 2, a.shape[1] // 2))
    for i in range(pooled.shape[0]):
        for j in range(pooled.shape[1]):
            pooled[i, j] = a[2 * i : 2 * i + 2, 2 * j : 2 * j + 2].mean()
    both = np.zeros(min(len(x), len(odd)))
    both[-k:] = x[-k:]
    x[x > x.mean()] -= lagged
    x[x[::-1] < 0] = -1
    inner = a[1:-1]
    is_large = inner > 0.5
    inner[is_large] = inner[is_large] * 2 + a[0, 0]
    c[(c > 0) & (c % 2 == 0)] = c[(c > 0) & (c % 2 == 0)] + k
    return lagged, odd, pooled, both, is_large


def line(value, slope=2.0, start=-1):  # type: ignore[no-untyped-def]
    return slope * value + start


@case(lambda g: (g.random(7), g.random((7, 3))))
def named_arguments(x, a):  # type: ignore[no-untyped-def]
    for i in range(7):
        x[i] = line(x[i]) + line(start=a[i, 0], value=x[i]) - line(x[i], 0.5, start=i)


def looked_up(table, k):  # type: ignore[no-untyped-def]
    return table[k]


@case(
    lambda g: (
        np.zeros(8, np.int64),
        g.random(40) * 16 - 8,
        g.integers(0, 5, 40).astype(np.uint8),
        g.random((5, 6)),
        g.integers(-40, 60, 40),
    )
)
def places_of_data(h, v, c, a, k):  # type: ignore[no-untyped-def]
    n = len(v)
    y = np.zeros(n)
    for i in range(n):
        h[int(v[i])] += 1
        j = c[i]
        y[i] = a[j, 2] + v[(i - 1) % n] + looked_up(v, c[c[i]])
        if k[i] < 40 and v[k[i]] > 0:
            a[j][1:] *= 0.5
        y[i] += v[k[i]] if k[i] < 40 else 1.0
    for i in range(4):
        a[c[i]] += a[c[i + 1], :] * a[1:, ::-1][c[i] - 1, i]
        for t in range(3):
            y[i * t] += i
    return y


@case(
    lambda g: (
        g.random((6, 2)),
        g.random((5, 3, 2)),
        g.integers(-6, 6, 5),
        np.zeros((5, 3)),
    )
)
def unpacked(s, t, k, o):  # type: ignore[no-untyped-def]
    total = 0.0
    for i, (a, b) in enumerate(s):
        x, y = s[i]
        x, y = y, x
        total += a * x - b * y * i
    for i in range(k.shape[0]):
        row = s[k[i]]
        k[i] = 0
        p, q = row
        o[i, 0], o[i, 1] = t[i, 1]
        for c in range(2):
            o[i, 2] += row[c] * p - q
        first, second, third = t[k[i]]
        o[i, 1] += first[0] * second[1] - third[0]
    return total


@case(lambda g: (g.random((9, 11)), np.zeros(9), np.zeros(9)))
def loops_that_end(x, y, z):  # type: ignore[no-untyped-def]
    for i in range(x.shape[0]):
        if i > 6:
            break
        for j in range(x.shape[1]):
            y[i] += x[i, j]
            if j == 2 * i - 3:
                y[i] -= 1
                break
            y[i] += 2 * x[i, j]
        for j in range(x.shape[1] - 1, 0, -2):
            if j < i:
                break
            z[i] += x[i, j]
        for j in range(1, x.shape[1], 3):
            if j == i or j == i + 1:
                break
            if j == 7 and i > 3:
                z[i] = 100
                break
            z[i] += x[i, j]
