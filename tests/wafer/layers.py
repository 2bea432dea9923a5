"""Random layers with random maps: LAIR-like programs, placed and fed so that data flows straight.

Everything follows from one seed. Most maps are legal; the few that are not must be refused in order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import islpy as isl

from polyloom.frontends.lair.from_program import from_program
from polyloom.ir.evaluation.random_inputs import EXACT
from polyloom.ir.evaluation.random_inputs import _largest_result as largest_result
from polyloom.ir.expressions import (
    Binary,
    BinaryOp,
    Compare,
    CompareOp,
    Constant,
    Convert,
    Expression,
    Read,
    Select,
    Unary,
    UnaryOp,
)
from polyloom.ir.host import Buffer, Index, View
from polyloom.ir.program import Program
from polyloom.ir.reductions import Combine
from polyloom.ir.relations import access_relation, element_set, instance_set
from polyloom.ir.statements import Statement
from polyloom.ir.types import ElementType

TYPES = (ElementType.FLOAT16, ElementType.FLOAT16, ElementType.INT16, ElementType.FLOAT32, ElementType.INT32)
REDUCTIONS = (Combine.ADD, Combine.ADD, Combine.ADD, Combine.MAXIMUM, Combine.MINIMUM, Combine.MULTIPLY)
SIDES = ("north", "south", "west", "east")
ITERATORS = "ijkl"
_NEXT = ";\n             "


@dataclass(frozen=True)
class Layer:
    """A program, the text of its map, and how it is run."""

    seed: int
    program: Program
    map_text: str
    density: float
    invocations: int

    def __str__(self) -> str:
        how = f"density {self.density}, {self.invocations} invocations"
        return f"seed {self.seed}, {how}\n{from_program(self.program)}\n{self.map_text}"


def random_layer(seed: int) -> Layer:
    """Make the layer of a seed."""
    random = Random(seed)
    program = next(p for p in iter(lambda: _program(random), None) if _is_exact(p))
    grid = random.randint(1, 4), random.randint(1, 4)
    return Layer(
        seed,
        program,
        _map(random, program, grid),
        random.choice([1.0, 1.0, 0.3]),
        random.choice([1, 1, 2, 3]),
    )


# Programs.


def _program(random: Random) -> Program:
    rank = random.choice([1, 2, 2, 2, 3, 3, 4])
    most = {1: 12, 2: 9, 3: 5, 4: 3}[rank]
    domain = tuple(random.randint(1 if random.random() < 0.1 else 2, most) for _ in range(rank))
    first, tensors, output = _statement(random, "S", domain, random.choice(TYPES), "x", "y")
    if random.random() < 0.65 or _may_be_infinite(first, output):
        names = tuple(t.name for t in tensors)
        return Program.of("S", (*tensors, output), names, ("y",), (first,))
    return _two_statements(random, first, tensors, output)


def _is_exact(program: Program) -> bool:
    """Whether sums of -1 and 1 stay exact in float16, in any order."""
    halves = any(t.type is ElementType.FLOAT16 for t in program.tensors)
    return not halves or largest_result(program, 1) < EXACT


def _two_statements(random: Random, first: Statement, tensors: list[Buffer], y: Buffer) -> Program:
    second, others, z = _reader(random, first, y, tensors)
    kept = random.random() < 0.5
    named = {t.name: t for t in (*tensors, *others) if t.name != "y"}
    outputs = (y, z) if kept else (z,)
    inner = () if kept else (y,)
    first, second = (_renamed(s, f"P_{s.write.buffer}") for s in (first, second))
    return Program.of(
        "P",
        (*named.values(), *outputs, *inner),
        tuple(named),
        tuple(t.name for t in outputs),
        (first, second),
    )


def _renamed(s: Statement, name: str) -> Statement:
    return Statement.of(name, s.iterators, s.domain, s.reads, s.write, s.expression, s.reduction)


def _may_be_infinite(statement: Statement, output: Buffer) -> bool:
    """Whether elements that no instance writes hold an infinity: data are finite, so nothing reads them."""
    if statement.reduction not in (Combine.MAXIMUM, Combine.MINIMUM):
        return False
    writes = access_relation(statement, statement.write).intersect_domain(instance_set(statement))
    return not element_set(output).is_subset(writes.range())


def _statement(
    random: Random, name: str, domain: tuple[int, ...], kind: ElementType, prefix: str, output: str
) -> tuple[Statement, list[Buffer], Buffer]:
    if random.random() < 0.5:
        return _multiply_add(random, name, domain, kind, prefix, output)
    count = random.choice([1, 1, 2, 2, 2, 3])
    half = kind is ElementType.FLOAT32 and random.random() < 0.3
    read_kind = ElementType.FLOAT16 if half else kind
    pairs = [_access(random, f"{prefix}{k}", read_kind, domain) for k in range(count)]
    reads = tuple(access for access, _ in pairs)
    write, target, reduction = _write(random, output, kind, domain)
    expression = _expression(random, kind, [read_kind] * count)
    statement = Statement.of(name, _names(domain), domain, reads, write, expression, reduction)
    return statement, [tensor for _, tensor in pairs], target


def _multiply_add(
    random: Random, name: str, domain: tuple[int, ...], kind: ElementType, prefix: str, output: str
) -> tuple[Statement, list[Buffer], Buffer]:
    """What SIMD instructions are made for: ``y += x * W``, ``y += x``, ``y max= x``."""
    kind = kind if kind.is_float else ElementType.FLOAT16
    half = kind is ElementType.FLOAT32 and random.random() < 0.5
    read_kind = ElementType.FLOAT16 if half else kind
    count = 1 if random.random() < 0.25 and not half else 2
    pairs = [_access(random, f"{prefix}{k}", read_kind, domain) for k in range(count)]
    reads = [_read(kind, k, read_kind) for k in range(count)]
    expression = reads[0] if count == 1 else Binary(BinaryOp.MULTIPLY, *reads)
    write, target, reduction = _write(random, output, kind, domain)
    if reduction not in (Combine.ADD, Combine.CONCATENATE):
        reduction = Combine.ADD if count == 2 else Combine.MAXIMUM
    statement = Statement.of(
        name, _names(domain), domain, tuple(a for a, _ in pairs), write, expression, reduction
    )
    return statement, [tensor for _, tensor in pairs], target


def _names(domain: Sequence[int]) -> tuple[str, ...]:
    return tuple(ITERATORS[: len(domain)])


def _reader(
    random: Random, first: Statement, y: Buffer, tensors: list[Buffer]
) -> tuple[Statement, list[Buffer], Buffer]:
    """A statement that reads the first one's result, elementwise or reducing it, and something else."""
    domain = y.extents
    units = tuple(_unit(len(domain), k) for k in range(len(domain)))
    reads, others = [View("y", units)], []
    if random.random() < 0.6:
        access, tensor = _access(random, "b", y.type, domain)
        reads.append(access)
        others.append(tensor)
    if random.random() < 0.3:
        write, target, reduction = _write(random, "z", y.type, domain)
    else:
        write, target, reduction = View("z", units), Buffer.of("z", y.type, y.extents), Combine.CONCATENATE
    expression = _expression(random, y.type, [y.type] * len(reads))
    names = _names(domain)
    statement = Statement.of("T", names, domain, tuple(reads), write, expression, reduction)
    return statement, others, target


