"""The parser's tree of tokens to the syntax tree: one small function per rule of the grammar."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from polyloom.diagnostics import Source, Span
from polyloom.frontends.lair.syntax import tree as syntax

if TYPE_CHECKING:
    from lark import Token, Tree


@dataclass(frozen=True)
class Place:
    """The characters ``start`` to ``end`` of the text."""

    start: int
    end: int

    @staticmethod
    def of(part: Token | Tree[Token]) -> Place:
        """Return where a token or a tree stands; (0, 0) for an empty tree."""
        first, last = _end(part, 0), _end(part, -1)
        return Place(getattr(first, "start_pos", 0) or 0, getattr(last, "end_pos", 0) or 0)

    def span(self, source: Source) -> Span:
        """Return the place in ``source``."""
        return Span(source, self.start, self.end)


def _end(part: Any, side: int) -> Any:
    while hasattr(part, "children"):
        present = [c for c in part.children if c is not None and getattr(c, "children", True)]
        if not present:
            return None
        part = present[side]
    return part


def build(tree: Tree[Token], source: Source) -> syntax.Module:
    """Return the syntax tree; children before parents, so that depth costs no recursion."""
    built: dict[int, Any] = {}
    for part in tree.iter_subtrees():
        children = [_child(c, built, source) for c in part.children]
        built[id(part)] = _RULES[part.data](children, Place.of(part).span(source))
    items = built[id(tree)]
    return syntax.Module(tuple(items), source)


def _child(child: Any, built: dict[int, Any], source: Source) -> Any:
    if child is None or id(child) in built:
        return built.get(id(child))
    if child.type == "NAME":
        return syntax.Name(str(child), Place.of(child).span(source))
    return child


def _only(children: Iterable[Any], *kinds: type) -> tuple[Any, ...]:
    return tuple(c for c in children if isinstance(c, kinds))


EXPRESSIONS = (
    syntax.Name,
    syntax.Number,
    syntax.Element,
    syntax.Operation,
    syntax.Call,
    syntax.Choice,
)

Parts = list[Any]


def _item(kind: type[syntax.Node] | type[syntax.Graph]) -> Callable[[Parts, Span], Any]:
    def make(parts: Parts, span: Span) -> Any:
        _, name, types, sizes, _, inputs, _, outputs, _, body, _ = parts
        return kind(name, types or (), sizes or (), inputs, outputs, body, span)

    return make


def _type_parameter(parts: Parts, span: Span) -> syntax.TypeParameter:
    name, _, default = parts
    return syntax.TypeParameter(name, default)


def _declaration(parts: Parts, span: Span) -> syntax.Declaration:
    return syntax.Declaration(parts[0], parts[1], _only(parts[2:], *EXPRESSIONS), span)


def _statement(parts: Parts, span: Span) -> syntax.Statement:
    _, iterators, _, extents, write, operator, expression = parts
    sign = str(operator).replace(" ", "")[:-1].strip() + "="
    return syntax.Statement(iterators or (), extents or (), write, sign, expression, span)


def _invocation(parts: Parts, span: Span) -> syntax.Invocation:
    outputs, _, callee, types, first, second = parts
    sizes, arguments = (None, first) if second is None else (first, second)
    return syntax.Invocation(outputs, callee, types, sizes, arguments, span)


def _choice(parts: Parts, span: Span) -> syntax.Choice:
    condition, then, otherwise = _only(parts, *EXPRESSIONS)
    return syntax.Choice(condition, then, otherwise, span)


def _operation(parts: Parts, span: Span) -> syntax.Operation:
    operator = next(str(p) for p in parts if not isinstance(p, EXPRESSIONS))
    return syntax.Operation(operator, _only(parts, *EXPRESSIONS), span)


def _number(parts: Parts, span: Span) -> syntax.Number:
    (token,) = parts
    return syntax.Number(int(token) if token.type == "INTEGER" else float(token), span)


def _element(parts: Parts, span: Span) -> syntax.Element:
    return syntax.Element(parts[0], _only(parts[1:], *EXPRESSIONS), span)


def _call(parts: Parts, span: Span) -> syntax.Call:
    return syntax.Call(parts[0], parts[1], span)


def _parentheses(parts: Parts, span: Span) -> syntax.Expression:
    inner: syntax.Expression = replace(parts[1], span=span)
    return inner


def _tuple_of(*kinds: type) -> Callable[[Sequence[Any], Span], tuple[Any, ...]]:
    return lambda parts, span: _only(parts, *kinds)


_RULES: dict[str, Callable[[Parts, Span], Any]] = {
    "module": _tuple_of(syntax.Node, syntax.Graph),
    "node": _item(syntax.Node),
    "graph": _item(syntax.Graph),
    "type_parameters": _tuple_of(syntax.TypeParameter),
    "type_parameter": _type_parameter,
    "names": _tuple_of(syntax.Name),
    "types": _tuple_of(syntax.Name),
    "targets": _tuple_of(syntax.Name),
    "declarations": _tuple_of(syntax.Declaration),
    "declaration": _declaration,
    "node_body": _tuple_of(syntax.Declaration, syntax.Statement),
    "graph_body": _tuple_of(syntax.Declaration, syntax.Invocation),
    "statement": _statement,
    "invocation": _invocation,
    "list": _tuple_of(*EXPRESSIONS),
    "choice": _choice,
    "operation": _operation,
    "name": lambda parts, span: parts[0],
    "number": _number,
    "element": _element,
    "call": _call,
    "parentheses": _parentheses,
}
