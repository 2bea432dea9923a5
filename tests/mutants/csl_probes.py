"""Probes of CSL programs at run time."""

from __future__ import annotations

import numpy as np
from csl_runs import HEAD, Run

STRUCTS = f"""{HEAD}
param memcpy_params = {{}};
const Pair = struct {{ a: u8, b: u16, c: u8, d: u32, e: u8 }};
var pairs: [3]Pair = @constants([3]Pair, Pair{{ .a = 0, .b = 0, .c = 0, .d = 0, .e = 0 }});
var behind: u16 = 7;
var words: [*]u16 = @ptrcast([*]u16, &pairs);
fn set(k: u16, a: u8, b: u16, c: u8, d: u32) void {{
  pairs[k].a = a;
  pairs[k].b = b;
  pairs[k].c = c;
  pairs[k].d = d;
  pairs[k].e = a;
}}
fn main() void {{
  set(0, 1, 0x0203, 4, 0x51525354);
  set(1, 5, 0x0607, 8, 0x61626364);
  pairs[2] = pairs[0];
  pairs[2].c = @as(u8, behind);
  sys.unblock_cmd_stream();
}}
comptime {{ @export_symbol(words, "words"); @export_symbol(main); }}
"""


def structs_lie_in_words() -> None:
    """Fields of 16 bits begin at words, and so does each struct of an array; copies take all fields."""
    run = Run(STRUCTS)
    run.call("main")
    found = run.array("words", np.uint16, 18).reshape(3, 6)
    assert found[:, 1].tolist() == [0x0203, 0x0607, 0x0203]
    assert (found[:, 0] & 0xFF).tolist() == [1, 5, 1]
    assert (found[:, 2] & 0xFF).tolist() == [4, 8, 7]
    assert found[:, 3:5].tolist() == [[0x5354, 0x5152], [0x6364, 0x6162], [0x5354, 0x5152]]
    assert (found[:, 5] & 0xFF).tolist() == [1, 5, 1]
