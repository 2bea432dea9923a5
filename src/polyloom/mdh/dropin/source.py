"""The user's C file with calls in front of its SCoPs, which run where these decline."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from polyloom.diagnostics import Diagnostic, Source, Unsupported, error
from polyloom.ir.host import Buffer, Role
from polyloom.ir.types import C_TYPES
from polyloom.mdh.dropin.apart import conditions_apart
from polyloom.mdh.dropin.points import LEAST_REPEATED, any_has
from polyloom.mdh.dropin.signature import Signature
from polyloom.mdh.dropin.variables import Integers, Variable
from polyloom.polyhedra.loops.tree import IntExpression, names_in


@dataclass(frozen=True, eq=False, kw_only=True)
class Place:
    """Where a host program stood in a C file, and what its names are there.

    ``extent``: a range of characters of ``source``. ``parameters``: what C calls the integers, by their names
    in the host program; empty where another variable has that name.
    ``variables``: by the names of buffers. ``escaping``: iterators that C reads afterwards. ``returned``: the
    buffer of what the function returns. ``marked``: whether a person wants all of it replaced.
    ``static``: whether other files of the program may have a function of this name, too.
    ``present``: C's names of pointers that must not be NULL; empty where another variable has that name.
    ``reached``: C's names of numbers to which pointers may lead.
    ``stepped``: pointers that are moved, and what the integers are called that say by how much.
    ``repeated``: loops are around it, which stay in C.
    """

    name: str
    source: Source
    extent: tuple[int, int]
    parameters: Mapping[str, str]
    variables: Mapping[str, Variable]
    escaping: tuple[str, ...] = ()
    returned: str | None = None
    marked: bool = True
    static: bool = False
    present: tuple[str, ...] = ()
    reached: tuple[str, ...] = ()
    stepped: tuple[tuple[str, str], ...] = ()
    repeated: bool = False


@dataclass(frozen=True, eq=False, kw_only=True)
class Replacement:
    """A range of characters of the source, and the call in front of it that may do its work.

    ``integers``: the C expressions of the call's parameters. ``pointers``: for each of its buffers, that of
    its first element's address. ``copies``: of elements that do not lie side by side. ``needed``: what holds
    where there is enough to do, structures lie as they are taken to, and copies, and sizes in memory, are no
    parts of what is written. ``helpers``: functions of two numbers that the block calls. ``returned``: the
    type and name of the variable that is returned behind the call. ``present``: pointers without which
    nothing is called. ``kept``: variables of the block, in the place of what C has no address of.
    """

    start: int
    end: int
    call: Signature
    integers: tuple[str, ...]
    pointers: tuple[str, ...]
    copies: tuple[GatheredArray, ...] = ()
    needed: tuple[str, ...] = ()
    helpers: tuple[str, ...] = ()
    returned: tuple[str, str] | None = None
    present: tuple[str, ...] = ()
    kept: tuple[Kept, ...] = ()


@dataclass(frozen=True)
class Kept:
    """A variable of the block: what it begins with, and the statement behind the call that uses it."""

    declaration: str
    use: str


@dataclass(frozen=True)
class GatheredArray:
    """A copy of elements side by side: statements that make room, fill it, and bring back what is written."""

    name: str
    room: str
    fill: tuple[str, ...]
    bring: tuple[str, ...]


def replacement(
    source: Source,
    place: Place,
    call: Signature,
    points: Sequence[IntExpression] = (),
    *,
    endless: bool = False,
) -> Replacement:
    """Return what stands in ``source`` in a place; blanks at its ends stay.

    ``points``: of each nest of its loops, where they are known (``points_of``). ``endless``: the function
    need not know how long arrays are that C says are alone.

    Errors: ``Unsupported`` with ``drop-in-...`` where a call cannot be written.
    """
    if endless:
        place = _with_lengths(place, call)
    found = tuple(_obstacles(source, place, call))
    if found:
        raise Unsupported(*found)
    start, end = place.extent
    text = source.text[start:end]
    start, end = start + len(text) - len(text.lstrip()), end - len(text) + len(text.rstrip())
    given = tuple(place.parameters[name] for name in call.parameters)
    integers = Integers(place.parameters)
    pointers = tuple(_pointer(buffer, place.variables[buffer.name]) for buffer in call.buffers)
    used = {place.variables[buffer.name].base for buffer in call.buffers}
    copies = tuple(_copy(b, place, integers) for b in call.buffers if not place.variables[b.name].is_dense)
    needed = (*_enough(points if place.repeated else (), integers), *_needed(call, place, integers))
    return Replacement(
        start=start,
        end=max(start, end),
        call=call,
        integers=given,
        pointers=pointers,
        copies=copies,
        needed=needed,
        helpers=integers.called,
        returned=next((_returned(b, place) for b in call.buffers if b.name == place.returned), None),
        present=place.present,
        kept=(
            *(_moved(pointer, offset) for pointer, offset in place.stepped if offset in used),
            *(_in_register(b, place.variables[b.name]) for b in call.buffers if _lies_in_register(b, place)),
        ),
    )


ENDLESS = "(1LL << 40)"
"""A length that no array has, of those of which nobody says it."""


def _with_lengths(place: Place, call: Signature) -> Place:
    """Return a place with a length for each array that is alone, and dense, and has none."""
    alone = [b.name for b in call.buffers if b.alone and place.variables[b.name].is_dense]
    lengths = {f"{name}_extent": ENDLESS for name in alone}
    return replace(place, parameters={**lengths, **place.parameters})


def _moved(pointer: str, offset: str) -> Kept:
    """Return the integer that is added to a pointer."""
    return Kept(f"long {offset} = 0;", f"{pointer} += {offset};")


def _lies_in_register(buffer: Buffer, place: Place) -> bool:
    return place.variables[buffer.name].register and not buffer.shape and buffer.role is not Role.INPUT


def _in_register(buffer: Buffer, variable: Variable) -> Kept:
    """Return a copy of a variable that the call changes, and that has no address."""
    name, copy = variable.element(()), _gathered(buffer)
    first = "" if buffer.role is Role.OUTPUT else f" = {name}"
    return Kept(f"{C_TYPES[buffer.type]} {copy}{first};", f"{name} = {copy};")


def _enough(points: Sequence[IntExpression], integers: Integers) -> Iterator[str]:
    """Yield that there is more to do than a call takes; the C compiler has the original loops in line."""
    if points and all(names_in(n) <= integers.names.keys() for n in points):
        yield f"({integers.text(any_has(points, LEAST_REPEATED))})"


def _needed(call: Signature, place: Place, integers: Integers) -> tuple[str, ...]:
    layouts = (text for buffer in call.buffers for text in place.variables[buffer.name].layout)
    apart = conditions_apart(call.buffers, place.variables, integers, place.reached)
    return (*dict.fromkeys(layouts), *apart)


def _returned(buffer: Buffer, place: Place) -> tuple[str, str]:
    return C_TYPES[buffer.type], place.variables[buffer.name].element(())


def _obstacles(source: Source, place: Place, call: Signature) -> Iterator[Diagnostic]:
    if place.source.name == source.name and place.extent == (0, 0):
        message = f"the braces of `{place.name}` share their line with others, or come from a macro"
        yield error("drop-in-included", message, helps=["begin each function on a line of its own"])
    elif place.source.name != source.name:
        helps = [f"compile `{place.source.name}` by itself"]
        yield error("drop-in-included", f"`{place.name}` stands in an included file", helps=helps)
    for name in call.parameters:
        if name not in place.parameters:
            array = name.removesuffix("_extent")
            message = f"how many elements `{array}` has is not said"
            helps = [f"declare it with its extent, such as `{array}[n]`, or as `restrict`"]
            span = place.variables[array].span if array in place.variables else None
            yield error("drop-in-extent", message, span, helps=helps)
    for name in place.escaping:
        message = f"the value that the loops of `{place.name}` leave in `{name}` is used after them"
        helps = [f"declare it where it is used, `for (int {name} = ...`, or set it anew after the SCoP"]
        yield error("drop-in-iterator", message, helps=helps)
    yield from _nameless(place, call)


def _nameless(place: Place, call: Signature) -> Iterator[Diagnostic]:
    """Find what cannot be seen from the call: of two variables of one name in C only one can."""
    helps = ["give one of them another name"]
    if "" in place.present:
        message = "another variable hides a pointer that is compared with NULL where the SCoP stands"
        yield error("drop-in-names", message, helps=helps)
    for name in call.parameters:
        if place.parameters.get(name) == "":
            yield error(
                "drop-in-names", f"another variable hides `{name}` where the SCoP stands", helps=helps
            )
    seen: dict[tuple[str, ...], str] = {}
    for buffer in call.buffers:
        variable = place.variables[buffer.name]
        if variable.hidden or seen.get(variable.path, buffer.memory) != buffer.memory:
            message = f"two variables are called `{'.'.join(variable.path)}` where the SCoP stands"
            yield error("drop-in-names", message, variable.span, helps=helps)
        seen[variable.path] = buffer.memory or buffer.name


def _pointer(buffer: Buffer, variable: Variable) -> str:
    """Return the address of the first element: of an array itself, of a scalar that is only read a copy's."""
    if not variable.is_dense:
        return _gathered(buffer)
    name = variable.element(())
    if buffer.shape:
        return f"({'const ' if buffer.role is Role.INPUT else ''}void *){name}"
    if buffer.role is Role.INPUT and buffer.type in C_TYPES:
        return f"({C_TYPES[buffer.type]}[1]){{{name}}}"
    return f"&{_gathered(buffer) if variable.register else name}"


