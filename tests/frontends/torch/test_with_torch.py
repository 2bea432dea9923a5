"""Modules of a running PyTorch. Where it is not installed (requirements/torch.txt), its tests are not run."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
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


def test_results_in_types_that_no_archive_names(torch: Any) -> None:
    class Module(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            return {"most": x.max(1), "first": x.topk(2)}

    x = torch.randn(3, 4)
    found = polyloom.load(Module(), x)(x)
    wanted = [*x.max(1), *x.topk(2)]
    assert len(found) == 4
    assert all(torch.equal(a, b) for a, b in zip(found, wanted, strict=True))


def test_a_program_that_pytorch_cannot_take_apart(torch: Any) -> None:
    class Module(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any, y: Any) -> Any:
            try:
                return x + y
            except RuntimeError:  # export keeps the node that failed
                return x

    with pytest.raises(PolyloomError, match="PyTorch cannot take the program apart"):
        polyloom.load(Module(), torch.ones(3), torch.ones(5))


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


def narrow_modules(torch: Any) -> dict[str, tuple[Any, tuple[Any, ...]]]:
    """Modules of bfloat16 with their inputs."""
    nn, kind = torch.nn, torch.bfloat16

    class Mixed(nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any, y: Any) -> Any:
            z = (x * 1.1 + y.to(kind)).add_(3)
            return z.float() + y, torch.where(x > 0, z, 0.3), x.sum(1), z[:, 1:].transpose(0, 1) * 2

    convolution = nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.MaxPool2d(2)
    )
    transformer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    return {
        "linear": (nn.Sequential(nn.Linear(16, 8), nn.GELU(), nn.Linear(8, 4)), (torch.randn(5, 16),)),
        "convolution": (convolution, (torch.randn(2, 3, 8, 8),)),
        "norm": (nn.Sequential(nn.LayerNorm(12), nn.Softmax(-1)), (torch.randn(3, 12),)),
        "mixed": (Mixed(), (torch.randn(3, 4), torch.randn(3, 4))),
        "transformer": (transformer, (torch.randn(2, 5, 8),)),
    }


@pytest.mark.parametrize("name", ["linear", "convolution", "norm", "mixed", "transformer"])
def test_bfloat16_is_rounded_as_pytorch_does(torch: Any, name: str, tmp_path: Path) -> None:
    """Most elements are PyTorch's bit by bit; sums in another order may be rounded to the other side."""
    torch.manual_seed(3)
    module, inputs = narrow_modules(torch)[name]
    module = module.eval().to(torch.bfloat16)
    given = tuple(x.to(torch.bfloat16) if k == 0 else x for k, x in enumerate(inputs))
    with torch.no_grad():
        found = module(*given)
    wanted = found if isinstance(found, tuple) else (found,)
    path = tmp_path / "module.pt2"
    torch.export.save(torch.export.export(module, given), path)
    for model in (polyloom.load(path), polyloom.load(module, *given)):
        results = model(*given)
        have = results if isinstance(results, tuple) else (results,)
        same = 0.0
        for one, other in zip(have, wanted, strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_allclose(one.float().numpy(), other.float().numpy(), rtol=2**-6, atol=2**-7)
            same += (one == other).float().mean().item() / len(wanted)
        assert same > (0.7 if name == "transformer" else 0.9), "PyTorch fuses the whole layer there"


def test_results_are_bfloat16_without_a_package_that_numpy_needs_for_it(
    torch: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    module, x = torch.nn.Linear(4, 3).to(torch.bfloat16).eval(), torch.randn(5, 4).bfloat16()
    rows = torch.export.Dim("rows", min=2, max=64)
    open_rows = torch.export.export(module, (x,), dynamic_shapes=({0: rows},))
    torch.export.save(open_rows, tmp_path / "module.pt2")
    for model in (polyloom.load(module, x), polyloom.load(tmp_path / "module.pt2")):
        for found in (model(x), model.batches(x, size=5)):
            assert found.dtype is torch.bfloat16
            np.testing.assert_allclose(found.float(), module(x).float().detach(), rtol=2**-7, atol=2**-9)


@pytest.mark.parametrize("name", ["linear", "convolution", "mixed"])
def test_torch_compile_takes_bfloat16(torch: Any, name: str) -> None:
    torch.manual_seed(3)
    module, inputs = narrow_modules(torch)[name]
    module = module.eval().to(torch.bfloat16)
    given = tuple(x.to(torch.bfloat16) if k == 0 else x for k, x in enumerate(inputs))
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        found, wanted = torch.compile(module, backend="polyloom")(*given), module(*given)
    for one, other in zip(
        torch.utils._pytree.tree_leaves(found), torch.utils._pytree.tree_leaves(wanted), strict=True
    ):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one.float().numpy(), other.float().numpy(), rtol=2**-6, atol=2**-7)


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"])
@pytest.mark.parametrize("has_types", [True, False])
def test_float8_comes_in_and_is_rounded_as_pytorch_does(
    torch: Any, name: str, has_types: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every code, ties between two, and what lies beyond the largest; with and without NumPy's types."""
    if not has_types:
        monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    kind = getattr(torch, name)

    class Module(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any, y: Any) -> Any:
            return x.t(), x.float() * 2, (y / 3).to(kind), x.to(torch.float8_e5m2).float()

    codes = torch.arange(256, dtype=torch.uint8).view(kind).reshape(32, 8)
    finite = codes.float()[codes.float().isfinite()].sort().values
    ties = torch.cat([(finite[1:] + finite[:-1]) * 1.5, torch.tensor([1e9, -1e9, np.inf, -np.inf, np.nan])])
    module, given = Module(), (codes, ties)
    wanted = module(*given)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        compiled = torch.compile(module, backend="polyloom")(*given)
    for found in (compiled, polyloom.load(module, *given)(*given)):
        for one, other in zip(found, wanted, strict=True):
            assert one.dtype == other.dtype
            torch.testing.assert_close(one.float(), other.float(), rtol=0, atol=0, equal_nan=True)


def writing_modules(torch: Any) -> list[Any]:
    """Functions that write into new memory through views of it, and return or read it afterwards."""

    def columns(x: Any) -> Any:
        y = x * 2
        y[:, 0] = x[:, 1]
        y[:, 3] = 0.5
        y[2].zero_()
        y[1:, 2:].add_(x[1:, 2:])
        return y, y.sum(0)

    def chains(x: Any) -> Any:
        y = x.clone()
        row, turned = y[1], y.transpose(0, 1)
        row[1:3].mul_(3)
        turned[0].exp_()
        y.add_(1)
        return row * 1, turned + 0, y

    def zeros(x: Any) -> Any:
        y = torch.zeros(3, 4)
        y[0].copy_(x[2])
        z = y.unsqueeze(0)
        z.sub_(x)
        return y + 1

    return [columns, chains, zeros]


@pytest.mark.parametrize("number", [0, 1, 2])
def test_writes_through_views_of_new_memory(torch: Any, number: int, tmp_path: Path) -> None:
    function = writing_modules(torch)[number]

    class Module(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            return function(x)

    x, path = torch.randn(3, 4), tmp_path / "module.pt2"
    program = torch.export.export(Module(), (x,))
    assert any("_.default" in str(n.target) or "_.Tensor" in str(n.target) for n in program.graph.nodes)
    torch.export.save(program, path)
    found, wanted = polyloom.load(path)(x), function(x)
    pairs = zip(found, wanted, strict=True) if isinstance(wanted, tuple) else [(found, wanted)]
    for one, other in pairs:
        np.testing.assert_allclose(np.asarray(one), other.numpy(), rtol=1e-5, atol=1e-6)


def test_a_write_that_something_unknown_may_see_is_refused(torch: Any, tmp_path: Path) -> None:
    class Module(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            y = x + 1
            seen = y.view(-1)
            y[0].add_(1)
            return seen * 2

    path = tmp_path / "module.pt2"
    torch.export.save(torch.export.export(Module(), (torch.randn(3, 4),)), path)
    with pytest.raises(PolyloomError, match="add_"):
        polyloom.load(path)


def test_float64_is_interpolated_at_places_of_float64(torch: Any) -> None:
    class Module(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            return torch.nn.functional.interpolate(x, size=[15, 4], mode="bilinear")

    x = torch.randn(1, 2, 5, 3, dtype=torch.float64)
    model = polyloom.from_torch(Module(), (x,))
    (found,) = model.outputs(evaluate(model.program, model.inputs({"x": x.numpy()}))).values()
    np.testing.assert_allclose(found, Module()(x).numpy(), rtol=1e-13)


def test_running_sums_of_powers_with_infinities(torch: Any) -> None:
    class Module(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            return torch.logcumsumexp(x, 1)

    infinite = float("inf")
    x = torch.tensor([[-infinite, -infinite, 1.0, 2.0], [0.5, infinite, 1.0, -infinite]])
    model = polyloom.from_torch(Module(), (x,))
    assert_same(model, {"x": x.numpy()}, [Module()(x)])


@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize(("mode", "rank"), [("bilinear", 2), ("nearest", 2), ("bicubic", 2), ("bilinear", 3)])
def test_grids(torch: Any, mode: str, rank: int, padding: str, *, corners: bool) -> None:
    """Positions between, beside and, of images, no numbers; an image with a NaN and an infinity."""

    class Module(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any, grid: Any) -> Any:
            return torch.nn.functional.grid_sample(x, grid, mode, padding, corners)

    torch.manual_seed(2)
    x, grid = torch.randn(2, 3, *(3, 5, 6)[-rank:]), torch.rand(2, *(2, 4, 7)[-rank:], rank) * 2.6 - 1.3
    x[0, 1].view(-1)[4:6] = torch.tensor([float("nan"), float("inf")])
    if rank == 2:
        grid[1, 0, :3, 0] = torch.tensor([float("nan"), float("inf"), -float("inf")])
    module = Module()
    assert_same(
        polyloom.from_torch(module, (x, grid)), {"x": x.numpy(), "grid": grid.numpy()}, [module(x, grid)]
    )
