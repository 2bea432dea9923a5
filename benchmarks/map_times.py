"""How long it takes to choose a map for a layer of which nothing is given, not even a size of the rectangle.

The layers of examples/layers.txt, each source and size once, and the distinct layers of ResNet-50. No map is
taken from the cache. Seconds by the clock and of the processor, this process and its children together.

Usage: python benchmarks/map_times.py [--jobs J] [--set small|resnet50] [--maps FOLDER] [LAYER ...]
"""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
from corpus import layers

from polyloom.diagnostics import PolyloomError, Source
from polyloom.frontends.lair.lower import lower
from polyloom.frontends.lair.syntax.parse import parse
from polyloom.ir.program import Program
from polyloom.pipeline import complete_mapping
from polyloom.wafer.machine.model import load_machine
from polyloom.workers.local import crew_of

GOALS = {"small": 3.0, "resnet50": 10.0}


@dataclass(frozen=True)
class Convolution:
    """A square one: channels in and out, extent of the result and of the filter, stride."""

    c: int
    k: int
    n: int
    r: int = 1
    stride: int = 1

    @property
    def name(self) -> str:
        stride = f" /{self.stride}" if self.stride > 1 else ""
        return f"{self.r}x{self.r} {self.c}->{self.k} {self.n}x{self.n}{stride}"

    def lair(self) -> str:
        n, r, s = self.n, self.r, self.stride
        window = f"{s}*h + a][{s}*w + b" if s > 1 else "h + a][w + b"
        extent = s * (n - 1) + r
        return f"""lair conv(): float16 x[{self.c}][{extent}][{extent}],
  float16 W[{self.k}][{self.c}][{r}][{r}] -> float16 y[{self.k}][{n}][{n}]
{{ all (k, h, w, c, a, b) in ({self.k}, {n}, {n}, {self.c}, {r}, {r})
     y[k][h][w] += W[k][c][a][b] * x[c][{window}] }}"""


CONVOLUTIONS = (
    Convolution(3, 64, 112, 7, 2),
    Convolution(64, 64, 56),
    Convolution(64, 64, 56, 3),
    Convolution(64, 256, 56),
    Convolution(256, 64, 56),
    Convolution(256, 128, 56),
    Convolution(128, 128, 28, 3, 2),
    Convolution(128, 512, 28),
    Convolution(256, 512, 28, 1, 2),
    Convolution(512, 128, 28),
    Convolution(128, 128, 28, 3),
    Convolution(512, 256, 28),
    Convolution(256, 256, 14, 3, 2),
    Convolution(256, 1024, 14),
    Convolution(512, 1024, 14, 1, 2),
    Convolution(1024, 256, 14),
    Convolution(256, 256, 14, 3),
    Convolution(1024, 512, 14),
    Convolution(512, 512, 7, 3, 2),
    Convolution(512, 2048, 7),
    Convolution(1024, 2048, 7, 1, 2),
    Convolution(2048, 512, 7),
    Convolution(512, 512, 7, 3),
)
OTHERS = {
    "fully connected 2048 x 1000": """lair fc(): float16 W[1000][2048], float16 x[2048] -> float16 y[1000]
{ all (i, j) in (1000, 2048) y[i] += W[i][j] * x[j] }""",
    "max pooling 64 56x56": """lair pool(): float16 x[64][113][113] -> float16 y[64][56][56]
{ all (c, h, w, a, b) in (64, 56, 56, 3, 3) y[c][h][w] max= x[c][2*h + a][2*w + b] }""",
    "average pooling 2048": """lair pool(): float32 x[2048][7][7] -> float32 y[2048]
{ all (c, h, w) in (2048, 7, 7) y[c] += x[c][h][w] / 49 }""",
}


def resnet50() -> Iterator[tuple[str, Program]]:
    """Yield its distinct layers; a convolution's input is padded before."""
    for convolution in CONVOLUTIONS:
        yield convolution.name, _program(convolution.lair())
    for name, text in OTHERS.items():
        yield name, _program(text)


def _program(text: str) -> Program:
    return lower(parse(Source("<layer>", text)), None, {})


def small() -> Iterator[tuple[str, Program]]:
    """Yield the layers of the examples, each source and size once."""
    first = {}
    for layer in layers():
        first.setdefault((layer.source, layer.defines), layer)
    for (source, defines), layer in first.items():
        yield " ".join([source, *defines]), layer.program()


SETS = {"small": small, "resnet50": resnet50}


def processor() -> float:
    """Seconds of the processor, of this process and of its children that have ended."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(used.ru_utime + used.ru_stime for used in both)


@click.command(help=__doc__)
@click.option("--jobs", default=1, show_default=True, help="Maps compiled at a time.")
@click.option("--set", "sets", multiple=True, type=click.Choice(list(SETS)), default=list(SETS))
@click.option("--maps", type=click.Path(path_type=Path), help="Where the chosen maps are written.")
@click.argument("names", nargs=-1)
def main(jobs: int, sets: tuple[str, ...], maps: Path | None, names: tuple[str, ...]) -> None:
    machine = load_machine("cs2")
    with crew_of(jobs) as crew:
        for which in sets:
            slow = []
            for name, program in SETS[which]():
                if names and not any(n in name for n in names):
                    continue
                began, used = time.perf_counter(), processor()
                try:
                    choice = complete_mapping(None, program, machine, crew=crew)
                    told = f"{choice.candidates[0].cycles:12.0f}"
                    compiled = sum(c.variants for c in choice.candidates)
                    if maps is not None:
                        maps.mkdir(parents=True, exist_ok=True)
                        (maps / f"{name.replace('/', '_')}.map").write_text(choice.text)
                except PolyloomError as refused:
                    told, compiled = str(refused).splitlines()[0], 0
                seconds = time.perf_counter() - began
                if seconds > GOALS[which]:
                    slow.append(name)
                print(f"{name:55}{seconds:8.2f}{processor() - used:8.2f}{compiled:5}{told}", flush=True)
            print(f"{which}: {len(slow)} take more than {GOALS[which]:g} s: {', '.join(slow) or 'none'}")


if __name__ == "__main__":
    main()
