"""Automatic mapping: whatever a map leaves open is chosen, accepted by every check, and runs right."""

from __future__ import annotations

import re

import numpy as np
import pytest
from corpus import Layer, layers
from layers import random_layer

from polyloom import read_program, simulate
from polyloom.diagnostics import PolyloomError, Source
from polyloom.frontends.lair.from_program import from_program
from polyloom.ir.program import Program
from polyloom.pipeline import complete_mapping
from polyloom.wafer.machine.model import load_machine
from polyloom.wafer.mapping.reader import read_mapping
from polyloom.wafer.placement.candidates import SearchOptions
from polyloom.wafer.placement.choose import Choice
from samples import one_in

CS2 = load_machine("cs2")
FEW = SearchOptions(layouts=3, refined=1, compiled=6)
FF = read_program("lair ff(): float16 W[32][16], float16 x[16] -> float16 y[32] {\n"
                  "  all (i, j) in (32, 16) y[i] += W[i][j] * x[j]\n}\n")  # fmt: skip
HAND = """\
size: { PE[4, 4] }
compute_map: { ff[i, j] -> PE[j//4, i//8] }
iport_map: { x[i = 0:15] -> [PE[i//4, -1] -> index[i%4]] }
oport_map: { y[i = 0:31] -> [PE[4, i//8] -> index[i%8]] }
sparse: x
trigger: ff = x
"""


def chosen(program: Program, text: str | None, size: tuple[int, int] | None = None) -> Choice:
    return complete_mapping(None if text is None else Source("part.map", text), program, CS2, size, FEW)


def check(program: Program, choice: Choice) -> None:
    """The mapping runs right, and its text is read back as the same mapping."""
    result = simulate(program, choice.mapping, check=True)
    assert result.check is not None
    assert result.check.passed, choice.text
    again = read_mapping(Source("again.map", choice.text), program)
    assert again.grid == choice.mapping.grid
    for mine, theirs in (
        (again.placement, choice.mapping.placement),
        (again.inputs, choice.mapping.inputs),
        (again.outputs, choice.mapping.outputs),
    ):
        assert list(mine) == list(theirs)
        assert all(relation.is_equal(theirs[name]) for name, relation in mine.items())
    assert (again.sparse, again.state, again.trigger) == (
        choice.mapping.sparse,
        choice.mapping.state,
        choice.mapping.trigger,
    )


LATER = [pytest.mark.slow, pytest.mark.ci]
SEEDS = [pytest.param(seed, marks=LATER if seed % 4 else []) for seed in range(5000, 5008)]


@pytest.mark.parametrize("seed", SEEDS)
def test_random_layers_without_a_map(seed: int) -> None:
    layer = random_layer(seed)
    size = (1 + seed % 4, 1 + seed // 4 % 4)
    try:
        choice = chosen(layer.program, None, size)
    except PolyloomError as refused:
        pytest.fail(f"{refused}\n{size}\n{from_program(layer.program)}")
    assert (choice.mapping.grid.width, choice.mapping.grid.height) == size
    check(layer.program, choice)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(6000, 6400, 20))
def test_many_random_layers_without_a_map(start: int) -> None:
    for seed in range(start, start + 20):
        test_random_layers_without_a_map(seed)


@pytest.mark.parametrize(
    "missing", one_in(2, ["all", *re.findall(r"^\w+", HAND, re.MULTILINE), "iport_map oport_map"])
)
def test_maps_of_which_a_part_is_missing(missing: str) -> None:
    """Without ports, a full placement leaves tensors resident: there, ``auto`` asks for ports."""
    gone = missing.split()
    kept = [line for line in HAND.splitlines() if line.split(":")[0] not in gone]
    asked = [f"{key}: auto" for key in gone if key.endswith("port_map")]
    choice = chosen(FF, "" if missing == "all" else "\n".join([*kept, *asked]))
    check(FF, choice)
    for line in kept if missing != "all" else []:
        assert line in choice.text or line.startswith(("size", "compute_map")), choice.text


def test_a_part_that_is_given_stays() -> None:
    given = read_mapping(Source("hand.map", HAND), FF)
    lines = [line for line in HAND.splitlines() if not line.startswith("compute_map")]
    choice = chosen(FF, "\n".join(lines))
    assert choice.mapping.inputs["x"].is_equal(given.inputs["x"])
    assert choice.mapping.grid == given.grid
    assert choice.mapping.placement["ff"].is_equal(given.placement["ff"]), "only this one flows straight"


def test_a_complete_map_comes_back_as_it_is() -> None:
    choice = chosen(FF, HAND)
    assert (choice.text, choice.candidates) == (HAND, ())


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize(
    ("direction", "expected"),
    [
        ("[j, i]", r"ff\[i, j\] -> PE\[j(//\d+)?, i(//\d+)?\]"),
        pytest.param("[i, j]", r"ff\[i, j\] -> PE\[i(//\d+)?, j(//\d+)?\]", marks=LATER),
        ("[j, 0]", r"ff\[i, j\] -> PE\[j(//\d+)?, 0\]"),
        pytest.param("[0, 0]", r"ff\[i, j\] -> PE\[0, 0\]", marks=LATER),
        pytest.param("[-j, i]", r"ff\[i, j\] -> PE\[\(-j \+ 15\)(//\d+)?, i(//\d+)?\]", marks=LATER),
        ("[i + j, 0]", r"ff\[i, j\] -> PE\[\(i \+ j\)//\d+, 0\]"),
    ],
)
def test_directions(direction: str, expected: str) -> None:
    choice = chosen(FF, f"size: {{ PE[4, 4] }}\ncompute_map: {{ ff[i, j] -> {direction} }}")
    assert re.search(expected, choice.text), choice.text
    check(FF, choice)


