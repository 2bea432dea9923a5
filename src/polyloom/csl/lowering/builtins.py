"""Builtins on values that are known at run time only, and those that do something."""

from __future__ import annotations

from collections.abc import Callable

from polyloom.csl import types, values
from polyloom.csl.lowering import tree
from polyloom.csl.lowering.body import Body, Operand, fail
from polyloom.csl.lowering.conversions import typed, with_type
from polyloom.csl.lowering.descriptors import changed, get_dsd
from polyloom.csl.lowering.emitted.c_types import check_layout, size_of
from polyloom.csl.lowering.emitted.print_c import quoted
from polyloom.csl.lowering.operations import OPERATIONS, id_of, load_to_dsr, map_, operation
from polyloom.csl.syntax import tree as syntax
from polyloom.csl.types import Type
from polyloom.csl.values import Value


def builtin(body: Body, node: syntax.Builtin, wanted: Type | None) -> Operand:
    """Lower a builtin. Errors: ``csl-builtin`` and those of the builtin."""
    del wanted
    if node.name in OPERATIONS:
        return operation(body, node)
    rule = _RULES.get(node.name)
    if rule is None:
        return fail(
            "csl-builtin",
            f"`@{node.name}` at run time",
            node.span,
            "its arguments must be known at compile time",
            "`polyloom docs csl` lists what runs",
        )
    least, most = _COUNTS.get(node.name, (1, 1))
    if not least <= len(node.arguments) <= most:
        fail("csl-arguments", f"`@{node.name}` with {len(node.arguments)} arguments", node.span)
    return rule(body, node)


# ---- Conversions


def _as(body: Body, node: syntax.Builtin) -> Operand:
    kind = body.type_of(node.arguments[0])
    value = body.operand(node.arguments[1], kind)
    if isinstance(value, Value):
        return typed(body, value, kind, node.span)
    source = value.type
    numbers = (types.Integer, types.Float)
    if source == kind:
        return value
    allowed = (isinstance(source, numbers) or source == types.BOOL) and (
        isinstance(kind, numbers) or kind == types.BOOL
    )
    if isinstance(source, types.Enum) and isinstance(kind, types.Integer):
        allowed = True
    if isinstance(kind, types.Enum) and isinstance(source, types.Integer):
        allowed = True
    if not allowed:
        return typed(body, value, kind, node.span)
    check_layout(kind, node.span)
    return tree.Convert(kind, value)


def _bitcast(body: Body, node: syntax.Builtin) -> Operand:
    kind = body.type_of(node.arguments[0])
    given = body.operand(node.arguments[1])
    value = typed(body, given, given.type, node.span)
    check_layout(kind, node.span)
    if size_of(kind) != size_of(value.type):
        bits = f"{8 * size_of(value.type)} bits as `{kind}`"
        fail("csl-type", f"`@bitcast` of {bits}", node.span, "", "the types have one width")
    return tree.Bits(kind, value)


def _ptrcast(body: Body, node: syntax.Builtin) -> Operand:
    kind = body.type_of(node.arguments[0])
    given = body.operand(node.arguments[1])
    value = typed(body, given, given.type, node.span)
    if not (isinstance(kind, types.Pointer) and isinstance(value.type, types.Pointer)):
        return fail(
            "csl-type", f"`@ptrcast` of `{value.type}` to `{kind}`", node.span, "", "both are pointers"
        )
    return with_type(value, kind)


def _type_of(body: Body, node: syntax.Builtin) -> Operand:
    with body.collected():
        return values.TypeValue(body.operand(node.arguments[0]).type)


def _number(body: Body, node: syntax.Builtin) -> Operand:
    """Lower ``@get_int`` of a handle: its number."""
    value = body.operand(node.arguments[0])
    return tree.Convert(types.U16, typed(body, value, value.type, node.span))


def _handle(kind: Type) -> Callable[[Body, syntax.Builtin], Operand]:
    def lower(body: Body, node: syntax.Builtin) -> Operand:
        value = body.operand(node.arguments[0], types.U16)
        if not isinstance(value.type, types.Integer) and value.type not in types.HANDLES:
            fail("csl-type", f"`@{node.name}` of `{value.type}`", node.span)
        return tree.Convert(kind, typed(body, value, value.type, node.span))

    return lower


# ---- Tasks, queues, the machine


def _task(body: Body, node: syntax.Builtin) -> Operand:
    number = id_of(body, body.operand(node.arguments[0]), node.arguments[0].span)
    return tree.Native(types.VOID, f"csl_{node.name}", (number,), site=node.span.text, span=node.span)


