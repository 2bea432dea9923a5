"""Rules on operations in function bodies: operands, options, loops."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod

from polyloom.csl import types, values
from polyloom.csl.comptime import DSD_OPERATIONS, Scope, fields_of
from polyloom.csl.comptime.faults import NotComptime
from polyloom.csl.lint.bodies import loops, operations, parts, type_of, value_of
from polyloom.csl.lint.subject import Subject
from polyloom.csl.syntax import tree
from polyloom.diagnostics import Diagnostic, PolyloomError, error, remark, warning

FMACS = frozenset({"fmach", "fmacs", "fmachs"})
_REGISTERS = (types.DSR_DEST, types.DSR_SRC0, types.DSR_SRC1)


_FLOATS = {
    f"f{name}{suffix}": bits
    for name in ("abs", "add", "mac", "max", "mov", "mul", "neg", "sub")
    for suffix, bits in (("h", 16), ("s", 32))
}
"""How many bits the elements of an operation on floats have. Conversions are not among them."""
_MOVES = frozenset({"fmovh", "fmovs"})
"""They move integers too: the vendor's examples move words of any kind by ``@fmovs``."""


Operation = tuple[tree.Builtin, list[tree.Expression], "Options", Scope]
"""A builtin on descriptors, its operands and its options."""


def _dsd_operations(subject: Subject) -> Iterator[Operation]:
    for program in subject.programs:
        yield from operations_of(operations(program))


def operations_of(found: Iterable[tuple[tree.Node, Scope]]) -> Iterator[Operation]:
    """Yield the operations on descriptors among parts of a program."""
    for node, scope in found:
        if isinstance(node, tree.Builtin) and node.name in DSD_OPERATIONS and node.arguments:
            operands, options = list(node.arguments), Options({}, False)
            last = operands[-1]
            if len(operands) > 1 and _is_options(last, scope):
                options = _options(operands.pop(), scope)
            yield node, operands, options, scope


class Options:
    """The struct behind the operands; ``is_whole``: all of its fields are seen."""

    def __init__(self, fields: dict[str, object], is_whole: bool) -> None:
        self.fields = fields
        self.is_whole = is_whole

    def known(self, name: str, scope: Scope) -> values.Value | None:
        """Return the value of a field, if it is known."""
        found = self.fields.get(name)
        if isinstance(found, tree.Expression):
            return value_of(found, scope)
        return found if isinstance(found, values.Value) else None


def _is_options(node: tree.Expression, scope: Scope) -> bool:
    if isinstance(node, tree.StructLiteral | tree.IfExpression):
        return True
    return isinstance(type_of(node, scope), types.Struct)


def _options(node: tree.Expression, scope: Scope) -> Options:
    try:
        return Options(dict(fields_of(node, scope)), True)
    except (NotComptime, PolyloomError):
        return Options({}, False)


def kinds(subject: Subject) -> Iterator[Diagnostic]:
    """R33, R34: a source may come from the fabric, a destination go to it; on wse3 one source at most."""
    for node, operands, _, scope in _dsd_operations(subject):
        found = [type_of(o, scope) for o in operands]
        if found[0] == types.FABIN_DSD:
            yield error(
                "csl-destination",
                f"the destination of `@{node.name}` is a `fabin_dsd`",
                operands[0].span,
                helps=["a destination is memory, a FIFO or a `fabout_dsd`"],
            )
        for operand, type_ in zip(operands[1:], found[1:], strict=True):
            if type_ == types.FABOUT_DSD:
                yield error(
                    "csl-source",
                    f"a source of `@{node.name}` is a `fabout_dsd`",
                    operand.span,
                    helps=["a source is memory, a FIFO, a scalar or a `fabin_dsd`"],
                )
        if subject.arch == "wse3" and found[1:].count(types.FABIN_DSD) > 1:
            yield error(
                "csl-two-fabin",
                f"`@{node.name}` takes two streams from the fabric",
                node.span,
                notes=["on wse3 an operation has one `fabin_dsd` at most"],
                helps=["move one of them into memory first"],
            )


def options(subject: Subject) -> Iterator[Diagnostic]:
    """R35: only what waits for the fabric runs beside the program, and starts one thing at its end."""
    fabric = (types.FABIN_DSD, types.FABOUT_DSD, types.FIFO_DSD)
    for node, operands, given, scope in _dsd_operations(subject):
        found = [type_of(o, scope) for o in operands]
        is_async = given.known("async", scope) == values.TRUE
        known = all(t is not None and t not in _REGISTERS for t in found)
        if is_async and known and not any(t in fabric for t in found):
            yield error(
                "csl-async-memory",
                f"`@{node.name}` is `.async` without the fabric",
                node.span,
                notes=["an operation on memory alone never waits"],
                helps=["leave `.async` out"],
            )
        if "activate" in given.fields and "unblock" in given.fields:
            yield error(
                "csl-async-two",
                f"`@{node.name}` activates and unblocks",
                node.span,
                helps=["choose one of `.activate` and `.unblock`; the task that it starts does the other"],
            )
        if {"activate", "unblock"} & set(given.fields) and given.is_whole and "async" not in given.fields:
            yield error(
                "csl-async-missing",
                f"`@{node.name}` starts a task at its end without `.async`",
                node.span,
                helps=["add `.async = true`, or call `@activate` behind it"],
            )


