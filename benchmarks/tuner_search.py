"""How good a search gets with few evaluations, on the made-up space of the tests, and Optuna beside it.

    python benchmarks/tuner_search.py

Each number is the median over seeds of (best cost so far) / (least cost of the space). Source of the space:
tests/mdh/synthetic.py.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "mdh"))
from synthetic import CHOICES, SyntheticMeasure, SyntheticSpace, Tiles

from polyloom.mdh.tuning.search import Search, SearchOptions

LEAST = 1.05046875e-3
SPACE = SyntheticSpace()
SEEDS = 9
SHOWN = (20, 50, 100, 200)
Trace = list[float]

VARIANTS = {
    "random": SearchOptions(model=False, learn=False, elites=0),
    "neighbours": SearchOptions(model=False, learn=False, pool=16),
    "model": SearchOptions(learn=False, elites=0),
    "model, neighbours": SearchOptions(learn=False),
    "all (Polyloom)": SearchOptions(),
}


def searched(options: SearchOptions, seed: int) -> Trace:
    search = Search(SPACE, [SPACE.default()], Random(seed), options)
    measure = SyntheticMeasure()
    trace = []
    for _ in range(SHOWN[-1]):
        schedule = search.ask()
        assert schedule is not None
        best = min((t.outcome.cost for t in search.best()), default=math.inf)
        search.tell(schedule, measure(schedule, 2 * best))
        trace.append(search.best()[0].outcome.cost / LEAST if search.best() else math.inf)
    return trace


def tiles(trial: Any) -> Tiles:
    """Define a schedule by run: each parameter's range follows from those before it."""
    width = trial.suggest_categorical("width", CHOICES["width"])
    rows = trial.suggest_int("rows", 1, 16)
    columns = trial.suggest_int("columns", 1, min(8, 28 // rows))
    most = 64 * 1024 // (rows + columns * width)
    depth = 2 ** trial.suggest_int("depth", 2, min(10, int(math.log2(most))))
    rest = [trial.suggest_categorical(name, CHOICES[name]) for name in ("unroll", "packed", "order")]
    return Tiles(rows, columns, depth, width, *rest)


def optuna_trace(seed: int, storage: str | None) -> Trace:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    measure, trace = SyntheticMeasure(), [math.inf]

    def objective(trial: Any) -> float:
        cost = measure(tiles(trial), math.inf).cost
        trace.append(min(trace[-1], cost / LEAST))
        return math.log(min(cost, 1.0))

    sampler = optuna.samplers.TPESampler(seed=seed, multivariate=True, group=True)
    study = optuna.create_study(sampler=sampler, storage=storage)
    first = {"width": 8, "rows": 4, "columns": 1, "depth": 6, "unroll": 1, "packed": False, "order": "ijk"}
    study.enqueue_trial(first)
    study.optimize(objective, n_trials=SHOWN[-1])
    return trace[1:]


def show(name: str, run: Callable[[int], Trace]) -> None:
    begin = time.perf_counter()
    traces = [run(seed) for seed in range(SEEDS)]
    each = (time.perf_counter() - begin) / SEEDS / SHOWN[-1]
    columns = "".join(f"{median(trace[n - 1] for trace in traces):10.3f}" for n in SHOWN)
    print(f"{name:28}{columns}{each * 1e3:14.2f} ms")


def main() -> None:
    print(f"{'evaluations':28}" + "".join(f"{n:10}" for n in SHOWN) + "     overhead of each")
    for name, options in VARIANTS.items():
        show(name, lambda seed, options=options: searched(options, seed))  # type: ignore[misc]
    try:
        import optuna
    except ImportError:
        print("Optuna: not installed")
        return
    import warnings

    warnings.simplefilter("ignore")
    show(f"Optuna {optuna.__version__}, TPE", lambda seed: optuna_trace(seed, None))
    with TemporaryDirectory() as folder:
        show("the same, SQLite storage", lambda seed: optuna_trace(seed, f"sqlite:///{folder}/{seed}.db"))


if __name__ == "__main__":
    main()
