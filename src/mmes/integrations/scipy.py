"""A method for `scipy.optimize.minimize` and other SciPy functions with a `method`.

>>> from scipy.optimize import minimize
>>> from mmes.integrations.scipy import mmes_method
>>> options = {"sigma0": 0.5, "maxfev": 10**5, "seed": 1, "target": 1e-8}
>>> r = minimize(lambda x: x @ x, [1.0] * 20, method=mmes_method, options=options)
>>> r.success
True
"""
# pyright: reportMissingImports=false

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mmes.base.extras import missing
from mmes.minimize import minimize
from mmes.run.progress import Progress
from mmes.run.result import Result

try:
    from scipy.optimize import OptimizeResult, OptimizeWarning
except ImportError as error:
    raise missing("scipy", "scipy") from error

__all__ = ["mmes_method"]

# SciPy's words for options that the library has under another name.
_RENAMED = {"maxfev": "max_evaluations", "maxiter": "max_generations", "disp": "progress"}


def mmes_method(
    fun: Callable[..., Any],
    x0: Any,
    args: tuple[Any, ...] = (),
    *,
    jac: Any = None,
    hess: Any = None,
    hessp: Any = None,
    bounds: Any = None,
    constraints: Any = (),
    callback: Callable[..., Any] | None = None,
    tol: float | None = None,
    sigma0: float | None = None,
    **options: Any,
) -> OptimizeResult:
    """Minimise a function; pass it to SciPy as ``method=mmes_method``.

    Parameters
    ----------
    fun : callable
        The objective ``fun(x, *args)``. It may write into x.
    x0 : ndarray
        Start point; outside the bounds it is moved to the nearest point inside, with a warning, as
        in SciPy's methods.
    args : tuple
        Further arguments of `fun`.
    jac, hess, hessp : object
        Derivatives are not used; a RuntimeWarning says so.
    bounds : sequence or scipy.optimize.Bounds, optional
        One pair (low, high) per variable, None for no bound.
    constraints : constraint, dict, or a list of them
        SciPy's NonlinearConstraint, LinearConstraint and dicts; see `mmes.minimize`.
    callback : callable, optional
        As in SciPy: a function with the one parameter `intermediate_result` gets an OptimizeResult
        with `x` and `fun`, any other a copy of the best point; StopIteration ends the run.
    tol : float, optional
        Used as `ftol`: the run ends, with success, when the values of a generation, and the best of
        each generation in a window, differ by no more than this.
    sigma0 : float, optional
        Initial mutation strength; optional if all bounds are finite.
    **options
        All other entries of SciPy's `options`: `maxfev`, `maxiter` and `disp` stand for
        `max_evaluations`, `max_generations` and `progress`; the rest goes to `mmes.minimize`.

    Returns
    -------
    scipy.optimize.OptimizeResult
        With x, fun, nfev, nit, success, status, message, and mean, sigma, seed, strategy; with
        constraints also constraint_violation (`maxcv` too), multipliers and active.
    """
    if constraints is not None and not (isinstance(constraints, list | tuple) and not constraints):
        options["constraints"] = constraints
    _warn_of_derivatives(jac=jac, hess=hess, hessp=hessp)
    start = np.asarray(x0, dtype=np.float64)
    box = _box(bounds, start.size)
    if box is not None:
        start = _inside(start, *box)
    if sigma0 is None and (box is None or not np.isfinite(box).all()):
        raise ValueError(
            "options={'sigma0': ...} is needed, unless all bounds are finite: the start mutation "
            "strength, about a third of the distance, along a typical variable, within which the "
            "optimum is expected"
        )
    if tol is not None:
        options = _with(options, "ftol", tol, "tol")
    for theirs, ours in _RENAMED.items():
        if theirs in options:
            value = options.pop(theirs)
            options = _with(options, ours, bool(value) if theirs == "disp" else value, theirs)
    if callback is not None:
        options["callback"] = _Callback(callback)
    return _in_scipys_words(
        minimize(_Objective(fun, tuple(args)), start, sigma0, bounds=box, **options)
    )


@dataclass(frozen=True)
class _Objective:
    """The objective with its arguments bound; a class, so that it can be pickled."""

    fun: Callable[..., Any]
    args: tuple[Any, ...]

    def __call__(self, x: Any) -> Any:
        # SciPy's users may write into x; the library's own points are read-only.
        return self.fun(np.array(x), *self.args)


class _Callback:
    """The user's callback, called by SciPy's rule."""

    def __init__(self, callback: Callable[..., Any]):
        self._callback = callback
        try:
            parameters = set(inspect.signature(callback).parameters)
        except (TypeError, ValueError):  # a built-in function that does not tell
            parameters = set()
        self._takes_result = parameters == {"intermediate_result"}
        self._seen = -1

    def __call__(self, progress: Progress) -> None:
        if progress.evaluations == self._seen:
            return  # the last call of a run repeats that of its last generation
        self._seen = progress.evaluations
        x = np.array(progress.best_x)
        if self._takes_result:
            self._callback(intermediate_result=OptimizeResult(x=x, fun=progress.best_value))
        else:
            self._callback(x)


def _in_scipys_words(result: Result) -> OptimizeResult:
    names = ("x", "fun", "nfev", "nit", "success", "status", "message")
    ours = ("mean", "sigma", "seed", "strategy")
    found = {name: getattr(result, name) for name in names + ours}
    if result.constraint_violation is not None:
        found["maxcv"] = result.constraint_violation  # SciPy's word for it
        for name in ("constraint_violation", "multipliers", "active"):
            found[name] = getattr(result, name)
    return OptimizeResult(found)


def _box(bounds: Any, n: int) -> tuple[Any, Any] | None:
    """Return (lower, upper) with one entry per variable, from pairs or a Bounds object."""
    if bounds is None:
        return None
    if hasattr(bounds, "lb") and hasattr(bounds, "ub"):
        lower, upper = np.asarray(bounds.lb), np.asarray(bounds.ub)
        return tuple(np.broadcast_to(s, (n,)) if s.size == 1 else s for s in (lower, upper))  # type: ignore[return-value]
    pairs = list(bounds)
    try:
        lower = np.array([-np.inf if low is None else low for low, _ in pairs], dtype=np.float64)
        upper = np.array([np.inf if high is None else high for _, high in pairs], dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"bounds must be a Bounds object or one pair (low, high) per variable, not {bounds!r}"
        ) from None
    return lower, upper


def _inside(start: Any, lower: Any, upper: Any) -> Any:
    """Return the start point moved into the box, which for example `basinhopping` may leave."""
    if len(lower) != len(start) or not (lower <= upper).all():
        return start  # `minimize` says what is wrong with the box
    moved = np.clip(start, lower, upper)
    if (moved != start).any():
        warnings.warn(
            "Initial guess is not within the specified bounds; it is moved there.",
            OptimizeWarning,
            stacklevel=4,  # the caller of scipy.optimize.minimize
        )
    return moved


def _warn_of_derivatives(**derivatives: Any) -> None:
    for name, value in derivatives.items():
        if value is not None and value is not False:
            warnings.warn(
                f"Method mmes does not use derivatives; {name} is ignored.",
                RuntimeWarning,
                stacklevel=4,  # the caller of scipy.optimize.minimize
            )


def _with(options: dict[str, Any], name: str, value: Any, given_as: str) -> dict[str, Any]:
    if name in options:
        raise ValueError(f"{given_as} and {name} mean the same; give one of them")
    return options | {name: value}
