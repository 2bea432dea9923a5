"""Whether PEs wait in a ring is found before anything runs: rings by hand, compilers with a broken order."""

from __future__ import annotations

import hashlib
from collections import Counter

import islpy as isl
import pytest
from corpus import Arrays, inputs_of, layers, together

from polyloom.diagnostics import PolyloomError, Unsupported
from polyloom.pipeline import analyse_layer, compile_layer
from polyloom.wafer.machine.model import load_machine
from polyloom.wafer.program import precedence, synchronisation
from polyloom.wafer.program import wafer_program as program_module
from polyloom.wafer.program.deadlock import Event, Schedule, find_ring
from polyloom.wafer.program.precedence import SynchronisationPolicy
from polyloom.wafer.program.wafer_program import WaferProgram
from polyloom.wafer.roles.activities import Activity
from polyloom.wafer.simd.decision import SimdMode, SimdOptions
from polyloom.wafer.simulation.run import simulate_program
from samples import one_in
from test_architecture import imports

ROW, COLUMN = isl.Map("{ PE[x, y] -> [y] }"), isl.Map("{ PE[x, y] -> [x] }")


def pes(condition: str) -> isl.Set:
    return isl.Set(f"{{ PE[x, y] : 0 <= x < 4 and 0 <= y < 4 and {condition} }}")


def event(key: str, *needs: str, stalls: bool = True) -> Event:
    return Event(key, stalls, frozenset(needs))


def test_one_order_everywhere_is_no_ring() -> None:
    schedule = Schedule(pes("1 = 1"), (event("a"), event("b", "a"), event("c", "b")))
    assert find_ring([schedule], {"a": ROW, "b": COLUMN, "c": ROW}) is None


def test_two_orders_on_one_row_are_a_ring() -> None:
    west = Schedule(pes("x < 2"), (event("a"), event("b", "a")))
    east = Schedule(pes("x >= 2"), (event("b"), event("a", "b")))
    ring = find_ring([west, east], {"a": ROW, "b": ROW})
    assert ring is not None
    assert set(ring.keys) == {"a", "b"}
    assert {str(s) for s in ring.pes} == {str(west.pes.coalesce()), str(east.pes.coalesce())}


def test_two_orders_on_rows_apart_are_none() -> None:
    north = Schedule(pes("y < 2"), (event("a"), event("b", "a")))
    south = Schedule(pes("y >= 2"), (event("b"), event("a", "b")))
    assert find_ring([north, south], {"a": ROW, "b": ROW}) is None
    assert find_ring([north, south], {"a": ROW, "b": COLUMN}) is None
    assert find_ring([north, south], {"a": COLUMN, "b": COLUMN}) is not None


def test_a_wave_along_the_diagonal_is_none() -> None:
    """Row y waits for column y, and column y for row y + 1: that ends at the last row."""
    down = Schedule(pes("x = y"), (event("b"), event("a", "b")))
    on = Schedule(pes("y = x + 1"), (event("a"), event("b", "a")))
    assert find_ring([down, on], {"a": ROW, "b": COLUMN}) is None
    back = Schedule(pes("y = 0 and x = 3"), (event("a"), event("b", "a")))
    assert find_ring([down, on, back], {"a": ROW, "b": COLUMN}) is not None


def test_what_does_not_stall_holds_nothing() -> None:
    schedule = Schedule(pes("1 = 1"), (event("a", stalls=False), event("b", stalls=False)))
    assert find_ring([schedule], {"a": ROW, "b": ROW}) is None
    one = Schedule(pes("1 = 1"), (event("a", stalls=False), event("b")))
    assert find_ring([one], {"a": ROW, "b": ROW}) is None


GRAPHS = ("training", "mlp", "extremes", "ff_two_axes", "training_one_port", "fc_batched_dense")


def broken(
    monkeypatch: pytest.MonkeyPatch, name: str, seed: int, *, wrong: float
) -> tuple[WaferProgram, bool, Arrays]:
    """Compile a graph with an order that forgets or turns some of its rules; say whether a ring was found."""
    right = precedence._Rule.precedes
    found: list[bool] = []

    def precedes(rule: precedence._Rule, first: Activity, second: Activity) -> bool:
        works = f"{first.key} {second.key} {type(first.work).__name__} {salt}"
        number = hashlib.sha256(works.encode()).digest()[0] / 256
        return right(rule, first, second) if number >= wrong else False

    def choose(*given: object) -> SynchronisationPolicy:
        try:
            original(*given)  # type: ignore[arg-type]
        except Unsupported:
            found.append(True)
        return SynchronisationPolicy.EAGER

    salt = seed
    original = synchronisation.choose_policy
    layer = next(one for one in layers() if one.map == name)
    program = layer.program()
    mapping = layer.mapping(program)
    with monkeypatch.context() as patched:
        patched.setattr(precedence._Rule, "precedes", precedes)
        patched.setattr(program_module, "choose_policy", choose)
        patched.setattr(synchronisation, "SynchronisationPolicy", [SynchronisationPolicy.EAGER])
        analysis = analyse_layer(program, mapping, SimdOptions(SimdMode.OFF if seed % 2 else SimdMode.AUTO))
        compiled = compile_layer(analysis, load_machine("cs2"))
    inputs = together(mapping, inputs_of(program, mapping, 1.0, 2))
    return compiled, bool(found), inputs


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("name", one_in(9, GRAPHS, start=3))
def test_what_the_check_lets_pass_does_not_stand_still(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: Counter[tuple[bool, bool]] = Counter()
    for seed in range(6):
        program, ring, inputs = broken(monkeypatch, name, seed, wrong=(0.3, 0.8)[seed // 3])
        if not ring or name == "mlp":
            seen[ring, stands_still(program, inputs)] += 1
    assert not seen[False, True], seen
    assert seen[True, True] or name != "mlp", "the broken order does stand still"


def stands_still(program: WaferProgram, inputs: Arrays) -> bool:
    try:
        simulate_program(program, inputs, invocations=2)
    except PolyloomError as failed:
        assert failed.diagnostics[0].code == "simulation-deadlock", failed
        return True
    return False


def reached(start: str) -> set[str]:
    """The modules of the wafer that a module imports, and those that they import."""
    below: dict[str, set[str]] = {}
    for arrow in imports():
        if arrow.module.startswith("polyloom.wafer."):
            below.setdefault(arrow.file, set()).add(arrow.module.removeprefix("polyloom."))
    found, left = {start}, [start]
    while left:
        fresh = below.get(f"{left.pop().replace('.', '/')}.py", set()) - found
        found |= fresh
        left += fresh
    return found


@pytest.mark.parametrize("module", ["program.synchronisation", "simd.decide", "dataflow.tasks"])
def test_analysis_runs_no_code_generation(module: str) -> None:
    modules = reached(f"wafer.{module}")
    assert len(modules) > 5
    assert not [m for m in modules if ".codegen." in m or m == "wafer.roles.builder"]


def test_code_generation_would_be_seen() -> None:
    assert {"wafer.codegen.compute", "wafer.roles.builder"} < reached("wafer.program.wafer_program")
