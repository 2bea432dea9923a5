"""isl objects in the paper's notation: without the list of parameters, simplified by what is known."""

from __future__ import annotations

import re

import islpy as isl

from polyloom.polyhedra.functions import function_of
from polyloom.polyhedra.text.documents import placement_text

Points = isl.Set
"""A set of points, for those who only show it."""

_SIGNS = (
    (re.compile(r"\band\b"), "∧"),
    (re.compile(r"\bor\b"), "∨"),
    (re.compile(r"\bnot\b"), "¬"),
    (re.compile(r"\bexists\b"), "∃"),
    (re.compile(r"->"), "→"),
    (re.compile(r"<="), "≤"),
    (re.compile(r">="), "≥"),
)

_ISL_OBJECT = re.compile(r"(\[[^\]]*\] -> )?\{[^}]*\}")


def notation(text: str, *, ascii_only: bool = False) -> str:
    """Return ``[PE_Y] -> { [(8PE_Y)] : 0 <= PE_Y <= 3 }`` as ``{ [8PE_Y] : 0 ≤ PE_Y ≤ 3 }``."""
    body = _single_names(_bare_components(_without_parameters(text))).replace("{  :", "{ :")
    if ascii_only:
        return body
    for pattern, sign in _SIGNS:
        body = pattern.sub(sign, body)
    return _floors(body)


def notation_in_prose(text: str, *, ascii_only: bool = False) -> str:
    """Return a sentence with the isl objects that stand in it in the paper's notation."""
    return _ISL_OBJECT.sub(lambda found: notation(found.group(), ascii_only=ascii_only), text)


def set_notation(points: isl.Set | isl.Map, known: isl.Set | None = None, *, ascii_only: bool = False) -> str:
    """Return a set or relation, simplified by what is known of the parameters."""
    simpler = points if known is None else points.gist_params(known)
    return notation(str(simpler.coalesce()), ascii_only=ascii_only)


def placement_notation(relation: isl.Map, *, ascii_only: bool = False) -> str:
    """Return a relation as a function where it is one."""
    return notation(placement_text(relation), ascii_only=ascii_only)


def point_notation(point: isl.Set, known: isl.Set | None = None, *, ascii_only: bool = False) -> str:
    """Return a parametric point as a function, simplified by what is known of the parameters.

    Of a function of more than four pieces, the first three are shown.
    """
    if point.is_empty():
        return set_notation(point, ascii_only=ascii_only)
    function = function_of(point).coalesce()
    simpler = function if known is None else function.gist_params(known)
    return _first_pieces(notation(str(simpler), ascii_only=ascii_only))


def _first_pieces(text: str) -> str:
    pieces = text.removeprefix("{ ").removesuffix(" }").split("; ")
    if len(pieces) <= 4:
        return text
    return f"{{ {'; '.join(pieces[:3])}; ... }} and {len(pieces) - 3} pieces more, see --json"


def _without_parameters(text: str) -> str:
    return re.sub(r"^\[[^\]]*\] -> (?=\{)", "", text)


def _bare_components(text: str) -> str:
    """Take the parentheses off tuple components: ``[(8PE_Y), (index)]`` is ``[8PE_Y, index]``."""
    kept = list(text)
    for start, end in _parentheses(text):
        before, after = text[:start].rstrip(), text[end + 1 :].lstrip()
        if before.endswith(("[", ",")) and after.startswith(("]", ",")):
            kept[start] = kept[end] = ""
    return "".join(kept)


def _single_names(text: str) -> str:
    """Take the parentheses off single names: ``floor((index)/4)`` is ``floor(index/4)``."""
    return re.sub(r"(?<![\w])\((\w+)\)", r"\1", text)


def _floors(text: str) -> str:
    """Write ``floor(x)`` as ``⌊x⌋``."""
    kept = list(text)
    for start, end in _parentheses(text):
        if text[:start].endswith("floor"):
            kept[start - 5 : start + 1] = ["", "", "", "", "", "⌊"]
            kept[end] = "⌋"
    return "".join(kept)


def _parentheses(text: str) -> list[tuple[int, int]]:
    """Return the positions of each pair of parentheses."""
    open_, pairs = list[int](), list[tuple[int, int]]()
    for position, character in enumerate(text):
        if character == "(":
            open_.append(position)
        elif character == ")" and open_:
            pairs.append((open_.pop(), position))
    return pairs
