"""Graphs that a running PyTorch has traced (``torch.fx``, of ATen's operations) as graphs of nodes.

Tensors, types and numbers are met as PyTorch's objects; nothing is written to a file. Sizes that were symbols
when the graph was traced are numbers here: those of one call.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np

from polyloom.frontends.graph.model import Graph, GraphTensor, Node, widened, widened_name
from polyloom.frontends.torch import float8
from polyloom.frontends.torch.bfloat16 import rounded
from polyloom.frontends.torch.call import ARGUMENTS, TYPES_OF_RESULTS, Operand, Unusable
from polyloom.frontends.torch.strided import as_views, in_memory
from polyloom.ir.scalar_functions.narrow_formats import BFLOAT16
from polyloom.ir.types import ElementType


@dataclass(frozen=True)
class Form:
    """A tensor that is given to a graph: its elements' type, its shape, and how it lies in memory.

    ``order``: its dimensions from the slowest to the fastest, in which a program takes it then; () where they
    are in order, or not without gaps.
    """

    type: ElementType | None
    shape: tuple[int, ...]
    order: tuple[int, ...] = ()

    def name(self, name: str) -> str:
        """Return what the graph's input for a placeholder of this name is called."""
        return f"{name}.memory" if self.order else name


def graph_of_traced(
    module: Any, forms: Sequence[Form | int], name: str
) -> tuple[Graph, list[Result | None], list[Assertion]]:
    """Return the graph of an ``fx.GraphModule``, its results in order (None where it gives None), assertions.

    ``forms``: of each placeholder, or the number that it is.
    """
    reading = _Reading(module, name)
    given = iter(forms)
    for node in module.graph.nodes:
        match node.op:
            case "placeholder":
                reading.input(node, next(given))
            case "get_attr":
                reading.constant(node.name, getattr(module, node.target))
            case "output":
                reading.results(node.args[0])
            case _ if not _is_item(node):
                if not reading.asserted(node) and not reading.strided(node):
                    reading.node(node)
    meaning = partial(float8.on_float32, reading.made_float8)
    nodes = widened(reading.nodes, reading.float8, reading.unreadable, (), meaning)
    graph = Graph(
        name,
        tuple(rounded([*nodes], reading.narrow)),
        tuple(map(reading.widened, reading.inputs)),
        tuple(map(reading.widened, reading.outputs)),
        reading.constants,
        reading.unreadable,
    )
    return graph, reading.returned, reading.assertions


@dataclass(frozen=True)
class Assertion:
    """An output that must not be 0 in a call; ``message``: what the exception says where it is."""

    name: str
    message: str


@dataclass(frozen=True)
class Result:
    """A result of a graph by its name.

    ``is_number``: it is no tensor, but a size; ``form``: bfloat16 or of float8, and float32 in the program.
    ``order``: its dimensions from the slowest to the fastest in memory, which are the program's then.
    PyTorch takes views of results by the strides that it traced, so these must be met.
    """

    name: str
    is_number: bool
    form: str = ""
    order: tuple[int, ...] = ()


