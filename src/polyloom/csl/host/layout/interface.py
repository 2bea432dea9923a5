"""`SdkLayout` and what belongs to it, under the names that host programs import."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from polyloom.csl.host.folder import compile_to_folder
from polyloom.csl.host.layout import regions as r
from polyloom.csl.host.layout import text
from polyloom.csl.host.layout.regions import CodeRegion, Color, Place, Port, Route, RoutingPosition
from polyloom.csl.host.layout.routing import Merged, connect, number_colors, occupied
from polyloom.csl.host.options import Options
from polyloom.csl.host.runtime import SdkCompileArtifacts
from polyloom.diagnostics import PolyloomError, error

COLORS = 21
"""Colors that the layout may use; those above are memcpy's."""


class SdkTarget(Enum):
    """An architecture."""

    WSE2 = "wse2"
    WSE3 = "wse3"


class SimfabConfig:
    """Options of the vendor's simulator, which mean nothing here."""

    def __init__(self, **options: Any) -> None:
        """Take any."""


@dataclass(frozen=True)
class SdkExecutionPlatform:
    """What a layout is compiled for."""

    arch: str


def get_platform(
    addr: str | None = None, config: SimfabConfig | None = None, target: SdkTarget = SdkTarget.WSE2
) -> SdkExecutionPlatform:
    """Return the simulated wafer of an architecture. Errors: `csl-host-machine` for an address."""
    if addr:
        raise PolyloomError(
            error("csl-host-machine", f"the platform is '{addr}', but Polyloom has its simulator only")
        )
    return SdkExecutionPlatform(target.value)


def get_simulator(config: SimfabConfig | None, target: SdkTarget) -> SdkExecutionPlatform:
    """Return the simulated wafer of an architecture."""
    return get_platform(None, config, target)


@dataclass(frozen=True)
class Stream:
    """A port's words from or to the host: the PE and the color that the host feeds or drains."""

    port: Port
    place: Place
    color: int

    def between(self) -> list[Place]:
        """Return the PEs between the port's PE and the stream's."""
        ((x, y),) = self.port.places()
        dx, dy = r.STEP[r.OUTSIDE[self.port.edge]]
        steps = max(abs(self.place[0] - x), abs(self.place[1] - y))
        return [(x + i * dx, y + i * dy) for i in range(1, steps)]

    def __hash__(self) -> int:
        """Streams are told apart by their ports."""
        return id(self.port)


