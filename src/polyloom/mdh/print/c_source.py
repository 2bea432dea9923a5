"""A kernel tree as C11 with the vectors of gcc, clang and ``zig cc``: one function that a team runs.

Every thread of a team runs the same function. Loops that hold ``parallel for`` run on every thread; a
``parallel for`` is shared out in contiguous blocks of its iterations, nested ones as one range; what stands
beside them and stores is done by the first thread. After each such part all threads wait for each other, but
for loops that are ``nowait``.

    for (int64_t t = 0; t < 10; t++) {
        const int64_t points = 64;
        step_1(part(points, me, team), part(points, me + 1, team), A, B, t);
        team->wait(team, me);
    }

Not in the papers: the tree, and its C.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, takewhile
from math import inf

from polyloom.mdh.print.asked_iterations import BITS
from polyloom.mdh.print.asked_iterations import NAMES as ASKED_NAMES
from polyloom.mdh.print.c_scope import Scope, Variable
from polyloom.mdh.print.c_statements import (
    APART,
    IN_ANY_ORDER,
    array_variable,
    block_lines,
    declared,
    indented,
    loop_head,
    memory_bytes,
    of_team,
    statement_lines,
)
from polyloom.mdh.print.dialect import QUICK_C, C
from polyloom.mdh.print.gcc_pragma import (
    asks_for_ties,
    carries_values,
    gcc_options,
    gcc_pragma,
    holds_vectors,
    may_stay_as_it_is,
    squares_what_it_carries,
    sums_choices,
)
from polyloom.mdh.print.helpers import definitions
from polyloom.mdh.print.library.quick_functions import PREFIX
from polyloom.mdh.print.library.streamed_stores import STREAMED
from polyloom.mdh.print.names import c_names
from polyloom.mdh.print.needs import Needs, all_needs
from polyloom.mdh.print.rolled import COUNTERS, UNROLLED, rolled
from polyloom.mdh.print.team import PART, TEAM, WORK
from polyloom.mdh.print.vectors.kept_vectors import IN_REGISTER, NAMES, ROWS
from polyloom.mdh.print.work import point_lines, share_lines, work_lines
from polyloom.mdh.tree.nodes import (
    Array,
    Code,
    Compute,
    For,
    Form,
    Function,
    If,
    Kind,
    Let,
    LetInteger,
    Mark,
    Statement,
)
from polyloom.mdh.tree.rewrite import arrays_used, blocks, declared_in, integers_used, loads_of, walk
from polyloom.mdh.tree.trips import is_parallel, nested_groups, stores_where_asked, trip_count
from polyloom.polyhedra.loops.tree import IntExpression, Name, Number, product_of

WIDEST = 110
"""Characters of a line."""


SHORT_BODY = 32
"""Points of the loops in a body that take no longer than the division that tells where one is."""

MOST_ALONE = 8
"""Loops in turn that are one function; where there are more, as where weights are packed, each is one."""

_TAKEN = (
    "team",
    "me",
    "arrays",
    "integers",
    "first",
    "end",
    "point",
    "points",
    "begin",
    "stop",
    "part",
    "lanes",
    "threads",
    "shares",
    "work",
    "way",
    "in_register",
    "loaded_later",
    "UNROLLED",
    "PRAGMA",
    "APART",
    "IN_ANY_ORDER",
    "streamed_is_there",
    *NAMES,
    *ROWS,
    *ASKED_NAMES,
    *COUNTERS,
)
_DEFINITIONS = (IN_REGISTER, UNROLLED, IN_ANY_ORDER, APART, STREAMED, TEAM, PART, WORK, BITS)
_COUNTS = tuple(f"{word}_{k}" for word in ("work", "trips") for k in range(64))


@dataclass(frozen=True)
class CFunction:
    """A function: its name, its head, its lines, and what it needs."""

    name: str
    head: str
    lines: tuple[str, ...]
    needs: Needs
    told: tuple[str, ...] = ()
    """What gcc is told of it, beside what it is told of all."""

    @property
    def text(self) -> str:
        """The whole of it."""
        return "\n".join([self.head, "{", *indented(self.lines), "}", ""])


@dataclass(frozen=True, kw_only=True)
class Around:
    """What stands around functions in a file: ``head``, then headers, ``before`` and ``after`` the functions.

    ``needs``: of these texts.
    """

    head: str = ""
    before: str = ""
    after: str = ""
    needs: Needs = field(default_factory=Needs)


@dataclass(frozen=True)
class CText:
    """A function in C: ``parts`` are functions that ``entry`` calls."""

    name: str
    parts: tuple[CFunction, ...]
    entry: CFunction
    around: Around = field(default_factory=Around)

    @property
    def rounds_by_sums(self) -> bool:
        """Whether it calls a function of vectors, which makes an integer of x by x + 2^23 - 2^23."""
        calls = all_needs(part.needs for part in (*self.parts, self.entry)).helpers
        return any(family.startswith(PREFIX) for family, _, _ in calls)

    @property
    def whole(self) -> str:
        """Everything as one file."""
        return _file([*map(_static, self.parts), self.entry], around=self.around)

    def files(self, characters: int) -> tuple[str, ...]:
        """Return files that together are the whole: one, or such that end where they have ``characters``."""
        full, rest = _full(self.parts, characters)
        if not full:
            return (self.whole,)
        shares = [*full, rest] if rest else full
        parts = [_file(share, around=self.around) for share in shares]
        return (*parts, _file([self.entry], [part.head for part in self.parts], self.around))


def _full(
    parts: Sequence[CFunction], characters: int
) -> tuple[list[Sequence[CFunction]], Sequence[CFunction]]:
    """Return the parts of each file that has enough of them, and those that are left."""
    full, begin, length = list[Sequence[CFunction]](), 0, 0
    for k, part in enumerate(parts):
        length += len(part.text)
        if length >= characters:
            full.append(parts[begin : k + 1])
            begin, length = k + 1, 0
    return full, parts[begin:]


@dataclass(frozen=True)
class Reader:
    """Who wants the files of ``characters`` while others are printed."""

    characters: int
    read: Callable[[str], None]


def c_file(functions: Sequence[CText], told: Sequence[Sequence[str]], around: Around) -> str:
    """Return one file with functions that only what stands behind them calls; ``told``: to gcc, of each."""
    printed = [
        replace(_static(f), told=tuple(own))
        for text, own in zip(functions, told, strict=True)
        for f in (*text.parts, text.entry)
    ]
    return _file(printed, around=around)


def _static(function: CFunction) -> CFunction:
    return replace(function, head=f"static {function.head}")


def c_source(function: Function) -> str:
    """Return a function in C: ``void name(team, me, arrays, integers)``, with all that it calls.

    ``arrays`` are the function's parameters in order, ``integers`` its integers. Where the function is not
    ``contracted``, a compiler needs ``-ffp-contract=off``. Errors: ValueError where items meet at barriers.
    """
    return c_text(function).whole


def c_text(
    function: Function, *, shares: bool = False, rolls: bool = False, reader: Reader | None = None
) -> CText:
    """Return a function in C, part by part.

    ``shares``: parts that differ in names alone are one function. ``rolls``: lines that differ in subscripts
    alone are loops, for people to read.
    """
    name = c_names([function.name], ())[function.name]
    taken = (*_TAKEN, *_COUNTS, name, *(f"{function.name}_{k}" for k in range(1000)))
    names = c_names(_all_names(function), taken)
    language = QUICK_C if function.contracted else C
    variables = dict[str, Variable]()
    for parameter in function.parameters:
        words = {"const"} if parameter.constant else set()
        words |= {"restrict"} if parameter.alone else set()
        variables[parameter.name] = Variable(
            names[parameter.name],
            parameter.type,
            parameter.shape,
            qualifiers=frozenset(words),
            streams=parameter.name in function.streamed,
        )
    for view in function.reshaped:
        same = variables[view.parameter]
        variables[view.name] = replace(same, text=names[view.name], shape=view.shape, memory=same.text)
    scope = Scope(names, variables, dialect=language.noting(), rolled=rolls)
    told = gcc_options(
        strict=not function.contracted,
        keeps=carries_values(function.body),
        holds=holds_vectors(function.body),
        splits=may_stay_as_it_is(function.body),
        chooses=sums_choices(function.body),
        squares=squares_what_it_carries(function.body),
        ties=asks_for_ties(function.body),
    )
    around = Around(before=f"{_IF_GCC}{gcc_pragma(told)}\n#endif\n\n")
    printer = _Entry(
        name=name,
        integers=frozenset(function.integers),
        names=frozenset(names.values()),
        shared={} if shares else None,
        around=around,
        reader=reader,
    )
    body = list(printer.block(function.body, scope, is_whole=True))
    head = f"void {name}(struct team *team, int64_t me, void *const *arrays, const int64_t *integers)"
    scope.needs.definitions[TEAM] = None
    entry = CFunction(name, head, (*_arguments(function, scope), *body), scope.needs)
    return CText(name, tuple(printer.parts), entry, around)


_WORD = re.compile(r"(?<![.>\w])[A-Za-z_]\w*")


def _without_names(lines: Sequence[str], names: frozenset[str]) -> str:
    """Return a text in which the program's names are numbers, in the order in which they are met."""
    numbers = dict[str, str]()

    def number(found: re.Match[str]) -> str:
        word = found.group()
        return numbers.setdefault(word, f"\0{len(numbers)}") if word in names else word

    return _WORD.sub(number, "\n".join(lines))


