"""Descriptors (DSDs) and FIFOs that are known at compile time; what a tensor access visits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from polyloom.csl import types, values
from polyloom.csl.comptime.evaluate import evaluate, resolve_type
from polyloom.csl.comptime.faults import NotComptime, fault
from polyloom.csl.comptime.places import flat, place, type_at, whole_number
from polyloom.csl.comptime.scope import Scope
from polyloom.csl.syntax import tree
from polyloom.csl.types import Type
from polyloom.csl.values import Value
from polyloom.diagnostics import Span

MEMORY = (types.MEM1D_DSD, types.MEM4D_DSD)
FABRIC = (types.FABIN_DSD, types.FABOUT_DSD)
DIMENSIONS = 4
"""The most dimensions of a ``mem4d_dsd``."""


@dataclass(frozen=True)
class Access:
    """What ``|i, j|{ m, n } -> A[...]`` visits.

    Point ``(i, j)`` is element ``offset + i * strides[0] + j * strides[1]`` behind ``base``, the first
    element of the array. An extent that is known at run time only is ``None``; its expression is in the
    node.
    """

    base: values.Address | values.NumberAddress
    element: Type
    extents: tuple[int | None, ...]
    strides: tuple[int, ...]
    offset: int


def tensor_access(node: tree.TensorAccess, scope: Scope) -> Access:
    """Return what an access visits.

    Errors: ``csl-access`` where it is not affine or its iterators and extents differ in number;
    ``NotComptime`` where its array or a coefficient is known at run time only.
    """
    names = [i.name for i in node.iterators]
    if len(names) != len(node.extents) or not names or len(set(names)) != len(names):
        raise fault(
            "csl-access",
            f"{len(names)} iterators and {len(node.extents)} extents",
            node.span,
            helps=["give each iterator a name of its own and one extent: `|i, j|{ 4, n }`"],
        )
    extents = tuple(_extent(e, scope) for e in node.extents)
    inner = scope.child()
    if not isinstance(node.target, tree.Index):
        whole = _base(node.target, scope)
        return Access(whole, whole.type.target, extents, (0,) * len(names), 0)
    base = _base(node.target.base, scope)
    shape, element = _shape(base, node.target)
    if len(node.target.indices) != len(shape):
        raise fault(
            "csl-access",
            f"{len(node.target.indices)} indices for {len(shape)} dimensions",
            node.target.span,
            helps=["give one affine expression for each dimension of the array"],
        )
    offset, strides = 0, [0] * len(names)
    for k, index in enumerate(node.target.indices):
        constant, coefficients = affine(index, names, inner)
        weight = prod(shape[k + 1 :])
        offset += constant * weight
        strides = [s + c * weight for s, c in zip(strides, coefficients, strict=True)]
    return Access(base, element, extents, tuple(strides), offset)


def _extent(node: tree.Expression, scope: Scope) -> int | None:
    try:
        return extent_of(evaluate(node, scope), node.span)
    except NotComptime:
        return None


def extent_of(value: Value, span: Span) -> int:
    """Return an extent. Errors: ``csl-range`` where it is no ``u16``."""
    number = whole_number(value, span, "an extent")
    if not 0 <= number <= types.U16.greatest:
        raise fault("csl-range", f"an extent of {number}", span, helps=["extents go from 0 to 65535"])
    return number


def _base(node: tree.Expression, scope: Scope) -> values.Address | values.NumberAddress:
    address = place(node, scope)
    if isinstance(address.type.target, types.Pointer):
        found = evaluate(node, scope)
        if isinstance(found, values.Address | values.NumberAddress):
            return found
        raise NotComptime(node.span, "where the pointer points")
    return address


def _shape(base: values.Address | values.NumberAddress, node: tree.Index) -> tuple[tuple[int, ...], Type]:
    if base.type.many:
        return (0,), base.type.target
    target = base.type.target
    if isinstance(target, types.Array):
        return target.shape, target.element
    raise fault("csl-access", f"a `{target}` has no elements", node.span, helps=["access an array"])


Affine = tuple[int, tuple[int, ...]]


def affine(node: tree.Expression, names: list[str], scope: Scope) -> Affine:
    """Return an index as a constant and a coefficient for each iterator. Errors: as of ``tensor_access``."""
    if isinstance(node, tree.Name) and node.name in names:
        return 0, tuple(int(n == node.name) for n in names)
    if not _mentions(node, names):
        return whole_number(evaluate(node, scope), node.span, "an index"), (0,) * len(names)
    if isinstance(node, tree.Unary) and node.operator == "-":
        return _scaled(affine(node.operand, names, scope), -1)
    if isinstance(node, tree.Binary) and node.operator in ("+", "-"):
        left, right = affine(node.left, names, scope), affine(node.right, names, scope)
        right = _scaled(right, 1 if node.operator == "+" else -1)
        return left[0] + right[0], tuple(a + b for a, b in zip(left[1], right[1], strict=True))
    if isinstance(node, tree.Binary) and node.operator == "*":
        left, right = affine(node.left, names, scope), affine(node.right, names, scope)
        if not any(left[1]):
            return _scaled(right, left[0])
        if not any(right[1]):
            return _scaled(left, right[0])
    if isinstance(node, tree.Builtin) and node.name == "as" and len(node.arguments) == 2:
        return affine(node.arguments[1], names, scope)
    raise fault(
        "csl-access",
        "an index of an access is affine in its iterators",
        node.span,
        label="not affine",
        helps=["use sums of iterators times numbers: `2 * i + j + 1`"],
    )


def _scaled(affine: Affine, by: int) -> Affine:
    return affine[0] * by, tuple(c * by for c in affine[1])


def _mentions(node: tree.Expression, names: list[str]) -> bool:
    if isinstance(node, tree.Name):
        return node.name in names
    if isinstance(node, tree.Unary):
        return _mentions(node.operand, names)
    if isinstance(node, tree.Binary):
        return _mentions(node.left, names) or _mentions(node.right, names)
    if isinstance(node, tree.Index):
        return any(_mentions(i, names) for i in (node.base, *node.indices))
    if isinstance(node, tree.Builtin | tree.Call):
        return any(_mentions(a, names) for a in node.arguments)
    return False


def get_dsd(node: tree.Builtin, scope: Scope) -> Value:
    """Return the descriptor of ``@get_dsd(kind, .{ fields })``.

    Errors: ``csl-call``, ``csl-dsd`` for fields that are wrong; ``NotComptime`` where a field is known at run
    time only.
    """
    from polyloom.csl.comptime.builtins import arguments

    kind_node, given = arguments(node, 2)
    kind = resolve_type(kind_node, scope)
    literal = fields_of(given, scope)
    if kind in MEMORY:
        return _memory(kind, literal, given, scope)
    if kind in FABRIC:
        return _fabric(kind, literal, given, scope)
    raise fault(
        "csl-dsd",
        f"`{kind}` is no kind of descriptor",
        kind_node.span,
        helps=["kinds are `mem1d_dsd`, `mem4d_dsd`, `fabin_dsd` and `fabout_dsd`"],
    )


Fields = dict[str, tree.Expression | Value]


def fields_of(node: tree.Expression, scope: Scope) -> Fields:
    """Return the fields of a struct that is written where it stands, as expressions; else their values.

    An ``if`` whose condition is known is the branch that it chooses.
    """
    from polyloom.csl.comptime.evaluate import truth

    while isinstance(node, tree.IfExpression):
        if truth(node.condition, scope):
            node = node.then
        elif node.otherwise is not None:
            node = node.otherwise
        else:
            return {}
    if isinstance(node, tree.StructLiteral) and node.type is None:
        return {f.name: f.value for f in node.fields}
    value = evaluate(node, scope)
    if isinstance(value, values.StructValue):
        return {f.name: v for f, v in zip(value.type.fields, value.fields, strict=True)}
    raise fault(
        "csl-type",
        f"a struct is expected, this is a `{value.type}`",
        node.span,
        helps=["write `.{ .name = value }`"],
    )


def _value(fields: Fields, name: str, scope: Scope) -> Value | None:
    found = fields.get(name)
    return evaluate(found, scope) if isinstance(found, tree.Expression) else found


def _span(fields: Fields, name: str, node: tree.Expression) -> Span:
    found = fields.get(name)
    return found.span if isinstance(found, tree.Expression) else node.span


_MEMORY_FIELDS = (
    "tensor_access base_address extent extents stride strides offset wavelet_index_offset save_address "
    "single_step prng_mode"
)
_FABRIC_FIELDS = (
    "extent fabric_color input_queue output_queue control wavelet_index_offset on_control simd_mode priority "
    "push_advance advance_switch nanzero_mode ut_id async activate unblock"
)


def _check_names(fields: Fields, known: str, node: tree.Expression, kind: Type) -> None:
    for name in fields:
        if name not in known.split():
            raise fault(
                "csl-dsd",
                f"a `{kind}` has no field `{name}`",
                _span(fields, name, node),
                helps=["its fields are " + ", ".join(f"`{n}`" for n in known.split())],
            )


def _memory(kind: Type, fields: Fields, node: tree.Expression, scope: Scope) -> Value:
    _check_names(fields, _MEMORY_FIELDS, node, kind)
    access = fields.get("tensor_access")
    if access is not None:
        found = _by_access(kind, fields, access, node, scope)
    elif "base_address" in fields:
        found = _by_fields(kind, fields, node, scope)
    else:
        raise fault(
            "csl-dsd",
            f"a `{kind}` needs `tensor_access` or `base_address`",
            node.span,
            helps=["write `.{ .tensor_access = |i|{ n } -> A[i] }`"],
        )
    options = tuple(
        (n, v)
        for n in ("wavelet_index_offset", "save_address", "single_step", "prng_mode")
        if (v := _value(fields, n, scope)) is not None
    )
    found = replace(found, options=options)
    check_widths(found, node.span)
    return found


def _by_access(
    kind: Type, fields: Fields, access: tree.Expression | Value, node: tree.Expression, scope: Scope
) -> values.MemoryDsd:
    if not isinstance(access, tree.TensorAccess):
        raise fault("csl-dsd", "`tensor_access` is an access", node.span, helps=["write `|i|{ n } -> A[i]`"])
    found = tensor_access(access, scope)
    extents: list[int] = []
    for extent, part in zip(found.extents, access.extents, strict=True):
        if extent is None:
            raise NotComptime(part.span, "an extent")
        extents.append(extent)
    return values.MemoryDsd(kind, found.base, found.element, tuple(extents), found.strides, found.offset)


def _by_fields(kind: Type, fields: Fields, node: tree.Expression, scope: Scope) -> values.MemoryDsd:
    base_node = fields["base_address"]
    if isinstance(base_node, tree.Expression):
        base: Value = base_address(base_node, scope)
    else:
        base = base_node
    if not isinstance(base, values.Address | values.NumberAddress):
        raise fault(
            "csl-dsd",
            f"a base address is a pointer, this is a `{base.type}`",
            _span(fields, "base_address", node),
            helps=["write `.base_address = &A`"],
        )
    target = base.type.target
    element = target.element if isinstance(target, types.Array) else target
    extents = _numbers(fields, ("extent", "extents"), node, scope)
    if not extents:
        raise fault("csl-dsd", f"a `{kind}` needs an extent", node.span, helps=["add `.extent = n`"])
    strides = _numbers(fields, ("stride", "strides"), node, scope)
    if kind == types.MEM4D_DSD:
        strides = strides_of_steps(strides, extents, _span(fields, "strides", node))
    else:
        strides = strides or (1,)
    offset = _numbers(fields, ("offset",), node, scope) or (0,)
    return values.MemoryDsd(kind, base, element, extents, strides, offset[0])


def strides_of_steps(steps: tuple[int, ...], extents: tuple[int, ...], span: Span) -> tuple[int, ...]:
    """Return strides, outermost first, from what is added when a dimension advances, innermost first.

    Without steps the strides of a dense array. Errors: ``csl-dsd``.
    """
    if not steps:
        return tuple(prod(extents[k + 1 :]) for k in range(len(extents)))
    if len(steps) != len(extents):
        raise fault(
            "csl-dsd", f"{len(steps)} strides for {len(extents)} extents", span, helps=["give one for each"]
        )
    strides: list[int] = []
    passed = 0
    for step, extent in zip(steps, reversed(extents), strict=True):
        strides.append(step + passed)
        passed += (extent - 1) * strides[-1]
    return tuple(reversed(strides))


def _numbers(fields: Fields, names: tuple[str, ...], node: tree.Expression, scope: Scope) -> tuple[int, ...]:
    for name in names:
        value = _value(fields, name, scope)
        if value is None:
            continue
        span = _span(fields, name, node)
        return whole_numbers(value, span, name)
    return ()


def whole_numbers(value: Value, span: Span, name: str) -> tuple[int, ...]:
    """Return the numbers of a tuple, an array or one alone. Errors: ``csl-type``."""
    parts: tuple[Value, ...] = (value,)
    if isinstance(value, values.TupleValue | values.ArrayValue):
        parts = tuple(value) if isinstance(value, values.ArrayValue) else value.elements
    return tuple(whole_number(part, span, f"`{name}`") for part in parts)


def check_widths(dsd: values.MemoryDsd, span: Span) -> None:
    """Check the fields of a memory descriptor against what the machine has bits for. Errors: ``csl-dsd``."""
    most = 1 if dsd.type == types.MEM1D_DSD else DIMENSIONS
    if len(dsd.extents) > most or len(dsd.strides) != len(dsd.extents):
        helps = (
            ["use `mem4d_dsd`"] if most == 1 and len(dsd.extents) <= DIMENSIONS else ["use fewer dimensions"]
        )
        raise fault("csl-dsd", f"{len(dsd.extents)} dimensions in a `{dsd.type}`", span, helps=helps)
    for extent in dsd.extents:
        extent_of(values.integer(extent), span)
    narrow = types.I8 if dsd.type == types.MEM1D_DSD else types.I16
    for stride in dsd.strides:
        if not narrow.least <= stride <= narrow.greatest:
            wider = ["use `mem4d_dsd`, whose strides go from -32768 to 32767"] if narrow == types.I8 else []
            raise fault(
                "csl-dsd",
                f"a stride of {stride} in a `{dsd.type}`",
                span,
                notes=[f"its strides go from {narrow.least} to {narrow.greatest}"],
                helps=wider or ["lay the array out so that strides are smaller"],
            )
    if not types.I16.least <= dsd.offset <= types.I16.greatest:
        raise fault(
            "csl-dsd", f"an offset of {dsd.offset}", span, helps=["offsets go from -32768 to 32767 elements"]
        )


def _fabric(kind: Type, fields: Fields, node: tree.Expression, scope: Scope) -> Value:
    _check_names(fields, _FABRIC_FIELDS, node, kind)
    given = {name: _value(fields, name, scope) for name in fields}
    extent = given.get("extent")
    if extent is None:
        raise fault("csl-dsd", f"a `{kind}` needs an extent", node.span, helps=["add `.extent = n`"])
    own, other = (
        ("input_queue", "output_queue") if kind == types.FABIN_DSD else ("output_queue", "input_queue")
    )
    if other in given:
        raise fault(
            "csl-dsd", f"a `{kind}` has no `{other}`", _span(fields, other, node), helps=[f"give `{own}`"]
        )
    queue, color = given.get(own), given.get("fabric_color")
    _check_handle(queue, own, types.INPUT_QUEUE if own == "input_queue" else types.OUTPUT_QUEUE, fields, node)
    _check_handle(color, "fabric_color", types.COLOR, fields, node)
    control = given.get("control")
    known = ("extent", "input_queue", "output_queue", "fabric_color", "control")
    options = tuple((n, v) for n, v in given.items() if n not in known and v is not None)
    return values.FabricDsd(
        kind,
        extent_of(extent, _span(fields, "extent", node)),
        queue if isinstance(queue, values.Handle) else None,
        color if isinstance(color, values.Handle) else None,
        control == values.TRUE,
        options,
    )


def _check_handle(
    value: Value | None, name: str, wanted: Type, fields: Fields, node: tree.Expression
) -> None:
    if value is not None and value.type != wanted:
        raise fault(
            "csl-dsd",
            f"`{name}` is a `{wanted}`, this is a `{value.type}`",
            _span(fields, name, node),
            helps=[f"make it with `@get_{wanted}(...)`"],
        )


def base_address(node: tree.Expression, scope: Scope) -> Value:
    """Return the address that a base is: a pointer's value, or where an array lies."""
    address = place(node, scope)
    if isinstance(address.type.target, types.Array):
        return address
    return evaluate(node, scope)


