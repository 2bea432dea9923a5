"""Modules of a running PyTorch. Where it is not installed (requirements/torch.txt), its tests are not run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import polyloom
from polyloom.diagnostics import PolyloomError
from polyloom.ir.evaluation.programs import evaluate

pytestmark = pytest.mark.slow


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch", reason="the package torch is not installed")


def assert_same(model: Any, inputs: dict[str, Any], wanted: list[Any]) -> None:
    found = [*model.outputs(evaluate(model.program, model.inputs(inputs))).values()]
    for have, want in zip(found, wanted, strict=True):
        np.testing.assert_allclose(have, want.detach().numpy(), rtol=1e-4, atol=1e-5)


def test_a_module(torch: Any) -> None:
    torch.manual_seed(1)
    nn = torch.nn
    module = nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d(2)
    ).eval()
    x = torch.randn(2, 3, 7, 7)
    model = polyloom.from_torch(module, (x,))
    assert_same(model, {"input": x.numpy()}, [module(x)])


def test_load_takes_a_module_and_examples(torch: Any) -> None:
    module, x = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU()).eval(), torch.randn(2, 4)
    for model in (polyloom.load(module, x), polyloom.load(torch.export.export(module, (x,)))):
        np.testing.assert_allclose(model(x), module(x).detach().numpy(), rtol=1e-4, atol=1e-6)
    with pytest.raises(PolyloomError, match="model-torch"):
        polyloom.load(module)


def test_an_einsum_stays_whole_where_the_rest_is_decomposed(torch: Any) -> None:
    class Module(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any, y: Any) -> Any:
            product = torch.einsum("ijk,jr->ikr", x, y)
            return torch.nn.functional.normalize(product, dim=-1).add_(1)

    x, y = torch.randn(2, 3, 4), torch.randn(3, 5)
    module = Module()
    model = polyloom.from_torch(module, (x, y))
    assert "aten.einsum.default" in {row.op for row in model.rows}
    assert_same(model, {"x": x.numpy(), "y": y.numpy()}, [module(x, y)])


def test_a_module_that_changes_its_buffers(torch: Any) -> None:
    module = torch.nn.BatchNorm1d(3).train()
    x = torch.randn(6, 3)
    model = polyloom.from_torch(module, (x,))
    found = model.outputs(evaluate(model.program, model.inputs({"input": x.numpy()})))
    y = module(x)
    wanted = {"running_mean_new": module.running_mean, "running_var_new": module.running_var}
    for name, array in wanted.items():
        np.testing.assert_allclose(found[name], array.numpy(), rtol=1e-5, atol=1e-6)
    result = next(a for n, a in found.items() if not n.endswith("_new"))
    np.testing.assert_allclose(result, y.detach().numpy(), rtol=1e-4, atol=1e-5)


def test_what_cannot_be_exported(torch: Any) -> None:
    class Module(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            return x if x.sum() > 0 else -x

    with pytest.raises(PolyloomError, match="model-torch"):
        polyloom.from_torch(Module(), (torch.randn(3),))
    with pytest.raises(PolyloomError, match="model-torch"):
        polyloom.from_torch(3)
