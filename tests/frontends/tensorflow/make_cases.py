"""Make the TensorFlow test cases: graphs, their inputs, and what TensorFlow computes for them.

    python tests/frontends/tensorflow/make_cases.py FOLDER [NAME ...]

For each case FOLDER gets NAME.pb (a GraphDef, variables frozen) and NAME.npz with the arrays
``in/PLACEHOLDER`` and ``out/TENSOR``. It needs the package tensorflow (2.21), which the tests of the importer
do not. `saved_model` is a SavedModel whose variables lie in a checkpoint.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"

import numpy as np
import tensorflow as tf
from tensorflow.python.framework.convert_to_constants import (
    convert_variables_to_constants_v2,
)

Shape = tuple[int, ...]

SEED = 20


@dataclass(frozen=True)
class Case:
    """A function of tensors; ``shapes`` of its arguments; ``dtypes`` where they are not float32.

    ``positive``: arguments that are made positive (variances, weights of a root).
    """

    name: str
    function: Callable[..., Any]
    shapes: Sequence[Shape]
    dtypes: Sequence[Any] = ()
    positive: Sequence[int] = ()


CASES: list[Case] = []


def case(
    *shapes: Shape, name: str = "", dtypes: Sequence[Any] = (), positive: Sequence[int] = ()
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function as a case."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        CASES.append(Case(name or function.__name__, function, shapes, dtypes, positive))
        return function

    return register


def constant(*shape: int, seed: int = 1, positive: bool = False) -> Any:
    """Return fixed weights."""
    values = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return tf.constant(np.abs(values) + 0.1 if positive else values)


def weights(*shape: int, seed: int = 1) -> Any:
    """Return a variable with fixed weights, small enough for sums to stay near 1."""
    values = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return tf.Variable(values / np.float32(np.sqrt(max(1, np.prod(shape[:-1])))))


# -- raw operations and layers, inference


@case((3, 16))
def dense_relu(x: Any) -> Any:
    return tf.nn.relu(x @ constant(16, 8) + constant(8, seed=2))


@case((3, 16))
def dense_bias_add(x: Any) -> Any:
    return tf.nn.bias_add(tf.matmul(x, constant(8, 16), transpose_b=True), constant(8, seed=2))


@case((16,))
def matrix_vector(x: Any) -> Any:
    return tf.linalg.matvec(constant(8, 16), x)


@case((2, 9, 8, 3))
def conv2d_valid(x: Any) -> Any:
    return tf.nn.conv2d(x, constant(3, 3, 3, 4), 1, "VALID")


@case((2, 9, 8, 3))
def conv2d_same_strided(x: Any) -> Any:
    return tf.nn.conv2d(x, constant(3, 2, 3, 4), (2, 3), "SAME")


@case((1, 7, 8, 3))
def conv2d_explicit(x: Any) -> Any:
    return tf.nn.conv2d(x, constant(3, 3, 3, 4), 2, [[0, 0], [1, 2], [0, 1], [0, 0]])


@case((1, 9, 10, 2))
def conv2d_dilated(x: Any) -> Any:
    return tf.nn.conv2d(x, constant(3, 3, 2, 4), 1, "SAME", dilations=(2, 3))


@case((1, 9, 10, 2))
def convolution_dilated(x: Any) -> Any:
    return tf.nn.convolution(x, constant(3, 3, 2, 4), padding="SAME", dilations=2)


@case((1, 6, 6, 6))
def conv2d_grouped(x: Any) -> Any:
    return tf.nn.conv2d(x, constant(3, 3, 2, 9), 1, "VALID")


@case((2, 10, 3))
def conv1d(x: Any) -> Any:
    return tf.nn.conv1d(x, constant(3, 3, 4), 2, "SAME")


@case((1, 5, 6, 4, 2))
def conv3d(x: Any) -> Any:
    return tf.nn.conv3d(x, constant(2, 3, 2, 2, 3), (1, 1, 2, 1, 1), "SAME")


@case((1, 4, 5, 3))
def conv2d_transposed(x: Any) -> Any:
    return tf.nn.conv2d_transpose(x, constant(3, 3, 2, 3), (1, 8, 10, 2), 2, "SAME")


@case((1, 7, 6, 3))
def depthwise(x: Any) -> Any:
    return tf.nn.depthwise_conv2d(x, constant(3, 3, 3, 2), (1, 2, 2, 1), "SAME")


@case((1, 7, 6, 3))
def separable(x: Any) -> Any:
    return tf.nn.separable_conv2d(
        x, constant(3, 3, 3, 2), constant(1, 1, 6, 4, seed=2), (1, 1, 1, 1), "VALID"
    )


@case((2, 7, 8, 3))
def max_pool(x: Any) -> Any:
    return tf.nn.max_pool2d(x, 3, 2, "SAME")


@case((2, 7, 8, 3))
def average_pool(x: Any) -> Any:
    return tf.nn.avg_pool2d(x, (3, 2), 2, "SAME")


@case((2, 6, 8, 3))
def pools_valid(x: Any) -> Any:
    return tf.nn.avg_pool2d(tf.nn.max_pool2d(x, 2, 2, "VALID"), 2, 1, "VALID")


@case((2, 4, 5, 6))
def batch_norm(x: Any) -> Any:
    mean, variance = constant(6), constant(6, seed=2, positive=True)
    return tf.nn.batch_normalization(x, mean, variance, constant(6, seed=3), constant(6, seed=4), 1e-3)


@case((2, 4, 5, 6))
def fused_batch_norm(x: Any) -> Any:
    mean, variance = constant(6), constant(6, seed=2, positive=True)
    scale, offset = constant(6, seed=3), constant(6, seed=4)
    return tf.compat.v1.nn.fused_batch_norm(x, scale, offset, mean, variance, is_training=False)[0]


@case((1, 3, 3, 8))
def local_response(x: Any) -> Any:
    return tf.nn.local_response_normalization(x, depth_radius=2, bias=1.5, alpha=0.2, beta=0.6)


@case((3, 7))
def softmax(x: Any) -> Any:
    return tf.nn.softmax(x)


@case((3, 7, 2))
def softmax_axis(x: Any) -> Any:
    return tf.nn.softmax(x, axis=1)


@case((3, 7))
def log_softmax(x: Any) -> Any:
    return tf.nn.log_softmax(x)


@case((2, 3, 5, 4), (2, 3, 6, 4), (2, 3, 6, 4))
def attention(q: Any, k: Any, v: Any) -> Any:
    return tf.nn.softmax(tf.matmul(q, k, transpose_b=True) / np.float32(2.0)) @ v


@case((2, 5, 3, 4), (2, 6, 3, 4), (2, 6, 3, 4))
def attention_einsum(q: Any, k: Any, v: Any) -> Any:
    scores = tf.nn.softmax(tf.einsum("bqhd,bkhd->bhqk", q, k))
    return tf.einsum("bhqk,bkhd->bqhd", scores, v)


@case((4, 6))
def layer_norm(x: Any) -> Any:
    mean, variance = tf.nn.moments(x, [-1], keepdims=True)
    return (x - mean) * tf.math.rsqrt(variance + 1e-5) * constant(6) + constant(6, seed=2)


@case((4, 6))
def gelu(x: Any) -> Any:
    return tf.nn.gelu(x) + tf.nn.gelu(x, approximate=True)


@case((4, 6))
def activations(x: Any) -> Any:
    parts = (tf.nn.elu(x), tf.nn.selu(x), tf.nn.softplus(x), tf.nn.softsign(x), tf.nn.relu6(x))
    more = (tf.nn.leaky_relu(x, 0.1), tf.tanh(x), tf.sigmoid(x), tf.nn.silu(x))
    return tf.stack([*parts, *more], axis=-1)


@case((3, 4, 6))
def movement(x: Any) -> Any:
    y = tf.transpose(x, (2, 0, 1))[1:5:2, ::-1, tf.newaxis, ..., 1]
    return tf.tile(tf.pad(y, [[1, 0], [0, 2], [0, 0]], constant_values=2.0), (1, 2, 3))


@case((2, 3, 4), (2, 5, 4))
def concat_split(x: Any, y: Any) -> Any:
    a, b = tf.split(tf.concat([x, y], 1), [6, 2], axis=1)
    return tf.reduce_sum(a, 1) * tf.reduce_max(b, 1) + tf.reduce_mean(x, [1, 2], keepdims=True)[:, 0]


@case((1, 4, 6, 8))
def space_and_depth(x: Any) -> Any:
    return tf.nn.depth_to_space(tf.nn.space_to_depth(x, 2), 4)


@case((4,), (4, 3), dtypes=(tf.int32, tf.float32))
def embedding(ids: Any, x: Any) -> Any:
    return tf.concat([tf.gather(constant(5, 3), ids % 5), tf.one_hot(ids % 5, 6) @ constant(6, 3), x], 0)


@case((3, 7))
def arguments(x: Any) -> Any:
    return tf.cast(tf.argmax(x, 1), tf.float32) + tf.cast(tf.argmin(x, 1, tf.int32), tf.float32)


@case((5, 6))
def scans(x: Any) -> Any:
    shifted = tf.cumsum(x, 1) + tf.cumsum(x, 0, exclusive=True, reverse=True)
    return tf.where(shifted > 0, tf.minimum(shifted, 2.0), tf.square(x)) + tf.pow(tf.abs(x), 1.5)


# -- Keras models, inference


def keras_case(name: str, shape: Shape, *layers: Callable[[], Any]) -> None:
    """Register a sequence of Keras layers as a case."""

    def function(x: Any) -> Any:
        return model(x, training=False)

    tf.keras.utils.set_random_seed(SEED)
    model = tf.keras.Sequential(
        [tf.keras.Input(shape[1:], batch_size=shape[0]), *(make() for make in layers)]
    )
    CASES.append(Case(name, function, [shape]))


def keras_cases() -> None:
    k = tf.keras.layers
    keras_case("keras_mlp", (4, 12), lambda: k.Dense(10, "relu"), lambda: k.Dense(5, "softmax"))
    keras_case(
        "keras_lenet",
        (2, 28, 28, 1),
        lambda: k.Conv2D(6, 5, activation="tanh", padding="same"),
        lambda: k.AveragePooling2D(2),
        lambda: k.Conv2D(16, 5, activation="tanh"),
        lambda: k.AveragePooling2D(2),
        k.Flatten,
        lambda: k.Dense(120, "tanh"),
        lambda: k.Dense(84, "tanh"),
        lambda: k.Dense(10, "softmax"),
    )
    keras_case(
        "keras_convnet",
        (1, 16, 16, 3),
        lambda: k.Conv2D(8, 3, strides=2, padding="same", use_bias=False),
        k.BatchNormalization,
        k.ReLU,
        lambda: k.DepthwiseConv2D(3, padding="same"),
        lambda: k.SeparableConv2D(8, 3),
        lambda: k.MaxPooling2D(2),
        k.GlobalAveragePooling2D,
        lambda: k.Dense(4),
    )
    keras_case("keras_grouped", (1, 8, 8, 4), lambda: k.Conv2D(8, 3, groups=2))
    keras_case("keras_dilated", (1, 9, 9, 2), lambda: k.Conv2D(4, 3, dilation_rate=2, padding="same"))
    keras_case("keras_transposed", (1, 5, 5, 3), lambda: k.Conv2DTranspose(4, 3, strides=2, padding="same"))
    keras_case(
        "keras_conv1d", (2, 12, 3), lambda: k.Conv1D(4, 3, padding="causal"), lambda: k.UpSampling1D(2)
    )
    keras_case("keras_layer_norm", (2, 5, 8), lambda: k.LayerNormalization(epsilon=1e-5), lambda: k.Dense(3))
    keras_case(
        "keras_upsampling", (1, 4, 4, 2), lambda: k.UpSampling2D(2), lambda: k.ZeroPadding2D(((1, 2), (0, 1)))
    )
    keras_case("keras_gru", (2, 4, 3), lambda: k.GRU(5, unroll=True))
    keras_case("keras_lstm", (2, 4, 3), lambda: k.LSTM(5, return_sequences=True))

    tf.keras.utils.set_random_seed(SEED)
    heads = k.MultiHeadAttention(2, 4)
    heads.build((2, 5, 8), (2, 5, 8))
    CASES.append(Case("keras_attention", lambda x: heads(x, x, training=False), [(2, 5, 8)]))


# -- control flow


@case((3, 4), (3,))
def branches(x: Any, y: Any) -> Any:
    scaled = tf.cond(tf.reduce_sum(x) > 100.0, lambda: x * 2, lambda: x * y[:, None])
    return tf.cond(tf.reduce_max(y) > -100.0, lambda: tf.exp(scaled), lambda: -scaled)


@case((5, 4))
def loops(x: Any) -> Any:
    powers = tf.while_loop(lambda k, y: k < 3, lambda k, y: (k + 1, y * x + 1.0), (0, x))[1]
    return tf.scan(lambda a, b: a * 0.5 + b, powers) + tf.map_fn(tf.nn.softmax, x)


@case((2, 5, 6, 3))
def resize(x: Any) -> Any:
    ways = ("bilinear", "nearest", "bicubic", "area")
    first = tf.compat.v1.image
    corners = first.resize_bilinear(x, (8, 4), align_corners=True)
    corners += first.resize_nearest_neighbor(x, (8, 4), align_corners=True)
    return sum(tf.image.resize(x, (8, 4), way) for way in ways) + corners + first.resize_bicubic(x, (8, 4))


@case((4, 3), (2, 3), (2,), dtypes=(tf.float32, tf.float32, tf.int32))
def scattered(x: Any, rows: Any, numbers: Any) -> Any:
    at = (numbers % 4)[:, None]
    found = [
        f(x, at, rows)
        for f in (tf.tensor_scatter_nd_update, tf.tensor_scatter_nd_max, tf.tensor_scatter_nd_sub)
    ]
    return tf.stack([*found, tf.math.unsorted_segment_max(tf.repeat(rows, 2, 0), [3, 0, 3, 1], 4)])


@case((3, 5), (3,), dtypes=(tf.float32, tf.int32))
def ordered(x: Any, numbers: Any) -> Any:
    values, at = tf.math.top_k(tf.round(x * 2), 3)
    edges = tf.searchsorted(tf.sort(x), tf.sort(-x))
    return {
        "values": values,
        "at": at,
        "sorted": tf.sort(x, 1),
        "edges": edges,
        "reversed": tf.reverse_sequence(x, numbers % 4, seq_axis=1),
    }


@case((1, 6, 5, 2))
def images(x: Any) -> Any:
    maxima, places = tf.nn.max_pool_with_argmax(x, 3, 2, "SAME")
    scaled = tf.image.resize(x, (3, 7), antialias=True) + tf.image.resize(x, (3, 7), "lanczos3")
    scaled += tf.image.resize(x, (3, 7), "gaussian") + tf.image.resize(x, (3, 7), "mitchellcubic")
    return {
        "maxima": maxima,
        "places": places,
        "scaled": scaled,
        "contrast": tf.image.adjust_contrast(x, 0.5),
        "repeated": tf.repeat(x[0, :3, :, 0], [1, 2, 0], 0),
    }


@case((3, 5))
def counted(x: Any) -> Any:
    bounds = tf.raw_ops.Bucketize(input=x, boundaries=[-1.0, 0.0, 1.0])
    sums = tf.math.cumulative_logsumexp(x, 1) + tf.math.cumulative_logsumexp(x, 0, reverse=True)
    return {"bounds": bounds, "sums": sums, "products": tf.math.cumprod(x, 1, exclusive=True)}


@case((3, 4), (3, 4))
def functions(x: Any, y: Any) -> Any:
    small = x * 1e-6
    exact = tf.math.log1p(small) * 1e6 + tf.math.expm1(small) * 1e6
    finite = tf.cast(tf.math.is_finite(x / tf.nn.relu(y)), tf.float32)
    return exact + finite + tf.atan2(x, y) + tf.math.xdivy(x, y) + tf.math.xlog1py(x, tf.nn.relu(y))


# -- training graphs: gradients of a loss by tf.GradientTape


def gradients(loss: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
    """Return a loss and its gradients by all arguments, named."""
    with tf.GradientTape() as tape:
        for argument in arguments:
            tape.watch(argument)
        value = loss(*arguments)
    found = tape.gradient(value, list(arguments))
    return {
        "loss": tf.reduce_sum(value),
        **{f"grad{k}": tf.convert_to_tensor(g) for k, g in enumerate(found)},
    }


def training(name: str, *shapes: Shape, positive: Sequence[int] = ()) -> Callable[[Callable[..., Any]], Any]:
    """Register a loss as a training case: its value and gradients by all its arguments."""

    def register(loss: Callable[..., Any]) -> Any:
        CASES.append(Case(f"grad_{name}", lambda *a: gradients(loss, *a), shapes, positive=positive))
        return loss

    return register


def squares(x: Any) -> Any:
    """Return a loss whose gradient is the tensor."""
    return tf.reduce_sum(x * x) * 0.5


def weighted(x: Any) -> Any:
    """Return a loss that what is normalised does not keep constant, as the sum of its squares would be."""
    return tf.reduce_sum(x * constant(*x.shape, seed=9))


@training("dense", (3, 6), (6, 4), (4,))
def _(x: Any, w: Any, b: Any) -> Any:
    return squares(tf.nn.relu(tf.nn.bias_add(x @ w, b)))


@training("matmul_transposed", (5, 3), (4, 5))
def _(x: Any, w: Any) -> Any:
    return squares(tf.matmul(x, w, transpose_a=True, transpose_b=True))


@training("conv2d", (2, 6, 7, 3), (3, 3, 3, 4))
def _(x: Any, w: Any) -> Any:
    return squares(tf.nn.conv2d(x, w, 1, "VALID"))


@training("conv2d_strided", (1, 8, 7, 2), (3, 3, 2, 4))
def _(x: Any, w: Any) -> Any:
    return squares(tf.nn.conv2d(x, w, 2, "SAME"))


@training("conv2d_dilated", (1, 9, 8, 2), (3, 2, 2, 3))
def _(x: Any, w: Any) -> Any:
    return squares(tf.nn.conv2d(x, w, 1, "SAME", dilations=(2, 1)))


@training("conv3d", (1, 4, 5, 4, 2), (2, 3, 2, 2, 3))
def _(x: Any, w: Any) -> Any:
    return squares(tf.nn.conv3d(x, w, (1, 1, 2, 1, 1), "SAME"))


@training("depthwise", (1, 6, 6, 3), (3, 3, 3, 2))
def _(x: Any, w: Any) -> Any:
    return squares(tf.nn.depthwise_conv2d(x, w, (1, 1, 1, 1), "SAME"))


@training("transposed", (1, 4, 4, 3), (3, 3, 2, 3))
def _(x: Any, w: Any) -> Any:
    return squares(tf.nn.conv2d_transpose(x, w, (1, 8, 8, 2), 2, "SAME"))


@training("max_pool", (2, 7, 6, 3))
def _(x: Any) -> Any:
    return squares(tf.nn.max_pool2d(x, 3, 2, "SAME"))


@training("average_pool", (2, 7, 6, 3))
def _(x: Any) -> Any:
    return squares(tf.nn.avg_pool2d(x, 3, 2, "SAME"))


@training("softmax", (3, 6), (3, 6))
def _(x: Any, t: Any) -> Any:
    return tf.reduce_sum(tf.nn.softmax(x) * t)


@training("cross_entropy", (3, 6))
def _(x: Any) -> Any:
    labels = tf.one_hot([1, 5, 0], 6)
    return tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=labels, logits=x))


@training("sparse_cross_entropy", (3, 6))
def _(x: Any) -> Any:
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[1, 5, 0], logits=x))


@training("sigmoid_cross_entropy", (3, 6))
def _(x: Any) -> Any:
    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=constant(3, 6), logits=x))


@training("batch_norm", (2, 3, 4, 5), (5,), (5,))
def _(x: Any, scale: Any, offset: Any) -> Any:
    mean, variance = tf.nn.moments(x, [0, 1, 2])
    return weighted(tf.nn.batch_normalization(x, mean, variance, offset, scale, 1e-3))


@training("fused_batch_norm", (2, 3, 4, 5), (5,), (5,))
def _(x: Any, scale: Any, offset: Any) -> Any:
    return weighted(tf.compat.v1.nn.fused_batch_norm(x, scale, offset, epsilon=1e-3, is_training=True)[0])


@training("layer_norm", (4, 6), (6,), (6,))
def _(x: Any, scale: Any, offset: Any) -> Any:
    mean, variance = tf.nn.moments(x, [-1], keepdims=True)
    return weighted((x - mean) * tf.math.rsqrt(variance + 1e-5) * scale + offset)


@training("attention", (2, 5, 4), (2, 6, 4), (2, 6, 3))
def _(q: Any, k: Any, v: Any) -> Any:
    return squares(tf.nn.softmax(tf.matmul(q, k, transpose_b=True) * 0.5) @ v)


@training("recurrent", (2, 3, 4), (4, 5), (5, 5))
def _(x: Any, w: Any, u: Any) -> Any:
    state = tf.zeros((2, 5))
    for step in range(3):
        state = tf.tanh(x[:, step] @ w + tf.sigmoid(state @ u))
    return squares(state)


@training("slices", (4, 6, 3), (4, 2, 3))
def _(x: Any, y: Any) -> Any:
    return squares(tf.pad(tf.concat([x[:, 1:5:2], y], 1), [[0, 0], [1, 0], [0, 0]])[:, :4])


@training("broadcast", (4, 1, 3), (5, 1), (3,), positive=(2,))
def _(x: Any, y: Any, z: Any) -> Any:
    return squares(x * y / z - tf.sqrt(z) + tf.exp(y) * tf.reduce_max(x))


@training("resize", (1, 5, 4, 2))
def _(x: Any) -> Any:
    up = (
        tf.image.resize(x, (7, 8))
        + tf.image.resize(x, (7, 8), "nearest")
        + tf.image.resize(x, (7, 8), "bicubic")
    )
    return squares(up)


@training("small_matrices", (2, 3, 3))
def _(x: Any) -> Any:
    return squares(tf.linalg.inv(x + 3 * tf.eye(3))) + squares(tf.linalg.det(x))


@training("images", (2, 6, 5, 2))
def _(x: Any) -> Any:
    boxes = [[0.1, 0.2, 0.7, 1.1], [-0.2, 0.0, 1.0, 0.5], [0.9, 0.8, 0.2, 0.1]]
    crops = tf.image.crop_and_resize(x, boxes, [1, 0, 1], (3, 4))
    maxima = tf.nn.max_pool_with_argmax(x, 2, 2, "VALID")[0]
    return squares(crops) + squares(maxima) + squares(tf.image.resize(x, (3, 7), antialias=True))


@training("positions", (4, 5, 3), (2, 3), (4, 3))
def _(x: Any, rows: Any, others: Any) -> Any:
    numbers = tf.cast(tf.round(tf.abs(rows[0, :2])), tf.int32) % 4
    taken = (
        tf.gather_nd(x, [[3, 0], [1, 4]])
        + tf.gather(x[:, 1], numbers)
        + tf.gather(x, [[3, 0]] * 4, axis=1, batch_dims=1)[0]
    )
    changed = tf.tensor_scatter_nd_update(others, [[3], [1]], rows) + tf.scatter_nd([[2], [2]], rows, (4, 3))
    return squares(changed) + squares(taken) + squares(tf.math.segment_mean(others, [0, 0, 2, 2]))


@training("matrices", (2, 4, 4), (2, 4))
def _(x: Any, d: Any) -> Any:
    changed = tf.linalg.set_diag(x, d) + tf.linalg.diag(d) + tf.eye(4)
    parts = tf.linalg.diag_part(x, k=1) + tf.einsum("bii->bi", x)[:, :3]
    padded = tf.pad(x, [[0, 0], [1, 2], [2, 0]], "REFLECT") + tf.pad(x, [[0, 0], [1, 2], [2, 0]], "SYMMETRIC")
    norms = tf.math.reduce_euclidean_norm(x, 1) + tf.reduce_logsumexp(x, 1) + tf.reduce_prod(x, 1)
    return squares(changed) + squares(parts) + squares(padded) + squares(norms)


@training("local_response", (1, 3, 3, 6))
def _(x: Any) -> Any:
    return squares(tf.nn.lrn(x, 2, bias=1.0, alpha=0.3, beta=0.6))


@training("loops", (4, 3), (3,))
def _(x: Any, y: Any) -> Any:
    start = tf.cond(tf.reduce_sum(x) > 100.0, lambda: y * 2, lambda: tf.sin(y) * y)
    return squares(tf.scan(lambda a, b: tf.tanh(a * 0.5 + b), x, start))


def networks() -> None:
    """Register one step of training of two small networks, as functions of the batch."""
    CASES.append(Case("grad_lenet", lenet_step(), [(2, 28, 28, 1), (2, 10)]))
    CASES.append(Case("grad_residual", residual_step(), [(2, 8, 8, 4), (2, 3)]))


def step(forward: Callable[[Any], Any], variables: dict[str, Any]) -> Callable[[Any, Any], dict[str, Any]]:
    """Return one step of gradient descent: the loss, and all variables after it."""

    def function(x: Any, labels: Any) -> dict[str, Any]:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=labels, logits=forward(x)))
        found = tape.gradient(loss, list(variables.values()))
        new = {name: v - 0.1 * g for (name, v), g in zip(variables.items(), found, strict=True)}
        return {"loss": loss, **new}

    return function


def lenet_step() -> Callable[..., Any]:
    v = {
        "c1": weights(5, 5, 1, 6),
        "b1": weights(6),
        "c2": weights(5, 5, 6, 16, seed=2),
        "b2": weights(16, seed=3),
        "w3": weights(400, 120, seed=4),
        "w4": weights(120, 84, seed=5),
        "w5": weights(84, 10, seed=6),
    }

    def forward(x: Any) -> Any:
        x = tf.nn.max_pool2d(tf.nn.relu(tf.nn.conv2d(x, v["c1"], 1, "SAME") + v["b1"]), 2, 2, "VALID")
        x = tf.nn.max_pool2d(tf.nn.relu(tf.nn.conv2d(x, v["c2"], 1, "VALID") + v["b2"]), 2, 2, "VALID")
        x = tf.nn.relu(tf.reshape(x, (-1, 400)) @ v["w3"])
        return tf.nn.relu(x @ v["w4"]) @ v["w5"]

    return step(forward, v)


def residual_step() -> Callable[..., Any]:
    v = {
        "c1": weights(3, 3, 4, 4),
        "c2": weights(3, 3, 4, 4, seed=2),
        "c3": weights(1, 1, 4, 8, seed=3),
        "w": weights(8, 3, seed=4),
    }

    def forward(x: Any) -> Any:
        y = tf.nn.relu(tf.nn.conv2d(x, v["c1"], 1, "SAME"))
        x = tf.nn.relu(x + tf.nn.conv2d(y, v["c2"], 1, "SAME"))
        x = tf.nn.relu(tf.nn.conv2d(x, v["c3"], 2, "SAME"))
        return tf.reduce_mean(x, (1, 2)) @ v["w"]

    return step(forward, v)


# -- bfloat16


def narrow(*shape: int, seed: int = 1) -> Any:
    """Return fixed weights of bfloat16."""
    return tf.cast(constant(*shape, seed=seed) / 4, tf.bfloat16)


@case((2, 8, 8, 3), dtypes=[tf.bfloat16])
def bfloat16_layers(x: Any) -> Any:
    x = tf.nn.relu(tf.nn.conv2d(x, narrow(3, 3, 3, 4), 1, "SAME") + narrow(4, seed=2))
    x = tf.nn.conv2d(x, narrow(3, 3, 4, 4, seed=3), 1, "VALID", dilations=2)
    x = tf.nn.max_pool2d(x, 2, 2, "VALID")
    return tf.reshape(x, (2, -1)) @ narrow(16, 5, seed=4)


@case((5, 7), (5, 7), dtypes=[tf.bfloat16, tf.float32])
def bfloat16_mixed(x: Any, y: Any) -> Any:
    wide = tf.cast(x, tf.float32)
    narrowed = x * 1.1 + tf.cast(y * 1.234567, tf.bfloat16)
    ordered, places = tf.math.top_k(x, 3)
    means = tf.reduce_mean(narrowed, 1), tf.reduce_sum(narrowed, 0)
    chosen = tf.where(x > 0, narrowed, x - narrowed)
    image = tf.image.resize(tf.reshape(narrowed, (1, 5, 7, 1)), (7, 7))
    return wide + y, x > 0, tf.argmax(narrowed, 1), ordered, places, *means, chosen, image, tf.tanh(x)


@case((3, 4), dtypes=[tf.bfloat16])
def bfloat16_flow(x: Any) -> Any:
    def body(k: Any, s: Any) -> Any:
        return k + 1, s * 1.3 + x

    _, passed = tf.while_loop(lambda k, s: k < 4, body, (0, x))
    return passed, tf.cond(x[0, 0] > 0, lambda: x * 1.7, lambda: x / 3)


# -- writing


def arguments_of(case: Case) -> list[Any]:
    """Return the arguments that a case is tried with."""
    rng, found = np.random.default_rng(SEED), []
    for k, shape in enumerate(case.shapes):
        dtype = case.dtypes[k] if case.dtypes else tf.float32
        values = rng.standard_normal(shape)
        values = np.abs(values) + 0.2 if k in case.positive else values
        integers = rng.integers(0, 9, shape)
        kind = np.float32 if dtype == tf.int32 else tf.as_dtype(dtype).as_numpy_dtype
        found.append(integers.astype(np.int32) if dtype == tf.int32 else values.astype(kind))
    return found


def storable(array: Any) -> Any:
    """Return an array as a type of NumPy holds it."""
    return array.astype(np.float32) if array.dtype == tf.bfloat16.as_numpy_dtype else array


def write(case: Case, folder: Path) -> None:
    """Write a case's graph and arrays."""
    values = arguments_of(case)
    names = [f"x{k}" for k in range(len(values))]
    signature = [
        tf.TensorSpec(v.shape, tf.as_dtype(v.dtype), name=n) for v, n in zip(values, names, strict=True)
    ]
    concrete = tf.function(case.function, autograph=False).get_concrete_function(*signature)
    frozen = convert_variables_to_constants_v2(concrete, lower_control_flow=False)
    outputs = frozen(*[tf.constant(v) for v in values])
    arrays = {f"in/{n}": storable(v) for n, v in zip(names, values, strict=True)}
    for tensor, value in zip(frozen.outputs, outputs, strict=True):
        arrays[f"out/{tensor.name}"] = storable(value.numpy())
    (folder / f"{case.name}.pb").write_bytes(
        frozen.graph.as_graph_def().SerializeToString(deterministic=True)
    )
    np.savez_compressed(folder / f"{case.name}.npz", **arrays)


