"""A PE program while it is lowered: its functions, what lies in memory, descriptors, tasks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from typing import Any

from polyloom.csl import comptime, types, values
from polyloom.csl.lowering import expressions, places, statements, tree
from polyloom.csl.lowering.body import Body, Memory, Place, Register, Rules, fail
from polyloom.csl.lowering.calls import Specialisation
from polyloom.csl.lowering.conversions import write
from polyloom.csl.lowering.descriptors import descriptor
from polyloom.csl.lowering.emitted.c_types import c_type, size_of, struct_definition, struct_name
from polyloom.csl.lowering.emitted.image import Object
from polyloom.csl.syntax import tree as syntax
from polyloom.csl.types import Type
from polyloom.csl.values import Value
from polyloom.diagnostics import Span

DEEPEST_FUNCTIONS = 200
MOST_FUNCTIONS = 4_000
"""Of one program, which has 48 KiB for its code and data."""

RULES = Rules(expressions.operand, places.place, statements.statement)


class Unit:
    """Collects what the C of a PE program is made of."""

    def __init__(self, arch: str, task_ids: dict[object, int]) -> None:
        self.arch = arch
        self.task_ids = task_ids
        self.objects: list[Object] = []
        self.functions: list[tree.Function] = []
        self.texts: list[str] = []
        """C definitions that are not made of trees: steps of `@map` and what they capture."""
        self.dsds: list[tree.DsdVariable] = []
        self.structs: dict[str, str] = {}
        self.fifos: list[values.Fifo] = []
        self._symbols: dict[int, str] = {}
        self._arrays: dict[object, str] = {}
        self._registers: dict[int, tree.Global] = {}
        self.recursive: set[str] = set()
        """Functions of C that call themselves, by way of others or at once."""
        self._functions: dict[object, tuple[str, Type]] = {}
        self._under_way: list[object] = []
        self._in_memory: set[str] = set()
        self._names: dict[str, int] = {}
        self._kept: list[object] = []

    def name(self, wanted: str) -> str:
        """Return a name of C that nothing else in the unit has."""
        plain = "".join(c if c.isalnum() or c == "_" else "_" for c in wanted)
        self._names[plain] = self._names.get(plain, 0) + 1
        return f"{plain}_{self._names[plain]}"

    # ---- Memory

    def symbol_of(self, variable: values.Variable) -> str:
        """Return the symbol of a variable's address."""
        key = id(variable)
        if key not in self._symbols:
            self._kept.append(variable)
            symbol = self._symbols[key] = self.name(f"at_{variable.name}")
            self.objects.append(
                Object(symbol, variable.name, variable.type, variable.value, _alignment(variable))
            )
        return self._symbols[key]

    def placed(self) -> list[tuple[values.Variable, str]]:
        """Return the variables that lie in memory, with their symbols."""
        found = (item for item in self._kept if isinstance(item, values.Variable))
        return [(item, self._symbols[id(item)]) for item in found if id(item) in self._symbols]

    def constant_array(self, value: values.ArrayValue) -> tree.Address:
        """Return the address of an array that is known at compile time and indexed at run time."""
        key: object = (value.type, value.elements, value.is_fill)
        if key not in self._arrays:
            symbol = self._arrays[key] = self.name("at_constant")
            self.objects.append(Object(symbol, "constant array", value.type, value))
        return tree.Address(types.Pointer(value.type, is_const=True), self._arrays[key])

    def local_object(self, function: str, name: str, kind: Type, source_name: str = "") -> str:
        """Return the symbol of a local variable that needs an address, which is the same in each call."""
        self._in_memory.add(function)
        symbol = self.name(f"at_{function}_{name}")
        self.objects.append(Object(symbol, source_name or name, kind, None))
        return symbol

    def dsd_variable(self, variable: values.Variable) -> tree.Global:
        """Return the variable of a module that holds a DSD."""
        key = id(variable)
        if key not in self._registers:
            self._kept.append(variable)
            place = self._registers[key] = tree.Global(variable.type, self.name(variable.name))
            known = not isinstance(variable.value, values.Uninitialised)
            value = descriptor(self, variable.value, _span_of(variable)) if known else None
            self.dsds.append(tree.DsdVariable(place.name, variable.type, value))
        return self._registers[key]

    def use_struct(self, kind: types.Struct) -> None:
        """Note that values of a struct exist at run time."""
        for field in kind.fields:
            if isinstance(field.type, types.Struct):
                self.use_struct(field.type)
        self.structs.setdefault(struct_name(kind), struct_definition(kind))

    def descriptor(self, body: Body, value: Value, span: Span) -> tree.Expression:
        """Return a descriptor that is known at compile time."""
        del body
        return descriptor(self, value, span)

    def fifo(self, value: values.Fifo) -> int:
        """Return the number of a FIFO."""
        if not any(value is other for other in self.fifos):
            self.fifos.append(value)
            assert isinstance(value.buffer, values.Address)
            self.symbol_of(value.buffer.variable)
        return next(i for i, other in enumerate(self.fifos) if other is value)

    # ---- Functions

    def function(self, special: Specialisation) -> tuple[str, Type]:
        """Return the name and the result of a specialised function, which is lowered the first time."""
        key = special.key
        if key in self._functions:
            if key in self._under_way:
                self.recursive |= {
                    self._functions[k][0] for k in self._under_way[self._under_way.index(key) :]
                }
            return self._functions[key]
        self._check_bounded(special)
        self._kept.append(special)
        name, result = self._functions[key] = self.name(f"f_{special.callee.function.name}"), special.result()
        self._under_way.append(key)
        self.functions.append(self._lowered(special, name, result))
        self._under_way.pop()
        return name, result

    def _check_bounded(self, special: Specialisation) -> None:
        """Check that a function is not made again and again. Errors: ``csl-too-deep``, ``csl-endless``."""
        if len(self._under_way) >= DEEPEST_FUNCTIONS:
            code, what = "csl-too-deep", f"more than {DEEPEST_FUNCTIONS} functions, each for the one before"
        elif len(self.functions) >= MOST_FUNCTIONS:
            code, what = "csl-endless", f"more than {MOST_FUNCTIONS:,} functions in one program"
        else:
            return
        node = special.callee.function
        label = f"`{node.name}` is made again for each value of its `comptime` parameters"
        fail(code, what, node.name_span, label, "make its parameters values of run time, or write a loop")

    def check_recursion(self) -> None:
        """Check that functions that call themselves keep nothing in memory. Errors: ``csl-recursion``."""
        for function in self.functions:
            if function.name in self.recursive and function.name in self._in_memory:
                fail(
                    "csl-recursion",
                    f"`{function.source_name}` calls itself and has a local variable in memory",
                    function.span,
                    "",
                    "write a loop, or make arrays and what `&` is taken of globals",
                )

    def is_one_statement(self, name: str) -> bool:
        """Return whether the body of a function is one statement without branches."""
        function = next((function for function in self.functions if function.name == name), None)
        return (
            function is not None
            and len(function.body) <= 1
            and all(
                isinstance(part, tree.Return | tree.Evaluate | tree.Store | tree.Assign)
                for part in function.body
            )
        )

    def _lowered(self, special: Specialisation, name: str, result: Type) -> tree.Function:
        node = special.callee.function
        if node.body is None:
            fail("csl-extern", f"`{node.name}` has no body", node.span, "", "define it in the program")
        scope = comptime.Scope(special.callee.module)
        body = Body(self, RULES, scope, result, addressed_names(node.body), name)
        for known, value in special.known:
            scope.bind(known, value)
        if isinstance(result, types.Struct):
            self.use_struct(result)
        parameters = [self._parameter(body, parameter, kind) for parameter, kind in special.parameters]
        body.scope = scope.child()
        for inner in node.body.body:
            body.statement(inner)
        return tree.Function(name, node.name, tuple(parameters), result, tuple(body.out), node.span)

    def _parameter(self, body: Body, parameter: syntax.Parameter, kind: Type) -> tuple[str, Type]:
        local = tree.Local(kind, body.fresh(parameter.name))
        found: Place = Register(kind, local, is_const=True)
        if isinstance(kind, types.Struct):
            self.use_struct(kind)
        if parameter.name in body.addressed and kind not in types.DESCRIPTORS:
            symbol = self.local_object(body.symbol, local.name, kind, parameter.name)
            found = Memory(kind, tree.Address(types.Pointer(kind), symbol), is_const=True)
            write(body, found, local, parameter.span)
        body.scope.bind(parameter.name, comptime.Runtime(found))
        return local.name, kind

    def entry(self, callee: values.FunctionValue, kinds: Iterable[Type], arguments: list[str]) -> str:
        """Return the C of a call from outside of the program, of a task or an exported function."""
        scope = comptime.Scope(callee.module)
        body = Body(self, RULES, scope, types.VOID, frozenset(), "entry")
        special = Specialisation(body, callee)
        for parameter, kind in zip(callee.function.parameters, kinds, strict=True):
            special.parameters.append((parameter, kind))
        name, _ = self.function(special)
        return f"{name}({', '.join(arguments)})"

    def startup(self, directive: comptime.Directive) -> str:
        """Return the name of a function that does what a directive asks for when the program is loaded."""
        scope = comptime.Scope(directive.module)
        for name, binding in directive.names.items():
            scope.bind(name, binding)
        body = Body(self, RULES, scope, types.VOID, frozenset(), "startup")
        body.statement(syntax.ExpressionStatement(directive.span, directive.node))
        name = self.name("startup")
        self.functions.append(tree.Function(name, name, (), types.VOID, tuple(body.out), directive.span))
        return name

    def map_step(self, call: str, result: Type, captured: Iterable[tuple[str, Type, tree.Expression]]) -> str:
        """Define the step of a `@map` and what it captures; return its name."""
        name = self.name("step")
        fields = " ".join(f"{c_type(kind)} {field};" for field, kind, _ in captured)
        into = f"struct {name}_captured"
        lines = [f"{into} {{ {fields} }};"] if fields else []
        lines.append(f"static void {name}(void *csl_captured, const uint32_t *in, uint32_t *out) {{")
        lines.append(f"  const {into} *captured = csl_captured;" if fields else "  (void)csl_captured;")
        lines.append("  (void)in;")
        if result == types.VOID:
            lines += ["  (void)out;", f"  {call};"]
        else:
            bits = f"uint{8 * size_of(result)}_t"
            lines.append(f"  *out = csl_bits({bits}, {call});")
        self.texts.append("\n".join([*lines, "}"]) + "\n")
        return name

    def task_id(self, task: values.FunctionValue, span: Span) -> int:
        """Return the id that a task is bound to. Errors: ``csl-task``."""
        key = id(task.function), id(task.module)
        if key not in self.task_ids:
            fail(
                "csl-task",
                f"`{task.function.name}` is bound to no id",
                span,
                "",
                "`@bind_local_task(task, id)`",
            )
        return self.task_ids[key]


def _alignment(variable: values.Variable) -> int:
    node = variable.declaration
    if node is None or node.align is None or variable.module is None:
        return 1
    value = comptime.evaluate(node.align, variable.module.scope)
    return comptime.whole_number(value, node.align.span, "an alignment")


def _span_of(variable: values.Variable) -> Span:
    assert variable.declaration is not None
    return variable.declaration.span


def addressed_names(node: object) -> frozenset[str]:
    """Return the names that `&` is applied to, or to a part of, anywhere in a node."""
    found: set[str] = set()
    stack: list[Any] = [node]
    while stack:
        item = stack.pop()
        if isinstance(item, syntax.Unary) and item.operator == "&":
            found |= _root(item.operand)
        if isinstance(item, tuple):
            stack.extend(item)
        elif is_dataclass(item) and isinstance(item, syntax.Node):
            stack.extend(getattr(item, field.name) for field in fields(item))
    return frozenset(found)


def _root(node: syntax.Expression) -> set[str]:
    while isinstance(node, syntax.Field | syntax.Index):
        node = node.base
    return {node.name} if isinstance(node, syntax.Name) else set()
