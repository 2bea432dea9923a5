"""The host side in C, for host programs and kernels made by hand, built with gcc and run on PoCL."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from drop_in_programs import build, opencl_library, run, write

from polyloom.ir.host import Buffer, Copy, HostProgram, MdHom, Nest, Parameter, Role
from polyloom.ir.types import ElementType
from polyloom.mdh.dropin.host import Variant, host_function
from polyloom.mdh.dropin.kernels import KernelTable
from polyloom.mdh.dropin.opencl import host_files
from polyloom.mdh.dropin.signature import signature
from polyloom.mdh.lowering.launch import (
    BufferArgument,
    IntegerArgument,
    Kernel,
    Launch,
    LocalArgument,
    Temporary,
    TemporaryArgument,
)
from polyloom.polyhedra.loops.tree import Branch, Loop, Name, Number, Operation

INT = ElementType.INT32
N, K = Name("n"), Name("k")

ADD = """\
__kernel void add(__global int *x, __global const int *y, long k) {
  long i = get_global_id(0);
  x[i] += (int)k * y[i]; /* a "quoted" word, a \\ and a ??/ trigraph */
}
"""
REVERSE = """\
__kernel void take(__global int *t, __global const int *x, int n, __local int *scratch) {
  int i = (int)get_global_id(0);
  scratch[0] = x[n - 1 - i];
  t[i] = scratch[0];
}
"""
BACK = """\
__kernel void put(__global const int *t, __global int *x) {
  x[get_global_id(0)] = t[get_global_id(0)];
}
"""


def node(name: str) -> Nest:
    return Nest(name=name, iterators=(), extents=(), body=(), assignments=())


def launches(found: MdHom | Nest) -> Launch:
    x, y, t = BufferArgument("x"), BufferArgument("y"), TemporaryArgument("t")
    if found.name == "add":
        return Launch(
            (
                Kernel(
                    source=ADD,
                    name="add",
                    arguments=(x, y, IntegerArgument(K)),
                    global_size=(N,),
                    options=("-DUNUSED=1",),
                ),
            )
        )
    take = Kernel(
        source=REVERSE,
        name="take",
        arguments=(t, x, IntegerArgument(N, INT), LocalArgument(Number(4))),
        global_size=(N,),
        local_size=(Number(1),),
    )
    return Launch(
        (take, Kernel(source=BACK, name="put", arguments=(t, x), global_size=(N,))), (Temporary("t", INT, N),)
    )


def program() -> HostProgram:
    """``z = x``; ``x += k * y`` for k = 3, 2, ..., -1 but not 2, where x is reversed; then ``y = z``."""
    branch = Branch(Operation("==", (Name("k"), Number(2))), (node("reverse"),), (node("add"),))
    loop = Loop(
        iterator="k",
        start=Number(3),
        condition=Operation(">=", (K, Number(-1))),
        step=Number(-1),
        body=(branch,),
    )
    buffers = (
        Buffer(name="x", type=INT, shape=(N,), role=Role.UPDATED),
        Buffer(name="y", type=INT, shape=(N,), role=Role.UPDATED),
        Buffer(name="z", type=INT, shape=(N,), role=Role.LOCAL),
    )
    body = (Copy("x", "z"), loop, Copy("z", "y"))
    context = Operation(">=", (N, Number(0)))
    return HostProgram(
        name="f", parameters=(Parameter("n", INT),), buffers=buffers, body=body, context=context
    )


MAIN = """\
#include <stdio.h>
#include "polyloom_host.h"
int main(void) {
  int n = 1003, x[1003], y[1003];
  for (int i = 0; i < n; i++) { x[i] = i * i; y[i] = 7 - i; }
  if (!polyloom_f(n, x, y)) return 4;
  for (int i = 0; i < n; i++) {
    int before = (n - 1 - i) * (n - 1 - i) + 3 * (7 - (n - 1 - i));
    if (x[i] != before + (1 + 0 - 1) * (7 - i) || y[i] != i * i) return 3;
  }
  polyloom_f(0, x, y);
  puts("equal");
  return 0;
}
"""


def files() -> dict[str, str]:
    general = program()
    call = signature(general, "polyloom_f")
    table = KernelTable(device="any", for_gpu=False, options=("-cl-std=CL1.2",))
    special = Variant({"n": 7}, general, launches)
    text = host_function(call, (special, Variant({}, general, launches)), table)
    return {"main.c": MAIN, **host_files((call,), (text,), table)}


@pytest.mark.slow
@pytest.mark.ci
def test_loops_branches_copies_temporaries_and_arguments(tmp_path: Path) -> None:
    program_ = build(write(tmp_path, files()), ["main.c", "polyloom_host.c"])
    done = run(program_)
    assert (done.returncode, done.stdout, done.stderr) == (0, "equal\n", "")


@pytest.mark.slow
@pytest.mark.ci
def test_the_library_may_be_loaded_at_run_time(tmp_path: Path) -> None:
    library = f'-DPOLYLOOM_OPENCL_LIBRARY="{opencl_library()}"'
    folder = write(tmp_path, files())
    program_ = build(folder, ["main.c", "polyloom_host.c"], [library, "-ldl"], opencl=False)
    assert run(program_).stdout == "equal\n"


def test_a_library_that_is_not_there_is_one_message(tmp_path: Path) -> None:
    """Nothing has changed then, and it is not asked for again."""
    options = ["-ldl", '-DPOLYLOOM_OPENCL_LIBRARY="libNoSuchThing.so"']
    program_ = build(write(tmp_path, files()), ["main.c", "polyloom_host.c"], options, opencl=False)
    done = run(program_)
    assert done.returncode == 4 and done.stdout == ""
    assert done.stderr.startswith("polyloom: the OpenCL library cannot be loaded: libNoSuchThing.so")


@pytest.mark.slow
@pytest.mark.ci
def test_the_kernels_may_be_read_from_the_files(tmp_path: Path) -> None:
    folder = write(tmp_path, files())
    options = [f'-DPOLYLOOM_KERNELS="{folder}"']
    program_ = build(folder, ["main.c", "polyloom_host.c"], options)
    assert run(program_).stdout == "equal\n"
    (folder / "f_special_add.cl").write_text("__kernel void add(int wrong")
    done = run(program_)
    assert done.returncode == 4 and "polyloom: the kernels: the kernels do not build" in done.stderr


@pytest.mark.parametrize(
    "call", ["polyloom_f(-1, x, x + 8)", "polyloom_f(5, x, x + 4)", "polyloom_f(5, x, 0)"]
)
def test_arguments_for_which_there_are_no_kernels(tmp_path: Path, call: str) -> None:
    """The call is declined, silently, and the next one is not."""
    main = f"""\
