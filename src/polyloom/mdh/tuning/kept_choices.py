"""The cost model's choices, kept for other processes: the search for one takes up to seconds.

A choice is kept under a digest of the md_hom with its sizes, of what is known of the device, and of the rooms
that it depends on: a change of the cost model makes it anew. What is read is checked like any schedule from
elsewhere, so a broken file is as none.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from functools import cache
from importlib.resources import files

from polyloom.caches import cache_folder, kept
from polyloom.mdh.device.devices import DeviceModel
from polyloom.mdh.schedule.schedules import Schedule
from polyloom.mdh.schedule.signature import Key, digest_of

ROOMS = ("mdh/schedule", "mdh/device", "mdh/tuning", "ir/scalar_functions")
"""What the search and the cost model are made of."""


def kept_choice(
    key: Key,
    device: DeviceModel,
    read: Callable[[str], Schedule | None],
    choose: Callable[[], Schedule],
) -> Schedule:
    """Return the schedule that was chosen before, else what ``choose`` gives.

    ``read``: a schedule from its text, None where it cannot be used.
    """
    known = {**device.json(), "index": None}
    words = [key.signature, *map(str, key.sizes), key.options, _version(), json.dumps(known, sort_keys=True)]
    name = hashlib.sha256("\0".join(words).encode()).hexdigest()[:40]
    chosen: list[Schedule] = []

    def make() -> bytes:
        chosen.append(choose())
        return chosen[0].text().encode() + b"\n"

    folder = cache_folder() / "choices"
    folder.mkdir(exist_ok=True)
    text = kept(folder, f"{name}.json", make).read_bytes().partition(b"\n")[0].decode(errors="replace")
    return chosen[0] if chosen else read(text) or choose()


@cache
def _version() -> str:
    return digest_of(files("polyloom"), ROOMS)
