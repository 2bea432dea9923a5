"""Floating point as C has it: NaN in every spelling of max and min; ``--fp strict``: the bits of gcc."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compiled_c import compiled
from polyloom.device_pipeline import drop_in, load_opencl
from polyloom.diagnostics import Unsupported
from polyloom.ir.evaluation.programs import evaluate_host
from polyloom.mdh.compiled import CompiledProgram
from polyloom.mdh.device.devices import choose_device
from polyloom.mdh.dropin.folder import DropIn
from polyloom.mdh.lowering.tuning_targets import tune_targets
from polyloom.mdh.print.kernel_source import UNCONTRACTED
from polyloom.mdh.schedule.signature import key_of, options_of
from polyloom.sources import LoadedHost, Reading, load_host_programs
from samples import LATER

ROWS, COLUMNS = 24, 70
MACROS = "#define MAX(a, b) ((a) > (b) ? (a) : (b))\n#define MIN(a, b) ((a) < (b) ? (a) : (b))\n"
HEAD = f"#include <math.h>\n{MACROS}"
SPELLINGS = {
    "greater": "if (A[r][i] > o[r]) o[r] = A[r][i];",
    "greater_equal": "if (A[r][i] >= o[r]) o[r] = A[r][i];",
    "chosen": "o[r] = A[r][i] < o[r] ? A[r][i] : o[r];",
    "kept": "o[r] = o[r] > A[r][i] ? o[r] : A[r][i];",
    "kept_equal": "o[r] = o[r] <= A[r][i] ? o[r] : A[r][i];",
    "macro": "o[r] = MAX(o[r], A[r][i]);",
    "macro_turned": "o[r] = MIN(A[r][i], o[r]);",
    "negated": "if (!(o[r] >= A[r][i])) o[r] = A[r][i];",
    "negated_choice": "o[r] = !(A[r][i] > o[r]) ? o[r] : A[r][i];",
    "fmax": "o[r] = fmaxf(o[r], A[r][i]);",
    "fmin": "o[r] = fminf(A[r][i], o[r]);",
    "guarded": "if (B[r][i] > 0) o[r] = fmaxf(o[r], A[r][i]);",
    "guarded_choice": "if (B[r][i] > 0) o[r] = A[r][i] > o[r] ? A[r][i] : o[r];",
    "guarded_sum": "if (B[r][i] > 0) o[r] += A[r][i];",
    "fdim": "o[r] += fdimf(A[r][i], B[r][i]);",
}
ON_DEVICE = ("greater", "macro", "fmax", "fdim")


def function(body: str, name: str = "kernel", kind: str = "float") -> str:
    arrays = f"{kind} A[{ROWS}][{COLUMNS}], {kind} B[{ROWS}][{COLUMNS}], {kind} o[{ROWS}]"
    loops = f"for (int r = 0; r < {ROWS}; r++) for (int i = 0; i < {COLUMNS}; i++) {{ {body} }}"
    return f"void {name}({arrays})\n{{\n#pragma scop\n{loops}\n#pragma endscop\n}}\n"


def special(seed: int) -> dict[str, Any]:
    """Small integers; rows with few, many and no numbers; infinities, zeros of both signs."""
    generator = np.random.default_rng(seed)
    values = generator.integers(-9, 10, (ROWS, COLUMNS)).astype(np.float32)
    share = generator.choice([0, 0, 0.02, 0.3, 1], (ROWS, 1))
    values[generator.random(values.shape) < share] = np.nan
    values[:4][generator.random((4, COLUMNS)) < 0.1] = -np.inf
    values[4:6] = np.where(values[4:6] > 0, 0.0, -0.0)
    starts = generator.choice([np.nan, -np.inf, np.inf, -0.0, 3], ROWS).astype(np.float32)
    return {"A": values, "B": generator.integers(-1, 2, values.shape).astype(np.float32), "o": starts}


def same(found: Any, wanted: Any) -> bool:
    """Equal with NaN where NaN is; which zero the largest is, is open."""
    return np.array_equal(found, wanted, equal_nan=True)


def same_bits(found: Any, wanted: Any) -> bool:
    return same(found, wanted) and np.array_equal(np.signbit(found), np.signbit(wanted))


def c_results(folder: Path, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return compiled(HEAD + function(SPELLINGS[name]), "kernel", folder)(arguments)


@pytest.mark.parametrize(
    ("fp", "name"),
    [
        pytest.param(fp, name, marks=LATER if (k + i) % 2 else ())
        for i, fp in enumerate(("reassociate", "strict"))
        for k, name in enumerate(SPELLINGS)
    ],
)
def test_a_nan_does_what_it_does_in_c(name: str, fp: str, tmp_path: Path) -> None:
    source = tmp_path / "kernel.c"
    source.write_text(HEAD + function(SPELLINGS[name]))
    arguments = special(7)
    wanted = c_results(tmp_path, name, arguments)["o"]
    (loaded,) = load_host_programs(source, Reading(fp=fp))
    read = {b.name for b in loaded.program.buffers if b.role.value in ("input", "updated")}
    found = evaluate_host(loaded.program, {}, {n: a for n, a in arguments.items() if n in read})["o"]
    any_zero = fp != "strict" or "fm" in SPELLINGS[name]
    assert (same if any_zero else same_bits)(found, wanted)
    if name in ON_DEVICE and fp == "reassociate":
        assert same(run(load_opencl(source, Reading(), choose_device(None)), arguments)["o"], wanted)


def run(program: CompiledProgram, arguments: dict[str, Any]) -> dict[str, Any]:
    given = {n: a.copy() for n, a in arguments.items()}
    program(**given)
    return given


STRICT = {
    "sum": "o[r] += A[r][i];",
    "product": "o[r] *= 1 + A[r][i] * B[r][i];",
    "difference": "o[r] = o[r] - A[r][i] * B[r][i];",
    "three": "o[r] = o[r] + A[r][i] + B[r][i];",
    "two_minus": "o[r] = (A[r][i] - (B[r][i] + A[r][i])) + o[r];",
    "guarded": "if (B[r][i] > 0) o[r] += A[r][i] / B[r][i];",
    "scan": "o[r] += A[r][i]; B[r][i] = sqrt(fabs(o[r]));",
    "recurrence": "A[r][i] = (i > 0 ? A[r][i - (i > 0)] : 1) * B[r][i] + o[r];",
}


def mixed(seed: int, kind: str) -> dict[str, Any]:
    """Reals of many magnitudes, and a few denormal ones."""
    generator = np.random.default_rng(seed)

    def array(*shape: int) -> Any:
        found = generator.standard_normal(shape) * 10.0 ** generator.integers(-6, 6, shape)
        found[generator.random(shape) < 0.02] *= 1e-38
        return found.astype(kind)

    return {"A": array(ROWS, COLUMNS), "B": array(ROWS, COLUMNS), "o": array(ROWS)}


@pytest.mark.parametrize("name", STRICT)
@pytest.mark.parametrize("kind", [pytest.param("float", marks=LATER), "double"])
def test_strict_has_the_bits_of_gcc(name: str, kind: str, tmp_path: Path) -> None:
    text = HEAD + function(STRICT[name], kind=kind)
    source = tmp_path / "kernel.c"
    source.write_text(text)
    arguments = mixed(3, "float32" if kind == "float" else "float64")
    wanted = compiled(text, "kernel", tmp_path)(arguments)
    program = load_opencl(source, Reading(fp="strict"), choose_device(None))
    read = {b.name for b in program.program.buffers if b.role.value in ("input", "updated")}
    evaluated = evaluate_host(program.program, {}, {n: a for n, a in arguments.items() if n in read})
    found = run(program, arguments) if kind == "float" or name in ("sum", "product") else evaluated
    for array, values in wanted.items():
        assert same_bits(found.get(array, values), values), array
        assert same_bits(evaluated.get(array, values), values), array


def loaded(tmp_path: Path, fp: str) -> LoadedHost:
    source = tmp_path / "kernel.c"
    source.write_text(HEAD + function("o[r] += A[r][i];"))
    (found,) = load_host_programs(source, Reading(fp=fp))
    return found


def on_opencl(tmp_path: Path, fp: str) -> DropIn:
    return drop_in(None, [loaded(tmp_path, fp)], Reading(fp=fp), "opencl", None, {})


def test_what_is_kept_and_written_knows_the_option(tmp_path: Path) -> None:
    kernels = {fp: "".join(on_opencl(tmp_path, fp).files.values()) for fp in ("strict", "reassociate")}
    assert UNCONTRACTED.strip() in kernels["strict"] and UNCONTRACTED.strip() not in kernels["reassociate"]
    keys = set()
    for fp in ("strict", "reassociate"):
        program = loaded(tmp_path, fp).program
        (target,) = tune_targets(program)
        assert target.program().strict is program.strict is (fp == "strict")
        options = options_of(strict=target.strict)
        keys.add(key_of(target.node, target.buffers, "device", options))
    assert len(keys) == 2


def test_strict_names_the_functions_whose_bits_are_the_devices(tmp_path: Path) -> None:
    source = tmp_path / "kernel.c"
    source.write_text(HEAD + function("A[r][i] = sqrtf(B[r][i]) + expf(B[r][i]);"))
    (strict,) = load_host_programs(source, Reading(fp="strict"))
    (remark,) = [r for r in strict.remarks if r.code == "fp-library"]
    assert " exp " in remark.message and "sqrt" not in remark.message


@pytest.mark.parametrize("call", ["fmaf(A[r][i], B[r][i], o[r])", "(float)fma(A[r][i], 2.0, 1.0)"])
def test_strict_refuses_what_is_rounded_once_in_c(call: str, tmp_path: Path) -> None:
    source = tmp_path / "kernel.c"
    source.write_text(HEAD + function(f"o[r] = {call};"))
    with pytest.raises(Unsupported) as refused:
        load_host_programs(source, Reading(fp="strict"))
    (diagnostic,) = refused.value.diagnostics
    assert diagnostic.code == "fp-fma"
    assert diagnostic.span is not None
    assert load_host_programs(source, Reading())
