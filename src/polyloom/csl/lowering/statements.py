"""Statements: branches that are decided at compile time are taken, loops become ``while``."""

from __future__ import annotations

from polyloom.csl import comptime, types, values
from polyloom.csl.lowering import tree
from polyloom.csl.lowering.body import Body, Memory, Operand, Place, Register, Target, fail
from polyloom.csl.lowering.conversions import read, simple, typed, write
from polyloom.csl.lowering.emitted.c_types import check_layout, size_of
from polyloom.csl.lowering.operators import compound
from polyloom.csl.lowering.places import place
from polyloom.csl.syntax import tree as syntax
from polyloom.csl.types import Type
from polyloom.csl.values import Value
from polyloom.diagnostics import Span

MOST_UNROLLED = 4096
"""The most iterations of a `comptime` loop."""


def statement(body: Body, node: syntax.Statement) -> None:
    """Lower a statement into ``body.out``."""
    match node:
        case syntax.Block():
            _block(body, node)
        case syntax.Declaration():
            _declaration(body, node)
        case syntax.Assign():
            _assign(body, node)
        case syntax.ExpressionStatement(expression=syntax.Switch() as inner):
            switch(body, inner, None)
        case syntax.ExpressionStatement(expression=inner):
            _evaluate(body, inner)
        case syntax.If():
            _if(body, node)
        case syntax.While():
            _while(body, node)
        case syntax.For():
            _for(body, node)
        case syntax.Return():
            _return(body, node)
        case syntax.Break():
            _break(body, node)
        case syntax.Continue():
            _jump(body, _loop(body, node.label, node.span), again=True)
        case _:
            fail("csl-runtime", "this cannot stand in a function", node.span)


def _evaluate(body: Body, node: syntax.Expression) -> None:
    value = body.operand(node, types.VOID)
    if isinstance(value, Value):
        if value.type != types.VOID:
            fail(
                "csl-unused", f"a value of type `{value.type}` is not used", node.span, "", "write `_ = ...`"
            )
    elif value.type == types.VOID:
        body.out.append(tree.Evaluate(value))
    else:
        fail("csl-unused", f"a value of type `{value.type}` is not used", node.span, "", "write `_ = ...`")


def _block(body: Body, node: syntax.Block) -> None:
    if node.is_comptime:
        comptime.execute(node, body.scope)
        return
    label = None if node.label is None else body.fresh(node.label)
    with body.collected() as statements, body.names():
        if label is not None:
            body.targets.append(Target(node.label, label, is_loop=False))
        for inner in node.body:
            body.statement(inner)
        if label is not None:
            body.targets.pop()
    body.out.append(tree.Block(tuple(statements), label))


def block_value(body: Body, node: syntax.Block, wanted: Type | None) -> Operand:
    """Lower ``label: { ... break :label value; }``; its type is what the context asks for."""
    if not node.body:
        return values.NOTHING
    if wanted is None or types.is_comptime_only(wanted):
        return fail(
            "csl-type", "the type of the block is not known", node.span, "", "declare the type of the result"
        )
    result = declared(body, "block", wanted)
    label = body.fresh(node.label or "block")
    with body.collected() as statements, body.names():
        body.targets.append(Target(node.label, label, is_loop=False, result=Register(wanted, result)))
        for inner in node.body:
            body.statement(inner)
        body.targets.pop()
    body.out.append(tree.Block(tuple(statements), label))
    return result


def declared(body: Body, name: str, kind: Type) -> tree.Local:
    """Declare a local variable that a later statement gives its value."""
    result = tree.Local(kind, body.fresh(name))
    plain = kind not in types.DESCRIPTORS and not isinstance(kind, types.Struct)
    body.out.append(
        tree.Declare(result.name, kind, tree.Native(kind, "0" if plain else "{0}", (), is_text=True))
    )
    return result


# ---- Names