def _gathered(buffer: Buffer) -> str:
    return f"polyloom_{buffer.name}"


def _copy(buffer: Buffer, place: Place, integers: Integers) -> GatheredArray:
    """Return how an array whose elements do not lie side by side is copied."""
    name, kind = _gathered(buffer), C_TYPES[buffer.type]
    count = " * ".join(f"({integers.text(extent)})" for extent in buffer.shape)
    taken = f"polyloom_take((long long)sizeof({kind}) * {count})"
    taken = f"{' && '.join(place.present)} ? {taken} : 0" if place.present else taken
    room = f"{kind} *{name} = {taken};"
    fill = () if buffer.role is Role.OUTPUT else (_for_all(buffer, place, integers, "{copy} = {element};"),)
    bring = () if buffer.role is Role.INPUT else (_for_all(buffer, place, integers, "{element} = {copy};"),)
    return GatheredArray(name, room, fill, bring)


def _for_all(buffer: Buffer, place: Place, integers: Integers, statement: str) -> str:
    """Return loops over all elements, and their places in the copy."""
    indices = [f"polyloom_{k}" for k in range(len(buffer.shape))]
    extents = [integers.text(extent) for extent in buffer.shape]
    loops = [f"for (long long {i} = 0; {i} < {n}; {i}++)" for i, n in zip(indices, extents, strict=True)]
    position = indices[0]
    for index, extent in zip(indices[1:], extents[1:], strict=True):
        position = f"({position}) * ({extent}) + {index}"
    variable = place.variables[buffer.name]
    element = variable.element([position] if variable.is_linear(len(indices)) else indices)
    return " ".join([*loops, statement.format(copy=f"{_gathered(buffer)}[{position}]", element=element)])


