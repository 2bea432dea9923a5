"""Statements of kernel trees in C, as one thread carries them out, in order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from math import prod

from polyloom.ir.expressions import Binary, BinaryOp, Read
from polyloom.ir.types import ElementType
from polyloom.mdh.print.asked_iterations import asked_lines
from polyloom.mdh.print.c_scope import Scope, Variable
from polyloom.mdh.print.dialect import ANY_LANE, SIGNED, value_bytes
from polyloom.mdh.print.matrix_unit import declared_blocks, matrix_step
from polyloom.mdh.print.prefetches import prefetches
from polyloom.mdh.print.team import TEAM
from polyloom.mdh.print.values import literal
from polyloom.mdh.print.vectors.c_vectors import VectorLoop, is_vector_width
from polyloom.mdh.print.vectors.interleaved_loads import Parts, interleaved_loads
from polyloom.mdh.print.vectors.kept_vectors import AS_IT_IS, Kept, kept_vectors
from polyloom.mdh.print.vectors.turned_blocks import turned_blocks
from polyloom.mdh.print.vectors.wide_moves import moved_at_once
from polyloom.mdh.tree.lanes import asked_of_any_lane
from polyloom.mdh.tree.nodes import (
    Array,
    Barrier,
    Code,
    Compute,
    Element,
    For,
    If,
    Kind,
    Let,
    LetInteger,
    Load,
    Mark,
    Space,
    Statement,
    Store,
    While,
)
from polyloom.mdh.tree.rewrite import walk
from polyloom.polyhedra.loops.tree import Number

MOST_ON_STACK = 2**15
"""Bytes of an array up to which it lies on the stack; larger ones are scratch memory of the thread."""


IN_ANY_ORDER = """\
#define PRAGMA(text) _Pragma(#text)
#if defined(_OPENMP) || defined(OPENMP_SIMD)
#define IN_ANY_ORDER(sign, total) PRAGMA(omp simd reduction(sign : total))
#else
#define IN_ANY_ORDER(sign, total) /* the loop behind it may go in any order */
#endif
"""

APART = """\
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12
#define APART(product) __builtin_assoc_barrier(product) /* is rounded before it is added */
#else
#define APART(product) (product)
#endif
"""

WIDE = 80
"""Characters of a line that fills several registers, at most, without what it is indented by."""


def block_lines(code: Code, scope: Scope, kept: Mapping[int, Kept] | None = None) -> Iterator[str]:
    """Yield the lines of a block, not indented. ``kept``: what its statements find in registers, if known."""
    taken, kept = 0, kept_vectors(code, scope) if kept is None else kept
    parts = interleaved_loads(code, scope, kept)
    said, asked = 0, list[str]()
    for k, statement in enumerate(code):
        wanted = prefetches(code[:k], statement, code[k + 1 :], scope, asked)
        yield from (f"__builtin_prefetch(&{place}, 1);" for place in wanted)
        asked += wanted
        if k < said:
            pass
        elif k in kept:
            yield from _lines_with(kept[k], statement, scope)
        elif names := _declared_alike(code[k:], scope):
            yield f"{_register_type(statement, scope)} {', '.join(_declarators(names, code[k:], scope))};"
            said = k + len(names)
        elif (filled := _filled_alike(code[k:], scope))[0]:
            yield from _fills(*filled)
            said = k + len(filled[0])
        elif k in parts:
            yield from _lines_of_parts(parts[k], statement, scope)
        else:
            yield from statement_lines(statement, scope)
        scope = declared(statement, scope)
        taken += isinstance(statement, Array) and not _is_on_stack(statement)
    yield from (of_team(scope, "give") for _ in range(taken))


def _declared_alike(code: Code, scope: Scope) -> list[str]:
    """Return the names of the registers of one type that code declares first; none where it does not."""
    kind = None if scope.dialect.clears_registers else _register_type(code[0], scope)
    alike = takewhile(lambda s: kind is not None and _register_type(s, scope) == kind, code)
    return [scope.names[s.name] for s in alike if isinstance(s, Array)]


def _declarators(names: Sequence[str], code: Code, scope: Scope) -> list[str]:
    """Return what is declared for registers: their names, or the arrays whose elements they are."""
    found = dict[str, None]()
    for name, statement in zip(names, code, strict=False):
        element = _element(statement, scope)
        shape = "" if element is None else "".join(f"[{n}]" for n in element.shape)
        found[name if element is None else f"{scope.names[element.array]}{shape}"] = None
    return list(found)


def _element(statement: Statement, scope: Scope) -> Element | None:
    """Return what a register is where registers are elements of arrays."""
    return statement.element if scope.rolled and isinstance(statement, Array) else None


def _register_name(array: Array, scope: Scope) -> str:
    element = _element(array, scope)
    if element is None:
        return scope.names[array.name]
    return scope.names[element.array] + "".join(f"[{k}]" for k in element.place)


def _register_type(statement: Statement, scope: Scope) -> str | None:
    """Return the type of a register that a statement declares: a value or a vector, no array of them."""
    if not isinstance(statement, Array) or statement.space is not Space.REGISTER:
        return None
    variable = array_variable(statement, scope)
    return None if variable.extents else variable.element(scope.dialect)


def _filled_alike(code: Code, scope: Scope) -> tuple[list[str], str]:
    """Return the registers that code fills first, all with one constant, and the text of that."""
    found = list[_Filled]()
    for statement in code:
        filled = _filled(statement, scope)
        if filled is None or (found and filled[1:] != found[0][1:]):
            break
        found.append(filled)
    return [name for name, _, _ in found], found[0][1] if found else ""


def _fills(names: Sequence[str], value: str) -> Iterator[str]:
    """Yield lines ``a = b = c = value;``."""
    line = ""
    for name in names:
        if line and len(f"{line}{name} = {value};") > WIDE:
            yield f"{line}{value};"
            line = ""
        line += f"{name} = "
    yield f"{line}{value};"


_Filled = tuple[str, str, str]
"""A register, a constant, the register's type."""


