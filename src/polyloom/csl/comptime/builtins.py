"""The builtins of CSL: those that compute, at compile time; names of those that act."""

from __future__ import annotations

from collections.abc import Callable

from polyloom.csl import types, values
from polyloom.csl.comptime import descriptors, natives
from polyloom.csl.comptime.conversion import bitcast, cast, convert
from polyloom.csl.comptime.evaluate import evaluate, field_of, resolve_type, truth
from polyloom.csl.comptime.faults import NotComptime, fault, not_comptime
from polyloom.csl.comptime.places import place, whole_number
from polyloom.csl.comptime.scope import Scope
from polyloom.csl.syntax import tree
from polyloom.csl.types import Type
from polyloom.csl.values import Value
from polyloom.diagnostics import near

_DSD_OPERATIONS = """
add16 addc16 and16 clz ctz fabsh fabss faddh faddhs fadds fh2s fh2xp16 fmach fmachs fmacs fmaxh fmaxs fmovh
fmovhs fmovs fmovsh fmulh fmuls fnegh fnegs fnormh fnorms fs2h fs2xp16 fscaleh fscales fsubh fsubs mov16
mov32 or16 popcnt sar16 sll16 slr16 sub16 xor16 xp162fh xp162fs dfilt
"""

DSD_OPERATIONS = frozenset(_DSD_OPERATIONS.split())
"""Builtins that run on descriptors."""

_RUNTIME = """
activate assert block unblock load_to_dsr load_to_dsr_xdsr_sr map queue_flush get_config set_config rpc
random16 set_active_prng set_fifo_read_length set_fifo_write_length native get_symbol_value get_tensor_ptr
"""

RUNTIME = DSD_OPERATIONS | frozenset(_RUNTIME.split())
"""Builtins that act when the program runs (some of them also in ``comptime`` blocks)."""

_DIRECTIVES = """
activate block unblock bind_control_task bind_data_task bind_local_task export_symbol initialize_queue
set_local_color_config set_teardown_handler set_empty_queue_handler set_control_task_table set_config
load_to_dsr load_to_dsr_xdsr_sr
"""

DIRECTIVES = frozenset(_DIRECTIVES.split())
"""Builtins of the ``comptime`` blocks of a PE's program."""

LAYOUT = frozenset({"set_rectangle", "set_tile_code", "set_color_config", "export_name"})
"""Builtins of a ``layout`` block."""


def perform(node: tree.Builtin, scope: Scope) -> Value:
    """Return what a builtin gives. Errors: ``csl-builtin``, ``NotComptime`` for what acts at run time."""
    if scope.effects is not None and node.name in DIRECTIVES | LAYOUT:
        done = scope.effects.perform(node, scope)
        if done is not None:
            return done
    function = _COMPUTED.get(node.name)
    if function is not None:
        return function(node, scope)
    if node.name == "rpc" and scope.is_comptime:
        return values.NOTHING  # memcpy takes launches by itself
    if node.name in RUNTIME:
        raise NotComptime(node.span, f"what `@{node.name}` does")
    if node.name in DIRECTIVES | LAYOUT:
        raise misplaced(node)
    raise unknown(node)


def misplaced(node: tree.Builtin) -> Exception:
    """Return the error of a builtin that has no effect where it stands."""
    where = "the `layout` block" if node.name in LAYOUT else "a `comptime` block at the top of a PE's program"
    return fault(
        "csl-misplaced", f"`@{node.name}` belongs to {where}", node.span, helps=[f"move it to {where}"]
    )


def unknown(node: tree.Builtin) -> Exception:
    """Return the error of a builtin that CSL has not."""
    meant = near(node.name, {*_COMPUTED, *RUNTIME, *DIRECTIVES, *LAYOUT})
    helps = [f"did you mean `@{meant}`?" if meant else "`polyloom docs csl` lists the builtins"]
    return fault("csl-builtin", f"there is no builtin `@{node.name}`", node.span, helps=helps)


