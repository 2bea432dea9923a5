"""How long `polyloom explain` and `polyloom compile` take, as processes; nothing may grow with the PEs.

The layers of the paper, and the fully connected layer on 4 x 4 and on 400 x 400 PEs. The runs are
interleaved, so that whatever else the machine does slows all of them equally; on a busy machine wall time
says little, so processor time stands beside it. Usage: python benchmarks/explain_speed.py [RUNS]
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

EXAMPLES = Path(__file__).parents[1] / "examples"
COMMAND = (sys.executable, "-c", "from polyloom.cli.main import main; main()")
BIG_MAP = """\
size: { PE[400, 400] }
compute_map: { ff[i, j] -> PE[j//4, i//8] }
iport_map: { x[i = 0:1599] -> [PE[i//4, -1] -> index[i mod 4]] }
oport_map: { y[i = 0:3199] -> [PE[400, i//8] -> index[i mod 8]] }
sparse: x
"""
SMALL, BIG = "ff 32 x 16 on 4 x 4 PEs", "ff 3200 x 1600 on 400 x 400 PEs"
LIMIT_SECONDS, LIMIT_RATIO = 1.5, 1.2


def cases(folder: Path) -> dict[str, tuple[str, ...]]:
    """Return the arguments of each case: the source, its map, its sizes."""
    big = folder / "ff400.map"
    big.write_text(BIG_MAP)
    found = {name: _arguments(f"{name}.lair", EXAMPLES / f"{name}.map") for name in ("conv1d", "conv1x1")}
    found |= {name: _arguments(f"{name}.lair", EXAMPLES / f"{name}.map") for name in ("conv2d", "conv8")}
    sizes = ("-D", "M=32", "-D", "N=16")
    found["ff, x to every column"] = (*_arguments("ff.lair", EXAMPLES / "ff_every_column.map"), *sizes)
    found[SMALL] = (*_arguments("ff.lair", EXAMPLES / "ff44.map"), *sizes)
    found[BIG] = (*_arguments("ff.lair", big), "-D", "M=3200", "-D", "N=1600")
    return found


def _arguments(source: str, mapping: Path) -> tuple[str, ...]:
    return str(EXAMPLES / source), "--map", str(mapping)


@dataclass(frozen=True)
class Times:
    """Seconds of one process."""

    wall: float
    processor: float


def timed(*arguments: str) -> Times:
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run((*COMMAND, *arguments), check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Times(time.perf_counter() - start, used)


def medians(samples: list[Times]) -> Times:
    return Times(median(s.wall for s in samples), median(s.processor for s in samples))


def measure(folder: Path, runs: int) -> dict[str, tuple[Times, Times]]:
    """Return the median times of ``explain`` and of ``compile`` for each case."""
    explained: dict[str, list[Times]] = {}
    compiled: dict[str, list[Times]] = {}
    for _ in range(runs):
        for name, arguments in cases(folder).items():
            explained.setdefault(name, []).append(timed("explain", *arguments))
            output = ("--target", "wafer", "-o", str(folder / "out"))
            compiled.setdefault(name, []).append(timed("compile", *arguments, *output))
    return {name: (medians(explained[name]), medians(compiled[name])) for name in explained}


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    with tempfile.TemporaryDirectory() as folder:
        found = measure(Path(folder), runs)
    title = f"seconds, median of {runs}"
    print(f"{title:34}{'explain: wall':>14}{'cpu':>7}{'compile: wall':>16}{'cpu':>7}")
    for name, (explain, compile_) in found.items():
        print(f"{name:34}{explain.wall:14.3f}{explain.processor:7.3f}", end="")
        print(f"{compile_.wall:16.3f}{compile_.processor:7.3f}")
    slowest = max(explain.wall for explain, _ in found.values())
    ratio = found[BIG][0].wall / found[SMALL][0].wall
    print(f"slowest explain {slowest:.3f} s, to be under {LIMIT_SECONDS} s")
    print(f"400 x 400 to 4 x 4 PEs {ratio:.2f}, to be under {LIMIT_RATIO}")
    if slowest >= LIMIT_SECONDS or ratio > LIMIT_RATIO:
        raise SystemExit("explain is too slow, or the machine is busy: compare the processor time")


if __name__ == "__main__":
    main()
