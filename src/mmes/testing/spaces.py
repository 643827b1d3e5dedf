"""Strategies in other spaces: bounds, integers, values that change with multipliers."""

from __future__ import annotations

import numpy as np

from mmes.constraints import Lagrangian
from mmes.testing.checking import SMALL, Strategy, finite, require, sphere


def check_bounds(strategy: Strategy) -> None:
    """Check that no candidate lies outside the bounds, and that the best corner is found.

    Also where a variable cannot move.
    """
    for n in SMALL:
        lower, upper = np.full(n, -1.0), np.full(n, 2.0)
        if n > 2:
            lower[1] = upper[1] = 0.25
        for handling in ("clip", "reflect"):
            x0 = np.full(n, 0.25)
            es = strategy(x0, 1.0, seed=11, bounds=(lower, upper), bounds_handling=handling)
            for _ in range(400):
                points = es.ask()
                inside = (points >= lower) & (points <= upper)
                require(
                    inside.all(),
                    f"candidates must stay inside the bounds (n = {n}, {handling})",
                )
                es.tell(sphere(points + 1.5))  # the best point of the box is its lower corner
                finite(es)
                if es.stop() is not None:
                    break
            best = sphere(lower[None, :] + 1.5)[0]
            require(
                es.best_value <= 1.05 * best,
                f"the best corner of the box has the value {best:.6g}, found was "
                f"{es.best_value:.6g} ({handling}, n = {n})",
            )


def check_constraints(strategy: Strategy) -> None:
    """Check that a search whose values change with multipliers finds a constrained optimum."""
    es = strategy(np.full(4, 2.0), 0.5, seed=3)
    lagrangian = Lagrangian(4, np.array([False]))
    for _ in range(2000):
        points = es.ask()
        values, limits = sphere(points), 1.0 - points[:, :1]
        es.tell(lagrangian.values(values, limits))
        changed = lagrangian.update(values, limits)
        if changed is not None:
            es.revalue(changed)
        if np.abs(es.mean - np.eye(4)[0]).max() < 1e-2:
            return
    require(False, f"x_0 >= 1 holds a sphere at (1, 0, 0, 0), but the mean is {es.mean}")


def check_integers(strategy: Strategy) -> None:
    """Check that integer variables are integers in every candidate, the mean and the state."""
    es = strategy(np.full(4, 1.7), 0.5, seed=3, integers=[0, 2])
    for _ in range(5):
        points = es.ask()
        whole = points[:, [0, 2]]
        require(np.array_equal(whole, np.rint(whole)), "candidates must hold integers")
        es.tell(sphere(points))
    require(np.array_equal(es.mean[[0, 2]], np.rint(es.mean[[0, 2]])), "the mean must hold them")
    again = strategy.from_state(es.state())
    same = np.array_equal(again.ask(), es.ask())
    require(same, "a restored state must give the same candidates")
