"""If, Case and While: branches taken or chosen between, loops unrolled."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from polyloom.frontends.graph.core import (
    Anything,
    CompareOp,
    Context,
    ElementType,
    Graph,
    Refused,
    Table,
    Value,
    ValueList,
    cast,
    check_steps,
    either,
    filled,
    known_condition,
    mapped,
    refuse_if,
    scalar,
)
from polyloom.frontends.tensorflow.operations.elementwise import element_type_of


def _called(c: Context, body: Graph, operands: Sequence[Anything]) -> list[Anything]:
    """Lower a body, its inputs bound to operands in their order. Raises ``Refused``."""
    refuse_if(len(body.inputs) != len(operands), f"a body of {len(body.inputs)} inputs for {len(operands)}")
    return c.subgraph(body, {t.name: v for t, v in zip(body.inputs, operands, strict=True)})


def _if(c: Context) -> Sequence[Anything]:
    condition = cast(c.b, c.input(), ElementType.BOOL, "condition")
    operands = c.everything[1:]
    known = known_condition(c.b, condition)
    if known is not None:
        return _called(c, c.graph("then_branch" if known else "else_branch"), operands)
    then, otherwise = (_called(c, c.graph(name), operands) for name in ("then_branch", "else_branch"))
    return _either(c, condition, then, otherwise)


def _either(
    c: Context, condition: Value, then: Sequence[Anything], otherwise: Sequence[Anything]
) -> list[Anything]:
    """Return the results of two branches, each by a choice; of an optional and none the one that is there."""
    refuse_if(len(then) != len(otherwise), f"branches with {len(then)} and {len(otherwise)} results")
    found: list[Anything] = []
    for left, right in zip(then, otherwise, strict=True):
        if isinstance(left, Value) and isinstance(right, Value):
            found += either(c.b, condition, [left], [right])
        elif isinstance(left, ValueList) and isinstance(right, ValueList) and not (len(left) and len(right)):
            found.append(left if len(left) else right)
        else:
            raise Refused("its condition is computed when the model runs, and its branches give lists")
    return found


def _case(c: Context) -> Sequence[Anything]:
    """Case: the branch with the number of input 0; one outside is the last."""
    count = c.integer("branches")
    branches = [c.graph(f"branches:{k}") for k in range(count)]
    operands = c.everything[1:]
    known = c.b.known(c.input())
    if known is not None:
        number = c.whole(0, "its branch")
        return _called(c, branches[number if 0 <= number < count else -1], operands)
    results = [_called(c, branch, operands) for branch in branches]
    pairs = list(enumerate(results))[-2::-1]
    return reduce(lambda rest, pair: _either(c, _is(c, pair[0]), pair[1], rest), pairs, results[-1])


def _is(c: Context, number: int) -> Value:
    wanted = c.b.constant(np.asarray(number, c.input().type.dtype))
    return mapped(c.b, lambda x, y: scalar.compare(CompareOp.EQ, x, y), c.input(), wanted)


def _while(c: Context) -> Sequence[Anything]:
    """While: unrolled, where its condition is known before every pass."""
    condition, body = c.graph("cond"), c.graph("body")
    state, step = c.everything, 0
    while _goes_on(c, condition, state):
        check_steps(step := step + 1)
        state = _called(c, body, state)
    return state


def _goes_on(c: Context, condition: Graph, state: Sequence[Anything]) -> bool:
    results = _called(c, condition, state)
    known = None
    if len(results) == 1 and isinstance(results[0], Value):
        known = known_condition(c.b, results[0])
    if known is None:
        raise Refused("its condition is computed when the model runs")
    return known


def _absent(c: Context) -> Sequence[Anything]:
    """FakeParam: what a branch has not, but the other one; nobody looks at it."""
    shape = c.attribute("shape")
    if shape is None or any(not isinstance(n, int) for n in shape):
        raise Refused("a result of the other branch whose shape is not stated")
    return [filled(c.b, shape, 0, element_type_of(c, "dtype"))]


def _contents(c: Context) -> Sequence[Anything]:
    found = c.listed().written()
    refuse_if(not found, "an optional that holds nothing")
    return found


OPERATIONS: Table = {
    "If": _if,
    "StatelessIf": _if,
    "Case": _case,
    "StatelessCase": _case,
    "While": _while,
    "StatelessWhile": _while,
    "FakeParam": _absent,
    "OptionalFromValue": lambda c: [ValueList(tuple(c.inputs))],
    "OptionalNone": lambda c: [ValueList(())],
    "OptionalGetValue": _contents,
}
