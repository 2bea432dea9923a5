"""Elements of queues by instructions in place of loops, and what code costs that no statement of it says."""

from __future__ import annotations

import re

import pytest
from corpus import Layer, compiled

from polyloom.polyhedra.loops.generate import Name, Number
from polyloom.wafer.pe_program.implied_costs import with_implied_costs
from polyloom.wafer.pe_program.tree import (
    Cost,
    CountUp,
    Element,
    If,
    Invoke,
    OperandRef,
    SetBase,
    Unblock,
    with_block_costs,
)
from polyloom.wafer.simd.decision import SimdMode


def single(name: str, source: str, *defines: str, mode: SimdMode = SimdMode.AUTO) -> dict[str, int]:
    """Return how often each role's C sends or receives one element."""
    files = compiled(Layer(name, source, defines), mode, "cs2").files
    return {file: len(re.findall(r"\b(?:send|receive)\(", text)) for file, text in files.items()}


@pytest.mark.slow
@pytest.mark.ci
def test_adapters_drop_and_pass_on_by_instructions() -> None:
    """x and b enter at one PE each: what a PE needs lies between what it drops."""
    sizes = ("M=32", "N=16", "T=float32")
    loops = single("gemv_bias_edges", "gemv_bias", *sizes, mode=SimdMode.OFF)
    found = single("gemv_bias_edges", "gemv_bias", *sizes)
    borders = [file for file in found if "border" in file]
    assert borders and all(loops[file] and not found[file] for file in borders)


def test_a_loop_takes_its_elements_into_memory() -> None:
    files = compiled(Layer("ff44_dense", "ff", ("M=32", "N=16", "T=int32")), SimdMode.AUTO, "cs2").files
    code = files["ff_0.c"]
    taken = re.search(r"invoke_simd\(mov32, (\w+), \w+\);\n +for .*\n.*\n.*= load\((\w+)\[index\]\);", code)
    assert taken is not None and "receive(int32_t, x_in)" not in code
    assert f"set_base_address({taken[1]}, &{taken[2]}[0]);" in code


def test_reading_counters_and_selecting_operands_costs() -> None:
    chosen = Invoke("fmovh", OperandRef("a", "size"), (OperandRef("b", "size"),))
    fixed = Invoke("fmovh", OperandRef("a", "0"), (OperandRef("b", "0"),))
    code = (If(Name("chunk"), (chosen, chosen, Unblock("x"), chosen)), fixed, If(Name("index"), (fixed,)))
    found = with_block_costs(with_implied_costs(code, ("chunk", "other")))
    assert found[0] == Cost(loads=1)
    assert isinstance(found[1], If) and found[1].body[0] == Cost(branches=2)
    assert found[2:] == code[1:] and with_implied_costs(code[1:], ("chunk",)) == code[1:]


def test_a_counter_that_counts_up_is_loaded_once() -> None:
    """It states a load itself; where it does so in some cases only, the counter is loaded before."""
    moved = SetBase(OperandRef("a"), Element("y", (Name("chunk"),)))
    always = (CountUp("chunk", Number(4), ()), moved)
    sometimes = (CountUp("other", Number(4), always[:1]), moved)
    assert with_implied_costs(always, ("chunk", "other")) == always
    assert with_implied_costs(sometimes, ("chunk", "other")) == (Cost(loads=1), *sometimes)
