"""SavedModels: a signature's graph, and its variables from the checkpoint beside it."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from polyloom.diagnostics import PolyloomError, error
from polyloom.files import exists
from polyloom.frontends.graph.model import Graph
from polyloom.frontends.protobuf.reading import broken, parse, read_bytes, text
from polyloom.frontends.protobuf.tensorflow_schema import tensorflow_messages
from polyloom.frontends.tensorflow.checkpoint import Checkpoint, read_checkpoint
from polyloom.frontends.tensorflow.functions import raw_node
from polyloom.frontends.tensorflow.read import Selection, graph_of, variable_name
from polyloom.frontends.tensorflow.tensors import Elements, Unreadable

FILE = "saved_model.pb"
_OBJECTS = "_CHECKPOINTABLE_OBJECT_GRAPH"
_VALUE = "VARIABLE_VALUE"


def is_saved_model(folder: Path) -> bool:
    """Tell whether a folder is a SavedModel."""
    return exists(folder / FILE)


def read_saved_model(folder: Path, signature: str | None = None) -> Graph:
    """Return the graph of a signature; without a name ``serving_default``, or the only one.

    Inputs and outputs have the names that the signature gives them.

    Errors: ``file-...``, ``model-broken``, ``model-signature``.
    """
    what = f"`{folder / FILE}`"
    model = parse(tensorflow_messages()["SavedModel"], read_bytes(folder / FILE), what)
    graphs = list(model.meta_graphs)
    if not graphs:
        raise broken(what, "it holds no graph: it is no SavedModel")
    served = [g for g in graphs if b"serve" in g.meta_info_def.tags]
    meta = (served or graphs)[0]
    name, chosen = _signature(meta, signature, what)
    values, missing = _variables(meta, folder)
    inputs = {key: _tensor(info) for key, info in sorted(chosen.inputs.items())}
    outputs = {key: _tensor(info) for key, info in sorted(chosen.outputs.items())}
    selection = Selection(inputs, outputs, {}, values, missing, complete=True)
    return graph_of(meta.graph_def, folder.resolve().name if name == "serving_default" else name, selection)


def _tensor(info: Any) -> str:
    return text(info.name).removesuffix(":0")


def _signature(meta: Any, wanted: str | None, what: str) -> tuple[str, Any]:
    there = {k: v for k, v in meta.signature_def.items() if not k.startswith("__") and v.outputs}
    name = wanted or ("serving_default" if "serving_default" in there else next(iter(sorted(there)), ""))
    if name in there and (wanted or len(there) == 1 or name == "serving_default"):
        return name, there[name]
    listed = ", ".join(f"`{n}`" for n in sorted(there)) or "none"
    if wanted:
        message = f"{what} has no signature `{wanted}`"
    else:
        message = (
            f"{what} has no signature that can be called" if not there else f"{what} has several signatures"
        )
    helps = [f"its signatures: {listed}; choose one with `--function NAME`"]
    raise PolyloomError(error("model-signature", message, helps=helps))


def _variables(meta: Any, folder: Path) -> tuple[dict[str, Elements], dict[str, str]]:
    """Return the arrays of variables by name, and those that cannot be read with the reason."""
    prefix = folder / "variables" / "variables"
    if not exists(prefix.with_name("variables.index")):
        return {}, {}
    checkpoint = read_checkpoint(prefix)
    keys = {name: name for name in checkpoint.entries} | _keys(meta, checkpoint)
    values, missing = {}, {}
    for name, key in keys.items():
        try:
            values[name] = checkpoint.array(key)
        except Unreadable as reason:
            missing[name] = str(reason)
    return values, missing


def _keys(meta: Any, checkpoint: Checkpoint) -> dict[str, str]:
    """Return the key of each variable of a TensorFlow 2 model, by the name of its handle.

    Several variables may have one name (`Variable`), and their handles others: which is meant say the calls
    of functions, whose objects are known in the order of their last operands. Names are for the rest.
    """
    keys = _keys_of_objects(meta, checkpoint)
    objects = meta.object_graph_def.nodes
    named = {number: text(objects[number].variable.name) for number in keys}
    names = Counter(named.values())
    found = {name: keys[number] for number, name in named.items() if names[name] == 1}
    for handle, number in _bound(meta):
        if number in keys:
            found[handle] = keys[number]
    return found


def _bound(meta: Any) -> Iterator[tuple[str, int]]:
    """Yield the name of each variable that a call of a function gets, and the number of its object."""
    handles = {
        text(n.name): variable_name(raw_node(n)) for n in meta.graph_def.node if text(n.op) == "VarHandleOp"
    }
    functions = meta.object_graph_def.concrete_functions
    for node in map(raw_node, meta.graph_def.node):
        name = text(node.attributes["f"].func.name) if "f" in node.attributes else ""
        bound = list(functions[name].bound_inputs) if name in functions else []
        if 0 < len(bound) <= len(node.inputs):
            operands = node.inputs[-len(bound) :]
            yield from ((handles[n], k) for n, k in zip(operands, bound, strict=True) if n in handles)


def _keys_of_objects(meta: Any, checkpoint: Checkpoint) -> dict[int, str]:
    """Return the key of each variable by the number of its object.

    The model's and the checkpoint's graphs of objects are walked side by side from their roots.
    """
    try:
        data = checkpoint.message(_OBJECTS)
    except Unreadable:
        return {}
    saved = meta.object_graph_def.nodes
    tracked = parse(tensorflow_messages()["TrackableObjectGraph"], data, "the checkpoint").nodes
    found: dict[int, str] = {}
    for ours, theirs in _pairs(saved, tracked):
        if saved[ours].HasField("variable"):
            keys = [text(a.checkpoint_key) for a in tracked[theirs].attributes if text(a.name) == _VALUE]
            found |= {ours: keys[0]} if keys else {}
    return found


def _pairs(saved: Any, tracked: Any) -> Iterator[tuple[int, int]]:
    """Yield the numbers of objects that two graphs reach by the same names."""
    if not len(saved) or not len(tracked):
        return
    waiting, seen = deque([(0, 0)]), {0}
    while waiting:
        ours, theirs = waiting.popleft()
        yield ours, theirs
        there: Mapping[str, int] = {text(c.local_name): c.node_id for c in tracked[theirs].children}
        for child in saved[ours].children:
            other = there.get(text(child.local_name))
            if other is None or child.node_id in seen:
                continue
            if 0 <= child.node_id < len(saved) and 0 <= other < len(tracked):
                seen.add(child.node_id)
                waiting.append((child.node_id, other))
