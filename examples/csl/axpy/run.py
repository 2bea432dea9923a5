"""Feed the program, run it, and check what it leaves against NumPy."""

import argparse
import json
from pathlib import Path

import numpy as np
from cerebras.sdk.runtime.sdkruntimepybind import MemcpyDataType, MemcpyOrder, SdkRuntime
from cerebras.sdk.sdk_utils import calculate_cycles

parser = argparse.ArgumentParser()
parser.add_argument("--name", required=True, help="the folder that cslc wrote")
folder = parser.parse_args().name
params = json.loads((Path(folder) / "out.json").read_text())["params"]
width, height, n = (int(params[name]) for name in ("width", "height", "n"))

how = {"streaming": False, "order": MemcpyOrder.ROW_MAJOR, "data_type": MemcpyDataType.MEMCPY_32BIT}
x = np.arange(height * width * n, dtype=np.float32)
y = np.ones_like(x)
result = np.zeros_like(x)
stamps = np.zeros(3, np.float32)

runner = SdkRuntime(folder)
runner.load()
runner.run()
runner.memcpy_h2d(runner.get_id("x"), x, 0, 0, width, height, n, nonblock=True, **how)
runner.memcpy_h2d(runner.get_id("y"), y, 0, 0, width, height, n, nonblock=True, **how)
runner.launch("axpy", np.float32(0.5), nonblock=True)
runner.memcpy_d2h(result, runner.get_id("y"), 0, 0, width, height, n, nonblock=False, **how)
runner.memcpy_d2h(stamps, runner.get_id("cycles"), 0, 0, 1, 1, 3, nonblock=False, **how)
runner.stop()

assert np.array_equal(result, np.float32(0.5) * x + y)
print(f"{n} numbers on each of {width} x {height} PEs: {calculate_cycles(stamps)} cycles, as NumPy has it")
