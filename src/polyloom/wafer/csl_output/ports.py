"""PEs around the rectangle, where tensors come in and go out: the host fills and reads their memory.

A PE beside the border plays the part of the outside: it sends what the host put into its memory, with an end
of chunk behind each chunk of a sparse tensor, and keeps what arrives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, count

import islpy as isl

from polyloom.wafer.csl_output.limits import FIRST_CONTROL_TASK, input_queue, local_tasks, output_queue
from polyloom.wafer.csl_output.text import TIMING
from polyloom.wafer.host.transfers import port_orders
from polyloom.wafer.mapping.grid import Grid, Side
from polyloom.wafer.program.port_groups import PortGroup
from polyloom.wafer.program.wafer_program import WaferProgram


@dataclass(frozen=True)
class Passing:
    """A tensor at the ports of one side. ``capacity``: most elements at one port in an invocation;
    ``chunks``: of a sparse tensor, at one port in an invocation.
    """

    group: PortGroup
    inward: bool
    capacity: int
    chunks: int

    @property
    def name(self) -> str:
        """What the tensor is called in a port's program."""
        return f"{self.group.tensor}_{self.group.side.value}"


@dataclass(frozen=True)
class PortRole:
    """External PEs ``pes`` that pass the same tensors."""

    name: str
    pes: isl.Set
    passing: tuple[Passing, ...]


def passing(program: WaferProgram) -> tuple[Passing, ...]:
    """Return what passes the border."""
    grid = program.analysis.border.given.grid
    inward = [_passing(group, True, grid) for group in program.inputs]
    return (*inward, *(_passing(group, False, grid) for group in program.outputs))


def _passing(group: PortGroup, inward: bool, grid: Grid) -> Passing:
    extent = grid.width if group.side.line == "PE_X" else grid.height
    orders = list(port_orders(group.ports, group.side, extent))
    capacity = max((len(order.index) for order in orders), default=1)
    chunks = max((order.chunk_count for order in orders), default=1) if group.sparse else 1
    return Passing(group, inward, capacity, chunks)


def port_roles(all_passing: Sequence[Passing]) -> tuple[PortRole, ...]:
    """Return the roles of external PEs: on each side those that pass the same set of tensors."""
    return tuple(
        role for side in Side for role in _on_side(side, [p for p in all_passing if p.group.side is side])
    )


def _on_side(side: Side, here: Sequence[Passing]) -> Iterator[PortRole]:
    where = [each.group.ports.range_factor_domain().range() for each in here]
    for number in range(len(here), 0, -1):
        for chosen in combinations(range(len(here)), number):
            pes = where[chosen[0]]
            for k in chosen[1:]:
                pes = pes.intersect(where[k])
            for k in set(range(len(here))) - set(chosen):
                pes = pes.subtract(where[k])
            if not pes.is_empty():
                name = "_".join(["port", side.value, *(here[k].group.tensor for k in chosen)])
                yield PortRole(name, pes.coalesce(), tuple(here[k] for k in chosen))


def port_file(role: PortRole, arch: str, data_colors: frozenset[int]) -> str:
    """Return the CSL file of ports. Errors: ``csl-tasks``."""
    ids = iter(local_tasks(2 * len(role.passing), arch, data_colors, role.name))
    queues = {True: map(output_queue, count()), False: map(input_queue, count())}
    parts, bindings = [], []
    for each in role.passing:
        queue, number = next(queues[each.inward]), (next(ids), next(ids))
        text, bound = _sends(each, arch, queue, number) if each.inward else _takes(each, arch, queue, number)
        parts.append(text)
        bindings += bound
    start = "".join(f"  @activate({each.name}_next_id);\n" for each in role.passing if _has_task(each))
    ready = "\n".join(f"  {line}" for line in bindings)
    control = (
        'const ctrl = @import_module("<control>");\n'
        if any(p.inward and p.group.sparse for p in role.passing)
        else ""
    )
    listed = ", ".join(f"{p.group.tensor} {'in' if p.inward else 'out'}" for p in role.passing)
    return f"""\
// Ports on the {role.passing[0].group.side.value} side: {listed}
param memcpy_params;
param invocations: u16;
{"".join(f"param {each.name}_color: color;" + chr(10) for each in role.passing)}
const sys = @import_module("<memcpy/memcpy>", memcpy_params);
{control}
var tensors_left: u16 = 0;
{TIMING}

fn finished() void {{
  tensors_left -= 1;
  if (tensors_left == 0) {{
    ended();
  }}
}}

{chr(10).join(parts)}
fn compute(count: u16) void {{
  began();
  tensors_left = {len(role.passing)};
{start}}}

comptime {{
{ready}
  @export_symbol(cycles_ptr, "cycles");
  @export_symbol(compute, "compute");
}}
"""


def _has_task(each: Passing) -> bool:
    return each.inward or not each.group.sparse


def _color(arch: str, name: str) -> str:
    return f".fabric_color = {name}_color, " if arch == "wse2" else ""


