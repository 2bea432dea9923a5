"""Sweeps over arrays that memory holds, fused: blocks of rows go through all of them while a cache has them.

    t[r] = sum over c of A[r][c] * x[c]         y[c] = 0
    y[c] = sum over r of A[r][c] * t[r]    ->   for each block of rows r:
                                                  t[r] = sum over c of A[r][c] * x[c]
                                                  y[c] = y[c] + sum over r of A[r][c] * t[r]

Types: a ``Member`` is an md_hom with the dimension along which it is cut and a shift (``members``); a
``Group`` is members, and the nodes among them that go before or behind the blocks (here). Pipeline:

    nodes between host loops       -> members of each, those whose time memory decides    ``traffic``
    light nodes between two sweeps -> members, too, where the second one needs their results
    members in the order of nodes  -> the least shifts that dependences, as sets, allow  ``legality``
    groups from each first member  -> the one that saves most seconds of memory        ``traffic``
    group                          -> blocks of known sizes, the last ones written out        ``blocks``

A shift is what a dependence asks for: in FDTD a row of hz needs the next row of ey, so hz runs a row behind.
What stays apart is a candidate, too: nothing is fused where the last cache holds all, or that saves little.
Sizes are numbers here, so blocks are, too; where they are left open, programs stay as they are.

Source: loop fusion with shifts (Darte 1999; Bondhugula et al. 2008: idea); strips of md_homs are new.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial

from polyloom.ir.host import HostNode, HostProgram, MdHom
from polyloom.ir.naming import fresh
from polyloom.ir.node_names import with_unique_names
from polyloom.mdh.device.costs import CpuCosts
from polyloom.mdh.device.devices import DeviceModel
from polyloom.mdh.lowering.program_tree import names_of
from polyloom.mdh.lowering.sweeps.legality import conflict, is_cut_right, shift_behind
from polyloom.mdh.lowering.sweeps.members import Member, members
from polyloom.mdh.lowering.sweeps.traffic import Traffic
from polyloom.mdh.schedule.addresses import known, reduced_dimensions
from polyloom.polyhedra.effort import TooHardError
from polyloom.polyhedra.loops.tree import Branch, Loop, Name, Number, Operation, sum_of

LEAST_SAVED = 0.1
"""Of the seconds that memory takes, at least: less is in the error of the model."""

FARTHEST = 12
"""Nodes behind the first of a group, at most, that are asked."""

MULTIPLE = 8
"""Rows of a block are a multiple of it where there are more: a register tile's, or a vector's."""


CHANGES = "changes from step to step"
"""How the reason ends where sizes depend on host loops."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Group:
    """Sweeps in blocks of ``rows``; ``first``, ``last``: nodes that run before them and behind them.

    ``span``: how many nodes of the body it takes the place of. ``saved``: seconds.
    """

    members: tuple[Member, ...]
    first: tuple[HostNode, ...] = ()
    last: tuple[HostNode, ...] = ()
    span: int = 1
    rows: int = 0
    saved: float = 0.0


def fused_sweeps(program: HostProgram, device: DeviceModel) -> HostProgram:
    """Return the program with sweeps fused that share arrays which do not stay in a cache.

    Every element gets the value that it had; floats are added in another order where they may be.
    """
    if not isinstance(device.costs.kernels, CpuCosts):
        return program
    body = _Fusion(program, Traffic(program, device)).body(program.body, repeated=False)
    return program if body == program.body else with_unique_names(replace(program, body=body))


def sweeps_explained(program: HostProgram, device: DeviceModel) -> tuple[str, ...]:
    """Return which md_homs are fused, and of those beside each other that share an array why they are not."""
    if not isinstance(device.costs.kernels, CpuCosts):
        return ()
    said: list[str] = []
    _Fusion(program, Traffic(program, device), said).body(program.body, repeated=False)
    return tuple(dict.fromkeys(said))


