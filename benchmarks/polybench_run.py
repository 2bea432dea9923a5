"""Run a PolyBench/C benchmark with its kernel on OpenCL, and print the dump that the benchmark prints.

usage: polybench_run.py SOURCE --utilities FOLDER [-D NAME=VALUE]... [-I FOLDER]...
       [--device D] [--reductions detect|stated|ignore] [--with opencl|evaluator|c] [--time]

The benchmark is compiled as it is but for one thing: its ``kernel_...`` function hands its arguments to
Python, which runs what Polyloom made of the same source. For all of them, from a checkout of PolyBench/C:

    polybench_check.py CHECKOUT --size SMALL --command \
      "python benchmarks/polybench_run.py {src} --utilities {utilities} {defines} {includes}"
"""

from __future__ import annotations

import argparse
import ctypes
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from polyloom.diagnostics import PolyloomError, render
from polyloom.ir.evaluation.inputs import shape_of
from polyloom.ir.evaluation.programs import evaluate_host
from polyloom.ir.host import HostProgram, Role
from polyloom.mdh.compiled import CompiledProgram
from polyloom.mdh.device.devices import choose_device
from polyloom.pipeline import load_opencl
from polyloom.sources import Reading

Arguments = dict[str, Any]
CALLBACK = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_void_p))


def main() -> int:
    options = parsed()
    source = Path(options.source)
    text = source.read_text(encoding="utf-8", errors="replace")
    name, start, end = kernel(text)
    defines = dict(define.partition("=")[::2] for define in options.defines)
    reading = Reading(
        function=name,
        defines={k: v or "1" for k, v in defines.items()},
        include=tuple(map(Path, options.include)),
        reductions=options.reductions,
    )
    try:
        program = load_opencl(source, reading, choose_device(options.device))
        runner = {"opencl": on_device, "evaluator": evaluated}[options.with_](program, options.time)
        with tempfile.TemporaryDirectory() as folder:
            library = built(text, name, (start, end), program.signature.arguments, options, Path(folder))
            return benchmark(library, program, runner)
    except PolyloomError as fault:
        print("\n\n".join(render(d) for d in fault.diagnostics), file=sys.stderr)
        return fault.exit_status


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("source")
    parser.add_argument("--utilities", required=True)
    parser.add_argument("-D", dest="defines", action="append", default=[])
    parser.add_argument("-I", dest="include", action="append", default=[])
    parser.add_argument("--device")
    parser.add_argument("--reductions", default="detect", choices=["detect", "stated", "ignore"])
    parser.add_argument("--with", dest="with_", default="opencl", choices=["opencl", "evaluator"])
    parser.add_argument("--time", action="store_true", help="say on stderr how long the kernel took")
    parser.add_argument("--cc", default=os.environ.get("CC", "gcc"))
    return parser.parse_args()


def kernel(text: str) -> tuple[str, int, int]:
    """Return the name of the kernel function, and where its parameters begin and end."""
    found = re.search(r"\bvoid\s+(kernel_\w+)\s*\(", text)
    if found is None:
        sys.exit("the source has no function `kernel_...`")
    depth, end = 1, found.end()
    while depth:
        depth += {"(": 1, ")": -1}.get(text[end], 0)
        end += 1
    return found[1], found.end() - 1, end


