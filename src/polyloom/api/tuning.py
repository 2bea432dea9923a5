"""Tuning from Python: the fastest schedules of a program searched, and its results checked."""

from __future__ import annotations

import math
import pathlib
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy.typing as npt

from polyloom.api.opencl import compiled_program
from polyloom.api.reading import Path
from polyloom.device_pipeline import check_tuned, tune_opencl
from polyloom.diagnostics import PolyloomError, error
from polyloom.mdh.compiled import CompiledProgram
from polyloom.mdh.running import RESULTS
from polyloom.mdh.runtime.arguments import known_parameters
from polyloom.mdh.tuning.cluster.workers import connected
from polyloom.mdh.tuning.database import Database, default_path
from polyloom.mdh.tuning.tune import Progress as TuneProgress
from polyloom.mdh.tuning.tune import Tuned, TuneOptions
from polyloom.sources import Given


def tune(
    program: CompiledProgram | Given,
    inputs: Mapping[str, npt.ArrayLike] | None = None,
    *,
    budget: float = 60.0,
    evaluations: int | None = None,
    seed: int = 0,
    database: Path | None = None,
    progress: Callable[[TuneProgress], None] | None = None,
    jobs: int | None = None,
    cluster: Any = None,
) -> tuple[Tuned, ...]:
    """Search for the fastest schedules of a program's md_homs; its next call uses them.

    ``inputs``: its integer parameters, or arrays whose shapes they follow from; what the arrays hold does not
    matter. ``budget``: seconds; ``evaluations``: schedules for each md_hom at most. ``database``: where the
    results are kept; None: the user's own. ``progress`` is called after each schedule. In the end a program
    of C is compared with the C program, on made-up inputs; Python warns where that is not possible.
    ``jobs``: how many candidates are built at a time on the processor (None: as many as there are threads).
    ``cluster``: the address of a dask scheduler, or a ``distributed.Client``: candidates are timed by those
    of its workers that have the device, on each one at a time.

    Errors: ``check-mismatch``, ``parameter-...``, ``device-...``, ``tuning-...``, ``database-...``,
    ``cluster-...``.
    Source: docs/tuning.md.
    """
    if not 0 < budget < math.inf or (evaluations is not None and evaluations < 1):
        helps = ["a budget is a positive number of seconds; at least one evaluation is needed"]
        raise PolyloomError(error("tuning-budget", "there is nothing to spend on tuning", helps=helps))
    program = compiled_program(program)
    given = {**program.constants, **(inputs or {})}
    options = TuneOptions(budget=budget, evaluations=evaluations, seed=seed, jobs=jobs)
    path = default_path() if database is None else pathlib.Path(database)
    with Database(path) as results, connected(cluster) as workers:
        found = tune_opencl([program.program], given, program.device, results, options, progress, workers)
    program.refresh()
    if found and not any(each.interrupted for each in found):
        _check_tuned(program, known_parameters(program.program, given))
    return found


def _check_tuned(program: CompiledProgram, parameters: Mapping[str, int]) -> None:
    try:
        result = check_tuned(program, parameters)
    except PolyloomError as fault:
        reason = fault.diagnostics[0].message
        warnings.warn(f"`{program.program.name}` was not checked: {reason}", stacklevel=3)
        return
    if result is not None and result.check is not None and not result.passed:
        raise result.check.mismatch(RESULTS)