def _unit(rank: int, k: int) -> Index:
    return Index.of(tuple(int(j == k) for j in range(rank)))


def _access(random: Random, name: str, kind: ElementType, domain: tuple[int, ...]) -> tuple[View, Buffer]:
    rank = 0 if not domain or random.random() < 0.06 else random.randint(1, len(domain))
    free = random.sample(range(len(domain)), len(domain))
    indices = []
    for _ in range(min(rank, 3)):
        chosen = [free.pop()] if free else [random.randrange(len(domain))]
        if random.random() < 0.35:
            chosen.append(random.randrange(len(domain)))
        indices.append(_index(random, domain, chosen))
    shape = tuple(_extent(i, domain) + int(random.random() < 0.15) for i in indices)
    return View(name, tuple(indices)), Buffer.of(name, kind, shape)


def _index(random: Random, domain: tuple[int, ...], chosen: Sequence[int]) -> Index:
    coefficients = [0] * len(domain)
    for k in chosen:
        coefficients[k] = random.choice([1, 1, 1, 1, 2, 3, -1, -2])
    least = sum(min(0, c * (n - 1)) for c, n in zip(coefficients, domain, strict=True))
    return Index.of(tuple(coefficients), random.choice([0, 0, 0, 1]) - least)


def _extent(index: Index, domain: Sequence[int]) -> int:
    ahead = (max(0, c * (n - 1)) for c, n in zip(index.coefficients, domain, strict=True))
    return index.constant + 1 + sum(ahead)


