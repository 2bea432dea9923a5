"""Scans and histograms in parallel: a dimension is cut into chunks, whose results are brought together.

A scan: ``sums[c]`` = what chunk c combines to; ``before[c]`` = what the chunks up to c combine to; then each
chunk walks through its points, starting from ``before[c - 1]``.
A histogram: each chunk has bins of its own; then the bins are combined, bin by bin. Of open
sizes the number of chunks is known: they take turns.

Each step is an md_hom or a nest again, so there is nothing new to emit. On a processor the steps of a
histogram stay in the program (``with_own_bins``); there a scan is one thread's, in vectors.
Source: md_poly's operators ``ps`` and ``pw``; the papers measured neither scans nor histograms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from polyloom.ir.expressions import (
    Binary,
    BinaryOp,
    Compare,
    CompareOp,
    Constant,
    Expression,
    Iterator,
    Read,
    Select,
)
from polyloom.ir.host import (
    Buffer,
    CombineOperator,
    Combiner,
    HostNode,
    HostProgram,
    Index,
    MdHom,
    Order,
    Role,
    View,
)
from polyloom.ir.inequalities import conjunction, conjuncts
from polyloom.ir.naming import fresh
from polyloom.ir.rebuild import read_positions, rebuilt
from polyloom.ir.types import ElementType
from polyloom.mdh.device.devices import DeviceKind, DeviceModel
from polyloom.mdh.lowering.kernels.nodes import nest_kernels
from polyloom.mdh.lowering.launch import BufferArgument, Kernel, Launch, Temporary, TemporaryArgument
from polyloom.mdh.lowering.sequential_nest import plain_nest
from polyloom.mdh.schedule.addresses import known, names_used
from polyloom.mdh.schedule.tiling import has_tiles
from polyloom.polyhedra.loops.tree import (
    IntExpression,
    Name,
    Number,
    Operation,
    names_in,
    replace_name,
    sum_of,
    with_leaves,
)

SHORTEST = 1 << 14
"""Points of a dimension for which chunks are worth their kernels."""

MOST_BINS = 1 << 16
"""Elements of a histogram of which each chunk may have its own."""

OPEN_CHUNKS = 16
"""Chunks at most of open extents: their number, and with it the results, does not depend on threads."""

BLOCK = 1 << 12
"""Points of the innermost dimension that a chunk of open extents takes in one turn."""

LEAST_COUNTED = 1 << 16
"""Points of open extents for which chunks have bins: of 20,000 one thread counts as fast as two."""

FEW_BINS = LEAST_COUNTED // 2
"""Bins of all chunks of open extents: with as many points there is more to count than to bring together."""

LEAST_FOR_BIN = 4
"""Points for each bin of each chunk: bins are emptied before, and combined behind."""

Emit = Callable[[MdHom, HostProgram], Launch]
"""Emits an md_hom that is one step of a scan or histogram."""

_INDEX = ElementType.INT64


def emit_chunks(hom: MdHom, program: HostProgram, device: DeviceModel, emit: Emit) -> Launch | None:
    """Return the kernels of a scan or histogram in chunks; None where that cannot be or is not worth it."""
    cut = _Cut.of(hom, program, device, chunk_count(device))
    if cut is None:
        return None
    if cut.is_scan:
        return cut.scan(emit)
    bins, steps = cut.histogram()
    around = cut.with_buffers((bins,))

    def launch(step: MdHom) -> Launch:
        alone = not has_tiles(step)
        return nest_kernels(plain_nest(step), around, device, alone=True) if alone else emit(step, around)

    return Launch(
        tuple(kernel for step in steps for kernel in cut.launched(launch(step), (bins,))),
        _temporaries((bins,)),
    )


def with_own_bins(program: HostProgram, device: DeviceModel, *, of_many: bool = False) -> HostProgram:
    """Return the program with histograms of which each unit of the device counts a part in bins of its own.

    Keeps true: results, floats of free order aside. Histograms stay that are small, or of few points a bin.
    ``of_many``: open extents, of parameters alone, have many points.
    """
    if device.compute_units == 1:
        return program
    parameters = {p.name for p in program.parameters}
    around, known_steps = program, dict[HostNode, tuple[HostNode, ...]]()

    def cut_of(node: HostNode) -> _Cut | None:
        if not isinstance(node, MdHom):
            return None
        names = {name for extent in node.extents for name in names_in(extent)}
        if names:
            return _Cut.of_open(node, around, device) if of_many and names <= parameters else None
        cut = _Cut.of(node, around, device, device.compute_units)
        return None if cut is None or cut.is_scan else cut

    def steps(node: HostNode) -> tuple[HostNode, ...]:
        nonlocal around
        if node not in known_steps:
            cut = cut_of(node)
            if cut is None:
                return (node,)
            bins, known_steps[node] = cut.histogram()
            around = cut.with_buffers((bins,))
        return known_steps[node]

    body = with_leaves(program.body, steps)
    return program if around is program else replace(around, body=body)


def chunk_count(device: DeviceModel) -> int:
    """Return into how many chunks a dimension is cut: a few for each unit."""
    return device.compute_units * (4 if device.kind is DeviceKind.CPU else 64)


@dataclass(frozen=True)
class _Piece:
    """One of the iterators into which a dimension is cut: a step of it goes ``stride`` points ahead."""

    name: str
    extent: IntExpression
    stride: int


@dataclass(frozen=True, kw_only=True)
class _Cut:
    """An md_hom whose dimension ``d`` is cut in pieces: the first counts chunks, the others are inside.

    Chunks end where the dimension ends, some before they are full.
    """

    hom: MdHom
    program: HostProgram
    device: DeviceModel
    d: int
    pieces: tuple[_Piece, ...]

    @staticmethod
    def of(hom: MdHom, program: HostProgram, device: DeviceModel, most: int) -> _Cut | None:
        """Return how an md_hom is cut into ``most`` chunks, fewer of few points; None where it is not."""
        d = _scanned(hom) if _scanned(hom) is not None else _scattered(hom, program)
        extents = [known(n) for n in hom.extents]
        if d is None or any(n is None for n in extents) or _has_no_neutral(hom):
            return None
        n, others = extents[d] or 0, prod(e or 0 for k, e in enumerate(extents) if k != d)
        kept = prod(e or 0 for k, e in enumerate(extents) if hom.combine[k].order is Order.CONCATENATE)
        if n < 64 or n * others < SHORTEST or kept >= 4 * device.compute_units:
            return None
        length = -(-n // min(n, most))
        if _scanned(hom) is None and n * others < LEAST_FOR_BIN * -(-n // length) * _bins(hom, program):
            return None
        sizes: list[tuple[str, IntExpression, int]]
        sizes = [("chunk", Number(-(-n // length)), length), ("inside", Number(length), 1)]
        return _Cut(hom=hom, program=program, device=device, d=d, pieces=_pieces(hom, program, sizes))

    @staticmethod
    def of_open(hom: MdHom, program: HostProgram, device: DeviceModel) -> _Cut | None:
        """Return how a histogram of open extents is cut into a known number of chunks; None where it is not.

        Chunks take turns: at the points of an outer dimension, at blocks of the innermost one.
        """
        opens = [k for k, n in enumerate(hom.extents) if known(n) is None]
        if not opens or _scattered(hom, program) is None or _has_no_neutral(hom):
            return None
        d, count = opens[0], min(OPEN_CHUNKS, FEW_BINS // max(1, _bins(hom, program)))
        if count < 2:
            return None
        block = 1 if d + 1 < len(hom.extents) else BLOCK
        points = count * block
        turns = Operation("/", (sum_of([(1, hom.extents[d]), (1, Number(points - 1))]), Number(points)))
        sizes: list[tuple[str, IntExpression, int]] = [
            ("chunk", Number(count), block),
            ("turn", turns, points),
        ]
        if block > 1:
            sizes.append(("inside", Number(block), 1))
        return _Cut(hom=hom, program=program, device=device, d=d, pieces=_pieces(hom, program, sizes))

    @property
    def is_scan(self) -> bool:
        """Whether the cut dimension is a prefix dimension."""
        return self.hom.combine[self.d].order is Order.PREFIX

    @property
    def combiner(self) -> Combiner:
        """The operator."""
        return next(o.combiner for o in self.hom.combine if o.combiner is not None)

    # The cut dimension as two: the chunk, and the place in it

    def index(self, index: Index | Expression) -> Index | Expression:
        """Return an index over the chunk and the place in it."""
        if not isinstance(index, Index):
            return self.expression(index)
        c = index.coefficients
        strides = (c[self.d] * piece.stride for piece in self.pieces)
        return Index((*c[: self.d], *strides, *c[self.d + 1 :]), index.offset)

    def view(self, view: View) -> View:
        """Return a view over the chunk and the place in it."""
        return replace(view, indices=tuple(map(self.index, view.indices)))

    def expression(self, e: Expression) -> Expression:
        """Return a scalar function over the chunk and the place in it."""
        return rebuilt(e, self._moved)

    def _moved(self, e: Expression) -> Expression | None:
        if not isinstance(e, Iterator):
            return None
        if e.dimension != self.d:
            return Iterator(e.dimension + (e.dimension > self.d) * (len(self.pieces) - 1), e.type)
        found: Expression | None = None
        for k, piece in enumerate(self.pieces):
            part: Expression = Iterator(self.d + k, e.type)
            if piece.stride != 1:
                part = Binary(BinaryOp.MULTIPLY, part, Constant(piece.stride, e.type))
            found = part if found is None else Binary(BinaryOp.ADD, found, part)
        return found

    @property
    def position(self) -> IntExpression:
        """The point of the cut dimension."""
        return sum_of([(piece.stride, Name(piece.name)) for piece in self.pieces])

    @property
    def count(self) -> IntExpression:
        """How many chunks there are."""
        return self.pieces[0].extent

    @property
    def names(self) -> tuple[str, ...]:
        """The iterators."""
        return tuple(piece.name for piece in self.pieces)

    def condition(self, given: IntExpression | None) -> IntExpression | None:
        """Return a condition over the chunk and the place in it."""
        return None if given is None else replace_name(given, self.hom.iterators[self.d], self.position)

    def inside(self, given: IntExpression | None) -> IntExpression | None:
        """Return ``given`` where the point exists: chunks end where the dimension ends."""
        n = self.hom.extents[self.d]
        exists = Operation("<", (self.position, n))
        is_full = known(n) == prod(known(piece.extent) or 0 for piece in self.pieces)
        return conjunction([*([] if is_full else [exists]), *conjuncts(self.condition(given))])

    def around(self, parts: tuple[object, ...], new: tuple[object, ...]) -> tuple[object, ...]:
        """Put entries in place of the cut dimension's."""
        return (*parts[: self.d], *new, *parts[self.d + 1 :])

    def split(self, inside: CombineOperator, **changes: object) -> MdHom:
        """Return the md_hom with a dimension for each piece in place of the cut one; chunks are kept."""
        hom = self.hom
        operators = (CombineOperator(Order.CONCATENATE), *(inside for _ in self.pieces[1:]))
        given: dict[str, object] = {
            "iterators": self.around(hom.iterators, self.names),
            "extents": self.around(hom.extents, tuple(piece.extent for piece in self.pieces)),
            "combine": self.around(hom.combine, operators),
            "inputs": tuple(map(self.view, hom.inputs)),
            "terms": tuple(map(self.expression, hom.terms)),
            "guard": self.inside(hom.guard),
            **changes,
        }
        return replace(hom, **given)  # type: ignore[arg-type]

    # Buffers of a launch

    def buffer(self, name: str, o: int, shape: tuple[IntExpression, ...]) -> Buffer:
        """Return a temporary for output ``o``."""
        kind = self.combiner.results[o].type
        kind = ElementType.FLOAT32 if kind is ElementType.FLOAT16 else kind
        taken = {*self.hom.iterators, *(b.name for b in self.program.buffers), *self.names}
        return Buffer(name=fresh(f"{name}_{o}", taken), type=kind, shape=shape, role=Role.LOCAL)

    def with_buffers(self, buffers: tuple[Buffer, ...]) -> HostProgram:
        """Return the program with temporaries among its buffers."""
        return replace(self.program, buffers=(*self.program.buffers, *buffers))

    def launched(self, launch: Launch, buffers: tuple[Buffer, ...]) -> tuple[Kernel, ...]:
        """Return kernels that take temporaries as such."""
        names = {b.name for b in buffers}
        return tuple(
            replace(
                kernel,
                arguments=tuple(
                    TemporaryArgument(a.buffer) if isinstance(a, BufferArgument) and a.buffer in names else a
                    for a in kernel.arguments
                ),
            )
            for kernel in launch.kernels
        )

    # Scans

    @property
    def kept(self) -> tuple[int, ...]:
        """The ``++`` dimensions of the uncut md_hom."""
        return tuple(k for k, o in enumerate(self.hom.combine) if o.order is Order.CONCATENATE)

    def scan(self, emit: Emit) -> Launch | None:
        """Return the three kernels of a scan."""
        outputs = range(len(self.hom.outputs))
        shape = (self.count, *(self.hom.extents[k] for k in self.kept))
        sums = tuple(self.buffer("sums", o, shape) for o in outputs)
        before = tuple(self.buffer("before", o, shape) for o in outputs)
        program, temporary = self.with_buffers((*sums, *before)), (*sums, *before)
        first = nest_kernels(plain_nest(self._sums(sums)), program, self.device, alone=True)
        second = emit(self._carries(sums, before), program)
        third = nest_kernels(plain_nest(self._walks(before)), program, self.device, alone=True)
        kernels = (
            *self.launched(first, temporary),
            *self.launched(second, temporary),
            *self.launched(third, temporary),
        )
        return Launch(kernels, (*_temporaries(temporary), *first.temporaries, *third.temporaries))

    def _at_chunk(self, buffer: Buffer, rank: int, offset: int = 0) -> View:
        """Return the element of a chunk, over the cut dimensions."""
        kept = [k + (k > self.d) for k in self.kept]
        indices = [Index(_unit(k, rank)) for k in kept]
        return View(buffer.name, (Index(_unit(self.d, rank), Number(offset)), *indices))

    def _sums(self, sums: tuple[Buffer, ...]) -> MdHom:
        rank, none = len(self.hom.extents) + 1, (None,) * len(sums)
        reduced = CombineOperator(Order.POINTWISE, self.hom.combine[self.d].combiner)
        return self.split(
            reduced,
            name=f"{self.hom.name}_sums",
            outputs=tuple(self._at_chunk(b, rank) for b in sums),
            initial=none,
            finish=none,
            written=None,
        )

    def _carries(self, sums: tuple[Buffer, ...], before: tuple[Buffer, ...]) -> MdHom:
        """Return the scan over chunks: few points, one after another."""
        rank, none = 1 + len(self.kept), (None,) * len(sums)
        everywhere = tuple(Index(_unit(k, rank)) for k in range(rank))
        plus = self.hom.combine[self.d]
        return MdHom(
            name=f"{self.hom.name}_before",
            iterators=(self.names[0], *(self.hom.iterators[k] for k in self.kept)),
            extents=(self.count, *(self.hom.extents[k] for k in self.kept)),
            inputs=tuple(View(b.name, everywhere) for b in sums),
            outputs=tuple(View(b.name, everywhere) for b in before),
            terms=tuple(Read(o, r.type) for o, r in enumerate(self.combiner.results)),
            combine=(plus, *(CombineOperator(Order.CONCATENATE) for _ in self.kept)),
            initial=none,
            finish=none,
        )

    def _walks(self, before: tuple[Buffer, ...]) -> MdHom:
        """Return the walk through every chunk, which starts from what is before it."""
        rank, hom = len(self.hom.extents) + 1, self.hom
        first = len(hom.inputs)
        views = tuple(self._at_chunk(b, rank, offset=-1) for b in before)
        shift = {first + o: first + len(before) + o for o in range(len(before))}
        chunk = Compare(CompareOp.GT, Iterator(self.d, _INDEX), Constant(0, _INDEX))
        carried: list[Expression] = []
        for o, (result, neutral) in enumerate(zip(self.combiner.results, self.combiner.neutral, strict=True)):
            assert neutral is not None
            carried.append(Select(chunk, Read(first + o, result.type), Constant(neutral, result.type)))
        starts = [None if e is None else self.expression(e) for e in hom.initial]
        return self.split(
            hom.combine[self.d],
            inputs=(*map(self.view, hom.inputs), *views),
            outputs=tuple(map(self.view, hom.outputs)),
            initial=self._started(starts, carried),
            finish=tuple(None if e is None else _shifted(self.expression(e), shift) for e in hom.finish),
            written=self.inside(hom.written),
        )

    def _started(self, starts: list[Expression | None], carried: list[Expression]) -> tuple[Expression, ...]:
        """Return what each point of a chunk starts from: the initial value, then what is before the chunk."""
        if all(e is None for e in starts):
            return tuple(carried)
        results = self.combiner.results
        neutral = [
            Constant(0 if n is None else n, r.type)
            for n, r in zip(self.combiner.neutral, results, strict=True)
        ]
        left = [n if e is None else e for e, n in zip(starts, neutral, strict=True)]
        operands = [*left, *carried]
        return tuple(
            rebuilt(r, lambda e: operands[e.position] if isinstance(e, Read) else None) for r in results
        )

    # Histograms

    def histogram(self) -> tuple[Buffer, tuple[MdHom, MdHom, MdHom]]:
        """Return the bins of all chunks, and the steps: empty bins, chunks, bins combined."""
        (view,) = self.hom.outputs
        bins = self.buffer("bins", 0, (self.count, *self.program.buffer(view.buffer).shape))
        return bins, (self._empty(bins), self._counted(bins), self._together(bins))

    def _everywhere(self, bins: Buffer) -> tuple[tuple[str, ...], tuple[Index, ...]]:
        rank = len(bins.shape)
        names = tuple(f"{self.names[0]}_bin_{k}" if k else self.names[0] for k in range(rank))
        return names, tuple(Index(_unit(k, rank)) for k in range(rank))

    def _empty(self, bins: Buffer) -> MdHom:
        names, everywhere = self._everywhere(bins)
        (neutral,), (result,) = self.combiner.neutral, self.combiner.results
        assert neutral is not None
        plus = tuple(CombineOperator(Order.CONCATENATE) for _ in names)
        term, out = Constant(neutral, result.type), View(bins.name, everywhere)
        name = f"{self.hom.name}_empty"
        return MdHom(
            name=name,
            iterators=names,
            extents=bins.shape,
            inputs=(),
            outputs=(out,),
            terms=(term,),
            combine=plus,
            initial=(None,),
            finish=(None,),
        )

    def _counted(self, bins: Buffer) -> MdHom:
        """Return the chunks, each with its own bins."""
        hom, (view,), (start,) = self.hom, self.hom.outputs, self.hom.initial
        assert isinstance(start, Read)
        counts = conjunction(list(dict.fromkeys((*conjuncts(hom.guard), *conjuncts(hom.written)))))
        chunk = Index(_unit(self.d, len(hom.extents) + len(self.pieces) - 1))
        own = View(bins.name, (chunk, *self.view(view).indices))
        inputs = [own if each == view else self.view(each) for each in hom.inputs]
        return self.split(
            hom.combine[self.d],
            name=f"{hom.name}_chunks",
            inputs=tuple(inputs),
            outputs=(own,),
            guard=self.inside(counts),
            written=None,
        )

    def _together(self, bins: Buffer) -> MdHom:
        """Return the combination of all chunks' bins with what the buffer holds."""
        names, _ = self._everywhere(bins)
        rank = len(names)
        (view,), (result,) = self.hom.outputs, self.combiner.results
        everywhere = tuple(Index(_unit(k, rank)) for k in range(rank - 1))
        parts = View(bins.name, (Index(_unit(rank - 1, rank)), *everywhere))
        held = View(view.buffer, everywhere)
        plus = tuple(CombineOperator(Order.CONCATENATE) for _ in everywhere)
        combine = (*plus, CombineOperator(Order.POINTWISE, self.combiner))
        extents = (*bins.shape[1:], bins.shape[0])
        name, term, start = f"{self.hom.name}_together", Read(0, result.type), Read(1, result.type)
        return MdHom(
            name=name,
            iterators=names,
            extents=extents,
            inputs=(parts, held),
            outputs=(held,),
            terms=(term,),
            combine=combine,
            initial=(start,),
            finish=(None,),
        )