class _Reading:
    def __init__(self, module: Any, name: str) -> None:
        self.module, self.name = module, name
        self.nodes: list[Node] = []
        self.inputs: list[GraphTensor] = []
        self.outputs: list[GraphTensor] = []
        self.constants: dict[str, Any] = {}
        self.unreadable: dict[str, str] = {}
        self.float8: dict[str, str] = {}
        self.returned: list[Result | None] = []
        self.assertions: list[Assertion] = []
        formats = dict(_narrow(module.graph.nodes))
        self.narrow = frozenset(name for name, form in formats.items() if form == BFLOAT16)
        self.made_float8 = {name: form for name, form in formats.items() if form != BFLOAT16}

    def input(self, node: Any, given: Form | int) -> None:
        """Add a placeholder; one that lies in another order, as it lies, and its permutation."""
        if isinstance(given, int):
            self.constants[node.name] = np.array(given, np.int64)
            return
        shape = tuple(given.shape[dim] for dim in given.order) or given.shape
        self.inputs.append(GraphTensor(given.name(node.name), given.type, shape))
        if given.order:
            back = tuple(given.order.index(dim) for dim in range(len(shape)))
            attributes = {ARGUMENTS: {"self": Operand(0), "dims": back}, TYPES_OF_RESULTS: (given.type,)}
            inputs = (given.name(node.name),)
            self.nodes.append(Node(node.name, "aten.permute.default", inputs, (node.name,), attributes))
        form = form_of(node.meta.get("val"))
        if form in float8.NAMES.values():
            self.float8[node.name] = form

    def widened(self, tensor: GraphTensor) -> GraphTensor:
        """Return an input or output; of float8 as programs hold it: the caller converts it."""
        form = self.float8.get(tensor.name)
        return tensor if form is None else replace(tensor, held=widened_name(tensor.name))

    def constant(self, name: str, tensor: Any) -> None:
        """Add a tensor that the module holds."""
        form = form_of(tensor)
        if form in float8.NAMES.values():
            self.constants[widened_name(name)] = array_of(tensor)
            self.float8[name] = form
        elif element_of(getattr(tensor, "dtype", None)) is None:
            self.unreadable[name] = "its elements have a type that tensor programs have not"
        else:
            self.constants[name] = array_of(tensor)

    def node(self, node: Any) -> None:
        """Add a call of an operation."""
        inputs: list[str] = []
        given = {name: self._argument(value, inputs) for name, value in _arguments(node).items()}
        outputs, types = _results(node)
        attributes = {ARGUMENTS: given, TYPES_OF_RESULTS: types}
        self.nodes.append(Node(node.name, _operation(node.target), tuple(inputs), outputs, attributes))

    def asserted(self, node: Any) -> bool:
        """Add the condition of ``_assert_async`` as an output; tell whether the node is one."""
        if not _operation(node.target).startswith("aten._assert_async."):
            return False
        given, name = _arguments(node), f"assertion_{len(self.assertions)}"
        kind = element_of(given["self"].meta["val"].dtype)
        attributes = {ARGUMENTS: {"self": Operand(0)}, TYPES_OF_RESULTS: (kind,)}
        self.nodes.append(Node(node.name, "aten.alias", (_name(given["self"]),), (name,), attributes))
        self.outputs.append(GraphTensor(name, None, None))
        message = given.get("assert_msg", "Expected Tensor with single nonzero value, but got zero")
        self.assertions.append(Assertion(name, message))
        return True

    def strided(self, node: Any) -> bool:
        """Add ``as_strided`` of all elements, or its gradient; tell whether that was done."""
        kind = _operation(node.target).partition(".")[2]
        if kind not in ("as_strided.default", "as_strided_scatter.default"):
            return False
        given = {"storage_offset": None, **_arguments(node)}
        operand = given["self"] if "self" in given else given["input"]
        seen, offset = operand.meta["val"], given["storage_offset"]
        of_operand, other = (seen.shape, seen.stride()), (given["size"], given["stride"])
        numbers = (*of_operand[0], *of_operand[1], *other[0], *other[1], seen.storage_offset(), offset or 0)
        if any(type(number) is not int for number in numbers) or offset not in (None, seen.storage_offset()):
            return False
        if kind == "as_strided.default":
            source, views = operand, as_views(*of_operand, *other)
        else:  # every element is one of the source's: it is the same view backwards
            source, views = given["src"], as_views(*other, *of_operand)
        if views is None:
            return False
        self._viewed(node, _name(source), views)
        return True

    def _viewed(
        self, node: Any, last: str, views: tuple[Sequence[int], Sequence[int], Sequence[int]]
    ) -> None:
        """Add the result of a node as a permutation, a view and a permutation of another value."""
        before, shape, back = views
        for step, operation, name, value in (
            ("memory", "aten.permute.default", "dims", before),
            ("shaped", "aten.view.default", "size", shape),
            (None, "aten.permute.default", "dims", back),
        ):
            result = node.name if step is None else f"{node.name}.{step}"
            attributes = {ARGUMENTS: {"self": Operand(0), name: value}, TYPES_OF_RESULTS: _results(node)[1]}
            self.nodes.append(Node(result, operation, (last,), (result,), attributes))
            last = result

    def results(self, values: Any) -> None:
        """Add the results of the graph: each has a name of its own."""
        for value in values if isinstance(values, tuple | list) else (values,):
            if not _is_node(value):
                self.returned.append(None)
                continue
            name = f"result_{len(self.returned)}"
            seen = value.meta.get("val")
            kind = element_of(getattr(seen, "dtype", None))
            order = _order(seen)
            given = {"self": Operand(0), **({"dims": order} if order else {})}
            operation = "aten.permute" if order else "aten.alias"
            attributes = {ARGUMENTS: given, TYPES_OF_RESULTS: (kind,)}
            self.nodes.append(Node(f"result.{name}", operation, (_name(value),), (name,), attributes))
            self.outputs.append(GraphTensor(name, None, None))
            self.returned.append(Result(name, not hasattr(seen, "dtype"), form_of(seen), order))

    def _argument(self, value: Any, inputs: list[str]) -> Any:
        if _is_node(value):
            name = _name(value)
            if name not in inputs:
                inputs.append(name)
            return Operand(inputs.index(name))
        if isinstance(value, tuple | list):
            return tuple(self._argument(v, inputs) for v in value)
        if value is None or isinstance(value, bool | int | float | str):
            return value
        kind = type(value).__name__
        if kind == "dtype":
            return element_of(value) or Unusable(f"elements of {value}")
        if kind in ("device", "layout", "memory_format"):
            return None
        return Unusable(f"a {kind}")


