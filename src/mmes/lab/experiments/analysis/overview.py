"""Tables and charts of any comparison, as shown by `mmes bench`."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from operator import attrgetter

import numpy as np

from mmes.lab.experiments.analysis.charts import (
    Chart,
    convergence,
    observed_targets,
    runtime_distribution,
)
from mmes.lab.experiments.analysis.statistics import expected_running_time
from mmes.lab.experiments.analysis.tables import (
    Cell,
    Comparison,
    Line,
    Table,
    compare,
    shades,
)
from mmes.lab.experiments.plan import Trial
from mmes.lab.experiments.results.store import TrialResult
from mmes.lab.experiments.sections.section import Findings

HIGHEST_TARGET = 100.0


def overview(runs: Sequence[Trial], outcomes: Mapping[str, TrialResult], chosen: str) -> Findings:
    """Return the tables and charts of any set of runs, finished or not.

    The strategy with the label `chosen` is tested against the others.
    """
    targeted = any(run.target is not None for run in runs)
    by_value = Comparison(tuple(runs), outcomes, attrgetter("best"), chosen)
    tables: list[Table] = []
    if targeted:
        by_cost = Comparison(tuple(runs), outcomes, attrgetter("cost"), chosen)
        tables += [
            compare(
                by_cost,
                (
                    "evaluations",
                    "Evaluations to the target",
                    "median (runs that reached it / runs, where some did not)",
                ),
            ),
            _expected(by_cost),
        ]
    # Where every run stopped at its target the values say nothing but the target.
    if not all(outcome.reached for outcome in outcomes.values()) or not outcomes:
        tables.append(
            compare(
                by_value,
                ("values", "Best values", "median of the smallest value found"),
                ranked=not targeted,
            )
        )
    if any(outcome.violation is not None for outcome in outcomes.values()):
        tables.append(
            compare(
                Comparison(tuple(runs), outcomes, _violation, chosen),
                (
                    "violations",
                    "Violations",
                    "median of the largest violation of a constraint at the best point",
                ),
                ranked=False,
            )
        )
    return Findings(tuple(tables), tuple(_charts(by_value, targeted)))


def _violation(outcome: TrialResult) -> float:
    return outcome.violation or 0.0  # without constraints there is none


def _expected(data: Comparison) -> Table:
    """Return the expected running time of every cell."""
    lines: list[Line] = []
    for place in data.places():
        values: dict[str, float | None] = {}
        keys: dict[str, tuple[str, ...]] = {}
        for column in data.columns():
            finished = data.finished(place, column)
            keys[column] = tuple(run.key for run, _ in finished)
            values[column] = (
                expected_running_time(
                    [o.evaluations for _, o in finished], [o.reached for _, o in finished]
                )
                if finished
                else None
            )
        shading = shades(values)
        cells = {
            column: Cell(ours=value, shade=shading.get(column), keys=keys[column])
            for column, value in values.items()
        }
        lines.append(Line(f"{place[0]}, n = {place[1]}", cells))
    return Table(
        "expected-running-time",
        "Expected running time",
        "evaluations of all runs over the number that reached the target",
        tuple(data.columns()),
        tuple(lines),
    )


def _charts(data: Comparison, targeted: bool) -> list[Chart]:
    finished = [run for run in data.runs if run.key in data.outcomes]
    targets = observed_targets(finished, data.outcomes)
    for run in finished if targeted else ():
        # Towards a positive target the field's ladder of targets fits better than what was seen.
        if run.target is not None and 0.0 < run.target < HIGHEST_TARGET:
            ladder = np.geomspace(HIGHEST_TARGET, run.target, 51)
            targets[run.objective.label] = ladder
    distribution = runtime_distribution(
        finished, data.outcomes, name="ecdf", title="Runtime distribution", targets=targets
    )
    charts = [distribution]
    for problem, dimension in data.places():
        here = [run for run in finished if run.cell[:2] == (problem, dimension)]
        stem = file_stem(f"{problem}-{dimension}")
        for trace, name, extra in (
            ("trace_best", "convergence", ""),
            ("trace_sigma", "sigma", ": step size"),
        ):
            title = f"{problem}, n = {dimension}{extra}"
            chart_name = f"{name}-{stem}"
            charts.append(
                convergence(here, data.outcomes, name=chart_name, title=title, trace=trace)
            )
    return [chart for chart in charts if chart.series]


LONGEST_STEM = 80


def file_stem(text: str) -> str:
    """Return a name for a file about `text`: letters, digits and hyphens; long ones end in a hash.

    Labels of problems are the user's and may be of any length; file systems allow 255 bytes.
    """
    stem = "".join(c if c.isalnum() else "-" for c in text.lower())
    if len(stem.encode()) <= LONGEST_STEM:
        return stem
    short = stem.encode()[: LONGEST_STEM - 13].decode(errors="ignore")
    return f"{short}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
