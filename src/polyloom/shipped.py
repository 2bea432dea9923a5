"""What comes with Polyloom beside its code: examples and documents, in the wheel and in a clone."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from polyloom.diagnostics import PolyloomError, error
from polyloom.files import refusing_unwritable, umask

_WHEEL = Path(__file__).parent / "shipped"
_CLONE = Path(__file__).parents[2]
_LAYERS = "layers.txt"
_PROGRAMS = "programs.txt"
_LISTED = re.compile(r"\[(\w+)\.md\]\(\w+\.md\): ([^;\n]*)")
"""A page in the list of documents, and what is said of it."""


@dataclass(frozen=True)
class Example:
    """An example: its file, and a command that shows what it is for, run where the examples lie."""

    file: str
    command: str


def folder(name: str) -> Path:
    """Return the folder ``examples`` or ``docs``: of the wheel, else of the clone that Polyloom runs from.

    Raises PolyloomError ``shipped-missing`` where neither is there.
    """
    for place in (_WHEEL, _CLONE):
        if (place / name).is_dir():
            return place / name
    helps = ["install the wheel, or run Polyloom from a clone of its repository"]
    raise PolyloomError(error("shipped-missing", f"this Polyloom came without `{name}`", helps=helps))


def examples() -> list[Example]:
    """Return all examples: C programs and models, then layers with a map each."""
    return list(_examples(folder("examples")))


def _examples(place: Path) -> Iterator[Example]:
    for program, *given in _rows(place / _PROGRAMS):
        yield Example(program, " ".join(["polyloom run", f"examples/{program}", *given, "--check"]))
    shown = set()
    for layer_map, layer, *sizes in _rows(place / _LAYERS):
        if layer not in shown:
            shown.add(layer)
            files = f"examples/{layer}.lair --map examples/{layer_map}.map"
            given = [f"-D {size}" for size in sizes]
            yield Example(f"{layer}.lair", " ".join(["polyloom simulate", files, *given, "--check"]))


def _rows(listing: Path) -> Iterator[list[str]]:
    for line in listing.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            yield line.split()


def copy_examples(target: Path) -> int:
    """Copy all examples to a new folder, or an empty one, completely or not at all; return how many files.

    Raises PolyloomError ``folder-occupied``, ``file-unwritable``.
    """
    place = folder("examples")
    target = target.resolve()
    with refusing_unwritable(target):
        if target.exists() and not (target.is_dir() and not any(target.iterdir())):
            helps = ["choose a new folder"]
            raise PolyloomError(error("folder-occupied", f"`{target}` is there, and not empty", helps=helps))
        target.parent.mkdir(parents=True, exist_ok=True)
        staged = Path(tempfile.mkdtemp(dir=target.parent, prefix=".polyloom-"))
        try:
            whole = staged / target.name
            shutil.copytree(place, whole, ignore=shutil.ignore_patterns("__pycache__"))
            whole.chmod(0o777 & ~umask())
            whole.rename(target)  # over an empty folder, too
        finally:
            shutil.rmtree(staged, ignore_errors=True)
    return sum(path.is_file() for path in target.rglob("*"))


def pages() -> dict[str, str]:
    """Return the documents: each page's name, and what it is about."""
    index = (folder("docs") / "README.md").read_text(encoding="utf-8")
    return {name: about.strip(" ;.\n") for name, about in _LISTED.findall(index)}


def page(name: str) -> str:
    """Return the text of a document by its name, ``models`` or ``models.md``.

    Raises PolyloomError ``document-unknown``.
    """
    place = folder("docs")
    bare = name.removesuffix(".md").removeprefix("docs/")
    known = sorted(path.stem for path in place.glob("*.md"))
    if bare not in known:
        helps = ["the documents are: " + ", ".join(f"`{other}`" for other in known)]
        raise PolyloomError(error("document-unknown", f"there is no document `{name}`", helps=helps))
    return (place / f"{bare}.md").read_text(encoding="utf-8")
