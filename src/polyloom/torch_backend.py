"""``torch.compile(model, backend="polyloom")``: graphs of PyTorch on the processor, forward and backward.

PyTorch traces a model, splits it where it must (graph breaks run as they stand), makes a forward and a
backward graph of ATen's operations without in-place changes (``aot_autograd``), and hands each to
``compiled``. A graph that has no affine form runs as PyTorch runs it, with one remark (a ``UserWarning``).

Options, ``torch.compile(..., options={...})``: ``device`` and ``threads`` as of ``polyloom.load``.
"""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch._dynamo.backends.common import aot_autograd
from torch.nn.attention import SDPBackend, sdpa_kernel

from polyloom.device_pipeline import open_model
from polyloom.diagnostics import PolyloomError, error
from polyloom.frontends.torch import graph_of_traced, import_graph
from polyloom.frontends.torch.table import OPERATIONS
from polyloom.frontends.torch.traced import Form, Result, array_of, form_of, held_as, order_of
from polyloom.function.kept_graphs import graph_place, keep_graph, kept_graph
from polyloom.mdh.compiled import CompiledProgram
from polyloom.mdh.native.device import NativeDevice, choose, native_device
from polyloom.mdh.native.team import borrow_threads, team_library
from polyloom.polyhedra.effort import limited

Arguments = Sequence[Any]

_WHOLE = {"aten.complex", "aten.polar"}
"""Operations that no rule takes apart: those for complex numbers write into parts of their results."""

_RANDOM = {f"aten.{name}" for name in ("native_dropout", "exponential", "geometric", "cauchy", "log_normal")}
"""Operations whose rules draw other numbers from a seed than PyTorch itself, which runs them."""

_WRONG_RULES = {"aten.multilabel_margin_loss_forward"}
"""Operations whose rules give other numbers than PyTorch itself: this one adds up labels after a -1, too."""


@contextlib.contextmanager
def _without_wrong_rules() -> Iterator[None]:
    """Trace without rules that are wrong: PyTorch has some for its gradients, whatever table it is given."""
    found = []
    for name in _WRONG_RULES:
        operation = getattr(torch.ops.aten, name.removeprefix("aten.")).default
        found.append((operation, dict(operation.py_kernels)))
        operation.py_kernels.pop(torch._C.DispatchKey.Autograd, None)
        operation._dispatch_cache.clear()
    try:
        yield
    finally:
        for operation, kernels in found:
            operation.py_kernels.update(kernels)
            operation._dispatch_cache.clear()


def polyloom(module: Any, examples: Arguments, *, options: Mapping[str, Any] | None = None) -> Any:
    """Compile a graph of ``torch.compile``; the entry point of ``backend="polyloom"``."""
    given = dict(options or {})

    def compiler(graph: Any, inputs: Arguments) -> Any:
        return _boxed(Graph(graph, given))

    backend = aot_autograd(fw_compiler=compiler, bw_compiler=compiler, decompositions=decompositions())
    with (
        _without_wrong_rules(),
        sdpa_kernel(SDPBackend.MATH),
    ):  # the gradient of fused attention is no composition of operations
        return backend(module, examples)


def decompositions() -> dict[Any, Callable[..., Any]]:
    """Return PyTorch's rules for what the table of operations has not."""
    rules = dict(torch._decomp.core_aten_decompositions())
    for more in (torch._decomp.decomposition_table,):
        rules = {**more, **rules}
    rules[torch.ops.aten._transformer_encoder_layer_fwd.default] = _encoder_layer
    whole = {*OPERATIONS, *_WHOLE, *_RANDOM, *_WRONG_RULES}
    return {op: rule for op, rule in rules.items() if ".".join(str(op).split(".")[:2]) not in whole}


