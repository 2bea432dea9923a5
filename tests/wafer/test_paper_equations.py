"""Every numbered equation of the paper on placed layers, as printed, against the JSON of ``explain``.

Source: dtg_codegen (Verdoolaege et al., IMPACT 2020), Sec. 4 and 5. The literals are the paper's, by hand in
isl's notation; what differs from the print is said where it stands. (1)-(4) are examples of isl's notation;
(5), (6), (10) are what adapters make of the map of Sec. 4.1.2 (test_border.py); ff44.map states them.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import islpy as isl
import pytest

from polyloom.diagnostics import Source
from polyloom.frontends.lair import lower
from polyloom.frontends.lair.syntax.parse import parse
from polyloom.pipeline import analyse_layer
from polyloom.wafer.explain.document import explanation
from polyloom.wafer.mapping.reader import read_mapping
from polyloom.wafer.simd.decision import SimdMode, SimdOptions

EXAMPLES = Path(__file__).parents[2] / "examples"
PARAMETERS = "[index_0, index_1, index, PE_X, PE_Y] -> "
FF = ("ff.lair", "ff_every_column.map")
FF44 = ("ff.lair", "ff44.map")
CONV1D = ("conv1d.lair", "conv1d.map")
CONV2D = ("conv2d.lair", "conv2d.map")
CONV1X1 = ("conv1x1.lair", "conv1x1.map")
Layer = tuple[str, str]


@cache
def explained(layer: Layer, mode: SimdMode = SimdMode.AUTO) -> dict[str, Any]:
    """The document, after a round trip through JSON text."""
    lair, layer_map = layer
    sizes = {"M": "32", "N": "16"} if lair == "ff.lair" else {}
    program = lower(parse(Source(lair, (EXAMPLES / lair).read_text())), None, sizes)
    mapping = read_mapping(Source(layer_map, (EXAMPLES / layer_map).read_text()), program)
    document = explanation(analyse_layer(program, mapping, SimdOptions(mode)))
    return dict(json.loads(json.dumps(document, allow_nan=False)))


def task(layer: Layer, mode: SimdMode = SimdMode.AUTO) -> dict[str, Any]:
    """The layer's only computation task."""
    (found,) = [t for t in explained(layer, mode)["tasks"] if t["kind"] == "sparse"]
    return dict(found)


def memory(layer: Layer, tensor: str) -> dict[str, Any]:
    (found,) = [m for m in explained(layer)["memory"] if m["tensor"] == tensor]
    return dict(found)


def relation(text: str) -> isl.Set | isl.Map:
    """Read what explain prints."""
    return isl.Map(text) if "->" in text[text.index("{") :] else isl.Set(text)


def printed(text: str) -> isl.Set | isl.Map:
    """Read what the paper prints: PE_X, PE_Y and the index are symbolic constants."""
    return relation(PARAMETERS + text)


def value(layer: Layer, path: str) -> isl.Set | isl.Map:
    """Return the part of the task (or, from a leading ``memory``, of the memory) at a path of keys."""
    first, *rest = path.split(".")
    found: Any = memory(layer, rest.pop(0)) if first == "memory" else task(layer)[first]
    for key in rest:
        found = found[key]
    return relation(found)


@dataclass(frozen=True)
class Equation:
    """``known``: printed without the constraints (15) on the symbolic constants, so compared under them."""

    number: str
    layer: Layer
    path: str
    text: str
    known: bool = False


K = "0 <= index <= 15 and PE_X = index//4 and 0 <= PE_Y <= 3"
BOTH = "PE_X = 0 and 0 <= PE_Y <= 1"

