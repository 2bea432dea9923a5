"""Random maps of a layer on a rectangle of PEs: what automatic mapping is compared with.

Iterators are tiled, dealt out cyclically, mirrored or left whole; a statement that reads another one's result
follows it, or goes its own way; ports are on any side, in any order; streams drive statements or are stored.
What a check refuses is drawn again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from random import Random

import islpy as isl

from polyloom.diagnostics import Source
from polyloom.ir.host import Buffer
from polyloom.ir.program import Program
from polyloom.ir.relations import access_relation, instance_set
from polyloom.ir.statements import Statement
from polyloom.wafer.mapping.grid import Grid, Side
from polyloom.wafer.mapping.mapping import Mapping
from polyloom.wafer.mapping.reader import read_mapping
from polyloom.wafer.placement.ports import input_lines, output_lines, relation_text


def random_map(random: Random, program: Program, like: Mapping) -> str:
    """Return the text of a map that streams and sends the same tensors as ``like``, on the same rectangle."""
    grid = like.grid
    places: dict[str, isl.Map] = {}
    for statement in program.statements:
        places[statement.name] = _place(random, program, statement, places, grid)
    parts = "; ".join(relation_text(place) for place in places.values())
    head = f"size: {{ PE[{grid.width}, {grid.height}] }}\ncompute_map: {{ {parts} }}\n"
    placed = read_mapping(Source("<random map>", head), program)
    lines = [*_ports(random, program, placed, like)]
    for key, names in (("sparse", like.sparse), ("state", tuple(f"{a} = {b}" for a, b in like.state))):
        if names:
            lines.append(f"{key}: {', '.join(names)}")
    lines += _triggers(random, program, like)
    return head + "\n".join(lines) + "\n"


def _place(
    random: Random, program: Program, statement: Statement, before: dict[str, isl.Map], grid: Grid
) -> isl.Map:
    for access in statement.reads:
        producer = program.definition(access.buffer)
        if producer is not None and random.random() < 0.7:
            written = access_relation(producer, producer.write).reverse().apply_range(before[producer.name])
            follow = access_relation(statement, access).apply_range(written.lexmax())
            follow = follow.intersect_domain(instance_set(statement))
            if instance_set(statement).is_subset(follow.domain()):
                return follow.coalesce()
    free = random.sample(range(len(statement.domain)), len(statement.domain))
    x, y = (_coordinate(random, statement, extent, free) for extent in (grid.width, grid.height))
    text = f"{{ {statement.name}[{', '.join(statement.iterators)}] -> PE[{x}, {y}] }}"
    return isl.Map(text).intersect_domain(instance_set(statement))


def _coordinate(random: Random, statement: Statement, extent: int, free: list[int]) -> str:
    if extent == 1 or not free or random.random() < 0.15:
        return str(random.randrange(extent))
    k = free.pop()
    name, n = statement.iterators[k], statement.domain[k]
    used = extent if random.random() < 0.6 else random.randint(1, extent)
    block = math.ceil(n / used)
    match random.choice(["tiled"] * 5 + ["cyclic", "mirrored"]):
        case "cyclic":
            return f"({name} mod {used})"
        case "mirrored":
            return f"{math.ceil(n / block) - 1} - {name}//{block}"
        case _:
            return f"{name}//{block}"


def _ports(random: Random, program: Program, placed: Mapping, like: Mapping) -> Iterator[str]:
    inputs = random.sample(list(like.inputs), len(like.inputs))
    texts = [
        _with_order(random, program.buffer(n), input_lines(program, placed, n, random.choice(list(Side))))
        for n in inputs
    ]
    if any(texts):
        yield f"iport_map: {{ {'; '.join(t for t in texts if t)} }}"
    texts = [
        _with_order(random, program.buffer(n), output_lines(program, placed, n, random.choice(list(Side))))
        for n in like.outputs
    ]
    if any(texts):
        yield f"oport_map: {{ {'; '.join(t for t in texts if t)} }}"


def _triggers(random: Random, program: Program, like: Mapping) -> Iterator[str]:
    """Store the streams of a statement now and then, in place of driving it."""
    moving = [s.name for s in program.statements if {a.buffer for a in s.reads} & like.inputs.keys()]
    waiting = [name for name in moving if random.random() < 0.25]
    if waiting:
        yield f"trigger: {', '.join(f'{name} = none' for name in waiting)}"


def _with_order(random: Random, tensor: Buffer, lines: isl.Map) -> str:
    """Give the elements an order: interchanged, reversed, flat."""
    if lines.is_empty():
        return ""
    names = [f"i{k}" for k in range(len(tensor.extents))]
    terms = [
        (f"{n - 1} - {i}" if random.random() < 0.2 else i, n)
        for i, n in zip(names, tensor.extents, strict=True)
    ]
    if random.random() < 0.4:
        random.shuffle(terms)
    index = [text for text, _ in terms]
    if index and random.random() < 0.2:
        flat = index[0]
        for text, n in terms[1:]:
            flat = f"{n}*({flat}) + {text}"
        index = [flat]
    order = isl.Map(f"{{ {tensor.name}[{', '.join(names)}] -> index[{', '.join(index) or '0'}] }}")
    return relation_text(lines.range_product(order).coalesce())
