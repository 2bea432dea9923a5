"""Preprocessed text to a syntax tree, with faults at their place in the user's file."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from pycparser import c_ast, c_lexer, c_parser

from polyloom.diagnostics import PolyloomError, Span
from polyloom.frontends.c.syntax.attributes import REPLACEABLE, replaceable_functions, without_attributes
from polyloom.frontends.c.syntax.faults import fail, line_span
from polyloom.frontends.c.syntax.inline_assembly import without_assembly
from polyloom.frontends.c.syntax.nodes import LOOPS, nodes_in
from polyloom.frontends.c.syntax.places import Places
from polyloom.frontends.c.syntax.preprocess import is_built

_PLACE = re.compile(r"^(?P<file>.*?):(?P<line>\d+)(?::(?P<column>\d+))?: (?P<message>.*)$", re.DOTALL)


def parse(text: str, places: Places) -> c_ast.FileAST:
    """Return the syntax tree. Errors: ``c-syntax``, ``c-unknown-type``, ``c-pragma-place``."""
    weak = replaceable_functions(text)
    whole, text = text, _plain(text)
    message = _fault(text, places)
    if isinstance(message, str) and (others := _without_unread(whole, message, places)) is not None:
        message = others
    if isinstance(message, c_ast.FileAST):
        return _without_bodies(message, weak)
    _explain_pragma(text, message, places)
    _explain_type(text, message, places)
    found = _PLACE.match(message)
    if found is None:
        fail("c-syntax", f"syntax error: {message.partition(': ')[2] or message}", None, helps=[_HELP])
    span = places.at(found["file"], int(found["line"]), int(found["column"] or 1))
    return fail("c-syntax", f"syntax error, {_said(found['message'])}", span, helps=[_HELP])


def parsed(text: str, places: Places) -> c_ast.FileAST | None:
    """Return the syntax tree; None where there is none."""
    try:
        found = _fault(_plain(text), places)
        found = (_without_unread(text, found, places) or found) if isinstance(found, str) else found
    except PolyloomError:
        return None
    return _without_bodies(found, replaceable_functions(text)) if isinstance(found, c_ast.FileAST) else None


def _plain(text: str) -> str:
    """Return a text in C99: without attributes and assembly, and ``main`` with its type."""
    return _MAIN.sub("int main", without_attributes(without_assembly(text)))


def _without_unread(whole: str, message: str, places: Places) -> c_ast.FileAST | None:
    """Return the tree of a program in a dialect of C that a compiler builds, without what is not C99 in it.

    Functions in which the parser stops are taken to do what nobody knows. None where no others have loops.
    """
    text, unread, fault = _plain(whole), set[str](), message
    for _ in range(_MOST_UNREAD):
        body = _body_around(text, fault, unread)
        if body is None or (not unread and not is_built(whole)):
            return None
        start, end, name = body
        unread.add(name)
        lines = "\n".join(re.sub(r"^(?!\s*#\s*line).*", "", line) for line in text[start:end].split("\n"))
        text = f"{text[:start]}{_UNREAD}{lines}{text[end:]}"
        found = _fault(text, places)
        if isinstance(found, c_ast.FileAST):
            functions = [n for n in found.ext if isinstance(n, c_ast.FuncDef) and n.decl.name not in unread]
            own = (n for n in functions if n.coord.file == places.name)
            loops = any(isinstance(inside, LOOPS) for n in own for inside in nodes_in(n))
            return found if loops else None
        fault = found
    return None


def _body_around(text: str, message: str, unread: Collection[str]) -> tuple[int, int, str] | None:
    """Return where the body of a function begins and ends in which the parser stopped, and its name.

    ``unread``: functions whose bodies were replaced.
    """
    found = _PLACE.match(message)
    at = None if found is None else _offset_of(text, found["file"], int(found["line"]))
    if at is None:
        return None
    depth, start = 0, 0
    for brace in _BRACE.finditer(text):
        depth += {"{": 1, "}": -1}.get(brace.group(), 0)
        if brace.group() == "{" and depth == 1:
            start = brace.start()
        elif brace.group() == "}" and depth == 0 and brace.end() > at:
            head = _HEAD.search(text[max(0, start - _LONGEST_HEAD) : start])
            if head is not None and head[1] in unread:
                continue
            inside = start <= text.find("\n", at) or text.find("\n", at) < 0
            return (start, brace.end(), head[1]) if head is not None and inside else None
    return None


def _offset_of(text: str, file: str, line: int) -> int | None:
    """Return where a line of a file begins in preprocessed text; the last such place."""
    here, number, at, found = "", 1, 0, None
    for one in text.split("\n"):
        placed = _LINE.match(one)
        if placed is not None:
            here, number = placed["file"], int(placed["line"]) - 1
        elif here == file and number == line:
            found = at
        number, at = number + 1, at + len(one) + 1
    return found


def _without_bodies(tree: c_ast.FileAST, names: frozenset[str]) -> c_ast.FileAST:
    """Mark definitions that say nothing of what a call of the function does."""
    for node in tree.ext:
        if isinstance(node, c_ast.FuncDef) and node.decl.name in names:
            node.decl.funcspec = [*(node.decl.funcspec or []), REPLACEABLE]
    return tree


def _fault(text: str, places: Places) -> c_ast.FileAST | str:
    """Return the syntax tree, or what the parser says."""
    parser = c_parser.CParser(lexer=_Lexer)
    try:
        tree = parser.parse(f'{_BUILTIN}#line 1 "{places.name}"\n{text}', places.name)
        own = _with_arguments(c_ast.FileAST(tree.ext[_BUILTIN.count(";") :]))
        return _with_pragmas(own) if "_Pragma" in text else own
    except c_parser.ParseError as fault:
        return _placed(str(fault), parser.clex)
    except RecursionError:
        fail("c-syntax", "the text is nested too deeply", None, helps=["take expressions apart"])


def _with_arguments(tree: c_ast.FileAST) -> c_ast.FileAST:
    """Make of ``f(a, n) double *a; int n; { ... }`` what ``f(double *a, int n) { ... }`` is."""
    for node in tree.ext:
        if isinstance(node, c_ast.FuncDef) and node.param_decls and node.decl.type.args is not None:
            known = {declaration.name: declaration for declaration in node.param_decls}
            params = node.decl.type.args.params
            node.decl.type.args.params = [known.get(getattr(p, "name", None), p) for p in params]
            node.param_decls = None
    return tree


def _with_pragmas(tree: c_ast.FileAST) -> c_ast.FileAST:
    """Make of ``_Pragma("words")`` what ``#pragma words`` is: its string is no node."""
    for node in nodes_in(tree):
        if isinstance(node, c_ast.Pragma) and isinstance(node.string, c_ast.Constant):
            node.string = re.sub(r"\\(.)", r"\1", node.string.value.strip('"'))
    return tree


