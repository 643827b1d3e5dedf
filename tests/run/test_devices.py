"""`minimize` with a device: results, bounds, restarts, callbacks, checkpoints to and from it."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mmes
from mmes.base.tensors import to_numpy
from mmes.errors import EvaluationError

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'mmes[torch]'")

torch.set_num_threads(1)
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def sphere(points: Any) -> Any:
    return ((points - 1) ** 2).sum(-1)


@pytest.mark.parametrize("vectorized", [True, False])
def test_a_run_on_the_device(vectorized: bool) -> None:
    seen = []

    def objective(points: Any) -> Any:
        seen.append(points)
        return sphere(points)

    start = torch.zeros(20, device=DEVICE, dtype=torch.float64)
    r = mmes.minimize(
        objective, start, 0.5, vectorized=vectorized, target=1e-3, seed=1, strategy="mmes"
    )
    assert r.success
    assert all(isinstance(points, torch.Tensor) for points in seen)
    assert isinstance(r.x, torch.Tensor)
    assert r.x.device.type == r.mean.device.type == DEVICE
    assert float(sphere(r.x)) == pytest.approx(r.fun)
    assert DEVICE in r.kernel
    assert "tensor" not in str(r)
    # The same path as on the host.
    here = mmes.minimize(
        sphere, np.zeros(20), 0.5, vectorized=vectorized, target=1e-3, seed=1, strategy="mmes"
    )
    assert r.nfev == here.nfev
    np.testing.assert_allclose(to_numpy(r.mean), here.mean, atol=1e-5)


@pytest.mark.parametrize("handling", ["clip", "reflect", "smooth"])
def test_bounds_scales_and_callbacks(handling: str) -> None:
    calls = []

    def run(**place: Any) -> mmes.Result:
        return mmes.minimize(
            sphere,
            np.zeros(10),
            0.3,
            vectorized=True,
            bounds=(torch.full((10,), -1.0), 0.7),
            scale=torch.linspace(0.5, 1.0, 10),
            bounds_handling=handling,
            max_evaluations=400,
            strategy="mmes",
            reevaluations=2,
            callback=lambda p: calls.append((p.best_value, p.best_x, p.mean)),
            seed=2,
            **place,
        )

    here = run()
    calls.clear()
    r = run(device=DEVICE, population_dtype="float64")
    assert float(r.x.max()) <= 0.7
    assert r.fun == pytest.approx(here.fun, rel=1e-4)
    assert r.nfev == here.nfev
    assert r.reevaluated is not None
    assert r.reevaluated["x"] == pytest.approx([r.fun] * 2)
    assert all(isinstance(x, torch.Tensor) for call in calls for x in call[1:])


def test_restarts_keep_the_best_of_all_starts() -> None:
    def steps(points: Any) -> Any:
        return torch.floor(sphere(points))

    r = mmes.minimize(
        steps,
        torch.zeros(5, device=DEVICE),
        1.0,
        vectorized=True,
        restarts=2,
        stagnation_window=20,
        max_generations=300,
        seed=3,
    )
    assert r.starts >= 2
    assert float(steps(r.x)) == r.fun


def test_checkpoints_go_to_and_from_the_device(tmp_path: Path) -> None:
    def half_way(here: str | None, path: Path) -> None:
        mmes.minimize(
            sphere,
            np.zeros(20),
            0.5,
            vectorized=True,
            target=1e-3,
            seed=1,
            max_generations=20,
            strategy="mmes",
            restarts=1,
            checkpoint=path,
            **({} if here is None else {"device": here, "population_dtype": "float64"}),
        )

    whole = mmes.minimize(
        sphere, np.zeros(20), 0.5, vectorized=True, target=1e-3, seed=1, strategy="mmes"
    )
    for here, there in ((None, DEVICE), (DEVICE, None), (DEVICE, DEVICE)):
        path = tmp_path / f"{here}-{there}.mmes"
        half_way(here, path)
        r = mmes.resume(path, sphere, max_generations=None, device=there)
        assert isinstance(r.x, np.ndarray if there is None else torch.Tensor)
        assert r.nfev == whole.nfev
        np.testing.assert_allclose(to_numpy(r.mean), whole.mean, atol=1e-5)


@pytest.mark.parametrize("strategy", ["mmes", "adaptive"])
@pytest.mark.parametrize(("here", "there"), [(DEVICE, None), (None, DEVICE), (DEVICE, DEVICE)])
def test_a_killed_run_goes_on_where_it_was(
    tmp_path: Path, here: str | None, there: str | None, strategy: str
) -> None:
    path = tmp_path / "run.mmes"
    place = {} if here is None else {"device": here, "population_dtype": "float64"}
    settings = {"vectorized": True, "target": 1e-3, "seed": 1, "strategy": strategy}
    program = f"""
