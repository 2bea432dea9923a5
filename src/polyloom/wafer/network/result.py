"""What a network on one wafer came to: numbers, what limits it, the JSON document.

Source: docs/networks.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from polyloom.ir.verification.comparison import Verdict
from polyloom.wafer.network.floor_plan import Place, Range
from polyloom.wafer.network.program import NetworkProgram
from polyloom.wafer.network.run import NetworkSimulation

MOSTLY_WAITING = 2
"""An interval of so many times what works longest is said to be spent waiting."""


@dataclass(frozen=True)
class Part:
    """A stage, or the exchanges of a stream on one side of a stage.

    ``x``, ``y``: its columns and rows, first and last; ``work``: cycles a sample in which its busiest PE
    works; ``bytes``: of data on a PE; ``estimate``: of the cost model, 0 for exchanges.
    """

    name: str
    kind: str
    x: Range
    y: Range
    pes: int
    work: float
    bytes: int
    estimate: float = 0.0


@dataclass(frozen=True)
class StreamPart:
    """A stream: ``elements`` of a sample, routers on its way, its color."""

    tensor: str
    source: str
    sinks: tuple[str, ...]
    elements: int
    hops: int
    color: int


@dataclass(frozen=True, eq=False)
class NetworkResult:
    """``program``: what ran; ``check``: None where none was asked for."""

    program: NetworkProgram = field(repr=False)
    simulation: NetworkSimulation
    samples: int
    check: Verdict | None

    def __repr__(self) -> str:
        plan = self.program.plan
        checked = "" if self.check is None else f", check {'passed' if self.check.passed else 'failed'}"
        size = f"{plan.width} x {plan.height}"
        return f"<NetworkResult of {plan.network.program.name}: {len(plan.places)} layers on {size}{checked}>"

    @property
    def cycles(self) -> int:
        """Cycles from the start to the last thing that happened."""
        return self.simulation.cycles

    @property
    def outputs(self) -> dict[str, Any]:
        """Name to array; with several samples a leading axis of them."""
        found, news = self.simulation.outputs, dict(self.program.plan.network.state).values()
        return {n: a[0, ...] if self.samples == 1 and n not in news else a for n, a in found.items()}

    @property
    def interval(self) -> float:
        """Cycles between two samples, once the pipeline is full; of one sample, all that it took."""
        return self.simulation.interval or float(self.cycles)

    @property
    def samples_per_second(self) -> float:
        """At the machine's clock, of as many samples as one likes.

        The last of a few samples follow each other faster than any part could go on: they waited in buffers.
        """
        return self.program.machine.clock_ghz * 1e9 / max(self.interval, self.bottleneck[0])

    @property
    def stages(self) -> tuple[Part, ...]:
        """The layers in their order."""
        return tuple(map(self._stage, self.program.plan.places))

    @property
    def exchanges(self) -> tuple[Part, ...]:
        """The lines of exchanges, stream by stream."""
        found = []
        for exchange in self.program.exchanges:
            place = self.program.plan.place(exchange.line.stage)
            box = place.line_box(exchange.line)
            pes = len(exchange.tables)
            found.append(self._part(exchange.line.name, "exchange", box, pes, exchange.bytes))
        return tuple(found)

    @property
    def before(self) -> tuple[str, ...]:
        """What the host computes before the first sample: results, and what layers read."""
        network = self.program.plan.network
        if network.before is None:
            return ()
        computed = network.before.program
        wanted = {*computed.outputs, *network.program.inputs}
        return tuple(name for name in computed.results if name in wanted)

    @property
    def streams(self) -> tuple[StreamPart, ...]:
        """The streams."""
        return tuple(
            StreamPart(
                tensor=c.net.stream.tensor,
                source=c.net.stream.source or "host",
                sinks=(*(s.stage for s in c.net.stream.sinks), *(["host"] if c.net.stream.results else [])),
                elements=c.length,
                hops=c.net.hops,
                color=self.program.colors.streams[c.net.stream.tensor],
            )
            for c in self.program.carried
        )

    @property
    def slowest(self) -> Part:
        """The part whose busiest PE works longest for a sample: what to make faster."""
        return max((*self.stages, *self.exchanges), key=lambda part: part.work)

    @property
    def bottleneck(self) -> tuple[float, str]:
        """The cycles of what works longest for a sample, with a share of what is done once; and what."""
        part = self.slowest
        stream = max(self.streams, key=lambda s: s.elements)
        if stream.elements > part.work:
            return float(stream.elements), f"the stream `{stream.tensor}`, one element a cycle"
        kind = "layer" if part.kind == "layer" else "exchanges"
        return part.work, f"the {kind} `{part.name}`"

    @property
    def waiting(self) -> str | None:
        """That even what works longest waits for most of the interval, and what for; None if it does not."""
        longest, _ = self.bottleneck
        if self.samples == 1 or self.interval < MOSTLY_WAITING * longest:
            return None
        return (
            f"for {self.interval - longest:,.0f} more even that waits: for a layer whose PEs wait for each"
            " other, or for the sample before"
        )

    @property
    def pes(self) -> int:
        """PEs with a program."""
        return sum(part.pes for part in (*self.stages, *self.exchanges))

    @property
    def utilisation(self) -> float:
        """The part of the time in which PEs with a program work, on average."""
        return float(self.simulation.busy.sum()) / (self.pes * max(self.cycles, 1))

    def _stage(self, place: Place) -> Part:
        program = place.block.placed.program
        (x, y), (width, height) = place.origin, place.block.placed.size
        box = (x, x + width - 1), (y, y + height - 1)
        data = max((role.memory_bytes for role in program.roles), default=0)
        name, estimate = place.block.placed.stage.name, place.block.placed.estimate
        return replace(self._part(name, "layer", box, width * height, data), estimate=estimate)

    def _part(self, name: str, kind: str, box: tuple[Range, Range], pes: int, data: int) -> Part:
        x, y = box
        return Part(name=name, kind=kind, x=x, y=y, pes=pes, work=self._work(x, y), bytes=data)

    def _work(self, x: Range, y: Range) -> float:
        return float(self.simulation.busy[y[0] : y[1] + 1, x[0] : x[1] + 1].max()) / self.samples

    def json(self) -> dict[str, Any]:
        """Return the document of ``simulate --one-wafer --json``. Source: docs/interface.md."""
        s, plan = self.simulation, self.program.plan
        longest, by = self.bottleneck
        return {
            "program": plan.network.program.name,
            "machine": self.program.machine.name,
            "samples": self.samples,
            "cycles": s.cycles,
            "finished": [int(cycle) for cycle in s.finished],
            "interval": self.interval,
            "samples_per_second": self.samples_per_second,
            "bottleneck": {"cycles": longest, "by": by},
            "size": [plan.width, plan.height],
            "pes": self.pes,
            "utilisation": self.utilisation,
            "colors": self.program.colors.count,
            "layers": [vars(part) for part in self.stages],
            "exchanges": [vars(part) for part in self.exchanges],
            "streams": [vars(stream) for stream in self.streams],
            "before": list(self.before),
            "outputs": {n: {"shape": list(a.shape), "dtype": str(a.dtype)} for n, a in self.outputs.items()},
            "events": s.events,
            "check": None if self.check is None else self.check.json(),
        }
