"""Published measurements of Cerebras machines, and what the simulator gives for the same programs.

A case is a program, a measurement that somebody published, and the way to take the same measurement from a
simulation. One set of numbers per machine (wafer/machine/machines) serves all cases; a case that something
was set from is marked "fit" and does not count. All programs are written by hand (benchmarks/handwritten):
none comes from a layer.

Usage: python benchmarks/machine_validation.py [--case NAME]... [--write]
`--write` puts the tables into docs/machine_model.md; a test compares them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import click
from machine_programs import (
    broadcast_hop,
    chain,
    chain_of_microthreads,
    copy,
    gemm,
    multiply,
    relayed,
    spmm,
    stream,
    two_phase,
    words,
)

from polyloom.wafer.machine.model import Machine, load_machine, machines

PAGE = Path(__file__).parents[1] / "docs" / "machine_model.md"
TOLERANCE = 0.15
Measure = Callable[[Machine], float]

SPMM = "SpMM_Cerebras, "
REDUCE = SPMM + "src/mpi_collectives/reduce_0_pe"
SPADA = "SPADA, issue 79"
WAFER_ENGINE = "WaferEngine"


@dataclass(frozen=True)
class Case:
    """``published`` and what ``measure`` gives are in cycles. ``slow``: takes more than a second or two."""

    name: str
    machine: str
    what: str
    published: float
    source: str
    measure: Measure
    slow: bool = False
    sets_placement: bool = False
    """Where the program keeps its arrays was read off this case."""

    @property
    def is_fit(self) -> bool:
        """Whether a number of the machine, or something of the program, was set from this case."""
        numbers = load_machine(self.machine).fitted_to.values()
        return self.sets_placement or any(self.name in names for names in numbers)


@dataclass(frozen=True)
class Row:
    """A case with what the simulator gives."""

    case: Case
    found: float

    @property
    def ratio(self) -> float:
        return self.found / self.case.published


def measured(case: Case) -> Row:
    """Simulate a case."""
    return Row(case, case.measure(load_machine(case.machine)))


# ---- The cases


def _multiplications() -> list[Case]:
    at = SPMM + "src/fmacs_test"
    sizes = (
        (5124, 1, "", "different", 5130),
        (5124, 0, "-colliding", "the same", 10254),
        (1028, 1, "", "different", 1034),
        (1028, 0, "-colliding", "the same", 2062),
    )
    return [
        Case(
            f"multiply-{n}{name}",
            "cs2",
            f"{n} floats times {n}, {where} banks",
            value,
            at,
            partial(multiply, n, gap),
        )
        for n, gap, name, where, value in sizes
    ]


def _products() -> list[Case]:
    small, large = SPMM + "benchmarks/memory_access_latency/GEMM", SPMM + "benchmarks/GEMM"
    sizes = (
        (8, 8, 32, 9756, small),
        (32, 32, 32, 88795, small),
        (8, 8, 128, 38844, small),
        (32, 32, 128, 357853, small),
        (64, 48, 64, 476866, large),
        (128, 8, 64, 150760, large),
    )
    return [
        Case(
            f"gemm-{r}x{i}x{c}", "cs2", f"{r} x {i} times {i} x {c} floats", value, at, partial(gemm, r, i, c)
        )
        for r, i, c, value, at in sizes
    ]


_SPARSE = {
    "COO": ((8, 36, 7179), (32, 36, 112779), (8, 132, 19659)),
    "CSR": ((8, 36, 7522), (32, 36, 114490), (8, 132, 19810), (32, 132, 311098)),
    "CSC": ((8, 36, 7592), (32, 36, 115544), (8, 132, 19880), (32, 132, 312152)),
    "ELLPACK": ((8, 36, 6146), (32, 36, 112703), (8, 132, 18434)),
}


def _sparse_product(form: str, n: int, padded: int, published: float) -> Case:
    """Which banks B and C lie in cannot be read off the program: the smallest size of each says so."""
    what = f"{form} {n} x {n}, all elements there, times {n} x {padded} floats"
    at = f"{SPMM}benchmarks/memory_access_latency/{form}"
    name, smallest = f"{form.lower()}-{n}-{padded}", (n, padded) == (8, 36)
    return Case(name, "cs2", what, published, at, partial(spmm, form, n, padded), sets_placement=smallest)


def _sparse_products() -> list[Case]:
    return [_sparse_product(form, *size) for form, sizes in _SPARSE.items() for size in sizes]


def _two_phase(step: int, published: float) -> Case:
    what = f"two phases over 512 PEs in groups of {step}, 4096 floats"
    return Case(
        f"two-phase-{step}", "cs2", what, published, REDUCE, partial(two_phase, 512, 4096, step), slow=True
    )


def _reductions() -> list[Case]:
    steps = {2: 10055, 4: 9421, 8: 9117, 16: 8989, 32: 8973, 64: 9061, 128: 9297, 256: 9800}
    alone = "chain over 512 PEs, 4096 floats"
    short = "two phases over 512 PEs in groups of 28, 64 floats"
    return [
        Case("chain-512", "cs2", alone, 7218, REDUCE, partial(chain, 512, 4096), slow=True),
        *(_two_phase(step, value) for step, value in steps.items()),
        Case("two-phase-28-short", "cs2", short, 928, REDUCE, partial(two_phase, 512, 64, 28)),
    ]


def _on_both(name: str, what: str, measure: Measure, cs2: float, cs3: float) -> list[Case]:
    return [
        Case(name, "cs2", what, cs2, SPADA, measure),
        Case(f"{name}-cs3", "cs3", what, cs3, SPADA, measure),
    ]


def _spada() -> list[Case]:
    chained = "chain over 15 PEs by microthreads, 128 floats"
    apart = "the same, each PE receives all before it adds and sends"
    return [
        *_on_both("copy", "copy of 4 floats in a PE", partial(copy, 4), 22, 21),
        *_on_both("chain-15-async", chained, partial(chain_of_microthreads, 15, 128), 317, 343),
        *_on_both("relayed-15", apart, partial(relayed, 15, 128), 3920, 3090),
    ]


def _cs3() -> list[Case]:
    sent = "a word sent by an instruction of its own, in a loop"
    passed, linked = "a word passed on by a data task", "a word of a long stream over one link"
    at = f"{WAFER_ENGINE}; sdk-examples, topic-13"
    return [
        Case("emit-cs3", "cs3", sent, 13.0, WAFER_ENGINE, partial(words, False)),
        Case("relay-cs3", "cs3", passed, 28.8, WAFER_ENGINE, partial(words, True)),
        Case("hop-cs3", "cs3", "a hop", 2.0, at, broadcast_hop),
        Case("link-cs3", "cs3", linked, 1 / 0.89, WAFER_ENGINE, stream),
    ]


def cases() -> tuple[Case, ...]:
    """Return all cases."""
    made = (_multiplications, _products, _sparse_products, _reductions, _spada, _cs3)
    return tuple(case for make in made for case in make())


# ---- Tables


def number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.4g}"


def row_text(row: Row) -> str:
    case = row.case
    kind = "fit" if case.is_fit else "ok" if abs(row.ratio - 1) <= TOLERANCE else "**off**"
    values = f"{number(case.published)} | {number(row.found)} | {row.ratio:.3f}"
    return f"| {case.name} | {case.machine} | {case.what} | {values} | {kind} | {case.source} |"


def summary(rows: list[Row]) -> str:
    """Return a sentence that counts the rows that no number was set from."""
    held_out = [row for row in rows if not row.case.is_fit]
    off = [row for row in held_out if abs(row.ratio - 1) > TOLERANCE]
    worst = max(held_out, key=lambda row: abs(row.ratio - 1))
    return (
        f"{len(held_out)} cases are held out, {len(held_out) - len(off)} of them within {TOLERANCE:.0%}. The "
        f"largest difference is that of {worst.case.name}: {worst.ratio:.3f}. "
        f"{len(rows) - len(held_out)} cases were used to set something."
    )


def results_table(rows: list[Row]) -> str:
    head = "| case | machine | program | published | simulated | ratio | | source |"
    rule = "|---|---|---|---:|---:|---:|---|---|"
    return "\n".join([head, rule, *map(row_text, rows), "", summary(rows)])


def parameter_table() -> str:
    """Return the numbers of the machines, but the widths, and where those of WSE-2 and WSE-3 come from."""
    models = [load_machine(name) for name in machines()]
    lines = ["| number | " + " | ".join(machines()) + " | set from |", "|---|---|---|---|---|"]
    for key in (k for k in models[1].provenance if k != "simd_widths"):
        values = " | ".join(_value(getattr(machine, key)) for machine in models)
        lines.append(f"| {key} | {values} | {_provenance(models, key)} |")
    return "\n".join(lines)


def _value(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _provenance(models: list[Machine], key: str) -> str:
    parts: list[tuple[str, str]] = []
    for machine in models[1:]:
        names = ", ".join(machine.fitted_to.get(key, ()))
        text = machine.provenance[key] + (f" ({names})" if names else "")
        if text not in (part for _, part in parts):
            parts.append((machine.name, text))
    return parts[0][1] if len(parts) == 1 else "; ".join(f"{name}: {text}" for name, text in parts)


def between(page: str, name: str) -> tuple[str, str, str]:
    """Split a page into what stands before, in and behind the part of this name."""
    begin, end = f"<!-- {name} -->\n", f"\n<!-- end of {name} -->"
    before, rest = page.split(begin)
    inside, after = rest.split(end)
    return before + begin, inside, end + after


def with_part(page: str, name: str, text: str) -> str:
    before, _, after = between(page, name)
    return before + text + after


@click.command()
@click.option("--case", "names", multiple=True, help="only these")
@click.option("--write", is_flag=True, help="put the tables into docs/machine_model.md")
def main(names: tuple[str, ...], write: bool) -> None:
    """Simulate the cases and print them."""
    rows = []
    for case in cases():
        if names and case.name not in names:
            continue
        rows.append(measured(case))
        print(row_text(rows[-1]), flush=True)
    if not names:
        print(summary(rows))
    if write:
        page = with_part(PAGE.read_text(), "results", results_table(rows))
        PAGE.write_text(with_part(page, "parameters", parameter_table()))


if __name__ == "__main__":
    main()
