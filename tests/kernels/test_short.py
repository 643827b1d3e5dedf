"""Loops over short arrays: those in C++ give the bits of their definitions in Python."""

from __future__ import annotations

import numpy as np
import pytest

from mmes.kernels import short

pytest.importorskip("mmes.kernels.native")


def both(name: str, *arguments):
    """Return what the two versions return, and the arrays they leave behind."""
    copies = [[np.copy(a) if isinstance(a, np.ndarray) else a for a in arguments] for _ in "12"]
    functions = short.DEFINITIONS[name], getattr(short, name)
    found = [f(*a) for f, a in zip(functions, copies, strict=True)]
    return list(zip(found, copies, strict=True))


def test_the_native_versions_take_the_place_of_the_definitions() -> None:
    for name, definition in short.DEFINITIONS.items():
        assert getattr(short, name) is not definition


@pytest.mark.parametrize("m", [1, 2, 3, 64, 301])
def test_renew(m: int) -> None:
    rng = np.random.default_rng(m)
    for trial in range(50):
        order = rng.permutation(m)
        stamps = np.empty(m, dtype=np.int64)
        stamps[order] = np.sort(rng.choice(20 * m, m, replace=False))
        spacing = [5, 0, 1000, 10**30][trial % 4]
        (row, (by_numpy, _, _)), (same, (by_native, _, _)) = both("renew", order, stamps, spacing)
        assert row == same
        np.testing.assert_array_equal(by_numpy, by_native)


@pytest.mark.parametrize("mu", [1, 2, 12, 500])
def test_success_share(mu: int) -> None:
    rng = np.random.default_rng(mu)
    weights = rng.random(mu)
    for _ in range(50):
        best, previous = (rng.integers(0, 4, mu) * 1.0 for _ in range(2))
        previous[rng.random(mu) < 0.1] = np.inf
        (share, _), (same, _) = both("success_share", best, previous, weights)
        assert share == same


@pytest.mark.parametrize(("size", "draws"), [(2, 1), (24, 12), (25, 13), (24, 20), (24, 24)])
def test_weights_and_opposition_of_pairs(size: int, draws: int) -> None:
    rng = np.random.default_rng(size + draws)
    for _ in range(50):
        ranking, by_rank = rng.permutation(size), rng.standard_normal(size)
        (_, (total, _, _)), (_, (same, _, _)) = both(
            "add_by_draw", np.zeros(draws), ranking, by_rank
        )
        np.testing.assert_array_equal(total, same)
        (products, _), (others, _) = both("opposition", ranking, draws)
        assert products == others


def test_arrays_that_do_not_fit_are_refused() -> None:
    ranking = np.array([0, 1, 2, 7])
    for call in (
        lambda: short.renew(np.array([0, 9]), np.zeros(2, dtype=np.int64), 1.0),
        lambda: short.renew(np.empty(0, dtype=np.int64), np.zeros(2, dtype=np.int64), 1.0),
        lambda: short.success_share(np.zeros(2), np.zeros(3), np.zeros(3)),
        lambda: short.add_by_draw(np.zeros(2), ranking, np.zeros(4)),
        lambda: short.add_by_draw(np.zeros(1), ranking, np.zeros(4)),
        lambda: short.opposition(ranking, 2),
    ):
        with pytest.raises(ValueError):
            call()
    with pytest.raises(TypeError):  # changed in place: a converted copy would be lost
        short.renew(np.array([0.0, 1.0]), np.zeros(2, dtype=np.int64), 1.0)