def _declaration(body: Body, node: syntax.Declaration) -> None:
    kind = None if node.type is None else body.type_of(node.type)
    if node.is_comptime:
        comptime.execute(node, body.scope)
    elif node.value is None:
        _uninitialised(body, node, kind)
    elif node.kind == "const":
        _constant(body, node, kind, node.value)
    else:
        _variable(body, node, kind, node.value)


def _uninitialised(body: Body, node: syntax.Declaration, kind: Type | None) -> None:
    if kind is None or node.kind != "var":
        fail("csl-declaration", f"`{node.name}` has neither a type nor a value", node.span)
    check_layout(kind, node.span)
    if kind in types.DESCRIPTORS:
        body.scope.bind(node.name, comptime.Runtime(Register(kind, declared(body, node.name, kind))))
        return
    found = _local_memory(body, node, kind)
    body.out.append(tree.Forget(found.address, size_of(kind)))
    body.scope.bind(node.name, comptime.Runtime(found))


def _local_memory(body: Body, node: syntax.Declaration, kind: Type) -> Memory:
    symbol = body.unit.local_object(body.symbol, body.fresh(node.name), kind, node.name)
    return Memory(kind, tree.Address(types.Pointer(kind), symbol), node.kind == "const")


def _constant(body: Body, node: syntax.Declaration, kind: Type | None, value_node: syntax.Expression) -> None:
    value = body.operand(value_node, kind)
    if not isinstance(value, Value):
        _bound(body, node, typed(body, value, kind or value.type, value_node.span))
        return
    known = value if kind is None else comptime.convert(value, kind, value_node.span)
    if isinstance(known, values.ArrayValue) or node.name in body.addressed:
        variable = values.Variable(
            node.name, known.type, known, is_const=True, module=body.scope.module, declaration=node
        )
        body.scope.bind(node.name, variable)
    else:
        body.scope.bind(node.name, known)


def _variable(body: Body, node: syntax.Declaration, kind: Type | None, value_node: syntax.Expression) -> None:
    value = body.operand(value_node, kind)
    result = kind or value.type
    if result == types.COMPTIME_INT or result == types.COMPTIME_FLOAT:
        fail(
            "csl-runtime-type",
            f"a variable of type `{result}`, which exists at compile time only",
            node.span,
            f"`{node.name}` changes at run time",
            f"declare its type: `var {node.name}: i16`",
        )
    _bound(body, node, typed(body, value, result, value_node.span))


def _bound(body: Body, node: syntax.Declaration, value: tree.Expression) -> None:
    """Give a name to a new variable."""
    kind = value.type
    if kind == types.VOID:
        fail("csl-type", f"`{node.name}` has no value", node.span)
    if isinstance(kind, types.Array) or (node.name in body.addressed and kind not in types.DESCRIPTORS):
        found: Place = _local_memory(body, node, kind)
        write(body, found, value, node.span)
    else:
        local = tree.Local(kind, body.fresh(node.name))
        body.out.append(tree.Declare(local.name, kind, value))
        found = Register(kind, local, node.kind == "const")
    if node.name != "_":
        body.scope.bind(node.name, comptime.Runtime(found))


def _assign(body: Body, node: syntax.Assign) -> None:
    if isinstance(node.target, syntax.Name) and node.target.name == "_":
        value = body.operand(node.value)
        if not isinstance(value, Value):
            body.out.append(tree.Evaluate(value))
        return
    found = place(body, node.target)
    if found is None:
        fail("csl-assign", "this cannot be assigned to", node.target.span)
    if found.is_const:
        fail("csl-assign", "this is constant", node.target.span, "", "declare it with `var`")
    if node.operator is None:
        value = body.operand(node.value, found.type)
        write(body, found, typed(body, value, found.type, node.value.span), node.span)
        return
    if isinstance(found, Memory):
        found = Memory(found.type, simple(body, found.address, "at"))
    write(body, found, compound(body, node, read(body, found, node.target.span)), node.span)


