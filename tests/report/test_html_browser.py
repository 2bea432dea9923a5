"""The page in a real browser: it draws, it answers to mouse and keys, nothing overflows, nothing complains.

Where there is no Chromium these tests are not run, and the summary says so.
"""

from __future__ import annotations

import base64
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from browser import Browser, find_chromium
from reports import simulated

from polyloom.api.network import simulate_one_wafer
from polyloom.api.simulation import simulate_layers
from polyloom.cli.main import run
from polyloom.report.html import write_report
from polyloom.report.html.beside import write_beside
from polyloom.report.html.layers import write_layers_report
from polyloom.report.html.network import write_network_report
from wafer.network.networks import MAPS, MLP

pytestmark = [
    pytest.mark.slow,
    pytest.mark.ci,
    pytest.mark.skipif(find_chromium() is None, reason="NOT RUN: there is no Chromium on this machine"),
]

ROOT = Path(__file__).parents[2]
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
PAINTED = """(id => { const c = document.getElementById(id), d = c.getContext('2d');
  const seen = new Set(), p = d.getImageData(0, 0, c.width, c.height).data;
  for (let k = 0; k < p.length; k += 4) seen.add(p[k] << 16 | p[k + 1] << 8 | p[k + 2]);
  return seen.size; })"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    program = find_chromium()
    assert program is not None
    with Browser(program, tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture(scope="module")
def ff(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ff") / "ff.html"
    write_report(path, simulated("ff", "ff55_one_port"))
    return path


@pytest.fixture(autouse=True)
def no_complaints(browser: Browser) -> Iterator[None]:
    browser.complaints.clear()
    yield
    assert browser.complaints == []


def on_the_grid(browser: Browser, x: int, y: int) -> tuple[float, float]:
    """Where a PE of a 5 x 5 grid is in the window."""
    browser.evaluate("document.getElementById('grid').scrollIntoView({block: 'center'})")
    box = browser.evaluate(
        "(b => [b.x, b.y, b.width, b.height])(document.getElementById('grid').getBoundingClientRect())"
    )
    size = min((box[2] - 52) / 5, (box[3] - 52) / 5, 110)
    return box[0] + box[2] / 2 + (x - 2) * size, box[1] + box[3] / 2 + (y - 2) * size


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
def test_nothing_overflows(browser: Browser, ff: Path, width: int, scheme: str) -> None:
    browser.resize(width)
    browser.prefer(scheme)
    browser.open(ff)
    browser.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert browser.evaluate(OVERFLOW) == 0
    assert browser.evaluate("document.documentElement.dataset.theme") == scheme
    assert browser.evaluate(f"{PAINTED}('grid')") > 4


def test_a_click_shows_the_time_line_of_a_pe(browser: Browser, ff: Path) -> None:
    browser.resize(1280)
    browser.open(ff)
    browser.click(*on_the_grid(browser, 2, 3))
    assert browser.evaluate("document.querySelector('#timelines h3').textContent") == "PE (2, 3)"
    assert browser.evaluate("document.getElementById('pe-list').value") == "2,3"
    status = browser.evaluate("document.getElementById('grid-status').textContent")
    assert status.startswith("PE (2, 3): busy ") and "role ff_" in status
    listed = browser.evaluate("document.getElementById('events').textContent")
    assert "handle_x" in listed and "fmach" in listed
    browser.click(*on_the_grid(browser, 4, 0), shift=True)
    shown = browser.evaluate("[...document.querySelectorAll('#timelines h3')].map(h => h.textContent)")
    assert shown == ["PE (2, 3)", "PE (4, 0)"]


def test_keys_move_and_choose(browser: Browser, ff: Path) -> None:
    browser.open(ff)
    browser.click(*on_the_grid(browser, 0, 0))
    browser.evaluate("document.getElementById('grid').focus()")
    for key, code in (("ArrowRight", 39), ("ArrowRight", 39), ("ArrowDown", 40), ("Enter", 13)):
        browser.press(key, code)
    assert browser.evaluate("document.querySelector('#timelines h3').textContent") == "PE (2, 1)"


def test_layers_and_routes_change_the_picture(browser: Browser, ff: Path) -> None:
    browser.open(ff)
    picture = "document.getElementById('grid').toDataURL()"
    seen = {browser.evaluate(picture)}
    for layer in ("memory", "wavelets", "link", "role"):
        browser.evaluate(f"document.querySelector('[data-layer={layer}]').click()")
        assert browser.evaluate(f"document.querySelector('[data-layer={layer}]').ariaPressed") == "true"
        seen.add(browser.evaluate(picture))
    browser.evaluate("document.querySelector('#routes input').click()")
    seen.add(browser.evaluate(picture))
    assert len(seen) == 6


def test_tables_and_drawings_are_there(browser: Browser, ff: Path) -> None:
    browser.open(ff)
    rows = "document.querySelectorAll('#{} tbody tr').length"
    assert browser.evaluate(rows.format("decisions")) >= 1
    assert browser.evaluate(rows.format("roles-table")) == len(simulated("ff", "ff55_one_port").program.roles)
    assert browser.evaluate("document.querySelectorAll('#task-graph rect').length") == 9


def test_the_slider_moves_the_box_over_the_instances(browser: Browser, tmp_path: Path) -> None:
    """conv1d: one arrival of x starts a diagonal of up to three instances; the hull makes it three."""
    write_report(tmp_path / "conv1d.html", simulated("conv1d", "conv1d"))
    browser.open(tmp_path / "conv1d.html")
    words = "document.getElementById('set-status').textContent"
    assert browser.evaluate(words).startswith("1 instance, 2 extra; box hull 3")
    browser.evaluate(
        "(s => { s.value = 2; s.dispatchEvent(new Event('input')); })(document.getElementById('set-index'))"
    )
    assert browser.evaluate(words).startswith("3 instances, 0 extra; box hull 3")
    assert browser.evaluate("document.querySelectorAll('#set-after .now').length") == 3
    assert browser.evaluate("document.querySelectorAll('#set-after .box').length") == 1
    assert browser.evaluate("document.querySelectorAll('#set-before .placed').length") == 42


def test_what_the_page_unpacks_is_what_was_packed(browser: Browser, ff: Path) -> None:
    browser.open(ff)
    busy = browser.evaluate(
        "unpack(data.layers.find(l => l.name === 'busy').values)"
        ".then(v => Array.from({length: 25}, (_, k) => v.at(k)))"
    )
    assert busy == simulated("ff", "ff55_one_port").simulation.busy.ravel().tolist()


def hover_line(browser: Browser, words: str) -> None:
    """Point at the first line of the listing that contains some words."""
    row = f"[...document.querySelectorAll('.code tr')].find(r => r.textContent.includes('{words}'))"
    browser.evaluate("document.getElementById('listing').scrollIntoView({block: 'center'})")
    browser.evaluate(f"document.getElementById('listing').scrollTop = {row}.offsetTop - 100")
    x, y = browser.evaluate(f"(b => [b.x + 60, b.y + 8])({row}.getBoundingClientRect())")
    browser.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)


def test_a_line_lights_up_pes_events_and_sets(browser: Browser, ff: Path) -> None:
    browser.resize(1280)
    browser.open(ff)
    role = next(r.code.name for r in simulated("ff", "ff55_one_port").program.roles if r.code.operands)
    browser.evaluate(
        f"(s => {{ s.selectedIndex = [...s.options].findIndex(o => o.text.startsWith('{role}:'));"
        " s.dispatchEvent(new Event('change')); })(document.getElementById('code-role'))"
    )
    pictures = (
        "document.getElementById('grid').toDataURL() + document.querySelector('.lanes canvas').toDataURL()"
    )
    before = browser.evaluate(pictures)
    hover_line(browser, "invoke_simd(fmach")
    status = browser.evaluate("document.getElementById('code-status').textContent")
    assert "of task ff" in status and "cycles on each of" in status
    assert browser.evaluate("document.querySelectorAll('.code tr.lit').length") == 1
    assert browser.evaluate("document.querySelectorAll('.sets-drawn .panel.lit').length") == 2
    assert browser.evaluate(pictures) != before
    browser.send("Input.dispatchMouseEvent", type="mouseMoved", x=2, y=2)
    assert browser.evaluate(pictures) == before


def test_the_page_of_a_csl_program(browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Axpy of the examples on 3 x 2 PEs: the line of the DSD operation, its PEs and its events."""
    out, page = str(tmp_path / "out"), tmp_path / "axpy.html"
    monkeypatch.chdir(ROOT / "examples" / "csl" / "axpy")
    options = "--arch=wse3 --fabric-dims=10,4 --fabric-offsets=4,1 --params=width:3,height:2,n:64 --memcpy"
    assert run(["cslc", "layout.csl", *options.split(), "-o", out]) == 0
    assert run(["cs-python", "--report", str(page), "run.py", "--name", out]) == 0
    for width in (1280, 400):
        browser.resize(width)
        browser.open(page)
        assert browser.evaluate(OVERFLOW) == 0
        assert browser.evaluate(f"{PAINTED}('grid')") > 2
    browser.resize(1280)
    browser.open(page)
    events = "document.querySelector('.lanes canvas').toDataURL()"
    before = browser.evaluate(events)
    hover_line(browser, "@fmacs(all_of_y")
    status = browser.evaluate("document.getElementById('code-status').textContent")
    assert "cycles on each of 6 PEs" in status and "reached 1 times" in status
    assert browser.evaluate("document.querySelectorAll('.code tr.lit').length") == 1
    assert browser.evaluate(events) != before