def _encoder_layer(
    x: Any,
    width: int,
    heads: int,
    inner: Any,
    inner_bias: Any,
    outer: Any,
    outer_bias: Any,
    is_gelu: bool,
    norm_first: bool,
    eps: float,
    *weights: Any,
    mask: Any = None,
    mask_type: Any = None,
) -> Any:
    """Return what the one operation of a ``TransformerEncoderLayer`` in ``eval()`` mode is made of."""
    if mask is not None or len(weights) != 8:
        return NotImplemented
    first, second = ((width,), *weights[:2], eps), ((width,), *weights[2:4], eps)
    linear, norm = torch.nn.functional.linear, torch.nn.functional.layer_norm

    def attended(x: Any) -> Any:
        parts = linear(x, inner, inner_bias).unflatten(-1, (3, heads, width // heads))
        q, k, v = (parts.select(-3, n).transpose(1, 2) for n in range(3))
        y = torch.softmax(q @ k.transpose(-1, -2) / (width // heads) ** 0.5, -1) @ v
        return linear(y.transpose(1, 2).flatten(2), outer, outer_bias)

    def fed(x: Any) -> Any:
        y = linear(x, *weights[4:6])
        return linear(torch.nn.functional.gelu(y) if is_gelu else torch.relu(y), *weights[6:8])

    if norm_first:
        x = x + attended(norm(x, *first))
        return x + fed(norm(x, *second))
    x = norm(x + attended(x), *first)
    return norm(x + fed(x), *second)


class Graph:
    """A graph as a function on tensors: made once for the shapes of each call's arguments, and kept."""

    def __init__(self, module: Any, options: Mapping[str, Any]) -> None:
        self.module, self.options = module, options
        self._made: dict[tuple[Any, ...], _Program] = {}
        self._refused = False

    def __call__(self, *arguments: Any) -> Sequence[Any]:
        """Run once."""
        if self._refused:
            return self._eager(arguments)
        key = tuple(map(_key, arguments))
        program = self._made.get(key)
        if program is None:
            try:
                program = self._made[key] = _Program(self.module, arguments, self.options)
            except PolyloomError as fault:
                self._refused = True
                warnings.warn(f"a graph runs as PyTorch runs it:\n{fault}", stacklevel=2)
                return self._eager(arguments)
        return program(arguments)

    def _eager(self, arguments: Arguments) -> Sequence[Any]:
        found: Sequence[Any] = self.module(*arguments)
        return found


def _boxed(call: Callable[..., Any]) -> Callable[[list[Any]], Any]:
    """Return a function of one list, as PyTorch wants it; it empties the list so that tensors may go."""

    def run(arguments: list[Any]) -> Any:
        given = tuple(arguments)
        arguments.clear()
        return call(*given)

    run._boxed_call = True  # type: ignore[attr-defined]
    return run


def _key(argument: Any) -> Any:
    if isinstance(argument, torch.Tensor):
        order = order_of(argument) if argument.layout == torch.strided else ()
        return argument.dtype, tuple(argument.shape), order
    return argument


def _form(argument: Any) -> Form | int:
    """Return what a graph has to know of a tensor; a size as it is.

    Errors: ``torch-tensor`` for one of another device, what is no plain array, and what is no size.
    """
    if isinstance(argument, int):
        return argument
    if not isinstance(argument, torch.Tensor):
        helps = ["give tensors and sizes"]
        raise PolyloomError(error("torch-tensor", f"a graph is given `{argument}`", helps=helps))
    if argument.device.type != "cpu" or argument.layout != torch.strided:
        message = f"a tensor is {argument.layout} on `{argument.device}`"
        helps = ["move the model and its inputs to the processor: `.cpu()`"]
        raise PolyloomError(error("torch-tensor", message, helps=helps))
    return Form(held_as(argument.dtype), tuple(argument.shape), order_of(argument))


class _Program:
    """A graph for certain shapes."""

    @limited("the graph")
    def __init__(self, module: Any, arguments: Arguments, options: Mapping[str, Any]) -> None:
        self._begin = time.perf_counter()
        forms = [_form(argument) for argument in arguments]
        graph, self.results, self.assertions = graph_of_traced(module, forms, "graph")
        device = choose(options.get("device"), threads=options.get("threads"))
        processor = native_device(options.get("device"), options.get("threads"))
        place, kept = None if processor is None else graph_place(graph, processor), None
        if processor is not None and place is not None:
            kept = kept_graph(place, processor, lambda: open_model(import_graph(graph), device))
        self._place = place if kept is None else None
        if kept is None:
            model = import_graph(graph)
            kept = open_model(model, device), model.ends
        self.compiled, self.ends = kept
        _share_threads(self.compiled)
        names = [n.name for n in module.graph.nodes if n.op == "placeholder"]
        used = {*self.ends.names.values(), *self.ends.arguments}
        tensors = [(k, form) for k, form in enumerate(forms) if isinstance(form, Form)]
        places = [(k, form.name(names[k]), form.order) for k, form in tensors]
        self.places = [place for place in places if place[1] in used]
        self._parameters: dict[int, _Seen] = {}

    def __call__(self, arguments: Arguments) -> Sequence[Any]:
        arrays = {name: self._array(k, arguments[k], order) for k, name, order in self.places}
        results = self.compiled.results(**self.ends.inputs(arrays))
        if self._place is not None:
            place, self._place = self._place, None
            keep_graph(place, self.compiled, self.ends, time.perf_counter() - self._begin)
        found = self.ends.outputs({name: np.asarray(array) for name, array in results.items()})
        for assertion in self.assertions:
            if not found[assertion.name].all():
                raise RuntimeError(assertion.message)
        given: dict[str, Any] = {name: torch.from_numpy(array) for name, array in found.items()}
        return [None if result is None else _result(given[result.name], result) for result in self.results]

    def _array(self, place: int, tensor: Any, order: tuple[int, ...]) -> np.ndarray[Any, Any]:
        """Return an argument as an array, in the order in which it lies.

        A parameter, of which a model has hundreds, where it lay before.
        """
        if not isinstance(tensor, torch.nn.Parameter) or form_of(tensor):
            return _lying(tensor, order)
        seen, lies = self._parameters.get(place), (tensor.data_ptr(), tensor.stride())
        if seen is None or seen.tensor is not tensor or seen.lies != lies:
            seen = self._parameters[place] = _Seen(tensor, lies, _lying(tensor, order))
        return seen.array


def _lying(tensor: Any, order: tuple[int, ...]) -> np.ndarray[Any, Any]:
    array = array_of(tensor)
    return array.transpose(order) if order else array


def _share_threads(program: CompiledProgram) -> None:
    """Run on PyTorch's threads where these are as many: what it runs before and after has them awake."""
    device = program.executable.device
    if isinstance(device, NativeDevice) and device.threads == torch.get_num_threads():
        libraries = Path(torch.__file__).parent / "lib"
        borrow_threads(team_library(device.compiler), libraries / "libtorch_cpu.so")


@dataclass(frozen=True, eq=False)
class _Seen:
    """A parameter, where it lay and with which strides, and the same memory as an array."""

    tensor: torch.nn.Parameter
    lies: tuple[int, tuple[int, ...]]
    array: np.ndarray[Any, Any]


def _result(tensor: Any, result: Result) -> Any:
    if result.is_number:
        return tensor.item()
    tensor = tensor.to(getattr(torch, result.form)) if result.form else tensor
    return tensor.permute(np.argsort(result.order).tolist()) if result.order else tensor