def _pieces(
    hom: MdHom, program: HostProgram, sizes: Sequence[tuple[str, IntExpression, int]]
) -> tuple[_Piece, ...]:
    """Return pieces of new names. ``sizes``: what each is called, its extent and its stride."""
    taken = {*hom.iterators, *(b.name for b in program.buffers), *_names(hom, program)}
    found: list[_Piece] = []
    for name, extent, stride in sizes:
        found.append(_Piece(fresh(name, {*taken, *(piece.name for piece in found)}), extent, stride))
    return tuple(found)


def _scanned(hom: MdHom) -> int | None:
    """Return the prefix dimension of a scan that can be cut: the only one, the only operator outside it."""
    orders = [o.order for o in hom.combine]
    if orders.count(Order.PREFIX) != 1 or Order.SERIAL in orders:
        return None
    d = orders.index(Order.PREFIX)
    if Order.POINTWISE in orders or not _reads_no_result(hom):
        return None
    return d if all(isinstance(i, Index) for view in hom.outputs for i in view.indices) else None


def _reads_no_result(hom: MdHom) -> bool:
    """Whether no output is also read: chunks are read twice."""
    written = {view.buffer for view in hom.outputs}
    starts = {k for e in (*hom.initial, *hom.finish) if e is not None for k in _positions(e)}
    used = {k for e in hom.terms for k in _positions(e)} | starts
    return not any(hom.inputs[k].buffer in written for k in used if k < len(hom.inputs))