def test_the_slider_of_time_plays_the_wavefront(browser: Browser, ff: Path) -> None:
    browser.open(ff)
    seen = {browser.evaluate(GO.format(frame)) for frame in (0, 30, 60, 90)}
    assert len(seen) == 4
    assert browser.evaluate("document.querySelector('[data-layer=activity]').ariaPressed") == "true"
    assert browser.evaluate("document.getElementById('wave-span').textContent") == "cycles 360 to 364"
    browser.evaluate("document.getElementById('wave-play').click()")
    moved = "new Promise(r => setTimeout(() => r(Number(document.getElementById('wave-time').value)), 400))"
    assert browser.evaluate(moved) > 90
    browser.evaluate("document.getElementById('wave-play').click()")


def saved_drawings(browser: Browser, count: int) -> None:
    """Press all buttons that save a drawing."""
    browser.evaluate(
        "window.saved = []; window.save = (name, url) => window.saved.push([name, url]);"
        " window.saveText = (name, text) => window.saved.push([name, text])"
    )
    found = browser.evaluate(
        "(async () => { for (const b of document.querySelectorAll('.export button')) b.click();"
        " await new Promise(r => setTimeout(r, 1500)); return window.saved.length; })()"
    )
    assert found == count
    for name, content in browser.evaluate("window.saved"):
        if name.endswith(".svg"):
            root = ET.fromstring(content)
            assert root.tag.endswith("svg") and len(list(root.iter())) > 5
        else:
            assert base64.b64decode(content.partition(",")[2]).startswith(b"\x89PNG")
            assert len(content) > 1000


