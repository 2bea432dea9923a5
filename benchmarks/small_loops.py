"""Small loops: what becomes of each, whether its results are right, and its time beside the C compiler's.

usage: small_loops.py [NAME]... [--check] [--time] [--size N] [--type double|float] [--threads N] [--rounds N]
                      [--clock wall|cpu] [--update]

The loops are the functions of `benchmarks/small_loops`, written for this: of the kinds that vectorising
compilers are tried on. NAME is a function or a file. ``--check``: results are compared with those of the C
compiler without optimisations, on reals of mixed scale and on small integers. ``--time``: beside the same
function built with -O3 -march=native -ffast-math, in turns, on the same arrays, which are restored before
each (where they lie decides up to a third of a time); the least counts. ``--update``: the rows of
docs/c.md are what was measured.
"""

from __future__ import annotations

import argparse
import ctypes
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import loop_programs as loops
import numpy as np
import numpy.typing as npt

import polyloom
from polyloom.ir.host import Copy, HostNode, MdHom, Nest, Order
from polyloom.polyhedra.loops.tree import Branch, Loop
from polyloom.scop.schedule.loop_verdicts import LoopVerdict, Verdict
from polyloom.scop.transform import Transformation

FOLDER = Path(__file__).with_name("small_loops")
PAGE = Path(__file__).parents[1] / "docs" / "c.md"
REALS: dict[str, type[np.floating[Any]]] = {"double": np.float64, "float": np.float32}
FAST = ("-O3", "-march=native", "-ffast-math")
PLAIN = ("-O1", "-fwrapv", "-ffp-contract=off")
CLOCKS = {"wall": time.perf_counter, "cpu": time.thread_time}
NUMBERS = {"k": 7, "taps": 8, "step": 1}
"""Integer arguments that are no sizes."""

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class SmallLoop:
    """A function of a file; ``arguments`` as `loop_programs.Argument`, extents are C expressions."""

    name: str
    path: Path
    arguments: tuple[loops.Argument, ...]


@cache
def small_loops() -> dict[str, SmallLoop]:
    """Return all loops by name, file by file."""
    found = (loop for path in sorted(FOLDER.glob("*.c")) for loop in _functions(path))
    return {loop.name: loop for loop in found}


def _functions(path: Path) -> Iterator[SmallLoop]:
    for name, inside in re.findall(r"^void (\w+)\(([^)]*)\)", path.read_text(encoding="utf-8"), re.MULTILINE):
        yield SmallLoop(name, path, tuple(_argument(part.strip()) for part in inside.split(",")))


def _argument(text: str) -> loops.Argument:
    found = re.fullmatch(r"(\w+) (\w+)((?:\[[^]]*\])*)", text)
    assert found is not None, text
    return loops.Argument(found[2], found[1], tuple(re.findall(r"\[([^]]*)\]", found[3])))


def sizes(size: int) -> dict[str, int]:
    """Return the integer arguments: ``n`` elements of arrays, matrices of ``m`` rows of about as many."""
    return {**NUMBERS, "n": size, "m": max(3, int(size**0.5))}


def values(loop: SmallLoop, size: int, real: str, *, whole: bool = False) -> dict[str, Any]:
    """Return a value for each argument; ``whole``: small integers in place of reals of mixed scale."""
    rng = np.random.default_rng(3)
    return {a.name: _value(a, sizes(size), REALS[real], rng, whole) for a in loop.arguments}


def _value(
    wanted: loops.Argument, known: dict[str, int], real: type, rng: np.random.Generator, whole: bool
) -> Any:
    if not wanted.extents:
        return known[wanted.name] if wanted.type == "int" else real(0.75)
    shape = tuple(int(eval(extent, {}, known)) for extent in wanted.extents)
    if wanted.type == "int":
        return rng.permutation(int(np.prod(shape))).astype(np.int32).reshape(shape)
    if wanted.type == "uint8_t":
        return rng.integers(0, 256, shape, np.uint8)
    if whole:
        return rng.integers(-4, 5, shape).astype(real)
    return (rng.choice([-1.0, 1.0], shape) * 10.0 ** rng.uniform(-1.5, 0.5, shape)).astype(real)


def transformed(loop: SmallLoop, real: str = "double") -> Transformation:
    """Return what becomes of a loop for all sizes."""
    explained = polyloom.load(str(loop.path), function=loop.name, defines={"REAL": real}).explain()
    assert isinstance(explained, polyloom.LoopExplanation)
    ((_, found),) = explained.parts
    return found


