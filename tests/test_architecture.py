"""Data flows downwards: a room imports only rooms below it, and isl is spoken in few of them."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from rooms import first_line, page

TESTS = Path(__file__).parent
SOURCE = TESTS.parent / "src"
FILES = sorted((SOURCE / "polyloom").rglob("*.py"))

OF_THE_WHOLE = {"fuzz", "mutants"}
"""Folders of tests that try the whole of the compiler, and no room of it."""

ROOMS = (
    ("__main__",),
    ("cli",),
    ("__init__",),
    ("onnx_backend", "torch_backend"),
    ("function",),
    ("targets",),
    ("api",),
    ("report",),
    ("device_pipeline", "pipeline"),
    ("models", "shipped", "side_by_side"),
    ("csl",),
    ("wafer", "mdh", "sources"),
    ("oracle",),
    ("frontends",),
    ("scop",),
    ("ir",),
    ("polyhedra",),
    ("workers",),
    ("c_compilers", "folders", "caches"),
    ("files", "programs"),
    ("diagnostics",),
)
"""From the top to the bottom; the rooms of one floor do not import each other."""

FORBIDDEN = {(back, front) for back in ("wafer", "mdh") for front in ("frontends", "scop", "oracle")}
"""Arrows that lead down and are wrong all the same: a back end knows no front end."""

FLOORS = {
    "csl": (
        ("runner",),
        ("host",),
        ("compile",),
        ("overview", "survey"),
        ("fabric", "lint", "lowering"),
        ("compiled",),
        ("comptime",),
        ("library", "values"),
        ("types",),
        ("syntax",),
    ),
    "api": (
        ("layers", "network", "simulation", "tuning"),
        ("alike_layers", "evaluation", "opencl", "wafer"),
        ("attempts", "mapping"),
        ("loops", "reading"),
        ("processor",),
    ),
    "wafer": (
        ("explain",),
        ("network",),
        ("csl_output", "simulation"),
        ("host", "placement"),
        ("program",),
        ("codegen",),
        ("decisions", "roles"),
        ("analysis", "array_layout"),
        ("collectives", "routing", "simd"),
        ("border", "drivers", "pe_program"),
        ("dataflow",),
        ("mapping", "simulator", "vector_functions"),
        ("machine",),
    ),
    "mdh": (
        ("restored", "running"),
        ("compiled",),
        ("split",),
        ("dropin", "tuning"),
        ("native",),
        ("cuda",),
        ("runtime",),
        ("explain",),
        ("lowering",),
        ("print",),
        ("schedule",),
        ("tree",),
        ("device",),
    ),
    "ir": (
        ("conversion",),
        ("transform",),
        ("verification",),
        ("rounding",),
        ("evaluation",),
        ("text",),
        ("node_names", "relations"),
        ("program",),
        ("statements",),
        ("inequalities", "order", "reductions"),
        ("host", "integer_values", "procedures", "rebuild", "value_ranges"),
        ("expressions",),
        ("conditions", "scalar_functions"),
        ("integers", "naming", "types"),
    ),
    "scop": (
        ("transform",),
        ("lowering",),
        ("preparation",),
        ("schedule",),
        ("dependence",),
        ("joined_reads",),
        ("model", "rewrite"),
    ),
    "frontends.c": (
        ("document", "standalone"),
        ("read",),
        ("enter", "parameters", "walk"),
        ("expressions", "finish"),
        ("counted_loops", "escaping", "integers", "row_pointers"),
        ("scope",),
        ("syntax",),
    ),
    "function": (
        ("kept_graphs", "loading"),
        ("kept", "open_sizes"),
        ("saved", "saved_jits"),
        ("functions", "jitted"),
        ("batches", "jit_documents", "pages", "saving"),
        ("arguments", "container", "python_sources"),
    ),
    "frontends.lair": (("unused",), ("from_program", "lower"), ("lowering",), ("syntax",)),
}
"""Inside large rooms, from the top to the bottom; rooms and modules of one floor do not import each other."""

MOST_FILES = 16
"""Modules in a folder, at most, but for those of ``UNDIVIDED``, which have one purpose all the same."""

UNDIVIDED = {"frontends/graph/operations": "one module per group of operations"}

LONGEST_FUNCTION = 80
LONGEST_FILE = 700
"""Lines, at most, without exceptions; docstrings count."""

ISL = (
    *("polyhedra/", "ir/relations.py", "wafer/", "scop/", "frontends/c/", "frontends/python/"),
    *("function/jitted.py", "function/jit_documents.py", "oracle/interpreter.py"),
)


@dataclass(frozen=True)
class Import:
    """``file:line`` imports ``module``."""

    file: str
    line: int
    module: str

    @property
    def importer(self) -> str:
        """The importing module, without the package's name."""
        return self.file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    def __str__(self) -> str:
        return f"{self.file}:{self.line} imports {self.module}"


