"""Copies of what a cache tile reads, in local memory."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from polyloom.ir.types import ElementType
from polyloom.mdh.kernel.loads import LocalCopy
from polyloom.mdh.kernel.state import State, plus
from polyloom.mdh.print.values import load_vector_of, value_type
from polyloom.mdh.schedule.addresses import Access, row_length, scaled
from polyloom.mdh.schedule.copy_plan import CopyPlan, is_turned
from polyloom.polyhedra.loops.tree import IntExpression, Name, Number, product_of, sum_of

SQUARE = 4
"""Rows and columns of a square that turns in registers."""


def located(plan: CopyPlan, array: str, state: State) -> LocalCopy:
    """Return the copy as it is read in the cache tile at hand."""
    access, count = plan.access, len(state.hom.extents)
    strides = tuple(
        sum(step[d] * stride for step, stride in zip(access.steps, plan.strides, strict=True))
        for d in range(count)
    )
    backwards = [_goes_backwards(access, d) for d in range(count)]
    origins = tuple(plus(state.high[d], -1) if backwards[d] else state.low[d] for d in range(count))
    mixed = [d for d in range(count) if not backwards[d]]
    return LocalCopy(
        array=array,
        strides=strides,
        origins=origins,
        panel=plan.panel,
        rest=plan.rest,
        shift=_shift(plan, mixed, state),
    )


def _goes_backwards(access: Access, d: int) -> bool:
    """Whether a dimension goes backwards along all axes that it moves along."""
    steps = [step[d] for step in access.steps if step[d]]
    return bool(steps) and all(step < 0 for step in steps)


def _shift(plan: CopyPlan, forwards: Sequence[int], state: State) -> IntExpression:
    """Return how far the box begins before the points at the origins, along axes that go backwards."""
    terms: list[tuple[int, IntExpression]] = []
    for step, stride in zip(plan.access.steps, plan.strides, strict=True):
        for d in forwards:
            if step[d] < 0:
                last = plus(state.high[d], -1)
                terms += [(-step[d] * stride, last), (step[d] * stride, state.low[d])]
    return sum_of(terms)


def declaration(plan: CopyPlan, array: str) -> str:
    """Return the declaration of a copy."""
    aligned = "__attribute__((aligned(64)))"
    return f"__local {value_type(plan.element)} {array}[{plan.elements}] {aligned};"


def write_copy(state: State, plan: CopyPlan, array: str) -> None:
    """Write the loops that fill a copy."""
    name = state.signature.names[plan.access.buffer.name]
    state.lines.add(f"// {array}: what the tile reads of {name}")
    if state.facts.total_items > 1:
        _shared_copy(state, plan, array)
    elif plan.panel is not None:
        _copy_in_panels(state, plan, array)
    elif is_turned(plan):
        _copy_turned(state, plan, array)
    else:
        _copy_rows(state, plan, array)


def _length(state: State, plan: CopyPlan, axis: int) -> IntExpression:
    """Return how many elements along an axis the tile at hand reads."""
    terms: list[tuple[int, IntExpression]] = [(1, Number(1))]
    for d, step in enumerate(plan.access.steps[axis]):
        if step:
            terms += [(abs(step), state.high[d]), (-abs(step), state.low[d]), (-abs(step), Number(1))]
    return sum_of(terms)


def _origin(state: State, plan: CopyPlan) -> IntExpression:
    """Return the address of the first element of the tile's box."""
    terms: list[tuple[int, IntExpression]] = [(1, plan.access.base)]
    for axis, steps in enumerate(plan.access.steps):
        row = row_length(plan.access.buffer, axis)
        for d, step in enumerate(steps):
            start = state.low[d] if step > 0 else plus(state.high[d], -1)
            if step:
                terms.append((step, scaled(row, start)))
    return sum_of(terms)


def _variables(state: State, count: int) -> list[str]:
    return [state.namer.fresh(f"at_{k}") for k in range(count)]