EQUATIONS = [
    # Sec. 4.3.
    Equation("7", FF44, "memory.y.elements", "{ PE[0:3, i1=0:3] -> y[i=0:31] : 8i1 <= i <= 7 + 8i1 }"),
    Equation("9", FF44, "memory.y.map_before", "{ y[i] -> y_local[-8PE_Y + i] }"),
    # Sec. 5.1: Examples 5.1 and 5.2.
    Equation(
        "11",
        FF,
        "placed",
        "{ ff[i=0:31, j=0:15] : 8PE_Y <= i <= 7 + 8PE_Y and 4PE_X <= j <= 3 + 4PE_X }",
    ),
    Equation(
        "12",
        FF,
        "instances",
        "{ ff[i=0:31, j=index] : 0 <= index <= 15 and PE_X = index//4 and 8PE_Y <= i <= 7 + 8PE_Y }",
    ),
    Equation("13", FF, "uncompressed.minimum", f"{{ ff[8PE_Y, index] : {K} }}"),
    Equation("14", FF, "uncompressed.maximum", f"{{ ff[7 + 8PE_Y, index] : {K} }}"),
    Equation("15", FF, "known", f"{{ : {K} }}"),
    Equation("16", FF, "uncompressed.size", f"{{ ff[8, 1] : {K} }}"),
    # Sec. 5.2: Example 5.3, Example 5.4, Example 5.5, Example 5.6, Example 5.7.
    Equation(
        "17",
        CONV1D,
        "instances",
        "{ C[k=PE_Y, w=0:13, rw=index - w] : PE_X = 0 and 0 <= index <= 15 and 0 <= PE_Y <= 1 and "
        "-2 + index <= w <= index }",
    ),
    Equation("18", FF, "compression", "{ [i0] -> ff[i0, index] }"),
    Equation(
        "19",
        FF,
        "compressed",
        "{ [i0=0:31] : 0 <= index <= 15 and PE_X = index//4 and 8PE_Y <= i0 <= 7 + 8PE_Y }",
    ),
    Equation("20 minimum", FF, "minimum", f"{{ [8PE_Y] : {K} }}"),
    Equation("20 maximum", FF, "maximum", f"{{ [7 + 8PE_Y] : {K} }}"),
    Equation("21", FF, "size", f"{{ [8] : {K} }}"),
    Equation("22", CONV1D, "compression", "{ [i0] -> C[PE_Y, index - i0, i0] }"),
    Equation(
        "23",
        CONV1D,
        "compressed",
        "{ [i0=0:2] : PE_X = 0 and 0 <= index <= 15 and 0 <= PE_Y <= 1 and -13 + index <= i0 <= index }",
    ),
    Equation(
        "24",
        CONV1D,
        "size",
        "{ [16 - index] : index >= 13; [3] : 2 <= index <= 12; [1 + index] : index <= 1 }",
        known=True,
    ),
    Equation("25 W", CONV1D, "accesses.W", "{ C[i0, i1, i2] -> W[i0, i2] }"),
    Equation("25 y", CONV1D, "accesses.y", "{ C[i0, i1, i2] -> y[i0, i1] }"),
    Equation("26 W", CONV1D, "compressed_accesses.W", "{ [i0] -> W[PE_Y, i0] }"),
    Equation("26 y", CONV1D, "compressed_accesses.y", "{ [i0] -> y[PE_Y, index - i0] }"),
    Equation(
        "27",
        CONV2D,
        "instances",
        "{ C[k=PE_Y, w=0:13, h=0:13, rw=index_0 - w, rh=index - h] : PE_X = 0 and 0 <= index_0 <= 15 and "
        "0 <= index <= 15 and 0 <= PE_Y <= 1 and -2 + index_0 <= w <= index_0 and -2 + index <= h <= index }",
    ),
    Equation("28", CONV2D, "compression", "{ [i0, i1] -> C[PE_Y, index_0 - i0, index - i1, i0, i1] }"),
    Equation(
        "29",
        CONV2D,
        "compressed",
        "{ [i0=0:2, i1=0:2] : PE_X = 0 and 0 <= index_0 <= 15 and 0 <= index <= 15 and 0 <= PE_Y <= 1 and "
        "-13 + index_0 <= i0 <= index_0 and -13 + index <= i1 <= index }",
    ),
    Equation(
        "32",
        CONV1X1,
        "instances",
        "{ C[k=0:3, h=0:7, w=index_1, c=index_0 + index + 2PE_Y - h] : (index_0 - h) mod 4 = 0 and "
        "0 <= index_0 <= 3 and 0 <= index_1 <= 7 and 0 <= index <= 1 and "
        "h <= index_0 + index + 2PE_Y <= h + 3 and 2PE_X - k <= 4*(index_1//4) <= 1 + 2PE_X - k }",
    ),
    # Sec. 5.3: Example 5.9.
    Equation("36", CONV1D, "extra", "{ [1 + index:2]; [0:-14 + index] }", known=True),
    Equation("37", CONV1D, "local_accesses.W_local", "{ [i0] -> W_local[0, i0] }"),
    Equation(
        "38",
        CONV1D,
        "extra_reads.W_local",
        "{ W_local[0, 1 + index:2]; W_local[0, 0:-14 + index] }",
        known=True,
    ),
    Equation("39", CONV1D, "local_accesses.y_local", "{ [i0] -> y_local[0, index - i0] }"),
    Equation("40", CONV1D, "proper_writes.y_local", f"{{ y_local[0, 0:13] : {BOTH} }}"),
    Equation(
        "41",
        CONV1D,
        "extra_writes.y_local",
        f"{{ y_local[0, 14:15] : {BOTH}; y_local[0, -2:-1] : {BOTH} }}",
    ),
    # Sec. 5.4: Example 5.10.
    Equation("42", CONV1D, "enumeration.sizes", f"{{ [1:3] : {BOTH} }}"),
    Equation("43", CONV1D, "enumeration.identifiers", "{ [0:2] }"),
]


