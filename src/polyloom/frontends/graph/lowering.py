"""A graph to a tensor program: node after node, by a table of operations.

What cannot be expressed does not stop the walk: every such node is collected, and one error names them all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np

from polyloom.diagnostics import PolyloomError, Unsupported, error, visible_name
from polyloom.frontends.graph.builder import LARGEST_TENSOR, MOST_AXES, Builder
from polyloom.frontends.graph.consistency import check_declared, check_ranges, undefined
from polyloom.frontends.graph.context import Context, Operation
from polyloom.frontends.graph.imported import Imported, Row, check_sizes
from polyloom.frontends.graph.model import Graph, GraphTensor, Node
from polyloom.frontends.graph.refusal import OpenShapes, Refusal, Refused, unsupported
from polyloom.frontends.graph.values import Anything, Shape, Value, ValueList, is_whole
from polyloom.ir.program import Part, Program
from polyloom.ir.scalar_functions.narrow_formats import FORMATS
from polyloom.ir.statements import Statement
from polyloom.ir.transform.unused_statements import without_unused
from polyloom.ir.verification.programs import verify

Sizes = Mapping[str, Sequence[int]]
Find = Callable[[Node], Operation | None]
"""Finds the function that lowers a node; None where there is none."""

_NOT_FORESEEN = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)
NOT_FORESEEN = "its operands and attributes do not fit each other, or Polyloom is wrong here"
"""Why a node is refused whose function failed: not all that a broken file may say of some hundred operations
is checked one by one, and a message that names the node is better than a traceback. The tests of whole suites
assert that no node of theirs is refused so."""

Scope = dict[str, Anything | None]

MOST_LOWERED = 100_000
"""Operations at most, those of a loop's body counted in each pass: what a hostile file nests ends there."""

MOST_BODIES = 20_000
"""Passes of all loops at most, and branches taken."""

MOST_STATEMENTS = 200_000
"""Statements of a program at most: unrolled loops of a hostile file end there."""


def lower(graph: Graph, find: Find, sizes: Sizes | None = None, helps: Sequence[str] = ()) -> Imported:
    """Return the tensor program of a graph.

    ``sizes``: of dimensions that the graph leaves open, by the name of the dimension (one number) or of the
    input (all of them). ``helps``: what to do where nodes have no affine form.

    Errors: ``Unsupported`` with ``model-shape`` for inputs whose type or shape is open or is none that
    a program has, and with ``model-inexpressible`` for every node that has no affine form; ``model-outputs``
    where nothing is computed; ``model-broken`` for a tensor that nothing computes, or of which the file
    declares a type or shape that it has not; ``model-size`` for a size of what is no input or
    dimension, and for sizes that the graph excludes.
    """
    builder = Builder()
    program_name = builder.names.new(graph.name or "model")
    walk = _Walk(builder, find)
    try:
        bound = _bind_inputs(graph, builder, sizes or {})
    except OpenShapes as fault:
        check_sizes(_sized(graph.inputs), sizes or {})
        fault.name, fault.outputs = graph.name or "model", graph.outputs
        raise
    check_ranges(graph, bound)
    scope: Scope = {**walk.constants(graph), **{t.inner: bound[t.name] for t in graph.inputs}}
    walk.nodes(graph.nodes, scope)
    outputs = walk.outputs(graph.outputs, scope)
    if walk.refusals:
        raise unsupported(graph.name or "the model", walk.refusals, helps)
    held = {n: v for n, v in {**scope, **outputs}.items() if isinstance(v, Value)}
    check_declared(graph, {**held, **walk.values})
    narrow = {t.name: t.other_type for t in (*graph.inputs, *graph.outputs) if t.other_type in FORMATS}
    found = _finished(program_name, builder, walk, bound, outputs)
    return replace(found, sized=_sized(graph.inputs), narrow=narrow)


def _sized(inputs: Sequence[GraphTensor]) -> tuple[str, ...]:
    """Return the names of the open dimensions, and of the inputs."""
    extents = [n for tensor in inputs for n in tensor.shape or () if isinstance(n, str) and n]
    return tuple(dict.fromkeys((*extents, *(tensor.name for tensor in inputs))))


