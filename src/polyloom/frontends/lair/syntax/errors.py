"""A parser's complaint in plain words: what was found, what was expected, what to do."""

from __future__ import annotations

import re
from typing import Any

from polyloom.diagnostics import Diagnostic, Source, Span, error

_WORDS = {
    "LAIR": "`lair`",
    "GRAPH": "`graph`",
    "ALL": "`all`",
    "IN": "`in`",
    "NAME": "a name",
    "INTEGER": "a number",
    "DECIMAL": "a number",
    "COLON": "`:`",
    "COMMA": "`,`",
    "ARROW": "`->`",
    "LBRACE": "`{`",
    "RBRACE": "`}`",
    "LPAR": "`(`",
    "OPEN": "`(`",
    "RPAR": "`)`",
    "LSQB": "`[`",
    "RSQB": "`]`",
    "LESS": "`<`",
    "MORE": "`>`",
    "EQUAL": "`=`",
    "QUESTION": "`?`",
    "$END": "the end of the file",
}
_GROUPS = (
    (frozenset({"NAME", "INTEGER", "DECIMAL", "LPAR", "MINUS"}), "an expression"),
    (frozenset({"NAME", "ALL"}), "a statement"),
    (frozenset({"EQUAL", "PLUSEQ", "STAREQ", "MAXEQ", "MINEQ"}), "an assignment (`=`, `+=`, ...)"),
    (frozenset({"PLUS", "MINUS", "STAR", "SLASH", "PERCENT"}), "an operator"),
)
_BESIDE_OPERATORS = frozenset({"COMPARE", "QUESTION", "LSQB", "LPAR"})
_WORD = re.compile(r"\w+|->|[-+*/]=|==|.", re.DOTALL)


def syntax_error(source: Source, fault: Any) -> Diagnostic:
    """Return the diagnostic of an unexpected character, word or end of the file."""
    start, found = _found(source, fault)
    wanted = _wanted(fault.interactive_parser.accepts())
    return error(
        "lair-syntax",
        f"found {f'`{found}`' if found else 'the end of the file'}, expected {wanted}",
        Span(source, start, start + max(1, len(found))),
        label=f"expected {wanted}",
        helps=[_help(found)],
    )


def _found(source: Source, fault: Any) -> tuple[int, str]:
    token = getattr(fault, "token", None)
    start = fault.pos_in_stream if token is None else token.start_pos
    if start is None or start >= len(source.text) or (token is not None and token.type == "$END"):
        return len(source.text.rstrip()), ""
    match = _WORD.match(source.text, start)
    return start, match[0] if match else source.text[start]


def _wanted(accepted: set[str]) -> str:
    names = set(accepted)
    words = []
    for group, word in _GROUPS:
        if names >= group:
            names -= group
            words.append(word)
    if "an expression" in words:
        names.discard("OPEN")
    if "an operator" in words:
        names -= _BESIDE_OPERATORS
    words += sorted({_WORDS[n] for n in names if n in _WORDS})
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


_HINTS = {
    ";": "statements end without a semicolon",
    "&": "conditions are single comparisons; nest `select` to combine them",
    "|": "conditions are single comparisons; nest `select` to combine them",
    "!": "write `!=`, or exchange the two sides of the choice",
    "-=": "write `+=` with a negated term",
    "/=": "reductions are `+=`, `*=`, `max=` and `min=`",
    "==": "`=` assigns, `==` compares; only a condition may compare",
    "=": "`=` assigns, `==` compares; only a condition may compare",
    ",": "each index has its own brackets, `x[i][j]`; each internal tensor its own line",
    "->": "outputs follow `->`, once in a header",
    "^": "write `pow(a, b)`",
    "(": "a statement begins with `all (i, j) in (M, N)`",
}
_SHAPE = "a node reads `lair name(M): float16 x[M] -> float16 y[M] { all (i) in (M) y[i] = x[i] }`"


def _help(found: str) -> str:
    if re.match(r"\d+[^\d.]", found):
        return "a name cannot begin with a digit; a product is written `2 * x`"
    return _HINTS.get(found, _SHAPE)