def _arguments(function: Function, scope: Scope) -> list[str]:
    """Return the declarations of what the text speaks of; the shapes of arrays speak of integers."""
    places = {p.name: k for k, p in enumerate(function.parameters)}
    places |= {view.name: places[view.parameter] for view in function.reshaped}
    variables = {name: scope.variables[name] for name in places if name in scope.needs.names}
    shared = {p.name for p in function.parameters if p.scratch or function.reshaped}
    shared |= {view.name for view in function.reshaped}
    variables = {n: v.beside_others() if n in shared else v for n, v in variables.items()}
    arrays = [f"{scope.pointer(v)} = arrays[{places[name]}];" for name, v in variables.items()]
    integers = [
        f"const int64_t {scope.names[n]} = integers[{k}];"
        for k, n in enumerate(function.integers)
        if n in scope.needs.names
    ]
    return [*integers, *arrays]


def _file(functions: Sequence[CFunction], called: Sequence[str] = (), around: Around | None = None) -> str:
    """Return a file of functions; ``called``: heads of those in other files.

    Helpers are taken into functions that gcc is told more of, too: so are those that what stands around calls
    as well, which stand before all that is told.
    """
    around = around or Around()
    needs = all_needs([around.needs, *(f.needs for f in functions)])
    before, of_all = "", None
    if any(f.told for f in functions):
        of_all = around.needs
        before = definitions(of_all, C)[0]
    helpers, needs = definitions(needs, C, of_all)
    if of_all is not None:
        before, helpers = (f"{_TAKEN_IN}{text}{_AS_BEFORE}" if text else "" for text in (before, helpers))
    headers = "".join(f"#include <{header}>\n" for header in sorted({"stdint.h", *needs.headers}))
    shared = "".join(f"{text}\n" for text in _DEFINITIONS if text in needs.definitions)
    elsewhere = "".join(f"{head};\n" for head in called) + ("\n" if called else "")
    own = "\n".join(_told(told, list(group)) for told, group in groupby(functions, lambda f: f.told))
    texts = (around.head, headers, "\n", before, around.before, shared, helpers, elsewhere, own, around.after)
    return wrapped("".join(texts))


