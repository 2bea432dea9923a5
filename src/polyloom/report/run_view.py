"""The result of a run on a device for a person."""

from __future__ import annotations

from polyloom.mdh.running import RunResult
from polyloom.mdh.split.plan import Plan
from polyloom.report.terminal import print_pairs
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
            f"{s.rows} from {s.first} on in {s.place}: {_seconds(s.seconds)} expected "
            f"({_seconds(s.cost.fixed)} a call, {_seconds(s.cost.row)} a row)",
        )
        for s in plan.shares
    ]
    if plan.measured is not None:
        together, alone = map(_seconds, plan.measured)
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
    rows += [
        ("time", f"{_seconds(timing.total)} with all copies, {_seconds(timing.device)} in {launches}"),
        *((("rate", f"{result.gflops:.3g} GFLOP/s in the kernels"),) if result.gflops else ()),
        ("made in", f"{_seconds(timing.prepare)} (code for these sizes, and its build)"),
    ]
    for kernel in kernels[:_MOST_KERNELS]:
        times = f"{_seconds(kernel['seconds'])}, {_launches(kernel['launches'])}"
        rows.append(("kernel", f"{kernel['name']}: {times}, {_SCHEDULES[kernel['schedule']]}"))
    if len(kernels) > _MOST_KERNELS:
        rows.append(("", f"and {len(kernels) - _MOST_KERNELS} more"))
    for name, array in result.outputs.items():
        rows.append(("output", f"{array.dtype.name} {name}" + "".join(f"[{n}]" for n in array.shape)))
    return [*rows, *verdict_rows(result.check)]


def _launches(count: int) -> str:
    return f"{count:,} launch" + ("" if count == 1 else "es")


def _seconds(value: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value / 1e-6:.3g} us"