#include "polyloom_host.h"
int main(void) {{
  int x[32] = {{1, 2, 3, 4, 5}};
  if ({call} || x[0] != 1 || x[4] != 5) return 3;
  return polyloom_f(5, x, x + 5) && x[0] != 1 ? 0 : 4;
}}
"""
    folder = write(tmp_path, {**files(), "main.c": main})
    done = run(build(folder, ["main.c", "polyloom_host.c"]))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_arrays_that_touch_are_apart(tmp_path: Path) -> None:
    main = (
        '#include "polyloom_host.h"\nint main(void) { int x[10] = {0}; return !polyloom_f(5, x, x + 5); }\n'
    )
    folder = write(tmp_path, {**files(), "main.c": main})
    assert run(build(folder, ["main.c", "polyloom_host.c"])).returncode == 0


def test_a_device_that_is_not_there_is_one_message(tmp_path: Path) -> None:
    program_ = build(write(tmp_path, files()), ["main.c", "polyloom_host.c"])
    done = run(program_, {"POLYLOOM_DEVICE": "Hypercube"})
    assert done.returncode == 4
    assert done.stderr == "polyloom: no device is called as POLYLOOM_DEVICE says: Hypercube\n"


def test_user_names_that_mean_something_in_c() -> None:
    general = program()
    named = replace(
        general, buffers=tuple(replace(b, name="kernel") if b.name == "z" else b for b in general.buffers)
    )
    assert signature(named, "f").prototype == "int f(long long n, void *x, void *y)"