# ---- Control flow


def _if(body: Body, node: syntax.If) -> None:
    condition = body.operand(node.condition, types.BOOL)
    if isinstance(condition, Value):
        taken = comptime.convert(condition, types.BOOL, node.condition.span) == values.TRUE
        branch = node.then if taken else node.otherwise
        if branch is not None:
            _nested(body, branch)
        return
    test = typed(body, condition, types.BOOL, node.condition.span)
    with body.collected() as then:
        _nested(body, node.then)
    with body.collected() as otherwise:
        if node.otherwise is not None:
            _nested(body, node.otherwise)
    body.out.append(tree.If(test, tuple(then), tuple(otherwise)))


def _nested(body: Body, node: syntax.Statement) -> None:
    with body.names():
        if isinstance(node, syntax.Block) and node.label is None and not node.is_comptime:
            for inner in node.body:
                body.statement(inner)
        else:
            body.statement(node)


def _while(body: Body, node: syntax.While) -> None:
    if node.is_comptime:
        _unrolled_while(body, node)
        return
    label = body.fresh(node.label or "loop")
    with body.collected() as before:
        condition = body.operand(node.condition, types.BOOL)
        test = typed(body, condition, types.BOOL, node.condition.span)
    with body.collected() as step:
        if node.step is not None:
            _nested(body, node.step)
    with body.collected() as inside:
        body.targets.append(Target(node.label, label, is_loop=True))
        _nested(body, node.body)
        body.targets.pop()
    if before:
        stop = tree.If(tree.Unary(types.BOOL, "!", test), (tree.Jump(label),))
        inside = [*before, stop, *inside]
        test = tree.Constant(types.BOOL, True)
    runs = isinstance(test, tree.Constant)
    body.out.append(tree.While(test, tuple(step), tuple(inside), label, runs))


def _unrolled_while(body: Body, node: syntax.While) -> None:
    for _ in range(MOST_UNROLLED):
        value = comptime.evaluate(node.condition, body.scope, types.BOOL)
        if value != values.TRUE:
            return
        _nested(body, node.body)
        if node.step is not None:
            comptime.execute(node.step, body.scope)
    fail("csl-too-long", f"more than {MOST_UNROLLED} iterations at compile time", node.span)


def _for(body: Body, node: syntax.For) -> None:
    sequence = body.evaluate(node.sequence)
    if node.is_comptime and isinstance(sequence, values.Range | values.ArrayValue):
        _unrolled_for(body, node, sequence)
    elif isinstance(sequence, values.Range):
        start, stop, step = (
            tree.Constant(sequence.of, n) for n in (sequence.start, sequence.stop, sequence.step)
        )
        _counted(body, node, sequence.of, start, stop, step)
    elif isinstance(node.sequence, syntax.Builtin) and node.sequence.name in ("range", "range_start"):
        _counted(body, node, *_range(body, node.sequence))
    else:
        _elements(body, node)


def _range(
    body: Body, node: syntax.Builtin
) -> tuple[Type, tree.Expression, tree.Expression, tree.Expression]:
    kind = body.type_of(node.arguments[0])
    given = [typed(body, body.operand(a, kind), kind, a.span) for a in node.arguments[1:]]
    zero, one = tree.Constant(kind, 0), tree.Constant(kind, 1)
    match given:
        case [stop]:
            return kind, zero, stop, one
        case [start, stop, step]:
            return kind, start, simple(body, stop, "stop"), simple(body, step, "step")
        case [start, stop]:
            return kind, start, simple(body, stop, "stop"), one
    return fail("csl-arguments", f"`@range` with {len(node.arguments)} arguments", node.span)