def _filled(statement: Statement, scope: Scope) -> _Filled | None:
    """Return the register that a statement fills with a constant."""
    store = statement
    if isinstance(statement, For) and statement.kind is Kind.VECTOR and len(statement.body) == 1:
        (store,) = statement.body
    if not isinstance(store, Store) or store.value.loads or store.value.iterators:
        return None
    variable = scope.variables.get(store.array)
    if variable is None or not variable.held or variable.extents or "[" in variable.text:
        return None
    lines = list(statement_lines(statement, scope))
    head = f"{variable.text} = "
    if len(lines) != 1 or not lines[0].startswith(head):
        return None
    return variable.text, lines[0].removeprefix(head).removesuffix(";"), variable.element(scope.dialect)


def _lines_with(kept: Kept, loop: Statement, scope: Scope) -> Iterator[str]:
    """Yield the lines of a vector loop that finds some vectors in registers."""
    assert isinstance(loop, For) and isinstance(loop.end, Number)
    yield from kept.before
    loops = VectorLoop(loop.iterator, loop.end.value, scope, kept=kept.names, texts=kept.texts)
    yield from loops.lines(loop.body)
    yield from kept.after


def _lines_of_parts(parts: Parts, loop: Statement, scope: Scope) -> Iterator[str]:
    """Yield the lines of a vector loop with parts of records that are loaded before it, or were."""
    assert isinstance(loop, For) and isinstance(loop.end, Number)
    yield from parts.before
    yield from VectorLoop(loop.iterator, loop.end.value, scope, turned=parts.names).lines(loop.body)


def of_team(scope: Scope, function: str, *arguments: str) -> str:
    """Return a call of one of the team's functions."""
    scope.needs.definitions[TEAM] = None
    return f"team->{function}({', '.join(('team', 'me', *arguments))});"


def declared(statement: Statement, scope: Scope) -> Scope:
    """Return the scope after a statement."""
    match statement:
        case Let(name=name, value=value):
            return scope.with_variable(name, Variable(scope.names[name], value.type, held=True))
        case Array():
            return scope.with_variable(statement.name, array_variable(statement, scope))
        case LetInteger(name=name, value=value):
            return scope.with_multiple(name, value)
        case _:
            return scope


def array_variable(array: Array, scope: Scope) -> Variable:
    """Return what an array is in C; lanes that are no vector of C are a dimension."""
    held = array.space is Space.REGISTER or array.lanes
    lanes = array.shape[-1].value if array.lanes and isinstance(array.shape[-1], Number) else 0
    lanes = lanes if is_vector_width(lanes, scope.dialect) else 0
    is_float = array.type is ElementType.FLOAT16 and not (scope.dialect.has_half_arrays or array.packed)
    kind = ElementType.FLOAT32 if is_float and array.part is None else array.type
    return Variable(
        _register_name(array, scope),
        kind,
        array.shape,
        held=held,
        lanes=lanes,
        packed=array.packed,
        part=array.part,
    )


