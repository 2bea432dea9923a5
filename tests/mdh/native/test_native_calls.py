"""Programs on the processor as Python functions: what calls check, what they keep; compilers; processes."""

from __future__ import annotations

import gc
import inspect
import subprocess
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import MethodDescriptorType
from typing import Any

import numpy as np
import pytest

import polyloom
from polyloom import c_compilers
from polyloom.c_compilers import CCompiler
from polyloom.diagnostics import PolyloomError
from polyloom.mdh.compiled import CompiledProgram
from polyloom.mdh.native import build, python_calls
from polyloom.mdh.native.build import Unit, shared_object
from polyloom.mdh.native.device import choose
from polyloom.mdh.native.execution import NativeArray
from polyloom.mdh.native.repeated import KEPT, Repeating
from polyloom.mdh.native.team import load_library

SCALE = "void scale(int n, float s, float x[n], float y[n]) { for (int i = 0; i < n; i++) y[i] = s * x[i]; }"
LAYER = "lair C() : float32 x[6] -> float32 y[6] { all (i) in (6) y[i] = x[i] + 1.0 }"
FIVE = np.arange(5, dtype=np.float32)


def scale(threads: int = 2) -> CompiledProgram:
    return polyloom.compile(SCALE, device="native", threads=threads)


def code(raised: pytest.ExceptionInfo[PolyloomError]) -> str:
    return raised.value.diagnostics[0].code


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_arrays_are_changed_in_place_and_returned(threads: int) -> None:
    program, y = scale(threads), np.zeros(5, np.float32)
    for factor in (2.0, 3.0, 3.0):
        assert program(5, factor, FIVE, y) is y
        np.testing.assert_array_equal(y, factor * FIVE)
    assert program.device.id.startswith("native / ")


def test_arrays_that_are_not_contiguous_and_inputs_that_are_read_only() -> None:
    x, y = np.arange(10, dtype=np.float32)[::2], np.zeros((5, 3), np.float32)
    x.flags.writeable = False
    for _ in range(3):
        y[:] = 0
        scale()(5, 2.0, x, y[:, 1])
        np.testing.assert_array_equal(y, np.outer(2 * x, [0, 1, 0]))


def test_a_repeated_call_sees_what_has_changed() -> None:
    program, x, y = scale(), FIVE.copy(), np.zeros(5, np.float32)
    for _ in range(2):
        program(5, 2.0, x, y)
    x[:] = 7
    np.testing.assert_array_equal(program(5, 2.0, x, y), np.full(5, 14.0))
    np.testing.assert_array_equal(program(5, 0.5, x, y), np.full(5, 3.5))
    other = np.zeros(5, np.float32)
    program(5, 2.0, x, other)
    np.testing.assert_array_equal(other, np.full(5, 14.0))
    np.testing.assert_array_equal(y, np.full(5, 3.5))
    np.testing.assert_array_equal(program(3, 2.0, x[:3], other[:3]), np.full(3, 14.0))


@pytest.mark.parametrize("change", ["shape", "dtype", "writeable", "size"])
def test_a_repeated_call_checks_what_may_have_changed(change: str) -> None:
    program, x, y = scale(), np.arange(6, dtype=np.float32), np.zeros(6, np.float32)
    program(6, 2.0, x, y)
    program(6, 2.0, x, y)
    n = 6
    match change:
        case "shape":
            x.shape = (2, 3)
        case "dtype":
            x.dtype = np.int32  # type: ignore[misc]
        case "writeable":
            y.flags.writeable = False
        case _:
            n = 7
    with pytest.raises(PolyloomError):
        program(n, 2.0, x, y)


def test_outputs_that_are_not_given_are_new_arrays() -> None:
    program = polyloom.compile(LAYER, device="native")
    x = np.arange(6, dtype=np.float32)
    results = [program(x=x) for _ in range(3)] + [program(x=x + k) for k in range(3)]
    for k, result in enumerate(results):
        np.testing.assert_array_equal(result, x + 1 + max(0, k - 3))
    assert len({id(r) for r in results}) == 6
    np.testing.assert_array_equal(program(x=x[::-1]), x[::-1] + 1)
    np.testing.assert_array_equal(program(x=list(map(np.float32, x))), x + 1)
    with pytest.raises(PolyloomError):
        program(x=x[:5])