def _told(told: Sequence[str], functions: Sequence[CFunction]) -> str:
    """Return functions of which gcc is told the same."""
    text = "\n".join(f.text for f in functions)
    if not told:
        return text
    before = f"{_IF_GCC}#pragma GCC push_options\n{gcc_pragma(told)}\n#endif\n\n"
    return f"{before}{text}\n{_IF_GCC}#pragma GCC pop_options\n#endif\n"


_IF_GCC = "#if defined(__GNUC__) && !defined(__clang__)\n"
_TAKEN_IN = f"{_IF_GCC}#define inline inline __attribute__((always_inline)) /* options differ */\n#endif\n"
_AS_BEFORE = f"{_IF_GCC}#undef inline\n#endif\n\n"


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
    yield from function.arrays
    yield from function.integers
    yield from declared_in(function.body)
    elements = (s.element for s in walk(function.body) if isinstance(s, Array))
    yield from dict.fromkeys(element.array for element in elements if element is not None)


@dataclass(frozen=True)
class _Called:
    """A call of a part: ``given`` as texts; then integers and arrays of the program, by their names there."""

    name: str
    given: tuple[str, ...]
    integers: tuple[str, ...]
    arrays: tuple[str, ...]

    def with_names(self, names: Mapping[str, str]) -> _Called:
        """Return the same call with other integers and arrays."""
        integers, arrays = (tuple(names.get(n, n) for n in given) for given in (self.integers, self.arrays))
        return replace(self, integers=integers, arrays=arrays)

    def text(self, scope: Scope) -> str:
        """Return it in C."""
        integers = (scope.integer(Name(n)) for n in self.integers)
        arrays = (scope.variable(n).text for n in self.arrays)
        return f"{self.name}({', '.join((*self.given, *integers, *arrays))})"