def statement_lines(statement: Statement, scope: Scope) -> Iterator[str]:
    """Yield the lines of a statement."""
    match statement:
        case For(kind=Kind.VECTOR):
            yield from _vector_loop(statement, scope)
        case For(kind=Kind.MATRIX):
            yield matrix_step(statement, scope)
        case For():
            yield from loop_lines(statement, scope)
        case If(condition=condition, body=body, otherwise=otherwise):
            yield f"if ({scope.condition(condition)}) {{"
            yield from indented(block_lines(body, scope))
            if otherwise:
                yield "} else {"
                yield from indented(block_lines(otherwise, scope))
            yield "}"
        case While(condition=asked, body=body):
            yield f"while ({_asked(asked, scope)}) {{"
            yield from indented(block_lines(body, replace(scope, repeated=True)))
            yield "}"
        case Let(name=name, value=value):
            yield f"const {scope.dialect.type(value.type)} {scope.names[name]} = {scope.value(value).text};"
        case LetInteger(name=name, value=number):
            yield f"const {scope.dialect.index} {scope.names[name]} = {scope.integer(number)};"
        case Array():
            yield _declaration(statement, scope)
        case Store():
            yield _store(statement, scope)
        case Barrier(everywhere=everywhere):  # in C a group is one thread, which waits for nobody
            yield from filter(None, [_barrier(everywhere, scope)])
        case Mark(number=number):
            yield of_team(scope, "mark", str(number))


def loop_lines(loop: For, scope: Scope) -> Iterator[str]:
    """Yield a loop whose points are carried out one after another."""
    if loop.kind is Kind.ITEM and any(isinstance(s, Barrier) for s in walk(loop.body)):
        raise ValueError("items that meet at barriers are no loop of one thread")
    if (blocks := turned_blocks(loop, scope)) is not None:
        yield from blocks
        return
    inside = scope.with_multiple(loop.iterator, loop.start, loop.step)
    if (asked := asked_lines(loop, inside, block_lines)) is not None:
        yield from asked
        return
    kept = kept_vectors(loop.body, inside)
    if kept and loop.kind is Kind.SEQUENTIAL:
        yield AS_IT_IS
    if loop.kind is Kind.INDEPENDENT and scope.dialect.independent:
        yield scope.dialect.independent
    if loop.kind is Kind.REDUCING:
        yield from _in_any_order(loop, scope)
    yield f"{loop_head(loop, scope)} {{"
    yield from indented(block_lines(loop.body, inside, kept))
    yield "}"


def _asked(asked: Compute, scope: Scope) -> str:
    """Return what a loop asks; of all lanes at once where that is a question about a vector."""
    array = asked_of_any_lane(asked)
    if array is None or scope.dialect.own_functions:
        return scope.condition(asked)
    variable = scope.variable(array)
    kind = SIGNED[value_bytes(variable.type)]
    return f"{scope.dialect.helper(ANY_LANE, kind, variable.lanes)}({variable.text})"


def _in_any_order(loop: For, scope: Scope) -> Iterator[str]:
    """Yield what says that the points of a loop may be added up, or multiplied, in any order."""
    (store,) = loop.body
    assert isinstance(store, Store) and isinstance(store.value.expression, Binary)
    total = scope.variable(store.array).text
    if scope.dialect.reducing and total.isidentifier():
        scope.needs.definitions[IN_ANY_ORDER] = None
        sign = {BinaryOp.ADD: "+", BinaryOp.MULTIPLY: "*"}[store.value.expression.op]
        yield scope.dialect.reducing.format(sign=sign, total=total)


def loop_head(loop: For, scope: Scope) -> str:
    """Return ``for (int64_t i = 0; i < n; i += 8)``."""
    name, start = scope.names[loop.iterator], scope.integer(loop.start)
    match loop.step:
        case Number(value=1):
            step = f"{name}++"
        case Number(value=value) if value < 0:
            step = f"{name} -= {-value}"
        case step_:
            step = f"{name} += {scope.integer(step_)}"
    return f"for ({scope.dialect.index} {name} = {start}; {scope.integer(loop.condition)}; {step})"


