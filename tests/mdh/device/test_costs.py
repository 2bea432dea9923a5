"""The cost model's numbers are data: each has a value, a unit and an origin, and the model reads it."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from importlib.resources import files
from pathlib import Path

import pytest
from homs import device, hom_of, matmul

from polyloom.mdh.device import costs
from polyloom.mdh.device.costs import CpuCosts, GpuCosts, load_costs
from polyloom.mdh.device.devices import DeviceKind
from polyloom.mdh.schedule.choice import default_schedule
from polyloom.mdh.schedule.cost.cost_model import predicted_seconds
from polyloom.mdh.schedule.cost.loop_sizes import Reads
from polyloom.mdh.schedule.tiling import TileFacts


@pytest.mark.parametrize("kind", ["cpu", "gpu", "native"])
def test_every_number_says_where_it_comes_from(kind: str) -> None:
    found = load_costs(kind)
    assert isinstance(found.kernels, GpuCosts if kind == "gpu" else CpuCosts)
    text = (files("polyloom.mdh.device") / "models" / f"{kind}.json").read_text(encoding="utf-8")
    document = json.loads(text)
    for part in (document, *document.get("vendors", {}).values()):
        for section in {"instructions", "memory", "kernels"} & set(part):
            for name, entry in part[section].items():
                (origin,) = set(entry) & set(costs.ORIGINS)
                assert entry["unit"] and entry[origin], name


def test_a_vendor_has_the_numbers_of_all_but_those_that_are_known_to_be_others() -> None:
    usual, amd = load_costs("native"), load_costs("native", "AuthenticAMD")
    assert amd.kernels != usual.kernels == load_costs("native", "GenuineIntel").kernels
    assert isinstance(amd.kernels, CpuCosts)
    assert isinstance(usual.kernels, CpuCosts)
    assert replace(amd.kernels, bytes_per_cycle=usual.kernels.bytes_per_cycle) == usual.kernels


@pytest.mark.parametrize(
    "entry",
    [
        {"value": 1, "unit": "s"},
        {"value": 1, "estimate": "a guess"},
        {"value": 1, "unit": "s", "estimate": "a guess", "source": "a book"},
    ],
)
def test_a_number_without_unit_or_one_origin_is_refused(entry: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="`launch`"):
        costs._value("launch", entry)


@pytest.mark.parametrize("kind", ["cpu", "gpu"])
def test_a_launch_costs_what_the_data_say(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = matmul(16, 16, 16)
    hom, buffers = hom_of(program), program.by_name
    model = replace(device().model, kind=DeviceKind(kind))
    facts = TileFacts(hom, default_schedule(hom, buffers, model))
    before = predicted_seconds(facts, Reads(hom, buffers), model)
    known = load_costs(kind)
    dearer = replace(known.kernels, launch_seconds=known.kernels.launch_seconds + 1.0)
    monkeypatch.setattr("polyloom.mdh.device.devices.load_costs", lambda *_: replace(known, kernels=dearer))
    assert predicted_seconds(facts, Reads(hom, buffers), model) == pytest.approx(before + 1.0)


def test_costs_have_no_field_that_nothing_reads() -> None:
    folder = Path(str(files("polyloom.mdh.schedule")))
    source = "".join(path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.py")))
    found = load_costs("cpu"), load_costs("gpu")
    parts = [part for c in found for part in (c.instructions, c.memory, c.kernels)]
    names = {field.name for part in parts for field in fields(part)}
    assert [name for name in sorted(names) if f"costs.{name}" not in source] == []
