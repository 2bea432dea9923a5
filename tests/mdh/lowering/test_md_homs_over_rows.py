"""md_homs over fewer dimensions in kernel trees: the same elements, carried out once, under other shapes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from homs import F32, at, buffer, device, read, sums
from homs import program as program_with

from polyloom.diagnostics import Source
from polyloom.frontends.lair import lower
from polyloom.frontends.lair.syntax.parse import parse
from polyloom.ir.conversion.to_host_program import host_program
from polyloom.ir.evaluation.programs import evaluate_host
from polyloom.ir.host import CombineOperator, HostProgram, MdHom, Order, Role, View
from polyloom.mdh.lowering.asked import asked
from polyloom.mdh.lowering.program_tree import program_tree
from polyloom.mdh.lowering.rows import rows_of
from polyloom.mdh.lowering.tiles.pipeline import lower_scheduled
from polyloom.mdh.native import execution
from polyloom.mdh.print.c_source import c_source
from polyloom.mdh.schedule.choice import default_schedule
from polyloom.mdh.tree.evaluate import evaluate
from polyloom.mdh.tree.nodes import Function
from polyloom.mdh.tree.registers import final
from polyloom.mdh.tree.verify import Verdict, verify
from polyloom.mdh.tuning.schedule_lookup import TunedEmitter
from polyloom.polyhedra.loops.tree import Number

POINTWISE = "float32 x[6][5][7], float32 w[9][6] -> float32 y[9][5][7]", "o, i, j, c", "(9, 5, 7, 6)"
CONVOLUTION = POINTWISE[0], POINTWISE[1], POINTWISE[2], "y[o][i][j] += x[c][i][j] * w[o][c]"
RELU = "float32 x[4][3][7] -> float32 y[4][3][7]", "c, i, j", "(4, 3, 7)", "y[c][i][j] = x[c][i][j]"


def program_of(views: str, names: str, domain: str, equation: str) -> HostProgram:
    text = f"lair n(): {views} {{ all ({names}) in {domain} {equation} }}"
    return host_program(lower(parse(Source("t.lair", text))))


def tree_of(program: HostProgram) -> Function:
    rows = rows_of(program)
    assert rows.homs
    assert rows.reshaped
    lower = lower_scheduled(
        program, lambda hom, p: default_schedule(hom, p.by_name, device().model), rows.homs
    )
    return final(program_tree(program, lower, rows.reshaped))


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("layer", [CONVOLUTION, RELU], ids=["convolution", "relu"])
def test_they_do_what_was_asked_for(layer: tuple[str, str, str, str]) -> None:
    program = program_of(*layer)
    function = tree_of(program)
    assert verify(function, asked(program)) == Verdict((), ())
    rng = np.random.default_rng(1)
    arrays = {p.name: rng.random([n.value for n in p.shape]) for p in function.parameters if p.constant}
    given = {name: array.astype(np.float32) for name, array in arrays.items()}
    wanted = evaluate_host(program, {}, given)["y"]
    np.testing.assert_allclose(evaluate(function, given, {})["y"], wanted, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.ci
def test_an_element_that_is_not_there_is_found_under_any_shape() -> None:
    program = program_of(*CONVOLUTION)
    function = tree_of(program)
    (short,) = (r for r in function.reshaped if r.parameter == "y")
    cut = replace(short, shape=(Number(9), Number(34)))
    others = tuple(cut if r is short else r for r in function.reshaped)
    assert any("does not exist" in text for text in verify(replace(function, reshaped=others)).wrong)


def test_c_has_one_pointer_for_each_shape() -> None:
    text = c_source(tree_of(program_of(*CONVOLUTION)))
    assert "float (*y_9_35)[35] = arrays[" in text
    assert "float (*restrict y_9_35)[35]" in text


@pytest.mark.parametrize("sizes", [(1, 5, 3), (1, 5, 1), (2, 5, 1)])
def test_what_has_no_tiles_stays_as_it_is(sizes: tuple[int, ...]) -> None:
    """A prefix between two reductions: without the outer one, of one point, terms are not repeated."""
    plus = sums(F32)
    hom = MdHom(
        name="running",
        iterators=("i", "j", "k"),
        extents=tuple(map(Number, sizes)),
        inputs=(View("x", (at(1, 0, 0), at(0, 1, 0), at(0, 0, 1))),),
        outputs=(View("y", (at(0, 1, 0),)),),
        terms=(read(0),),
        combine=(plus, CombineOperator(Order.PREFIX, plus.combiner), plus),
        initial=(None,),
        finish=(None,),
    )
    around = program_with(hom, buffer("x", F32, sizes), buffer("y", F32, (5,), Role.OUTPUT))
    assert not rows_of(around).homs
    tree = execution.tree_of(around, TunedEmitter().schedule, device().model)
    x = np.random.default_rng(2).random(sizes).astype(np.float32)
    found = evaluate(final(tree), {"x": x}, {})["y"]
    np.testing.assert_allclose(found, np.cumsum(x.sum(axis=(0, 2))), rtol=1e-5)
