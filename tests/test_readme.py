"""The README: its tables are those of their sources, its links lead somewhere, its commands work."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import documents
import pytest
import transcripts

from markdown_links import is_there, links
from samples import LATER

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text()
STEPS = list(transcripts.steps(TEXT))
URL = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]["Repository"]
STARTS = (f"{URL}/blob/main/", URL.replace("github.com", "raw.githubusercontent.com") + "/main/")


def test_tables_are_those_of_their_sources() -> None:
    golden = json.loads(documents.GOLDEN.read_text())
    assert documents.readme(TEXT, golden, documents.SPEED.read_text()) == TEXT
    page = documents.CYCLES.read_text()
    assert documents.cycles_page(page, golden) == page
    page = documents.PYTHON.read_text()
    assert documents.python_page(page) == page


def test_it_fits_on_a_few_screens() -> None:
    assert len(TEXT.splitlines()) <= 150


LONG = ("--target c", "simulate examples/c")
"""Parts of commands that build for seconds."""


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(k, marks=LATER if any(part in step.command for part in LONG) else ())
        for k, step in enumerate(STEPS)
    ],
    ids=[step.command[:60] for step in STEPS],
)
def test_commands_print_what_it_says(number: int, tmp_path: Path) -> None:
    step = STEPS[number]
    assert step.printed.replace("...", "").strip(), "nothing of the output is shown"
    transcripts.furnish(tmp_path)
    done = transcripts.run(step.command, tmp_path)
    found = transcripts.plain(done.stdout)
    assert done.returncode == 0, found
    assert transcripts.matches(step.printed, found), found


@pytest.mark.parametrize(
    ("wanted", "found", "same"),
    [
        ("a\n...\nd", "a\nb\nc\nd", True),
        ("a\n...\nd", "a\nd", True),
        ("...\nd", "d", True),
        ("...\nd", "b\nc\nd", True),
        ("a\n...", "a", True),
        ("a\n...", "a\nb\nc", True),
        ("in ... ms", "in 1.5 ms", True),
        ("a\n...\nd", "a\nb\nc", False),
        ("a\n...\nd", "ab\nd", False),
        ("in ... ms", "in 1.5 s", False),
        ("a\nb", "a\nc\nb", False),
        ("a.c", "abc", False),
    ],
)
def test_what_a_transcript_leaves_out(wanted: str, found: str, same: bool) -> None:
    assert transcripts.matches(wanted, found) is same


def test_links_of_the_readme_are_whole_and_lead_somewhere() -> None:
    """It is the package's description as well, where relative links lead nowhere."""
    found = links(TEXT)
    assert len(found) > 5
    places = {link: next((link[len(s) :] for s in STARTS if link.startswith(s)), "") for link in found}
    wrong = [link for link, place in places.items() if not place or not is_there(ROOT, place)]
    assert wrong == []
