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
from polyloom.wafer.host.transfers import port_orders
from polyloom.wafer.mapping.grid import Grid, Side
from polyloom.wafer.program.port_groups import PortGroup
from polyloom.wafer.program.wafer_program import WaferProgram


@dataclass(frozen=True)
class Passing:
    """A tensor at the ports of one side. ``capacity``: the words that the host reads or writes at one port in
    an invocation; ``chunks``: of a sparse tensor, at one port in an invocation; ``room``: words of a chunk.
    """

    group: PortGroup
    inward: bool
    capacity: int
    chunks: int
    room: int

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
    room = 2 + max((int(order.index[:, -1].max()) for order in orders if len(order.index)), default=0)
    if group.sparse and not inward:
        capacity = chunks * room
    return Passing(group=group, inward=inward, capacity=capacity, chunks=chunks, room=room)


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
    ids = iter(local_tasks(len(role.passing), arch, data_colors, role.name))
    queues = {True: map(output_queue, count()), False: map(input_queue, count())}
    parts, bindings = [], []
    for each in role.passing:
        text, bound = _part(each, arch, next(queues[each.inward]), ids)
        parts.append(text)
        bindings += bound
    start = "".join(f"  {each.name}_begin();\n" for each in role.passing)
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
var tensors_left: u16 = {len(role.passing)};

fn finished() void {{
  tensors_left -= 1;
  if (tensors_left == 0) {{
    sys.unblock_cmd_stream();
  }}
}}

{chr(10).join(parts)}
fn compute(count: u16) void {{
{start}}}

comptime {{
{ready}
  @export_symbol(compute, "compute");
}}
"""


def _part(each: Passing, arch: str, queue: int, ids: Iterator[int]) -> tuple[str, list[str]]:
    """Return what a tensor needs in the file of its ports, and its bindings."""
    if not each.group.sparse:
        return _dense(each, arch, queue, next(ids))
    return (_sends if each.inward else _takes)(each, arch, queue, next(ids))


def _words(each: Passing, arch: str, queue: int) -> tuple[str, list[str]]:
    """Return the queue and the memory of a tensor."""
    n, way = each.name, "output" if each.inward else "input"
    text = f"""\
const {n}_queue = @get_{way}_queue({queue});
var {n}_words = @zeros([{each.capacity} * invocations]u32);
var {n}_words_ptr: [*]u32 = &{n}_words;
"""
    told = [f"@initialize_queue({n}_queue, .{{ .color = {n}_color }});"]
    told = [] if each.inward and arch == "wse2" else told
    return text, [*told, f'@export_symbol({n}_words_ptr, "{n}_words");']


def _out(each: Passing, arch: str, fields: str = "") -> str:
    color = f".fabric_color = {each.name}_color, " if arch == "wse2" else ""
    return f"@get_dsd(fabout_dsd, .{{ .extent = 1, {fields}{color}.output_queue = {each.name}_queue }})"


def _dense(each: Passing, arch: str, queue: int, task: int) -> tuple[str, list[str]]:
    """Return what sends or keeps a dense tensor: one instruction for all samples."""
    n = each.name
    head, ready = _words(each, arch, queue)
    fabric = (
        _out(each, arch)
        if each.inward
        else f"@get_dsd(fabin_dsd, .{{ .extent = 1, .input_queue = {n}_queue }})"
    )
    to, source = ("stream", "memory") if each.inward else ("memory", "stream")
    text = f"""\
{head}const {n}_all_id = @get_local_task_id({task});
var {n}_count = @zeros([1]u32);  // words, over all invocations
var {n}_count_ptr: [*]u32 = &{n}_count;
const {n}_memory = @get_dsd(mem1d_dsd, .{{ .tensor_access = |i|{{1}} -> {n}_words[i] }});
const {n}_stream = {fabric};

fn {n}_begin() void {{
  const length = @as(u16, {n}_count[0]);
  const {to} = @set_dsd_length({n}_{to}, length);
  const {source} = @set_dsd_length({n}_{source}, length);
  @mov32({to}, {source}, .{{ .async = true, .activate = {n}_all_id }});
}}