def _sends(each: Passing, arch: str, queue: int, ids: tuple[int, int]) -> tuple[str, list[str]]:
    """Return what sends a tensor in chunks, and its bindings; a dense one is one chunk without an end."""
    n, color = each.name, _color(arch, each.name)
    end = send_end = ""
    if each.group.sparse:
        fields = f".extent = 1, .control = true, {color}.output_queue = {n}_queue"
        end = f"const {n}_end = @get_dsd(fabout_dsd, .{{ {fields} }});\n"
        task = f"@get_control_task_id({FIRST_CONTROL_TASK} + @get_int({n}_color))"
        send_end = f"  @mov32({n}_end, ctrl.encode_control_task_payload({task}));\n"
    chunks = f"{each.chunks} * invocations" if each.group.sparse else "1"
    text = f"""\
const {n}_queue = @get_output_queue({queue});
const {n}_next_id = @get_local_task_id({ids[0]});
const {n}_sent_id = @get_local_task_id({ids[1]});
var {n}_words = @zeros([{each.capacity} * invocations]u32);
var {n}_words_ptr: [*]u32 = &{n}_words;
var {n}_lengths = @zeros([{chunks}]u32);
var {n}_lengths_ptr: [*]u32 = &{n}_lengths;
var {n}_count = @zeros([1]u32);  // chunks, over all invocations
var {n}_count_ptr: [*]u32 = &{n}_count;
var {n}_chunk: u16 = 0;
var {n}_place: i16 = 0;
const {n}_memory = @get_dsd(mem1d_dsd, .{{ .tensor_access = |i|{{1}} -> {n}_words[i] }});
const {n}_out = @get_dsd(fabout_dsd, .{{ .extent = 1, {color}.output_queue = {n}_queue }});
{end}
task {n}_next() void {{
  if ({n}_chunk == @as(u16, {n}_count[0])) {{
    finished();
  }} else {{
    const length = @as(u16, {n}_lengths[{n}_chunk]);
    if (length == 0) {{
      @activate({n}_sent_id);
    }} else {{
      const from = @set_dsd_length(@increment_dsd_offset({n}_memory, {n}_place, u32), length);
      @mov32(@set_dsd_length({n}_out, length), from, .{{ .async = true, .activate = {n}_sent_id }});
    }}
  }}
}}

task {n}_sent() void {{
{send_end}  {n}_place += @as(i16, {n}_lengths[{n}_chunk]);
  {n}_chunk += 1;
  @activate({n}_next_id);
}}
"""
    return text, [
        f"@bind_local_task({n}_next, {n}_next_id);",
        f"@bind_local_task({n}_sent, {n}_sent_id);",
        *([f"@initialize_queue({n}_queue, .{{ .color = {n}_color }});"] if arch == "wse3" else []),
        f'@export_symbol({n}_words_ptr, "{n}_words");',
        f'@export_symbol({n}_lengths_ptr, "{n}_lengths");',
        f'@export_symbol({n}_count_ptr, "{n}_count");',
    ]


def _takes(each: Passing, arch: str, queue: int, ids: tuple[int, int]) -> tuple[str, list[str]]:
    """Return what keeps a tensor that arrives, and its bindings."""
    n = each.name
    head = f"""\
const {n}_queue = @get_input_queue({queue});
var {n}_words = @zeros([{each.capacity} * invocations]u32);
var {n}_words_ptr: [*]u32 = &{n}_words;
"""
    ready = [
        f"@initialize_queue({n}_queue, .{{ .color = {n}_color }});",
        f'@export_symbol({n}_words_ptr, "{n}_words");',
    ]
    if not each.group.sparse:
        text = f"""\
{head}const {n}_next_id = @get_local_task_id({ids[0]});
const {n}_all_id = @get_local_task_id({ids[1]});
var {n}_count = @zeros([1]u32);  // words that come, over all invocations
var {n}_count_ptr: [*]u32 = &{n}_count;
const {n}_memory = @get_dsd(mem1d_dsd, .{{ .tensor_access = |i|{{1}} -> {n}_words[i] }});
const {n}_in = @get_dsd(fabin_dsd, .{{ .extent = 1, .input_queue = {n}_queue }});

task {n}_next() void {{
  const length = @as(u16, {n}_count[0]);
  const here = @set_dsd_length({n}_memory, length);
  @mov32(here, @set_dsd_length({n}_in, length), .{{ .async = true, .activate = {n}_all_id }});
}}

task {n}_all() void {{
  finished();
}}
"""
        ready += [
            f"@bind_local_task({n}_next, {n}_next_id);",
            f"@bind_local_task({n}_all, {n}_all_id);",
            f'@export_symbol({n}_count_ptr, "{n}_count");',
        ]
        return text, ready
    data_id = f"{n}_color" if arch == "wse2" else f"{n}_queue"
    text = f"""\
{head}var {n}_lengths = @zeros([{each.chunks} * invocations]u32);
var {n}_lengths_ptr: [*]u32 = &{n}_lengths;
var {n}_count = @zeros([1]u32);  // chunks that come, over all invocations
var {n}_count_ptr: [*]u32 = &{n}_count;
var {n}_chunk: u16 = 0;
var {n}_place: u16 = 0;
const {n}_word_id = @get_data_task_id({data_id});
const {n}_end_id = @get_control_task_id({FIRST_CONTROL_TASK} + @get_int({n}_color));

task {n}_word(word: u32) void {{
  {n}_words[{n}_place] = word;
  {n}_place += 1;
  {n}_lengths[{n}_chunk] += 1;
}}

task {n}_end() void {{
  {n}_chunk += 1;
  if ({n}_chunk == @as(u16, {n}_count[0])) {{
    finished();
  }}
}}
"""
    ready += [
        f"@bind_data_task({n}_word, {n}_word_id);",
        f"@bind_control_task({n}_end, {n}_end_id);",
        f'@export_symbol({n}_lengths_ptr, "{n}_lengths");',
        f'@export_symbol({n}_count_ptr, "{n}_count");',
    ]
    return text, ready