def _source(state: State, plan: CopyPlan, at: list[str]) -> str:
    """Return the address of an element; ``at``: its place in the box per axis."""
    terms = [state.c(_origin(state, plan))]
    for axis, variable in enumerate(at):
        row = row_length(plan.access.buffer, axis)
        terms.append(variable if row == Number(1) else f"{variable} * ({state.c(row)})")
    return " + ".join(terms)


def _value(plan: CopyPlan, name: str, address: str, width: int) -> str:
    """Return the load of elements of the buffer."""
    return load_vector_of(name, address, plan.access.buffer.type, width)


def _copy_rows(state: State, plan: CopyPlan, array: str) -> None:
    """Copy row after row; vectors where rows of the copy are rows of the buffer."""
    last = len(plan.axes) - 1
    width = _copy_width(state, plan) if plan.axes[-1] == last else 1
    at = _variables(state, last + 1)
    order = [*plan.axes[:-1], plan.axes[-1]]
    target = " + ".join(f"{at[a]} * {plan.strides[a]}" if plan.strides[a] != 1 else at[a] for a in order)
    _nested(state, plan, at, order, width, array, target)


def _copy_width(state: State, plan: CopyPlan) -> int:
    width = max(state.facts.schedule.width, 1)
    while width > 1 and width > plan.extents[-1]:
        width //= 2
    return width


def _nested(
    state: State, plan: CopyPlan, at: list[str], order: list[int], width: int, array: str, target: str
) -> None:
    """Write the loops of a copy, the last one by vectors as far as they fit."""
    if len(order) > 1:
        variable, length = at[order[0]], state.c(_length(state, plan, order[0]))
        with state.lines.block(f"for ({state.integer} {variable} = 0; {variable} < {length}; {variable}++)"):
            _nested(state, plan, at, order[1:], width, array, target)
        return
    _by_vectors(state, plan, at, at[order[0]], _length(state, plan, order[0]), width, array, target)


def _by_vectors(
    state: State,
    plan: CopyPlan,
    at: list[str],
    variable: str,
    length: IntExpression,
    width: int,
    array: str,
    target: str,
) -> None:
    name, address = state.signature.names[plan.access.buffer.name], _source(state, plan, at)
    end = state.c(length)
    whole = isinstance(length, Number) and length.value % width == 0
    single = f"{array}[{target}] = {_value(plan, name, address, 1)};"
    if width == 1:
        head = f"for ({state.integer} {variable} = 0; {variable} < {end}; {variable}++)"
        with state.lines.block(head):
            state.lines.add(single)
        return
    state.lines.add(f"{state.integer} {variable} = 0;")
    with state.lines.block(f"for (; {variable} + {width} <= {end}; {variable} += {width})"):
        state.lines.add(f"vstore{width}({_value(plan, name, address, width)}, 0, {array} + {target});")
    if not whole:
        with state.lines.block(f"for (; {variable} < {end}; {variable}++)"):
            state.lines.add(single)


def _copy_in_panels(state: State, plan: CopyPlan, array: str) -> None:
    """Copy panel after panel: ``array[panel * rest * width + row * width + column]``."""
    assert plan.panel is not None
    panel_width, last = plan.panel[1], plan.axes[-1]
    at = _variables(state, len(plan.axes))
    panel, column = state.namer.fresh("panel"), state.namer.fresh("column")
    length = state.c(_length(state, plan, last))
    head = f"for ({state.integer} {panel} = 0; {panel} < {length}; {panel} += {panel_width})"
    with state.lines.block(head):
        columns: IntExpression = Number(panel_width)
        if not state.facts.divides(plan.panel[0], panel_width):
            limit = state.namer.fresh("columns")
            text = f"lesser({panel_width}, {length} - {panel})"
            state.lines.add(f"const {state.integer} {limit} = {text};")
            columns = Name(limit)
        if is_turned(plan):
            _turned(state, plan, array, f"{panel} * {plan.rest}", panel, columns)
            return
        rows = [f"{at[axis]} * {plan.strides[axis]}" for axis in plan.axes[:-1]]
        target = " + ".join([f"{panel} * {plan.rest}", *rows, column])
        _panel_rows(state, plan, at, list(plan.axes[:-1]), (panel, column), columns, array, target)


