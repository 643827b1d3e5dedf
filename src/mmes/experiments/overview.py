"""Tables and charts of any comparison: what `mmes bench` shows of a user's own plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mmes.experiments.charts import (
    Chart,
    convergence,
    observed_targets,
    runtime_distribution,
)
from mmes.experiments.plan import Run
from mmes.experiments.sections.section import Findings
from mmes.experiments.statistics import expected_running_time
from mmes.experiments.store import Outcome
from mmes.experiments.tables import (
    Cell,
    Comparison,
    Line,
    Table,
    best_value,
    compare,
    cost,
    shades,
)


def overview(runs: Sequence[Run], outcomes: Mapping[str, Outcome], chosen: str) -> Findings:
    """Return what can be said of any set of runs.

    Parameters
    ----------
    runs : sequence of Run
        All runs, finished or not.
    outcomes : dict
        What the finished ones gave, by key.
    chosen : str
        Label of the strategy that the others are tested against.
    """
    targeted = any(run.target is not None for run in runs)
    by_value = Comparison(tuple(runs), outcomes, best_value, chosen)
    tables: list[Table] = []
    if targeted:
        by_cost = Comparison(tuple(runs), outcomes, cost, chosen)
        tables += [
            compare(
                by_cost,
                name="evaluations",
                title="Evaluations to the target",
                quantity="median (runs that reached it / runs, where some did not)",
            ),
            _expected(by_cost),
        ]
    tables.append(
        compare(
            by_value,
            name="values",
            title="Best values",
            quantity="median of the smallest value found",
            ranked=not targeted,
        )
    )
    return Findings(tuple(tables), tuple(_charts(by_value, targeted)))


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
    positive = all(data.outcomes[run.key].best >= 0.0 for run in finished)
    # With a target above a known minimum of zero the field's targets fit; else take what was seen.
    targets = None if targeted and positive else observed_targets(finished, data.outcomes)
    distribution = runtime_distribution(
        finished, data.outcomes, name="ecdf", title="Runtime distribution", targets=targets
    )
    charts = [distribution]
    for problem, dimension in data.places():
        here = [run for run in finished if run.cell[:2] == (problem, dimension)]
        stem = "".join(c if c.isalnum() else "-" for c in f"{problem}-{dimension}".lower())
        for trace, name in (("trace_best", "convergence"), ("trace_sigma", "sigma")):
            charts.append(
                convergence(
                    here,
                    data.outcomes,
                    name=f"{name}-{stem}",
                    title=f"{problem}, n = {dimension}",
                    trace=trace,
                )
            )
    return [chart for chart in charts if chart.series]
