"""What C can say and PEs cannot compute is refused by name: the codes that no LAIR layer can bring about."""

from __future__ import annotations

from pathlib import Path

import pytest

import polyloom
from polyloom.diagnostics import Unsupported
from polyloom.frontends.lair.lowering.names import binary_functions, unary_functions

LAYER = """
#include <math.h>
void f(%s x[4], %s y[4])
{
#pragma scop
  for (int i = 0; i < 4; i++)
    y[i] = %s;
#pragma endscop
}
"""
MAP = "size: { PE[1, 1] }\ncompute_map: { S1[i] -> PE[0, 0] }\n"


def codes(tmp_path: Path, kind: str, value: str) -> list[str]:
    source = tmp_path / "layer.c"
    source.write_text(LAYER % (kind, kind, value))
    program = polyloom.read_program(source)
    with pytest.raises(Unsupported) as caught:
        polyloom.explain(program, polyloom.read_mapping(MAP, program))
    return [d.code for d in caught.value.diagnostics]


def test_types_that_the_machine_lacks(tmp_path: Path) -> None:
    assert set(codes(tmp_path, "double", "x[i] + 1")) == {"wafer-type", "wafer-function"}


@pytest.mark.parametrize("value", ["atan2f(x[i], 2)", "x[i] + i", "fmodf(x[i], 2)"])
def test_functions_that_the_machine_lacks(tmp_path: Path, value: str) -> None:
    assert set(codes(tmp_path, "float", value)) == {"wafer-function"}


@pytest.mark.parametrize("kind", ["float16", "float32"])
def test_the_machine_has_every_function_of_lair(kind: str) -> None:
    calls = [f"{name}(x[i])" for name in unary_functions()] + [
        f"{name}(x[i], 2)" for name in binary_functions()
    ]
    body = " + ".join(f"select(x[i] < {k}, {call}, 0)" for k, call in enumerate(calls))
    program = polyloom.read_program(
        f"lair f(): {kind} x[4] -> {kind} y[4] {{ all (i) in (4) y[i] = {body} }}"
    )
    mapping = polyloom.read_mapping("size: { PE[1, 1] }\ncompute_map: { f[i] -> PE[0, 0] }", program)
    result = polyloom.simulate(program, mapping, check=True)
    assert result.check is not None and result.check.passed
