"""What is read is a file: nothing waits for ever, nothing is read without end."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from polyloom import files
from polyloom.diagnostics import PolyloomError
from polyloom.files import read_regular, read_source
from polyloom.sources import Reading, load_model, load_tensors

CONV = Path(__file__).parents[1] / "examples" / "conv1d.lair"


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


IRREGULAR: dict[str, Callable[[Path], object]] = {
    "pipe": os.mkfifo,
    "device": lambda path: path.symlink_to("/dev/zero"),
    "terminal": lambda path: path.symlink_to("/dev/tty"),
    "socket": make_socket,
}


@pytest.mark.parametrize("name", ["a.c", "a.lair", "a.onnx", "a.pb", "a.pt2"])
@pytest.mark.parametrize("make", IRREGULAR.values(), ids=IRREGULAR)
def test_a_source_that_is_no_file(tmp_path: Path, make: Callable[[Path], object], name: str) -> None:
    make(tmp_path / name)
    with pytest.raises(PolyloomError, match="file-irregular"):
        load_model(tmp_path / name) if name[2:] in ("onnx", "pb", "pt2") else load_tensors(
            tmp_path / name, Reading()
        )


@pytest.mark.parametrize(
    "arguments",
    [
        ["simulate", str(CONV), "--map", "PIPE"],
        ["run", str(CONV), "--inputs", "PIPE"],
        ["tune", "--import", "PIPE", "--database", "DB"],
    ],
)
def test_other_inputs_that_are_no_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    from polyloom.cli.main import run

    os.mkfifo(tmp_path / "pipe")
    paths = {"PIPE": str(tmp_path / "pipe"), "DB": str(tmp_path / "t.sqlite")}
    assert run([paths.get(each, each) for each in arguments]) == 1
    assert "error[file-irregular]" in capsys.readouterr().err


def test_the_size_has_a_limit(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"12345")
    assert read_regular(path, 5) == b"12345"
    with pytest.raises(PolyloomError, match="file-large"):
        read_regular(path, 4)
    with path.open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(PolyloomError, match="file-large"):
        read_source(path)


def test_a_pipe_that_is_open_already_is_read() -> None:
    """``--map /dev/stdin``, or what a shell hands over as ``<(...)``."""
    code = (
        "from pathlib import Path; from polyloom.files import read_source;"
        "print(read_source(Path('/dev/stdin')).text)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input="map", capture_output=True, text=True, check=True
    )
    assert done.stdout == "map\n"


def test_what_packs_well_is_refused_only_where_nobody_knows_its_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "SMALL_ARRAYS", 0)
    path, zeros = tmp_path / "a.npz", np.zeros(10**5)
    np.savez_compressed(path, a=zeros)
    with pytest.raises(PolyloomError, match="npz-large"):
        files.read_arrays(path)
    with pytest.raises(PolyloomError, match="npz-large"):
        files.read_shapes(path)
    np.testing.assert_array_equal(files.read_arrays(path, zeros.size)["a"], zeros)
    np.savez(path, a=zeros)
    assert files.read_shapes(path) == {"a": zeros.shape}
    np.savez_compressed(path, a=np.random.default_rng(1).integers(0, 9, 10**5))
    assert files.read_arrays(path)["a"].size == 10**5
