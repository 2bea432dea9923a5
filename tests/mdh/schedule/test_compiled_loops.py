"""Loops of open sizes of which the C compiler makes vectors: which those are, and that they stay plain."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from homs import buffers_of, hom_of, matmul

from polyloom.diagnostics import Source
from polyloom.frontends.c import read_c
from polyloom.ir.transform.joining.maps import joined_maps
from polyloom.mdh.compiled import CompiledProgram
from polyloom.mdh.device.devices import DeviceModel, choose_device
from polyloom.mdh.lowering.iterator_names import distinct_iterators
from polyloom.mdh.lowering.program_tree import program_tree
from polyloom.mdh.lowering.tiles.pipeline import scheduled
from polyloom.mdh.native.device import choose, opened
from polyloom.mdh.native.execution import tree_of
from polyloom.mdh.runtime.execution import plain_launch
from polyloom.mdh.schedule.choice import default_schedule
from polyloom.mdh.schedule.schedules import Memory, plain_schedule
from polyloom.mdh.schedule.search_space import ScheduleSpace
from polyloom.mdh.tree.nodes import For, Kind
from polyloom.mdh.tree.rewrite import walk
from polyloom.mdh.tuning.schedule_lookup import TunedEmitter
from polyloom.scop.transform import host_program

MAPS = {
    "records": (
        "const unsigned char s[3 * n], unsigned char d[n]",
        "d[i] = (77 * s[3 * i] + s[3 * i + 1]) >> 8",
    ),
    "pairs": ("const float s[n], float d[2 * n]", "d[2 * i] = s[i] + 1; d[2 * i + 1] = s[i] * s[i]"),
    "triples alike": (
        "const float s[n], float d[3 * n]",
        "d[3 * i] = s[i] * 2; d[3 * i + 1] = s[i] * 3; d[3 * i + 2] = s[i] * 4",
    ),
    "backwards": ("const float s[n], float d[n]", "d[i] = s[n - 1 - i]"),
    "thirds": ("const int s[n], int d[n]", "d[i] = s[i] / 3"),
}
OTHERS = {
    "triples": (
        "const float s[n], float d[3 * n]",
        "d[3 * i] = s[i]; d[3 * i + 1] = s[i] * s[i]; d[3 * i + 2] = s[i] + 1",
    ),
    "far": ("const float s[9 * n], float d[n]", "d[i] = s[9 * i]"),
    "gathered": ("const float s[n], const int k[n], float d[n]", "d[i] = s[k[i]]"),
    "quotients of integers": ("const int s[n], const int t[n], int d[n]", "d[i] = s[i] / t[i]"),
    "powers": ("const float s[n], float d[n]", "d[i] = expf(s[i])"),
}


SUMS = {
    "distances": ("const unsigned char a[n], const unsigned char b[n], int s[1]", "s[0] += abs(a[i] - b[i])"),
    "products": ("const short a[n], const short b[n], int s[1]", "s[0] += a[i] * b[i]"),
    "squares": (
        "const unsigned char a[n], const unsigned char b[n], int s[1]",
        "s[0] += (a[i] - b[i]) * (a[i] - b[i])",
    ),
}
OTHER_SUMS = {
    "elements": ("const unsigned char a[n], int s[1]", "s[0] += a[i]"),
    "products of unsigned shorts": (
        "const unsigned short a[n], const unsigned short b[n], int s[1]",
        "s[0] += a[i] * b[i]",
    ),
    "distances of shorts": ("const short a[n], const short b[n], int s[1]", "s[0] += abs(a[i] - b[i])"),
    "long sums": ("const short a[n], const short b[n], long s[1]", "s[0] += a[i] * b[i]"),
    "far": ("const short a[3 * n], const short b[n], int s[1]", "s[0] += a[3 * i] * b[i]"),
    "maxima": (
        "const short a[n], const short b[n], int s[1]",
        "s[0] = s[0] > a[i] * b[i] ? s[0] : a[i] * b[i]",
    ),
}


def space(parameters: str, body: str, device: DeviceModel, size: str = "n") -> ScheduleSpace:
    text = (
        "#include <math.h>\n#include <stdlib.h>\n"
        f"void f(int n, {parameters}) {{ for (int i = 0; i < {size}; i++) {{ {body}; }} }}"
    )
    found = joined_maps(host_program(next(iter(read_c(Source("f.c", text))))).program)
    return ScheduleSpace(hom=hom_of(found), buffers=buffers_of(found), device=device)


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("threads", [1, 2])
def test_loops_in_vectors_of_the_c_compiler_stay_as_they_are(name: str, threads: int) -> None:
    """They are expected to take as long as vectors do, and their points are shared by threads."""
    found = space(*MAPS[name], choose("native", threads=threads))
    chosen = default_schedule(found.hom, found.buffers, found.device)
    assert (chosen.vector, chosen.private, chosen.group) == (None, (1,), (1 if threads > 1 else 0,))
    vectors = [s for s in found.designs() if s.width > 1]
    assert found.predicted(chosen) < 1.25 * min(map(found.predicted, vectors))


def test_steps_that_nobody_knows_are_taken_for_one() -> None:
    """As gcc does, which has loops for others, too: no vectors of ours are gathered and scattered."""
    found = space(
        "int p, int q, const float s[n][p], float d[n][q]", "d[i][0] += s[i][0]", choose("native", threads=1)
    )
    chosen = default_schedule(found.hom, found.buffers, found.device)
    assert (chosen.vector, chosen.private) == (None, (1,))
    assert all(c.memory is Memory.GLOBAL for c in chosen.inputs)


@pytest.mark.parametrize("name", OTHERS)
def test_other_loops_cost_what_single_points_do(name: str) -> None:
    """Each point takes more than a cycle, at less than 10 GHz."""
    found = space(*OTHERS[name], choose("native", threads=1))
    assert not found.plain_loops
    assert found.predicted(found.plain) > 256 * 1e-10 + found.unbeaten


def test_records_that_are_not_alike_are_stored_in_vectors_of_ours() -> None:
    found = space(*OTHERS["triples"], choose("native", threads=1))
    chosen = default_schedule(found.hom, found.buffers, found.device)
    assert chosen.width > 1 and found.predicted(chosen) < found.predicted(found.plain)


@pytest.mark.parametrize("name", SUMS)
def test_sums_whose_neighbours_an_instruction_adds_up_stay_as_they_are(name: str) -> None:
    found = space(*SUMS[name], choose("native", threads=1))
    assert default_schedule(found.hom, found.buffers, found.device) == found.plain


@pytest.mark.parametrize("name", OTHER_SUMS)
def test_other_sums_have_vectors_of_ours(name: str) -> None:
    found = space(*OTHER_SUMS[name], choose("native", threads=1))
    assert not found.plain_loops
    assert default_schedule(found.hom, found.buffers, found.device).width > 1


@pytest.mark.parametrize("name", SUMS)
def test_sums_of_the_c_compiler_wrap(name: str) -> None:
    """The lowest numbers: sums pass by those of 32 bits. What they start from has either sign."""
    parameters, body = SUMS[name]
    text = f"#include <stdlib.h>\nvoid f(int n, {parameters}) {{ for (int i = 0; i < n; i++) {body}; }}"
    found = host_program(next(iter(read_c(Source("f.c", text))))).program
    kind = found.buffer("a").type.dtype
    a = np.full(70_001, np.iinfo(kind).min, kind)
    b = np.full(70_001, np.iinfo(kind).max if kind.kind == "u" else np.iinfo(kind).min, kind)
    term = {"distances": 255, "products": 2**30, "squares": 255**2}[name]
    run = CompiledProgram(found, opened(choose("native", threads=1)), plain_launch)
    for start in (-5, 2**31 - 1):
        result = run.run(n=len(a), a=a, b=b, s=np.array([start], np.int32)).arrays["s"]
        assert int(result[0]) == (start + term * len(a) + 2**31) % 2**32 - 2**31


def test_known_sizes_and_drivers_of_opencl_have_no_such_loops() -> None:
    assert not space(*MAPS["backwards"], choose("native", threads=1), "1000").plain_loops
    assert not space(*MAPS["backwards"], choose_device("cpu")).plain_loops


def test_threads_share_the_loop_itself() -> None:
    """A group of one point has no loop over its points."""
    text = "void f(int n, const float s[n][n], float d[n][n])"
    text += "{ for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) d[i][j] = s[i][j] + 1; }"
    found = host_program(next(iter(read_c(Source("f.c", text))))).program
    tree = tree_of(found, TunedEmitter().schedule, choose("native", threads=2))
    assert [s.kind for s in walk(tree.body) if isinstance(s, For)] == [Kind.GROUP, Kind.SEQUENTIAL]


def test_work_items_have_the_loop_over_their_groups() -> None:
    """Launches know it by its name."""
    program = matmul(1, 64, 8)
    several = replace(plain_schedule(3, 2), group=(1, 32, 0), items=(1, 32, 1))
    found = program_tree(
        program, lambda hom: scheduled(distinct_iterators(hom, program.by_name), program.by_name, several)
    )
    groups = [s.iterator for s in walk(found.body) if isinstance(s, For) and s.kind is Kind.GROUP]
    assert groups == ["i_group", "j_group"]
