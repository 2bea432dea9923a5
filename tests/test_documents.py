"""The documents: links lead to files and headings, paths are those of the tree, each page is listed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from markdown_links import is_there, links
from test_architecture import parsed

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
SOURCE = ROOT / "src" / "polyloom"


def test_links_of_the_documents_lead_somewhere() -> None:
    inside = [(page, link) for page in PAGES for link in links(page.read_text()) if "://" not in link]
    wrong = [f"{page.name}: {link}" for page, link in inside if not is_there(page, link)]
    assert wrong == []


def test_every_document_has_a_line_in_the_list() -> None:
    listed = set(links((ROOT / "docs" / "README.md").read_text()))
    assert {page.name for page in (ROOT / "docs").glob("*.md")} - listed == {"README.md"}


def paths(text: str) -> Iterator[str]:
    """Yield what stands in backquotes and begins with a folder of the repository, or a room of the source."""
    folders = {path.name for base in (ROOT, SOURCE) for path in base.iterdir() if path.is_dir()}
    for quoted in re.findall(r"`([\w.*-]+/[\w./*-]*)`", text):
        if quoted.split("/")[0] in folders - {"build", "dist"} and "NAME" not in quoted:
            yield quoted


def names_a_file(path: str) -> bool:
    """Return whether a path is of a file or folder; a module may lack its ending, or name a function."""
    spellings = (path, f"{path}.py", f"{path.rpartition('.')[0]}.py")
    return any(list(base.glob(spelling)) for base in (ROOT, SOURCE) for spelling in spellings)


def test_paths_in_documents_are_those_of_the_tree() -> None:
    found = [(page.name, path) for page in PAGES for path in paths(page.read_text())]
    assert len(found) > 100
    assert [place for place in found if not names_a_file(place[1])] == []


def spoken(tree: ast.AST) -> Iterator[str]:
    """Yield the texts of a module that are no docstrings: what stands in expressions of their own."""
    silent = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in silent:
            yield node.value


@pytest.mark.slow
@pytest.mark.ci
def test_messages_name_documents_as_the_command_line_does() -> None:
    texts = [(path.name, text) for path in SOURCE.rglob("*.py") for text in spoken(parsed(path))]
    named = [name for _, text in texts for name in re.findall(r"polyloom docs ([a-z]\w*)", text)]
    assert len(named) > 3
    assert {name for name in named if not (ROOT / "docs" / f"{name}.md").is_file()} == set()
    assert [place for place in texts if re.search(r"docs/\w+\.md", place[1])] == []
