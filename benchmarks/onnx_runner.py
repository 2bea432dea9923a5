"""onnx's own test runner over ``polyloom.onnx_backend``: ``python benchmarks/onnx_runner.py``.

Every test of the kinds that need no download, on the processor. A model that has no affine form is a skipped
test. Exit status 1 where a test fails.
"""

from __future__ import annotations

import argparse
import sys
import unittest
from collections import Counter

import onnx.backend.test

import polyloom.onnx_backend

KINDS = ("Node", "PyTorchConverted", "PyTorchOperator", "Simple")


def tests(part: str) -> unittest.TestSuite:
    """Return the tests for the processor whose names hold ``part``."""
    runner = onnx.backend.test.BackendTest(polyloom.onnx_backend, __name__)
    suite = unittest.TestSuite()
    for kind in KINDS:
        case = runner.test_cases[f"OnnxBackend{kind}ModelTest"]
        names = unittest.TestLoader().getTestCaseNames(case)
        suite.addTests(case(name) for name in names if name.endswith("_cpu") and part in name)
    return suite


def counts(result: unittest.TestResult) -> Counter[str]:
    """Return how many tests passed, failed and were skipped."""
    failed, skipped = len(result.failures) + len(result.errors), len(result.skipped)
    return Counter(
        tests=result.testsRun, passed=result.testsRun - failed - skipped, failed=failed, skipped=skipped
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-k", default="", help="only tests whose name holds this")
    result = unittest.TestResult()
    tests(parser.parse_args().k).run(result)
    for test, text in (*result.failures, *result.errors):
        print(f"{test}: {text[-700:]}")
    print(", ".join(f"{n} {what}" for what, n in counts(result).items()))
    return 1 if result.failures or result.errors else 0


if __name__ == "__main__":
    sys.exit(main())
