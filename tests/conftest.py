"""What all tests share: their helpers by name, one flag that rewrites golden files, passes that are verified.

Tests lie in folders as the source does. What several of them use is imported by its name alone, wherever
it lies.
"""

from __future__ import annotations

import gc
import logging
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from corpus import Layer
from hypothesis import settings

from cpu_seconds import CpuSeconds
from polyloom.ir.verification.passes import verified
from random_tests import make_profiles
from samples import put_off

sys.path += sorted({str(path.parent) for path in Path(__file__).parent.rglob("*.py")} - set(sys.path))

make_profiles()

# Of many trees, those of random programs above all, something is not known within the limits
logging.getLogger("polyloom.mdh.lowering.asked").setLevel(logging.ERROR)


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    """Put cases off before those are chosen that run, and order the rest afterwards."""
    put_off(items, turn=int(config.getoption("--hypothesis-seed") or 0))
    yield
    _stand_together(items)


def _stand_together(items: list[pytest.Item]) -> None:
    """Let tests of one thing stand together, so that one worker makes it, once.

    These are a layer of the corpus, which is analysed, and the whole of the source, which is parsed.
    """
    keys = {item: thing for item in items if (thing := _what_is_made(item)) is not None}
    groups: dict[str, list[pytest.Item]] = {}
    for item, thing in keys.items():
        groups.setdefault(thing, []).append(item)
    items[:] = [
        other for item in items for other in ([item] if item not in keys else groups.pop(keys[item], ()))
    ]


def _what_is_made(item: pytest.Item) -> str | None:
    layer = _parameters(item).get("layer")
    if isinstance(layer, Layer):
        return layer.name
    return "the source" if hasattr(getattr(item, "module", None), "parsed") else None


def _parameters(item: pytest.Item) -> Mapping[str, object]:
    callspec = getattr(item, "callspec", None)
    return callspec.params if callspec else {}


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
def _native_code_is_built_quickly() -> None:
    """What runs for moments is not worth the half second of ``-O3``; CI's slow tests build as users do."""
    from polyloom.mdh.native import build

    if settings().derandomize:
        build.FLAGS = tuple("-O1" if flag == "-O3" else flag for flag in build.FLAGS)


@pytest.fixture(scope="session", autouse=True)
def _functions_are_made_anew() -> None:
    """What an earlier test, or run of the tests, left in the cache would hide what changed since."""
    from polyloom.function import kept

    kept.WORTH_SECONDS = math.inf


@pytest.fixture(scope="session", autouse=True)
def _no_word_on_the_driver() -> None:
    """On processors that PoCL does not know, the first test that uses it would find a remark on stderr."""
    from polyloom.mdh.device import devices

    devices.announce_patch = lambda model: None