def with_calls(text: str, replacements: Sequence[Replacement], conditions: Sequence[str], file: str) -> str:
    """Return the text with a block in place of each range: a call, and the range itself where it returns 0.

    ``conditions``: of nested ``#if``, without which nothing is called.
    ``file``: where the functions are.
    """
    pieces, position = [], 0
    for part in sorted(replacements, key=lambda r: r.start):
        line = text[text.rfind("\n", 0, part.start) + 1 : part.start]
        margin = line if not line.strip() else ""
        end_of_line = "\r\n" if "\r\n" in text else "\n"
        original = text[part.start : part.end]
        lines = [f"{{ /* by Polyloom, see {file} */", *_block(part, conditions, margin)]
        lines += [f"{margin}{original}", f"{margin}  }}{_stored(part)}"]
        lines += [f"{margin}  return {part.returned[1]};"] if part.returned else []
        lines += [f"{margin}}}"]
        pieces += [text[position : part.start], end_of_line.join(lines)]
        position = part.end
    return "".join([*pieces, text[position:]])


def _stored(part: Replacement) -> str:
    """Return what stores in variables without an address where the call has done its work."""
    uses = " ".join(kept.use for kept in part.kept)
    return f" else {{ {uses} }}" if uses else ""


def _block(part: Replacement, conditions: Sequence[str], margin: str) -> Iterator[str]:
    """Yield what stands in front of the original statements."""
    integers = [f"(long long){text}" for text in part.integers]
    call = f"{part.call.function}({', '.join([*integers, *part.pointers])})"
    needed = [*part.present, *(() if part.copies else part.needed)]
    asked = [*needed, call]
    yield f"{margin}  extern {part.call.declaration};"
    yield from (f"{margin}  extern long long {helper}(long long, long long);" for helper in part.helpers)
    if part.returned:
        yield f"{margin}  {' '.join(part.returned)};"
    yield from (f"{margin}  {kept.declaration}" for kept in part.kept)
    if not part.copies and not conditions:
        yield from (f"{margin}  {line}" for line in _all("if (!", asked, ") {"))
        return
    yield f"{margin}  int polyloom_done = 0;"
    for condition in conditions:
        yield from _directive(f"#if {condition}")
    called = _with_copies(part, call) if part.copies else _all("polyloom_done = ", asked, ";")
    yield from (f"{margin}  {line}" for line in called)
    yield from ["#endif"] * len(conditions)
    yield f"{margin}  if (!polyloom_done) {{"


