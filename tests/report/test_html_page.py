"""The page as text: what it says is what was found, it loads nothing, and nothing in it can break it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reports import simulated
from test_html_packing import unpacked, unpacked_json

from polyloom.diagnostics import PolyloomError
from polyloom.ir.program import Program
from polyloom.report.html import page_text, write_report
from polyloom.report.html.environment import shown
from polyloom.wafer.simulation.result import SimulationResult

VOID = {"meta", "input", "br", "path", "rect", "i"}


class Page(HTMLParser):
    """The text of each element with an id, the rows of each table, and every attribute that could load."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text: dict[str, str] = {}
        self.loads: list[str] = []
        self.open: list[tuple[str, str | None]] = []
        self.rows = 0
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        named = dict(attributes)
        self.loads += [
            str(v) for k, v in attributes if k in ("src", "href", "srcset") and not str(v).startswith("#")
        ]
        self.rows += tag == "tr"
        if tag not in VOID:
            self.open.append((tag, named.get("id")))

    def handle_endtag(self, tag: str) -> None:
        while tag not in VOID and self.open and self.open.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        for _, name in self.open:
            if name is not None:
                self.text[name] = self.text.get(name, "") + data


@pytest.fixture(scope="module")
def conv1d() -> SimulationResult:
    return simulated("conv1d", "conv1d")


def data_of(text: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(Page(text).text["data"])
    return data


def test_the_page_loads_nothing(conv1d: SimulationResult) -> None:
    text = page_text(conv1d)
    assert Page(text).loads == []
    assert not re.findall(r"(?:https?:)?//(?!www\.w3\.org/2000/svg)[a-z0-9.-]+\.[a-z]{2,}", text)
    assert "default-src 'none'" in text


def test_the_same_result_gives_the_same_page(conv1d: SimulationResult) -> None:
    assert page_text(conv1d) == page_text(conv1d)


def test_figures_of_the_summary(conv1d: SimulationResult) -> None:
    page = Page(page_text(conv1d))
    s = conv1d.simulation
    for figure in (s.cycles, s.limit.cycles, s.simd_operations, s.wavelets, s.memory_bytes):
        assert f"{figure:,}" in page.text["summary"]
    assert "equal to the evaluator's results" in page.text["verdict"]


def test_every_task_is_decided_and_every_role_is_listed() -> None:
    result = simulated("training", "training")
    page = Page(page_text(result))
    for name in ("ff", "fg", "fd", "update"):
        assert name in page.text["decisions"] and name in page.text["task-graph"]
    for role in result.program.roles:
        assert role.code.name in page.text["roles-table"]
    for color, what in result.program.routing.colors:
        assert f"{color}{what}" in re.sub(r"\s*\n\s*", "", page.text["colors-table"])
    assert page.text["map"].strip().startswith(("#", "size"))


def test_heat_maps_are_what_was_counted() -> None:
    result = simulated("ff", "ff55_one_port")
    layers = {layer["name"]: unpacked(layer["values"]) for layer in data_of(page_text(result))["layers"]}
    use = result.simulation.link_use.reshape(25, 5)
    assert (layers["busy"] == result.simulation.busy.ravel()).all()
    assert (layers["wavelets"] == use.sum(axis=1)).all() and (layers["link"] == use.max(axis=1)).all()
    assert layers["memory"].max() == result.simulation.memory_bytes
    assert {int(n) for n in layers["role"]} == set(range(len(result.program.roles)))


def test_routes_lead_on() -> None:
    """What leaves a PE to a side is taken there from the opposite side, as the simulator demands."""
    result = simulated("ff", "ff55_one_port")
    data = data_of(page_text(result))
    step = {"north": (0, -1), "south": (0, 1), "east": (1, 0), "west": (-1, 0)}
    back = {"north": "south", "south": "north", "east": "west", "west": "east"}
    taken, sent = set(), set()
    for route in data["routes"]:
        bits = np.unpackbits(np.frombuffer(_bytes(route["on"]), np.uint8), bitorder="little")[:25]
        for k in np.flatnonzero(bits):
            x, y = int(k) % 5, int(k) // 5
            taken.add((route["color"], x, y, route["source"]))
            for side in set(route["targets"]) & step.keys():
                dx, dy = step[side]
                sent.add((route["color"], x + dx, y + dy, back[side]))
    inside = {s for s in sent if 0 <= s[1] < 5 and 0 <= s[2] < 5}
    assert inside and inside <= taken


def _bytes(packed: dict[str, Any]) -> bytes:
    import base64
    import zlib

    return zlib.decompress(base64.b64decode(packed["data"]))


def test_names_cannot_end_the_script_or_the_page(conv1d: SimulationResult) -> None:
    result = replaced_name(conv1d, "</script><blink>&\"'")
    page = Page(page_text(result))
    assert json.loads(page.text["data"])["roles"]
    assert "<blink>" not in page_text(result) and "</script><blink>&\"'" in page.text["program"]


@pytest.mark.parametrize("character", ["\x1b", "\x07", "\x9b", "\x00", "\u202e", "\u2066", "\ud800"])
def test_control_characters_of_names_are_shown_as_escapes(conv1d: SimulationResult, character: str) -> None:
    text = page_text(replaced_name(conv1d, f"a{character}b"))
    escape = character.encode("unicode_escape").decode()
    assert character not in text
    assert f"a{escape}b" in Page(text).text["program"]


def test_control_characters_of_data_are_shown_as_escapes() -> None:
    assert shown({"a\x1b": ["\u202e", ("\x07\n", 3)]}) == {"a\\x1b": ["\\u202e", ["\\x07\n", 3]]}


def replaced_name(result: SimulationResult, name: str) -> SimulationResult:
    analysis = result.program.analysis
    program: Program = replace(analysis.program, name=name)
    return replace(result, program=replace(result.program, analysis=replace(analysis, program=program)))


def test_a_page_is_written_whole_or_not_at_all(conv1d: SimulationResult, tmp_path: Path) -> None:
    write_report(tmp_path / "r.html", conv1d)
    assert (tmp_path / "r.html").read_text(encoding="utf-8").endswith("</html>\n")
    with pytest.raises(PolyloomError) as caught:
        write_report(tmp_path / "none" / "r.html", conv1d)
    assert caught.value.diagnostics[0].code == "file-unwritable"
    assert [path.name for path in tmp_path.iterdir()] == ["r.html"]


def test_maps_that_were_compared(conv1d: SimulationResult) -> None:
    from polyloom.wafer.placement.candidates import Candidate

    text = page_text(
        conv1d, [Candidate("size: { PE[1, 1] }", 123456.0), Candidate("size: { PE[2, 1] }", 2e5)]
    )
    compared = Page(text).text["candidates"]
    assert "among 2" in compared and "123,456" in compared and "PE[2, 1]" in compared
    assert "candidates" not in Page(page_text(conv1d)).text


def test_without_a_trace_there_are_no_time_lines(conv1d: SimulationResult) -> None:
    bare = replace(conv1d, simulation=replace(conv1d.simulation, trace=None), check=None)
    text = page_text(bare)
    assert (
        unpacked_json(data_of(text)["timelines"])["pes"] == [] and "not checked" in Page(text).text["verdict"]
    )