def arguments(node: tree.Builtin, least: int, most: int | None = None) -> tuple[tree.Expression, ...]:
    """Return a builtin's arguments, of which there must be ``least`` to ``most``. Errors: ``csl-call``."""
    count = len(node.arguments)
    if not least <= count <= (least if most is None else most):
        wanted = f"{least}" if most in (None, least) else f"{least} to {most}"
        raise fault(
            "csl-call",
            f"`@{node.name}` takes {wanted} argument{'s' if wanted != '1' else ''}, not {count}",
            node.span,
            helps=["`polyloom docs csl` tells its arguments"],
        )
    return node.arguments


def text(node: tree.Expression, scope: Scope) -> str:
    """Return a string. Errors: ``csl-type``."""
    return str(scalar(evaluate(node, scope, types.COMPTIME_STRING)).value)


def scalar(value: Value) -> values.Scalar:
    """Return a value that is a scalar by what was checked before."""
    assert isinstance(value, values.Scalar)
    return value


def integer(node: tree.Expression, scope: Scope, wanted: str) -> int:
    """Return an integer. Errors: ``csl-type``."""
    return whole_number(evaluate(node, scope), node.span, wanted)


def _as(node: tree.Builtin, scope: Scope) -> Value:
    target, value = arguments(node, 2)
    return cast(evaluate(value, scope), resolve_type(target, scope), node.span)


def _bitcast(node: tree.Builtin, scope: Scope) -> Value:
    target, value = arguments(node, 2)
    return bitcast(evaluate(value, scope), resolve_type(target, scope), node.span)


def _ptrcast(node: tree.Builtin, scope: Scope) -> Value:
    target, value = arguments(node, 2)
    wanted = resolve_type(target, scope)
    if not isinstance(wanted, types.Pointer):
        raise fault("csl-type", f"`{wanted}` is no pointer type", target.span, helps=["write `*T` or `[*]T`"])
    found = evaluate(value, scope)
    if isinstance(found, values.Address):
        return values.Address(wanted, found.variable, found.path)
    if isinstance(found, values.NumberAddress):
        return values.NumberAddress(wanted, found.address)
    return bitcast(found, wanted, node.span)


ARCHITECTURES = ("wse2", "wse3")


def _is_arch(node: tree.Builtin, scope: Scope) -> Value:
    (name,) = arguments(node, 1)
    given = text(name, scope)
    if given not in ARCHITECTURES and given != "wse1":
        raise fault("csl-arch", f"`{given}` is no architecture", name.span, helps=["use `wse2` or `wse3`"])
    return values.boolean(given == scope.module.program.arch)


def _range(node: tree.Builtin, scope: Scope) -> Value:
    type_, *rest = arguments(node, 2, 4)
    of = resolve_type(type_, scope)
    if not (isinstance(of, types.Integer) or of == types.COMPTIME_INT):
        raise fault("csl-type", f"a range of `{of}`", type_.span, helps=["name an integer type"])
    numbers = [scalar(convert(evaluate(n, scope), of, n.span)).value for n in rest]
    if len(numbers) == 1:
        return values.Range(of, 0, numbers[0], 1)
    start, stop, step = (*numbers, 1)[:3]
    if step == 0:
        raise fault("csl-zero", "a range that never steps", rest[-1].span, helps=["give a step of 1 or more"])
    return values.Range(of, start, stop, step)


def _type_of(node: tree.Builtin, scope: Scope) -> Value:
    (of,) = arguments(node, 1)
    try:
        return values.TypeValue(evaluate(of, scope).type)
    except NotComptime:
        return values.TypeValue(place(of, scope).type.target)


def _zeros(node: tree.Builtin, scope: Scope) -> Value:
    (of,) = arguments(node, 1)
    type_ = resolve_type(of, scope)
    found = values.zero(type_)
    if found is None:
        raise fault("csl-type", f"`{type_}` has no zero", of.span, helps=["name an array of numbers"])
    return found


