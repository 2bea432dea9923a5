"""A SCoP by the interpreter, which must touch only elements that the access relations have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import islpy as isl
import numpy.typing as npt

from polyloom.ir.integers import integer
from polyloom.oracle.interpreter import Steps, run_in_order
from polyloom.scop.model import Scop, ScopAccess, ScopArray

NDArray = npt.NDArray[Any]
_DIM = isl.dim_type


class RelatedSteps(Steps):
    """Steps that compare what they touch with the access relations."""

    def place(self, access: ScopAccess) -> Callable[[int], tuple[int, ...]]:
        found = super().place(access)

        def place(instance: int) -> tuple[int, ...]:
            index = found(instance)
            point = tuple(self.points[instance].tolist())
            where = f"{self.statement.name}{list(point)}: {access.array}{list(index)}"
            assert _related(access.relation, self.parameters, point, index), f"{where} not in the relation"
            return index

        return place


def _related(
    relation: isl.Map, parameters: Mapping[str, int], point: tuple[int, ...], index: tuple[int, ...]
) -> bool:
    for name, value in parameters.items():
        at = relation.find_dim_by_name(_DIM.param, name)
        relation = relation.fix_val(_DIM.param, at, isl.Val(value)) if at >= 0 else relation
    for k, value in enumerate(point):
        relation = relation.fix_val(_DIM.in_, k, isl.Val(value))
    for k, value in enumerate(index):
        relation = relation.fix_val(_DIM.out, k, isl.Val(value))
    return not relation.is_empty()


def run(scop: Scop, parameters: Mapping[str, int], arrays: dict[str, NDArray]) -> None:
    """Run a SCoP; ``arrays`` holds all of its arrays by name and is changed."""
    assert scop.schedule.is_injective(), "two instances at one time"
    run_in_order(scop, parameters, arrays, RelatedSteps)


def shape_of(array: ScopArray, parameters: Mapping[str, int], given: Mapping[str, int]) -> tuple[int, ...]:
    """Return an array's extents; the first one is given where C does not say it."""
    return tuple(given[array.name] if size is None else integer(size, parameters) for size in array.shape)
