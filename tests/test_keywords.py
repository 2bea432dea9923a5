"""Values of more than four fields are made with keywords: a swapped pair of equal types would pass unseen."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from test_architecture import SOURCE, parsed

MOST = 4
"""Positional arguments of a dataclass, at most."""

FOLDERS = ("wafer", "mdh", "scop", "report/wafer", "pipeline.py", "device_pipeline.py")
"""Where this holds so far, in ``src/polyloom``."""


def trees(root: Path) -> dict[Path, ast.Module]:
    """Every file below a folder, parsed."""
    return {path: parsed(path) for path in root.rglob("*.py")}


def dataclasses_of(files: dict[Path, ast.Module], root: Path) -> set[tuple[str, str]]:
    """The module and the name of every dataclass."""
    return {
        (_module(path, root), node.name)
        for path, tree in files.items()
        for node in tree.body
        if isinstance(node, ast.ClassDef)
        and any("dataclass" in ast.unparse(decorator) for decorator in node.decorator_list)
    }


def _module(path: Path, root: Path) -> str:
    return ".".join(path.relative_to(root).with_suffix("").parts)


def without_keywords(path: Path, tree: ast.Module, root: Path, known: set[tuple[str, str]]) -> Iterator[str]:
    """Yield the calls of dataclasses in a file that have more than four positional arguments."""
    names = {name: (module, name) for module, name in known if module == _module(path, root)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            names |= {a.asname or a.name: (str(node.module), a.name) for a in node.names}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        if len(node.args) > MOST and names.get(node.func.id) in known:
            yield f"{path.relative_to(root)}:{node.lineno}: {node.func.id}"


@pytest.mark.slow
@pytest.mark.ci
def test_values_of_many_fields_are_made_with_keywords() -> None:
    files = trees(SOURCE)
    known = dataclasses_of(files, SOURCE)
    assert len(known) > 400
    places = [SOURCE / "polyloom" / folder for folder in FOLDERS]
    asked = [path for path in files if any(path == place or place in path.parents for place in places)]
    assert len(asked) > 300
    assert [call for path in asked for call in without_keywords(path, files[path], SOURCE, known)] == []


@pytest.mark.parametrize("inside", [True, False], ids=["defined", "imported"])
def test_a_call_without_keywords_is_named(tmp_path: Path, inside: bool) -> None:
    made = "@dataclass(frozen=True)\nclass Wide:\n    a: int\n"
    (tmp_path / "wide.py").write_text(made + "Wide(1, 2, 3, 4, 5)\n" if inside else made)
    (tmp_path / "user.py").write_text("from wide import Wide as W\nW(1, 2, 3, 4, 5)\nW(1, 2, 3, 4)\n")
    parsed = trees(tmp_path)
    known = dataclasses_of(parsed, tmp_path)
    path = tmp_path / ("wide.py" if inside else "user.py")
    expected = "wide.py:4: Wide" if inside else "user.py:2: W"
    assert list(without_keywords(path, parsed[path], tmp_path, known)) == [expected]
