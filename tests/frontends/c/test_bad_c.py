"""Each C file that is refused gives the diagnostics of its golden file: ``bad/x.c`` and ``bad/x.err``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from polyloom.diagnostics import PolyloomError, Source, render
from polyloom.frontends.c import read_c

BAD = sorted((Path(__file__).parent / "bad").glob("*.c"))
WITHOUT_PLACE = ("c-no-function", "c-which-function")


def refused(path: Path) -> PolyloomError:
    with pytest.raises(PolyloomError) as caught:
        read_c(Source(path.name, path.read_text()))
    return caught.value


@pytest.mark.parametrize("path", BAD, ids=lambda p: p.stem)
def test_diagnostics(path: Path, golden: Callable[[Path, str], None]) -> None:
    fault = refused(path)
    text = "\n\n".join(render(d) for d in fault.diagnostics)
    golden(path.with_suffix(".err"), f"exit status {fault.exit_status}\n{text}\n")


@pytest.mark.parametrize("path", BAD, ids=lambda p: p.stem)
def test_every_error_says_what_to_do_and_where(path: Path) -> None:
    for diagnostic in refused(path).diagnostics:
        assert diagnostic.code.startswith("c-")
        assert diagnostic.helps, diagnostic
        assert diagnostic.span is not None or diagnostic.code in WITHOUT_PLACE


def test_no_golden_without_its_file() -> None:
    texts = {p.stem for p in BAD}
    assert {p.stem for p in (Path(__file__).parent / "bad").glob("*.err")} == texts
