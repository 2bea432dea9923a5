"""``asm``, which C compilers know and the parser does not: in headers of the system, and beside loops.

asm volatile("rdtsc" : "=a"(low) : "r"(x) : "cc");  ->  asm(&(low));
extern int f(int) __asm__("g");                     ->  extern int f(int);

A statement is a call of a function that nobody knows, with the addresses of what it writes.
"""

from __future__ import annotations

import re

_WORD = re.compile(
    r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|[{}();\]]|\b(?P<asm>asm|__asm|__asm__)\b|\w+|[^\s\w]", re.DOTALL
)
_HEAD = re.compile(r"(?:\s|volatile|__volatile__|__volatile|goto|inline|__inline|__inline__)*\(")
_OUTPUT = re.compile(r"\"(?:\\.|[^\"\\])*\"\s*\(")
_BEFORE_STATEMENTS = frozenset([";", "{", "}", ")", ":", "else", "do", ""])


def without_assembly(text: str) -> str:
    """Return a text of the same length, line by line, without inline assembly."""
    if "asm" not in text:
        return text
    found, at, depth, before = list[str](), 0, 0, ""
    for word in _WORD.finditer(text):
        if word.start() < at:
            continue
        lexeme = word.group()
        end = _end(text, word.end()) if word.group("asm") else None
        if end is None:
            depth += {"{": 1, "}": -1}.get(lexeme, 0)
            before = lexeme
            continue
        is_statement = depth > 0 and before in _BEFORE_STATEMENTS
        found += [text[at : word.start()], _in_place_of(text[word.start() : end], is_statement=is_statement)]
        at = end
    return "".join([*found, text[at:]])


def _end(text: str, start: int) -> int | None:
    """Return where the parentheses close that open behind ``asm``; None where it is something else."""
    head = _HEAD.match(text, start)
    return None if head is None else closed(text, head.end())


def closed(text: str, start: int) -> int | None:
    """Return the place behind the parenthesis that closes one which was opened before ``start``."""
    depth = 1
    for word in _WORD.finditer(text, start):
        depth += {"(": 1, ")": -1}.get(word.group(), 0)
        if depth == 0:
            return word.end()
    return None


def _in_place_of(assembly: str, *, is_statement: bool) -> str:
    """Return what stands for assembly, with blanks behind it up to its length."""
    word = re.match(r"\w+", assembly)
    assert word is not None
    addresses = ", ".join(f"&({output})" for output in _outputs(assembly))
    call = f"{word.group()}({addresses})" if is_statement else ""
    blanks = re.sub(r"[^\n]", " ", assembly)
    lines = blanks.split("\n")
    return call + "\n".join([lines[0][len(call) :], *lines[1:]])


def _outputs(assembly: str) -> list[str]:
    """Return what assembly may write: the operands behind its first colon."""
    parts = _colons(assembly)
    written = parts[1] if len(parts) > 1 else ""
    found = []
    for operand in _OUTPUT.finditer(written):
        end = closed(written, operand.end())
        if end is not None:
            found.append(" ".join(written[operand.end() : end - 1].split()))
    return found


def _colons(assembly: str) -> list[str]:
    """Return what stands between colons that are in the outermost parentheses."""
    depth, at, found = 0, 0, list[str]()
    for word in _WORD.finditer(assembly):
        depth += {"(": 1, ")": -1}.get(word.group(), 0)
        if word.group() == ":" and depth == 1:
            found.append(assembly[at : word.start()])
            at = word.end()
    return [*found, assembly[at:]]