def _bind_inputs(graph: Graph, builder: Builder, sizes: Sizes) -> dict[str, Value]:
    """Return the inputs as values; one without elements is known."""
    shapes = _shapes(graph.inputs, sizes)
    bound = {}
    for tensor, shape in zip(graph.inputs, shapes, strict=True):
        assert tensor.type is not None
        if 0 in shape:
            bound[tensor.name] = builder.constant(np.zeros(shape, tensor.type.dtype), tensor.name)
        else:
            bound[tensor.name] = builder.input(tensor.name, tensor.type, shape)
    return bound


def _shapes(inputs: Sequence[GraphTensor], sizes: Sizes) -> list[Shape]:
    """Return the inputs' shapes with every open dimension filled. Raises one error for all that are not."""
    found = [(tensor, _shape(tensor, sizes)) for tensor in inputs]
    types = [_untyped(tensor) for tensor, _ in found if tensor.type is None]
    faults = [(tensor, _contradicted(tensor, sizes) or _unshaped(tensor, shape)) for tensor, shape in found]
    wrong = [(tensor, reason) for tensor, reason in faults if reason]
    problems = []
    if types:
        message = "not all inputs have a type that a tensor program can have"
        problems.append(error("model-type", message, notes=list(map(visible_name, types))))
    if wrong:
        message = "not all inputs have a shape that a tensor program can have"
        helps = list(dict.fromkeys(h for tensor, _ in wrong for h in _size_helps(tensor)))
        problems.append(
            error("model-shape", message, notes=[visible_name(reason) for _, reason in wrong], helps=helps)
        )
    if problems:
        stated_well = not types and not any(_contradicted(tensor, sizes) for tensor in inputs)
        if stated_well and all(shape is None for tensor, shape in found if _unshaped(tensor, shape)):
            raise OpenShapes(*problems, inputs=tuple(inputs))
        raise Unsupported(*problems)
    return [shape for _, shape in found if shape is not None]


def _untyped(tensor: GraphTensor) -> str:
    if tensor.other_type:
        return f"`{tensor.name}` is declared as {tensor.other_type}, which tensor programs have not"
    return f"the type of `{tensor.name}` is not stated"


def _contradicted(tensor: GraphTensor, sizes: Sizes) -> str:
    given = sizes.get(tensor.name)
    if given is None or tensor.shape is None or _fits(tensor.shape, given):
        return ""
    return f"`{tensor.name}` is given the shape {list(given)}, the model says {_described(tensor)}"


def _unshaped(tensor: GraphTensor, shape: Shape | None) -> str:
    if shape is None:
        return "" if tensor.type is None else f"`{tensor.name}` has the shape {_described(tensor)}"
    if min(shape, default=1) < 0:
        return f"`{tensor.name}` has a negative extent: {list(shape)}"
    if len(shape) > MOST_AXES:
        return f"`{tensor.name}` has {len(shape)} axes"
    if tensor.type is not None and prod(shape) * tensor.type.size > LARGEST_TENSOR:
        return f"`{tensor.name}` is larger than 16 GiB: {list(shape)}"
    return ""


def _size_helps(tensor: GraphTensor) -> list[str]:
    """Return how the open dimensions of an input are given: by their names where they have some."""
    if tensor.shape is None:
        return [f"give it a shape: `-D {tensor.name}=1x3x224x224`"]
    names = [n for n in tensor.shape if not isinstance(n, int)]
    if not names:
        return []
    if all(n.isidentifier() for n in names):
        return [f"give it a size: `-D {n}=8`" for n in names]
    whole = "x".join(str(n) if isinstance(n, int) else "8" for n in tensor.shape)
    return [f"give it a shape: `-D {tensor.name}={whole}`"]


def _shape(tensor: GraphTensor, sizes: Sizes) -> Shape | None:
    whole = sizes.get(tensor.name)
    if whole is not None and (tensor.shape is None or _fits(tensor.shape, whole)):
        return tuple(whole)
    if tensor.shape is None:
        return None
    found = [_extent(n, sizes) for n in tensor.shape]
    return None if None in found else tuple(n for n in found if n is not None)


