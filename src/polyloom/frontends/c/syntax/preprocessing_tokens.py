"""The tokens of pcpp, with three of them as C has them.

A preprocessing number is one token (``1.0e-4``, in which no macro ``e`` stands). An identifier may hold
``$``, as with GCC and Clang. A ``//`` comment whose line ends with a backslash goes on in the next one.
"""

from __future__ import annotations

import re
from functools import cache
from types import SimpleNamespace
from typing import Any

_INTEGER = re.compile(r"(0[xX][0-9a-fA-F]+|\d+)([uU]?[lL]{0,2}|[lL]{1,2}[uU])")


def lexer() -> Any:
    """Return a lexer for ``pcpp.Preprocessor``. Source: ISO C99, 6.4.8 (preprocessing numbers)."""
    return _lexer().clone()


@cache
def _lexer() -> Any:
    from pcpp import parser

    rules = {name: rule for name, rule in vars(parser).items() if name.startswith("t_")}
    rules["t_CPP_INTEGER"] = _number
    rules["t_CPP_COMMENT2"] = _line_comment
    rules["t_CPP_ID"] = r"[A-Za-z_$][\w$]*"
    rules |= {"tokens": parser.tokens, "literals": parser.literals, "__module__": parser.__name__}
    return parser.lex.lex(module=SimpleNamespace(**rules), optimize=True, lextab=None)


def _number(token: Any) -> Any:
    r"""\.?\d([eEpP][+-]|[\w.])*"""
    if not _INTEGER.fullmatch(token.value):
        token.type = "CPP_FLOAT"
    return token


def _line_comment(token: Any) -> Any:
    r"""//(?:\\\n|[^\n])*"""
    token.lexer.lineno += token.value.count("\n")
    return token
