"""Our text of the CSL libraries."""

from __future__ import annotations

import pytest

from polyloom.csl import library
from polyloom.csl.syntax.parse import parse
from polyloom.diagnostics import Source


@pytest.mark.parametrize("name", library.names())
def test_every_library_is_csl(name: str) -> None:
    found = library.source(name)
    assert found is not None
    file, text = found
    assert file == f"<{name}>"
    assert parse(Source(file, text)).items


def test_there_is_no_other_library() -> None:
    assert library.source("memcpy/nothing") is None
    assert library.source("../__init__") is None
