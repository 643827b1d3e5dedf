"""One run: from its description to its result, in any process."""

from __future__ import annotations

import platform
import time
from collections import deque
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from mmes.base.loading import is_location
from mmes.base.version import __version__
from mmes.lab.clustering.competitors import smoothed_trust_region, subgradient_trust_region
from mmes.lab.clustering.graphs import Graph
from mmes.lab.clustering.solve import SearchSettings, sparse_basis
from mmes.lab.experiments.availability import strategy_for
from mmes.lab.experiments.objectives import (
    conditions,
    is_clustering,
    load_clustering_graph,
    resolve,
)
from mmes.lab.experiments.plan import Trial
from mmes.lab.experiments.results.store import TrialResult, thin
from mmes.minimize import minimize
from mmes.problems.problem import Problem, Vector
from mmes.run.restarts import random_point, uniform_start
from mmes.spaces.manifolds import Grassmann
from mmes.spaces.space import Space
from mmes.spaces.start import size_of_box

Traces = tuple[Vector, Vector, Vector]


class Observed:
    """An objective that adds up the processor time spent in it and records its best values.

    It takes a (k, n) batch; `record_at` are the evaluations after which the best value is noted.
    """

    def __init__(self, function: Callable[[Vector], Vector], record_at: Sequence[int] = ()) -> None:
        self.function = function
        self.seconds = 0.0
        self.records: list[tuple[int, float]] = []
        self._ahead = deque(sorted(record_at))
        self._spent, self._best = 0, np.inf

    def __call__(self, points: Vector) -> Vector:
        """Evaluate a batch and note the time."""
        begin = time.process_time()
        values = self.function(points)
        self.seconds += time.process_time() - begin
        if self._ahead:
            self._record(np.asarray(values, dtype=np.float64))
        return values

    def _record(self, values: Vector) -> None:
        if values.size == 1 and self._spent + 1 < self._ahead[0]:  # a step of a local search
            self._best = min(self._best, values.item())  # this order ignores NaN
            self._spent += 1
            return
        while self._ahead and self._ahead[0] <= self._spent + values.size:
            mark = self._ahead.popleft()
            until = np.fmin.reduce(values[: mark - self._spent], initial=self._best)
            self.records.append((mark, float(until)))
        self._best = np.fmin.reduce(values, initial=self._best)
        self._spent += values.size


def with_records(trace: Traces, records: Sequence[tuple[int, float]]) -> Traces:
    """Return a trace (evaluations, best, sigma) with recorded best values put into it."""
    evaluations, best, sigma = trace
    for mark, value in records:
        place = int(np.searchsorted(evaluations, mark))
        if place < evaluations.size and evaluations[place] == mark:
            continue
        evaluations = np.insert(evaluations, place, float(mark))
        best = np.insert(best, place, value)
        sigma = np.insert(sigma, place, sigma[max(place - 1, 0)] if sigma.size else np.nan)
    return evaluations, best, sigma


def starting_point(run: Trial, problem: Problem) -> Space:
    """Return the start point, uniform by the run's seed, and the initial step size."""
    box = problem.lower, problem.upper
    if run.start is not None:
        box = np.full(run.dimension, run.start[0]), np.full(run.dimension, run.start[1])
    sigma0, scale = run.sigma0, None
    if sigma0 is None:
        sigma0, scale = size_of_box(problem.lower, problem.upper)
    return Space(uniform_start(*box, run.seed), sigma0, None, scale)


def versions() -> dict[str, str]:
    """Return the versions that a result depends on."""
    return {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "mmes": __version__,
        "numpy": np.__version__,
    }


def ending_of_the_paper(restarts: bool, sigma0: float) -> dict[str, Any]:
    """Return the options that end a run as the paper's tables need it.

    With restarts, a run ends where its best value improves by less than 1e-8 per generation.
    Without, it ends at its target or with its budget: sep-CMA on Discus, say, finds nothing better
    for a thousand generations while it learns the scales, and then solves it.
    """
    rule = {"stagnation_tolerance": 1e-8} if restarts else {"stagnation_window": "off"}
    return rule | {"xtol": 0.0, "sigma_min": 1e-20 * sigma0}


