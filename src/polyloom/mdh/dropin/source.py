"""The user's C file with calls in place of its SCoPs; everything else stays as it is, byte for byte."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from polyloom.diagnostics import Diagnostic, Source, Span, Unsupported, error
from polyloom.ir.host import Buffer, Role
from polyloom.ir.types import C_TYPES
from polyloom.mdh.dropin.host import Signature
from polyloom.mdh.print.values import integer_c


@dataclass(frozen=True)
class Variable:
    """What C calls a buffer: ``p[i].x[j]`` is path ``("p", "x")``, levels ``(1, 1)``.

    ``hidden``: where the call stands another variable has its name.
    """

    path: tuple[str, ...]
    levels: tuple[int, ...]
    span: Span | None = field(default=None, compare=False, repr=False)
    hidden: bool = False

    @property
    def is_dense(self) -> bool:
        """Whether its elements lie side by side: all subscripts stand at the end."""
        return not any(self.levels[:-1])

    def element(self, indices: Sequence[str]) -> str:
        """Return one element, as many indices as there are subscripts; the array itself for none."""
        text, used = "", 0
        for name, count in zip(self.path, self.levels, strict=True):
            chosen = indices[used : used + count]
            text += ("." if text else "") + name + "".join(f"[{index}]" for index in chosen)
            used += count
        return text


@dataclass(frozen=True, eq=False, kw_only=True)
class Place:
    """Where a host program stood in a C file, and what its names are there.

    ``extent``: a range of characters of ``source``. ``parameters``: what C calls the integers, by their names
    in the host program; empty where another variable has that name.
    ``variables``: by the names of buffers. ``escaping``: iterators that C reads afterwards.
    """

    name: str
    source: Source
    extent: tuple[int, int]
    parameters: Mapping[str, str]
    variables: Mapping[str, Variable]
    escaping: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False, kw_only=True)
class Replacement:
    """A range of characters of the source, and the call that takes its place.

    ``integers``: the C expressions of the call's parameters. ``pointers``: for each of its buffers, that of
    its first element's address. ``before`` and ``after`` the call: statements that bring elements together
    which do not lie side by side.
    """

    start: int
    end: int
    call: Signature
    integers: tuple[str, ...]
    pointers: tuple[str, ...]
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


def replacement(source: Source, place: Place, call: Signature) -> Replacement:
    """Return what takes a place in ``source``; blanks at its ends stay.

    Errors: ``Unsupported`` with ``drop-in-...`` where a call cannot be written.
    """
    found = tuple(_obstacles(source, place, call))
    if found:
        raise Unsupported(*found)
    start, end = place.extent
    text = source.text[start:end]
    start, end = start + len(text) - len(text.lstrip()), end - len(text) + len(text.rstrip())
    integers = tuple(place.parameters[name] for name in call.parameters)
    pointers = tuple(_pointer(buffer, place.variables[buffer.name]) for buffer in call.buffers)
    before, after = _statements(place, call)
    return Replacement(
        start=start,
        end=max(start, end),
        call=call,
        integers=integers,
        pointers=pointers,
        before=before,
        after=after,
    )


def _obstacles(source: Source, place: Place, call: Signature) -> Iterator[Diagnostic]:
    if place.source.name != source.name or place.extent == (0, 0):
        helps = [f"compile `{place.source.name}` by itself"]
        yield error("drop-in-included", f"`{place.name}` stands in an included file", helps=helps)
    for name in call.parameters:
        if name not in place.parameters:
            array = name.removesuffix("_extent")
            message = f"how many elements `{array}` has is not said"
            helps = [f"declare it with its extent, such as `{array}[n]`"]
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
    for name in call.parameters:
        if place.parameters.get(name) == "":
            yield error(
                "drop-in-names", f"another variable hides `{name}` where the SCoP stands", helps=helps
            )
    seen: dict[tuple[str, ...], str] = {}
    for buffer in call.buffers:
        variable = place.variables[buffer.name]
        if variable.hidden or variable.path in seen:
            message = f"two variables are called `{'.'.join(variable.path)}` where the SCoP stands"
            yield error("drop-in-names", message, variable.span, helps=helps)
        seen[variable.path] = buffer.name


def _pointer(buffer: Buffer, variable: Variable) -> str:
    """Return the address of the first element: of an array itself, of a scalar that is only read a copy's."""
    if not variable.is_dense:
        return _gathered(buffer)
    name = variable.element(())
    if buffer.shape:
        return f"({'const ' if buffer.role is Role.INPUT else ''}void *){name}"
    if buffer.role is Role.INPUT and buffer.type in C_TYPES:
        return f"({C_TYPES[buffer.type]}[1]){{{name}}}"
    return f"&{name}"


