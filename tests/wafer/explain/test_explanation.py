"""The JSON of ``explain`` on every layer of the corpus: its shape, and that its parts agree."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import islpy as isl
import pytest
from corpus import Layer, analysed
from test_wafer_corpus import in_modes

from polyloom.wafer.explain.document import explanation
from polyloom.wafer.simd.decision import SimdMode

MODES = (SimdMode.AUTO, SimdMode.EXACT, SimdMode.ENUMERATE)
COMPUTE = {"sparse", "dense", "local"}
NO_COMPUTE = {"initialize", "adapt", "move", "spread", "store", "reduce", "gather"}
KEYS = {"size", "ports", "placement", "memory", "tasks"}
MEMORY_KEYS = {"tensor", "local", "elements", "extent_before", "map_before", "extent", "map"}
SETS = {"placed", "instances", "known", "compressed", "minimum", "maximum", "size", "extra"}
BY_NAME = {
    "extra_reads",
    "extra_writes",
    "proper_writes",
    "accesses",
    "compressed_accesses",
    "local_accesses",
}
PARTS = {"uncompressed", "compression", "hull", "emitted_accesses", "enumeration", "simd"}
TASK_KEYS = {"name", "kind", "statement", "trigger", "index"} | SETS | BY_NAME | PARTS
Document = dict[str, Any]


def document(layer: Layer, mode: SimdMode) -> Document:
    return dict(json.loads(json.dumps(explanation(analysed(layer, mode, "cs2")), allow_nan=False)))


def compute_tasks(found: Document) -> list[Document]:
    return [t for t in found["tasks"] if t["kind"] in COMPUTE]


def isl_strings(found: Any) -> Iterator[str]:
    """Every string that is an isl object: the only ones with a brace, but for reasons and remarks."""
    if isinstance(found, dict):
        for key, part in found.items():
            if key not in ("remarks", "reason"):
                yield from isl_strings(part)
    elif isinstance(found, list):
        for part in found:
            yield from isl_strings(part)
    elif isinstance(found, str) and "{" in found:
        yield found


def read(text: str) -> isl.Set | isl.Map:
    return isl.Map(text) if "->" in text[text.index("{") :] else isl.Set(text)


@pytest.mark.parametrize(("layer", "mode"), list(in_modes(MODES, most=2)))
def test_a_document(layer: Layer, mode: SimdMode) -> None:
    """One test, since each document is an analysis of its own."""
    found = document(layer, mode)
    check_shape(found)
    check_compression(found)
    check_hull(found)
    check_emitted_accesses(found)
    check_sizes(found)


def check_shape(found: Document) -> None:
    """It is that of INTERFACE.md."""
    assert found.keys() >= KEYS and set(found["size"]) == {"given", "compute"}
    assert all(entry.keys() >= MEMORY_KEYS for entry in found["memory"])
    for task in found["tasks"]:
        assert task["kind"] in COMPUTE | NO_COMPUTE
        assert task.keys() >= (TASK_KEYS if task["kind"] in COMPUTE else {"name", "kind", "statement"})
    assert [read(text) for text in isl_strings(found)]


def check_compression(found: Document) -> None:
    """It gives the instances again."""
    for task in compute_tasks(found):
        image = isl.Set(task["compressed"]).apply(isl.Map(task["compression"]))
        assert image.is_equal(isl.Set(task["instances"]))
        assert isl.Set(task["instances"]).is_subset(isl.Set(task["placed"]))
        assert isl.Set(task["instances"]).params().is_equal(isl.Set(task["known"]))


def check_hull(found: Document) -> None:
    """It is the instances and the extra ones."""
    for task in compute_tasks(found):
        if task["hull"] is not None:
            compressed, extra = isl.Set(task["compressed"]), isl.Set(task["extra"])
            assert compressed.is_disjoint(extra)
            assert hull_of(task).is_equal(compressed.union(extra))


def check_emitted_accesses(found: Document) -> None:
    """They stay inside local memory."""
    extents = {entry["local"]: entry["extent"] for entry in found["memory"]}
    for task in compute_tasks(found):
        if not task["simd"]["whole_stream"]:
            done = emitted_points(task)
            for local, access in task["emitted_accesses"].items():
                touched = done.apply(isl.Map(access))
                assert touched.is_subset(box(local, extents[local])), f"{local} {touched}"


def check_sizes(found: Document) -> None:
    """They are those of the strategy."""
    for task in compute_tasks(found):
        simd = task["simd"]
        assert (simd["instruction"] is None) == (simd["strategy"] == "none") == bool(simd["reason"])
        if simd["strategy"] == "none":
            assert simd["sizes"] is None
        elif simd["strategy"] == "hull":
            live = [n for n in task["hull"]["size"] if n > 1 or simd["coordinates"] is None]
            assert [live] == simd["sizes"] or "unimodular" in simd["extensions"] or simd["loops"]
        elif not (simd["whole_stream"] or simd["coordinates"] or simd["boxes"] or simd["loops"]):
            assert sizes_as_set(simd["sizes"]).is_equal(without_parameters(isl.Set(task["size"])))


def emitted_points(task: Document) -> isl.Set:
    """What the instruction runs through: the hull, or the instances, in its own coordinates."""
    points = hull_of(task) if task["simd"]["strategy"] == "hull" else isl.Set(task["compressed"])
    if task["simd"]["coordinates"] is None:
        return points
    old, new = isl.Map(task["compression"]), isl.Map(task["simd"]["coordinates"]["map"])
    return points.apply(old.apply_range(new.reverse()))


def hull_of(task: Document) -> isl.Set:
    """(35): from the offset and the size."""
    size = task["hull"]["size"]
    low, high = ([f"{letter}{k}" for k in range(len(size))] for letter in "ab")
    inside = " and ".join(f"{a} <= {b} < {a} + {n}" for a, b, n in zip(low, high, size, strict=True))
    to_box = isl.Map(f"{{ [{', '.join(low)}] -> [{', '.join(high)}] : {inside or 'true'} }}")
    return isl.Set(task["hull"]["offset"]).apply(to_box).intersect_params(isl.Set(task["known"]))


def box(name: str, extent: list[int]) -> isl.Set:
    return isl.Set(f"{{ {name}[{', '.join(f'0:{n - 1}' for n in extent)}] }}")


def sizes_as_set(sizes: list[list[int]] | str) -> isl.Set:
    if isinstance(sizes, str):
        return without_parameters(isl.Set(sizes))
    return isl.Set(f"{{ {'; '.join(str(size) for size in sizes)} }}")


def without_parameters(points: isl.Set) -> isl.Set:
    return points.project_out(isl.dim_type.param, 0, points.dim(isl.dim_type.param))
