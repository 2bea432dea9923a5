"""The program of a PE as a small tree, which the emitter prints as C.

Array subscripts and loop bounds are integer expressions; what is computed is an IR expression over
elements of local arrays and values in variables.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from polyloom.ir.expressions import Expression, Read
from polyloom.ir.types import ElementType
from polyloom.polyhedra.loops.generate import IntExpression


@dataclass(frozen=True)
class Element:
    """``array[i][j]``; a tensor of rank 0 has no subscripts.

    ``word``: the base of a descriptor is this 16-bit word of the element, as int16; None: the element.
    """

    array: str
    subscripts: tuple[IntExpression, ...]
    word: int | None = None


@dataclass(frozen=True)
class Variable:
    """A scalar in a register: the arriving ``data``, say."""

    name: str


@dataclass(frozen=True)
class Received:
    """The next element of an input queue."""

    queue: str
    type: ElementType


Value = Element | Variable | Received


@dataclass(frozen=True)
class Compute:
    """An IR expression whose reads are ``values`` (by position)."""

    expression: Expression
    values: tuple[tuple[int, Value], ...]

    @staticmethod
    def of(value: Value, kind: ElementType) -> Compute:
        """Return a value as it is."""
        return Compute(Read(0, kind), ((0, value),))


@dataclass(frozen=True)
class OperandRef:
    """A SIMD operand: one descriptor, or one of several by a selector variable."""

    name: str
    selector: str | None = None


@dataclass(frozen=True)
class Cost:
    """What the following basic block costs in scalar work."""

    operations: int = 0
    loads: int = 0
    stores: int = 0
    multiplications: int = 0
    iterations: int = 0
    branches: int = 0


@dataclass(frozen=True)
class If:
    """``if (condition) body else otherwise``."""

    condition: IntExpression
    body: Code
    otherwise: Code = ()


@dataclass(frozen=True, kw_only=True)
class For:
    """``for (iterator = start; condition; iterator += step) body``."""

    iterator: str
    start: IntExpression
    condition: IntExpression
    step: IntExpression
    body: Code


@dataclass(frozen=True)
class SetInteger:
    """``variable = value``; ``declare`` where the variable is local to the block."""

    variable: str
    value: IntExpression
    declare: bool = False


@dataclass(frozen=True)
class SetValue:
    """``type variable = value``."""

    variable: str
    type: ElementType
    value: Compute


@dataclass(frozen=True)
class StoreElement:
    """``target = value``."""

    target: Element
    value: Compute


@dataclass(frozen=True)
class Send:
    """Send one element; with ``index``, a value-position pair that is left out where it is zero."""

    queue: str
    value: Compute
    type: ElementType
    index: IntExpression | None = None


@dataclass(frozen=True)
class SendEnd:
    """Send one end of chunk."""

    queue: str


@dataclass(frozen=True)
class TurnSwitches:
    """Send a wavelet that turns so many switches of its color on its way."""

    queue: str
    count: int


@dataclass(frozen=True)
class Discard:
    """Take a value, and do nothing with it."""

    value: Compute


@dataclass(frozen=True)
class Scope:
    """``{ body }``: what is declared inside is known there only."""

    body: Code


@dataclass(frozen=True)
class Configure:
    """Set a descriptor's sizes and strides."""

    operand: OperandRef
    sizes: tuple[IntExpression, ...]
    strides: tuple[int, ...]


@dataclass(frozen=True)
class ConfigureRun:
    """Set the size and stride of a descriptor of one dimension, both known when the program runs."""

    operand: OperandRef
    length: IntExpression
    stride: IntExpression


@dataclass(frozen=True)
class ConfigureFabric:
    """Make a descriptor stand for so many elements of a queue; ``pairs``: two of 16 bits in a wavelet."""

    operand: OperandRef
    output: bool
    queue: str
    elements: IntExpression
    pairs: bool = False


@dataclass(frozen=True)
class SetBase:
    """Let a descriptor start at an element."""

    operand: OperandRef
    element: Element


@dataclass(frozen=True)
class SetLength:
    """Another size for a descriptor of one dimension with this stride."""

    operand: OperandRef
    length: IntExpression
    stride: int


@dataclass(frozen=True)
class Invoke:
    """One SIMD instruction; with ``then``, beside the main thread, activating a task at its end."""

    instruction: str
    destination: OperandRef
    sources: tuple[OperandRef | Compute, ...]
    then: str | None = None


@dataclass(frozen=True)
class Activate:
    """Ask for a task."""

    task: str


@dataclass(frozen=True)
class Block:
    """Stop a queue's tasks."""

    queue: str


@dataclass(frozen=True)
class Unblock:
    """Let a queue's tasks run."""

    queue: str


@dataclass(frozen=True)
class CountDown:
    """``if (--counter == 0) body``."""

    counter: str
    body: Code


@dataclass(frozen=True)
class CountUp:
    """``counter += 1; if (counter == limit) { counter = 0; body }``."""

    counter: str
    limit: IntExpression
    body: Code