def perform(run: Trial) -> TrialResult:
    """Make one run and return its result."""
    if is_clustering(run.objective.name):
        return perform_over_subspaces(run)
    problem = resolve(run.objective.name, run.dimension, dict(run.objective.options), run.seed)
    place = starting_point(run, problem)
    conditioned = conditions(run.objective.name, dict(run.objective.options))
    objective = Observed(problem.batch, run.record_at)
    # Runs share the machine with other runs: one thread each, unless the plan says otherwise.
    # Evaluations are counted as the papers count them: none of the start point, and of built-in
    # problems, which are not noisy, none to find out whether they are.
    noise = "auto" if is_location(run.objective.name) else "no"
    settings: dict[str, Any] = {"threads": 1, "evaluate_x0": False, "noise": noise}
    settings |= dict(run.strategy.options)
    strategy = strategy_for(run.strategy.name, run.dimension)
    known = {option.name for option in strategy.option_table()}
    for name, value in ending_of_the_paper("restarts" in settings, place.sigma0).items():
        if name in known:
            settings.setdefault(name, value)
    if run.bounds != "none" or strategy.needs_box:
        settings["bounds"] = problem.bounds
        if "bounds_handling" in known:
            settings.setdefault("bounds_handling", run.bounds)
    started = datetime.now(UTC).isoformat(timespec="seconds")
    wall, cpu = time.perf_counter(), time.process_time()
    result = minimize(
        objective,
        place.x0,
        place.sigma0,
        scale=place.scale,
        vectorized=True,
        strategy=run.strategy.name,
        seed=run.seed,
        target=run.target,
        max_evaluations=run.max_evaluations,
        **conditioned,
        **settings,
    )
    seconds, cpu_seconds = time.perf_counter() - wall, time.process_time() - cpu
    evaluations, best = result.history["evaluations"], result.history["best"]
    kept = thin(evaluations, best)
    trace = (evaluations[kept], best[kept], result.history["sigma"][kept])
    evaluations, best, sigma = with_records(trace, objective.records)
    # Where no feasible point was found, the value of another says nothing.
    feasible = result.constraint_violation is None or result.best_seen < np.inf
    return TrialResult(
        best=result.fun if feasible else np.inf,
        evaluations=result.nfev,
        generations=result.nit,
        restarts=result.starts - 1,
        reached=run.target is not None and feasible and result.fun <= run.target,
        status=result.reason.name,
        message=result.message,
        seconds=seconds,
        cpu_seconds=cpu_seconds,
        objective_seconds=objective.seconds,
        started=started,
        versions=versions() | {"kernel": result.kernel},
        trace_evaluations=evaluations,
        trace_best=best,
        trace_sigma=sigma,
        violation=result.constraint_violation,
    )


def perform_over_subspaces(run: Trial) -> TrialResult:
    """Make one run of sparse spectral clustering: ``clustering/NAME`` with the option ``beta``.

    The strategy is ``mmes`` (on the Grassmann manifold, with the options of `SearchSettings`),
    ``gsc`` (trust region with subgradients) or ``smoothed`` (trust region on a smoothed objective).
    Start points depend on the seed alone, so all three start alike.
    """
    graph = load_clustering_graph(run.objective.name)
    started = datetime.now(UTC).isoformat(timespec="seconds")
    wall, cpu = time.perf_counter(), time.process_time()
    value, evaluations = _search(run, graph)
    return TrialResult(
        best=value,
        evaluations=evaluations,
        generations=0,
        restarts=0,
        reached=run.target is not None and value <= run.target,
        status="FINISHED",
        message="The search on the manifold ended.",
        seconds=time.perf_counter() - wall,
        cpu_seconds=time.process_time() - cpu,
        objective_seconds=0.0,
        started=started,
        versions=versions(),
        trace_evaluations=np.array([float(evaluations)]),
        trace_best=np.array([value]),
        trace_sigma=np.array([np.nan]),
    )


def _search(run: Trial, graph: Graph) -> tuple[float, int]:
    """Return the best value and the evaluations spent."""
    laplacian, beta = graph.laplacian(), float(dict(run.objective.options)["beta"])
    if run.strategy.name == "mmes":
        options: dict[str, object] = dict(run.strategy.options)
        settings = SearchSettings(max_evaluations=run.max_evaluations, **options)  # pyright: ignore[reportArgumentType]
        solution = sparse_basis(laplacian, graph.n_clusters, beta, seed=run.seed, settings=settings)
        return solution.value, solution.evaluations
    solver = {"gsc": subgradient_trust_region, "smoothed": smoothed_trust_region}[run.strategy.name]
    manifold = Grassmann(graph.n_samples, graph.n_clusters)
    start = random_point(manifold, run.seed)
    result = solver(laplacian, beta, start)
    return result.fun, result.nfev