class _Lexer(c_lexer.CLexer):  # type: ignore[misc]
    """Remembers the last token that the parser took, and its file."""

    last: tuple[str, Any] | None = None

    def token(self) -> Any:
        """Return the next token, None at the end."""
        token = super().token()
        if token is not None:
            self.last = (self.filename, token)
        return token


def _placed(message: str, lexer: _Lexer) -> str:
    """Return a message with a place: where the parser gives none, it is that of the last token it took."""
    if _PLACE.match(message) or lexer.last is None:
        return message
    file, token = lexer.last
    said = _AT_END if message.endswith(f": {_AT_END}") else f"before: {token.value}"
    return f"{file}:{token.lineno}:{token.column}: {said}"


def _said(message: str) -> str:
    """Return the parser's message in words."""
    before = re.match(r"before: (.*)", message.strip())
    if before:
        return f"before `{before[1]}`"
    if message == _AT_END:
        return "the text ends where a bracket is open, or before a `;`"
    return message.strip()[:1].lower() + message.strip()[1:]


def _explain_pragma(text: str, message: str, places: Places) -> None:
    """Raise an error at a pragma without which the parser says something else."""
    lines = text.split("\n")
    for k, line in enumerate(lines):
        if not _PRAGMA.match(line):
            continue
        without = "\n".join([*lines[:k], "", *lines[k + 1 :]])
        if _fault(without, places) == message:
            continue
        _explain_semicolon(lines, k, places)
        span = line_span(places.source, _line_of(lines, k, places))
        fail(
            "c-pragma-place",
            "a pragma cannot stand here",
            span,
            helps=["put it before a statement: not inside an expression, not before `else`"],
        )


