"""The names that LAIR itself uses, and suggestions for names that it does not know."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from polyloom.diagnostics import near
from polyloom.frontends.lair.lowering.faults import fail
from polyloom.frontends.lair.syntax.tree import Name
from polyloom.ir.scalar_functions.function import BINARY, UNARY, BinaryFunction, UnaryFunction
from polyloom.ir.types import ElementType

TYPES = {t.value: t for t in ElementType if t is not ElementType.BOOL}
"""The types of LAIR's tensors; a machine may have fewer."""

KEYWORDS = frozenset({"lair", "graph", "all", "in"})
SET_NOTATION = frozenset({"and", "or", "not", "mod", "exists", "true", "false", "implies"})
"""Words of isl's notation: a map could not speak of a tensor that is called so."""


def unary_functions() -> dict[str, UnaryFunction]:
    """Return the functions of one argument that LAIR has, by name."""
    return {name: function for name, function in UNARY.items() if function.in_lair}


def binary_functions() -> dict[str, BinaryFunction]:
    """Return the functions of two arguments that LAIR has, by name."""
    return {name: function for name, function in BINARY.items() if function.in_lair}


def functions() -> list[str]:
    """Return the names of all functions that LAIR has."""
    return [*unary_functions(), *binary_functions(), "select"]


def is_reserved(name: str) -> bool:
    """Tell whether a name is a word of the language."""
    return name in KEYWORDS or name in SET_NOTATION or name in TYPES or name in functions()


def check_new(names: Iterable[Name], taken: Collection[str] = ()) -> None:
    """Refuse names that are reserved, in ``taken``, or given twice."""
    seen = set(taken)
    for name in names:
        if is_reserved(name.text):
            _refuse_reserved(name)
        if name.text in seen:
            _refuse_duplicate(name)
        seen.add(name.text)


def _refuse_reserved(name: Name) -> None:
    fail(
        "lair-reserved-name",
        f"`{name.text}` is a word of the language and cannot be a name here",
        name.span,
        help="choose another name",
    )


def _refuse_duplicate(name: Name) -> None:
    fail(
        "lair-duplicate-name",
        f"the name `{name.text}` stands for two things",
        name.span,
        label="given a second time",
        help="rename one of them: parameters, tensors and iterators share one space of names",
    )


def counted(number: int, noun: str) -> str:
    """Return ``1 output``, ``2 outputs``."""
    return f"{number} {noun}{'s' * (number != 1)}"


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return a help text with the names that exist, the nearest first if one is near."""
    names = list(dict.fromkeys(known))
    if meant := near(name, names):
        return f"did you mean `{meant}`?"
    return f"known here: {', '.join(f'`{n}`' for n in names[:12])}" if names else "no name is known here"