def allocate_fifo(node: tree.Builtin, scope: Scope) -> Value:
    """Return a FIFO over a buffer. Errors: ``csl-fifo``."""
    from polyloom.csl.comptime.builtins import arguments

    buffer, *given = arguments(node, 1, 2)
    address = base_address(buffer, scope)
    whole = type_at(address.variable.type, address.path) if isinstance(address, values.Address) else None
    if not isinstance(address, values.Address) or not isinstance(whole, types.Array):
        raise fault("csl-fifo", "a FIFO's buffer is an array", buffer.span, helps=["name a global array"])
    options = fields_of(given[0], scope) if given else {}
    found = tuple((n, v) for n in options if (v := _value(options, n, scope)) is not None)
    return values.Fifo(address, found)


def _dsd(node: tree.Expression, scope: Scope, *kinds: type[Value]) -> Value:
    value = evaluate(node, scope)
    if isinstance(value, kinds):
        return value
    raise fault(
        "csl-dsd",
        f"a descriptor is expected, this is a `{value.type}`",
        node.span,
        helps=["make it with `@get_dsd`"],
    )


def increment_offset(node: tree.Builtin, scope: Scope) -> Value:
    """Return ``@increment_dsd_offset(dsd, elements, type)``."""
    from polyloom.csl.comptime.builtins import arguments

    of, by, type_ = arguments(node, 3)
    dsd = _dsd(of, scope, values.MemoryDsd)
    assert isinstance(dsd, values.MemoryDsd)
    resolve_type(type_, scope)
    number = whole_number(evaluate(by, scope), by.span, "an offset")
    found = replace(dsd, offset=dsd.offset + number)
    check_widths(found, node.span)
    return found


