"""DSD operations: operands of every form, options, registers, and ``@map``."""

from __future__ import annotations

from dataclasses import dataclass

from polyloom.csl import types, values
from polyloom.csl.lowering import tree
from polyloom.csl.lowering.body import Body, Operand, fail
from polyloom.csl.lowering.calls import Specialisation
from polyloom.csl.lowering.conversions import typed
from polyloom.csl.lowering.emitted.c_types import c_type, size_of
from polyloom.csl.lowering.fields import Fields, fields_of
from polyloom.csl.syntax import tree as syntax
from polyloom.csl.types import Type
from polyloom.diagnostics import Span

H, S, W, D = types.F16, types.F32, types.U16, types.U32

OPERATIONS: dict[str, tuple[Type, ...]] = {
    **dict.fromkeys(("mov16", "clz", "ctz", "popcnt"), (W, W)),
    **dict.fromkeys(
        ("add16", "addc16", "sub16", "and16", "or16", "xor16", "sll16", "slr16", "sar16"), (W, W, W)
    ),
    "mov32": (D, D),
    **dict.fromkeys(("fmovh", "fnegh", "fabsh", "fnormh"), (H, H)),
    **dict.fromkeys(("fmovs", "fnegs", "fabss", "fnorms"), (S, S)),
    **dict.fromkeys(("faddh", "fsubh", "fmulh", "fmaxh"), (H, H, H)),
    **dict.fromkeys(("fadds", "fsubs", "fmuls", "fmaxs"), (S, S, S)),
    "faddhs": (S, S, H),
    "fmach": (H, H, H, H),
    "fmacs": (S, S, S, S),
    "fmachs": (S, S, H, H),
    "fh2s": (S, H),
    "fs2h": (H, S),
    "fh2xp16": (W, H),
    "fs2xp16": (W, S),
    "xp162fh": (H, W),
    "xp162fs": (S, W),
    "fscaleh": (H, H, W),
    "fscales": (S, S, W),
}
"""Types of the elements of the destination and of the sources. Source: documentation of the SDK, builtins."""

_FILES = {types.DSR_DEST: "CSL_DEST", types.DSR_SRC0: "CSL_SRC0", types.DSR_SRC1: "CSL_SRC1"}
_OPTIONS = (
    "async",
    "activate",
    "unblock",
    "index",
    "priority",
    "ut_id",
    "on_control",
    "save_address",
    "single_step",
)


def operation(body: Body, node: syntax.Builtin) -> Operand:
    """Lower a DSD operation. Errors: ``csl-arguments``, ``csl-operand``."""
    kinds = OPERATIONS[node.name]
    count = len(kinds)
    if len(node.arguments) not in (count, count + 1):
        fail(
            "csl-arguments",
            f"`@{node.name}` with {len(node.arguments)} arguments",
            node.span,
            "",
            f"give {count}",
        )
    options = fields_of(body, node.arguments[count] if len(node.arguments) > count else None)
    operands = [
        operand(body, argument, kind, is_destination=not position)
        for position, (argument, kind) in enumerate(zip(node.arguments, kinds, strict=False))
    ]
    sources = tree.Braces(types.VOID, "(const csl_operand[])", tuple(("", source) for source in operands[1:]))
    arguments = (f"CSL_{node.name}", option_text(body, options), operands[0], sources, str(count - 1))
    return tree.Native(types.VOID, "csl_operate", arguments, site=node.span.text, span=node.span)


def operand(body: Body, node: syntax.Expression, kind: Type, *, is_destination: bool) -> tree.Expression:
    """Return an operand of an operation whose element type is ``kind``."""
    value = body.operand(node, kind)
    form = value.type
    if form in _FILES:
        return tree.Native(types.VOID, "csl_of_dsr", (_FILES[form], typed(body, value, form, node.span)))
    if form in types.DESCRIPTORS:
        return tree.Native(types.VOID, "csl_of_dsd", (typed(body, value, form, node.span),))
    if isinstance(form, types.Pointer):
        return tree.Native(types.VOID, "csl_of_address", (typed(body, value, form, node.span),))
    if is_destination:
        return fail(
            "csl-operand", f"a destination of type `{form}`", node.span, "", "give a DSD, a DSR or a pointer"
        )
    return scalar(body, value, kind, node.span)


