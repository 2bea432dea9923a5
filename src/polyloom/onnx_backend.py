"""Polyloom as a backend of the package onnx, in the form that ``onnx.backend`` asks for.

    import polyloom.onnx_backend as backend
    y, = backend.prepare(onnx.load("model.onnx")).run([x])
    backend.run_node(node, [a, b])

onnx's own tests run over it: ``onnx.backend.test.BackendTest(backend, __name__)``. What has no affine form is
refused with ``Refused``, an ``Unsupported`` that unittest counts as a skipped test.
"""

from __future__ import annotations

import unittest
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper
from onnx.backend.base import Backend, BackendRep, namedtupledict

from polyloom.diagnostics import Unsupported, error
from polyloom.function import Function, load

NDArray = npt.NDArray[Any]

_REDUCTIONS = ("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare")
SHAPE_OPERANDS: Mapping[str, Sequence[int]] = {
    "Reshape": [1],
    "Expand": [1],
    "Tile": [1],
    "Slice": [1, 2, 3, 4],
    "Pad": [1, 2, 3],
    "Squeeze": [1],
    "Unsqueeze": [1],
    "Split": [1],
    "Upsample": [1],
    "Resize": [1, 2, 3],
    "ConstantOfShape": [0],
    "Range": [0, 1, 2],
    "OneHot": [1],
    "Trilu": [1],
    "CumSum": [1],
    "CumProd": [1],
    "CenterCropPad": [1],
    "Dropout": [1, 2],
    "TopK": [1],
    **{f"Reduce{name}": [1] for name in _REDUCTIONS},
}
"""Operands that say what shape a result has, or which way an axis is gone through.

They must be known before a program is made. Where a model has one as an input, a program is made for its
value, and kept.
"""


class Refused(Unsupported, unittest.SkipTest):
    """The model holds something that has no affine form."""


class PreparedModel(BackendRep):
    """A model that is ready to run: compiled once for all values of its ``SHAPE_OPERANDS``."""

    def __init__(self, model: Any, device: str | None = None) -> None:
        """``device``: as of ``polyloom.load``. Errors: ``Refused``."""
        held = {tensor.name for tensor in model.graph.initializer}
        self.model, self.device = model, device
        self.names = [i.name for i in model.graph.input if i.name not in held]
        self.results = [o.name for o in model.graph.output]
        self.known = [name for name in self.names if name in set(shape_operands(model.graph))]
        self._functions: dict[bytes, Function] = {}
        _refuse_other_types(model)
        if not self.known:
            self._function({})

    def run(self, inputs: Any, **_: Any) -> tuple[Any, ...]:
        """Run once on arrays in the order of the model's inputs, or by name; return a named tuple.

        Errors: ``Refused``; those of a call of a ``Function``.
        """
        given = dict(inputs) if isinstance(inputs, Mapping) else self._named(inputs)
        known = {name: np.asarray(given.pop(name)) for name in self.known if name in given}
        function = self._function(known)
        try:
            found = function.results(**given)
        except Unsupported as fault:
            raise Refused(*fault.diagnostics) from fault
        values: list[Any] = [found.get(name) for name in self.results]
        made: tuple[Any, ...] = namedtupledict("Outputs", self.results)(*values)
        return made

    def _named(self, inputs: Any) -> dict[str, Any]:
        arrays = [inputs] if isinstance(inputs, np.ndarray | np.generic) else list(inputs)
        return dict(zip(self.names, arrays, strict=False))

    def _function(self, known: Mapping[str, NDArray]) -> Function:
        """Return the function for values of operands that say shapes."""
        key = b"".join(
            name.encode() + repr((a.shape, a.dtype)).encode() + a.tobytes() for name, a in known.items()
        )
        if key not in self._functions:
            try:
                self._functions[key] = load(with_constants(self.model, known), device=self.device)
            except Unsupported as fault:
                raise Refused(*fault.diagnostics) from fault
        return self._functions[key]


def shape_operands(graph: Any) -> Iterator[str]:
    """Yield the names that nodes of a graph read as operands that say shapes."""
    for node in graph.node:
        places = SHAPE_OPERANDS.get(node.op_type, ())
        yield from (node.input[k] for k in places if k < len(node.input))


def with_constants(model: Any, known: Mapping[str, NDArray]) -> Any:
    """Return a model in which some inputs are constants."""
    if not known:
        return model
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    left = [i for i in changed.graph.input if i.name not in known]
    del changed.graph.input[:]
    changed.graph.input.extend(left)
    changed.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in known.items())
    return changed


def _refuse_other_types(model: Any) -> None:
    """Refuse models that take or give sequences, maps or optionals. Errors: ``Refused``."""
    ends = [*model.graph.input, *model.graph.output]
    others = [e.name for e in ends if e.type.WhichOneof("value") not in (None, "tensor_type")]
    if others:
        notes = [f"`{name}` is a sequence, a map or an optional" for name in others]
        helps = ["give and return tensors"]
        message = "not all inputs and outputs are tensors"
        raise Refused(error("onnx-type", message, notes=notes, helps=helps))


class PolyloomBackend(Backend):
    """``prepare``, ``run_model``, ``run_node`` and ``supports_device``, as onnx calls them."""

    @classmethod
    def is_compatible(cls, model: Any, device: str = "CPU", **_: Any) -> bool:
        """Return whether a model can be prepared; one whose shapes are inputs is tried when it runs."""
        try:
            PreparedModel(model)
        except Unsupported:
            return False
        return True

    @classmethod
    def prepare(cls, model: Any, device: str = "CPU", **_: Any) -> PreparedModel:
        """Return a model that is ready to run. Errors: ``Refused``; ``model-...`` where it is broken."""
        return PreparedModel(model)

    @classmethod
    def run_model(cls, model: Any, inputs: Any, device: str = "CPU", **options: Any) -> tuple[Any, ...]:
        """Run a model once."""
        return cls.prepare(model, device, **options).run(inputs)

    @classmethod
    def run_node(
        cls, node: Any, inputs: Any, device: str = "CPU", outputs_info: Any = None, **options: Any
    ) -> tuple[Any, ...]:
        """Run one operation once. ``outputs_info``: of its results, which is computed here."""
        arrays = [np.asarray(a) for a in ([inputs] if isinstance(inputs, np.ndarray) else inputs)]
        given = [name for name in node.input if name]
        ends = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
            for name, a in zip(given, arrays, strict=True)
        ]
        outputs = [helper.make_empty_tensor_value_info(name) for name in node.output if name]
        graph = helper.make_graph([node], node.op_type.lower(), ends, outputs)
        version = options.get("opset_version", onnx.defs.onnx_opset_version())
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid(node.domain, version)])
        return PreparedModel(model).run(arrays)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Return whether programs run there: on the processor, ``CPU``."""
        return device.partition(":")[0] == "CPU"


is_compatible = PolyloomBackend.is_compatible
prepare = PolyloomBackend.prepare
run_model = PolyloomBackend.run_model
run_node = PolyloomBackend.run_node
supports_device = PolyloomBackend.supports_device
