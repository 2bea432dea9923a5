"""The typed tree as C against the contract ``csl.h``, with the lines of CSL that it is from."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, is_dataclass, replace

from polyloom.csl import types
from polyloom.csl.lowering import tree
from polyloom.csl.lowering.emitted import costs
from polyloom.csl.lowering.emitted.c_types import c_type, letters
from polyloom.csl.lowering.emitted.invariants import with_fixed_addresses
from polyloom.diagnostics import Span

_COMPARISONS = {"==", "!=", "<", "<=", ">", ">="}
_WORDS = {"and": "&&", "or": "||"}


def function_text(function: tree.Function) -> str:
    """Return the definition of a function."""
    lines = [_line(function.span), prototype(function) + " {"]
    lines += _indented(_statements(function.body))
    return "\n".join([*_at_known_lines(lines), "}"]) + "\n"


def _at_known_lines(lines: Iterable[str]) -> Iterator[str]:
    """Yield lines of C so that what counts, or may fail, is of the last line of CSL that is known."""
    known, follows = "", False
    for line in lines:
        if line.startswith("#"):
            known = line
        elif not follows and ("cost(" in line or "PE_" in line):
            yield known
        yield line
        follows = line.startswith("#")


DEPTH = "calls_under_way"
DEEPEST = 64
"""Calls of a function that calls itself which may be under way: a task's stack on the simulator is small."""


def counted_text(function: tree.Function) -> str:
    """Return the definition of a function that calls itself, with a count of calls that are under way."""
    inner = replace(function, name=f"{function.name}_counted")
    call = f"{inner.name}({', '.join(name for name, _ in function.parameters)})"
    depth = f"CSL_STATE(struct state)->{DEPTH}"
    message = f"`{function.source_name}` calls itself more than {DEEPEST} times"
    has_result = function.result != types.VOID
    lines = [
        prototype(function) + " {",
        f'  if (++{depth} > {DEEPEST}) PE_DO({quoted(function.source_name)}, csl_fail("recursion", '
        f"{quoted(message)}, &pe_here));",
        f"  {f'{c_type(function.result)} result = ' if has_result else ''}{call};",
        f"  {depth}--;",
        *(["  return result;"] if has_result else []),
        "}",
    ]
    return function_text(inner) + "\n".join(lines) + "\n"


def prototype(function: tree.Function) -> str:
    """Return what a function is called, takes and returns."""
    parameters = ", ".join(f"{c_type(kind)} {name}" for name, kind in function.parameters) or "void"
    return f"static {c_type(function.result)} {function.name}({parameters})"


def quoted(text: str) -> str:
    """Return a text as a C string literal."""
    return json.dumps(text, ensure_ascii=True).replace("\\u", "\\\\u")


# ---- Statements


def _statements(statements: Iterable[tree.Statement]) -> list[str]:
    return [line for statement in statements for line in _statement(statement)]


def _statement(statement: tree.Statement) -> Iterator[str]:
    match statement:
        case tree.Declare(name, kind, value):
            yield from _placed_cost(costs.of(value), value)
            yield f"{c_type(kind)} {name} = {c_expression(value)};"
        case tree.Assign(target, value):
            yield from _placed_cost(costs.of(value), value)
            yield f"{c_expression(target)} = {c_expression(value)};"
        case tree.AssignField(target, name, value):
            yield from _placed_cost(costs.of(value), value)
            yield f"{target.name}.{name} = {c_expression(value)};"
        case tree.Store(kind, address, value, text, span):
            yield _line(span)
            yield from _cost(costs.of(value) + costs.of(address) + costs.Count(stores=1))
            yield _line(span)
            call = f"csl_write_{letters(kind)}({c_expression(address)}, {c_expression(value)}, &pe_here)"
            yield f"PE_DO({quoted(text)}, {call});"
        case tree.Copy(target, source, size, text):
            words = (size + 1) // 2
            yield from _cost(costs.Count(loads=words, stores=words))
            call = f"csl_copy({c_expression(target)}, {c_expression(source)}, {size}, &pe_here)"
            yield f"PE_DO({quoted(text)}, {call});"
        case tree.Forget(address, size):
            yield f"csl_forget({c_expression(address)}, {size});"
        case tree.Evaluate(value):
            yield from _placed_cost(costs.of(value), value)
            yield f"{c_expression(value)};"
        case tree.If():
            yield from _if(statement)
        case tree.While():
            yield from _while(statement)
        case tree.Switch():
            yield from _switch(statement)
        case tree.Block(body, label):
            yield from ("{", *_indented(_statements(body)), "}")
            if label is not None:
                yield f"{label}:;"
        case tree.Jump(label, again):
            yield f"goto {label}{'_again' if again else ''};"
        case tree.Return(value):
            if value is not None:
                yield from _placed_cost(costs.of(value), value)
            yield "return;" if value is None else f"return {c_expression(value)};"


