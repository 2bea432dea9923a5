"""Names that LAIR allows and C, the simulator's headers or another name of ours would not."""

from __future__ import annotations

import re

import numpy as np
import pytest

from polyloom.diagnostics import Source
from polyloom.frontends.lair import lower
from polyloom.frontends.lair.syntax.parse import parse
from polyloom.ir import evaluate, random_inputs
from polyloom.ir.expressions import Binary, BinaryOp, Constant, Expression, Unary, UnaryOp
from polyloom.ir.types import ElementType
from polyloom.pipeline import analyse_layer
from polyloom.wafer.machine.instructions import instructions
from polyloom.wafer.machine.model import load_machine
from polyloom.wafer.machine.scalar_c import function_names, scalar_code
from polyloom.wafer.mapping.reader import read_mapping
from polyloom.wafer.pe_program.c_names import is_reserved
from polyloom.wafer.program.wafer_program import compile_program
from polyloom.wafer.simd.decision import SimdMode, SimdOptions
from polyloom.wafer.simulation.run import simulate_program
from polyloom.wafer.simulator.build import FUNCTIONS, role_headers

LAIR = """
lair {node}(): float16 {weights}[4][6], float16 {arriving}[6] -> float16 {out}[4], float16 {second}[4]
{{
  all (i, j) in (4, 6)  {out}[i] += {weights}[i][j] * {arriving}[j]
  all (i) in (4)  {second}[i] = max({out}[i], 1) / 2
}}
"""
MAP = """
size: {{ PE[3, 2] }}
compute_map: {{ {node}_{out}[i, j] -> PE[j//2, i//2]; {node}_{second}[i] -> PE[2, i//2] }}
iport_map: {{ {arriving}[j] -> [PE[j//2, -1] -> index[j]] }}
oport_map: {{ {out}[i] -> [PE[3, i//2] -> index[i]]; {second}[i] -> [PE[3, i//2] -> index[i]] }}
sparse: {arriving}
"""
NAMES = [  # node, weights, arriving, out, second
    ("main", "int", "index", "data", "value"),
    ("div", "h", "PE", "half", "float"),
    ("f", "y_local", "y", "local", "x_local"),
    ("size", "t", "send", "uintptr", "x"),
    ("uintptr", "t", "x", "y", "z"),
    ("pe", "h", "PE_X", "PE_Y", "self"),
    ("x", "index_0", "x_", "y", "size"),
    ("begin", "finish", "compute_y", "y", "x_in"),
    ("a", "b", "y_reduce", "y", "y_reduce_in"),
    ("handle", "w", "x", "end_x", "handle_x"),
    ("compute", "a_local", "x", "compute_a", "y"),
    ("load", "store", "array", "cost", "configure"),
    ("initialize", "y", "z", "_y", "__"),
    ("waiting", "finish", "finish_waiting", "y", "w"),
    ("unused", "memory", "MEMORY", "role", "operand"),
]


@pytest.mark.parametrize("names", NAMES, ids=" ".join)
def test_any_name_compiles_and_runs(names: tuple[str, ...]) -> None:
    check_names(names, (SimdMode.AUTO, SimdMode.OFF)[NAMES.index(names) % 2])


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("names", NAMES, ids=" ".join)
def test_any_name_compiles_and_runs_in_the_other_mode(names: tuple[str, ...]) -> None:
    check_names(names, (SimdMode.OFF, SimdMode.AUTO)[NAMES.index(names) % 2])


def check_names(names: tuple[str, ...], mode: SimdMode) -> None:
    fill = dict(zip(("node", "weights", "arriving", "out", "second"), names, strict=True))
    program = lower(parse(Source("names.lair", LAIR.format(**fill))), None, {})
    mapping = read_mapping(Source("names.map", MAP.format(**fill)), program)
    compiled = compile_program(analyse_layer(program, mapping, SimdOptions(mode)), load_machine("cs2"))
    inputs = random_inputs(program, seed=3)
    outputs = simulate_program(compiled, inputs).outputs
    for name, expected in evaluate(program, inputs).items():
        np.testing.assert_array_equal(outputs[name], expected)