@cache
def parsed(path: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imports(root: Path = SOURCE) -> tuple[Import, ...]:
    """Return every import, also those inside functions and for type checking."""
    return tuple(_imports(root))


def _imports(root: Path) -> Iterator[Import]:
    for path in sorted((root / "polyloom").rglob("*.py")):
        file = path.relative_to(root / "polyloom").as_posix()
        for node in ast.walk(parsed(path)):
            yield from (Import(file, line, module) for line, module in _modules(node, path, root))


def _modules(node: ast.AST, path: Path, root: Path) -> Iterator[tuple[int, str]]:
    match node:
        case ast.Import(names=names):
            yield from ((node.lineno, alias.name) for alias in names)
        case ast.ImportFrom(module="polyloom", level=0, names=names):
            yield from ((node.lineno, f"polyloom.{alias.name}") for alias in names)
        case ast.ImportFrom(module=module, level=0):
            yield node.lineno, str(module)
        case ast.ImportFrom():
            raise AssertionError(f"{path.relative_to(root)}:{node.lineno}: a relative import")


def room(module: str, package: str = "") -> str:
    """Return the room that a module of a package lies in; the empty text for one of another package."""
    inside = module if not package else module.removeprefix(package + ".") if module != package else ""
    return "" if package and inside == module else inside.partition(".")[0]


def floor(name: str, package: str = "") -> int:
    floors = FLOORS[package] if package else ROOMS
    found = [number for number, rooms in enumerate(floors) if name in rooms]
    where = f"FLOORS[{package!r}]" if package else "ROOMS"
    assert found, f"`{name}` is a room that ARCHITECTURE.md does not know: give it a floor in {where}"
    return found[0]


def broken_arrows(found: Iterable[Import], package: str = "") -> list[str]:
    """Return the imports that lead up, sideways, or where they must not: between the rooms of a package."""
    broken = []
    for arrow in found:
        if not arrow.module.startswith("polyloom."):
            continue
        above, below = room(arrow.importer, package), room(arrow.module.removeprefix("polyloom."), package)
        if not above or not below:
            continue
        down = above == below or floor(above, package) < floor(below, package)
        if not down or (above, below) in FORBIDDEN:
            broken.append(f"{arrow} ({above} -> {below})")
    return broken


GRAPHS = {"protobuf": 0, "graph": 1, "onnx": 2, "tensorflow": 2, "torch": 2}
"""The front ends of frameworks: those of a higher number import those below, and not each other."""


def test_frameworks_share_the_neutral_graph_and_nothing_else() -> None:
    wrong = []
    for arrow in imports():
        above, below = arrow.file.split("/"), arrow.module.split(".")
        if above[0] != "frontends" or below[:2] != ["polyloom", "frontends"] or len(below) < 3:
            continue
        room_above, room_below = above[1], below[2]
        if room_above in GRAPHS and room_above != room_below:
            lower = GRAPHS.get(room_below, -1 if room_below == "lair" else 9)
            wrong += [str(arrow)] if lower >= GRAPHS[room_above] else []
    assert wrong == []


def test_data_flows_downwards() -> None:
    assert broken_arrows(imports()) == []


@pytest.mark.parametrize("package", FLOORS)
def test_data_flows_downwards_inside_a_room(package: str) -> None:
    inside = [arrow for arrow in imports() if (arrow.importer + ".").startswith(package + ".")]
    assert len(inside) > 20
    assert broken_arrows(inside, package) == []


def test_no_room_holds_more_than_one_can_overlook() -> None:
    files = Counter(path.parent for path in SOURCE.rglob("*.py") if path.name != "__init__.py")
    folders = {path.relative_to(SOURCE / "polyloom").as_posix(): n for path, n in files.items()}
    assert {name: n for name, n in folders.items() if n > MOST_FILES and name not in UNDIVIDED} == {}


def too_long(files: Iterable[Path], function: int = LONGEST_FUNCTION, file: int = LONGEST_FILE) -> list[str]:
    """Return the files and functions of more lines."""
    found = []
    for path in files:
        text = path.read_text(encoding="utf-8")
        found += [path.name] if len(text.splitlines()) > file else []
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or 0) - node.lineno + 1
                found += [f"{path.name}: {node.name}, {lines} lines"] if lines > function else []
    return found


