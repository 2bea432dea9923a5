"""Every code of a diagnostic with what it says: ``python benchmarks/diagnostics.py > docs/diagnostics.md``.

Read from the source: calls of ``error``, ``warning``, ``remark``, ``fail``, ``fault`` and ``refuse`` whose
code is a text. What a message says of the case at hand stands as ``...``.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "polyloom"
MAKERS = {
    "error": "error",
    "fail": "error",
    "fault": "error",
    "refuse": "error",
    "warning": "warning",
    "remark": "remark",
}
CODE = re.compile(r"[a-z0-9]+(-[a-z0-9]+)+")
HEAD = """# Diagnostics

Every code that messages carry, in brackets behind `error`, `warning` or `remark`, and in JSON as `code`.
Codes are stable; messages may change. `...` is what differs from case to case.
Made by `python benchmarks/diagnostics.py > docs/diagnostics.md`.
"""


@dataclass(frozen=True, order=True)
class Said:
    """One place in the source that makes a diagnostic."""

    code: str
    severity: str
    message: str
    module: str


@cache
def said(source: Path = SOURCE) -> tuple[Said, ...]:
    """Return what every call in the source says, sorted by code."""
    found: set[Said] = set()
    for path in sorted(source.rglob("*.py")):
        module = path.relative_to(source).with_suffix("").as_posix()
        text = path.read_text(encoding="utf-8")
        if any(f"{name}(" in text for name in MAKERS):
            found |= set(_in_module(ast.parse(text), module))
    return tuple(sorted(found))


def _in_module(tree: ast.Module, module: str) -> Iterator[Said]:
    for scope in ast.walk(tree):
        if isinstance(scope, ast.FunctionDef):
            nodes = list(ast.walk(scope))
            texts = dict(_assigned(nodes))
            for call in nodes:
                if isinstance(call, ast.Call):
                    yield from _of_call(call, texts, module)


def _assigned(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, ast.expr]]:
    for node in nodes:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, node.value


def _of_call(call: ast.Call, texts: dict[str, ast.expr], module: str) -> Iterator[Said]:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    codes = [a for a in call.args[:2] if isinstance(a, ast.Constant) and CODE.fullmatch(str(a.value))]
    if name not in MAKERS or not codes:
        return
    behind = call.args[call.args.index(codes[0]) + 1 :]
    message = _text(behind[0], texts) if behind else "..."
    yield Said(str(codes[0].value), MAKERS[name], message, module)


def _text(node: ast.expr, texts: dict[str, ast.expr]) -> str:
    """Return a message with ``...`` for what is known only when it is said."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            shown = (_text(p, texts) if isinstance(p, ast.Constant) else "..." for p in parts)
            return "".join(shown)
        case ast.BinOp(op=ast.Add(), left=left, right=right):
            return _text(left, texts) + _text(right, texts)
        case ast.Name(id=name) if name in texts:
            return _text(texts[name], {k: v for k, v in texts.items() if k != name})
        case ast.IfExp(body=body, orelse=other):
            return f"{_text(body, texts)} / {_text(other, texts)}"
        case _:
            return "..."


def page(source: Path = SOURCE) -> str:
    """Return the page: a section for each first word of a code."""
    families: dict[str, list[Said]] = defaultdict(list)
    for entry in said(source):
        families[entry.code.partition("-")[0]].append(entry)
    return HEAD + "".join(
        f"\n{part}\n" for name in sorted(families) for part in _section(name, families[name])
    )


def _section(name: str, entries: list[Said]) -> Iterator[str]:
    yield f"## `{name}-`"
    rows = [f"| `{e.code}` | {e.severity} | {_cell(e.message)} | `{e.module}` |" for e in entries]
    yield "\n".join(["| code | | what it says | where it is found |", "|---|---|---|---|", *rows])


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;") or "..."


if __name__ == "__main__":
    print(page(), end="")