def set_base(node: tree.Builtin, scope: Scope) -> Value:
    """Return ``@set_dsd_base_addr(dsd, array or pointer)``, whose offset is zero."""
    from polyloom.csl.comptime.builtins import arguments

    of, to = arguments(node, 2)
    dsd = _dsd(of, scope, values.MemoryDsd)
    assert isinstance(dsd, values.MemoryDsd)
    base = base_address(to, scope)
    if not isinstance(base, values.Address | values.NumberAddress):
        raise fault("csl-dsd", f"`{base.type}` is no pointer", to.span, helps=["name an array or a pointer"])
    target = base.type.target
    element = target.element if isinstance(target, types.Array) else target
    return replace(dsd, base=base, element=element, offset=0)


def set_length(node: tree.Builtin, scope: Scope) -> Value:
    """Return ``@set_dsd_length(dsd, extent)``; not for ``mem4d_dsd``."""
    from polyloom.csl.comptime.builtins import arguments

    of, to = arguments(node, 2)
    dsd = _dsd(of, scope, values.MemoryDsd, values.FabricDsd)
    length = extent_of(evaluate(to, scope), to.span)
    if isinstance(dsd, values.FabricDsd):
        return replace(dsd, extent=length)
    assert isinstance(dsd, values.MemoryDsd)
    _one_dimension(dsd, node)
    return replace(dsd, extents=(length,))


def set_stride(node: tree.Builtin, scope: Scope) -> Value:
    """Return ``@set_dsd_stride(dsd, stride)``; for ``mem1d_dsd`` only."""
    from polyloom.csl.comptime.builtins import arguments

    of, to = arguments(node, 2)
    dsd = _dsd(of, scope, values.MemoryDsd)
    assert isinstance(dsd, values.MemoryDsd)
    _one_dimension(dsd, node)
    found = replace(dsd, strides=(whole_number(evaluate(to, scope), to.span, "a stride"),))
    check_widths(found, node.span)
    return found


def _one_dimension(dsd: values.MemoryDsd, node: tree.Builtin) -> None:
    if dsd.type == types.MEM4D_DSD:
        raise fault(
            "csl-dsd",
            f"`@{node.name}` is not for `mem4d_dsd`",
            node.span,
            helps=["use a `mem1d_dsd`, or another descriptor for each shape"],
        )


def element_offset(address: values.Address) -> int:
    """Return how many elements of its array lie before an address whose path ends in an index; else 0."""
    if address.path and isinstance(address.path[-1], tuple):
        whole = type_at(address.variable.type, address.path[:-1])
        if isinstance(whole, types.Array):
            return flat(address.path[-1], whole.shape)
    return 0
