"""One changed line at a time: each is noticed by the probe that its table names.

Tables: ``mutants_of_*``. A probe that complains without a mutant proves nothing, so each passes where the
modules are replaced by themselves.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import mutants_of_c
import mutants_of_csl
import mutants_of_ir
import mutants_of_mdh
import mutants_of_oracle
import mutants_of_polyhedra
import mutants_of_scop
import mutants_of_wafer
import pytest
from mutant import Mutant, Probe, probes
from nursery import NOT_MADE

from oclgrind_driver import driver

HERE = Path(__file__).parent
FOLDERS = [
    HERE,
    *(HERE.parent / name for name in ("csl", "ir", "mdh", "oracle", "polyhedra", "scop", "wafer")),
]
"""Where the modules are that probes use."""
TABLES = {
    "scop": mutants_of_scop.MUTANTS,
    "ir": mutants_of_ir.MUTANTS,
    "polyhedra": mutants_of_polyhedra.MUTANTS,
    "mdh": mutants_of_mdh.MUTANTS,
    "c": mutants_of_c.MUTANTS,
    "csl": mutants_of_csl.MUTANTS,
    "oracle": mutants_of_oracle.MUTANTS,
    "wafer": mutants_of_wafer.MUTANTS,
}
LEAST = {"scop": 16, "ir": 8, "polyhedra": 10, "mdh": 18, "c": 12}
MUTANTS = [mutant for table in TABLES.values() for mutant in table]
FAST = [mutant for mutant in MUTANTS if mutant.fast]
SLOW = [mutant for mutant in MUTANTS if not mutant.fast]

Ask = Callable[[Probe, Mutant | None], str]


def unchanged(probe: Probe) -> dict[str, str]:
    """Return the modules that the mutants of a probe are of, as they are."""
    return {m.name: m.path.read_text() for m in MUTANTS if m.probe == probe}


class Nursery:
    """The process in which probes run with one driver."""

    def __init__(self, folder: Path, which: str) -> None:
        folder.mkdir()
        environment = os.environ | {
            "XDG_CACHE_HOME": str(folder / "cache"),
            "PYTHONPATH": os.pathsep.join([*map(str, FOLDERS), *(p for p in sys.path if p)]),
            "MUTANTS_FOLDER": str(folder),
        }
        if which == "oclgrind":
            (folder / "oclgrind.icd").write_text(f"{driver()}\n")
            environment |= {
                "OCL_ICD_VENDORS": str(folder),
                "OCLGRIND_BUILD_OPTIONS": "-cl-opt-disable",
                "OCLGRIND_DATA_RACES": "1",
                "OCLGRIND_LOG": str(folder / "log.txt"),
                "POLYLOOM_TEST_DEVICE": "oclgrind",
            }
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / "nursery.py")],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def ask(self, probe: Probe, mutant: Mutant | None) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        job = {
            "function": probe.function,
            "arguments": probe.arguments,
            "texts": {mutant.name: mutant.text()} if mutant else unchanged(probe),
        }
        print(json.dumps(job), file=self._process.stdin, flush=True)
        return str(json.loads(self._process.stdout.readline()))

    def end(self) -> None:
        self._process.communicate()


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    """Return what a probe complains of, with a mutant or without."""
    folder, nurseries = tmp_path_factory.mktemp("mutants"), dict[str, Nursery]()

    def asked(probe: Probe, mutant: Mutant | None) -> str:
        if probe.driver == "oclgrind" and driver() is None:
            pytest.skip("Oclgrind is not installed")
        if probe.driver not in nurseries:
            nurseries[probe.driver] = Nursery(folder / probe.driver, probe.driver)
        return nurseries[probe.driver].ask(probe, mutant)

    yield asked
    for nursery in nurseries.values():
        nursery.end()


@pytest.mark.parametrize("area", LEAST)
def test_there_are_enough(area: str) -> None:
    assert len(TABLES[area]) >= LEAST[area]


def test_each_is_one_line_that_is_still_there() -> None:
    stale = [
        f"{m}: {m.old!r}" for m in MUTANTS if m.path.read_text().count(m.old) != 1 or "\n" in m.old + m.new
    ]
    assert stale == []
    assert [m for m, times in Counter(MUTANTS).items() if times > 1] == []


@pytest.mark.parametrize("probe", probes(FAST), ids=str)
def test_a_probe_passes(probe: Probe, ask: Ask) -> None:
    assert ask(probe, None) == ""


@pytest.mark.parametrize("mutant", FAST, ids=str)
def test_it_is_noticed(mutant: Mutant, ask: Ask) -> None:
    check_noticed(ask(mutant.probe, mutant))


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("probe", [p for p in probes(SLOW) if p not in probes(FAST)], ids=str)
def test_another_probe_passes(probe: Probe, ask: Ask) -> None:
    assert ask(probe, None) == ""


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("mutant", SLOW, ids=str)
def test_another_is_noticed(mutant: Mutant, ask: Ask) -> None:
    check_noticed(ask(mutant.probe, mutant))


def check_noticed(complaint: str) -> None:
    assert complaint
    assert not complaint.startswith(NOT_MADE), complaint
