"""The house in numbers: ``python benchmarks/house.py [src/polyloom]`` measures any checkout of the package.

Files and import levels of each folder, statements of the syntax trees, sizes of functions, docstrings. A
folder's import levels are the longest chain of modules in it, or below it, that import each other.
"""

from __future__ import annotations

import ast
import statistics
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

HERE = Path(__file__).parents[1] / "src" / "polyloom"
Trees = Mapping[Path, ast.Module]
Function = ast.FunctionDef | ast.AsyncFunctionDef


def main(package: Path) -> None:
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(package.rglob("*.py"))}
    nodes = [node for tree in trees.values() for node in ast.walk(tree)]
    sizes = sorted((n.end_lineno or 0) - n.lineno + 1 for n in nodes if isinstance(n, Function))
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in trees)
    print(f"files {len(trees)}, lines {lines:,}, statements {sum(isinstance(n, ast.stmt) for n in nodes):,}")
    print(f"functions {len(sizes):,}: median {statistics.median(sizes):.0f} lines, largest {sizes[-1]}")
    print(f"public functions and classes with a docstring: {_documented(trees):.1%}")
    print("\n| folder | files | lines | import levels |\n|---|---:|---:|---:|")
    for folder in sorted({path.parent for path in trees}):
        print(_row(package, folder, trees))


def _documented(trees: Trees) -> float:
    defined = (n for tree in trees.values() for n in _definitions(tree))
    public = [n for n in defined if isinstance(n, ast.ClassDef | Function) and n.name[0] != "_"]
    return sum(ast.get_docstring(n) is not None for n in public) / len(public)


def _definitions(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.iter_child_nodes(tree):
        yield node
        if isinstance(node, ast.ClassDef):
            yield from _definitions(node)


def _row(package: Path, folder: Path, trees: Trees) -> str:
    here = [path for path in trees if path.parent == folder and path.name != "__init__.py"]
    inside = {path: trees[path] for path in trees if path.is_relative_to(folder)}
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in here)
    name = folder.relative_to(package).as_posix()
    return f"| `{name}/` | {len(here)} | {lines:,} | {levels(package, inside)} |"


def levels(package: Path, trees: Trees) -> int:
    """Return the length of the longest chain of imports among some modules; a ring counts once."""
    names = {_module(package, path): path for path in trees}
    graph = {name: {m for m in _imported(trees[path]) if m in names} - {name} for name, path in names.items()}
    open_: set[str] = set()

    @cache
    def depth(name: str) -> int:
        open_.add(name)
        found = 1 + max((depth(m) for m in graph[name] if m not in open_), default=0)
        open_.discard(name)
        return found

    return max(map(depth, graph), default=0)


def _module(package: Path, path: Path) -> str:
    parts = path.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imported(tree: ast.Module) -> Iterable[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


if __name__ == "__main__":
    sys.setrecursionlimit(10_000)
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