def _panel_rows(
    state: State,
    plan: CopyPlan,
    at: list[str],
    order: list[int],
    place: tuple[str, str],
    columns: IntExpression,
    array: str,
    target: str,
) -> None:
    if order:
        variable, length = at[order[0]], state.c(_length(state, plan, order[0]))
        with state.lines.block(f"for ({state.integer} {variable} = 0; {variable} < {length}; {variable}++)"):
            _panel_rows(state, plan, at, order[1:], place, columns, array, target)
        return
    panel, column = place
    last = plan.axes[-1]
    inside = [f"({panel} + {column})" if axis == last else at[axis] for axis in range(len(at))]
    rows = len(plan.access.steps) - 1 == last
    width = _copy_width(state, plan) if rows else 1
    _by_vectors(state, plan, inside, column, columns, width, array, target)


def _copy_turned(state: State, plan: CopyPlan, array: str) -> None:
    _turned(state, plan, array, "", "", _length(state, plan, plan.axes[-1]))


def _turned(state: State, plan: CopyPlan, array: str, start: str, first: str, columns: IntExpression) -> None:
    """Write a copy whose columns are rows of the buffer: squares of a few elements turn in registers.

    A row's cache line is used up before the next one: rows of a matrix often lie where lines meet in one set.
    ``start``: where the columns begin in the copy, ``first``: in the buffer, ``columns``: how many there are.
    """
    run = _run(state, plan)
    outer = [axis for axis in plan.axes[:-1] if axis not in run]
    at = {axis: state.namer.fresh(f"at_{axis}") for axis in outer}
    with ExitStack() as blocks:
        for axis in outer:
            length = state.c(_length(state, plan, axis))
            head = f"for ({state.integer} {at[axis]} = 0; {at[axis]} < {length}; {at[axis]}++)"
            blocks.enter_context(state.lines.block(head))
        rows = {axis: state.c(row_length(plan.access.buffer, axis)) for axis in (*outer, plan.axes[-1])}
        source = [state.signature.names[plan.access.buffer.name], state.c(_origin(state, plan))]
        source += [f"{at[axis]} * ({rows[axis]})" for axis in outer]
        source += [f"{first} * ({rows[plan.axes[-1]]})"] if first else []
        target = [array, *([start] if start else [])]
        target += [f"{at[axis]} * {plan.strides[axis]}" for axis in outer]
        lengths = [_length(state, plan, axis) for axis in run]
        square = _Squares(state, plan.access.buffer.type, rows[plan.axes[-1]], plan.strides[run[-1]])
        square.write(" + ".join(source), " + ".join(target), product_of(lengths), columns)


def _run(state: State, plan: CopyPlan) -> tuple[int, ...]:
    """Return the last axes of the buffer along which both the buffer and the copy go at one pace."""
    shape, count = plan.access.buffer.shape, len(plan.axes)
    run = [count - 1]
    while run[0] - 1 not in (-1, plan.axes[-1]):
        inner, axis = run[0], run[0] - 1
        whole = _length(state, plan, inner) == shape[inner] == Number(plan.extents[inner])
        if not whole or plan.strides[axis] != plan.strides[inner] * plan.extents[inner]:
            break
        run.insert(0, axis)
    return tuple(run)