def write_saved_model(folder: Path) -> None:
    """Write a SavedModel with its variables in a checkpoint, its inputs and its outputs."""
    tf.keras.utils.set_random_seed(SEED)
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [
            tf.keras.Input((8, 8, 3), batch_size=2, name="image"),
            layers.Conv2D(4, 3, activation="relu"),
            layers.BatchNormalization(),
            layers.Flatten(),
            layers.Dense(5, "softmax"),
        ]
    )
    x = np.random.default_rng(SEED).standard_normal((2, 8, 8, 3)).astype(np.float32)
    signature = tf.function(lambda image: {"scores": model(image, training=False)})
    concrete = signature.get_concrete_function(tf.TensorSpec((2, 8, 8, 3), tf.float32, name="image"))
    tf.saved_model.save(model, str(folder / "saved_model"), signatures=concrete)
    scores = concrete(tf.constant(x))["scores"].numpy()
    np.savez_compressed(folder / "saved_model.npz", **{"in/image": x, "out/scores": scores})


class Unnamed(tf.Module):  # type: ignore[misc, name-defined]
    """Four variables that have one name."""

    def __init__(self) -> None:
        super().__init__()
        self.b, self.a = tf.Variable([1.0, 2.0]), tf.Variable([10.0, 20.0])
        self.others = [tf.Variable([5.0, 6.0]), tf.Variable([7.0, 9.0])]

    @tf.function(input_signature=[tf.TensorSpec((2,), tf.float32, name="x")])
    def apply(self, x: Any) -> Any:
        return {"y": (x * self.a + self.b) * self.others[1] - self.others[0]}


