"""Arguments of compiled programs: what follows from shapes, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polyloom
from polyloom.diagnostics import PolyloomError
from polyloom.ir.host import Buffer, HostProgram, Parameter, Role
from polyloom.ir.types import ElementType
from polyloom.mdh.runtime.arguments import Signature, bind
from polyloom.polyhedra.loops.tree import IntExpression, Name, Number, Operation

F32, I32 = ElementType.FLOAT32, ElementType.INT32
N, M = Name("n"), Name("m")


def program(
    *buffers: tuple[str, tuple[IntExpression, ...], Role], context: IntExpression | None = None
) -> HostProgram:
    parameters = (Parameter("n", I32), Parameter("m", I32))
    made = tuple(Buffer(name=name, type=F32, shape=shape, role=role) for name, shape, role in buffers)
    return HostProgram(name="f", parameters=parameters, buffers=made, body=(), context=context)


GEMV = program(("y", (N,), Role.UPDATED), ("A", (N, M), Role.INPUT), ("x", (M,), Role.INPUT))
SIGNATURE = Signature(GEMV, ("n", "m", "y", "A", "x"))


def array(*shape: int) -> Any:
    return np.ones(shape, np.float32)


def codes(signature: Signature, **given: Any) -> list[str]:
    with pytest.raises(PolyloomError) as raised:
        bind(signature, given)
    return [d.code for d in raised.value.diagnostics]


def test_parameters_follow_from_shapes() -> None:
    bound = bind(SIGNATURE, {"y": array(3), "A": array(3, 4), "x": array(4)})
    assert bound.parameters == {"n": 3, "m": 4}


@pytest.mark.parametrize(
    ("extent", "size", "n"),
    [
        (Operation("+", (N, Number(1))), 8, 7),
        (Operation("-", (N, Number(2))), 8, 10),
        (Operation("*", (Number(2), N)), 8, 4),
        (Operation("+", (Operation("*", (Number(3), N)), Number(2))), 8, 2),
    ],
)
def test_extents_are_solved(extent: IntExpression, size: int, n: int) -> None:
    found = bind(Signature(program(("x", (extent,), Role.INPUT)), ()), {"x": array(size), "m": 1})
    assert found.parameters["n"] == n


def test_a_missing_size_is_not_asked_for_by_the_name_of_an_array_of_ours() -> None:
    made = program(("x_each", (N,), Role.LOCAL), ("x", (N,), Role.INPUT))
    with pytest.raises(PolyloomError) as raised:
        bind(Signature(made, ()), {"m": 1})
    (missing,) = (d for d in raised.value.diagnostics if d.code == "parameter-missing")
    assert "or an array for `x`" in missing.helps


def test_what_is_refused() -> None:
    y, a, x = array(3), array(3, 4), array(4)
    assert codes(SIGNATURE, y=y, A=a) == ["input-missing"]
    assert codes(SIGNATURE, y=y, A=a, x=array(5)) == ["input-shape"]
    assert codes(SIGNATURE, y=y, A=a.astype(np.float64), x=x) == ["input-type"]
    assert codes(SIGNATURE, y=a[:, 0], A=a, x=x) == ["input-alias"]
    assert codes(SIGNATURE, y=y, A=a, x=x, z=x) == ["argument-unknown"]
    assert codes(SIGNATURE, y=y, A=a, x=x, n=2.5) == ["parameter-type"]
    assert codes(SIGNATURE, x=x) == ["parameter-missing"]
    assert codes(SIGNATURE, y=[object()] * 3, A=a, x=x) == ["input-type"]


def test_reading_the_same_memory_twice_is_no_fault() -> None:
    a = array(4, 4)
    assert bind(SIGNATURE, {"y": array(4), "A": a, "x": a[0]}).parameters == {"n": 4, "m": 4}


def test_the_context_is_checked() -> None:
    signature = Signature(program(("x", (N,), Role.INPUT), context=Operation(">=", (N, Number(4)))), ())
    assert codes(signature, x=array(3), m=1) == ["parameter-value"]


def test_an_open_ended_array_may_be_larger() -> None:
    host = program(("x", (Operation("-", (N, Number(1))),), Role.INPUT))
    strict, open_ended = Signature(host, ()), Signature(host, (), frozenset({"x"}))
    assert codes(strict, x=array(9), n=5, m=0) == ["input-shape"]
    assert bind(open_ended, {"x": array(9), "n": 5, "m": 0}).arrays["x"].shape == (4,)
    assert codes(open_ended, x=array(3), n=5, m=0) == ["input-shape"]


def test_an_array_that_is_not_touched_may_have_any_length(tmp_path: Path) -> None:
    source = tmp_path / "end.c"
    source.write_text("void f(int n, double *a) { for (int i = 0; i < n; i++) a[2 * n + 8] += i + 1; }")
    function = polyloom.load(source)
    for n, length in ((0, 8), (0, 0), (-3, 2), (2, 13)):
        found = function(n=n, a=np.zeros(length))
        assert found.tolist() == [0.0] * 12 + [3.0] if n == 2 else found.tolist() == [0.0] * length
    with pytest.raises(PolyloomError, match="shape 12, not 13"):
        function(n=2, a=np.zeros(12))


def test_defaults_need_not_be_given() -> None:
    host = program(("s", (), Role.UPDATED), ("x", (N,), Role.INPUT))
    bound = bind(Signature(host, (), defaults={"s": 0.5}), {"x": array(2), "m": 0})
    assert bound.arrays["s"] == np.float32(0.5) and bound.arrays["s"].dtype == np.float32


def test_positional_arguments() -> None:
    assert SIGNATURE.named((3, 4), {"x": 1}) == {"n": 3, "m": 4, "x": 1}
    for positional, named, wanted in [
        ((1,) * 6, {}, "argument-count"),
        ((1,), {"n": 1}, "argument-twice"),
        ((), {"q": 1}, "argument-unknown"),
    ]:
        with pytest.raises(PolyloomError) as raised:
            SIGNATURE.named(positional, named)
        assert raised.value.diagnostics[0].code == wanted


@pytest.mark.parametrize("value", [2, 2.0, np.float64(2), np.int64(2), np.asarray(2.0), [2]])
def test_scalars_take_their_type(value: Any) -> None:
    signature = Signature(program(("s", (), Role.INPUT)), ())
    if isinstance(value, list):
        assert codes(signature, s=value, n=0, m=0) == ["input-shape"]
        return
    found = bind(signature, {"s": value, "n": 0, "m": 0}).arrays["s"]
    assert found.dtype == np.float32 and found == 2


def test_a_scalar_that_is_no_number() -> None:
    signature = Signature(program(("s", (), Role.INPUT)), ())
    assert codes(signature, s="x", n=0, m=0) == ["input-type"]
    assert codes(signature, s=1j, n=0, m=0) == ["input-type"]


def test_an_array_that_is_written_may_not_be_read_only() -> None:
    double = polyloom.load("void f(int n, double a[n]) { for (int i = 0; i < n; i++) a[i] *= 2; }")
    array = np.ones(4)
    array.flags.writeable = False
    with pytest.raises(PolyloomError, match="input-read-only"):
        double(4, array)