def scalar(body: Body, value: Operand, kind: Type, span: Span) -> tree.Expression:
    """Return a number as an operand; signs do not matter where the operation has none."""
    form = value.type
    if isinstance(form, types.Integer) and isinstance(kind, types.Integer) and form.bits == kind.bits:
        kind = form
    elif (
        isinstance(value, values.Scalar)
        and value.type == types.COMPTIME_INT
        and isinstance(kind, types.Integer)
    ):
        kind = kind if value.value >= 0 else types.Integer(kind.bits, signed=True)
    elif isinstance(form, types.Float) and isinstance(kind, types.Integer) and form.bits == kind.bits:
        return tree.Native(types.VOID, f"csl_of_{form}", (typed(body, value, form, span),))
    return tree.Native(types.VOID, f"csl_of_{kind}", (typed(body, value, kind, span),))


# ---- Options


def option_text(body: Body, fields: Fields) -> tree.Expression:
    """Return the options of an operation as C. Errors: ``csl-option``."""
    for name in fields.names():
        if name not in _OPTIONS:
            known = ", ".join(f"`.{option}`" for option in _OPTIONS)
            fail("csl-option", f"there is no option `.{name}`", fields.span, "", f"the options are {known}")
    items: list[tuple[str, tree.Expression | str]] = []
    if fields.flag("async"):
        items.append(("async", "true"))
    for name in ("activate", "unblock"):
        if name in fields:
            items.append(
                (
                    name,
                    tree.Native(types.U16, "CSL_ID", (id_of(body, fields.operand(name, None), fields.span),)),
                )
            )
    if "ut_id" in fields:
        number = fields.expression("ut_id", types.MICROTHREAD_ID)
        assert number is not None
        items.append(("ut", tree.Native(types.U16, "CSL_ID", (number,))))
    if "index" in fields:
        index = fields.operand("index", types.U16)
        assert index is not None
        items += [("has_index", "true"), ("index", typed(body, index, _index_type(index), fields.span))]
    items += _priority(fields) + _on_control(body, fields)
    return tree.Braces(types.VOID, "&(const csl_options)", tuple(items))


def _index_type(index: Operand) -> Type:
    return index.type if index.type in (types.I16, types.U16) else types.U16


def _priority(fields: Fields) -> list[tuple[str, tree.Expression | str]]:
    value = fields.known("priority", None)
    if value is None:
        return []
    for level in ("high", "medium", "low"):
        if isinstance(value, values.StructValue) and value.get(level) == values.TRUE:
            return [("priority", f"CSL_PRIORITY_{level.upper()}")]
    return fail("csl-option", "a priority is `.{ .high = true }`, `.medium` or `.low`", fields.span)


def _on_control(body: Body, fields: Fields) -> list[tuple[str, tree.Expression | str]]:
    value = fields.known("on_control", None)
    if value is None:
        return []
    if isinstance(value, values.StructValue):
        if value.get("terminate") == values.TRUE:
            return [("on_control", "CSL_CONTROL_TERMINATE")]
        for name in ("activate", "unblock"):
            task = value.get(name)
            if task is not None:
                number = tree.Native(types.U16, "CSL_ID", (id_of(body, task, fields.span),))
                return [("on_control", f"CSL_CONTROL_{name.upper()}"), ("on_control_id", number)]
    return fail(
        "csl-option", "`.on_control` takes `.{ .terminate = true }` or `.{ .activate = id }`", fields.span
    )


def id_of(body: Body, value: Operand | None, span: Span) -> tree.Expression:
    """Return the number of a task, an id, a color or a queue."""
    if isinstance(value, values.FunctionValue):
        return tree.Constant(types.U16, body.unit.task_id(value, span))
    if value is None or value.type not in types.HANDLES:
        found = "nothing" if value is None else f"`{value.type}`"
        return fail(
            "csl-type", f"{found} where a task or an id is expected", span, "", "`@get_local_task_id(n)`"
        )
    return typed(body, value, value.type, span)