def _constants(node: tree.Builtin, scope: Scope) -> Value:
    of, element = arguments(node, 2)
    type_ = resolve_type(of, scope)
    if not isinstance(type_, types.Array):
        raise fault("csl-type", f"`{type_}` is no array", of.span, helps=["name an array, as `[4]u16`"])
    value = evaluate(element, scope, type_.element)
    return values.ArrayValue(type_, (value,), is_fill=True)


_GREATEST_ID: dict[Type, dict[str, int]] = {
    types.COLOR: {"wse2": 31, "wse3": 31},
    types.INPUT_QUEUE: {"wse2": 7, "wse3": 7},
    types.OUTPUT_QUEUE: {"wse2": 5, "wse3": 7},
    types.LOCAL_TASK_ID: {"wse2": 31, "wse3": 31},
    types.CONTROL_TASK_ID: {"wse2": 63, "wse3": 63},
    types.MICROTHREAD_ID: {"wse2": 7, "wse3": 7},
}
_LEAST_ID: dict[Type, dict[str, int]] = {types.LOCAL_TASK_ID: {"wse2": 0, "wse3": 8}}


def _handle(of: Type) -> Callable[[tree.Builtin, Scope], Value]:
    def make(node: tree.Builtin, scope: Scope) -> Value:
        (number,) = arguments(node, 1)
        value = integer(number, scope, f"a {of}")
        arch = scope.module.program.arch
        least, most = _LEAST_ID.get(of, {}).get(arch, 0), _GREATEST_ID[of][arch]
        if not least <= value <= most:
            raise fault(
                "csl-id",
                f"{value} is no `{of}` of {arch}",
                number.span,
                helps=[f"ids go from {least} to {most}"],
            )
        return values.Handle(of, value)

    return make


def _data_task_id(node: tree.Builtin, scope: Scope) -> Value:
    (source,) = arguments(node, 1)
    found = evaluate(source, scope)
    arch = scope.module.program.arch
    wanted = types.COLOR if arch == "wse2" else types.INPUT_QUEUE
    if not isinstance(found, values.Handle) or found.type != wanted:
        raise fault(
            "csl-task-id",
            f"on {arch} a data task's id is made of a `{wanted}`, not of a `{found.type}`",
            source.span,
            helps=['choose by `@is_arch("wse3")`: colors on wse2, input queues on wse3'],
        )
    return values.Handle(types.DATA_TASK_ID, found.id)


_DSR_FILES = (types.DSR_DEST, types.DSR_SRC0, types.DSR_SRC1, types.XDSR, types.STRIDE_REGISTER)


def _dsr(node: tree.Builtin, scope: Scope) -> Value:
    file, number = arguments(node, 2)
    of = resolve_type(file, scope)
    if of not in _DSR_FILES:
        raise fault(
            "csl-type", f"`{of}` is no file of registers", file.span, helps=["dsr_dest, dsr_src0 or dsr_src1"]
        )
    value = integer(number, scope, "the number of a register")
    if not 0 <= value <= 63:
        raise fault("csl-id", f"there is no register {value}", number.span, helps=["use a small number"])
    return values.Handle(of, value)


def _get_int(node: tree.Builtin, scope: Scope) -> Value:
    (of,) = arguments(node, 1)
    value = evaluate(of, scope)
    if isinstance(value, values.Handle):
        return values.Scalar(types.U16, value.id)
    raise fault(
        "csl-type", f"`{value.type}` has no id", of.span, helps=["give a color, a queue or a task id"]
    )


