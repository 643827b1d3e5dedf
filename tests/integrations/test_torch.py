"""PyTorch modules: the rows of the table of pitfalls, one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mmes

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from mmes.integrations.precision import LowPrecisionWarning  # noqa: E402
from mmes.integrations.torch import FlatParameters, LoopWarning, minimize_module  # noqa: E402
from torch_nets import X, Y, candidates, loss, net, one_by_one  # noqa: E402


def test_the_lines_of_the_documentation() -> None:
    model = net()
    first = loss(model).item()
    r = minimize_module(model, loss, sigma0=0.05, max_evaluations=2000, seed=1)
    assert r.fun < first / 10
    assert loss(model).item() == pytest.approx(r.fun, rel=1e-5)
    np.testing.assert_array_equal(FlatParameters(model).x0, r.x.astype(np.float32))
    flat = FlatParameters(net())
    same = mmes.minimize(
        flat.objective(loss), flat.x0, 0.05, vectorized=True, max_evaluations=2000, seed=1
    )
    assert same.fun == r.fun


def test_flat_parameters() -> None:
    flat = FlatParameters(net())
    assert flat.names == ("0.weight", "0.bias", "2.weight", "2.bias")
    assert flat.n == 26 == flat.x0.size
    assert flat.x0.dtype == np.float64
    parts = flat.unflatten(candidates(flat))
    assert parts["0.weight"].shape == (6, 5, 3)
    assert flat.unflatten(flat.x0)["0.weight"].equal(flat.module[0].weight)
    with pytest.raises(ValueError, match="26 variables"):
        flat.unflatten(np.zeros(25))


@pytest.mark.parametrize("mode", ["vmap", "loop", "in_place"])
@pytest.mark.parametrize("chunk", [None, 1, 4])
def test_values_are_those_of_the_module(mode: Any, chunk: int | None) -> None:
    flat = FlatParameters(net())
    points = candidates(flat)
    values = flat.objective(loss, chunk, mode=mode)(points)
    assert values.dtype == np.float64
    np.testing.assert_allclose(values, one_by_one(flat, points), rtol=1e-5)


def test_the_loss_may_use_the_module_in_any_way() -> None:
    flat = FlatParameters(net())

    def decayed(model: Any) -> Any:
        penalty = sum(p.square().sum() for p in model.parameters())
        return model[2](model[1](model[0](X))).square().mean() + 0.1 * penalty

    points = candidates(flat)
    values = flat.objective(decayed)(points)
    np.testing.assert_allclose(values, one_by_one(flat, points, decayed), rtol=1e-5)


def test_a_loss_that_is_itself_a_module() -> None:
    class Loss(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.tensor(2.0))

        def forward(self, model: Any) -> Any:
            return self.weight * loss(model)

    flat = FlatParameters(net())
    points = candidates(flat)
    np.testing.assert_allclose(
        flat.objective(Loss())(points), 2 * np.array(one_by_one(flat, points)), rtol=1e-5
    )


def test_frozen_parameters_stay() -> None:
    model = net()
    model[0].requires_grad_(False)
    frozen = model[0].weight.clone()
    flat = FlatParameters(model)
    assert flat.names == ("2.weight", "2.bias")
    minimize_module(model, loss, 0.1, max_evaluations=50, seed=1)
    assert model[0].weight.equal(frozen)


def test_tied_weights_count_once() -> None:
    model = nn.Sequential(nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False))
    model[1].weight = model[0].weight
    flat = FlatParameters(model)
    assert flat.n == 9
    points = candidates(flat)
    for mode in ("vmap", "loop"):
        values = flat.objective(loss, mode=mode)(points)
        np.testing.assert_allclose(values, one_by_one(flat, points), rtol=1e-5)


def test_a_module_in_float32_stays_in_float32() -> None:
    model = net()
    minimize_module(model, loss, 0.1, max_evaluations=50, seed=1)
    assert {p.dtype for p in model.parameters()} == {torch.float32}


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, torch.float64])
def test_other_formats(kind: Any) -> None:
    model = net(kind=kind)

    def loss(model: Any) -> Any:
        return (model(X.to(kind)) - Y.to(kind)).square().mean()

    flat = FlatParameters(model)
    points = candidates(flat)
    rtol = 1e-12 if kind is torch.float64 else 0.05
    np.testing.assert_allclose(
        flat.objective(loss)(points), one_by_one(flat, points, loss), rtol=rtol
    )
    r = minimize_module(model, loss, 0.1, max_evaluations=100, seed=1)
    assert np.isfinite(r.fun)
    assert {p.dtype for p in model.parameters()} == {kind}


def test_computing_in_float64_leaves_the_module_alone() -> None:
    model = net()
    flat = FlatParameters(model)
    values = flat.objective(
        lambda m: (m(X.double()) - Y.double()).square().mean(), dtype=torch.float64
    )(candidates(flat))
    np.testing.assert_allclose(values, one_by_one(flat, candidates(flat)), rtol=1e-5)
    assert {p.dtype for p in model.parameters()} == {torch.float32}


def batch_norm() -> Any:
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(3, 5), nn.BatchNorm1d(5), nn.Linear(5, 1))


def state_of(model: Any) -> dict[str, Any]:
    return {name: tensor.clone() for name, tensor in model.state_dict().items()} | {
        "modes": torch.tensor([part.training for part in model.modules()])
    }


def unchanged(model: Any, before: dict[str, Any]) -> bool:
    after = state_of(model)
    return all(after[name].equal(tensor) for name, tensor in before.items())


def test_batch_normalisation_is_in_evaluation_mode_during_a_call() -> None:
    model = batch_norm()
    model[1](torch.randn(9, 5))  # statistics to notice
    model[0].eval()  # a mixture of modes, to be restored
    flat, before = FlatParameters(model), state_of(model)
    values = flat.objective(loss)(candidates(flat))
    assert unchanged(model, before)
    model.eval()
    np.testing.assert_allclose(values, one_by_one(flat, candidates(flat)), rtol=1e-5)


def test_batch_normalisation_in_training_mode() -> None:
    model = batch_norm()
    flat, before = FlatParameters(model), state_of(model)
    with pytest.raises(RuntimeError, match="batch normalization in training mode"):
        flat.objective(loss, training=True)(candidates(flat))
    values = flat.objective(loss, training=True, mode="loop")(candidates(flat))
    assert unchanged(model, before)
    assert np.isfinite(values).all()


@pytest.mark.parametrize("mode", ["vmap", "loop"])
def test_random_numbers_only_if_asked_for(mode: Any) -> None:
    model = nn.Sequential(nn.Linear(3, 5), nn.Dropout(0.5), nn.Linear(5, 1))
    flat = FlatParameters(model)
    points = np.repeat(flat.x0[None], 4, axis=0)
    assert np.ptp(flat.objective(loss, mode=mode)(points)) < 1e-6  # evaluation mode: no dropout
    with pytest.raises(ValueError, match="draws random numbers"):
        flat.objective(loss, mode=mode, training=True)(points)
    asked = flat.objective(loss, mode=mode, training=True, randomness="different")
    assert np.ptp(asked(points)) > 1e-6


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.LSTM(3, 4, batch_first=True)

    def forward(self, x: Any) -> Any:
        return self.inner(x[None])[0]


def test_what_vmap_cannot_do_is_done_in_a_loop_with_one_warning() -> None:
    flat = FlatParameters(Recurrent())
    objective = flat.objective(lambda m: m(X).square().mean())
    points = candidates(flat)
    with pytest.warns(LoopWarning, match="aten::lstm") as caught:
        values = objective(points)
    assert len(caught) == 1
    assert objective.mode == "loop"
    np.testing.assert_array_equal(objective(points), values)  # no second warning
    np.testing.assert_allclose(
        values, one_by_one(flat, points, lambda m: m(X).square().mean()), rtol=1e-5
    )
    with pytest.raises(RuntimeError, match="lstm"):
        flat.objective(lambda m: m(X).square().mean(), mode="vmap")(points)


def test_a_loss_with_numbers_and_branches_runs_in_the_loop() -> None:
    flat = FlatParameters(net())

    def branching(model: Any) -> float:
        value = loss(model).item()
        return value if value < 1 else 1.0

    with pytest.warns(LoopWarning, match="item"):
        values = flat.objective(branching)(candidates(flat))
    np.testing.assert_allclose(values, one_by_one(flat, candidates(flat), branching), rtol=1e-5)


def test_a_loss_may_differentiate() -> None:
    flat = FlatParameters(net())

    def slope(model: Any) -> Any:
        each = torch.func.vmap(torch.func.grad(lambda x: model(x[None]).sum()))
        return each(X).square().mean()

    values = [flat.objective(slope, mode=mode)(candidates(flat)) for mode in ("vmap", "loop")]
    np.testing.assert_allclose(values[0], values[1], rtol=1e-4)


@pytest.mark.parametrize("kind", [np.asarray, torch.tensor], ids=["array", "tensor"])
def test_steps_that_the_format_swallows_are_told_once(kind: Any) -> None:
    flat = FlatParameters(net())
    objective = flat.objective(loss)
    objective(kind(candidates(flat, step=1e-4)))
    with pytest.warns(LowPrecisionWarning, match=r"float32.*dtype=torch\.float64"):
        objective(kind(candidates(flat, step=1e-8)))
    objective(kind(candidates(flat, step=1e-8)))
    wide = FlatParameters(net(kind=torch.float64))
    wide.objective(lambda m: m(X.double()).mean())(candidates(wide, step=1e-8))


def test_integer_buffers() -> None:
    class Chosen(nn.Module):
        rows: Any

        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(3, 1)
            self.register_buffer("rows", torch.tensor([0, 2, 4]))

        def forward(self, x: Any) -> Any:
            return self.inner(x[self.rows])

    flat = FlatParameters(Chosen())
    chosen = flat.objective(lambda m: m(X.double()).square().mean(), dtype=torch.float64)
    assert np.isfinite(chosen(candidates(flat))).all()


def test_a_buffer_that_the_forward_pass_changes_is_restored() -> None:
    class Counting(nn.Module):
        calls: Any

        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(3, 1)
            self.register_buffer("calls", torch.zeros(()))

        def forward(self, x: Any) -> Any:
            self.calls += 1
            return self.inner(x) + 0 * self.calls

    model = Counting()
    flat, before = FlatParameters(model), state_of(model)
    for mode in ("vmap", "loop"):
        flat.objective(loss, mode=mode)(candidates(flat))
        assert unchanged(model, before)


def test_a_function_is_no_module() -> None:
    with pytest.raises(TypeError, match=r"module must be a torch\.nn\.Module, not <function loss"):
        minimize_module(loss, net(), 0.1)


@pytest.mark.parametrize("own", [{"vectorized": True}, {"x0": [1.0]}, {"fun": loss}])
def test_options_that_it_sets_itself_are_refused(own: Any) -> None:
    with pytest.raises(TypeError, match=f"minimize_module takes no option {next(iter(own))}: the "):
        minimize_module(net(), loss, 0.1, **own)


def test_nothing_to_minimise() -> None:
    with pytest.raises(ValueError, match="nothing to minimise"):
        FlatParameters(nn.Tanh())
    with pytest.raises(ValueError, match="meta"):
        FlatParameters(nn.Linear(3, 1, device="meta"))
    with pytest.raises(ValueError, match="complex"):
        FlatParameters(nn.Linear(3, 1, dtype=torch.complex64))


WRONG = {
    "two numbers": (lambda m: m(X)[:2, 0], ValueError, r"shape \("),
    "complex": (lambda m: m(X).sum() * 1j, TypeError, "complex"),
    "truth": (lambda m: m(X).sum() > 0, TypeError, "bool"),
    "nothing": (lambda m: None, TypeError, "None"),
}


@pytest.mark.filterwarnings("ignore::mmes.integrations.torch.LoopWarning")
@pytest.mark.parametrize("mode", ["auto", "loop", "in_place"])
@pytest.mark.parametrize("wrong", WRONG)
def test_a_loss_that_is_no_number_is_refused_at_the_one_door(wrong: str, mode: Any) -> None:
    returns, kind, words = WRONG[wrong]
    with pytest.raises(kind, match=words) as caught:
        minimize_module(net(), returns, 0.1, mode=mode, max_evaluations=50)
    assert "must return" in str(caught.value)
    with pytest.raises(kind, match=words) as caught:
        minimize_module(net(), loss, 0.1, mode=mode, max_evaluations=50, validation=returns)
    assert "validation" in caught.value.__notes__[0]


def test_an_error_leaves_the_module_as_it_was() -> None:
    model = batch_norm()
    before = state_of(model)

    def fails(model: Any) -> Any:
        raise ArithmeticError("of ours")

    with pytest.raises(mmes.EvaluationError) as caught:
        minimize_module(model, fails, 0.1, max_evaluations=50)
    assert isinstance(caught.value.__cause__, ArithmeticError)
    assert unchanged(model, before)


@pytest.mark.parametrize(
    "wrong", [{"mode": "fast"}, {"randomness": "yes"}, {"chunk": 0}, {"dtype": torch.int32}]
)
def test_wrong_options(wrong: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=f"{next(iter(wrong))} must be"):
        minimize_module(net(), loss, 0.1, **wrong)


def test_the_largest_chunk_that_memory_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    flat = FlatParameters(net())
    monkeypatch.setattr("mmes.base.memory.available_bytes", lambda: 4 * 4 * 4 * flat.n * 3)
    sizes = []

    def watched(model: Any) -> Any:
        sizes.append(1)
        return loss(model)

    values = flat.objective(watched)(candidates(flat, 7))
    assert len(sizes) == 3  # chunks of 3, 3 and 1
    np.testing.assert_allclose(values, one_by_one(flat, candidates(flat, 7)), rtol=1e-5)


def test_out_of_memory_halves_the_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    flat = FlatParameters(net())
    objective = flat.objective(loss)
    whole = objective.values_of

    def too_small(parts: Any) -> Any:
        if len(parts["0.bias"]) > 2:
            raise torch.OutOfMemoryError("as a GPU says it")
        return whole(parts)

    monkeypatch.setattr(objective, "values_of", too_small)
    points = candidates(flat, 7)
    np.testing.assert_allclose(objective(points), one_by_one(flat, points), rtol=1e-5)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu() -> None:
    model = net()
    flat = FlatParameters(model)
    here = {"x": X.cuda(), "y": Y.cuda()}
    values = flat.objective(
        lambda m: (m(here["x"]) - here["y"]).square().mean(), device="cuda"
    )(candidates(flat))  # fmt: skip
    np.testing.assert_allclose(values, one_by_one(flat, candidates(flat)), rtol=1e-3)
    assert {p.device.type for p in model.parameters()} == {"cpu"}
    moved = net().cuda()
    r = minimize_module(
        moved, lambda m: (m(here["x"]) - here["y"]).square().mean(), 0.1, max_evaluations=500
    )
    assert np.isfinite(r.fun)
    assert {p.device.type for p in moved.parameters()} == {"cuda"}
    assert "cuda" in r.kernel
    assert r.x.device.type == "cuda"
    assert r.x.dtype == torch.float32
    with torch.no_grad():
        found = (moved(here["x"]) - here["y"]).square().mean()
    assert float(found) == pytest.approx(r.fun, rel=1e-4)