def indented(lines: Iterator[str] | Sequence[str]) -> Iterator[str]:
    """Yield lines one level further in."""
    return (f"    {line}" if line else line for line in lines)


def _vector_loop(loop: For, scope: Scope) -> Iterator[str]:
    """Yield the statements of a vector loop as vectors, or a loop over lanes where C has no such form."""
    match loop.end:
        case Number(value=width) if is_vector_width(width, scope.dialect) and VectorLoop.can_say(loop):
            yield from VectorLoop(loop.iterator, width, scope).lines(loop.body)
        case Number(value=width) if scope.dialect.has_wide_moves and not width & (width - 1):
            yield from _wide_loop(loop, width, scope)
        case _:
            yield from _lane_by_lane(loop, scope)


def _lane_by_lane(loop: For, scope: Scope) -> Iterator[str]:
    """Yield a loop over lanes, with what has the compiler write it out: its values are in registers then."""
    yield from filter(None, [scope.dialect.written_out])
    yield from loop_lines(loop, scope)


def _wide_loop(loop: For, width: int, scope: Scope) -> Iterator[str]:
    """Yield a loop over lanes, whose neighbours in memory are loaded and stored at once."""
    moved = moved_at_once(loop, width, scope)
    if moved is None:
        yield from _lane_by_lane(loop, scope)
        return
    yield "{"
    yield from indented([*moved.before, *_lane_by_lane(moved.loop, moved.scope), *moved.after])
    yield "}"


def _declaration(array: Array, scope: Scope) -> str:
    variable = array_variable(array, scope)
    if array.part is not None:
        return declared_blocks(array.part, variable, scope)
    if _is_on_stack(array):
        dimensions = "".join(f"[{scope.integer(n)}]" for n in variable.extents)
        text = f"{variable.element(scope.dialect)} {variable.text}{dimensions if array.shape else ''}"
        if array.space is not Space.REGISTER:
            text = scope.dialect.aligned.format(array=text, align=max(64, array.align))
        elif scope.dialect.clears_registers and not dimensions:
            text += f" = {literal(0, variable.type, max(1, variable.lanes), scope.dialect)}"
        return f"{text};"
    return f"{scope.pointer(variable)} = {of_team(scope, 'take', memory_bytes(variable, scope))}"


def memory_bytes(variable: Variable, scope: Scope) -> str:
    """Return how many bytes an array takes, as C."""
    extents = "".join(f" * {scope.operand(n)}" for n in variable.extents)
    return f"(int64_t)sizeof({variable.element(scope.dialect)}){extents}"


def _is_on_stack(array: Array) -> bool:
    extents = [n.value for n in array.shape if isinstance(n, Number)]
    if array.space is Space.REGISTER or array.lanes:
        return True
    return len(extents) == len(array.shape) and prod(extents) * array.type.size <= MOST_ON_STACK


def _store(store: Store, scope: Scope) -> str:
    place = scope.place(store.array, store.subscripts)
    if (same := _packed_half(store, scope)) is not None:
        return f"{place} = {same};"
    value = _added_apart(store, scope) or scope.value(store.value).text
    return scope.stored(scope.variable(store.array), place, value)


def _added_apart(store: Store, scope: Scope) -> str | None:
    """Return a total and a product to add; None where a value is no such sum, or one operation is as quick.

    The next iteration waits for a sum alone; for a product and sum in one it would wait longer.
    """
    if not scope.repeated or not scope.dialect.reducing or not store.value.type.is_float:
        return None
    match store.value.expression:
        case Binary(
            op=BinaryOp.ADD, left=Read(position=k), right=Binary(op=BinaryOp.MULTIPLY) as product
        ) if store.value.loads[k] == Load(store.array, store.subscripts):
            scope.needs.definitions[APART] = None
            total, term = (
                scope.variable(store.array).text,
                scope.value(replace(store.value, expression=product)),
            )
            return f"{total} + APART({term.text})"
        case _:
            return None


def _packed_half(store: Store, scope: Scope) -> str | None:
    """Return the half in memory that a store puts into another place as it is; None where it does more."""
    if not scope.variables[store.array].packed or not isinstance(store.value.expression, Read):
        return None
    load = store.value.loads[store.value.expression.position]
    variable = scope.variables[load.array]
    return scope.place(load.array, load.subscripts) if variable.is_half else None


def _barrier(everywhere: bool, scope: Scope) -> str:
    return scope.dialect.barrier_everywhere if everywhere else scope.dialect.barrier
