"""Exported programs to graphs: parameters, buffers and constants as named tensors, arguments by name.

Every node keeps the name of the module that it is of: ``encoder.layers.0.linear1.linear``. What the program
changes or differentiates is a result: ``bn.running_mean_new``, ``fc.weight_grad``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy.typing as npt

from polyloom.frontends.graph.model import Graph, GraphTensor, Node, widened, widened_end, widened_name
from polyloom.frontends.torch import float8
from polyloom.frontends.torch.archive import BFLOAT16, Archive, broken, element_type, read_archive
from polyloom.frontends.torch.assertions import asserted, is_stated
from polyloom.frontends.torch.bfloat16 import rounded
from polyloom.frontends.torch.call import ARGUMENTS, TYPES_OF_RESULTS, Operand, Unusable
from polyloom.frontends.torch.in_place import without_in_place
from polyloom.ir.scalar_functions import narrow_formats
from polyloom.ir.types import ElementType

NDArray = npt.NDArray[Any]

IDENTITY = "aten.alias"
_STATE = {"parameter": "parameter_name", "buffer": "buffer_name", "tensor_constant": "tensor_constant_name"}


def graph_of_bytes(data: bytes, name: str, what: str) -> Graph:
    """Return the graph of an archive; ``what`` is its name in messages. Errors: ``model-...``."""
    archive = read_archive(data, what)
    try:
        return _Reading(archive, archive.model["graph_module"]).graph(name)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError, StopIteration) as fault:
        raise broken(what, f"it is not as its schema says: {fault!r}") from fault


def _only(union: Mapping[str, Any]) -> tuple[str, Any]:
    """Return the kind and the value of a union, which is a dictionary of one entry."""
    ((kind, value),) = union.items()
    return kind, value


@dataclass
class _Reading:
    archive: Archive
    module: Mapping[str, Any]
    names: dict[str, str] = field(default_factory=dict)
    held: dict[str, str] = field(default_factory=dict)
    inputs: list[GraphTensor] = field(default_factory=list)
    constants: dict[str, NDArray] = field(default_factory=dict)
    unreadable: dict[str, str] = field(default_factory=dict)
    float8: dict[str, str] = field(default_factory=dict)
    outputs: list[GraphTensor] = field(default_factory=list)

    def graph(self, name: str) -> Graph:
        """Return the graph of the program."""
        signature = self.module["signature"]
        for spec in signature["input_specs"]:
            self._input(*_only(spec))
        nodes = [self._node(n) for n in self.module["graph"]["nodes"] if not is_stated(_operation(n))]
        results = self._results(signature["output_specs"])
        nodes, now = without_in_place(nodes)
        nodes = [*nodes, *self._as_changed(results, now)]
        made = dict(self._made_float8())
        self.float8 |= {t.name: made[t.name] for t in self.inputs if t.name in made}
        nodes = [*widened(nodes, self.float8, self.unreadable, (), partial(float8.on_float32, made))]
        nodes = [*rounded(nodes, self._narrow())]
        inputs, outputs = (tuple(map(self._widened, ends)) for ends in (self.inputs, self.outputs))
        changed = frozenset(self.held[name] for name in _changed(signature["output_specs"]))
        ranges = {
            key: (r["min_val"], r["max_val"])
            for key, r in self.archive.model.get("range_constraints", {}).items()
        }
        rest = self.constants, self.unreadable
        return Graph(name, tuple(nodes), inputs, outputs, *rest, changing=changed, ranges=ranges)

    # -- inputs

    def _input(self, kind: str, spec: Mapping[str, Any]) -> None:
        if kind in _STATE:
            self._state(spec["arg"]["name"], spec[_STATE[kind]])
        elif kind == "user_input":
            sort, value = _only(spec["arg"])
            if sort == "as_tensor":
                self.inputs.append(self._declared(value["name"]))
        # constant inputs, tokens and objects have no tensor; a node that takes one says so

    def _state(self, name: str, wanted: str) -> None:
        """Give a parameter, buffer or constant the name that it has in the module."""
        taken = wanted in self.module["graph"]["tensor_values"] or wanted in self.names.values()
        self.names[name] = self.held[wanted] = known = name if taken else wanted
        found = self.archive.tensors.get(wanted)
        kind = self.module["graph"]["tensor_values"].get(name, {}).get("dtype")
        if found is not None and kind in float8.NAMES:
            self.constants[widened_name(known)] = found
            self.float8[known] = float8.NAMES[kind]
        elif found is not None:
            self.constants[known] = found
        else:
            self.unreadable[known] = self.archive.unreadable.get(wanted, "the archive does not hold it")

    def _declared(self, name: str) -> GraphTensor:
        meta = self.module["graph"]["tensor_values"][name]
        return GraphTensor(
            name, element_type(meta["dtype"]), tuple(map(_extent, meta["sizes"])), self._other_type(name)
        )

    def _other_type(self, name: str) -> str:
        meta = self.module["graph"]["tensor_values"].get(name) or {}
        return narrow_formats.BFLOAT16 if meta.get("dtype") == BFLOAT16 else ""

    def _narrow(self) -> frozenset[str]:
        """Return the tensors of bfloat16."""
        names = (name for name in self.module["graph"]["tensor_values"] if self._other_type(name))
        return frozenset(each for name in names for each in (name, self.names.get(name, name)))

    def _made_float8(self) -> Iterator[tuple[str, str]]:
        """Yield the tensors of float8 with their formats."""
        for name, meta in self.module["graph"]["tensor_values"].items():
            if meta.get("dtype") in float8.NAMES:
                yield self.names.get(name, name), float8.NAMES[meta["dtype"]]

    def _widened(self, tensor: GraphTensor) -> GraphTensor:
        """Return an input or output; of float8 as programs hold it."""
        form = self.float8.get(tensor.name)
        return tensor if form is None else widened_end(tensor, form, widened_name(tensor.name))

    # -- nodes

    def _node(self, node: Mapping[str, Any]) -> Node:
        inputs: list[str] = []
        arguments = {a["name"]: self._argument(*_only(a["arg"]), inputs) for a in node["inputs"]}
        outputs = [name for union in node["outputs"] for name in _output_names(*_only(union))]
        types = tuple(self._type(name) for name in outputs)
        label = node.get("name") or next((o for o in outputs if o), "")
        module = _module_of(node.get("metadata", {}))
        attributes = {ARGUMENTS: arguments, TYPES_OF_RESULTS: types}
        operation = asserted(_operation(node))
        named = f"{module}.{label}" if module else label
        return Node(named, operation, tuple(inputs), tuple(outputs), attributes)

    def _type(self, name: str) -> Any:
        meta = self.module["graph"]["tensor_values"].get(name)
        return None if meta is None else element_type(meta["dtype"])

    def _operand(self, name: str, inputs: list[str]) -> Operand:
        known = self.names.get(name, name)
        if known not in inputs:
            inputs.append(known)
        return Operand(inputs.index(known))

    def _argument(self, kind: str, value: Any, inputs: list[str]) -> Any:
        """Return an argument: a number, a text, tuples of these, an ``Operand``, ``None``."""
        match kind:
            case "as_none":
                return None
            case "as_tensor":
                return self._operand(value["name"], inputs)
            case "as_tensors":
                return tuple(self._operand(v["name"], inputs) for v in value)
            case "as_optional_tensor" | "as_sym_int" | "as_sym_float" | "as_sym_bool":
                return self._open(*_only(value), inputs)
            case "as_optional_tensors" | "as_sym_ints" | "as_sym_floats" | "as_sym_bools":
                return tuple(self._open(*_only(v), inputs) for v in value)
            case "as_ints" | "as_bools" | "as_strings":
                return tuple(value)
            case "as_floats":
                return tuple(map(float, value))
            case "as_float":
                return float(value)  # JSON has infinities and NaN as texts
            case "as_int" | "as_bool" | "as_string":
                return value
            case "as_scalar_type":
                return element_type(value) or Unusable(f"elements of type number {value}")
            case "as_memory_format" | "as_layout" | "as_device":
                return None
            case _:
                return Unusable(f"an argument of kind {kind.removeprefix('as_')}")

    def _open(self, kind: str, value: Any, inputs: list[str]) -> Any:
        if kind == "as_name":
            return self._operand(value, inputs)
        return self._argument(kind, value, inputs)

    # -- results

    def _results(self, specs: Sequence[Mapping[str, Any]]) -> list[Node]:
        """Return nodes that give the results their names."""
        user = [s["user_output"]["arg"] for s in specs if "user_output" in s]
        keys = iter(self._keys(len(user)))
        nodes: list[Node] = []
        tensors = self.module["graph"]["tensor_values"]
        for kind, spec in map(_only, specs):
            sort, value = _only(spec["arg"]) if kind == "user_output" else ("as_tensor", spec.get("arg"))
            wanted = next(keys) if kind == "user_output" else _result_name(kind, spec)
            if sort != "as_tensor" or value is None:
                continue
            place = self.names.get(value["name"], value["name"])
            name = wanted or place
            taken = {o.name for o in self.outputs}
            if name == place and name not in taken and name in tensors and name not in self._given():
                self.outputs.append(self._output(name, value["name"]))
                continue
            while name in tensors or name in taken or name in self._given():
                name += "_out"
            self.outputs.append(self._output(name, value["name"]))
            types = (self._type(value["name"]),)
            attributes = {ARGUMENTS: {"self": Operand(0)}, TYPES_OF_RESULTS: types}
            nodes.append(Node(f"result.{name}", IDENTITY, (place,), (name,), attributes))
        return nodes

    def _output(self, name: str, value: str) -> GraphTensor:
        other = self._other_type(value)
        return GraphTensor(name, ElementType.FLOAT32 if other else None, None, other)

    def _as_changed(self, results: Sequence[Node], now: Mapping[str, str]) -> Iterator[Node]:
        """Yield nodes that give results, of tensors that were written into as what they became."""
        for node in results:
            yield replace(node, inputs=tuple(now.get(name, name) for name in node.inputs))
        for place, output in enumerate(self.outputs):
            written = now.get(output.name, output.name)
            if written != output.name and not any(output.name in node.outputs for node in results):
                name = f"{output.name}_new"
                attributes = {ARGUMENTS: {"self": Operand(0)}, TYPES_OF_RESULTS: (self._type(output.name),)}
                yield Node(f"result.{name}", IDENTITY, (written,), (name,), attributes)
                self.outputs[place] = replace(output, name=name)

    def _given(self) -> set[str]:
        return {*self.constants, *self.unreadable, *(t.name for t in self.inputs)}

    def _keys(self, count: int) -> list[str]:
        """Return the keys of a dictionary that the module returns, else empty names."""
        calls = self.module.get("module_call_graph") or [{}]
        signature = calls[0].get("signature") or {}
        found = json.loads(signature.get("out_spec") or "[1, {}]")[1]
        if str(found.get("type", "")).endswith(("dict", "OrderedDict")) and found.get("context"):
            keys = json.loads(found["context"])
            leaves = all(not child["children_spec"] for child in found["children_spec"])
            if leaves and len(keys) == count and all(isinstance(k, str) and k for k in keys):
                return [*keys]
        return [""] * count


def _operation(node: Mapping[str, Any]) -> str:
    target: str = node["target"]
    return target.removeprefix("torch.ops.")


def _extent(size: Mapping[str, Any]) -> int | str:
    """Return a dimension: its size, the symbol that stands for it (``s31``), or ``""`` for a formula."""
    kind, value = _only(size)
    if kind == "as_int":
        return int(value)
    symbol = re.fullmatch(r"Symbol\('(\w+)'[^()]*\)|(\w+)", str(value["expr_str"]))
    return "" if symbol is None else symbol[1] or symbol[2]


def _output_names(kind: str, value: Any) -> list[str]:
    match kind:
        case "as_tensor":
            return [value["name"]]
        case "as_tensors":
            return [v["name"] for v in value]
        case "as_sym_int" | "as_sym_float" | "as_sym_bool":
            return [value.get("as_name", "")]
        case _:
            return [""]


def _module_of(metadata: Mapping[str, str]) -> str:
    """Return the path of the innermost module that a node is of: ``encoder.layers.0``."""
    stack = metadata.get("nn_module_stack", "")
    entries = [part.split(",") for part in stack.split(";")]
    paths = [entry[1] for entry in entries if len(entry) > 2]
    return paths[-1].strip() if paths else ""


def _changed(specs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the parameters and buffers that a call changes."""
    for kind, spec in map(_only, specs):
        if kind in ("buffer_mutation", "parameter_mutation"):
            yield spec[kind.replace("mutation", "name")]


def _result_name(kind: str, spec: Mapping[str, Any]) -> str:
    match kind:
        case "buffer_mutation":
            return f"{spec['buffer_name']}_new"
        case "parameter_mutation":
            return f"{spec['parameter_name']}_new"
        case "user_input_mutation":
            return f"{spec['user_input_name']}_new"
        case "gradient_to_parameter":
            return f"{spec['parameter_name']}_grad"
        case "gradient_to_user_input":
            return f"{spec['user_input_name']}_grad"
        case _:
            return ""


__all__ = ["graph_of_bytes"]