def _fits(declared: Sequence[int | str], given: Sequence[int]) -> bool:
    if len(declared) != len(given):
        return False
    return all(isinstance(d, str) or d == g for d, g in zip(declared, given, strict=True))


def _extent(dimension: int | str, sizes: Sizes) -> int | None:
    if isinstance(dimension, int):
        return dimension
    given = sizes.get(dimension)
    return given[0] if given is not None and len(given) == 1 else None


def _described(tensor: GraphTensor) -> str:
    if tensor.shape is None:
        return "of unknown rank"
    return "[" + ", ".join(str(n) or "?" for n in tensor.shape) + "]"


@dataclass
class _Walk:
    """Lowers nodes one after another; ``rows`` and ``refusals`` collect what became of them."""

    builder: Builder
    find: Find
    rows: list[Row] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    values: dict[str, Value] = field(default_factory=dict)
    depth: int = 0
    lowered: int = 0
    bodies: int = 0

    def constants(self, graph: Graph) -> dict[str, Value | None]:
        """Return the graph's constants as values; those that cannot be used are None, and no fault yet."""
        found: dict[str, Value | None] = dict.fromkeys(graph.unreadable)
        self._reasons.update(graph.unreadable)
        for name, array in graph.constants.items():
            try:
                found[name] = held = self.builder.constant(array, name)
                if name in graph.changing:
                    self.builder.changing.add(held.tensor)
            except Refused as refused:
                found[name] = None
                self._reasons[name] = str(refused)
        return found

    _reasons: dict[str, str] = field(default_factory=dict)
    _new_names: dict[str, str] = field(default_factory=dict)

    def nodes(self, nodes: Sequence[Node], scope: Scope) -> None:
        """Lower nodes; ``scope`` gets what they define (None where a node could not be lowered)."""
        for node in nodes:
            unknown = [n for n in node.inputs if n and n not in scope]
            if unknown and self.find(node) is not None:
                raise undefined(node, unknown[0], nodes)
            results = self._node(node, scope)
            for name, value in zip(node.outputs, results, strict=False):
                if name:
                    scope[name] = value
                    if isinstance(value, Value) and not self.depth:
                        self.values[name] = value
            for name in node.outputs[len(results) :]:
                scope[name] = None

    def _node(self, node: Node, scope: Mapping[str, Anything | None]) -> Sequence[Anything | None]:
        self.lowered += 1
        if self.lowered > MOST_LOWERED:
            reason = f"more than {MOST_LOWERED} operations, with those of loops counted in each pass"
            raise unsupported("the model", [Refusal(layer_name(node), node.op, reason)])
        operation = self.find(node)
        title = f"{node.domain}.{node.op}" if node.domain else node.op
        if operation is None:
            self._refuse(node, "no such operation is known" if node.op else "it has no operation")
            return (None,) * len(node.outputs)
        faults = self._faults(node, scope)
        if faults is not None:
            if faults:
                self._refuse(node, faults)
            return (None,) * len(node.outputs)
        first = len(self.builder.statements)
        self.builder.layer = layer_name(node)
        self.builder.result = next((o for o in node.outputs if o), "none")
        operands = tuple(scope[n] if n else None for n in node.inputs)
        context = Context(self.builder, node, operands, lambda g, more: self._body(g, {**scope, **more}))
        try:
            results = list(operation(context))
        except Refused as refused:
            self._refuse(node, str(refused))
            return (None,) * len(node.outputs)
        except _NOT_FORESEEN as fault:
            self._refuse(node, f"{NOT_FORESEEN} ({type(fault).__name__}: {fault})")
            return (None,) * len(node.outputs)
        if len(self.builder.statements) > MOST_STATEMENTS:
            raise unsupported("the model", [Refusal(node.name, title, "the program becomes too long")])
        return self._named(node, results, first)

    def _faults(self, node: Node, scope: Mapping[str, Anything | None]) -> str | None:
        """Return why a node's operands cannot be used: None if they can, "" if that was said before."""
        absent = [n for n in node.inputs if n and scope[n] is None]
        reasons = [f"`{n}`: {self._reasons[n]}" for n in absent if n in self._reasons]
        return None if not absent else "; ".join(reasons)

    def _refuse(self, node: Node, reason: str) -> None:
        title = f"{node.domain}.{node.op}" if node.domain else node.op
        label = node.name or (next((o for o in node.outputs if o), "") and f"-> {node.outputs[0]}")
        self.refusals.append(Refusal(label, title, reason))

    def _body(self, graph: Graph, scope: Mapping[str, Anything | None]) -> list[Anything]:
        """Lower a body of control flow where it stands. Raises ``Refused`` where a node of it does."""
        before = len(self.refusals)
        layer, result = self.builder.layer, self.builder.result
        inner = {**scope, **self.constants(graph)}
        self.depth += 1
        self.bodies += 1
        if self.depth > 50:
            raise Refused("bodies nested too deep")
        if self.bodies > MOST_BODIES:
            raise Refused(f"its loops make more than {MOST_BODIES} passes in all")
        try:
            self.nodes(graph.nodes, inner)
        finally:
            self.depth -= 1
            self.builder.layer, self.builder.result = layer, result
        if len(self.refusals) > before:
            listed = "; ".join(str(r) for r in self.refusals[before:])
            del self.refusals[before:]
            raise Refused(f"its body holds {listed}")
        results = [inner.get(o.name) for o in graph.outputs]
        if any(r is None for r in results):
            raise Refused("its body does not define its result")
        return [r for r in results if r is not None]

    def _named(self, node: Node, results: list[Anything], first: int) -> list[Anything]:
        """Give what a node has made the names of its outputs, and write its row of the table."""
        builder = self.builder
        made = {s.write.buffer for s in builder.statements[first:]}
        for number, (name, value) in enumerate(zip(node.outputs, results, strict=False)):
            if isinstance(value, ValueList):
                continue
            fresh = value.tensor in made or value.tensor in builder.constants
            known_name = builder.names.originals.get(value.tensor)
            shared = any(v.tensor == value.tensor for v in builder.shared.values())
            if name and fresh and known_name is None and not shared:
                new = builder.rename_tensor(value.tensor, name)
                results = [_moved(r, value.tensor, new) for r in results]
                self._rename_last(node, new, first, number)
        if not self.depth:
            self.rows.append(self._row(node, results, first))
        return results

    def _rename_last(self, node: Node, tensor: str, first: int, number: int) -> None:
        """Call the statement that writes a node's result like the node."""
        for k in range(first, len(self.builder.statements)):
            if self.builder.statements[k].write.buffer == tensor:
                suffix = f"_{number}" if number else ""
                self.builder.rename_statement(k, layer_name(node) + suffix)

    def _row(self, node: Node, results: Sequence[Anything], first: int) -> Row:
        made = self.builder.statements[first:]
        title = f"{node.domain}.{node.op}" if node.domain else node.op
        names = tuple(s.name for s in made)
        points = sum(prod(s.domain) for s in made)
        return Row(node.name or layer_name(node), title, names, points, self._became(results, made))

    def _became(self, results: Sequence[Anything], made: Sequence[Statement]) -> str:
        if made:
            return "1 statement" if len(made) == 1 else f"{len(made)} statements"
        listed = [r for r in results if isinstance(r, ValueList)]
        if listed:
            return f"a list of {len(listed[0])}"
        unknown = [r for r in results if isinstance(r, Value) and r.tensor not in self.builder.constants]
        if not unknown:
            return "constant"
        seen = unknown[0]
        return f"view of {seen.tensor}" if not is_whole(seen) else f"the same as {seen.tensor}"

    def outputs(
        self, declared: Sequence[GraphTensor], scope: Mapping[str, Anything | None]
    ) -> dict[str, Value]:
        """Return the graph's outputs, each a tensor of its own that a statement writes.

        A tensor that gets the name of an output may be seen by the outputs after it, through a view.
        """
        found: dict[str, Value] = {}
        for tensor in declared:
            value = scope.get(tensor.inner)
            if value is None:
                if not self.refusals:
                    reason = self._reasons.get(tensor.inner, "nothing computes it")
                    self.refusals.append(Refusal(tensor.name, "output", reason))
                continue
            if isinstance(value, ValueList):
                self.refusals.append(Refusal(tensor.name, "output", "it is a list of tensors"))
                continue
            try:
                found[tensor.name] = self._output(tensor.name, self._with_new_name(value), found)
            except Refused as refused:
                self.refusals.append(Refusal(tensor.name, "output", str(refused)))
        self.values = {n: self._with_new_name(value) for n, value in self.values.items()}
        return found

    def _with_new_name(self, value: Value) -> Value:
        new = self._new_names.get(value.tensor)
        return value if new is None else replace(value, tensor=new)

    def _output(self, name: str, value: Value, found: Mapping[str, Value]) -> Value:
        builder = self.builder
        if value.size == 0:
            return value
        own = builder.is_written(value.tensor)
        taken = any(v.tensor == value.tensor for v in found.values())
        if own and not taken and is_whole(value) and builder.tensors[value.tensor].extents == value.shape:
            return self._called(name, value)
        return _copied(builder, name, value)

    def _called(self, name: str, value: Value) -> Value:
        """Give a tensor the name of the output that it is."""
        if self.builder.names.originals.get(value.tensor) == name:
            return value
        self._new_names[value.tensor] = new = self.builder.rename_tensor(value.tensor, name)
        return replace(value, tensor=new)


