"""The pictures of the documents: pages as Chromium shows them (Debian's package `chromium` will do).

Usage: python benchmarks/picture.py [NAME...] [--into FOLDER] [--site FOLDER] writes them into docs/pictures,
all or those that are named. ``site``: the documentation site, which `make site` builds.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "report"))

from browser import Browser, find_chromium  # noqa: E402

CORNERS = ("gemv_bias.lair", "-DM=32", "-DN=16", "-DT=float32", "--map", "gemv_bias_corners.map", "--check")
"""Fully connected with a bias: what it takes comes in at one corner, its results leave at another."""

GEMM = ("c/gemm.c", "--param=n=256", "--param=m=256", "--param=k=256", "--check")

LINE = "[...document.querySelectorAll('.code tr')].find(r => r.textContent.includes('invoke_simd(fmul'))"
SHOW_A_LINE = f"""
(s => {{ s.value = 60; s.dispatchEvent(new Event('input')); }})(document.getElementById('wave-time'));
for (const option of document.getElementById('code-role').options) {{
  document.getElementById('code-role').value = option.value;
  document.getElementById('code-role').dispatchEvent(new Event('change'));
  if ({LINE}) break;
}}
document.getElementById('listing').scrollTop = {LINE}.offsetTop - 150;
{LINE}.firstChild.click();
document.getElementById('pes').scrollIntoView();
"""

SHOW_A_MOMENT = """
document.querySelector('[data-layer=activity]').click();
(s => { s.value = 60; s.dispatchEvent(new Event('input')); })(document.getElementById('wave-time'));
document.getElementById('pes').scrollIntoView();
"""


@dataclass(frozen=True)
class Picture:
    """``make``: writes the page into a folder and returns it; ``size``: columns and rows of the window in
    pixels; ``script``: what is done before the picture is taken.
    """

    make: Callable[[Path], Path]
    size: tuple[int, int]
    script: str = ""


def polyloom(*arguments: str) -> None:
    """Run a command in the folder of examples."""
    command = [sys.executable, "-m", "polyloom", *arguments]
    subprocess.run(command, cwd=ROOT / "examples", check=True, stdout=subprocess.DEVNULL)


def layer_page(folder: Path) -> Path:
    """Return the page of a layer."""
    polyloom("simulate", *CORNERS, "--report", str(folder / "auto.html"))
    return folder / "auto.html"


def beside_page(folder: Path) -> Path:
    """Return the page of the layer with and without SIMD."""
    auto, loops, both = (folder / f"{name}.html" for name in ("auto", "loops", "both"))
    layer_page(folder)
    polyloom("simulate", *CORNERS, "--simd", "off", "--report", str(loops))
    polyloom("report", str(auto), str(loops), "-o", str(both))
    return both


def run_page(folder: Path) -> Path:
    """Return the page of a matrix product on the processor."""
    polyloom("run", *GEMM, "--report", str(folder / "run.html"))
    return folder / "run.html"


def network_page(folder: Path) -> Path:
    """Return the page of the example's network."""
    options = ("--one-wafer", "--check", "--report", str(folder / "cnn.html"))
    polyloom("simulate", "models/cnn.onnx", *options)
    return folder / "cnn.html"


PICTURES = {
    "report": Picture(layer_page, (1280, 1195)),
    "code": Picture(layer_page, (1280, 1180), SHOW_A_LINE),
    "beside": Picture(beside_page, (1280, 1240)),
    "run": Picture(run_page, (1280, 1320)),
    "network": Picture(network_page, (1280, 1200), SHOW_A_MOMENT),
}
SITE = (1280, 900)


def take(browser: Browser, page: Path, picture: Picture, to: Path) -> None:
    """Take a picture of a page."""
    browser.resize(*picture.size)
    browser.prefer("light")
    browser.open(page)
    if picture.script:
        browser.evaluate(picture.script + "; 0")
    browser.view(to)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(PICTURES)}, site")
    parser.add_argument("--into", type=Path, default=ROOT / "docs" / "pictures")
    parser.add_argument("--site", type=Path, default=ROOT / "build" / "site" / "html")
    asked = parser.parse_args()
    program = find_chromium()
    if program is None:
        sys.exit("Chromium is needed: install the package `chromium`")
    asked.into.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, Browser(program, Path(folder) / "profile") as browser:
        for name in asked.names or PICTURES:
            to = asked.into / f"{name}.png"
            if name == "site":
                browser.resize(*SITE)
                browser.show(asked.site / "index.html")
                browser.view(to)
            else:
                take(browser, PICTURES[name].make(Path(folder)), PICTURES[name], to)


if __name__ == "__main__":
    main()
