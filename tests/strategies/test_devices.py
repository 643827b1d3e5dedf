"""Strategies whose state lives on a device: the conformance suite, and the path of the host."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

import mmes
from mmes.base.tensors import to_numpy
from mmes.errors import ReducedArchiveWarning, TellError
from mmes.spaces.manifolds import Sphere
from mmes.strategies import STRATEGIES, AskTell, get_strategy
from mmes.strategies.mmes import mirroring
from mmes.testing import strategies as suite

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'mmes[torch]'")

torch.set_num_threads(1)
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
ABLE = [name for name, strategy in STRATEGIES.items() if not strategy.search_type.on_host]
# Without those that compare kernels of the host with each other, and integers, which stay there.
CHECKS = [
    check
    for check in suite.STRATEGY_CHECKS
    if check not in (suite.check_kernels_agree, suite.check_threads, suite.check_integers)
]
# Hundreds or thousands of generations, in small torch operations.
LONG = (
    suite.check_bounds,
    suite.check_constant,
    suite.check_convergence,
    suite.check_failed_evaluations,
    suite.check_linear,
    suite.check_state,
)


def on_device(strategy: type[AskTell]) -> Any:
    """Return the strategy on the device, as the suite sees it: with numpy arrays."""

    class OnDevice(strategy):  # type: ignore[misc, valid-type]
        def __init__(self, x0, sigma0, **options):
            given = {"device": DEVICE, "population_dtype": "float64"} | options
            super().__init__(x0, sigma0, **given)

        @classmethod
        def from_state(cls, state):
            return super().from_state(state, device=DEVICE)

        def ask(self):
            points = to_numpy(super().ask()).copy()
            points.flags.writeable = False
            return points

        @property
        def mean(self):
            return to_numpy(super().mean).copy()

    OnDevice.__name__ = strategy.__name__
    return OnDevice


@pytest.mark.parametrize(
    "check",
    [pytest.param(c, marks=pytest.mark.slow) if c in LONG else c for c in CHECKS],
    ids=lambda check: check.__name__,
)
@pytest.mark.parametrize("name", ABLE)
def test_conformance(name: str, check: suite.Check) -> None:
    check(on_device(STRATEGIES[name]))


def told(es: AskTell, generations: int) -> AskTell:
    """Tell values from a fixed generator, so that rounding cannot change a ranking."""
    rng = np.random.default_rng(3)
    for _ in range(generations):
        es.tell(rng.standard_normal(es.ask().shape[0]))
    return es


@pytest.mark.parametrize("options", [{}, {"bounds": (-1.0, 3.0)}, {"scale": "given"}], ids=str)
@pytest.mark.parametrize("name", ABLE)
def test_the_device_follows_the_path_of_the_host(name: str, options: dict[str, Any]) -> None:
    n = 200
    if "scale" in options:
        options = {"scale": np.linspace(0.5, 2.0, n)}
    given = {"seed": 5, "sigma_max": 1e300} | options
    x0 = np.linspace(-1.0, 1.0, n)
    host = told(STRATEGIES[name](x0, 0.5, **given), 100)
    double = told(
        STRATEGIES[name](x0, 0.5, device=DEVICE, population_dtype="float64", **given), 100
    )
    single = told(
        STRATEGIES[name](x0, 0.5, device=DEVICE, population_dtype="float32", **given), 100
    )
    size = np.abs(host.mean).max()
    # Five digits after 100 generations: float32 noise and directions, rounded alike but for the
    # last bit.
    for es in (double, single):
        assert es.sigma == pytest.approx(host.sigma, rel=1e-5)
        assert np.abs(to_numpy(es.mean) - host.mean).max() < 1e-5 * size


@pytest.mark.parametrize("name", ["mmes", "lm-ma", "sep-cma"])
def test_a_state_moves_between_host_and_device(name: str) -> None:
    strategy = STRATEGIES[name]
    started = {
        None: strategy(np.ones(50), 0.5, seed=1, bounds=(-2, 3)),
        DEVICE: strategy(torch.ones(50, device=DEVICE), 0.5, seed=1, bounds=(-2, 3)),
    }
    for here, there in ((None, DEVICE), (DEVICE, None), (DEVICE, DEVICE)):
        es = started[here]
        told(es, 20)
        state = es.state()
        plain = json.loads(json.dumps({k: v for k, v in state.items() if k != "arrays"}))
        assert all(isinstance(array, np.ndarray) for array in state["arrays"].values())
        other = strategy.from_state(plain | {"arrays": state["arrays"]}, device=there)
        assert other.kernel.device == there
        told(es, 30)
        told(other, 30)
        assert other.sigma == pytest.approx(es.sigma, rel=1e-4)
        np.testing.assert_allclose(to_numpy(other.mean), to_numpy(es.mean), atol=1e-3)
        if here == there:
            np.testing.assert_array_equal(to_numpy(other.mean), to_numpy(es.mean))


def test_tensors_in_tensors_out() -> None:
    for dtype in (torch.float32, torch.float64):
        x0 = torch.ones(30, device=DEVICE, dtype=dtype, requires_grad=True)
        es = get_strategy("mmes")(x0, 0.5, seed=1)
        points = es.ask()
        assert points.dtype == dtype
        assert points.device.type == DEVICE
        assert not points.requires_grad
        assert torch.equal(points, es.ask())
        kept = points.clone()
        es.tell((points**2).sum(1))
        es.ask()
        assert torch.equal(points, kept)
        assert es.best_x.dtype == dtype
        assert float((es.best_x**2).sum()) == pytest.approx(es.best_value, rel=1e-6)
    plain = get_strategy("mmes")(np.ones(30), 0.5, seed=1, device=DEVICE)
    assert plain.ask().dtype == (torch.float64 if DEVICE == "cpu" else torch.float32)


@pytest.mark.parametrize(
    "values",
    [
        lambda v: v,
        lambda v: v.cpu(),
        lambda v: v.cpu().numpy(),
        lambda v: v.tolist(),
        lambda v: list(v),
        lambda v: v.clone().requires_grad_(),
        lambda v: v.to(torch.bfloat16),
        lambda v: v[:, None],
        lambda v: v.long(),
    ],
)
def test_values_come_through_the_one_door(values: Any) -> None:
    es = get_strategy("mmes")(torch.ones(30, device=DEVICE), 0.5, seed=1)
    es.ask()
    v = torch.arange(float(es.rows), device=DEVICE)
    es.tell(values(v))
    assert es.best_value == 0.0
    es.ask()
    v = torch.full((es.rows,), math.nan, device=DEVICE)
    v[1], v[2] = math.inf, 5.0
    es.tell(v)
    assert es.failed_evaluations == es.rows - 2


@pytest.mark.parametrize(
    ("values", "error"),
    [
        (lambda v: v[:-1], TellError),
        (lambda v: v.repeat(2, 1), TellError),
        (lambda v: v > 3, TypeError),
        (lambda v: v.to(torch.complex64), TypeError),
    ],
)
def test_what_is_no_value_is_refused(values: Any, error: type[Exception]) -> None:
    es = get_strategy("mmes")(torch.ones(30, device=DEVICE), 0.5, seed=1)
    es.ask()
    with pytest.raises(error):
        es.tell(values(torch.arange(float(es.rows), device=DEVICE)))
    assert es.generation == 0


def test_what_cannot_live_on_a_device_is_refused() -> None:
    with pytest.raises(ValueError, match="'cma-es' works on numpy arrays and cannot use a device"):
        get_strategy("cma")(np.ones(4), 1.0, device=DEVICE)
    with pytest.raises(ValueError, match="integers cannot be combined with device="):
        get_strategy("mmes")(np.ones(4), 1.0, device=DEVICE, integers=True)
    with pytest.raises(ValueError, match="cannot be combined with a manifold"):
        get_strategy("mmes")(np.ones(4) / 2, 1.0, device=DEVICE, manifold=Sphere(4))
    with pytest.raises(ValueError, match="kernel='reference' works in the host's memory"):
        get_strategy("mmes")(np.ones(4), 1.0, device=DEVICE, kernel="reference")
    with pytest.raises(ValueError, match="device must be a string that torch can use here"):
        get_strategy("mmes")(np.ones(4), 1.0, device="abacus")
    with pytest.raises(ValueError, match="population_dtype='float32' needs a device"):
        get_strategy("mmes")(np.ones(4), 1.0, population_dtype="float32")
    with pytest.raises(ValueError, match="mean_dtype='float32' needs a device"):
        get_strategy("mmes")(np.ones(4), 1.0, mean_dtype="float32")
    with pytest.raises(ValueError, match="archive_dtype='bfloat16' needs a device"):
        get_strategy("mmes")(np.ones(4), 1.0, archive_dtype="bfloat16")
    with pytest.raises(TypeError, match="archive_dtype"):
        get_strategy("lm-ma")(np.ones(4), 1.0, archive_dtype="bfloat16", device=DEVICE)


def test_the_archive_gives_way_to_the_memory_of_the_device(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    n = 10_000
    # Twice 31 candidates in float32, as a plain loop holds them, 3 vectors in float64, two points
    # in float32 and 20 directions.
    room = n * (2 * 4 * 31 + 8 * 3 + 4 * 2 + 4 * 20)
    monkeypatch.setattr(
        "mmes.kernels.gpu.torch.TorchKernel.available_bytes", lambda kernel: int(room / 0.8) + 1
    )
    start = torch.ones(n, device=DEVICE)
    with pytest.warns(ReducedArchiveWarning, match="m is reduced to 20"):
        es = get_strategy("mmes")(start, 1.0)
    assert es.parameters.archive_size == 20
    with pytest.raises(MemoryError, match="usable"):
        get_strategy("mmes")(start, 1.0, archive_size=200)


def test_start_points_on_the_wall_stay_inside_in_single_precision() -> None:
    # The float32 next to 0.1 lies above it.
    wall = np.full(20, 0.1)
    for handling in ("clip", "reflect", "smooth"):
        es = get_strategy("mmes")(
            wall,
            0.5,
            bounds=(-1.0, 0.1),
            bounds_handling=handling,
            device=DEVICE,
            population_dtype="float32",
        )
        points = to_numpy(es.ask())
        assert points.max() <= 0.1
        assert to_numpy(es.best_x).max() <= 0.1


@pytest.mark.parametrize("name", ["mmes", "adaptive"])
def test_archives_in_bfloat16(name: str) -> None:
    strategy, given = STRATEGIES[name], {"seed": 1, "archive_size": 6}
    whole = told(strategy(np.ones(50), 0.5, device=DEVICE, **given), 20)
    short = strategy(np.ones(50), 0.5, device=DEVICE, archive_dtype="bfloat16", **given)
    assert whole.planned_bytes - short.planned_bytes == 2 * 50 * 6
    told(short, 20)
    assert short.search.state.archive.vectors.dtype == torch.bfloat16
    # Close to the path in float32, and not on it.
    means = to_numpy(short.mean), to_numpy(whole.mean)
    np.testing.assert_allclose(*means, atol=0.02)
    assert not np.array_equal(*means)
    # A state keeps what was stored to the bit; on the host it goes on in float32.
    state = short.state()
    again = strategy.from_state(state, device=DEVICE)
    assert again.search.state.archive.vectors.dtype == torch.bfloat16
    here = strategy.from_state(state)
    for es in (short, again, here):
        told(es, 10)
    np.testing.assert_array_equal(to_numpy(again.mean), to_numpy(short.mean))
    np.testing.assert_allclose(here.mean, to_numpy(short.mean), atol=0.02)


@pytest.mark.parametrize("name", ABLE)
def test_means_in_single_precision(name: str) -> None:
    strategy, given = STRATEGIES[name], {"seed": 1, "device": DEVICE}
    whole = told(strategy(np.ones(40), 0.5, **given), 15)
    short = told(strategy(np.ones(40), 0.5, mean_dtype="float32", **given), 15)
    assert short.mean.dtype == torch.float32
    assert short.sigma == pytest.approx(whole.sigma, rel=1e-4)
    np.testing.assert_allclose(to_numpy(short.mean), to_numpy(whole.mean), atol=1e-4)
    again = strategy.from_state(short.state(), device=DEVICE)
    told(short, 5)
    told(again, 5)
    np.testing.assert_array_equal(to_numpy(again.mean), to_numpy(short.mean))


@pytest.mark.skipif(DEVICE == "cpu", reason="needs a GPU")
@pytest.mark.parametrize("name", ["mmes", "adaptive"])
def test_recorded_work_gives_the_same_bits(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    launch = pytest.importorskip("mmes.kernels.gpu.triton_launch")

    def run() -> AskTell:
        es = STRATEGIES[name](torch.ones(300, device=DEVICE), 0.5, seed=1, bounds=(-5, 5))
        draws = set()
        for generation in range(240):
            points = es.ask()
            # Where the linear part decides there are more draws, where curvature does fewer.
            linear = generation // 40 % 2 == 0
            es.tell(points[:, 0] if linear else ((points - es.mean) ** 2).sum(1))
            draws.add(mirroring.draws(es.parameters, es.search.state))
            if generation == 100:
                kept = points.clone(), points
        assert len(draws) > 1 or name == "mmes"
        assert torch.equal(*kept)
        es.grow()  # another population
        return told(es, 20)

    usual = run()
    assert any(not isinstance(r, int) for r in usual.kernel.launch.recorded.values())
    monkeypatch.setattr(launch, "USUAL", 10**9)
    direct = run()
    assert all(isinstance(r, int) for r in direct.kernel.launch.recorded.values())
    assert torch.equal(usual.mean, direct.mean)
    assert usual.sigma == direct.sigma


def test_the_plan_knows_the_size_of_means_and_points() -> None:
    """A billion variables were planned with 105 GiB where 56 GB are used."""
    search = STRATEGIES["adaptive"].search_type
    given = {option.name: option.default for option in search.options}
    few = {"population_size": 32, "archive_size": 16, "archive_dtype": "bfloat16"}
    few |= {"rows_at_once": 1}
    _, needed = search.planned(10**9, given | few, 2**62, 4, 4)
    assert 56e9 < needed < 80e9
    sizes = []
    for dtype in ("float64", "float32"):
        place = {"device": DEVICE, "population_dtype": "float32", "mean_dtype": dtype}
        sizes.append(STRATEGIES["adaptive"](np.zeros(1000), 1.0, **place).planned_bytes)
    # Mean, path, start point; scale, noise path and lessons, with one vector in passing.
    assert sizes[0] - sizes[1] == 4 * 1000 * 7
    assert [
        kind(np.zeros(10), 1.0, device=DEVICE, mean_dtype="float32").planned_bytes
        < kind(np.zeros(10), 1.0, device=DEVICE, mean_dtype="float64").planned_bytes
        for kind in (STRATEGIES["rm-es"], STRATEGIES["sep-cma"])
    ] == [True, True]


def test_out_of_memory_in_ask_is_a_sentence_and_leaves_the_state(monkeypatch) -> None:
    """A loop on a GPU ended in torch's own error before."""
    es = mmes.MMES(np.ones(30), 0.5, device="cpu", seed=1)
    es.tell((es.ask() ** 2).sum(1))
    before = es.state()
    monkeypatch.setattr(torch.Tensor, "new_empty", _out_of_memory)
    with pytest.raises(MemoryError, match=r"candidates of 30 variables do not fit on cpu: .*ask"):
        es.ask()
    monkeypatch.undo()
    after = es.state()
    assert after["search"] == before["search"]
    other = mmes.MMES.from_state(before, device="cpu")
    np.testing.assert_array_equal(to_numpy(es.ask()), to_numpy(other.ask()))


def _out_of_memory(tensor, shape):
    raise torch.OutOfMemoryError("CUDA out of memory")


def test_a_plain_loop_on_a_device_is_planned_for() -> None:
    """It holds the last generation while it asks for the next."""
    here = mmes.MMES(np.ones(1000), 0.5, seed=1)
    there = mmes.MMES(np.ones(1000), 0.5, device="cpu", seed=1)
    assert there.planned_bytes - here.planned_bytes == 8 * 1000 * there.population_size