def _directive(text: str) -> Iterator[str]:
    """Yield a directive in lines of which each but the last goes on."""
    *lines, last = textwrap.wrap(text, _WIDEST, break_long_words=False, break_on_hyphens=False)
    yield from (f"{line} \\" for line in lines)
    yield last


def _all(before: str, conditions: Sequence[str], behind: str) -> list[str]:
    """Return ``before (a && b && ..) behind`` in lines that break between the conditions."""
    if len(conditions) == 1:
        return [f"{before}{conditions[0]}{behind}"]
    lines = [f"{before}({conditions[0]}"]
    for condition in conditions[1:]:
        if len(lines[-1]) + len(condition) > _WIDEST:
            lines.append(f"    && {condition}")
        else:
            lines[-1] += f" && {condition}"
    return [*lines[:-1], f"{lines[-1]}){behind}"]


_WIDEST = 108


def _with_copies(part: Replacement, call: str) -> Iterator[str]:
    """Yield a call among the copies that it needs, for which no room is taken where a pointer is NULL."""
    yield from ("extern void *polyloom_take(long long);", "extern void polyloom_give(void *);")
    yield from (copy.room for copy in part.copies)
    conditions = [*(copy.name for copy in part.copies), *part.needed]
    yield from _all("if ", conditions if len(conditions) > 1 else [f"({conditions[0]})"], " {")
    yield from (f"  {line}" for copy in part.copies for line in copy.fill)
    yield f"  polyloom_done = {call};"
    yield "}"
    yield "if (polyloom_done) {"
    yield from (f"  {line}" for copy in part.copies for line in copy.bring)
    yield "}"
    yield from (f"polyloom_give({copy.name});" for copy in part.copies)