def test_arrays_stay_where_they_are() -> None:
    program = scale()
    x, y = program.to_device(FIVE), program.to_device(np.zeros(5, np.float32))
    assert isinstance(x, NativeArray)
    for _ in range(2):
        assert program(5, 2.0, x, y) is y
    np.testing.assert_array_equal(y.get(), 2 * FIVE)
    x.set(np.ones(5, np.float32))
    np.testing.assert_array_equal(program(5, 2.0, x, y).get(), np.full(5, 2.0))
    with pytest.raises(PolyloomError) as raised:
        program(5, 2.0, y, y)
    assert code(raised) == "input-alias"


def test_several_threads_of_python_call_one_program() -> None:
    program = polyloom.compile(LAYER, device="native")
    arrays = [np.full(6, k, np.float32) for k in range(8)]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(20):
            for k, result in enumerate(pool.map(lambda x: program(x=x), arrays)):
                np.testing.assert_array_equal(result, arrays[k] + 1)


def test_a_checked_program_is_checked() -> None:
    program = polyloom.compile(SCALE, device="native", check=True)
    y = np.zeros(5, np.float32)
    for _ in range(3):
        np.testing.assert_array_equal(program(5, 2.0, FIVE, y), 2 * FIVE)


def test_timings_and_verdicts() -> None:
    result = polyloom.run(scale(), {"n": 100, "s": 2.0}, check=True)
    assert result.passed and result.execution.timing.device > 0 and result.execution.timing.launches == 1
    document = result.json()
    assert document["device"].startswith("native / ") and document["check"]["passed"]
    (kernel,) = document["kernels"]
    assert (kernel["launches"], kernel["schedule"]) == (1, "cost model") and kernel["seconds"] > 0


SWEEPS = """
void sweeps(int n, int t, float x[n], float y[n]) {
  for (int s = 0; s < t; s++) {
    for (int i = 1; i < n - 1; i++) y[i] = x[i - 1] + x[i + 1];
    for (int i = 1; i < n - 1; i++) x[i] = y[i];
  }
}
"""


@pytest.mark.parametrize(("n", "steps"), [(50, 7), (30_000, 1)], ids=["on one thread", "shared"])
def test_each_node_is_timed(n: int, steps: int) -> None:
    """More steps of the larger one run in tiles across time, which are other nodes."""
    program = polyloom.compile(SWEEPS, device="native", threads=2)
    result = polyloom.run(program, {"n": n, "t": steps}, check=True)
    assert result.passed
    found = {kernel["name"]: kernel["launches"] for kernel in result.kernels()}
    assert found == {"S1": steps, "S2": steps} and result.execution.timing.launches == 2 * steps
    seconds = [kernel["seconds"] for kernel in result.kernels()]
    assert all(s > 0 for s in seconds) and sum(seconds) <= result.execution.timing.total


@pytest.mark.slow
@pytest.mark.ci
def test_models() -> None:
    model = Path(__file__).parents[3] / "examples/models/cnn.onnx"
    function = polyloom.load(model, device="native")
    assert function.run(check=True).passed
    given = {n: np.ones([int(e) for e in a.shape], a.type) for n, a in function.inputs.items()}
    first, second = function(**given), function(**given)
    np.testing.assert_array_equal(np.asarray(first), np.asarray(second))


