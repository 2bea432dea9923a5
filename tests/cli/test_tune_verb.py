"""``polyloom tune``: what it prints, what it keeps, and that nothing breaks the database."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import EXAMPLES, Captured, document, failure

import polyloom
from polyloom import PolyloomError
from polyloom.cli.main import run
from polyloom.mdh.native.device import all_devices
from polyloom.mdh.schedule.signature import Key, canonical_json
from polyloom.mdh.tuning.choose import Origin
from polyloom.mdh.tuning.database import Database
from polyloom.mdh.tuning.outcome import Outcome, Status
from polyloom.mdh.tuning.schedule_lookup import TunedEmitter
from samples import LATER

pytestmark = pytest.mark.skipif(not all_devices(), reason="there is no device")

PRODUCT = """
void product(int n, const float A[n][n], const float B[n][n], float C[n][n])
{
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      C[i][j] = 0;
      for (int k = 0; k < n; k++)
        C[i][j] += A[i][k] * B[k][j];
    }
}
"""


@pytest.fixture
def product(tmp_path: Path) -> str:
    path = tmp_path / "product.c"
    path.write_text(PRODUCT)
    return str(path)


@pytest.fixture
def database(tmp_path: Path) -> str:
    return str(tmp_path / "tuning.sqlite")


def command(product: str, database: str, *more: str) -> list[str]:
    return ["tune", product, "--param", "n=20", "--database", database, *more]


@pytest.mark.slow
@pytest.mark.ci
def test_what_tuning_finds_is_what_runs(product: str, database: str, capsys: Captured) -> None:
    found = document(capsys, command(product, database, "--budget", "60", "--evaluations", "4"))
    assert set(found) == {"device", "database", "interrupted", "md_homs", "checks"}
    (hom,) = found["md_homs"]
    assert hom["evaluations"] == 4 and hom["sizes"] == [20, 20, 20] and hom["seconds"] > 0
    program = polyloom.compile(product, database=database)
    program.run(**{name: _matrix() for name in "ABC"})
    assert isinstance(program.emitter, TunedEmitter)
    (choice,) = program.emitter.choices.values()
    assert choice.origin is Origin.TUNED and choice.schedule.text() == canonical_json(hom["schedule"])


def _matrix() -> Any:
    return np.ones((20, 20), np.float32)


@pytest.mark.slow
@pytest.mark.ci
def test_a_person_sees_a_table(product: str, database: str, capsys: Captured) -> None:
    assert run(command(product, database, "--evaluations", "2")) == 0
    out, err = capsys.readouterr()
    assert "20 x 20 x 20" in out and "tuned for" in out and err == ""


@pytest.mark.slow
@pytest.mark.ci
def test_results_travel(product: str, database: str, tmp_path: Path, capsys: Captured) -> None:
    there, file = str(tmp_path / "there.sqlite"), str(tmp_path / "results.json")
    found = document(capsys, command(product, database, "--evaluations", "3", "--export", file))
    assert found["exported"] >= 1
    assert document(capsys, ["tune", "--import", file, "--database", there]) == {
        "imported": found["exported"]
    }
    with Database(Path(database)) as one, Database(Path(there)) as other:
        assert one.problems() == other.problems()
        (key, _), *_ = one.problems()
        assert one.entries(key) == other.entries(key)


def test_wrong_use(product: str, database: str, tmp_path: Path, capsys: Captured) -> None:
    assert run(["tune"]) == 2 and run([*command(product, database), "--budget", "0"]) == 2
    capsys.readouterr()
    assert "parameter-missing" in failure(capsys, ["tune", product, "--database", database], 1)
    assert "device-missing" in failure(capsys, command(product, database, "--device", "tachyon"), 1)
    broken = tmp_path / "broken"
    broken.write_text("broken " * 1000)
    assert "database-broken" in failure(capsys, command(product, str(broken)), 1)
    for content in ("{", '{"format": "other"}'):
        broken.write_text(content)
        err = failure(capsys, ["tune", "--import", str(broken), "--database", database], 1)
        assert "tuning-document" in err
    missing = str(tmp_path / "none" / "results.json")
    assert "file-unwritable" in failure(capsys, ["tune", "--export", missing, "--database", database], 1)
    assert "file-missing" in failure(capsys, ["tune", "--import", missing, "--database", database], 1)
    broken.write_text("broken " * 1000)
    use = ["run", product, "--param", "n=20", "--database", str(broken)]
    assert "database-broken" in failure(capsys, use, 1)


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize(
    ("example", "homs"),
    [
        pytest.param(["blur.c", "--function", "blur"], 1, marks=LATER, id="scalars"),
        pytest.param(["heat.c"], 2, marks=LATER, id="host loops"),
        pytest.param(["largest.c", "--param", "n=64"], 1, id="two results"),
    ],
)
def test_programs_are_right_after_tuning(
    example: list[str], homs: int, database: str, capsys: Captured
) -> None:
    source = [str(EXAMPLES / "c" / example[0]), *example[1:], "--database", database]
    found = document(capsys, ["tune", *source, "--evaluations", "2"])
    assert len(found["md_homs"]) == homs
    assert document(capsys, ["run", *source, "--check"])["check"]["passed"]


TRIANGLE = """
void triangle(int n, const float A[n][n], const float x[n], float y[n])
{
  for (int i = 0; i < n; i++)
    for (int j = 0; j <= i; j++)
      y[i] += A[i][j] * x[j];
}
"""

MAP = """
void map(int n, const float A[n][n], float C[n][n])
{
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      C[i][j] = 2 * A[i][j];
}
"""


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize(
    "text",
    [
        pytest.param(PRODUCT, marks=LATER, id="product"),
        pytest.param(TRIANGLE, marks=LATER, id="guarded"),
        pytest.param(MAP, id="rows in one"),
    ],
)
def test_on_the_processor(text: str, database: str, tmp_path: Path, capsys: Captured) -> None:
    (path := tmp_path / "kernel.c").write_text(text)
    options = ["--param", "n=40", "--database", database, "--device", "native"]
    found = document(capsys, ["tune", str(path), *options, "--threads", "2", "--evaluations", "3"])
    assert found["device"].startswith("native / ") and found["device"].endswith(", 2 threads")
    assert found["md_homs"][0]["evaluations"] == 3 and found["checks"][0]["check"]["passed"]
    used = document(capsys, ["run", str(path), *options, "--threads", "2", "--check"])
    assert used["check"]["passed"]
    program = polyloom.compile(path, device="native", threads=2, database=database)
    program.run(**_arrays(text))
    assert isinstance(program.emitter, TunedEmitter)
    (choice,) = program.emitter.choices.values()
    assert choice.origin is Origin.TUNED
    assert choice.schedule.text() == canonical_json(found["md_homs"][0]["schedule"])
    other = polyloom.compile(path, device="native", threads=1, database=database)
    other.run(**_arrays(text))
    assert isinstance(other.emitter, TunedEmitter)
    (choice,) = other.emitter.choices.values()
    assert choice.origin is not Origin.TUNED, "what is best for two threads is not for one"


def _arrays(text: str) -> Any:
    square, row = np.ones((40, 40), np.float32), np.ones(40, np.float32)
    if text is PRODUCT:
        return {"A": square, "B": square, "C": square.copy()}
    if text is MAP:
        return {"A": square, "C": square.copy()}
    return {"A": square, "x": row, "y": row.copy()}


# What may happen while it runs


def start(product: str, database: str, *more: str, limit: int | None = None) -> subprocess.Popen[str]:
    code = "import sys; from polyloom.cli.main import main; main(sys.argv[1:])"
    if limit is not None:
        code = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit})); {code}"
    arguments = [sys.executable, "-c", code, *command(product, database, *more)]
    pipe = subprocess.PIPE
    return subprocess.Popen(arguments, stdout=pipe, stderr=pipe, text=True, process_group=0)


def measurements(database: str) -> int:
    if not Path(database).exists():
        return 0
    with sqlite3.connect(database, timeout=10) as connection:
        try:
            return int(connection.execute("SELECT count(*) FROM measurements").fetchone()[0])
        except sqlite3.OperationalError:  # no tables yet
            return 0


def wait_for(database: str, count: int, tuner: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 120
    while measurements(database) < count:
        assert tuner.poll() is None, tuner.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)


def workers(parent: int) -> Iterator[int]:
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if b"polyloom.workers.child_main" in words and str(parent).encode() in words and state not in "ZX":
            yield int(folder.name)


def check_whole(database: str) -> None:
    with sqlite3.connect(database) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_kill_9_while_tuning(product: str, database: str) -> None:
    tuner = start(product, database, "--budget", "600")
    wait_for(database, 3, tuner)
    before = measurements(database)
    (inside,) = Path(f"/proc/{tuner.pid}/task/{tuner.pid}/children").read_text().split()
    assert list(workers(int(inside)))
    os.kill(tuner.pid, signal.SIGKILL)
    tuner.communicate()
    check_whole(database)
    assert measurements(database) >= before
    deadline = time.monotonic() + 10
    while list(workers(int(inside))) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert list(workers(int(inside))) == []


@pytest.mark.slow
@pytest.mark.ci
def test_ctrl_c_keeps_and_prints_what_was_found(product: str, database: str) -> None:
    tuner = start(product, database, "--budget", "600", "--json")
    wait_for(database, 3, tuner)
    os.kill(tuner.pid, signal.SIGINT)
    out, err = tuner.communicate(timeout=60)
    assert tuner.returncode == 130, err
    found = json.loads(out)
    assert found["interrupted"] and found["md_homs"][0]["seconds"] > 0 and "Traceback" not in err
    check_whole(database)


@pytest.mark.skipif(sys.platform != "linux", reason="limits the size of files")
@pytest.mark.slow
@pytest.mark.ci
def test_a_full_disk_is_one_diagnostic(product: str, database: str) -> None:
    with Database(Path(database)) as results:
        for number in range(150):
            outcome = Outcome(status=Status.VERIFIED, seconds=1.0, times=(1.0,))
            results.record(
                Key(signature="other", sizes=(number,), device="cpu", generator="1"), "p", "x" * 8000, outcome
            )
    size = Path(database).stat().st_size
    assert size > 1_000_000
    before = measurements(database)
    tuner = start(product, database, "--budget", "600", limit=size + 4096)
    out, err = tuner.communicate(timeout=120)
    assert tuner.returncode == 1, err
    assert out == "" and err.count("error[") == 1 and "error[database-full]" in err
    check_whole(database)
    assert measurements(database) >= before


@pytest.mark.slow
@pytest.mark.ci
def test_from_python(product: str, database: str) -> None:
    program = polyloom.compile(product, database=database)
    arrays = {name: _matrix() for name in "ABC"}
    program(**arrays)
    seen: list[int] = []
    options = {"evaluations": 3, "database": database, "progress": lambda p: seen.append(p.evaluations)}
    (tuned,) = polyloom.tune(program, arrays, **options)  # type: ignore[arg-type]
    assert seen == [1, 2, 3] and tuned.sizes == (20, 20, 20)
    arrays["C"][:] = 0
    assert (program(**arrays) == 20).all()
    with pytest.raises(PolyloomError) as caught:
        polyloom.tune(program, arrays, budget=0)
    assert caught.value.diagnostics[0].code == "tuning-budget"