def _if(statement: tree.If) -> Iterator[str]:
    yield from _placed_cost(costs.of(statement.condition) + costs.Count(branches=1), statement.condition)
    yield f"if ({c_expression(statement.condition)}) {{"
    yield from _indented(_statements(statement.then))
    if statement.otherwise:
        yield "} else {"
        yield from _indented(_statements(statement.otherwise))
    yield "}"


def _while(statement: tree.While) -> Iterator[str]:
    """Print a loop; the iteration itself costs something, so that an endless one is found."""
    statement, in_front = with_fixed_addresses(statement)
    yield from _placed_cost(costs.entry(statement) + in_front, statement.condition)
    yield "for (;;) {"
    yield f"  if (!({c_expression(statement.condition)})) break;"
    yield "  {"
    yield from _indented(_indented(_statements(statement.body)))
    yield "  }"
    yield f"  {statement.label}_again:;"
    step = _statements(statement.step)
    if costs.is_increment(statement):
        step = [line for line in step if not line.startswith("cost(")]
    yield from _indented(step)
    yield from _indented(_placed_cost(costs.iteration(statement), statement.condition))
    yield "}"
    yield f"{statement.label}:;"


def _switch(statement: tree.Switch) -> Iterator[str]:
    yield from _placed_cost(
        costs.of(statement.value) + costs.Count(branches=len(statement.cases)), statement.value
    )
    yield f"switch ({c_expression(statement.value)}) {{"
    for numbers, body in statement.cases:
        yield "  " + " ".join(f"case {number}:" for number in numbers) + " {"
        yield from _indented(_indented(_statements(body)))
        yield "    break;"
        yield "  }"
    yield "  default: {"
    yield from _indented(_indented(_statements(statement.otherwise)))
    yield "    break;"
    yield "  }"
    yield "}"


def _cost(count: costs.Count) -> Sequence[str]:
    parts = [f".{kind} = {count[kind]}" for kind in sorted(count) if count[kind]]
    return [f"cost({', '.join(parts)});"] if parts else []


def _placed_cost(count: costs.Count, expression: tree.Expression | str) -> Iterator[str]:
    """Yield what an expression costs, counted for its line, and where it stands once more."""
    place, cost = list(_place(expression)), _cost(count)
    yield from (*place, *cost)
    yield from place if cost else ()


def _place(expression: tree.Expression | str) -> Iterator[str]:
    """Say where an expression stands, if something in it may fail."""
    stack: list[object] = [expression]
    while stack:
        item = stack.pop()
        span = getattr(item, "span", None)
        if isinstance(span, Span) and span.source.name:
            yield _line(span)
            return
        if isinstance(item, tuple):
            stack.extend(reversed(item))
        elif is_dataclass(item) and not isinstance(item, types.Type):
            stack.extend(getattr(item, field.name) for field in fields(item))


def _line(span: Span) -> str:
    """Return a directive that makes messages point at the CSL file."""
    return f"#line {span.line} {quoted(span.source.name)}"


def _indented(lines: Iterable[str]) -> list[str]:
    return [line if line.startswith("#") else "  " + line for line in lines]


# ---- Expressions