def test_drawings_are_saved_as_svg_and_png(browser: Browser, ff: Path) -> None:
    browser.open(ff)
    saved_drawings(browser, 8)


GO = (
    "(n => {{ const s = document.getElementById('wave-time'); s.value = n;"
    " s.dispatchEvent(new Event('input')); return document.getElementById('grid').toDataURL(); }})({})"
)
LIT = "document.getElementById('grid').toDataURL() + document.querySelector('.lanes canvas').toDataURL()"


def test_the_page_of_a_network(browser: Browser, tmp_path: Path) -> None:
    """Its floor with layers, a wavefront, a line that lights up PEs and events, drawings as files."""
    page = tmp_path / "mlp.html"
    write_network_report(page, simulate_one_wafer(MLP, samples=3, maps=MAPS, watch=()))
    for width in (400, 1280):
        browser.resize(width)
        start = time.monotonic()
        browser.open(page)
        assert time.monotonic() - start < 10, "about a second on a machine that does nothing else"
        browser.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        assert browser.evaluate(OVERFLOW) == 0
        assert browser.evaluate(f"{PAINTED}('grid')") > 4
    assert len({browser.evaluate(GO.format(frame)) for frame in (0, 40, 80, 120)}) == 4
    browser.evaluate("document.querySelector('[data-layer=part]').click()")
    assert "s_collect_h" in browser.evaluate("document.getElementById('grid-legend').textContent")
    before = browser.evaluate(LIT)
    hover_line(browser, "activate(")
    assert browser.evaluate("document.querySelectorAll('.code tr.lit').length") == 1
    assert browser.evaluate(LIT) != before
    assert "cycles on each of" in browser.evaluate("document.getElementById('code-status').textContent")
    saved_drawings(browser, 4)


def test_the_page_of_layers_shows_one_after_the_other(browser: Browser, tmp_path: Path) -> None:
    page = tmp_path / "layers.html"
    write_layers_report(page, simulate_layers(MLP, maps=MAPS, watch=()))
    for width in (400, 1280):
        browser.resize(width)
        browser.open(page)
        assert browser.evaluate(OVERFLOW) == 0
    seen, pictures = set(), set[str]()
    for number in browser.evaluate("[...document.getElementById('layer-list').options].map(o => o.value)"):
        browser.evaluate(
            f"(async () => {{ location.hash = '#layer-{number}';"
            f" while (document.body.dataset.layer !== '{number}')"
            " await new Promise(r => setTimeout(r, 20)); })()"
        )
        seen.add(browser.evaluate("document.getElementById('program').textContent"))
        assert browser.evaluate(f"{PAINTED}('grid')") > 2
        pictures |= {browser.evaluate(GO.format(frame)) for frame in range(0, 192, 16)}
        hover_line(browser, "invoke_simd(")
        assert browser.evaluate("document.querySelectorAll('.code tr.lit').length") == 1
        browser.evaluate("document.getElementById('wave-play').click()")  # ends with the layer
    assert len(seen) == 2 and len(pictures) > 3
    saved_drawings(browser, 8)


