"""What all tests share: their helpers by name, one flag that rewrites golden files, passes that are verified.

Tests lie in folders as the source does. What several of them use is imported by its name alone, wherever
it lies.
"""

from __future__ import annotations

import gc
import logging
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cpu_seconds import CpuSeconds
from polyloom.ir.verification.passes import verified
from random_tests import make_profiles

sys.path += sorted({str(path.parent) for path in Path(__file__).parent.rglob("*.py")} - set(sys.path))

make_profiles()

# Proofs of whole trees have tests of their own; of every program they would take minutes
logging.getLogger("polyloom.mdh.lowering.asked").setLevel(logging.ERROR)


def pytest_collection_finish() -> None:
    """What modules and items hold is never garbage; to look through it takes a twentieth of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-goldens", action="store_true", help="rewrite golden files with what comes out")
    parser.addoption(
        "--cpu-seconds", type=int, metavar="N", help="print the N files and tests that take most"
    )


def pytest_configure(config: pytest.Config) -> None:
    if rows := config.getoption("--cpu-seconds"):
        config.pluginmanager.register(CpuSeconds(rows))


@pytest.fixture(autouse=True)
def verified_between_passes() -> Iterator[None]:
    """Verify programs after every pass, in all tests."""
    with verified():
        yield


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[Path, str], None]:
    """Compare a text with a golden file. A missing file is a failure; the flag writes it."""

    def compare(path: Path, text: str) -> None:
        if request.config.getoption("--update-goldens"):
            path.write_text(text)
        assert path.exists(), f"{path} is missing; run pytest --update-goldens and review it"
        assert text == path.read_text()

    return compare


@pytest.fixture(scope="session", autouse=True)
def _no_word_on_the_driver() -> None:
    """On processors that PoCL does not know, the first test that uses it would find a remark on stderr."""
    from polyloom.mdh.device import devices

    devices.announce_patch = lambda model: None