@pytest.mark.parametrize(
    ("node", "weights"), [("size", "t"), ("uintptr", "t"), ("UINT32", "MAX"), ("INT16", "MIN")]
)
def test_an_operand_named_like_a_type_or_limit_of_c(node: str, weights: str) -> None:
    """A node of one statement has its name, so the operand would be ``size_t``."""
    text = f"lair {node}(): float16 {weights}[4], float16 x[4] -> float16 y[4]\n"
    text += f"{{ all (i) in (4) y[i] = {weights}[i] * x[i] }}"
    program = lower(parse(Source("names.lair", text)), None, {})
    places = f"size: {{ PE[1, 1] }}\ncompute_map: {{ {node}[i] -> PE[0, 0] }}"
    mapping = read_mapping(Source("names.map", places), program)
    compiled = compile_program(analyse_layer(program, mapping, SimdOptions()), load_machine("cs2"))
    inputs = random_inputs(program, seed=3)
    outputs = simulate_program(compiled, inputs).outputs
    for name, expected in evaluate(program, inputs).items():
        np.testing.assert_array_equal(outputs[name], expected)
    assert any(f"{node}_{weights}_2" in code for code in compiled.files.values())


def test_a_stream_named_like_another_one_from_a_side() -> None:
    text = """
    lair f(): float16 x[4], float16 x_north[4] -> float16 y[4], float16 z[4]
    { all (i) in (4) y[i] = x[i] + 1
      all (i) in (4) z[i] = x_north[i] * 2 }"""
    places = """
    size: { PE[2, 2] }
    compute_map: { f_y[i] -> PE[i mod 2, i//2]; f_z[i] -> PE[i mod 2, i//2] }
    iport_map: { x[i] -> [PE[i mod 2, -1] -> index[i]] : i < 2; x[i] -> [PE[i mod 2, 2] -> index[i]] : i >= 2;
                 x_north[i] -> [PE[-1, i//2] -> index[i]] }
    """
    program = lower(parse(Source("names.lair", text)), None, {})
    mapping = read_mapping(Source("names.map", places), program)
    compiled = compile_program(analyse_layer(program, mapping, SimdOptions()), load_machine("cs2"))
    inputs = random_inputs(program, seed=3)
    outputs = simulate_program(compiled, inputs).outputs
    for name, expected in evaluate(program, inputs).items():
        np.testing.assert_array_equal(outputs[name], expected)


def test_names_that_do_not_collide_stay() -> None:
    assert not any(is_reserved(name) for name in ("ff_W", "y_local", "x_in", "handle_x", "dy_index_0"))


def test_what_the_headers_define_is_reserved() -> None:
    """Every name with an underscore that pe.h and arithmetic.h define, those made by macros too."""
    text = "".join(role_headers()[name] for name in ("pe.h", "arithmetic.h", FUNCTIONS))
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    words = {w for w in re.findall(r"[A-Za-z_]\w*", text) if "_" in w and not w.endswith("_")}
    fields = {"memory_bytes", "scalar_operations", "sparse_half", "sparse_int16", "dense_half"}
    fields |= {"dense_float", "dense_int16", "dense_int32", "role_name", "strides_dims", "always_inline"}
    made = {f"{f}_{s}" for f in re.findall(r"(\w+)_##suffix", text) for s in ("h", "s", "i16", "i32")}
    assert {"rsqrt_h", "div_i32"} <= made
    unguarded = {name for name in (words | made) - fields if not is_reserved(name)}
    assert not {name for name in unguarded if not name.startswith("SIMD_INSTRUCTION")}
    assert made <= function_names()
    assert all("_" not in entry.name for entry in instructions())


@pytest.mark.parametrize("element", [ElementType[n] for n in ("FLOAT16", "FLOAT32", "INT16", "INT32")])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_negated_negative_number_is_no_decrement(element: ElementType, depth: int) -> None:
    """C reads ``--3`` as another operator."""
    expression: Expression = Constant(-3, element)
    for _ in range(depth):
        expression = Unary(UnaryOp.NEGATE, expression)
    assert "--" not in scalar_code(Binary(BinaryOp.SUBTRACT, expression, expression), {})
