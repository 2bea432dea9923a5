"""Macros of a C file that another command line would change: it asks for them, or defines what nobody has."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from polyloom.diagnostics import Source
from polyloom.frontends.c.syntax.preprocess import preprocess

_GUARDED = re.compile(r"^[ \t]*#[ \t]*(?:ifndef[ \t]+|if[ \t]+!\s*defined[ \t]*\(?[ \t]*)(\w+)", re.MULTILINE)
_ASKED = re.compile(r"^[ \t]*#[ \t]*(?:if|ifdef|ifndef|elif)\b((?:\\\n|[^\n])*)", re.MULTILINE)
_INCLUDED = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)
_OF_A_HEADER = re.compile(r"\A\s*#[ \t]*ifndef[ \t]+(\w+)\s*\n\s*#[ \t]*define[ \t]+\1[ \t]*\n")
_STRING = re.compile(r'"(?:\\.|[^"\\])*"')
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_NAME = re.compile(r"\b[A-Za-z]\w*")
_INTEGER = re.compile(r"[\d\s()+\-*/%<>&|^~!=?:xXa-fA-FuUlL]*\d[\d\s()+\-*/%<>&|^~!=?:xXa-fA-FuUlL]*")
_MARK, _NONE = "__polyloom_value_of__", "__polyloom_none__"

UNDEFINED = ""
"""The value of a macro that is not defined."""


def changeable_macros(
    source: Source,
    defines: Mapping[str, str],
    include: Sequence[Path] = (),
    preprocessor: str | None = None,
) -> dict[str, str]:
    """Return macros of which another ``-D`` would make another program, with their integer values as text.

    ``#ifndef N`` / ``#define N 100`` gives ``{"N": "100"}``; what ``defines`` holds is there too.
    ``#ifdef FAST`` gives ``{"FAST": UNDEFINED}`` where it is not defined; names that begin with ``_`` are the
    compiler's.
    """
    guarded = dict.fromkeys([*defines, *_GUARDED.findall(source.text)])
    texts = [_COMMENT.sub(" ", text) for text in _own_texts(source, include)]
    guards = {name for text in texts for name in _OF_A_HEADER.findall(text)}
    lines = [line for text in texts for line in _ASKED.findall(text)]
    asked = dict.fromkeys(name for line in lines for name in _NAME.findall(_STRING.sub(" ", line)))
    names = [*guarded, *(n for n in asked if n not in guarded and n not in guards and n != "defined")]
    questions = "".join(
        f"\n#ifdef {name}\n{_MARK} {k} {name} ;\n#else\n{_MARK} {k} {_NONE} ;\n#endif"
        for k, name in enumerate(names)
    )
    text = preprocess(Source(source.name, source.text + questions + "\n"), defines, include, preprocessor)
    found = {int(k): value.strip() for k, value in re.findall(rf"{_MARK}\s+(\d+)\s([^;]*);", text)}
    values = {name: found[k] for k, name in enumerate(names) if k in found}
    undefined = {n: UNDEFINED for n, value in values.items() if value == _NONE and not n.startswith("_")}
    return {n: v for n, v in values.items() if n in guarded and _INTEGER.fullmatch(v)} | undefined


def _own_texts(source: Source, include: Sequence[Path]) -> Iterator[str]:
    """Yield the text of a file, and of those that it includes by ``#include "name"``, each once."""
    ahead, seen = [(Path(source.name).parent, source.text)], set[Path]()
    while ahead:
        folder, text = ahead.pop()
        yield text
        for name in _INCLUDED.findall(text):
            path = next((p for f in (folder, *include) if (p := (f / name).resolve()).is_file()), None)
            if path is not None and path not in seen:
                seen.add(path)
                ahead.append((path.parent, path.read_text(encoding="utf-8", errors="replace")))
