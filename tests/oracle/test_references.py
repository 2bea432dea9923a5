"""Both references of C: what the C compiler builds, and the statements run in the order of the source.

``regions/*.c`` have parts that are only a piece of their function, in all the places where C keeps arrays;
the first line says the values of parameters, 9 where it is silent.
"""

from __future__ import annotations

import re
import resource
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from polyloom.diagnostics import PolyloomError
from polyloom.ir.evaluation.inputs import shape_of
from polyloom.ir.evaluation.random_inputs import random_inputs
from polyloom.ir.evaluation.uninitialised import garbage
from polyloom.ir.host import HostProgram, Role
from polyloom.ir.verification.references import Expected
from polyloom.oracle import c_reference, compiled_c, interpreter
from polyloom.oracle.c_compiler import find_c_compiler
from polyloom.oracle.c_reference import IN_ORDER, CReference
from polyloom.programs import Ended
from polyloom.sources import LoadedHost, Reading, load_host_programs

HERE = Path(__file__).parent
REGIONS = sorted((HERE / "regions").glob("*.c"))
PROGRAMS = sorted((HERE.parent / "frontends/c/programs").glob("*.c"))
COMPILER = find_c_compiler()
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")
Arrays = dict[str, npt.NDArray[Any]]


def arrays_of(program: HostProgram, parameters: Mapping[str, int], **given: Any) -> Arrays:
    arrays = random_inputs(program, parameters=parameters)
    outer = [b for b in program.buffers if b.role is not Role.LOCAL and b.name not in arrays]
    made = {b.name: garbage(shape_of(b, parameters), b.type) for b in outer}
    return {**arrays, **made, **{name: np.asarray(value) for name, value in given.items()}}


def values_of(program: HostProgram, text: str) -> dict[str, int]:
    stated = {m[1]: int(m[2]) for m in re.finditer(r"(\w+)=(-?\d+)", text.splitlines()[0])}
    return {p.name: stated.get(p.name, 9) for p in program.parameters}


def in_ranges(arrays: Arrays, text: str) -> Arrays:
    """Return arrays with what the first line asks for: ``x:1..9``."""
    rng = np.random.default_rng(len(text))
    stated = re.finditer(r"(\w+):(-?\d+)\.\.(-?\d+)", text.splitlines()[0])
    ranges = {m[1]: (int(m[2]), int(m[3]) + 1) for m in stated}
    return {
        name: rng.integers(*ranges[name], array.shape).astype(array.dtype) if name in ranges else array
        for name, array in arrays.items()
    }


def loaded(text: str, folder: Path) -> LoadedHost:
    (folder / "program.c").write_text(text)
    (found,) = load_host_programs(folder / "program.c", Reading())
    return found


def run(text: str, folder: Path, parameters: Mapping[str, int], **given: Any) -> Expected:
    found = loaded(text, folder)
    assert found.reference is not None
    return found.reference(parameters, arrays_of(found.program, parameters, **given))


def refusal(text: str, folder: Path, parameters: Mapping[str, int], **given: Any) -> PolyloomError:
    with pytest.raises(PolyloomError) as caught:
        run(text, folder, parameters, **given)
    return caught.value


def equal(first: Arrays, second: Arrays) -> Iterator[str]:
    """Yield the names of arrays that differ by more than another rounding of a function of ``math.h``."""
    assert first.keys() == second.keys()
    for name, array in first.items():
        tolerance = 1e-6 if array.dtype == np.float32 else 1e-12
        close = np.allclose(array, second[name], rtol=tolerance, atol=0, equal_nan=True)
        if array.dtype != second[name].dtype or array.shape != second[name].shape or not close:
            yield name


@needs_compiler
@pytest.mark.parametrize("path", REGIONS, ids=lambda p: p.stem)
def test_both_agree(path: Path) -> None:
    check_both(path)


@needs_compiler
@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: p.stem)
def test_both_agree_on_whole_functions(path: Path) -> None:
    check_both(path)


def check_both(path: Path) -> None:
    text = path.read_text()
    assert COMPILER is not None
    for part in load_host_programs(path, Reading()):
        assert isinstance(part.reference, CReference)
        parameters = values_of(part.program, text)
        arrays = in_ranges(arrays_of(part.program, parameters), text)
        before = {name: array.copy() for name, array in arrays.items()}
        compiled = part.reference.compiled(COMPILER, parameters, arrays)
        interpreted = part.reference.interpreted(parameters, arrays)
        assert compiled.arrays and list(equal(compiled.arrays, interpreted.arrays)) == []
        assert compiled.reading_checked and compiled.by == f"the C program, built by {COMPILER.name}"
        assert not interpreted.reading_checked and interpreted.by == IN_ORDER
        assert list(equal(before, arrays)) == []


OUTSIDE = {
    "behind a pointer": ("double *a, double b[n]", "a[i] = b[i + 1]", "`b`, 0 bytes behind its end"),
    "before a pointer": ("double *a, double b[n]", "a[i] = b[i - 1]", "`b`, 8 bytes before its start"),
    "far away": ("float *a, float b[n]", "a[i] = b[i + 100000]", "behind its end"),
    "written": ("double a[n], double *b", "a[2 * i] = 1", "`a`, "),
    "a computed subscript": ("int a[n], int b[n]", "a[b[i] + 100 * i] = 1", "`a`, "),
    "a dimension inside": (
        "float a[n][7], float *b",
        "a[i][i] = 1",
        "the subscript 7 of 'float [7]' in line 4",
    ),
    "a variable dimension": ("float a[n][n - 1], float *b", "b[i] = a[i][i]", "the subscript 8 of 'float "),
    "a global": ("float *b", "b[i] = global[i]", "the subscript 8 of 'float [8]' in line 4"),
}


