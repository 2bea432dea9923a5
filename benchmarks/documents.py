"""Rewrites the tables of the documents that are made from other files.

    python benchmarks/documents.py              cycles in docs/cycles.md and the README, speed in the README,
                                                times of training in docs/python.md
    python benchmarks/documents.py --counts     also counts the tests for docs/reliability.md (half a minute)

The cycles are those of benchmarks/wafer_cycles.json and wafer_layers.json, the speed that of
docs/opencl_benchmarks.md, the times those of benchmarks/torch_times.json. A test compares the documents with
these files; counts change with every test, so they are as they were last made.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import counts
import torch_times
import wafer_layers

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
CYCLES = ROOT / "docs" / "cycles.md"
PYTHON = ROOT / "docs" / "python.md"
SPEED = ROOT / "docs" / "opencl_benchmarks.md"
COUNTS = ROOT / "docs" / "reliability.md"
GOLDEN = Path(__file__).with_name("wafer_cycles.json")
CHOSEN_LAYERS = {
    "ff44 M=32 N=16": "fully connected, 32 x 16, on 4 x 4 PEs",
    "conv2d": "2-D convolution",
    "conv_transposed": "transposed convolution",
    "attention Q=6 T=6 D=4": "attention, one head",
    "maxpool": "max pooling",
}
"""The README's five layers: where SIMD instructions bring most, and where they bring little."""
CHOSEN_WORKLOADS = (
    "MatMul 10 x 500 x 64",
    "MatMul 1024^3",
    "Multi-channel convolution 1, 512 -> 512, 7 x 7, 3 x 3",
    "Gaussian convolution 4096 x 4096, 5 x 5",
    "Dot 2^24",
)
"""The README's five workloads: md_poly's four, and one that waits for memory."""
NATIVE_HEAD = "| workload | Polyloom |"
"""How the table of whole calls as C begins."""
SHOWN = {
    "ff44 M=32 N=16": "fully connected 32 x 16 on 4 x 4 PEs",
    "ff44 M=30 N=13": "the same, 30 x 13: nothing divides",
    "ff44_dense M=32 N=16": "the same, x dense",
    "ff45 M=32 N=16": "all of x at one PE: adapters spread it (Listing 2)",
    "ff55_one_port M=32 N=16": "all of y at one PE as well",
    "fc_batched B=3 M=16 N=8": "fully connected, a batch of 3",
    "gemv_bias M=32 N=16": "with a bias, two statements",
    "training": "forward, both gradients, update",
    "mlp K=8 M=12 N=6": "two layers of a perceptron",
    "conv8": "convolution of the slides, 8 * 3",
    "conv1d": "1-D convolution (Listing 3)",
    "conv1d_dilated": "dilated by 2",
    "conv1d_strided": "stride 2",
    "conv2d": "2-D convolution (Listing 4)",
    "conv1x1": "degenerate convolution (Listing 5)",
    "conv2d_channels": "2-D, channels reduced across PEs",
    "depthwise": "depthwise",
    "conv_transposed": "transposed convolution of the slides",
    "matmul_dense M=6 N=6 K=6": "matrix product, both streaming",
    "maxpool": "max pooling",
    "bias N=16": "bias",
    "relu N=16": "relu",
    "product_streams N=16": "product of two streams",
}


"""Rows of the first table of docs/cycles.md, and what they are called there."""


def cycles_table(golden: dict[str, Any], names: dict[str, str]) -> str:
    """Return rows for the named layers: cycles with loops only and with SIMD, speed-up, limit."""
    head = (
        "| layer | SIMD | off | auto | speed-up | limit | auto / limit | off, half zero | auto, half zero |"
    )
    rows = [_row(names[name], golden[name]) for name in names]
    return "\n".join([head, "|---|---|---:|---:|---:|---:|---:|---:|---:|", *rows])


def _row(title: str, entry: dict[str, Any]) -> str:
    full, half = entry["full"], entry["half"] or {"off": "", "auto": ""}
    ratio = f"{full['auto'] / full['limit']:.1f}" if full["limit"] else ""
    cells = [
        title,
        "; ".join(entry["tasks"]),
        full["off"],
        full["auto"],
        f"{full['off'] / full['auto']:.2f}",
        full["limit"],
        ratio,
        half["off"],
        half["auto"],
    ]
    return f"| {' | '.join(str(cell) for cell in cells)} |"


def with_section(text: str, name: str, body: str) -> str:
    """Replace what stands between the marks of a section."""
    start, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    before, rest = text.split(start)
    return f"{before}{start}\n{body}\n{end}{rest.split(end)[1]}"


def chosen_cycles(golden: dict[str, Any]) -> str:
    """Return the README's rows: cycles with loops only and with SIMD, and the limit."""
    lines = ["| layer | loops only | SIMD | speed-up | limit |", "|---|---:|---:|---:|---:|"]
    for name, title in CHOSEN_LAYERS.items():
        full = golden[name]["full"]
        off, auto = full["off"], full["auto"]
        lines.append(f"| {title} | {off:,} | {auto:,} | {off / auto:.2f} | {full['limit']:,} |")
    return "\n".join(lines)


def chosen_speed(page: str) -> str:
    """Return the README's rows: those of docs/opencl_benchmarks.md for C on the processor."""
    head, rule, *rows = (NATIVE_HEAD + page.split(NATIVE_HEAD)[1].split("\n\n")[0]).splitlines()
    chosen = [row for name in CHOSEN_WORKLOADS for row in rows if row.startswith(f"| {name} |")]
    assert len(chosen) == len(CHOSEN_WORKLOADS)
    return "\n".join([head, rule, *chosen])


def cycles_page(page: str, golden: dict[str, Any]) -> str:
    """Return docs/cycles.md with the cycles of the golden file."""
    page = with_section(page, "cycles", cycles_table(golden, SHOWN))
    page = with_section(page, "real sizes", wafer_layers.table(wafer_layers.read_results()))
    return with_section(page, "all cycles", cycles_table(golden, {name: f"`{name}`" for name in golden}))


def python_page(page: str) -> str:
    """Return docs/python.md with the kept times of training steps."""
    return with_section(page, "training", torch_times.table(r for r in torch_times.read_rows() if r.training))


def readme(page: str, golden: dict[str, Any], speed: str) -> str:
    """Return the README with its two tables."""
    page = with_section(page, "cycles", chosen_cycles(golden))
    return with_section(page, "speed", chosen_speed(speed))


def main() -> None:
    golden = json.loads(GOLDEN.read_text())
    CYCLES.write_text(cycles_page(CYCLES.read_text(), golden))
    PYTHON.write_text(python_page(PYTHON.read_text()))
    README.write_text(readme(README.read_text(), golden, SPEED.read_text()))
    if "--counts" in sys.argv[1:]:
        COUNTS.write_text(with_section(COUNTS.read_text(), "counts", counts.table()))


if __name__ == "__main__":
    main()
