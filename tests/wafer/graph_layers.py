"""Random graphs of two to four statements on one rectangle: internal tensors, residents with a state, ports.

Everything follows from one seed. Statements lie where a result that they read lies, or anywhere; inputs are
resident, come straight, or from ports anywhere beside free border lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import border_layers
import islpy as isl
import layers
from layers import ITERATORS

from polyloom.frontends.lair.from_program import from_program
from polyloom.ir.expressions import Binary, BinaryOp, Read
from polyloom.ir.host import Buffer, Index, View
from polyloom.ir.program import Program
from polyloom.ir.reductions import Combine
from polyloom.ir.relations import access_relation, element_set, instance_set
from polyloom.ir.statements import Statement
from polyloom.ir.types import ElementType
from polyloom.wafer.mapping.grid import Grid, Side

_NEXT = ";\n             "
_MOST_POINTS = 400
INTEGERS = (ElementType.INT16, ElementType.INT32)


@dataclass(frozen=True)
class GraphLayer(layers.Layer):
    """A program of several statements; ``state``: ``(resident, its next value)`` or None."""

    state: tuple[str, str] | None = None

    def __str__(self) -> str:
        how = f"density {self.density}, {self.invocations} invocations"
        return f"graph seed {self.seed}, {how}\n{from_program(self.program)}\n{self.map_text}"


def graph_layer(seed: int) -> GraphLayer:
    """Make the graph of a seed."""
    random = Random(f"graph {seed}")
    program = next(p for p in iter(lambda: _program(random), None) if layers._is_exact(p))
    inner = random.randint(1, 4), random.randint(1, 3)
    free = {side: random.random() < 0.25 for side in Side}
    origin = int(free[Side.WEST]), int(free[Side.NORTH])
    width, height = (inner[0] + origin[0] + free[Side.EAST], inner[1] + origin[1] + free[Side.SOUTH])
    placed = _placements(random, program, inner)
    program, placed, state = _with_state(random, program, placed)
    shift = isl.Map(f"{{ PE[x, y] -> PE[x + {origin[0]}, y + {origin[1]}] }}")
    placed = {name: p.apply_range(shift) for name, p in placed.items()}
    sides = [side for side in Side if free[side]]
    text = _map(random, program, placed, Grid(width, height), sides, state)
    density = random.choice([1.0, 1.0, 0.3])
    return GraphLayer(seed, program, text, density, random.choice([1, 2, 3]), state)


# Programs.


def _program(random: Random) -> Program:
    kind = random.choice(layers.TYPES)
    rank = random.choice([1, 2, 2, 3])
    most = {1: 10, 2: 6, 3: 4}[rank]
    domain = tuple(random.randint(2, most) for _ in range(rank))
    first, tensors, output = layers._statement(random, "P_t0", domain, kind, "a", "t0")
    statements, known, written = [first], list(tensors), [output]
    for n in range(1, random.choice([2, 2, 3, 3, 4])):
        readable = [t for t, s in zip(written, statements, strict=True) if not _infinite(s, t)]
        if not readable:
            break
        statement, others, target = _reader(random, n, readable, known)
        statements.append(statement)
        known += others
        written.append(target)
    return _as_program(random, statements, known, written)


def _as_program(
    random: Random, statements: Sequence[Statement], inputs: Sequence[Buffer], written: Sequence[Buffer]
) -> Program:
    read = {a.buffer for s in statements for a in s.reads}
    outputs = [t.name for t in written if t.name not in read or random.random() < 0.3]
    tensors = (*inputs, *written)
    return Program.of("P", tensors, tuple(t.name for t in inputs), tuple(outputs), tuple(statements))


def _infinite(statement: Statement, output: Buffer) -> bool:
    return layers._may_be_infinite(statement, output)


def _reader(
    random: Random, number: int, readable: Sequence[Buffer], known: Sequence[Buffer]
) -> tuple[Statement, list[Buffer], Buffer]:
    """A statement that reads a result, perhaps a second one or an input again, perhaps something new."""
    main = readable[-1] if random.random() < 0.6 else random.choice(readable)
    domain = [*main.extents]
    if not domain or (len(domain) < 3 and random.random() < 0.4):
        domain.append(random.randint(2, 4))
    order = random.sample(range(len(domain)), len(domain))
    shape = tuple(domain[k] for k in order)
    place = [order.index(k) for k in range(len(main.extents))]
    reads = [View(main.name, tuple(_shifted(random, shape, k) for k in place))]
    fitting = [t for t in (*readable, *known) if t.name != main.name and t.type is main.type]
    if fitting and random.random() < 0.5:
        again = _read_of(random, random.choice(fitting), shape)
        reads += [again] if again else []
    others: list[Buffer] = []
    if len(reads) == 1 or random.random() < 0.3:
        access, tensor = layers._access(random, f"b{number}", main.type, shape)
        reads.append(access)
        others.append(tensor)
    name = f"t{number}"
    write, target, reduction = layers._write(random, name, main.type, shape)
    expression = layers._expression(random, main.type, [main.type] * len(reads))
    names = tuple(ITERATORS[: len(shape)])
    return Statement.of(f"P_{name}", names, shape, tuple(reads), write, expression, reduction), others, target


def _shifted(random: Random, shape: Sequence[int], k: int) -> Index:
    """The iterator k, sometimes backwards."""
    if random.random() < 0.1:
        return Index.of(tuple(-int(j == k) for j in range(len(shape))), shape[k] - 1)
    return layers._unit(len(shape), k)


def _read_of(random: Random, tensor: Buffer, shape: Sequence[int]) -> View | None:
    """An access of a given tensor in bounds: an iterator that fits, else a constant."""
    indices = []
    for extent in tensor.extents:
        fits = [k for k, n in enumerate(shape) if n <= extent]
        if fits and random.random() < 0.9:
            k = random.choice(fits)
            slack = extent - shape[k]
            unit = layers._unit(len(shape), k)
            indices.append(Index.of(unit.coefficients, random.randint(0, slack)))
        else:
            indices.append(Index.of((0,) * len(shape), random.randrange(extent)))
    return View(tensor.name, tuple(indices))


# Placement and state.


def _placements(random: Random, program: Program, inner: tuple[int, int]) -> dict[str, isl.Map]:
    placed: dict[str, isl.Map] = {}
    for statement in program.statements:
        source = program.definition(statement.reads[0].buffer)
        if source is not None and random.random() < 0.6:
            placed[statement.name] = _following(program, statement, source, placed[source.name])
        else:
            placed[statement.name] = layers._placement(random, statement, inner)
    return placed


def _following(program: Program, statement: Statement, source: Statement, placed: isl.Map) -> isl.Map:
    """Place a statement where the first tensor that it reads is."""
    written = placed.reverse().apply_range(access_relation(source, source.write))
    owners = written.reverse().lexmax()
    tensor = program.buffer(source.write.buffer)
    missing = element_set(tensor).subtract(owners.domain())
    owners = owners.union(isl.Map.from_domain_and_range(missing, written.domain().lexmax()))
    followed = access_relation(statement, statement.reads[0]).intersect_domain(instance_set(statement))
    return followed.apply_range(owners).coalesce()


def _with_state(
    random: Random, program: Program, placed: dict[str, isl.Map]
) -> tuple[Program, dict[str, isl.Map], tuple[str, str] | None]:
    """Sometimes add ``N = W - t``: what an input that lies on one PE an element is in the next invocation."""
    chosen = _state_of(random, program, placed)
    if chosen is None:
        return program, placed, None
    old, where = chosen
    rank = len(old.extents)
    units = tuple(layers._unit(rank, k) for k in range(rank))
    internal = [t for t in program.tensors if t.name not in program.inputs and t.type is old.type]
    other = _read_of(random, random.choice(internal), old.extents)
    assert other is not None
    reads = (View(old.name, units), other)
    expression = Binary(BinaryOp.SUBTRACT, Read(0, old.type), Read(1, old.type))
    names = tuple(ITERATORS[:rank])
    write = View("next", units)
    update = Statement.of("P_next", names, old.extents, reads, write, expression, Combine.CONCATENATE)
    tensors = (*program.tensors, Buffer.of("next", old.type, old.extents))
    outputs = (*program.outputs, "next")
    statements = (*program.statements, update)
    instances = access_relation(update, update.write).intersect_domain(instance_set(update))
    placed = {**placed, update.name: instances.apply_range(where.set_tuple_name(isl.dim_type.in_, "next"))}
    return (
        Program.of(program.name, tensors, program.inputs, outputs, statements),
        placed,
        (old.name, "next"),
    )


def _state_of(random: Random, program: Program, placed: dict[str, isl.Map]) -> tuple[Buffer, isl.Map] | None:
    """Choose an integer input of which each element is read on one PE only, and say where it lies."""
    if random.random() < 0.3:
        return None
    found = []
    for tensor in (program.buffer(name) for name in program.inputs):
        if tensor.type not in INTEGERS or not tensor.extents or len(tensor.extents) > len(ITERATORS):
            continue
        where = _read_where(program, placed, tensor)
        if where.is_single_valued():
            missing = element_set(tensor).subtract(where.domain())
            found.append(
                (tensor, where.union(isl.Map.from_domain_and_range(missing, where.range().lexmax())))
            )
    return random.choice(found) if found else None


def _read_where(program: Program, placed: dict[str, isl.Map], tensor: Buffer) -> isl.Map:
    """Return ``{ W[i] -> PE[x, y] }``."""
    relations = [
        access_relation(s, a).intersect_domain(instance_set(s)).reverse().apply_range(placed[s.name])
        for s in program.statements
        for a in s.reads
        if a.buffer == tensor.name
    ]
    result = relations[0]
    for relation in relations[1:]:
        result = result.union(relation)
    return result.coalesce()


# Maps.


def _map(
    random: Random,
    program: Program,
    placed: dict[str, isl.Map],
    grid: Grid,
    sides: list[Side],
    state: tuple[str, str] | None,
) -> str:
    size = grid.width, grid.height
    kept = state or ()
    inputs: dict[str, str] = {}
    for name in program.inputs:
        if name not in kept:
            straight = layers._input_ports(random, program, placed, name, size)
            anywhere = sides and random.random() < 0.4
            inputs[name] = border_layers._ports(random, program, name, grid, sides) if anywhere else straight
    outputs: dict[str, str] = {}
    for name in program.outputs:
        if name not in kept:
            straight = layers._output_ports(random, program, placed, name, size)
            anywhere = sides and random.random() < 0.4
            outputs[name] = border_layers._ports(random, program, name, grid, sides) if anywhere else straight
    inputs = {name: ports for name, ports in inputs.items() if ports}
    outputs = {name: ports for name, ports in outputs.items() if ports}
    lines = layers.map_lines(random, program, placed, size, inputs, outputs, 0.4)
    if state:
        lines.append(f"state: {state[0]} = {state[1]}")
    return "\n".join(lines) + "\n"