@dataclass(frozen=True)
class _Squares:
    """Writes the loops of a copy that turns a matrix; ``row``: of the buffer, ``stride``: of the copy."""

    state: State
    kind: ElementType
    row: str
    stride: int

    def write(self, source: str, target: str, run: IntExpression, columns: IntExpression) -> None:
        """Write the loops over ``run`` neighbours in the buffer and ``columns`` neighbours in the copy."""
        lines, integer = self.state.lines, self.state.integer
        along, column, inside = (self.state.namer.fresh(n) for n in ("along", "column", "inside"))
        line, end, last = 64 // self.kind.size, self.state.c(run), self.state.c(columns)
        with lines.block():
            lines.add(f"{integer} {along} = 0;")
            with lines.block(f"for (; {along} + {line} <= {end}; {along} += {line})"):
                lines.add(f"{integer} {column} = 0;")
                with lines.block(f"for (; {column} + {SQUARE} <= {last}; {column} += {SQUARE})"):
                    head = f"for (int {inside} = {along}; {inside} < {along} + {line}; {inside} += {SQUARE})"
                    with lines.block(head):
                        self._square(source, target, inside, column)
                with lines.block(f"for (; {column} < {last}; {column}++)"):
                    head = f"for (int {inside} = {along}; {inside} < {along} + {line}; {inside}++)"
                    with lines.block(head):
                        self._single(source, target, inside, column)
            each = f"for ({integer} {column} = 0; {column} < {last}; {column}++)"
            with lines.block(f"for (; {along} < {end}; {along}++)"), lines.block(each):
                self._single(source, target, along, column)

    def _single(self, source: str, target: str, along: str, column: str) -> None:
        read = f"({source})[{column} * ({self.row}) + {along}]"
        self.state.lines.add(f"({target})[{along} * {self.stride} + {column}] = {read};")

    def _square(self, source: str, target: str, along: str, column: str) -> None:
        """Write a square: its rows loaded as vectors, its columns stored as vectors."""
        kind = value_type(self.kind, SQUARE)
        rows = [self.state.namer.fresh("row") for _ in range(SQUARE)]
        for k, row in enumerate(rows):
            address = f"{source} + ({column} + {k}) * ({self.row}) + {along}"
            self.state.lines.add(f"const {kind} {row} = vload{SQUARE}(0, {address});")
        for k in range(SQUARE):
            parts = ", ".join(f"{row}.s{k}" for row in rows)
            address = f"{target} + ({along} + {k}) * {self.stride} + {column}"
            self.state.lines.add(f"vstore{SQUARE}(({kind})({parts}), 0, {address});")


def _shared_copy(state: State, plan: CopyPlan, array: str) -> None:
    """Let all work-items of a group fill a copy together, neighbours reading neighbours."""
    at = _variables(state, len(plan.axes))
    lengths = [state.c(_length(state, plan, axis)) for axis in range(len(at))]
    element = state.namer.fresh("element")
    total = " * ".join(f"({n})" for n in lengths)
    kind, items = state.integer, state.facts.total_items
    head = f"for ({kind} {element} = {state.item_number}; {element} < {total}; {element} += {items})"
    with state.lines.block(head):
        for axis, variable in enumerate(at):
            inner = " * ".join(f"({n})" for n in lengths[axis + 1 :])
            text = f"{element} / ({inner})" if inner else element
            text += f" % ({lengths[axis]})" if axis else ""
            state.lines.add(f"const {kind} {variable} = {text};")
        target = _target(plan, at)
        name = state.signature.names[plan.access.buffer.name]
        state.lines.add(f"{array}[{target}] = {_value(plan, name, _source(state, plan, at), 1)};")


def _target(plan: CopyPlan, at: list[str]) -> str:
    """Return the place of an element in the copy."""
    terms = []
    for axis in plan.axes:
        if plan.panel is not None and axis == plan.axes[-1]:
            width = plan.panel[1]
            terms += [f"{at[axis]} / {width} * {plan.rest * width}", f"{at[axis]} % {width}"]
        else:
            terms.append(at[axis] if plan.strides[axis] == 1 else f"{at[axis]} * {plan.strides[axis]}")
    return " + ".join(terms)
