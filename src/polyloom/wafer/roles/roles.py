"""Roles: classes of PEs that run the same program, found by intersecting sets, never by listing PEs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, reduce

import islpy as isl

from polyloom.polyhedra.binding import PE_PARAMETERS, bind
from polyloom.polyhedra.simplify import as_box, with_explicit_divs
from polyloom.wafer.analysis import LayerAnalysis


@dataclass(frozen=True, eq=False)
class Role:
    """``pes``: ``{ PE[x, y] }``; ``context``: the same as constraints on PE_X and PE_Y."""

    name: str
    pes: isl.Set

    @cached_property
    def context(self) -> isl.Set:
        """``[PE_X, PE_Y] -> { : ... }``."""
        return bind(self.pes, PE_PARAMETERS)

    def overlaps(self, pes: isl.Set) -> bool:
        """Whether a set of PEs, which holds all of the role or none, holds it."""
        return not self.pes.is_disjoint(pes)


def find_roles(analysis: LayerAnalysis) -> tuple[Role, ...]:
    """Split the PEs that have any work into classes that do the same things."""
    return split_roles(analysis.program.name, _features(analysis))


def split_roles(prefix: str, found: Iterable[isl.Set]) -> tuple[Role, ...]:
    """Split the union of some sets of PEs so that each set holds all of a role or none."""
    features = [as_box(with_explicit_divs(f)) for f in found if not f.is_empty()]
    if not features:
        return ()
    everything = features[0]
    for feature in features[1:]:
        everything = everything if feature.is_subset(everything) else everything.union(feature)
    atoms = [as_box(everything.coalesce())]
    for feature in features:
        atoms = [part for atom in atoms for part in _split(atom, feature)]
    return tuple(Role(f"{prefix}_{k}", atom) for k, atom in enumerate(atoms))


def _split(atom: isl.Set, feature: isl.Set) -> Iterator[isl.Set]:
    """Yield the parts of a set inside and outside of another; the set as it is where there is one part."""
    if atom.is_disjoint(feature) or atom.is_subset(feature):
        yield atom
        return
    yield as_box(atom.intersect(feature).coalesce())
    yield as_box(atom.subtract(feature).coalesce())


def _features(analysis: LayerAnalysis) -> Iterator[isl.Set]:
    """Yield the sets of PEs that decide what a program contains."""
    graph = analysis.graph
    for array in analysis.arrays.values():
        yield array.elements.domain()
    for stream in graph.streams:
        yield stream.receivers
    for task in graph.compute:
        yield task.pes
    for store in graph.stores:
        yield store.stored.domain()
        if not store.stream.sparse:
            driven = [task.pes for task in graph.compute if task.stream is store.stream]
            for going in store.passing.values():
                yield reduce(isl.Set.subtract, driven, going.domain())
    for result in graph.results:
        for move in result.moves:
            for kind in move.kinds:
                yield kind.pes
        for chain in result.chains:
            yield chain.members()
            yield chain.last
            yield from chain.busy.values()
