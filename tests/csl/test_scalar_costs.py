"""What scalar code is counted to cost: what any compiler does is not counted."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from polyloom.csl import types
from polyloom.csl.lowering import tree
from polyloom.csl.lowering.conversions import NO_SPAN
from polyloom.csl.lowering.emitted import costs
from polyloom.csl.lowering.emitted.invariants import with_fixed_addresses
from polyloom.csl.lowering.emitted.print_c import function_text

I16, U16, U32 = types.I16, types.U16, types.U32
K, STOP = tree.Local(I16, "k"), tree.Local(I16, "stop")


def binary(kind: types.Type, operator: str, left: tree.Expression, right: tree.Expression) -> tree.Binary:
    return tree.Binary(kind, operator, left, right, NO_SPAN)


def loop(*, runs: bool) -> tree.While:
    test = binary(types.BOOL, "<", K, STOP)
    step = tree.Assign(K, binary(I16, "+", K, tree.Constant(I16, 1)))
    return tree.While(test, (step,), (), "loop", runs)


def test_a_loop_of_n_iterations_costs_n_and_the_test_before_them() -> None:
    assert costs.iteration(loop(runs=False)) == Counter(iterations=1)
    assert costs.entry(loop(runs=False)) == Counter(operations=1, branches=1)
    assert costs.entry(loop(runs=True)) == Counter()
    text = function_text(tree.Function("f", "f", (), types.VOID, (loop(runs=False),), NO_SPAN))
    before, inside = text.split("for (;;)")
    assert "cost(.branches = 1, .operations = 1);" in before
    assert inside.index("break;") < inside.index("cost(.iterations = 1);")
    assert text.count("cost(") == 2


def test_a_number_added_to_an_index_is_part_of_the_address() -> None:
    base = tree.Address(types.Pointer(types.F16), "a")

    def at(index: tree.Expression) -> Counter[str]:
        return costs.of(tree.Offset(types.Pointer(types.F16), base, index, 2, 8, "a", NO_SPAN))

    assert at(tree.Constant(I16, 3)) == Counter()
    assert at(K) == at(binary(I16, "+", K, tree.Constant(I16, 3))) == Counter(operations=1)
    assert at(binary(I16, "-", K, tree.Constant(I16, 3))) == Counter(operations=1)
    assert at(binary(I16, "+", K, STOP)) == Counter(operations=2)


def test_what_a_loop_does_not_change_of_an_address_is_paid_in_front_of_it() -> None:
    base = tree.Address(types.Pointer(types.F16), "a")

    def cost(index: tree.Expression) -> tuple[Counter[str], Counter[str]]:
        at = tree.Offset(types.Pointer(types.F16), base, index, 2, 8, "a", NO_SPAN)
        inner = replace(loop(runs=True), body=(tree.Evaluate(tree.Load(types.F16, at, "a", NO_SPAN)),))
        marked, in_front = with_fixed_addresses(inner)
        (load,) = marked.body
        assert isinstance(load, tree.Evaluate)
        return in_front, costs.of(load.value)

    row = binary(I16, "*", STOP, tree.Constant(I16, 7))
    moved, row_of_k = binary(I16, "+", row, K), binary(I16, "*", K, tree.Constant(I16, 7))
    assert cost(moved) == (Counter(multiplications=1, operations=1), Counter(operations=1, loads=1))
    assert cost(row) == (Counter(multiplications=1, operations=1), Counter(loads=1))
    assert cost(row_of_k) == (Counter(), Counter(multiplications=1, operations=1, loads=1))
    divided = binary(I16, "/", tree.Constant(I16, 7), STOP)
    assert cost(divided)[0] == Counter()  # may fail


def test_two_halves_of_a_word_are_two_moves() -> None:
    def half(name: str) -> tree.Expression:
        return tree.Convert(U32, tree.Local(U16, name))

    high = binary(U32, "<<", half("high"), tree.Constant(U16, 16))
    assert costs.of(binary(U32, "|", high, half("low"))) == Counter(operations=2)
    shifted = binary(U32, "<<", half("high"), tree.Constant(U16, 15))
    assert costs.of(binary(U32, "|", shifted, half("low")))["operations"] > 2
    wide = tree.Local(U32, "wide")
    assert costs.of(binary(U32, "|", high, wide))["operations"] > 2