@dataclass(frozen=True, eq=False)
class _Fusion:
    """``said``: takes what was done, and what was not and why, a sentence each; None: nobody asks."""

    program: HostProgram
    traffic: Traffic
    said: list[str] | None = None
    known: dict[int, tuple[HostNode, list[Member]]] = field(default_factory=dict)

    def _say(self, sentences: Iterable[str]) -> None:
        if self.said is not None:
            self.said.extend(sentences)

    def body(self, nodes: tuple[HostNode, ...], *, repeated: bool) -> tuple[HostNode, ...]:
        """Return nodes one after another with groups among them fused."""
        nodes = tuple(map(self._inside, nodes))
        found: list[HostNode] = []
        while nodes:
            group = self._best(nodes, repeated=repeated)
            if group is None:
                self._say(self._why_apart(nodes))
                found.append(nodes[0])
                nodes = nodes[1:]
            else:
                self._say(self._how(group, nodes[group.span :]))
                found += (*group.first, *blocks(group, self.program))
                nodes = (*group.last, *nodes[group.span :])
        return tuple(found)

    def _inside(self, node: HostNode) -> HostNode:
        match node:
            case Loop(body=body):
                return replace(node, body=self.body(body, repeated=True))
            case Branch(condition=condition, body=body, otherwise=otherwise):
                inside = partial(self.body, repeated=False)
                return Branch(condition, inside(body), inside(otherwise))
            case _:
                return node

    def _best(self, nodes: tuple[HostNode, ...], *, repeated: bool) -> Group | None:
        """Return the group that begins at the first node and saves most; None where none saves enough."""
        first = nodes[0]
        if not isinstance(first, MdHom) or not self.traffic.is_sweep(first):
            return None
        near = [n for n in nodes[: FARTHEST + 1] if isinstance(n, MdHom) and self.traffic.is_sweep(n)]
        if not self.traffic.leaves_caches(near):
            return None
        groups = [g for m in self._members(first) for g in self._grown(m, nodes, repeated=repeated)]
        return max(groups, key=lambda group: group.saved, default=None)

    def _why_apart(self, nodes: tuple[HostNode, ...]) -> Iterator[str]:
        """Yield why the first node is not fused with the next one that shares an array."""
        first, *others = nodes
        if not isinstance(first, MdHom):
            return
        for other in others[:FARTHEST]:
            if isinstance(other, MdHom) and _shared(first, other):
                yield f"{_apart(first, other)}: {self._reason(first, other)}"
                return

    def _how(self, group: Group, others: tuple[HostNode, ...]) -> Iterator[str]:
        yield _described(group)
        yield from self._why_not_in(group, others)

    def _why_not_in(self, group: Group, others: tuple[HostNode, ...]) -> Iterator[str]:
        """Yield why the next sweep that shares an array with a group's last one is not one of it."""
        last = group.members[-1].node
        for other in others[:FARTHEST]:
            if isinstance(other, MdHom) and _shared(last, other) and self.traffic.is_sweep(other):
                joined = any(_joined(group, m) for m in self._members(other))
                yield f"{_apart(last, other)}: {_LITTLE if joined else _waits_for(last, other)}"
                return

    def _reason(self, a: MdHom, b: MdHom) -> str:
        for node in (a, b):
            if any(known(extent) is None for extent in node.extents):
                return f"how large {node.name} is {CHANGES}"
            if not self.traffic.is_sweep(node):
                large = self.traffic.is_large(node)
                much = f"{node.name} uses elements often, so its own tiles decide"
                return much if large else f"what {node.name} touches stays in a cache"
        if not self.traffic.leaves_caches([a, b]):
            return "what they touch stays in a cache"
        pairs = [(x, y) for x in self._members(a) for y in self._members(b)]
        if not pairs:
            return "one of them cannot be cut into parts"
        if not any(_joined(_alone(x), y) for x, y in pairs):
            return _waits_for(a, b)
        return _LITTLE

    def _members(self, node: HostNode) -> list[Member]:
        """Return the ways in which a node can be cut; each node is asked once."""
        if id(node) not in self.known:
            self.known[id(node)] = node, self._ways(node)
        return self.known[id(node)][1]

    def _ways(self, node: HostNode) -> list[Member]:
        if not isinstance(node, MdHom) or not (self.traffic.is_sweep(node) or self.traffic.is_light(node)):
            return []
        try:
            return [m for m in members(node, self.program) if is_cut_right(m)]
        except TooHardError:
            return []

    def _grown(self, first: Member, nodes: tuple[HostNode, ...], *, repeated: bool) -> Iterator[Group]:
        """Yield groups of a first member with one more node after another, where they save enough.

        What does not join goes before or behind the blocks; a light node goes with them, too (``carried``),
        for a sweep behind it may need what it gives.
        """
        group = carried = _alone(first)
        for span, node in enumerate(nodes[1 : FARTHEST + 1], 2):
            if isinstance(node, Loop | Branch):
                return
            wider = [w for g in dict.fromkeys((group, carried)) for w in self._wider(g, node)]
            sized = [self._sized(replace(g, span=span), repeated=repeated) for g in wider]
            best = max(sized, key=lambda g: g.saved, default=None)
            if best is not None and best.saved > group.saved and self.traffic.is_sweep(best.members[-1].node):
                group = carried = best
                yield group
            else:
                with_it = [replace(g, span=span) for g in self._wider(carried, node)]
                group, passed = _passed(group, node, span), _passed(carried, node, span)
                carried = with_it[0] if passed.last != carried.last and with_it else passed

    def _wider(self, group: Group, node: HostNode) -> list[Group]:
        """Return a group with one more node at its end, in each way in which it can be cut."""
        return [g for m in self._members(node) if (g := _joined(group, m)) is not None]

    def _sized(self, group: Group, *, repeated: bool) -> Group:
        """Return the group with the size of its blocks, and what it saves: nothing where that is little."""
        rows = self._rows(group)
        if rows == 0 or not self.traffic.leaves_caches([m.node for m in group.members]):
            return group
        apart = self.traffic.apart([m.node for m in group.members], repeated=repeated)
        saved = apart - self.traffic.together(group.members, rows, repeated=repeated)
        return replace(group, rows=rows, saved=saved if saved > LEAST_SAVED * apart else 0.0)

    def _rows(self, group: Group) -> int:
        """Return the most rows that fit into a block; 0 where too few do, or there are no two blocks."""
        times = max(m.rows + m.shift for m in group.members)
        low, high = 0, times
        while low < high:
            middle = (low + high + 1) // 2
            fits = self.traffic.block_bytes(group.members, middle) <= self.traffic.room
            low, high = (middle, high) if fits else (low, middle - 1)
        rows = low - low % MULTIPLE if low > MULTIPLE else low
        late = max(m.shift for m in group.members)
        return rows if max(1, late) <= rows < times else 0


