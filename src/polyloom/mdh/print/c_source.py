"""A kernel tree as C11 with the vectors of gcc, clang and ``zig cc``: one function that a team runs.

Every thread of a team runs the same function. Loops that hold ``parallel for`` run on every thread; a
``parallel for`` is shared out in contiguous blocks of its iterations, nested ones as one range; what stands
beside them and stores is done by the first thread. After each such part all threads wait for each other.

    for (int64_t t = 0; t < 10; t++) {
        const int64_t points = 64;
        step_1(part(points, me, team), part(points, me + 1, team), A, B, t);
        team->wait(team, me);
    }

Not in the papers: the tree, and its C.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile

from polyloom.mdh.print.c_scope import Scope, Variable
from polyloom.mdh.print.c_statements import (
    array_variable,
    block_lines,
    declared,
    indented,
    loop_head,
    memory_bytes,
    statement_lines,
)
from polyloom.mdh.print.dialect import C
from polyloom.mdh.print.helpers import helper_functions
from polyloom.mdh.print.names import c_names
from polyloom.mdh.tree.nodes import (
    Array,
    Code,
    Compute,
    For,
    Function,
    If,
    Kind,
    Let,
    LetInteger,
    Statement,
    Store,
)
from polyloom.mdh.tree.rewrite import integers_used, loads_of, walk
from polyloom.polyhedra.loops.tree import IntExpression, Number, Operation, names_in, product_of, sum_of

TEAM = """\
struct team { /* the threads that run a function together */
    int64_t threads;
    void (*wait)(struct team *team, int64_t me); /* for all others */
    void *(*take)(struct team *team, int64_t me, int64_t bytes); /* memory of this thread, */
    void (*give)(struct team *team, int64_t me); /* the last that it took back */
    void *(*take_common)(struct team *team, int64_t me, int64_t bytes); /* memory of all threads */
    void (*give_common)(struct team *team, int64_t me);
};
"""
"""What emitted C knows of a team; ``mdh/native`` has it."""

_PART = """\
static inline int64_t part(int64_t points, int64_t me, const struct team *team)
{
    return points * me / team->threads;
}
"""

WIDEST = 110
"""Characters of a line."""

_TAKEN = ("team", "me", "arrays", "integers", "first", "end", "point", "points", "part", "lanes", "threads")
_HEADERS = "#include <math.h>\n#include <stdint.h>\n#include <string.h>\n\n"


@dataclass(frozen=True)
class CText:
    """A function in C: ``parts`` are functions that ``entry``, the last one, calls; all with prototypes."""

    name: str
    prototypes: tuple[str, ...]
    parts: tuple[str, ...]
    entry: str

    @property
    def whole(self) -> str:
        """Everything as one file."""
        own = re.compile(r"^void", re.MULTILINE)
        parts = "\n".join(own.sub("static void", part, count=1) for part in self.parts)
        return _file(f"{parts}\n{self.entry}" if parts else self.entry)

    def files(self, number: int) -> tuple[str, ...]:
        """Return files that together are the whole, about equally long; fewer where there is little."""
        shares: list[list[str]] = [[] for _ in range(max(1, min(number, len(self.parts))))]
        for text in sorted(self.parts, key=len, reverse=True):
            min(shares, key=lambda share: sum(map(len, share))).append(text)
        if len(shares) == 1:
            return (self.whole,)
        entry = "".join(f"{line};\n" for line in self.prototypes) + "\n" + self.entry
        return (*(_file("\n".join(share)) for share in shares), _file(entry))


def c_source(function: Function) -> str:
    """Return a function in C: ``void name(team, me, arrays, integers)``, with all that it calls.

    ``arrays`` are the function's parameters in order, ``integers`` its integers. Where the function is not
    ``contracted``, a compiler needs ``-ffp-contract=off``. Errors: ValueError where items meet at barriers.
    """
    return c_text(function).whole


def c_text(function: Function) -> CText:
    """Return a function in C, part by part."""
    names = c_names(_all_names(function), (*_TAKEN, *(f"{function.name}_{k}" for k in range(1000))))
    name = c_names([function.name], ())[function.name]
    scope = Scope({n: text for n, text in names.items() if n != function.name})
    for parameter in function.parameters:
        words = {"const"} if parameter.constant else set()
        words |= {"restrict"} if parameter.alone else set()
        variable = Variable(
            names[parameter.name], parameter.type, parameter.shape, qualifiers=frozenset(words)
        )
        scope = scope.with_variable(parameter.name, variable)
    entry = _Entry(name, frozenset(function.integers))
    body = list(entry.block(function.body, scope))
    if body and body[-1] == _WAIT:  # whoever runs the function waits for all threads to return
        body.pop()
    arguments = [
        *(f"const int64_t {names[n]} = integers[{k}];" for k, n in enumerate(function.integers)),
        *(
            f"{scope.pointer(scope.variables[p.name])} = arrays[{k}];"
            for k, p in enumerate(function.parameters)
        ),
    ]
    head = f"void {name}(struct team *team, int64_t me, void *const *arrays, const int64_t *integers)"
    text = "\n".join([head, "{", *indented([*_used(arguments, body), *body]), "}", ""])
    return CText(name, tuple(entry.prototypes), tuple(entry.parts), text)


def _used(declarations: Sequence[str], body: Sequence[str]) -> list[str]:
    """Return the declarations of names that something needs: the body, or another declaration."""
    found: list[str] = []
    rest = "\n".join(body)
    for line in reversed(declarations):
        match = re.search(r"(\w+)(?:\)[^=]*)? = (?:arrays|integers)", line)
        assert match is not None, line
        if re.search(rf"\b{match[1]}\b", rest):
            found.insert(0, line)
            rest += "\n" + line.partition(" = ")[0].replace(match[1], "", 1)
    return found


def _file(text: str) -> str:
    shared = _PART + "\n" if re.search(r"\bpart\(", text) else ""
    helpers = helper_functions(text, C)
    team = TEAM + "\n" if "struct team" in text else ""
    return f"{_HEADERS}{team}{shared}{wrapped(helpers + text)}"


def wrapped(text: str) -> str:
    """Return a text with long lines broken after commas."""
    return "\n".join(part for line in text.split("\n") for part in _pieces(line))


def _pieces(line: str) -> Iterator[str]:
    """Yield a line of at most ``WIDEST`` characters where there are commas, then what follows further in."""
    indent = " " * (len(line) - len(line.lstrip()) + 8)
    while len(line) > WIDEST:
        at = line.rfind(", ", len(indent) + 1, WIDEST)
        if at < 0:
            break
        yield line[: at + 1]
        line = indent + line[at + 2 :]
    yield line


def _all_names(function: Function) -> Iterator[str]:
    yield from (p.name for p in function.parameters)
    yield from function.integers
    for statement in walk(function.body):
        match statement:
            case For(iterator=name) | Let(name=name) | LetInteger(name=name) | Array(name=name):
                yield name
            case _:
                pass


_WAIT = "team->wait(team, me);"


@dataclass
class _Entry:
    """Prints what every thread runs, and collects the parts that it calls."""

    name: str
    integers: frozenset[str]
    """Integers that are known where the printer is."""
    parts: list[str] = field(default_factory=list)
    prototypes: list[str] = field(default_factory=list)

    def block(self, code: Code, scope: Scope) -> Iterator[str]:
        """Yield the lines of a block that every thread runs."""
        common, known = 0, self.integers
        while code:
            if is_parallel(code[0]):
                yield from self._parallel(code[0], scope)
                code = code[1:]
                continue
            run = tuple(takewhile(lambda statement: not is_parallel(statement), code))
            shared, alone = _apart(run, code[len(run) :])
            code = code[len(shared) + len(alone) :]
            for statement in shared:
                yield from self._everywhere(statement, scope)
                common += isinstance(statement, Array)
                scope = _declared_for_all(statement, scope)
                if isinstance(statement, LetInteger):
                    self.integers |= {statement.name}
            if alone:
                yield from self._alone(alone, scope)
        yield from ["team->give_common(team, me);"] * common
        self.integers = known

    def _everywhere(self, statement: Statement, scope: Scope) -> Iterator[str]:
        if isinstance(statement, Array):
            variable = _common(statement, scope)
            yield f"{scope.pointer(variable)} = team->take_common(team, me, {memory_bytes(variable, scope)});"
            return
        yield from statement_lines(statement, scope)
        if isinstance(statement, Let) and loads_of(statement):
            yield _WAIT  # nobody changes what it has read before all have

    def _parallel(self, statement: Statement, scope: Scope) -> Iterator[str]:
        match statement:
            case For(kind=Kind.GROUP):
                yield from self._shared(statement, scope)
            case For(iterator=iterator, body=body):
                known, self.integers = self.integers, self.integers | {iterator}
                yield f"{loop_head(statement, scope)} {{"
                yield from indented(list(self.block(body, scope)))
                yield "}"
                self.integers = known
            case If(condition=condition, body=body, otherwise=otherwise):
                of_data = isinstance(condition, Compute) and bool(condition.loads)
                yield from self._branch(scope.condition(condition), body, otherwise, scope, of_data=of_data)
            case _:
                raise AssertionError("no other statement holds loops")

    def _branch(
        self, condition: str, body: Code, otherwise: Code, scope: Scope, *, of_data: bool
    ) -> Iterator[str]:
        if of_data:  # nobody changes what decides before all have looked
            yield "{"
            yield f"    const int is_taken = {condition};"
            yield f"    {_WAIT}"
            yield from indented(list(self._branch("is_taken", body, otherwise, scope, of_data=False)))
            yield "}"
            return
        yield f"if ({condition}) {{"
        yield from indented(list(self.block(body, scope)))
        if otherwise:
            yield "} else {"
            yield from indented(list(self.block(otherwise, scope)))
        yield "}"

    def _alone(self, code: Code, scope: Scope) -> Iterator[str]:
        """Yield what the first thread does while others wait."""
        yield "if (me == 0)"
        yield f"    {self._part(code, list(block_lines(code, scope)), scope)};"
        yield _WAIT

    def _shared(self, loop: For, scope: Scope) -> Iterator[str]:
        """Yield a parallel loop, with those right inside it, shared out."""
        loops = nested_groups(loop)
        counts = [trip_count(each) for each in loops]
        body = list(block_lines(loops[-1].body, scope))
        if len(loops) == 1:
            lines = [f"{_head_of_share(loop, scope)} {{", *indented(body), "}"]
        else:
            lines = ["for (int64_t point = first; point < end; point++) {"]
            lines += [*indented([*_points(loops, counts, scope), *body]), "}"]
        yield "{"
        yield f"    const int64_t points = {scope.integer(product_of(counts))};"
        yield f"    {self._part((loop,), lines, scope, _SHARE)};"
        yield "}"
        yield _WAIT

    def _part(self, code: Code, lines: list[str], scope: Scope, share: Sequence[tuple[str, str]] = ()) -> str:
        """Make a function of a part; return a call of it. ``share``: more of its parameters, with values."""
        name = f"{self.name}_{len(self.parts) + 1}"
        used = _names_used(code)
        variables = [v for n, v in scope.variables.items() if n in used]
        extents = {n for v in variables for e in v.extents[1:] for n in names_in(e)}
        integers = sorted(self.integers & (integers_used(code) | extents))
        needs_team = any("team->" in line for line in lines)
        given = [("struct team *team", "team"), ("int64_t me", "me")] if needs_team else []
        given += [*share, *((f"int64_t {scope.names[n]}", scope.names[n]) for n in integers)]
        given += [
            (f"{C.type(v.type)} {v.text}" if v.is_value else scope.pointer(v), v.text) for v in variables
        ]
        head = f"void {name}({', '.join(declaration for declaration, _ in given) or 'void'})"
        self.prototypes.append(head)
        self.parts.append("\n".join([head, "{", *indented(lines), "}", ""]))
        return f"{name}({', '.join(value for _, value in given)})"


_SHARE = (
    ("int64_t first", "part(points, me, team)"),
    ("int64_t end", "part(points, me + 1, team)"),
)


def _common(array: Array, scope: Scope) -> Variable:
    """Return what an array of all threads is: elements in memory."""
    return replace(array_variable(array, scope), held=False, lanes=0)


def _declared_for_all(statement: Statement, scope: Scope) -> Scope:
    if isinstance(statement, Array):
        return scope.with_variable(statement.name, _common(statement, scope))
    return declared(statement, scope)


def _apart(run: Code, after: Code) -> tuple[Code, Code]:
    """Return declarations that all threads need for what comes ``after``, and what one thread does then.

    A value that all need ends what is taken of ``run``, for it is loaded after the stores before it.
    """
    used = _names_used(after)
    for k, statement in enumerate(run):
        if isinstance(statement, Let) and statement.name in used:
            return _apart(run[:k], (*run[k:], *after)) if k else (run[:1], ())
    needed = set(integers_used(after))
    shared: list[Statement] = []
    for statement in reversed(run):
        wanted = statement.name in needed if isinstance(statement, LetInteger) else False
        if wanted or (isinstance(statement, Array) and statement.name in used):
            shared.insert(0, statement)
            needed |= integers_used((statement,))
    return tuple(shared), tuple(s for s in run if all(s is not other for other in shared))


def is_parallel(statement: Statement) -> bool:
    """Return whether there is a parallel loop in a statement."""
    return any(isinstance(s, For) and s.kind is Kind.GROUP for s in walk((statement,)))


def nested_groups(loop: For) -> list[For]:
    """Return a parallel loop with those right inside it whose bounds do not depend on outer ones."""
    loops = [loop]
    while len(loops[-1].body) == 1:
        (inner,) = loops[-1].body
        if not isinstance(inner, For) or inner.kind is not Kind.GROUP:
            break
        if (names_in(inner.start) | names_in(inner.end)) & {each.iterator for each in loops}:
            break
        loops.append(inner)
    return loops


def trip_count(loop: For) -> IntExpression:
    """Return how many iterations a loop ``from start to end step number`` has."""
    assert isinstance(loop.step, Number)
    step = loop.step.value
    length = sum_of([(1, loop.end), (-1, loop.start), (1, Number(step - 1))])
    if isinstance(length, Number):
        return Number(max(0, length.value // step))
    steps = length if step == 1 else Operation("/", (length, Number(step)))
    return Operation("max", (Number(0), steps))


def _head_of_share(loop: For, scope: Scope) -> str:
    """Return the head of a loop over iterations ``first`` to ``end``."""
    name = scope.names[loop.iterator]
    assert isinstance(loop.step, Number)
    step, start = loop.step.value, loop.start
    begin, stop = ((f"{text} * {step}" if step != 1 else text) for text in ("first", "end"))
    if start != Number(0):
        begin, stop = (f"{scope.operand(start)} + {text}" for text in (begin, stop))
    return f"for (int64_t {name} = {begin}; {name} < {stop}; {name} += {step})"


def _points(loops: Sequence[For], counts: Sequence[IntExpression], scope: Scope) -> Iterator[str]:
    """Yield the iterators of nested loops at ``point``."""
    for k, loop in enumerate(loops):
        inner = product_of(counts[k + 1 :])
        text = "point" if inner == Number(1) else f"point / {scope.operand(inner)}"
        if k and counts[k] != Number(1):
            text = f"{text} % {scope.operand(counts[k])}"
        elif k:
            text = "0"
        text = text if loop.step == Number(1) else f"{text} * {scope.operand(loop.step)}"
        text = text if loop.start == Number(0) else f"{scope.operand(loop.start)} + {text}"
        yield f"const int64_t {scope.names[loop.iterator]} = {text};"


def _names_used(code: Code) -> frozenset[str]:
    """Return the arrays and values that code speaks of."""
    found: set[str] = set()
    for statement in walk(code):
        found |= {load.array for load in loads_of(statement)}
        if isinstance(statement, Store):
            found.add(statement.array)
    return frozenset(found)