def load_to_dsr(body: Body, node: syntax.Builtin) -> Operand:
    """Lower ``@load_to_dsr(dsr, dsd, options)``."""
    register = body.operand(node.arguments[0])
    dsd = body.operand(node.arguments[1])
    if register.type not in _FILES or dsd.type not in types.DESCRIPTORS:
        fail("csl-arguments", f"`@load_to_dsr` of `{register.type}` and `{dsd.type}`", node.span)
    fields = fields_of(body, node.arguments[2] if len(node.arguments) > 2 else None)
    arguments = (
        _FILES[register.type],
        typed(body, register, register.type, node.span),
        typed(body, dsd, dsd.type, node.span),
        "true" if fields.flag("save_address") else "false",
        option_text(body, fields),
    )
    return tree.Native(types.VOID, "csl_load_to_dsr", arguments, site=node.span.text, span=node.span)


# ---- @map


@dataclass(frozen=True)
class _Step:
    """What a step of ``@map`` is called with: arguments in C, and what it captures."""

    arguments: tuple[str, ...]
    captured: tuple[tuple[str, Type, tree.Expression], ...]
    sources: tuple[tree.Expression, ...]
    sizes: tuple[int, ...]


def map_(body: Body, node: syntax.Builtin) -> Operand:
    """Lower ``@map(function, sources..., destination)``. Errors: ``csl-map``."""
    callee = body.operand(node.arguments[0])
    if not isinstance(callee, values.FunctionValue):
        return fail("csl-map", "the first argument of `@map` is a function", node.arguments[0].span)
    parameters = callee.function.parameters
    has_result = callee.type.result != types.VOID
    given = node.arguments[1 : 1 + len(parameters)]
    if len(node.arguments) != 1 + len(parameters) + has_result:
        needed = len(parameters) + has_result
        fail(
            "csl-map",
            f"`@map` of `{callee.type}` with {len(node.arguments) - 1} operands",
            node.span,
            "",
            f"give {needed}",
        )
    special = Specialisation(body, callee)
    step = _step(body, special, given)
    name, result = body.unit.function(special)
    call = f"{name}({', '.join(step.arguments)})"
    destination, size = _destination(body, node, result)
    function = body.unit.map_step(call, result, step.captured)
    captured = tree.Braces(
        types.VOID, f"&(struct {function}_captured)", tuple((n, value) for n, _, value in step.captured)
    )
    arguments = (
        function,
        captured if step.captured else "NULL",
        tree.Braces(types.VOID, "(const csl_operand[])", tuple(("", source) for source in step.sources)),
        tree.Braces(types.VOID, "(const uint8_t[])", tuple(("", str(size_)) for size_ in step.sizes)),
        str(len(step.sources)),
        destination,
        str(size),
    )
    return tree.Native(types.VOID, "csl_map", arguments, site=node.span.text, span=node.span)


def _step(body: Body, special: Specialisation, given: tuple[syntax.Expression, ...]) -> _Step:
    arguments: list[str] = []
    captured: list[tuple[str, Type, tree.Expression]] = []
    sources: list[tree.Expression] = []
    sizes: list[int] = []
    for parameter, argument in zip(special.callee.function.parameters, given, strict=True):
        value = body.operand(argument)
        if value.type in types.DESCRIPTORS or value.type in _FILES:
            kind = special.type_of(parameter)
            special.parameters.append((parameter, kind))
            arguments.append(_element(kind, len(sources)))
            sources.append(operand(body, argument, kind, is_destination=False))
            sizes.append(size_of(kind))
            continue
        before = len(special.passed)
        special.give(parameter, argument)
        for expression in special.passed[before:]:
            name = f"c{len(captured)}"
            captured.append((name, expression.type, expression))
            arguments.append(f"captured->{name}")
    return _Step(tuple(arguments), tuple(captured), tuple(sources), tuple(sizes))


def _element(kind: Type, number: int) -> str:
    bits = f"in[{number}]" if size_of(kind) == 4 else f"(uint{8 * size_of(kind)}_t)in[{number}]"
    return f"csl_bits({c_type(kind)}, {bits})"


def _destination(body: Body, node: syntax.Builtin, result: Type) -> tuple[tree.Expression | str, int]:
    if result == types.VOID:
        return "(csl_operand){0}", 0
    return operand(body, node.arguments[-1], result, is_destination=True), size_of(result)
