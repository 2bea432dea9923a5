"""`polyloom show` of C files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import Captured, failure

from polyloom.cli.main import run

TEXT = """#include "sizes.h"
void first(int n, float a[n][WIDTH])
{
#pragma scop
  for (int i = 0; i < n; i++)
    a[i][WIDTH - 1] += 1;
#pragma endscop
}
void second(float b[WIDTH])
{
#pragma scop
  b[0] = 2;
#pragma endscop
}
"""


def success(capsys: Captured, arguments: list[str]) -> str:
    """What a run prints that has nothing to remark."""
    assert run(arguments) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "sizes.h").write_text("#ifndef WIDTH\n#define WIDTH 4\n#endif\n")
    path = tmp_path / "two.c"
    path.write_text(TEXT)
    return path


def options(file: Path) -> list[str]:
    return ["-I", str(file.parent / "include")]


def test_json_of_one_part(capsys: Captured, file: Path) -> None:
    arguments = ["show", str(file), "--as", "scop", "--json", "--function", "first", *options(file)]
    found = json.loads(success(capsys, arguments))
    keys = "version function context domain schedule reads writes must_writes statements arrays"
    assert list(found) == keys.split()
    assert found["function"] == "first"
    assert found["domain"] == "[n] -> { S1[i] : 0 <= i < n }"
    assert found["writes"] == found["must_writes"] == "[n] -> { S1[i] -> a[i, 3] : 0 <= i < n }"
    assert found["statements"] == [{"name": "S1", "line": 6, "body": "a[i][4 - 1] += 1"}]
    assert [(a["name"], a["element_type"]) for a in found["arrays"]] == [("a", "float")]


def test_json_of_several_parts_is_a_list(capsys: Captured, file: Path) -> None:
    found = json.loads(success(capsys, ["show", str(file), "--json", *options(file), "-DWIDTH=7"]))
    assert [part["function"] for part in found] == ["first", "second"]
    assert "a[i, 6]" in found[0]["writes"]


def test_text(capsys: Captured, file: Path) -> None:
    text = success(capsys, ["show", str(file), *options(file)])
    assert "S1, line 6: a[i][4 - 1] += 1" in text and "S1[i] -> a[i, 3] : 0 <= i < n" in text


def test_a_macro_needs_no_value(capsys: Captured, tmp_path: Path) -> None:
    path = tmp_path / "f.c"
    path.write_text("void f(int a[3])\n{\n#ifdef SECOND\n  a[SECOND] = 1;\n#endif\n}\n")
    assert "a[1]" in success(capsys, ["show", str(path), "-D", "SECOND"])
    assert "a[2]" in success(capsys, ["show", str(path), "-DSECOND=2"])


def test_a_missing_header(capsys: Captured, file: Path) -> None:
    err = failure(capsys, ["show", str(file)], 1)
    assert "error[c-preprocessor]" in err and "two.c:1:1" in err and "-I FOLDER" in err


def test_what_is_no_static_control(capsys: Captured, tmp_path: Path) -> None:
    path = tmp_path / "f.c"
    path.write_text("void f(int n, int a[n]) { while (a[0]) a[0]--; }\n")
    assert "error[c-while]" in failure(capsys, ["show", str(path), "--json"], 3)


def test_a_call_is_shown_though_it_cannot_be_computed(capsys: Captured, tmp_path: Path) -> None:
    path = tmp_path / "f.c"
    path.write_text("int g(const int *);\nvoid f(int a[3]) { a[0] = g(a); }\n")
    assert "S1[] -> a[o" in success(capsys, ["show", str(path)])
