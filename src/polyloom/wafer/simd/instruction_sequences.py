"""A statement of several operations as several instructions, with temporaries between them.

``y = c * r * g + b`` becomes ``t = fmulh(c, r); t = fmulh(t, g); y = faddh(t, b)``. What the engine lacks
(``exp``, a division) is a sequence of instructions whose result may be off by a few units in the last place
(``vector_functions``), or a loop over the same nest that evaluates it element by element. The cheapest cover
of the expression's tree is found by dynamic programming over its nodes.

Not in the papers: dtg_codegen, Sec. 5, condition 1, wants a single operation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache

from polyloom.ir.expressions import Expression, Read
from polyloom.ir.types import ElementType
from polyloom.wafer.machine.instruction_cost import Rows, Shape, evaluation_cycles, store_cycles
from polyloom.wafer.machine.instruction_selection import ACCUMULATOR, is_scalar
from polyloom.wafer.machine.instructions import instruction, move_instruction
from polyloom.wafer.machine.model import Machine
from polyloom.wafer.machine.temporaries import FIRST_TEMPORARY, word_of
from polyloom.wafer.simd.instruction_options import literals
from polyloom.wafer.simd.parts import Engine, Option, Part, Parts
from polyloom.wafer.simd.steps import Step, replaced, temporaries_of, with_few_temporaries
from polyloom.wafer.vector_functions.sequences import Value, VectorFunction


@dataclass(frozen=True)
class Plan:
    """Steps in order, and what they cost in cycles for the nest that they were chosen for.

    ``approximate``: what is computed by other roundings than the evaluator's, each with its error.
    """

    steps: tuple[Step, ...]
    cycles: int
    approximate: tuple[str, ...] = ()

    def temporary_bytes(self, elements: int) -> int:
        """Return the bytes of all temporaries of a nest of so many elements."""
        return sum(element.size for element in temporaries_of(self.steps).values()) * elements


def select(
    work: Expression, scalars: frozenset[int], shape: Shape, machine: Machine, *, approximate: bool = False
) -> Plan:
    """Cover what is assigned to the written element with instructions and loops, as cheaply as possible.

    ``work``: as of ``work_at_point``; ``scalars``: positions of the reads that are the same for all elements;
    ``approximate``: whether functions may be sequences that are a few units in the last place off.
    A plan without any instruction is one loop.

    ``Read(-1) + Read(0) * Read(1)``, no scalars: ``t = fmulh(0, 1); -1 = faddh(-1, t)``.
    """
    return plans_of(work, machine, approximate=approximate).plan(scalars, shape)


def plans_of(work: Expression, machine: Machine, *, approximate: bool = False) -> Plans:
    """Return what answers ``select`` for one expression and any nest."""
    return _plans_of(work, literals(work), machine, approximate)


@lru_cache(maxsize=64)
def _plans_of(work: Expression, _: tuple[str, ...], machine: Machine, approximate: bool) -> Plans:
    """``_``: its literals, which may have other bits where they are equal, as 0.0 and -0.0."""
    return Plans(work, machine, approximate)


@dataclass(frozen=True, eq=False)
class Plans:
    """The cheapest covers of an expression, remembered by all that they depend on: scalars and rows."""

    work: Expression
    machine: Machine
    approximate: bool
    _covers: dict[frozenset[int], _Cover] = field(default_factory=dict)
    _known: dict[tuple[frozenset[int], Rows], Plan] = field(default_factory=dict)

    def plan(self, scalars: frozenset[int], shape: Shape) -> Plan:
        """Return the cheapest cover for a nest; errors and arguments as of ``select``."""
        nest = shape.rows_without(scalars)
        key = scalars, nest
        if key not in self._known:
            if scalars not in self._covers:
                parts = Parts(scalars, self.machine, self.approximate)
                self._covers[scalars] = _Cover(parts, parts.of(self.work))
            self._known[key] = self._covers[scalars].plan(nest)
        return self._known[key]


def loop_cycles(work: Expression, shape: Shape, machine: Machine) -> int:
    """Return what a loop over the nest that evaluates everything costs."""
    element = machine.loop_iteration + evaluation_cycles(machine, work) + store_cycles(machine)
    return shape.count * element


@dataclass(frozen=True, eq=False)
class _Cover:
    """Covers of one expression with its scalars. ``written``: the steps of each, by what it chooses."""

    parts: Parts
    work: Part
    written: dict[tuple[object, ...], _Written] = field(default_factory=dict)

    def plan(self, nest: Rows) -> Plan:
        """Return the cheapest cover for a nest."""
        choices = _Choices(self.parts.machine, nest)
        key = tuple(choices.all_of(self.work, set()))
        if key not in self.written:
            self.written[key] = _written(self.parts, choices, self.work)
        found = self.written[key]
        return replace(found.plan, cycles=sum(choices.step_cycles(step) for step in found.steps))


@dataclass(frozen=True, eq=False)
class _Written:
    """``plan``: for some nest; ``steps``: what each costs: an instruction, or an element of a loop."""

    plan: Plan
    steps: tuple[Engine | int, ...]


@dataclass(frozen=True, eq=False)
class _Choice:
    """How a part is computed: as an option says, or, without one, in a loop.

    ``kept``: the parts inside it that are computed before, into temporaries.
    """

    cycles: int
    kept: tuple[Part, ...]
    option: Option | None = None


@dataclass(frozen=True, eq=False)
class _Choices:
    """The cheapest choice for each part in a nest.

    ``kept``: for each part, what a loop that evaluates it has in temporaries, the part itself or inside it.
    """

    machine: Machine
    nest: Rows
    best: dict[Part, _Choice] = field(default_factory=dict)
    kept: dict[Part, tuple[Part, ...]] = field(default_factory=dict)

    def choice(self, part: Part) -> _Choice:
        if part not in self.best:
            found = [self._with_option(o) for o in part.options if not o.tied or self.nest.is_one_to_one]
            self.best[part] = min((*found, self._loop(part)), key=lambda choice: choice.cycles)
        return self.best[part]

    def all_of(self, part: Part, held: set[Part]) -> Iterator[object]:
        """Yield what is chosen for a part and for what is kept inside it, in the order of ``_Writer``."""
        chosen = self.choice(part)
        yield chosen.option or (part, chosen.kept)
        for inner in chosen.kept:
            if inner not in held:
                held.add(inner)
                yield from self.all_of(inner, held)

    def step_cycles(self, step: Engine | int) -> int:
        return self._loop_cycles(step) if isinstance(step, int) else step.cycles(self.nest)

    def _with_option(self, option: Option) -> _Choice:
        cycles = sum(engine.cycles(self.nest) for engine in option.engines)
        return _Choice(
            cycles + sum(self.choice(inner).cycles for inner in option.distinct), option.kept, option
        )

    def _loop(self, part: Part) -> _Choice:
        """Evaluate a part in a loop; inside it, what instructions do for less comes from temporaries."""
        kept = self._kept_inside(part)
        cycles = self._loop_cycles(part.inside(kept)) + sum(self.choice(k).cycles for k in kept)
        return _Choice(cycles, kept)

    def _kept_inside(self, part: Part) -> tuple[Part, ...]:
        """Return what is worth keeping in temporaries while a part itself is evaluated."""
        if part.is_scalar or part.is_memory:
            return ()
        return tuple(dict.fromkeys(kept for child in part.children for kept in self._kept(child)))

    def _kept(self, part: Part) -> tuple[Part, ...]:
        """Return a part itself where keeping it is worth its while, else what is inside it."""
        if part not in self.kept:
            inside = self._kept_inside(part)
            self.kept[part] = (part,) if self._is_worth_keeping(part, inside) else inside
        return self.kept[part]

    def _is_worth_keeping(self, part: Part, inside: tuple[Part, ...]) -> bool:
        """A part that reads what other points write must be evaluated by the step that writes."""
        tied = part.reads_old_value and not self.nest.is_one_to_one
        if part.is_scalar or part.is_memory or tied or part.is_truth_value:
            return False
        inline = self.nest.count * part.inside(inside) + sum(self.choice(k).cycles for k in inside)
        chosen = self.choice(part)
        return chosen.option is not None and chosen.cycles + self.nest.count * part.load < inline

    def _loop_cycles(self, element: int) -> int:
        return self.nest.count * (self.machine.loop_iteration + element + store_cycles(self.machine))


def _written(parts: Parts, choices: _Choices, work: Part) -> _Written:
    writer = _Writer(parts, choices)
    steps = tuple(writer.emit(work, ACCUMULATOR))
    plan = Plan(with_few_temporaries(steps), 0, tuple(dict.fromkeys(writer.inexact)))
    return _Written(plan, tuple(_price(parts, step) for step in steps))


def _price(parts: Parts, step: Step) -> Engine | int:
    if step.instruction is None:
        return evaluation_cycles(parts.machine, step.operands[0])
    return parts.engine(step.instruction, step.target, step.operands)


@dataclass(eq=False)
class _Writer:
    """Writes choices as steps. ``held``: the temporaries that hold parts already computed.

    ``inexact``: the errors of the steps that were made.
    """

    parts: Parts
    choices: _Choices
    held: dict[Expression, Read] = field(default_factory=dict)
    temporaries: int = 0
    inexact: list[str] = field(default_factory=list)

    def emit(self, part: Part, target: int) -> Iterator[Step]:
        chosen = self.choices.choice(part)
        option = chosen.option
        self.inexact += [option.error] if option is not None and option.error else []
        for inner in chosen.kept:
            if inner.expression not in self.held:
                place = self._temporary(inner.expression.type)
                self.held[inner.expression] = place
                yield from self.emit(inner, place.position)
        kept = tuple(inner.expression for inner in chosen.kept)
        whole = (part.expression,) if option is None else option.operands
        operands = tuple(replaced(operand, self.held, kept) for operand in whole)
        if option is not None and option.function is not None:
            yield from self._sequence(option.function, operands, target)
        else:
            yield Step(target, part.expression.type, None if option is None else option.instruction, operands)

    def _temporary(self, kind: ElementType) -> Read:
        self.temporaries += 1
        return Read(FIRST_TEMPORARY + 1 - self.temporaries, kind)

    def _sequence(
        self, function: VectorFunction, operands: tuple[Expression, ...], target: int
    ) -> Iterator[Step]:
        """Yield the instructions of a function; an argument that is a scalar is put into a temporary."""
        places: dict[int, Read] = {}
        for argument, operand in zip(function.arguments, operands, strict=True):
            if is_scalar(operand, self.parts.scalars):
                place = self._temporary(operand.type)
                yield Step(place.position, place.type, move_instruction(place.type), (operand,))
            else:
                assert isinstance(operand, Read)
                place = operand
            places[argument.number] = place
        places[function.result.number] = Read(target, function.result.type)

        def read(value: Value) -> Read:
            if value.number not in places:
                places[value.number] = self._temporary(value.type)
            whole = places[value.number]
            return whole if value.word is None else word_of(whole, value.word)

        for operation in function.operations:
            made = read(operation.target)
            yield Step(
                made.position,
                made.type,
                instruction(operation.instruction),
                tuple(read(o) if isinstance(o, Value) else o for o in operation.operands),
            )
