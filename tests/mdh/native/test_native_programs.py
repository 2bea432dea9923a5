"""Everything that runs on OpenCL runs as C on the processor, and is right."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import test_floating_point as floating
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from trees import C_FILES, HOMS, ROOT, ZOO, c_programs, inputs, layer, sizes

import polyloom
import random_c
from c_host_programs import host_programs_of
from compiled_c import compiled
from md_homs import Case, md_homs
from polyloom.device_pipeline import load_opencl
from polyloom.ir.host import HostProgram
from polyloom.ir.verification.host_results import check_run
from polyloom.ir.verification.references import evaluated
from polyloom.mdh.compiled import CompiledProgram
from polyloom.mdh.native.device import NativeDevice, choose, opened
from polyloom.mdh.native.execution import plain, tree_of
from polyloom.mdh.runtime.execution import plain_launch
from polyloom.mdh.tree.nodes import For, Kind
from polyloom.mdh.tree.rewrite import walk
from polyloom.mdh.tuning import schedule_lookup
from polyloom.mdh.tuning.schedule_lookup import TunedEmitter
from polyloom.scop.transform import ReductionMode
from polyloom.sources import Reading
from samples import one_in

EXAMPLES = [path for path in C_FILES if path.parent == ROOT / "examples/c"]
SLOW = [pytest.mark.slow, pytest.mark.ci]
QUIET: Any = {"deadline": None, "suppress_health_check": list(HealthCheck), "print_blob": True}


@cache
def device() -> NativeDevice:
    found = opened(choose("native", threads=2))
    assert isinstance(found, NativeDevice)
    return found


@pytest.fixture(autouse=True)
def without_tuning_results(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule_lookup, "tuning_results", lambda path: None)


FORMS = pytest.mark.parametrize("form", ["plain", "model"])
"""Without schedules, or with those of the cost model."""


def assert_right(program: HostProgram, parameters: dict[str, int], given_: dict[str, Any], form: str) -> None:
    run = CompiledProgram(program, device(), plain_launch if form == "plain" else TunedEmitter())
    found = run.run(**parameters, **{name: array.copy() for name, array in given_.items()}).arrays
    expected = evaluated(program)(parameters, given_)
    verdict = check_run(program, parameters, given_, expected, found, made_up=True)  # type: ignore[arg-type]
    assert verdict.passed, verdict.mismatches


FORM_NAMES = ("plain", "model")


@pytest.mark.parametrize(
    ("name", "form"),
    [
        pytest.param(name, form, marks=() if (k + i) % 2 == 0 else SLOW)
        for i, form in enumerate(FORM_NAMES)
        for k, name in enumerate(HOMS)
    ],
)
def test_md_homs(name: str, form: str) -> None:
    assert_right(HOMS[name], {}, inputs(HOMS[name], {}), form)


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize(
    ("path", "form"),
    [
        pytest.param(p, form, marks=() if p in EXAMPLES[k::2] else SLOW)
        for k, form in enumerate(FORM_NAMES)
        for p in C_FILES
    ],
)
def test_programs_in_c(path: Path, form: str) -> None:
    for program in c_programs(path):
        parameters = sizes(program, (7, 5, 6))
        assert_right(program, parameters, inputs(program, parameters), form)


@pytest.mark.parametrize("name", one_in(24, ZOO))
@FORMS
def test_layers(name: str, form: str) -> None:
    assert_right(layer(ZOO[name]), {}, inputs(layer(ZOO[name]), {}), form)


def check_md_hom(case: Case, seed: int) -> None:
    for form in ("plain", "model"):
        assert_right(case.program, {}, case.data(seed), form)


@pytest.mark.slow
@pytest.mark.ci
@settings(max_examples=6, **QUIET)
@given(md_homs(extras=True), st.integers(0, 2**32))
def test_a_few_random_md_homs(case: Case, seed: int) -> None:
    check_md_hom(case, seed)


@pytest.mark.slow
@settings(max_examples=200, **QUIET)
@given(md_homs(extras=True), st.integers(0, 2**32))
def test_many_random_md_homs(case: Case, seed: int) -> None:
    check_md_hom(case, seed)


SIZES = st.fixed_dictionaries({n: st.integers(*limits) for n, limits in random_c.PARAMETERS.items()})


def check_c(program: random_c.CProgram, parameters: dict[str, int], seed: int) -> None:
    (host,) = host_programs_of(program.text)
    known = {p.name: parameters[p.name] for p in host.parameters}
    data = program.data(seed)
    needed = {b.name for b in host.buffers}
    for form in ("plain", "model"):
        assert_right(host, known, {n: a for n, a in data.items() if n in needed}, form)


@pytest.mark.slow
@pytest.mark.ci
@settings(max_examples=4, **QUIET)
@given(random_c.c_programs(), SIZES, st.integers(0, 2**32))
def test_a_few_random_programs(program: random_c.CProgram, sizes_: dict[str, int], seed: int) -> None:
    check_c(program, sizes_, seed)


@pytest.mark.slow
@settings(max_examples=100, **QUIET)
@given(random_c.c_programs(), SIZES, st.integers(0, 2**32))
def test_many_random_programs(program: random_c.CProgram, sizes_: dict[str, int], seed: int) -> None:
    check_c(program, sizes_, seed)


ONLY_THE_FIRST = """
void kernel(int n, int b[40], int B[40][40])
{
#pragma scop
  for (int i = 0; i < n; i++) {
    int product = b[3];
    if (i == 0)
      for (int j = 1; j < n; j++) {
        product *= j - B[20 * i][0];
        B[2][2 * j + 2] = product;
      }
    b[2 * i + 3] = product;
  }
#pragma endscop
}
"""


def test_what_is_not_stored_is_not_computed() -> None:
    """In a loop of the host program, too: with ``i`` of 2 there is no row 40."""
    (host,) = host_programs_of(ONLY_THE_FIRST)
    for form in ("plain", "model"):
        assert_right(host, {"n": 3}, inputs(host, {"n": 3}), form)


def loaded(text: str, folder: Path, fp: str) -> CompiledProgram:
    source = folder / "kernel.c"
    source.write_text(text)
    return load_opencl(source, Reading(fp=fp), choose("native", threads=2))


@pytest.mark.parametrize("name", one_in(4, floating.SPELLINGS))
def test_a_nan_does_what_it_does_in_c(name: str, tmp_path: Path) -> None:
    text = floating.HEAD + floating.function(floating.SPELLINGS[name])
    arguments = floating.special(7)
    wanted = floating.c_results(tmp_path, name, arguments)["o"]
    assert floating.same(floating.run(loaded(text, tmp_path, "reassociate"), arguments)["o"], wanted)


@pytest.mark.parametrize("name", floating.STRICT)
@pytest.mark.parametrize("kind", ["float", pytest.param("double", marks=SLOW)])
def test_strict_has_the_bits_of_gcc(name: str, kind: str, tmp_path: Path) -> None:
    text = floating.HEAD + floating.function(floating.STRICT[name], kind=kind)
    arguments = floating.mixed(3, "float32" if kind == "float" else "float64")
    found = floating.run(loaded(text, tmp_path, "strict"), arguments)
    for array, values in compiled(text, "kernel", tmp_path)(arguments).items():
        assert floating.same_bits(found[array], values), array


@pytest.mark.parametrize("kind", ["short", "unsigned char", "int", "unsigned", "long long", "double"])
def test_division_by_zero_and_overflow(kind: str, tmp_path: Path) -> None:
    names = {
        "short": "int16",
        "unsigned char": "uint8",
        "int": "int32",
        "unsigned": "uint32",
        "long long": "int64",
        "double": "float64",
    }
    text = f"""