@dataclass(frozen=True)
class IfNextInvocation:
    """``if (next_invocation()) body``."""

    body: Code


Node = (
    Cost
    | If
    | For
    | SetInteger
    | SetValue
    | StoreElement
    | Send
    | SendEnd
    | TurnSwitches
    | Discard
    | Scope
    | Configure
    | ConfigureRun
    | ConfigureFabric
    | SetBase
    | SetLength
    | Invoke
    | Activate
    | Block
    | Unblock
    | CountDown
    | CountUp
    | IfNextInvocation
)
Code = tuple[Node, ...]


@dataclass(frozen=True, kw_only=True)
class ArrayDeclaration:
    """A local array; ``comment`` says which elements lie where.

    ``bank``: the 16-bit word, modulo 4, at which it starts; None where that does not matter.
    """

    name: str
    type: ElementType
    extents: tuple[int, ...]
    comment: str
    bank: int | None = None

    @property
    def bytes(self) -> int:
        """Bytes of the array."""
        return math.prod(self.extents) * self.type.size


def array_offsets(arrays: Sequence[ArrayDeclaration]) -> tuple[int, ...]:
    """Return the byte offset of each array: one behind the other, aligned by its type and in its bank."""
    offsets: list[int] = []
    end = 0
    for array in arrays:
        offset = -(-end // array.type.size) * array.type.size
        while array.bank is not None and offset // 2 % 4 != array.bank:
            offset += array.type.size
        offsets.append(offset)
        end = offset + array.bytes
    return tuple(offsets)


@dataclass(frozen=True, kw_only=True)
class DataTask:
    """What a queue's wavelets start: ``body`` for a (sparse) element, ``end`` for an end of chunk.

    ``blocking`` if they may wait for the fabric.
    """

    queue: str
    name: str
    type: ElementType
    body: Code
    end_name: str
    end: Code
    blocking: bool = False


@dataclass(frozen=True)
class LocalTask:
    """A task that others activate; ``blocking`` if it may wait for the fabric."""

    name: str
    body: Code
    blocking: bool


@dataclass(frozen=True)
class OperandDeclaration:
    """A SIMD operand: ``count`` descriptors under one name."""

    name: str
    count: int
    comment: str = ""


@dataclass(frozen=True)
class Filter:
    """Of each ``period`` elements that pass, ``keep`` come to an input queue, behind the first ``skip``.

    ``pairs``: two elements of 16 bits are in a wavelet.
    """

    queue: str
    skip: IntExpression
    keep: IntExpression
    period: IntExpression
    pairs: bool = False


@dataclass(frozen=True, kw_only=True)
class RoleCode:
    """The whole program of one role of PE. Queues are numbered in their order, inputs and outputs apart.

    ``filters``: of its router, for what comes to its queues.
    """

    name: str
    comment: tuple[str, ...]
    arrays: tuple[ArrayDeclaration, ...]
    counters: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    operands: tuple[OperandDeclaration, ...]
    main: Code
    data_tasks: tuple[DataTask, ...]
    local_tasks: tuple[LocalTask, ...]
    filters: tuple[Filter, ...] = ()


def all_nodes(code: RoleCode) -> Iterator[Node]:
    """Yield every node of a role, each before those inside it."""
    yield from nodes_in(code.main)
    for data in code.data_tasks:
        yield from nodes_in((*data.body, *data.end))
    for local in code.local_tasks:
        yield from nodes_in(local.body)


def nodes_in(code: Code) -> Iterator[Node]:
    """Yield every node of some code, each before those inside it."""
    for node in code:
        yield node
        if isinstance(node, _BRANCHING):
            yield from nodes_in(node.body)
            if isinstance(node, If):
                yield from nodes_in(node.otherwise)


def with_block_costs(code: Code) -> Code:
    """State what a basic block costs once, at its start: the sum of the costs inside it.

    ``cost(7); a; cost(1); b`` becomes ``cost(8); a; b``. A block ends where control flow may branch.
    """
    result: list[Node] = []
    block: list[Node] = []
    for node in code:
        if isinstance(node, _BRANCHING):
            if isinstance(node, If | For | Scope):
                node = _inside(node)
            result += [*_one_cost(block), node]
            block = []
        else:
            block.append(node)
    return (*result, *_one_cost(block))


_BRANCHING = (If, For, Scope, CountDown, CountUp, IfNextInvocation)


def _inside(node: If | For | Scope) -> If | For | Scope:
    body = with_block_costs(node.body)
    if isinstance(node, If):
        return replace(node, body=body, otherwise=with_block_costs(node.otherwise))
    return replace(node, body=body)


def _one_cost(block: list[Node]) -> list[Node]:
    costs = [node for node in block if isinstance(node, Cost)]
    rest: list[Node] = [node for node in block if not isinstance(node, Cost)]
    if not costs:
        return rest
    total = Cost(*(sum(values) for values in zip(*(vars(cost).values() for cost in costs), strict=True)))
    return [total, *rest]
