"""Charts hold what the runs did, and figures draw them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mmes.lab.experiments.analysis.charts import (
    Chart,
    Series,
    convergence,
    observed_targets,
    runtime_distribution,
    shared_runs,
    typical_curve,
    values_at,
)
from mmes.lab.experiments.analysis.figures import colours, draw, write_figure
from mmes.lab.experiments.plan import Objective, Strategy
from pretended import make_outcome, make_run


def test_a_trace_is_a_step_function_held_at_its_end():
    found = values_at(
        np.array([1.0, 10.0, 15.0, 99.0]), np.array([10.0, 20.0]), np.array([5.0, 1.0])
    )
    assert found.tolist() == [5.0, 5.0, 5.0, 1.0]


def traced(best, evaluations=(10.0, 20.0, 30.0)):
    return make_outcome(
        trace_evaluations=np.array(evaluations),
        trace_best=np.array(best, dtype=float),
        trace_sigma=np.ones(len(best)),
    )


def test_the_typical_curve_is_the_median_with_quartiles():
    curve = typical_curve([traced([4, 3, 1]), traced([8, 5, 2]), traced([100, 7, 3])])
    assert (curve.x[0], curve.x[-1]) == (10.0, 30.0)
    assert (curve.y[0], curve.y[-1]) == (8.0, 2.0)
    assert curve.low is not None
    assert curve.low[-1] == 1.5
    assert typical_curve([traced([4, 3, 1])]).low is None


def test_convergence_has_a_curve_a_strategy():
    runs = [make_run(seed) for seed in range(3)]
    outcomes = {run.key: make_outcome(run.seed) for run in runs[:2]}
    chart = convergence(runs, outcomes, name="c", title="C")
    assert [series.name for series in chart.series] == ["MMES"]
    assert chart.y_log


def test_values_below_zero_get_a_linear_axis():
    run = make_run(1)
    chart = convergence([run], {run.key: traced([-1, -2, -3])}, name="c", title="C")
    assert not chart.y_log


def test_runtime_distribution_by_hand():
    run = make_run(1, dimension=10)
    chart = runtime_distribution(
        [run],
        {run.key: traced([1.0, 1e-2, 1e-4])},
        name="e",
        title="E",
        targets={"Cigar": np.array([0.5, 1e-3, 1e-4, 1e-8])},
    )
    (series,) = chart.series
    assert series.x.tolist() == [2.0, 3.0, 3.0]
    assert series.y.tolist() == [0.25, 0.5, 0.75]


def test_only_problems_that_every_strategy_ran_are_shared():
    rival = Strategy("rm-es", "Rm-ES")
    both = [make_run(1), make_run(1, strategy=rival)]
    alone = make_run(1, objective=Objective("discus", "Discus"))
    unfinished = make_run(1, objective=Objective("discus", "Discus"), strategy=rival)
    outcomes = {run.key: make_outcome() for run in (*both, alone)}
    assert shared_runs([*both, alone, unfinished], outcomes) == both


def test_a_strategy_has_the_same_colour_in_every_picture():
    x = np.ones(1)
    one = Chart("a", "A", "x", "y", (Series("MMES", x, x), Series("Rm-ES", x, x)))
    two = Chart("b", "B", "x", "y", (Series("Rm-ES", x, x), Series("mine", x, x)))
    assert colours(one)["Rm-ES"] == colours(two)["Rm-ES"]
    assert len({*colours(one).values(), *colours(two).values()}) == 3


def test_observed_targets_span_what_was_seen():
    run = make_run(1)
    targets = observed_targets([run], {run.key: traced([3.0, math.inf, -2.0])}, count=3)
    assert targets["Cigar"].tolist() == [3.0, 0.5, -2.0]


@pytest.fixture
def chart():
    x = np.arange(1.0, 6.0)
    return Chart(
        "picture",
        "A title",
        "x axis",
        "y axis",
        (
            Series("one", x, x**2, x**2 / 2, x**2 * 2),
            Series("two", x, x, kind="steps"),
            Series("one", x, x + 1, kind="points", dashed=True),
        ),
        x_log=True,
        y_log=True,
    )


def test_a_figure_draws_every_curve(chart):
    axes = draw(chart).axes[0]
    assert len(axes.lines) == 3
    assert axes.get_xscale() == axes.get_yscale() == "log"
    assert [t.get_text() for t in axes.figure.legends[0].get_texts()] == ["one", "two"]
    assert axes.lines[0].get_color() == axes.lines[2].get_color() != axes.lines[1].get_color()


def test_figures_are_written_as_png_and_svg_and_repeatable(tmp_path, chart):
    first = [path.read_bytes() for path in write_figure(chart, tmp_path / "a")]
    second = [path.read_bytes() for path in write_figure(chart, tmp_path / "b")]
    assert first[0].startswith(b"\x89PNG")
    assert b"<svg" in first[1]
    assert b"A title" in first[1]
    assert first == second


def test_an_empty_chart_writes_nothing(tmp_path):
    assert write_figure(Chart("e", "E", "x", "y", ()), tmp_path) == []
