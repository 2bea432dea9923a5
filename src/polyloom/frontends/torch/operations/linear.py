"""Matrix products, Einstein sums, convolutions and their gradients."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from polyloom.frontends.graph.core import (
    Combine,
    ElementType,
    From,
    Function,
    Op,
    Refused,
    Value,
    Window,
    X,
    convolution,
    determinant,
    einsum,
    filled,
    filter_gradient,
    inverse,
    mapped,
    matrix_product,
    only,
    op,
    parse_einsum,
    reduced,
    refuse_if,
    same_padding,
    scalar,
    sliced,
    squeezed,
    transposed,
    transposed_convolution,
    unsqueezed,
    value,
    with_bias,
)
from polyloom.frontends.torch.call import Call, operations

# -- matrices


def _linear(c: Call) -> Sequence[Value]:
    """``y = x w^T + bias``, whatever dimensions come before the last."""
    x, w, bias = c.input("input"), c.input("weight"), c.optional("bias")
    refuse_if(
        w.rank not in (1, 2) or x.rank == 0 or x.shape[-1] != w.shape[-1],
        f"data {list(x.shape)} and weights {list(w.shape)}",
    )
    matrix = transposed(w, [1, 0]) if w.rank == 2 else w
    y = matrix_product(c.b, x, matrix, hint="" if bias is None else "product")
    return only(y if bias is None else mapped(c.b, scalar.add, y, bias))


def _product(second: str) -> Op:
    return op(matrix_product, X, value(second))


def _added_product(c: Call, left: str, right: str, *, summed: bool = False) -> Sequence[Value]:
    """``beta * self + alpha * left @ right``; ``summed``: over the batch too."""
    beta, alpha = c.attribute("beta", 1), c.attribute("alpha", 1)
    one, two = c.input(left), c.input(right)
    if summed:
        product = einsum(c.b, ["bij", "bjk"], "ik", [one, two], hint="product")
    else:
        product = matrix_product(c.b, one, two, hint="product")
    if beta == 0:
        c.input()  # no matter, whatever it holds
        return only(mapped(c.b, scalar.multiply, product, alpha))
    times: Function = lambda v, n: v if n == 1 else v * n  # noqa: E731
    return only(mapped(c.b, lambda p, s: times(p, alpha) + times(s, beta), product, c.input()))


def _einsum(c: Call) -> Sequence[Value]:
    labels, output, values = parse_einsum(c.text("equation"), c.tensors("tensors"))
    return only(einsum(c.b, labels, output, values))


# -- convolutions


def _rank(x: Value, w: Value) -> int:
    """Return the number of spatial axes."""
    rank = w.rank - 2
    refuse_if(
        rank < 1 or x.rank not in (rank + 1, rank + 2), f"data of rank {x.rank} and filters of rank {w.rank}"
    )
    return rank


def _window(c: Call, sizes: Sequence[int], padding: str = "padding") -> Window:
    rank = len(sizes)
    pads = c.spatial(padding, rank, 0)
    refuse_if(min(pads, default=0) < 0, "a negative padding")
    strides, dilations = c.spatial("stride", rank, 1), c.spatial("dilation", rank, 1)
    window = Window(tuple(sizes), strides, dilations, pads, pads)
    window.check()
    return window


def _named_padding(c: Call, x: Value, w: Value) -> Window:
    """Return the window of ``padding="same"`` or ``"valid"``."""
    rank = w.rank - 2
    strides, dilations = c.spatial("stride", rank, 1), c.spatial("dilation", rank, 1)
    zero = (0,) * rank
    window = Window(tuple(w.shape[2:]), strides, dilations, zero, zero)
    if c.text("padding") == "valid":
        return window
    if c.text("padding") != "same":
        raise Refused(f"padding `{c.text('padding')}`")
    pads = [same_padding(n, 1, window.reach(k)) for k, n in enumerate(x.shape[2:])]
    before, after = (tuple(p[k] for p in pads) for k in range(2))
    return Window(window.sizes, strides, dilations, before, after)


def _forward(c: Call) -> Sequence[Value]:
    """A convolution; data without a batch get one."""
    x, w, bias = c.input("input"), c.input("weight"), c.optional("bias")
    rank = _rank(x, w)
    images = unsqueezed(x, [0]) if x.rank == rank + 1 else x
    named = isinstance(c.attribute("padding", 0), str)
    window = _named_padding(c, images, w) if named else _window(c, w.shape[2:])
    hint = "" if bias is None else "sum"
    y = with_bias(c.b, convolution(c.b, images, w, window, c.integer("groups", 1), hint=hint), bias)
    return only(squeezed(y, [0]) if x.rank == rank + 1 else y)


def _transposed(c: Call) -> Sequence[Value]:
    """A transposed convolution: ``(o - 1) * s - 2 * p + reach + output_padding`` elements along an axis."""
    x, w, bias = c.input("input"), c.input("weight"), c.optional("bias")
    rank = _rank(x, w)
    images = unsqueezed(x, [0]) if x.rank == rank + 1 else x
    window = _window(c, w.shape[2:])
    extra = c.spatial("output_padding", rank, 0)
    shape = [
        (n - 1) * window.strides[k] - 2 * window.before[k] + window.reach(k) + extra[k]
        for k, n in enumerate(images.shape[2:])
    ]
    refuse_if(min(shape) < 1, "a result without elements")
    y = transposed_convolution(c.b, images, w, window, c.integer("groups", 1), shape)
    y = with_bias(c.b, y, bias)
    return only(squeezed(y, [0]) if x.rank == rank + 1 else y)


def _convolution(c: Call) -> Sequence[Value]:
    return _transposed(c) if c.flag("transposed") else _forward(c)


def _gradients(c: Call) -> Sequence[Value]:
    """Gradients of a convolution by data, filters and bias, those that ``output_mask`` asks for."""
    dy, x, w = c.input("grad_output"), c.input("input"), c.input("weight")
    wanted = c.attribute("output_mask", (True, True, True))
    refuse_if(x.rank != w.rank or dy.rank != w.rank, f"data of rank {x.rank} and filters of rank {w.rank}")
    window, groups = _window(c, w.shape[2:]), c.integer("groups", 1)
    swapped = c.flag("transposed")
    results = []
    if wanted[0]:
        if swapped:
            dx = convolution(c.b, dy, w, window, groups, hint="input")
            for k, size in enumerate(x.shape[2:], 2):
                dx = sliced(dx, k, 0, 1, size)  # with ``output_padding`` windows find room after the last one
            results.append(dx)
        else:
            results.append(transposed_convolution(c.b, dy, w, window, groups, x.shape[2:], gathers=True))
    if wanted[1]:
        data, back = (dy, x) if swapped else (x, dy)
        results.append(filter_gradient(c.b, data, back, window, groups, w.shape))
    if wanted[2]:
        rest = [k for k in range(dy.rank) if k != 1]
        results.append(reduced(c.b, Combine.ADD, dy, rest, keep=False, hint="bias"))
    return _in_places(c, results, wanted)


def _in_places(c: Call, results: Sequence[Value], wanted: Sequence[bool]) -> Sequence[Value]:
    """Return a value for each result of the node: those not asked for have names too, which none reads."""
    names = c.node.outputs
    if len(results) == len(names):
        return results
    left = iter(results)
    fallback = results[0]
    return [next(left) if asked else fallback for asked in wanted]


def _bilinear(c: Call) -> Sequence[Value]:
    """``y[..., o] += x1[..., i] * w[o, i, j] * x2[..., j]``, one statement."""
    x, y, w = c.input("input1"), c.input("input2"), c.input("weight")
    refuse_if(
        x.rank != y.rank or w.rank != 3 or x.rank == 0 or c.type is ElementType.BOOL,
        "operands of other ranks",
    )
    lead = "".join(chr(ord("A") + k) for k in range(x.rank - 1))
    bias = c.optional("bias")
    labels = [f"{lead}i", "oij", f"{lead}j"]
    found = einsum(c.b, labels, f"{lead}o", [x, w, y], hint="" if bias is None else "product")
    return only(found if bias is None else mapped(c.b, scalar.add, found, bias))


def _trilinear(c: Call) -> Sequence[Value]:
    """The core form of bilinear: three operands with axes of size 1 put in, multiplied and summed."""
    names = ("i1", "i2", "i3")
    wide = [unsqueezed(c.input(n), c.numbers(f"expand{k}", ())) for k, n in enumerate(names, 1)]
    rank = wide[0].rank
    labels = "".join(chr(ord("a") + k) for k in range(rank))
    output = "".join(labels[k] for k in range(rank) if k not in c.numbers("sumdim"))
    refuse_if(any(v.rank != rank for v in wide), "operands of several ranks")
    return only(einsum(c.b, [labels] * 3, output, wide))


def _inverse(c: Call) -> Sequence[Value]:
    """The inverse, and 0: the matrix has one."""
    x = c.input("A" if "A" in c.arguments else "self")
    fault = filled(c.b, x.shape[:-2], 0, ElementType.INT32)
    return (inverse(c.b, x), fault)[: c.results]


def _solved(c: Call) -> Sequence[Value]:
    """``linalg.solve`` of few rows, by the inverse; not the factors that PyTorch keeps."""
    a, y = c.input("A"), c.input("B")
    refuse_if(a.rank < 2, f"a matrix of rank {a.rank}")
    vector = y.rank == 1 or (y.rank == a.rank - 1 and y.shape == a.shape[:-1])
    right = unsqueezed(y, [y.rank]) if vector else y
    pair = (inverse(c.b, a), right)
    found = matrix_product(c.b, *(pair if c.flag("left", True) else pair[::-1]))
    return only(squeezed(found, [found.rank - 1]) if vector else found)


OPERATIONS = operations(
    {
        # The determinant; not the matrices that PyTorch keeps of its way there.
        **dict.fromkeys(
            ("det", "linalg_det", "_linalg_det"),
            op(determinant, From(lambda c: c.input("A" if "A" in c.arguments else "self"))),
        ),
        **dict.fromkeys(("inverse", "linalg_inv", "linalg_inv_ex"), _inverse),
        **dict.fromkeys(("linalg_solve", "linalg_solve_ex", "_linalg_solve_ex"), _solved),
        "linear": _linear,
        "mm": _product("mat2"),
        "bmm": _product("mat2"),
        "matmul": _product("other"),
        "mv": _product("vec"),
        "dot": _product("tensor"),
        "vdot": _product("other"),
        "addmm": partial(_added_product, left="mat1", right="mat2"),
        "addmv": partial(_added_product, left="mat", right="vec"),
        "baddbmm": partial(_added_product, left="batch1", right="batch2"),
        "addbmm": partial(_added_product, left="batch1", right="batch2", summed=True),
        "outer": op(einsum, ["i", "j"], "ij", From(lambda c: [c.input(), c.input("vec2")])),
        "einsum": _einsum,
        "bilinear": _bilinear,
        "_trilinear": _trilinear,
        **dict.fromkeys(("conv1d", "conv2d", "conv3d"), _forward),
        **dict.fromkeys(("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"), _transposed),
        "convolution": _convolution,
        "convolution_backward": _gradients,
    }
)