def _alone(member: Member) -> Group:
    return Group(members=(member,), first=_given(member.before), last=_given(member.behind))


def _shared(a: MdHom, b: MdHom) -> set[str]:
    """Return the buffers that two nodes both use."""
    one, other = ({v.buffer for v in (*n.inputs, *n.outputs)} for n in (a, b))
    return one & other


_LITTLE = "blocks would save less than a tenth of the time that memory takes"


def _waits_for(a: MdHom, b: MdHom) -> str:
    return f"{b.name} needs what later rows of {a.name} give, or writes what they still read"


def _apart(a: MdHom, b: MdHom) -> str:
    return f"{a.name}, {b.name}: apart, though both use `{'`, `'.join(sorted(_shared(a, b)))}`"


def _described(group: Group) -> str:
    """Say how a group is fused: ``S3, S4: fused in blocks of 24 rows along r; S4 is 1 row behind``."""
    names = [m.node.name for m in group.members]
    along = dict.fromkeys(m.node.iterators[m.dimension] for m in group.members)
    text = f"{', '.join(names)}: fused in blocks of {group.rows} rows along {', '.join(along)}"
    shifts = [f"{m.node.name} runs {m.shift} behind" for m in group.members if m.shift]
    sums = [f"{m.node.name} adds up over blocks" for m in group.members if _waits(m)]
    return "; ".join([text, *shifts, *sums])


