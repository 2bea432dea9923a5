"""A processor of which schedules depend alike on every machine that runs the tests."""

from __future__ import annotations

from dataclasses import replace

from polyloom.mdh.device.devices import DeviceModel
from polyloom.mdh.native.device import choose


def known_processor(threads: int) -> DeviceModel:
    """Return this machine's with the vectors and caches of a Zen 3, whatever it has."""
    return replace(
        choose("native", threads=threads),
        vendor="AuthenticAMD",
        vector_bytes=32,
        caches=(32 << 10, 512 << 10, 32 << 20),
        ways=(8, 8, 16),
    )