def write_unnamed(folder: Path) -> None:
    """Write a SavedModel whose variables have no names of their own."""
    module, x = Unnamed(), np.asarray([0.5, -2.0], np.float32)
    tf.saved_model.save(module, str(folder / "saved_model_unnamed"), signatures=module.apply)
    y = module.apply(tf.constant(x))["y"].numpy()
    np.savez_compressed(folder / "saved_model_unnamed.npz", **{"in/x": x, "out/y": y})


class Narrow(tf.Module):  # type: ignore[misc, name-defined]
    """Weights of bfloat16 in a checkpoint."""

    def __init__(self) -> None:
        super().__init__()
        self.w, self.b = tf.Variable(narrow(6, 3)), tf.Variable(narrow(3, seed=2))

    @tf.function(input_signature=[tf.TensorSpec((4, 6), tf.bfloat16, name="x")])
    def apply(self, x: Any) -> Any:
        return {"y": tf.nn.relu(x @ self.w + self.b)}


def write_narrow(folder: Path) -> None:
    """Write a SavedModel of bfloat16."""
    module, x = Narrow(), np.random.default_rng(SEED).standard_normal((4, 6)).astype(np.float32)
    tf.saved_model.save(module, str(folder / "saved_model_bfloat16"), signatures=module.apply)
    y = module.apply(tf.cast(x, tf.bfloat16))["y"].numpy()
    np.savez_compressed(folder / "saved_model_bfloat16.npz", **{"in/x": x, "out/y": storable(y)})


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    if not sys.argv[2:]:
        write_saved_model(folder)
        write_unnamed(folder)
        write_narrow(folder)
    keras_cases()
    networks()
    for case in CASES:
        if not sys.argv[2:] or case.name in sys.argv[2:]:
            write(case, folder)
    print(f"{len(CASES)} cases")


if __name__ == "__main__":
    main()