@dataclass(eq=False)
class SdkLayout:
    """Regions, connections and streams, compiled together."""

    platform: SdkExecutionPlatform
    regions: list[CodeRegion] = field(default_factory=list)
    connections: list[tuple[Port, Port]] = field(default_factory=list)
    streams: list[Stream] = field(default_factory=list)

    def create_code_region(self, path: str, name: str, width: int, height: int) -> CodeRegion:
        """Return a new region of PEs that run the program of a file."""
        region = CodeRegion(Path(path), name, width, height)
        self.regions.append(region)
        return region

    def connect(self, source: Port, target: Port) -> None:
        """Let what leaves one port come in at another."""
        if source.is_input or not target.is_input:
            raise PolyloomError(
                error("csl-layout-connection", "a connection is from an output to an input port")
            )
        self.connections.append((source, target))

    def create_input_stream(self, port: Port, io_buffer_size: int = 1024, **options: Any) -> Stream:
        """Let the host send to a port."""
        return self._stream(port, is_input=True)

    def create_output_stream(self, port: Port, io_buffer_size: int = 1024, **options: Any) -> Stream:
        """Let the host receive from a port."""
        return self._stream(port, is_input=False)

    def compile(self, out_prefix: str = "out", **options: Any) -> SdkCompileArtifacts:
        """Compile the layout to a folder of that name."""
        places = occupied(self.regions)
        merged, used = Merged(), dict[Place, set[Color]]()
        for source, target in self.connections:
            merged.join(source.color, target.color)
        for stream in self.streams:
            for place in (*stream.between(), stream.place):
                used.setdefault(place, set()).add(merged.find(stream.port.color))
        paths = [
            path
            for source, target in self.connections
            for path in connect(source, target, merged, places, used)
        ]
        meetings = _meetings(self.regions, merged, used)
        numbers = number_colors(meetings, COLORS)
        by_color = {color: numbers.get(merged.find(color), 0) for color in _colors(self.regions)}
        routes: dict[tuple[Place, int], tuple[RoutingPosition, ...]] = {}
        for region in self.regions:
            for (place, color), positions in region.routes.items():
                routes[_moved(place, region), by_color[color]] = positions
        for path in paths:
            for place, (comes, goes) in path.hops:
                routes[place, numbers[path.color]] = (RoutingPosition((comes,), (goes,)),)
        relays = []
        for stream in self.streams:
            port, number = stream.port, by_color[stream.port.color]
            relays.append(text.Relay(stream.place, port.is_input, stream.color, number))
            side = r.OPPOSITE[r.OUTSIDE[port.edge]]
            ramp = ((Route.RAMP,), (side,)) if port.is_input else ((side,), (Route.RAMP,))
            routes[stream.place, number] = (RoutingPosition(*ramp),)
            away = r.OPPOSITE[side]
            through = ((away,), (side,)) if port.is_input else ((side,), (away,))
            routes |= {(place, number): (RoutingPosition(*through),) for place in stream.between()}
        size = _size([*places, *(place for place, _ in routes)])
        source_text = text.layout_text(size, self.regions, by_color, routes, relays)
        with tempfile.TemporaryDirectory(prefix="polyloom-layout-") as folder:
            file = Path(folder) / "layout.csl"
            for name, program in {**text.PROGRAMS, file.name: source_text}.items():
                (Path(folder) / name).write_text(program, encoding="utf-8")
            options_ = Options(
                file, Path(out_prefix), self.platform.arch, fabric_offset=(0, 0), import_paths=(Path.cwd(),)
            )
            compile_to_folder(options_)
        return SdkCompileArtifacts(out_prefix, tuple(_initial_values(self.regions)))

    def _stream(self, port: Port, *, is_input: bool) -> Stream:
        if port.is_input != is_input or len(port.places()) != 1:
            way = "input" if is_input else "output"
            raise PolyloomError(
                error("csl-layout-connection", f"a stream of the host needs an {way} port of one PE")
            )
        ((x, y),) = port.places()
        dx, dy = r.STEP[r.OUTSIDE[port.edge]]
        free = next(
            place
            for place in ((x + i * dx, y + i * dy) for i in count(1))
            if place not in {stream.place for stream in self.streams}
        )
        stream = Stream(port, free, COLORS if is_input else COLORS + 1)
        if min(stream.place) < 0:
            helps = [f"place `{port.region.name}` one PE away from the border of the wafer"]
            raise PolyloomError(
                error("csl-layout-connection", "there is no PE for a stream beside its port", helps=helps)
            )
        self.streams.append(stream)
        return stream


def _moved(place: Place, region: CodeRegion) -> Place:
    return place[0] + region.origin[0], place[1] + region.origin[1]


def _size(places: list[Place]) -> tuple[int, int]:
    return max(x for x, _ in places) + 1, max(y for _, y in places) + 1


def _colors(regions: list[CodeRegion]) -> list[Color]:
    """Return all colors that regions route or hand to programs."""
    found = [color for region in regions for _, color in region.routes]
    found += [
        v
        for region in regions
        for given in region.params.values()
        for v in given.values()
        if isinstance(v, Color)
    ]
    return list(dict.fromkeys(found))


def _meetings(
    regions: list[CodeRegion], merged: Merged, used: Mapping[Place, set[Color]]
) -> list[set[Color]]:
    """Return the colors that meet in a region, or in a PE between regions."""
    meetings = [{merged.find(color) for color in _colors([region])} for region in regions]
    return [met for met in [*meetings, *used.values()] if met]


def _initial_values(regions: list[CodeRegion]) -> list[tuple[Place, str, bytes]]:
    """Return what `set_symbol_all` puts into each PE's memory."""
    found = []
    for region in regions:
        for symbol, matrix in region.symbols:
            rows, columns = matrix.shape[0] // region.height, matrix.shape[1] // region.width
            for y in range(region.height):
                for x in range(region.width):
                    block = matrix[y * rows : (y + 1) * rows, x * columns : (x + 1) * columns]
                    found.append((_moved((x, y), region), symbol, np.ascontiguousarray(block).tobytes()))
    return found


def names() -> dict[str, Any]:
    """Return what `sdkruntimepybind` offers for layouts."""
    return {
        "Color": r.Color,
        "Edge": r.Edge,
        "Route": r.Route,
        "RoutingPosition": r.RoutingPosition,
        "get_edge_routing": r.get_edge_routing,
        "SdkLayout": SdkLayout,
        "SdkTarget": SdkTarget,
        "SdkExecutionPlatform": SdkExecutionPlatform,
        "SimfabConfig": SimfabConfig,
        "get_platform": get_platform,
        "get_simulator": get_simulator,
    }
