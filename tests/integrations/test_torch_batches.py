"""Batches and validation with a PyTorch module, and the examples that use them."""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.utils.data import DataLoader, IterableDataset, TensorDataset  # noqa: E402

import mmes  # noqa: E402
from mmes.integrations.torch import FlatParameters, LoopWarning, minimize_module  # noqa: E402
from paths import ROOT  # noqa: E402

DATA = torch.randn(120, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
LABELS = (DATA.sum(1) > 0).long()


def network() -> nn.Module:
    torch.manual_seed(2)
    return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2)).double()


def loader() -> Any:
    shuffled = torch.Generator().manual_seed(3)
    return DataLoader(TensorDataset(DATA[:100], LABELS[:100]), 20, True, generator=shuffled)


def loss(model: nn.Module, batch: Any) -> torch.Tensor:
    return nn.functional.cross_entropy(model(batch[0]), batch[1])


def errors(model: nn.Module) -> float:
    return float((model(DATA[100:]).argmax(1) != LABELS[100:]).double().mean())


def solve(net: nn.Module, **options: Any) -> mmes.Result:
    start = {"batches": loader(), "seed": 1, "max_generations": 23}
    return minimize_module(net, loss, 0.1, **start | options)


@pytest.mark.parametrize("mode", ["vmap", "loop", "in_place"])
def test_each_generation_has_the_next_batch_of_a_loader(mode: str) -> None:
    net, seen = network(), []

    def watched(model: nn.Module, batch: Any) -> torch.Tensor:
        seen.append(batch[0])
        return loss(model, batch)

    result = minimize_module(
        net, watched, 0.1, batches=loader(), seed=1, max_generations=23, mode=mode
    )
    plain = loader()
    expected = [batch for _ in range(5) for batch, _ in plain][:23]
    different = [seen[0], *(b for a, b in itertools.pairwise(seen) if b is not a)]
    assert len(different) == 23
    assert all(map(torch.equal, different, expected))
    # The module holds what is returned, the mean.
    assert np.array_equal(FlatParameters(net).x0, result.x)
    assert np.array_equal(result.x, result.mean)
    last = expected[-1], (expected[-1].sum(1) > 0).long()
    assert result.fun == pytest.approx(loss(net, last).item())


@pytest.mark.parametrize("mode", ["loop", "in_place"])
def test_validation_sees_the_module_with_the_mean_in_it(mode: str) -> None:
    net, before = network(), network()
    judged: list[tuple[int, np.ndarray]] = []

    def validation(model: nn.Module) -> float:
        assert not model.training
        judged.append((len(judged), torch.cat([p.flatten() for p in model.parameters()]).numpy()))
        return -float(len(judged)) if len(judged) < 4 else 0.0

    means = []
    result = solve(
        net,
        mode=mode,
        validation=validation,
        validation_every=5,
        callback=lambda progress: means.append(np.array(progress.mean)),
    )
    assert np.array_equal(judged[0][1], FlatParameters(before).x0)
    assert np.array_equal(judged[1][1], means[4])
    assert np.array_equal(result.x, means[9])
    assert np.array_equal(FlatParameters(net).x0, result.x)
    assert result.fun == -3.0


def test_a_resumed_run_reads_the_loader_up_to_its_batch(tmp_path: Path) -> None:
    whole = solve(network(), validation=errors)
    path = tmp_path / "run"
    solve(network(), validation=errors, max_generations=13, checkpoint=path)
    net = network()
    resumed = solve(net, validation=errors, checkpoint=path, resume="auto")
    assert np.array_equal(resumed.x, whole.x)
    assert resumed.fun == whole.fun == pytest.approx(errors(net))


class Stream(IterableDataset):
    """Samples one after the other; a loader of them has no length."""

    def __iter__(self) -> Any:
        return iter(zip(DATA[:100], LABELS[:100], strict=True))


def test_a_loader_of_a_stream() -> None:
    streamed = solve(network(), batches=DataLoader(Stream(), 20))
    listed = solve(network(), batches=DataLoader(TensorDataset(DATA[:100], LABELS[:100]), 20))
    assert np.array_equal(streamed.x, listed.x)


def test_a_batch_that_vmap_cannot_do_is_done_in_a_loop() -> None:
    def branching(model: nn.Module, batch: Any) -> torch.Tensor:
        value = loss(model, batch)
        return value if len(batch[0]) > 10 or value > 0 else -value

    batches = [(DATA[:20], LABELS[:20]), (DATA[20:30], LABELS[20:30])]
    with pytest.warns(LoopWarning, match="vmap does not support"):
        found = minimize_module(network(), branching, 0.1, batches=batches, max_generations=4)
    assert found.nit == 4


def test_the_ways_to_evaluate_agree_on_batches() -> None:
    results = [solve(network(), mode=mode) for mode in ("loop", "in_place")]
    results.append(solve(network(), mode="in_place", rows_at_once=2))
    results.append(solve(network(), mode="loop", device=None, chunk=1))
    for result in results[1:]:
        assert np.array_equal(result.x, results[0].x)


def test_on_a_device_the_mean_is_validated_there() -> None:
    def f(points: torch.Tensor, batch: int) -> torch.Tensor:
        return (points - 1).square().sum(1) + batch

    def validation(x: torch.Tensor) -> torch.Tensor:
        assert isinstance(x, torch.Tensor)
        return (x - 1).square().sum()

    result = mmes.minimize(
        f,
        torch.zeros(20, dtype=torch.float64),
        0.3,
        vectorized=True,
        device="cpu",
        batches=lambda number: number,
        validation=validation,
        target=1e-6,
        seed=1,
    )
    assert result.success
    assert isinstance(result.x, torch.Tensor)


@pytest.mark.parametrize(
    ("program", "options", "says"),
    [
        ("language_model.py", ["--steps", "20", "--evaluations", "120"], "tuned without gradients"),
        ("language_model.py", ["--steps", "5", "--evaluations", "60", "--loss", "errors"], "tuned"),
        ("cart_pole.py", ["--evaluations", "100"], "reward"),
    ],
)
def test_examples(program: str, options: list[str], says: str) -> None:
    command = [sys.executable, str(ROOT / "examples" / program), "--small", *options]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert says in done.stdout


def test_two_ranks_with_an_optimizer_each_go_the_same_way_to_the_bit() -> None:
    said = []
    for ranks in ("1", "2"):
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
        command += ["--nproc-per-node", ranks, str(ROOT / "examples" / "several_gpus.py")]
        command += ["--evaluations", "150"]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert f"the means of {ranks} ranks are the same to the bit" in done.stdout
        said.append(done.stdout.split()[-1])
    assert said[0] == said[1]
