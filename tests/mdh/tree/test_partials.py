"""Partial results: each is combined once, by the right operator, and begins right; mutants are refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from homs import dot, read, row_maximum, stencil

from polyloom.ir.expressions import BinaryOp, Compare, CompareOp, Constant, Expression, Read, Select
from polyloom.ir.host import HostProgram, MdHom
from polyloom.ir.rebuild import rebuilt
from polyloom.ir.types import ElementType
from polyloom.mdh.lowering.asked import asked
from polyloom.mdh.lowering.iterator_names import distinct_iterators
from polyloom.mdh.lowering.program_tree import program_tree
from polyloom.mdh.lowering.tiles.pipeline import scheduled
from polyloom.mdh.schedule.schedules import Schedule, plain_schedule
from polyloom.mdh.tree.nodes import Array, Code, Compute, For, Function, Load, Statement, Store, counted
from polyloom.mdh.tree.ranges import plus
from polyloom.mdh.tree.rewrite import loads_of, renamed_array, rewritten, walk
from polyloom.mdh.tree.verify import Verdict, verify
from polyloom.polyhedra.loops.tree import Number


def chosen_row_maximum(m: int, n: int, kind: ElementType) -> HostProgram:
    """``if (y[i] < A[i][k]) y[i] = A[i][k]``, in which the larger one is read twice."""
    program = row_maximum(m, n, kind, float("-inf"))
    (hom,) = program.body
    assert isinstance(hom, MdHom) and hom.combine[1].combiner is not None
    a, b = read(0, kind), read(1, kind)
    larger = Select(Compare(CompareOp.LT, a, b), b, a)
    by = replace(hom.combine[1], combiner=replace(hom.combine[1].combiner, results=(larger,)))
    return replace(program, body=(replace(hom, combine=(hom.combine[0], by)),))


SPLIT: dict[str, tuple[HostProgram, Schedule]] = {
    "groups": (dot(1000), replace(plain_schedule(1, 2), group=(256,))),
    "vectors": (dot(1001), replace(plain_schedule(1, 2), private=(2,), vector=0, width=8)),
    "both": (dot(1001), replace(plain_schedule(1, 2), group=(256,), private=(2,), vector=0, width=8)),
    "kept and reduced": (
        row_maximum(5, 60, ElementType.FLOAT32, float("-inf")),
        replace(plain_schedule(2, 1), group=(0, 16)),
    ),
    "chosen by a comparison": (
        chosen_row_maximum(8, 60, ElementType.FLOAT32),
        replace(plain_schedule(2, 1), group=(0, 16), vector=0, width=4),
    ),
    "nothing to combine": (stencil(6, 7), plain_schedule(4, 2)),
}


def tree(name: str) -> Function:
    program, schedule = SPLIT[name]
    buffers = program.by_name
    return program_tree(program, lambda hom: scheduled(distinct_iterators(hom, buffers), buffers, schedule))


def partial_arrays(code: Code) -> Iterator[str]:
    return (s.name for s in walk(code) if isinstance(s, Array) and s.totals is not None)


@pytest.mark.parametrize("name", SPLIT)
def test_right_ones_are_proved(name: str) -> None:
    assert verify(tree(name), asked(SPLIT[name][0])) == Verdict((), ())


def test_names_of_what_all_points_have_do_not_part_others_from_their_stores() -> None:
    """Where a row has begun all rows have: that is no different from row to row, the totals are."""
    program = row_maximum(5, 6, ElementType.FLOAT32, None)
    buffers = program.by_name
    rows = replace(plain_schedule(2, 1), private=(2, 1), vector=1, width=4)
    found = program_tree(program, lambda hom: scheduled(distinct_iterators(hom, buffers), buffers, rows))
    assert not verify(found, asked(program)).wrong


def takes(statement: Statement, arrays: set[str]) -> bool:
    """Whether a partial result is combined into something else."""
    found = {a.array for a in loads_of(statement)} & arrays
    return isinstance(statement, Store) and bool(found - {statement.array})


def twice(statement: Statement, arrays: set[str]) -> Code:
    return (statement, statement) if takes(statement, arrays) else (statement,)


def dropped(statement: Statement, arrays: set[str]) -> Code:
    if isinstance(statement, For) and any(takes(s, arrays) for s in statement.body):
        return (replace(statement, start=Number(1)),)
    return (statement,)


def wrong_start(statement: Statement, arrays: set[str]) -> Code:
    if isinstance(statement, Store) and isinstance(one := statement.value.expression, Constant):
        return (replace(statement, value=Compute(replace(one, value=1))),)
    return (statement,)


def other_operator(statement: Statement, arrays: set[str]) -> Code:
    def times(e: Expression) -> Expression | None:
        return replace(e, op=BinaryOp.MULTIPLY) if getattr(e, "op", None) is BinaryOp.ADD else None

    if isinstance(statement, Store) and takes(statement, arrays):
        value = replace(statement.value, expression=rebuilt(statement.value.expression, times))
        return (replace(statement, value=value),)
    return (statement,)


Mutant = Callable[[Statement, set[str]], Code]


@pytest.mark.parametrize("mutant", [twice, dropped, wrong_start, other_operator])
@pytest.mark.parametrize("name", ["groups", "vectors", "both"])
def test_mutants_are_refused(name: str, mutant: Mutant) -> None:
    function = tree(name)
    arrays = set(partial_arrays(function.body))
    body = rewritten(function.body, lambda statement: mutant(statement, arrays))
    assert body != function.body
    verdict = verify(replace(function, body=body), asked(SPLIT[name][0]))
    assert verdict.wrong


def again(store: Store) -> Code:
    return (store, store)


def with_itself(store: Store) -> Code:
    first, _ = store.value.loads
    return (replace(store, value=replace(store.value, loads=(first, first))),)


def with_another_one(store: Store) -> Code:
    first, second = store.value.loads
    before = tuple(plus(s, -1) for s in second.subscripts if not isinstance(s, Compute))
    return (replace(store, value=replace(store.value, loads=(first, replace(second, subscripts=before)))),)


def and_begun(store: Store) -> Code:
    return (store, replace(store, value=Compute(Constant(-0.0, store.value.type))))


def with_what_is_no_total(store: Store) -> Code:
    first, _ = store.value.loads
    return (replace(store, value=replace(store.value, loads=(first, Load("x", (Number(0),))))),)


@pytest.mark.parametrize("fault", [again, with_itself, with_another_one, and_begun, with_what_is_no_total])
@pytest.mark.parametrize("name", ["total_of_4", "total_of_2", "total_of_1"])
def test_two_totals_together_are_stored_once(name: str, fault: Callable[[Store], Code]) -> None:
    """Halves of a vector: ``total_of_4[at] = total_part[at] + total_part[at + 4]``."""
    function = tree("vectors")

    def changed(statement: Statement) -> Code:
        return fault(statement) if isinstance(statement, Store) and statement.array == name else (statement,)

    body = rewritten(function.body, changed)
    assert body != function.body
    assert verify(replace(function, body=body), asked(SPLIT["vectors"][0])).wrong


def test_a_sum_of_several_values_is_not_decided() -> None:
    function = tree("groups")

    def of_several(statement: Statement) -> Code:
        if isinstance(statement, Array) and statement.totals is not None:
            return (replace(statement, totals=replace(statement.totals, result=None)),)
        return (statement,)

    verdict = verify(replace(function, body=rewritten(function.body, of_several)))
    assert not verdict.wrong
    assert any("of several values" in text for text in verdict.unknown)


def test_totals_of_nothing_may_be_taken_twice_whatever_others_of_the_name_are() -> None:
    """They are neutral: where vectors leave all terms over, parts are started and taken all the same."""
    function = tree("vectors")
    part = next(s for s in walk(function.body) if isinstance(s, Array) and s.totals and s.totals.parts)
    assert part.totals is not None
    total = replace(part, name="other_total", shape=(), lanes=False, totals=None)
    start, first = Compute(Constant(part.totals.neutral or 0.0, part.type)), (Number(0),) * len(part.shape)
    own, both = Load(part.name, first), Read(0, part.type) + Read(1, part.type)
    more = Store(part.name, first, Compute(both, (own, Load("x", (Number(0),)))))
    taken = Store(total.name, (), Compute(both, (Load(total.name), own)))
    for filled in (False, True):
        steps = (Store(part.name, first, start), *[more] * filled, Store(total.name, (), start), taken, taken)
        again = counted("again", Number(1), (part, total, *steps))
        verdict = verify(replace(function, body=(*function.body, again)), asked(SPLIT["vectors"][0]))
        assert bool(verdict.wrong) is filled


def on_the_stack(home: str, own: str, place: Callable[[int], int] = lambda k: k) -> Code:
    """Return stores of 16 totals as others, each at its own place."""
    kind = ElementType.FLOAT32
    value = [Compute(Read(0, kind), (Load(home, (Number(place(k)),)),)) for k in range(16)]
    return tuple(Store(own, (Number(k),), value[k]) for k in range(16))


def visit(comes: Code | None = None, goes: Code | None = None, meanwhile: Code = ()) -> Verdict:
    """Return what is found of a sum whose main part is computed in an array of its own."""
    function = tree("vectors")
    part = next(s for s in walk(function.body) if isinstance(s, Array) and s.totals and s.totals.parts)
    body: list[Statement] = []
    for s in function.body:
        if isinstance(s, For) and s.iterator == "k_first":
            there = on_the_stack("total_part", "own") if comes is None else comes
            back = on_the_stack("own", "total_part") if goes is None else goes
            main = renamed_array((s,), part.name, Load("own"))
            body += [replace(part, name="own"), *there, *main, *meanwhile, *back]
        else:
            body.append(s)
    return verify(replace(function, body=tuple(body)), asked(SPLIT["vectors"][0]))


def test_totals_may_go_on_in_another_array_and_come_back() -> None:
    assert visit() == Verdict((), ())


ELEMENT = (Number(3),)
STEP = Compute(
    Read(0, ElementType.FLOAT32) + Read(1, ElementType.FLOAT32),
    (Load("total_part", ELEMENT), Load("x", ELEMENT)),
)
WRONG_VISITS: dict[str, dict[str, Code]] = {
    "one does not come back": {"goes": on_the_stack("own", "total_part")[1:]},
    "two come back in each other's place": {"goes": on_the_stack("own", "total_part", lambda k: k ^ 1)},
    "one comes back twice": {"goes": on_the_stack("own", "total_part", lambda k: max(k, 1))},
    "none comes back": {"goes": ()},
    "one is changed at home": {"meanwhile": (Store("total_part", ELEMENT, STEP),)},
    "one begins again": {"meanwhile": (Store("own", ELEMENT, Compute(Constant(0.0, ElementType.FLOAT32))),)},
    "all begin at home, too": {
        "comes": tuple(
            Store("own", (Number(k),), Compute(Constant(0.0, ElementType.FLOAT32))) for k in range(16)
        ),
        "goes": on_the_stack("own", "total_part"),
    },
}


@pytest.mark.parametrize("fault", WRONG_VISITS)
def test_totals_that_do_not_come_back_are_refused(fault: str) -> None:
    assert visit(**WRONG_VISITS[fault]).wrong