def built(
    text: str,
    name: str,
    parameters: tuple[int, int],
    arguments: Sequence[str],
    options: argparse.Namespace,
    folder: Path,
) -> ctypes.CDLL:
    """Compile the benchmark with a kernel function that calls back."""
    head = text[parameters[0] : parameters[1]]
    used = [a for a in arguments if re.search(rf"\b{a}\b", head)]
    table = ", ".join(f"POLYLOOM_PLACE({a})" for a in used)
    shim = f"""
void (*polyloom_kernel)(void **);
#define POLYLOOM_IS_ARRAY(x) (__builtin_classify_type(x) == 5)
#define POLYLOOM_PLACE(x) ((void *)__builtin_choose_expr(POLYLOOM_IS_ARRAY(x), (x), &(x)))
static void {name}{head}
{{
  void *polyloom_table[] = {{ {table} }};
  polyloom_kernel(polyloom_table);
}}
"""
    renamed = text[: parameters[0]].replace(name, f"{name}_in_c") + text[parameters[0] :]
    before_main = re.search(r"^int\s+main\s*\(", renamed, re.MULTILINE)
    assert before_main is not None
    place = before_main.start()
    adapted = renamed[:place] + shim + "#define main benchmark_main\n" + renamed[place:]
    copy = folder / Path(options.source).name
    copy.write_text(adapted, encoding="utf-8")
    library = folder / "benchmark.so"
    command = [options.cc, "-O2", "-w", "-shared", "-fPIC", "-o", str(library), str(copy)]
    command += [f"-I{Path(options.source).parent}", *(f"-I{i}" for i in options.include)]
    command += [*(f"-D{d}" for d in options.defines), str(Path(options.utilities) / "polybench.c"), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"the benchmark does not compile: {done.stderr[:500]}")
    loaded = ctypes.CDLL(str(library))
    loaded.polyloom_names = used
    return loaded


def benchmark(library: ctypes.CDLL, program: CompiledProgram, runner: Callable[[Arguments], None]) -> int:
    """Run the benchmark's main function; its kernel runs through ``runner``."""
    status = 0

    def called(table: Any) -> None:
        nonlocal status
        places = dict(zip(library.polyloom_names, table[: len(library.polyloom_names)], strict=True))
        try:
            runner(arguments_at(program.program, places))
        except PolyloomError as fault:
            print("\n\n".join(render(d) for d in fault.diagnostics), file=sys.stderr)
            status = fault.exit_status

    callback = CALLBACK(called)
    ctypes.c_void_p.in_dll(library, "polyloom_kernel").value = ctypes.cast(callback, ctypes.c_void_p).value
    library.benchmark_main(1, (ctypes.c_char_p * 2)(b"benchmark", None))
    ctypes.CDLL(None).fflush(None)
    return status


def arguments_at(program: HostProgram, places: dict[str, int]) -> Arguments:
    """Return NumPy arrays over the memory of the benchmark's arguments, and its integers."""
    found: Arguments = {}
    for parameter in program.parameters:
        if parameter.name in places:
            found[parameter.name] = int(memory(places[parameter.name], (), parameter.type.dtype))
    for buffer in program.buffers:
        if buffer.name in places and buffer.role is not Role.LOCAL:
            shape = shape_of(buffer, found)
            found[buffer.name] = memory(places[buffer.name], shape, buffer.type.dtype)
    return found


def memory(place: int, shape: tuple[int, ...], dtype: Any) -> Any:
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    return np.frombuffer((ctypes.c_char * size).from_address(place), dtype=dtype).reshape(shape)


def on_device(program: CompiledProgram, timed: bool) -> Callable[[Arguments], None]:
    def run(arguments: Arguments) -> None:
        begin = time.perf_counter()
        timing = program.run(**arguments).timing
        if timed:
            seconds = time.perf_counter() - begin
            launches = f"{timing.launches} launches"
            print(f"{seconds:.3f} s, {timing.prepare:.3f} s of it to build, {launches}", file=sys.stderr)

    return run


def evaluated(program: CompiledProgram, timed: bool) -> Callable[[Arguments], None]:
    def run(arguments: Arguments) -> None:
        host = program.program
        parameters = {p.name: arguments[p.name] for p in host.parameters}
        wanted = [b.name for b in host.buffers if b.role in (Role.INPUT, Role.UPDATED)]
        begin = time.perf_counter()
        for name, array in evaluate_host(host, parameters, {n: arguments[n] for n in wanted}).items():
            arguments[name][...] = array
        if timed:
            print(f"{time.perf_counter() - begin:.3f} s", file=sys.stderr)

    return run


if __name__ == "__main__":
    sys.exit(main())