import os, signal, numpy, mmes
def f(points):
    f.calls += 1
    if f.calls == 30:
        os.kill(os.getpid(), signal.SIGKILL)
    return ((points - 1) ** 2).sum(1)
f.calls = 0
mmes.minimize(f, numpy.zeros(20), 0.5, checkpoint={str(path)!r}, checkpoint_generations=5,
              checkpoint_seconds=1e9, **{settings | place})
"""
    ended = subprocess.run([sys.executable, "-c", program], check=False, timeout=100)
    assert ended.returncode == -signal.SIGKILL
    evaluated = 0

    def counted(points: Any) -> Any:
        nonlocal evaluated
        evaluated += len(points)
        return sphere(points)

    r = mmes.resume(path, counted, device=there)
    assert isinstance(r.x, np.ndarray if there is None else torch.Tensor)
    whole = mmes.minimize(sphere, np.zeros(20), 0.5, **settings)
    assert r.nfev == whole.nfev
    assert evaluated < whole.nfev
    np.testing.assert_allclose(to_numpy(r.mean), whole.mean, atol=1e-5)


def test_errors_of_the_objective_show_the_point() -> None:
    def broken(x: Any) -> Any:
        raise RuntimeError("no")

    with pytest.raises(EvaluationError, match="no") as caught:
        mmes.minimize(broken, torch.zeros(5, device=DEVICE), 1.0)
    assert isinstance(caught.value.x, np.ndarray)


def test_points_on_a_device_do_not_travel() -> None:
    with pytest.raises(ValueError, match="workers=2 cannot be combined with device="):
        mmes.minimize(sphere, torch.zeros(5, device=DEVICE), 1.0, workers=2)


class Own:
    def evaluate(self, points: Any, generation: int, keep_going: Any) -> Any:
        assert isinstance(points, torch.Tensor)
        return sphere(points)

    def close(self) -> None:
        pass


def test_an_evaluator_of_your_own_gets_tensors() -> None:
    r = mmes.minimize(
        None, torch.zeros(5, device=DEVICE), 1.0, workers=Own(), max_generations=5, seed=1
    )
    assert r.nit == 5


def test_without_torch_the_extra_is_named() -> None:
    program = """
import sys
sys.modules["torch"] = None
import numpy as np, mmes
try:
    mmes.MMES(np.zeros(3), 1.0, device="cuda")
except ImportError as error:
    assert "mmes[torch]" in str(error), error
else:
    raise SystemExit(1)
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=100)


@pytest.mark.parametrize("strategy", ["adaptive", "mmes", "lm-ma"])
def test_no_result_is_worse_than_a_start_point_on_the_device(strategy: str, tmp_path) -> None:
    start = torch.ones(50, dtype=torch.float64, device=DEVICE)

    def batch(points):
        assert points.device == start.device
        return ((points - 1.0) ** 2).sum(1)

    options = {"vectorized": True, "strategy": strategy, "seed": 1}
    path = tmp_path / "run.mmes"
    result = mmes.minimize(batch, start, 0.5, max_evaluations=60, checkpoint=path, **options)
    assert (result.fun, result.nfev) == (0.0, 60)
    assert torch.equal(result.x, start)
    resumed = mmes.resume(path, batch, max_evaluations=100)
    assert (resumed.fun, resumed.nfev) == (0.0, 100)
    assert torch.equal(resumed.x, start)