def _unrolled_for(body: Body, node: syntax.For, sequence: values.Range | values.ArrayValue) -> None:
    items: list[Value] = (
        [values.integer(n, sequence.of) for n in range(sequence.start, sequence.stop, sequence.step)]
        if isinstance(sequence, values.Range)
        else list(sequence)
    )
    if len(items) > MOST_UNROLLED:
        fail("csl-too-long", f"more than {MOST_UNROLLED} iterations at compile time", node.span)
    label = body.fresh(node.label or "loop")
    for index, item in enumerate(items):
        with body.names(), body.collected() as inside:
            body.scope.bind(node.element.name, item)
            if node.index is not None:
                body.scope.bind(node.index.name, values.integer(index, types.U16))
            _nested(body, node.body)
        body.out.append(tree.Block(tuple(inside)))
    del label


def _counted(
    body: Body,
    node: syntax.For,
    kind: Type,
    start: tree.Expression,
    stop: tree.Expression,
    step: tree.Expression,
) -> None:
    """Lower a loop over a range; a step below zero counts down."""
    stop, step = simple(body, stop, "stop"), simple(body, step, "step")
    counter = tree.Local(kind, body.fresh(node.element.name))
    body.out.append(tree.Declare(counter.name, kind, start))
    down = isinstance(step, tree.Constant) and step.value < 0
    test = tree.Binary(types.BOOL, ">" if down else "<", counter, stop, node.span)
    forward = tree.Assign(counter, tree.Binary(kind, "+", counter, step, node.span))
    _loop_over(body, node, test, [forward], kind, counter, runs=_runs(start, stop, down=down))


def _runs(start: tree.Expression, stop: tree.Expression, *, down: bool) -> bool:
    """Whether a loop is known to have an iteration."""
    if not (isinstance(start, tree.Constant) and isinstance(stop, tree.Constant)):
        return False
    return start.value > stop.value if down else start.value < stop.value


def _elements(body: Body, node: syntax.For) -> None:
    found = place(body, node.sequence)
    if found is None:
        value = body.evaluate(node.sequence)
        if isinstance(value, values.ArrayValue):
            found = Memory(value.type, body.unit.constant_array(value), True)
    if not (isinstance(found, Memory) and isinstance(found.type, types.Array)):
        fail(
            "csl-for",
            "this is neither a range nor an array",
            node.sequence.span,
            "",
            "loop over `@range(u16, n)`",
        )
    kind, element = types.U16, found.type.element
    counter = tree.Local(kind, body.fresh("index"))
    body.out.append(tree.Declare(counter.name, kind, tree.Constant(kind, 0)))
    test = tree.Binary(types.BOOL, "<", counter, tree.Constant(kind, found.type.count), node.span)
    forward = tree.Assign(counter, tree.Binary(kind, "+", counter, tree.Constant(kind, 1), node.span))
    span, count = node.sequence.span, found.type.count
    pointer = types.Pointer(element)
    at = tree.Offset(pointer, found.address, counter, size_of(element), count, span.text, span)
    item = read(body, Memory(element, at), span)
    _loop_over(body, node, test, [forward], element, item, counter, runs=count > 0)


def _loop_over(
    body: Body,
    node: syntax.For,
    test: tree.Expression,
    step: list[tree.Statement],
    kind: Type,
    value: tree.Expression,
    index: tree.Local | None = None,
    *,
    runs: bool,
) -> None:
    label = body.fresh(node.label or "loop")
    with body.names(), body.collected() as inside:
        _loop_names(body, node, kind, value, index, step)
        body.targets.append(Target(node.label, label, is_loop=True))
        _nested(body, node.body)
        body.targets.pop()
    body.out.append(tree.While(test, tuple(step), tuple(inside), label, runs))