def _queue_flush(body: Body, node: syntax.Builtin) -> Operand:
    queue = body.operand(node.arguments[0])
    if queue.type not in (types.INPUT_QUEUE, types.OUTPUT_QUEUE):
        fail("csl-type", f"`@queue_flush` of `{queue.type}`", node.span, "", "give a queue")
    output = "true" if queue.type == types.OUTPUT_QUEUE else "false"
    number = typed(body, queue, queue.type, node.span)
    return tree.Native(types.VOID, "csl_queue_flush", (output, number), site=node.span.text, span=node.span)


def _config(body: Body, node: syntax.Builtin) -> Operand:
    given = [typed(body, body.operand(a, types.U16), types.U16, a.span) for a in node.arguments]
    result = types.U16 if node.name == "get_config" else types.VOID
    return tree.Native(result, f"csl_{node.name}", tuple(given), site=node.span.text, span=node.span)


def _assert(body: Body, node: syntax.Builtin) -> Operand:
    condition = typed(body, body.operand(node.arguments[0], types.BOOL), types.BOOL, node.span)
    text = quoted(f"@assert({node.arguments[0].span.text}) failed")
    failed = tree.Native(types.VOID, "csl_fail", ('"assertion"', text), site=node.span.text, span=node.span)
    body.out.append(tree.If(tree.Unary(types.BOOL, "!", condition), (tree.Evaluate(failed),)))
    return values.NOTHING


def _native(body: Body, node: syntax.Builtin) -> Operand:
    """Lower ``@native("function", result, arguments...)``: a function of the contract, for the library."""
    name = body.operand(node.arguments[0])
    if not (isinstance(name, values.Scalar) and isinstance(name.value, str)):
        return fail("csl-arguments", "`@native` names a function", node.span)
    result = body.type_of(node.arguments[1])
    arguments: list[tree.Expression | str] = []
    for argument in node.arguments[2:]:
        value = body.operand(argument)
        if isinstance(value, values.Scalar) and isinstance(value.value, str):
            arguments.append(quoted(value.value))
        elif isinstance(value, values.Scalar) and value.type == types.COMPTIME_INT:
            arguments.append(str(value.value))
        else:
            arguments.append(typed(body, value, value.type, argument.span))
    cost = _NATIVE_COSTS.get(name.value, {})
    return tree.Native(result, name.value, tuple(arguments), cost=cost)


_NATIVE_COSTS = {"csl_store_timestamp": {"loads": 3, "stores": 3}}
"""What functions of the contract take of a PE's time: a time stamp is three 16-bit registers to memory."""


def _changed(body: Body, node: syntax.Builtin) -> Operand:
    return changed(body, node)


_COUNTS = {
    "as": (2, 2),
    "bitcast": (2, 2),
    "ptrcast": (2, 2),
    "get_dsd": (2, 2),
    "increment_dsd_offset": (3, 3),
    "set_dsd_base_addr": (2, 3),
    "set_dsd_length": (2, 2),
    "set_dsd_stride": (2, 2),
    "load_to_dsr": (2, 3),
    "map": (2, 64),
    "set_config": (2, 2),
    "native": (2, 64),
}

_RULES: dict[str, Callable[[Body, syntax.Builtin], Operand]] = {
    "as": _as,
    "bitcast": _bitcast,
    "ptrcast": _ptrcast,
    "type_of": _type_of,
    "get_int": _number,
    "get_color": _handle(types.COLOR),
    "get_input_queue": _handle(types.INPUT_QUEUE),
    "get_output_queue": _handle(types.OUTPUT_QUEUE),
    "get_local_task_id": _handle(types.LOCAL_TASK_ID),
    "get_control_task_id": _handle(types.CONTROL_TASK_ID),
    "get_data_task_id": _handle(types.DATA_TASK_ID),
    "get_ut_id": _handle(types.MICROTHREAD_ID),
    "get_dsd": get_dsd,
    "increment_dsd_offset": _changed,
    "set_dsd_base_addr": _changed,
    "set_dsd_length": _changed,
    "set_dsd_stride": _changed,
    "load_to_dsr": load_to_dsr,
    "map": map_,
    "activate": _task,
    "block": _task,
    "unblock": _task,
    "queue_flush": _queue_flush,
    "get_config": _config,
    "set_config": _config,
    "assert": _assert,
    "native": _native,
}
