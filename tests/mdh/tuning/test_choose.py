"""Which schedule runs: the tuned one, else that of the nearest sizes, else the model's; and what is tuned."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from test_signature import matmul

from polyloom.diagnostics import PolyloomError
from polyloom.ir.host import HostProgram, MdHom
from polyloom.mdh.device.devices import DeviceKind, DeviceModel
from polyloom.mdh.lowering.tuning_targets import tune_targets
from polyloom.mdh.schedule.signature import Key, key_of
from polyloom.mdh.tuning.choose import Origin, choose, tuning_results
from polyloom.mdh.tuning.database import Database
from polyloom.mdh.tuning.outcome import Outcome, Status
from polyloom.polyhedra.loops.tree import Branch, Loop, Name, Number, Operation

DEVICE = DeviceModel(
    index=0,
    name="paper",
    platform="made up",
    vendor="none",
    driver="1",
    version="OpenCL 3.0",
    kind=DeviceKind.CPU,
    compute_units=2,
    clock_mhz=3000,
    max_group_size=1024,
    max_item_sizes=(1024, 1024, 1024),
    local_memory=1 << 18,
    global_memory=1 << 30,
    max_allocation=1 << 28,
    vector_bytes=64,
    lanes=1,
    cache_line=64,
    caches=(1 << 15,),
    has_double=True,
    has_half=False,
    shares_memory=True,
)


class Texts:
    """Schedules that are texts; one is illegal."""

    def default(self) -> str:
        return "model"

    def adapted(self, text: str) -> str | None:
        return None if text == "illegal" else text

    def predicted(self, schedule: str) -> float:
        return 9.0 if schedule == "unlikely" else 1.0


def right(seconds: float) -> Outcome:
    return Outcome(status=Status.VERIFIED, seconds=seconds, times=(seconds,))


def size(n: int) -> Key:
    return key_of(*matmul(Number(n), n, n), DEVICE.id)


def test_the_order_of_choice(tmp_path: Path) -> None:
    hom, buffers = matmul(Number(100), 100, 100)
    with Database(tmp_path / "t.sqlite") as database:
        assert choose(hom, buffers, DEVICE, Texts(), None).origin is Origin.MODEL
        assert choose(hom, buffers, DEVICE, Texts(), database).origin is Origin.MODEL
        database.record(size(10000), "p", "far", right(1))
        assert choose(hom, buffers, DEVICE, Texts(), database).schedule == "model"
        database.record(size(128), "p", "near", right(1))
        database.record(size(101), "p", "illegal", right(1))
        found = choose(hom, buffers, DEVICE, Texts(), database)
        assert (found.schedule, found.origin) == ("near", Origin.NEAREST)
        database.record(size(101), "p", "unlikely", right(0.5))
        assert choose(hom, buffers, DEVICE, Texts(), database).schedule == "near"
        other = replace(size(100), device="another")
        database.record(other, "p", "elsewhere", right(1))
        assert choose(hom, buffers, DEVICE, Texts(), database).schedule == "near"
        database.record(size(100), "p", "own", right(3))
        found = choose(hom, buffers, DEVICE, Texts(), database)
        assert (found.schedule, found.origin, found.seconds) == ("own", Origin.TUNED, 3)


def test_a_missing_or_broken_database_keeps_nothing_from_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert tuning_results() is None
    own = tmp_path / "polyloom" / "tuning.sqlite"
    own.parent.mkdir()
    own.write_text("broken " * 1000)
    assert tuning_results() is None
    with pytest.raises(PolyloomError):
        tuning_results(own)
    own.unlink()
    Database(own).close()
    opened = tuning_results()
    assert opened is not None
    opened.close()


def triangular() -> HostProgram:
    """for t in 0 .. 9: if t < 5: C = A * B over t + 1 rows."""
    hom, buffers = matmul(Operation("+", (Name("t"), Number(1))), 6, 7)
    buffers = tuple(replace(b, shape=(Number(10), *b.shape[1:])) if b.name in "AC" else b for b in buffers)
    branch = Branch(Operation("<", (Name("t"), Number(8))), (hom,))
    loop = Loop(
        iterator="t",
        start=Number(0),
        condition=Operation("<", (Name("t"), Number(10))),
        step=Number(1),
        body=(branch,),
    )
    return HostProgram(name="p", parameters=(), buffers=buffers, body=(loop,))


def test_an_md_hom_in_a_loop_is_tuned_at_its_middle_launch() -> None:
    (target,) = tune_targets(triangular())
    assert target.executions == 10
    assert target.launched.extents == (Number(6), Number(6), Number(7))
    assert target.node.extents[0] == Operation("+", (Name("t"), Number(1)))
    assert [b.name for b in target.buffers] == ["C", "A", "B"]
    (alone,) = target.program().body
    assert isinstance(alone, MdHom)


def test_what_never_runs_is_not_tuned() -> None:
    program = triangular()
    (loop,) = program.body
    assert isinstance(loop, Loop)
    never = replace(loop, condition=Operation("<", (Name("t"), Number(0))))
    assert tune_targets(replace(program, body=(never,))) == ()