@dataclass(kw_only=True)
class _Entry:
    """Prints what every thread runs, and collects the parts that it calls."""

    name: str
    integers: frozenset[str]
    """Integers that are known where the printer is."""
    names: frozenset[str]
    """What the program's names are in C."""
    shared: dict[str, str] | None = None
    """The names of parts by their texts without names; None: every part is a function of its own."""
    around: Around = field(default_factory=Around)
    reader: Reader | None = None
    forms: dict[int, tuple[Form, _Called]] = field(default_factory=dict)
    """The first loop of each form, and how what it became is called."""
    parts: list[CFunction] = field(default_factory=list)
    unread: list[CFunction] = field(default_factory=list)
    """Parts of a file that has not been read."""

    def _add(self, part: CFunction) -> None:
        self.parts.append(part)
        if self.reader is not None:
            self.unread.append(part)
            full, rest = _full(self.unread, self.reader.characters)
            self.unread = [*rest]
            for share in full:
                self.reader.read(_file(share, around=self.around))

    def block(self, code: Code, scope: Scope, *, is_whole: bool = False) -> Iterator[str]:
        """Yield the lines of a block that every thread runs.

        At the end of the ``whole`` they need not wait: who runs it does so for all; nor to give memory back.
        """
        common, known = 0, self.integers
        while code:
            if is_parallel(code[0]):
                yield from self._parallel(code[0], scope)
                waits = _waits(code[0])
                code = code[1:]
            elif isinstance(code[0], Mark):
                yield f"if (me == 0) {of_team(scope, 'mark', str(code[0].number))}"
                waits, code = False, code[1:]
            else:
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
                waits = bool(alone)
            if waits and (code or not (common or is_whole)):
                yield of_team(scope, "wait")
        yield from (of_team(scope, "give_common") for _ in range(common))
        self.integers = known

    def _everywhere(self, statement: Statement, scope: Scope) -> Iterator[str]:
        if isinstance(statement, Array):
            variable = _common(statement, scope)
            taken = of_team(scope, "take_common", memory_bytes(variable, scope))
            yield f"{scope.pointer(variable)} = {taken}"
            return
        yield from statement_lines(statement, scope)
        if isinstance(statement, Let) and loads_of(statement):
            yield of_team(scope, "wait")  # nobody changes what it has read before all have

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
            yield f"    {of_team(scope, 'wait')}"
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
        calls = []
        for piece in _in_pieces(code):
            inside = scope.apart()
            lines = list(block_lines(piece, inside))
            calls.append(f"{self._part(lines, inside, scope).text(scope)};")
        if len(calls) == 1:
            yield from ("if (me == 0)", f"    {calls[0]}")
        else:
            yield from ("if (me == 0) {", *indented(calls), "}")

    def _shared(self, loop: For, scope: Scope) -> Iterator[str]:
        """Yield a parallel loop, with those right inside it, shared out."""
        inside, loops = scope.apart(), nested_groups(loop)
        counts = [trip_count(each) for each in loops]
        known = self.forms.get(loop.form.number) if self.shared is not None and loop.form else None
        if known is not None and loop.form is not None:
            first, called = known
            own = dict(zip(first.names, loop.form.names, strict=True))
            yield from self._counted(counts, called.with_names(own).text(scope), scope)
            return
        body = list(block_lines(loops[-1].body, inside))
        told = [inside.dialect.independent] if stores_where_asked(loops[-1]) else []
        if len(loops) == 1:
            lines = [*told, f"{_head_of_share(loop, inside)} {{", *indented(body), "}"]
        elif _points_of(loops[-1].body) > SHORT_BODY:
            lines = ["for (int64_t point = first; point < end; point++) {"]
            lines += [*indented([*point_lines(loops, inside), *body]), "}"]
        else:
            lines = _in_rows(loops, body, told, inside)
        if loop.by_work:
            yield "{"
            yield f"    const int64_t points = {scope.integer(product_of(counts))};"
            yield from indented(self._shares(loops, scope))
            scope.needs.definitions[WORK] = None
            yield f"    {self._part(lines, inside, scope, _SHARE_BY_WORK).text(scope)};"
            yield "}"
        else:
            called = self._part(lines, inside, scope, _SHARE)
            if loop.form is not None:
                self.forms[loop.form.number] = loop.form, called
            yield from self._counted(counts, called.text(scope), scope)

    def _counted(self, counts: Sequence[IntExpression], call: str, scope: Scope) -> Iterator[str]:
        scope.needs.definitions[PART] = None
        yield "{"
        yield f"    const int64_t points = {scope.integer(product_of(counts))};"
        yield f"    {call};"
        yield "}"

    def _shares(self, loops: Sequence[For], scope: Scope) -> list[str]:
        """Return lines that count the work before pieces of parallel loops."""
        name, inside = f"{self.name}_{len(self.parts) + 1}_work", scope.apart()
        lines = work_lines(loops, inside)
        integers = sorted(self.integers & inside.needs.names)
        given = "".join(f", int64_t {scope.names[n]}" for n in integers)
        head = f"int64_t {name}(int64_t point{given})"
        self._add(CFunction(name, head, tuple(lines), inside.needs))
        return share_lines(loops, f"{name}(point{''.join(f', {scope.names[n]}' for n in integers)})", scope)

    def _part(
        self, lines: list[str], inside: Scope, scope: Scope, share: Sequence[tuple[str, str]] = ()
    ) -> _Called:
        """Make a function of a part that was printed ``inside``; return a call of it.

        ``share``: more of its parameters, with values.
        """
        name, spoken = f"{self.name}_{len(self.parts) + 1}", inside.needs.names
        if any(family == "stream" for family, _, _ in inside.needs.helpers):
            inside.needs.definitions[STREAMED] = None
            lines = [*lines, "streamed_is_there();"]
        if scope.rolled and len(shorter := rolled(lines)) < len(lines):
            lines = shorter
            inside.needs.definitions[UNROLLED] = None
        known = [n for n in scope.variables if n in spoken]
        arrays = list(zip(known, _apart_or_not([scope.variable(n) for n in known]), strict=True))
        if self.shared is not None:
            met = {word: -k for k, word in enumerate(reversed(_WORD.findall("\n".join(lines))))}
            arrays.sort(key=lambda pair: met.get(pair[1].text, 1))
        taken = [
            inside.dialect.type(v.type) + f" {v.text}" if v.is_value else inside.pointer(v) for _, v in arrays
        ]
        integers = sorted(self.integers & spoken)  # of the shapes of arrays too: pointers say them
        given = (*(_TEAM if TEAM in inside.needs.definitions else ()), *share)
        heads = [text for text, _ in given]
        heads += [f"int64_t {scope.names[n]}" for n in integers]
        parameters = ", ".join((*heads, *taken)) or "void"
        if self.shared is not None:
            name = self.shared.setdefault(_without_names([parameters, *lines], self.names), name)
        if all(part.name != name for part in self.parts):
            self._add(CFunction(name, f"void {name}({parameters})", tuple(lines), inside.needs))
        return _Called(name, tuple(v for _, v in given), tuple(integers), tuple(n for n, _ in arrays))


