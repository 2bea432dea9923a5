#!/bin/sh
# Shows both halves of Polyloom: sh examples/demo.sh [COMMAND [FOLDER]]
# COMMAND is `polyloom` where nothing is given; what is written goes into FOLDER, or a temporary one.
set -eu
polyloom=${1:-polyloom}
examples=$(cd "$(dirname "$0")" && pwd)
out=${2:-$(mktemp -d)}

title() { printf '\n== %s\n\n' "$1"; }

title "A 1-D convolution on two processing elements: every stage, with its sets"
$polyloom explain "$examples/conv1d.lair" --map "$examples/conv1d.map"
title "The C that each of them runs"
rm -rf "$out/conv1d"
$polyloom compile "$examples/conv1d.lair" --map "$examples/conv1d.map" --target wafer -o "$out/conv1d"
cat "$out/conv1d/C_0.c"
title "Simulated, with loops only"
$polyloom simulate "$examples/conv1d.lair" --map "$examples/conv1d.map" --simd off --check
title "Simulated, with SIMD instructions"
$polyloom simulate "$examples/conv1d.lair" --map "$examples/conv1d.map" --check --report "$out/conv1d.html"
title "A matrix product in C, on the processor"
$polyloom devices
$polyloom run "$examples/c/gemm.c" --param n=640 --param m=480 --param k=320 --check
title "Next"
echo "Open $out/conv1d.html in a browser; docs/tour.md goes on from here."
