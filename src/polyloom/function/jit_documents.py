"""What calls of a Python function need to know, and its arguments' types, as documents and back."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import islpy as isl

from polyloom.diagnostics import Source, Span
from polyloom.frontends.python import ArrayType, Calls, NumberType, TruthType
from polyloom.frontends.python.values import Weak
from polyloom.function.python_sources import Document
from polyloom.ir.types import ElementType

Types = tuple[tuple[str, ArrayType | NumberType | TruthType], ...]
_PARAMETER = isl.dim_type.param


def types_document(types: Types) -> list[Any]:
    """Return the types of arguments as a document."""
    return [[name, *_type_document(kind)] for name, kind in types]


def _type_document(kind: ArrayType | NumberType | TruthType) -> list[Any]:
    match kind:
        case ArrayType(type=element, rank=rank):
            return ["array", element.value, rank]
        case NumberType(kind=Weak() as weak):
            return ["own", weak.value]
        case NumberType(kind=element):
            return ["number", element.value]
        case TruthType(value=value):
            return ["truth", value]


def types_of(document: Sequence[Any]) -> Types:
    """Return the types of a document."""
    return tuple((name, _type_of(kind, *rest)) for name, kind, *rest in document)


def _type_of(kind: str, what: Any, rank: int = 0) -> ArrayType | NumberType | TruthType:
    if kind == "array":
        return ArrayType(ElementType(what), rank)
    if kind == "truth":
        return TruthType(what)
    return NumberType(Weak(what) if kind == "own" else ElementType(what))


def calls_document(calls: Calls, text: Document | None) -> Document:
    """Return what calls need to know as a document; ``text``: the function's, in which places are kept."""
    return {
        "results": calls.results,
        "shapes": calls.shapes,
        "weak": sorted(calls.weak),
        "truths": sorted(calls.truths),
        "valid": _set_document(calls.valid),
        "assumed": calls.assumed,
        "flag": calls.flag,
        "asked": [[array, _place(span, text)] for array, span in calls.asked],
    }


def calls_of(document: Document, source: Source | None) -> Calls:
    """Return what a document says; ``source``: the text that its places are in."""
    return Calls(
        results=tuple(document["results"]),
        shapes={name: tuple(names) for name, names in document["shapes"].items()},
        weak=frozenset(document["weak"]),
        truths=frozenset(document["truths"]),
        valid=_set_of(document["valid"]),
        assumed=document["assumed"],
        flag=document["flag"],
        asked=tuple(
            (array, None if place is None or source is None else Span(source, *place))
            for array, place in document["asked"]
        ),
    )


def _place(span: Span | None, text: Document | None) -> list[int] | None:
    """Return where a place of a function's file is in the text that is kept; None where it is not there."""
    if span is None or text is None or Path(text["file"]).name not in span.source.name:
        return None
    lines = text["lines"].split("\n")
    column = span.column - 1 - text["indent"]
    if (
        span.line > len(lines)
        or "\n" in span.text
        or lines[span.line - 1][column:][: len(span.text)] != span.text
    ):
        return None
    begin = sum(len(line) + 1 for line in lines[: span.line - 1]) + column
    return [begin, begin + len(span.text)]


def _set_document(sizes: isl.Set) -> list[Any]:
    """Return sizes with their names beside: isl would read some of these as words of its own."""
    count = sizes.dim(_PARAMETER)
    names = [str(sizes.get_dim_name(_PARAMETER, k)) for k in range(count)]
    for k in range(count):
        sizes = sizes.set_dim_name(_PARAMETER, k, f"size{k}")
    return [names, str(sizes)]


def _set_of(document: Sequence[Any]) -> isl.Set:
    names, text = document
    sizes = isl.Set(text)
    for k, name in enumerate(names):
        sizes = sizes.set_dim_name(_PARAMETER, k, name)
    return sizes