def _write(
    random: Random, name: str, kind: ElementType, domain: tuple[int, ...]
) -> tuple[View, Buffer, Combine]:
    if random.random() < 0.75:
        reduction = random.choice(REDUCTIONS)
        if random.random() < 0.4:
            return *_access(random, name, kind, domain), reduction
        kept = random.sample(range(len(domain)), random.randint(0, len(domain) - (len(domain) > 1)))
        indices = tuple(_index(random, domain, [k]) for k in kept)
        return (
            View(name, indices),
            Buffer.of(name, kind, tuple(_extent(i, domain) for i in indices)),
            reduction,
        )
    order = random.sample(range(len(domain)), len(domain))
    return *_bijection(random, name, kind, domain, order), Combine.CONCATENATE


def _bijection(
    random: Random, name: str, kind: ElementType, domain: tuple[int, ...], order: list[int]
) -> tuple[View, Buffer]:
    """A write of every element exactly once: permuted, reversed, two dimensions made one."""
    indices: list[Index] = []
    shape: list[int] = []
    while order:
        k, n = order.pop(), 0
        coefficients, constant, n = [0] * len(domain), 0, domain[k]
        if random.random() < 0.2:
            coefficients[k], constant = -1, n - 1
        else:
            coefficients[k] = 1
        if order and random.random() < 0.2:
            outer = order.pop()
            coefficients[outer], n = n, n * domain[outer]
        indices.append(Index.of(tuple(coefficients), constant))
        shape.append(n)
    return View(name, tuple(indices)), Buffer.of(name, kind, tuple(shape))


def _expression(random: Random, kind: ElementType, reads: Sequence[ElementType]) -> Expression:
    """Every read once or more, in the order of their numbers, by operations that are exact on integers."""
    leaves = [_read(kind, k, of) for k, of in enumerate(reads)]
    result = _unary(random, leaves[0])
    for leaf in leaves[1:]:
        result = _binary(random, result, _unary(random, leaf))
    if random.random() < 0.15:
        constant = Constant(random.choice([0, 1, 2, -1]), kind)
        op = random.choice([BinaryOp.ADD, BinaryOp.MULTIPLY, BinaryOp.MAXIMUM, BinaryOp.SUBTRACT])
        result = Binary(op, result, constant)
    return result


def _read(kind: ElementType, position: int, of: ElementType) -> Expression:
    read = Read(position, of)
    return read if of is kind else Convert(kind, read)


def _unary(random: Random, operand: Expression) -> Expression:
    chance = random.random()
    if chance < 0.06:
        return Unary(UnaryOp.NEGATE, operand)
    if chance < 0.12:
        return Unary(UnaryOp.ABS, operand)
    if chance < 0.18:
        return Binary(BinaryOp.MAXIMUM, operand, Constant(0, operand.type))
    return operand


def _binary(random: Random, left: Expression, right: Expression) -> Expression:
    ops = [BinaryOp.ADD, BinaryOp.SUBTRACT, BinaryOp.MAXIMUM, BinaryOp.MINIMUM]
    if random.random() < 0.1:
        condition = Compare(random.choice(list(CompareOp)), left, right)
        return Select(condition, left, right) if random.random() < 0.5 else Select(condition, right, left)
    return Binary(BinaryOp.MULTIPLY if random.random() < 0.6 else random.choice(ops), left, right)


# Maps.


def _map(random: Random, program: Program, grid: tuple[int, int]) -> str:
    placement = _placements(random, program, grid)
    inputs = {name: _input_ports(random, program, placement, name, grid) for name in program.inputs}
    inputs = {name: ports for name, ports in inputs.items() if ports}
    outputs = {name: _output_ports(random, program, placement, name, grid) for name in program.outputs}
    outputs = {name: ports for name, ports in outputs.items() if ports}
    lines = map_lines(random, program, placement, grid, inputs, outputs, 0.5)
    moving = {s.name: [a.buffer for a in s.reads if a.buffer in inputs] for s in program.statements}
    drivers = {name: [*streams, "none"] for name, streams in moving.items() if streams}
    triggers = [f"{name} = {random.choice(d)}" for name, d in drivers.items() if random.random() < 0.3]
    if triggers:
        lines.append(f"trigger: {', '.join(triggers)}")
    return "\n".join(lines) + "\n"


def map_lines(
    random: Random,
    program: Program,
    placement: dict[str, isl.Map],
    grid: tuple[int, int],
    inputs: dict[str, str],
    outputs: dict[str, str],
    sparse_share: float,
) -> list[str]:
    """Return the entries of a map, inputs in any order, each narrow stream sparse by chance."""
    order = random.sample(list(inputs), len(inputs))
    lines = [f"size: {{ PE[{grid[0]}, {grid[1]}] }}"]
    lines.append(f"compute_map: {{ {'; '.join(_inside(p) for p in placement.values())} }}")
    if inputs:
        lines.append(f"iport_map: {{ {_NEXT.join(inputs[name] for name in order)} }}")
    if outputs:
        lines.append(f"oport_map: {{ {_NEXT.join(outputs.values())} }}")
    narrow = [n for n in (*inputs, *outputs) if program.buffer(n).type.size == 2]
    sparse = [name for name in narrow if random.random() < sparse_share]
    return [*lines, f"sparse: {', '.join(sparse)}"] if sparse else lines


