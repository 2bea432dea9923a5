"""Layouts made in Python: regions, ports, paths between them, streams of the host."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polyloom.csl.host.layout.interface import SdkLayout, SdkTarget, get_platform
from polyloom.csl.host.layout.regions import (
    Color,
    Edge,
    IntRectangle,
    IntVector,
    Route,
    RoutingPosition,
    get_edge_routing,
)
from polyloom.csl.host.layout.routing import number_colors
from polyloom.csl.host.modules import sdk_modules
from polyloom.csl.host.options import Options, numbers, pair
from polyloom.csl.host.runtime import SdkRuntime
from polyloom.csl.host.script import run_script
from polyloom.diagnostics import PolyloomError

ADDER = str(Path(__file__).parent / "programs" / "layouts" / "adder.csl")
OUT, INTO = RoutingPosition().set_input([Route.RAMP]), RoutingPosition().set_output([Route.RAMP])


def adder(layout: SdkLayout, name: str, place: tuple[int, int], added: int, edges: tuple[Edge, Edge]) -> Any:
    """Return a region of one PE, and its two ports."""
    region = layout.create_code_region(ADDER, name, 1, 1)
    region.set_param_all("n", 4)
    region.set_param((0, 0), "added", added)
    come, go = region.color("from"), region.color("to")
    region.set_param_all(come)
    region.set_param_all(go)
    region.place(*place)
    return (
        region,
        region.create_input_port(come, edges[0], [INTO], 4),
        region.create_output_port(go, edges[1], [OUT], 4),
    )


@pytest.mark.parametrize("target", SdkTarget)
def test_words_go_through_regions(target: SdkTarget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    platform = get_platform(None, None, target)
    layout = SdkLayout(platform)
    _, first_in, first_out = adder(layout, "first", (1, 1), 10, (Edge.LEFT, Edge.RIGHT))
    second, second_in, second_out = adder(layout, "second", (3, 4), 200, (Edge.LEFT, Edge.TOP))
    second.set_symbol_all("table", np.array([3000, 0], np.uint32), 2, 1)
    layout.connect(first_out, second_in)
    come, go = layout.create_input_stream(first_in), layout.create_output_stream(second_out)
    runtime = SdkRuntime(layout.compile(out_prefix="made"), platform, memcpy_required=False)
    runtime.load()
    runtime.run()
    sent, back = np.arange(4, dtype=np.uint32), np.zeros(4, np.uint32)
    runtime.send(come, sent, nonblock=True)
    runtime.receive(go, back, 4, nonblock=True)
    runtime.stop()
    assert np.array_equal(back, sent + 3210)
    assert runtime.read_symbol(3, 4, "table").tolist() == [3000, 0]


def test_paint_of_ranges_and_edges() -> None:
    layout = SdkLayout(get_platform())
    region = layout.create_code_region("a.csl", "a", 3, 2)
    color, last = Color("c"), RoutingPosition().set_input([Route.WEST]).set_output([Route.RAMP])
    through = last.set_output([Route.RAMP, Route.EAST])
    region.paint_all(color, [through], [get_edge_routing(Edge.RIGHT, [last])])
    region.paint_range(IntRectangle(IntVector(0, 0), IntVector(1, 2)), color, [OUT, last])
    region.paint(IntVector(1, 1), color, [last])
    assert [region.routes[(x, 1), color] for x in range(3)] == [(OUT, last), (last,), (last,)]
    assert region.routes[(1, 0), color] == (through,)


def test_numbers_of_colors() -> None:
    a, b, c, d = Color("a"), Color("b", 0), Color("c"), Color("d")
    assert number_colors([{a, b, c}, {d, c}], 21) == {a: 1, b: 0, c: 2, d: 0}
    with pytest.raises(PolyloomError, match="no color left"):
        number_colors([{a, b, c}], 2)


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (lambda made, a, b: b[0].place(1, 1), "csl-layout-overlap"),
        (lambda made, a, b: made.connect(a[1], b[1]), "csl-layout-connection"),
        (lambda made, a, b: made.create_input_stream(a[2]), "csl-layout-connection"),
        (lambda made, a, b: a[0].set_param((1, 0), "n", 2), "csl-layout-data"),
        (lambda made, a, b: a[0].set_param_all("n"), "csl-layout-data"),
        (lambda made, a, b: a[0].set_symbol_all("table", np.zeros(3), 2, 1), "csl-layout-data"),
        (lambda made, a, b: (a[0].place(0, 1), made.create_input_stream(a[1])), "csl-layout-connection"),
        (lambda made, a, b: (b[0].place(0, 0), made.connect(a[2], b[1])), "csl-layout-connection"),
        (
            lambda made, a, b: (
                setattr(a[2].color, "value", 3),
                setattr(b[1].color, "value", 4),
                made.connect(a[2], b[1]),
            ),
            "csl-layout-color",
        ),
    ],
)
def test_layouts_that_cannot_be(spoil: Any, code: str) -> None:
    layout = SdkLayout(get_platform())
    first = adder(layout, "first", (1, 1), 1, (Edge.LEFT, Edge.RIGHT))
    second = adder(layout, "second", (3, 3), 1, (Edge.LEFT, Edge.RIGHT))
    with pytest.raises(PolyloomError) as fault:
        spoil(layout, first, second)
        layout.compile()
    assert [d.code for d in fault.value.diagnostics] == [code]


def test_options() -> None:
    assert numbers(["a:1,b:-2", "a:0x10"], "--params") == {"a": 16, "b": -2}
    assert pair("8,3", "--fabric-dims") == (8, 3)
    for wrong in (lambda: numbers(["a=1"], "--params"), lambda: pair("8", "--fabric-dims")):
        with pytest.raises(PolyloomError) as fault:
            wrong()
        assert fault.value.diagnostics[0].code == "csl-option"
    options = Options(Path("a"), fabric_size=(8, 3), fabric_offset=(4, 1), memcpy=True)
    options.check_size(1, 1)
    with pytest.raises(PolyloomError, match="9,3") as refused:
        options.check_size(2, 1)
    assert refused.value.diagnostics[0].code == "csl-fabric-size"


def test_a_host_program_is_run_with_the_names_of_the_sdk(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "near.py").write_text("VALUE = 7\n")
    script = tmp_path / "run.py"
    script.write_text(
        "import sys\n"
        "from near import VALUE\n"
        "from cerebras.sdk.runtime.sdkruntimepybind import SdkRuntime, MemcpyDataType, SdkLayout, Color\n"
        "from cerebras.sdk.sdk_utils import memcpy_view\n"
        "from cerebras.sdk.debug.debug_util import debug_util\n"
        "from cerebras.geometry.geometry import IntVector\n"
        "assert __name__ == '__main__'\n"
        "print(sys.argv[1:], VALUE)\n"
        "if sys.argv[1] == 'exit': sys.exit(5)\n"
        "assert sys.argv[1] == 'good', 'bad argument'\n"
    )
    assert run_script(script, ["good", "--name"]) == 0
    assert capsys.readouterr().out == "['good', '--name'] 7\n"
    assert run_script(script, ["exit"]) == 5
    assert run_script(script, ["bad"]) == 1
    err = capsys.readouterr().err
    assert err.endswith("AssertionError: bad argument\n") and "polyloom" not in err
    with pytest.raises(ImportError):
        import cerebras  # type: ignore[import-not-found]
    with sdk_modules():
        import cerebras.sdk  # noqa: F401
    with pytest.raises(PolyloomError) as fault:
        run_script(tmp_path / "none.py", [])
    assert fault.value.diagnostics[0].code == "csl-host-script"
