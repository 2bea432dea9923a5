"""Sequences of elements cut into segments, each a nest at fixed outer indices: one instruction's work."""

from __future__ import annotations

from collections.abc import Sequence

import islpy as isl

from polyloom.polyhedra.binding import bind_domain
from polyloom.wafer.nests import linear_function

_DIM = isl.dim_type


def outer_names(depth: int) -> tuple[str, ...]:
    """Return names for the outer index dimensions."""
    return tuple(f"o{k}" for k in range(depth))


def split_map(depth: int, rank: int) -> isl.Map:
    """Return ``{ index[i...] -> [outer[...] -> index[...]] }``, the first ``depth`` dimensions apart."""
    names = [f"i{k}" for k in range(rank)]
    outer, inner = ", ".join(names[:depth]), ", ".join(names[depth:])
    return isl.Map(f"{{ index[{', '.join(names)}] -> [outer[{outer}] -> index[{inner}]] }}")


def inner_function(elements: isl.Map, split: isl.Map, names: Sequence[str]) -> isl.MultiAff | None:
    """Return ``{ index[inner] -> local }``, the outer indices as parameters; None if it is not linear."""
    curried = elements.apply_domain(split).curry()
    return linear_function(bind_domain(curried, names).unwrap())


def precedes(first: isl.Set, second: isl.Set, split: isl.Map) -> bool:
    """Whether, at equal outer indices on a PE, no index of ``second`` comes before one of ``first``."""
    pairs = isl.Map.from_domain_and_range(second, first)
    earlier = pairs.intersect(isl.Map.lex_lt(first.get_space()))
    outer = split.range_factor_domain()
    same = outer.apply_range(outer.reverse())
    return bool(earlier.intersect(same).is_empty())


def visit_outer(points: isl.Set, rank: int) -> isl.Map:
    """Return ``{ S[o...] -> [o..., rank] }`` on the points."""
    names = [f"i{k}" for k in range(points.dim(_DIM.set))]
    name = points.get_tuple_name()
    text = f"{{ {name}[{', '.join(names)}] -> [{', '.join([*names, str(rank)])}] }}"
    return isl.Map(text).intersect_domain(points)