@needs_compiler
@pytest.mark.parametrize("name", OUTSIDE)
def test_an_access_outside_is_named(name: str, tmp_path: Path) -> None:
    arguments, statement, said = OUTSIDE[name]
    text = (
        f"float global[8];\nvoid f(int n, {arguments})\n{{\n  for (int i = 0; i < n; i++) {statement};\n}}\n"
    )
    (fault,) = refusal(text, tmp_path, {"n": 9, "a_extent": 9}).diagnostics
    assert fault.code == "access-outside" and said in fault.message
    interpreted = loaded(text, tmp_path)
    assert isinstance(interpreted.reference, CReference)
    with pytest.raises(PolyloomError, match="outside of an array"):
        arrays = arrays_of(interpreted.program, {"n": 9, "a_extent": 9})
        interpreted.reference.interpreted({"n": 9}, arrays)


@pytest.mark.parametrize(
    "statement",
    ["if (k[i] >= 0) a[k[i]] = 1", "if (k[i] >= 0) a[k[i]] += 1", "a[i] = k[i] < 0 ? 0 : a[k[i]]"],
)
def test_what_a_condition_guards_is_inside(statement: str, tmp_path: Path) -> None:
    text = f"void f(int n, int k[n], double a[8])\n{{ for (int i = 0; i < n; i++) {statement}; }}\n"
    k = np.array([3, -(10**8), 5, 2, -1], np.int32)
    found = loaded(text, tmp_path)
    assert isinstance(found.reference, CReference)
    arrays = arrays_of(found.program, {"n": 5}, k=k)
    expected = [found.reference({"n": 5}, arrays), found.reference.interpreted({"n": 5}, arrays)]
    assert list(equal(expected[0].arrays, expected[1].arrays)) == []


@needs_compiler
def test_a_program_that_dies_takes_nothing_with_it(tmp_path: Path) -> None:
    text = "void f(int n, int a[n]) { for (int i = 0; i < n; i++) a[i] = 7 / a[i]; }"
    (fault,) = refusal(text, tmp_path, {"n": 3}, a=np.zeros(3, np.int32)).diagnostics
    assert fault.code == "reference-died" and "SIGFPE" in fault.message


@pytest.mark.slow
@pytest.mark.ci
@needs_compiler
def test_a_program_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    loops = " ".join(f"for (int {i} = 0; {i} < n; {i}++)" for i in "ijk")
    found = loaded(f"void f(int n, int a[2]) {{ {loops} a[0] = a[0] * 3 + k; }}", tmp_path)
    assert isinstance(found.reference, CReference)
    with pytest.raises(PolyloomError) as caught:
        replace(found.reference, seconds=0.5)({"n": 100_000}, arrays_of(found.program, {"n": 100_000}))
    assert caught.value.diagnostics[0].code == "reference-time"


@needs_compiler
def test_a_full_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One without room for the arrays, and one without room for what they become."""
    found = loaded(SUM, tmp_path)
    arrays = arrays_of(found.program, {"n": 5000})
    found.reference({"n": 5000}, arrays)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        with pytest.raises(PolyloomError, match="file-unwritable"):
            found.reference({"n": 5000}, arrays)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    def without_report(command: Sequence[str], **_: Any) -> Ended:
        Path(command[3]).touch()
        return Ended(compiled_c.FAULT, "", "")

    monkeypatch.setattr(compiled_c, "run_program", without_report)
    with pytest.raises(PolyloomError, match="not enough disk"):
        found.reference({"n": 5000}, arrays)


@needs_compiler
def test_local_arrays_may_be_larger_than_a_stack(tmp_path: Path) -> None:
    text = """
    int main(void)
    {
      double a[1100][1100], b[1100][1100];
    #pragma scop
      for (int i = 0; i < 1100; i++)
        for (int j = 0; j < 1100; j++)
          a[i][j] = 2 * b[i][j];
    #pragma endscop
      return 0;
    }
    """
    b = np.arange(1100 * 1100.0).reshape(1100, 1100)
    np.testing.assert_array_equal(run(text, tmp_path, {}, b=b).arrays["a"], 2 * b)


SUM = "void f(int n, double a[n]) { for (int i = 1; i < n; i++) a[i] += a[i - 1]; }"


def test_without_a_compiler_statements_run_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(c_reference, "find_c_compiler", lambda: None)
    found = run(SUM, tmp_path, {"n": 6}, a=np.arange(6.0))
    assert found.arrays["a"].tolist() == [0, 1, 3, 6, 10, 15]
    assert found.by == IN_ORDER and found.notes == ("there is no C compiler",)
    monkeypatch.setattr(interpreter, "MOST_INSTANCES", 4)
    (fault,) = refusal(SUM, tmp_path, {"n": 6}).diagnostics
    assert fault.code == "reference-size" and "install a C compiler" in fault.helps[0]


@needs_compiler
def test_what_the_compiler_refuses_runs_in_order(tmp_path: Path) -> None:
    text = f'#ifndef __POLYLOOM__\n#error\n#endif\n{SUM}\n_Static_assert(0, "out of order");\n'
    found = run(text, tmp_path, {"n": 3}, a=np.ones(3))
    assert found.arrays["a"].tolist() == [1, 2, 3] and found.by == IN_ORDER
    assert "does not build it" in found.notes[0] and "out of order" in found.notes[0]