def c_expression(expression: tree.Expression | str) -> str:
    """Return an expression as C, in parentheses where it has an operator."""
    match expression:
        case str():
            return expression
        case tree.Constant(kind, value):
            return c_constant(kind, value)
        case tree.Address(_, symbol, offset):
            return f"(uint16_t)({symbol} + {offset})" if offset else symbol
        case tree.Local(_, name):
            return name
        case tree.Global(_, name):
            return f"CSL_STATE(struct state)->{name}"
        case tree.Load(kind, address, text):
            return f"PE_DO({quoted(text)}, csl_read_{letters(kind)}({c_expression(address)}, &pe_here))"
        case tree.Offset(_, base, index, size, count, text):
            parts = (c_expression(base), c_expression(index), str(-1 if count is None else count), str(size))
            return f"PE_DO({quoted(text)}, csl_element({', '.join(parts)}, &pe_here))"
        case tree.Binary():
            return _binary(expression)
        case tree.Unary(kind, operator, operand):
            return _unary(kind, operator, c_expression(operand))
        case tree.Convert(kind, operand):
            return _converted(kind, operand)
        case tree.Bits(kind, operand):
            return f"csl_bits({c_type(kind)}, {c_expression(operand)})"
        case tree.Select(_, condition, then, otherwise):
            return f"({c_expression(condition)} ? {c_expression(then)} : {c_expression(otherwise)})"
        case tree.Call(_, name, arguments):
            return f"{name}({', '.join(map(c_expression, arguments))})"
        case tree.Native():
            return _native(expression)
        case tree.Braces(_, prefix, items):
            inside = (f".{name} = {c_expression(v)}" if name else c_expression(v) for name, v in items)
            return f"{prefix}{{{', '.join(inside) or '0'}}}"
        case tree.Field(_, operand, name):
            return f"({c_expression(operand)}).{name}"
        case tree.StructValue(kind, fields):
            given = ", ".join(f".{name} = {c_expression(value)}" for name, value in fields)
            return f"(({c_type(kind)}){{{given}}})"


def _native(expression: tree.Native) -> str:
    if expression.is_text:
        return expression.name
    arguments = [c_expression(argument) for argument in expression.arguments]
    if expression.site is None:
        return f"{expression.name}({', '.join(arguments)})"
    return f"PE_DO({quoted(expression.site)}, {expression.name}({', '.join([*arguments, '&pe_here'])}))"


def c_constant(kind: types.Type, value: float) -> str:
    """Return a number of a type."""
    name = c_type(kind)
    if name == "bool":
        return "true" if value else "false"
    if name in ("float", "half"):
        return _float(name, float(value))
    number = int(value)
    if number < 0:
        return f"({name})(-{-number - 1}LL - 1)" if number < -(2**31) else f"({name}){number}"
    return f"({name}){number}{'u' if number >= 2**31 else ''}{'ll' if number >= 2**32 else ''}"


def _float(name: str, value: float) -> str:
    if math.isnan(value):
        return f"({name})NAN"
    if math.isinf(value):
        return f"({name})({'-' if value < 0 else ''}INFINITY)"
    return f"({name}){value.hex()}{'f' if name == 'float' else ''}"


def _binary(expression: tree.Binary) -> str:
    left, right = c_expression(expression.left), c_expression(expression.right)
    operator, operands = expression.operator, expression.left.type
    if operator in _WORDS:
        return f"({left} {_WORDS[operator]} {right})"
    if operator in _COMPARISONS:
        return f"({left} {operator} {right})"
    name = c_type(expression.type)
    if name in ("float", "half"):
        return f"(({name})({left} {operator} {right}))"
    suffix = letters(operands)
    if operator in ("/", "%"):
        function = "csl_div" if operator == "/" else "csl_rem"
        return f"PE_DO({quoted(operator)}, {function}_{suffix}({left}, {right}, &pe_here))"
    if operator in ("<<", ">>"):
        return f"{'csl_shl' if operator == '<<' else 'csl_shr'}_{suffix}({left}, {right})"
    if name == "bool":
        return f"((bool)({left} {operator} {right}))"
    wide = "uint64_t" if name in ("int64_t", "uint64_t") else "uint32_t"
    return f"(({name})(({wide}){left} {operator} ({wide}){right}))"


def _unary(kind: types.Type, operator: str, operand: str) -> str:
    name = c_type(kind)
    if operator == "!":
        return f"(!{operand})"
    if name in ("float", "half"):
        return f"(({name})(-{operand}))"
    wide = "uint64_t" if name in ("int64_t", "uint64_t") else "uint32_t"
    return f"(({name})({operator}({wide}){operand}))"


def _converted(kind: types.Type, operand: tree.Expression) -> str:
    name, source = c_type(kind), c_type(operand.type)
    text = c_expression(operand)
    if source in ("float", "half") and name not in ("float", "half", "bool"):
        return f"(({name})csl_truncated((double){text}))"
    return f"(({name}){text})"
