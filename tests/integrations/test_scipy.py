"""The method for scipy.optimize.minimize."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import mmes

optimize = pytest.importorskip("scipy.optimize")

from mmes.integrations.scipy import mmes_method  # noqa: E402

X0 = np.full(10, 0.7)


def sphere(x: Any) -> float:
    return float(np.sum(x * x))


def run(fun: Any = sphere, x0: Any = X0, *, options: Any = None, **arguments: Any) -> Any:
    options = {"sigma0": 0.5, "maxfev": 300, "seed": 1} | (options or {})
    return optimize.minimize(fun, x0, method=mmes_method, options=options, **arguments)


def test_the_lines_of_the_documentation() -> None:
    from scipy.optimize import minimize

    f, x0, b = sphere, X0, [(-5, 5)] * 10
    r = minimize(
        f, x0, method=mmes_method, bounds=b, options={"sigma0": 0.5, "maxfev": 10**4, "seed": 1}
    )
    assert isinstance(r, optimize.OptimizeResult)
    assert r.fun < 1e-8
    assert r.nfev <= 10**4
    np.testing.assert_allclose(r.x, 0, atol=1e-3)


def test_the_result_is_that_of_minimize_in_scipys_words() -> None:
    here = run()
    there = mmes.minimize(sphere, X0, 0.5, max_evaluations=300, seed=1)
    for name in ("fun", "nfev", "nit", "success", "status", "message", "sigma", "seed"):
        assert here[name] == getattr(there, name), name
    np.testing.assert_array_equal(here.x, there.x)
    np.testing.assert_array_equal(here.mean, there.mean)


def test_what_scipy_passes_to_a_method() -> None:
    # If this fails, SciPy has changed its call, and the adapter must follow.
    seen: dict[str, Any] = {}

    def spy(fun: Any, x0: Any, **arguments: Any) -> Any:
        seen.update(arguments, fun=fun, x0=x0)
        return "handed back"

    bounds, callback = [(0, None)] * 10, lambda x: None
    given = np.arange(10)
    back = optimize.minimize(
        sphere, given, args=(3,), method=spy, bounds=bounds, callback=callback, options={"a": 1}
    )
    assert back == "handed back"
    names = "fun x0 args jac hess hessp bounds constraints callback a"
    assert set(seen) == set(names.split())
    assert seen["bounds"] is bounds
    assert seen["callback"] is callback
    assert seen["args"] == (3,)
    assert seen["constraints"] == ()
    assert seen["jac"] is None
    assert seen["x0"].dtype == np.float64
    assert seen["x0"] is not given
    optimize.minimize(sphere, X0, method=spy, tol=1e-3)
    assert seen["tol"] == 1e-3
    optimize.minimize(lambda x: (x @ x, 2 * x), X0, method=spy, jac=True)
    assert callable(seen["jac"])
    assert seen["fun"](X0) == pytest.approx(4.9)
    optimize.minimize(sphere, X0, method=spy, jac="2-point")
    assert seen["jac"] is None


def test_arguments_are_bound() -> None:
    r = run(lambda x, a, b: sphere(x - a) + b, args=(0.25, 7.0), options={"maxfev": 5000})
    assert r.fun == pytest.approx(7.0)
    np.testing.assert_allclose(r.x, 0.25, atol=1e-3)


def test_an_objective_may_write_into_its_argument() -> None:
    def writes(x: Any) -> float:
        value = sphere(x)
        x[:] = 99.0
        return value

    assert run(writes).fun == run().fun


def test_scipys_words_for_limits() -> None:
    assert run(options={"maxfev": 123}).nfev == 123
    assert run(options={"maxiter": 3}).nit == 3
    with pytest.raises(ValueError, match="maxfev and max_evaluations mean the same"):
        run(options={"max_evaluations": 100})


def test_tol_is_the_tolerance_of_values() -> None:
    here = run(tol=1e-3, options={"maxfev": 10**5})
    there = mmes.minimize(sphere, X0, 0.5, max_evaluations=10**5, seed=1, ftol=1e-3)
    assert here.nfev == there.nfev < 10**5
    assert here.status == mmes.StopReason.CONVERGED_F.status
    assert here.success
    assert here.fun < 1e-3
    with pytest.raises(ValueError, match="tol and ftol mean the same"):
        run(tol=1e-3, options={"ftol": 1e-3})


def test_callback_with_a_copy_of_the_best_point() -> None:
    seen: list[Any] = []
    r = run(callback=seen.append, options={"maxiter": 9})
    assert len(seen) == r.nit == 9
    np.testing.assert_array_equal(seen[-1], r.x)
    assert seen[-1] is not seen[-2]
    seen[-1][:] = 0  # ours to change


def test_callback_with_intermediate_result() -> None:
    seen: list[float] = []

    def callback(intermediate_result: Any) -> None:
        assert isinstance(intermediate_result, optimize.OptimizeResult)
        seen.append(intermediate_result.fun)

    r = run(callback=callback, options={"maxiter": 9})
    assert seen[-1] == r.fun


def test_stop_iteration_ends() -> None:
    def callback(x: Any) -> None:
        raise StopIteration

    r = run(callback=callback)
    assert r.status == mmes.StopReason.CALLBACK.status
    assert r.nit == 1


def test_a_callback_that_returns_true_goes_on_as_in_scipy() -> None:
    assert run(callback=lambda x: True).nfev == 300


@pytest.mark.parametrize(
    "bounds",
    [
        [(-1, 1)] * 10,
        ((-1, 1),) * 10,
        optimize.Bounds(-np.ones(10), np.ones(10)),
        optimize.Bounds(-1, 1),
    ],
    ids=["list", "tuple", "Bounds", "Bounds of numbers"],
)
def test_bounds_in_every_form_give_the_same(bounds: Any) -> None:
    r = run(bounds=bounds)
    same = mmes.minimize(sphere, X0, 0.5, bounds=(-1.0, 1.0), max_evaluations=300, seed=1)
    np.testing.assert_array_equal(r.x, same.x)


def test_two_pairs_are_pairs() -> None:
    r = optimize.minimize(
        lambda x: sphere(x - 9), [0.5, 3.5], method=mmes_method, bounds=((0, 1), (3, 4)),
        options={"maxfev": 2000, "seed": 1, "sigma0": 0.3},
    )  # fmt: skip
    np.testing.assert_allclose(r.x, [1, 4], atol=0.05)


def test_open_and_fixed_sides() -> None:
    bounds = [(0.5, None), (None, 0.9), (0.7, 0.7), *[(None, None)] * 7]
    r = run(bounds=bounds, options={"maxfev": 3000})
    assert r.x[0] >= 0.5
    assert r.x[2] == 0.7


def test_a_start_outside_the_bounds_is_moved_inside_as_by_scipys_methods() -> None:
    box = [(0.0, 1.0)] * 10
    start = np.linspace(-1, 2, 10)
    with pytest.warns(optimize.OptimizeWarning, match="not within the specified bounds") as told:
        moved = run(x0=start, bounds=box)
    assert told[0].filename == __file__
    assert np.array_equal(moved.x, run(x0=start.clip(0, 1), bounds=box).x)


def test_bounds_that_are_nan_are_named() -> None:
    """Failed before: x0 was blamed, since clipping had put the NaN there."""
    with pytest.raises(ValueError, match=r"variable 0 has \[0.0, nan\]"):
        run(x0=np.zeros(10), bounds=[(0.0, np.nan)] * 10)


def test_without_sigma0() -> None:
    with pytest.raises(ValueError, match=r"sigma0.*start mutation strength"):
        optimize.minimize(sphere, X0, method=mmes_method)
    with pytest.raises(ValueError, match="sigma0"):
        optimize.minimize(sphere, X0, method=mmes_method, bounds=[(0, None)] * 10)
    r = optimize.minimize(
        sphere, X0, method=mmes_method, bounds=[(-1, 1)] * 10, options={"maxfev": 50}
    )
    assert r.nfev == 50


def test_what_is_not_supported() -> None:
    with pytest.raises(ValueError, match="constraints"):
        run(constraints={"type": "less", "fun": sphere})
    with pytest.warns(RuntimeWarning, match="jac is ignored") as caught:
        r = run(lambda x: (sphere(x), 2 * x), jac=True)
    assert r.fun == run().fun
    assert caught[0].filename == __file__
    with pytest.raises(ValueError, match="one pair"):
        run(bounds=[1, 2, 3])


def test_other_options_reach_minimize(tmp_path: Any) -> None:
    state = tmp_path / "run.mmes"
    r = run(options={"strategy": "sep-cma", "workers": 2, "checkpoint": state})
    assert r.strategy.startswith("sep-cma")
    assert state.exists()
    with pytest.raises(TypeError, match="colour"):
        run(options={"colour": "red"})


def test_within_basinhopping() -> None:
    arguments = {"method": mmes_method, "options": {"sigma0": 0.5, "maxfev": 200, "seed": 1}}
    seeded = "rng" if "rng" in inspect.signature(optimize.basinhopping).parameters else "seed"
    r = optimize.basinhopping(sphere, X0, niter=2, minimizer_kwargs=arguments, **{seeded: 1})
    assert r.fun < sphere(X0)
    assert r.nfev == 600


def test_constraints_of_scipy_are_taken_as_they_are() -> None:
    from scipy.optimize import LinearConstraint, NonlinearConstraint, minimize

    given = {"type": "ineq", "fun": lambda x: x[0] - 1.0}
    linear = LinearConstraint(np.eye(1, 4), 1.0, np.inf)
    nonlinear = NonlinearConstraint(lambda x: x[:1] ** 3, 1.0, np.inf)
    for constraint in (given, [linear], nonlinear):
        result = minimize(
            sphere,
            np.full(4, 2.0),
            method=mmes_method,
            constraints=constraint,
            options={"sigma0": 0.5, "seed": 1, "maxfev": 5_000},
        )
        assert result.success
        assert abs(result.fun - 1.0) < 1e-5
        assert result.maxcv <= 1e-6
        assert abs(result.x[0] - 1.0) < 1e-5
