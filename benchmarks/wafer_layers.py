"""Cycles of layers at sizes that people run, on 256 PEs and more whose memory they fill by a third, with cs2.

Each layer has a map written by hand that leaves open what drives its statements: measured are the last stream
of `iport_map` as the driver, element by element, and the compiler's choice (docs/simd.md). All results are
compared with the evaluator's, bit by bit.

Usage: python benchmarks/wafer_layers.py [--update] [--layer NAME ...]
`--update` keeps what was measured in benchmarks/wafer_layers.json, of which docs/cycles.md has a table.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import click
from automatic_map import what_is_given
from corpus import inputs_of, mistakes, together

from polyloom.diagnostics import Source
from polyloom.frontends.lair.lower import lower
from polyloom.frontends.lair.syntax.parse import parse
from polyloom.ir.program import Program
from polyloom.pipeline import analyse_layer, compile_layer, complete_mapping
from polyloom.wafer.dataflow.tasks import possible_drivers
from polyloom.wafer.machine.model import load_machine
from polyloom.wafer.mapping.mapping import Mapping
from polyloom.wafer.mapping.reader import read_mapping
from polyloom.wafer.simd.decision import SimdOptions
from polyloom.wafer.simulation.lower_bound import limit_of
from polyloom.wafer.simulation.run import simulate_program
from polyloom.workers.crew import Crew
from polyloom.workers.local import crew_of

RESULTS = Path(__file__).with_suffix(".json")


@dataclass(frozen=True)
class Case:
    """A layer and its map as texts. ``sparse``: a stream that is measured as pairs, too.

    ``zeros``: with that many, in percent; ``sparse_map``: a map of its own for that, or empty.
    """

    name: str
    size: str
    layer: str
    map: str
    sparse: str = ""
    zeros: tuple[float, ...] = (0, 50, 90)
    sparse_map: str = ""

    def map_with(self, zeros: float | None) -> str:
        """Return the map for dense streams, None, or for a sparse one with so many zeros."""
        return self.map if zeros is None else f"{self.sparse_map or self.map}sparse: {self.sparse}\n"


@dataclass(frozen=True, kw_only=True)
class Row:
    """``last``: cycles where the last stream drives; ``chosen``: with the compiler's choice, ``drivers``.

    ``limit`` and ``last_limit``: the lower bounds of both, ``single``: that of ``chosen`` as commit 0d3fa25
    had it, with an element in each wavelet; ``busy``: the fraction of the cycles in which the busiest PE
    works; ``link``: in which the busiest link does. ``zeros``: of a sparse stream, in percent.
    ``automatic``: cycles with a map that the compiler chooses for the same rectangle and the same streams,
    ``automatic_limit``: the lower bound of that one, ``automatic_busy``: the fraction as ``busy``;
    None where that was not measured.
    """

    layer: str
    size: str
    pes: int
    memory: float
    zeros: float | None
    last: int
    last_limit: int
    chosen: int
    limit: int
    single: int
    limited_by: str
    busy: float
    link: float
    drivers: str
    automatic: int | None = None
    automatic_limit: int | None = None
    automatic_busy: float | None = None


def _convolution(name: str, size: str, pes: tuple[int, int], tiles: tuple[int, int, int, int, int]) -> Case:
    """Input channels along the columns, output channels along the rows; parts are added to the east.

    ``tiles``: channels in and out of a PE, rows and columns of the result, the filter, and the stride.
    """
    width, height = pes
    cs, ks, n, r, s = tiles
    extent = s * (n - 1) + r
    layer = f"""lair conv(): float16 x[{extent}][{extent}][{cs * width}],
  float16 W[{ks * height}][{r}][{r}][{cs * width}] -> float16 y[{n}][{n}][{ks * height}]
{{ all (k, h, w, rh, rw, c) in ({ks * height}, {n}, {n}, {r}, {r}, {cs * width})
     y[h][w][k] += x[{s}*h + rh][{s}*w + rw][c] * W[k][rh][rw][c] }}"""
    text = f"""size: {{ PE[{width}, {height}] }}
