"""Bands that isl's scheduler finds: without quotients, with which its numbers get long."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("quotients.c")


@pytest.mark.slow
@pytest.mark.ci
def test_quotients_are_left_out() -> None:
    """Else this takes minutes, and no limit on isl's operations ends it; now three seconds."""
    command = [sys.executable, "-m", "polyloom", "explain", str(PROGRAM)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=150)
    assert done.returncode == 0 and "i20" in done.stdout
