"""A program taken apart gives, layer after layer, what the whole gives."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from polyloom import evaluate, random_inputs, read_program
from polyloom.ir.conversion.split_layers import layers_of
from polyloom.ir.program import Part, Program
from polyloom.ir.statements import Statement

EXAMPLES = Path(__file__).parents[3] / "examples"

TWICE = """
lair ff<T>(M, N): T W[M][N], T x[N] -> T y[M] { all (i, j) in (M, N) y[i] += W[i][j] * x[j] }
lair double<T>(N): T x[N] -> T z[N] { T h[N]  all (i) in (N) h[i] = x[i] + x[i]  all (i) in (N) z[i] = h[i] }
graph net: float16 A[6][4], float16 B[3][6], float16 x[4] -> float16 z[3], float16 h[6]
{
  h = ff<float16>(6, 4)(A, x)
  g = ff<float16>(3, 6)(B, h)
  z = double<float16>(3)(g)
}
"""


def check_layers(program: Program) -> tuple[Program, ...]:
    layers = tuple(layer.program for layer in layers_of(program))
    known = dict(random_inputs(program))
    whole = evaluate(program, known)
    for layer in layers:
        found = evaluate(layer, {name: known[name] for name in layer.inputs})
        assert set(layer.outputs) <= found.keys()
        known |= {name: found[name] for name in layer.outputs}
    for name in program.outputs:
        np.testing.assert_array_equal(known[name], whole[name])
    assert [s for layer in layers for s in layer.statements] == list(program.statements)
    return layers


def test_calls_of_a_graph_are_layers() -> None:
    layers = check_layers(read_program(TWICE))
    assert [(p.name, p.inputs, p.outputs) for p in layers] == [
        ("h", ("A", "x"), ("h",)),
        ("g", ("B", "h"), ("g",)),
        ("double", ("g",), ("z",)),
    ]
    assert len(layers[2].statements) == 2 and len(layers[2].internal) == 1


@pytest.mark.parametrize(
    ("source", "defines", "names"),
    [
        ("training", {}, ["ff", "fg", "fd", "update"]),
        ("mlp", {"K": 8, "M": 12, "N": 6}, ["mlp_s", "mlp_h", "mlp_y"]),
        ("conv1d", {}, ["C"]),
    ],
)
def test_layers_of_examples(source: str, defines: dict[str, object], names: list[str]) -> None:
    layers = check_layers(read_program(EXAMPLES / f"{source}.lair", defines=defines))
    assert [layer.name for layer in layers] == names


def test_what_nothing_reads_is_an_output() -> None:
    body = "float16 t[4] all (i) in (4) t[i] = x[i] all (i) in (4) y[i] = x[i]"
    text = f"lair n(): float16 x[4] -> float16 y[4] {{ {body} }}"
    assert [layer.program.outputs for layer in layers_of(read_program(text))] == [("t",), ("y",)]


def test_a_layer_has_a_name_for_people_and_one_for_c() -> None:
    program = read_program(TWICE)
    names = ["model/1:conv é", "2", "_x"]
    parts = tuple(replace(part, name=name) for part, name in zip(program.parts, names, strict=True))
    layers = layers_of(replace(program, parts=parts))
    assert [layer.name for layer in layers] == names
    assert [layer.program.name for layer in layers] == ["model_1_conv__", "layer_2", "layer__x"]


def test_statements_that_are_gone_and_statements_of_no_part() -> None:
    program = read_program(TWICE)
    parts = (Part("all", (program.statements[1].name, "gone")), Part("nothing", ("gone",)))
    names = [layer.name for layer in layers_of(replace(program, parts=parts))]
    assert names == ["h", "all", *(s.name for s in program.statements[2:])]


def test_statements_are_told_apart_by_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """The 461 layers of a training step of ResNet-18 took more than 18 minutes when they were compared."""

    def compared(self: Statement, other: object) -> bool:
        raise AssertionError("statements are compared")

    program = read_program(TWICE)
    monkeypatch.setattr(Statement, "__eq__", compared)
    assert len(layers_of(program)) == 3
