"""What works, counted: asks the test runner which tests there are.

Usage: .venv/bin/python benchmarks/counts.py, the interpreter that `make test` set up: pytest is needed.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
ROWS = (
    ("equations of the paper, compared as isl sets", r"test_paper_equations\.py"),
    ("layers and maps x SIMD modes x zeros x invocations, simulated, bit for bit", r"test_wafer_corpus\.py"),
    ("layers of the zoo: SIMD shapes against brute force", r"test_zoo_shapes\.py"),
    ("layers of the zoo, simulated, bit for bit", r"test_zoo_runs\.py"),
    (
        "random layers and graphs under random, changed and chosen maps",
        r"wafer/.*test_(random|changed_maps|placement)",
    ),
    (
        "extensions of SIMD detection: shapes, operations, layouts",
        r"wafer/(simd/|array_layout/|.*test_extensions)",
    ),
    ("colors, deadlock, resources, reductions", r"wafer/.*test_(coloring|deadlock|resources|collectives)"),
    ("deliberately wrong compilers and evaluators, caught", r"test_\w*mutants\.py"),
    ("LAIR programs: parse, print, lower, evaluate", r"lair/test_corpus\.py"),
    ("wrong LAIR files, one diagnostic each", r"lair/test_bad_input\.py"),
    ("wrong maps, one diagnostic each", r"test_bad_maps\.py"),
    ("the simulator: arithmetic, costs, strict errors, programs", r"simulator/test_"),
    ("the command line and the API", r"(cli/test_|test_api)"),
    ("md_poly: its listings, its definitions, md_homs", r"mdh/test_paper\.py"),
    ("TensorFlow, ONNX and PyTorch models, against them", r"frontends/(tensorflow|onnx|torch|graph)"),
    ("C: what programs mean, against gcc", r"frontends/c/test_(meaning|random_expressions|replacing)\.py"),
    ("wrong C files, one diagnostic each", r"frontends/c/test_bad_c\.py"),
    ("dependences, reductions, host programs", r"(scop/|ir/.*test_(host|from|spec))"),
    (
        "OpenCL: operators, types, schedules, nests on a device",
        r"mdh/.*test_(expression_c|emit|schedules|runtime)\.py",
    ),
    ("C programs on a device, against gcc", r"mdh/(.*test_programs\.py|dropin/)"),
    (
        "tuning, its database and its child processes",
        r"mdh/tuning/",
    ),
)


def collected() -> list[str]:
    """Return the names of all tests that ``make test`` runs."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-q", "-m", "not slow or ci"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found = re.findall(r"^(tests/[^:]+): (\d+)$", done.stdout, flags=re.MULTILINE)
    return [name for name, count in found for _ in range(int(count))]


def table() -> str:
    """Return the counts as a table in Markdown."""
    counts = Counter(collected())
    lines = ["| what | tests |", "|---|---:|"]
    for what, pattern in ROWS:
        number = sum(count for name, count in counts.items() if re.search(pattern, name))
        if not number:
            sys.exit(f"no test is counted as `{what}`: have the files of `{pattern}` moved?")
        lines.append(f"| {what} | {number} |")
    return "\n".join([*lines, f"| all | {sum(counts.values())} |"])


if __name__ == "__main__":
    print(table())
