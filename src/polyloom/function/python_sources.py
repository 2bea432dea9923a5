"""Python functions as documents of JSON, with what their free names mean, and back as functions.

def scaled(x):               file    kernels.py
    for i in range(len(x)):  lines   the text, each line where it stands in its file
        x[i] *= FACTOR       names   {"FACTOR": ["number", "float", 2.5], "len": ["of", "builtins", "len"]}
"""

from __future__ import annotations
import __future__

import ast
import importlib
import inspect
import linecache
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np

from polyloom.diagnostics import PolyloomError

Document = dict[str, Any]
_OWN = {"bool": bool, "int": int, "float": float}
_READ_BY_NAME = ("numpy", "math", "builtins")
"""Modules whose functions have meanings of their own; others are read from their text."""


class _NotKept(Exception):
    """A name means something that has no document."""


def function_document(function: Callable[..., Any]) -> Document | None:
    """Return a function as a document; None where a name of it means what has none."""
    try:
        return _function(function, ())
    except (_NotKept, OSError, TypeError, SyntaxError, PolyloomError):
        return None


def _function(function: Callable[..., Any], around: tuple[object, ...]) -> Document:
    """Return a function as a document; ``around``: those that it is read in the place of a call of."""
    function = inspect.unwrap(function)
    if function in around:
        raise _NotKept
    lines, first = inspect.getsourcelines(function)
    text = textwrap.dedent("".join(lines))
    closed = inspect.getclosurevars(function)
    used = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
    names = {**closed.globals, **closed.nonlocals}
    parameters = inspect.signature(function).parameters.values()
    return {
        "name": function.__name__,
        "file": inspect.getsourcefile(function) or "",
        "lines": "\n" * (first - 1) + text,
        "indent": len(lines[0]) - len(lines[0].lstrip()),
        "names": {n: _meaning(names[n], (*around, function)) for n in names if n in used},
        "defaults": {p.name: _number(p.default) for p in parameters if p.default is not p.empty},
    }


def _number(value: Any) -> list[Any]:
    found = number_document(value)
    if found is None:
        raise _NotKept
    return found


def _meaning(value: Any, around: tuple[object, ...]) -> list[Any]:
    number = number_document(value)
    if number is not None:
        return ["number", *number]
    if inspect.ismodule(value):
        return ["module", value.__name__]
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    name = name or getattr(value, "__name__", None)
    if isinstance(module, str) and isinstance(name, str) and module.split(".")[0] in _READ_BY_NAME:
        if getattr(importlib.import_module(module), name, None) is value:
            return ["of", module, name]
    elif callable(value) and isinstance(inspect.unwrap(value), FunctionType):
        return ["function", _function(value, around)]
    raise _NotKept


def number_document(value: Any) -> list[Any] | None:
    """Return a number with its type; None of what is none that a document can hold."""
    if type(value) in (bool, int, float):
        return [type(value).__name__, value]
    if isinstance(value, np.bool_ | np.integer | np.floating) and value.dtype.itemsize <= 8:
        return [value.dtype.name, value.item()]
    return None


def number_of(document: list[Any]) -> Any:
    """Return the number of a document."""
    kind, value = document
    return _OWN[kind](value) if kind in _OWN else np.dtype(kind).type(value)


def file_name(document: Document, path: Path) -> str:
    """Return the name that messages give the text of a function that was saved in the file ``path``."""
    return f"<{document['name']}, {Path(document['file']).name}, in {path}>"


def function_of(document: Document, path: Path) -> Callable[..., Any]:
    """Return the function of a document that was saved in the file ``path``.

    Errors: ImportError and AttributeError where what a name means is not there.
    """
    names = {name: _meant(meaning, path) for name, meaning in document["names"].items()}
    file, text = file_name(document, path), document["lines"]
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    tree = ast.parse(text, file)
    (definition,) = tree.body
    assert isinstance(definition, ast.FunctionDef)
    arguments = definition.args
    definition.decorator_list, arguments.defaults = [], []
    arguments.kw_defaults = [None] * len(arguments.kwonlyargs)
    exec(compile(tree, file, "exec", __future__.annotations.compiler_flag, dont_inherit=True), names)
    found: Any = names[document["name"]]
    defaults = {name: number_of(value) for name, value in document["defaults"].items()}
    own = {argument.arg for argument in arguments.kwonlyargs}
    found.__defaults__ = tuple(value for name, value in defaults.items() if name not in own)
    found.__kwdefaults__ = {name: value for name, value in defaults.items() if name in own}
    made: Callable[..., Any] = found
    return made


def _meant(meaning: list[Any], path: Path) -> Any:
    kind, *rest = meaning
    if kind == "number":
        return number_of(rest)
    if kind == "module":
        return importlib.import_module(rest[0])
    if kind == "function":
        return function_of(rest[0], path)
    return getattr(importlib.import_module(rest[0]), rest[1])


def signature_document(signature: inspect.Signature) -> list[Any]:
    """Return the arguments of a function; defaults are kept that are numbers."""
    return [[p.name, int(p.kind), number_document(p.default)] for p in signature.parameters.values()]


def signature_of(document: list[Any]) -> inspect.Signature:
    """Return the signature of a document."""
    empty, found = inspect.Parameter.empty, list[inspect.Parameter]()
    for name, kind, default in document:
        value = empty if default is None else number_of(default)
        found.append(inspect.Parameter(name, _KINDS[kind], default=value))
    return inspect.Signature(found)


_KINDS: Mapping[int, Any] = {
    int(kind): kind
    for kind in (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        inspect.Parameter.VAR_POSITIONAL,
        inspect.Parameter.KEYWORD_ONLY,
        inspect.Parameter.VAR_KEYWORD,
    )
}
