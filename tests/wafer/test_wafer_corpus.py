"""Every layer of examples/layers.txt, in every mode: right, bit for bit, and no SIMD lost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import pytest
from corpus import EXAMPLES, Layer, compiled, inputs_of, layers, mistakes, together

from polyloom.wafer.program.wafer_program import WaferProgram
from polyloom.wafer.simd.decision import SimdMode, Strategy
from polyloom.wafer.simulation.run import simulate_program
from samples import LATER, first_of_each

MODES = tuple(SimdMode)
FORCED = (SimdMode.HULL, SimdMode.EXACT, SimdMode.ENUMERATE)
LETTERS = {Strategy.HULL: "H", Strategy.EXACT: "X", Strategy.ENUMERATED: "E", Strategy.NONE: "-"}
STRATEGIES = """
adam N=8                                  | HH-   HH-   XX-   ---
attention Q=6 T=6 D=4                     | HHHHHHH HHHHHHH XXXXXXX E-E---E
attention_streams Q=6 T=6 D=4             | HHH-HHH HHH-HHH XXX-XXX E-E---E
attention_training Q=6 T=6 D=4            | HHHHHH HHHHHH XXXXXX EE--EE
avgpool C=4 H=8 Q=4 R=2 S=2               | HH    HH    XX    EE
avgpool C=4 H=6 Q=4 R=3 S=1               | HH    HH    XX    -E
avgpool_global                            | H     H     X     E
axpy N=16                                 | H     H     X     -
bias N=16                                 | X     X     X     X
bias_sparse N=16                          | H     H     X     E
bias_streams N=16                         | X     X     X     X
bmm B=2 M=4 N=6 K=5                       | H     H     X     E
bmm_batches B=2 M=4 N=6 K=5               | H     H     X     E
ccsd_t H=2 P=2                            | H     H     X     E
checkerboard                              | H     H     -     -
conv1d                                    | H     H     X     E
conv1d_reversed                           | H     H     X     E
conv1d_split                              | H     H     X     E
conv1d_dilated                            | H     H     X     E
conv1d_dilated_dense                      | H     H     X     E
conv1d_same                               | E     -     X     E
conv1d_strided                            | H     H     X     E
conv1d_strided_phases                     | H     H     X     E
conv1d_strided_dilated                    | H     H     -     E
conv1d_training K=2 N=16 Q=14 R=3 S=1 D=1 | HHHH  HHHH  XXXX  EEEE
conv1d_training K=2 N=17 Q=8 R=3 S=2 D=1  | HHHH  HHHH  XXXX  EEEE
conv1x1                                   | H     H     X     E
conv2d                                    | H     H     X     -
conv2d_interchanged                       | H     H     X     -
conv2d_channels                           | H     H     X     -
conv2d_channels_columns                   | H     H     X     -
conv2d_channels_one_port                  | H     H     X     -
conv2d_dilated                            | H     H     X     E
conv2d_padded_training C=2 K=2 H=4        | -HHHH -HHHH -XXXX -EEEE
conv2d_strided                            | H     H     X     E
conv2d_training C=3 K=2 H=5 Q=3 R=3 S=1 D=1 | XHHH  -HHH  XXXX  -EEE
conv2d_training C=3 K=2 H=7 Q=3 R=3 S=2 D=1 | HHHH  HHHH  XXXX  EEEE
conv2d_training C=3 K=2 H=6 Q=2 R=3 S=1 D=2 | HHHH  HHHH  XXXX  EEEE
conv2d_training C=3 K=2 H=4 Q=4 R=1 S=1 D=1 | ----  ----  ----  ----
conv3d_training C=2 K=2 N=3               | XHHH  -HHH  XXXX  -EEE
conv8                                     | H     H     X     E
conv_grouped_training G=2 C=3 K=4 N=6     | HHHH  HHHH  XXXX  EEEE
conv_transposed                           | H     H     X     E
conv_transposed_sparse                    | H     H     X     E
conv_transposed_channels                  | H     H     X     E
conv_transposed_training C=4 K=3 N=5      | HHHH  HHHH  XXXX  EEEE
depthwise                                 | H     H     X     -
depthwise_pairs                           | H     H     X     -
depthwise_training C=4 H=5                | XHHH  -HHH  XXXX  -EEE
diagonals                                 | X     X     X     X
diagonals_gathered                        | -     -     -     -
dot N=16                                  | -     -     -     -
dot_column N=16                           | -     -     -     -
dot_grid N=16                             | X     -     X     -
dot_grid N=13                             | X     -     X     -
extremes M=6 N=8                          | HHH   HHH   XXX   -EE
extremes M=6 N=8 T=int32                  | ---   ---   ---   ---
extremes M=6 N=8 T=float32                | HHH   HHH   XXX   -EE
extremes_columns M=6 N=8                  | HHH   HHH   XXX   -EE
extremes_columns M=6 N=8 T=int16          | ---   ---   ---   ---
fc_batched B=3 M=16 N=8                   | H     H     X     E
fc_batched_dense B=3 M=16 N=8             | H     H     X     E
fc_batched_dense B=3 M=16 N=8 T=float32   | H     H     X     E
fc_batched_diagonal B=3 M=16 N=8          | H     H     X     E
fc_batched_training B=3 M=16 N=8          | HHH-H HHH-H XXX-X EEE-E
ff44 M=32 N=16                            | H     H     X     E
ff44 M=30 N=13                            | H     H     X     E
ff44 M=32 N=16 T=int16                    | -     -     -     -
ff44 M=10 N=5                             | H     H     X     E
ff44_chunks M=32 N=16                     | H     H     X     E
ff44_columns M=32 N=16                    | H     H     X     E
ff44_columns M=30 N=13                    | H     H     X     E
ff44_columns_no_port M=32 N=16            | H     H     X     E
ff44_columns_north M=32 N=16              | H     H     X     E
ff44_dense M=32 N=16                      | H     H     X     E
ff44_dense M=30 N=13                      | X     H     X     E
ff44_dense M=32 N=16 T=float32            | H     H     X     E
ff44_dense M=32 N=16 T=int32              | -     -     -     -
ff44_interleaved M=32 N=16                | H     H     X     E
ff44_interleaved M=30 N=13                | X     H     X     E
ff44_interleaved M=3 N=2                  | -     -     -     -
ff44_no_port M=32 N=16                    | H     H     X     E
ff44_no_port M=30 N=13                    | H     H     X     E
ff44_no_port M=30 N=13 T=int16            | -     -     -     -
ff44_orders M=32 N=16                     | H     H     X     E
ff44_south_west M=32 N=16                 | H     H     X     E
ff44_sparse_output M=32 N=16              | H     H     X     E
ff44_sparse_output M=30 N=13              | H     H     X     E
ff44_stored M=32 N=16                     | H     H     X     E
ff44_stored M=32 N=16 T=float32           | H     H     X     E
ff44_two_columns M=32 N=16                | H     H     X     E
ff44_two_sides M=32 N=16                  | HH    HH    XX    EE
ff45 M=32 N=16                            | H     H     X     E
ff45_ports_reversed M=32 N=16             | H     H     X     E
ff55_corner M=32 N=16                     | H     H     X     E
ff55_one_port M=32 N=16                   | H     H     X     E
ff55_one_port M=30 N=13                   | H     H     X     E
ff55_one_port M=32 N=16 T=int16           | -     -     -     -
ff_every_column M=32 N=16                 | H     H     X     E
ff_every_column M=30 N=13                 | H     H     X     E
ff_mixed M=32 N=16                        | H     H     X     E
ff_two_axes M=8 N=8                       | H     H     X     E
gemv_bias M=32 N=16                       | HX    HX    XX    EX
gemv_bias_2x2 M=4 N=6 T=float32           | HX    HX    XX    EX
gemv_bias_4x3 M=6 N=8 T=float32           | HX    HX    XX    EX
gemv_bias_corners M=32 N=16 T=float32     | HX    HX    XX    EX
gemv_bias_edges M=32 N=16 T=float32       | HX    HX    XX    EX
gemv_bias_west M=32 N=16                  | HX    HX    XX    EX
halve                                     | -     -     -     -
layer_norm B=3 N=8                        | HHH-H---HHH HHH-H---HHH XXX-X---XXX EE------E--
matmul M=6 N=6 K=6                        | H     H     X     E
matmul_dense M=6 N=6 K=6                  | H     H     X     E
matmul_dense M=6 N=6 K=6 T=int32          | -     -     -     -
matmul_one_port M=6 N=6 K=6               | H     H     X     E
matmul_one_port M=5 N=4 K=3               | H     H     X     E
matmul_split M=6 N=6 K=6                  | H     H     X     E
maxpool                                   | H     H     X     E
maxpool_sparse                            | H     H     X     E
maxpool_overlapping                       | H     H     X     E
maxpool_training C=2 H=4                  | H--   H--   X--   E--
mlp K=8 M=12 N=6                          | HHH   HHH   XXX   EEE
mlp K=7 M=10 N=5                          | HHX   HHH   XXX   EEE
mlp_one_port K=8 M=12 N=6                 | HHX   HHH   XXX   EEE
mlp_training K=8 M=12 N=6                 | HHHXHH-H HHHXHH-H XXXXXX-X EEEX-E--
momentum N=8                              | HH    HH    XX    EE
mttkrp I=4 J=5 K=6 R=8                    | H     H     X     -
mttkrp_two_steps I=4 J=5 K=6 R=8          | HH    HH    XX    EE
outer M=16 N=8                            | H     H     X     E
outer_rows M=16 N=8                       | H     H     X     E
outer_rows M=16 N=8 T=int16               | -     -     -     -
pad                                       | -     -     -     -
pad_no_port                               | -     -     -     -
pad_row                                   | X     X     X     X
padded_conv                               | -H    -H    -X    -E
product N=16                              | X     X     X     X
product_sparse N=16                       | -     -     -     -
product_streams N=16                      | X     X     X     X
relu N=16                                 | X     X     X     X
relu_gradient N=16                        | XH-   XH-   XX-   XE-
relu_interleaved N=16                     | X     X     X     X
relu_interleaved_column N=16              | -     -     -     -
relu_sparse N=16                          | -     -     -     -
residual M=6 N=4                          | HH    HH    XX    E-
residual_add N=8                          | HH   HH   XX   EE   ---
rowsum M=4 N=11                           | X     -     X     E
rowsum M=4 N=11 T=int16                   | X     -     X     E
scale N=16                                | X     X     X     X
scale_streams N=16                        | -     -     -     -
scale_triggered N=16                      | H     H     X     E
softmax M=4 N=8                           | H-HH  H-HH  X-XX  E---
softmax_columns M=4 N=8                   | H-HH  H-HH  X-XX  E---
state N=16                                | X     X     X     X
stencil7 N=5 Z=5                          | HHHHHHH HHHHHHH XXXXXXX EEEEEE-
training                                  | HHHH  HHHH  XXXX  EEEE
training_one_port                         | HHHH  HHHH  XXXX  EEEE
transpose                                 | X     X     X     X
upsample                                  | -     -     -     -
"""
"""A letter for each task: H hull, X exact, E enumerated, - none; with --simd auto, hull, exact, enumerate.

