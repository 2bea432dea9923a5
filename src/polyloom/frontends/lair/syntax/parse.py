"""LAIR text to syntax tree.

The grammar is LALR(1) with a contextual lexer; white space and comments carry no meaning. ``lark`` is
imported here only, and the parser is built once, when it is first needed.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

from lark import Lark, Token, Tree, UnexpectedInput

from polyloom.diagnostics import Diagnostic, PolyloomError, Source, Span, error
from polyloom.frontends.lair.syntax import tree as syntax
from polyloom.frontends.lair.syntax.build import Place, build
from polyloom.frontends.lair.syntax.errors import syntax_error

GRAMMAR = r"""
module: (node | graph)*
node: LAIR NAME [type_parameters] [names] [COLON] declarations ARROW declarations LBRACE node_body RBRACE
graph: GRAPH NAME [type_parameters] [names] [COLON] declarations ARROW declarations LBRACE graph_body RBRACE

type_parameters: LESS type_parameter (COMMA type_parameter)* MORE
type_parameter: NAME [EQUAL NAME]
names: LPAR (NAME (COMMA NAME)*)? RPAR
declarations: (declaration (COMMA declaration)*)?
declaration: NAME NAME (LSQB _expression RSQB)*

node_body: (declaration | statement)*
statement: [ALL names IN list] (name | element) _assign _expression
_assign: EQUAL | PLUSEQ | STAREQ | MAXEQ | MINEQ

graph_body: (declaration | invocation)*
invocation: targets EQUAL NAME [types] list [list]
targets: NAME | OPEN NAME (COMMA NAME)* RPAR
types: LESS NAME (COMMA NAME)* MORE

list: LPAR (_expression (COMMA _expression)*)? RPAR
_expression: _comparison | choice
choice: _comparison QUESTION _expression COLON _expression
_comparison: _sum | comparison
comparison: _sum COMPARE _sum -> operation
_sum: _product | addition
addition: _sum (PLUS | MINUS) _product -> operation
_product: _factor | multiplication
multiplication: _product (STAR | SLASH | PERCENT) _factor -> operation
_factor: _atom | negation
negation: MINUS _factor -> operation
_atom: name | number | element | call | parentheses
name: NAME
number: INTEGER | DECIMAL
element: NAME (LSQB _expression RSQB)+
call: NAME list
parentheses: LPAR _expression RPAR

LAIR: "lair"
GRAPH: "graph"
ALL: "all"
IN: "in"
NAME: /[A-Za-z_][A-Za-z_0-9]*/
INTEGER: /[0-9]+(?![.\w])/
DECIMAL: /(([0-9]+\.[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+)(?![.\w])/
COLON: ":"
COMMA: ","
ARROW: "->"
LBRACE: "{"
RBRACE: "}"
LPAR: "("
RPAR: ")"
LSQB: "["
RSQB: "]"
LESS: "<"
MORE: ">"
EQUAL: /=(?!=)/
PLUSEQ: "+="
STAREQ: "*="
MAXEQ.2: /max\s*=(?!=)/
MINEQ.2: /min\s*=(?!=)/
COMPARE: /<=|>=|==|!=|<|>/
QUESTION: "?"
PLUS: "+"
MINUS: "-"
STAR: "*"
SLASH: "/"
PERCENT: "%"
OPEN.2: /\((?=[\w\s,]*\)\s*=(?!=))/
SPACE: /[ \t\r\n\f\v\uFEFF]+/
COMMENT: /#[^\n]*|\/\/[^\n]*|\/\*(.|\n)*?\*\//
%ignore SPACE
%ignore COMMENT
"""

DEEPEST = 200
"""The deepest nesting of an expression; a sum of n terms nests n - 1 deep."""

MOST_DIGITS = 40


def parse(source: Source) -> syntax.Module:
    """Return the syntax tree of a LAIR file.

    Errors: ``lair-syntax``, ``lair-comment``, ``lair-number``, ``lair-too-deep``.
    Source: dtg_codegen, Sec. 4.1.1 and Listings 1, 3-5. Graphs, reductions other than ``+=``, scalar
    functions: not in the papers.
    """
    _check_comments(source)
    tree = _lark_tree(source)
    _check_numbers(tree, source)
    _check_depth(tree, source)
    return build(tree, source)


@cache
def _parser() -> Lark:
    return Lark(GRAMMAR, start="module", parser="lalr", lexer="contextual", keep_all_tokens=True)


def _lark_tree(source: Source) -> Tree[Token]:
    try:
        return _parser().parse(source.text)
    except UnexpectedInput as fault:
        raise PolyloomError(syntax_error(source, fault)) from None


_COMMENT = re.compile(r"#[^\n]*|//[^\n]*|/\*.*?\*/|(?P<open>/\*)", re.DOTALL)


def _check_comments(source: Source) -> None:
    for match in _COMMENT.finditer(source.text):
        if match["open"]:
            span = Span(source, match.start(), match.end())
            raise PolyloomError(
                error("lair-comment", "comment is never closed", span, helps=["end it with `*/`"])
            )


def _check_numbers(tree: Tree[Token], source: Source) -> None:
    numbers = (part.children[0] for part in tree.iter_subtrees() if part.data == "number")
    tokens = (token for token in numbers if isinstance(token, Token))
    faults = [_too_large(token, source) for token in tokens if _is_too_large(token)]
    if faults:
        raise PolyloomError(*faults)


def _is_too_large(token: Token) -> bool:
    return len(token) > MOST_DIGITS or (token.type == "DECIMAL" and float(token) == float("inf"))


def _too_large(token: Token, source: Source) -> Diagnostic:
    span = Place.of(token).span(source)
    return error(
        "lair-number",
        f"number is too large or has more than {MOST_DIGITS} characters",
        span,
        helps=["the largest extent is 2147483647, the largest float16 65504"],
    )


def _check_depth(tree: Tree[Token], source: Source) -> None:
    depth: dict[int, int] = {}
    for part in tree.iter_subtrees():
        below = [depth[id(c)] for c in part.children if isinstance(c, Tree)]
        depth[id(part)] = 1 + max(below, default=0)
        if depth[id(part)] > DEEPEST:
            raise PolyloomError(_too_deep(part, source))


def _too_deep(part: Tree[Token], source: Source) -> Diagnostic:
    return error(
        "lair-too-deep",
        f"expression is nested more than {DEEPEST} levels deep",
        replace(Place.of(part).span(source), end=Place.of(part).start + 1),
        label="begins here",
        helps=["split it into several statements with internal tensors"],
    )
