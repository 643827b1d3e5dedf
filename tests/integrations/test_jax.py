"""JAX losses as vectorized objectives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mmes

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402

from mmes.integrations.jax import batched  # noqa: E402
from mmes.integrations.precision import LowPrecisionWarning  # noqa: E402

PARAMS = {"w": jnp.arange(6.0).reshape(3, 2), "b": [jnp.ones(2), jnp.float32(3)]}


def loss(p: Any) -> Any:
    return jnp.sum(p["w"] ** 2) + jnp.sum((p["b"][0] - 2) ** 2) + p["b"][1] ** 2


def test_the_lines_of_the_documentation() -> None:
    f = batched(loss, like=PARAMS)
    r = mmes.minimize(f, f.x0, 0.3, vectorized=True, max_evaluations=3000, seed=1)
    params = f.unravel(r.x)
    assert params["w"].shape == (3, 2)
    np.testing.assert_allclose(params["b"][0], 2, atol=1e-2)
    assert float(loss(params)) == pytest.approx(r.fun, rel=1e-3, abs=1e-9)


def test_values_are_those_of_the_loss() -> None:
    f = batched(loss, like=PARAMS)
    assert f.n == 9 == f.x0.size
    assert f.x0.dtype == np.float64
    points = f.x0 + np.random.default_rng(1).normal(size=(5, 9))
    points.flags.writeable = False
    values = f(points)
    assert values.dtype == np.float64
    np.testing.assert_allclose(values, [float(loss(f.unravel(x))) for x in points], rtol=1e-5)


@pytest.mark.parametrize("strategy", ["mmes", "auto", "adaptive"])
def test_a_run_compiles_once_though_generations_differ_in_size(strategy: str) -> None:
    traced = []

    def counted(p: Any) -> Any:
        traced.append(1)
        return loss(p)

    f = batched(counted, like=PARAMS)
    r = mmes.minimize(
        f, f.x0, 0.3, strategy=strategy, vectorized=True, max_evaluations=103, seed=1, restarts=0
    )
    assert r.nfev == 103  # the start point, alone or in the first generation; a last one with fewer
    assert len(traced) == 1


def test_a_fixed_number_of_rows() -> None:
    f, g = batched(loss, like=PARAMS), batched(loss, like=PARAMS, rows=4)
    points = f.x0 + np.random.default_rng(1).normal(size=(11, 9))
    np.testing.assert_allclose(g(points), f(points), rtol=1e-6)
    with pytest.raises(ValueError, match="rows"):
        batched(loss, like=PARAMS, rows=0)


def test_steps_that_float32_swallows_are_told_once() -> None:
    f = batched(loss, like=PARAMS)
    steps = np.random.default_rng(1).normal(size=(5, 9))
    f(f.x0 + 1e-3 * steps)
    with pytest.warns(LowPrecisionWarning, match="float32.*jax_enable_x64"):
        f(f.x0 + 1e-8 * steps)
    f(f.x0 + 1e-8 * steps)


def test_with_x64_the_digits_are_kept() -> None:
    with jax.enable_x64(True):
        f = batched(loss, like={"w": jnp.ones((3, 2)), "b": [jnp.ones(2), jnp.float64(3)]})
        points = f.x0 + 1e-9 * np.random.default_rng(1).normal(size=(5, 9))
        assert len(set(f(points))) == 5


@pytest.mark.parametrize("like", [{}, {"w": jnp.arange(3)}, {"w": jnp.ones(2, dtype=complex)}])
def test_trees_that_cannot_be_searched(like: Any) -> None:
    with pytest.raises(ValueError, match="like"):
        batched(loss, like=like)


def test_a_loss_of_two_numbers_is_refused_at_the_one_door() -> None:
    f = batched(lambda p: p["b"][0], like=PARAMS)
    with pytest.raises(ValueError, match=r"shape \("):
        mmes.minimize(f, f.x0, 0.3, vectorized=True, max_evaluations=100)