@pytest.mark.parametrize("equation", EQUATIONS, ids=[e.number.replace(" ", "-") for e in EQUATIONS])
def test_equation(equation: Equation) -> None:
    found = value(equation.layer, equation.path)
    wanted = printed(equation.text)
    if equation.known:
        wanted = wanted.intersect_params(isl.Set(task(equation.layer)["known"]))
    assert not wanted.is_empty()
    assert found.is_equal(wanted), f"({equation.number}) {found}"


# Sec. 4.


def test_equations_5_6_10_are_what_the_map_states() -> None:
    """The adjusted placement (10) is printed without the instance set."""
    document = explained(FF44)
    x = "{ x[i=0:15] -> [PE[i//4, -1] -> index[i mod 4]] }"  # (5)
    y = "{ y[i=0:31] -> [PE[4, i//8] -> index[i mod 8]] }"  # (6)
    placement = printed("{ ff[i, j] -> PE[j//4, i//8] }")  # (10)
    assert relation(document["ports"]["x"]).is_equal(printed(x))
    assert relation(document["ports"]["y"]).is_equal(printed(y))
    instances = isl.Set("{ ff[i=0:31, j=0:15] }")
    assert relation(document["placement"]["ff"]).is_equal(placement.intersect_domain(instances))


def test_equation_8_is_equation_9_before_binding() -> None:
    wanted = isl.Map("{ [PE[i0, i1] -> y[i]] -> y_local[-8i1 + i] }")
    bound = isl.Map("[PE_X, PE_Y] -> { y[i] -> [PE[PE_X, PE_Y] -> y[i]] }").apply_range(wanted)
    assert relation(memory(FF44, "y")["map_before"]).is_equal(bound)


def test_the_box_of_equation_7_has_size_8() -> None:
    assert memory(FF44, "y")["extent_before"] == [8]


# Sec. 5.1.


def test_example_5_2_the_bounds_give_exactly_12_and_the_size_simplifies() -> None:
    found = task(FF)
    minimum, maximum = (isl.Set(found["uncompressed"][k]) for k in ("minimum", "maximum"))
    above, below = (isl.Map(f"{{ ff[a, b] -> ff[c, d] : a {o} c and b {o} d }}") for o in ("<=", ">="))
    box = minimum.apply(above).intersect(maximum.apply(below))
    assert box.is_equal(isl.Set(found["instances"]))
    simplified = isl.Set(found["uncompressed"]["size"]).gist_params(isl.Set(found["known"]))
    assert simplified.is_equal(isl.Set("{ ff[8, 1] }"))


# Example 5.7.


def test_equations_30_and_31_are_the_map_of_example_5_7() -> None:
    document = explained(CONV1X1)
    placement = printed("{ C[k, h, w, c] -> PE[k//2 + 2*(w//4), 2*(h//4) + c//2] }")  # (30)
    order = printed("{ x[h=0:7, w=0:7, c=0:3] -> index[h mod 4, w, c mod 2] }")  # (31)
    instances = isl.Set("{ C[k=0:3, h=0:7, w=0:7, c=0:3] }")
    assert relation(document["placement"]["C"]).is_equal(placement.intersect_domain(instances))
    assert relation(document["ports"]["x"]).range_factor_range().is_equal(order)


COMPRESSION_33 = "{ [i0, i1] -> C[i0, index_0 - 4i1, index_1, index + 2PE_Y + 4i1] }"


def test_equation_33_up_to_a_unimodular_change_of_variables() -> None:
    """Two affine injections with the same integer image differ by an affine unimodular map."""
    found, wanted = relation(task(CONV1X1)["compression"]), printed(COMPRESSION_33)
    assert found.dim(isl.dim_type.in_) == wanted.dim(isl.dim_type.in_)
    assert found.is_injective() and wanted.is_injective()
    assert found.range().is_equal(wanted.range())