void kernel({kind} A[40], {kind} B[40], {kind} q[40], {kind} p[40])
{{
    for (int i = 0; i < 40; i++) {{ q[i] = A[i] / B[i]; p[i] = A[i] * A[i] + B[i]; }}
}}
"""
    dtype = np.dtype(names[kind])
    largest = np.finfo(dtype).max if dtype.kind == "f" else np.iinfo(dtype).max
    rng = np.random.default_rng(3)
    a = rng.choice([0, 1, 7, largest, largest - 1], 40).astype(dtype)
    b = rng.choice([0, 1, 2, 3], 40).astype(dtype)
    program = loaded(text, tmp_path, "strict")
    run = {"A": a, "B": b, "q": np.zeros(40, dtype), "p": np.zeros(40, dtype)}
    wanted = evaluated(program.program)({}, {n: a.copy() for n, a in run.items()}).arrays
    program(**run)
    for name, array in wanted.items():
        np.testing.assert_array_equal(run[name], array, err_msg=name)


def test_strict_has_the_bits_of_gcc_where_gcc_would_make_vectors_of_its_own(tmp_path: Path) -> None:
    """gcc 12: sums in the order of the subscripts, ``(double)(float)x`` that is ``x``."""
    text = """void kernel(double c[64], double s[1], float f[9], double A[9][9]) {
  for (int i = 0; i < 50; i += 3) {
    s[0] += c[i + 1];
    s[0] += c[i];
    s[0] += c[i + 2];
  }
  for (int i = 0; i < 9; i++)
    for (int j = 0; j < 9; j++)
      f[i] += A[i][j] * c[j];
}
"""
    rng = np.random.default_rng(5)
    arguments = {name: np.exp(rng.uniform(-7, 7, size)) for name, size in (("c", 64), ("s", 1), ("f", 9))}
    arguments |= {"f": arguments["f"].astype(np.float32), "A": np.exp(rng.uniform(-7, 7, (9, 9)))}
    found = floating.run(loaded(text, tmp_path, "strict"), arguments)
    for array, values in compiled(text, "kernel", tmp_path)(arguments).items():
        assert floating.same_bits(found[array], values), array


HISTOGRAM = """
void sizes(const int place[300][301], const {kind} weight[300][301], {kind} bins[{count}])
{{
#pragma scop
  for (int i = 0; i < 300; i++)
    for (int j = 0; j < 301; j++)
      if (j != i) bins[place[i][j]] += weight[i][j];
#pragma endscop
}}
"""


@pytest.mark.parametrize("kind", ["int", "double"])
def test_a_histogram_has_bins_for_each_thread(kind: str) -> None:
    (program,) = host_programs_of(HISTOGRAM.format(kind=kind, count=37))
    rng = np.random.default_rng(3)
    given_ = {
        "place": rng.integers(0, 37, (300, 301)).astype(np.int32),
        "weight": rng.integers(-9, 9, (300, 301)).astype("int32" if kind == "int" else "float64"),
        "bins": np.arange(37).astype("int32" if kind == "int" else "float64"),
    }
    assert_right(program, {}, given_, "model")
    assert _shared_loops(program) == 1
    (ordered,) = host_programs_of(HISTOGRAM.format(kind=kind, count=37), ReductionMode.IGNORE)
    assert _shared_loops(ordered) == 0


def test_a_histogram_of_few_points_for_a_bin_is_one_threads() -> None:
    (program,) = host_programs_of(HISTOGRAM.format(kind="int", count=20000))
    assert _shared_loops(program) == 0


def _shared_loops(program: HostProgram) -> int:
    tree = tree_of(program, plain, device().model)
    return sum(isinstance(s, For) and s.kind is Kind.GROUP for s in walk(tree.body))


@pytest.mark.parametrize("elements", [3, 7])
def test_the_border_of_few_padded_elements_is_kept(elements: int) -> None:
    """It is filled once, when a program is loaded; each run had the elements in an array of its own."""
    text = f"""
lair pad() : float32 x[{elements}] -> float32 p[{elements + 1}] {{ all (i) in ({elements}) p[i] max= x[i] }}
lair pool() : float32 p[{elements + 1}] -> float32 y[{(elements + 1) // 2}]
{{ all (i, r) in ({(elements + 1) // 2}, 2) y[i] max= p[2 * i + r] }}
graph both: float32 x[{elements}] -> float32 y[{(elements + 1) // 2}] {{ p = pad(x) y = pool(p) }}
"""
    x = -np.arange(1, elements + 1, dtype=np.float32)
    found = polyloom.load(text).run(x=x).outputs["y"]
    np.testing.assert_array_equal(found, x[::2])
