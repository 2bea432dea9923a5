"""docs/equations.md names functions and tests that exist, and every equation that has a test."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "polyloom"
PAGE = (ROOT / "docs" / "equations.md").read_text()
TESTS = {"wafer/test_paper_equations.py", "mdh/test_paper.py"}
NUMBERED = 44
"""The first number that no equation of the paper has."""


@cache
def defined(path: Path) -> frozenset[str]:
    """The names of functions and classes of a module, also inside of classes."""
    tree = ast.parse(path.read_text())
    kinds = (ast.FunctionDef, ast.ClassDef)
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, kinds))


def rows() -> list[list[str]]:
    cells = [line.strip("| ").split(" | ") for line in PAGE.splitlines() if line.startswith("|")]
    return [row for row in cells if len(row) >= 3 and "`" in row[2]]


def test_functions_exist() -> None:
    named = re.findall(r"`([\w/]+\.py)` `(\w+)`", "\n".join(row[2] for row in rows()))
    assert len(named) == len(rows()) > 20
    assert [n for n in named if n[1] not in defined(SOURCE / n[0])] == []


def test_tests_exist() -> None:
    from wafer.test_paper_equations import EQUATIONS

    ids = {f"test_equation[{e.number.replace(' ', '-')}]" for e in EQUATIONS}
    functions = {name for file in TESTS for name in defined(ROOT / "tests" / file)}
    named = set(re.findall(r"`(test_[^`]*)`", "\n".join(row[-1] for row in rows())))
    assert named - ids - functions == set()
    assert ids - named == set(), "each equation with a test of its own is on the page"


def test_every_equation_is_on_the_page() -> None:
    numbers = {int(n) for row in rows() for n in re.findall(r"\((\d+)\)", row[0])}
    numbers |= {1, 2, 3}  # "(1)-(3)"
    assert numbers == set(range(1, NUMBERED))