def _gathered(buffer: Buffer) -> str:
    return f"polyloom_{buffer.name}"


def _statements(place: Place, call: Signature) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what stands before and after the call for arrays whose elements do not lie side by side."""
    before, after = [], []
    for buffer in call.buffers:
        variable = place.variables[buffer.name]
        if variable.is_dense:
            continue
        copy, kind = _gathered(buffer), C_TYPES[buffer.type]
        count = " * ".join(f"({integer_c(extent, place.parameters)})" for extent in buffer.shape)
        before.append(f"{kind} *{copy} = polyloom_take((long long)sizeof({kind}) * {count});")
        if buffer.role is not Role.OUTPUT:
            before.append(_for_all(buffer, place, "{copy} = {element};"))
        if buffer.role is not Role.INPUT:
            after.append(_for_all(buffer, place, "{element} = {copy};"))
        after.append(f"polyloom_give({copy});")
    if before:
        before[:0] = ["extern void *polyloom_take(long long);", "extern void polyloom_give(void *);"]
    return tuple(before), tuple(after)


def _for_all(buffer: Buffer, place: Place, statement: str) -> str:
    """Return loops over all elements, and their places in the copy."""
    indices = [f"polyloom_{k}" for k in range(len(buffer.shape))]
    extents = [integer_c(extent, place.parameters) for extent in buffer.shape]
    loops = [f"for (long long {i} = 0; {i} < {n}; {i}++)" for i, n in zip(indices, extents, strict=True)]
    position = indices[0]
    for index, extent in zip(indices[1:], extents[1:], strict=True):
        position = f"({position}) * ({extent}) + {index}"
    element = place.variables[buffer.name].element(indices)
    return " ".join([*loops, statement.format(copy=f"{_gathered(buffer)}[{position}]", element=element)])


def with_calls(text: str, replacements: Sequence[Replacement], macros: Mapping[str, str]) -> str:
    """Return the text with each range replaced by a block that declares the function and calls it.

    ``macros``: integers, as text, that the kernels hold; the block refuses to be compiled with others.
    """
    pieces, position = [], 0
    for part in sorted(replacements, key=lambda r: r.start):
        line = text[text.rfind("\n", 0, part.start) + 1 : part.start]
        margin = line if not line.strip() else ""
        end_of_line = "\r\n" if "\r\n" in text else "\n"
        pieces += [text[position : part.start], end_of_line.join(_block(part, macros, margin))]
        position = part.end
    return "".join([*pieces, text[position:]])


def _block(part: Replacement, macros: Mapping[str, str], margin: str) -> list[str]:
    integers = [f"(long long){text}" for text in part.integers]
    call = f"{part.call.function}({', '.join([*integers, *part.pointers])});"
    statements = [f"extern {part.call.declaration};", *part.before, call, *part.after]
    inside = [f"{margin}  {statement}" for statement in statements]
    checks = [line for name, value in macros.items() for line in _same_macro(name, value)]
    return ["{ /* by Polyloom, see polyloom_host.c */", *checks, *inside, f"{margin}}}"]


def _same_macro(name: str, value: str) -> list[str]:
    return [f"#if ({name}) != ({value})", f'#error "Polyloom compiled this for {name} = {value}"', "#endif"]
