"""Values for the parameters of a node or graph: from a call in a graph, or from ``-D NAME=VALUE``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from polyloom.diagnostics import PolyloomError, Span, error
from polyloom.frontends.lair.lowering.constants import LARGEST, Space, extent
from polyloom.frontends.lair.lowering.faults import Faults, fail
from polyloom.frontends.lair.lowering.names import TYPES, counted, suggestion
from polyloom.frontends.lair.lowering.scope import Bindings, element_type
from polyloom.frontends.lair.syntax.tree import Declaration, Graph, Invocation, Name, Node
from polyloom.ir.host import Buffer
from polyloom.ir.types import ElementType

_NOTHING = Bindings({}, {})


def from_defines(item: Node | Graph, defines: Mapping[str, str]) -> Bindings:
    """Return the values that ``-D`` gives, with the defaults of type parameters.

    Errors: ``lair-unknown-define``, ``lair-bad-define``, ``lair-missing-parameter``.
    """
    faults = Faults()
    for name in defines:
        with faults.collect():
            _check_define(name, item)
    types, sizes = dict(_default_types(item)), dict[str, int]()
    for parameter in item.type_parameters:
        with faults.collect():
            if parameter.name.text in defines:
                types[parameter.name.text] = _type_value(parameter.name.text, defines)
    for size in item.size_parameters:
        with faults.collect():
            if size.text in defines:
                sizes[size.text] = _size_value(size.text, defines)
    faults.raise_any()
    _check_complete(item, types, sizes)
    return Bindings(types, sizes)


def _check_define(name: str, item: Node | Graph) -> None:
    known = _parameters(item)
    if name not in known:
        fail(
            "lair-unknown-define",
            f"`-D {name}`: `{item.name.text}` has no parameter `{name}`",
            None,
            help=suggestion(name, known) if known else f"`{item.name.text}` has no parameters",
        )


def _parameters(item: Node | Graph) -> list[str]:
    return [*(p.name.text for p in item.type_parameters), *(n.text for n in item.size_parameters)]


def _default_types(item: Node | Graph) -> Iterable[tuple[str, ElementType]]:
    for parameter in item.type_parameters:
        if parameter.default is not None:
            yield parameter.name.text, element_type(parameter.default, _NOTHING)


def _type_value(name: str, defines: Mapping[str, str]) -> ElementType:
    text = defines[name].strip()
    if text not in TYPES:
        message = f"`-D {name}={text}`: `{text}` is not a type"
        fail("lair-bad-define", message, None, help=suggestion(text, TYPES))
    return TYPES[text]


def _size_value(name: str, defines: Mapping[str, str]) -> int:
    text = defines[name].strip()
    value = int(text) if re.fullmatch(r"[0-9]{1,12}", text) else 0
    if not 1 <= value <= LARGEST:
        fail(
            "lair-bad-define",
            f"`-D {name}={text}`: not a size",
            None,
            help=f"give an integer from 1 to {LARGEST}: `-D {name}=32`",
        )
    return value


def _check_complete(item: Node | Graph, types: Mapping[str, object], sizes: Mapping[str, object]) -> None:
    missing = [p.name for p in item.type_parameters if p.name.text not in types]
    missing += [n for n in item.size_parameters if n.text not in sizes]
    if not missing:
        return
    example = " ".join(f"-D {n.text}={'32' if n in item.size_parameters else 'float16'}" for n in missing)
    fail(
        "lair-missing-parameter",
        f"`{item.name.text}` needs values for {', '.join(f'`{n.text}`' for n in missing)}",
        missing[0].span,
        label="has no value",
        help=f"write for example `{example}`",
    )


def from_call(call: Invocation, item: Node | Graph, arguments: Sequence[Buffer], outer: Bindings) -> Bindings:
    """Return the values that a call gives: written in it, or told by its arguments' types and shapes.

    Errors: ``lair-call-parameters``, ``lair-missing-parameter``, those of types and extents.
    """
    types = {**dict(_default_types(item)), **_called_types(call, item, arguments, outer)}
    sizes = _called_sizes(call, item, arguments, outer)
    _check_told(call, item, types, sizes)
    return Bindings(types, sizes)


def _called_types(
    call: Invocation, item: Node | Graph, arguments: Sequence[Buffer], outer: Bindings
) -> dict[str, ElementType]:
    names = [p.name.text for p in item.type_parameters]
    if call.types is None:
        told = [(d.type.text, t.type) for d, t in _pairs(item, arguments) if d.type.text in names]
        return dict(reversed(told))
    _check_count(call, item, "type", len(call.types), len(names), call.types)
    return dict(zip(names, (element_type(t, outer) for t in call.types), strict=True))


def _called_sizes(
    call: Invocation, item: Node | Graph, arguments: Sequence[Buffer], outer: Bindings
) -> dict[str, int]:
    names = [n.text for n in item.size_parameters]
    if call.sizes is None:
        return _told_sizes(names, item, arguments)
    _check_count(call, item, "size", len(call.sizes), len(names), call.sizes)
    space = Space(outer.sizes, what="size")
    return dict(zip(names, (extent(s, space) for s in call.sizes), strict=True))


def _told_sizes(names: Sequence[str], item: Node | Graph, arguments: Sequence[Buffer]) -> dict[str, int]:
    told: dict[str, int] = {}
    for declaration, tensor in _pairs(item, arguments):
        for expression, size in zip(declaration.extents, tensor.extents, strict=False):
            if isinstance(expression, Name) and expression.text in names:
                told.setdefault(expression.text, size)
    return told


def _pairs(item: Node | Graph, arguments: Sequence[Buffer]) -> Iterable[tuple[Declaration, Buffer]]:
    return zip(item.inputs, arguments, strict=False)


def _check_count(
    call: Invocation, item: Node | Graph, kind: str, found: int, wanted: int, parts: Sequence[object]
) -> None:
    if found != wanted:
        first = getattr(parts[0], "span", call.callee.span) if parts else call.callee.span
        fail(
            "lair-call-parameters",
            f"`{item.name.text}` has {counted(wanted, kind + ' parameter')}, but {found} given",
            first,
            help=f"its parameters: {', '.join(_parameters(item)) or 'none'}",
        )


def _check_told(
    call: Invocation, item: Node | Graph, types: Mapping[str, object], sizes: Mapping[str, object]
) -> None:
    missing = [name for name in _parameters(item) if name not in types and name not in sizes]
    if missing:
        _refuse_untold(call.callee.span, item.name.text, missing)


def _refuse_untold(span: Span, name: str, missing: Sequence[str]) -> None:
    raise PolyloomError(
        error(
            "lair-missing-parameter",
            f"nothing gives {', '.join(f'`{n}`' for n in missing)} of `{name}` a value",
            span,
            label="called here",
            helps=[f"give sizes and types in the call: `{name}<float16>(32, 16)(...)`"],
        )
    )
