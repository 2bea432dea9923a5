"""A process that forks a child for each mutant. No file is touched.

Polyloom is imported before; a child compiles the mutated module from changed text, and puts its functions in
place of those that are known everywhere. Jobs come on standard input, one JSON document a line; each is
answered with a line.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import traceback
from collections.abc import Iterator
from enum import Enum
from functools import cached_property
from types import FunctionType, ModuleType
from typing import Any

PROBES = (
    "c_probes", "ir_probes", "mdh_probes", "oracle_probes", "polyhedra_probes", "scop_probes", "wafer_probes",
    "test_arguments", "test_chunks", "test_signature",
)  # fmt: skip
"""What is imported once. None of them may open a device: OpenCL works in one process only."""
SECONDS = 100
"""More a child does not get: a mutant that does not end is noticed."""


NOT_MADE = "the mutant cannot be made"


def replace_module(module: ModuleType, text: str) -> None:
    """Let a module, and all that have imported from it, behave as its changed text says.

    Functions get other code, classes other methods; both stay the objects that they are.
    """
    before = dict(vars(module))
    exec(compile(text, str(module.__file__), "exec", dont_inherit=True), vars(module))
    for name, old in before.items():
        new = vars(module)[name]
        if new is old or name.startswith("__"):
            continue
        if isinstance(old, type):
            _replace_class(old, new, module)
        elif isinstance(_plain(old), FunctionType):
            _plain(old).__code__ = _plain(new).__code__
        else:
            _rebind(old, new)
            continue
        vars(module)[name] = old


def _plain(function: Any) -> Any:
    """Return what a cache or a context manager is around."""
    return getattr(function, "__wrapped__", function)


def _replace_class(old: type, new: type, module: ModuleType) -> None:
    if issubclass(old, Enum):
        return
    for name, member in list(vars(new).items()):
        if any(f.__code__.co_filename == module.__file__ for f in _functions(member)):
            setattr(old, name, member)


def _functions(member: object) -> Iterator[FunctionType]:
    """Yield the functions of a member of a class."""
    parts: tuple[object, ...] = (member,)
    if isinstance(member, property):
        parts = (member.fget,)
    elif isinstance(member, cached_property):
        parts = (member.func,)
    elif isinstance(member, staticmethod | classmethod):
        parts = (member.__func__,)
    yield from (plain for part in parts if isinstance(plain := _plain(part), FunctionType))


def _rebind(old: object, new: object) -> None:
    """Put a constant in place of another one wherever it was imported."""
    for module in list(sys.modules.values()):
        for name, value in list(vars(module).items()):
            if value is old:
                setattr(module, name, new)


def probe(job: dict[str, Any]) -> str:
    """Return what the probe complains of; empty where nothing is wrong."""
    module, _, function = job["function"].rpartition(".")
    called = getattr(importlib.import_module(module), function)
    for name, text in job["texts"].items():
        replace_module(importlib.import_module(name), text)
    try:
        called(*job["arguments"])
    except BaseException:
        return traceback.format_exc()[-2000:]
    return ""


def in_child(job: dict[str, Any]) -> str:
    """Fork, probe there, and return what is found wrong."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(SECONDS)
        os.close(reading)
        try:
            os.write(writing, probe(job).encode() or b"nothing")
        except BaseException:
            os.write(writing, f"{NOT_MADE}: {traceback.format_exc()[-2000:]}".encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as answer:
        text = answer.read().decode()
    _, status = os.waitpid(child, 0)
    if not text:
        return f"the process ended with {status}"
    return "" if text == "nothing" else text


def main() -> None:
    """Answer every line; what children print goes to standard error."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for name in PROBES:
        importlib.import_module(name)
    for line in sys.stdin:
        print(json.dumps(in_child(json.loads(line))), file=answers, flush=True)


if __name__ == "__main__":
    main()