def _rectangle(node: tree.Builtin, scope: Scope) -> Value:
    arguments(node, 0)
    rectangle = scope.module.program.rectangle
    if rectangle is None:
        raise fault(
            "csl-rectangle", "the rectangle is not set yet", node.span, helps=["call `@set_rectangle` before"]
        )
    names = ("x", "y", "width", "height")
    sizes = (0, 0, *rectangle)
    fields = tuple(types.StructField(n, types.COMPTIME_INT) for n in names)
    struct = types.Struct("struct", "rectangle", fields)
    return values.StructValue(struct, tuple(values.integer(s) for s in sizes))


def _import(node: tree.Builtin, scope: Scope) -> Value:
    name, *given = arguments(node, 1, 2)
    parameters: dict[str, Value] = {}
    if given:
        struct = evaluate(given[0], scope)
        if not isinstance(struct, values.StructValue):
            raise fault(
                "csl-type",
                f"parameters are a struct, this is a `{struct.type}`",
                given[0].span,
                helps=["write `.{ .name = value }`"],
            )
        parameters = {f.name: v for f, v in zip(struct.type.fields, struct.fields, strict=True)}
    module = scope.module.program.instantiate(text(name, scope), scope.module, parameters, name.span)
    return values.ModuleValue(module)


def _comptime_assert(node: tree.Builtin, scope: Scope) -> Value:
    try:
        return _checked(node, scope)
    except NotComptime as found:
        raise not_comptime(found, f"`@{node.name}` is checked at compile time") from None


def _checked(node: tree.Builtin, scope: Scope) -> Value:
    condition, *message = arguments(node, 1, 2)
    if not truth(condition, scope):
        notes = [text(m, scope) for m in message]
        raise fault(
            "csl-assert",
            f"`{' '.join(condition.span.text.split())}` does not hold",
            node.span,
            notes=notes,
            helps=["change the parameters, or what is asserted"],
        )
    return values.NOTHING


def _assert(node: tree.Builtin, scope: Scope) -> Value:
    if not scope.is_comptime:
        raise NotComptime(node.span, "what `@assert` does")
    return _checked(node, scope)


def _comptime_print(node: tree.Builtin, scope: Scope) -> Value:
    for part in node.arguments:
        scope.module.program.printed.append((part.span, evaluate(part, scope)))
    return values.NOTHING


def _array_of(node: tree.Builtin, scope: Scope) -> types.Array:
    (of,) = arguments(node, 1)
    value = evaluate(of, scope)
    type_ = value.of if isinstance(value, values.TypeValue) else value.type
    if isinstance(type_, types.Pointer):
        type_ = type_.target
    if not isinstance(type_, types.Array):
        raise fault("csl-type", f"`{type_}` is no array", of.span, helps=["give an array or its type"])
    return type_


def _dimensions(node: tree.Builtin, scope: Scope) -> Value:
    shape = _array_of(node, scope).shape
    sizes = tuple(values.Scalar(types.U16, n) for n in shape)
    return values.ArrayValue(types.Array((len(shape),), types.U16), sizes)


def _is_same_type(node: tree.Builtin, scope: Scope) -> Value:
    first, second = arguments(node, 2)
    return values.boolean(resolve_type(first, scope) == resolve_type(second, scope))


def _has_field(node: tree.Builtin, scope: Scope) -> Value:
    of, name = arguments(node, 2)
    value = evaluate(of, scope)
    type_ = value.of if isinstance(value, values.TypeValue) else value.type
    if isinstance(value, values.ModuleValue):
        return values.boolean(text(name, scope) in value.module.names())
    return values.boolean(isinstance(type_, types.Struct) and type_.field(text(name, scope)) is not None)


def _get_field(node: tree.Builtin, scope: Scope) -> Value:
    of, name = arguments(node, 2)
    return field_of(evaluate(of, scope), text(name, scope), node.span)


def _strlen(node: tree.Builtin, scope: Scope) -> Value:
    (of,) = arguments(node, 1)
    return values.integer(len(text(of, scope)))


def _strcat(node: tree.Builtin, scope: Scope) -> Value:
    return values.string("".join(text(part, scope) for part in arguments(node, 1, 99)))