task {n}_all() void {{
  finished();
}}
"""
    return text, [
        f"@bind_local_task({n}_all, {n}_all_id);",
        *ready,
        f'@export_symbol({n}_count_ptr, "{n}_count");',
    ]


def _sends(each: Passing, arch: str, queue: int, sent: int) -> tuple[str, list[str]]:
    """Return what sends a sparse tensor, an end of chunk behind each chunk, and its bindings."""
    n = each.name
    head, ready = _words(each, arch, queue)
    end = f"@get_control_task_id({FIRST_CONTROL_TASK} + @get_int({n}_color))"
    text = f"""\
{head}const {n}_sent_id = @get_local_task_id({sent});
var {n}_lengths = @zeros([{each.chunks} * invocations]u32);
var {n}_lengths_ptr: [*]u32 = &{n}_lengths;
var {n}_count = @zeros([1]u32);  // chunks, over all invocations
var {n}_count_ptr: [*]u32 = &{n}_count;
var {n}_chunk: u16 = 0;
var {n}_memory = @get_dsd(mem1d_dsd, .{{ .tensor_access = |i|{{1}} -> {n}_words[i] }});
var {n}_out = {_out(each, arch)};
const {n}_end = {_out(each, arch, ".control = true, ")};

fn {n}_begin() void {{
  const count = @as(u16, {n}_count[0]);
  while ({n}_chunk < count) {{
    const length = @as(u16, {n}_lengths[{n}_chunk]);
    if (length > 0) {{
      {n}_out = @set_dsd_length({n}_out, length);
      {n}_memory = @set_dsd_length({n}_memory, length);
      @mov32({n}_out, {n}_memory, .{{ .async = true, .activate = {n}_sent_id }});
      {n}_memory = @increment_dsd_offset({n}_memory, @as(i16, length), u32);
      return;
    }}
    {n}_end_chunk();
  }}
  finished();
}}

fn {n}_end_chunk() void {{
  @mov32({n}_end, ctrl.encode_control_task_payload({end}));
  {n}_chunk += 1;
}}

task {n}_sent() void {{
  {n}_end_chunk();
  {n}_begin();
}}
"""
    return text, [
        f"@bind_local_task({n}_sent, {n}_sent_id);",
        *ready,
        f'@export_symbol({n}_lengths_ptr, "{n}_lengths");',
        f'@export_symbol({n}_count_ptr, "{n}_count");',
    ]


def _takes(each: Passing, arch: str, queue: int, task: int) -> tuple[str, list[str]]:
    """Return what keeps a sparse tensor that arrives, and its bindings.

    Each chunk has a place of its own, one word longer than it can be; an end of chunk ends the instruction.
    """
    n = each.name
    head, ready = _words(each, arch, queue)
    stops = f".on_control = .{{ .activate = {n}_end_id }}"
    text = f"""\
{head}const {n}_end_id = @get_local_task_id({task});
var {n}_count = @zeros([1]u32);  // chunks that come, over all invocations
var {n}_count_ptr: [*]u32 = &{n}_count;
var {n}_left: u16 = 0;
var {n}_memory = @get_dsd(mem1d_dsd, .{{ .tensor_access = |i|{{{each.room}}} -> {n}_words[i] }});
const {n}_stream = @get_dsd(fabin_dsd, .{{ .extent = {each.room}, .input_queue = {n}_queue }});

fn {n}_begin() void {{
  {n}_left = @as(u16, {n}_count[0]);
  @mov32({n}_memory, {n}_stream, .{{ .async = true, {stops} }});
}}

task {n}_end() void {{
  {n}_left -= 1;
  if ({n}_left > 0) {{
    {n}_memory = @increment_dsd_offset({n}_memory, {each.room}, u32);
    @mov32({n}_memory, {n}_stream, .{{ .async = true, {stops} }});
  }} else {{
    finished();
  }}
}}
"""
    return text, [
        f"@bind_local_task({n}_end, {n}_end_id);",
        *ready,
        f'@export_symbol({n}_count_ptr, "{n}_count");',
    ]
