"""Small programs in CSL for tests: evaluated, laid out, and what is said of wrong ones."""

from __future__ import annotations

from pathlib import Path

from polyloom.csl import library
from polyloom.csl.comptime import (
    Layout,
    Loader,
    Program,
    SourceFile,
    elaborate,
    run_layout,
)
from polyloom.csl.syntax import parse
from polyloom.csl.values import Value, Variable
from polyloom.diagnostics import Diagnostic, PolyloomError, Source


def program(
    text: str, parameters: dict[str, Value] | None = None, arch: str = "wse2", folder: Path | None = None
) -> Program:
    """Return an elaborated PE program whose text is given."""
    source = Source("pe.csl", text)
    file = SourceFile("pe.csl", Path("pe.csl") if folder is None else folder / "pe.csl", parse(source))
    return elaborate(Loader(library.source), file, parameters or {}, arch, (3, 2))


def value(text: str, name: str = "x", **given: Value) -> Value:
    """Return the value of a global of a program."""
    found = program(text, given)
    for module, wrong, fault in found.unused_faults:
        if wrong == name and module is found.root:
            raise fault
    member = found.root.member(name)
    assert isinstance(member, Variable)
    return member.value


def layout(folder: Path, files: dict[str, str], arch: str = "wse2", **parameters: int) -> Layout:
    """Return the layout of a program whose files are given; ``layout.csl`` is the first."""
    for name, text in files.items():
        (folder / name).write_text(text)
    return run_layout(Loader(library.source), folder / "layout.csl", arch, parameters)


def fault_of(text: str, arch: str = "wse2") -> Diagnostic:
    """Return the one diagnostic of a wrong program; the first fault of a global, used or not."""
    try:
        found = program(text, arch=arch)
        for _, _, fault in found.unused_faults:
            raise fault
    except PolyloomError as wrong:
        (one,) = wrong.diagnostics
        return one
    raise AssertionError("nothing is wrong")
