"""The cache of native builds does not grow without end."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from polyloom.wafer.simulator.build import TRIM_SECONDS, trim, trim_now_and_then


def test_what_was_used_longest_ago_goes_first(tmp_path: Path) -> None:
    now = time.time()
    for k in range(4):
        path = tmp_path / f"{k}.so"
        path.write_bytes(bytes(100))
        os.utime(path, (now - 1000 * (4 - k), now - 1000 * (4 - k)))
    trim(tmp_path, most_bytes=250, spared_seconds=0)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["2.so", "3.so"]


def test_what_was_just_used_stays(tmp_path: Path) -> None:
    (tmp_path / "a.o").write_bytes(bytes(100))
    trim(tmp_path, most_bytes=10, spared_seconds=60)
    assert (tmp_path / "a.o").exists()


def test_a_cache_is_looked_through_now_and_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each new file had all of them looked at: half a second where there are ten thousand."""
    trimmed: list[Path] = []
    monkeypatch.setattr("polyloom.wafer.simulator.build.trim", trimmed.append)
    for _ in range(3):
        trim_now_and_then(tmp_path)
    assert len(trimmed) == 1
    long_ago = time.time() - 2 * TRIM_SECONDS
    os.utime(tmp_path / "trimmed", (long_ago, long_ago))
    trim_now_and_then(tmp_path)
    assert len(trimmed) == 2
