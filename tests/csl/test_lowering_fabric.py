"""What programs do with wavelets, tasks, FIFOs and registers: one PE that sends to itself."""

from __future__ import annotations

import numpy as np
import pytest
from csl_runs import HEAD, Run, results

LOOP = (
    HEAD
    + """
    param memcpy_params = {};
    const ctrl = @import_module("<control>");
    const there = @get_color(3);
    const oq = @get_output_queue(2); const iq = @get_input_queue(3);
    const done_id = @get_local_task_id(12);
    const wse3 = @is_arch("wse3");
    comptime {
      @set_local_color_config(there, .{ .routes = .{ .rx = .{RAMP}, .tx = .{RAMP} } });
      @initialize_queue(iq, .{ .color = there });
      @initialize_queue(oq, if (wse3) .{ .color = there } else .{});
      @bind_local_task(done, done_id); @export_symbol(p, "out"); @export_symbol(main);
    }
    fn to_self(comptime n: u16) fabout_dsd {
      return @get_dsd(fabout_dsd, if (wse3) .{ .extent = n, .output_queue = oq }
                                  else .{ .extent = n, .output_queue = oq, .fabric_color = there });
    }
    const from_self = @get_dsd(fabin_dsd, .{ .extent = 4, .input_queue = iq });
    task done() void { sys.unblock_cmd_stream(); }
"""
)
STREAM = """
    var out = [4]f32 { 1.0, 2.0, 3.0, 4.0 };
    var p: [*]f32 = &out;
    const d = @get_dsd(mem1d_dsd, .{ .base_address = &out, .extent = 4 });
"""


@pytest.mark.parametrize("arch", ["wse2", "wse3"])
def test_streams_beside_the_main_thread(arch: str) -> None:
    body = """
      fn main() void {
        @fmovs(to_self(4), d, .{ .async = true });
        @fmuls(d, from_self, 10.0, .{ .async = true, .activate = done });
      }"""
    assert results(LOOP + STREAM + body, np.float32, 4, arch) == [10.0, 20.0, 30.0, 40.0]


@pytest.mark.parametrize("arch", ["wse2", "wse3"])
def test_registers_carry_options_and_a_local_task_is_unblocked(arch: str) -> None:
    body = """
      const to = @get_dsr(dsr_dest, 2); const from = @get_dsr(dsr_src1, 2);
      const in_to = @get_dsr(dsr_dest, 3); const in_from = @get_dsr(dsr_src1, 3);
      fn main() void {
        @block(done_id); @activate(done_id);
        @load_to_dsr(to, to_self(4), .{ .async = true });
        @load_to_dsr(from, d);
        @mov32(to, from, .{ .async = true });
        @load_to_dsr(in_to, @set_dsd_base_addr(d, &twice));
        @load_to_dsr(in_from, from_self, .{ .async = true, .unblock = done_id });
        @mov32(in_to, in_from, .{ .async = true });
      }
      var twice = @zeros([4]f32);
      var q: [*]f32 = &twice;
      comptime { @export_symbol(q, "twice"); }
    """
    run = Run(LOOP + STREAM + body, arch)
    run.call("main")
    assert run.array("twice", np.float32, 4).tolist() == [1.0, 2.0, 3.0, 4.0]


TASKS = """
    var out = @zeros([4]u16);
    var p: [*]u16 = &out;
    const pairs = [2]u32 { (5 << 16) | 1, (9 << 16) | 3 };
    const pairs_dsd = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{2} -> pairs[i] });
    const data_id = if (wse3) @get_data_task_id(iq) else @get_data_task_id(there);
    task data(low: u16, high: u16) void { out[low] = high; }
    task end(given: u16) void { out[0] = given; @activate(done_id); }
    fn control() fabout_dsd {
      return @get_dsd(fabout_dsd, if (wse3) .{ .extent = 1, .control = true, .output_queue = oq }
          else .{ .extent = 1, .control = true, .output_queue = oq, .fabric_color = there });
    }
    comptime { @bind_data_task(data, data_id); @bind_control_task(end, @get_control_task_id(40)); }
    fn main() void {
      @mov32(to_self(2), pairs_dsd);
      @mov32(control(), ctrl.encode_single_payload(ctrl.opcode.NOP, false, @get_control_task_id(40), 77));
    }
"""


@pytest.mark.parametrize("arch", ["wse2", "wse3"])
def test_data_and_control_tasks(arch: str) -> None:
    assert results(LOOP + TASKS, np.uint16, 4, arch) == [77, 5, 0, 9]


