"""Host programs on a device: every node, against the evaluator, exactly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from md_homs import Case, md_homs
from polyloom.diagnostics import PolyloomError, Unsupported
from polyloom.ir.evaluation.programs import evaluate_host
from polyloom.ir.expressions import Binary, BinaryOp, Constant, Convert, Expression, Iterator, Read
from polyloom.ir.host import (
    Assignment,
    Buffer,
    CombineOperator,
    Combiner,
    Copy,
    HostProgram,
    Index,
    MdHom,
    Nest,
    Order,
    Parameter,
    Role,
    View,
)
from polyloom.ir.transform.specialise import specialise
from polyloom.ir.types import ElementType
from polyloom.ir.verification.host_results import check_run
from polyloom.ir.verification.references import Expected
from polyloom.mdh.compiled import CompiledProgram
from polyloom.mdh.device.devices import DeviceKind, DeviceModel, OpenDevice, choose_device, open_device
from polyloom.mdh.lowering.kernels.nodes import nest_kernels
from polyloom.mdh.lowering.launch import (
    BufferArgument,
    IntegerArgument,
    Kernel,
    Launch,
    Temporary,
    TemporaryArgument,
)
from polyloom.mdh.lowering.loop_fusion import with_fused_loops
from polyloom.mdh.runtime.arguments import Signature, bind
from polyloom.mdh.runtime.arrays import DeviceArray
from polyloom.mdh.runtime.execution import Executable, plain_launch
from polyloom.mdh.runtime.host_program import prepare
from polyloom.polyhedra.loops.tree import Branch, Instance, Loop, Name, Number, Operation

F32, I32, I64 = ElementType.FLOAT32, ElementType.INT32, ElementType.INT64
N, ROW = Name("n"), Name("t")


@cache
def device() -> OpenDevice:
    return open_device(choose_device())


def assert_right(
    program: HostProgram, parameters: dict[str, int], inputs: dict[str, Any], *, fuse: bool = True
) -> None:
    wanted = evaluate_host(program, parameters, inputs)
    given_ = {**parameters, **{name: array.copy() for name, array in inputs.items()}}
    found = Executable(program, device(), fuse=fuse).run(bind(Signature(program, ()), given_)).arrays
    assert found.keys() == wanted.keys()
    for name, array in wanted.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name)


@pytest.mark.slow
@pytest.mark.ci
@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(md_homs(extras=True), st.integers(0, 2**16))
def test_every_md_hom_runs_as_a_plain_nest(case: Case, seed: int) -> None:
    assert_right(case.program, {}, case.data(seed))


@pytest.mark.slow
@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(md_homs(extras=True), st.integers(0, 2**16))
def test_many_md_homs_run_as_plain_nests(case: Case, seed: int) -> None:
    assert_right(case.program, {}, case.data(seed))


def add(a: Expression, b: Expression) -> Expression:
    return Binary(BinaryOp.ADD, a, b)


def at(*coefficients: int, plus: Any = 0) -> Index:
    return Index(coefficients, plus if not isinstance(plus, int) else Number(plus))


def integers(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).integers(-9, 10, shape).astype(np.int32)


def vector(name: str, role: Role, extent: Any = N) -> Buffer:
    return Buffer(name=name, type=I32, shape=(extent,), role=role)


PARAMETERS = (Parameter("n", I32),)
SUM = Combiner(name="+", results=(add(Read(0, I32), Read(1, I32)),), neutral=(0,))
KEEP, REDUCE = CombineOperator(Order.CONCATENATE), CombineOperator(Order.POINTWISE, SUM)


def shift(name: str, source: str, target: str) -> MdHom:
    """``target[i] = source[i] + source[i + 1] + t`` for i < n - 1."""
    reads = (View(source, (at(1),)), View(source, (at(1, plus=1),)))
    from polyloom.ir.expressions import ParameterValue

    term = add(add(Read(0, I32), Read(1, I32)), ParameterValue("t", I32))
    extents = (Operation("-", (N, Number(1))),)
    return MdHom(
        name=name,
        iterators=("i",),
        extents=extents,
        inputs=reads,
        outputs=(View(target, (at(1),)),),
        terms=(term,),
        combine=(KEEP,),
        initial=(None,),
        finish=(None,),
    )


def stepped(start: int, steps: int) -> HostProgram:
    """A host loop with a branch and copies: what time steps become."""
    even = Operation("==", (Operation("%", (ROW, Number(2))), Number(0)))
    body = (shift("S", "a", "b"), Branch(even, (Copy("b", "a"),), (shift("R", "b", "a"),)))
    loop = Loop(
        iterator="t",
        start=Number(start),
        condition=Operation("<", (ROW, Number(steps))),
        step=Number(1),
        body=body,
    )
    return HostProgram(
        name="steps",
        parameters=PARAMETERS,
        buffers=(vector("a", Role.UPDATED), vector("b", Role.UPDATED)),
        body=(loop,),
    )


@pytest.mark.parametrize("fuse", [True, False])
@pytest.mark.parametrize("n", [1, 2, 7, 1031])
def test_loops_branches_and_copies(n: int, fuse: bool) -> None:
    assert_right(stepped(-3, 6), {"n": n}, {"a": integers(n), "b": integers(n, seed=1)}, fuse=fuse)


@pytest.mark.parametrize(("n", "launches"), [(64, 1), (1 << 20, 12)])
def test_a_loop_over_tiny_launches_is_one_kernel(n: int, launches: int) -> None:
    given_ = {"n": n, "a": integers(n), "b": integers(n)}
    program = stepped(0, 6)
    execution = Executable(program, device()).run(bind(Signature(program, ()), given_))
    assert execution.timing.launches == launches


@pytest.mark.slow
@pytest.mark.ci
@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(md_homs(extras=True), st.integers(0, 2**16))
def test_every_md_hom_inside_of_a_fused_loop(case: Case, seed: int) -> None:
    loop = Loop(
        iterator="t",
        start=Number(0),
        condition=Operation("<", (Name("t"), Number(3))),
        step=Number(1),
        body=(case.node,),
    )
    program = replace(case.program, body=(loop,))
    assert_right(program, {}, case.data(seed))


def test_a_loop_that_runs_not_at_all() -> None:
    assert_right(stepped(3, 3), {"n": 5}, {"a": integers(5), "b": integers(5)})


def histogram() -> HostProgram:
    place = Convert(I64, Read(0, I32))
    views = (View("data", (at(1),)), View("count", (place,)))
    node = MdHom(
        name="count",
        iterators=("i",),
        extents=(N,),
        inputs=views,
        outputs=(View("count", (place,)),),
        terms=(Constant(1, I32),),
        combine=(REDUCE,),
        initial=(Read(1, I32),),
        finish=(None,),
    )
    buffers = (vector("data", Role.INPUT), vector("count", Role.UPDATED, Number(10)))
    return HostProgram(name="histogram", parameters=PARAMETERS, buffers=buffers, body=(node,))


def test_elements_that_data_chooses() -> None:
    data = np.random.default_rng(3).integers(0, 10, 1000).astype(np.int32)
    assert_right(histogram(), {"n": 1000}, {"data": data, "count": integers(10)})


def triangle() -> HostProgram:
    """A nest with private scalars and arrays: row i adds up its first i elements, in a loop."""
    total, line = (
        Buffer(name="s", type=I64, shape=(), role=Role.LOCAL),
        Buffer(name="line", type=I64, shape=(N,), role=Role.LOCAL),
    )
    row = View("A", (at(1, 0), at(0, 1)))
    assignments = (
        Assignment(name="zero", iterators=("i", "j"), target=View("s", ()), reads=(), value=Constant(0, I64)),
        Assignment(
            name="keep",
            iterators=("i", "j"),
            target=View("line", (at(0, 1),)),
            reads=(row,),
            value=Convert(I64, Read(0, I32)),
        ),
        Assignment(
            name="sum",
            iterators=("i", "j"),
            target=View("s", ()),
            reads=(View("s", ()), View("line", (at(0, 1),))),
            value=add(Read(0, I64), add(Read(1, I64), Iterator(1, I64))),
        ),
        Assignment(
            name="store",
            iterators=("i", "j"),
            target=View("y", (at(1, 0),)),
            reads=(View("s", ()),),
            value=Read(0, I64),
        ),
    )
    i, j = Name("i"), Name("j")
    inner = (Instance("keep", (i, j)), Instance("sum", (i, j)))
    odd = Operation("==", (Operation("%", (j, Number(2))), Number(1)))
    loop = Loop(
        iterator="j",
        start=Number(0),
        condition=Operation("<=", (j, i)),
        step=Number(1),
        body=(Branch(odd, inner, ()),),
    )
    body = (Instance("zero", (i, Number(0))), loop, Instance("store", (i, Number(0))))
    nest = Nest(
        name="rows", iterators=("i",), extents=(N,), body=body, assignments=assignments, private=(total, line)
    )
    buffers = (
        Buffer(name="A", type=I32, shape=(N, N), role=Role.INPUT),
        Buffer(name="y", type=I64, shape=(N,), role=Role.OUTPUT),
    )
    return HostProgram(name="triangle", parameters=PARAMETERS, buffers=buffers, body=(nest,))


@pytest.mark.parametrize("n", [0, 1, 13, 600])
def test_a_nest_with_arrays_of_its_own(n: int) -> None:
    assert_right(triangle(), {"n": n}, {"A": integers(n, n)})


def test_a_large_private_array_lies_in_global_memory() -> None:
    (node,) = triangle().body
    launch = plain_launch(node, triangle(), device().model)  # type: ignore[arg-type]
    groups = Operation("max", (Number(0), N))
    assert launch.temporaries == (Temporary("line", I64, Operation("*", (groups, N))),)


@pytest.mark.parametrize("names", [("kernel", "max"), ("float4", "get_global_id"), ("rest", "wrap_add_int")])
def test_names_that_mean_something_in_opencl(names: tuple[str, str]) -> None:
    source, target = names
    program = stepped(0, 2)
    renamed = {"a": source, "b": target}
    shifted = replace(shift("half", source, target), name="half")
    loop = Loop(
        iterator="t",
        start=Number(0),
        condition=Operation("<", (ROW, Number(2))),
        step=Number(1),
        body=(shifted,),
    )
    buffers = tuple(replace(b, name=renamed[b.name]) for b in program.buffers)
    changed = replace(program, name="main", buffers=buffers, body=(loop,))
    assert_right(changed, {"n": 9}, {source: integers(9), target: integers(9)})


def five_dimensions() -> HostProgram:
    names = ("a", "b", "c", "d", "e")
    extents = tuple(map(Number, (3, 2, 4, 3, 5)))
    unit = tuple(Index(tuple(int(j == k) for j in range(5))) for k in range(5))
    term = Iterator(0, I32)
    for k in range(1, 5):
        term = add(Binary(BinaryOp.MULTIPLY, term, Constant(7, I32)), Iterator(k, I32))  # type: ignore[assignment]
    node = MdHom(
        name="f",
        iterators=names,
        extents=extents,
        inputs=(),
        outputs=(View("y", unit),),
        terms=(term,),
        combine=(KEEP,) * 5,
        initial=(None,),
        finish=(None,),
    )
    return HostProgram(
        name="five",
        parameters=(),
        buffers=(Buffer(name="y", type=I32, shape=extents, role=Role.OUTPUT),),
        body=(node,),
    )


def test_more_dimensions_than_a_launch_has() -> None:
    assert_right(five_dimensions(), {}, {})


def test_half_precision_without_half_arithmetic() -> None:
    half = ElementType.FLOAT16
    total = Combiner(name="+", results=(Binary(BinaryOp.ADD, Read(0, half), Read(1, half)),), neutral=(0,))
    term = Binary(BinaryOp.MULTIPLY, Read(0, half), Constant(0.1, half))
    operators = (KEEP, CombineOperator(Order.POINTWISE, total))
    views = (View("x", (at(1, 0), at(0, 1))),)
    node = MdHom(
        name="f",
        iterators=("i", "j"),
        extents=(N, Number(9)),
        inputs=views,
        outputs=(View("y", (at(1, 0),)),),
        terms=(term,),
        combine=operators,
        initial=(None,),
        finish=(None,),
    )
    buffers = (
        Buffer(name="x", type=half, shape=(N, Number(9)), role=Role.INPUT),
        Buffer(name="y", type=half, shape=(N,), role=Role.OUTPUT),
    )
    x = np.random.default_rng(5).normal(size=(11, 9)).astype(np.float16)
    assert_right(
        HostProgram(name="half", parameters=PARAMETERS, buffers=buffers, body=(node,)), {"n": 11}, {"x": x}
    )


# -- kernels with temporaries, several kernels in a launch


def reversing(node: Any, program: HostProgram, model: DeviceModel) -> Launch:
    """Two kernels over a temporary: reverse, then reverse again and add the host iterator."""
    source = """
