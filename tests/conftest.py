"""What all tests share: one flag that rewrites golden files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-goldens", action="store_true", help="rewrite golden files with what comes out")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[Path, str], None]:
    """Compare a text with a golden file. A missing file is a failure; the flag writes it."""

    def compare(path: Path, text: str) -> None:
        if request.config.getoption("--update-goldens"):
            path.write_text(text)
        assert path.exists(), f"{path} is missing; run pytest --update-goldens and review it"
        assert text == path.read_text()

    return compare
