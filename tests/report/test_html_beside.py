"""Two pages as one: the figures of both, what differs, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from reports import simulated

from polyloom.cli.main import run
from polyloom.report.html import write_report
from polyloom.report.html.beside import beside_page, function_rows, read_data
from polyloom.report.html.listing import cycles_of_functions, listings


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("pages")
    write_report(folder / "auto.html", simulated("conv1d", "conv1d"))
    write_report(folder / "off.html", simulated("conv1d", "conv1d", simd="off"))
    return folder / "auto.html", folder / "off.html"


@pytest.mark.slow
@pytest.mark.ci
def test_a_page_gives_its_data_back(pages: tuple[Path, Path]) -> None:
    data = read_data(pages[0])
    result = simulated("conv1d", "conv1d")
    assert data["summary"]["cycles"] == result.cycles == data["cycles"]
    assert data["summary"]["functions"] == cycles_of_functions(listings(result))


def test_functions_of_either_run_are_rows(pages: tuple[Path, Path]) -> None:
    first: dict[str, Any] = {"functions": {"a": 10, "b": 5, "gone": 1}}
    second: dict[str, Any] = {"functions": {"a": 40, "b": 5, "new": 7}}
    rows = function_rows(first, second)
    assert [(r.label, r.first, r.second) for r in rows] == [
        ("a", 10, 40),
        ("new", 0, 7),
        ("gone", 1, 0),
        ("b", 5, 5),
    ]
    assert [r.ratio for r in rows] == [4, None, None, 1]


def test_both_runs_are_on_the_page(pages: tuple[Path, Path], tmp_path: Path) -> None:
    assert run(["report", *map(str, pages), "-o", str(tmp_path / "both.html")]) == 0
    text = (tmp_path / "both.html").read_text()
    fast, slow = (simulated("conv1d", "conv1d", **more) for more in ({}, {"simd": "off"}))
    assert f"{fast.cycles:,}" in text and f"{slow.cycles:,}" in text
    assert f"off takes {slow.cycles / fast.cycles:.3g} times the cycles of auto" in text
    assert "default-src 'none'" in text and text.count("the same</p>") == 2


def test_names_cannot_break_the_page(pages: tuple[Path, Path]) -> None:
    first = read_data(pages[0])
    first["summary"]["program"] = "</pre><script>x"
    text = beside_page(first, read_data(pages[1]), ("<b>", "off"))
    assert "<script>x" not in text and "<b>:" not in text


@pytest.mark.parametrize("content", ["", "<p>", '<script type="application/json" id="data">{</script>'])
def test_what_is_no_report_is_refused(
    content: str, pages: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x.html").write_text(content)
    assert run(["report", str(tmp_path / "x.html"), str(pages[0]), "-o", str(tmp_path / "o.html")]) == 1
    said = capsys.readouterr().err
    assert "report-unreadable" in said and "simulate --report" in said
    assert not (tmp_path / "o.html").exists()
