"""A conformance suite for strategies, built-in and custom ones.

A strategy is a subclass of `AskTell` with a `search_type` (see `mmes.strategies.shell.protocol`).
In a test file::

    import pytest
    from mmes.testing.strategies import STRATEGY_CHECKS

    @pytest.mark.parametrize("check", STRATEGY_CHECKS, ids=lambda check: check.__name__)
    def test_my_strategy(check):
        check(MyStrategy)

or ``check_strategy(MyStrategy)`` for all of them at once. A check returns None, or raises
AssertionError with a sentence that says what was expected. The checks do not need pytest, and all
together take a few seconds.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmes.base.reasons import StopReason
from mmes.constraints import Lagrangian
from mmes.kernels import native_problem
from mmes.strategies.shell.ask_tell import AskTell

Strategy = type[AskTell]
Check = Callable[[Strategy], None]
Objective = Callable[[NDArray[np.float64]], NDArray[np.float64]]

SMALL = (1, 2, 3, 17)


def sphere(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the sum of squares of each row."""
    return np.einsum("ij,ij->i", points, points)


def ellipsoid(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a sum of squares with weights from 1 to 1000."""
    return points**2 @ np.logspace(0, 3, points.shape[1])


def check_candidates(strategy: Strategy) -> None:
    """Check that `ask` gives finite, read-only candidates, the same until they are told."""
    for n in SMALL:
        es = strategy(np.ones(n), 0.5, seed=3)
        points = es.ask()
        rows = es.population_size
        _require(
            points.ndim == 2 and points.shape[0] in (rows, rows + 1) and points.shape[1] == n,
            f"ask() must return {rows} candidates (and perhaps the start point) of {n} variables, "
            f"not {points.shape}",
        )
        _require(bool(np.isfinite(points).all()), "candidates must be finite")
        _require(not points.flags.writeable, "candidates must be read-only")
        _same(points, es.ask(), "asking again must give the same candidates")
        kept = points.copy()
        es.tell(sphere(points))
        _require(
            es.ask().shape[0] == rows, f"from the second generation on there are {rows} candidates"
        )
        _same(points, kept, "an array that the caller keeps must not change")


def check_step_length(strategy: Strategy) -> None:
    """Check that the first steps have about the length sigma0 times the scale per variable."""
    n, sigma, scale = 1000, 0.3, np.logspace(-2, 2, 1000)
    for given in (None, scale):
        es = strategy(np.full(n, 7.0), sigma, seed=5, scale=given)
        points = es.ask()[-es.population_size :]
        unit = (points - 7.0) / (sigma * (1.0 if given is None else given))
        spread = float(np.sqrt(np.mean(unit**2)))
        _require(
            0.5 < spread < 1.5,
            f"the first steps must be about sigma0 long, not {spread:.3g} times that",
        )


def check_seeds(strategy: Strategy) -> None:
    """Check that the seed decides everything: same seed, same run; another seed, another run."""
    runs = [_trajectory(strategy, 17, 15, seed=seed) for seed in (1, 1, 2)]
    for a, b in zip(runs[0], runs[1], strict=True):
        _same(a, b, "the same seed must give the same candidates")
    _require(not np.array_equal(runs[0][0], runs[2][0]), "another seed must give other candidates")


def check_parts(strategy: Strategy) -> None:
    """Check that values told in parts and out of order make no difference."""
    whole, parts = (strategy(np.ones(9), 0.5, seed=4) for _ in range(2))
    for _ in range(12):
        points = whole.ask()
        _same(points, parts.ask(), "values told in parts must give the same candidates")
        values = ellipsoid(points)
        whole.tell(values)
        order = np.arange(values.size)[::-1]
        for index in np.array_split(order, 3):
            parts.tell(values[index], index)


def check_skip(strategy: Strategy) -> None:
    """Check that after `skip` the same generation is asked again."""
    es = strategy(np.ones(9), 0.5, seed=4)
    for _ in range(3):
        es.tell(ellipsoid(es.ask()))
    points = es.ask().copy()
    es.skip()
    _same(points, es.ask(), "after skip() the same candidates must come again")


def check_state(strategy: Strategy) -> None:
    """Check that a search restored from a state, with JSON numbers, continues to the bit.

    With bounds, with scales, and with generations without values.
    """
    cases: list[dict[str, Any]] = [
        {},
        {"bounds": (-1.5, 3.0)},
        {"scale": "given"},
        {"population_size": 7} | ({"damping": 2.0} if _damped(strategy) else {}),
    ]
    for n in SMALL:
        for case in cases:
            options = dict(case)
            if "scale" in options:
                options["scale"] = np.linspace(0.5, 2.0, n)
            es = strategy(np.ones(n), 0.5, seed=6, **options)
            for before in (0, 1, 30):
                for _ in range(before):
                    _tell_some(es)
                state = es.state()
                arrays = {name: array.copy() for name, array in state["arrays"].items()}
                plain = {name: value for name, value in state.items() if name != "arrays"}
                read = json.loads(json.dumps(plain)) | {"arrays": arrays}
                other = _restored(strategy, read)
                for _ in range(8):
                    _same(
                        es.ask(),
                        other.ask(),
                        f"a restored state must give the same candidates (n = {n}, {case})",
                    )
                    _tell_some(es)
                    _tell_some(other)
                _require(es.sigma == other.sigma, "a restored state must give the same sigma")
                _same(es.mean, other.mean, "a restored state must give the same mean")
                for name, array in state["arrays"].items():
                    _same(
                        array,
                        arrays[name],
                        f"a state taken must not change with the search, but {name} did",
                    )


def check_failed_evaluations(strategy: Strategy) -> None:
    """Check that NaN and +inf rank last and do not enter the state; too many end the search."""
    for n in SMALL:
        es = strategy(np.ones(n), 0.5, seed=7)
        for generation in range(40):
            values = sphere(es.ask())
            values[generation % 3 :: 3] = math.nan if generation % 2 else math.inf
            es.tell(values)
            _finite(es)
        sigma, mean = es.sigma, es.mean.copy()
        first = es.ask().copy()
        es.tell(np.full(first.shape[0], math.nan))
        _require(es.sigma == sigma, "a generation without a single value must leave sigma as it is")
        _same(es.mean, mean, "a generation without a single value must leave the mean as it is")
        _require(
            not np.array_equal(first, es.ask()),
            "after a failed generation other candidates must come",
        )
        for _ in range(9):
            es.tell(np.full(es.ask().shape[0], math.nan))
        _require(
            es.stop() is StopReason.ALL_FAILED,
            "ten generations without a value must end the search",
        )


def check_unbounded(strategy: Strategy) -> None:
    """Check that the value -inf ends the search and does not damage the state."""
    es = strategy(np.ones(5), 0.5, seed=8)
    es.tell(sphere(es.ask()))
    values = sphere(es.ask())
    values[0] = -math.inf
    es.tell(values)
    _require(es.stop() is StopReason.UNBOUNDED, "-inf must end the search as unbounded")
    es.tell(sphere(es.ask()))
    _finite(es)


def check_growth(strategy: Strategy) -> None:
    """Check that `grow` doubles population and damping, keeps the state, and resumes to the bit.

    A strategy need not have a damping.
    """
    for n in SMALL:
        es = strategy(np.ones(n), 0.5, seed=12)
        for _ in range(20):
            _tell_some(es)
        size, before = es.population_size, es.state()["arrays"]
        damping = es.options.get("damping", 0.0)
        es.grow(sigma=0.25)
        after = es.state()["arrays"]
        _require(
            (es.population_size, es.options.get("damping", 0.0)) == (2 * size, 2 * damping),
            "grow() must double population size and damping",
        )
        _require(es.sigma == 0.25, "grow(sigma) must set the mutation strength")
        for name, array in before.items():
            if name.startswith("search/") and not name.endswith("previous"):
                _same(array, after[name], f"grow() must keep the state, but {name} changed")
        for _ in range(3):
            _tell_some(es)
        state = es.state()
        other = _restored(strategy, state)
        for _ in range(5):
            _same(es.ask(), other.ask(), "a grown search must resume to the bit")
            _tell_some(es)
            _tell_some(other)
        points = es.ask()
        _require(points.shape[0] == 2 * size, f"a grown search must ask for {2 * size} candidates")


def check_constant(strategy: Strategy) -> None:
    """Check that on a constant objective the search ends with a finite state."""
    for n in SMALL:
        es = strategy(np.ones(n), 0.5, seed=9)
        for _ in range(300):
            if es.stop() is not None:
                break
            es.tell(np.zeros(es.ask().shape[0]))
            _finite(es)
        _require(
            es.stop() is StopReason.FLAT,
            f"on a constant objective of {n} variables the search must end as FLAT, not continue "
            f"({es.stop()})",
        )


def check_linear(strategy: Strategy) -> None:
    """Check that on a linear objective the search goes far, without overflow."""
    for n in SMALL:
        es = strategy(np.zeros(n), 1.0, seed=10, sigma_max=1e100)
        for _ in range(1500):
            if es.stop() is not None:
                break
            es.tell(es.ask().sum(axis=1))
            _finite(es)
        _require(
            es.best_value < -1e3,
            f"on a linear objective of {n} variables the search must continue downhill, but got to "
            f"{es.best_value:.3g}",
        )


def check_bounds(strategy: Strategy) -> None:
    """Check that no candidate lies outside the bounds, and that the best corner is found.

    Also with a fixed variable.
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
                _require(
                    bool(inside.all()),
                    f"candidates must stay inside the bounds (n = {n}, {handling})",
                )
                es.tell(sphere(points + 1.5))  # the best point of the box is its lower corner
                _finite(es)
                if es.stop() is not None:
                    break
            best = sphere(lower[None, :] + 1.5)[0]
            _require(
                es.best_value <= 1.05 * best,
                f"the best corner of the box has the value {best:.6g}, found was "
                f"{es.best_value:.6g} ({handling}, n = {n})",
            )


def check_convergence(strategy: Strategy) -> None:
    """Check that the sphere function is minimised for any number of variables."""
    for n in SMALL:
        es = strategy(np.full(n, 3.0), 1.0, seed=12)
        while es.stop(target=1e-9, max_evaluations=10_000) is None:
            es.tell(sphere(es.ask()))
        _require(
            es.best_value <= 1e-9,
            f"the sphere of {n} variables must reach 1e-9 in 10000 evaluations, but "
            f"{es.best_value:.3g} was found",
        )


def check_order_alone_counts(strategy: Strategy) -> None:
    """Check that only the order of the values matters: values times eight give the same run."""
    first = _trajectory(strategy, 9, 25, seed=13)
    second = _trajectory(strategy, 9, 25, seed=13, objective=lambda points: 8.0 * ellipsoid(points))
    for a, b in zip(first, second, strict=True):
        _same(a, b, "values multiplied by 8 must give the same candidates")


def _require_the_native_kernel() -> None:
    problem = native_problem()
    _require(problem is None, f"this check needs the native kernel, which does not load: {problem}")


def check_kernels_agree(strategy: Strategy) -> None:
    """Check that the native kernel and the numpy reference agree up to rounding."""
    _require_the_native_kernel()
    for n in (1, 3, 100):
        runs = [
            _trajectory(strategy, n, 25, seed=14, kernel=kernel, objective=ellipsoid)
            for kernel in ("native", "reference")
        ]
        for a, b in zip(*runs, strict=True):
            error = float(np.abs(a - b).max())
            _require(
                error < 1e-3,
                f"the kernels must agree to rounding, but differ by {error:.3g} (n = {n})",
            )


def check_threads(strategy: Strategy) -> None:
    """Check that the number of threads changes no bit."""
    _require_the_native_kernel()
    runs = [_trajectory(strategy, 2100, 4, seed=15, threads=threads) for threads in (1, 3)]
    for a, b in zip(*runs, strict=True):
        _same(a, b, "the number of threads must not change the candidates")


def check_restart_options(strategy: Strategy) -> None:
    """Check that a restart can double `population_size`, and `damping` if there is one."""
    _require("population_size" in _options_of(strategy), "population_size must be an option")
    _require(
        strategy(np.ones(4), 1.0, population_size=22).population_size == 22,
        "population_size must be the number of candidates per generation",
    )
    moved = []
    for damping in (1.0, 1e6) if _damped(strategy) else ():
        es = strategy(np.ones(30), 1.0, seed=16, damping=damping)
        for _ in range(10):
            es.tell(sphere(es.ask()))
        moved.append(abs(math.log(es.sigma)))
    _require(
        not moved or moved[1] < 1e-3 * max(moved[0], 1e-9) + 1e-4,
        "a large damping must hold sigma",
    )


def check_memory_is_planned(strategy: Strategy) -> None:
    """Check that a search that is too large is refused before anything is allocated."""
    search = strategy.search_type
    options = {option.name: option.default for option in search.options}
    _, needed = search.planned(1000, dict(options), 2**62)
    _require(needed >= 8 * 1000, "the plan must count at least one vector")
    try:
        search.planned(10**9, dict(options), 10**6)
    except MemoryError as error:
        _require("usable" in str(error), f"the sentence must say what is usable: {error}")
    else:
        raise AssertionError("a search of 10^9 variables must not fit into a megabyte")


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
    _require(False, f"x_0 >= 1 holds a sphere at (1, 0, 0, 0), but the mean is {es.mean}")


def check_integers(strategy: Strategy) -> None:
    """Check that integer variables are integers in every candidate, the mean and the state."""
    es = strategy(np.full(4, 1.7), 0.5, seed=3, integers=[0, 2])
    for _ in range(5):
        points = es.ask()
        whole = points[:, [0, 2]]
        _require(np.array_equal(whole, np.rint(whole)), "candidates must hold integers")
        es.tell(sphere(points))
    _require(np.array_equal(es.mean[[0, 2]], np.rint(es.mean[[0, 2]])), "the mean must hold them")
    again = strategy.from_state(es.state())
    same = np.array_equal(again.ask(), es.ask())
    _require(same, "a restored state must give the same candidates")


STRATEGY_CHECKS: tuple[Check, ...] = (
    check_candidates,
    check_step_length,
    check_seeds,
    check_parts,
    check_skip,
    check_state,
    check_failed_evaluations,
    check_unbounded,
    check_constant,
    check_growth,
    check_linear,
    check_bounds,
    check_convergence,
    check_order_alone_counts,
    check_kernels_agree,
    check_threads,
    check_restart_options,
    check_memory_is_planned,
    check_constraints,
    check_integers,
)


def check_strategy(strategy: Strategy) -> None:
    """Run all checks on a strategy.

    Parameters
    ----------
    strategy : type
        A subclass of `AskTell`.

    Raises
    ------
    AssertionError
        At the first check that fails; the message names it and says what was expected.
    """
    for check in STRATEGY_CHECKS:
        try:
            check(strategy)
        except AssertionError as error:
            raise AssertionError(f"{strategy.__name__}, {check.__name__}: {error}") from error


def _options_of(strategy: Strategy) -> set[str]:
    return {option.name for option in strategy.option_table()}


def _damped(strategy: Strategy) -> bool:
    return "damping" in _options_of(strategy)


def _trajectory(
    strategy: Strategy,
    n: int,
    generations: int,
    objective: Objective = ellipsoid,
    **options: Any,
) -> list[NDArray[np.float64]]:
    es = strategy(np.linspace(1.0, 2.0, n), 0.5, **options)
    seen = []
    for _ in range(generations):
        points = es.ask()
        seen.append(points.copy())
        es.tell(objective(points))
    return seen


def _tell_some(es: AskTell) -> None:
    """Tell a generation; every fifth has no values."""
    points = es.ask()
    failed = es.generation % 5 == 4
    es.tell(np.full(points.shape[0], math.nan) if failed else ellipsoid(points))


def _finite(es: AskTell) -> None:
    _require(
        math.isfinite(es.sigma) and es.sigma > 0, f"sigma must stay finite and > 0, not {es.sigma}"
    )
    _require(bool(np.isfinite(es.mean).all()), "the mean must stay finite")


def _same(a: NDArray[Any], b: NDArray[Any], sentence: str) -> None:
    _require(np.array_equal(a, b), sentence)


def _restored(strategy: Strategy, state: dict[str, Any]) -> AskTell:
    try:
        return strategy.from_state(state)
    except (KeyError, ValueError) as error:
        raise AssertionError(
            f"a state must be complete, but restoring it failed: {error}"
        ) from error


def _require(holds: bool, sentence: str) -> None:
    if not holds:
        raise AssertionError(sentence)
