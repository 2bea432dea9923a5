"""Macros of a C file that another command line or compiler would change, and what it asks of them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from polyloom.diagnostics import Source
from polyloom.frontends.c.syntax.preprocess import compilers_macros, own_texts, preprocess

_GUARDED = re.compile(r"^[ \t]*#[ \t]*(?:ifndef[ \t]+|if[ \t]+!\s*defined[ \t]*\(?[ \t]*)(\w+)", re.MULTILINE)
_ASKED = re.compile(r"^[ \t]*#[ \t]*(?:if|ifdef|ifndef|elif)\b((?:\\\n|[^\n])*)", re.MULTILINE)
_OF_A_HEADER = re.compile(r"\A\s*#[ \t]*ifndef[ \t]+(\w+)\s*\n\s*#[ \t]*define[ \t]+\1[ \t]*\n")
_STRING = re.compile(r'"(?:\\.|[^"\\])*"')
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_NAME = re.compile(r"\b[A-Za-z]\w*")
_WORD = re.compile(r"\b[A-Za-z_]\w*")
_DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*(if|ifdef|ifndef|elif)\b((?:\\\n|[^\n])*)", re.MULTILINE)
_CHANGED = re.compile(r"^[ \t]*#[ \t]*(?:define|undef)[ \t]+(\w+)", re.MULTILINE)
_INTEGER = re.compile(r"[\d\s()+\-*/%<>&|^~!=?:xXa-fA-FuUlL]*\d[\d\s()+\-*/%<>&|^~!=?:xXa-fA-FuUlL]*")
_CALLED = re.compile(r"\b([A-Za-z_]\w*)[ \t]*\(")
_HAS = re.compile(r"\b__has_\w+[ \t]*\([^()]*\)")
_VALUE, _NONE, _HOLDS = "__polyloom_value_of__", "__polyloom_none__", "__polyloom_holds__"

OPENMP = "_OPENMP"
"""What a compiler defines where ``-fopenmp`` is given, as it is for drop-ins in C."""

_SETTLED = frozenset({"__cplusplus", "__POLYLOOM__"})
"""Names of which nobody needs to ask: the program is C, and what is computed is what this tool is shown."""

UNDEFINED = ""
"""The value of a macro that is not defined."""


def conditions(
    source: Source,
    defines: Mapping[str, str],
    include: Sequence[Path] = (),
    preprocessor: str | None = None,
) -> tuple[str, ...]:
    """Return nested conditions of ``#if``: what a compiler must find so that it builds the program read here.

    ``#ifndef N`` / ``#define N 100`` gives ``(N) == (100)``; what ``defines`` holds is there too.
    ``#ifdef FAST`` gives ``!defined(FAST)`` where it is not defined. What is asked of the compiler's own
    names (``#if __GNUC__ > 4``, ``#ifdef _OPENMP``) is there as it was found: ``(__GNUC__ > 4)``.
    A question with arguments (``__has_feature(x)``) stands in an ``#if`` of its own, inside of one that asks
    whether it is defined: a compiler that does not know it could not read it.
    """
    texts = [_COMMENT.sub(" ", text) for text in own_texts(source, include)]
    asked = _asked_of_compilers(texts)
    guarded, names = _asked_of_users(source, defines, texts)
    text = preprocess(_asking(source, names, asked), defines, include, preprocessor)
    named = _changeable(guarded, _values(text, names))
    holds = {question: h for question, h in _holding(text, asked).items() if question not in named}
    outer = [f"({n}) == ({v})" if v else f"!defined({n})" for n, v in named.items() if n != OPENMP]
    outer += [_said(question, holds=h) for question, h in holds.items() if not _called(question)]
    inner = [_said(question, holds=h) for question, h in holds.items() if _called(question)]
    return tuple(" && ".join(level) for level in (outer, inner) if level)


def _called(question: str) -> list[str]:
    return [name for name in _CALLED.findall(question) if name != "defined"]


def _asking(source: Source, names: Sequence[str], asked: Sequence[str]) -> Source:
    """Return the text with questions to the preprocessor behind it."""
    of_names = [
        f"#ifdef {name}\n{_VALUE} {k} {name} ;\n#else\n{_VALUE} {k} {_NONE} ;\n#endif"
        for k, name in enumerate(names)
    ]
    of_questions = [
        f"#if {' && '.join(['1', *(f'defined({name})' for name in _called(question))])}\n"
        f"#if {question}\n{_HOLDS} {k} 1 ;\n#else\n{_HOLDS} {k} 0 ;\n#endif\n#endif"
        for k, question in enumerate(asked)
    ]
    return Source(source.name, "\n".join([source.text, *of_names, *of_questions, ""]))


def _values(text: str, names: Sequence[str]) -> dict[str, str]:
    """Return what names stand for, as the preprocessor said; ``_NONE`` for those that are not defined."""
    found = re.findall(rf"{_VALUE}\s+(\d+)\s([^;]*);", text)
    return {names[int(k)]: value.strip() for k, value in found}


def _holding(text: str, asked: Sequence[str]) -> dict[str, bool]:
    """Return which questions hold, without those that the compiler does not know."""
    return {asked[int(k)]: value == "1" for k, value in re.findall(rf"{_HOLDS}\s+(\d+)\s+([01])", text)}


def _changeable(guarded: Collection[str], values: Mapping[str, str]) -> dict[str, str]:
    """Return macros of which another ``-D`` would make another program, with their integer values as text.

    Names that begin with ``_`` are the compiler's.
    """
    undefined = {n: UNDEFINED for n, v in values.items() if v == _NONE and not n.startswith("_")}
    return {n: v for n, v in values.items() if n in guarded and _INTEGER.fullmatch(v)} | undefined


def _asked_of_users(
    source: Source, defines: Mapping[str, str], texts: Sequence[str]
) -> tuple[Collection[str], Sequence[str]]:
    """Return the names that a text defines where nobody has, and those with all that it asks for."""
    guarded = dict.fromkeys([*defines, *_GUARDED.findall(source.text)])
    guards = {name for text in texts for name in _OF_A_HEADER.findall(text)}
    lines = [_HAS.sub(" ", line) for text in texts for line in _ASKED.findall(text)]
    asked = dict.fromkeys(name for line in lines for name in _NAME.findall(_STRING.sub(" ", line)))
    others = (n for n in asked if n not in guarded and n not in guards and n != "defined")
    return guarded, (*guarded, *others)


def _said(question: str, *, holds: bool) -> str:
    text = question if re.fullmatch(r"defined\(\w+\)", question) else f"({question})"
    return text if holds else f"!{text}"


def _asked_of_compilers(texts: Sequence[str]) -> tuple[str, ...]:
    """Return what texts ask of names that only compilers define, each once.

    Where a question has other names, too, it is whether each of the compiler's is defined, and what it is.
    """
    table = compilers_macros("-fopenmp")
    changed = {name for text in texts for name in _CHANGED.findall(text)}
    names = {n for n in _words(texts) if n.startswith("_") or n in table} - changed - _SETTLED
    found = dict[str, None]()
    for text in texts:
        for kind, rest in _DIRECTIVE.findall(text):
            words = set(_WORD.findall(_STRING.sub(" ", rest))) - {"defined", *_SETTLED}
            line = " ".join(rest.replace("\\\n", " ").split())
            question = f"defined({line})" if kind in ("ifdef", "ifndef") else line
            if not words & names:
                continue
            whole = "__has_" in rest or (words <= names and not _SETTLED & set(_WORD.findall(rest)))
            known = [f"defined({name})" for name in _called(question)]
            parts = [*known, question] if whole else _each(sorted(words & names), table)
            found |= dict.fromkeys(parts)
        outside = set(_WORD.findall(_STRING.sub(" ", _DIRECTIVE.sub(" ", text))))
        found |= dict.fromkeys(q for q in _each(sorted(outside & names & table.keys()), table) if "==" in q)
    return tuple(found)


def _each(names: Sequence[str], table: Mapping[str, str]) -> list[str]:
    known = [n for n in names if _INTEGER.fullmatch(table.get(n, ""))]
    return [*(f"defined({n})" for n in names if n not in known), *(f"{n} == {table[n]}" for n in known)]


def _words(texts: Sequence[str]) -> set[str]:
    return {word for text in texts for word in _WORD.findall(text)}
