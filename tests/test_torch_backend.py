"""``torch.compile(backend="polyloom")``: forward and backward, graph breaks, and what runs in PyTorch."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
backend = pytest.importorskip("polyloom.torch_backend")
models = pytest.importorskip("torch_models")


@pytest.fixture(autouse=True)
def _anew() -> None:
    torch._dynamo.reset()
    torch.manual_seed(1)


def compiled(call: Any) -> Any:
    return torch.compile(call, backend=backend.polyloom)


def whole(call: Any, *arguments: Any) -> Any:
    """Return what a compiled function gives, of which nothing runs in PyTorch."""
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="a graph runs as PyTorch")
        return compiled(call)(*arguments)


@pytest.mark.parametrize("name", ["resnet18", "vgg", "vit", "gru"])
def test_models_run_and_train(name: str) -> None:
    what, results, gradients = models.checked(models.MODELS[name])
    assert what == "whole" and results.is_right and gradients.is_right


def test_the_comparison_sees_a_wrong_gradient() -> None:
    module, inputs = models.MODELS["lenet"]()
    want = models.gradients(module, module, inputs)[1]
    assert models.difference([2 * g for g in want], want) > 0.5
    assert models.difference([2e-12 * g for g in want], [1e-12 * g for g in want]) > 0.5


@pytest.mark.parametrize(("factor", "is_right"), [(1.0, True), (1.03, False), (0.97, False)])
def test_a_gradient_that_is_a_few_percent_off_is_refused(
    factor: float, is_right: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forward(graph: Any, inputs: Any) -> Any:
        return backend._boxed(graph)

    def backward(graph: Any, inputs: Any) -> Any:
        def call(*arguments: Any) -> Any:
            first, *others = graph(*arguments)
            return [factor * first, *others]

        return backend._boxed(call)

    wrong = backend.aot_autograd(fw_compiler=forward, bw_compiler=backward)
    monkeypatch.setattr(models, "polyloom", wrong)
    what, results, gradients = models.checked(models.MODELS["vgg"])
    assert (what, results.is_right, gradients.is_right) == ("whole", True, is_right)


def test_open_sizes_run_without_compiling_in_pytorch_again() -> None:
    module = torch.nn.Linear(5, 3)
    call = compiled(module)
    for rows in (2, 3, 4, 5, 3):
        x = torch.randn(rows, 5)
        torch.testing.assert_close(call(x), module(x))


def test_graph_breaks_run_as_they_stand() -> None:
    seen = []

    def f(x: Any) -> Any:
        y = torch.relu(x) * 2
        seen.append(float(y.sum()))  # a break: Python looks at a value
        return y + 1 if seen[-1] > 0 else y - 1

    call = compiled(f)
    x = torch.ones(3)
    torch.testing.assert_close(call(x), x * 2 + 1)
    torch.testing.assert_close(call(-x), -x * 0 - 1)


@pytest.mark.parametrize(
    "part", [(slice(None, None, 2),), (slice(None), slice(1, None, 3)), (slice(2, 4, 7), slice(0, 6, 5))]
)
def test_gradients_of_slices_with_steps(part: tuple[slice, ...]) -> None:
    x = torch.randn(5, 7, requires_grad=True)
    factors = torch.arange(x[part].numel()).view(x[part].shape) + 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        (have,) = torch.autograd.grad((compiled(lambda y: y[part] * y[part])(x) * factors).sum(), x)
    (want,) = torch.autograd.grad((x[part] ** 2 * factors).sum(), x)
    torch.testing.assert_close(have, want)


@pytest.mark.parametrize(("stride", "dilation", "more", "groups"), [(2, 1, 1, 1), (1, 3, 2, 2), (3, 2, 2, 1)])
def test_gradients_of_transposed_convolutions_with_room_at_the_end(
    stride: int, dilation: int, more: int, groups: int
) -> None:
    layer = torch.nn.ConvTranspose2d(4, 6, 3, stride, 1, more, groups, dilation=dilation)
    x = torch.randn(2, 4, 5, 4, requires_grad=True)
    found = []
    for call in (lambda x: layer(x).sin(), lambda x: whole(lambda x: layer(x).sin(), x)):
        layer.zero_grad()
        x.grad = None
        with warnings.catch_warnings():
            warnings.filterwarnings("error", message="a graph runs as PyTorch")
            call(x).sum().backward()
        found.append([x.grad, *(p.grad for p in layer.parameters())])
    for want, have in zip(*found, strict=True):
        torch.testing.assert_close(have, want, rtol=1e-4, atol=1e-4)


def test_what_a_graph_asserts_is_checked() -> None:
    def labels(x: Any) -> Any:
        return torch.nn.functional.one_hot(x, 4) * 2

    call = compiled(labels)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="a graph runs as PyTorch")
        assert torch.equal(call(torch.tensor([1, 3, 0])), labels(torch.tensor([1, 3, 0])))
        with pytest.raises(RuntimeError, match="lass values"):
            call(torch.tensor([1, 4, 0]))


def test_inputs_that_change_are_changed() -> None:
    def f(x: Any, y: Any) -> Any:
        x.add_(y)
        y[1:].mul_(2)
        return x.view(2, 2) * 3

    have, want = ([torch.arange(4.0), torch.ones(4)] for _ in range(2))
    torch.testing.assert_close(compiled(f)(*have), f(*want))
    torch.testing.assert_close(have, want)


def test_parameters_that_lie_elsewhere_are_seen() -> None:
    module, x = torch.nn.Linear(3, 2), torch.randn(4, 3)
    call = compiled(module)
    first = torch.randn(3, 2)
    for data in (None, torch.randn(2, 3), first.t(), first.reshape(2, 3)):
        if data is not None:
            module.weight.data = data
        for _ in range(2):
            with torch.no_grad():
                module.weight.mul_(2)
                torch.testing.assert_close(call(x), module(x))


def test_what_cannot_be_expressed_runs_in_pytorch_with_one_remark() -> None:
    def f(x: Any) -> Any:
        return torch.linalg.qr(x @ x.t() + 3)[1] + 1

    call = compiled(f)
    x = torch.randn(3, 3)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for _ in range(3):
            torch.testing.assert_close(call(x), f(x))
    remarks = [str(w.message) for w in said if "runs as PyTorch runs it" in str(w.message)]
    assert len(remarks) == 1 and "linalg_qr" in remarks[0] and "error[model-inexpressible]" in remarks[0]


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("name", ["sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("kind", [torch.float32, torch.int32])
def test_scattering_with_a_reduction(name: str, include_self: bool, kind: Any) -> None:
    x, rows, at = torch.randn(4, 3) * 9, torch.randn(2, 3) * 9, torch.tensor([[0, 2, 2], [0, 1, 3]])

    def f(x: Any, rows: Any) -> Any:
        return x.scatter_reduce(0, at, rows, name, include_self=include_self)

    given = x.to(kind), rows.to(kind)
    torch.testing.assert_close(whole(f, *given), f(*given))


def test_positions_of_two_types() -> None:
    x, i, j = torch.randn(4, 5), torch.tensor([0, 1, 1], dtype=torch.int32), torch.tensor([2, 3, -1])

    def f(x: Any) -> Any:
        return x.index_put((i, j), x[0, :3]), x.index_put((j, i), x[0, :3], accumulate=True), x[i, j]

    torch.testing.assert_close(whole(f, x), f(x))


@pytest.mark.parametrize(
    ("sizes", "strides", "whole"),
    [((2, 3, 1, 4), (12, 4, 12, 1), True), ((4, 6), (1, 4), True), ((3, 2), (1, 1), False)],
    ids=["stride-of-one-element", "transposed", "elements-twice"],
)
def test_as_strided(sizes: tuple[int, ...], strides: tuple[int, ...], whole: bool) -> None:
    """Networks whose channels lie last have it after means and pooling: PyTorch writes it itself."""

    def call(x: Any) -> Any:
        return torch.as_strided(x.permute(2, 0, 1) + 1, sizes, strides) * 2

    x, y = (torch.arange(24.0).view(3, 4, 2).requires_grad_() for _ in range(2))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found, want = compiled(call)(x), call(y)
        for each in (found, want):
            (each * torch.arange(float(each.numel())).view(each.shape)).sum().backward()
    assert torch.equal(found, want) and torch.equal(x.grad, y.grad)
    assert any("runs as PyTorch" in str(w.message) for w in said) is not whole


def test_results_have_the_strides_that_pytorch_traced() -> None:
    """PyTorch takes views of results by them: with others it raised an error, or would see other elements."""

    def f(x: Any, w: Any) -> Any:
        y = torch.nn.functional.conv2d(x, w) + 1
        return y, y.permute(0, 2, 3, 1).view(2, -1)

    x, w = (torch.randn(2, 3, 6, 6), torch.randn(5, 3, 3, 3))
    given = [t.to(memory_format=torch.channels_last).requires_grad_() for t in (x, w)]
    for have, want in zip(compiled(f)(*given), f(*given), strict=True):
        assert have.stride() == want.stride()
        torch.testing.assert_close(have, want)


@pytest.mark.parametrize("like", [True, False])
def test_new_tensors_with_strides_run_here(like: bool) -> None:
    """Layers that normalise channels which lie last make one for their gradients."""

    def f(x: Any) -> Any:
        new = x.new_empty_strided if like else torch.empty_strided
        y = new((3, 4), (1, 3)).copy_(x) * 2
        return y, torch.as_strided(y + 1, (4, 3), (3, 1))

    x = torch.randn(3, 4)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="a graph runs as PyTorch")
        for have, want in zip(compiled(f)(x), f(x), strict=True):
            assert torch.equal(have, want) and have.stride() == want.stride()


def test_tensors_of_other_kinds_run_in_pytorch() -> None:
    x = torch.eye(3).to_sparse_csr()
    graph = backend.Graph(torch.fx.symbolic_trace(lambda a: a), {})
    with pytest.warns(UserWarning, match="torch-tensor"):
        assert graph(x) is x


@pytest.mark.parametrize("given", [None, 0.5])
def test_what_is_no_tensor_and_no_size_runs_in_pytorch(given: Any) -> None:
    graph = backend.Graph(torch.fx.symbolic_trace(lambda a, b: (a + 1, b)), {})
    with pytest.warns(UserWarning, match="torch-tensor"):
        assert graph(torch.zeros(2), given)[1] is given


def test_the_last_elements_are_gathered() -> None:
    x, last = torch.arange(72.0).reshape(2, 36), torch.full((2, 9), 35)
    found = compiled(lambda x, at: torch.gather(x, 1, at))(x, last)
    torch.testing.assert_close(found, torch.gather(x, 1, last))


def test_complex_numbers_run_in_pytorch() -> None:
    def turned(x: Any) -> Any:
        turns = torch.polar(torch.ones(4), torch.arange(4.0))
        return torch.view_as_real(torch.complex(x, -x) * turns)

    x = torch.randn(3, 4)
    with pytest.warns(UserWarning, match="runs as PyTorch runs it"):
        torch.testing.assert_close(compiled(turned)(x), turned(x))


def test_the_entry_point_is_there() -> None:
    from importlib.metadata import entry_points

    found = [e for e in entry_points(group="torch_dynamo_backends") if e.name == "polyloom"]
    if not found:
        pytest.skip("this installation was made before there was the entry point")
    assert found[0].load() is backend.polyloom


def test_integers_beside_floats_in_one_loop() -> None:
    """Of a loop with results of both, ranges are asked of its integers alone."""

    def powers(x: Any) -> Any:
        return x.abs() ** 0.5, x**2, x**3, 2**x, x**-1, x.abs() ** x, (x * 5).long() ** 2

    x = torch.randn(4, 6, requires_grad=True)
    for have, want in zip(compiled(powers)(x), powers(x), strict=True):
        torch.testing.assert_close(have, want)


def test_graphs_are_kept_for_later_processes(tmp_path: Any, monkeypatch: Any) -> None:
    kept = pytest.importorskip("polyloom.function.kept_graphs")
    monkeypatch.setattr(kept, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(kept, "WORTH_SECONDS", 0)
    module, x = torch.nn.Sequential(torch.nn.Linear(5, 3), torch.nn.Softmax(-1)), torch.randn(2, 5)
    want = module(x)
    torch.testing.assert_close(compiled(module)(x), want)
    (file,) = (tmp_path / "graphs").iterdir()

    def called(module: Any) -> tuple[Any, int]:
        torch._dynamo.reset()
        made = []

        def importing(graph: Any) -> Any:
            made.append(graph)
            return whole(graph)

        whole = backend.import_graph
        with monkeypatch.context() as patched:
            patched.setattr(backend, "import_graph", importing)
            return compiled(module)(x), len(made)

    found, made = called(module)
    torch.testing.assert_close(found, want)
    assert not made
    other = torch.nn.Sequential(torch.nn.Linear(5, 3), torch.nn.Softmax(-1))
    found, made = called(other)
    torch.testing.assert_close(found, other(x))
    assert not made
    for others in (torch.nn.LogSoftmax(-1), torch.nn.Softmax(0)):
        found, made = called(torch.nn.Sequential(module[0], others))
        torch.testing.assert_close(found, others(module[0](x)))
        assert made == 1
    file.write_bytes(file.read_bytes()[:-200])
    found, made = called(module)
    torch.testing.assert_close(found, want)
    assert made == 1


def test_constants_of_graphs_are_part_of_what_they_are_kept_under(tmp_path: Any, monkeypatch: Any) -> None:
    kept = pytest.importorskip("polyloom.function.kept_graphs")
    monkeypatch.setattr(kept, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(kept, "WORTH_SECONDS", 0)
    for numbers in ([2.0, 1.0], [3.0, 1.0]):
        torch._dynamo.reset()
        call = compiled(lambda x, numbers=numbers: x * torch.tensor(numbers))
        torch.testing.assert_close(call(torch.ones(2)), torch.tensor(numbers))


@pytest.mark.filterwarnings("ignore:a graph runs as PyTorch")
def test_rules_of_pytorch_that_give_other_numbers_are_left_out() -> None:
    x, labels = torch.randn(2, 4, requires_grad=True), torch.tensor([[3, 0, -1, 1], [1, -1, 0, 2]])

    def loss(x: Any) -> Any:
        return torch.nn.functional.multilabel_margin_loss(x, labels)

    found, want = compiled(loss)(x), loss(x)
    torch.testing.assert_close(found, want)
    torch.testing.assert_close(torch.autograd.grad(found, x), torch.autograd.grad(want, x))


@pytest.mark.filterwarnings("ignore:a graph runs as PyTorch")
def test_random_numbers_of_a_seed_are_those_of_pytorch() -> None:
    def drawn(x: Any) -> Any:
        noise = [torch.empty_like(x).exponential_(), torch.empty_like(x).geometric_(0.3)]
        noise += [torch.empty_like(x).cauchy_(), torch.empty_like(x).log_normal_()]
        return torch.nn.functional.dropout(x, 0.5), *noise

    x = torch.randn(6, 5, requires_grad=True)
    found = []
    for call in (compiled(drawn), drawn):
        torch.manual_seed(3)
        values = call(x)
        found.append((*values, *torch.autograd.grad(values[0].sum(), x)))
    for have, want in zip(*found, strict=True):
        assert torch.equal(have, want)


def test_random_numbers_of_a_part_that_is_computed_again_are_refused_by_name() -> None:
    """PyTorch draws them with a state that it keeps, in operations with groups of results."""

    def part(x: Any) -> Any:
        return torch.nn.functional.dropout(x, 0.5).relu()

    def twice(x: Any) -> Any:
        return torch.utils.checkpoint.checkpoint(part, x, use_reentrant=False)

    x = torch.randn(6, 5, requires_grad=True)
    with pytest.warns(UserWarning, match="rng_state .*: no such operation") as said:
        found = compiled(twice)(x)
        (have,) = torch.autograd.grad(found.sum(), x)
    assert not any("model-broken" in str(w.message) for w in said)
    torch.testing.assert_close(have, 2.0 * (found > 0))


@pytest.mark.parametrize(("activation", "norm_first"), [("relu", False), ("gelu", True)])
def test_an_encoder_layer_that_is_one_operation_runs_here(activation: str, norm_first: bool) -> None:
    layer = torch.nn.TransformerEncoderLayer(
        16, 2, 32, activation=activation, batch_first=True, norm_first=norm_first
    ).eval()
    for part in (layer.norm1, layer.norm2):
        torch.nn.init.normal_(part.weight)
    x = torch.randn(2, 5, 16)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.filterwarnings("error", message="a graph runs as PyTorch")
        torch.testing.assert_close(compiled(layer)(x), layer(x))


ORDERS = [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)]


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_tensors_are_taken_in_the_order_in_which_they_lie(order: tuple[int, ...]) -> None:
    """Without a copy: such calls are repeated in C. Others of the same shape lie otherwise."""

    def call(x: Any, y: Any) -> Any:
        return x.cumsum(0) * y[1] + x.amax(1, keepdim=True)

    traced = torch.fx.symbolic_trace(call)
    x, y = torch.randn(3, 3, 3), torch.randn(2, 3, 3, 3)
    examples = torch.fx.experimental.proxy_tensor.make_fx(traced)(x, y)
    graph = backend.Graph(examples, {})
    moved = x.permute(order)
    for given in (moved, x, moved, moved.clone(), moved[:, ::2, :].expand(3, -1, 3)[:, :1].expand(3, 3, 3)):
        torch.testing.assert_close(graph(given, y)[0], call(given, y))
    programs = graph._made.values()
    assert len(programs) == len({(0, 1, 2), order})
    (taken,) = (p for p in programs if p.places[0][2] == (() if order == (0, 1, 2) else inverse(order)))
    graph(moved, y)
    assert taken.compiled._again is not None


def inverse(order: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(order.index(k) for k in range(len(order)))


def test_a_weight_that_lies_transposed_is_no_copy_in_the_backward_graph(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[Any] = []
    begin = backend._Program.__init__
    monkeypatch.setattr(backend._Program, "__init__", lambda p, *a: (made.append(p), begin(p, *a))[1])
    module = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.Tanh(), torch.nn.Linear(5, 3))
    other, x = models.copy.deepcopy(module), (torch.randn(2, 4),)
    call = compiled(module)
    for _ in range(2):
        have, want = models.gradients(module, call, x), models.gradients(other, other, x)
        torch.testing.assert_close(have, want)
    forward, backward = made
    assert any(order == (1, 0) for _, _, order in backward.places)
    assert forward.compiled._again is not None and backward.compiled._again is not None
