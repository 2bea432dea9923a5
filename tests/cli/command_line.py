"""Running the command line inside a test."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

from polyloom.cli.main import run
from polyloom.report import progress

EXAMPLES = Path(__file__).parents[2] / "examples"
CONV = [str(EXAMPLES / "conv1d.lair")]
MAPPED = [*CONV, "--map", str(EXAMPLES / "conv1d.map")]
FF = [str(EXAMPLES / "ff.lair"), "-D", "M=32", "-D", "N=16"]
Captured = pytest.CaptureFixture[str]


def document(capsys: Captured, arguments: list[str], status: int = 0) -> Any:
    """The one JSON document on stdout; nothing else is printed but diagnostics of a failure.

    On a loaded machine, either: lines that say where long work stands are left out.
    """
    with mock.patch.multiple(progress, LINE_SECONDS=1e6, DELAY=1e6):
        assert run([*arguments, "--json"]) == status
    out, err = capsys.readouterr()
    assert (err == "") == (status == 0), err
    found = json.loads(out, parse_constant=lambda text: pytest.fail(f"{text} is no JSON"))
    if isinstance(found, dict):
        assert found.pop("version") == 1
    return found


def failure(capsys: Captured, arguments: list[str], status: int) -> str:
    """The diagnostics of a run that fails: on stderr, no traceback, nothing on stdout but a document."""
    assert run(arguments) == status
    out, err = capsys.readouterr()
    assert out == "" if "--json" not in arguments else "errors" in json.loads(out)
    assert "Traceback" not in err
    return err


def real_inputs() -> dict[str, np.ndarray[Any, Any]]:
    generator = np.random.default_rng(7)
    shapes = {"x": (16,), "W": (2, 3)}
    return {name: generator.normal(size=shape).astype(np.float16) for name, shape in shapes.items()}