def test_a_fifo_between_two_streams() -> None:
    body = """
      var buffer = @zeros([8]f32);
      const fifo = @allocate_fifo(buffer);
      const there_in = @get_dsd(fabin_dsd, .{ .extent = 4, .input_queue = iq });
      fn main() void {
        @fmovs(to_self(4), d, .{ .async = true });
        @fnegs(fifo, there_in, .{ .async = true });
        @fmovs(back, fifo, .{ .async = true, .activate = done });
      }
      const other = @get_color(4);
      const oq2 = @get_output_queue(4); const iq2 = @get_input_queue(5);
      const back = @get_dsd(fabout_dsd, .{ .extent = 4, .output_queue = oq2, .fabric_color = other });
      task arrived(value: f32) void { out[n] = value; n += 1; }
      var n: u16 = 0;
      comptime {
        @set_local_color_config(other, .{ .routes = .{ .rx = .{RAMP}, .tx = .{RAMP} } });
        @initialize_queue(oq2, .{}); @initialize_queue(iq2, .{ .color = other });
        @bind_data_task(arrived, @get_data_task_id(other));
      }
    """
    run = Run(LOOP + STREAM + body)
    run.call("main")
    run.fabric.run()
    assert run.array("out", np.float32, 4).tolist() == [-1.0, -2.0, -3.0, -4.0]


def test_four_dimensions_and_a_zero_stride() -> None:
    body = """
      var cube = [2, 2, 2]f32 { 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0 };
      const all = @get_dsd(mem4d_dsd, .{ .tensor_access = |i, j, k|{2, 2, 2} -> cube[k, i, j] });
      const into = @get_dsd(mem4d_dsd, .{ .tensor_access = |i, j, k|{2, 2, 2} -> out[2 * i + j] });
      fn main() void { @fadds(into, into, all); sys.unblock_cmd_stream(); }
    """
    assert results(LOOP + STREAM + body, np.float32, 4) == [1.0 + 6, 2.0 + 8, 3.0 + 10, 4.0 + 12]


@pytest.mark.parametrize("steps", ["", ".strides = .{ 1, j }, "])
def test_four_dimensions_of_sizes_known_at_run_time(steps: str) -> None:
    """Without steps the first n x m numbers in a row; with them each row begins j behind the last element."""
    body = f"""
      var cube = [3, 4]f32 {{ 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0 }};
      var n: u16 = 2; var m: u16 = 2; var j: i16 = 3;
      fn main() void {{
        const part = @get_dsd(mem4d_dsd, .{{ .base_address = &cube, .extents = .{{ n, m }}, {steps} }});
        const into = @get_dsd(mem1d_dsd, .{{ .tensor_access = |i|{{4}} -> out[i] }});
        @fmovs(into, part);
        sys.unblock_cmd_stream();
      }}
    """
    cube = np.arange(1.0, 13.0, dtype=np.float32)
    starts = (0, 2) if not steps else (0, 1 + 3)
    expected = [float(cube[start + k]) for start in starts for k in (0, 1)]
    assert results(LOOP + STREAM + body, np.float32, 4) == expected


def test_an_index_moves_the_operands_that_say_so() -> None:
    body = """
      const m = [3, 2]f32 { 1.0, 2.0, 3.0, 4.0, 5.0, 6.0 };
      const column = @get_dsd(mem1d_dsd, .{
        .tensor_access = |i|{3} -> m[i, 0], .wavelet_index_offset = true });
      const three = @get_dsd(mem1d_dsd, .{ .base_address = &out, .extent = 3 });
      var j: u16 = 1;
      fn main() void { @fmacs(three, three, column, 10.0, .{ .index = 2 * j }); sys.unblock_cmd_stream(); }
    """
    assert results(LOOP + STREAM + body, np.float32, 4) == [21.0, 42.0, 63.0, 4.0]


@pytest.mark.parametrize("where", ["comptime", "main"])
@pytest.mark.parametrize(("low", "order"), [("first", [2, 0, 1]), ("second", [0, 2, 1])])
def test_tasks_of_low_priority_wait_for_the_others(low: str, order: list[int], where: str) -> None:
    """Three tasks are active at once, which without priorities run in the order of their ids."""
    update = f"config.task_priority.update_task_priority({low}_id, config.task_priority.level.LOW);"
    text = f"""{HEAD}
    const config = @import_module("<tile_config>");
    const first_id = @get_local_task_id(9);
    const second_id = @get_local_task_id(10);
    const other_id = @get_local_task_id(11);
    var out = @zeros([3]u16);
    var p: [*]u16 = &out;
    var count: u16 = 0;
    fn note(number: u16) void {{
      out[number] = count;
      count += 1;
      if (count == 3) {{ sys.unblock_cmd_stream(); }}
    }}
    task first() void {{ note(0); }}
    task second() void {{ note(1); }}
    task other() void {{ note(2); }}
    fn main() void {{
      {update if where == "main" else ""}
      @activate(second_id); @activate(first_id); @activate(other_id);
    }}
    comptime {{
      @bind_local_task(first, first_id); @bind_local_task(second, second_id);
      @bind_local_task(other, other_id);
      {update if where == "comptime" else ""}
      @export_symbol(p, "out"); @export_symbol(main);
    }}"""
    assert results(text, np.uint16, 3) == order