def _inside(relation: isl.Map) -> str:
    text = relation.to_str()
    return text[text.index("{") + 1 : text.rindex("}")].strip()


def _placements(random: Random, program: Program, grid: tuple[int, int]) -> dict[str, isl.Map]:
    first = program.statements[0]
    placed = {first.name: _placement(random, first, grid)}
    if len(program.statements) > 1:
        second = program.statements[1]
        written = placed[first.name].reverse().apply_range(access_relation(first, first.write))
        owners = written.reverse().lexmax()
        missing = element_set(program.buffer("y")).subtract(owners.domain())
        owners = owners.union(isl.Map.from_domain_and_range(missing, written.domain().lexmax()))
        followed = access_relation(second, second.reads[0]).intersect_domain(instance_set(second))
        placed[second.name] = followed.apply_range(owners).coalesce()
    return placed


def _placement(random: Random, statement: Statement, grid: tuple[int, int]) -> isl.Map:
    free = random.sample(range(len(statement.domain)), len(statement.domain))
    coordinates = [_coordinate(random, statement, extent, free) for extent in grid]
    names = ", ".join(statement.iterators)
    text = f"{{ {statement.name}[{names}] -> PE[{', '.join(coordinates)}] }}"
    return isl.Map(text).intersect_domain(instance_set(statement))


def _coordinate(random: Random, statement: Statement, extent: int, free: list[int]) -> str:
    """One PE coordinate: tiled, cyclic, block-cyclic, mirrored, constant, along a diagonal."""
    if extent == 1 or not free or random.random() < 0.15:
        return str(random.randrange(extent))
    k = free.pop()
    name, n = statement.iterators[k], statement.domain[k]
    if len(statement.domain) > 1 and random.random() < 0.08:
        other = random.choice([o for o in range(len(statement.domain)) if o != k])
        name, n = f"({name} + {statement.iterators[other]})", n + statement.domain[other] - 1
    used = random.randint(1, extent)
    block = math.ceil(n / used)
    tiles = math.ceil(n / block)
    match random.choice(["tiled"] * 4 + ["cyclic", "mirrored", "shifted", "block-cyclic"]):
        case "cyclic":
            return f"({name} mod {used})"
        case "mirrored":
            return f"{tiles - 1} - {name}//{block}"
        case "shifted":
            return f"{extent - tiles} + {name}//{block}"
        case "block-cyclic":
            return f"({name}//{random.choice([1, 2])}) mod {used}"
        case _:
            return f"{name}//{block}"


def _input_ports(
    random: Random, program: Program, placement: dict[str, isl.Map], tensor: str, grid: tuple[int, int]
) -> str:
    """Feed each row or column what it needs, from one side or half from each of two."""
    if random.random() < 0.45:
        return ""
    needed = [
        access_relation(s, a).reverse().apply_range(placement[s.name])
        for s in program.statements
        for a in s.reads
        if a.buffer == tensor
    ]
    wanted = needed[0]
    for relation in needed[1:]:
        wanted = wanted.union(relation)
    shape = program.buffer(tensor).extents
    if shape and random.random() < 0.12:
        sides = random.sample(SIDES, 2)
        halves = _halves(random, tensor, shape)
        pairs = list(zip(sides, halves, strict=True))
    else:
        pairs = [(random.choice(SIDES), element_set(program.buffer(tensor)))]
    everywhere = random.random() < 0.2
    order = _order(random, shape)
    texts = [_feed(order, wanted, half, side, shape, grid, everywhere) for side, half in pairs]
    return _NEXT.join(text for text in texts if text)


def _halves(random: Random, tensor: str, shape: Sequence[int]) -> tuple[isl.Set, isl.Set]:
    names = ", ".join(f"i{k}" for k in range(len(shape)))
    condition = random.choice([("i0 mod 2 = 0", "i0 mod 2 = 1"), ("i0 < 2", "i0 >= 2")])
    box = " and ".join(f"0 <= i{k} < {n}" for k, n in enumerate(shape))
    first, second = (isl.Set(f"{{ {tensor}[{names}] : {c} and {box} }}") for c in condition)
    return first, second


