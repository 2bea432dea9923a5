"""A LAIR map: where instances are placed, where tensors come in and go out. Read and checked.

Source: dtg_codegen, Sec. 4.1.2; docs/interface.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import islpy as isl

from polyloom.diagnostics import Diagnostic, PolyloomError, Source, Span, Unsupported, error
from polyloom.ir.inputs import described
from polyloom.ir.program import Program
from polyloom.ir.relations import element_set, instance_set
from polyloom.polyhedra.points import sample_of
from polyloom.wafer.map_file import Entry, parse_relation, parse_set, read_entries
from polyloom.wafer.sides import Grid, Side

MAX_INDEX = 2**16 - 1
"""A sparse element's index has 16 bits (docs/semantics.md)."""


@dataclass(frozen=True, eq=False)
class Mapping:
    """A checked map.

    ``placement``: statement name to ``{ S[i, j] -> PE[x, y] }``; ``inputs`` and ``outputs``: tensor name to
    ``{ x[i] -> [PE[x, y] -> index[k]] }`` with external PEs, in the order of the text; ``state``: pairs
    (resident input, output that takes its place); ``trigger``: statement name to stream.
    """

    grid: Grid
    placement: dict[str, isl.Map]
    inputs: dict[str, isl.Map]
    outputs: dict[str, isl.Map]
    sparse: tuple[str, ...]
    state: tuple[tuple[str, str], ...]
    trigger: dict[str, str]
    spans: dict[str, Span] = field(repr=False)

    def span(self, key: str) -> Span | None:
        """Where the entry ``key`` stands; None where the map has none."""
        return self.spans.get(key)


