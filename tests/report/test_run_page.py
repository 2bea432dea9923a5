"""The page of a run on the processor: its figures, its pictures, and where nothing is known."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest

import polyloom
from polyloom.cli.main import run
from polyloom.mdh.device.devices import DeviceKind
from polyloom.mdh.native.device import choose
from polyloom.mdh.schedule.schedules import plain_schedule
from polyloom.report.run_page.drawing import LogAxis
from polyloom.report.run_page.kernels import Kernel, Timing, kernels_of
from polyloom.report.run_page.pictures import Roof, roof_of, roofline, tiling, tuning_history

EXAMPLES = Path(__file__).parents[2] / "examples"
GEMM = Kernel(
    name="S",
    launches=1,
    seconds=1e-3,
    origin="tuned",
    operations=2 * 60 * 40 * 30,
    bytes=4 * (60 * 30 + 30 * 40 + 60 * 40),
    iterators=("i", "j", "k"),
    extents=(60, 40, 30),
    schedule=replace(
        plain_schedule(3, 2), group=(20, 10, 0), local=(0, 0, 15), private=(5, 1, 1), vector=1, width=2
    ),
)


def boxes(svg: Any, kind: str) -> list[dict[str, str]]:
    return [dict(e.attrib) for e in ET.fromstring(str(svg)) if e.attrib.get("class", "") == kind]


def test_the_page_of_a_c_function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "gemm.html"
    sizes = [f"--param={name}={size}" for name, size in zip("nmk", (24, 16, 8), strict=True)]
    assert run(["run", str(EXAMPLES / "c/gemm.c"), *sizes, "--check", "--report", str(page)]) == 0
    text = page.read_text()
    assert "check passed" in text and "default-src 'none'" in text and "<svg" in text
    found = re.search(r'id="data">(.*?)</script>', text)
    assert found is not None
    summary = json.loads(found[1])["summary"]
    assert summary["unit"] == "µs" and summary["cycles"] > 0
    assert sum(summary["functions"].values()) == pytest.approx(summary["cycles"], rel=0.5)
    # alpha * A * B and a sum: three operations a point
    assert f"{3 * 24 * 16 * 8 / (summary['functions']['S2'] * 1e-6) / 1e9:.3g}" in text


def test_two_runs_are_compared(tmp_path: Path) -> None:
    pages = [tmp_path / f"{threads}.html" for threads in (1, 2)]
    for threads, page in enumerate(pages, 1):
        more = [f"--threads={threads}", "--report", str(page)]
        assert run(["run", str(EXAMPLES / "conv1d.lair"), *more]) == 0
    assert run(["report", *map(str, pages), "-o", str(tmp_path / "both.html")]) == 0
    text = (tmp_path / "both.html").read_text()
    assert "times the µs of 1" in text and 'id="grid-0"' not in text


def test_a_map_and_its_reduction_in_one_loop_are_drawn_as_the_reduction(tmp_path: Path) -> None:
    n, m = 256, 512
    source = "void g(int n, int m, float A[n][m], float x[m], float y[n]) { for (int i = 0; i < n; i++)"
    source += " for (int j = 0; j < m; j++) { A[i][j] = A[i][j] * 2 + 1; y[i] += A[i][j] * x[j]; } }"
    function = polyloom.load(source, n=n, m=m)
    kernels = kernels_of(function.run(), function.compiled, tmp_path / "none.sqlite")
    (both,) = kernels
    assert both.name == "S1, S2" and both.iterators == ("i", "j") and both.extents == (n, m)
    assert both.operations == 4 * n * m and both.bytes == 4 * (n * m + m + n)
    drawn = tiling(both)
    assert drawn is not None and "S1, S2 as tiles" in str(drawn)


def test_tiles_are_drawn_where_they_are() -> None:
    """60 x 40 points in groups of 20 x 10; a group of 20 x 10 in registers of 5 x 2, vectors of 2 along j."""
    svg = tiling(GEMM)
    (group,) = boxes(svg, "first group")
    whole, inner = boxes(svg, "whole")
    assert float(group["width"]) == pytest.approx(float(whole["width"]) / 4)
    assert float(group["height"]) == pytest.approx(float(whole["height"]) / 3)
    assert len(boxes(svg, "group")) == 3 + 2
    (register,) = boxes(svg, "first private")
    assert float(register["width"]) == pytest.approx(float(inner["width"]) / 5)
    assert float(register["height"]) == pytest.approx(float(inner["height"]) / 4)
    (vector,) = boxes(svg, "first vector")
    assert float(vector["width"]) == pytest.approx(float(inner["width"]) / 5)
    assert float(vector["height"]) == pytest.approx(float(inner["height"]) / 20, abs=0.06)


def test_one_dimension_has_a_picture_too() -> None:
    schedule = replace(plain_schedule(1, 1), group=(8,))
    svg = tiling(replace(GEMM, iterators=("i",), extents=(32,), schedule=schedule))
    assert len(boxes(svg, "group")) == 3
    assert tiling(replace(GEMM, schedule=None)) is None


def test_kernels_are_under_the_roof() -> None:
    """At the ridge a kernel that reaches the roof is where both lines meet."""
    roof = Roof(operations=1e9, bytes=1e8)
    there = replace(GEMM, operations=10_000, bytes=1000, seconds=1e-5)
    root = ET.fromstring(str(roofline([there], roof)))
    (dot,) = [e for e in root if e.tag.endswith("circle")]
    (line,) = [e for e in root if e.attrib.get("class") == "roof"]
    corner = [float(n) for n in line.attrib["points"].split()[1].split(",")]
    assert [float(dot.attrib["cx"]), float(dot.attrib["cy"])] == pytest.approx(corner, abs=0.2)
    assert "100%" in "".join(dot.itertext())
    assert roofline([replace(GEMM, operations=None)], roof) is None


def test_the_roof_of_a_processor_grows_with_its_threads() -> None:
    one = replace(choose(None, threads=1), kind=DeviceKind.CPU, vector_bytes=32)
    two = replace(one, compute_units=2)
    assert roof_of(two).operations == 2 * roof_of(one).operations
    assert roof_of(replace(one, vector_bytes=64)).operations == 2 * roof_of(one).operations
    assert roof_of(replace(one, memory_rate=1e11)).bytes == 1e11


def test_tuning_shows_the_best_until_then() -> None:
    times = [3e-4, 1e-4, 2e-4]
    root = ET.fromstring(str(tuning_history([Timing(t, confirmed=False) for t in times])))
    (line,) = [e for e in root if e.attrib.get("class") == "roof"]
    heights = [float(point.split(",")[1]) for point in line.attrib["points"].split()]
    assert heights == sorted(heights) and len(set(heights)) == 2
    assert tuning_history([Timing(1e-3, confirmed=True)]) is None


def test_axes_are_logarithmic() -> None:
    axis = LogAxis(1.0, 100.0, 0.0, 10.0)
    assert [axis.at(v) for v in (1, 10, 100)] == pytest.approx([0, 5, 10])
    assert list(axis.ticks()) == pytest.approx([1, 10, 100])
    assert np.all(np.diff([axis.at(v) for v in (1, 2, 5)]) > 0)
