"""PyTorch modules that are evaluated in place, and the scales of their parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mmes

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from mmes.integrations.torch import FlatParameters, minimize_module  # noqa: E402
from torch_nets import candidates, loss, net, one_by_one  # noqa: E402


def test_in_place_the_module_holds_the_mean_between_generations() -> None:
    seen = []

    def look(progress: Any) -> None:
        seen.append(np.array_equal(FlatParameters(model).x0, progress.mean.astype(np.float32)))

    options = {"strategy": "adaptive", "max_evaluations": 300, "seed": 1}
    few = {"mode": "in_place", "rows_at_once": 1, "callback": look}
    model = net()
    r = minimize_module(model, loss, 0.05, **options, **few)
    assert len(seen) > 10
    assert all(seen)
    np.testing.assert_array_equal(FlatParameters(model).x0, r.x.astype(np.float32))
    assert "without a population: 1 candidates at a time" in r.kernel
    same = minimize_module(net(), loss, 0.05, mode="loop", **options)
    np.testing.assert_array_equal(r.x, same.x)
    assert r.fun == same.fun


def test_in_place_an_error_leaves_the_module_as_it_was() -> None:
    model, calls = net(), 0
    before = FlatParameters(model).x0

    def failing(model: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls > 30:
            raise OSError("the data are gone")
        return loss(model)

    with pytest.raises(mmes.errors.EvaluationError, match="the data are gone"):
        minimize_module(model, failing, 0.05, mode="in_place", max_evaluations=300, seed=1)
    np.testing.assert_array_equal(FlatParameters(model).x0, before)


def test_in_place_buffers_and_modes_stay() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    kept = [buffer.clone() for buffer in model.buffers()]
    minimize_module(model, loss, 0.05, mode="in_place", training=True, max_evaluations=40, seed=1)
    assert model.training
    for buffer, before in zip(model.buffers(), kept, strict=True):
        assert torch.equal(buffer, before)


def test_in_place_buffers_stay_where_the_loss_raises_or_validates() -> None:
    """Failed before: they were left as the candidate that raised had made them."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    kept, calls = [buffer.clone() for buffer in model.buffers()], 0

    def failing(model: Any) -> Any:
        nonlocal calls
        calls += 1
        value = loss(model)  # the statistics of the batch have changed the buffers
        if calls > 30:
            raise OSError("the data are gone")
        return value

    options = {"mode": "in_place", "training": True, "max_evaluations": 300, "seed": 1}
    with pytest.raises(mmes.errors.EvaluationError, match="the data are gone"):
        minimize_module(model, failing, 0.05, validation=loss, **options)
    for buffer, before in zip(model.buffers(), kept, strict=True):
        assert torch.equal(buffer, before)


def test_in_place_is_chosen_where_no_copy_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    model = net()
    flat = FlatParameters(model)
    objective = flat.objective(loss)
    monkeypatch.setattr("mmes.base.memory.available_bytes", lambda: 4 * 4 * flat.n)
    points = candidates(flat)
    np.testing.assert_allclose(objective(points), one_by_one(flat, points), rtol=1e-6)
    assert objective.mode == "in_place"
    elsewhere = flat.objective(loss, dtype=torch.float64)
    with pytest.raises(RuntimeError):  # the data are float32: but it was not done in place
        elsewhere(points)
    with pytest.raises(ValueError, match="mode='in_place' uses the module as it is"):
        flat.objective(loss, mode="in_place", dtype=torch.float64)


def test_in_place_random_numbers_are_refused_as_elsewhere() -> None:
    def noisy(model: Any) -> Any:
        return loss(model) + torch.rand(())

    with pytest.raises(mmes.errors.EvaluationError, match="draws random numbers"):
        minimize_module(net(), noisy, 0.1, mode="in_place", max_evaluations=20)
    minimize_module(net(), noisy, 0.1, mode="in_place", randomness="different", max_evaluations=20)


def test_scales_are_the_deviations_of_the_tensors() -> None:
    model = net()
    with torch.no_grad():
        model[0].weight.mul_(100)
        model[2].bias.fill_(3.0)
    flat = FlatParameters(model)
    found = flat.unflatten(flat.deviations(), dtype=torch.float64)
    assert all(tensor.unique().numel() == 1 for tensor in found.values())
    floor = found["2.bias"].item()
    wide = model[0].weight.double().std(correction=0).item()
    assert found["0.weight"][0, 0].item() == pytest.approx(wide)
    assert floor == pytest.approx(float(np.sqrt(np.mean([wide**2] * 15 + [0] * 11))) / 10, rel=0.01)
    assert flat.deviations().min() == floor
    options = {"vectorized": True, "max_evaluations": 60, "seed": 1}
    same = mmes.minimize(flat.objective(loss), flat.x0, 0.1, scale=flat.deviations(), **options)
    r = minimize_module(model, loss, 0.1, scale="parameters", max_evaluations=60, seed=1)
    np.testing.assert_array_equal(r.x, same.x)
    with pytest.raises(ValueError, match="scale must be 'parameters' or sizes, not 'layers'"):
        minimize_module(net(), loss, 0.1, scale="layers")
    # A tensor without entries has no size.
    model.register_parameter("none", nn.Parameter(torch.zeros(0)))
    np.testing.assert_array_equal(FlatParameters(model).deviations(), flat.deviations())


def test_scales_of_parameters_that_are_all_alike_are_refused() -> None:
    model = net()
    for parameter in model.parameters():
        nn.init.zeros_(parameter)
    with pytest.raises(ValueError, match="not all alike"):
        minimize_module(model, loss, 0.1, scale="parameters")
