"""What constants alone decide is done once: packed copies, and nodes; the results stay."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from homs import hom_of, matmul

from polyloom.diagnostics import Source
from polyloom.frontends.lair import lower as lair
from polyloom.frontends.lair.syntax.parse import parse
from polyloom.ir.conversion.to_host_program import host_program
from polyloom.ir.evaluation.programs import evaluate_host
from polyloom.ir.expressions import Unary
from polyloom.ir.expressions import walk as walk_expression
from polyloom.ir.host import HostProgram, MdHom, Role
from polyloom.mdh.compiled import CompiledProgram
from polyloom.mdh.lowering.asked import asked
from polyloom.mdh.lowering.constants.at_load import Packed, fixed_nodes, packed
from polyloom.mdh.lowering.constants.constant_terms import constant_terms_apart
from polyloom.mdh.lowering.program_tree import program_tree
from polyloom.mdh.lowering.tiles.pipeline import lower_scheduled
from polyloom.mdh.native.device import choose, opened
from polyloom.mdh.schedule.schedules import Caching, Memory, Schedule, plain_schedule
from polyloom.mdh.tree.evaluate import evaluate
from polyloom.mdh.tree.nodes import Array
from polyloom.mdh.tree.registers import final
from polyloom.mdh.tree.rewrite import arrays_used, walk
from polyloom.mdh.tree.verify import verify
from polyloom.polyhedra.loops.tree import Number

PRODUCT = matmul(17, 37, 24)


def schedule(program: HostProgram, panel: bool = True) -> Schedule:
    hom = hom_of(program)
    return replace(
        plain_schedule(len(hom.extents), len(hom.inputs)),
        group=(8, 16, 0),
        local=(0, 0, 8),
        private=(2, 2, 1),
        vector=1,
        width=4,
        inputs=(Caching(), Caching(Memory.LOCAL, (0, 1), 0, panel)),
    )


def split(constants: set[str], panel: bool = True) -> Packed:
    chosen = schedule(PRODUCT, panel)
    lower = lower_scheduled(PRODUCT, lambda hom, around: chosen, least=0)
    function = final(program_tree(PRODUCT, lower))
    assert any(isinstance(s, Array) and s.name == "B_copy" for s in walk(function.body))
    return packed(function, replace(function, name="load", body=()), constants)


def arrays() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {"A": rng.random((17, 24), np.float32), "B": rng.random((24, 37), np.float32)}


@pytest.mark.parametrize("panel", [True, False])
def test_a_packed_copy_holds_what_the_copy_held(panel: bool) -> None:
    found = split({"B"}, panel)
    assert not any(isinstance(s, Array) and s.name == "B_copy" for s in walk(found.function.body))
    assert "B" not in arrays_used(found.function.body)
    given = arrays()
    filled = evaluate(found.load, given, {})
    result = evaluate(found.function, {**given, **{n: filled[n] for n in found.names}}, {})
    np.testing.assert_allclose(result["C"], given["A"] @ given["B"], rtol=1e-5)


def test_copies_of_cache_tiles_that_divide_their_groups_are_packed_too() -> None:
    """The loop over such tiles ends eight behind the group's, at no number of its own."""
    even = matmul(17, 48, 24)
    chosen = replace(schedule(even), local=(0, 8, 8))
    function = final(program_tree(even, lower_scheduled(even, lambda hom, around: chosen, least=0)))
    found = packed(function, replace(function, name="load", body=()), {"B"})
    assert found.names == ("B_packed",)
    given = {**arrays(), "B": np.random.default_rng(1).random((24, 48), np.float32)}
    filled = evaluate(found.load, given, {})
    result = evaluate(found.function, {**given, "B_packed": filled["B_packed"]}, {})
    np.testing.assert_allclose(result["C"], given["A"] @ given["B"], rtol=1e-5)
    assert verify(found.function, asked(even)).wrong == verify(found.load).wrong == ()


def test_both_parts_are_right() -> None:
    found = split({"B"})
    assert verify(found.function, asked(PRODUCT)).wrong == ()
    assert verify(found.load).wrong == ()
    (name,) = found.names
    cut = [
        replace(p, shape=(Number(1), *p.shape[1:])) if p.name == name else p for p in found.load.parameters
    ]
    assert any("does not exist" in text for text in verify(replace(found.load, parameters=tuple(cut))).wrong)


def test_other_copies_stay() -> None:
    assert split({"A"}).names == ()


def test_two_products_of_one_constant_have_a_packed_copy_each() -> None:
    """Their tiles differ, and before they are written out both copies are ``B_copy``."""
    other, names = matmul(9, 37, 24), {"A": "D", "B": "B", "C": "E"}
    second = replace(
        hom_of(other),
        name="second",
        inputs=tuple(replace(v, buffer=names[v.buffer]) for v in hom_of(other).inputs),
        outputs=tuple(replace(v, buffer=names[v.buffer]) for v in hom_of(other).outputs),
    )
    more = tuple(replace(b, name=names[b.name]) for b in other.buffers if b.name != "B")
    both = replace(PRODUCT, buffers=(*PRODUCT.buffers, *more), body=(hom_of(PRODUCT), second))
    chosen = {8: schedule(PRODUCT), 4: replace(schedule(PRODUCT), group=(4, 8, 0))}
    lower = lower_scheduled(both, lambda hom, around: chosen[4 if hom.name == "second" else 8], least=0)
    function = program_tree(both, lower)
    found = packed(function, replace(function, name="load", body=()), {"B"})
    assert len(set(found.names)) == len(found.names) == 2
    given = {**arrays(), "D": np.random.default_rng(2).random((9, 24), np.float32)}
    filled = evaluate(final(found.load), given, {})
    result = evaluate(final(found.function), {**given, **{n: filled[n] for n in found.names}}, {})
    for left, product in (("A", "C"), ("D", "E")):
        np.testing.assert_allclose(result[product], given[left] @ given["B"], rtol=1e-5)


