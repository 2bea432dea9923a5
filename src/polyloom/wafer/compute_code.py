"""The code of computation tasks: a SIMD instruction where there is one, else loops from isl."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import islpy as isl

from polyloom.ir.expressions import Expression, Read, walk
from polyloom.polyhedra.binding import PE_PARAMETERS, project_out_parameters
from polyloom.polyhedra.functions import compose, point_of
from polyloom.polyhedra.loops import (
    Branch,
    CodeBuilder,
    Instance,
    IntExpression,
    Loop,
    Number,
    Tree,
    names_in,
    operation_count,
    product_of,
    sum_of,
)
from polyloom.wafer.arrangement import Operand
from polyloom.wafer.code import (
    Code,
    Compute,
    Configure,
    Cost,
    Element,
    For,
    If,
    Invoke,
    Node,
    OperandRef,
    SetBase,
    SetInteger,
    StoreElement,
    Value,
    Variable,
)
from polyloom.wafer.matching import ACCUMULATOR, Match, work_at_point
from polyloom.wafer.role_context import (
    RoleBuilder,
    element_at,
    element_at_point,
    flat_strides,
    point_values,
    scalar_cost,
    without_units,
)
from polyloom.wafer.simd import SimdAnalysis, Strategy, scalar_reads

InstanceCode = Callable[[Sequence[IntExpression]], Code]
"""Makes the code of one instance from the coordinates of its domain."""

DATA = "data"
"""The variable that holds the arriving element."""


def compute_code(builder: RoleBuilder, analysis: SimdAnalysis, code: CodeBuilder) -> Code:
    """Return what a task does in one run: for the element ``data`` with the index, or for all instances.

    ``code`` knows the PEs of the role and the index values that arrive.
    """
    known = analysis.task.known
    inside = CodeBuilder(code.context.intersect(known), code.names)
    make = _loops if analysis.strategy is Strategy.NONE else _instruction
    body, condition = make(builder, analysis, inside), code.condition(known)
    if condition is None:
        return body
    return (Cost(operations=operation_count(condition), branches=1), If(condition, body))


def tree_code(tree: Tree, instance: Mapping[str, InstanceCode]) -> Code:
    """Turn loops from isl into code; ``instance[name]`` makes the code of one instance from its arguments."""
    nodes: list[Node] = []
    for item in tree:
        match item:
            case Loop(iterator=iterator, start=start, condition=condition, step=step, body=body):
                overhead = Cost(iterations=1, operations=max(0, operation_count(condition) - 1))
                inner = (overhead, *tree_code(body, instance))
                if operation_count(start):
                    nodes.append(Cost(operations=operation_count(start)))
                nodes.append(For(iterator, start, condition, step, inner))
            case Branch(condition=condition, body=body, otherwise=otherwise):
                nodes.append(Cost(operations=operation_count(condition), branches=1))
                nodes.append(If(condition, tree_code(body, instance), tree_code(otherwise, instance)))
            case Instance(statement=statement, arguments=arguments):
                nodes += instance[statement](arguments)
    return tuple(nodes)


def _loops(builder: RoleBuilder, analysis: SimdAnalysis, code: CodeBuilder) -> Code:
    """Loops over the compressed instances, in their lexicographic order."""
    compressed = analysis.compression.compressed
    named = compressed.set_tuple_name("instance")
    visited = isl.Map.identity(named.get_space().map_from_set()).intersect_domain(named)
    visited = visited.reset_tuple_id(isl.dim_type.out)
    tree = code.loops(isl.UnionMap.from_map(visited))

    def instance(arguments: Sequence[IntExpression]) -> Code:
        return _scalar_instance(builder, analysis, arguments, code)

    return tree_code(tree, {"instance": instance})


def _scalar_instance(
    builder: RoleBuilder, analysis: SimdAnalysis, arguments: Sequence[IntExpression], code: CodeBuilder
) -> Code:
    values: list[tuple[int, Value]] = []
    for operand in analysis.operands:
        array = builder.array(operand.tensor)
        access = compose(operand.compressed, array.map)
        values.append((operand.position, element_at(array, access, arguments, code)))
    target = dict(values)[ACCUMULATOR]
    assert isinstance(target, Element)
    if analysis.task.trigger is not None:
        values.append((analysis.task.trigger, Variable(DATA)))
    work = work_at_point(analysis.task.statement)
    used = {node.position for node in walk(work) if isinstance(node, Read)}
    compute = Compute(work, tuple((k, v) for k, v in values if k in used))
    return (scalar_cost(compute, [target]), StoreElement(target, compute))


def _instruction(builder: RoleBuilder, analysis: SimdAnalysis, code: CodeBuilder) -> Code:
    """One SIMD instruction: descriptors set up in main, base addresses set where they vary."""
    assert analysis.match is not None
    if analysis.strategy is Strategy.ENUMERATED:
        return _enumerated(builder, analysis, code)
    start = _start_point(analysis)
    sizes = _sizes(builder, analysis)
    operands: dict[int, OperandRef] = {}
    moves: list[Node] = []
    for operand in _memory_operands(analysis):
        array = builder.array(operand.tensor)
        access = compose(operand.compressed, array.map)
        kept, (strides,) = without_units(sizes, flat_strides(access, array))
        name = f"{analysis.task.name}_{array.tensor}"
        operands[operand.position] = builder.memory_operand(name, kept, strides, _access_text(access))
        base = SetBase(operands[operand.position], element_at_point(array, access, start, code))
        if is_fixed(base.element):
            builder.setup.append((base,))
        else:
            moves += [_address_cost(base.element), base]
    return (*moves, _invoke(analysis, operands))


def _enumerated(builder: RoleBuilder, analysis: SimdAnalysis, code: CodeBuilder) -> Code:
    """Several configurations, one for each size; the right one is selected before the instruction."""
    enumeration = analysis.enumeration
    assert enumeration is not None
    count = _product(enumeration.extents)
    selector = builder.variable(f"{analysis.task.name}_size") if count > 1 else None
    offset = enumeration.hull.offset
    offsets = [builder.code().affine(offset.get_at(k), ()) for k in range(len(enumeration.extents))]
    nodes: list[Node] = []
    if selector is not None:
        number = _size_number(analysis, offsets, code)
        nodes += [Cost(operations=operation_count(number)), SetInteger(selector, number, declare=True)]
    operands: dict[int, OperandRef] = {}
    for operand in _memory_operands(analysis):
        array = builder.array(operand.tensor)
        access = compose(operand.compressed, array.map)
        name = f"{analysis.task.name}_{array.tensor}"
        declared = builder.operand(name, count, _access_text(access))
        _configure_each(builder, analysis, declared, flat_strides(access, array), offsets)
        chosen = OperandRef(declared.name, selector)
        operands[operand.position] = chosen
        element = element_at_point(array, access, analysis.box.minimum, code)
        nodes += [_address_cost(element), SetBase(chosen, element)]
    return (*nodes, _invoke(analysis, operands))


def _size_number(
    analysis: SimdAnalysis, offsets: Sequence[IntExpression], code: CodeBuilder
) -> IntExpression:
    """Return the number of the configuration for the size at an index (the identifiers of eq. 43)."""
    assert analysis.enumeration is not None
    sizes = point_values(analysis.box.size, code)
    identifier = [sum_of([(1, s), (-1, o)]) for s, o in zip(sizes, offsets, strict=True)]
    return _flatten(identifier, analysis.enumeration.extents)


def _flatten(identifier: Sequence[IntExpression], extents: Sequence[int]) -> IntExpression:
    """Return the row-major number of an identifier."""
    result: IntExpression = Number(0)
    for part, extent in zip(identifier, extents, strict=True):
        result = sum_of([(1, product_of([Number(extent), result])), (1, part)])
    return result


def _configure_each(
    builder: RoleBuilder,
    analysis: SimdAnalysis,
    operand: OperandRef,
    strides: tuple[int, ...],
    offsets: list[IntExpression],
) -> None:
    """Configure, on each PE, the sizes that occur on it."""
    enumeration = analysis.enumeration
    assert enumeration is not None
    code = builder.code()
    occurring = enumeration.sizes.intersect_params(builder.role.context)
    count = _product(enumeration.extents)
    for number in range(count):
        identifier = _unflatten(number, enumeration.extents)
        there = occurring.intersect(_size_with(enumeration.hull.offset, identifier)).params()
        there = there.intersect(builder.role.context)
        if there.is_empty():
            continue
        sizes = [sum_of([(1, o), (1, Number(i))]) for o, i in zip(offsets, identifier, strict=True)]
        chosen = OperandRef(operand.name, str(number) if count > 1 else None)
        node: Node = Configure(chosen, tuple(sizes), strides)
        condition = code.condition(there)
        builder.setup.append((node,) if condition is None else (If(condition, (node,)),))


def _product(values: Sequence[int]) -> int:
    result = 1
    for value in values:
        result *= value
    return result


def _unflatten(number: int, extents: Sequence[int]) -> tuple[int, ...]:
    digits: list[int] = []
    for extent in reversed(extents):
        digits.insert(0, number % extent)
        number //= extent
    return tuple(digits)


def _size_with(offset: isl.MultiAff, identifier: Sequence[int]) -> isl.Set:
    """Return the parametric point ``offset + identifier``."""
    shifted = offset
    for k, value in enumerate(identifier):
        shifted = shifted.set_aff(k, shifted.get_at(k).add_constant_val(isl.Val(value)))
    return point_of(shifted)


def _start_point(analysis: SimdAnalysis) -> isl.Set:
    if analysis.strategy is Strategy.HULL and analysis.hull is not None:
        return point_of(analysis.hull.offset).intersect_params(analysis.task.known)
    return analysis.box.minimum


def _sizes(builder: RoleBuilder, analysis: SimdAnalysis) -> tuple[IntExpression, ...]:
    """Return the sizes on a PE of the role; they do not depend on the index."""
    assert analysis.sizes is not None
    per_pe = project_out_parameters(analysis.sizes, analysis.task.index_names)
    return point_values(per_pe.intersect_params(builder.role.context), builder.code())


def _memory_operands(analysis: SimdAnalysis) -> list[Operand]:
    scalars = scalar_reads(analysis.task)
    return [o for o in analysis.operands if o.position not in scalars]


def is_fixed(element: Element) -> bool:
    """Whether an element's subscripts depend on the PE's coordinates at most."""
    return all(names_in(s) <= set(PE_PARAMETERS) for s in element.subscripts)


def _address_cost(element: Element) -> Cost:
    varying = [s for s in element.subscripts if not isinstance(s, Number)]
    return Cost(operations=sum(1 + operation_count(s) for s in varying))


def _invoke(analysis: SimdAnalysis, operands: dict[int, OperandRef]) -> Invoke:
    match = analysis.match
    assert match is not None
    sources = tuple(_source(analysis, match, operand, operands) for operand in match.operands)
    return Invoke(match.instruction.name, operands[ACCUMULATOR], sources)


def _source(
    analysis: SimdAnalysis, match: Match, expression: Expression, operands: dict[int, OperandRef]
) -> OperandRef | Compute:
    scalars = scalar_reads(analysis.task)
    if isinstance(expression, Read) and expression.position not in scalars:
        return operands[expression.position]
    values: list[tuple[int, Value]] = []
    for node in walk(expression):
        if isinstance(node, Read):
            values.append((node.position, _scalar_value(analysis, node.position)))
    return Compute(expression, tuple(values))


def _scalar_value(analysis: SimdAnalysis, position: int) -> Value:
    if position == analysis.task.trigger:
        return Variable(DATA)
    return Element(next(o.array for o in analysis.operands if o.position == position), ())


def _access_text(access: isl.MultiAff) -> str:
    text = access.to_str()
    return text[text.index("{") + 1 : text.rindex("}")].strip()
