"""A parser's complaint in plain words: what was found, what was expected, what to do."""

from __future__ import annotations

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
    "PLUSEQ": "`+=`",
    "STAREQ": "`*=`",
    "MAXEQ": "`max=`",
    "MINEQ": "`min=`",
    "COMPARE": "a comparison",
    "QUESTION": "`?`",
    "$END": "the end of the file",
}
_EXPRESSION = frozenset({"NAME", "INTEGER", "LPAR", "MINUS"})
_OPERATORS = frozenset({"PLUS", "MINUS", "STAR", "SLASH", "PERCENT", "QUESTION", "COMPARE"})
_REDUCTIONS = frozenset({"PLUSEQ", "STAREQ", "MAXEQ", "MINEQ"})


def syntax_error(source: Source, fault: Any) -> Diagnostic:
    """Return the diagnostic of an unexpected character, word or end of the file."""
    start, found = _found(source, fault)
    wanted = _wanted(fault)
    return error(
        "lair-syntax",
        f"found {found or 'the end of the file'}, expected {wanted}",
        Span(source, start, start + max(1, len(found) - 2)),
        label=f"expected {wanted}",
        helps=_helps(source, start),
    )


def _found(source: Source, fault: Any) -> tuple[int, str]:
    token = getattr(fault, "token", None)
    if token is not None and token.type != "$END" and str(token):
        return token.start_pos, f"`{str(token).splitlines()[0]}`"
    start = fault.pos_in_stream if token is None else None
    if start is None or start >= len(source.text):
        return len(source.text.rstrip()), ""
    return start, f"`{source.text[start]}`"


def _wanted(fault: Any) -> str:
    names = set(getattr(fault, "accepts", None) or getattr(fault, "expected", None) or fault.allowed or ())
    words = ["an expression"] if names >= _EXPRESSION else []
    if words:
        names -= _EXPRESSION | {"DECIMAL", "OPEN"}
    names -= _OPERATORS
    if "EQUAL" in names and names >= _REDUCTIONS:
        names -= _REDUCTIONS
        words.append("an assignment")
        names.discard("EQUAL")
    words += sorted({_WORDS.get(n, n) for n in names})
    return _either(words)


def _either(words: list[str]) -> str:
    if not words:
        return "nothing more"
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


_HINTS = (
    (";", "statements end without a semicolon"),
    ("&", "conditions are single comparisons; nest `select` to combine them"),
    ("|", "conditions are single comparisons; nest `select` to combine them"),
    ("!", "write `!=`, or turn the two sides of the choice around"),
    ("-=", "write `+=` with a negated term"),
    ("/=", "reductions are `+=`, `*=`, `max=` and `min=`"),
    ("==", "`=` assigns, `==` compares; only a condition may compare"),
    ("=", "`=` assigns, `==` compares; only a condition may compare"),
    (",", "an index has its own brackets: `x[i][j]`; lists stand in parentheses"),
    ("->", "outputs follow `->`, once in a header"),
    ("^", "write `pow(a, b)`"),
)


def _helps(source: Source, start: int) -> list[str]:
    rest = source.text[start : start + 2]
    matching = [hint for sign, hint in _HINTS if rest.startswith(sign)]
    return matching[:1] or ["the language is described in the documentation's page on LAIR"]
