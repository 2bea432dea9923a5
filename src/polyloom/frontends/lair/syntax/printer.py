"""A syntax tree as LAIR text; parsing the text gives the same tree."""

from __future__ import annotations

from collections.abc import Iterable

from polyloom.frontends.lair.syntax.tree import (
    Call,
    Choice,
    Declaration,
    Element,
    Expression,
    Graph,
    Invocation,
    Module,
    Name,
    Node,
    Number,
    Operation,
    Statement,
    TypeParameter,
)

_CHOICE, _COMPARISON, _SUM, _PRODUCT, _SIGN, _ATOM = range(6)
_LEVELS = {"+": _SUM, "-": _SUM, "*": _PRODUCT, "/": _PRODUCT, "%": _PRODUCT}


def print_module(module: Module) -> str:
    """Return the text of a file, its items apart by an empty line."""
    return "\n".join(_item(item) for item in module.items)


def _item(item: Node | Graph) -> str:
    header = _header(item)
    body = "".join(f"  {_part(part)}\n" for part in item.body)
    inputs, outputs = _list(map(_declaration, item.inputs)), _list(map(_declaration, item.outputs))
    return f"{header}:\n  {inputs} -> {outputs}\n{{\n{body}}}\n"


def _header(item: Node | Graph) -> str:
    types = f"<{_list(map(_type_parameter, item.type_parameters))}>" if item.type_parameters else ""
    sizes = f"({_names(item.size_parameters)})" if item.size_parameters or isinstance(item, Node) else ""
    return f"{'lair' if isinstance(item, Node) else 'graph'} {item.name.text}{types}{sizes}"


def _list(parts: Iterable[str]) -> str:
    return ", ".join(parts)


def _names(names: Iterable[Name]) -> str:
    return _list(name.text for name in names)


def _type_parameter(parameter: TypeParameter) -> str:
    return parameter.name.text + (f"={parameter.default.text}" if parameter.default else "")


def _part(part: Declaration | Statement | Invocation) -> str:
    match part:
        case Declaration():
            return _declaration(part)
        case Statement():
            return _statement(part)
        case Invocation():
            return _invocation(part)


def _declaration(part: Declaration) -> str:
    return f"{part.type.text} {part.name.text}{_brackets(part.extents)}"


def _brackets(parts: Iterable[Expression]) -> str:
    return "".join(f"[{print_expression(part)}]" for part in parts)


def _statement(part: Statement) -> str:
    extents = _list(map(print_expression, part.extents))
    domain = f"all ({_names(part.iterators)}) in ({extents})\n    " if part.iterators or part.extents else ""
    return f"{domain}{print_expression(part.write)} {part.operator} {print_expression(part.expression)}"


def _invocation(part: Invocation) -> str:
    outputs = _names(part.outputs)
    targets = outputs if len(part.outputs) == 1 else f"({outputs})"
    types = "" if part.types is None else f"<{_names(part.types)}>"
    sizes = "" if part.sizes is None else f"({_list(map(print_expression, part.sizes))})"
    return f"{targets} = {part.callee.text}{types}{sizes}({_list(map(print_expression, part.arguments))})"


def print_expression(expression: Expression) -> str:
    """Return the text of an expression, with as few parentheses as its tree needs."""
    return _text(expression, _CHOICE)


def _text(expression: Expression, room: int) -> str:
    level, text = _written(expression)
    return text if level >= room else f"({text})"


def _written(expression: Expression) -> tuple[int, str]:
    match expression:
        case Name(text=text):
            return _ATOM, text
        case Number(value=value):
            return _ATOM, repr(value)
        case Element(tensor=tensor, indices=indices):
            return _ATOM, tensor.text + _brackets(indices)
        case Call(function=function, arguments=arguments):
            return _ATOM, f"{function.text}({_list(map(print_expression, arguments))})"
        case Operation(operator=sign, operands=(a,)):
            return _SIGN, sign + _text(a, _SIGN)
        case Operation(operator=sign, operands=(a, b)):
            return _operation(sign, a, b)
        case Choice(condition=c, then=a, otherwise=b):
            return _CHOICE, f"{_text(c, _COMPARISON)} ? {_text(a, _CHOICE)} : {_text(b, _CHOICE)}"
        case _:
            raise TypeError(expression)


def _operation(sign: str, a: Expression, b: Expression) -> tuple[int, str]:
    level = _LEVELS.get(sign, _COMPARISON)
    left = level + (level == _COMPARISON)
    return level, f"{_text(a, left)} {sign} {_text(b, level + 1)}"
