"""How long importing models takes, and how much memory: each in a process of its own.

    .venv/bin/python benchmarks/model_import.py             the networks that onnx 1.22.0 ships (light/)
    .venv/bin/python benchmarks/model_import.py a.onnx ...  others; -D as for polyloom show

The last line is a file that says nothing but asks for memory: 16 Mi empty nodes in 32 MiB.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from pathlib import Path

from polyloom.diagnostics import PolyloomError
from polyloom.frontends.onnx.read import graph_of_bytes
from polyloom.frontends.onnx.tensors import Place
from polyloom.sources import load_model

EMPTY_NODES = 16 << 20


def light() -> list[Path]:
    import onnx

    folder = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    return sorted(folder.glob("*.onnx"))


def one(path: str, sizes: dict[str, str]) -> str:
    started = time.perf_counter()
    if path == "hostile":
        body = b"\x0a\x00" * EMPTY_NODES
        data = b"\x3a" + _varint(len(body)) + body
        try:
            graph_of_bytes(data, "it", Place(None))
        except PolyloomError as refused:
            what = refused.diagnostics[0].notes[0]
    else:
        program = load_model(path, sizes).program
        what = f"{len(program.statements)} statements"
    seconds = time.perf_counter() - started
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return f"{Path(path).name:32} {seconds:6.2f} s {megabytes:6} MiB  {what}"


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


def main() -> None:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("models", nargs="*")
    parser.add_argument("-D", dest="sizes", action="append", default=[])
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        print(one(options.models[0], dict(s.split("=") for s in options.sizes)))
        return
    sizes = [part for s in options.sizes for part in ("-D", s)]
    for path in options.models or [*map(str, light()), "hostile"]:
        subprocess.run([sys.executable, __file__, path, *sizes, "--here"], check=True)


if __name__ == "__main__":
    main()
