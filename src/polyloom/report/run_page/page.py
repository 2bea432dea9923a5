"""The page of a run: what each kernel took, how near the device's limits, and how schedules cut it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from polyloom.files import write_text
from polyloom.ir.text.host_programs import print_host
from polyloom.mdh.compiled import CompiledProgram
from polyloom.mdh.running import RunResult
from polyloom.report.html.document import VERSION
from polyloom.report.html.environment import as_json, rendered, scripts
from polyloom.report.processor_view import schedule_text
from polyloom.report.run_page.kernels import Kernel, kernels_of
from polyloom.report.run_page.pictures import Roof, roof_of, roofline, tiling, time_text, tuning_history
from polyloom.report.run_page.waves import wave_pictures
from polyloom.report.verdict_view import reals_text, verdict_text

MOST_KERNELS = 60
"""With pictures; of more, the slowest."""


def write_run_report(
    path: Path, result: RunResult, program: CompiledProgram, database: Path | None = None
) -> None:
    """Write the page, whole or not at all. ``database``: of tuning results; None: the user's own.

    Errors: ``file-unwritable``, ``database-...``.
    """
    write_text(path, run_page(result, program, database))


def run_page(result: RunResult, program: CompiledProgram, database: Path | None = None) -> str:
    """Return the page. The same result gives the same text."""
    kernels, roof = kernels_of(result, program, database), roof_of(program.device)
    return rendered(
        "run.html",
        name=result.program.name,
        device=result.device,
        sizes=", ".join(f"{name} = {value}" for name, value in result.parameters.items()),
        verdict=_verdict(result),
        timing=result.execution.timing,
        text_of=time_text,
        gflops=result.gflops,
        roof=roof,
        kernels=[_shown(kernel, roof) for kernel in kernels],
        longest=max((kernel.seconds for kernel in kernels), default=0.0) or 1.0,
        roofline=roofline(kernels, roof),
        pictures=[each for k in kernels[:MOST_KERNELS] if (each := _pictures(k))],
        waves=wave_pictures(result, program),
        program=print_host(result.program),
        outputs=result.outputs,
        scripts=scripts("export.js", "run.js"),
        data=as_json({"summary": _summary(result, kernels)}),
    )


def _verdict(result: RunResult) -> tuple[str, str]:
    check = result.check
    if check is None:
        return "none", "not checked: run with --check to compare with a reference"
    if not check.passed:
        return "failed", "check FAILED: " + "; ".join(check.mismatches)
    reals = "" if check.reals is None else f"; {reals_text(check.reals)}"
    return "passed", f"check {verdict_text(check)}{reals}"


def _shown(kernel: Kernel, roof: Roof) -> dict[str, Any]:
    """Return a row of the table; ``share``: of what memory and units allow."""
    share = None
    if kernel.rate is not None and kernel.intensity is not None:
        share = kernel.rate / min(roof.operations, kernel.intensity * roof.bytes)
    words = "" if kernel.schedule is None else schedule_text(kernel.schedule)
    return {"kernel": kernel, "share": share, "words": words}


def _pictures(kernel: Kernel) -> dict[str, Any] | None:
    tiles, history = tiling(kernel), tuning_history(kernel.history)
    if tiles is None and history is None:
        return None
    return {"name": kernel.name, "tiles": tiles, "history": history, "count": len(kernel.history)}


def _summary(result: RunResult, kernels: tuple[Kernel, ...]) -> dict[str, Any]:
    """Return what a page for two runs reads (docs/report.md)."""
    timing = result.execution.timing
    figures = [
        ["in kernels", time_text(timing.device), f"{timing.launches:,} launches"],
        ["with copies", time_text(timing.total), ""],
        ["made in", f"{timing.prepare:,.3g} s", ""],
    ]
    if result.gflops:
        figures.append(["rate", f"{result.gflops:,.3g} GFLOP/s", "in the kernels"])
    return {
        "version": VERSION,
        "name": result.program.name,
        "machine": result.device,
        "simd": "",
        "unit": "µs",
        "check": _verdict(result),
        "cycles": 1e6 * timing.device,
        "limit": 0,
        "limit_by": "",
        "figures": figures,
        "pe": None,
        "parts": [],
        "functions": {kernel.name: 1e6 * kernel.seconds for kernel in kernels},
        "program": print_host(result.program),
        "map": "\n".join(
            f"{k.name}: {k.origin}; {'' if k.schedule is None else schedule_text(k.schedule)}"
            for k in sorted(kernels, key=lambda k: k.name)
        ),
    }
