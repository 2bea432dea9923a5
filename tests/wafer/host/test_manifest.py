"""A host program written from the manifest alone, without isl: what it feeds, loads and collects is right."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polyloom.diagnostics import Source
from polyloom.frontends.lair import lower
from polyloom.frontends.lair.syntax.parse import parse
from polyloom.ir import evaluate, random_inputs
from polyloom.pipeline import analyse_layer, compile_layer
from polyloom.wafer.host.manifest import manifest
from polyloom.wafer.machine.instructions import table_text
from polyloom.wafer.machine.model import load_machine
from polyloom.wafer.mapping.reader import read_mapping
from polyloom.wafer.program.wafer_program import WaferProgram
from polyloom.wafer.simd.decision import SimdOptions
from polyloom.wafer.simulator.build import build_program
from polyloom.wafer.simulator.fabric import Fabric

EXAMPLES = Path(__file__).parents[3] / "examples"
CASES = [
    ("conv1d.lair", "conv1d.map", {}),
    ("conv1d_strided.lair", "conv1d_strided.map", {}),
    ("conv1x1.lair", "conv1x1.map", {}),
    ("ff.lair", "ff44.map", {"M": "30", "N": "13"}),
    ("ff.lair", "ff45.map", {"M": "32", "N": "16"}),
    ("ff.lair", "ff55_one_port.map", {"M": "30", "N": "13"}),
]


def compiled(lair: str, layer_map: str, defines: dict[str, str]) -> WaferProgram:
    program = lower(parse(Source(lair, (EXAMPLES / lair).read_text())), None, defines)
    mapping = read_mapping(Source(layer_map, (EXAMPLES / layer_map).read_text()), program)
    return compile_layer(analyse_layer(program, mapping, SimdOptions()), load_machine("cs2"))


def positions(entry: dict[str, Any], size: list[int]) -> range:
    return range(size[0] if entry["side"] in ("north", "south") else size[1])


def elements_at(entry: dict[str, Any], port: int) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """The index and the element's coordinates, in the order in which they pass the port."""
    extents = [range(eval(text, {"port": port})) for text in entry["extents"]]
    found = []
    for index in itertools.product(*extents):
        names = {"port": port, **dict(zip(entry["index"], index, strict=True))}
        if eval(entry["where"], dict(names)):
            found.append((index, tuple(eval(text, dict(names)) for text in entry["element"])))
    return found


def chunks(entry: dict[str, Any], port: int) -> list[tuple[int, ...]]:
    outer = [range(eval(text, {"port": port})) for text in entry["extents"][:-1]]
    return list(itertools.product(*outer))


def feed(fabric: Fabric, entry: dict[str, Any], port: int, tensor: np.ndarray[Any, Any]) -> None:
    payload: list[int] = []
    control: list[bool] = []
    elements = elements_at(entry, port)
    if not elements:
        return
    for chunk in chunks(entry, port):
        for index, element in elements:
            bits = int(tensor[element].view(np.uint16))
            if index[:-1] == chunk and tensor[element] != 0:
                payload.append(index[-1] << 16 | bits)
                control.append(False)
        payload.append(0)
        control.append(True)
    fabric.source(entry["side"], port, int(entry["color"]), np.array(payload, np.uint32), np.array(control))


def load(fabric: Fabric, entry: dict[str, Any], x: int, y: int, tensor: np.ndarray[Any, Any]) -> None:
    cells = list(itertools.product(*(range(n) for n in entry["extents"])))
    data = np.zeros(len(cells), tensor.dtype)
    mask = np.zeros(len(cells), np.bool_)
    for k, cell in enumerate(cells):
        names = {"PE_X": x, "PE_Y": y, **{f"i{d}": c for d, c in enumerate(cell)}}
        element = tuple(eval(text, {**names}) for text in entry["element"])
        if all(0 <= e < n for e, n in zip(element, tensor.shape, strict=True)):
            data[k], mask[k] = tensor[element], True
    fabric.load([x], [y], entry["offset"], data.view(np.uint8)[None], mask[None], tensor.itemsize)


def load_zeros(fabric: Fabric, entry: dict[str, Any], x: int, y: int) -> None:
    """Into all cells but those of the box in which the tensor's elements lie."""
    mask = np.ones(entry["extents"], np.bool_)
    mask[tuple(slice(first, end) for first, end in entry["but"])] = False
    data = np.zeros(mask.shape, np.float16)
    fabric.load([x], [y], entry["offset"], data.reshape(-1).view(np.uint8)[None], mask.reshape(-1)[None], 2)


def wavelets(entry: dict[str, Any], count: int) -> int:
    block = entry["block"]
    return sum(-(-min(block, count - start) // 2) for start in range(0, count, block))


def single(entry: dict[str, Any], payload: list[int], count: int) -> list[int]:
    """The elements of 16 bits in wavelets of which each may hold two."""
    if entry["block"] is None:
        return payload
    found: list[int] = []
    left = list(payload)
    while left:
        wanted = min(entry["block"], count - len(found))
        taken, left = left[: -(-wanted // 2)], left[-(-wanted // 2) :]
        found += [half for bits in taken for half in (bits & 0xFFFF, bits >> 16)][:wanted]
    return found


@pytest.mark.parametrize(("lair", "layer_map", "defines"), CASES)
def test_a_host_needs_the_manifest_only(lair: str, layer_map: str, defines: dict[str, str]) -> None:
    program = compiled(lair, layer_map, defines)
    document = manifest(program)
    tensors = random_inputs(program.analysis.program, seed=5, density=0.6)
    width, height = document["size"]
    fabric = Fabric(build_program(program.files, table_text()), program.machine, width, height)
    pes = {role["name"]: role_pes(role["where"], width, height) for role in document["roles"]}
    for entry in document["residents"]:
        for x, y in pes[entry["role"]]:
            load(fabric, entry, x, y, tensors[entry["tensor"]])
    for entry in document["zeros"]:
        for x, y in pes[entry["role"]]:
            load_zeros(fabric, entry, x, y)
    for entry in document["inputs"]:
        for port in positions(entry, document["size"]):
            feed(fabric, entry, port, tensors[entry["tensor"]])
    (out,) = document["outputs"]
    expected = evaluate(program.analysis.program, tensors)[out["tensor"]]
    ports = [p for p in positions(out, document["size"]) if elements_at(out, p)]
    colors = {port: eval(out["color"], {"port": port}) for port in ports}
    for port in ports:
        count = len(elements_at(out, port))
        fabric.sink(out["side"], port, colors[port], count if out["block"] is None else wavelets(out, count))
    assert fabric.run().error is None
    got = np.zeros_like(expected)
    for port in ports:
        payload, _, _ = fabric.received(out["side"], port, colors[port])
        halves = single(out, [int(bits) for bits in payload], len(elements_at(out, port)))
        for (_, element), bits in zip(elements_at(out, port), halves, strict=True):
            got[element] = np.uint16(bits & 0xFFFF).view(np.float16)
    np.testing.assert_array_equal(got, expected)


def role_pes(condition: str, width: int, height: int) -> list[tuple[int, int]]:
    return [(x, y) for x in range(width) for y in range(height) if eval(condition, {"PE_X": x, "PE_Y": y})]