def _in_pieces(code: Code) -> Sequence[Code]:
    """Return code in pieces that become functions: a compiler's time grows with a function's square."""
    declares = any(isinstance(statement, Let | LetInteger | Array) for statement in code)
    return [code] if declares or len(code) <= MOST_ALONE else [(statement,) for statement in code]


def _apart_or_not(variables: Sequence[Variable]) -> list[Variable]:
    """Return variables that functions get, not told to be apart where they share their elements."""
    memory = [v.memory or v.text for v in variables]
    pairs = zip(variables, memory, strict=True)
    return [v.beside_others() if memory.count(place) > 1 else v for v, place in pairs]


_TEAM = (("struct team *team", "team"), ("int64_t me", "me"))
_SHARE = (
    ("int64_t first", "part(points, me, team)"),
    ("int64_t end", "part(points, me + 1, team)"),
)
_SHARE_BY_WORK = (
    ("int64_t first", "part_by_work(&shares, points, me, team)"),
    ("int64_t end", "part_by_work(&shares, points, me + 1, team)"),
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
    if not any(isinstance(statement, Let | LetInteger | Array) for statement in run):
        return (), run
    used = arrays_used(after)
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


def _waits(statement: Statement) -> bool:
    """Whether threads wait for each other behind a statement with a parallel loop."""
    return isinstance(statement, For) and statement.kind is Kind.GROUP and not statement.nowait


def _points_of(code: Code) -> float:
    """Return how many points the loops of a body have at most, without those that are vectors."""
    most = 1.0
    for statement in code:
        inner = max(map(_points_of, blocks(statement)), default=1.0)
        most = max(most, inner * (_trips(statement) if isinstance(statement, For) else 1.0))
    return most


def _trips(loop: For) -> float:
    if loop.kind is Kind.VECTOR:
        return 1.0
    try:
        count = trip_count(loop)
    except ValueError:
        return inf
    return count.value if isinstance(count, Number) else inf


def _in_rows(loops: Sequence[For], body: Sequence[str], told: Sequence[str], scope: Scope) -> list[str]:
    """Return nested parallel loops row by row: a division for each point would cost more than short bodies.

    A row is what threads have of the points of the innermost loop: the first and the last may be parts.
    ``told``: what stands before it.
    """
    *_, row = loops
    width = scope.operand(trip_count(row))
    iterators = point_lines(loops[:-1], scope, inner=trip_count(row))
    return [
        "for (int64_t point = first; point < end;) {",
        *indented(iterators),
        f"    const int64_t begin = point % {width};",
        f"    const int64_t stop = {width} - begin < end - point ? {width} : begin + (end - point);",
        *indented(told),
        f"    {_head_of_share(row, scope, 'begin', 'stop')} {{",
        *indented(indented(body)),
        "    }",
        "    point += stop - begin;",
        "}",
    ]


def _head_of_share(loop: For, scope: Scope, first: str = "first", last: str = "end") -> str:
    """Return the head of a loop over iterations ``first`` to ``last``."""
    name = scope.names[loop.iterator]
    assert isinstance(loop.step, Number)
    step, start = loop.step.value, loop.start
    begin, stop = ((f"{text} * {step}" if step != 1 else text) for text in (first, last))
    if start != Number(0):
        begin, stop = (f"{scope.operand(start)} + {text}" for text in (begin, stop))
    return f"for (int64_t {name} = {begin}; {name} < {stop}; {name} += {step})"
