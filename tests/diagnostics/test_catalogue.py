"""Every code of a diagnostic is on the page of them, and is brought about by a test."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import diagnostics as catalogue
import polyloom
from polyloom import caches
from polyloom.diagnostics import PolyloomError, Source
from polyloom.frontends.c import read_c
from polyloom.frontends.protobuf import reading
from polyloom.scop.transform import host_program

TESTS = Path(__file__).parents[1]
EXAMPLES = TESTS.parent / "examples"

UNTESTED = {
    "database-damaged": "entries whose digest is right and whose text is not",
    "device-broken": "a driver that lists a device and cannot open it",
    "mdh-operator": "the reader of the pragma knows operators already (c-mdh-pragma)",
    "model-signature": "SavedModels of several signatures: tests with TensorFlow alone make them",
    "model-tensorflow": "tests with TensorFlow alone bring it about",
    "opencl-scatter": "no front end makes a histogram with a finishing map",
    "schedule-hard": "a schedule by hand on which isl is given up",
    "simulator-load": "a folder from which no program may be run",
    "tuning-unchecked": "a program that was tuned and cannot be evaluated",
}
"""Codes that no test brings about, each with what it would take."""


def texts() -> Iterator[str]:
    own = Path(__file__)
    for path in TESTS.rglob("*"):
        if path.suffix in (".py", ".err", ".txt", ".json") and path != own:
            yield path.read_text(errors="replace")


@pytest.mark.slow
@pytest.mark.ci
def test_the_page_is_that_of_the_source(golden: Callable[[Path, str], None]) -> None:
    golden(TESTS.parent / "docs" / "diagnostics.md", catalogue.page())


def test_every_code_is_brought_about_by_a_test() -> None:
    shown = "\n".join(texts())
    codes = {entry.code for entry in catalogue.said(catalogue.SOURCE)}
    assert len(codes) > 150
    assert {code for code in codes if code not in shown} - {*HERE, *REMARKS} == set(UNTESTED)


def a_temporary_folder(monkeypatch: pytest.MonkeyPatch) -> Any:
    def full(**_: Any) -> str:
        raise OSError("no space left on device")

    monkeypatch.setattr(tempfile, "mkdtemp", full)
    return caches.temporary_folder.__wrapped__()


def a_large_model(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(reading, "LARGEST_FILE", 10)
    return polyloom.read_model(EXAMPLES / "models" / "cnn.onnx")


def an_unknown_reduction(_: pytest.MonkeyPatch) -> Any:
    program = polyloom.read_program(EXAMPLES / "conv1d.lair")
    mapping = polyloom.read_mapping(EXAMPLES / "conv1d.map", program)
    return polyloom.explain(program, mapping, reduction="heap")


def loops_as_a_model(_: pytest.MonkeyPatch) -> Any:
    return polyloom.read_model(EXAMPLES / "c" / "lu.c")


HERE: dict[str, Callable[[pytest.MonkeyPatch], Any]] = {
    "folder-none": a_temporary_folder,
    "model-large": a_large_model,
    "reduction-unknown": an_unknown_reduction,
    "source-kind": loops_as_a_model,
}
REMARKS = ("c-nonaffine", "scop-serial")


@pytest.mark.parametrize("code", HERE)
def test_what_needs_something_out_of_the_way(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(PolyloomError) as caught:
        HERE[code](monkeypatch)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == code
    assert diagnostic.helps


def part(loop: str) -> Source:
    head = "void f(int n, float x[n], float y[n])"
    return Source("part.c", f"{head} {{\n#pragma scop\n{loop}\n#pragma endscop\n}}\n")


def test_a_subscript_that_is_not_affine_is_remarked_on() -> None:
    (scop,) = read_c(part("for (int i = 0; i < n; i++) y[i] = x[i * i % n];"))
    assert [r.code for r in scop.remarks] == list(REMARKS[:1])


def test_a_serial_loop_is_remarked_on() -> None:
    (scop,) = read_c(part("for (int i = 2; i < n; i++) x[i] = x[i - 1] * x[i - 2];"))
    assert REMARKS[1] in [r.code for r in host_program(scop).remarks]
