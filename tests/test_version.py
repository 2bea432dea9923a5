"""One version: that of the package, its metadata, the command, CITATION.cff and CHANGELOG.md."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import polyloom

ROOT = Path(__file__).parents[1]


def test_the_command_says_the_version() -> None:
    command = [sys.executable, "-m", "polyloom", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"polyloom {polyloom.__version__}\n"


def test_the_metadata_have_the_version() -> None:
    assert version("polyloom") == polyloom.__version__


def test_documents_have_the_version() -> None:
    citation = (ROOT / "CITATION.cff").read_text()
    assert re.findall(r"^version: (.*)$", citation, flags=re.MULTILINE) == [polyloom.__version__]
    changes = (ROOT / "CHANGELOG.md").read_text()
    assert re.findall(r"^## \[(\d[^]]*)\]", changes, flags=re.MULTILINE)[0] == polyloom.__version__
