"""The loops of a C program as functions of one more C file; any C compiler builds it, with OpenMP or without.

    int polyloom_gemm(long long n, long long m, long long k, const void *beta, void *C, ...)
    {
        const struct touched touched[] = {
            {beta, 0, 4, 0},
            {C, 0, bytes_of(4, 2, (int64_t[]){n, m}), 1},
            ...
        };
        if (!are_apart(touched, 5))
            return 0; /* the caller runs the original loops */
        static struct pace pace;
        run(gemm_loops, &pace, 1, (void *const[]){(void *)beta, C, ...}, (const int64_t[]){n, m, k});
        return 1;
    }

Not in the papers: md_poly stops at the kernels. Pluto writes C with OpenMP, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.resources import files
from math import prod

from polyloom.ir.host import Buffer, HostProgram, MdHom, Role
from polyloom.ir.inequalities import conjunction
from polyloom.ir.integers import TRUE
from polyloom.ir.transform.specialise import specialise
from polyloom.ir.verification.passes import after_pass
from polyloom.mdh.device.devices import DeviceModel
from polyloom.mdh.dropin.folder import Side, Versions
from polyloom.mdh.dropin.points import any_has, points_of
from polyloom.mdh.dropin.signature import TAKEN, Signature, header, qualifier
from polyloom.mdh.dropin.unit_steps import unit_steps
from polyloom.mdh.lowering.chunked_scans import LEAST_COUNTED
from polyloom.mdh.lowering.nests.past_caches import least_past, past_caches
from polyloom.mdh.lowering.tiles.groups import LEAST_SHARED
from polyloom.mdh.native.execution import Schedules, function_of
from polyloom.mdh.print.c_source import Around, CText, c_file, c_text
from polyloom.mdh.print.dialect import C, Dialect
from polyloom.mdh.print.gcc_pragma import (
    asks_for_ties,
    fills_registers,
    gcc_options,
    gcc_pragma,
    holds_vectors,
    squares_what_it_carries,
    sums_choices,
)
from polyloom.mdh.print.names import c_names
from polyloom.mdh.print.rolled import UNROLLED
from polyloom.mdh.print.values import integer_c
from polyloom.mdh.schedule.open_sizes import in_rows, may_have_rows, row_of, with_large_parts, without_groups
from polyloom.mdh.schedule.schedules import Schedule
from polyloom.mdh.schedule.search_space import ScheduleSpace, space_of
from polyloom.mdh.tree.nodes import Array, Code, Function, Space
from polyloom.mdh.tree.rewrite import parameters_used, walk
from polyloom.mdh.tree.trips import is_parallel, shared_points
from polyloom.polyhedra.loops.tree import IntExpression, Number, Operation, nodes_in

FEW = 4
"""Arrays that a call compares without a loop."""

SMALL = 4096
"""Bytes of an array of the program's own that lies in the call's frame, also where that is only known then:
`malloc` takes 50 ns for each. All of them take up to four times as many."""

LEAST_ROW = 1 << 11
"""Elements of rows of results that go past caches: a line at an end that is written in part takes 0.1 us."""

MOST_ASKED = 8
"""Nests of loops whose points a call counts to know whether threads share them."""

FILE, HEADER, TEAM = "polyloom_loops.c", "polyloom_loops.h", "loops_team.c"


@dataclass(frozen=True, eq=False)
class Version:
    """A host program, and its kernel tree, where parameters have these values (none: for all values).

    ``asked``: what calls have to be like besides, of parameters; None: nothing. ``ending``: of its name.
    """

    values: Mapping[str, int]
    program: HostProgram
    function: Function
    asked: IntExpression | None = None
    ending: str = ""

    @cached_property
    def is_parallel(self) -> bool:
        """Whether threads share any of its loops."""
        return any(map(is_parallel, self.function.body))

    @cached_property
    def points(self) -> Sequence[IntExpression] | None:
        """Those of the program."""
        return points_of(self.program)

    @cached_property
    def has_parts(self) -> bool:
        """Whether threads share a sum, of which they leave parts."""
        return any(array.totals is not None and array.totals.parts for array in self._arrays())

    @property
    def has_bins(self) -> bool:
        """Whether threads share a histogram, each with bins of its own."""
        return any(array.totals is None for array in self._arrays() if array in self.function.body)

    def _arrays(self) -> Iterator[Array]:
        """Yield the arrays that all threads see, or one in each of its iterations."""
        return (s for s in walk(self.function.body) if isinstance(s, Array) and s.space is Space.GROUP)


def c_side(device: DeviceModel, schedules: Schedules) -> Side:
    """Return what makes functions in C for a processor. ``schedules``: of md_homs."""

    def made(functions: Sequence[tuple[Signature, Versions]]) -> dict[str, str]:
        calls = [call for call, _ in functions]
        found = [
            (call, [each for given in versions for each in _versions(*given, device, schedules)])
            for call, versions in functions
        ]
        strict = any(program.strict for _, versions in functions for _, program in versions)
        text = loops_file(found, device.vector_bytes, strict=strict)
        return {FILE: text, HEADER: header(HEADER, calls)}

    return Side(
        target="c",
        endless=True,
        device=device.id,
        file=FILE,
        command=f"cc -O2 -fopenmp -Wno-psabi {{program}} {FILE} -lm",
        note=_NOTE,
        files=made,
    )


def _versions(
    values: Mapping[str, int], program: HostProgram, device: DeviceModel, schedules: Schedules
) -> Iterator[Version]:
    """Yield a program for calls with steps of 1, if it has such, then for all others."""
    steps: dict[str, int] = {} if values else dict.fromkeys(unit_steps(program), 1)
    if steps:
        special = after_pass("specialisation", specialise(program, steps))
        for each in _by_points({}, special, device, schedules):
            yield replace(each, values=steps, ending=f"_of_unit_steps{each.ending}")
    yield from _by_points(values, program, device, schedules)


def _by_points(
    values: Mapping[str, int], program: HostProgram, device: DeviceModel, schedules: Schedules
) -> Iterator[Version]:
    """Yield a program for threads; where they share a sum in parts, the same behind it, for few points.

    Before it, where results may be too large for caches, the same that stores them past these.

    A call takes the one or the other by its sizes alone, so that results do not depend on threads.
    """

    def chosen(fit: Callable[[ScheduleSpace, Schedule], Schedule]) -> Schedules:
        def choose(hom: MdHom, around: HostProgram, of: DeviceModel) -> Schedule | None:
            found = schedules(hom, around, of)
            return found and fit(space_of(hom, around, of), found)

        return choose

    points = None if values else points_of(program)
    function = function_of(program, chosen(with_large_parts), device, of_many=points is not None)
    shared = Version(values, program, function, ending="_special" if values else "")
    if points is None:
        yield shared
        return
    if any(isinstance(node, MdHom) and may_have_rows(node) for node in nodes_in(program.body)):
        in_long_rows = function_of(program, chosen(in_rows), device)
        large = _past_caches(shared, points, in_long_rows, device)
        if large is not None:
            yield large
    if not (shared.has_parts or shared.has_bins):
        yield shared
        return
    alone = replace(device, compute_units=1)
    least = LEAST_COUNTED if shared.has_bins else LEAST_SHARED
    yield replace(shared, asked=any_has(points, least), ending="_of_many")
    yield Version(values, program, function_of(program, chosen(without_groups), alone))


def _past_caches(
    shared: Version, points: Sequence[IntExpression], function: Function, device: DeviceModel
) -> Version | None:
    """Return the version for results larger than caches, in long rows; None where none may bypass them."""
    homs = [node for node in nodes_in(shared.program.body) if isinstance(node, MdHom)]
    rows = {
        view.buffer: hom.extents[d] for hom in homs if (d := row_of(hom)) is not None for view in hom.outputs
    }
    far = past_caches(function, device.caches, of_large=True)
    streamed = far.streamed & rows.keys()
    if not streamed:
        return None
    least = least_past(device.caches) // min(p.type.size for p in far.parameters if p.name in streamed) + 1
    asked = [*((n, least) for n in points), *((n, LEAST_ROW) for n in rows.values() if n not in points)]
    return replace(
        shared,
        function=replace(far, streamed=streamed),
        asked=conjunction([Operation(">=", (n, Number(size))) for n, size in dict.fromkeys(asked)]),
        ending="_of_large",
    )


def loops_file(
    functions: Sequence[tuple[Signature, Sequence[Version]]], vector_bytes: int, *, strict: bool
) -> str:
    """Return a C file with functions; the last version of each is for all values.

    ``vector_bytes``: of the processor; ``strict``: no product and sum become one operation.
    """
    features = _FEATURES.get(vector_bytes)
    texts: list[CText] = []
    definitions = [(files("polyloom.mdh.dropin") / "native" / TEAM).read_text(encoding="utf-8")]
    dialect = C.noting()
    dialect.noted.definitions[UNROLLED] = None
    for call, versions in functions:
        made = [
            c_text(replace(v.function, name=name), rolls=True)
            for v, name in zip(versions, _names(call, versions), strict=True)
        ]
        texts += made
        pairs = list(zip(versions, made, strict=True))
        definitions.append(_definition(call, pairs, dialect, special=features is not None))
    bodies = [version.function.body for _, versions in functions for version in versions]
    rounds = any(text.rounds_by_sums for text in texts)
    told = [_options(body, strict=strict, rounds=rounds) for body in bodies]
    of_all = [each for each in told[0] if all(each in others for others in told)]
    of_each = [[each for each in options if each not in of_all] for options in told]
    head = f" for processors with {features.name}" if features else ""
    around = Around(
        head=_HEAD.format(header=HEADER, processors=head),
        before=_pragmas(features, gcc_pragma(of_all), strict=strict, rounds=rounds),
        after=f"{_POP}\n" + "\n".join(definitions),
        needs=dialect.noted,
    )
    return c_file(texts, of_each, around)


def _options(body: Code, *, strict: bool, rounds: bool) -> tuple[str, ...]:
    """Return what gcc is told of a function; ``rounds``: whether the file does, by sums."""
    return gcc_options(
        strict=strict,
        holds=holds_vectors(body),
        chooses=sums_choices(body),
        orders=rounds or fills_registers(body),
        squares=squares_what_it_carries(body),
        ties=asks_for_ties(body),
    )


def _pragmas(features: _Features | None, pragma: str, *, strict: bool, rounds: bool) -> str:
    """Return what is said to compilers; ``rounds``: by sums whose order is kept under -ffast-math, too."""
    text = _GCC.format(pragma=pragma)
    if strict:
        text += _CLANG_STRICT
    if rounds:
        text += _CLANG_IN_ORDER
    if features:
        supported = " && ".join(f'__builtin_cpu_supports("{word}")' for word in features.words)
        text += _TARGET.format(target=",".join((*features.words, *features.more)), supported=supported)
    return f"{text}\n"


def _names(call: Signature, versions: Sequence[Version]) -> list[str]:
    """Return what the versions are called; no function of another call is called so, nor a part of one."""
    name = f"{call.function.removeprefix('polyloom_')}_loops"
    return [f"{name}{version.ending}" for version in versions]


def _definition(
    call: Signature, versions: Sequence[tuple[Version, CText]], dialect: Dialect, *, special: bool
) -> str:
    """Return the definition of a function: checks, then the first version whose values are given.

    ``special``: whether not every processor runs it.
    """
    general, _ = versions[-1]
    lines, conditions = [], ["!IS_THE_PROCESSOR"] if special else []
    context = general.program.context
    if context is not None and context != TRUE:
        conditions.append(f"!({integer_c(context, call.names, dialect)})")
    asked = [buffer for buffer in _memories(call.buffers) if not buffer.alone]
    if asked:
        rows = [_touched(buffer, call.names, dialect) for buffer in asked]
        lines += ["const struct touched touched[] = {", *(f"    {{{row}}}," for row in rows), "};"]
        are_apart = "are_few_apart" if len(rows) <= FEW else "are_apart"
        conditions.append(f"!{are_apart}(touched, {len(rows)})")
    if conditions:
        lines += [f"if ({' || '.join(conditions)})", "    return 0;"]
    lines.append("static struct pace pace;")
    for version, text in versions:
        lines += _Run(call, version, text.name, dialect).lines()
    return "\n".join([call.prototype, "{", *(f"    {line}" for line in lines), "}", ""])


def _memories(buffers: Sequence[Buffer]) -> Iterator[Buffer]:
    """Yield buffers that are to be apart: for those in one memory the first, as long as the longest of them.

    It is written where any of them is.
    """
    together = dict[str, list[Buffer]]()
    for buffer in buffers:
        together.setdefault(buffer.memory or buffer.name, []).append(buffer)
    for first, *others in together.values():
        if not others:
            yield first
            continue
        role = Role.INPUT if all(b.role is Role.INPUT for b in (first, *others)) else Role.UPDATED
        lengths = tuple(dict.fromkeys(b.shape[0] for b in (first, *others)))
        length = lengths[0] if len(lengths) == 1 else Operation("max", lengths)
        yield replace(first, role=role, rows=None, shape=(length, *first.shape[1:]))


def _touched(buffer: Buffer, names: Mapping[str, str], dialect: Dialect) -> str:
    """Return a buffer, from which byte to before which one the program touches it, and whether it writes."""
    name, written = names[buffer.name], int(buffer.role is not Role.INPUT)
    whole = _bytes(buffer, names, dialect)
    if buffer.rows is None or buffer.rows == (Number(0), buffer.shape[0]):
        return f"{name}, 0, {whole}, {written}"
    row = _bytes(replace(buffer, shape=buffer.shape[1:]), names, dialect)
    first, end = (_times(row, integer_c(number, names, dialect)) for number in buffer.rows)
    return f"{name}, {first}, {end}, {written}"


def _times(row: str, number: str) -> str:
    if number == "0":
        return "0"
    return f"{row} * ({number})" if row.isdecimal() else f"rows_of({row}, {number})"


def _known(buffer: Buffer) -> tuple[int, ...]:
    """Return the extents of an array; 0 among them where one is not known."""
    return tuple(n.value if isinstance(n, Number) else 0 for n in buffer.shape)


def _bytes(buffer: Buffer, names: Mapping[str, str], dialect: Dialect) -> str:
    """Return the bytes of a buffer in C, negative where it has no elements."""
    known = [n.value for n in buffer.shape if isinstance(n, Number)]
    if len(known) == len(buffer.shape):
        return str(buffer.type.size * prod(known))
    extents = ", ".join(integer_c(n, names, dialect) for n in buffer.shape)
    return f"bytes_of({buffer.type.size}, {len(buffer.shape)}, (int64_t[]){{{extents}}})"


@dataclass(frozen=True, eq=False)
class _Run:
    """Prints the run of one version."""

    call: Signature
    version: Version
    function: str
    dialect: Dialect

    def lines(self) -> Iterator[str]:
        """Yield the run, behind the question whether the version's values are given."""
        names, values = self.call.names, self.version.values
        conditions = [f"{names[name]} == {value}" for name, value in values.items()]
        if self.version.asked is not None:
            asked = integer_c(self.version.asked, names, self.dialect)
            conditions.append(f"({asked})" if conditions else asked)
        if not conditions:
            yield from self._body()
            return
        yield f"if ({' && '.join(conditions)}) {{"
        yield from (f"    {line}" for line in self._body())
        yield "}"

    def _body(self) -> Iterator[str]:
        """Yield the run; memory for the program's own arrays is taken before it."""
        program, names = self.version.program, self.call.names
        used = parameters_used(self.version.function)
        own = [b for b in program.buffers if b.role is Role.LOCAL and b.name in used]
        rooms = c_names([b.name for b in own], (*TAKEN, *names.values()))
        unused = {b.name: "NULL" for b in program.buffers if b.role is Role.LOCAL and b.name not in used}
        pointers = {**names, **rooms, **unused}
        arrays = _array("void *const", [_unqualified(b, pointers[b.name]) for b in program.buffers])
        integers = _array("const int64_t", [names[name] for name in self.version.function.integers])
        run = f"run({self.function}, &pace, {self._is_shared()}, {arrays}, {integers});"
        elements = {b: prod(_known(b)) for b in own}
        small = [b for b in own if 0 < elements[b] * b.type.size <= SMALL]
        small = small if sum(elements[b] * b.type.size for b in small) <= 4 * SMALL else []
        for buffer in small:
            element, room = self.dialect.type(buffer.type), rooms.pop(buffer.name)
            yield f"_Alignas(64) {element} {room}[{elements[buffer]}];"
        if not rooms:
            yield from (run, "return 1;")
            return
        size = max(64, min(SMALL, 4 * SMALL // len(rooms)) // 64 * 64)
        yield f"_Alignas(64) char frame[{len(rooms)}][{size}];"
        for k, (name, room) in enumerate(rooms.items()):
            bytes_ = _bytes(program.buffer(name), names, self.dialect)
            yield f"void *const {room} = room_or(frame[{k}], {size}, {bytes_});"
        yield f"const int is_there = {' && '.join(f'{room} != NULL' for room in rooms.values())};"
        yield from ("if (is_there)", f"    {run}")
        for k, room in enumerate(rooms.values()):
            yield from (f"if ({room} != frame[{k}])", f"    free({room});")
        yield "return is_there;"

    def _is_shared(self) -> str:
        """Return whether threads share the loops: not where all that they would share has few points."""
        if not self.version.is_parallel:
            return "0"
        version = self.version
        points = version.points or shared_points(version.function.body, set(version.function.integers))
        if version.asked is not None or not points or len(points) > MOST_ASKED:
            return "1"
        return integer_c(any_has(points, LEAST_SHARED), self.call.names, self.dialect)


def _array(kind: str, values: Sequence[str]) -> str:
    return f"({kind}[]){{{', '.join(values)}}}" if values else "NULL"


def _unqualified(buffer: Buffer, name: str) -> str:
    return f"(void *){name}" if qualifier(buffer) else name


_NOTE = """\
# Without -fopenmp one thread runs the loops. With -DPOLYLOOM_ANY_PROCESSOR they use what -march says alone.
"""
_HEAD = """\
/* Loops of a C program as functions, made by Polyloom{processors}. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* aligned_alloc and madvise, also under -std=c99 */
#endif
#include "{header}"

#include <stdio.h>
#include <stdlib.h>
#ifdef __linux__
#include <sys/mman.h>
#endif
#ifdef _OPENMP
#include <omp.h>
#include <pthread.h>
#include <sched.h>
#endif
"""
_GCC = """\
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wpsabi" /* vectors are passed among functions of this file alone */
#pragma GCC diagnostic ignored "-Wunused-parameter" /* all parts are called alike */
#pragma GCC diagnostic ignored "-Warray-bounds" /* in loops that have no iterations */
#pragma GCC diagnostic ignored "-Wstringop-overflow"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized" /* vectors are filled lane by lane */
#pragma GCC push_options
#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math") /* -O2 makes few vectors of plain loops */
{pragma}
#endif
"""
_CLANG_STRICT = """\
#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif
"""
_CLANG_IN_ORDER = """\
#ifdef __clang__
#pragma clang fp reassociate(off)
#endif
"""
_TARGET = """\
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(POLYLOOM_ANY_PROCESSOR)
#pragma GCC target("{target}")
#define IS_THE_PROCESSOR ({supported})
#else
#define IS_THE_PROCESSOR 1
#endif
"""
_POP = """\
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#endif
"""


@dataclass(frozen=True)
class _Features:
    """What processors have that code is made for; ``words``, and ``more`` options, are those of gcc."""

    name: str
    words: tuple[str, ...]
    more: tuple[str, ...] = ()


_FEATURES = {
    64: _Features(
        "AVX-512",
        ("avx512f", "avx512bw", "avx512dq", "avx512vl", "avx2", "fma"),
        ("prefer-vector-width=512",),
    ),
    32: _Features("AVX2", ("avx2", "fma")),
}
"""By the bytes of a vector."""
