"""Host programs of an appliance: compiled into artifacts, run from them, on this computer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from polyloom.csl.host.client import ClientRuntime, SdkCompiler, SdkLauncher
from polyloom.csl.host.runtime import MemcpyDataType, MemcpyOrder
from polyloom.diagnostics import PolyloomError

AXPY = Path(__file__).parents[2] / "examples" / "csl" / "axpy"
OPTIONS = "--arch=wse3 --fabric-dims=10,4 --fabric-offsets=4,1 --params=width:3,height:2,n:64 --memcpy -o o"


@pytest.mark.slow
@pytest.mark.ci
def test_a_program_is_compiled_launched_and_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with SdkCompiler(disable_version_check=True) as compiler:
        artifact = compiler.compile(str(AXPY), "layout.csl", OPTIONS, "made")
    assert Path(artifact).parent == Path("made")
    (tmp_path / "word.txt").write_text("staged")
    with SdkLauncher(artifact, simulator=True) as launcher:
        launcher.stage("word.txt")
        said = launcher.run("cat word.txt; echo", "cs_python run.py --name o | tee said.txt")
        assert said.startswith("staged") and "as NumPy has it" in said
        launcher.download_artifact("said.txt", str(tmp_path / "fetched" / "said.txt"))
        assert (tmp_path / "fetched" / "said.txt").read_text() in said
        with pytest.raises(PolyloomError) as refused:
            launcher.run("false")
    assert refused.value.diagnostics[0].code == "csl-host-command"
    x = np.arange(3 * 2 * 64, dtype=np.float32)
    how = {"data_type": MemcpyDataType.MEMCPY_32BIT, "order": MemcpyOrder.ROW_MAJOR, "streaming": False}
    with ClientRuntime(artifact, simulator=True) as runner:
        runner.memcpy_h2d(runner.get_id("x"), x, 0, 0, 3, 2, 64, nonblock=False, **how)
        runner.launch("axpy", np.float32(2.0), nonblock=False)
        runner.memcpy_d2h(x, runner.get_id("y"), 0, 0, 3, 2, 64, nonblock=False, **how)
    assert x.tolist() == [2.0 * k for k in range(3 * 2 * 64)]


def test_what_is_refused(tmp_path: Path) -> None:
    (tmp_path / "wrong.csl").write_text("layout { @set_rectangle(0, 1); }")
    for code, wrong in (
        ("csl-host-compile", lambda: SdkCompiler().compile(str(tmp_path), "none.csl")),
        ("csl-host-compile", lambda: SdkCompiler().compile(str(tmp_path), "wrong.csl", "", str(tmp_path))),
        ("csl-host-machine", lambda: SdkLauncher(str(tmp_path))),
        ("csl-host-machine", lambda: ClientRuntime(str(tmp_path))),
        ("csl-host-folder", lambda: ClientRuntime(str(tmp_path), simulator=True)),
        ("csl-host-folder", lambda: SdkLauncher(str(tmp_path), simulator=True).__enter__()),
    ):
        with pytest.raises(PolyloomError) as refused:
            wrong()
        (found,) = refused.value.diagnostics
        assert found.code == code and found.helps
    assert list(tmp_path.glob("cs_*")) == []