def product_of_constants() -> HostProgram:
    """y = x (a b): the product in brackets is a node of constants."""
    first = hom_of(matmul(17, 37, 24))
    names = {"A": "a", "B": "b", "C": "ab"}
    inner = replace(
        first,
        name="inner",
        inputs=tuple(replace(v, buffer=names[v.buffer]) for v in first.inputs),
        outputs=tuple(replace(v, buffer=names[v.buffer]) for v in first.outputs),
    )
    second = hom_of(matmul(5, 37, 17))
    names = {"A": "x", "B": "ab", "C": "y"}
    outer = replace(
        second,
        name="outer",
        inputs=tuple(replace(v, buffer=names[v.buffer]) for v in second.inputs),
        outputs=tuple(replace(v, buffer=names[v.buffer]) for v in second.outputs),
    )
    given = PRODUCT.buffers
    a, b, ab = (replace(given[k], name=n) for k, n in ((0, "a"), (1, "b"), (2, "ab")))
    others = matmul(5, 37, 17).buffers
    x, y = replace(others[0], name="x"), replace(others[2], name="y")
    buffers = tuple(replace(p, role=Role.INPUT) for p in (x, a, b))
    return replace(
        PRODUCT,
        buffers=(*buffers, replace(ab, role=Role.LOCAL), replace(y, role=Role.OUTPUT)),
        body=(inner, outer),
    )


def test_nodes_of_constants_are_those_that_read_nothing_else() -> None:
    program = product_of_constants()
    nodes, known = fixed_nodes(program, {"a", "b"})
    assert [node.name for node in nodes] == ["inner"]  # type: ignore[union-attr]
    assert known == {"a", "b", "ab"}
    assert fixed_nodes(program, {"a"}) == ([], {"a"})


@pytest.mark.slow
@pytest.mark.ci
def test_results_follow_constants(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = product_of_constants()
    rng = np.random.default_rng(0)
    values = {n: rng.random([e.value for e in program.buffer(n).shape]) for n in ("x", "a", "b")}  # type: ignore[union-attr]
    given = {n: a.astype(np.float32) for n, a in values.items()}

    def wanted(arrays: Mapping[str, Any]) -> Any:
        return evaluate_host(program, {}, arrays)["y"]

    chosen = {"inner": PRODUCT, "outer": matmul(5, 37, 17)}
    device = opened(choose("native", threads=1))
    compiled = CompiledProgram(program, device, lambda *_: None, constants={n: given[n] for n in "ab"})  # type: ignore[arg-type, return-value]
    compiled.executable.schedules = lambda hom, *_: schedule(chosen[hom.name])  # type: ignore[union-attr, assignment]
    for _ in range(3):
        np.testing.assert_allclose(compiled(x=given["x"]), wanted(given), rtol=1e-5)
    other = {**given, "b": given["b"] + 1}
    np.testing.assert_allclose(compiled(x=given["x"], b=other["b"]), wanted(other), rtol=1e-5)
    other["b"][...] += 1
    np.testing.assert_allclose(compiled(x=given["x"], b=other["b"]), wanted(other), rtol=1e-5)
    np.testing.assert_allclose(compiled(x=given["x"]), wanted(given), rtol=1e-5)
    held = compiled.to_device(given["a"])
    np.testing.assert_allclose(compiled(x=given["x"], a=held), wanted(given), rtol=1e-5)
    held.set(given["a"] * 2)
    changed = {**given, "a": given["a"] * 2}
    np.testing.assert_allclose(compiled(x=given["x"], a=held), wanted(changed), rtol=1e-5)


NORMALISED = """float32 x[3][40], float32 v[40], float32 m[40] -> float32 y[3][40]
  { all (i, j) in (3, 40) y[i][j] = (x[i][j] - m[j]) * rsqrt(v[j] + 0.5) }"""


def test_parts_of_constants_are_computed_once() -> None:
    program = host_program(lair(parse(Source("t.lair", f"lair n(): {NORMALISED}"))))
    changed = constant_terms_apart(program, {"v", "m"})
    nodes, _ = fixed_nodes(changed, {"v", "m"})
    (part,) = nodes
    assert isinstance(part, MdHom)
    assert [view.buffer for view in part.inputs] == ["v"]
    rest = hom_of(replace(changed, body=changed.body[1:]))
    assert not any(isinstance(e, Unary) for e in walk_expression(rest.terms[0]))
    rng = np.random.default_rng(0)
    shapes = {"x": (3, 40), "v": (40,), "m": (40,)}
    given = {name: rng.random(shape, np.float32) for name, shape in shapes.items()}
    wanted = evaluate_host(program, {}, given)["y"]
    np.testing.assert_array_equal(evaluate_host(changed, {}, given)["y"], wanted)
    assert constant_terms_apart(program, {"m"}) == program
    assert constant_terms_apart(program, {"v", "x"}).body != program.body
