"""The code of a task's steps: instructions on operands in memory and temporaries, and loops between them.

Temporaries are dense arrays that all tasks of a PE share: a task runs to its end before another begins, so
nothing in them is needed later.
Not in the papers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import islpy as isl

from polyloom.diagnostics import Diagnostic, Unsupported, error
from polyloom.ir.expressions import Expression, Read, walk
from polyloom.ir.types import ElementType
from polyloom.polyhedra.bounds import integer_bounds
from polyloom.polyhedra.functions import compose
from polyloom.polyhedra.loops.generate import CodeBuilder, IntExpression, Number, product_of, sum_of
from polyloom.wafer.machine.descriptor_nests import MAX_DIMENSIONS, jointly_coalesced
from polyloom.wafer.machine.instruction_cost import dense_strides
from polyloom.wafer.machine.instruction_selection import is_memory
from polyloom.wafer.machine.instructions import Instruction
from polyloom.wafer.machine.temporaries import as_word, is_temporary
from polyloom.wafer.pe_program.addresses import (
    element_at,
    element_at_point,
    point_values,
    scalar_cost,
    stored,
)
from polyloom.wafer.pe_program.loops import DATA, tree_code
from polyloom.wafer.pe_program.tree import (
    Code,
    Compute,
    Cost,
    Element,
    Invoke,
    Node,
    OperandRef,
    Value,
    Variable,
)
from polyloom.wafer.roles.builder import RoleBuilder
from polyloom.wafer.simd.decision import SimdAnalysis, steps_of
from polyloom.wafer.simd.steps import Step, temporaries_of, words_of


@dataclass(frozen=True, eq=False, kw_only=True)
class Work:
    """What the steps of a task need: where its nest starts, and the descriptors of its operands."""

    builder: RoleBuilder
    analysis: SimdAnalysis
    code: CodeBuilder
    start: isl.Set
    operands: Mapping[int, OperandRef]

    def steps(self) -> Code:
        """Return the code of all steps, in order."""
        return tuple(node for step in steps_of(self.analysis) for node in self._step(step))

    def _step(self, step: Step) -> Code:
        if step.instruction is None:
            return self._loop(step)
        return self._instruction(step, step.instruction)

    def _instruction(self, step: Step, instruction: Instruction) -> Code:
        sources = tuple(self._source(operand) for operand in step.operands)
        costs = [self._scalar_cost(source) for source in sources if isinstance(source, Compute)]
        invoke: Node = Invoke(instruction.name, self.operands[step.target], sources)
        return (*(cost for cost in costs if cost != Cost()), invoke)

    def _scalar_cost(self, source: Compute) -> Cost:
        """Return what a scalar costs that is loaded or computed; the arriving element is at hand."""
        loads = any(isinstance(value, Element) for _, value in source.values)
        return scalar_cost(source) if loads else Cost()

    def _source(self, expression: Expression) -> OperandRef | Compute:
        if isinstance(expression, Read) and is_memory(expression, self.analysis.scalars):
            return self.operands[expression.position]
        reads = {n.position: n for n in walk(expression) if isinstance(n, Read)}
        return Compute(expression, tuple((k, self._scalar(k)) for k in reads))

    def _scalar(self, position: int) -> Value:
        if position == self.analysis.task.trigger:
            return Variable(DATA)
        operand = next(o for o in self.analysis.operands if o.position == position)
        array = self.builder.array(operand.tensor)
        return element_at_point(array, compose(operand.compressed, array.map), self.start, self.code)

    def _loop(self, step: Step) -> Code:
        """Loops over the proper instances; extra ones need no value, since nobody needs their result."""
        named = self.analysis.compression.compressed.set_tuple_name("instance")
        visited = isl.Map.identity(named.get_space().map_from_set()).intersect_domain(named)
        tree = self.code.loops(isl.UnionMap.from_map(visited.reset_tuple_id(isl.dim_type.out)))
        return tree_code(tree, {"instance": lambda arguments: self._element(step, arguments)})

    def _element(self, step: Step, arguments: Sequence[IntExpression]) -> Code:
        reads = {n.position: n for n in walk(step.operands[0]) if isinstance(n, Read)}
        values = tuple((k, self._value(k, read.type, arguments)) for k, read in reads.items())
        compute = Compute(step.operands[0], values)
        target = self._value(step.target, step.type, arguments)
        assert isinstance(target, Element)
        return stored(target, compute)

    def _value(self, position: int, element: ElementType, arguments: Sequence[IntExpression]) -> Value:
        if is_temporary(position):
            return self._temporary_element(position, element, arguments)
        if position == self.analysis.task.trigger:
            return Variable(DATA)
        operand = next(o for o in self.analysis.operands if o.position == position)
        array = self.builder.array(operand.tensor)
        return element_at(array, compose(operand.compressed, array.map), arguments, self.code)

    def _temporary_element(
        self, position: int, element: ElementType, arguments: Sequence[IntExpression]
    ) -> Element:
        name = self.builder.temporary(position, element, 0)
        places = zip(arguments, point_values(self.start, self.code), strict=True)
        steps = _temporary_strides(self.analysis)
        terms = [
            product_of([Number(step), sum_of([(1, argument), (-1, start)])])
            for (argument, start), step in zip(places, steps, strict=True)
        ]
        return Element(name, (sum_of([(1, term) for term in terms]),))


def memory_positions(analysis: SimdAnalysis) -> frozenset[int]:
    """Return the positions, temporaries aside, that instructions take as operands in memory."""
    found = {step.target for step in steps_of(analysis) if step.instruction is not None}
    for step in steps_of(analysis):
        if step.instruction is not None:
            memory = (o for o in step.operands if is_memory(o, analysis.scalars))
            found |= {o.position for o in memory if isinstance(o, Read)}
    return frozenset(position for position in found if not is_temporary(position))


def temporary_arrays(builder: RoleBuilder, analysis: SimdAnalysis) -> dict[int, Element]:
    """Declare a task's temporaries; return the first element of each, and of their words, by position."""
    types = temporaries_of(steps_of(analysis))
    if not types:
        return {}
    assert analysis.sizes is not None
    elements = prod(high for _, high in integer_bounds(analysis.sizes))
    arrays = {position: builder.temporary(position, kind, elements) for position, kind in types.items()}
    found = {position: Element(name, (Number(0),)) for position, name in arrays.items()}
    for position in words_of(steps_of(analysis)):
        word = as_word(position)
        assert word is not None
        found[position] = replace(found[word.position], word=word.word)
    return found


