"""The result of a run on a device for a person."""

from __future__ import annotations

from polyloom.mdh.running import RunResult
from polyloom.mdh.split.plan import Plan
from polyloom.report.terminal import print_pairs, seconds_text
from polyloom.report.verdict_view import verdict_rows

_MOST_KERNELS = 8
_SCHEDULES = {
    "tuned": "tuned",
    "tuned for other sizes": "a schedule that was tuned for other sizes",
    "cost model": "a schedule by the cost model",
    "plain": "loops as they stand",
}


def print_run(result: RunResult) -> None:
    """Print what a run gave, as one table."""
    print_pairs(_rows(result))


def print_plan(plan: Plan) -> None:
    """Print how the rows lay in several places, what that took, and from how many rows on it pays."""
    rows = [
        (
            "rows",
            f"{s.rows} from {s.first} on in {s.place}: {seconds_text(s.seconds)} expected "
            f"({seconds_text(s.cost.fixed)} a call, {seconds_text(s.cost.row)} a row)",
        )
        for s in plan.shares
    ]
    if plan.measured is not None:
        together, alone = map(seconds_text, plan.measured)
        rows.append(("several", f"{together} measured; all rows in {plan.alone[0]} alone {alone}"))
    pays = "several are faster for no number of rows"
    if plan.pays_from is not None:
        pays = f"several are faster from {plan.pays_from:,} rows on"
    rows.append(("", f"by these times, {pays}"))
    print_pairs(rows)


def _rows(result: RunResult) -> list[tuple[str, str]]:
    timing, kernels = result.execution.timing, result.kernels()
    sizes = ", ".join(f"{name} = {value}" for name, value in result.parameters.items())
    launches = _launches(timing.launches)
    rows = [("device", result.device), *((("sizes", sizes),) if sizes else ())]
    whole, alone = seconds_text(timing.total), seconds_text(timing.device)
    in_kernels = f", {alone} in {launches}" if timing.device else ""  # several places: not known
    rows += [
        ("time", f"{whole} with all copies{in_kernels}"),
        *((("rate", f"{result.gflops:.3g} GFLOP/s in the kernels"),) if result.gflops else ()),
        ("made in", f"{seconds_text(timing.prepare)} (code for these sizes, and its build)"),
    ]
    for kernel in kernels[:_MOST_KERNELS]:
        times = f"{seconds_text(kernel['seconds'])}, {_launches(kernel['launches'])}"
        rows.append(("kernel", f"{kernel['name']}: {times}, {_SCHEDULES[kernel['schedule']]}"))
    if len(kernels) > _MOST_KERNELS:
        rows.append(("", f"and {len(kernels) - _MOST_KERNELS} more"))
    for name, array in result.outputs.items():
        rows.append(("output", f"{array.dtype.name} {name}" + "".join(f"[{n}]" for n in array.shape)))
    return [*rows, *verdict_rows(result.check)]


def _launches(count: int) -> str:
    return f"{count:,} launch" + ("" if count == 1 else "es")