def test_functions_and_files_are_short() -> None:
    assert too_long(FILES) == []


def test_what_is_too_long_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("def f():\n    def g():\n        pass\n    return g\n")
    assert too_long([path], 4, 4) == []
    assert too_long([path], 1, 3) == ["a.py", "a.py: f, 4 lines", "a.py: g, 2 lines"]


def test_every_file_says_what_it_is_for() -> None:
    assert [str(path) for path in FILES if len(first_line(path).split()) < 3] == []


def test_nothing_imports_the_command_line() -> None:
    arrows = [a for a in imports() if a.module.startswith("polyloom.cli")]
    assert [str(a) for a in arrows if room(a.importer) not in ("cli", "__main__")] == []


def test_isl_is_spoken_in_few_rooms() -> None:
    arrows = [a for a in imports() if a.module.partition(".")[0] == "islpy"]
    assert len(arrows) > 5
    assert [str(a) for a in arrows if not a.file.startswith(ISL)] == []


def test_extreme_values_of_sets_are_asked_in_one_place() -> None:
    """isl's own answer is wrong where a first disjunct is empty: see ``polyhedra/bounds``."""
    asked = re.compile(r"\.(dim_)?(min|max)_val\(")
    assert [path.name for path in FILES if asked.search(path.read_text())] == ["bounds.py"]


def test_the_oracle_shares_nothing_with_the_transformations() -> None:
    arrows = [a for a in imports() if a.file.startswith("oracle/") and ".scop" in a.module]
    assert {a.module for a in arrows} == {"polyloom.scop.model"}


@pytest.mark.parametrize(
    ("file", "text", "arrow"),
    [
        ("ir/a.py", "from polyloom.wafer.dataflow.tasks import x", "ir -> wafer"),
        ("wafer/a.py", "def f():\n    import polyloom.frontends.lair", "wafer -> frontends"),
        ("polyhedra/a.py", "from polyloom import ir", "polyhedra -> ir"),
        ("wafer/a.py", "from polyloom.sources import load_program", "wafer -> sources"),
        ("report/a.py", "from polyloom.cli.main import main", "report -> cli"),
    ],
)
def test_a_broken_arrow_is_named(tmp_path: Path, file: str, text: str, arrow: str) -> None:
    path = tmp_path / "polyloom" / file
    path.parent.mkdir(parents=True)
    path.write_text(text)
    (broken,) = broken_arrows(imports(tmp_path))
    assert broken.startswith(f"{file}:") and broken.endswith(f"({arrow})")


def test_no_two_test_files_have_one_name() -> None:
    """Tests and their helpers are imported by their names alone, wherever they lie."""
    names = [path.name for path in TESTS.rglob("*.py") if path.name != "make_cases.py"]
    assert sorted(names) == sorted(set(names))


def test_tests_lie_as_the_source_does() -> None:
    rooms = {path.parent.relative_to(SOURCE / "polyloom") for path in SOURCE.rglob("*.py")}
    found = {path.parent.relative_to(TESTS) for path in TESTS.rglob("test_*.py")}
    assert {str(folder) for folder in found - rooms} == OF_THE_WHOLE


def test_the_page_of_rooms_is_that_of_the_source(golden: Callable[[Path, str], None]) -> None:
    golden(TESTS.parent / "docs" / "rooms.md", page())