__kernel void back(__global const int *a, __global int *t, long n)
{ long i = get_global_id(0); t[n - 1 - i] = a[i]; }
__kernel void forth(__global const int *t, __global int *b, long n, int step)
{ long i = get_global_id(0); b[i] = t[n - 1 - i] + step; }
"""
    memory = TemporaryArgument("t")
    first = Kernel(
        source=source,
        name="back",
        arguments=(BufferArgument("a"), memory, IntegerArgument(N)),
        global_size=(N,),
    )
    last = (memory, BufferArgument("b"), IntegerArgument(N), IntegerArgument(ROW, I32))
    return Launch(
        (
            first,
            Kernel(source=source, name="forth", arguments=last, global_size=(N,), local_size=(Number(1),)),
        ),
        (Temporary("t", I32, N),),
    )


def test_kernels_share_temporaries() -> None:
    program = stepped(0, 3)
    loop = Loop(
        iterator="t",
        start=Number(0),
        condition=Operation("<", (ROW, Number(3))),
        step=Number(1),
        body=(shift("S", "a", "b"),),
    )
    program = replace(program, body=(loop,))
    a, b = integers(17), integers(17)
    bound = bind(Signature(program, ()), {"n": 17, "a": a, "b": b})
    executable = Executable(program, device(), reversing, fuse=False)
    execution = executable.run(bound, timed=True)
    np.testing.assert_array_equal(b, a + 2)
    assert execution.timing.launches == 6 and execution.timing.device > 0
    assert executable.run(bound).timing.prepare < 0.01


def test_an_integer_that_does_not_fit() -> None:
    loop = Loop(
        iterator="t",
        start=Number(2**31),
        condition=Operation("<", (ROW, Number(2**31 + 1))),
        step=Number(1),
        body=(shift("S", "a", "b"),),
    )
    program = replace(stepped(0, 1), body=(loop,))
    bound = bind(Signature(program, ()), {"a": integers(4), "b": integers(4)})
    with pytest.raises(PolyloomError) as raised:
        Executable(program, device(), reversing, fuse=False).run(bound)
    assert raised.value.diagnostics[0].code == "device-integer"


def test_too_much_memory_is_one_diagnostic() -> None:
    huge = Buffer(name="c", type=I32, shape=(N, N, N), role=Role.LOCAL)
    program = replace(stepped(0, 1), buffers=(*stepped(0, 1).buffers, huge))
    n = 2**16
    bound = bind(Signature(program, ()), {"n": n, "a": integers(n), "b": integers(n)})
    with pytest.raises(PolyloomError) as raised:
        Executable(program, device()).run(bound)
    assert raised.value.diagnostics[0].code in ("device-resources", "device-failure")


def test_a_finishing_map_of_a_histogram_is_refused() -> None:
    program = histogram()
    (node,) = program.body
    assert isinstance(node, MdHom)
    node = replace(node, finish=(Read(2, I32),))
    with pytest.raises(Unsupported):
        prepare(replace(program, body=(node,)), {"n": 4}, device(), plain_launch)


# -- as a Python function


def doubling() -> CompiledProgram:
    node = MdHom(
        name="f",
        iterators=("i",),
        extents=(N,),
        inputs=(View("x", (at(1),)), View("s", ())),
        outputs=(View("y", (at(1),)),),
        terms=(Binary(BinaryOp.MULTIPLY, Read(0, F32), Read(1, F32)),),
        combine=(KEEP,),
        initial=(None,),
        finish=(None,),
    )
    buffers = (
        Buffer(name="s", type=F32, shape=(), role=Role.INPUT),
        Buffer(name="x", type=F32, shape=(N,), role=Role.INPUT),
        Buffer(name="y", type=F32, shape=(N,), role=Role.OUTPUT),
    )
    program = HostProgram(name="scale", parameters=PARAMETERS, buffers=buffers, body=(node,))
    return CompiledProgram(program, device(), plain_launch, Signature(program, ("n", "s", "x", "y")))


def test_arrays_are_changed_in_place_and_returned() -> None:
    scale = doubling()
    x, y = np.arange(5, dtype=np.float32), np.zeros(5, np.float32)
    assert scale(5, 2.0, x, y) is y
    np.testing.assert_array_equal(y, 2 * x)
    np.testing.assert_array_equal(scale(s=3, x=x), 3 * x)
    assert repr(scale).startswith("<scale(n, s, x, y) on ")


def test_arrays_that_are_not_contiguous() -> None:
    x, y = np.arange(10, dtype=np.float32)[::2], np.zeros((5, 3), np.float32)
    doubling()(5, 2.0, x, y[:, 1])
    np.testing.assert_array_equal(y, np.outer(2 * x, [0, 1, 0]))


def test_read_only_inputs() -> None:
    x = np.arange(5, dtype=np.float32)
    x.flags.writeable = False
    np.testing.assert_array_equal(doubling()(s=2, x=x), 2 * x)


def test_arrays_stay_on_the_device() -> None:
    scale = doubling()
    x = scale.to_device(np.arange(6, dtype=np.float32))
    y = scale.to_device(np.zeros(6, np.float32))
    result = scale(6, 2.0, x, y)
    assert isinstance(result, DeviceArray) and result is y
    scale(6, 2.0, y, x)
    np.testing.assert_array_equal(x.get(), 4 * np.arange(6))
    x.set(np.ones(6, np.float32))
    np.testing.assert_array_equal(x.get(), np.ones(6))
    for wrong in (np.ones(5, np.float32), np.ones(6)):
        with pytest.raises(PolyloomError):
            x.set(wrong)
    with pytest.raises(PolyloomError) as raised:
        scale(6, 2.0, y, y)
    assert raised.value.diagnostics[0].code == "input-alias"


# -- the check itself


def test_the_check_finds_what_is_wrong() -> None:
    program, parameters = stepped(0, 2), {"n": 6}
    inputs = {"a": integers(6), "b": integers(6)}
    right = evaluate_host(program, parameters, inputs)
    expected = Expected(right, "the evaluator", reading_checked=False)
    assert check_run(program, parameters, inputs, expected, right, made_up=True).passed
    wrong = {**right, "a": right["a"] + np.eye(1, 6, 2, dtype=np.int32)[0]}
    verdict = check_run(program, parameters, inputs, expected, wrong, made_up=True)
    assert not verdict.passed and verdict.exact
    assert verdict.mismatches[0].startswith("a[2] is ") and verdict.mismatches[0].endswith("1 of 6 are wrong")
    found = verdict.json()
    assert (found["passed"], found["exact"], found["max_error"]) == (False, True, None)


# -- what people read

GOLDEN = Path(__file__).parents[1] / "golden"


def test_the_kernel_of_a_nest(golden: Callable[[Path, str], None]) -> None:
    (node,) = triangle().body
    assert isinstance(node, Nest)
    golden(GOLDEN / "nest.cl", nest_kernels(node, triangle(), a_processor()).kernels[0].source)


def test_the_kernel_of_a_fused_loop(golden: Callable[[Path, str], None]) -> None:
    program = with_fused_loops(specialise(stepped(0, 6), {"n": 16}), a_processor())
    (node,) = program.body
    assert isinstance(node, Nest)
    golden(GOLDEN / "fused_loop.cl", nest_kernels(node, program, a_processor()).kernels[0].source)


def test_fused_loops_over_one_iterator_are_different_nodes() -> None:
    (loop,) = stepped(0, 6).body
    program = replace(stepped(0, 6), body=(loop, replace(loop, start=Number(2)), loop))
    fused = with_fused_loops(specialise(program, {"n": 16}), a_processor())
    assert [node.name for node in fused.body if isinstance(node, Nest)] == ["loop_t", "loop_t_1", "loop_t_2"]


def a_processor() -> DeviceModel:
    return replace(device().model, kind=DeviceKind.CPU, max_group_size=4096)


def test_the_check_of_real_numbers_finds_what_is_wrong() -> None:
    program = doubling().program
    inputs = {"s": np.asarray(0.3, np.float32), "x": np.linspace(1, 2, 6, dtype=np.float32)}
    right = evaluate_host(program, {"n": 6}, inputs)
    for found, passed in (({"y": np.nextafter(right["y"], 9)}, True), ({"y": right["y"] * 1.0001}, False)):
        expected = Expected(right, "the evaluator", reading_checked=False)
        assert check_run(program, {"n": 6}, inputs, expected, found, made_up=False).passed is passed