def _loop_names(
    body: Body,
    node: syntax.For,
    kind: Type,
    value: tree.Expression,
    index: tree.Local | None,
    step: list[tree.Statement],
) -> None:
    item = tree.Local(kind, body.fresh(node.element.name))
    body.out.append(tree.Declare(item.name, kind, value))
    if node.element.name in body.addressed:
        symbol = body.unit.local_object(body.symbol, item.name, kind, node.element.name)
        found: Place = Memory(kind, tree.Address(types.Pointer(kind), symbol), True)
        write(body, found, item, node.element.span)
    else:
        found = Register(kind, item, True)
    body.scope.bind(node.element.name, comptime.Runtime(found))
    if node.index is None:
        return
    if index is None:
        index = tree.Local(types.U16, body.fresh(node.index.name))
        fail("csl-for", "an index of a range", node.index.span, "", "the element of a range is its index")
    body.scope.bind(node.index.name, comptime.Runtime(Register(types.U16, index, True)))


def switch(body: Body, node: syntax.Switch, result: Place | None) -> None:
    """Lower a ``switch``; its prongs leave their values in ``result``."""
    subject = body.operand(node.subject)
    if isinstance(subject, Value):
        chosen = _prong_of(body, node, subject)
        if chosen is not None:
            _prong(body, chosen, result)
        return
    kind = subject.type
    if not isinstance(kind, types.Integer | types.Enum) and kind not in (types.BOOL, *types.HANDLES):
        fail("csl-type", f"`switch` over `{kind}`", node.subject.span, "", "switch over integers or an enum")
    cases: list[tuple[tuple[int, ...], tuple[tree.Statement, ...]]] = []
    otherwise: tuple[tree.Statement, ...] = ()
    for prong in node.prongs:
        numbers = tuple(_case(body, case, kind) for case in prong.cases)
        with body.collected() as statements:
            _prong(body, prong, result)
        if numbers:
            cases.append((numbers, tuple(statements)))
        else:
            otherwise = tuple(statements)
    body.out.append(tree.Switch(subject, tuple(cases), otherwise))


def _case(body: Body, node: syntax.Expression, kind: Type) -> int:
    value = typed(body, comptime.evaluate(node, body.scope, kind), kind, node.span)
    assert isinstance(value, tree.Constant)
    return int(value.value)


def _prong_of(body: Body, node: syntax.Switch, subject: Value) -> syntax.Prong | None:
    for prong in node.prongs:
        if not prong.cases:
            return prong
        for case in prong.cases:
            value = comptime.evaluate(case, body.scope, subject.type)
            if comptime.binary("==", subject, value, case.span) == values.TRUE:
                return prong
    return None


def _prong(body: Body, prong: syntax.Prong, result: Place | None) -> None:
    if result is not None and isinstance(prong.body, syntax.ExpressionStatement):
        expression = prong.body.expression
        value = typed(body, body.operand(expression, result.type), result.type, expression.span)
        write(body, result, value, expression.span)
    else:
        _nested(body, prong.body)


def _return(body: Body, node: syntax.Return) -> None:
    if node.value is None:
        if body.result != types.VOID:
            fail("csl-type", f"`return` without a value, expected `{body.result}`", node.span)
        body.out.append(tree.Return())
        return
    value = body.operand(node.value, body.result)
    if body.result == types.VOID:
        if not isinstance(value, Value):
            body.out.append(tree.Evaluate(value))
        body.out.append(tree.Return())
        return
    body.out.append(tree.Return(typed(body, value, body.result, node.value.span)))


def _loop(body: Body, label: str | None, span: Span) -> Target:
    for target in reversed(body.targets):
        if (label is None and target.is_loop) or (label is not None and target.source_label == label):
            return target
    return fail(
        "csl-jump", "there is no loop around this" if label is None else f"there is no `{label}`", span
    )


def _break(body: Body, node: syntax.Break) -> None:
    target = _loop(body, node.label, node.span)
    if node.value is not None:
        if target.result is None:
            fail("csl-jump", "this block gives no value", node.span)
        kind = target.result.type
        write(body, target.result, typed(body, body.operand(node.value, kind), kind, node.span), node.span)
    _jump(body, target, again=False)


def _jump(body: Body, target: Target, *, again: bool) -> None:
    body.out.append(tree.Jump(target.label, again))
