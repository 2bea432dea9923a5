"""The schedule of an md_hom: everything about its code that does not change what it computes.

A schedule has an entry per dimension of the md_hom and one per input view. Levels, outermost first:
work-groups (``group``), cache tiles of a group (``local``), register tiles of a work-item (``private``).
docs/schedules.md tells what each parameter does, and what md_poly's papers call it.

Source: md_poly, Sec. 4; parameters 1-10 of its generator. Not in the papers: ``vector``, ``width``,
``panel``, ``padding``, ``strided``, ``follow``, ``streaming``, ``stages``, ``matrix``, and tiles that do not
divide.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from enum import Enum
from functools import cached_property
from math import prod
from typing import Any

Sizes = tuple[int, ...]


class Memory(Enum):
    """Where the elements of an input view are read from."""

    GLOBAL = "global"
    LOCAL = "local"
    """A copy of the cache tile's elements in local memory."""

    __hash__ = object.__hash__  # a search looks schedules up often, and Enum's own is a function of Python


@dataclass(frozen=True)
class Caching:
    """How an input view is read.

    ``axes``: the order of the buffer's axes in the copy, the contiguous one last; empty: as in the buffer.
    ``padding``: elements added to each row of the copy, so that rows do not meet in one cache set.
    ``panel``: the copy is cut along its last axis into pieces as wide as the register tile, each contiguous.
    """

    memory: Memory = Memory.GLOBAL
    axes: Sizes = ()
    padding: int = 0
    panel: bool = False

    def json(self) -> dict[str, Any]:
        """Return a JSON document."""
        memory = self.memory.value
        return {"memory": memory, "axes": self.axes, "padding": self.padding, "panel": self.panel}


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """How one md_hom runs; d entries in every tuple of sizes or dimensions.

    ``group[k]``: points of dimension k that a work-group covers, 0 for all. In a reduced dimension less than
    all means that groups leave partial results, which a second kernel combines.
    ``items[k]``: work-items of a group along k; in a reduced dimension they combine in local memory.
    ``local[k]``: points of a cache tile, 0 for all that the group covers.
    ``private[k]``: points of a register tile (vectors, in the vector's dimension); in a reduced dimension,
    how often the loop is unrolled.
    ``strided[k]``: a work-item's points lie ``items[k]`` apart, so that neighbouring items read neighbours.
    ``vector``: the dimension of vectors, None for scalars; ``width`` elements each.
    ``group_order``, ``item_order``: which dimension of the grid runs fastest (the last);
    ``local_order``, ``private_order``: the loops over cache and register tiles, outermost first;
    ``unrolled_order``: the points of a register tile and of the unrolled reduction, outermost first.
    ``follow``: the input view whose elements lead: points that read one element of it come together.
    ``inputs``: per input view. ``streaming``: results bypass the caches where the device can.
    ``stages``: of copies; with 2 the next cache tile's are loaded while this one is worked on.
    ``matrix``: rows, columns and steps of a product that warps' matrix units do (``matrix_units``), or none.
    """

    group: Sizes
    items: Sizes
    local: Sizes
    private: Sizes
    strided: tuple[bool, ...]
    vector: int | None
    width: int
    group_order: Sizes
    item_order: Sizes
    local_order: Sizes
    private_order: Sizes
    unrolled_order: Sizes
    inputs: tuple[Caching, ...]
    follow: int | None = None
    streaming: bool = False
    stages: int = 1
    matrix: Sizes = ()

    def __hash__(self) -> int:
        """Return what it always is: a search asks for it many times."""
        return self._hash

    @cached_property
    def _hash(self) -> int:
        sizes = self.group, self.items, self.local, self.private, self.strided, self.vector, self.width
        orders = self.group_order, self.item_order, self.local_order, self.private_order, self.unrolled_order
        return hash((sizes, orders, self.inputs, self.follow, self.streaming, self.matrix))

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what was worked out of it: the hash is another one in another process."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def has_copies(self) -> bool:
        """Whether elements of an input are read from a copy in local memory."""
        return any(caching.memory is Memory.LOCAL for caching in self.inputs)

    @property
    def goes_by_points(self) -> bool:
        """Whether points are done one by one, without tiles, vectors and copies; groups may share them."""
        single = self.vector is None and prod((*self.private, *self.items)) == 1
        return single and not any(self.local) and not self.has_copies

    def text(self) -> str:
        """Return canonical JSON: equal schedules have equal texts."""
        return self._text

    @cached_property
    def _text(self) -> str:
        return json.dumps(self.json(), sort_keys=True, separators=(",", ":"))

    def json(self) -> dict[str, Any]:
        """Return a JSON document; one without ``matrix`` is of a schedule without matrix units."""
        document = {field.name: getattr(self, field.name) for field in fields(self)}
        if not self.matrix:
            del document["matrix"]
        return {**document, "inputs": [caching.json() for caching in self.inputs]}


def plain_schedule(dimensions: int, inputs: int) -> Schedule:
    """Return the schedule that works for every md_hom: no tiles, no vectors, one work-item."""
    every = tuple(range(dimensions))
    return Schedule(
        group=(0,) * dimensions,
        items=(1,) * dimensions,
        local=(0,) * dimensions,
        private=(1,) * dimensions,
        strided=(False,) * dimensions,
        vector=None,
        width=1,
        group_order=every,
        item_order=every,
        local_order=every,
        private_order=every,
        unrolled_order=every,
        inputs=(Caching(),) * inputs,
    )


def schedule_from_json(document: dict[str, Any]) -> Schedule:
    """Return the schedule of a JSON document; one without ``stages`` is of a time when there was only one.

    Errors: ValueError where a field is missing, unknown or of a wrong type.
    """
    document = {"stages": 1, "matrix": [], **document}
    names = {part.name for part in fields(Schedule)}
    if set(document) != names:
        raise ValueError(f"a schedule has the fields {', '.join(sorted(names))}")
    values = {name: _tuple(value) for name, value in document.items()}
    if not isinstance(values["matrix"], tuple) or not all(type(d) is int for d in values["matrix"]):
        raise ValueError("the dimensions of a matrix unit are a list of integers")
    values["inputs"] = tuple(_caching(each) for each in document["inputs"])
    return Schedule(**values)


def schedule_from_text(text: str) -> Schedule:
    """Return the schedule of a JSON text. Errors: ValueError."""
    return schedule_from_json(json.loads(text))


def _caching(document: dict[str, Any]) -> Caching:
    try:
        return Caching(
            Memory(document["memory"]),
            _tuple(document["axes"]),
            int(document["padding"]),
            bool(document["panel"]),
        )
    except (KeyError, TypeError) as fault:
        raise ValueError("the caching of an input has memory, axes, padding and panel") from fault


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
