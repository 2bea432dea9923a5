"""CPU seconds of tests and of the programs that they start, by file: ``pytest --cpu-seconds 30``.

Unlike the time on a clock, they are nearly the same on a loaded machine.
"""

from __future__ import annotations

import resource
from collections import Counter

import pytest

KEY = "cpu_seconds"


def used() -> float:
    """Return the CPU seconds of this process, and of those that it started and that have ended."""
    found = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in found)


class CpuSeconds:
    """Counts in each worker from one test to the next, and prints where results come together."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.last = used()
        self.tests: Counter[str] = Counter()
        self.started = 0.0

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> None:
        if call.when == "teardown":
            now = used()
            item.user_properties += [(KEY, now - self.last), ("started", self.started)]
            self.last, self.started = now, 0.0

    def pytest_collection_finish(self) -> None:
        self.last = self.started = used()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        about = dict(report.user_properties)
        if report.when == "teardown" and KEY in about:
            self.tests[report.nodeid] += about[KEY]
            self.tests["before the first test of a worker"] += about["started"]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        write = terminalreporter.write_line
        files: Counter[str] = Counter()
        for test, seconds in self.tests.items():
            files[test.partition("::")[0]] += seconds
        write(f"CPU seconds: {files.total():.1f}")
        for table in (files, self.tests):
            write("")
            for name, seconds in table.most_common(self.rows):
                write(f"{seconds:8.2f}  {name}")