def element_of(dtype: Any) -> ElementType | None:
    """Return the element type of a type of PyTorch, of bfloat16 float32; None where the IR has none."""
    name = str(dtype).removeprefix("torch.")
    try:
        return ElementType.FLOAT32 if name == BFLOAT16 else ElementType(name)
    except ValueError:
        return None


def held_as(dtype: Any) -> ElementType | None:
    """Return the element type in which programs hold tensors of a type of PyTorch."""
    return ElementType.FLOAT32 if _form_of_type(dtype) else element_of(dtype)


def form_of(tensor: Any) -> str:
    """Return the narrow format of a tensor, bfloat16 or of float8, held as float32; of others ''."""
    return _form_of_type(getattr(tensor, "dtype", None))


@cache
def _form_of_type(dtype: Any) -> str:
    name = str(dtype).removeprefix("torch.")
    return name if name in (BFLOAT16, *float8.NAMES.values()) else ""


def array_of(tensor: Any) -> np.ndarray[Any, Any]:
    """Return a tensor's elements, those of bfloat16 and float8 as float32."""
    plain = tensor.detach().cpu()
    found: np.ndarray[Any, Any] = (plain.float() if form_of(tensor) else plain).numpy()
    return found


def order_of(tensor: Any) -> tuple[int, ...]:
    """Return the order in which a given tensor lies (``Form``); of narrow ones, which are copied, ()."""
    return () if tensor.is_contiguous() or form_of(tensor) else _order(tensor)


def _order(tensor: Any) -> tuple[int, ...]:
    """Return the dimensions of a tensor from the slowest to the fastest, () where they are in order.

    Also where elements lie twice or with gaps between them. Of open sizes those of the traced call tell.
    """
    if not hasattr(tensor, "stride"):
        return ()
    sizes, strides = (tuple(map(_hint, numbers)) for numbers in (tensor.shape, tensor.stride()))
    order = in_memory(sizes, strides) or ()
    moved = [dim for dim in order if sizes[dim] != 1]
    return order if moved != sorted(moved) else ()


def _hint(number: Any) -> int:
    return number if isinstance(number, int) else int(number.node.hint)


def _narrow(nodes: Any) -> Iterator[tuple[str, str]]:
    """Yield the names of values that are of narrow formats, and these."""
    for node in nodes:
        value = node.meta.get("val")
        named = {node.name: value}
        if isinstance(value, tuple | list):
            named = {f"{node.name}.{k}": each for k, each in enumerate(value)}
        yield from ((name, form) for name, each in named.items() if (form := form_of(each)))


def _is_node(value: Any) -> bool:
    return hasattr(value, "all_input_nodes")


def _operation(target: Any) -> str:
    """Return the name of an operation: ``aten.add.Tensor``, ``_operator.mul``."""
    if hasattr(target, "_schema"):
        return str(target)
    module = getattr(target, "__module__", "")
    return f"{module}.{getattr(target, '__name__', target)}"


def _arguments(node: Any) -> dict[str, Any]:
    """Return the arguments of a call by the names of its schema; those of plain functions by letters."""
    schema = getattr(node.target, "_schema", None)
    if schema is None:
        return {**dict(zip("abcdef", node.args, strict=False)), **node.kwargs}
    names = [argument.name for argument in schema.arguments]
    return {**dict(zip(names, node.args, strict=False)), **node.kwargs}


def _results(node: Any) -> tuple[tuple[str, ...], tuple[ElementType | None, ...]]:
    """Return the names and types of a node's results; of several each has a name (``name.1``)."""
    value = node.meta.get("val")
    taken = tuple(_taken(node))
    if not isinstance(value, tuple | list) and not taken:
        return (node.name,), (element_of(getattr(value, "dtype", None)),)
    values = value if isinstance(value, tuple | list) else ()
    types = {f"{node.name}.{k}": element_of(getattr(v, "dtype", None)) for k, v in enumerate(values)}
    types |= {name: None for name in taken if name not in types}
    return tuple(types), tuple(types.values())


def _taken(node: Any) -> Iterator[str]:
    """Yield the names of results that are taken out of a node's, also of groups: PyTorch states not all."""
    for user in node.users:
        if _is_item(user):
            yield _name(user)
            yield from _taken(user)


def _is_item(node: Any) -> bool:
    return node.op == "call_function" and getattr(node.target, "__name__", "") == "getitem"


def _name(node: Any) -> str:
    """Return the name of a value; ``getitem`` of a node with several results is that result."""
    if _is_item(node):
        source, place = node.args
        return f"{_name(source)}.{place}"
    return str(node.name)
