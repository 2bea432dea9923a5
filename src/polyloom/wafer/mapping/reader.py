"""LAIR maps read: what a map says, all of a mapping or a part of it.

Source: dtg_codegen, Sec. 4.1.2; docs/interface.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import islpy as isl

from polyloom.diagnostics import Diagnostic, PolyloomError, Source, Span, Unsupported, error
from polyloom.ir.evaluation.inputs import described
from polyloom.ir.program import Program
from polyloom.ir.relations import element_set, instance_set
from polyloom.wafer.mapping.digits import with_digits
from polyloom.wafer.mapping.grid import Grid
from polyloom.wafer.mapping.legality import check_mapping
from polyloom.wafer.mapping.mapping import Mapping
from polyloom.wafer.mapping.text import NOTHING, Entry, parse_relation, parse_set, read_entries


@dataclass(frozen=True, eq=False, kw_only=True)
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
    trigger: dict[str, str | None]

    def places_all(self, program: Program) -> bool:
        """Whether it says of every statement where it is."""
        return all(statement.name in self.placement for statement in program.statements)

    def is_complete(self, program: Program) -> bool:
        """Whether nothing is left to choose: a tensor without a port is resident where all is placed."""
        automatic = any(is_automatic(e) for e in self.entries.values())
        return self.grid is not None and self.places_all(program) and not automatic

    @property
    def text(self) -> str:
        """The map as a file, with its rectangle if that is another one than was written."""
        assert self.grid is not None
        size, text = f"{{ PE[{self.grid.width}, {self.grid.height}] }}", self.source.text
        written = self.entries.get("size")
        if written is None:
            return f"size: {size}\n{text}"
        same = _read_size(written) == self.grid
        return text if same else text[: written.span.start] + size + text[written.span.end :]


def is_automatic(entry: Entry) -> bool:
    """Whether an entry leaves ports to the compiler: ``auto``, or ``auto x, dy``, which names the tensors."""
    return entry.key in ("iport_map", "oport_map") and re.match(r"auto\b", entry.text) is not None


def read_mapping(source: Source, program: Program) -> Mapping:
    """Read a map for a program and check it.

    Raises PolyloomError (``map-...``) where the map is wrong or has no size, Unsupported where it leaves
    something to be chosen: ``placement.complete`` does that.
    """
    return mapping_of(read_given(source, program), program)


def mapping_of(given: Given, program: Program) -> Mapping:
    """Return the mapping that a map gives, checked. Raises what ``read_mapping`` raises."""
    _check_complete(given)
    assert given.grid is not None
    mapping = Mapping(
        grid=given.grid,
        placement=given.placement,
        inputs=given.inputs or {},
        outputs=given.outputs or {},
        sparse=given.sparse or (),
        state=given.state,
        trigger=given.trigger,
        spans={key: entry.span for key, entry in given.entries.items()},
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
        source=source,
        entries=entries,
        grid=_read_size(entries["size"]) if "size" in entries else None,
        placement=placement,
        directions=directions,
        inputs=None if inputs is None else _read_ports(inputs, program, program.inputs, "input"),
        outputs=None if outputs is None else _read_ports(outputs, program, program.outputs, "output"),
        streamed=_named_after_auto(entries.get("iport_map"), program.inputs, "input"),
        leaving=_named_after_auto(entries.get("oport_map"), program.outputs, "output"),
        sparse=_read_sparse(entries["sparse"], program) if "sparse" in entries else None,
        state=_read_state(entries.get("state"), program),
        trigger=_read_trigger(entries.get("trigger"), program),
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
        if is_direction:
            directions[name] = inside
        else:
            placed[name] = with_digits(inside)
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
        tensor = program.buffer(name)
        _check_arity(entry, name, relation.dim(isl.dim_type.in_), len(tensor.extents), ())
        if not _is_port_range(relation):
            raise PolyloomError(_not_a_port(entry, name))
        if name in found:
            raise Unsupported(_index_ranks(entry, name))
        found[name] = with_digits(relation.intersect_domain(element_set(tensor)))
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
        before, after = program.buffer(old), program.buffer(new)
        if (before.extents, before.type) != (after.extents, after.type):
            message = f"`{new}` cannot take the place of `{old}`: shape or element type differ"
            helps = [f"declare both as {described(before)}"]
            raise PolyloomError(error("map-state", message, span, helps=helps))
    return tuple((old, new) for old, new, _ in pairs)


def _read_trigger(entry: Entry | None, program: Program) -> dict[str, str | None]:
    """Return the stream that drives a statement by its name; None where the map says `none`."""
    statements = {s.name: s for s in program.statements}
    result: dict[str, str | None] = {}
    for name, stream, span in _read_pairs(entry):
        assert entry is not None
        if name not in statements:
            raise PolyloomError(_unknown(entry, name, "statement", list(statements), span))
        read = [access.buffer for access in statements[name].reads]
        if stream not in (*read, NOTHING):
            raise PolyloomError(_unknown(entry, stream, f"tensor read by `{name}`", [*read, NOTHING], span))
        result[name] = stream if stream in read else None
    return result


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
