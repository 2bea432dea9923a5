"""What the names in a node or graph stand for, once its parameters have values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from polyloom.frontends.lair.lowering.constants import Space, extent
from polyloom.frontends.lair.lowering.faults import Faults, fail
from polyloom.frontends.lair.lowering.names import TYPES, check_new, suggestion
from polyloom.frontends.lair.syntax.tree import Declaration, Graph, Name, Node
from polyloom.ir.host import Buffer
from polyloom.ir.types import ElementType

MOST_ELEMENTS = 2**31


@dataclass(frozen=True)
class Bindings:
    """The values of the type and size parameters of a node or graph."""

    types: Mapping[str, ElementType]
    sizes: Mapping[str, int]


@dataclass(frozen=True)
class Scope:
    """A node or graph with values for its parameters, and the tensors that it declares."""

    item: Node | Graph
    bindings: Bindings
    declared: Mapping[str, Buffer]

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the inputs."""
        return tuple(d.name.text for d in self.item.inputs)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the outputs."""
        return tuple(d.name.text for d in self.item.outputs)


def open_scope(item: Node | Graph, bindings: Bindings) -> Scope:
    """Return the scope of a node or graph; its declarations are checked."""
    faults = Faults()
    declared: dict[str, Buffer] = {}
    for declaration in declarations(item):
        with faults.collect():
            declared[declaration.name.text] = tensor(declaration, bindings)
    faults.raise_any()
    return Scope(item, bindings, declared)


def check_names(item: Node | Graph) -> None:
    """Refuse parameters and declared tensors that share a name, or have a reserved one."""
    tensors = (d.name for d in declarations(item))
    check_new([*(p.name for p in item.type_parameters), *item.size_parameters, *tensors])


def declarations(item: Node | Graph) -> tuple[Declaration, ...]:
    """Return the inputs, outputs and declared internal tensors of a node or graph."""
    return (*item.inputs, *item.outputs, *(p for p in item.body if isinstance(p, Declaration)))


def tensor(declaration: Declaration, bindings: Bindings) -> Buffer:
    """Return the tensor that a declaration introduces."""
    kind = element_type(declaration.type, bindings)
    shape = tuple(extent(e, Space(bindings.sizes, what="extent")) for e in declaration.extents)
    made = Buffer.of(declaration.name.text, kind, shape, declaration.span)
    check_size(made)
    return made


def check_size(made: Buffer) -> None:
    """Refuse a tensor of more than 2**31 elements."""
    if prod(made.extents) > MOST_ELEMENTS:
        fail(
            "lair-too-large",
            f"tensor `{made.name}` has {prod(made.extents)} elements",
            made.span,
            label=f"more than {MOST_ELEMENTS}",
            help="make it smaller, or split it",
        )


def element_type(name: Name, bindings: Bindings) -> ElementType:
    """Return the type that a name stands for. Errors: ``lair-unknown-type``."""
    known = {**TYPES, **bindings.types}
    if name.text not in known:
        help_ = suggestion(name.text, known)
        fail("lair-unknown-type", f"`{name.text}` is not a type", name.span, help=help_)
    return known[name.text]
