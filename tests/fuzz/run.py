"""Random programs, layers, models and files, for as long as one likes: ``make fuzz MINUTES=10``.

usage: run.py [--minutes M | --count N] [--kinds c,device,native,...] [--from SEED] [--found FOLDER]
              [--shrink SECONDS]
       run.py --again FOLDER            judge a case that was kept once more

Every case follows from its seed. The first seed is new in each run, and printed; ``--from`` goes on where
another run ended, or repeats it. Cases run in child processes, so that a crash, or one that takes longer than
LIMIT seconds of processor time, is a case like others. What is wrong is made smaller, and kept with all that
is needed to see it again.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import selectors
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import SystemRandom
from typing import Any

HERE = Path(__file__).parent
TESTS = HERE.parent
LIMIT = 60.0
"""Seconds of processor time without an outcome after which a child is ended; its case is a fault: `hang`."""
PATIENCE = 10
"""How many times as long it may take by the clock: others may use the machine."""
MEMORY = 6 * 2**30
"""Bytes of address space of a child."""
DEFAULT = (
    "c",
    "device",
    "native",
    "native-homs",
    "data-loops",
    "lair",
    "models",
    "graphs",
    "files",
    "csl",
    "python",
    "bent-models",
)
SHRINKABLE = ("c", "device", "native", "data-loops", "python", "files", "csl", "bent-models", "broken")
"""Kinds whose cases are judged by their files, which may be changed."""
SHOWN = 5
"""Reasons of refusals that are printed."""


Outcome = dict[str, Any]
"""A line of a child: ``seed``, ``status``, ``reason``, ``files``, and which of them are ``binary``."""


@dataclass
class Tally:
    """What came out of a kind: seeds from ``first`` to before ``next``."""

    first: int
    next: int
    counts: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    kept: list[Path] = field(default_factory=list)


def main() -> int:
    options = _parsed()
    if options.worker:
        return _work(*options.worker)
    if options.again:
        return _judge_again(Path(options.again), options.shrink or 0)
    first = SystemRandom().randrange(10**9) if options.first is None else options.first
    kinds = options.kinds.split(",")
    print(
        f"first seed {first}; to repeat: {Path(sys.argv[0]).name} --kinds {options.kinds} --from {first}",
        flush=True,
    )
    tallies = {kind: Tally(first, first) for kind in kinds}
    keeper = Keeper(Path(options.found), 120 if options.shrink is None else options.shrink)
    deadline = time.monotonic() + 60 * options.minutes if options.count is None else float("inf")
    try:
        _fuzz(tallies, deadline, options.count, keeper)
    except KeyboardInterrupt:
        print("stopped", flush=True)
    for kind, tally in tallies.items():
        _print(kind, tally)
    return 1 if any(tally.kept for tally in tallies.values()) else 0


def _parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--count", type=int, help="seeds of each kind, in place of a time")
    parser.add_argument("--kinds", default=",".join(DEFAULT))
    parser.add_argument("--from", dest="first", type=int)
    parser.add_argument("--found", default="build/fuzz")
    parser.add_argument("--shrink", type=float, help="seconds that a case is made smaller for")
    parser.add_argument("--again", metavar="FOLDER")
    parser.add_argument("--worker", nargs=3, help=argparse.SUPPRESS)
    return parser.parse_args()


def _fuzz(tallies: dict[str, Tally], deadline: float, count: int | None, keeper: Keeper) -> None:
    """Visit the kinds in turn, a batch each, until the time or the number of seeds is used up."""
    open_kinds = list(tallies)
    while open_kinds and time.monotonic() < deadline:
        for kind in list(open_kinds):
            tally = tallies[kind]
            left = None if count is None else tally.first + count - tally.next
            size = _batch(kind) if left is None else min(_batch(kind), left)
            if size <= 0:
                open_kinds.remove(kind)
            elif time.monotonic() < deadline:
                _visit(kind, tally, range(tally.next, tally.next + size), deadline, keeper)


def _batch(kind: str) -> int:
    return 200 if kind in ("c", "files", "bent-models") else 40


def _visit(kind: str, tally: Tally, seeds: Sequence[int], deadline: float, keeper: Keeper) -> None:
    for outcome in _outcomes(kind, seeds, deadline):
        tally.next = outcome["seed"] + 1
        tally.counts[outcome["status"]] += 1
        if outcome["status"] == "refused":
            tally.refusals[outcome["reason"]] += 1
        if outcome["status"] in ("wrong", "fault"):
            tally.kept.append(keeper.keep(kind, outcome))


def _outcomes(kind: str, seeds: Sequence[int], deadline: float) -> Iterator[Outcome]:
    """Yield an outcome for each seed; where a child dies or hangs, another one goes on behind that seed."""
    at = seeds[0]
    while at <= seeds[-1] and time.monotonic() < deadline:
        for outcome in _child_outcomes(kind, at, seeds[-1] + 1 - at):
            at = int(outcome["seed"]) + 1
            yield outcome


def _child_outcomes(kind: str, first: int, count: int) -> Iterator[Outcome]:
    command = [sys.executable, str(HERE / "run.py"), "--worker", kind, str(first), str(count)]
    with (
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors) as child,
    ):
        at = first
        for line in _lines(child):
            outcome = json.loads(line)
            at = outcome["seed"] + 1
            yield outcome
        if at < first + count:
            child.kill()
            how = "hang" if child.returncode is None else f"the process ended with {child.wait()}"
            errors.seek(0)
            error = errors.read()[-2000:].decode(errors="replace")
            yield {"seed": at, "status": "fault", "reason": f"{how}\n{error}", "files": {}}


def _lines(child: subprocess.Popen[bytes]) -> Iterator[bytes]:
    """Yield the lines of a child until it ends, or says nothing for too long."""
    assert child.stdout is not None
    rest = b""
    with selectors.DefaultSelector() as selector:
        selector.register(child.stdout, selectors.EVENT_READ)
        while _says_something(selector, child.pid):
            piece = os.read(child.stdout.fileno(), 2**16)
            if not piece:
                child.wait()
                return
            *lines, rest = (rest + piece).split(b"\n")
            yield from lines


def _says_something(selector: selectors.BaseSelector, pid: int) -> bool:
    """Wait for output of a process; return whether it came in time."""
    used, started = _processor_seconds(pid), time.monotonic()
    while not selector.select(1.0):
        if _processor_seconds(pid) - used > LIMIT or time.monotonic() - started > PATIENCE * LIMIT:
            return False
    return True


def _processor_seconds(pid: int) -> float:
    """Return what a process has used, and those of its children that have ended."""
    numbers = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, numbers[11:15])) / os.sysconf("SC_CLK_TCK")


def _work(kind: str, first: str, count: str) -> int:
    """Judge seeds, and print an outcome per line: what a child does."""
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    _find_tests()
    from fuzz_kinds import KINDS

    judge, end = KINDS[kind], int(first) + int(count)
    for start in range(int(first), end, judge.batch):
        for outcome in judge.judged(range(start, min(end, start + judge.batch))):
            files = {n: c if isinstance(c, str) else c.hex() for n, c in (outcome.files or {}).items()}
            binary = [n for n, c in (outcome.files or {}).items() if isinstance(c, bytes)]
            line = {"seed": outcome.seed, "status": outcome.status, "reason": outcome.reason}
            print(json.dumps(line | {"files": files, "binary": binary}), flush=True)
    return 0


def _find_tests() -> None:
    sys.path[:0] = [
        str(p) for p in (HERE, TESTS, TESTS / "wafer", TESTS / "mdh", TESTS.parent / "benchmarks")
    ]


@dataclass(frozen=True)
class Keeper:
    """Writes cases into folders of their own below ``found``, each as small as ``seconds`` allow."""

    found: Path
    seconds: float

    def keep(self, kind: str, outcome: Outcome) -> Path:
        """Write a case, and return its folder."""
        folder = self.found / f"{kind}-{outcome['seed']}"
        folder.mkdir(parents=True, exist_ok=True)
        for name, contents in outcome["files"].items():
            binary = name in outcome.get("binary", ())
            (folder / name).write_bytes(bytes.fromhex(contents) if binary else contents.encode())
        about = {k: outcome[k] for k in ("seed", "status", "reason")}
        about |= {"kind": kind, "files": list(outcome["files"])}
        (folder / "case.json").write_text(json.dumps(about, indent=2) + "\n")
        print(
            f"{kind} {outcome['seed']}: {outcome['status']}: {outcome['reason'][-400:]}  ({folder})",
            flush=True,
        )
        if len(outcome["files"]) == 1 and kind in SHRINKABLE:
            command = [
                sys.executable,
                str(HERE / "run.py"),
                "--again",
                str(folder),
                "--shrink",
                str(self.seconds),
            ]
            with contextlib.suppress(subprocess.TimeoutExpired):  # the file holds the smallest that was found
                subprocess.run(command, capture_output=True, timeout=self.seconds + LIMIT, check=False)
        return folder


def _judge_again(folder: Path, seconds: float) -> int:
    """Judge a case from its files; then make its one file smaller, for some seconds."""
    _find_tests()
    from fuzz_kinds import KINDS

    about = json.loads((folder / "case.json").read_text())
    files = {name: (folder / name).read_bytes() for name in about["files"]}
    judge = KINDS[about["kind"]]
    outcome = judge.again(files, about["seed"])
    print(f"{outcome.status}: {outcome.reason}", flush=True)
    if seconds and outcome.status in ("wrong", "fault"):
        ((name, contents),) = files.items()
        (folder / f"{name}.whole").write_bytes(contents)

        def same(smaller: bytes) -> bool:
            return judge.again({name: smaller}, about["seed"]).status == outcome.status

        _shrink(folder / name, same, time.monotonic() + seconds)
    return 1 if outcome.status in ("wrong", "fault") else 0


def _shrink(path: Path, same: Callable[[bytes], bool], deadline: float) -> None:
    """Leave out lines, then words, as long as the case stays the same; the file holds the smallest."""
    for separator in (b"\n", b" "):
        parts = path.read_bytes().split(separator)
        size = max(1, len(parts) // 2)
        while size and time.monotonic() < deadline:
            at = 0
            while at < len(parts) and time.monotonic() < deadline:
                fewer = parts[:at] + parts[at + size :]
                if same(separator.join(fewer)):
                    parts = fewer
                    path.write_bytes(separator.join(parts))
                else:
                    at += size
            size //= 2


def _print(kind: str, tally: Tally) -> None:
    counts = ", ".join(f"{n} {status}" for status, n in tally.counts.most_common())
    print(f"{kind}: {sum(tally.counts.values())} cases: {counts or 'none'}; next seed {tally.next}")
    for reason, n in tally.refusals.most_common(SHOWN):
        print(f"  refused {n}: {reason}")
    for folder in tally.kept:
        print(f"  kept: {folder}")


if __name__ == "__main__":
    sys.exit(main())