@dataclass(frozen=True, eq=False)
class Given:
    """What a map says, all of a mapping or a part of it. None: it says nothing, or ``auto``.

    ``placement``: of the statements that are placed; ``directions``: ``{ S[i, j] -> [j, i] }`` of those that
    have only a direction; ``streamed``, ``leaving``: tensors that ``auto`` names.
    """

    source: Source
    entries: dict[str, Entry]
    grid: Grid | None
    placement: dict[str, isl.Map]
    directions: dict[str, isl.Map]
    inputs: dict[str, isl.Map] | None
    outputs: dict[str, isl.Map] | None
    streamed: tuple[str, ...] | None
    leaving: tuple[str, ...] | None
    sparse: tuple[str, ...] | None
    state: tuple[tuple[str, str], ...]
    trigger: dict[str, str]

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left to choose: a tensor without a port is resident where all is placed."""
        automatic = any(is_automatic(e) for e in self.entries.values())
        return self.grid is not None and bool(self.placement) and not self.directions and not automatic


def is_automatic(entry: Entry) -> bool:
    """Whether an entry leaves ports to the compiler: ``auto``, or ``auto x, dy``, which names the tensors."""
    return entry.key in ("iport_map", "oport_map") and re.match(r"auto\b", entry.text) is not None


def read_mapping(source: Source, program: Program) -> Mapping:
    """Read a map for a program and check it.

    Raises PolyloomError (``map-...``) where the map is wrong or has no size, Unsupported where it leaves
    something to be chosen: ``placement.complete`` does that.
    """
    given = read_given(source, program)
    _check_complete(given)
    assert given.grid is not None
    mapping = Mapping(
        given.grid,
        given.placement,
        given.inputs or {},
        given.outputs or {},
        given.sparse or (),
        given.state,
        given.trigger,
        {key: entry.span for key, entry in given.entries.items()},
    )
    check_mapping(mapping, program)
    return mapping


def read_given(source: Source, program: Program) -> Given:
    """Read what a map says, complete or not. Raises PolyloomError (``map-...``) where it cannot be read."""
    entries = read_entries(source)
    placement, directions = _read_placement(entries.get("compute_map"), program)
    ports = {key: None if _is_open(entries, key) else entries[key] for key in ("iport_map", "oport_map")}
    inputs, outputs = ports["iport_map"], ports["oport_map"]
    return Given(
        source,
        entries,
        _read_size(entries["size"]) if "size" in entries else None,
        placement,
        directions,
        None if inputs is None else _read_ports(inputs, program, program.inputs, "input"),
        None if outputs is None else _read_ports(outputs, program, program.outputs, "output"),
        _named_after_auto(entries.get("iport_map"), program.inputs, "input"),
        _named_after_auto(entries.get("oport_map"), program.outputs, "output"),
        _read_sparse(entries["sparse"], program) if "sparse" in entries else None,
        _read_state(entries.get("state"), program),
        _read_trigger(entries.get("trigger"), program),
    )


def _is_open(entries: dict[str, Entry], key: str) -> bool:
    return key not in entries or is_automatic(entries[key])


def _named_after_auto(entry: Entry | None, known: tuple[str, ...], role: str) -> tuple[str, ...] | None:
    """Return the tensors named after ``auto``; None where there are none, or no ``auto``."""
    if entry is None or not is_automatic(entry):
        return None
    names = list(_names(entry))[1:]
    for name, span in names:
        if name not in known:
            raise PolyloomError(_unknown(entry, name, role, list(known), span))
    return tuple(name for name, _ in names) or None


def _check_complete(given: Given) -> None:
    """Refuse a map that leaves something to be chosen."""
    start = Span(given.source, 0, min(1, len(given.source.text)))
    if given.grid is None:
        helps = ["add an entry such as size: { PE[4, 4] }"]
        raise PolyloomError(error("map-missing", "the map has no `size`", start, helps=helps))
    if "compute_map" not in given.entries:
        helps = ["add an entry such as compute_map: { ff[i, j] -> PE[j//4, i//8] }"]
        raise Unsupported(error("map-automatic", "the map has no `compute_map`", start, helps=helps))
    for name in given.directions:
        raise Unsupported(_direction_only(given.entries["compute_map"], name))
    for key, entry in given.entries.items():
        if is_automatic(entry):
            raise Unsupported(error("map-automatic", f"`{key}` is left to the compiler", entry.span))


def check_mapping(mapping: Mapping, program: Program) -> None:
    """Raise PolyloomError (``map-...``) with everything that is wrong with a mapping."""
    faults = [*_placement_faults(mapping, program), *_port_faults(mapping, program)]
    faults += _choice_faults(mapping, program)
    if faults:
        raise PolyloomError(*faults)


def _read_size(entry: Entry) -> Grid:
    extents = parse_set(entry)
    coordinates = _single_point(extents)
    if extents.get_tuple_name() != "PE" or coordinates is None or len(coordinates) != 2:
        raise PolyloomError(
            error(
                "map-size",
                "the size is not one pair of extents",
                entry.span,
                helps=["write { PE[WIDTH, HEIGHT] }, as { PE[4, 5] } for four columns and five rows"],
            )
        )
    if min(coordinates) < 1 or max(coordinates) > 65536:
        helps = ["give the columns and rows of the rectangle, as { PE[4, 5] }"]
        raise PolyloomError(
            error("map-size", "an extent is not between 1 and 65536", entry.span, helps=helps)
        )
    return Grid(*coordinates)


def _single_point(points: isl.Set) -> tuple[int, ...] | None:
    if points.is_empty() or not points.is_singleton():
        return None
    point = points.sample_point()
    dims = range(points.dim(isl.dim_type.set))
    return tuple(int(point.get_coordinate_val(isl.dim_type.set, k).to_python()) for k in dims)


def _maps(relation: isl.UnionMap) -> list[isl.Map]:
    result: list[isl.Map] = []
    relation.foreach_map(result.append)
    return result


def _read_placement(entry: Entry | None, program: Program) -> tuple[dict[str, isl.Map], dict[str, isl.Map]]:
    """Return the placements, and the directions of statements that have no more, by statement."""
    statements = {s.name: s for s in program.statements}
    placed: dict[str, isl.Map] = {}
    directions: dict[str, isl.Map] = {}
    for relation in [] if entry is None else _maps(parse_relation(entry)):
        assert entry is not None
        name = relation.get_tuple_name(isl.dim_type.in_) or ""
        if name not in statements:
            raise PolyloomError(_unknown(entry, name, "statement", list(statements)))
        rank = len(statements[name].domain)
        _check_arity(entry, name, relation.dim(isl.dim_type.in_), rank, statements[name].iterators)
        inside = relation.intersect_domain(instance_set(statements[name]))
        is_direction = not relation.has_tuple_name(isl.dim_type.out) and not relation.range().is_wrapping()
        named = relation.get_tuple_name(isl.dim_type.out) == "PE"
        if relation.dim(isl.dim_type.out) != 2 or not (named or is_direction):
            raise PolyloomError(_not_a_pe(entry, name))
        if name in placed or name in directions:
            raise PolyloomError(_two_kinds(entry, name))
        (directions if is_direction else placed)[name] = inside
    return _in_order(placed, program), _in_order(directions, program)


def _in_order(found: dict[str, isl.Map], program: Program) -> dict[str, isl.Map]:
    return {s.name: found[s.name] for s in program.statements if s.name in found}


def _two_kinds(entry: Entry, name: str) -> Diagnostic:
    message = f"`compute_map` gives `{name}` a placement and a direction"
    return error("map-placement", message, entry.span, helps=["give one of them"])


def _read_ports(
    entry: Entry | None, program: Program, allowed: tuple[str, ...], role: str
) -> dict[str, isl.Map]:
    if entry is None:
        return {}
    found: dict[str, isl.Map] = {}
    for relation in _maps(parse_relation(entry)):
        name = relation.get_tuple_name(isl.dim_type.in_) or ""
        if name not in allowed:
            raise PolyloomError(_unknown(entry, name, role, list(allowed)))
        tensor = program.tensor(name)
        _check_arity(entry, name, relation.dim(isl.dim_type.in_), len(tensor.shape), ())
        if not _is_port_range(relation):
            raise PolyloomError(_not_a_port(entry, name))
        if name in found:
            raise Unsupported(_index_ranks(entry, name))
        found[name] = relation.intersect_domain(element_set(tensor))
    return {name: found[name] for name in sorted(found, key=lambda n: _first_mention(entry, n))}


def _is_port_range(relation: isl.Map) -> bool:
    space = relation.get_space().range()
    if not space.is_wrapping() or relation.has_tuple_name(isl.dim_type.out):
        return False
    inner = space.unwrap()
    pe_like = inner.get_tuple_name(isl.dim_type.in_) == "PE" and inner.dim(isl.dim_type.in_) == 2
    return pe_like and inner.dim(isl.dim_type.out) >= 1 and not inner.range().is_wrapping()


def _first_mention(entry: Entry, name: str) -> int:
    match = re.search(rf"\b{re.escape(name)}\s*\[", entry.text)
    return match.start() if match else len(entry.text)


def _names(entry: Entry) -> Iterator[tuple[str, Span]]:
    for match in re.finditer(r"[^,\s]+", entry.text):
        start = entry.span.start + match.start()
        yield match.group(), Span(entry.span.source, start, start + len(match.group()))


def _read_sparse(entry: Entry | None, program: Program) -> tuple[str, ...]:
    if entry is None:
        return ()
    ports = [*program.inputs, *program.outputs]
    for name, span in _names(entry):
        if name not in ports:
            raise PolyloomError(_unknown(entry, name, "input or output", ports, span))
    return tuple(name for name, _ in _names(entry))


def _read_pairs(entry: Entry | None) -> list[tuple[str, str, Span]]:
    """Read ``A = B, C = D``."""
    if entry is None:
        return []
    pairs: list[tuple[str, str, Span]] = []
    for match in re.finditer(r"[^,\n]+", entry.text):
        start = entry.span.start + match.start()
        span = Span(entry.span.source, start, start + len(match.group()))
        parts = [part.strip() for part in match.group().split("=")]
        if not match.group().strip():
            continue
        if len(parts) != 2 or not all(re.fullmatch(r"\w+", part) for part in parts):
            message = f"`{entry.key}` takes pairs NAME = NAME"
            example = {"state": "state: W = W1", "trigger": "trigger: fg = dy"}[entry.key]
            raise PolyloomError(error("map-syntax", message, span, helps=[f"as in `{example}`"]))
        pairs.append((parts[0], parts[1], span))
    return pairs


def _read_state(entry: Entry | None, program: Program) -> tuple[tuple[str, str], ...]:
    pairs = _read_pairs(entry)
    for old, new, span in pairs:
        assert entry is not None
        if old not in program.inputs:
            raise PolyloomError(_unknown(entry, old, "input", list(program.inputs), span))
        if new not in program.outputs:
            raise PolyloomError(_unknown(entry, new, "output", list(program.outputs), span))
        before, after = program.tensor(old), program.tensor(new)
        if (before.shape, before.type) != (after.shape, after.type):
            message = f"`{new}` cannot take the place of `{old}`: shape or element type differ"
            helps = [f"declare both as {described(before)}"]
            raise PolyloomError(error("map-state", message, span, helps=helps))
    return tuple((old, new) for old, new, _ in pairs)


def _read_trigger(entry: Entry | None, program: Program) -> dict[str, str]:
    statements = {s.name: s for s in program.statements}
    result: dict[str, str] = {}
    for name, stream, span in _read_pairs(entry):
        assert entry is not None
        if name not in statements:
            raise PolyloomError(_unknown(entry, name, "statement", list(statements), span))
        read = [access.tensor for access in statements[name].reads]
        if stream not in read:
            raise PolyloomError(_unknown(entry, stream, f"tensor read by `{name}`", read, span))
        result[name] = stream
    return result


def _placement_faults(mapping: Mapping, program: Program) -> Iterator[Diagnostic]:
    span = mapping.span("compute_map")
    for statement in program.statements:
        placed = mapping.placement.get(statement.name)
        if placed is None:
            message = f"`compute_map` places no instance of `{statement.name}`"
            yield error("map-placement", message, span, helps=[f"add `{statement.name}[...] -> PE[...]`"])
            continue
        missing = instance_set(statement).subtract(placed.domain())
        if not missing.is_empty():
            message = f"`compute_map` does not place every instance of `{statement.name}`"
            helps = ["drop the condition, or add a part for the instances that it leaves out"]
            notes = [f"{sample_of(missing)} has no PE"]
            yield error("map-placement", message, span, notes=notes, helps=helps)
        elif not placed.is_single_valued():
            yield _placed_twice(placed, statement.name, span)
        outside = placed.range().subtract(mapping.grid.pes())
        if not outside.is_empty():
            inside = f"{{ PE[0:{mapping.grid.width - 1}, 0:{mapping.grid.height - 1}] }}"
            culprit = sample_of(placed.intersect_range(outside).domain())
            yield error(
                "map-placement",
                f"`compute_map` places instances of `{statement.name}` outside the rectangle",
                span,
                notes=[f"{culprit} is placed on {sample_of(outside)}; the rectangle is {inside}"],
                helps=["change the placement, or enlarge `size`"],
            )


def _placed_twice(placed: isl.Map, name: str, span: Span | None) -> Diagnostic:
    same = isl.Map.identity(placed.get_space().range().map_from_set()).wrap()
    twice = placed.range_product(placed).subtract_range(same)
    point, pes = _first_pair(twice)
    first, second = _first_pair(pes.unwrap())
    helps = ["every instance belongs on exactly one PE; only inputs can be sent to several"]
    if not placed.range().is_bounded():
        helps.append("a name in PE[...] that is no iterator of the statement stands for every number")
    return error(
        "map-placement",
        f"`compute_map` places instances of `{name}` on several PEs",
        span,
        notes=[f"{sample_of(point)} is placed on {sample_of(first)} and on {sample_of(second)}"],
        helps=helps,
    )


def _first_pair(relation: isl.Map) -> tuple[isl.Set, isl.Set]:
    """Return the ends of one pair, the first one where there is a first: ``{ a }`` and ``{ b }``."""
    pairs = relation.wrap()
    chosen = pairs.lexmin() if pairs.is_bounded() else pairs
    pair = isl.Set.from_point(chosen.sample_point()).unwrap()
    return pair.domain(), pair.range()


def _port_faults(mapping: Mapping, program: Program) -> Iterator[Diagnostic]:
    for key, ports in (("iport_map", mapping.inputs), ("oport_map", mapping.outputs)):
        for name, schedule in ports.items():
            yield from _adjacency_faults(mapping, key, name, schedule)
            yield from _order_faults(mapping, key, name, schedule)
            missing = element_set(program.tensor(name)).subtract(schedule.domain())
            if key == "oport_map" and not missing.is_empty():
                yield error(
                    "map-port-missing",
                    f"not every element of `{name}` leaves",
                    mapping.span(key),
                    notes=[f"`{key}` has no port for {sample_of(missing)}"],
                    helps=["give it one, or leave the tensor out: it then stays in PE memory"],
                )


def _adjacency_faults(mapping: Mapping, key: str, name: str, schedule: isl.Map) -> Iterator[Diagnostic]:
    adjacent = mapping.grid.external(Side.NORTH)
    for side in (Side.SOUTH, Side.WEST, Side.EAST):
        adjacent = adjacent.union(mapping.grid.external(side))
    stray = schedule.range_factor_domain().range().subtract(adjacent)
    if not stray.is_empty():
        width, height = mapping.grid.width, mapping.grid.height
        yield error(
            "map-port-place",
            f"a port of `{name}` is not adjacent to the rectangle",
            mapping.span(key),
            notes=[f"{sample_of(stray)} is no neighbour of {{ PE[0:{width - 1}, 0:{height - 1}] }}"],
            helps=[f"ports are PE[x, -1], PE[x, {height}], PE[-1, y] and PE[{width}, y]"],
        )


def _order_faults(mapping: Mapping, key: str, name: str, schedule: isl.Map) -> Iterator[Diagnostic]:
    if not schedule.is_injective():
        clash = schedule.apply_range(schedule.reverse()).subtract(isl.Map.identity(_square(schedule)))
        first, second = _first_pair(clash)
        yield error(
            "map-port-order",
            f"two elements of `{name}` have the same index at one port",
            mapping.span(key),
            notes=[f"{sample_of(first)} and {sample_of(second)} share a port and an index"],
            helps=["give every element that a port carries an index of its own"],
        )
    if key == "iport_map" and not schedule.uncurry().is_single_valued():
        yield _sent_twice(mapping, name, schedule)
    index = schedule.range_factor_range().range()
    if index.is_empty():
        return  # no element of the tensor has this port: streams say which ones never arrive
    if not index.is_bounded():
        helps = ["write index[...] as a function of the element, such as index[i mod 4]"]
        yield error("map-port-order", f"an index of `{name}` has no bounds", mapping.span(key), helps=helps)
        return
    for k in range(index.dim(isl.dim_type.set)):
        low = index.dim_min_val(k)
        if low.is_neg():
            helps = ["indices count from 0: add a constant"]
            yield error("map-port-order", f"an index of `{name}` is negative", mapping.span(key), helps=helps)
    if name in mapping.sparse:
        yield from _sparse_faults(mapping, key, name, index)


def _sparse_faults(mapping: Mapping, key: str, name: str, index: isl.Set) -> Iterator[Diagnostic]:
    """Check what has 16 bits: an element's index, and a PE's counters of chunks."""
    *outer, innermost = (index.dim_max_val(k).to_python() for k in range(index.dim(isl.dim_type.set)))
    if innermost > MAX_INDEX:
        yield error(
            "map-port-order",
            f"an index of the sparse `{name}` does not fit in 16 bits",
            mapping.span(key),
            helps=["split it into chunks with an outer index: index[i // 1000, i mod 1000]"],
        )
    if max(outer, default=0) >= MAX_INDEX:
        yield error(
            "map-port-order",
            f"an outer index of the sparse `{name}` does not fit in the 16 bits of a PE's counter",
            mapping.span(key),
            notes=[f"it goes up to {max(outer)}; a chunk ends for each value from 0 on, {MAX_INDEX} at most"],
            helps=["count in two outer indices: index[i // 1000, i mod 1000, 0]"],
        )


def _sent_twice(mapping: Mapping, name: str, schedule: isl.Map) -> Diagnostic:
    at_port = schedule.uncurry()
    same = isl.Map.identity(at_port.get_space().range().map_from_set()).wrap()
    arrival, indices = _first_pair(at_port.range_product(at_port).subtract_range(same))
    (element, port), (first, second) = _first_pair(arrival.unwrap()), _first_pair(indices.unwrap())
    return error(
        "map-port-order",
        f"an element of `{name}` enters twice at one port",
        mapping.span("iport_map"),
        notes=[
            f"{sample_of(element)} has {sample_of(first)} and {sample_of(second)} at {sample_of(port)}, "
            "so it would be counted twice"
        ],
        helps=["give every element one index at a port"],
    )


def _square(schedule: isl.Map) -> isl.Space:
    return schedule.get_space().domain().map_from_set()


def _choice_faults(mapping: Mapping, program: Program) -> Iterator[Diagnostic]:
    for name in mapping.sparse:
        if name not in mapping.inputs and name not in mapping.outputs:
            message = f"`{name}` is sparse, but it has no port"
            yield error(
                "map-sparse", message, mapping.span("sparse"), helps=["give it a port, or leave it out"]
            )
        elif program.tensor(name).type.size != 2:
            yield error(
                "map-sparse",
                f"`{name}` cannot be sparse: {program.tensor(name).type.value} has more than 16 bits",
                mapping.span("sparse"),
                notes=["a value-position pair is a 16-bit value with a 16-bit index in one wavelet"],
                helps=["leave it out of `sparse`, or make it float16 or int16"],
            )
    for old, _new in mapping.state:
        if old in mapping.inputs:
            message = f"`{old}` arrives through a port, so it is no state"
            helps = [f"leave `{old}` out of `iport_map`: it then lies in PE memory from the start"]
            yield error("map-state", message, mapping.span("state"), helps=helps)
    for statement, stream in mapping.trigger.items():
        if stream not in mapping.inputs:
            message = f"`{stream}` has no port, so it cannot trigger `{statement}`"
            helps = [f"name a stream, or leave `trigger` out, or give `{stream}` a port"]
            yield error("map-trigger", message, mapping.span("trigger"), helps=helps)


def _unknown(entry: Entry, name: str, what: str, known: list[str], span: Span | None = None) -> Diagnostic:
    at = _first_mention(entry, name)
    if span is None and at < len(entry.text) and name:
        span = Span(entry.span.source, entry.span.start + at, entry.span.start + at + len(name))
    helps = [f"there is {', '.join(f'`{k}`' for k in known)}"] if known else ["there is none"]
    shown = f"`{name}`" if name else "a tuple without a name"
    return error("map-unknown-name", f"{shown} is no {what}", span or entry.span, helps=helps)


def _check_arity(entry: Entry, name: str, found: int, expected: int, names: tuple[str, ...]) -> None:
    if found != expected:
        indices = ", ".join(names or (f"i{k}" for k in range(expected)))
        dimensions = f"{expected} dimension{'' if expected == 1 else 's'}"
        message = f"`{name}` has {dimensions}, but `{entry.key}` gives it {found}"
        raise PolyloomError(error("map-arity", message, entry.span, helps=[f"write `{name}[{indices}]`"]))


def _direction_only(entry: Entry, name: str) -> Diagnostic:
    return error(
        "map-direction",
        f"`compute_map` gives only a direction for `{name}`",
        entry.span,
        helps=["write the whole placement, such as { ff[i, j] -> PE[j//4, i//8] }"],
    )


def _not_a_pe(entry: Entry, name: str) -> Diagnostic:
    message = f"`compute_map` does not place `{name}` on PEs"
    return error("map-placement", message, entry.span, helps=["the range is PE[x, y]"])


def _index_ranks(entry: Entry, name: str) -> Diagnostic:
    return error(
        "map-port-rank",
        f"the ports of `{name}` have indices of different ranks",
        entry.span,
        helps=["give all ports of a tensor the same number of index dimensions, as in index[0, i]"],
    )


def _not_a_port(entry: Entry, name: str) -> Diagnostic:
    message = f"the port of `{name}` is not of the form [PE[x, y] -> index[...]]"
    return error("map-port", message, entry.span, helps=["as in { x[i=0:15] -> [PE[0, -1] -> index[i]] }"])