compute_map: {{ conv[k, h, w, rh, rw, c] -> PE[c//{cs}, k//{ks}] }}
iport_map: {{ x[h, w, c] -> [PE[c//{cs}, -1] -> index[c mod {cs}, h, w]] }}
oport_map: {{ y[h, w, k] -> [PE[{width}, k//{ks}] -> index[h, w, k mod {ks}]] }}
"""
    return Case(name, size, layer, text, "x")


def _of_channels(
    name: str, size: str, pes: tuple[int, int], n: int, body: str, out: int, *, both: bool = False
) -> Case:
    """A channel for each PE: ``body`` with its loops; from the north, to the south.

    ``both``: channels of the northern half come and go in the north, the others in the south.
    """
    width, height = pes
    c = width * height
    filters = f", float16 W[3][3][{c}]" if "W[" in body else ""
    layer = f"""lair layer(): float16 x[{c}][{n}][{n}]{filters} -> float16 y[{c}][{out}][{out}]
{{ all (c, h, w, rh, rw) in ({c}, {out}, {out}, {3 if filters else 2}, {3 if filters else 2}) {body} }}"""
    north, south = f"PE[c//{height}, -1]", f"PE[c//{height}, {height}]"
    index = f"index[c mod {height}, h, w]"

    def ports(array: str, whole: str) -> str:
        if not both:
            return f"{array}[c, h, w] -> [{whole} -> {index}]"
        half = height // 2
        first, last = f"c mod {height} < {half}", f"c mod {height} >= {half}"
        sides = ((north, first), (south, last))
        return "; ".join(f"{array}[c, h, w] -> [{side} -> {index}] : {where}" for side, where in sides)

    text = f"""size: {{ PE[{width}, {height}] }}
compute_map: {{ layer[c, h, w, rh, rw] -> PE[c//{height}, c mod {height}] }}
iport_map: {{ {ports("x", north)} }}
oport_map: {{ {ports("y", south)} }}
"""
    return Case(name, size, layer, text)


def _fully_connected(size: str, pes: int, tile: int) -> Case:
    n = pes * tile
    layer = f"""lair ff(): float16 W[{n}][{n}], float16 x[{n}] -> float16 y[{n}]
{{ all (i, j) in ({n}, {n}) y[i] += W[i][j] * x[j] }}"""
    text = f"""size: {{ PE[{pes}, {pes}] }}
compute_map: {{ ff[i, j] -> PE[j//{tile}, i//{tile}] }}
iport_map: {{ x[j] -> [PE[j//{tile}, -1] -> index[j mod {tile}]] }}
oport_map: {{ y[i] -> [PE[{pes}, i//{tile}] -> index[i mod {tile}]] }}
"""
    return Case("fully connected", size, layer, text, "x")


def _transposed(size: str, pes: tuple[int, int], ks: int, n: int) -> Case:
    width, height = pes
    out = 2 * n + 1
    layer = f"""lair fd(): float16 dy[{ks * width}][{n}][{n}], float16 W[{ks * width}][{height}][3][3] ->
  float16 dx[{height}][{out}][{out}]
{{ all (k, c, a, b, r, s) in ({ks * width}, {height}, {n}, {n}, 3, 3)
     dx[c][2*a + r][2*b + s] += dy[k][a][b] * W[k][c][r][s] }}"""
    text = f"""size: {{ PE[{width}, {height}] }}
compute_map: {{ fd[k, c, a, b, r, s] -> PE[k//{ks}, c] }}
iport_map: {{ dy[k, a, b] -> [PE[k//{ks}, -1] -> index[k mod {ks}, a, b]] }}
oport_map: {{ dx[c, h, w] -> [PE[{width}, c] -> index[h, w]] }}
"""
    return Case("transposed convolution", size, layer, text, "dy")


def _layer_norm(size: str, pes: int, rows: int, columns: int) -> Case:
    b, n = pes * rows, pes * columns
    layer = f"""lair norm(): float32 x[{b}][{n}], float32 g[{n}], float32 o[{n}] -> float32 y[{b}][{n}]
{{
  all (b, i) in ({b}, {n}) mean[b] += x[b][i] / {n}
  all (b, i) in ({b}, {n}) c[b][i] = x[b][i] - mean[b]
  all (b, i) in ({b}, {n}) var[b] += c[b][i] * c[b][i] / {n}
  all (b) in ({b}) r[b] = rsqrt(var[b] + 0.00001)
  all (b, i) in ({b}, {n}) y[b][i] = c[b][i] * r[b] * g[i] + o[i]
}}"""
    at = f"PE[i//{columns}, b//{rows}]"
    placed = "; ".join(f"norm_{name}[b, i] -> {at}" for name in ("mean", "c", "var", "y"))
    text = f"""size: {{ PE[{pes}, {pes}] }}
compute_map: {{ {placed}; norm_r[b] -> PE[{pes - 1}, b//{rows}] }}
iport_map: {{ x[b, i] -> [PE[i//{columns}, -1] -> index[b, i mod {columns}]] }}
oport_map: {{ y[b, i] -> [PE[i//{columns}, {pes}] -> index[b, i mod {columns}]] }}
"""
    return Case("layer norm", size, layer, text)


def _softmax(size: str, pes: int, rows: int, columns: int) -> Case:
    m, n = pes * rows, pes * columns
    layer = f"""lair softmax(): float16 x[{m}][{n}] -> float16 y[{m}][{n}]
{{
  all (i, j) in ({m}, {n}) m[i] max= x[i][j]
  all (i, j) in ({m}, {n}) e[i][j] = exp(x[i][j] - m[i])
  all (i, j) in ({m}, {n}) z[i] += float32(e[i][j])
  all (i, j) in ({m}, {n}) y[i][j] = float16(float32(e[i][j]) / z[i])
}}"""
    placed = "; ".join(f"softmax_{name}[i, j] -> PE[j//{columns}, i//{rows}]" for name in "mezy")
    text = f"""size: {{ PE[{pes}, {pes}] }}
compute_map: {{ {placed} }}
iport_map: {{ x[i, j] -> [PE[j//{columns}, -1] -> index[i, j mod {columns}]] }}
oport_map: {{ y[i, j] -> [PE[j//{columns}, {pes}] -> index[i, j mod {columns}]] }}
"""
    return Case("softmax", size, layer, text)


def _attention(size: str, pes: int, tile: int, d: int) -> Case:
    n = pes * tile
    layer = f"""lair attention(): float16 Q0[{n}][{d}], float16 K0[{n}][{d}], float16 V[{n}][{d}]
  -> float32 O[{n}][{d}]
{{
  all (q, t, d) in ({n}, {n}, {d}) S[q][t] += float32(Q0[q][d]) * float32(K0[t][d])
  all (q, t) in ({n}, {n}) A[q][t] = float16(S[q][t] * 0.125)
  all (q, t) in ({n}, {n}) m[q] max= A[q][t]
  all (q, t) in ({n}, {n}) E[q][t] = exp(A[q][t] - m[q])
  all (q, t) in ({n}, {n}) z[q] += float32(E[q][t])
  all (q, t) in ({n}, {n}) P[q][t] = float16(float32(E[q][t]) / z[q])
  all (q, d, t) in ({n}, {d}, {n}) O[q][d] += float32(P[q][t]) * float32(V[t][d])
}}"""
    at = f"PE[t//{tile}, q//{tile}]"
    placed = "; ".join(f"attention_{name}[q, t] -> {at}" for name in ("A", "m", "E", "z", "P"))
    text = f"""size: {{ PE[{pes}, {pes}] }}
compute_map: {{ attention_S[q, t, d] -> {at}; {placed}; attention_O[q, d, t] -> {at} }}
iport_map: {{ Q0[q, d] -> [PE[-1, q//{tile}] -> index[q mod {tile}, d]] }}
oport_map: {{ O[q, d] -> [PE[{pes}, q//{tile}] -> index[q mod {tile}, d]] }}
"""
    return Case("attention, one head", size, layer, text)


def _attention_heads(size: str, n: int, d: int) -> Case:
    """Eight heads, each on two rows of PEs: queries along them, keys along the columns."""
    heads, tile, rows = 8, n // 16, n // 2
    layer = f"""lair attention(): float16 Q0[{heads}][{n}][{d}], float16 K0[{heads}][{n}][{d}],
  float16 V[{heads}][{n}][{d}] -> float32 O[{heads}][{n}][{d}]
{{
  all (h, q, t, d) in ({heads}, {n}, {n}, {d}) S[h][q][t] += float32(Q0[h][q][d]) * float32(K0[h][t][d])
  all (h, q, t) in ({heads}, {n}, {n}) A[h][q][t] = float16(S[h][q][t] * 0.125)
  all (h, q, t) in ({heads}, {n}, {n}) m[h][q] max= A[h][q][t]
  all (h, q, t) in ({heads}, {n}, {n}) E[h][q][t] = exp(A[h][q][t] - m[h][q])
  all (h, q, t) in ({heads}, {n}, {n}) z[h][q] += float32(E[h][q][t])
  all (h, q, t) in ({heads}, {n}, {n}) P[h][q][t] = float16(float32(E[h][q][t]) / z[h][q])
  all (h, q, d, t) in ({heads}, {n}, {d}, {n}) O[h][q][d] += float32(P[h][q][t]) * float32(V[h][t][d])
}}"""
    at = f"PE[t//{tile}, 2*h + q//{rows}]"
    placed = "; ".join(f"attention_{name}[h, q, t] -> {at}" for name in ("A", "m", "E", "z", "P"))
    text = f"""size: {{ PE[16, 16] }}
compute_map: {{ attention_S[h, q, t, d] -> {at}; {placed}; attention_O[h, q, d, t] -> {at} }}
iport_map: {{ Q0[h, q, d] -> [PE[-1, 2*h + q//{rows}] -> index[q mod {rows}, d]] }}
oport_map: {{ O[h, q, d] -> [PE[16, 2*h + q//{rows}] -> index[q mod {rows}, d]] }}
"""
    return Case("attention, eight heads", size, layer, text)


def _batched_product(size: str, n: int, k: int) -> Case:
    """Each of two products on four rows of PEs, which have long pieces of columns of A.

    An instruction runs along these; the results leave on the nearer side.
    """
    rows, columns = n // 4, n // 32
    layer = f"""lair bmm(): float16 A[2][{n}][{k}], float16 B0[2][{k}][{n}] -> float16 C[2][{n}][{n}]
{{ all (b, i, j, k) in (2, {n}, {n}, {k}) C[b][i][j] += A[b][i][k] * B0[b][k][j] }}"""
    row = f"4*b + i//{rows}"
    text = f"""size: {{ PE[32, 8] }}
compute_map: {{ bmm[b, i, j, k] -> PE[j//{columns}, {row}] }}
iport_map: {{ A[b, i, k] -> [PE[-1, {row}] -> index[k, i mod {rows}]];
              B0[b, k, j] -> [PE[j//{columns}, -1] -> index[b, k, j mod {columns}]] }}
oport_map: {{ C[0, i, j] -> [PE[j//{columns}, -1] -> index[i, j mod {columns}]];
              C[1, i, j] -> [PE[j//{columns}, 8] -> index[i, j mod {columns}]] }}
"""
    return Case("batched product", size, layer, text)


def _embedding(size: str, pes: int, words: int, tile: int) -> Case:
    """64 words by number, as a product with rows of zeros and a one: words along the columns.

    As pairs all rows are one chunk: a PE gets four ones, and the end of each row would start a task there.
    """
    v, d = pes * words, pes * tile
    layer = f"""lair embedding(): float16 x[64][{v}], float16 E[{v}][{d}] -> float16 y[64][{d}]
{{ all (t, d, v) in (64, {d}, {v}) y[t][d] += x[t][v] * E[v][d] }}"""
    text = f"""size: {{ PE[{pes}, {pes}] }}
compute_map: {{ embedding[t, d, v] -> PE[v//{words}, d//{tile}] }}
iport_map: {{ x[t, v] -> [PE[v//{words}, -1] -> index[t, v mod {words}]] }}
oport_map: {{ y[t, d] -> [PE[{pes}, d//{tile}] -> index[t, d mod {tile}]] }}
"""
    one_chunk = text.replace("index[t, v", f"index[{words}*t + v")
    return Case("embedding", size, layer, text, "x", (round(100 - 100 / v, 1),), one_chunk)


def cases() -> Iterator[Case]:
    """Yield every layer at two sizes."""
    for size, tile in (("1280 x 1280", 80), ("1920 x 1920", 120)):
        yield _fully_connected(size, 16, tile)
    for n in (32, 40):
        shape = f"{n} x {n}, 32 to 64 channels"
        yield _convolution("convolution 3 x 3", shape, (16, 16), (2, 4, n, 3, 1))
        yield _convolution("convolution 1 x 1", shape, (16, 16), (2, 4, n, 1, 1))
    for n in (20, 26):
        shape = f"{n} x {n}, 32 to 64 channels"
        yield _convolution("convolution 3 x 3, stride 2", shape, (16, 16), (2, 4, n, 3, 2))
    for n in (64, 80):
        depthwise = "y[c][h][w] += x[c][h + rh][w + rw] * W[rh][rw][c]"
        size = f"{n} x {n}, 256 channels"
        yield _of_channels("depthwise 3 x 3", size, (64, 4), n, depthwise, n - 2, both=True)
        pooling = "y[c][h][w] max= x[c][2*h + rh][2*w + rw]"
        yield _of_channels("max pooling", size, (64, 4), n, pooling, n // 2)
    for n in (28, 36):
        yield _transposed(f"{n} x {n}, 32 to 16 channels", (16, 16), 2, n)
    for size, rows, columns in (("256 x 1024", 16, 64), ("320 x 1536", 20, 96)):
        yield _layer_norm(size, 16, rows, columns)
    for size, rows, columns in (("512 x 1024", 32, 64), ("768 x 1024", 48, 64)):
        yield _softmax(size, 16, rows, columns)
    for n in (20, 24):
        yield _attention(f"{16 * n} queries and keys, 64", 16, n, 64)
    for n in (64, 96):
        yield _attention_heads(f"{n} queries and keys, 64", n, 64)
    for n in (384, 512):
        yield _batched_product(f"2 x {n} x 64 x {n}", n, 64)
    for words in (64, 96):
        yield _embedding(f"64 of {16 * words} words, 1536 values", 16, words, 96)


def measured(case: Case, zeros: float | None) -> Row:
    """Compile and simulate a layer in both ways under the map that was written by hand."""
    program = lower(parse(Source(f"{case.name}.lair", case.layer)), None, {})
    text = case.map_with(zeros)
    mapping = read_mapping(Source(f"{case.name}.map", text), program)
    found = _simulated(program, mapping, zeros)
    cycles, limit, single, by, busy, link, drivers, pes, memory = found
    defaults = replace(mapping, trigger=_defaults(program, mapping))
    last, last_limit, *_ = _simulated(program, defaults, zeros) if drivers else found
    return Row(
        layer=case.name,
        size=case.size,
        pes=pes,
        memory=memory,
        zeros=zeros,
        last=last,
        last_limit=last_limit,
        chosen=cycles,
        limit=limit,
        single=single,
        limited_by=by,
        busy=busy,
        link=link,
        drivers=drivers,
    )


def chosen(case: Case, zeros: float | None, crew: Crew) -> dict[str, Any]:
    """Compile and simulate a layer under the map that the compiler chooses; return those fields of a row."""
    program = lower(parse(Source(f"{case.name}.lair", case.layer)), None, {})
    text = case.map_with(zeros)
    given = what_is_given(read_mapping(Source(f"{case.name}.map", text), program))
    choice = complete_mapping(Source("<what is given>", given), program, load_machine("cs2"), crew=crew)
    cycles, limit, _, _, busy, *_ = _simulated(program, choice.mapping, zeros)
    print(
        f"{choice.text}# estimated {choice.candidates[0].cycles:,.0f} cycles, simulated {cycles:,}",
        flush=True,
    )
    return {"automatic": cycles, "automatic_limit": limit, "automatic_busy": busy}


def _defaults(program: Program, mapping: Mapping) -> dict[str, str | None]:
    return {s.name: possible_drivers(program, mapping, s)[0] for s in program.statements}


def _simulated(program: Program, mapping: Mapping, zeros: float | None) -> tuple[Any, ...]:
    machine = load_machine("cs2")
    analysis = analyse_layer(program, mapping, SimdOptions(machine=machine))
    compiled = compile_layer(analysis, machine)
    runs = inputs_of(program, mapping, 1.0 if zeros is None else 1 - zeros / 100, invocations=1)
    found = simulate_program(compiled, together(mapping, runs))
    wrong = mistakes(compiled, mapping, runs, found.outputs)
    if wrong:
        raise SystemExit(f"wrong result: {wrong}")
    drivers = analysis.drivers[0].text.removeprefix("trigger: ") if analysis.drivers else ""
    busy = round(int(found.busy.max()) / found.cycles, 3)
    link = round(found.max_link_use, 3)
    memory = round(found.memory_bytes / machine.memory_bytes, 3)
    single = limit_of(compiled, together(mapping, runs), 1, wavelet_elements=1).cycles
    limits = found.limit.cycles, single, found.limit.by
    return found.cycles, *limits, busy, link, drivers, found.pe_count, memory


def table(rows: list[dict[str, Any]]) -> str:
    """Return the table of docs/cycles.md."""
    titles = [
        *("layer", "size", "PEs", "memory", "zeros", "a stream drives", "chosen", "gain", "limit"),
        *("chosen / limit", "single limit", "chosen / single", "busiest PE", "busiest link"),
        *("chosen map", "/ by hand", "/ its limit", "its busiest PE"),
    ]
    lines = [f"| {' | '.join(titles)} |", f"|---|---|{'---:|' * (len(titles) - 2)}"]
    for row in rows:
        cells = [
            row["layer"] + ("" if "single" in row else " *"),
            row["size"],
            row["pes"],
            f"{row['memory']:.0%}",
            "dense" if row["zeros"] is None else f"{row['zeros']} %",
            f"{row['last']:,}",
            f"{row['chosen']:,}",
            f"{row['last'] / row['chosen']:.2f}",
            f"{row['limit']:,}",
            f"{row['chosen'] / row['limit']:.2f}",
            f"{row.get('single', row['limit']):,}",
            f"{row['chosen'] / row.get('single', row['limit']):.2f}",
            f"{row['busy']:.0%}",
            f"{row['link']:.0%}",
            *_of_chosen_map(row),
        ]
        lines.append(f"| {' | '.join(str(cell) for cell in cells)} |")
    return "\n".join(lines)


def _of_chosen_map(row: dict[str, Any]) -> list[str]:
    cycles = row.get("automatic")
    if cycles is None:
        return [""] * 4
    by_hand, by_limit = cycles / row["chosen"], cycles / row["automatic_limit"]
    return [f"{cycles:,}", f"{by_hand:.2f}", f"{by_limit:.2f}", f"{row['automatic_busy']:.0%}"]


def read_results() -> list[dict[str, Any]]:
    """Return the rows that were measured last."""
    rows: list[dict[str, Any]] = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    return rows


def _keep(row: Row) -> None:
    """Put a row in the place of the one for the same layer, size and data, whose chosen map it keeps."""
    rows = {(r["layer"], r["size"], r["zeros"]): r for r in read_results()}
    key = row.layer, row.size, row.zeros
    new = asdict(row)
    if row.automatic is None:
        new |= {k: v for k, v in rows.get(key, {}).items() if k.startswith("automatic")}
    rows[key] = new
    order = [(c.name, c.size) for c in cases()]
    kept = sorted(
        rows.values(),
        key=lambda r: (order.index((r["layer"], r["size"])), -1 if r["zeros"] is None else r["zeros"]),
    )
    lines = ",\n".join(json.dumps(r) for r in kept)
    RESULTS.write_text(f"[\n{lines}\n]\n")


@click.command(help=__doc__)
@click.option("--layer", "names", multiple=True, help="Only layers whose name begins so.")
@click.option("--first", is_flag=True, help="Only the smaller size of each layer.")
@click.option("--dense", is_flag=True, help="No sparse streams.")
@click.option("--old", is_flag=True, help="Only rows with a star in docs/cycles.md, or not there.")
@click.option("--maps", is_flag=True, help="Chosen maps, beside rows that are there.")
@click.option("--jobs", default=1, show_default=True, help="Maps that are compared at a time.")
@click.option("--update", is_flag=True, help="Keep what was measured.")
def main(
    names: tuple[str, ...], first: bool, dense: bool, old: bool, maps: bool, jobs: int, update: bool
) -> None:
    layers = {case.name for case in cases()}
    if unknown := [name for name in names if not any(layer.startswith(name) for layer in layers)]:
        raise click.BadParameter(f"no layer's name begins with {unknown[0]!r}: {', '.join(sorted(layers))}")
    with crew_of(jobs) as crew:
        _run(names, first, dense, old, maps, update, crew)


def _run(
    names: tuple[str, ...], first: bool, dense: bool, old: bool, maps: bool, update: bool, crew: Crew
) -> None:
    seen: set[str] = set()
    known = {(r["layer"], r["size"], r["zeros"]) for r in read_results() if "single" in r}
    for case in cases():
        again = case.name in seen
        seen.add(case.name)
        if (first and again) or (names and not case.name.startswith(names)):
            continue
        for zeros in (None, *case.zeros) if case.sparse and not dense else (None,):
            if old and (case.name, case.size, zeros) in known:
                continue
            row = _with_chosen_map(case, zeros, crew) if maps else measured(case, zeros)
            print(row, flush=True)
            if update:
                _keep(row)


def _with_chosen_map(case: Case, zeros: float | None, crew: Crew) -> Row:
    """Return a known row, or one measured now, with the map that the compiler chooses."""
    known = (
        r for r in read_results() if (r["layer"], r["size"], r["zeros"]) == (case.name, case.size, zeros)
    )
    row = next((Row(**r) for r in known if "single" in r), None) or measured(case, zeros)
    return replace(row, **chosen(case, zeros, crew))


if __name__ == "__main__":
    main()