def _feed(
    order: list[str],
    wanted: isl.Map,
    elements: isl.Set,
    side: str,
    shape: Sequence[int],
    grid: tuple[int, int],
    everywhere: bool,
) -> str:
    lines = wanted.intersect_domain(elements).apply_range(_to_port(side, grid))
    if everywhere:
        lines = isl.Map.from_domain_and_range(elements, _all_ports(side, grid))
    return _with_index(order, lines, shape)


def _to_port(side: str, grid: tuple[int, int]) -> isl.Map:
    port = {
        "north": "PE[x, -1]",
        "south": f"PE[x, {grid[1]}]",
        "west": "PE[-1, y]",
        "east": f"PE[{grid[0]}, y]",
    }[side]
    return isl.Map(f"{{ PE[x, y] -> {port} }}")


def _all_ports(side: str, grid: tuple[int, int]) -> isl.Set:
    inside = isl.Set(f"{{ PE[x, y] : 0 <= x < {grid[0]} and 0 <= y < {grid[1]} }}")
    return inside.apply(_to_port(side, grid))


def _with_index(order: list[str], lines: isl.Map, shape: Sequence[int]) -> str:
    """Give the elements of every port an order: ``{ x[i] -> PE }`` to ``x[i] -> [PE -> index[...]]``."""
    if lines.is_empty():
        return ""
    name = lines.get_tuple_name(isl.dim_type.in_)
    names = ", ".join(f"i{k}" for k in range(len(shape)))
    ports = lines.range_product(isl.Map(f"{{ {name}[{names}] -> index[{', '.join(order)}] }}"))
    if not ports.is_injective():
        outer = ", ".join(["0"] * (len(order) - max(1, len(shape))))
        plain = ", ".join(part for part in (outer, names or "0") if part)
        ports = lines.range_product(isl.Map(f"{{ {name}[{names}] -> index[{plain}] }}"))
    return _inside(ports.coalesce())


def _order(random: Random, shape: Sequence[int]) -> list[str]:
    """Index expressions: reversed, with gaps, local to a tile, interchanged, flat, in chunks."""
    terms = [(_direction(random, f"i{k}", n), n) for k, n in enumerate(shape)]
    if not terms:
        return random.choice([["0"], ["0"], ["0", "0"], ["1"]])
    if random.random() < 0.3:
        random.shuffle(terms)
    if random.random() < 0.15:
        flat = terms[0][0]
        for text, n in terms[1:]:
            flat = f"{n}*({flat}) + {text}"
        return [*["0"] * (len(terms) - 1), flat]
    result: list[str] = []
    for text, n in terms:
        result += _chunked(random, text, n)
    return result


def _direction(random: Random, name: str, extent: int) -> str:
    chance = random.random()
    if chance < 0.15:
        return f"({extent - 1} - {name})"
    if chance < 0.25:
        return f"(2*{name} + 1)"
    if chance < 0.4:
        return f"({name} mod {random.randint(2, 4)})"
    return name


def _chunked(random: Random, text: str, extent: int) -> list[str]:
    if extent < 3 or random.random() < 0.8:
        return [text]
    size = random.randint(2, 3)
    outer, inner = f"({text})//{size}", f"({text}) mod {size}"
    return [outer, inner] if random.random() < 0.7 else [inner, outer]


def _output_ports(
    random: Random, program: Program, placement: dict[str, isl.Map], tensor: str, grid: tuple[int, int]
) -> str:
    """Let each element leave on a side that its row or column faces, if it has only one."""
    statement = program.definition(tensor)
    assert statement is not None
    if random.random() < 0.2:
        return ""
    written = access_relation(statement, statement.write).reverse().apply_range(placement[statement.name])
    sides = [s for s in SIDES if written.apply_range(_to_port(s, grid)).is_single_valued()]
    if not sides or random.random() < 0.03:
        return ""
    shape = program.buffer(tensor).extents
    elements = element_set(program.buffer(tensor))
    unwritten = elements.subtract(written.domain())
    chosen = (
        random.sample(sides, 2)
        if shape and len(sides) > 1 and random.random() < 0.15
        else [random.choice(sides)]
    )
    parts = _halves(random, tensor, shape) if len(chosen) == 2 and random.random() < 0.7 else [elements] * 2
    texts = []
    order = _order(random, shape)
    for side, part in zip(chosen, parts, strict=False):
        lines = written.apply_range(_to_port(side, grid)).intersect_domain(part)
        rest = isl.Map.from_domain_and_range(unwritten.intersect(part), _all_ports(side, grid).lexmin())
        texts.append(_with_index(order, lines.union(rest), shape))
    return _NEXT.join(text for text in texts if text)