@pytest.mark.slow
@pytest.mark.ci
def test_a_child_that_was_forked_has_a_team_of_its_own() -> None:
    script = f"""
import os
import numpy as np
import polyloom
program = polyloom.compile({SCALE!r}, device="native", threads=3)
x, y = np.ones(1000, np.float32), np.zeros(1000, np.float32)
program(1000, 2.0, x, y)
child = os.fork()
y[:] = 0
program(1000, 3.0, x, y)
assert (y == 3).all()
if child == 0:
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
print("done")
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout == "done\n", done.stderr


TABLE = """
void table(int n, float y[n]) {
  float t[n];
  for (int i = 0; i < n; i++) t[i] = 3 * i;
  for (int k = 0; k < 2; k++)
    for (int i = 1; i < n; i++) y[i] = y[i - 1] + t[i];
}
"""


def test_what_depends_on_nothing_is_done() -> None:
    y = np.zeros(4, np.float32)
    for _ in range(2):
        np.testing.assert_array_equal(polyloom.compile(TABLE, device="native")(4, y), [0, 3, 9, 18])


def quick(program: Any, *arrays: Any, **named: Any) -> bool:
    """Return whether a call is done by the function of C alone."""
    return program._again(*arrays, **named) is not NotImplemented


def test_calls_like_one_before_are_done_by_c_alone() -> None:
    program, y = polyloom.load(SCALE, device="native", threads=2), np.zeros(5, np.float32)
    program(5, 2.0, FIVE, y)
    other = np.zeros(5, np.float32)
    assert quick(program, int("5"), 3.5, FIVE + 1, other)
    np.testing.assert_array_equal(other, 3.5 * (FIVE + 1))
    assert quick(program, 5, 2.0, y=other, x=FIVE) and quick(program, y=other, s=1.0, n=5, x=FIVE)
    np.testing.assert_array_equal(other, FIVE)


@pytest.mark.parametrize("first", [2.0, 2, np.float64(2), np.float32(2)])
def test_numbers_of_every_kind_are_done_by_c_alone(first: Any) -> None:
    program, y, checked = (
        polyloom.load(SCALE, device="native"),
        np.zeros(5, np.float32),
        np.zeros(5, np.float32),
    )
    program(5, first, FIVE, y)
    for number in (0.1, 2**24 + 1, -(2**53), np.float64(0.1), np.float32(0.1), np.float64("-inf")):
        assert quick(program, 5, number, FIVE[1:4:3].repeat(5), y)
        program._checked_call(5, number, FIVE[1:4:3].repeat(5), checked)
        np.testing.assert_array_equal(y, checked)


def test_sizes_that_take_turns_are_checked_once_each(monkeypatch: pytest.MonkeyPatch) -> None:
    program = polyloom.load(SCALE, device="native")
    sizes = range(1, KEPT + 2)
    calls = {n: (n, 2.0, np.arange(n, dtype=np.float32), np.zeros(n, np.float32)) for n in sizes}
    for call in calls.values():
        program(*call)
    with monkeypatch.context() as patch:
        patch.setattr(type(program), "_checked_call", None)
        for n in (*sizes, *reversed(sizes)):
            calls[n][-1][:] = 7
            assert program(*calls[n]) is calls[n][-1]
            np.testing.assert_array_equal(calls[n][-1], 2 * calls[n][2])
    one_more = (90, 2.0, np.ones(90, np.float32), np.zeros(90, np.float32))
    program(*one_more)
    assert len(program._earlier) == KEPT and all(program._again is not each for each in program._earlier)
    program(5, 2.0, FIVE, np.zeros((5, 2), np.float32)[:, 0])  # a copy is made, and nothing is remembered
    assert program._again is None and not program._earlier


OTHER_CALLS: list[Any] = [
    lambda x, y: (4, 2.0, x, y),
    lambda x, y: (5.0, 2.0, x, y),
    lambda x, y: (2**70, 2.0, x, y),
    lambda x, y: (True, 2.0, x, y),
    lambda x, y: (5, np.float16(2), x, y),
    lambda x, y: (5, np.float64(1e300), x, y),
    lambda x, y: (5, 2**53 + 2, x, y),
    lambda x, y: (5, 2**70, x, y),
    lambda x, y: (5, True, x, y),
    lambda x, y: (5, 1e300, x, y),
    lambda x, y: (5, 2.0, x, y.astype(np.float64)),
    lambda x, y: (5, 2.0, x.astype(">f4"), y),
    lambda x, y: (5, 2.0, np.repeat(x, 2)[::2], y),
    lambda x, y: (5, 2.0, x.reshape(5, 1), y),
    lambda x, y: (5, 2.0, list(x), y),
    lambda x, y: (5, 2.0, np.frombuffer(b"." + x.tobytes(), np.float32, offset=1), y),
    lambda x, y: (5, 2.0, x, np.frombuffer(y.tobytes(), np.float32)),
    lambda x, y: (5, 2.0, y, y),
    lambda x, y: (5, 2.0, *(lambda room: (room[:5], room[4:]))(np.zeros(9, np.float32))),
    lambda x, y: (5, 2.0, x, y.view(type("Own", (np.ndarray,), {}))),
    lambda x, y: (5, 2.0, x),
    lambda x, y: (5, 2.0, x, y, y),
]


@pytest.mark.parametrize("arguments", OTHER_CALLS)
def test_c_leaves_all_other_calls_alone(arguments: Any) -> None:
    program, x, y = polyloom.load(SCALE, device="native", threads=2), FIVE.copy(), np.zeros(5, np.float32)
    program(5, 2.0, x, y)
    y[:] = 7
    assert not quick(program, *arguments(x, y)) and (y == 7).all() and (x == FIVE).all()
    assert not quick(program, 5, 2.0, x, z=y) and not quick(program, 5, 2.0, x, x=y)
    assert quick(program, 5, 2.0, x, y)


def outcome(program: Any, named: Any, x: Any, y: Any, *arguments: Any) -> Any:
    """What a call after one that C can repeat ends in: a diagnostic, or what it returns and leaves."""
    program(5, 2.0, x, y)
    y[:] = 7
    try:
        found = program(*arguments, **named)
    except PolyloomError as fault:
        return str(fault), str(y)
    return type(found).__name__, str(found), [found is a for a in arguments], str(y)


@pytest.mark.parametrize("arguments", [lambda x, y: (5, 2.0, x, y), lambda x, y: (5, 2.0), *OTHER_CALLS])
@pytest.mark.filterwarnings("ignore:overflow")
def test_calls_that_begin_in_c_end_as_those_of_python(
    arguments: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = polyloom.load(SCALE, device="native", threads=2)
    program(5, 2.0, FIVE, np.zeros(5, np.float32))
    assert isinstance(Repeating.__call__, MethodDescriptorType)
    ends: list[Any] = []
    for _ in range(2):
        for named in ({}, {"z": FIVE}, {"x": FIVE}):
            x, y = FIVE.copy(), np.zeros(5, np.float32)
            ends.append(outcome(program, named, x, y, *arguments(x, y)))
        monkeypatch.setattr(Repeating, "__call__", Repeating._call)
    assert ends[:3] == ends[3:]


def test_what_begins_in_c_is_as_it_was_for_python() -> None:
    program, y = polyloom.load(SCALE, device="native"), np.zeros(5, np.float32)
    assert program(5, 2.0, FIVE, y) is y and isinstance(type(program).__call__, MethodDescriptorType)
    assert list(map(str, inspect.signature(program).parameters.values())) == ["*arrays", "**named"]
    assert "argument-" in str(type(program).__call__.__doc__)
    assert type(program).__call__(program, 5, 3.0, FIVE, y=y) is y and program.__call__(5, 3.0, FIVE, y) is y
    np.testing.assert_array_equal(y, 3 * FIVE)
    with pytest.raises(TypeError):
        type(program).__call__(y, 5, 3.0, FIVE, y)

    class Counted(type(program)):  # type: ignore[misc]
        calls = 0

        def __call__(self, *arrays: Any, **named: Any) -> Any:
            self.calls += 1
            return super().__call__(*arrays, **named)

    program.__class__ = Counted
    assert program(5, 4.0, FIVE, y=y) is y and program.calls == 1
    np.testing.assert_array_equal(y, 4 * FIVE)


def test_a_call_that_begins_in_c_keeps_nothing() -> None:
    program, y = polyloom.load(SCALE, device="native"), np.zeros(5, np.float32)
    program(5, 2.0, FIVE, y)
    word = str(np.str_("another"))
    known = program, program._again, y, word
    before = [sys.getrefcount(each) for each in known]
    for _ in range(20):
        program(5, 2.0, FIVE, y=y)
        with pytest.raises(PolyloomError):
            program(5, 2.0, FIVE, **{word: y})
    again, program._again = program._again, None
    program._again = again
    del again
    assert [sys.getrefcount(each) for each in known] == before
    gone = weakref.ref(program)
    del program, known
    gc.collect()
    assert gone() is None


def test_several_results_and_none() -> None:
    two = polyloom.load("void two(float x[2], float y[3]) { x[1] = 4; y[0] = 5; }", device="native")
    x, y = np.zeros(2, np.float32), np.zeros(3, np.float32)
    for _ in range(3):
        left = two(x, y=y)
        assert type(left) is tuple and left[0] is x and left[1] is y

    def twos(x: Any) -> None:
        for i in range(x.shape[0]):
            x[i] = 2

    silent = polyloom.jit(twos, device="native")
    assert [silent(x) for _ in range(3)] == [None] * 3 and quick(silent, x) and (x == 2).all()


def test_c_does_calls_of_hundreds_of_arrays_in_any_order() -> None:
    names = [f"x{k}" for k in range(100)]
    tensors = ", ".join(f"float32 {name}[2]" for name in names)
    parts = [" + ".join(f"{name}[i]" for name in names[k : k + 10]) for k in range(0, 100, 10)]
    total = " + ".join(f"({part})" for part in parts)
    program = polyloom.load(f"lair C(): {tensors} -> float32 y[2] {{ all (i) in (2) y[i] = {total} }}")
    arrays = {name: np.array([k, k * k], np.float32) for k, name in enumerate(names)}
    wanted = [sum(range(100)), sum(k * k for k in range(100))]
    np.testing.assert_array_equal(program(**arrays), wanted)
    turned = dict(reversed(arrays.items()))
    assert quick(program, **arrays) and quick(program, **turned)
    (found,) = program._again(*list(arrays.values())[:30], **dict(list(turned.items())[:70]))
    np.testing.assert_array_equal(found, wanted)
    assert not quick(program, **{**dict(list(arrays.items())[1:]), "z": arrays["x0"]})


def test_c_keeps_no_array_of_a_caller() -> None:
    program = polyloom.load(LAYER, device="native")
    x = np.zeros(6, np.float32)
    before = sys.getrefcount(x)
    results = [program(x) for _ in range(100)]
    assert quick(program, x) and sys.getrefcount(x) == before
    assert len({(sys.getrefcount(result), sys.getrefcount(result.base)) for result in results}) == 1
    assert all(result.ctypes.data % 64 == 0 for result in results)


def test_what_was_built_anew_is_what_runs() -> None:
    program = scale()
    y = np.zeros(5, np.float32)
    program(5, 2.0, FIVE, y)
    again = program._again
    assert again is not None and again(5, 2.0, FIVE, y) is not NotImplemented
    program.refresh()
    assert again(5, 2.0, FIVE, y) is NotImplemented and program(5, 2.0, FIVE, y) is y


@pytest.mark.parametrize("change", ["another python", "another array"])
def test_where_objects_lie_otherwise_calls_are_checked(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if change == "another python":
        others = python_calls.sysconfig.get_config_var

        def said(name: str) -> Any:
            return 1 if name == "Py_GIL_DISABLED" else others(name)

        monkeypatch.setattr(python_calls.sysconfig, "get_config_var", said)
    else:
        monkeypatch.setitem(python_calls._FLAGS, "aligned", 0x200)
    python_calls._library.cache_clear()
    program, y = scale(), np.zeros(5, np.float32)
    for factor in (2.0, 3.0):
        np.testing.assert_array_equal(program(5, factor, FIVE, y), factor * FIVE)
        assert program._again is None
    python_calls._library.cache_clear()


# -- compilers


def test_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(c_compilers, "find_program", lambda name: None)
    monkeypatch.setattr(c_compilers.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(PolyloomError) as raised:
        choose("native")
    (diagnostic,) = raised.value.diagnostics
    assert diagnostic.code == "native-compiler" and "ziglang" in diagnostic.helps[0]


def test_a_compiler_that_is_not_there() -> None:
    with pytest.raises(PolyloomError) as raised:
        choose("native:nocc")
    assert code(raised) == "native-compiler" and "`nocc`" in raised.value.diagnostics[0].message


def test_a_compiler_by_its_name() -> None:
    (first, *_) = c_compilers.c_compilers()
    assert choose(f"native:{first.name}") == choose("native") == choose(f"native:{first.command[0]}")


@pytest.mark.parametrize(("device", "threads"), [("native", 0), ("native", 10**6), ("cpu", 2)])
def test_threads_that_make_no_sense(device: str | None, threads: int) -> None:
    with pytest.raises(PolyloomError) as raised:
        choose(device, threads=threads)
    assert code(raised) == "native-threads"


def broken(folder: Path) -> CCompiler:
    """A compiler that takes flags and fails at programs."""
    script = folder / "broken"
    script.write_text('#!/bin/sh\ncase "$*" in *probe*) exec gcc "$@";; esac\nseq 1 50 >&2\nexit 1\n')
    script.chmod(0o755)
    return CCompiler((str(script),), "broken")


def test_a_compiler_that_fails(tmp_path: Path) -> None:
    with pytest.raises(PolyloomError) as raised:
        shared_object(Unit(("int f;\n",)), broken(tmp_path))
    (diagnostic,) = raised.value.diagnostics
    assert diagnostic.code == "native-build" and diagnostic.notes == tuple(map(str, range(1, 9)))


def test_an_object_that_cannot_be_loaded(tmp_path: Path) -> None:
    (path := tmp_path / "program.so").write_bytes(b"no shared object")
    with pytest.raises(PolyloomError) as raised:
        load_library(path)
    (diagnostic,) = raised.value.diagnostics
    assert diagnostic.code == "native-load" and diagnostic.helps


def test_objects_are_built_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "cache_folder", lambda: tmp_path)
    (compiler, *_) = c_compilers.c_compilers()
    runs: list[Any] = []
    run = build._run
    monkeypatch.setattr(build, "_run", lambda *words: (runs.append(words), run(*words)))
    unit = Unit(("int f(void) { return 1; }\n", "int g(void) { return 2; }\n"))
    path = shared_object(unit, compiler, workers=2)
    built = len(runs)
    assert built >= 3 and shared_object(unit, compiler) == path and len(runs) == built
    path.write_bytes(path.read_bytes()[:-1])
    assert shared_object(unit, compiler) == path and len(runs) == built + 1  # both objects were kept
    assert shared_object(Unit(unit.files, ("-g",)), compiler) != path
