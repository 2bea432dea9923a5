"""Local arrays in one memory: nothing that a step leaves for a later one is overwritten in between."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from polyloom.ir.expressions import Read
from polyloom.ir.types import ElementType
from polyloom.mdh.native.local_memory import shared_places, spans_of
from polyloom.mdh.tree.nodes import Compute, Function, Kind, Load, Mark, Parameter, Reshaped, Store, counted
from polyloom.polyhedra.loops.tree import Name, Number

FLOAT = ElementType.FLOAT32


def step(target: str, sources: list[str], *, parallel: bool) -> object:
    """Return a loop that stores to an array what it makes of others."""
    value = Compute(Read(0, FLOAT), tuple(Load(s, (Name("i"),)) for s in sources))
    kind = Kind.GROUP if parallel else Kind.SEQUENTIAL
    return counted("i", Number(4), (Store(target, (Name("i"),), value),), kind=kind)


@pytest.mark.parametrize("seed", range(40))
def test_what_is_stored_is_there_when_it_is_read(seed: int) -> None:
    """Steps are carried out on bytes that say who wrote them last."""
    rng = Random(seed)
    names = [f"t{k}" for k in range(12)]
    sizes = {name: rng.choice([64, 100, 256, 1000, 4]) for name in names}
    uses = [("t0", ["x"])]
    uses += [(name, rng.sample(names[:k], min(k, 2))) for k, name in enumerate(names) if k]
    parallel = [rng.random() < 0.7 for _ in uses]
    body = tuple(step(t, s, parallel=p) for (t, s), p in zip(uses, parallel, strict=True))
    parameters = tuple(Parameter(name=n, type=FLOAT, shape=(Number(4),)) for n in ("x", *names))
    function = Function(
        name="f",
        parameters=parameters,
        integers=(),
        body=body,  # type: ignore[arg-type]
        reshaped=(Reshaped("t3_view", "t3", (Number(4),)),),
    )
    places = shared_places(spans_of(function), sizes, 64)
    assert all(places.offsets[n] % 64 == 0 and places.offsets[n] + sizes[n] <= places.size for n in names)
    owner = [""] * places.size
    for target, sources in uses:
        for name in sources:
            begin = places.offsets.get(name)
            if begin is not None:
                assert set(owner[begin : begin + sizes[name]]) == {name}
        begin = places.offsets[target]
        owner[begin : begin + sizes[target]] = [target] * sizes[target]


def test_arrays_of_one_sequential_part_lie_apart() -> None:
    """A compiler takes the arrays of one function for ``restrict``: it may mix its steps."""
    body = tuple(step(t, [s], parallel=False) for t, s in [("a", "x"), ("b", "a"), ("c", "b")])
    parameters = tuple(Parameter(name=n, type=FLOAT, shape=(Number(4),)) for n in "xabc")
    function = Function(name="f", parameters=parameters, integers=(), body=body)  # type: ignore[arg-type]
    places = shared_places(spans_of(function), dict.fromkeys("abc", 64), 64)
    assert sorted(places.offsets.values()) == [0, 64, 128]


def test_a_chain_takes_two_places() -> None:
    """Each step reads what the one before wrote."""
    chain = [("t0", "x"), *((f"t{k}", f"t{k - 1}") for k in range(1, 10))]
    body = tuple(step(t, [s], parallel=True) for t, s in chain)
    parameters = tuple(
        Parameter(name=n, type=FLOAT, shape=(Number(4),)) for n in ("x", *(t for t, _ in chain))
    )
    function = Function(name="f", parameters=parameters, integers=(), body=body)  # type: ignore[arg-type]
    assert shared_places(spans_of(function), {t: 640 for t, _ in chain}, 64).size == 1280


def test_loops_without_a_barrier_between_them_share_nothing() -> None:
    """A thread is in the second loop, on ``c``, while another one is still in the first."""
    first, second, third = (step(t, [s], parallel=True) for t, s in [("b", "a"), ("c", "x"), ("x", "c")])
    parameters = tuple(Parameter(name=n, type=FLOAT, shape=(Number(4),)) for n in "xabc")
    for nowait, size in ((False, 128), (True, 192)):
        body = (replace(first, nowait=nowait), Mark(0, "first"), second, third)  # type: ignore[type-var]
        function = Function(name="f", parameters=parameters, integers=(), body=body)  # type: ignore[arg-type]
        assert shared_places(spans_of(function), dict.fromkeys("abc", 64), 64).size == size