def _get_array(node: tree.Builtin, scope: Scope) -> Value:
    (of,) = arguments(node, 1)
    letters = text(of, scope).encode()
    type_ = types.Array((len(letters),), types.U8)
    return values.ArrayValue(type_, tuple(values.Scalar(types.U8, b) for b in letters))


def _is_comptime(node: tree.Builtin, scope: Scope) -> Value:
    (of,) = arguments(node, 1)
    try:
        evaluate(of, scope)
    except NotComptime:
        return values.FALSE
    return values.TRUE


def _native(node: tree.Builtin, scope: Scope) -> Value:
    name, result, *rest = arguments(node, 2, 99)
    given = [evaluate(argument, scope) for argument in rest]
    found = natives.computed(text(name, scope), resolve_type(result, scope), given)
    if found is None:
        raise NotComptime(node.span, f"what `{text(name, scope)}` does")
    return found


def _concat_structs(node: tree.Builtin, scope: Scope) -> Value:
    scope.module.program.warn(
        "csl-removed",
        "SDK 2.10 has no `@concat_structs`",
        node.span,
        "write the fields of both into one literal",
    )
    found: dict[str, Value] = {}
    for part in arguments(node, 2, 99):
        struct = evaluate(part, scope)
        if not isinstance(struct, values.StructValue):
            raise fault("csl-type", f"`{struct.type}` is no struct", part.span, helps=["give it structs"])
        for field, value in zip(struct.type.fields, struct.fields, strict=True):
            if field.name in found:
                raise fault(
                    "csl-field", f"`{field.name}` is set twice", part.span, helps=["set it in one of them"]
                )
            found[field.name] = value
    fields = tuple(types.StructField(n, v.type) for n, v in found.items())
    return values.StructValue(types.Struct("struct", "", fields), tuple(found.values()))


_COMPUTED: dict[str, Callable[[tree.Builtin, Scope], Value]] = {
    "as": _as,
    "assert": _assert,
    "bitcast": _bitcast,
    "ptrcast": _ptrcast,
    "is_arch": _is_arch,
    "range": _range,
    "type_of": _type_of,
    "zeros": _zeros,
    "constants": _constants,
    "get_color": _handle(types.COLOR),
    "get_input_queue": _handle(types.INPUT_QUEUE),
    "get_output_queue": _handle(types.OUTPUT_QUEUE),
    "get_local_task_id": _handle(types.LOCAL_TASK_ID),
    "get_control_task_id": _handle(types.CONTROL_TASK_ID),
    "get_ut_id": _handle(types.MICROTHREAD_ID),
    "get_data_task_id": _data_task_id,
    "get_dsr": _dsr,
    "get_int": _get_int,
    "get_rectangle": _rectangle,
    "import_module": _import,
    "comptime_assert": _comptime_assert,
    "comptime_print": _comptime_print,
    "element_type": lambda node, scope: values.TypeValue(_array_of(node, scope).element),
    "element_count": lambda node, scope: values.integer(_array_of(node, scope).count),
    "rank": lambda node, scope: values.integer(len(_array_of(node, scope).shape)),
    "dimensions": _dimensions,
    "is_same_type": _is_same_type,
    "has_field": _has_field,
    "field": _get_field,
    "concat_structs": _concat_structs,
    "native": _native,
    "strlen": _strlen,
    "strcat": _strcat,
    "get_array": _get_array,
    "is_comptime": _is_comptime,
    "fp16": lambda node, scope: values.TypeValue(types.F16),
    "get_dsd": descriptors.get_dsd,
    "allocate_fifo": descriptors.allocate_fifo,
    "increment_dsd_offset": descriptors.increment_offset,
    "set_dsd_base_addr": descriptors.set_base,
    "set_dsd_length": descriptors.set_length,
    "set_dsd_stride": descriptors.set_stride,
}