def _waits(member: Member) -> bool:
    return member.dimension in reduced_dimensions(member.node)


def _given(node: MdHom | None) -> tuple[HostNode, ...]:
    return () if node is None else (node,)


def _joined(group: Group, member: Member) -> Group | None:
    """Return the group with one more sweep at its end; None where dependences forbid it."""
    if not any(_shared(m.node, member.node) for m in group.members):
        return None
    if any(conflict(node, member.node) for node in group.last):
        return None
    early = _given(member.before)
    if any(conflict(m.node, node) for m in group.members for node in early):
        return None
    if any(conflict(other, node) for other in group.last for node in early):
        return None
    try:
        shifts = [shift for m in group.members if (shift := _behind(m, member)) is not None]
    except TooHardError:
        return None
    placed = replace(member, shift=max((0, *shifts)))
    return replace(
        group,
        members=(*group.members, placed),
        first=(*group.first, *early),
        last=(*group.last, *_given(member.behind)),
    )


def _behind(a: Member, b: Member) -> int | None:
    least = shift_behind(a, b)
    return None if least is None else least + a.shift


def _passed(group: Group, node: HostNode, span: int) -> Group:
    """Return the group with a node that is not one of it: before its blocks if it can, else behind them."""
    waits = any(conflict(other, node) for other in (*(m.node for m in group.members), *group.last))
    moved = replace(group, span=span)
    return replace(moved, last=(*group.last, node)) if waits else replace(moved, first=(*group.first, node))


def blocks(group: Group, program: HostProgram) -> tuple[HostNode, ...]:
    """Return the host loop over whole blocks, and what is before and behind it written out."""
    times = max(m.rows + m.shift for m in group.members)
    count = -(-times // group.rows)
    whole = [
        k for k in range(count) if all(_part(m, k, group.rows) == (0, group.rows) for m in group.members)
    ]
    if not whole:
        return tuple(n for k in range(count) for n in _block(group, Number(k), k))
    first, last = whole[0], whole[-1] + 1
    name = fresh("block", names_of(program))
    loop: HostNode = Loop(
        iterator=name,
        start=Number(first),
        condition=Operation("<", (Name(name), Number(last))),
        step=Number(1),
        body=_block(group, Name(name), first),
    )
    steady = (loop,) if last - first > 1 else _block(group, Number(first), first)
    before = (n for k in range(first) for n in _block(group, Number(k), k))
    behind = (n for k in range(last, count) for n in _block(group, Number(k), k))
    return (*before, *steady, *behind)


def _part(member: Member, block: int, rows: int) -> tuple[int, int]:
    """Return how many rows are missing where a block begins, and how many it has."""
    place = block * rows - member.shift
    start, end = max(place, 0), min(place + rows, member.rows)
    return start - place, max(0, end - start)


def _block(group: Group, block: Number | Name, like: int) -> tuple[HostNode, ...]:
    """Return the sweeps of a block; ``like``: the number of one with the same rows."""
    found: list[HostNode] = []
    for member in group.members:
        skipped, rows = _part(member, like, group.rows)
        if rows:
            number = block.value * group.rows if isinstance(block, Number) else 0
            terms = [(1, Number(number + skipped - member.shift))]
            first = sum_of(terms if isinstance(block, Number) else [(group.rows, block), *terms])
            found.append(member.strip(first, rows))
    return tuple(found)