def test_two_runs_side_by_side(browser: Browser, ff: Path, tmp_path: Path) -> None:
    write_report(tmp_path / "off.html", simulated("ff", "ff55_one_port", simd="off"))
    write_beside(tmp_path / "both.html", ff, tmp_path / "off.html")
    for width in (1280, 400):
        browser.resize(width)
        browser.open(tmp_path / "both.html")
        assert browser.evaluate(OVERFLOW) == 0
    pictures = "['#grid-0', '#grid-1'].map(c => document.querySelector(c).toDataURL())"
    before = browser.evaluate(pictures)
    browser.evaluate("document.querySelector('[data-layer=wavelets]').click()")
    assert browser.evaluate(f"{PAINTED}('grid-0')") > 4
    assert all(a != b for a, b in zip(before, browser.evaluate(pictures), strict=True))
    saved_drawings(browser, 4)


def test_the_page_of_a_run(browser: Browser, tmp_path: Path) -> None:
    examples = Path(__file__).parents[2] / "examples"
    page = tmp_path / "run.html"
    assert run(["run", str(examples / "conv1d.lair"), "--report", str(page)]) == 0
    for width in (1280, 400):
        browser.resize(width)
        browser.open(page)
        assert browser.evaluate(OVERFLOW) == 0
        wide = "[...document.querySelectorAll('svg.drawn')].map(s => s.getBoundingClientRect().width)"
        assert all(100 < found <= width for found in browser.evaluate(wide))
    saved_drawings(browser, 2 * browser.evaluate("document.querySelectorAll('svg.drawn').length"))


def test_tiles_and_waves_of_a_run_are_drawn(browser: Browser, tmp_path: Path) -> None:
    loops = ROOT / "benchmarks" / "loops" / "jacobi-2d.c"
    page = tmp_path / "waves.html"
    sizes = ["--param=n=1300", "--param=steps=20", "--threads=2"]
    assert run(["run", str(loops), *sizes, "--report", str(page)]) == 0
    for width in (1280, 400):
        browser.resize(width)
        browser.open(page)
        assert browser.evaluate(OVERFLOW) == 0
    sizes_of = "[...document.querySelectorAll('#waves polygon')].map(p => p.getBoundingClientRect().width)"
    drawn = browser.evaluate(sizes_of)
    assert sum(found > 3 for found in drawn) > 8, "those that the border cuts may be narrow"
    colours = (
        "new Set([...document.querySelectorAll('#waves polygon')].map(p => getComputedStyle(p).fill)).size"
    )
    assert browser.evaluate(colours) > 1


def test_the_pictures_of_the_documents_are_made(tmp_path: Path) -> None:
    """By the command that wrote docs/pictures; the page with a line that is held."""
    command = [
        sys.executable,
        str(ROOT / "benchmarks" / "picture.py"),
        "code",
        "beside",
        "--into",
        str(tmp_path),
    ]
    subprocess.run(command, check=True, timeout=300)
    for name in ("code", "beside"):
        made, kept = (
            (folder / f"{name}.png").read_bytes() for folder in (tmp_path, ROOT / "docs" / "pictures")
        )
        assert made.startswith(b"\x89PNG") and made[16:24] == kept[16:24]
        assert 0.5 < len(made) / len(kept) < 2


def test_the_picture_of_the_site_is_made(tmp_path: Path) -> None:
    """By the command that wrote docs/pictures/site.png, here of a site with one page."""
    site = tmp_path / "html"
    site.mkdir()
    (site / "index.html").write_text("<h1>A site</h1>", encoding="utf-8")
    script = str(ROOT / "benchmarks" / "picture.py")
    command = [sys.executable, script, "site", "--site", str(site), "--into", str(tmp_path)]
    subprocess.run(command, check=True, timeout=120)
    made, kept = ((folder / "site.png").read_bytes() for folder in (tmp_path, ROOT / "docs" / "pictures"))
    assert made.startswith(b"\x89PNG") and made[16:24] == kept[16:24]
    assert len(made) < len(kept), "a page with one line"
