"""An md_hom as a nest: one work-item per kept point, its reductions as loops inside, one after another.

``y = md_hom(f, (++, +)) (W, x)``  becomes  ``for all i: acc = 0; for j: acc = acc + f(...); y[i] = acc``.

The form without any decision: it exists for every md_hom, does no more than is written, and is what other
schedules are compared with. Where the output view loses points (a histogram), one work-item does everything
but for kept dimensions whose points have elements of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from polyloom.diagnostics import Unsupported, error
from polyloom.ir.expressions import (
    Compare,
    CompareOp,
    Constant,
    Expression,
    Iterator,
    Read,
    Select,
    walk,
)
from polyloom.ir.host import Assignment, Buffer, Combiner, Index, MdHom, Nest, Order, Role, View
from polyloom.ir.inequalities import conjunction, conjuncts
from polyloom.ir.rebuild import rebuilt
from polyloom.ir.types import ElementType
from polyloom.mdh.tree.ranges import end_of, least
from polyloom.polyhedra.loops.tree import (
    Branch,
    Instance,
    IntExpression,
    Loop,
    Name,
    Number,
    Operation,
    Part,
    Tree,
    loop_over,
    names_in,
    replace_name,
)

_FLAG = ElementType.INT32


def plain_nest(node: MdHom) -> Nest:
    """Return a nest that does what an md_hom does.

    Errors: ``Unsupported`` for a finishing map of a computed output index.
    """
    builder = _Builder(node)
    body = builder.scatter() if builder.scatters else builder.gather()
    parallel = builder.apart if builder.scatters else builder.parallel
    return Nest(
        name=node.name,
        iterators=tuple(builder.kept_name(k) for k in parallel),
        extents=tuple(node.extents[k] for k in parallel),
        body=body,
        assignments=tuple(builder.assignments),
        private=tuple(builder.private.values()),
        span=node.span,
    )


def term_names(node: MdHom) -> tuple[str, ...]:
    """Return for each output what ``plain_nest`` calls the assignment of its term; none where it is repeated.

    Prefixes that start anew at each point compute terms of earlier points again.
    """
    if _Builder(node).anew:
        return ()
    return _term_names(node)


def _term_names(node: MdHom) -> tuple[str, ...]:
    if len(node.terms) == 1:
        return (node.name,)
    return tuple(f"{node.name}_term{o}" for o in range(len(node.terms)))


@dataclass(frozen=True)
class _Level:
    """Consecutive reduced dimensions with one combiner, and the variables that they combine into."""

    combiner: Combiner | None
    dimensions: tuple[int, ...]
    number: int


class _Builder:
    """Collects assignments and private variables while the body is made."""

    def __init__(self, node: MdHom) -> None:
        self.node = node
        self.assignments: list[Assignment] = []
        self.private: dict[str, Buffer] = {}

    def dimensions(self, *orders: Order) -> tuple[int, ...]:
        return tuple(k for k, o in enumerate(self.node.combine) if o.order in orders)

    @property
    def parallel(self) -> tuple[int, ...]:
        """``++`` dimensions; prefix dimensions too where each of their points starts anew."""
        kept = self.dimensions(Order.CONCATENATE)
        return kept if self.running is not None else tuple(sorted((*kept, *self.dimensions(Order.PREFIX))))

    @cached_property
    def running(self) -> int | None:
        """The prefix dimension that is walked with a running result: the only one, outside all reductions."""
        prefix = self.dimensions(Order.PREFIX)
        reduced = self.dimensions(Order.POINTWISE)
        return prefix[0] if len(prefix) == 1 and not any(k < prefix[0] for k in reduced) else None

    @property
    def scatters(self) -> bool:
        """Whether different points of reduced dimensions may write different elements."""
        reduced = self.dimensions(Order.POINTWISE, Order.SERIAL)
        indices = [index for view in self.node.outputs for index in view.indices]
        return any(not isinstance(i, Index) or any(i.coefficients[k] for k in reduced) for i in indices)

    @cached_property
    def apart(self) -> tuple[int, ...]:
        """``++`` dimensions each of whose points has elements of its own of all that is written."""
        views = (*self.node.outputs, *self.node.inputs)
        written = [v for v in views if v.buffer in {out.buffer for out in self.node.outputs}]
        return tuple(
            k
            for k in self.dimensions(Order.CONCATENATE)
            if len({_places(v, k) for v in written}) == 1 and _places(written[0], k)
        )

    @property
    def outermost(self) -> Combiner | None:
        return next((o.combiner for o in self.node.combine if o.combiner is not None), None)

    def variable(self, name: str, kind: ElementType) -> View:
        """Add a private variable; no user's name has an apostrophe."""
        unique = f"{name}'"
        self.private[unique] = Buffer(name=unique, type=kind, shape=(), role=Role.LOCAL)
        return View(unique, ())

    def outputs(self, name: str, kinds: Sequence[ElementType]) -> tuple[View, ...]:
        """Return a variable for each output."""
        single = len(kinds) == 1
        return tuple(self.variable(name if single else f"{name}{o}", k) for o, k in enumerate(kinds))

    def assign(
        self,
        target: View,
        value: Expression,
        reads: Sequence[View] = (),
        condition: Expression | None = None,
        points: Sequence[IntExpression] | None = None,
        term: int | None = None,
    ) -> Instance:
        """Add an assignment over all iterators and return its instance at the current point.

        Its reads are the inputs, at the positions that they have, and then ``reads``. ``term``: the output
        whose term it brings in.
        """
        names = _term_names(self.node)
        name = f"{self.node.name}_{len(self.assignments)}" if term is None else names[term]
        iterators = self.node.iterators
        reads = (*self.node.inputs, *reads)
        self.assignments.append(
            Assignment(
                name=name, iterators=iterators, target=target, reads=reads, value=value, condition=condition
            )
        )
        here = tuple(Name(i) for i in iterators) if points is None else tuple(points)
        return Instance(name, here)

    # -- gathering: every output element belongs to one kept point

    def gather(self) -> Tree:
        """Return the body for one kept point."""
        levels = self._levels()
        body = self._at_kept_point(levels)
        for k in reversed(self.dimensions(Order.SERIAL)):
            body = (self._loop(k, body),)
        return body

    def _levels(self) -> tuple[_Level, ...]:
        """Group reduced dimensions, outermost first; a prefix dimension that starts anew is reduced too."""
        levels: list[_Level] = []
        for k, operator in enumerate(self.node.combine):
            if operator.combiner is None or k == self.running:
                continue
            if levels and levels[-1].combiner == operator.combiner:
                levels[-1] = _Level(operator.combiner, (*levels[-1].dimensions, k), levels[-1].number)
            else:
                levels.append(_Level(operator.combiner, (k,), len(levels)))
        return tuple(levels)

    def _at_kept_point(self, levels: Sequence[_Level]) -> Tree:
        if self.running is None:
            if not levels:
                return self._mapped()
            result = _Result(self, levels[0].combiner, "result")
            start = self._started(result)
            return self._if_written((*start, *self._reduced(levels, result), *self._stored(result)))
        return self._scanned(levels)

    def _scanned(self, levels: Sequence[_Level]) -> Tree:
        """Return a loop over the prefix dimension that stores a running result at each of its points."""
        assert self.running is not None
        combiner = self.node.combine[self.running].combiner
        running = _Result(self, combiner, "running")
        inner = self._combined_points(levels, running)
        total = running
        also: Tree = ()
        if self._starts_once():
            body = self._loop(self.running, (*inner, *self._stored(running)))
            return (*self._if_any_point(self._started(running, at_start=True)), body)
        if any(e is not None for e in self.node.initial):
            total = _Result(self, combiner, "result")
            also = (*self._started(total), *total.combine(running.values, running.flag))
        step = (*inner, *self._if_written((*also, *self._stored(total))))
        return (*running.empty(), self._loop(self.running, step))

    def _if_any_point(self, body: Tree) -> Tree:
        """Return what is only done where the running dimension has a point."""
        assert self.running is not None
        extent = self.node.extents[self.running]
        if isinstance(extent, Number):
            return body if extent.value > 0 else ()
        return (Branch(Operation("<", (Number(0), extent)), body, ()),)

    def _starts_once(self) -> bool:
        """Whether what a scan starts from is the same at all of its points, and there wherever one is."""
        known = [e for e in self.node.initial if e is not None]
        if self.node.written is not None or len(known) < len(self.node.initial):
            return False
        parts = [part for e in known for part in walk(e)]
        views = [self.node.inputs[part.position] for part in parts if isinstance(part, Read)]
        iterators = [part.dimension for part in parts if isinstance(part, Iterator)]
        return self.running not in iterators and not any(self._follows(view) for view in views)

    def _follows(self, view: View) -> bool:
        """Whether the running dimension, or data, may move a view."""
        assert self.running is not None
        return any(not isinstance(i, Index) or i.coefficients[self.running] for i in view.indices)

    def _combined_points(self, levels: Sequence[_Level], into: _Result) -> Tree:
        """Combine what the inner levels give at one point into ``into``."""
        if not levels:
            return self._guarded(into.combine_term())
        if levels[0].combiner == into.combiner:
            return self._reduced(levels, into)
        result = _Result(self, levels[0].combiner, f"part{levels[0].number}")
        inner = (*result.empty(), *self._reduced(levels, result))
        return (*inner, *into.combine(result.values, result.flag))

    def _reduced(self, levels: Sequence[_Level], into: _Result) -> Tree:
        body = self._combined_points(levels[1:], into)
        for k in reversed(levels[0].dimensions):
            body = (self._loop(k, body),)
        return body

    def _loop(self, k: int, body: Tree) -> Part:
        """Return a loop over a dimension; one of a prefix that starts anew ends at the kept point."""
        iterator = self.node.iterators[k]
        if k in self.anew:
            end = Operation("<=", (Name(iterator), Name(self.kept_name(k))))
            return Loop(iterator=iterator, start=Number(0), condition=end, step=Number(1), body=body)
        return loop_over(iterator, self.node.extents[k], body)

    def _guarded(self, body: Tree) -> Tree:
        return body if self.node.guard is None else (Branch(self.node.guard, body, ()),)

    def _started(self, result: _Result, *, at_start: bool = False) -> Tree:
        """Return what a reduction starts from: initial values, neutral elements, or nothing.

        ``at_start``: at the first point of the running dimension.
        """
        if all(e is None for e in self.node.initial):
            return result.empty()
        pairs = zip(result.values, self.node.initial, result.neutral, strict=True)
        values = [(target, e if e is not None else neutral) for target, e, neutral in pairs]
        here = self._kept(at_start=at_start)
        instances = [self.assign(t, v, points=here) for t, v in values if v is not None]
        return (*instances, *result.present())

    def _kept(self, *, at_start: bool = False) -> tuple[IntExpression, ...]:
        """Return the current kept point: reduced dimensions are 0, and ``at_start`` the running one too."""
        reduced = {*self.dimensions(Order.POINTWISE), *((self.running,) if at_start else ())}
        names = enumerate(map(self.kept_name, range(len(self.node.iterators))))
        return tuple(Number(0) if k in reduced else Name(name) for k, name in names)

    def kept_name(self, k: int) -> str:
        """Return the iterator of a kept dimension; a prefix that starts anew has another one inside."""
        return f"{self.node.iterators[k]}'" if k in self.anew else self.node.iterators[k]

    @property
    def anew(self) -> tuple[int, ...]:
        """Prefix dimensions each of whose points starts anew."""
        return self.dimensions(Order.PREFIX) if self.running is None and not self.scatters else ()

    def _mapped(self) -> Tree:
        """Return the body of an md_hom of ``++`` alone: terms are stored as they are."""
        kinds = [t.type for t in self.node.terms]
        if len(kinds) == 1 and self.node.finish[0] is None:
            instances: Tree = (self.assign(self.node.outputs[0], self.node.terms[0], term=0),)
            return self._guarded(self._if_written(instances))
        values = self.outputs("value", kinds)
        return self._guarded(self._if_written((*self.computed(values), *self._stores(values, None))))

    def computed(self, into: Sequence[View]) -> Tree:
        """Return the assignments of all terms."""
        pairs = enumerate(zip(into, self.node.terms, strict=True))
        return tuple(self.assign(view, term, term=o) for o, (view, term) in pairs)

    def _if_written(self, body: Tree) -> Tree:
        """Return what is only done where a result is stored: what it starts from may not exist elsewhere."""
        condition = self.node.written
        for k in self.anew:
            condition = condition and replace_name(condition, self.node.iterators[k], Name(self.kept_name(k)))
        return body if condition is None else (Branch(condition, body, ()),)

    def _stored(self, result: _Result) -> Tree:
        return self._stores(result.values, result.flag)

    def _stores(self, values: Sequence[View], flag: View | None) -> Tree:
        """Finish the results and store them, where there are any.

        All finishing maps are worked out before the first store, for they may read what is stored.
        """
        reads = (*values, *((flag,) if flag else ()))
        count = len(self.node.inputs)
        there = _is_set(count + len(values)) if flag else None
        finals: list[View] = list(values)
        before: list[Instance] = []
        for o, finish in enumerate(self.node.finish):
            if finish is not None:
                finals[o] = self.variable(f"finished{o}", finish.type)
                before.append(self.assign(finals[o], finish, reads, there, self._kept()))
        after = []
        for view, final in zip(self.node.outputs, finals, strict=True):
            kind = self.private[final.buffer].type
            asked = _is_set(count + 1) if flag else None
            shown = (final, flag) if flag else (final,)
            after.append(self.assign(view, Read(count, kind), shown, asked, self._kept()))
        return (*before, *after)

    # -- scattering: points meet in elements that data or reduced dimensions choose

    def scatter(self) -> Tree:
        """Return the body for all points, in lexicographic order: element = element op term."""
        if any(f is not None for f in self.node.finish):
            message = f"`{self.node.name}` has a finishing map of elements that are chosen by data"
            raise Unsupported(error("opencl-scatter", message, self.node.span))
        combiner = self.outermost
        into = self.node.outputs
        if combiner is None:
            return self._everywhere(self.computed(into))
        begin = () if self._starts_from_itself() else self._everywhere(self._first_values(combiner))
        result = _Result(self, combiner, "element", into)
        return (*begin, *self._everywhere(result.combine_term()))

    def _starts_from_itself(self) -> bool:
        """Whether each element starts from what it holds."""
        return all(
            isinstance(e, Read) and self.node.inputs[e.position] == view
            for e, view in zip(self.node.initial, self.node.outputs, strict=True)
        )

    def _first_values(self, combiner: Combiner) -> Tree:
        found = []
        for o, view in enumerate(self.node.outputs):
            value = self.node.initial[o] or _neutral(combiner, o)
            if value is None:
                message = f"`{combiner.name}` has no neutral element to start `{view.buffer}` from"
                raise Unsupported(error("opencl-scatter", message, self.node.span))
            found.append(self.assign(view, value))
        return tuple(found)

    def _everywhere(self, body: Tree) -> Tree:
        """Return loops over all points; conditions end loops, or stand as far outside as they can."""
        iterators, asked = self.node.iterators, [*conjuncts(self.node.guard), *conjuncts(self.node.written)]
        for k in reversed(range(len(iterators))):
            if k in self.apart:
                continue
            here = [c for c in asked if iterators[k] in names_in(c)]
            asked = [c for c in asked if c not in here]
            ends = {c: end for c in here if (end := end_of(c, iterators[k])) is not None}
            body = _where([c for c in here if c not in ends], body)
            body = (loop_over(iterators[k], least((self.node.extents[k], *ends.values())), body),)
        return _where(asked, body)