def kind(found: Transformation) -> str:
    """Return in one word how a loop runs: by the least parallel of its nodes."""
    return max((_kind(node) for node in found.program.body), key=KINDS.index)


KINDS = ("parallel", "reduction", "scan", "parallel in steps", "sequential")


def _kind(node: HostNode) -> str:
    match node:
        case Loop(body=body):
            return max(("parallel in steps", *map(_kind, body)), key=KINDS.index)
        case Branch(body=body, otherwise=otherwise):
            return max(map(_kind, (*body, *otherwise)), key=KINDS.index)
        case MdHom(combine=combine):
            orders = {operator.order for operator in combine}
            if Order.SERIAL in orders:
                return "sequential"
            return (
                "scan" if Order.PREFIX in orders else "reduction" if Order.POINTWISE in orders else "parallel"
            )
        case Nest(iterators=iterators, body=body):
            return "sequential" if not iterators and _loops(body) else "parallel"
        case Copy():
            return "parallel"


def _loops(tree: Any) -> bool:
    return any(isinstance(node, Loop) or (isinstance(node, Branch) and _loops(node.body)) for node in tree)


def reason(found: Transformation) -> str:
    """Return why a loop is not parallel: two instances of which one has to come first."""
    serial = [v for v in found.loops if v.verdict is Verdict.SERIAL and not v.runs_parallel]
    return "; ".join(_why(v) for v in serial)


def _why(verdict: LoopVerdict) -> str:
    return str(verdict.witness) if verdict.witness else ", ".join(verdict.notes)


def wanted_by_c(loop: SmallLoop, given: dict[str, Any], real: str, flags: Sequence[str]) -> dict[str, Any]:
    """Return the arguments as the C compiler's code leaves them."""
    left = copies(given)
    bound(library(loop.path, real, tuple(flags)), loop, left, real)()
    return left