def temporary_name(analysis: SimdAnalysis, first: Element) -> str:
    """Return the name of the operand that a temporary, or words of one, is."""
    part = "" if first.word is None else f"_word_{first.word}"
    return f"{analysis.task.name}_{first.array}{part}"


def nest_of(
    analysis: SimdAnalysis, sizes: Sequence[IntExpression], strides: Mapping[int, tuple[int, ...]]
) -> tuple[tuple[IntExpression, ...], dict[int, tuple[int, ...]]]:
    """Return the nest as it is configured: in its order, and of at most four dimensions.

    ``strides``: of the operands in memory; the temporaries' are added.
    Errors: ``wafer-nest``, where no four dimensions are what the operands run through as they lie.
    """
    everything = {**strides, **_strides_of_temporaries(analysis)}
    order = analysis.order or tuple(range(len(sizes)))
    ordered = tuple(sizes[k] for k in order)
    moved = [tuple(steps[k] for k in order) for steps in everything.values()]
    if len(ordered) > MAX_DIMENSIONS:
        ordered, moved = jointly_coalesced(ordered, moved)
    if len(ordered) > MAX_DIMENSIONS:
        raise Unsupported(_too_deep(analysis, len(ordered)))
    return ordered, dict(zip(everything, moved, strict=True))


def _too_deep(analysis: SimdAnalysis, depth: int) -> Diagnostic:
    statement = analysis.task.statement
    return error(
        "wafer-nest",
        f"an instruction of `{statement.name}` would run through {depth} dimensions, a descriptor has"
        f" {MAX_DIMENSIONS}",
        statement.span,
        notes=["no two more of them can be joined as the arrays lie in memory"],
        helps=["split one more dimension between PEs in `compute_map`, or take loops: `--simd off`"],
    )


def _strides_of_temporaries(analysis: SimdAnalysis) -> dict[int, tuple[int, ...]]:
    """Return the strides of temporaries, and of words of their elements, by position."""
    steps = steps_of(analysis)
    whole = temporaries_of(steps)
    if not whole:
        return {}
    dense = _temporary_strides(analysis)
    found = dict.fromkeys(whole, dense)
    for position in words_of(steps):
        word = as_word(position)
        assert word is not None
        found[position] = tuple(word.words * stride for stride in dense)
    return found


def _temporary_strides(analysis: SimdAnalysis) -> tuple[int, ...]:
    """Return the strides of a temporary in the nest: it is dense in the order that the dimensions run in."""
    assert analysis.sizes is not None
    extents = [high for _, high in integer_bounds(analysis.sizes)]
    order = analysis.order or tuple(range(len(extents)))
    dense = dict(zip(order, dense_strides([extents[k] for k in order]), strict=True))
    return tuple(dense[k] for k in range(len(extents)))
