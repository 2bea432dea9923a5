"""Rewrites the README's figures: counts from the test runner, cycles from benchmarks/wafer_cycles.json.

Usage: python benchmarks/readme.py. A test compares the cycles in the README with the golden file.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import counts

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
GOLDEN = Path(__file__).with_name("wafer_cycles.json")
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


def with_cycles(text: str) -> str:
    """Return the README's text with the cycles of the golden file."""
    golden = json.loads(GOLDEN.read_text())
    text = with_section(text, "cycles", cycles_table(golden, SHOWN))
    return with_section(text, "all cycles", cycles_table(golden, {name: f"`{name}`" for name in golden}))


def main() -> None:
    text = with_cycles(README.read_text())
    README.write_text(with_section(text, "counts", counts.table()))


if __name__ == "__main__":
    main()