def copies(given: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments with arrays of their own."""
    return {n: v.copy() if isinstance(v, np.ndarray) else v for n, v in given.items()}


@cache
def library(path: Path, real: str, flags: tuple[str, ...]) -> ctypes.CDLL:
    """Return a file of loops as the C compiler builds it."""
    with tempfile.TemporaryDirectory() as folder:
        built = Path(folder) / f"{path.stem}.so"
        command = [
            loops.COMPILER,
            "-std=gnu11",
            "-w",
            *flags,
            f"-DREAL={real}",
            "-shared",
            "-fPIC",
            str(path),
        ]
        subprocess.run([*command, "-o", str(built), "-lm"], check=True, capture_output=True, text=True)
        return ctypes.CDLL(str(built))


def bound(built: ctypes.CDLL, loop: SmallLoop, given: dict[str, Any], real: str) -> Callable[[], object]:
    """Return a call of a function of a built file on arrays, without arguments."""
    scalar = ctypes.c_double if real == "double" else ctypes.c_float
    function = built[loop.name]
    function.restype = None
    passed = [_passed(given[a.name], a.type, scalar) for a in loop.arguments]
    return lambda: function(*passed)


def _passed(value: Any, kind: str, scalar: type[Any]) -> Any:
    if isinstance(value, np.ndarray):
        return value.ctypes.data_as(ctypes.c_void_p)
    return ctypes.c_int(value) if kind == "int" else scalar(value)


def wrong(found: dict[str, Any], wanted: dict[str, Any], real: str) -> list[str]:
    """Return the arrays with an element that is further off than rounding in another order explains."""
    eps = float(np.finfo(REALS[real]).eps)
    bad = []
    for name, array in wanted.items():
        if not isinstance(array, np.ndarray):
            continue
        near = {"rtol": 0.0, "atol": 0.0}
        if array.dtype.kind == "f":
            near = {"rtol": 500 * eps, "atol": 50 * eps * float(np.median(np.abs(array)))}
        if not np.allclose(found[name], array, **near, equal_nan=True):
            bad.append(name)
    return bad


@dataclass(frozen=True)
class Compiled:
    """A loop that is built; ``square``: arrays that it takes as matrices; ``vectors``: its code has some."""

    program: polyloom.CompiledProgram
    square: frozenset[str]
    vectors: bool

    def bound(self, given: dict[str, Any]) -> Callable[[], object]:
        """Return a call on these arrays, without arguments."""
        rows = {n: v.reshape(int(v.size**0.5), -1) if n in self.square else v for n, v in given.items()}
        return lambda: self.program(**rows)


def compiled(loop: SmallLoop, size: int, real: str, threads: int | None) -> Compiled:
    """Compile a loop for a size."""
    function = polyloom.load(
        str(loop.path), function=loop.name, defines={"REAL": real}, device="native", threads=threads
    )
    given = values(loop, size, real)
    numbers = {a.name: given[a.name] for a in loop.arguments if not a.extents and a.type == "int"}
    tree = function.explain(native=numbers).json()["tree"]
    ranks = {b.name: len(b.shape) for b in function.compiled.program.buffers}
    square = {n for n, v in given.items() if isinstance(v, np.ndarray) and v.ndim < ranks[n]}

    return Compiled(function.compiled, frozenset(square), "vector" in str(tree))


def checked(loop: SmallLoop, ours: Compiled, size: int, real: str) -> str:
    """Return ``right``, or the arrays that are wrong."""
    bad = set()
    for whole in (False, True):
        given = values(loop, size, real, whole=whole)
        found = copies(given)
        with np.errstate(all="ignore"):
            ours.bound(found)()
            bad |= set(wrong(found, wanted_by_c(loop, given, real, PLAIN), real))
    return f"WRONG: {', '.join(sorted(bad))}" if bad else "right"


def timed(loop: SmallLoop, ours: Compiled, options: argparse.Namespace) -> tuple[float, float]:
    """Return microseconds of Polyloom and of the C compiler."""
    clock = CLOCKS[options.clock]
    given = values(loop, options.size, options.type)
    built = library(loop.path, options.type, FAST)
    arrays = copies(given)
    runs = (ours.bound(arrays), bound(built, loop, arrays, options.type))
    least = [np.inf, np.inf]
    for _ in range(options.rounds):
        for which, run in enumerate(runs):
            for name, value in given.items():
                if isinstance(value, np.ndarray):
                    arrays[name][...] = value
            begin = clock()
            run()
            least[which] = min(least[which], clock() - begin)
    return least[0] * 1e6, least[1] * 1e6


def main() -> None:
    """Print a table, a row for each loop."""
    options = _parsed()
    print(
        "| loop | how | why not more |" + " right |" * options.check + " us | C, us | ratio |" * options.time
    )
    print("|---|---|---|" + "---|" * options.check + "---:|---:|---:|" * options.time)
    ratios = []
    for loop in _asked(options.names):
        try:
            found = transformed(loop, options.type)
        except polyloom.PolyloomError as refused:
            print(f"| `{loop.name}` | refused | {refused.diagnostics[0].message} |", flush=True)
            continue
        ours = compiled(loop, options.size, options.type, options.threads)
        how = f"{kind(found)}, vectors" if ours.vectors else kind(found)
        row = [f"`{loop.name}`", how, reason(found)]
        row += [checked(loop, ours, options.size, options.type)] * options.check
        if options.time:
            mine, theirs = timed(loop, ours, options)
            ratios.append(theirs / mine)
            row += [f"{mine:.1f}", f"{theirs:.1f}", f"{theirs / mine:.2f}"]
        print(f"| {' | '.join(row)} |", flush=True)
        if options.update:
            _update(f"| {' | '.join(row)} |")
    if ratios:
        print(f"geometric mean of the ratios: {np.exp(np.mean(np.log(ratios))):.2f}")


def _update(row: str) -> None:
    """Put a row in the place of the one that the page has of the same loop."""
    lines = PAGE.read_text(encoding="utf-8").split("\n")
    first = row[: row.index("`", 3) + 1]
    PAGE.write_text("\n".join(row if line.startswith(first) else line for line in lines), encoding="utf-8")


def _asked(names: Sequence[str]) -> list[SmallLoop]:
    known = small_loops().values()
    return [loop for loop in known if not names or loop.name in names or loop.path.stem in names]


def _parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--time", action="store_true")
    parser.add_argument("--size", type=int, default=32000)
    parser.add_argument("--type", default="double", choices=list(REALS))
    parser.add_argument("--threads", type=int)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--clock", default="wall", choices=list(CLOCKS))
    parser.add_argument("--update", action="store_true", help="write the rows of docs/c.md; with --time")
    options = parser.parse_args()
    if options.update and (options.check or not options.time or options.type != "double"):
        parser.error("the page has times in double, without --check")
    return options


if __name__ == "__main__":
    main()
