"""Each wrong file gives the diagnostics of its golden file: ``bad/x.lair`` and ``bad/x.err``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from polyloom.diagnostics import PolyloomError, Source, render
from polyloom.frontends.lair import lower
from polyloom.frontends.lair.syntax.parse import parse

BAD = sorted((Path(__file__).parent / "bad").glob("*.lair"))


def diagnostics(source: Source, **options: object) -> str:
    with pytest.raises(PolyloomError) as caught:
        lower(parse(source), **options)  # type: ignore[arg-type]
    return "\n\n".join(render(d) for d in caught.value.diagnostics) + "\n"


@pytest.mark.parametrize("path", BAD, ids=lambda p: p.stem)
def test_diagnostics(path: Path, golden: Callable[[Path, str], None]) -> None:
    golden(path.with_suffix(".err"), diagnostics(Source(path.name, path.read_text())))


def test_no_golden_without_its_file() -> None:
    texts = {p.stem for p in BAD}
    assert {p.stem for p in (Path(__file__).parent / "bad").glob("*.err")} == texts


@pytest.mark.parametrize("path", BAD, ids=lambda p: p.stem)
def test_every_error_says_what_to_do_and_where(path: Path) -> None:
    with pytest.raises(PolyloomError) as caught:
        lower(parse(Source(path.name, path.read_text())))
    for diagnostic in caught.value.diagnostics:
        assert diagnostic.code.startswith("lair-")
        assert diagnostic.helps, diagnostic
        assert diagnostic.span is not None or diagnostic.code in ("lair-which-node", "lair-empty")


FF = "lair ff<T=float16>(M, N): T W[M][N], T x[N] -> T y[M] { all (i, j) in (M, N) y[i] += W[i][j] * x[j] }"


@pytest.mark.parametrize(
    ("defines", "code"),
    [
        ({"M": "32"}, "lair-missing-parameter"),
        ({"M": "32", "N": "16", "K": "1"}, "lair-unknown-define"),
        ({"M": "0", "N": "16"}, "lair-bad-define"),
        ({"M": "-3", "N": "16"}, "lair-bad-define"),
        ({"M": "3.5", "N": "16"}, "lair-bad-define"),
        ({"M": "9" * 5000, "N": "16"}, "lair-bad-define"),
        ({"M": "2147483648", "N": "16"}, "lair-bad-define"),
        ({"M": "4", "N": "16", "T": "half"}, "lair-bad-define"),
        ({"M": "65536", "N": "65536"}, "lair-too-large"),
    ],
)
def test_defines(defines: dict[str, str], code: str) -> None:
    with pytest.raises(PolyloomError) as caught:
        lower(parse(Source("ff.lair", FF)), None, defines)
    assert {d.code for d in caught.value.diagnostics} == {code}


def test_missing_sizes_are_named_with_a_way_out() -> None:
    text = diagnostics(Source("ff.lair", FF))
    assert "`M`, `N`" in text
    assert "-D M=32 -D N=32" in text


def test_unknown_node_lists_the_names() -> None:
    assert "known here: `ff`" in diagnostics(Source("ff.lair", FF), node="zzz")
