"""Loops around instructions: short ones unrolled, long ones in part, addresses that stay set before them.

``for (k = 0; k < 2; k++) { set_base(y, &y[i]); set_base(x, &x[k]); f(y, x); }`` becomes
``set_base(y, &y[i]); set_base(x, &x[0]); f(y, x); set_base(x, &x[1]); f(y, x);``.
Not in the papers. What it saves are the loop's own cycles and the operations of addresses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from polyloom.polyhedra.loops.tree import (
    IntExpression,
    Name,
    Number,
    Operation,
    names_in,
    replace_name,
    sum_of,
)
from polyloom.wafer.machine.instruction_cost import MOST_UNROLLED, unrolled_copies
from polyloom.wafer.pe_program.addresses import address_operations, scalar_cost
from polyloom.wafer.pe_program.tree import (
    Code,
    Compute,
    Cost,
    Element,
    For,
    If,
    Invoke,
    Node,
    OperandRef,
    Scope,
    SetBase,
    Value,
    nodes_in,
)


def tightened(code: Code) -> Code:
    """Unroll short loops around instructions, and set addresses that stay the same before the others."""
    return _with_loops(code, _loop)


def _with_loops(code: Code, change: Callable[[For], Code]) -> Code:
    """Return code with something in place of each loop, inner ones first."""
    result: list[Node] = []
    for node in code:
        match node:
            case For(body=body):
                result += change(replace(node, body=_with_loops(body, change)))
            case If(body=body, otherwise=otherwise):
                inner, other = _with_loops(body, change), _with_loops(otherwise, change)
                result.append(replace(node, body=inner, otherwise=other))
            case Scope(body=body):
                result.append(replace(node, body=_with_loops(body, change)))
            case _:
                result.append(node)
    return tuple(result)


def _loop(loop: For) -> Code:
    trips = _trips(loop)
    if trips is None:
        return (loop,)
    instructions = sum(isinstance(node, Invoke) for node in loop.body)
    straight = all(isinstance(node, Cost | SetBase | Invoke) for node in loop.body)
    if straight and 0 < instructions * trips <= MOST_UNROLLED:
        return _unrolled(loop, trips)
    return _with_fixed_addresses_before(_from_zero(loop, trips) if straight else loop)


def partly_unrolled(code: Code) -> Code:
    """Unroll long loops around instructions in part: several iterations in each, the rest behind them.

    What a loop does not change of an address is added up before it; an iteration's address is that of the
    first one and a number, which costs no operation of its own.
    """
    return _with_loops(code, _in_part)


def _in_part(loop: For) -> Code:
    trips = _trips(loop)
    instructions = sum(isinstance(node, Invoke) for node in loop.body)
    straight = all(isinstance(node, Cost | SetBase | Invoke) for node in loop.body)
    if trips is None or not straight or not instructions:
        return (loop,)
    copies = unrolled_copies(trips, instructions)
    return (loop,) if copies == 1 else _several_at_once(loop, trips, copies)


def _several_at_once(loop: For, trips: int, copies: int) -> Code:
    assert isinstance(loop.step, Number)
    step = loop.step.value
    around = tuple(Cost(iterations=1) for node in loop.body if isinstance(node, Cost) and node.iterations)
    bases: dict[str, Element] = {}
    body: list[Node] = list(around)
    for copy in range(copies):
        value = sum_of([(1, Name(loop.iterator)), (copy * step, Number(1))])
        body += _moving(loop, tuple(_body_at(loop, value, bases)))
    last = sum_of([(1, loop.start), ((trips // copies - 1) * copies * step, Number(1))])
    condition = Operation("<=", (Name(loop.iterator), last))
    whole = replace(loop, condition=condition, step=Number(copies * step), body=tuple(body))
    rest: list[Node] = []
    for trip in range(trips - trips % copies, trips):
        rest += _body_at(loop, sum_of([(1, loop.start), (trip * step, Number(1))]), bases)
    before = sum(address_operations(_standing(e, loop.iterator)) for e in dict.fromkeys(_elements(loop.body)))
    return (*_costing(Cost(operations=before)), whole, *rest)


def _moving(loop: For, copy: Code) -> Iterator[Node]:
    """Yield an iteration within a longer one, whose addresses cost what the loop changes of them."""
    for node in copy:
        match node:
            case Cost():
                continue
            case SetBase(element=element):
                yield from _costing(Cost(operations=address_operations(_changing(element, loop.iterator))))
            case Invoke(sources=sources):
                for source in sources:
                    if isinstance(source, Compute) and any(isinstance(v, Element) for _, v in source.values):
                        yield scalar_cost(replace(source, values=_changing_values(source, loop.iterator)))
        yield node


def _elements(code: Code) -> Iterator[Element]:
    """Yield what the addresses and the scalars of straight code are."""
    for node in code:
        if isinstance(node, SetBase):
            yield node.element
        elif isinstance(node, Invoke):
            values = (v for s in node.sources if isinstance(s, Compute) for _, v in s.values)
            yield from (v for v in values if isinstance(v, Element))


def _changing_values(source: Compute, iterator: str) -> tuple[tuple[int, Value], ...]:
    return tuple((k, _changing(v, iterator) if isinstance(v, Element) else v) for k, v in source.values)


def _changing(element: Element, iterator: str) -> Element:
    """Return an element with the subscripts alone that a loop changes, without the numbers in them."""
    kept = tuple(_without_number(s) for s in element.subscripts if iterator in names_in(s))
    return replace(element, subscripts=kept)


def _standing(element: Element, iterator: str) -> Element:
    """Return an element with the subscripts alone that a loop does not change."""
    return replace(element, subscripts=tuple(s for s in element.subscripts if iterator not in names_in(s)))


def _without_number(subscript: IntExpression) -> IntExpression:
    match subscript:
        case Operation(operator="+" | "-", operands=(first, Number())):
            return first
    return subscript


def _trips(loop: For) -> int | None:
    """Return how often a loop runs, where that is at least once and a number."""
    match loop.condition, loop.step:
        case Operation(operator=("<=" | "<") as sign, operands=(Name(name=name), last)), Number(value=step):
            span = sum_of([(1, last), (-1, loop.start)])
            if name != loop.iterator or not isinstance(span, Number) or step < 1:
                return None
            trips = (span.value - (sign == "<")) // step + 1
            return trips if trips > 0 else None
    return None


def _unrolled(loop: For, trips: int) -> Code:
    """Return the body at each value of the iterator; what it costs is counted anew."""
    assert isinstance(loop.step, Number)
    result: list[Node] = []
    bases: dict[str, Element] = {}
    for trip in range(trips):
        value = sum_of([(1, loop.start), (trip * loop.step.value, Number(1))])
        result += _body_at(loop, value, bases)
    return tuple(result)


def _from_zero(loop: For, trips: int) -> For:
    """Return a loop that counts from 0 where addresses are cheaper then: ``x[c - 4 * PE_X]`` is ``x[c]``."""
    assert isinstance(loop.step, Number)
    last = Operation("<=", (Name(loop.iterator), Number((trips - 1) * loop.step.value)))
    body = _body_at(loop, sum_of([(1, loop.start), (1, Name(loop.iterator))]), {})
    kept = tuple(node for node in loop.body if isinstance(node, Cost) and node.iterations)
    shifted = replace(loop, start=Number(0), condition=last, body=(*kept, *body))
    return shifted if _operations(shifted) < _operations(loop) else loop


def _operations(loop: For) -> int:
    return sum(node.operations for node in loop.body if isinstance(node, Cost))


def _body_at(loop: For, value: Name | Number | Operation, bases: dict[str, Element]) -> Iterator[Node]:
    """Yield the body at a value of the iterator, without addresses that are set already (``bases``)."""
    for node in loop.body:
        if isinstance(node, SetBase):
            element = _element_at(node.element, loop.iterator, value)
            if node.operand.selector is None and bases.get(node.operand.name) == element:
                continue
            bases[node.operand.name] = element
            yield from _costing(Cost(operations=address_operations(element)))
            yield replace(node, element=element)
        elif isinstance(node, Invoke):
            yield from _invocation(node, loop.iterator, value)


def _costing(cost: Cost) -> Iterator[Cost]:
    if cost != Cost():
        yield cost


def _invocation(node: Invoke, iterator: str, value: Name | Number | Operation) -> Iterator[Node]:
    sources: list[OperandRef | Compute] = []
    for source in node.sources:
        if isinstance(source, Compute):
            values = tuple((k, _value_at(v, iterator, value)) for k, v in source.values)
            source = replace(source, values=values)
            if any(isinstance(v, Element) for _, v in values):
                yield scalar_cost(source)
        sources.append(source)
    yield replace(node, sources=tuple(sources))


def _value_at(value: Value, iterator: str, to: Name | Number | Operation) -> Value:
    return _element_at(value, iterator, to) if isinstance(value, Element) else value


def _element_at(element: Element, iterator: str, value: Name | Number | Operation) -> Element:
    return replace(element, subscripts=tuple(replace_name(s, iterator, value) for s in element.subscripts))


def _with_fixed_addresses_before(loop: For) -> Code:
    """Move the addresses that no iteration changes, and nothing else sets, before a loop that runs."""
    set_here = [n.operand.name for n in nodes_in(loop.body) if isinstance(n, SetBase)]
    before: list[Node] = []
    body: list[Node] = []
    for node in loop.body:
        if (
            isinstance(node, SetBase)
            and _stays(node, loop.iterator)
            and set_here.count(node.operand.name) == 1
        ):
            address = Cost(operations=address_operations(node.element))
            if body and body[-1] == address:
                body.pop()
                before.append(address)
            before.append(node)
        else:
            body.append(node)
    return (*before, replace(loop, body=tuple(body)))


def _stays(node: SetBase, iterator: str) -> bool:
    varying = {name for subscript in node.element.subscripts for name in names_in(subscript)}
    return node.operand.selector is None and iterator not in varying