def test_a_direction_that_is_not_affine() -> None:
    with pytest.raises(PolyloomError) as refused:
        chosen(FF, "compute_map: { ff[i, j] -> [j mod 4, i] }")
    assert refused.value.diagnostics[0].code == "map-direction"


def test_ports_alone_may_be_left_open() -> None:
    text = "size: { PE[4, 4] }\ncompute_map: { ff[i, j] -> PE[j//4, i//8] }\niport_map: auto\noport_map: auto"
    choice = chosen(FF, text)
    assert list(choice.mapping.inputs) == ["x"]
    assert list(choice.mapping.outputs) == ["y"]
    check(FF, choice)


@pytest.mark.slow
@pytest.mark.ci
def test_tensors_may_be_named_after_auto() -> None:
    choice = chosen(FF, "size: { PE[2, 2] }\niport_map: auto x, W\noport_map: { }")
    assert sorted(choice.mapping.inputs) == ["W", "x"]
    assert not choice.mapping.outputs
    check(FF, choice)
    with pytest.raises(PolyloomError, match="map-unknown-name"):
        chosen(FF, "iport_map: auto z")


@pytest.mark.slow
@pytest.mark.ci
def test_tensors_that_shall_leave_do_not_stay() -> None:
    """More of them than a PE has output queues: on one PE that is refused, although all fit in its memory."""
    outputs = ", ".join(f"float16 y{k}[4]" for k in range(9))
    statements = "\n".join(f"all (i) in (4) y{k}[i] = x[i]" for k in range(9))
    many = read_program(f"lair many(): float16 x[4] -> {outputs} {{ {statements} }}")
    assert not chosen(many, None, (1, 1)).mapping.outputs
    with pytest.raises(PolyloomError, match="wafer-queues"):
        chosen(many, f"oport_map: auto {', '.join(many.outputs)}", (1, 1))


def test_a_full_placement_without_ports_keeps_its_meaning() -> None:
    choice = chosen(FF, "size: { PE[4, 4] }\ncompute_map: { ff[i, j] -> PE[j//4, i//8] }")
    assert not choice.candidates
    assert not choice.mapping.inputs


def test_another_size_goes_before_that_of_a_whole_map() -> None:
    whole = HAND.replace("PE[4, i//8]", "PE[-1, i//8]")
    choice = chosen(FF, whole, (5, 4))
    assert not choice.candidates
    assert choice.text == whole.replace("PE[4, 4]", "PE[5, 4]")
    check(FF, choice)
    with pytest.raises(PolyloomError) as refused:
        chosen(FF, whole, (3, 4))
    assert {str(d.span) for d in refused.value.diagnostics} == {"part.map:2:14", "part.map:3:12"}


def test_a_statement_that_a_map_forgets_is_placed() -> None:
    two = read_program(
        "lair two(): float16 x[8] -> float16 y[8], float16 z[8]\n"
        "{ all (i) in (8) y[i] = x[i]\n all (i) in (8) z[i] = y[i] }"
    )
    choice = chosen(two, "size: { PE[2, 1] }\ncompute_map: { two_y[i] -> PE[i//4, 0] }")
    assert set(choice.mapping.placement) == {"two_y", "two_z"}
    check(two, choice)


def test_what_fits_nowhere_names_the_tensor_and_its_bytes() -> None:
    big = read_program("lair ff(): float16 W[1024][1024], float16 x[1024] -> float16 y[1024] {\n"
                       "  all (i, j) in (1024, 1024) y[i] += W[i][j] * x[j]\n}\n")  # fmt: skip
    with pytest.raises(PolyloomError) as refused:
        chosen(big, None, (2, 2))
    (found,) = refused.value.diagnostics
    assert found.code == "placement-memory"
    assert "`W` takes 524288 bytes" in found.notes[0]
    assert chosen(big, None, (8, 8)).candidates


@pytest.mark.slow
@pytest.mark.ci
def test_the_weights_stay_and_the_activations_stream() -> None:
    training = next(layer for layer in layers() if layer.name == "training").program()
    choice = chosen(training, "size: { PE[2, 2] }\nstate: W = W1")
    assert list(choice.mapping.inputs) in (["x", "dy"], ["dy", "x"])
    assert sorted(choice.mapping.outputs) == ["dx", "y"]
    check(training, choice)


GRAPHS = ("mlp K=8 M=12 N=6", "residual M=6 N=4", "gemv_bias M=32 N=16", "padded_conv", "ff_mixed M=32 N=16")


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("layer", one_in(3, (x for x in layers() if x.name in GRAPHS), name=lambda x: x.name))
def test_several_statements(layer: Layer) -> None:
    program = layer.program()
    check(program, chosen(program, None, (3, 2)))


def test_the_same_is_chosen_every_time() -> None:
    first, second = (chosen(FF, None, (3, 3)) for _ in range(2))
    assert first.text == second.text
    cycles = [candidate.cycles for candidate in first.candidates]
    assert cycles == sorted(cycles)


def test_a_large_layer_on_a_large_rectangle() -> None:
    """As many maps are compiled as for a small one."""
    text = "lair ff(): float16 W[3200][1600], float16 x[1600] -> float16 y[3200] {\n"
    text += "  all (i, j) in (3200, 1600) y[i] += W[i][j] * x[j]\n}\n"
    large = chosen(read_program(text), None, (400, 400))
    assert large.mapping.grid.width == 400
    assert len(large.candidates) <= FEW.compiled
    assert np.isfinite(large.candidates[0].cycles)
