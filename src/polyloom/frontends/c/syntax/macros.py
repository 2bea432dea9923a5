"""Macros of a C file that another command line would change: those that it defines only if nobody has."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from polyloom.diagnostics import Source
from polyloom.frontends.c.syntax.preprocess import preprocess

_GUARDED = re.compile(r"^[ \t]*#[ \t]*(?:ifndef[ \t]+|if[ \t]+!\s*defined[ \t]*\(?[ \t]*)(\w+)", re.MULTILINE)
_INTEGER = re.compile(r"[\d\s()+\-*/%<>&|^~!=?:xXa-fA-FuUlL]*\d[\d\s()+\-*/%<>&|^~!=?:xXa-fA-FuUlL]*")
_MARK = "__polyloom_value_of__"


def changeable_macros(
    source: Source,
    defines: Mapping[str, str],
    include: Sequence[Path] = (),
    preprocessor: str | None = None,
) -> dict[str, str]:
    """Return macros of which another ``-D`` would make another program, with their integer values as text.

    ``#ifndef N`` / ``#define N 100`` gives ``{"N": "100"}``; what ``defines`` holds is there too.
    """
    names = dict.fromkeys([*defines, *_GUARDED.findall(source.text)])
    questions = "".join(f"\n#ifdef {name}\n{_MARK} {k} {name} ;\n#endif" for k, name in enumerate(names))
    text = preprocess(Source(source.name, source.text + questions + "\n"), defines, include, preprocessor)
    found = {int(k): value.strip() for k, value in re.findall(rf"{_MARK}\s+(\d+)\s([^;]*);", text)}
    values = {name: found[k] for k, name in enumerate(names) if k in found}
    return {name: value for name, value in values.items() if _INTEGER.fullmatch(value)}
