"""Replicas that hold the optimizer on a device: values travel, the bits are those of one run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mmes
from mmes.replicas import Local

pytest.importorskip("torch", reason="torch is not installed: pip install 'mmes[torch]'")


def squares(x: Any) -> float:
    return float((on_device(x) ** 2).sum())


def rows_of_squares(points: Any) -> Any:
    return (on_device(points) ** 2).sum(1)


def failing(x: Any) -> float:
    raise OSError("no licence")


def on_device(points: Any) -> Any:
    if isinstance(points, np.ndarray):
        raise AssertionError("the candidates lie in host memory")
    return points


@pytest.fixture
def options() -> dict[str, Any]:
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    return {"device": device, "population_dtype": "float32", "seed": 1, "max_evaluations": 200}


@pytest.mark.parametrize(("objective", "vectorized"), [(squares, False), (rows_of_squares, True)])
def test_the_bits_are_those_without_replicas(
    objective: Any, vectorized: bool, options: dict[str, Any]
) -> None:
    import torch

    alone = mmes.minimize(objective, np.ones(200), 0.3, vectorized=vectorized, **options)
    crew = Local(2, check=1)
    both = mmes.minimize(
        objective, np.ones(200), 0.3, vectorized=vectorized, workers=crew, **options
    )
    assert torch.equal(alone.mean, both.mean)
    assert torch.equal(alone.x, both.x)
    assert alone.fun == both.fun
    assert str(both.x.device).startswith(options["device"])


def test_an_error_names_the_candidate(options: dict[str, Any]) -> None:
    with pytest.raises(mmes.errors.EvaluationError, match="no licence"):
        mmes.minimize(failing, np.ones(20), 0.3, workers=Local(1), **options)


def test_processes_within_a_replica_have_no_device(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="cannot be combined with device="):
        mmes.minimize(squares, np.ones(20), 0.3, workers=Local(1, each=2), **options)
