"""``polyloom bench``: C files beside what a C compiler makes of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import EXAMPLES, Captured, document, failure

from polyloom.cli.main import run
from polyloom.side_by_side import Comparison, in_turns, mean_ratio

HEAT, GEMM = str(EXAMPLES / "c" / "heat.c"), str(EXAMPLES / "c" / "gemm.c")
TWO = ["bench", "--rounds", "3", "--cc", "gcc -O1", "--param", "n=9", "--param", "m=8", "--param", "k=7"]

ROW = """
double total;
void kernel(int n, double a[n]) {
#pragma scop
  total = 0;
  for (int i = 0; i < n; i++) total += a[i];
#pragma endscop
}"""


@pytest.mark.slow
@pytest.mark.ci
def test_each_file_has_its_medians_and_ratio(capsys: Captured, tmp_path: Path) -> None:
    row = tmp_path / "row.c"
    row.write_text(ROW)
    found = document(capsys, [*TWO, GEMM, str(row)])
    assert list(found["programs"]) == [GEMM, str(row)] and found["cc"] == "gcc -O1"
    for program in found["programs"].values():
        assert all(len(rounds) == 3 and min(rounds) > 0 for rounds in program["rounds"].values())
        low, high = program["spread"]
        assert 0 < low <= high
    ratios = [program["ratio"] for program in found["programs"].values()]
    assert found["ratio"] == pytest.approx((ratios[0] * ratios[1]) ** 0.5)


def test_for_a_person(capsys: Captured) -> None:
    assert run([*TWO, GEMM]) == 0
    out, _ = capsys.readouterr()
    assert "as it stands" in out and "times as fast" in out


def test_only_c_can_be_timed(capsys: Captured) -> None:
    assert "bench-source" in failure(capsys, ["bench", str(EXAMPLES / "training.lair")], 1)


def test_an_argument_that_no_file_has_is_refused(capsys: Captured) -> None:
    assert "`nn`" in failure(capsys, ["bench", "--param", "nn=9", HEAT], 2)


@pytest.mark.parametrize("cc", ["gcc --no-such-option", "no-such-compiler -O3"])
def test_a_compiler_that_refuses_is_named(cc: str, capsys: Captured) -> None:
    assert run([*TWO[:3], "--cc", cc, *TWO[5:], "--no-check", GEMM]) == 1
    err = capsys.readouterr().err
    assert "bench-build" in err and cc.partition(" ")[0] in err and "--cc" in err


def test_wrong_results_are_no_figures(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    from polyloom.ir.verification.comparison import Verdict

    monkeypatch.setattr(Verdict, "passed", property(lambda self: False))
    assert run([*TWO, GEMM]) == 1
    out, err = capsys.readouterr()
    assert out == "" and "check-mismatch" in err


def test_rounds_take_turns() -> None:
    order: list[str] = []
    runs = {name: lambda name=name: float(order.append(name) or len(order)) for name in "ab"}  # type: ignore[misc]
    found = in_turns(runs, 20)
    assert [len(seconds) for seconds in found.values()] == [20, 20] and len(order) == 44
    pairs = ["".join(order[k : k + 2]) for k in range(0, 44, 2)]
    assert set(pairs) == {"ab", "ba"}


def test_ratios_are_of_medians() -> None:
    found = Comparison((1.0, 2.0, 9.0, 2.0), (4.0, 4.0, 4.0, 4.0))
    assert found.ratio == 2.0 and found.spread == (2.0, 2.0)
    assert mean_ratio([found, Comparison((1.0,), (8.0,))]) == 4.0