def scalars(subject: Subject) -> Iterator[Diagnostic]:
    """R45: the last operand of a multiply-add is one number."""
    for node, operands, _, scope in _dsd_operations(subject):
        if node.name in FMACS and len(operands) == 4 and type_of(operands[3], scope) in types.DESCRIPTORS:
            yield error(
                "csl-fmac-scalar",
                f"the last operand of `@{node.name}` is a descriptor",
                operands[3].span,
                notes=["the machine multiplies a vector by one number"],
                helps=["multiply first and add then, or loop over the numbers with `@map`"],
            )


def suffixes(subject: Subject) -> Iterator[Diagnostic]:
    """R45: floats in memory have the size that an operation's name ends with; arithmetic has no integers."""
    for node, operands, _, scope in _dsd_operations(subject):
        bits = _FLOATS.get(node.name)
        for operand in operands if bits else ():
            found = value_of(operand, scope)
            element = found.element if isinstance(found, values.MemoryDsd) else None
            is_other = isinstance(element, types.Float) and element.bits != bits
            if is_other or (isinstance(element, types.Integer) and node.name not in _MOVES):
                yield error(
                    "csl-suffix",
                    f"`@{node.name}` has an operand over elements of type `{element}`",
                    operand.span,
                    notes=[f"its elements are floats of {bits} bits"],
                    helps=["take the operation for this type, or one that converts: `@fh2s`, `@fs2h`"],
                )
                break


def array_arguments(subject: Subject) -> Iterator[Diagnostic]:
    """R47: a function that runs gets no array, but a pointer to one."""
    for program in subject.programs:
        for node, scope in parts(program):
            for given in node.arguments if isinstance(node, tree.Call) else ():
                if isinstance(type_of(given, scope), types.Array) and value_of(given, scope) is None:
                    yield error(
                        "csl-call-array",
                        "a function gets an array as an argument when it runs",
                        given.span,
                        helps=["let it take a pointer: `x: *[4]f32`, called with `&a`"],
                    )


def indices(subject: Subject) -> Iterator[Diagnostic]:
    """R38: `.index` is given if and only if an operand has `wavelet_index_offset`."""
    for node, operands, given, scope in _dsd_operations(subject):
        found = [value_of(o, scope) for o in operands]
        if not all(isinstance(v, values.MemoryDsd | values.FabricDsd | values.Scalar) for v in found):
            continue
        wanted = any(
            dict(v.options).get("wavelet_index_offset") == values.TRUE
            for v in found
            if isinstance(v, values.MemoryDsd | values.FabricDsd)
        )
        if wanted and "index" not in given.fields and not (given.fields and not given.is_whole):
            yield warning(
                "csl-index",
                f"`@{node.name}` has an operand with `wavelet_index_offset` and no `.index`",
                node.span,
                helps=["add `.index = ...`"],
            )
        if "index" in given.fields and not wanted:
            yield warning(
                "csl-index",
                f"`@{node.name}` has an `.index` that no operand uses",
                node.span,
                helps=["add `.wavelet_index_offset = true` to the descriptor that it moves"],
            )


def extents(subject: Subject) -> Iterator[Diagnostic]:
    """R37: operands in memory of one operation have one length; that of the fabric may be another."""
    for node, operands, _, scope in _dsd_operations(subject):
        found = [value_of(o, scope) for o in operands]
        lengths = {_length(v) for v in found if isinstance(v, values.MemoryDsd)}
        if len(lengths) > 1:
            yield warning(
                "csl-extents",
                f"operands of `@{node.name}` have lengths {' and '.join(map(str, sorted(lengths)))}",
                node.span,
                helps=["give them one extent, or `@set_dsd_length`"],
            )


def _length(dsd: values.MemoryDsd) -> int:
    return prod(dsd.extents)


def registers(subject: Subject) -> Iterator[Diagnostic]:
    """R41: a `mem4d_dsd` is loaded with its stride registers."""
    for program in subject.programs:
        for node, scope in operations(program):
            loaded = node.arguments[1] if node.name == "load_to_dsr" and len(node.arguments) > 1 else None
            if loaded is not None and type_of(loaded, scope) == types.MEM4D_DSD:
                yield error(
                    "csl-load-mem4d",
                    "`@load_to_dsr` of a `mem4d_dsd`",
                    node.span,
                    helps=["use `@load_to_dsr_xdsr_sr`"],
                )


def maps(subject: Subject) -> Iterator[Diagnostic]:
    """R43: a FIFO is no operand of `@map`."""
    for program in subject.programs:
        for node, scope in operations(program):
            if node.name == "map" and any(type_of(a, scope) == types.FIFO_DSD for a in node.arguments):
                yield error(
                    "csl-map-fifo", "`@map` over a FIFO", node.span, helps=["move it into memory first"]
                )


def narrow_loops(subject: Subject) -> Iterator[Diagnostic]:
    """R56: the machine counts in 16 bits."""
    for program in subject.programs:
        for node, scope in loops(program):
            of = node.sequence
            if isinstance(of, tree.Builtin) and of.name == "range" and of.arguments:
                type_ = type_of(of.arguments[0], scope) and value_of(of.arguments[0], scope)
                if isinstance(type_, values.TypeValue) and type_.of in (types.I32, types.U32):
                    yield remark(
                        "csl-loop-32",
                        f"a loop counts in `{type_.of}`",
                        of.span,
                        notes=["32-bit additions and comparisons take several instructions of 16 bits"],
                        helps=["count in `u16` or `i16`"],
                    )