With ``--simd off``, the last column, there are as many tasks as with ``auto`` where nothing stands."""


def strategies_of(program: WaferProgram) -> str:
    return "".join(LETTERS[analysis.strategy] for analysis in program.analysis.simd)


@cache
def wanted_strategies() -> dict[str, dict[SimdMode, str]]:
    table = {}
    for line in STRATEGIES.strip().splitlines():
        name, _, letters = line.partition("|")
        auto, hull, exact, enumerated, *off = letters.split()
        plain = off[0] if off else "-" * len(auto)
        table[name.strip()] = dict(zip(MODES, (auto, plain, hull, exact, enumerated), strict=True))
    return table


def check(program: WaferProgram, density: float, invocations: int) -> None:
    tensors, mapping = program.analysis.program, program.analysis.mapping
    runs = inputs_of(tensors, mapping, density, invocations)
    result = simulate_program(program, together(mapping, runs), invocations=invocations)
    assert mistakes(program, mapping, runs, result.outputs) == []
    assert 0 < result.limit.cycles <= result.cycles


def in_modes(modes: Sequence[SimdMode], most: int | None = None) -> Iterator[Any]:
    """Every layer in each mode; slow tests are those of a kind that a layer before had.

    ``most``: tasks of a layer whose tests are not slow in the mode `auto`; None: any number.
    """
    pairs = [(layer, mode) for layer in layers() for mode in modes]
    marked = (pytest.param(*pair, marks=LATER if is_slow(*pair, most) else ()) for pair in pairs)
    yield from first_of_each(
        marked, kind_of, name=lambda case: f"{case.values[0].name}-{case.values[1].value}"
    )


def kind_of(pair: tuple[Layer, SimdMode]) -> tuple[object, ...]:
    """Return what tells programs apart: where a mode is forced what it gives, else the source as well."""
    layer, mode = pair
    gives = wanted_strategies()[layer.name][mode]
    return (mode, gives) if mode in FORCED else (mode, gives, layer.source)


def is_slow(layer: Layer, mode: SimdMode, most: int | None) -> bool:
    """Long graphs, by ``most`` or (in other modes than `auto`) two tasks; forced modes that give the same."""
    wanted = wanted_strategies()[layer.name]
    limit = most if mode is SimdMode.AUTO else 2
    long = limit is not None and len(wanted[mode]) > limit
    return long or (mode in FORCED and wanted[mode] == wanted[SimdMode.AUTO])


@pytest.mark.parametrize(("layer", "mode"), list(in_modes(MODES, most=2)))
def test_a_layer_is_right(layer: Layer, mode: SimdMode) -> None:
    program = compiled(layer, mode, "cs2")
    assert strategies_of(program) == wanted_strategies()[layer.name][mode]
    check(program, density=1.0, invocations=1)
    check(program, density=0.5, invocations=3)


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
@pytest.mark.parametrize("layer", layers(), ids=lambda layer: layer.name)
def test_a_layer_is_right_in_the_other_runs(layer: Layer, mode: SimdMode) -> None:
    program = compiled(layer, mode, "cs2")
    check(program, density=0.5, invocations=1)
    check(program, density=1.0, invocations=3)
    check(program, density=0.0, invocations=2)


def test_the_table_has_no_other_layers() -> None:
    assert sorted(wanted_strategies()) == sorted(layer.name for layer in layers())


def test_every_map_among_the_examples_is_tried() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.map")} == {layer.map for layer in layers()}