def test_equation_34_in_the_variables_of_equation_33() -> None:
    found = task(CONV1X1)
    change = relation(found["compression"]).apply_range(printed(COMPRESSION_33).reverse())
    wanted = printed(
        "{ [i0=0:3, i1=(3 - index - 2PE_Y)//4] : 0 <= index_0 <= 3 and 0 <= index_1 <= 7 and "
        "0 <= index <= 1 and -7 + index_0 <= 4i1 <= index_0 and "
        "2PE_X - i0 <= 4*(index_1//4) <= 1 + 2PE_X - i0 }"
    )
    assert isl.Set(found["compressed"]).apply(change).is_equal(wanted)


def test_the_size_of_example_5_7_is_constant_under_its_known_constraints() -> None:
    """The paper calls this box one "of non-constant size", yet in (34) ``i0`` takes exactly two values
    wherever there are instances: 2PE_X - 4*(index_1//4) and the next. Its size is [2, 1].
    """
    found = task(CONV1X1)
    size = isl.Set(found["size"])
    assert size.is_equal(printed("{ [2, 1] }").intersect_params(isl.Set(found["known"])))
    assert found["hull"]["size"] == [2, 1]
    assert found["simd"]["sizes"] == [[2]], "the constant dimension goes away: not in the paper"


# Sec. 5.3.


def test_example_5_8_the_hull_is_exact() -> None:
    found = task(FF)
    offset = isl.Set(found["hull"]["offset"])
    assert offset.is_equal(printed("{ [8PE_Y] }"))
    assert found["hull"]["size"] == [8]
    assert isl.Set(found["extra"]).is_empty()
    assert found["simd"]["strategy"] == "hull" and found["simd"]["sizes"] == [[8]]


def test_equation_35_is_the_hull_of_example_5_9() -> None:
    found = task(CONV1D)
    assert isl.Set(found["hull"]["offset"]).is_equal(isl.Set("{ [0] }"))
    assert found["hull"]["size"] == [3]
    wanted = printed(f"{{ [0:2] : {BOTH} and 0 <= index <= 15 }}")  # (35)
    approximated = isl.Set(found["compressed"]).union(isl.Set(found["extra"]))
    assert approximated.is_equal(wanted)
    assert found["simd"]["strategy"] == "hull" and found["simd"]["sizes"] == [[3]]


def test_example_5_9_extra_reads_stay_inside_and_extra_writes_apart() -> None:
    found = task(CONV1D)
    assert isl.Set(found["extra_reads"]["W_local"]).is_subset(isl.Set("{ W_local[0, 0:2] }"))
    proper, extra = (isl.Set(found[f"{kind}_writes"]["y_local"]) for kind in ("proper", "extra"))
    assert proper.is_disjoint(extra)


def test_example_5_9_enlarges_y_local_to_18_shifted_by_2() -> None:
    """The paper's offset of the allocation is { y_local[0, -2] }: element 0 moves to 2."""
    y = memory(CONV1D, "y")
    assert (y["extent_before"], y["extent"]) == ([1, 14], [1, 18])
    shift = isl.Map("{ y_local[a, b] -> y_local[a, b + 2] }")
    assert relation(y["map"]).is_equal(relation(y["map_before"]).apply_range(shift))
    found = task(CONV1D)
    emitted, local = (relation(found[k]["y_local"]) for k in ("emitted_accesses", "local_accesses"))
    assert emitted.is_equal(local.apply_range(shift))
    w = memory(CONV1D, "W")
    assert w["extent"] == w["extent_before"] and w["map"] == w["map_before"]


# Sec. 5.4.


def test_example_5_10_has_identifiers_0_to_2_for_sizes_1_to_3() -> None:
    """The identifiers are those of (43); adding the offset gives the sizes."""
    found = task(CONV1D, SimdMode.ENUMERATE)
    assert isl.Set(found["enumeration"]["offset"]).is_equal(isl.Set("{ [1] }"))
    assert isl.Set(found["enumeration"]["identifiers"]).is_equal(isl.Set("{ [0:2] }"))
    assert found["simd"]["strategy"] == "enumerated"
    assert found["simd"]["sizes"] == [[1], [2], [3]]
    y = next(m for m in explained(CONV1D, SimdMode.ENUMERATE)["memory"] if m["tensor"] == "y")
    assert y["extent"] == [1, 14], "only the hull's extra instances enlarge local memory"


def test_every_numbered_equation_of_sections_4_and_5_has_a_test() -> None:
    in_table = {int(e.number.split()[0]) for e in EQUATIONS}
    named = [re.findall(r"\d+", name) for name in globals() if name.startswith("test_equation")]
    assert in_table | {int(number) for numbers in named for number in numbers} == set(range(5, 44))