def _scattered(hom: MdHom, program: HostProgram) -> int | None:
    """Return the longest reduced dimension of a histogram whose bins start from what they hold."""
    reduced = [d for d, o in enumerate(hom.combine) if o.order is Order.POINTWISE]
    if len(hom.outputs) != 1 or len(reduced) != len(hom.combine):
        return None
    (view,), (start,), (finish,) = hom.outputs, hom.initial, hom.finish
    if len({o.combiner for o in hom.combine}) != 1 or finish is not None:
        return None
    if not (isinstance(start, Read) and hom.inputs[start.position] == view):
        return None
    combiner = hom.combine[0].combiner
    small = _bins(hom, program) <= MOST_BINS
    touched = any(hom.inputs[k].buffer == view.buffer for e in hom.terms for k in _positions(e))
    if not small or touched or combiner is None or not combiner.commutative:
        return None
    return max(reduced, key=lambda d: known(hom.extents[d]) or 0)


def _bins(hom: MdHom, program: HostProgram) -> int:
    """Return the elements of a histogram; more than there may be where that is not known."""
    sizes = [known(n) for n in program.buffer(hom.outputs[0].buffer).shape]
    return MOST_BINS + 1 if None in sizes else prod(n or 0 for n in sizes)


def _positions(e: Expression) -> frozenset[int]:
    return frozenset(read_positions(e))


def _has_no_neutral(hom: MdHom) -> bool:
    return any(n is None for o in hom.combine if o.combiner is not None for n in o.combiner.neutral)


def _names(hom: MdHom, program: HostProgram) -> set[str]:
    return set(names_used(hom, program.by_name))


def _unit(k: int, rank: int) -> tuple[int, ...]:
    return tuple(int(d == k) for d in range(rank))


def _shifted(e: Expression, positions: Mapping[int, int]) -> Expression:
    """Return a finishing map whose results have other positions."""

    def moved(part: Expression) -> Expression | None:
        if isinstance(part, Read) and part.position in positions:
            return Read(positions[part.position], part.type)
        return None

    return rebuilt(e, moved)


def _temporaries(buffers: tuple[Buffer, ...]) -> tuple[Temporary, ...]:
    return tuple(Temporary(b.name, b.type, Number(prod(known(n) or 1 for n in b.shape))) for b in buffers)
