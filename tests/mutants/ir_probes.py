"""Probes of ``ir/``: rewriting keeps meanings, and rules are kept."""

from __future__ import annotations

from typing import Any

import homs
import numpy as np
import test_fewer_dimensions
import test_finishing_maps
import test_verify_host
from homs import at, buffer, matmul
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from md_homs import md_homs
from polyloom.ir.evaluation.programs import evaluate_host
from polyloom.ir.expressions import Constant
from polyloom.ir.host import HostProgram, MdHom, Parameter, Role, View
from polyloom.ir.transform.specialise import specialise
from polyloom.ir.types import ElementType
from polyloom.polyhedra.loops.tree import Branch, Name, Number, Operation
from strategies import programs

FEW = {"max_examples": 40, "derandomize": True, "database": None, "deadline": None}


def _few(test: Any, made: st.SearchStrategy[Any]) -> None:
    """Run a test of hypothesis on the same few examples each time."""
    again = given(made, st.integers(0, 2**32))(test.hypothesis.inner_test)
    settings(**FEW, suppress_health_check=list(HealthCheck))(again)()


def joined() -> None:
    """Maps that join others leave what they left alone."""
    for case in test_finishing_maps.JOINED:
        test_finishing_maps.test_what_joins(case)
    _few(test_finishing_maps.test_random_programs_keep_their_meaning, programs(guarded=True))


def flattened() -> None:
    """Md_homs of fewer dimensions leave what they left before."""
    for case in test_fewer_dimensions.SHAPES:
        test_fewer_dimensions.test_dimensions_that_are_left(case)
    _few(test_fewer_dimensions.test_random_md_homs_keep_their_meaning, md_homs(extras=True))
    _few(test_fewer_dimensions.test_random_statements_keep_their_meaning, programs(guarded=True))


def rows_are_one() -> None:
    """``y[i][j] = sum of x[i + r][j] * w[r]``: i and j become one dimension, of which r is no part."""
    x, w, y = (
        View("x", (at(1, 0, 1), at(0, 1, 0))),
        View("w", (at(0, 0, 1),)),
        View("y", (at(1, 0, 0), at(0, 1, 0))),
    )
    kind, extents = ElementType.INT32, (Number(4), Number(5), Number(3))
    combine = (homs.KEEP, homs.KEEP, homs.sums(kind))
    node = MdHom(
        name="s",
        iterators=("i", "j", "r"),
        extents=extents,
        inputs=(x, w),
        outputs=(y,),
        terms=(homs.times(kind),),
        combine=combine,
        initial=(None,),
        finish=(None,),
    )
    shapes = (buffer("x", kind, (6, 5)), buffer("w", kind, (3,)), buffer("y", kind, (4, 5), Role.OUTPUT))
    program = homs.program(node, *shapes)
    given = {"x": np.arange(30, dtype="int32").reshape(6, 5), "w": np.array([1, 10, 100], "int32")}
    flat = test_fewer_dimensions.flat(program)
    assert len(homs.hom_of(flat).extents) == 2
    found = test_fewer_dimensions.run_flat(program, given)
    assert np.array_equal(found["y"], evaluate_host(program, {}, given)["y"])


def broken_rules() -> None:
    """Each rule of host programs is checked."""
    for fault in test_verify_host.BROKEN:
        test_verify_host.test_broken_rules_are_named(fault)


def _fill(value: int) -> MdHom:
    y, kind = View("y", (at(1),)), ElementType.INT32
    return MdHom(
        name=f"fill_{value}",
        iterators=("i",),
        extents=(Number(3),),
        inputs=(),
        outputs=(y,),
        terms=(Constant(value, kind),),
        combine=(homs.KEEP,),
        initial=(None,),
        finish=(None,),
    )


def branches() -> None:
    """A host branch that is decided is the right one."""
    branch = Branch(Operation("<", (Name("n"), Number(5))), (_fill(1),), (_fill(2),))
    parameters = (Parameter("n", ElementType.INT32),)
    program = HostProgram(
        name="b",
        parameters=parameters,
        buffers=(buffer("y", ElementType.INT32, (3,), Role.OUTPUT),),
        body=(branch,),
    )
    for n, wanted in ((4, 1), (5, 2)):
        special = specialise(program, {"n": n})
        assert evaluate_host(special, {}, {})["y"].tolist() == [wanted] * 3


def sums_of_nothing() -> None:
    """A reduction without terms stores what it starts from."""
    program = matmul("M", "N", "K")
    special = specialise(program, {"M": 2, "N": 3, "K": 0})
    found = evaluate_host(special, {}, {"A": np.zeros((2, 0), "float32"), "B": np.zeros((0, 3), "float32")})
    assert np.array_equal(found["C"], np.zeros((2, 3)))