def _where(conditions: Sequence[IntExpression], body: Tree) -> Tree:
    """Return a tree where all of these hold."""
    condition = conjunction(conditions)
    return body if condition is None else (Branch(condition, body, ()),)


def _places(view: View, k: int) -> tuple[tuple[int, Index], ...]:
    """Return the indices of a view that dimension ``k`` alone moves, and where they are."""
    return tuple(
        (at, index)
        for at, index in enumerate(view.indices)
        if isinstance(index, Index) and [d for d, c in enumerate(index.coefficients) if c] == [k]
    )


class _Result:
    """Variables that a combiner combines into, and whether anything is in them yet.

    There is a flag only where the combiner has no neutral element.
    """

    def __init__(
        self, builder: _Builder, combiner: Combiner | None, name: str, values: Sequence[View] | None = None
    ) -> None:
        assert combiner is not None
        self.builder, self.combiner, self.name = builder, combiner, name
        kinds = [r.type for r in combiner.results]
        self.kinds = kinds
        self.values = tuple(values) if values is not None else builder.outputs(name, kinds)
        self.neutral = tuple(_neutral(combiner, o) for o in range(len(kinds)))
        self.points = self._nowhere() if values is None else None
        """Where variables are combined: they are the same at every point, elements are not."""
        needs_flag = values is None and any(n is None for n in self.neutral)
        self.flag = builder.variable(f"{name}_any", _FLAG) if needs_flag else None

    def empty(self) -> Tree:
        """Return the assignments for the result of no points."""
        if self.flag is not None:
            return (self.builder.assign(self.flag, Constant(0, _FLAG), points=self._nowhere()),)
        pairs = zip(self.values, self.neutral, strict=True)
        return tuple(self.builder.assign(v, n, points=self._nowhere()) for v, n in pairs if n is not None)

    def present(self) -> Tree:
        """Return the assignment that says that there is something."""
        if self.flag is None:
            return ()
        return (self.builder.assign(self.flag, Constant(1, _FLAG), points=self._nowhere()),)

    def _nowhere(self) -> tuple[IntExpression, ...]:
        return tuple(Number(0) for _ in self.builder.node.iterators)

    def combine_term(self) -> Tree:
        """Combine the term of the current point into the variables."""
        node, first = self.builder.node, len(self.builder.node.inputs)
        if len(self.values) == 1 and self.flag is None:
            operands = [Read(first, self.kinds[0]), node.terms[0]]
            value = _substituted(self.combiner.results[0], operands)
            return (self.builder.assign(self.values[0], value, self.values, term=0),)
        terms = self.builder.outputs(f"{self.name}_term", self.kinds)
        return (*self.builder.computed(terms), *self.combine(terms, None))

    def combine(self, values: Sequence[View], flag: View | None) -> Tree:
        """Combine other variables into these; ``flag`` tells whether there is anything in them."""
        assign, first, count = self.builder.assign, len(self.builder.node.inputs), len(self.values)
        own = (self.flag,) if self.flag else ()
        other = (flag,) if flag else ()
        reads = (*self.values, *values, *own, *other)
        operands = [Read(first + k, kind) for k, kind in enumerate((*self.kinds, *self.kinds))]
        condition = _is_set(first + len(reads) - 1) if flag else None
        asked = _is_set(first + 1) if flag else None
        news = self.builder.outputs(f"{self.name}_new", self.kinds)
        instances = []
        for o, new in enumerate(news):
            value = _substituted(self.combiner.results[o], operands)
            if self.flag is not None:
                value = Select(_is_set(first + 2 * count), value, operands[count + o])
            instances.append(assign(new, value, reads, condition, self.points))
        for new, old, kind in zip(news, self.values, self.kinds, strict=True):
            instances.append(assign(old, Read(first, kind), (new, *other), asked, self.points))
        if self.flag is not None:
            set_ = _is_set(first) if flag else None
            instances.append(assign(self.flag, Constant(1, _FLAG), other, set_, self.points))
        return tuple(instances)


def _is_set(position: int) -> Expression:
    return Compare(CompareOp.NE, Read(position, _FLAG), Constant(0, _FLAG))


def _neutral(combiner: Combiner, output: int) -> Expression | None:
    value = combiner.neutral[output]
    return None if value is None else Constant(value, combiner.results[output].type)


def _substituted(expression: Expression, values: Sequence[Expression]) -> Expression:
    """Return an expression with ``values[k]`` in place of read number k."""
    return rebuilt(expression, lambda e: values[e.position] if isinstance(e, Read) else None)
