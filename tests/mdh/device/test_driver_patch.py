"""The change of PoCL's memory where it does not know the processor: announced, and only where allowed."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import pytest

from polyloom.diagnostics import PolyloomError
from polyloom.mdh.device import devices
from polyloom.mdh.device.devices import DeviceModel, choose_device, find_devices

UNKNOWN = """
import sys
from polyloom.mdh.device import devices

devices.needs_repair = lambda version, flags: True
from polyloom.cli.main import run
sys.exit(run(sys.argv[1:]))
"""
"""Polyloom's command line with a PoCL that seems not to know this processor."""

LAYER = "lair C() : float32 x[4] -> float32 y[4] { all (i) in (4) y[i] = x[i] + 1.0 }"


def unknown(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", UNKNOWN, *arguments], capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def layer(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("layer") / "c.lair"
    path.write_text(LAYER)
    return str(path)


@pytest.mark.slow
@pytest.mark.ci
def test_the_devices_say_it_and_nothing_is_changed() -> None:
    shown = unknown("devices")
    assert (shown.returncode, shown.stderr) == (0, "")
    text = " ".join(shown.stdout.split())
    assert "PoCL does not know this processor" in text and "`--no-driver-patch` forbids that" in text
    *_, model = json.loads(unknown("devices", "--json").stdout)
    assert model["processor"]


@pytest.mark.slow
@pytest.mark.ci
def test_it_is_said_once_when_it_is_done(layer: str) -> None:
    done = unknown("run", layer, "--check", "--device", "cpu")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("remark[driver-patch]: PoCL does not know this processor") == 1


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("arguments", [["run"], ["tune", "--evaluations", "1"]])
def test_it_can_be_refused(layer: str, arguments: list[str]) -> None:
    done = unknown(*arguments, layer, "--no-driver-patch", "--device", "cpu")
    assert (done.returncode, done.stdout) == (1, "")
    assert "error[device-unpatched]" in done.stderr and "remark" not in done.stderr


def models() -> tuple[DeviceModel, ...]:
    pocl = replace(find_devices()[0], index=0, name="pocl", processor="haswell")
    return pocl, replace(pocl, index=1, name="other", processor="")


def test_which_devices_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    found = models()
    monkeypatch.setattr(devices, "find_devices", lambda: found)
    assert choose_device() == found[0] and choose_device("pocl") == found[0]
    assert choose_device(driver_patch=False) == found[1]
    assert choose_device("cpu", driver_patch=False) == found[1]
    with pytest.raises(PolyloomError, match="device-unpatched"):
        choose_device("pocl", driver_patch=False)
    with pytest.raises(PolyloomError, match="device-missing"):
        choose_device("none", driver_patch=False)


def test_from_python(monkeypatch: pytest.MonkeyPatch) -> None:
    import polyloom

    monkeypatch.setattr(devices, "find_devices", lambda: models()[:1])
    with pytest.raises(PolyloomError, match="device-unpatched"):
        polyloom.compile(LAYER, device="cpu", driver_patch=False)
