"""The README's picture: the report of a simulation, as headless Chromium shows it.

Usage: python benchmarks/picture.py writes docs/pictures/report.png (Debian's package `chromium` will do). The
layer is fully connected with a bias: what it takes comes in at one corner, its results leave at another.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "pictures" / "report.png"
LAYER = ("gemv_bias.lair", "-DM=32", "-DN=16", "-DT=float32", "--map", "gemv_bias_corners.map", "--check")
SIZE = (1280, 1195)
"""Columns and rows of the window, in pixels: the summary, the heat map and the time lines."""


def main() -> None:
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        sys.exit("Chromium is needed: install the package `chromium`")
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        simulate = [sys.executable, "-m", "polyloom", "simulate", *LAYER, "--report", str(page)]
        subprocess.run(simulate, cwd=ROOT / "examples", check=True, stdout=subprocess.DEVNULL)
        PICTURE.parent.mkdir(exist_ok=True)
        flags = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--virtual-time-budget=5000",
        ]
        window = f"--window-size={SIZE[0]},{SIZE[1]}"
        command = [browser, *flags, window, f"--user-data-dir={folder}/profile", f"--screenshot={PICTURE}"]
        subprocess.run([*command, page.as_uri()], check=True, capture_output=True, timeout=120)


if __name__ == "__main__":
    main()