def _explain_semicolon(lines: list[str], k: int, places: Places) -> None:
    """Raise an error where the statement before a pragma does not end, and everything is well if it does."""
    before = [n for n in range(k) if lines[n].strip() and not lines[n].lstrip().startswith("#")]
    if not before or not isinstance(_fault(_ended(lines, before[-1]), places), c_ast.FileAST):
        return
    line = _line_of(lines, before[-1], places)
    fail(
        "c-syntax",
        f"a `;` is missing at the end of line {line}" if line else "a `;` is missing before a pragma",
        line_span(places.source, line),
        helps=["end the statement before the pragma"],
    )


def _ended(lines: list[str], k: int) -> str:
    return "\n".join([*lines[:k], f"{lines[k]} ;", *lines[k + 1 :]])


def _line_of(lines: list[str], k: int, places: Places) -> int:
    """Return the line of the source that a line of preprocessed text comes from."""
    for back in range(k, -1, -1):
        found = _LINE.match(lines[back])
        if found:
            return int(found["line"]) + k - back - 1 if found["file"] == places.name else 0
    return k + 1


def _explain_type(text: str, message: str, places: Places) -> None:
    """Raise an error at a word with which the parser says something else, if it is a type."""
    defined = set(re.findall(r"(\w+)\s*;", "\n".join(re.findall(r"typedef[^;]*;", text))))
    candidates = dict.fromkeys(found["word"] for found in _DECLARES.finditer(text))
    unknown = [word for word in candidates if word not in _KEYWORDS and word not in defined]
    for word in unknown[:_TRIED]:
        if _fault(f'typedef int {word};\n#line 1 "{places.name}"\n{text}', places) == message:
            continue
        at = re.search(rf"\b{word}\b(?=\s*[\w*])", places.source.text)
        fail(
            "c-unknown-type",
            f"`{word}` is not known as a type",
            Span(places.source, *at.span()) if at else None,
            helps=[f"include the header that defines it, or give it as a macro: `-D {word}=float`"],
        )


_BUILTIN = (
    "typedef struct __va_list_tag *__builtin_va_list; typedef float _Float16; typedef float __fp16; "
    "typedef float _Float32; typedef double _Float64; typedef double _Float32x; "
    "typedef long double _Float64x; typedef long double _Float128; typedef long double __float128;\n"
)
"""Types known to compilers without a declaration: ``scope/types`` says which of them count."""
_MAIN = re.compile(r"(?:(?<=^)|(?<=[;}]))[ \t]*main(?=\s*\()", re.MULTILINE)
_BRACE = re.compile(r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|^[ \t]*#[^\n]*|[{}]", re.MULTILINE)
_HEAD = re.compile(r"(\w+)\s*\([^{};]*\)\s*\Z")
_LONGEST_HEAD = 2000
_MOST_UNREAD = 20
"""Functions of a file in which the parser may stop."""
_UNREAD = "{ for (int k = 0; k < 64; k++) what_is_no_C99(); }"
"""What stands for the body of a function that is in another dialect of C."""
_HELP = "Polyloom reads C99; does the file compile?"
_AT_END = "At end of input"
_TRIED = 20
"""How many words are tried as types."""

_LINE = re.compile(r'#line (?P<line>\d+) "(?P<file>[^"]*)"')
_PRAGMA = re.compile(r"\s*#\s*pragma\b")
_DECLARES = re.compile(
    r"(?:^|[;{}(,]|\bconst|\bstatic|\bextern|\binline)\s*(?P<word>[A-Za-z_]\w*)[\s*]+\w", re.MULTILINE
)
_KEYWORDS = frozenset(
    {
        "if",
        "else",
        "for",
        "while",
        "do",
        "return",
        "break",
        "continue",
        "goto",
        "switch",
        "case",
        "default",
        "sizeof",
        "int",
        "char",
        "short",
        "long",
        "float",
        "double",
        "void",
        "signed",
        "unsigned",
        "const",
        "static",
        "inline",
        "restrict",
        "struct",
        "union",
        "enum",
        "typedef",
        "extern",
        "register",
        "volatile",
        "_Bool",
        "_Complex",
        "auto",
    }
)
