"""What each kind of fuzzing makes of a seed, and how it is judged again from the files that were kept."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Protocol

import bent_csl
import c_forms
import c_programs
import numpy as np

from polyloom.diagnostics import PolyloomError, Source
from polyloom.frontends.c import read_c
from polyloom.ir.evaluation.programs import evaluate_host
from polyloom.ir.host import HostProgram, Role
from polyloom.scop.transform import host_program

FLAGS = ("-std=gnu11", "-O1", "-fwrapv", "-ffp-contract=off", "-w", "-shared", "-fPIC")
EXACT = 2.0**20
"""Results of floats that are larger are not compared: sums may have been rounded on the way."""


@dataclass(frozen=True)
class Outcome:
    """``status``: right, refused, skipped, wrong, or fault (an exception that is no diagnostic).

    ``reason``: what differs, or the code of the diagnostic. ``files``: name to contents.
    """

    seed: int
    status: str
    reason: str = ""
    files: Mapping[str, str | bytes] | None = None


class Kind(Protocol):
    """A kind of fuzzing. ``batch``: how many seeds are judged together."""

    batch: int

    def judged(self, seeds: Sequence[int]) -> Iterator[Outcome]:
        """Yield the outcome of each seed, in order."""

    def again(self, files: Mapping[str, bytes], seed: int) -> Outcome:
        """Judge a case from its files, which a shrinker may have changed."""


# C programs


class Evaluated:
    """C programs: the host program, evaluated, against the C compiler's code; many to one build."""

    batch = 40

    def program(self, seed: int, name: str = "kernel") -> c_programs.CProgram:
        """Return the program of a seed."""
        return c_programs.random_program(seed, name)

    def judged(self, seeds: Sequence[int]) -> Iterator[Outcome]:
        programs = [self.program(seed, f"kernel_{seed}") for seed in seeds]
        with tempfile.TemporaryDirectory() as folder:
            library = built("\n".join(p.text for p in programs), Path(folder))
            for seed, program in zip(seeds, programs, strict=True):
                yield self._outcome(program.text, f"kernel_{seed}", program.types, seed, library)

    def again(self, files: Mapping[str, bytes], seed: int) -> Outcome:
        text = files["program.c"].decode()
        types = self.program(seed).types
        with tempfile.TemporaryDirectory() as folder:
            try:
                library = built(text, Path(folder))
            except subprocess.CalledProcessError:
                return Outcome(seed, "skipped", "no C")
            return self._outcome(text, f"kernel_{seed}", types, seed, library)

    def _outcome(
        self, text: str, name: str, types: Mapping[str, str], seed: int, library: ctypes.CDLL
    ) -> Outcome:
        files = {"program.c": text}
        given = c_programs.data(types, seed)
        try:
            ways = list(self.computed(text, name, given))
        except PolyloomError as refused:
            return Outcome(seed, "refused", refused.diagnostics[0].code, files)
        except Exception as fault:
            return Outcome(seed, "fault", f"{type(fault).__name__}: {fault}", files)
        wanted = {n: v.copy() if isinstance(v, np.ndarray) else v for n, v in given.items()}
        passed = [
            v.ctypes.data_as(ctypes.c_void_p) if isinstance(v, np.ndarray) else v for v in wanted.values()
        ]
        getattr(library, name)(*passed)
        if not all(_is_exact(v) for v in wanted.values()):
            return Outcome(seed, "skipped", "large", files)
        for way, found in ways:
            wrong = [n for n, v in found.items() if n in wanted and not _equal(v, wanted[n])]
            if wrong:
                return Outcome(seed, "wrong", " ".join([*wrong, way]), files)
        return Outcome(seed, "right")

    def computed(
        self, text: str, name: str, given: Mapping[str, Any]
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the arrays after the program, by Polyloom; with wavefronts, and with the source's loops."""
        programs = [host_program(scop).program for scop in read_c(Source(f"{name}.c", text))]
        yield "", self.carried_out(programs, name, given)
        if any(p.in_rows is not None for p in programs):
            yield "in rows", self.carried_out([p.in_rows or p for p in programs], name, given)

    def carried_out(
        self, programs: Sequence[HostProgram], name: str, given: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the arrays after programs that run one after another."""
        arrays = dict(given)
        for program in programs:
            arrays |= evaluated(program, arrays)
        return arrays


class Forms(Evaluated):
    """C programs with structures, pointers, functions and other forms."""

    def program(self, seed: int, name: str = "kernel") -> c_programs.CProgram:
        return c_forms.program_with_forms(seed, name)


class OnDevice(Evaluated):
    """C programs on the first device."""

    batch = 10

    def carried_out(
        self, programs: Sequence[HostProgram], name: str, given: Mapping[str, Any]
    ) -> dict[str, Any]:
        from polyloom.mdh.compiled import CompiledProgram
        from polyloom.mdh.device.devices import choose_device, open_device
        from polyloom.mdh.tuning.schedule_lookup import TunedEmitter

        device = open_device(choose_device(None))
        arrays = {n: v.copy() if isinstance(v, np.ndarray) else v for n, v in given.items()}
        for each in programs:
            program = CompiledProgram(each, device, TunedEmitter())
            used = {b.name for b in each.buffers} | {p.name for p in each.parameters}
            program(**{n: v for n, v in arrays.items() if n in used})
        return arrays


def built(text: str, folder: Path) -> ctypes.CDLL:
    """Compile a C text and load it."""
    (folder / "program.c").write_text(text)
    command = ["cc", *FLAGS, "program.c", "-o", "program.so", "-lm"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return ctypes.CDLL(str(folder / "program.so"))


def evaluated(program: HostProgram, arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Evaluate a host program on copies of the arrays that it needs."""
    parameters = {p.name: int(arrays[p.name]) for p in program.parameters}
    needed = [b.name for b in program.buffers if b.role in (Role.INPUT, Role.UPDATED)]
    return evaluate_host(program, parameters, {n: np.asarray(arrays[n]).copy() for n in needed})


def _is_exact(value: Any) -> bool:
    if not isinstance(value, np.ndarray) or value.dtype.kind != "f":
        return True
    return bool((np.abs(value) < EXACT).all() and (value * 8 == np.rint(value * 8)).all())


def _equal(found: Any, wanted: Any) -> bool:
    return bool(np.array_equal(np.asarray(found), np.asarray(wanted)))


# LAIR layers


class Layers:
    """Random layers under random maps, simulated in two SIMD modes, against the evaluator, bit for bit."""

    batch = 10

    def judged(self, seeds: Sequence[int]) -> Iterator[Outcome]:
        from layers import random_layer
        from outcomes import MODES, outcome

        for seed in seeds:
            layer = random_layer(seed)
            try:
                status = outcome(layer, (MODES[0], MODES[1 + seed % (len(MODES) - 1)]))
            except Exception as fault:
                kind = "wrong" if isinstance(fault, AssertionError) else "fault"
                yield Outcome(
                    seed, kind, f"{type(fault).__name__}: {fault}"[:2000], {"layer.txt": str(layer)}
                )
                continue
            yield Outcome(seed, "right") if status == "right" else Outcome(seed, "refused", status)

    def again(self, files: Mapping[str, bytes], seed: int) -> Outcome:
        return next(self.judged([seed]))


# Models


class Models:
    """Random ONNX models of the table's operators, against onnxruntime and onnx's own evaluator."""

    batch = 20

    def judged(self, seeds: Sequence[int]) -> Iterator[Outcome]:
        from models import compare, random_model

        for seed in seeds:
            model = random_model(seed)
            verdict = compare(model, seed)
            status = {"same": "right", "crash": "fault"}.get(verdict.status, verdict.status)
            files = {"model.onnx": model.SerializeToString()} if verdict.is_fault else None
            yield Outcome(seed, status, verdict.reason, files)

    def again(self, files: Mapping[str, bytes], seed: int) -> Outcome:
        return next(self.judged([seed]))


class Graphs:
    """Random ONNX graphs of many nodes on the processor, against onnxruntime and onnx's own evaluator."""

    batch = 10

    def judged(self, seeds: Sequence[int]) -> Iterator[Outcome]:
        from graphs import random_graph

        for seed in seeds:
            yield self.again({"graph.onnx": random_graph(seed).SerializeToString()}, seed)

    def again(self, files: Mapping[str, bytes], seed: int) -> Outcome:
        import onnx
        from graphs import compare

        verdict = compare(onnx.load_from_string(files["graph.onnx"]), seed)
        status = {"same": "right", "crash": "fault"}.get(verdict.status, verdict.status)
        return Outcome(seed, status, verdict.reason, files if verdict.is_fault else None)


# Bent files


class BentFiles:
    """Files of the examples with random changes: a program, or a diagnostic; never anything else."""

    batch = 40

    def judged(self, seeds: Sequence[int]) -> Iterator[Outcome]:
        for seed in seeds:
            name, contents = bent(seed)
            yield self.again({name: contents}, seed)

    def again(self, files: Mapping[str, bytes], seed: int) -> Outcome:
        ((name, contents),) = files.items()
        kept = {name: contents}
        try:
            _read(name, contents)
        except PolyloomError as refused:
            return Outcome(seed, "refused", refused.diagnostics[0].code, kept)
        except Exception as fault:
            return Outcome(seed, "fault", f"{type(fault).__name__}: {fault}"[:500], kept)
        return Outcome(seed, "right")


class BentCsl:
    """CSL programs with random changes: compiled, or diagnostics; never anything else."""

    batch = 10

    def judged(self, seeds: Sequence[int]) -> Iterator[Outcome]:
        for seed in seeds:
            yield self.again({n: t.encode() for n, t in bent_csl.bent(seed).items()}, seed)

    def again(self, files: Mapping[str, bytes], seed: int) -> Outcome:
        kept = dict(files)
        try:
            code = bent_csl.judge({name: text.decode() for name, text in files.items()})
        except Exception as fault:
            return Outcome(seed, "fault", f"{type(fault).__name__}: {fault}"[:500], kept)
        return Outcome(seed, "refused", code, kept) if code else Outcome(seed, "right")


ROOT = Path(__file__).parents[2]
PIECES = (
    b"(",
    b")",
    b"{",
    b"}",
    b"[",
    b"]",
    b";",
    b"0",
    b"-1",
    b"99999999999999999999",
    b"=",
    b"+",
    b"*",
    b"\0",
    b"\xff",
    b" ",
)


def originals() -> list[Path]:
    """Return the files that are bent."""
    found = [*(ROOT / "examples").glob("*.lair"), *(ROOT / "examples").glob("*.map")]
    found += [*(ROOT / "examples" / "c").glob("*.c"), *(ROOT / "benchmarks" / "loops").glob("*.c")]
    return sorted(found)


def bent(seed: int) -> tuple[str, bytes]:
    """Return a file of the examples, changed in one to four places."""
    random = Random(seed)
    path = random.choice(originals())
    contents = path.read_bytes()
    for _ in range(random.randint(1, 4)):
        contents = _changed(random, contents)
    return path.name, contents


def _changed(random: Random, contents: bytes) -> bytes:
    at, other = random.randrange(len(contents) + 1), random.randrange(len(contents) + 1)
    words = contents.split()
    match random.randrange(5):
        case 0:
            return contents[:at] + contents[at + random.randint(1, 8) :]
        case 1:
            return contents[:at] + random.choice(PIECES) + contents[at:]
        case 2 if words:
            return contents[:at] + random.choice(words) + contents[at:]
        case 3:
            return contents[:at] + contents[other : other + random.randint(1, 30)] + contents[at:]
        case _:
            return contents[:at]


def _read(name: str, contents: bytes) -> None:
    from polyloom import read_mapping, read_program
    from polyloom.sources import Reading, load_host_programs

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(contents)
        if name.endswith(".c"):
            load_host_programs(path, Reading())
        elif name.endswith(".lair"):
            read_program(path)
        else:
            program = read_program(_program_of(name))
            read_mapping(path, program)


def _program_of(name: str) -> Path:
    """Return a layer that a map may be of: the one with its name, else one with the name's beginning."""
    stems = sorted((p.stem for p in (ROOT / "examples").glob("*.lair")), key=len, reverse=True)
    stem = next((s for s in stems if name.startswith(s)), "ff")
    return ROOT / "examples" / f"{stem}.lair"


class BentModels:
    """Model files with random changes: imported, or refused by a diagnostic, in little time."""

    batch = 40

    def judged(self, seeds: Sequence[int]) -> Iterator[Outcome]:
        from bent_files import bent as bent_model

        for seed in seeds:
            ending, contents = bent_model(seed)
            yield self.again({f"bent{ending}": contents}, seed)

    def again(self, files: Mapping[str, bytes], seed: int) -> Outcome:
        from bent_files import outcome

        ((name, contents),) = files.items()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / name
            path.write_bytes(contents)
            found = outcome(path)
        kept = {name: contents}
        if found.startswith(("FAULT", "NOT FORESEEN")):
            return Outcome(seed, "fault", found, kept)
        return Outcome(seed, "right") if found == "imported" else Outcome(seed, "refused", found, kept)


# A kind that is wrong on purpose


class Broken(Evaluated):
    """C programs by a compiler that takes the array `b` for one larger wherever a loop counts downwards."""

    def computed(
        self, text: str, name: str, given: Mapping[str, Any]
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the arrays after the program, `b` wrong where `--` stands."""
        for way, arrays in super().computed(text, name, given):
            yield way, arrays | ({"b": np.asarray(arrays["b"]) + 1} if "--" in text else {})
