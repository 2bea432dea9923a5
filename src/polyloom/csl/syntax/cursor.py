"""A place in the tokens of a file: what comes next, what is expected, what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NoReturn, TypeVar

from polyloom.csl.syntax.tokens import KEYWORDS, Token, tokens_of
from polyloom.diagnostics import PolyloomError, Source, Span, error

T = TypeVar("T")

DEEPEST = 60
"""The deepest nesting of expressions and blocks; a sum of n terms does not nest."""


class Cursor:
    """The tokens of a source and a position in them, which moves forward only."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.tokens = tokens_of(source)
        self.position = 0
        self.depth = 0

    @property
    def token(self) -> Token:
        """The next token."""
        return self.tokens[self.position]

    def after(self, count: int) -> Token:
        """Return the token ``count`` places behind the next one, or the last."""
        return self.tokens[min(self.position + count, len(self.tokens) - 1)]

    def at(self, *texts: str) -> bool:
        """Return whether the next token is one of these operators or keywords."""
        return self.token.text in texts and self.token.kind in ("operator", "keyword")

    def take(self) -> Token:
        """Return the next token and go behind it."""
        token = self.token
        if token.kind != "end":
            self.position += 1
        return token

    def skip(self, text: str) -> bool:
        """Go behind the next token if it is ``text``."""
        if self.at(text):
            self.position += 1
            return True
        return False

    def expect(self, text: str, wanted: str = "", helps: Iterable[str] = ()) -> Token:
        """Return the next token, which must be ``text``. Errors: ``csl-syntax``."""
        if not self.at(text):
            self.fail(wanted or f"`{text}`", helps)
        return self.take()

    def name(self, wanted: str = "a name") -> Token:
        """Return the next token, which must be an identifier. Errors: ``csl-syntax``, ``csl-keyword``."""
        if self.token.kind == "keyword":
            raise PolyloomError(
                error(
                    "csl-keyword",
                    f"`{self.token.text}` is a keyword, expected {wanted}",
                    self.here(),
                    helps=["choose another name; keywords are " + ", ".join(sorted(KEYWORDS))],
                )
            )
        if self.token.kind != "name":
            self.fail(wanted)
        return self.take()

    def here(self) -> Span:
        """Return the span of the next token."""
        return self.span_of(self.token)

    def span_of(self, token: Token) -> Span:
        """Return the span of a token."""
        return Span(self.source, token.start, token.end)

    def since(self, start: int) -> Span:
        """Return the span from an offset to the end of the last token taken."""
        end = self.tokens[self.position - 1].end if self.position else start
        return Span(self.source, start, max(start, end))

    def nested(self, read: Callable[[], T]) -> T:
        """Return what ``read`` returns, one level deeper. Errors: ``csl-too-deep``."""
        if self.depth >= DEEPEST:
            raise PolyloomError(
                error(
                    "csl-too-deep",
                    f"more than {DEEPEST} levels of nesting",
                    self.here(),
                    helps=["give a part of it a name of its own"],
                )
            )
        self.depth += 1
        try:
            return read()
        finally:
            self.depth -= 1

    def fail(self, wanted: str, helps: Iterable[str] = ()) -> NoReturn:
        """Raise ``csl-syntax``: what was found, what was expected."""
        found = self.token.text
        start = self.token.start
        raise PolyloomError(
            error(
                "csl-syntax",
                f"found {f'`{found}`' if found else 'the end of the file'}, expected {wanted}",
                Span(self.source, start, start + max(1, len(found))),
                label=f"expected {wanted}",
                helps=tuple(helps) or _hint(found, wanted),
            )
        )


_HINTS = {
    "++": "write `x += 1`",
    "&&": "write `and`",
    "||": "write `or`",
    "?": "write `if (condition) a else b`",
    "=>": "`=>` stands in `switch` only",
}


def _hint(found: str, wanted: str) -> tuple[str, ...]:
    if found in _HINTS:
        return (_HINTS[found],)
    if wanted == "`;`":
        return ("a declaration or a statement that is no block ends in `;`",)
    return (f"put {wanted} here, or remove what stands in its place",)
