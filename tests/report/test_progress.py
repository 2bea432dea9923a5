"""A bar after two seconds, on a terminal only, and nothing of it left behind."""

from __future__ import annotations

import io
import time

import pytest

from polyloom.report import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, delay: float) -> str:
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress, "DELAY", delay)
    with progress.progress_bar() as update:
        time.sleep(0.05)
        if update is not None:
            update(1234, 99)
        time.sleep(0.3)
    return stream.getvalue()


def test_what_takes_long_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "cycle 99, 1,234 events" in shown(monkeypatch, Terminal(), 0.0)


def test_what_is_quick_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(monkeypatch, Terminal(), 60.0) == ""


def test_nothing_is_shown_where_there_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(monkeypatch, io.StringIO(), 0.0) == ""


def test_a_failure_stops_the_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", Terminal())
    monkeypatch.setattr(progress, "DELAY", 0.0)
    with pytest.raises(KeyError), progress.progress_bar():
        raise KeyError("inside")


def status_shown(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, delay: float) -> str:
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress, "SHORT_DELAY", delay)
    with progress.status_line("building"):
        time.sleep(0.2)
    return stream.getvalue()


def test_the_status_of_what_takes_long_is_shown_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "building" in status_shown(monkeypatch, Terminal(), 0.0)
    assert status_shown(monkeypatch, Terminal(), 60.0) == ""
    assert status_shown(monkeypatch, io.StringIO(), 0.0) == ""


def network_shown(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, delay: float) -> str:
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress, "DELAY", delay)
    with progress.network_status() as (placing, simulating):
        time.sleep(0.1)
        placing("conv1")
        time.sleep(0.2)
        simulating(1234, 99)
        time.sleep(0.2)
    return stream.getvalue()


def test_a_network_says_what_is_placed_and_where_its_simulation_stands(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    on_terminal = network_shown(monkeypatch, Terminal(), 0.0)
    assert "placing conv1" in on_terminal and "cycle 99, 1,234 events" in on_terminal
    assert network_shown(monkeypatch, io.StringIO(), 0.0) == "placing conv1\n"
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)
    assert "cycle 99" in network_shown(monkeypatch, io.StringIO(), 0.0)
    assert network_shown(monkeypatch, Terminal(), 60.0) == ""
    assert network_shown(monkeypatch, io.StringIO(), 60.0) == ""
