"""DSDs: those known at compile time, ``@get_dsd`` of run-time values, changed copies."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from polyloom.csl import comptime, types, values
from polyloom.csl.lowering import tree
from polyloom.csl.lowering.body import Body, Memory, Operand, fail
from polyloom.csl.lowering.conversions import moved, path_offset, simple, typed
from polyloom.csl.lowering.emitted.c_types import size_of
from polyloom.csl.lowering.fields import Fields, fields_of
from polyloom.csl.lowering.places import indexed_array, place
from polyloom.csl.syntax import tree as syntax
from polyloom.csl.types import Type
from polyloom.csl.values import Value
from polyloom.diagnostics import Span

if TYPE_CHECKING:
    from polyloom.csl.lowering.unit import Unit

C_INT = types.I32
_PLAIN = "wavelet_index_offset"


def descriptor(unit: Unit, value: Value, span: Span) -> tree.Expression:
    """Return a descriptor that is known at compile time as C."""
    match value:
        case values.Fifo():
            return tree.Native(value.type, "csl_fifo", (str(unit.fifo(value)),))
        case values.FabricDsd():
            return _fabric(unit, value, span)
        case values.MemoryDsd():
            return _memory(unit, value, span)
        case values.Uninitialised():
            return tree.Native(value.type, "(csl_dsd){0}", (), is_text=True)
    return fail("csl-type", f"`{value.type}` is no descriptor", span)


def _fabric(unit: Unit, value: values.FabricDsd, span: Span) -> tree.Expression:
    default = "CSL_NO_QUEUE" if value.type == types.FABIN_DSD else _default_queue(unit)
    queue = str(value.queue.id) if value.queue is not None else default
    if queue == "CSL_NO_QUEUE":
        _fail_without_queue(value.type, span)
    if value.type == types.FABIN_DSD:
        made: tree.Expression = tree.Native(value.type, "csl_fabin", (queue, str(value.extent)))
    else:
        made = tree.Native(value.type, "csl_fabout", (queue, _color(unit, value.color), str(value.extent)))
    if value.control:
        made = tree.Native(value.type, "csl_with_control", (made,))
    return made


def _fail_without_queue(kind: Type, span: Span) -> NoReturn:
    which = "input_queue" if kind == types.FABIN_DSD else "output_queue"
    label = f"its descriptor, a `{kind}`, has no `.{which}`"
    way_out = (
        f"add `.{which} = @get_{which}(...)` to `@get_dsd`, and `@initialize_queue` to a `comptime` block"
    )
    fail("csl-queue-none", "a stream without a queue", span, label, way_out)


def _default_queue(unit: Unit) -> str:
    """Return the queue of an output that names none: the first one, on wse2."""
    return "0" if unit.arch == "wse2" else "CSL_NO_QUEUE"


def _color(unit: Unit, color: values.Handle | None) -> str:
    """Return the color of an output: on wse3 that of the queue."""
    return "CSL_QUEUE_COLOR" if color is None or unit.arch == "wse3" else str(color.id)


def _memory(unit: Unit, value: values.MemoryDsd, span: Span) -> tree.Expression:
    size = size_of(value.element)
    if isinstance(value.base, values.Address):
        symbol = unit.symbol_of(value.base.variable)
        base: tree.Expression = tree.Address(types.U16, symbol, path_offset(value.base))
    else:
        base = tree.Constant(types.U16, value.base.address)
    extents = [tree.Constant(types.U16, extent) for extent in value.extents]
    strides = [tree.Constant(types.I16, stride) for stride in value.strides]
    offset = tree.Constant(types.I32, value.offset)
    made = memory_dsd(value.type, base, size, list(extents), list(strides), offset)
    with_index = dict(value.options).get(_PLAIN) == values.TRUE
    del span
    return tree.Native(value.type, "csl_with_index", (made,)) if with_index else made


def memory_dsd(
    kind: Type,
    base: tree.Expression,
    size: int,
    extents: list[tree.Expression],
    strides: list[tree.Expression],
    offset: tree.Expression,
) -> tree.Expression:
    """Return the C of a memory descriptor; extents and strides outermost first."""
    if kind == types.MEM1D_DSD:
        return tree.Native(kind, "csl_mem1d", (base, str(size), extents[0], strides[0], offset))
    sizes = tree.Braces(types.U16, "(const uint16_t[])", tuple(("", extent) for extent in extents))
    steps = tree.Braces(types.I16, "(const int16_t[])", tuple(("", stride) for stride in strides))
    return tree.Native(kind, "csl_mem4d", (base, str(size), str(len(extents)), sizes, steps, offset))


# ---- @get_dsd of run-time values


def get_dsd(body: Body, node: syntax.Builtin) -> Operand:
    """Lower ``@get_dsd(kind, .{ ... })``. Errors: ``csl-dsd``."""
    kind = body.type_of(node.arguments[0])
    fields = fields_of(body, node.arguments[1])
    if kind in (types.FABIN_DSD, types.FABOUT_DSD):
        made = _get_fabric(body, kind, fields, node.span)
    elif kind in (types.MEM1D_DSD, types.MEM4D_DSD):
        made = _get_memory(body, kind, fields, node.span)
    else:
        return fail("csl-dsd", f"`@get_dsd` of `{kind}`", node.span)
    if fields.flag(_PLAIN):
        made = tree.Native(kind, "csl_with_index", (made,))
    if fields.flag("control"):
        made = tree.Native(kind, "csl_with_control", (made,))
    return made


def _get_fabric(body: Body, kind: Type, fields: Fields, span: Span) -> tree.Expression:
    extent = fields.expression("extent", types.U16)
    if extent is None:
        return fail("csl-dsd", "the descriptor has no `.extent`", span)
    if kind == types.FABIN_DSD:
        queue = fields.expression("input_queue", types.INPUT_QUEUE)
        if queue is None:
            _fail_without_queue(kind, span)
        return tree.Native(kind, "csl_fabin", (queue, extent))
    queue = fields.expression("output_queue", types.OUTPUT_QUEUE)
    if queue is None and body.unit.arch == "wse3":
        _fail_without_queue(kind, span)
    color = None if body.unit.arch == "wse3" else fields.expression("fabric_color", types.COLOR)
    return tree.Native(
        kind, "csl_fabout", (queue or _default_queue(body.unit), color or "CSL_QUEUE_COLOR", extent)
    )


def _get_memory(body: Body, kind: Type, fields: Fields, span: Span) -> tree.Expression:
    access = fields.nodes.get("tensor_access")
    if isinstance(access, syntax.TensorAccess):
        return _accessed(body, kind, access, fields)
    base = fields.operand("base_address", None)
    if kind == types.MEM4D_DSD and base is not None:
        return _get_mem4d(body, base, fields, span)
    extent = fields.expression("extent", types.U16)
    if base is None or extent is None:
        return fail(
            "csl-dsd", "the descriptor has neither `.tensor_access` nor `.base_address` and `.extent`", span
        )
    at, size = base_address(body, base, span)
    stride = fields.expression("stride", types.I8) or tree.Constant(types.I8, 1)
    offset = fields.expression("offset", types.I16) or tree.Constant(types.I16, 0)
    return memory_dsd(kind, at, size, [extent], [stride], offset)


def _get_mem4d(body: Body, base: Operand, fields: Fields, span: Span) -> tree.Expression:
    """Lower extents (outermost first) and steps (innermost first) over any base."""
    extents = _listed(fields, ("extent", "extents"), types.U16)
    if not extents:
        return fail("csl-dsd", "the descriptor has no extents", span, "", "add `.extents = .{ n, m }`")
    given = _listed(fields, ("stride", "strides"), types.I16)
    at, size = base_address(body, base, span)
    offset = fields.expression("offset", types.I16) or tree.Constant(types.I16, 0)
    if all(isinstance(part, Value) for part in (*extents, *given)):
        known, steps = _whole(extents, span), _whole(given, span)
        strides = comptime.strides_of_steps(steps, known, span)
        sizes: list[tree.Expression] = [tree.Constant(types.U16, extent) for extent in known]
        moves: list[tree.Expression] = [tree.Constant(types.I16, stride) for stride in strides]
        return memory_dsd(types.MEM4D_DSD, at, size, sizes, moves, offset)
    sizes = [simple(body, typed(body, e, types.U16, span), "extent") for e in extents]
    moves = _strides(body, sizes, [typed(body, step, types.I16, span) for step in given], span)
    return memory_dsd(types.MEM4D_DSD, at, size, sizes, moves, offset)


def _listed(fields: Fields, names: tuple[str, ...], kind: Type) -> list[Operand]:
    """Return the parts of a field: of `.{ n, m }`, of a value that is known, or one alone."""
    for name in names:
        node = fields.nodes.get(name)
        if isinstance(node, syntax.ListLiteral):
            return [fields.body.operand(element, kind) for element in node.elements]
        found = fields.operand(name, None)
        if isinstance(found, values.TupleValue):
            return list(found.elements)
        if isinstance(found, values.ArrayValue):
            return list(found)
        if found is not None:
            return [found]
    return []


def _whole(parts: list[Operand], span: Span) -> tuple[int, ...]:
    return tuple(comptime.whole_number(part, span, "a size") for part in parts if isinstance(part, Value))


def _strides(
    body: Body, extents: list[tree.Expression], steps: list[tree.Expression], span: Span
) -> list[tree.Expression]:
    """Return strides, outermost first, as ``comptime.strides_of_steps`` does, computed when it runs."""
    if steps and len(steps) != len(extents):
        fail("csl-dsd", f"{len(steps)} strides for {len(extents)} extents", span, "", "give one for each")

    def combined(operator: str, left: tree.Expression, right: tree.Expression) -> tree.Expression:
        return simple(body, tree.Binary(types.I16, operator, left, right, span), "stride")

    one: tree.Expression = tree.Constant(types.I16, 1)
    strides: list[tree.Expression] = []
    passed: tree.Expression = tree.Constant(types.I16, 0)
    for k, extent in enumerate(reversed(extents)):
        count = tree.Bits(types.I16, extent)
        if steps:
            strides.append(combined("+", steps[k], passed))
            passed = combined("+", passed, combined("*", combined("-", count, one), strides[-1]))
        else:
            strides.append(one)
            one = combined("*", one, count)
    return strides[::-1]


def base_address(body: Body, base: Operand, span: Span) -> tuple[tree.Expression, int]:
    """Return the address that a pointer (or an array itself) means, and the bytes of an element there."""
    if isinstance(base, values.ArrayValue):
        return body.unit.constant_array(base), size_of(base.type.element)
    if isinstance(base, tree.Load) and isinstance(base.type, types.Array):
        return base.address, size_of(base.type.element)
    at = typed(body, base, base.type, span)
    if not isinstance(at.type, types.Pointer):
        return fail("csl-dsd", f"a base address of type `{at.type}`", span, "", "give a pointer")
    target = at.type.target
    return at, size_of(target.element if isinstance(target, types.Array) else target)


def _accessed(body: Body, kind: Type, node: syntax.TensorAccess, fields: Fields) -> tree.Expression:
    """Lower ``|i, j|{ n, m } -> A[...]`` where the array or the extents are known at run time only."""
    target = node.target
    if not isinstance(target, syntax.Index):
        return fail("csl-dsd", "`tensor_access` of something that is no element", target.span)
    whole = _array(body, target)
    names = [iterator.name for iterator in node.iterators]
    shape = whole.type.shape if isinstance(whole.type, types.Array) else (1,)
    element = whole.type.element if isinstance(whole.type, types.Array) else whole.type
    size, strides, start, inner = size_of(element), [0] * len(names), 0, 1
    for index, extent in reversed(list(zip(target.indices, shape, strict=True))):
        constant, factors = _affine(body, index, names)
        start += constant * inner
        strides = [s + f * inner for s, f in zip(strides, factors, strict=True)]
        inner *= extent
    extents = [typed(body, body.operand(e, types.U16), types.U16, e.span) for e in node.extents]
    given = fields.expression("offset", types.I16)
    offset: tree.Expression = given or tree.Constant(types.I16, 0)
    steps: list[tree.Expression] = [tree.Constant(types.I16, stride) for stride in strides]
    return memory_dsd(kind, moved(whole.address, start * size), size, extents, steps, offset)


def _affine(body: Body, index: syntax.Expression, names: list[str]) -> tuple[int, tuple[int, ...]]:
    try:
        return comptime.affine(index, names, body.scope)
    except comptime.NotComptime as found:
        return fail(
            "csl-not-comptime",
            f"{found.what} is not known at compile time",
            found.span,
            "an index of an access moves by known numbers",
            "add `.offset = ...`, or move the descriptor with `@increment_dsd_offset`",
        )


def _array(body: Body, target: syntax.Index) -> Memory:
    whole = indexed_array(body, target.base, target.span)
    if whole is None:
        return fail("csl-dsd", "this is no array", target.base.span)
    if isinstance(whole.type, types.Pointer):
        return Memory(whole.type.target, whole.address, whole.is_const)
    return whole


# ---- Changed copies


def changed(body: Body, node: syntax.Builtin) -> Operand:
    """Lower ``@increment_dsd_offset``, ``@set_dsd_base_addr``, ``@set_dsd_length``, ``@set_dsd_stride``."""
    given = body.operand(node.arguments[0])
    if given.type not in types.DESCRIPTORS:
        fail("csl-dsd", f"`@{node.name}` of `{given.type}`", node.span, "", "give a DSD")
    dsd, argument = typed(body, given, given.type, node.span), node.arguments[1]
    site, name = node.span.text, f"csl_{node.name}"
    arguments: tuple[tree.Expression | str, ...]
    match node.name:
        case "increment_dsd_offset":
            step = typed(body, body.operand(argument, types.I16), types.I16, argument.span)
            arguments = dsd, step, str(size_of(body.type_of(node.arguments[2])))
        case "set_dsd_base_addr":
            at, size = base_address(body, _base(body, argument), argument.span)
            arguments = dsd, at, str(size)
        case "set_dsd_length":
            arguments = dsd, typed(body, body.operand(argument, types.U16), types.U16, argument.span)
        case _:
            arguments = dsd, typed(body, body.operand(argument, types.I8), types.I8, argument.span)
    return tree.Native(dsd.type, name, arguments, site=site, span=node.span)


def _base(body: Body, node: syntax.Expression) -> Operand:
    """Return the pointer that a base address means; the name of an array means the array."""
    if isinstance(node, syntax.Name | syntax.Field):
        found = place(body, node)
        if isinstance(found, Memory) and isinstance(found.type, types.Array):
            return tree.Load(found.type, found.address, node.span.text, node.span)
    return body.operand(node)
