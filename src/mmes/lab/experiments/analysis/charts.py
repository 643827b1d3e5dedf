"""Pictures as data: drawn by matplotlib on paper and by the report in a browser."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

import numpy as np

from mmes.lab.experiments.analysis.statistics import Floats, ecdf, first_hits
from mmes.lab.experiments.plan import Trial
from mmes.lab.experiments.results.store import TrialResult

GRID = 160
"""Points of an averaged convergence curve."""

TARGETS = 10.0 ** np.linspace(2.0, -8.0, 51)
"""Targets of a runtime distribution: five per factor of ten."""


@dataclass(frozen=True)
class Series:
    """One curve."""

    name: str  # Its entry in the legend; curves of one name share a colour.
    # x, y: the points.
    x: Floats
    y: Floats
    # low, high: a band around it, usually quartiles.
    low: Floats | None = None
    high: Floats | None = None
    kind: str = "line"  # ``"line"``, ``"steps"`` or ``"points"``.
    dashed: bool = False  # For published values and fits.


@dataclass(frozen=True)
class Chart:
    """A picture: axes and curves."""

    name: str  # Name of its files.
    # title, x_label, y_label: what it shows.
    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]  # The curves.
    # x_log, y_log: logarithmic axes.
    x_log: bool = False
    y_log: bool = False
    note: str = field(default="")  # A sentence to print under it.


def values_at(evaluations: Floats, trace_evaluations: Floats, values: Floats) -> Floats:
    """Return what a run had at given numbers of evaluations: a step function, held at its end."""
    place = np.searchsorted(trace_evaluations, evaluations, side="right") - 1
    return values[np.maximum(place, 0)]


def typical_curve(
    outcomes: Sequence[TrialResult], trace: str = "trace_best", name: str = ""
) -> Series:
    """Return the median over runs of a trace, with quartiles as its band.

    The runs are of one strategy on one problem; `trace` as in `convergence`.
    """
    longest = max(float(o.trace_evaluations[-1]) for o in outcomes)
    first = min(float(o.trace_evaluations[0]) for o in outcomes)
    grid = np.linspace(first, longest, GRID)
    values = np.vstack([values_at(grid, o.trace_evaluations, getattr(o, trace)) for o in outcomes])
    if len(outcomes) == 1:
        return Series(name, grid, values[0])
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75], axis=0)
    return Series(name, grid, middle, low, high)


Finished = dict[str, list[tuple[Trial, TrialResult]]]


def _grouped(
    runs: Iterable[Trial],
    outcomes: Mapping[str, TrialResult],
    by: Callable[[Trial], str] = attrgetter("strategy.label"),
) -> Finished:
    found: Finished = {}
    for run in runs:
        if run.key in outcomes and outcomes[run.key].trace_evaluations.size:
            found.setdefault(by(run), []).append((run, outcomes[run.key]))
    return found


def convergence(
    runs: Iterable[Trial],
    outcomes: Mapping[str, TrialResult],
    *,
    name: str,
    title: str,
    trace: str = "trace_best",
    by: Callable[[Trial], str] = attrgetter("strategy.label"),
) -> Chart:
    """Return the convergence curves of the strategies on one problem, of one dimension.

    `trace` is ``"trace_best"`` or ``"trace_sigma"``; `by` says what a curve stands for.
    """
    curves = [
        typical_curve([outcome for _, outcome in found], trace, label)
        for label, found in _grouped(runs, outcomes, by).items()
    ]
    series = [curve for curve in curves if not np.isnan(curve.y).all()]  # some have no step size
    what = "best value" if trace == "trace_best" else "step size σ"
    positive = all(np.nanmax(s.y) > 0 for s in series)
    return Chart(
        name,
        title,
        "evaluations",
        f"{what} (median, quartiles)",
        tuple(series),
        y_log=positive,
    )


def convergence_charts(
    runs: Iterable[Trial],
    outcomes: Mapping[str, TrialResult],
    heading: Callable[[str, int], tuple[str, str]],
) -> tuple[Chart, ...]:
    """Return one picture per problem and dimension that has curves.

    `heading` returns its name and its title.
    """
    places: dict[tuple[str, int], list[Trial]] = {}
    for run in runs:
        places.setdefault((run.objective.label, run.dimension), []).append(run)
    charts: list[Chart] = []
    for place, found in places.items():
        name, title = heading(*place)
        charts.append(convergence(found, outcomes, name=name, title=title))
    return tuple(chart for chart in charts if chart.series)


def shared_runs(runs: Iterable[Trial], outcomes: Mapping[str, TrialResult]) -> list[Trial]:
    """Return the finished runs on those problems that every strategy was run on.

    Distributions over different problems cannot be compared.
    """
    finished = [run for run in runs if run.key in outcomes]
    strategies = {run.strategy.label for run in finished}
    takers: dict[tuple[str, int], set[str]] = {}
    for run in finished:
        takers.setdefault((run.objective.label, run.dimension), set()).add(run.strategy.label)
    return [run for run in finished if takers[run.objective.label, run.dimension] == strategies]


def observed_targets(
    runs: Iterable[Trial], outcomes: Mapping[str, TrialResult], count: int = 51
) -> dict[str, Floats]:
    """Return targets for problems whose minimum is unknown: quantiles of all values passed."""
    passed: dict[str, list[Floats]] = {}
    for run in runs:
        if run.key in outcomes:
            best = outcomes[run.key].trace_best
            passed.setdefault(run.objective.label, []).append(best[np.isfinite(best)])
    levels = np.linspace(1.0, 0.0, count)
    return {
        label: np.quantile(np.concatenate(values), levels)
        for label, values in passed.items()
        if sum(v.size for v in values)
    }


def runtime_distribution(
    runs: Iterable[Trial],
    outcomes: Mapping[str, TrialResult],
    *,
    name: str,
    title: str,
    targets: Mapping[str, Floats] | None = None,
) -> Chart:
    """Return the fraction of (problem, seed, target) triples solved within a budget.

    The budget is counted in evaluations per variable; `targets` has those of each problem by its
    label, by default `TARGETS` for all.
    """
    series: list[Series] = []
    for label, found in _grouped(runs, outcomes).items():
        times = [
            first_hits(
                o.trace_evaluations,
                o.trace_best,
                TARGETS if targets is None else targets[run.objective.label],
            )
            / run.dimension
            for run, o in found
        ]
        solved, fraction = ecdf(np.concatenate(times))
        # One step per triple is more than the eye can see; a few hundred corners are enough.
        keep = np.unique(np.linspace(0, max(solved.size - 1, 0), 300).astype(int))
        if solved.size:
            series.append(Series(label, solved[keep], fraction[keep], kind="steps"))
    note = (
        f"{TARGETS.size} targets from 1e2 to 1e-8, evenly spaced in log scale."
        if targets is None
        else "51 targets per problem: from 1e2 down to the plan's target, evenly spaced in log "
        "scale; without a target, quantiles of all values that its runs passed through."
    )
    return Chart(
        name,
        title,
        "evaluations / dimension",
        "fraction of (run, target) pairs solved",
        tuple(series),
        x_log=True,
        note=note,
    )