def _moved(value: Anything, old: str, new: str) -> Anything:
    """Return a value whose tensor is called otherwise."""
    return replace(value, tensor=new) if isinstance(value, Value) and value.tensor == old else value


def _copied(builder: Builder, name: str, value: Value) -> Value:
    """Copy what is an input, a constant or a view into an output of its own."""
    builder.layer, builder.result = f"output_{name}", name
    copied = builder.moved(value)
    tensor = builder.rename_tensor(copied.tensor, name)
    return replace(copied, tensor=tensor)


def _nothing(builder: Builder) -> str:
    """Return the tensor that a program computes where no result has elements, for it must compute one."""
    builder.layer, builder.result = "nothing", "nothing"
    return builder.moved(builder.constant(np.zeros(1, np.float32), "zero")).tensor


def layer_name(node: Node) -> str:
    """Return the name of a node, or one made of its operation and result."""
    return node.name or f"{node.op}_{next((o for o in node.outputs if o), 'none')}"


def _finished(
    name: str, builder: Builder, walk: _Walk, bound: Mapping[str, Value], outputs: Mapping[str, Value]
) -> Imported:
    """Return the program of what the outputs need."""
    if not outputs:
        raise PolyloomError(error("model-outputs", "the model has no outputs", helps=["name some"]))
    results = tuple(v.tensor for v in outputs.values() if v.size) or (_nothing(builder),)
    used = {a.buffer for s in builder.statements for a in (*s.reads, s.write)}
    given = [v.tensor for v in bound.values() if v.tensor not in builder.constants]
    constants = [n for n in builder.constants if n in used]
    tensors = tuple(t for n, t in builder.tensors.items() if n in used or n in given)
    whole = Program.of(name, tensors, (*given, *constants), results, tuple(builder.statements))
    used_only = without_unused(whole)
    verify(used_only)
    kept = {s.name: s for s in used_only.statements}
    rows = tuple(_kept_row(row, kept) for row in walk.rows)
    parts = tuple(Part(row.node, row.statements) for row in rows if row.statements)
    program = replace(used_only, parts=parts)
    arguments = {v.tensor: v.type for v in bound.values() if v.tensor in given and v.tensor in program.inputs}
    return Imported(
        program,
        {n: builder.constants[n] for n in program.inputs if n in builder.constants},
        arguments,
        dict(outputs),
        dict(builder.names.originals),
        {**walk.values, **bound, **outputs},
        rows,
        frozenset({*(n for n, v in bound.items() if v.tensor not in program.inputs)}),
        remarks=tuple(builder.remarks),
        order=tuple(bound),
    )


def _kept_row(row: Row, kept: Mapping[str, Statement]) -> Row:
    """Return a row without the statements that no output needs."""
    names = tuple(n for n in row.statements if n in kept)
    if len(names) == len(row.statements):
        return row
    became = row.became if names else "unused"
    return replace(row, statements=names, instances=sum(prod(kept[n].domain) for n in names), became=became)
