"""Macros of a C file that another command line or compiler would change, and what it asks of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
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
_MARK, _NONE = "__polyloom_value_of__", "__polyloom_none__"

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
    """Return what a compiler must find so that it builds the program that is read, as conditions of ``#if``.

    ``#ifndef N`` / ``#define N 100`` gives ``(N) == (100)``; what ``defines`` holds is there too.
    ``#ifdef FAST`` gives ``!defined(FAST)`` where it is not defined. What is asked of the compiler's own
    names (``#if __GNUC__ > 4``, ``#ifdef _OPENMP``) is there as it was found: ``(__GNUC__ > 4)``.
    """
    texts = [_COMMENT.sub(" ", text) for text in own_texts(source, include)]
    named = changeable_macros(source, defines, include, preprocessor)
    of_names = [f"({n}) == ({v})" if v else f"!defined({n})" for n, v in named.items() if n != OPENMP]
    asked = [q for q in _asked_of_compilers(texts) if q not in named]
    found = _evaluated(source, [f"#if {q}\n{_MARK} {k} 1 ;\n#endif" for k, q in enumerate(asked)])
    text = preprocess(found, defines, include, preprocessor)
    true = {int(k) for k in re.findall(rf"{_MARK}\s+(\d+)\s+1", text)}
    return (*of_names, *(_said(q, holds=k in true) for k, q in enumerate(asked)))


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
            parts = [question] if whole else _each(sorted(words & names), table)
            found |= dict.fromkeys(parts)
        outside = set(_WORD.findall(_STRING.sub(" ", _DIRECTIVE.sub(" ", text))))
        found |= dict.fromkeys(q for q in _each(sorted(outside & names & table.keys()), table) if "==" in q)
    return tuple(found)


def _each(names: Sequence[str], table: Mapping[str, str]) -> list[str]:
    known = [n for n in names if _INTEGER.fullmatch(table.get(n, ""))]
    return [*(f"defined({n})" for n in names if n not in known), *(f"{n} == {table[n]}" for n in known)]


def _words(texts: Sequence[str]) -> set[str]:
    return {word for text in texts for word in _WORD.findall(text)}


def _evaluated(source: Source, questions: Sequence[str]) -> Source:
    """Return the text with questions to the preprocessor behind it."""
    return Source(source.name, "\n".join([source.text, *questions, ""]))


def changeable_macros(
    source: Source,
    defines: Mapping[str, str],
    include: Sequence[Path] = (),
    preprocessor: str | None = None,
) -> dict[str, str]:
    """Return macros of which another ``-D`` would make another program, with their integer values as text.

    ``#ifndef N`` / ``#define N 100`` gives ``{"N": "100"}``; what ``defines`` holds is there too.
    ``#ifdef FAST`` gives ``{"FAST": UNDEFINED}`` where it is not defined; names that begin with ``_`` are the
    compiler's, of which ``conditions`` tells.
    """
    guarded = dict.fromkeys([*defines, *_GUARDED.findall(source.text)])
    texts = [_COMMENT.sub(" ", text) for text in own_texts(source, include)]
    guards = {name for text in texts for name in _OF_A_HEADER.findall(text)}
    lines = [line for text in texts for line in _ASKED.findall(text)]
    asked = dict.fromkeys(name for line in lines for name in _NAME.findall(_STRING.sub(" ", line)))
    names = [*guarded, *(n for n in asked if n not in guarded and n not in guards and n != "defined")]
    questions = [
        f"#ifdef {name}\n{_MARK} {k} {name} ;\n#else\n{_MARK} {k} {_NONE} ;\n#endif"
        for k, name in enumerate(names)
    ]
    text = preprocess(_evaluated(source, questions), defines, include, preprocessor)
    found = {int(k): value.strip() for k, value in re.findall(rf"{_MARK}\s+(\d+)\s([^;]*);", text)}
    values = {name: found[k] for k, name in enumerate(names) if k in found}
    undefined = {n: UNDEFINED for n, value in values.items() if value == _NONE and not n.startswith("_")}
    return {n: v for n, v in values.items() if n in guarded and _INTEGER.fullmatch(v)} | undefined
